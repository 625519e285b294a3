/* The points in time that are watched.
 *
 * A problem has thousands of points, and in a good answer the limit binds at a handful of them. So
 * the relaxation and the search consider few points only, those at which a promising answer turned
 * out to be over the limit, and arrays per point are short.
 *
 * Points have slots 0 .. count-1 in the order in which they came; data per point (prices, usage) is
 * an array over slots, which does not move when another point comes. */
#ifndef SF_SOLVE_DUAL_WATCHED_TIMES_H
#define SF_SOLVE_DUAL_WATCHED_TIMES_H

#include "solve/problem/problem.h"

/* A use that holds a watched point. */
typedef struct sf_watched {
    uint32_t slot;
    uint32_t use;
} sf_watched;

typedef struct sf_watch {
    const sf_problem *problem;
    uint32_t count, capacity; /* points */
    uint32_t *point;          /* [capacity], by slot */
    uint32_t *sorted;         /* [capacity]: slots in order of their points */
    uint32_t *first;          /* [nnodes + 1] into held */
    sf_watched *held;
    size_t held_capacity;
} sf_watch;

/* No point is watched yet. All memory it will ever need comes from the arena now, so points may be added
 * on any thread. */
void sf_watch_init(sf_watch *watch, const sf_problem *problem, sf_arena *arena);

/* The slot of the point, which is watched from now on; count when there is no room for it. */
uint32_t sf_watch_add(sf_watch *watch, uint32_t point);

/* Watches the same points, in the same slots. Both are of the same problem. */
void sf_watch_copy(sf_watch *watch, const sf_watch *from);

/* Adds to unary[strategies] the cost of usage at price[count] per unit. */
void sf_watch_prices(const sf_watch *watch, const double *price, double *unary);

/* usage[count] of an assignment. */
void sf_watch_usage(const sf_watch *watch, const uint32_t *choice, int64_t *usage);

/* The usage at one point. */
int64_t sf_watch_usage_at(const sf_problem *problem, const uint32_t *choice, uint32_t point);

/* The limit at the point in a slot. */
static inline int64_t sf_watch_limit(const sf_watch *watch, uint32_t slot)
{
    return watch->problem->limit[watch->point[slot]];
}

#endif
