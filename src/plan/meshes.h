/* The meshes that a search tries: the ways to cut the devices of a cluster into axes.
 *
 * An axis respects the topology when its groups are alike: it stays inside of a node, or goes from node
 * to node, or takes an equal number of devices of each of several whole nodes; and so for racks. Axes that
 * come late have small strides (shard/mesh.h), so the order of axes matters, but only between levels: of
 * neighbours inside of one level the first is not the smaller.
 *
 *     2 nodes of 8      16;  2,8  4,4  8,2;  2,4,2  2,2,4 ...
 *     1 node of 8       8;  4,2;  2,2,2
 */
#ifndef SF_PLAN_MESHES_H
#define SF_PLAN_MESHES_H

#include "cluster/cluster.h"
#include "shard/mesh.h"

typedef struct sf_meshes {
    int count;
    sf_mesh *at; /* axes are called a, b, c */
} sf_meshes;

/* Those of exactly `naxes` axes (1 to 3), each of 2 devices and more; of more than `most` the ones whose
 * cuts are nearest to where nodes and racks end. One device: a mesh of one axis of one. Lives in the
 * arena. */
sf_meshes sf_meshes_of(const sf_cluster *cluster, int naxes, int most, sf_arena *arena);

#endif
