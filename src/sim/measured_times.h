/* Times of a run in place of the model's: a cluster with the times of instructions and collectives
 * in a trace (sim/timeline_trace.h). Passes and simulations then use the measured times, if there
 * are any:
 *
 *  - an instruction that is equal to one of the trace (sf_inst_key) takes its measured time, the
 *    average over all of them, over bodies and over ranks;
 *  - a collective in groups of a shape that the trace has takes the time of those of its size. Of
 *    other sizes, the model's time, scaled by the ratio of measured time to model at the sizes
 *    around it.
 *
 * All other times are the model's. */
#ifndef SF_SIM_MEASURED_TIMES_H
#define SF_SIM_MEASURED_TIMES_H

#include "cluster/cluster.h"

/* A copy of the cluster with the times of the trace, a text of that file; for sf_cluster_free.
 * SF_EINPUT if it is no trace, or not of these devices. */
sf_status sf_cluster_see(const sf_cluster *cluster, sf_str trace, const char *file, sf_diag *diag,
                         sf_cluster **out);

#endif
