/* The library: kinds of devices with their usual nodes, and test beds of papers.
 * docs/reference/cluster.md lists the sources of the figures. */
#ifndef SF_CLUSTER_DEVICE_LIBRARY_H
#define SF_CLUSTER_DEVICE_LIBRARY_H

#include "cluster/cluster.h"

/* A kind of device and, for shorthands, the links of its nodes. */
typedef struct sf_library_kind {
    sf_device_kind kind;
    sf_link inside, network;
    bool is_like_h200; /* its curves are those of the H200, scaled */
    int direct;        /* with a `peer`: larger nodes than that have a switch */
    const char *nodes; /* a description of the links */
} sf_library_kind;

/* A cluster that is known by name; `network` with bandwidth 0 is that of the kind. */
typedef struct sf_library_bed {
    const char *name, *source;
    int nodes, devices;
    const char *kind;
    sf_link network;
} sf_library_bed;

/* By number; NULL past the last. */
const sf_library_kind *sf_library_kind_nth(int index);
const sf_library_bed *sf_library_bed_nth(int index);

/* The first row whose words, cut at each '-', begin with the first word of the text and have its
 * other words among the later ones, in their order: V100, V100-PCIe, V100-16GB; upper and lower
 * case are the same. NULL when there is none. */
const sf_library_kind *sf_library_kind_find(sf_str text);

#endif
