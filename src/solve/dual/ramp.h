/* First multipliers, from scratch: each follows the sign of its violation.
 *
 * After every sweep of message passing, an assignment is read off. At a point where that is over
 * the limit the multiplier rises, else it falls; its step grows while the sign stays and halves
 * when it changes (RPROP). That depends on no scale, passes several orders of magnitude in a few
 * dozen sweeps, and finds the points to watch on the way. What remains is a swing about good
 * values, so their average is taken.
 *
 * M. Riedmiller, H. Braun, A direct adaptive method for faster backpropagation learning, ICNN 1993. */
#ifndef SF_SOLVE_DUAL_RAMP_H
#define SF_SOLVE_DUAL_RAMP_H

#include "solve/dual/bundle.h"

/* Leaves the averages in the dual's multipliers, and prices with them. `step` is the first step of a
 * multiplier, a guess that may be far off. Ends early when the clock passes the deadline. */
void sf_dual_ramp(sf_bundle *bundle, int sweeps, double step, double deadline, sf_arena *scratch);

#endif
