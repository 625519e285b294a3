/* What the nodes of a step do, for estimates: flops, bytes, and when.
 *
 * The step is lowered once, unsplit, and all of this is read off the program and its trace (prog/program.h): which
 * nodes run as one instruction and in which order, what stands in memory, from when to when, and in which order of
 * its dimensions. How a split step is lowered may differ in places; what is decided goes by the program itself
 * (search/price/price.h).
 */
#ifndef SF_SEARCH_PRICE_NODE_WORK_H
#define SF_SEARCH_PRICE_NODE_WORK_H

#include "cluster/cost_model.h"
#include "plan/plan.h"
#include "prog/program.h"
#include "search/price/readers.h"
#include "shard/layout.h"

typedef struct sf_node_effort {
    bool product; /* dot, convolution */
    bool starts;  /* of the nodes of its instruction, the one that is charged with starting it */
    bool whole;   /* every rank does all of it, however it is split: random bits know their place */
    sf_math math; /* of a product, */
    sf_unit unit;
    sf_touch touch;
    double depth, calls; /* as sf_effort has them */
    /* The instruction that it is part of; of a view, the first that reads through it. SF_NONE: there is none. */
    uint32_t inst;
    double flops; /* of the whole */
    /* Tensors (operands, then results; bit t) whose bytes it reads or writes; beyond 32 tensors all are
     * charged. */
    uint32_t charged;
    uint32_t
        scores; /* likewise, those that attention, where one op does it, has a row of for each query */
} sf_node_effort;

typedef struct sf_efforts {
    const sf_graph *graph;
    const sf_target *target;
    sf_readers readers;
    uint32_t ninsts;
    uint32_t *
        nodes_of; /* nodes of instruction i: nodes_of[first_of[i]] .. nodes_of[first_of[i + 1]], in order */
    uint32_t *first_of;
    sf_node_effort *nodes; /* by node id; those of the top block */
    bool *stored;          /* by value: it stands in memory, or is a view of what does */
    /* By value: the one in whose memory it stands, or would stand; SF_NONE where that is none, as that of a constant
     * of one number. */
    sf_value *place;
    bool *in_order; /* by value: it stands row by row */
    uint32_t
        *made; /* by value: the instruction behind which it is there, plus one; 0: from the start */
    uint32_t *first; /* by value: the first instruction that reads it, also through views; */
    uint32_t
        *last; /* and the last that reads what stands in its memory. ninsts: a result of the step */
    bool *gradient; /* by value: of a parameter */
    bool *slack;    /* by value: made in the backward pass, and only the update waits for it */
    struct sf_spare *spare;  /* what can be computed again, and is left out of `last`; or NULL */
    sf_attending *attending; /* by instruction, of those that are attention */
    const struct sf_efforts *plain; /* with attention by products and loops; NULL: there is none */
} sf_efforts;

/* Lives in the arena. */
sf_efforts *sf_efforts_new(const sf_graph *graph, const sf_target *target, sf_arena *arena);

/* Those of what ranks run under the plan: the plain ones where it cuts attention so that these have no op for it. */
const sf_efforts *sf_efforts_under(const sf_efforts *efforts, const sf_plan *plan);

/* What a rank does for the node when its tensors have these layouts (operands, then results): an axis
 * that splits any of them cuts the flops by its size. */
sf_effort sf_effort_of(const sf_efforts *efforts, const sf_node *node, const sf_layout *layouts,
                       const sf_mesh *mesh);

/* Of what runs as one instruction. */
void sf_effort_join(sf_effort *to, const sf_effort *more);

/* What the node adds to the time of a step by itself: for one that starts an instruction the time of that, for
 * another what its effort is above nothing, 0 where it has none. The sum over the nodes of an instruction is
 * near the time of their joint effort, which estimates take. */
double sf_effort_seconds(const sf_efforts *efforts, const sf_node *node, const sf_layout *layouts,
                         const sf_mesh *mesh, const sf_costs *costs);

#endif
