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
enum { TURN_AXIS = 0 };

/* Along it, what is the same in all turns. */
extern const sf_layout turn_still;

/* A value that leaves the turns, and how it is put together. */
typedef struct turn_landing {
    uint32_t move;
    bool is_sum; /* else turns are put side by side */
    const sf_type *type;
} turn_landing;

/* A node of the step in turns whose layouts on ranks are known. */
typedef struct turn_settled {
    uint32_t node;
    sf_layout *layouts;
} turn_settled;

typedef struct turning {
    local_builder *b;
    const sf_graph *step;
    const sf_plan *space; /* on ranks */
    sf_uses uses;
    sf_plan *time; /* in turns; given, or made by turn_open */
    bool is_given;
    const char *recipe;    /* that says what turns; NULL: the batch does */
    const bool *may;       /* by node, or NULL, */
    const char *in;        /* and what that is */
    const uint32_t *apart; /* by node, or NULL (local/time/microbatches.h) */
    bool
        is_of_groups; /* the axis is none of time: groups of a pipeline stand along it (local/time/stage_groups.h) */
    int turns;
    sf_arena arena;

    /* Of a pipeline; else NULL. */
    const sf_stages *stages; /* of the step's nodes */
    bool *held;              /* by argument: it stands here */
    const uint32_t *arguments,
        *results; /* by those of what is made: those of the step; NULL: the same */

    /* By version: a still one is there behind so many loops; one that turns is made in the loop behind these, or later. */
    uint32_t *behind;
    bool *blocks; /* by move: what lands there must be whole before a later loop */
    bool *weighs; /* by version: it follows from more than the batch */
    uint32_t nloops;
    uint32_t *landing_behind; /* by move: behind how many loops it is there at the earliest */

    turn_settled *settled;
    size_t nsettled, settled_capacity;
    uint32_t
        *node_of; /* by node that was made: the node of the step that it was made for, or SF_NONE */
    size_t nnode_of, node_of_capacity;
} turning;

static inline bool turns_layout(const sf_layout *layout)
{
    return layout->axes[TURN_AXIS].kind != SF_REPLICATED;
}

static inline bool turns_version(const turning *t, uint32_t version)
{
    return turns_layout(t->b->moves->versions[version].layout);
}

static inline bool turns_node(const turning *t, const sf_node *node)
{
    const sf_layout *layouts = t->time->nodes[node->id];
    for (uint32_t i = 0; i < node->noperands + node->nresults; i++)
        if (turns_layout(&layouts[i]))
            return true;
    return false;
}

static inline const uint32_t *turn_reads(const turning *t, uint32_t node, uint32_t *count)
{
    const sf_moves *m = t->b->moves;
    *count = m->nreads[node];
    return m->reads + m->first_read[node];
}

/* All turns must be there: parts are summed, or put side by side. */
static inline bool turn_lands(const turning *t, const sf_moving *move)
{
    return turns_version(t, move->from) && !sf_is_local_move(move->kind);
}

/* microbatch_layouts.c: makes the step in turns and the plan for it; `build` fills the builder's graph. */
typedef sf_status turn_building(void *context);
sf_status turn_build(turning *t, sf_pool *pool, turn_building *build, void *context,
                     sf_turned *out);

/* microbatch_split.c: how time is split, before anything is built; then, what turns is found, and refused where it cannot be. */
sf_status turn_open(turning *t);
sf_status turn_plan(turning *t);

/* microbatch_barriers.c: a node that runs whole; and those that do so that turns need less of each other. Whether there were any, so that all
 * is to be looked at again; SF_EWRONG where turns need too much of each other, with the op that says so. */
void turn_settle_node(turning *t, const sf_node *node);
sf_status turn_settle_blocking(turning *t, bool *any);

/* microbatch_layouts.c: how a rank has what a turn has of a tensor; false where the two do not go together. */
bool turn_layout(const turning *t, const sf_layout *time, const sf_layout *space, sf_layout *out);

/* Nodes that were added have these layouts; or, of a node of the step, its own. */
void turn_settle(turning *t, const sf_node *node, const sf_layout *layouts);
sf_status turn_settle_same(turning *t, const sf_node *node);

/* The nodes from `first` on were made for that node of the step. */
void turn_note_origin(turning *t, size_t first, const sf_node *node);

/* What a barrier hands on: each operand by itself. */
void turn_add_barrier(turning *t, const sf_node *node, uint32_t result);

/* How a value stands that leaves the turns, in each of them and behind. */
sf_layout turn_landing_layout(const turning *t, const turn_landing *l);

/* loop_output.c: what lands by a move; what it is before the first turn; with one turn more, whose number is `turn` (a sum may
 * begin with SF_NONE, and asks for no number); with a part of a sum that is in the type of the step; and what is left of
 * it, in that type. */
turn_landing turn_land(const turning *t, uint32_t move);
sf_value turn_landing_start(turning *t, const turn_landing *l);
sf_value turn_landing_add(turning *t, const turn_landing *l, sf_value so_far, sf_value turn);
sf_value turn_landing_join(turning *t, const turn_landing *l, sf_value sum, sf_value part);
sf_value turn_landing_end(turning *t, const turn_landing *l, sf_value value);
local_moving turn_landing_move(const turning *t, const turn_landing *l);

#endif
