/* Shapes of groups: the part of the topology on which a collective depends. Computed when a mesh is
 * laid on the cluster (cost_model_mesh.c), so that a query (cost_model.c) visits no device. Private
 * to the two. */
#ifndef SF_CLUSTER_GROUP_SHAPE_H
#define SF_CLUSTER_GROUP_SHAPE_H

#include "cluster/cost_model.h"

/* A level that a group spans; see cost_model.h for the letters. */
typedef struct sf_level {
    int level;       /* 0 to SF_LEVELS - 1 */
    int size;        /* g */
    int reached;     /* p: members that the one with the fewest neighbours reaches over it */
    double latency;  /* a */
    double own;      /* b */
    double together; /* c */
} sf_level;

typedef struct sf_shape {
    int members;
    int nlevels; /* that are spanned */
    bool even;
    int sizes[SF_LEVELS]; /* of all levels, where it is even */
    sf_level levels[SF_LEVELS];
    const sf_curve *measured[SF_COLLECTIVE_COUNT]; /* or NULL */
} sf_shape;

/* The shapes of the groups along a set of axes, all different. */
typedef struct sf_shapes {
    sf_shape *shapes;
    size_t count, capacity;
} sf_shapes;

struct sf_costs {
    int naxes, size;
    int sizes[SF_COSTS_AXES];
    const sf_cluster *cluster;
    int first; /* device of rank 0 */
    int nkinds;
    const sf_device_kind **kinds; /* that the mesh has, */
    int *counts;                  /* and how many devices of each */
    bool differs;                 /* it is on nodes that are not all the same */
    int64_t memory;
    sf_shapes groups[1 << SF_COSTS_AXES];
};

#endif
