/* What the engine takes for an instruction that has next to nothing to do. */
#ifndef SF_API_LAUNCH_H
#define SF_API_LAUNCH_H

#include "run/measure.h"

/* Seconds, measured on a chain of tiny products; all ranks call it (run/measure.h). */
sf_status sf_measure_launch(const sf_meter *meter, double *out);

#endif
