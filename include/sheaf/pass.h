/* Passes: how the programs of a plan's ranks are rewritten before they run. docs/passes.md explains them. */
#ifndef SHEAF_PASS_H
#define SHEAF_PASS_H

#include "sheaf/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Has the programs of the plan rewritten by these passes, in this order: "fullshard,prefetch:group=64M,unshard"; "" or
 * "none": by none. They go by the costs of the cluster, NULL: of cores of a machine, and by so many bytes of memory of a
 * device; 0: what devices of the cluster have. All is kept in the plan. SF_EUSAGE names what there is. */
SF_API sf_status sf_plan_use_passes(sf_plan *plan, const char *passes, const sf_cluster *cluster,
                                    int64_t memory, sf_diag *diag);

/* The passes of a plan, "" where there are none; as long as the plan. */
SF_API const char *sf_plan_passes_of(const sf_plan *plan);

/* Writes what passes there are, with their options. `options` may be NULL. */
SF_API sf_status sf_passes_show(const sf_show_options *options, const sf_output *output,
                                sf_diag *diag);

/* The passes by number: their names, and half a sentence about each; NULL past the last. */
SF_API const char *sf_pass_name(int index);
SF_API const char *sf_pass_about(int index);

#ifdef __cplusplus
}
#endif

#endif
