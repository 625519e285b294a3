/* How many inputs and outputs a unit of a parameter has: its initial scale follows from that. */
#ifndef SF_TRAIN_INIT_FAN_H
#define SF_TRAIN_INIT_FAN_H

#include "ir/graph.h"

typedef struct sf_fan {
    double in, out; /* 1 at least */
} sf_fan;

/* Of argument `index`, from the first dot product or convolution that it goes to, perhaps converted,
 * reshaped or cut; where there is none, all dimensions but the last are inputs. */
sf_fan sf_fan_of(const sf_graph *graph, uint32_t index);

#endif
