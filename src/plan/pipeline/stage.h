/* Stages: the part of a pipeline that computes each node of a step.
 *
 * Forward, a value is read in the stage that makes it or in later ones; backward, in that or in
 * earlier ones. So the parts of one micro-batch run as
 *
 *     F0 -> F1 -> ... -> Fn -> Bn -> ... -> B1 -> B0 -> updates
 *
 * and no two of them wait for each other. Skip connections pass over stages, F0 -> F2; a value that is kept from the
 * forward pass may be read by any stage of the backward pass.
 *
 * An assignment begins with the forward pass: by the user, by scopes (plan/pipeline/stage_scopes.h)
 * or by a search (plan/pipeline/stage_cut.h). The rest follows from it:
 *
 *     parameters      are on the first stage that reads them, wherever else they are read. Each row
 *                     of a stack of layers is like a parameter of its own
 *                     (plan/pipeline/stage_rows.c)
 *     backward pass   a node is where its operands of the forward pass are available, as near to
 *                     the origin of its cotangents as the parameters allow whose gradients it leads
 *                     to; so it follows the node whose gradient it computes. The sum of the
 *                     gradients of a tied weight is on the stage of the weight, and may be made
 *                     once per step
 *     updates         the predecessors of one stage's new state are there, as is the state itself.
 *                     Predecessors of several stages' state go where most of their operands are; in
 *                     case of a tie, as for the norm of all gradients, to stage 0: its gradients
 *                     are ready last, and the others have come by then
 *     anywhere        cheap values of constants, keys and the batch are computed by each stage that
 *                     reads them; so are barriers of the backward pass, for the operands that the
 *                     stage reads (plan/pipeline/stage_flow.h)
 *
 * A loop that is not unrolled is one node, and is in one stage as a whole. Names do not matter. */
#ifndef SF_PLAN_PIPELINE_STAGE_H
#define SF_PLAN_PIPELINE_STAGE_H

#include "ir/graph.h"

typedef struct sf_stages {
    uint32_t count;
    uint32_t *of_node; /* by node, those in regions with the node they are in */
    bool
        *anywhere; /* by node: any stage that reads it may make it; of_node has the first of them */
    bool *late;    /* by node of the backward pass: it may be made once per step (sf_makes_once) */
    uint32_t *of_argument; /* the batch: the first stage that reads it; a stack: of its rows */
    uint32_t *
        *of_row; /* by argument: of a stack (plan/pipeline/layer_stack.h), by row; else NULL */
} sf_stages;

/* Completes an assignment of the forward nodes of the top block, by node; SF_NONE: none. Entries of
 * nodes that every reader computes, and of other phases, are ignored. A node without a stage goes
 * with its operands; if none of them has one, with its first reader. SF_EUSAGE, with both nodes
 * named, if a node has an earlier stage than its operand. Lives in the arena. */
sf_status sf_stages_complete(const sf_graph *graph, uint32_t count, const uint32_t *forward,
                             sf_arena *arena, sf_diag *diag, sf_stages *out);

/* By node: whether it may be made anywhere. Lives in the arena. */
bool *sf_find_anywhere(const sf_graph *graph, sf_arena *arena);

/* By node: whether it depends on the batch, and so changes between micro-batches. Lives in the
 * arena. */
bool *sf_find_moving(const sf_graph *graph, sf_arena *arena);

/* By node of the backward pass: whether it may be computed once per step, after all micro-batches,
 * from accumulated values: the sum of the gradients of a tied weight, and nodes that only rearrange
 * gradients. Lives in the arena. */
bool *sf_find_late(const sf_graph *graph, sf_arena *arena);

/* Whether a node that reads another stage's accumulated value is computed once per step, from the
 * sums, which are then sent once: updates, and late sums. */
static inline bool sf_makes_once(const sf_stages *stages, const sf_node *node)
{
    return node->phase == SF_UPDATE || stages->late[node->id];
}

/* Whether the argument is handed in with every step, to any stage that wants it. */
bool sf_is_handed_in(const sf_argument *argument);

#endif
