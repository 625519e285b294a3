/* Times of a run in place of the model's: a cluster that knows what instructions and collectives took in a trace (sim/timeline_trace.h). What
 * passes and simulations ask it for is then what was seen, where that was seen:
 *
 *  - an instruction that does the same as one of the trace (sf_inst_key) takes what that took, on average over all of them, over
 *    bodies and over ranks;
 *  - a collective in groups of a shape that the trace has takes what those of its size took. Of other sizes, what the model says,
 *    times the ratio of what was seen to the model at the sizes around it.
 *
 * What the trace does not have is the model's.
 */
#ifndef SF_SIM_MEASURED_TIMES_H
#define SF_SIM_MEASURED_TIMES_H

#include "cluster/cluster.h"

/* A copy of the cluster with what the trace, a text of that file, tells; for sf_cluster_free. SF_EINPUT where it is none, or none of
 * these devices. */
sf_status sf_cluster_see(const sf_cluster *cluster, sf_str trace, const char *file, sf_diag *diag,
                         sf_cluster **out);

#endif
