/* Dependencies between instructions: two instructions of a list that touch one buffer, one of them
 * writing it, keep their order; so do messages and collectives between pipeline ranks, to which the
 * other ends, with programs of their own, come in this order. Any order that keeps these
 * dependencies computes the same. */
#ifndef SF_PROG_INSTRUCTION_DEPS_H
#define SF_PROG_INSTRUCTION_DEPS_H

#include "prog/program.h"

/* By instruction: those directly before it, which have lower numbers, are before[first[i]] to before[first[i + 1] - 1]. */
typedef struct sf_deps {
    uint32_t *first, *before;
} sf_deps;

/* Of a program alone: bodies have their own. In the arena. */
sf_deps sf_deps_of(const sf_program *program, sf_arena *arena);

/* Whether the order, instructions by their numbers, has all of them once and keeps the
 * dependencies. */
bool sf_deps_allow(const sf_deps *deps, const uint32_t *order, size_t count, sf_arena *scratch);

#endif
