/* A new order of instructions: the old one, but for those that wait until somebody needs them, those that go as soon as they
 * can, and those that go before a named one. What must stand before what (prog/instruction_deps.h) always does.
 */
#ifndef SF_PASS_REORDER_H
#define SF_PASS_REORDER_H

#include "prog/instruction_deps.h"

typedef struct sf_emission {
    sf_program *program;
    sf_arena *arena;
    bool *lazy;  /* by instruction: not before somebody needs it */
    bool *eager; /* by instruction: right behind the last that it needs */
    uint32_t *
        before; /* by instruction: it goes before that one, itself: where it stands, or when it was said to */
    uint32_t *tails, *follows,
        *heads; /* lists of those that go before one, in the order in which they were given */
    sf_deps deps;
    uint32_t *missing; /* by instruction that is eager: what it needs that is not there */
    uint32_t *after, *after_first; /* by instruction: the eager ones that need it */
    bool *done;
    uint32_t *order;
    size_t count;
} sf_emission;

sf_emission sf_emission_of(sf_program *program, sf_arena *arena);

/* `inst` goes before `other`, behind those that were said to before. */
void sf_emit_before(sf_emission *e, uint32_t inst, uint32_t other);

/* The program is in the new order. */
void sf_emission_end(sf_emission *e);

#endif
