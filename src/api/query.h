/* Names of arguments and results, with a message where there is none of that name; and types, for callers. */
#ifndef SF_API_QUERY_H
#define SF_API_QUERY_H

#include "base/diag.h"
#include "ir/graph.h"

sf_status sf_find_named_argument(const sf_graph *graph, const char *name, sf_diag *diag, int *out);
sf_status sf_find_named_result(const sf_graph *graph, const char *name, sf_diag *diag, int *out);

/* Fills a type of the caller; false where it has no size. */
bool sf_give_type(const sf_type *type, sf_tensor_type *out);

#endif
