/* Micro-batches.
 *
 * The batch is split along a temporal axis as along an axis of ranks: a plan for a mesh of that
 * axis alone gives for each node the part of a micro-batch (plan/propagate.h). Nodes that the axis
 * splits are in a loop; the others before it, or after it. Partial values of micro-batches are
 * accumulated (a gradient, the loss), or concatenated (reports for each example), and each
 * micro-batch slices its part of the batch by its number. So the loop computes the same as the
 * step, whatever the loss is divided by.
 *
 *     nodes outside               while turn < n:             nodes outside: the update
 *                                     slice of the batch
 *                                     forward, backward
 *                                     sums += parts
 *
 * Micro-batch t has the indices t, t + n, t + 2n ... of the batch: so ranks that have parts of the
 * batch have equal parts of each micro-batch.
 *
 * OTHER FACTORS (co-shard). Splits of a recipe such as megatron over ranks, of heads and features,
 * can become chunks in time as well: then there is a loop for each pair of products, and one in the
 * backward pass, which recomputes the part of the forward pass that its chunk needs. Only one
 * chunk's part of the scores is in memory at a time. If the batch is micro-batched, too, these
 * loops are inside its loop, or in the tasks of a pipeline (local/time/schedule_step.c).
 *
 * If the step needs a sum over the batch before it can go on, and that follows from the batch alone
 * (the number of tokens that count), it is computed before the loop. If it follows from parameters
 * too (the loads of experts), a first loop computes it. Steps that would need more such loops, or
 * all of the batch at once, are refused: the loss does not decompose over the batch. */
#ifndef SF_LOCAL_TIME_MICROBATCHES_H
#define SF_LOCAL_TIME_MICROBATCHES_H

#include "plan/plan.h"

/* The micro-batched step, and its plan: nodes in the loop keep their layouts on ranks. */
typedef struct sf_microbatched {
    sf_graph *graph;
    sf_plan *plan;
    sf_value *
        value_of; /* by value of `graph`: that of the step which it is, or is part of, or SF_NONE. In the plan's arena */
    uint32_t *
        node_of; /* by node of its top block: that of the step which it was made for, or SF_NONE. In the plan's arena */
} sf_microbatched;

/* The factor that is split in time. */
typedef struct sf_microbatch_request {
    const char
        *recipe; /* the splits over ranks that become chunks: heads and features; NULL: the batch */
    const bool *may; /* by node: the recipe may split it; NULL: all may */
    const char *in;  /* the name of these nodes, for messages, or "" */
    int microbatches;
    const uint32_t *
        apart; /* by node: outputs of nodes with different numbers leave different loops; or NULL */
    sf_plan *
        time; /* how the batch is split, where that is known (sf_microbatch_plan); or NULL. It is freed */
} sf_microbatch_request;

/* The graph's pool is `pool`; it does not depend on the plan. SF_EMISMATCH if the step cannot be
 * split so, with the op that prevents it. */
sf_status sf_microbatched_new(const sf_graph *graph, const sf_plan *plan,
                              const sf_microbatch_request *request, sf_pool *pool, sf_diag *diag,
                              sf_microbatched *out);

/* The split of the batch into this many micro-batches, on a mesh of that axis alone: for callers
 * that make loops inside of micro-batches first. `stages` are those of a pipeline, or NULL. */
sf_status sf_microbatch_plan(const sf_graph *graph, const sf_plan *plan, const sf_stages *stages,
                             int microbatches, sf_pool *pool, sf_diag *diag, sf_plan **out);
void sf_microbatched_free(sf_microbatched *microbatched);

#endif
