/* The step as one graph of the device, which one call starts: where nothing in it waits for the host. Loops of which it is certain how
 * often they turn are in it turn by turn. */
#ifndef SF_RUN_CUDA_CUDA_GRAPH_H
#define SF_RUN_CUDA_CUDA_GRAPH_H

#include "run/cuda/cuda.h"

/* Sets c->can_draw, when it is known what goes by NCCL. */
void sf_cuda_look_for_host(cuda *c);

/* Draws the graph, where it can be. Libraries must have loaded what they load before. Where none comes about the step is run as
 * before, and nobody tries again. */
void sf_cuda_draw(cuda *c);
void sf_cuda_forget_graph(cuda *c);

#endif
