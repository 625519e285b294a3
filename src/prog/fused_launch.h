/* Small loops that are launched together.
 *
 * To launch anything takes a GPU as long as to read some megabytes, and a step has hundreds of loops that touch less: updates of
 * scales and biases, conversions of them, corrections. A target that says `small_bytes` has lowering bring them together
 * (prog/lower/horizontal_fusion.c), and launches those as one that stand beside each other and of which none touches what another
 * writes: a bunch.
 */
#ifndef SF_PROG_FUSED_LAUNCH_H
#define SF_PROG_FUSED_LAUNCH_H

#include "prog/program.h"

/* A loop that touches no more bytes than the target calls small, and is not a piece that a pass cut. */
bool sf_is_small_loop(const sf_program *program, const sf_inst *inst);

/* By instruction: the first of its bunch, which is a stretch of the list; itself, where it is alone. `places`: by buffer, where it
 * stands; NULL: no two stand in the same memory. In the arena. */
uint32_t *sf_fused_launches_of(const sf_program *program, char *const *places, sf_arena *arena);

#endif
