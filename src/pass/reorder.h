/* A new order of instructions: the old one, but for those that wait for their first reader, those
 * that are emitted as early as possible, and those that go before a named one. Dependencies
 * (prog/instruction_deps.h) are always kept. */
#ifndef SF_PASS_REORDER_H
#define SF_PASS_REORDER_H

#include "prog/instruction_deps.h"

typedef struct sf_emission {
    sf_program *program;
    sf_arena *arena;
    bool *lazy;       /* by instruction: not before somebody needs it */
    bool *eager;      /* by instruction: right after its last dependency */
    uint32_t *before; /* by instruction: it goes before that one; itself: at its own place */
    uint32_t *tails, *follows,
        *heads; /* lists of those that go before one, in the order in which they were given */
    sf_deps deps;
    uint32_t *missing; /* by instruction that is eager: how many dependencies are missing */
    uint32_t *after, *after_first; /* by instruction: the eager ones that need it */
    bool *done;
    uint32_t *order;
    size_t count;
} sf_emission;

sf_emission sf_emission_of(sf_program *program, sf_arena *arena);

/* `inst` goes before `other`, after those of earlier calls. */
void sf_emit_before(sf_emission *e, uint32_t inst, uint32_t other);

/* The program is in the new order. */
void sf_emission_end(sf_emission *e);

#endif
