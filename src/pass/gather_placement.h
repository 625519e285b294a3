/* Gathers put into other places of a scope, and joined with those beside them. */
#ifndef SF_PASS_GATHER_PLACEMENT_H
#define SF_PASS_GATHER_PLACEMENT_H

#include "pass/pass_scope.h"
#include "pass/reorder.h"

typedef struct sf_placing {
    const sf_passing *passing;
    sf_program *program;
    sf_gathers gathers;
    sf_emission emission;
    uint32_t
        *group; /* by instruction: those of a group, plus one, become one collective; 0: alone */
    uint32_t ngroups;
    size_t moved, joined; /* so far */
} sf_placing;

/* Loops that reshape a gathered tensor move with it. In the passing's scratch. */
sf_placing sf_placing_of(const sf_passing *passing, sf_program *program);

/* Bytes that live because the gather, which is an instruction, is on its way or done. */
int64_t sf_placing_bytes(const sf_placing *p, uint32_t gather);

/* Puts gathers, in the order in which they are needed, before an instruction. Compatible neighbours
 * whose separate time is more than `alpha` times their time together become one. */
void sf_place_gathers(sf_placing *p, const uint32_t *gathers, size_t count, uint32_t before,
                      double alpha);

/* The program is so. */
void sf_placing_end(sf_placing *p);

#endif
