/* The meshes that a search tries: the ways to cut the devices of a cluster into axes.
 *
 * An axis respects the topology when its groups are alike: it stays inside of a node, or goes from node
 * to node, or takes an equal number of devices of each of several whole nodes; and so for racks. Axes that
 * come late have small strides (shard/mesh.h), so the order of axes matters, but only between levels: of
 * neighbours inside of one level the first is not the smaller.
 *
 *     2 nodes of 8      16;  2,8  4,4  8,2;  2,4,2  2,2,4 ...
 *     1 node of 8       8;  4,2;  2,2,2
 *
 * A step may be too small for all devices. Then they stand in groups that all do the same, along an axis in front
 * along which nothing is split: a plan for one group is a plan for all devices, as fast as it was.
 */
#ifndef SF_SEARCH_MESHES_H
#define SF_SEARCH_MESHES_H

#include "cluster/cluster.h"
#include "shard/mesh.h"

typedef struct sf_meshes {
    int count;
    sf_mesh *at; /* axes are called SF_FREE_AXIS, and idle */
} sf_meshes;

/* The name of an axis that has none yet. */
#define SF_FREE_AXIS "?"
bool sf_axis_is_free(const sf_axis *axis);

/* Those of exactly `naxes` axes (1 to 3), each of 2 devices and more; of more than `most` the ones whose
 * cuts are nearest to where nodes and racks end. One device: a mesh of one axis of one. `idle` groups do the same:
 * 1, or what divides the devices of a cluster of equal nodes, and then there is an axis more. Lives in the arena. */
sf_meshes sf_meshes_of(const sf_cluster *cluster, int unused, int naxes, int most, sf_arena *arena);

/* Whether the devices can stand in so many groups that do the same. */
bool sf_meshes_can_idle(const sf_cluster *cluster, int unused);

/* Every way to give each of the names to an axis of its own; axes that are left stay free. */
sf_meshes sf_meshes_named(const sf_meshes *meshes, int nnames, const char *const *names,
                          sf_arena *arena);

#endif
