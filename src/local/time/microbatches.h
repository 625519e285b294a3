/* The batch in turns: micro-batches.
 *
 * The batch is split along a temporal axis as it would be along one of ranks: a plan for a mesh of that axis alone says
 * for each node what a turn computes of it (plan/propagate.h). Nodes that the axis splits stand in a loop; the others
 * before it, or behind. What the turns have in parts is added up as they go (a gradient, the loss), or put side by side
 * (what is reported of each example), and what a turn needs of the batch is cut from it by its number. So the loop
 * computes what the step does, whatever the loss is divided by.
 *
 *     still nodes                 while turn < n:             still nodes: the update
 *                                     slice of the batch
 *                                     forward, backward
 *                                     sums += parts
 *
 * Turn t has the indices t, t + n, t + 2n ... of the batch: so ranks that have parts of the batch have equal parts of
 * each turn.
 *
 * OTHER FACTORS. What a recipe such as megatron splits over ranks, heads and features, can be split in turns as well: then
 * there is a loop for each pair of products, and one in the backward pass, which computes again what its turn needs of the
 * forward pass. Only one turn's part of the scores stands in memory at a time. Where the batch is in turns, too, these
 * loops stand in its loop, or in the tasks of a pipeline (local/time/schedule_step.c).
 *
 * Where the step needs a sum over the batch before it can go on, and that follows from the batch alone (the number of
 * tokens that count), it is computed before the loop. Where it follows from parameters too (the loads of experts), a
 * loop before the loop finds it. Steps that would need more of them, or all of the batch at once, are refused: they are
 * no sums over the batch.
 */
#ifndef SF_LOCAL_TIME_MICROBATCHES_H
#define SF_LOCAL_TIME_MICROBATCHES_H

#include "plan/plan.h"

/* The step in turns, and the plan for it: what stands in the loop is laid out on ranks as it was. */
typedef struct sf_microbatched {
    sf_graph *graph;
    sf_plan *plan;
    sf_value *
        value_of; /* by value of `graph`: that of the step which it is, or is part of, or SF_NONE. In the plan's arena */
    uint32_t *
        node_of; /* by node of its top block: that of the step which it was made for, or SF_NONE. In the plan's arena */
} sf_microbatched;

/* What turns. */
typedef struct sf_microbatch_request {
    const char
        *recipe; /* what this splits over ranks otherwise: heads and features; NULL: the batch */
    const bool *may; /* by node: it may turn by the recipe; NULL: all may */
    const char *in;  /* what that is, for messages, or "" */
    int microbatches;
    const uint32_t *
        apart; /* by node: what leaves turns is left by different loops where this differs; or NULL */
    sf_plan *
        time; /* how the batch is split, where that is known (sf_microbatch_plan); or NULL. It is freed */
} sf_microbatch_request;

/* The graph's pool is `pool`; what it is does not depend on the plan. SF_EMISMATCH where the step cannot be cut so, with the op
 * that says so. */
sf_status sf_microbatched_new(const sf_graph *graph, const sf_plan *plan,
                              const sf_microbatch_request *request, sf_pool *pool, sf_diag *diag,
                              sf_microbatched *out);

/* How the batch is split in so many turns, on a mesh of that axis alone: for who makes loops inside of turns first. `stages` are
 * those of a pipeline, or NULL. */
sf_status sf_microbatch_plan(const sf_graph *graph, const sf_plan *plan, const sf_stages *stages,
                             int microbatches, sf_pool *pool, sf_diag *diag, sf_plan **out);
void sf_microbatched_free(sf_microbatched *microbatched);

#endif
