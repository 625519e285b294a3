/* The tensors that go into a step and come out of it, in a safetensors file: argument I is "in.I"
 * or has the argument's name, result I is "out.I". */
#ifndef SF_API_VALUE_FILES_H
#define SF_API_VALUE_FILES_H

#include "file/safetensors.h"
#include "ir/graph.h"

/* Finds every argument and checks its type; `path` names the file in messages. The tensors have
 * the graph's types and live as long as the file: numbers of another type are converted (file/stored.h). `out` holds graph->top->narguments. Several that are
 * missing or do not fit are reported in one go. A file that also has inputs which the step, as
 * lowered, no longer takes is matched in order by type, and refused where that leaves a choice. */
sf_status sf_values_arguments(const sf_graph *graph, sf_safetensors *file, const char *path,
                              sf_diag *diag, sf_tensor *out);

/* The same for the results, by "out.I" alone. */
sf_status sf_values_results(const sf_graph *graph, sf_safetensors *file, const char *path,
                            sf_diag *diag, sf_tensor *out);

/* A tensor of the file as one of that type. */
sf_status sf_values_take(sf_safetensors *file, const sf_tensor *tensor, const char *name,
                         const sf_type *type, const char *path, sf_diag *diag, sf_tensor *out);

/* Frees the data of tensors that an evaluation made. */
void sf_values_free(uint32_t count, sf_tensor *tensors);

enum { SF_VALUE_NAME = 24 };

#endif
