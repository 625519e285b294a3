/* Scopes: the program of a step, and the bodies in it, each with the memory of its surroundings.
 * Passes that move instructions do so within one of them. */
#ifndef SF_PASS_PASS_SCOPE_H
#define SF_PASS_PASS_SCOPE_H

#include "pass/pass.h"

typedef struct sf_pass_scope {
    sf_program *program;
    const sf_simulation *sim; /* of one run */
    const int64_t *live;      /* by instruction: bytes of the arena that live then */
    /* bytes of the device in use around it: arguments, constants, live buffers of the programs
     * around it */
    int64_t base;
    double runs;                  /* in a step */
    sf_program *outer;            /* NULL: it is the step */
    uint32_t inst;                /* of the outer one, whose body it is */
    struct sf_pass_scope *around; /* the scope of the outer one, or NULL */
} sf_pass_scope;

/* All scopes, bodies before the programs that they are in, of the program as it was profiled; in
 * the arena. Conditions of loops are not among them. */
size_t sf_scopes_find(const sf_passing *passing, sf_arena *arena, sf_pass_scope **out);

/* Gathers of state that is split: collectives whose operands come from arguments that nothing has written, if need be by
 * loops that bring them into shape. */
typedef struct sf_gathers {
    bool *is_still; /* by instruction: it is a loop or a gather that reads nothing else */
    bool *is_gather;
    size_t count;
} sf_gathers;
sf_gathers sf_gathers_find(const sf_program *program, sf_arena *arena);

/* Whether it is a collective that combines the operands of ranks. */
bool sf_inst_reduces(const sf_inst *inst);

/* Bytes that the results of a collective take. */
int64_t sf_gather_bytes(const sf_program *program, const sf_inst *inst);

/* Seconds that a gather of so many bytes takes along those axes. */
double sf_gather_seconds(const sf_passing *passing, const sf_inst *inst, double bytes);

#endif
