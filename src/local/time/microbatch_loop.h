/* The state of the builder of micro-batch loops, which the files of local/time/microbatches.h
 * share.
 *
 *     microbatch_regions.c  which nodes a loop runs, its outputs, and the nodes before it
 *     microbatches.c      the loops */
#ifndef SF_LOCAL_TIME_MICROBATCH_LOOP_H
#define SF_LOCAL_TIME_MICROBATCH_LOOP_H

#include "local/time/microbatch_builder.h"

/* A value that leaves the current loop. */
typedef struct leaving {
    loop_output of;
    uint32_t argument; /* of the body */
    sf_value next;     /* its value after the micro-batch */
    size_t other;      /* of the same version, counted from 1; 0: none */
} leaving;

/* A reshard whose output leaves a loop: they have numbers, and parts that are apart (local/time/microbatches.h). */
typedef struct loop_end {
    uint32_t number, part;
    uint32_t reshard, item; /* of the step */
} loop_end;

/* A loop: the reshards that leave it, the last of the step first. */
typedef struct loop_ends {
    const loop_end *at;
    size_t count;
    uint32_t first; /* of the reshards */
} loop_ends;

/* Items of the step, in its order. */
typedef struct loop_items {
    uint32_t *at;
    size_t count, capacity;
} loop_items;

/* A version that a block wants, and whether those were wanted before it of which it is a view. */
typedef struct wanting {
    uint32_t version;
    bool is_opened;
} wanting;

typedef struct looping {
    microbatching *t;
    sf_value *landed; /* by reshard: the whole value, if no version has it; or SF_NONE */
    bool *is_added;   /* by node: a invariant one, in the top block */
    uint32_t nadded;  /* loops */
    loop_ends *ends;  /* of all loops, in the order in which they are made */
    size_t nends;
    uint32_t *made_by; /* by version: the item of the step that makes it; or SF_NONE */

    /* The last traversal, by version: loops visit only their own predecessors, so that many loops
     * take the time of one. */
    uint32_t *asked, *stack;
    size_t nstack, stack_capacity;
    uint32_t question;

    /* Of the current loop. */
    bool *runs;                 /* by step item, */
    loop_items running, before; /* a list of these, and the invariant node that it needs */
    local_version *top_versions, *body_versions;
    sf_block *top, *body;
    sf_value *operands;         /* that the loop is given, */
    sf_layout *operand_layouts; /* and how they enter it */
    size_t noperands, operand_capacity, layout_capacity;
    leaving *loop_outputs;
    size_t nloop_outputs, output_capacity;
    size_t *output_of; /* by version, counted from 1 */

    wanting *wanted; /* a work list */
    size_t wanted_capacity;
} looping;

/* Which reshards leave which loops: o->ends, o->made_by. */
void loop_find_ends(looping *o);

/* Finds the items of the step that the loop runs, its outputs, and its inputs: `runs`, `running`,
 * `landings`, `before`. */
void loop_find_runs(looping *o, const loop_ends *loop);

/* Finds when values outside of loops are available, once the loop of each output is known. */
void loop_find_places(looping *o);

/* A invariant node of the top block; views are made with who reads them. */
bool loop_is_invariant(const looping *o, const sf_step_item *item);

/* A view of its operands, or a number: emitted with its readers, so that gathered tensors need not
 * be kept, and loops know the initial values of sums. */
bool loop_stands_with_readers(const sf_node *node);

#endif
