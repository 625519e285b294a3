/* The state that the parts of the search for a cut share (solve/cut/cut.h). */
#ifndef SF_SOLVE_CUT_CUT_SEARCH_H
#define SF_SOLVE_CUT_CUT_SEARCH_H

#include "solve/cut/cut.h"

/* Times and bytes are sums in some order. */
#define SF_CUT_NEAR 1e-9

/* Readers and makers of values, by unit. */
typedef struct sf_cut_graph {
    uint32_t *reads_first, *reads; /* values */
    uint32_t *makes_first, *makes;
} sf_cut_graph;
sf_cut_graph sf_cut_graph_of(const sf_cut_problem *problem, sf_arena *arena);

/* A stage holds some of it: whether it has time and room for that. */
typedef struct sf_cut_load {
    double time, fixed, kept;
} sf_cut_load;

static inline double sf_cut_time(const sf_cut_problem *problem, uint32_t stage, double time)
{
    return problem->speed ? time / problem->speed[stage] : time;
}

static inline sf_cut_load sf_cut_load_of(const sf_cut_problem *problem, uint32_t unit)
{
    return (sf_cut_load){problem->time[unit], problem->fixed ? problem->fixed[unit] : 0,
                         problem->kept ? problem->kept[unit] : 0};
}

static inline bool sf_cut_fits(const sf_cut_problem *problem, uint32_t stage, sf_cut_load load,
                               double limit)
{
    if (sf_cut_time(problem, stage, load.time) > limit * (1 + SF_CUT_NEAR))
        return false;
    double turns = problem->in_flight ? problem->in_flight[stage] : 1;
    return !problem->room ||
           load.fixed + turns * load.kept <= problem->room[stage] * (1 + SF_CUT_NEAR);
}

/* Bytes and the slowest stage: less is better, bytes first. */
typedef struct sf_cut_score {
    double bytes, slowest;
} sf_cut_score;

static inline bool sf_cut_is_better(sf_cut_score a, sf_cut_score b)
{
    double near = SF_CUT_NEAR * (1 + b.bytes);
    if (a.bytes < b.bytes - near)
        return true;
    return a.bytes <= b.bytes + near && a.slowest < b.slowest * (1 - SF_CUT_NEAR);
}

/* Cuts along a line: `line` has the units in an order in which makers come first. The least time of its slowest stage,
 * or HUGE_VAL where no cut of it has room; then the best cut within a limit, which is no less than that. */
double sf_cut_line_slowest(const sf_cut_problem *problem, const uint32_t *line, sf_arena *arena);
sf_cut_score sf_cut_line(const sf_cut_problem *problem, const sf_cut_graph *graph,
                         const uint32_t *line, double limit, sf_arena *arena, uint32_t *stage);

/* All cuts. False where there are too many closed sets for that; `out` has no stages where none has room. */
bool sf_cut_exactly(const sf_cut_problem *problem, sf_arena *arena, sf_cut *out);

/* A few lines, the best cut of each with units moved. False where none has room. */
bool sf_cut_lines(const sf_cut_problem *problem, sf_arena *arena, sf_cut *out);

/* Moves units over borders while that makes the score better, within the limit. */
void sf_cut_move(const sf_cut_problem *problem, const sf_cut_graph *graph, double limit,
                 sf_arena *arena, uint32_t *stage);

#endif
