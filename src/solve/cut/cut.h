/* Cutting a graph into stages that follow one another: least bytes sent, at nearly the least time of the slowest stage.
 *
 * Units are nodes of any directed graph without cycles. A unit is in no earlier stage than the
 * makers of its operands (Rhino, section 5); it need not follow any one line. A value is sent once
 * to each stage that reads it and does not make it; a value without a maker, such as a weight,
 * belongs to the first stage that reads it.
 *
 * The least time of the slowest stage is found first; then, of all cuts whose stages take no more than that and a
 * tolerance, the one that sends least, and of those the most even one. The bound on times makes it fast: the place
 * where stage s ends is known but for a share of the step that the tolerance gives (the paper's bound tightening).
 *
 *     small graphs   all sets of units that are closed under their operands, and all chains of such
 *                    sets: exact
 *     others         all cuts of a few lines through the graph, exact along each, then units moved
 *                    over borders one at a time
 *
 * Knows nothing of tensors. */
#ifndef SF_SOLVE_CUT_CUT_H
#define SF_SOLVE_CUT_CUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

enum { SF_NO_MAKER = UINT32_MAX };

typedef struct sf_cut_problem {
    uint32_t nunits;     /* in an order in which all that a unit reads is made before it */
    const double *time;  /* by unit */
    const double *fixed; /* by unit: bytes it holds once, such as weights; NULL: none */
    const double *kept;  /* by unit: bytes it keeps for each micro-batch in flight; NULL: none */

    uint32_t nvalues;
    const double *bytes; /* by value: the bytes of sending it to a stage, including its gradient */
    const uint32_t *maker;  /* by value: a unit, or SF_NO_MAKER */
    const uint32_t *first;  /* by value: where its readers begin; nvalues + 1 */
    const uint32_t *reader; /* units, each once per value, in increasing order; never its maker */

    uint32_t ngroups;            /* of units that are in one stage together */
    const uint32_t *group_first; /* by group: where it begins; ngroups + 1 */
    const uint32_t *grouped;     /* units */

    uint32_t count;          /* of stages */
    const double *speed;     /* by stage, relative; NULL: all the same */
    const double *room;      /* by stage: bytes it may hold; NULL: any */
    const double *in_flight; /* by stage: micro-batches in flight; NULL: one */
    double tolerance;        /* of time: 0.05 lets the slowest stage take 5 % more than it must */
} sf_cut_problem;

typedef struct sf_cut {
    uint32_t *stage;      /* by unit */
    double slowest;       /* time of the slowest stage, by its speed */
    double bytes;         /* that are sent */
    double least_slowest; /* no cut has a slowest stage of less */
    double limit;         /* on the time of stages, under which the least bytes were looked for */
    bool
        is_exact; /* nothing sends less within the limit, nor is more even where it sends the same */
} sf_cut;

/* Whether there is a cut that keeps groups together and whose stages have room; none is empty where there are as many units as stages. Lives in the
 * arena. */
bool sf_cut_solve(const sf_cut_problem *problem, sf_arena *arena, sf_cut *out);

/* The bytes that a given assignment sends, and its slowest stage. */
double sf_cut_bytes(const sf_cut_problem *problem, const uint32_t *stage, sf_arena *arena);
double sf_cut_slowest(const sf_cut_problem *problem, const uint32_t *stage, sf_arena *arena);

#endif
