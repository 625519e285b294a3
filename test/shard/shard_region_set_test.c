#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <inttypes.h>

#include "ir/attr.h"
#include "shard/shard_region_set.h"

/* All of it: every index, every contribution. */
static sf_region whole_region(const sf_mesh *mesh, const sf_type *type, sf_arena *arena)
{
    return sf_region_of(&(sf_layout){{{0}}}, mesh, 0, type, arena);
}

/* A region as text: "{0..3 8..11} {0..7}", and " model {1}" for the axes whose contributions are not all there. */
static void print_side(sf_intervals side, sf_buf *out)
{
    sf_buf_putc(out, '{');
    for (size_t i = 0; i < side.count; i++) {
        sf_interval interval = side.at[i];
        sf_buf_printf(out, "%s%" PRId64, i ? " " : "", interval.from);
        if (interval.to - interval.from > 1)
            sf_buf_printf(out, "..%" PRId64, interval.to - 1);
    }
    sf_buf_putc(out, '}');
}

static void print_region(const sf_region *region, const sf_mesh *mesh, sf_buf *out)
{
    for (int d = 0; d < region->rank; d++) {
        sf_buf_puts(out, d ? " " : "");
        print_side(region->sides[d], out);
    }
    for (int a = 0; a < mesh->naxes; a++) {
        sf_intervals side = region->sides[region->rank + a];
        if (sf_region_count(&(sf_region){.nsides = 1, .sides = {side}}) == mesh->axes[a].size)
            continue;
        sf_buf_printf(out, " %s ", mesh->axes[a].name);
        print_side(side, out);
    }
}

static uint32_t random_state = 1;

static int draw(int below)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (int)((random_state >> 8) % (uint32_t)below);
}

/* A region by brute force: a bit for every combination of an index per side. */
enum { SIDES = 4, SIZE = 5, POINTS = SIZE * SIZE * SIZE * SIZE };

static bool side_has(sf_intervals side, int64_t index)
{
    for (size_t i = 0; i < side.count; i++)
        if (index >= side.at[i].from && index < side.at[i].to)
            return true;
    return false;
}

static bool has(const sf_region *region, int point)
{
    for (int i = 0; i < SIDES; i++, point /= SIZE)
        if (!side_has(region->sides[i], point % SIZE))
            return false;
    return true;
}

static int count_points(const sf_region *region)
{
    int count = 0;
    for (int p = 0; p < POINTS; p++)
        count += has(region, p);
    return count;
}

static void check_form(const sf_region *region)
{
    for (int i = 0; i < region->nsides; i++) {
        sf_intervals side = region->sides[i];
        for (size_t k = 0; k < side.count; k++) {
            assert_true(side.at[k].from < side.at[k].to);
            if (k)
                assert_true(side.at[k - 1].to < side.at[k].from);
        }
    }
}

/* Each index of a side is in it with a chance of `likely` in 8. */
static sf_region draw_region(sf_arena *arena, int likely)
{
    sf_region region = {.rank = SIDES - 1, .nsides = SIDES};
    for (int i = 0; i < SIDES; i++) {
        sf_interval *at = SF_ARRAY(arena, SIZE, sf_interval);
        size_t count = 0;
        for (int k = 0; k < SIZE; k++) {
            if (draw(8) >= likely)
                continue;
            if (count && at[count - 1].to == k)
                at[count - 1].to++;
            else
                at[count++] = (sf_interval){k, k + 1};
        }
        region.sides[i] = (sf_intervals){count, at};
    }
    return region;
}

static void check_pair(const sf_region *a, const sf_region *b, sf_arena *arena)
{
    sf_region both = sf_region_intersect(a, b, arena), rest[SF_MAX_SIDES];
    int nrest = sf_region_subtract(a, b, arena, rest);
    bool equal = true;
    check_form(&both);
    for (int i = 0; i < nrest; i++)
        check_form(&rest[i]);
    for (int p = 0; p < POINTS; p++) {
        int in_rest = 0;
        for (int i = 0; i < nrest; i++)
            in_rest += has(&rest[i], p);
        assert_int_equal(has(&both, p), has(a, p) && has(b, p));
        assert_int_equal(in_rest, has(a, p) && !has(b, p));
        equal = equal && has(a, p) == has(b, p);
    }
    assert_int_equal(sf_region_equal(a, b), equal);
    assert_int_equal(sf_region_count(a), count_points(a));
    assert_int_equal(sf_region_is_empty(a), count_points(a) == 0);
}

static void test_sets(void **state)
{
    (void)state;
    sf_arena arena = {0};
    for (int round = 0; round < 2000; round++) {
        sf_region a = draw_region(&arena, 2 + draw(7)), b = draw_region(&arena, 2 + draw(7));
        if (draw(4) == 0) {
            b = a;
            b.sides[draw(SIDES)] = draw_region(&arena, 6).sides[0];
        }
        check_form(&a);
        check_pair(&a, &b, &arena);
        check_pair(&a, &a, &arena);
        sf_arena_reset(&arena, (sf_mark){0});
    }
    sf_arena_free(&arena);
}

/* Cuts a region into parts that do not overlap, by subtracting one random region after another. */
static size_t draw_parts(const sf_region *whole, sf_arena *arena, sf_region *out, size_t limit)
{
    size_t count = 1;
    out[0] = *whole;
    while (count + SIDES < limit && draw(6)) {
        sf_region rest[SF_MAX_SIDES], knife = draw_region(arena, 6);
        size_t at = (size_t)draw((int)count);
        sf_region both = sf_region_intersect(&out[at], &knife, arena);
        int nrest = sf_region_subtract(&out[at], &knife, arena, rest);
        out[at] = both;
        for (int i = 0; i < nrest; i++)
            out[count++] = rest[i];
    }
    return count;
}

static void check_cover(const sf_region *wanted, const sf_region *regions, size_t count,
                        sf_arena *arena, int seen[2])
{
    bool covered = true, once = true;
    for (int p = 0; p < POINTS; p++) {
        int times = 0;
        for (size_t i = 0; i < count; i++)
            times += has(&regions[i], p);
        if (has(wanted, p)) {
            covered = covered && times >= 1;
            once = once && times == 1;
        }
    }
    sf_region gap;
    assert_int_equal(sf_region_covered(wanted, count, regions, arena, &gap), covered);
    assert_int_equal(sf_region_covered_once(wanted, count, regions, arena), once);
    for (int p = 0; p < POINTS && !covered; p++) {
        if (!has(&gap, p))
            continue;
        assert_true(has(wanted, p));
        for (size_t i = 0; i < count; i++)
            assert_false(has(&regions[i], p));
    }
    if (!covered)
        assert_false(sf_region_is_empty(&gap));
    seen[0] += covered;
    seen[1] += once;
}

/* Covers against counting, with something missing, double, or in excess now and then. */
static void test_covers(void **state)
{
    (void)state;
    sf_arena arena = {0};
    enum { ROUNDS = 2000, LIMIT = 40 };
    int seen[2] = {0};
    for (int round = 0; round < ROUNDS; round++) {
        sf_region wanted = draw_region(&arena, 7), regions[LIMIT + 1];
        size_t count = draw_parts(&wanted, &arena, regions, LIMIT);
        if (draw(3) == 0)
            regions[draw((int)count)] = draw_region(&arena, 6);
        if (draw(3) == 0)
            regions[count++] = draw_region(&arena, 4);
        check_cover(&wanted, regions, count, &arena, seen);
        sf_arena_reset(&arena, (sf_mark){0});
    }
    assert_true(seen[0] > seen[1] && seen[0] < ROUNDS - 100);
    assert_true(seen[1] > 100 && seen[0] - seen[1] > 100);
    sf_arena_free(&arena);
}

static sf_share split(int dim, int64_t period)
{
    return (sf_share){.kind = SF_SPLIT, .dim = dim, .period = period};
}

static const sf_share partial = {.kind = SF_PARTIAL, .monoid = SF_MONOID_ADD};

static void check_layout(const sf_layout *layout, const sf_mesh *mesh, const sf_type *type,
                         sf_arena *arena)
{
    int ranks = sf_mesh_size(mesh);
    bool copies = false;
    sf_region *regions = SF_ARRAY(arena, ranks, sf_region);
    sf_region whole = whole_region(mesh, type, arena), gap;
    int64_t dims[SF_MAX_RANK];
    sf_layout_dims(layout, mesh, type->rank, type->dims, dims);
    for (int a = 0; a < mesh->naxes; a++)
        copies = copies || (layout->axes[a].kind == SF_REPLICATED && mesh->axes[a].size > 1);
    for (int r = 0; r < ranks; r++) {
        regions[r] = sf_region_of(layout, mesh, r, type, arena);
        check_form(&regions[r]);
        for (int d = 0; d < type->rank; d++) {
            int64_t count = 0;
            for (int64_t local = 0; local < dims[d]; local++, count++)
                assert_true(side_has(regions[r].sides[d],
                                     sf_layout_global(layout, mesh, r, d, type->dims[d], local)));
            for (int64_t g = 0; g < type->dims[d]; g++)
                count -= side_has(regions[r].sides[d], g);
            assert_int_equal(count, 0);
        }
    }
    assert_true(sf_region_covered(&whole, (size_t)ranks, regions, arena, &gap));
    assert_int_equal(sf_region_covered_once(&whole, (size_t)ranks, regions, arena), !copies);
    if (!copies && ranks > 1) {
        sf_region lost = regions[ranks / 2];
        regions[ranks / 2] = regions[0];
        assert_false(sf_region_covered(&whole, (size_t)ranks, regions, arena, &gap));
        assert_true(sf_region_equal(&gap, &lost));
    }
}

/* The pieces of a layout hold what the definition says; together they hold everything, once unless
 * there are replicas; what one rank alone has is missed when it is taken away. */
static void test_layouts(void **state)
{
    (void)state;
    static const sf_mesh meshes[] = {
        {1, {{"a", 4}}},
        {2, {{"a", 2}, {"b", 3}}},
        {3, {{"a", 2}, {"b", 2}, {"c", 2}}},
    };
    sf_pool *pool = sf_pool_new();
    sf_arena arena = {0};
    const sf_type *type = sf_type_get(pool, SF_F32, 2, (int64_t[]){24, 8});
    sf_share shares[40] = {{0}, partial};
    int nshares = 2, checked = 0;
    for (int d = 0; d < 2; d++)
        for (int64_t period = 1; period <= type->dims[d]; period++)
            if (type->dims[d] % period == 0)
                shares[nshares++] = split(d, period);
    for (size_t m = 0; m < sizeof meshes / sizeof *meshes; m++) {
        int all = 1;
        for (int a = 0; a < meshes[m].naxes; a++)
            all *= nshares;
        for (int code = 0; code < all; code++) {
            sf_layout layout = {{{0}}};
            for (int a = 0, rest = code; a < meshes[m].naxes; a++, rest /= nshares)
                layout.axes[a] = shares[rest % nshares];
            if (!sf_layout_fits(&layout, &meshes[m], 2, type->dims, NULL))
                continue;
            check_layout(&layout, &meshes[m], type, &arena);
            sf_arena_reset(&arena, (sf_mark){0});
            checked++;
        }
    }
    assert_true(checked > 400);
    sf_arena_free(&arena);
    sf_pool_release(pool);
}

/* A sum that was forgotten is a gap in the contributions; one that was made twice is no sum. */
static void test_contributions(void **state)
{
    (void)state;
    sf_mesh mesh = {2, {{"data", 2}, {"model", 2}}};
    sf_pool *pool = sf_pool_new();
    sf_arena arena = {0};
    const sf_type *type = sf_type_get(pool, SF_F32, 1, (int64_t[]){8});
    sf_layout half = {{split(0, 8), partial}}, reduced = {{split(0, 8)}};
    sf_region wanted = sf_region_of(&reduced, &mesh, 3, type, &arena), gap;
    sf_region parts[] = {sf_region_of(&half, &mesh, 3, type, &arena),
                         sf_region_of(&half, &mesh, 2, type, &arena),
                         sf_region_of(&half, &mesh, 0, type, &arena)};
    assert_true(sf_region_covered_once(&wanted, 2, parts, &arena));
    assert_false(sf_region_covered(&wanted, 1, parts, &arena, &gap));
    assert_true(sf_region_equal(&gap, &parts[1]));
    sf_buf buf = {0};
    print_region(&parts[0], &mesh, &buf);
    sf_buf_puts(&buf, ", ");
    print_region(&gap, &mesh, &buf);
    sf_buf_puts(&buf, ", ");
    print_region(&wanted, &mesh, &buf);
    assert_string_equal(buf.text, "{4..7} model {1}, {4..7} model {0}, {4..7}");
    sf_buf_free(&buf);
    parts[1] = parts[2];
    assert_false(sf_region_covered(&wanted, 2, parts, &arena, NULL));
    parts[1] = sf_region_of(&reduced, &mesh, 3, type, &arena);
    assert_true(sf_region_covered(&wanted, 2, parts, &arena, NULL));
    assert_false(sf_region_covered_once(&wanted, 2, parts, &arena));
    sf_arena_free(&arena);
    sf_pool_release(pool);
}

/* Scalars and empty tensors; counts past what an int64 holds; a large mesh. */
static void test_extremes(void **state)
{
    (void)state;
    sf_mesh mesh = {3, {{"a", 8}, {"b", 8}, {"c", 8}}};
    sf_pool *pool = sf_pool_new();
    sf_arena arena = {0};
    const sf_type *scalar = sf_type_scalar(pool, SF_F32);
    sf_region one = whole_region(&mesh, scalar, &arena), gap;
    assert_int_equal(sf_region_count(&one), 512);
    assert_true(sf_region_covered_once(&one, 1, &one, &arena));
    assert_false(sf_region_covered(&one, 0, NULL, &arena, &gap));
    assert_true(sf_region_equal(&gap, &one));
    const sf_type *none = sf_type_get(pool, SF_F32, 2, (int64_t[]){0, 4});
    sf_region empty = whole_region(&mesh, none, &arena);
    assert_true(sf_region_is_empty(&empty));
    assert_true(sf_region_covered_once(&empty, 0, NULL, &arena));
    const sf_type *huge =
        sf_type_get(pool, SF_S8, 2, (int64_t[]){INT64_C(1) << 31, INT64_C(1) << 31});
    sf_region all = whole_region(&mesh, huge, &arena);
    assert_int_equal(sf_region_count(&all), INT64_MAX);
    const sf_type *cube = sf_type_get(pool, SF_F32, 3, (int64_t[]){64, 64, 64});
    sf_layout layout = {{split(0, 16), split(1, 64), split(2, 8)}};
    check_layout(&layout, &mesh, cube, &arena);
    sf_arena_free(&arena);
    sf_pool_release(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sets),     cmocka_unit_test(test_covers),
        cmocka_unit_test(test_layouts),  cmocka_unit_test(test_contributions),
        cmocka_unit_test(test_extremes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
