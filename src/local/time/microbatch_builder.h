/* The state of micro-batching, which the files of local/time/microbatches.h and local/time/pipeline_step.h share.
 *
 *     microbatch_split.c     nodes in the loop, and nodes outside
 *     microbatch_barriers.c values that must be whole before the step can go on: computed for the whole batch, or refused
 *     microbatch_layouts.c  layouts on ranks of a micro-batch's values
 *     loop_output.c       loop outputs: sums, or concatenated rows
 *     microbatch_loop.h       micro-batches as loops
 *     pipeline_step.c          micro-batches one by one, each part of the step in its place
 *     stage_groups.c        shards of stages that several pipeline ranks run together */
#ifndef SF_LOCAL_TIME_MICROBATCH_BUILDER_H
#define SF_LOCAL_TIME_MICROBATCH_BUILDER_H

#include "ir/uses.h"
#include "local/shard/shard_builder.h"
#include "local/time/microbatches.h"
#include "plan/pipeline/stage.h"

/* The one axis of the mesh of time. */
enum { MICROBATCH_AXIS = 0 };

/* Along it, values that are the same in all micro-batches. */
extern const sf_layout microbatch_invariant;

/* An output of the loop, and how its parts are combined. */
typedef struct loop_output {
    uint32_t reshard;
    bool is_sum; /* else micro-batches are concatenated */
    const sf_type *type;
} loop_output;

/* A node of the micro-batched step whose layouts on ranks are known. */
typedef struct microbatch_settled {
    uint32_t node;
    sf_layout *layouts;
} microbatch_settled;

typedef struct microbatching {
    local_builder *b;
    const sf_graph *step;
    const sf_plan *space; /* on ranks */
    sf_uses uses;
    sf_plan *time; /* micro-batched; given, or made by microbatch_open */
    bool is_given;
    const char *recipe;    /* the splits that become micro-batches; NULL: those of the batch */
    const bool *may;       /* by node, or NULL, */
    const char *in;        /* the name of these splits, for messages */
    const uint32_t *apart; /* by node, or NULL (local/time/microbatches.h) */
    /* the axis is not time: pipeline ranks are along it (local/time/stage_groups.h) */
    bool is_of_groups;
    int microbatches;
    sf_arena arena;

    /* Of a pipeline; else NULL. */
    const sf_stages *stages; /* of the step's nodes */
    bool *held;              /* by argument: this rank holds it */
    const uint32_t *arguments,
        *results; /* by argument of the new graph, by result: those of the step; NULL: the same */

    /* By version: after how many loops a value outside of loops is available; a value in a loop is
     * made in the next loop, or later. */
    uint32_t *after;
    bool *blocks; /* by reshard: its output must be whole before a later loop */
    bool *weighs; /* by version: it follows from more than the batch */
    uint32_t nloops;
    /* by reshard: after how many loops its output is available at the earliest */
    uint32_t *output_after;

    microbatch_settled *settled;
    size_t nsettled, settled_capacity;
    uint32_t
        *node_of; /* by node that was made: the node of the step that it was made for, or SF_NONE */
    size_t nnode_of, node_of_capacity;
} microbatching;

static inline bool is_microbatched_layout(const sf_layout *layout)
{
    return layout->axes[MICROBATCH_AXIS].kind != SF_REPLICATED;
}

static inline bool is_microbatched_version(const microbatching *t, uint32_t version)
{
    return is_microbatched_layout(t->b->reshards->versions[version].layout);
}

static inline bool is_microbatched_node(const microbatching *t, const sf_node *node)
{
    const sf_layout *layouts = t->time->nodes[node->id];
    for (uint32_t i = 0; i < node->noperands + node->nresults; i++)
        if (is_microbatched_layout(&layouts[i]))
            return true;
    return false;
}

static inline const uint32_t *microbatch_reads(const microbatching *t, uint32_t node,
                                               uint32_t *count)
{
    const sf_reshards *m = t->b->reshards;
    *count = m->nreads[node];
    return m->reads + m->first_read[node];
}

/* It needs all micro-batches: their parts are summed, or concatenated. */
static inline bool is_loop_output(const microbatching *t, const sf_resharding *reshard)
{
    return is_microbatched_version(t, reshard->from) && !sf_is_local_reshard(reshard->kind);
}

/* microbatch_layouts.c: makes the micro-batched step and its plan; `build` fills the builder's
 * graph. */
typedef sf_status microbatch_build_fn(void *context);
sf_status microbatch_build(microbatching *t, sf_pool *pool, microbatch_build_fn *build,
                           void *context, sf_microbatched *out);

/* microbatch_split.c: splits time, before anything is built; then finds the nodes in loops, and
 * refuses steps that cannot be micro-batched. */
sf_status microbatch_open(microbatching *t);
sf_status microbatch_plan(microbatching *t);

/* microbatch_barriers.c: a node that runs whole; and the nodes that run whole so that micro-batches
 * depend less on each other. Returns whether there were any, so that all is checked once more;
 * SF_EMISMATCH if micro-batches depend too much on each other, with the op that mixes them. */
void microbatch_settle_node(microbatching *t, const sf_node *node);
sf_status microbatch_settle_blocking(microbatching *t, bool *any);

/* microbatch_layouts.c: the layout on ranks of a micro-batch's part of a tensor; false if the two
 * are incompatible. */
bool microbatch_layout(const microbatching *t, const sf_layout *time, const sf_layout *space,
                       sf_layout *out);

/* Nodes that were added have these layouts; or, of a node of the step, its own. */
void microbatch_settle(microbatching *t, const sf_node *node, const sf_layout *layouts);
sf_status microbatch_settle_same(microbatching *t, const sf_node *node);

/* The nodes from `first` on were made for that node of the step. */
void microbatch_note_origin(microbatching *t, size_t first, const sf_node *node);

/* The results of a barrier: each operand by itself. */
void microbatch_add_barrier(microbatching *t, const sf_node *node, uint32_t result);

/* The layout of a loop output, in each micro-batch and after the loop. */
sf_layout loop_output_layout(const microbatching *t, const loop_output *l);

/* loop_output.c: the loop output of a reshard; its value before the first micro-batch; with one
 * micro-batch more, whose number is `turn` (a sum may begin with SF_NONE, and needs no number);
 * with a part of a sum that is in the type of the step; and its final value, in that type. */
loop_output loop_output_of(const microbatching *t, uint32_t reshard);
sf_value loop_output_start(microbatching *t, const loop_output *l);
sf_value loop_output_add(microbatching *t, const loop_output *l, sf_value so_far,
                         sf_value microbatch);
sf_value loop_output_join(microbatching *t, const loop_output *l, sf_value sum, sf_value part);
sf_value loop_output_end(microbatching *t, const loop_output *l, sf_value value);
local_resharding loop_output_reshard(const microbatching *t, const loop_output *l);

#endif
