#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "shard/mesh.h"

static sf_status parse(const char *text, sf_arena *arena, sf_diag *diag, sf_mesh *out)
{
    return sf_mesh_parse(sf_str_of(text), arena, diag, out);
}

static void test_text(void **state)
{
    (void)state;
    static const char *const good[] = {"data=2", "data=2,model=4", "a=1,B_2=3,_=5,9=7"};
    sf_arena arena = {0};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        sf_mesh mesh;
        assert_int_equal(parse(good[i], &arena, NULL, &mesh), SF_OK);
        sf_buf buf = {0};
        sf_mesh_print(&mesh, &buf);
        assert_string_equal(buf.text, good[i]);
        sf_buf_free(&buf);
    }
    sf_mesh mesh;
    assert_int_equal(parse("a=1,B_2=3,_=5,9=7", &arena, NULL, &mesh), SF_OK);
    assert_int_equal(mesh.naxes, 4);
    assert_int_equal(sf_mesh_size(&mesh), 105);
    assert_int_equal(sf_mesh_axis(&mesh, sf_str_of("B_2")), 1);
    assert_int_equal(sf_mesh_axis(&mesh, sf_str_of("B_")), -1);
    sf_arena_free(&arena);
}

static void test_bad_text(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } bad[] = {
        {"", "is not of the form NAME=SIZE"},
        {"data", "\"data\" is not of the form"},
        {"data=2,", "\"\" is not of the form"},
        {"data=2,,model=2", "\"\" is not of the form"},
        {"da ta=2", "is not of the form"},
        {"data=2=2", "is not of the form"},
        {"data=x", "is not of the form"},
        {"data=99999999999999999999", "is not of the form"},
        {"data=0", "less than 1"},
        {"data=-3", "less than 1"},
        {"a=2,a=2", "two axes \"a\""},
        {"a=2147483648", "too many ranks"},
        {"a=65536,b=65536", "too many ranks"},
        {"a=1,b=1,c=1,d=1,e=1", "at most 4 axes"},
    };
    sf_arena arena = {0};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        sf_diag *diag = sf_diag_new();
        sf_mesh mesh;
        assert_int_equal(parse(bad[i].text, &arena, diag, &mesh), SF_EINPUT);
        assert_non_null(strstr(sf_diag_text(diag, 0), bad[i].message));
        sf_diag_free(diag);
    }
    sf_arena_free(&arena);
}

/* The groups that the header draws. */
static void test_known_groups(void **state)
{
    (void)state;
    sf_mesh mesh = {2, {{"data", 2}, {"model", 3}}};
    static const int model[2][3] = {{0, 1, 2}, {3, 4, 5}}, data[3][2] = {{0, 3}, {1, 4}, {2, 5}};
    for (int place = 0; place < 3; place++)
        for (int g = 0; g < 2; g++)
            assert_int_equal(sf_group_member(&mesh, 2, model[g][0], place), model[g][place]);
    for (int place = 0; place < 2; place++)
        for (int g = 0; g < 3; g++)
            assert_int_equal(sf_group_member(&mesh, 1, data[g][1], place), data[g][place]);
}

/* Coordinates name ranks row-major; every set of axes cuts the mesh into groups whose members agree
 * about each other, differ only in those axes, and are in the order of their ranks. */
static void test_groups(void **state)
{
    (void)state;
    static const sf_mesh meshes[] = {
        {0, {{0}}},
        {1, {{"a", 7}}},
        {2, {{"a", 2}, {"b", 3}}},
        {3, {{"a", 3}, {"b", 1}, {"c", 4}}},
        {4, {{"a", 2}, {"b", 3}, {"c", 2}, {"d", 5}}},
    };
    for (size_t m = 0; m < sizeof meshes / sizeof *meshes; m++) {
        const sf_mesh *mesh = &meshes[m];
        for (int rank = 0; rank < sf_mesh_size(mesh); rank++) {
            int named = 0;
            for (int a = 0; a < mesh->naxes; a++)
                named = named * mesh->axes[a].size + sf_mesh_coordinate(mesh, rank, a);
            assert_int_equal(named, rank);
            for (sf_axes axes = 0; axes < 1u << mesh->naxes; axes++) {
                int size = sf_group_size(mesh, axes), last = -1;
                assert_int_equal(
                    sf_group_member(mesh, axes, rank, sf_group_place(mesh, axes, rank)), rank);
                for (int place = 0; place < size; place++) {
                    int member = sf_group_member(mesh, axes, rank, place);
                    assert_true(member > last && member < sf_mesh_size(mesh));
                    assert_int_equal(sf_group_place(mesh, axes, member), place);
                    for (int a = 0; a < mesh->naxes; a++)
                        if (!(axes >> a & 1))
                            assert_int_equal(sf_mesh_coordinate(mesh, member, a),
                                             sf_mesh_coordinate(mesh, rank, a));
                    last = member;
                }
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_bad_text),
        cmocka_unit_test(test_known_groups),
        cmocka_unit_test(test_groups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
