#include "solve/dual/watched_times.h"

#include <string.h>

enum {
    MOST_POINTS = 192,
    MOST_HELD = 1 << 23, /* pairs of a use and a point: 64 MiB */
};

/* The most uses at one point, which bounds the work for a point. */
static uint32_t most_live(const sf_problem *problem, sf_arena *arena)
{
    sf_mark mark = sf_arena_mark(arena);
    uint32_t *change = SF_ARRAY(arena, problem->ntimes + 1, uint32_t), live = 0, most = 0;
    for (uint32_t u = 0; u < problem->nuses; u++) {
        change[problem->uses[u].begin]++;
        change[problem->uses[u].end]--;
    }
    for (uint32_t t = 0; t < problem->ntimes; t++) {
        live += change[t];
        most = live > most ? live : most;
    }
    sf_arena_reset(arena, mark);
    return most;
}

void sf_watch_init(sf_watch *watch, const sf_problem *problem, sf_arena *arena)
{
    uint32_t live = most_live(problem, arena), capacity = MOST_POINTS;
    if (live > 0 && MOST_HELD / live < capacity)
        capacity = MOST_HELD / live;
    if (problem->ntimes < capacity)
        capacity = problem->ntimes;
    *watch = (sf_watch){.problem = problem, .capacity = capacity};
    watch->held_capacity = (size_t)live * capacity;
    watch->point = SF_ARRAY(arena, capacity, uint32_t);
    watch->sorted = SF_ARRAY(arena, capacity, uint32_t);
    watch->first = SF_ARRAY(arena, problem->nnodes + 1, uint32_t);
    watch->held = SF_ARRAY(arena, watch->held_capacity, sf_watched);
}

/* The first place in `sorted` whose point is not before `point`. */
static uint32_t place_of(const sf_watch *watch, uint32_t point)
{
    uint32_t low = 0, high = watch->count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (watch->point[watch->sorted[middle]] < point)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Uses are in order of their nodes, so one pass lists them by node. */
static void list_held(sf_watch *watch)
{
    const sf_problem *problem = watch->problem;
    uint32_t count = 0;
    for (uint32_t v = 0; v < problem->nnodes; v++) {
        watch->first[v] = count;
        for (uint32_t u = problem->use_first[v]; u < problem->use_first[v + 1]; u++) {
            uint32_t place = place_of(watch, problem->uses[u].begin);
            for (; place < watch->count; place++) {
                uint32_t slot = watch->sorted[place];
                if (watch->point[slot] >= problem->uses[u].end)
                    break;
                watch->held[count++] = (sf_watched){slot, u};
            }
        }
    }
    watch->first[problem->nnodes] = count;
    SF_ASSERT(count <= watch->held_capacity);
}

uint32_t sf_watch_add(sf_watch *watch, uint32_t point)
{
    uint32_t place = place_of(watch, point), slot = watch->count;
    if (place < watch->count && watch->point[watch->sorted[place]] == point)
        return watch->sorted[place];
    if (watch->count == watch->capacity)
        return watch->count;
    memmove(watch->sorted + place + 1, watch->sorted + place,
            (watch->count - place) * sizeof *watch->sorted);
    watch->sorted[place] = slot;
    watch->point[slot] = point;
    watch->count++;
    list_held(watch);
    return slot;
}

void sf_watch_copy(sf_watch *watch, const sf_watch *from)
{
    uint32_t nnodes = watch->problem->nnodes;
    watch->count = from->count;
    memcpy(watch->point, from->point, from->count * sizeof *from->point);
    memcpy(watch->sorted, from->sorted, from->count * sizeof *from->sorted);
    memcpy(watch->first, from->first, (nnodes + 1) * sizeof *from->first);
    memcpy(watch->held, from->held, from->first[nnodes] * sizeof *from->held);
}

void sf_watch_prices(const sf_watch *watch, const double *price, double *unary)
{
    const sf_problem *problem = watch->problem;
    for (uint32_t v = 0; v < problem->nnodes; v++) {
        uint32_t first = problem->first[v], count = sf_problem_count(problem, v);
        for (uint32_t h = watch->first[v]; h < watch->first[v + 1]; h++) {
            const int64_t *usage = problem->uses[watch->held[h].use].usage;
            double each = price[watch->held[h].slot];
            for (uint32_t i = 0; i < count && each != 0; i++)
                unary[first + i] += each * (double)usage[i];
        }
    }
}

void sf_watch_usage(const sf_watch *watch, const uint32_t *choice, int64_t *usage)
{
    const sf_problem *problem = watch->problem;
    memset(usage, 0, watch->count * sizeof *usage);
    for (uint32_t v = 0; v < problem->nnodes; v++)
        for (uint32_t h = watch->first[v]; h < watch->first[v + 1]; h++)
            usage[watch->held[h].slot] += problem->uses[watch->held[h].use].usage[choice[v]];
}

int64_t sf_watch_usage_at(const sf_problem *problem, const uint32_t *choice, uint32_t point)
{
    int64_t sum = 0;
    for (uint32_t u = 0; u < problem->nuses; u++) {
        const sf_use *use = &problem->uses[u];
        if (use->begin <= point && point < use->end)
            sum += use->usage[choice[use->node]];
    }
    return sum;
}
