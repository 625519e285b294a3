/* Steps of attention, for which there is no text. */
#ifndef SF_API_PROBE_PROBE_ATTENTION_H
#define SF_API_PROBE_PROBE_ATTENTION_H

#include "ir/graph.h"

/* `copies` of causal attention over so many places, or of its gradient; for sf_graph_free. */
typedef struct sf_attend_size {
    sf_dtype dtype;
    int64_t batch, places, heads, depth;
} sf_attend_size;
sf_graph *sf_attend_step(const sf_attend_size *size, bool gradient, int copies);

#endif
