/* The programs of a plan's ranks as one StableHLO module, for compilers that run one program on all devices.
 *
 * The function takes the number of the rank, tensor<i32>, and the rank's shards of the arguments, and gives its shards of
 * the results. Collectives are those of StableHLO, in groups of devices that are numbered as the ranks. Programs of ranks
 * differ in constants and in offsets of slices alone (local/local.h): there the text has a table of all ranks, from which
 * the rank takes its row. Its size grows with the number of ranks in these tables only. */
#ifndef SF_LOCAL_PRINT_RANKS_H
#define SF_LOCAL_PRINT_RANKS_H

#include "local/local.h"

/* SF_EUNSUPPORTED where programs of ranks differ in more, as those of pipeline ranks and of uneven partitions do. */
sf_status sf_print_ranks(const sf_graph *graph, const sf_plan *plan, sf_buf *out, sf_diag *diag);

#endif
