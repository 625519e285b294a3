/* A step while it is put in turns: what the files behind local/time/microbatches.h and local/time/pipeline_step.h share.
 *
 *     microbatch_split.c     what turns, and what stands still
 *     microbatch_barriers.c what has to be whole before the step can go on: done for the whole batch, or refused
 *     microbatch_layouts.c  how what a turn has is laid out on ranks
 *     loop_output.c       what leaves the turns: sums, or rows side by side
 *     microbatch_loop.h       turns as loops
 *     pipeline_step.c          turns one by one, each part of the step in its place
 *     stage_groups.c        not turns, but what groups of a pipeline have of what they make together
 */
#ifndef SF_LOCAL_TIME_MICROBATCH_BUILDER_H
#define SF_LOCAL_TIME_MICROBATCH_BUILDER_H

#include "ir/uses.h"
#include "local/shard/shard_builder.h"
#include "local/time/microbatches.h"
#include "plan/pipeline/stage.h"

/* The one axis of the mesh of time. */
enum { MICROBATCH_AXIS = 0 };

/* Along it, what is the same in all turns. */
extern const sf_layout microbatch_invariant;

/* A value that leaves the turns, and how it is put together. */
typedef struct loop_output {
    uint32_t reshard;
    bool is_sum; /* else turns are put side by side */
    const sf_type *type;
} loop_output;

/* A node of the step in turns whose layouts on ranks are known. */
typedef struct microbatch_settled {
    uint32_t node;
    sf_layout *layouts;
} microbatch_settled;

typedef struct microbatching {
    local_builder *b;
    const sf_graph *step;
    const sf_plan *space; /* on ranks */
    sf_uses uses;
    sf_plan *time; /* in turns; given, or made by microbatch_open */
    bool is_given;
    const char *recipe;    /* that says what turns; NULL: the batch does */
    const bool *may;       /* by node, or NULL, */
    const char *in;        /* and what that is */
    const uint32_t *apart; /* by node, or NULL (local/time/microbatches.h) */
    bool
        is_of_groups; /* the axis is none of time: groups of a pipeline stand along it (local/time/stage_groups.h) */
    int microbatches;
    sf_arena arena;

    /* Of a pipeline; else NULL. */
    const sf_stages *stages; /* of the step's nodes */
    bool *held;              /* by argument: it stands here */
    const uint32_t *arguments,
        *results; /* by those of what is made: those of the step; NULL: the same */

    /* By version: a still one is there behind so many loops; one that turns is made in the loop behind these, or later. */
    uint32_t *after;
    bool *blocks; /* by move: what lands there must be whole before a later loop */
    bool *weighs; /* by version: it follows from more than the batch */
    uint32_t nloops;
    uint32_t *output_after; /* by move: behind how many loops it is there at the earliest */

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

/* All turns must be there: parts are summed, or put side by side. */
static inline bool is_loop_output(const microbatching *t, const sf_resharding *reshard)
{
    return is_microbatched_version(t, reshard->from) && !sf_is_local_reshard(reshard->kind);
}

/* microbatch_layouts.c: makes the step in turns and the plan for it; `build` fills the builder's graph. */
typedef sf_status microbatch_build_fn(void *context);
sf_status microbatch_build(microbatching *t, sf_pool *pool, microbatch_build_fn *build,
                           void *context, sf_microbatched *out);

/* microbatch_split.c: how time is split, before anything is built; then, what turns is found, and refused where it cannot be. */
sf_status microbatch_open(microbatching *t);
sf_status microbatch_plan(microbatching *t);

/* microbatch_barriers.c: a node that runs whole; and those that do so that turns need less of each other. Whether there were any, so that all
 * is to be looked at again; SF_EMISMATCH where turns need too much of each other, with the op that says so. */
void microbatch_settle_node(microbatching *t, const sf_node *node);
sf_status microbatch_settle_blocking(microbatching *t, bool *any);

/* microbatch_layouts.c: how a rank has what a turn has of a tensor; false where the two do not go together. */
bool microbatch_layout(const microbatching *t, const sf_layout *time, const sf_layout *space,
                       sf_layout *out);

/* Nodes that were added have these layouts; or, of a node of the step, its own. */
void microbatch_settle(microbatching *t, const sf_node *node, const sf_layout *layouts);
sf_status microbatch_settle_same(microbatching *t, const sf_node *node);

/* The nodes from `first` on were made for that node of the step. */
void microbatch_note_origin(microbatching *t, size_t first, const sf_node *node);

/* What a barrier hands on: each operand by itself. */
void microbatch_add_barrier(microbatching *t, const sf_node *node, uint32_t result);

/* How a value stands that leaves the turns, in each of them and behind. */
sf_layout loop_output_layout(const microbatching *t, const loop_output *l);

/* loop_output.c: what lands by a move; what it is before the first turn; with one turn more, whose number is `turn` (a sum may
 * begin with SF_NONE, and asks for no number); with a part of a sum that is in the type of the step; and what is left of
 * it, in that type. */
loop_output loop_output_of(const microbatching *t, uint32_t reshard);
sf_value loop_output_start(microbatching *t, const loop_output *l);
sf_value loop_output_add(microbatching *t, const loop_output *l, sf_value so_far,
                         sf_value microbatch);
sf_value loop_output_join(microbatching *t, const loop_output *l, sf_value sum, sf_value part);
sf_value loop_output_end(microbatching *t, const loop_output *l, sf_value value);
local_resharding loop_output_reshard(const microbatching *t, const loop_output *l);

#endif
