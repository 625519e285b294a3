/* Runs against the definition of a layout, index by index. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ir/attr.h"
#include "ir/tensor.h"
#include "shard/contiguous_runs.h"

static const struct {
    const char *mesh, *layout;
} cases[] = {
    {"a=2", "[R]"},
    {"a=2", "[S(0)]"},
    {"a=4", "[S(1)]"},
    {"a=2", "[S(2)]"},
    {"a=2", "[S(0,4)]"},
    {"a=2", "[S(1,2)]"},
    {"a=4", "[S(2,4)]"},
    {"a=2,b=2", "[S(0), S(0)]"},
    {"a=2,b=2", "[S(0,4), S(0)]"},
    {"a=2,b=4", "[S(0), S(2,4)]"},
    {"a=2,b=2", "[R, S(1)]"},
    {"a=2,b=2", "[P(+), S(1)]"},
    {"a=2,b=2,c=2", "[S(2), S(2,4), S(2,2)]"},
    {"a=2,b=2,c=2", "[S(1), S(0), S(2)]"},
    {"a=2", "[At(0:0-3,1:4-7)]"},
    {"a=2", "[At(0:0-1+4-5+7,1:2-3+6)]"},
    {"a=3", "[At(2:0-6,0:7)]"}, /* rank 1 has none */
    {"a=2,b=2", "[At(0:0+2+4+6,1:1+3+5+7), S(1)]"},
    {"a=2,b=4", "[At(1:0-1+5,0:2-4+6-7), S(2,4)]"},
    {"a=2,b=2,c=2", "[S(2), At(0:0-4,1:5-7), S(1,2)]"},
};

/* The runs of every rank are in order, and agree with the definition. */
static void check(const sf_mesh *mesh, const sf_layout *layout, const sf_type *type)
{
    int64_t dims[3], strides[3];
    sf_strides(type->rank, type->dims, strides);
    for (int rank = 0; rank < sf_mesh_size(mesh); rank++) {
        sf_layout_dims_at(layout, mesh, rank, type->rank, type->dims, dims);
        sf_runs runs = sf_runs_of(layout, mesh, rank, type);
        int64_t index[3] = {0}, seen = 0, last = -1;
        while (sf_runs_next(&runs)) {
            assert_int_equal(runs.local, seen);
            assert_true(runs.global > last);
            for (int64_t i = 0; i < runs.count; i++, seen++) {
                int64_t global = 0;
                for (int d = 0; d < type->rank; d++)
                    global += strides[d] *
                              sf_layout_global(layout, mesh, rank, d, type->dims[d], index[d]);
                assert_int_equal(runs.global + i, global);
                sf_next_index(type->rank, dims, index);
            }
            last = runs.global + runs.count - 1;
        }
        assert_int_equal(seen, dims[0] * dims[1] * dims[2]);
    }
}

static void runs_are_the_piece(void **state)
{
    (void)state;
    static const int64_t dims[] = {8, 4, 8};
    sf_pool *pool = sf_pool_new();
    const sf_type *type = sf_type_get(pool, SF_F32, 3, dims);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sf_arena arena = {0};
        sf_mesh mesh;
        sf_layout layout;
        assert_int_equal(sf_mesh_parse(sf_str_of(cases[i].mesh), &arena, NULL, &mesh), SF_OK);
        assert_int_equal(
            sf_layout_parse(sf_str_of(cases[i].layout), &mesh, 3, dims, &arena, NULL, &layout),
            SF_OK);
        check(&mesh, &layout, type);
        sf_arena_free(&arena);
    }
    sf_pool_release(pool);
}

static void check_inverse(const char *text)
{
    static const int64_t dims[] = {4, 6};
    sf_pool *pool = sf_pool_new();
    const sf_type *type = sf_type_get(pool, SF_F32, 2, dims);
    sf_arena arena = {0};
    sf_mesh mesh;
    sf_layout layout;
    assert_int_equal(sf_mesh_parse(sf_str_of("a=2,b=3"), &arena, NULL, &mesh), SF_OK);
    assert_int_equal(sf_layout_parse(sf_str_of(text), &mesh, 2, dims, &arena, NULL, &layout),
                     SF_OK);
    float whole[24], joined[24] = {0}, shard[24];
    for (int i = 0; i < 24; i++)
        whole[i] = (float)i + 1;
    for (int rank = 0; rank < 6; rank++) {
        sf_runs runs = sf_runs_of(&layout, &mesh, rank, type);
        sf_cut_shard(runs, 4, whole, shard);
        sf_paste_shard(runs, 4, shard, joined);
    }
    assert_memory_equal(whole, joined, sizeof whole);
    sf_arena_free(&arena);
    sf_pool_release(pool);
}

static void cut_and_paste_are_inverse(void **state)
{
    (void)state;
    check_inverse("[S(0,2), S(1)]");
    check_inverse("[At(0:0+2-3,1:1), S(1)]");
    check_inverse("[At(1:0,0:1-3), S(1,3)]");
}

static void an_empty_tensor_has_no_runs(void **state)
{
    (void)state;
    static const int64_t dims[] = {4, 0};
    sf_pool *pool = sf_pool_new();
    const sf_type *type = sf_type_get(pool, SF_F32, 2, dims);
    sf_mesh mesh = {.naxes = 1, .axes = {{"a", 2}}};
    sf_layout layout = {0};
    sf_runs runs = sf_runs_of(&layout, &mesh, 0, type);
    assert_false(sf_runs_next(&runs));
    sf_pool_release(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_are_the_piece),
        cmocka_unit_test(cut_and_paste_are_inverse),
        cmocka_unit_test(an_empty_tensor_has_no_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
