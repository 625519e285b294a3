/* Turns as loops, while they are made: what the files behind local/time/turns.h share.
 *
 *     turn_runs.c  which nodes a loop runs, what leaves it, and what stands before it
 *     turns.c      the loops
 */
#ifndef SF_LOCAL_TIME_LOOPING_H
#define SF_LOCAL_TIME_LOOPING_H

#include "local/time/turning.h"

/* A value that leaves the loop at hand. */
typedef struct leaving {
    turn_landing of;
    uint32_t argument; /* of the body */
    sf_value next;     /* what it is behind the turn */
    size_t other;      /* of the same version, counted from 1; 0: none */
} leaving;

/* A loop: they have numbers, and parts that are apart (local/time/turns.h). */
typedef struct loop_at {
    uint32_t number, part;
} loop_at;

typedef struct looping {
    turning *t;
    sf_value *landed; /* by move: whole, where no version stands for it; or SF_NONE */
    bool *is_added;   /* by node: a still one, in the top block */
    uint32_t nadded;  /* loops */

    /* Of the loop at hand. */
    bool *runs; /* by step item */
    local_version *top_versions, *body_versions;
    sf_block *top, *body;
    sf_value *operands;         /* that the loop is given, */
    sf_layout *operand_layouts; /* and how they enter it */
    size_t noperands, operand_capacity, layout_capacity;
    leaving *landings;
    size_t nlandings, landing_capacity;
    size_t *landing_of; /* by version, counted from 1 */
} looping;

/* What of the step's landings leave different loops, of those that could be one; and whether a move leaves that loop. */
uint32_t loop_part_of(const looping *o, uint32_t index);
bool loop_leaves(const looping *o, uint32_t index, const loop_at *loop);

/* Which items of the step the loop runs, and what leaves it: o->runs, o->landings. */
void loop_find_runs(looping *o, const loop_at *loop);

/* When still values are there, now that it is known behind which loop each landing stands. */
void loop_find_places(looping *o);

/* A still node of the top block; views are made with who reads them. */
bool loop_is_still(const looping *o, const sf_step_item *item);

/* What only shows its operands in another way, or is a number: so what is gathered for it need not be kept, and a loop knows what its
 * sums start from. */
bool loop_stands_with_readers(const sf_node *node);

/* By item of the step: it is a still node that the loop at hand needs. */
const bool *loop_find_before(const looping *o);

#endif
