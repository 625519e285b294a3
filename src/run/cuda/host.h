/* The host in the place of a GPU: what stands in for its libraries. */
#ifndef SF_RUN_CUDA_HOST_H
#define SF_RUN_CUDA_HOST_H

#include "run/text/convolve.h"

void sf_host_convolve(const sf_convolve *convolve, char *const *images);

#endif
