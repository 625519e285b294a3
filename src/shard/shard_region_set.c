#include "shard/shard_region_set.h"

#include <inttypes.h>

#include "base/checked.h"

/* A list that is being made, in ascending order. */
typedef struct list {
    sf_arena *arena;
    sf_interval *at;
    size_t count, capacity;
} list;

static void add_interval(list *l, int64_t from, int64_t to)
{
    if (from >= to)
        return;
    if (l->count && l->at[l->count - 1].to == from) {
        l->at[l->count - 1].to = to;
        return;
    }
    sf_interval interval = {from, to};
    SF_PUSH(l->arena, l->at, l->count, l->capacity, interval);
}

static sf_intervals finish_list(const list *l)
{
    return (sf_intervals){l->count, l->at};
}

static int64_t larger_end(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t smaller_end(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static sf_intervals one_interval(int64_t from, int64_t to, sf_arena *arena)
{
    list l = {.arena = arena};
    add_interval(&l, from, to);
    return finish_list(&l);
}

static sf_intervals intersect_intervals(sf_intervals a, sf_intervals b, sf_arena *arena)
{
    list l = {.arena = arena};
    for (size_t i = 0, k = 0; i < a.count && k < b.count;) {
        add_interval(&l, larger_end(a.at[i].from, b.at[k].from),
                     smaller_end(a.at[i].to, b.at[k].to));
        if (a.at[i].to < b.at[k].to)
            i++;
        else
            k++;
    }
    return finish_list(&l);
}

static sf_intervals subtract_intervals(sf_intervals a, sf_intervals b, sf_arena *arena)
{
    list l = {.arena = arena};
    size_t k = 0;
    for (size_t i = 0; i < a.count; i++) {
        int64_t from = a.at[i].from;
        while (k < b.count && b.at[k].to <= from)
            k++;
        for (size_t j = k; j < b.count && b.at[j].from < a.at[i].to; j++) {
            add_interval(&l, from, b.at[j].from);
            from = larger_end(from, b.at[j].to);
        }
        add_interval(&l, from, a.at[i].to);
    }
    return finish_list(&l);
}

static bool intervals_equal(sf_intervals a, sf_intervals b)
{
    if (a.count != b.count)
        return false;
    for (size_t i = 0; i < a.count; i++)
        if (a.at[i].from != b.at[i].from || a.at[i].to != b.at[i].to)
            return false;
    return true;
}

/* Whether two lists have an index in common. */
static bool intervals_meet(sf_intervals a, sf_intervals b)
{
    for (size_t i = 0, k = 0; i < a.count && k < b.count;) {
        if (larger_end(a.at[i].from, b.at[k].from) < smaller_end(a.at[i].to, b.at[k].to))
            return true;
        if (a.at[i].to < b.at[k].to)
            i++;
        else
            k++;
    }
    return false;
}

static int64_t intervals_size(sf_intervals intervals)
{
    int64_t sum = 0;
    for (size_t i = 0; i < intervals.count; i++)
        sum += intervals.at[i].to - intervals.at[i].from;
    return sum;
}

/* The indices whose coordinate is `at`: of every block of `period` one of `parts` equal parts. */
static sf_intervals split_intervals(sf_intervals all, int64_t period, int parts, int at,
                                    sf_arena *arena)
{
    list l = {.arena = arena};
    int64_t unit = period / parts;
    for (size_t i = 0; i < all.count; i++) {
        int64_t from = all.at[i].from, to = all.at[i].to;
        for (int64_t block = from - from % period; block < to; block += period)
            add_interval(&l, larger_end(from, block + at * unit),
                         smaller_end(to, block + (at + 1) * unit));
    }
    return finish_list(&l);
}

sf_region sf_region_of(const sf_layout *layout, const sf_mesh *mesh, int rank, const sf_type *type,
                       sf_arena *arena)
{
    sf_region region = {.rank = type->rank, .nsides = type->rank + mesh->naxes};
    for (int d = 0; d < type->rank; d++)
        region.sides[d] = one_interval(0, type->dims[d], arena);
    for (int a = 0; a < mesh->naxes; a++) {
        sf_share share = layout->axes[a];
        int parts = mesh->axes[a].size, at = sf_mesh_coordinate(mesh, rank, a);
        bool partial = share.kind == SF_PARTIAL;
        region.sides[type->rank + a] =
            one_interval(partial ? at : 0, partial ? at + 1 : parts, arena);
        if (share.kind == SF_SPLIT)
            region.sides[share.dim] =
                split_intervals(region.sides[share.dim], share.period, parts, at, arena);
    }
    return region;
}

bool sf_region_is_empty(const sf_region *region)
{
    for (int i = 0; i < region->nsides; i++)
        if (region->sides[i].count == 0)
            return true;
    return false;
}

bool sf_region_equal(const sf_region *a, const sf_region *b)
{
    if (sf_region_is_empty(a) || sf_region_is_empty(b))
        return sf_region_is_empty(a) && sf_region_is_empty(b);
    for (int i = 0; i < a->nsides; i++)
        if (!intervals_equal(a->sides[i], b->sides[i]))
            return false;
    return true;
}

int64_t sf_region_count(const sf_region *region)
{
    int64_t count = 1;
    if (sf_region_is_empty(region))
        return 0;
    for (int i = 0; i < region->nsides; i++)
        if (!sf_mul(count, intervals_size(region->sides[i]), &count))
            return INT64_MAX;
    return count;
}

sf_region sf_region_intersect(const sf_region *a, const sf_region *b, sf_arena *arena)
{
    sf_region both = *a;
    for (int i = 0; i < a->nsides; i++)
        both.sides[i] = intersect_intervals(a->sides[i], b->sides[i], arena);
    return both;
}

/* Side by side: the part of this side that `b` lacks, within `b` on the sides before it. */
int sf_region_subtract(const sf_region *a, const sf_region *b, sf_arena *arena,
                       sf_region out[SF_MAX_SIDES])
{
    int count = 0;
    sf_region rest = *a;
    for (int i = 0; i < a->nsides; i++) {
        sf_region part = rest;
        part.sides[i] = subtract_intervals(a->sides[i], b->sides[i], arena);
        rest.sides[i] = intersect_intervals(a->sides[i], b->sides[i], arena);
        if (!sf_region_is_empty(&part))
            out[count++] = part;
        if (rest.sides[i].count == 0)
            break;
    }
    return count;
}

static bool regions_meet(const sf_region *a, const sf_region *b)
{
    for (int i = 0; i < a->nsides; i++)
        if (!intervals_meet(a->sides[i], b->sides[i]))
            return false;
    return true;
}

/* The uncovered parts. They never overlap, so no part is counted twice. */
typedef struct wants {
    sf_region *at;
    size_t count, capacity;
} wants;

static wants wants_without(const wants *before, const sf_region *region, sf_arena *arena)
{
    wants after = {0};
    for (size_t i = 0; i < before->count; i++) {
        sf_region parts[SF_MAX_SIDES];
        int count = 1;
        if (regions_meet(&before->at[i], region))
            count = sf_region_subtract(&before->at[i], region, arena, parts);
        else
            parts[0] = before->at[i];
        for (int k = 0; k < count; k++)
            SF_PUSH(arena, after.at, after.count, after.capacity, parts[k]);
    }
    return after;
}

static bool wants_touch(const wants *wanted, const sf_region *region)
{
    for (size_t i = 0; i < wanted->count; i++)
        if (regions_meet(&wanted->at[i], region))
            return true;
    return false;
}

bool sf_region_covered(const sf_region *wanted, size_t count, const sf_region *regions,
                       sf_arena *arena, sf_region *gap)
{
    wants left = {0};
    if (!sf_region_is_empty(wanted))
        SF_PUSH(arena, left.at, left.count, left.capacity, *wanted);
    for (size_t i = 0; i < count && left.count; i++)
        if (wants_touch(&left, &regions[i]))
            left = wants_without(&left, &regions[i], arena);
    if (left.count && gap)
        *gap = left.at[0];
    return left.count == 0;
}

/* Regions that cover, and together are no larger than the wanted one, cannot overlap in it. */
bool sf_region_covered_once(const sf_region *wanted, size_t count, const sf_region *regions,
                            sf_arena *arena)
{
    int64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        sf_region both = sf_region_intersect(wanted, &regions[i], arena);
        if (!sf_add(sum, sf_region_count(&both), &sum))
            return false;
    }
    return sum == sf_region_count(wanted) && sf_region_covered(wanted, count, regions, arena, NULL);
}
