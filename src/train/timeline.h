/* The timeline of the last step of a run, of all ranks: sim/timeline_trace.h. */
#ifndef SF_TRAIN_TIMELINE_H
#define SF_TRAIN_TIMELINE_H

#include "run/comm/comm.h"
#include "run/runner.h"
#include "sheaf/output.h"

/* All ranks call it together, and the first one writes; `comm` is NULL for a run of one. SF_EUSAGE where the engine keeps
 * none. */
sf_status sf_timeline_write(const sf_runner *runner, sf_comm *comm, const sf_output *output,
                            sf_diag *diag);

#endif
