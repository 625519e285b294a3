/* What no plan of a step takes less than, whatever its layouts, stages, micro-batches and passes.
 *
 * It counts only work that every plan does, each unit of it at the best rate that any shard of it can reach:
 *
 *  - products, convolutions and attention: their flops, and the bytes of their operands and results. They are kernels of their own in
 *    every program, since nothing fuses two of them. Attention counts as the kernel for it where the target may have one, with the
 *    places that a causal mask leaves, at the rate of the kernel or of products.
 *  - the bytes of arguments that loops read and of results that loops write as a whole.
 *
 * A kernel takes at least the longer of computing and reading, so their sum is at least the sum of these. How loops fuse depends on how
 * a step is sharded: a loop that runs alone in the unsharded program follows a product elsewhere, at no cost in memory traffic. So
 * what lies between kernels counts nothing, nor does communication.
 *
 * Times of instructions that were seen in a run follow no rates: on a cluster that has such, there is no bound. */
#ifndef SF_SIM_STEP_BOUND_H
#define SF_SIM_STEP_BOUND_H

#include "cluster/cost_model.h"
#include "prog/program.h"

typedef struct sf_step_bound {
    double seconds;  /* of any plan */
    double unstaged; /* of plans without stages, in which all ranks run all kernels */
} sf_step_bound;

/* `costs` is of a mesh of all devices. Zeros: there is no bound. */
sf_step_bound sf_step_bound_of(const sf_graph *graph, const sf_target *target,
                               const sf_costs *costs);

#endif
