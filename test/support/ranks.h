/* A split step on N ranks in one process, by the oracle: every rank's local graph is evaluated node by
 * node, all up to their next collective, and collectives are done by definition. What is slow and plain
 * here judges what is fast in run/. */
#ifndef TEST_SUPPORT_RANKS_H
#define TEST_SUPPORT_RANKS_H

#include "ir/tensor.h"
#include "local/local.h"

/* The piece of a whole tensor that `rank` has. Of partial sums all ranks but the first have some small
 * numbers, and the first the rest of the sum; of other partial values they have the identity. Data from
 * sf_alloc. */
sf_tensor test_cut(const sf_tensor *whole, const sf_layout *layout, const sf_mesh *mesh, int rank,
                   sf_pool *pool);

/* The whole tensor out of the pieces of all ranks, partial values combined. Of ranks that should have the
 * same, those are taken that have the coordinates of `like` along replicated axes. Data from sf_alloc. */
sf_tensor test_join(const sf_tensor *pieces, const sf_layout *layout, const sf_mesh *mesh, int like,
                    const sf_type *type);

/* Runs the locals of all ranks. arguments[rank] are pieces; results[rank] get data from sf_alloc. Fails,
 * with a message, when the ranks do not come to the same collectives in the same order. */
sf_status test_run_ranks(sf_local *const *locals, int count, const sf_mesh *mesh,
                         sf_tensor *const *arguments, sf_tensor *const *results, sf_diag *diag);

/* Splits the step by the plan, runs it on whole arguments and joins each result, as every rank sees it;
 * `check` is called for each. */
typedef void test_check_result(void *context, int rank, uint32_t result, const sf_tensor *joined);
sf_status test_run_split(const sf_graph *graph, const sf_plan *plan, const sf_tensor *arguments,
                         test_check_result *check, void *context, sf_diag *diag);

#endif
