/* Small loops that are launched together.
 *
 * A launch costs a GPU as much time as reading some megabytes, and a step has hundreds of loops
 * that touch less: updates of scales and biases, conversions of them, corrections. For a target
 * that sets `small_bytes`, lowering moves them next to each other (prog/lower/horizontal_fusion.c),
 * and the engine launches adjacent small loops, of which none touches the results of another, as
 * one: a fused launch. */
#ifndef SF_PROG_FUSED_LAUNCH_H
#define SF_PROG_FUSED_LAUNCH_H

#include "prog/program.h"

/* A loop that touches at most the target's `small_bytes`, and is not part of an instruction that a
 * pass split. */
bool sf_is_small_loop(const sf_program *program, const sf_inst *inst);

/* By instruction: the first of its fused launch, which is a range of the list; itself, if it is
 * alone. `places`: by buffer, its address; NULL: no two buffers share memory. In the arena. */
uint32_t *sf_fused_launches_of(const sf_program *program, char *const *places, sf_arena *arena);

#endif
