/* Measuring a GPU, by steps of the engine that runs on it. */
#ifndef SF_API_PROBE_PROBE_GPU_H
#define SF_API_PROBE_PROBE_GPU_H

#include "api/probe/probe.h"

/* Reports the next measurement. */
typedef sf_status sf_announce(void *context, const char *what);

/* All of `kind` that is measured, but for its memory. Curves live in the arena of the meter; probe->base is set. With precision
 * TF32, products of f32 are measured as such, too. */
sf_status sf_measure_gpu(sf_probe *probe, sf_announce *announce, void *context,
                         sf_device_kind *kind);

#endif
