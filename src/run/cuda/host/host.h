/* The host in the place of a GPU: what stands in for its libraries. */
#ifndef SF_RUN_CUDA_HOST_H
#define SF_RUN_CUDA_HOST_H

#include "run/text/convolve.h"

void sf_host_convolve(const sf_convolve *convolve, char *const *images);

/* A product and the sums of one of its factors; `parts` as in run/cuda/lt.h. */
void sf_host_product(const sf_inst *inst, int factor, char *const *parts);

#endif
