#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "shard/layout.h"

static const sf_mesh mesh_2x4 = {2, {{"data", 2}, {"model", 4}}};

static sf_share split(int dim, int64_t period)
{
    return (sf_share){.kind = SF_SPLIT, .dim = dim, .period = period};
}

static void test_text(void **state)
{
    (void)state;
    static const int64_t dims[] = {16, 24, 7};
    static const struct {
        const char *text;
        sf_layout layout;
    } good[] = {
        {"[R, R]", {{{0}}}},
        {"[S(0), R]", {{{SF_SPLIT, 0, 0, 16, 0, NULL}}}},
        {"[S(0), S(0)]", {{{SF_SPLIT, 0, 0, 16, 0, NULL}, {SF_SPLIT, 0, 0, 8, 0, NULL}}}},
        {"[S(0,4), S(0,16)]", {{{SF_SPLIT, 0, 0, 4, 0, NULL}, {SF_SPLIT, 0, 0, 16, 0, NULL}}}},
        {"[S(0,2), S(0,16)]", {{{SF_SPLIT, 0, 0, 2, 0, NULL}, {SF_SPLIT, 0, 0, 16, 0, NULL}}}},
        {"[S(1), S(1,4)]", {{{SF_SPLIT, 0, 1, 24, 0, NULL}, {SF_SPLIT, 0, 1, 4, 0, NULL}}}},
        {"[P(+), S(1)]",
         {{{SF_PARTIAL, SF_MONOID_ADD, 0, 0, 0, NULL}, {SF_SPLIT, 0, 1, 24, 0, NULL}}}},
        {"[P(max), P(max)]",
         {{{SF_PARTIAL, SF_MONOID_MAX, 0, 0, 0, NULL},
           {SF_PARTIAL, SF_MONOID_MAX, 0, 0, 0, NULL}}}},
        {"[P(*), P(*)]",
         {{{SF_PARTIAL, SF_MONOID_MUL, 0, 0, 0, NULL},
           {SF_PARTIAL, SF_MONOID_MUL, 0, 0, 0, NULL}}}},
        {"[P(min), R]", {{{SF_PARTIAL, SF_MONOID_MIN, 0, 0, 0, NULL}}}},
        {"[P(&), R]", {{{SF_PARTIAL, SF_MONOID_AND, 0, 0, 0, NULL}}}},
        {"[P(|), R]", {{{SF_PARTIAL, SF_MONOID_OR, 0, 0, 0, NULL}}}},
        {"[P(^), R]", {{{SF_PARTIAL, SF_MONOID_XOR, 0, 0, 0, NULL}}}},
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        sf_layout layout;
        assert_int_equal(
            sf_layout_parse(sf_str_of(good[i].text), &mesh_2x4, 3, dims, NULL, NULL, &layout),
            SF_OK);
        assert_true(sf_layout_equal(&layout, &good[i].layout));
        assert_int_equal(sf_layout_hash(&layout), sf_layout_hash(&good[i].layout));
        for (size_t k = 0; k < i; k++) {
            assert_false(sf_layout_equal(&good[k].layout, &good[i].layout));
            assert_int_not_equal(sf_layout_hash(&layout), sf_layout_hash(&good[k].layout));
        }
        sf_buf buf = {0};
        sf_layout_print(&layout, &mesh_2x4, 3, dims, &buf);
        assert_string_equal(buf.text, good[i].text);
        sf_buf_free(&buf);
    }
    sf_layout spaced, same;
    assert_int_equal(sf_layout_parse(sf_str_of(" [ S ( 1 , 8 ),P( + ) ] "), &mesh_2x4, 3, dims,
                                     NULL, NULL, &spaced),
                     SF_OK);
    assert_int_equal(
        sf_layout_parse(sf_str_of("[S(1,8),P(+)]"), &mesh_2x4, 3, dims, NULL, NULL, &same), SF_OK);
    assert_true(sf_layout_equal(&spaced, &same));
}

static void test_bad_text(void **state)
{
    (void)state;
    static const int64_t dims[] = {16, 24, 7, 0};
    static const struct {
        const char *text, *message;
    } bad[] = {
        {"", "is not a layout on a mesh of 2 axes"},
        {"[R]", "is not a layout on a mesh of 2 axes"},
        {"[R, R, R]", "is not a layout"},
        {"[R, R", "is not a layout"},
        {"[R, R] R", "is not a layout"},
        {"[R, S]", "is not a layout"},
        {"[R, S()]", "is not a layout"},
        {"[R, S(-1)]", "is not a layout"},
        {"[R, S(99999999999)]", "is not a layout"},
        {"[R, S(0,0)]", "is not a layout"},
        {"[R, S(0,99999999999999999999)]", "is not a layout"},
        {"[R, P()]", "is not a layout"},
        {"[R, P(second)]", "is not a layout"},
        {"[R, S(4)]", "there is no dimension 4 in a tensor of rank 4"},
        {"[R, S(4,8)]", "there is no dimension 4"},
        {"[S(2), R]", "dimension 2 of size 7 does not split into 2 equal parts"},
        {"[S(3), R]", "dimension 3 of size 0 does not split into 2 equal parts"},
        {"[S(0,6), R]", "dimension 0 of size 16 is not a number of blocks of 6"},
        {"[R, S(0,2)]", "blocks of 2 of dimension 0 do not split into 4 equal parts"},
        {"[S(2,1), S(2)]", "blocks of 1 of dimension 2 do not split into 2"},
        {"[S(0,16), S(0,16)]", "axes data and model split dimension 0 in ways that overlap"},
        {"[S(1,12), S(1,8)]", "split dimension 1 in ways that overlap"},
        {"[P(+), P(max)]", "partials of + and of max do not go together"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        sf_diag *diag = sf_diag_new();
        sf_layout layout;
        assert_int_equal(
            sf_layout_parse(sf_str_of(bad[i].text), &mesh_2x4, 4, dims, NULL, diag, &layout),
            SF_EINPUT);
        assert_non_null(strstr(sf_diag_text(diag, 0), bad[i].message));
        sf_diag_free(diag);
    }
}

static void test_share_text(void **state)
{
    (void)state;
    sf_share share;
    assert_int_equal(sf_share_parse(sf_str_of("R"), NULL, &share), SF_OK);
    assert_true(sf_share_equal(share, (sf_share){0}));
    assert_int_equal(sf_share_parse(sf_str_of("S(1)"), NULL, &share), SF_OK);
    assert_true(sf_share_equal(share, split(1, 0)));
    assert_int_equal(sf_share_parse(sf_str_of("S(0,64)"), NULL, &share), SF_OK);
    assert_true(sf_share_equal(share, split(0, 64)));
    assert_int_equal(sf_share_parse(sf_str_of("P(+)"), NULL, &share), SF_OK);
    assert_true(sf_share_equal(share, (sf_share){SF_PARTIAL, SF_MONOID_ADD, 0, 0, 0, NULL}));
    static const char *const bad[] = {"",    "Q",     "RR", "S",    "S(",
                                      "S(1", "S(1,)", "P(", "P(-)", "R x"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(sf_share_parse(sf_str_of(bad[i]), NULL, &share), SF_EINPUT);
}

static void test_not_a_layout_of_this_mesh(void **state)
{
    (void)state;
    static const int64_t dims[] = {16};
    char why[SF_WHY_TEXT];
    sf_layout layout = {{[2] = {SF_SPLIT, 0, 0, 16, 0, NULL}}};
    assert_false(sf_layout_fits(&layout, &mesh_2x4, 1, dims, why));
    assert_string_equal(why, "the mesh has no axis 2");
    layout = (sf_layout){{{SF_PARTIAL, SF_MONOID_SECOND, 0, 0, 0, NULL}}};
    assert_false(sf_layout_fits(&layout, &mesh_2x4, 1, dims, why));
    assert_string_equal(why, "values cannot be partial by \"second\"");
    assert_false(sf_layout_fits(&layout, &mesh_2x4, 1, dims, NULL));
}

/* The coordinate that the header gives index g: the definition. */
static int owner(sf_share share, int parts, int64_t g)
{
    return (int)(g % share.period / (share.period / parts));
}

static bool holds(const sf_layout *layout, const sf_mesh *mesh, int rank, int dim, int64_t g)
{
    for (int a = 0; a < mesh->naxes; a++) {
        sf_share share = layout->axes[a];
        if (share.kind == SF_SPLIT && share.dim == dim &&
            owner(share, mesh->axes[a].size, g) != sf_mesh_coordinate(mesh, rank, a))
            return false;
    }
    return true;
}

static void check_digits(const sf_layout *layout, const sf_mesh *mesh, int dim, int64_t size)
{
    sf_digit digits[SF_MAX_DIGITS];
    int count = sf_layout_digits(layout, mesh, dim, size, digits);
    int64_t unit = size;
    sf_axes seen = 0;
    assert_true(count <= SF_MAX_DIGITS);
    for (int i = 0; i < count; i++) {
        assert_int_equal(digits[i].unit * digits[i].size, unit);
        unit = digits[i].unit;
        if (digits[i].axis >= 0) {
            assert_int_equal(digits[i].size, mesh->axes[digits[i].axis].size);
            seen |= 1u << digits[i].axis;
        } else {
            assert_int_not_equal(digits[i].size, 1);
        }
    }
    assert_int_equal(unit, 1);
    for (int a = 0; a < mesh->naxes; a++)
        assert_int_equal(seen >> a & 1,
                         layout->axes[a].kind == SF_SPLIT && layout->axes[a].dim == dim);
}

/* A shard has the elements of the definition, in order; all shards have the size of
 * sf_layout_dims. */
static void check_layout(const sf_layout *layout, const sf_mesh *mesh, const int64_t *dims,
                         int *fitting)
{
    bool fits = sf_layout_fits(layout, mesh, 1, dims, NULL);
    int64_t parts = 1, local_dims[1];
    for (int a = 0; a < mesh->naxes; a++)
        if (layout->axes[a].kind == SF_SPLIT)
            parts *= mesh->axes[a].size;
    bool even = true;
    for (int rank = 0; rank < sf_mesh_size(mesh); rank++) {
        int64_t count = 0;
        for (int64_t g = 0; g < dims[0]; g++) {
            if (!holds(layout, mesh, rank, 0, g))
                continue;
            if (fits)
                assert_int_equal(sf_layout_global(layout, mesh, rank, 0, dims[0], count), g);
            count++;
        }
        even = even && count * parts == dims[0];
    }
    if (!fits)
        return;
    assert_true(even);
    sf_layout_dims(layout, mesh, 1, dims, local_dims);
    assert_int_equal(local_dims[0] * parts, dims[0]);
    check_digits(layout, mesh, 0, dims[0]);
    ++*fitting;
}

/* Every way to split one dimension by three axes. */
static void test_pieces(void **state)
{
    (void)state;
    static const sf_mesh meshes[] = {
        {3, {{"a", 2}, {"b", 2}, {"c", 2}}},
        {3, {{"a", 2}, {"b", 3}, {"c", 1}}},
        {3, {{"a", 4}, {"b", 2}, {"c", 3}}},
    };
    static const int64_t sizes[] = {1, 2, 7, 8, 12, 16, 24};
    int fitting = 0;
    for (size_t m = 0; m < sizeof meshes / sizeof *meshes; m++) {
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            int64_t size = sizes[s];
            for (int64_t code = 0; code < (size + 1) * (size + 1) * (size + 1); code++) {
                sf_layout layout = {{{0}}};
                bool whole = true;
                for (int64_t a = 0, rest = code; a < 3; a++, rest /= size + 1) {
                    int64_t period = rest % (size + 1);
                    if (period)
                        layout.axes[a] = split(0, period);
                    whole = whole && (!period || period >= meshes[m].axes[a].size);
                }
                if (whole)
                    check_layout(&layout, &meshes[m], &size, &fitting);
            }
        }
    }
    assert_true(fitting > 200);
}

/* Joint digits are fine enough for both sides, and there are some just when neither side cuts a
 * digit of the other in two. */
static void test_joint(void **state)
{
    (void)state;
    static const sf_mesh mesh = {2, {{"a", 4}, {"b", 2}}};
    static const int64_t dims[] = {32};
    int good = 0, bad = 0;
    for (int64_t code = 0; code < 33 * 33 * 33; code++) {
        int64_t p = code % 33, q = code / 33 % 33, r = code / 33 / 33;
        sf_layout before = {{{0}}}, after = {{{0}}};
        if (p)
            before.axes[0] = split(0, p);
        if (q)
            after.axes[0] = split(0, q);
        if (r)
            before.axes[1] = after.axes[1] = split(0, r);
        if (!sf_layout_fits(&before, &mesh, 1, dims, NULL) ||
            !sf_layout_fits(&after, &mesh, 1, dims, NULL))
            continue;
        sf_joint_digit digits[SF_MAX_JOINT];
        int count = sf_layout_joint(&before, &after, &mesh, 0, 32, digits);
        bool nested = !p || !q || p == q || p / 4 % q == 0 || q / 4 % p == 0;
        assert_int_equal(count >= 0, nested);
        good += count >= 0;
        bad += count < 0;
        int64_t unit = 32;
        sf_axes was = 0, is = 0;
        for (int i = 0; i < count; i++) {
            assert_int_equal(digits[i].unit * digits[i].size, unit);
            unit = digits[i].unit;
            int sides[2] = {digits[i].before, digits[i].after};
            for (int k = 0; k < 2; k++) {
                if (sides[k] < 0)
                    continue;
                sf_share share = (k ? &after : &before)->axes[sides[k]];
                assert_int_equal(share.period, digits[i].unit * digits[i].size);
                assert_int_equal(digits[i].size, mesh.axes[sides[k]].size);
                *(k ? &is : &was) |= 1u << sides[k];
            }
        }
        if (count >= 0) {
            assert_int_equal(unit, 1);
            assert_int_equal(was, (p != 0) | (r != 0) << 1);
            assert_int_equal(is, (q != 0) | (r != 0) << 1);
        }
    }
    assert_true(good > 40 && bad > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),       cmocka_unit_test(test_bad_text),
        cmocka_unit_test(test_share_text), cmocka_unit_test(test_not_a_layout_of_this_mesh),
        cmocka_unit_test(test_pieces),     cmocka_unit_test(test_joint),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
