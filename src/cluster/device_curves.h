/* Curves that were measured on an H200, for it and for the devices that are like it. */
#ifndef SF_CLUSTER_DEVICE_CURVES_H
#define SF_CLUSTER_DEVICE_CURVES_H

#include "cluster/cluster.h"

/* What `sheaf calibrate` wrote on an H200: cluster/h200.json, without a zero byte at the end. */
typedef struct sf_curves_file {
    const unsigned char *at;
    size_t length;
} sf_curves_file;
extern const sf_curves_file sf_h200_curves;

/* Adds them to a kind. Times are scaled by what the data sheets say: those of products by their peaks, those of loops by the
 * bandwidth of the memory, and those of elements by the rate of vectors; `h200` is the sheet of the one that was measured. */
void sf_device_curves_add(sf_device_kind *kind, const sf_device_kind *h200, sf_arena *arena);

#endif
