/* The step as one CUDA graph, which one call starts: if no operation in it waits for the host.
 * Loops with a known trip count are in it iteration by iteration. */
#ifndef SF_RUN_CUDA_CUDA_GRAPH_H
#define SF_RUN_CUDA_CUDA_GRAPH_H

#include "run/cuda/cuda.h"

/* Sets c->can_draw, once it is known which exchanges use NCCL. */
void sf_cuda_look_for_host(cuda *c);

/* Captures the graph, if possible. Libraries must have loaded their code before. If the capture
 * fails the step is run without a graph, and capturing is not tried any more. */
void sf_cuda_draw(cuda *c);
void sf_cuda_forget_graph(cuda *c);

#endif
