/* Clusters made of others: several side by side, and some nodes of one. */
#ifndef SF_CLUSTER_PART_H
#define SF_CLUSTER_PART_H

#include "cluster/cluster.h"

/* The nodes of all, one cluster after the other, none of which has racks or was measured. Devices are of one kind where
 * their names are the same. The result is of its own. */
sf_cluster *sf_cluster_join(sf_str name, int count, sf_cluster *const *clusters);

/* Nodes `first` to `last`, both counted from 0. */
typedef struct sf_node_range {
    int first, last;
} sf_node_range;

/* These nodes, in this order, as a cluster in the arena, which borrows from `cluster`; each at most once. Where there are
 * racks, ranges are of whole racks. `whole` of the result is `cluster`. SF_EINPUT otherwise. */
sf_status sf_cluster_part(const sf_cluster *cluster, size_t count, const sf_node_range *ranges,
                          sf_arena *arena, sf_diag *diag, sf_cluster **out);

/* The same, of "1,0" or "2-4,0", as sf_node_ranges_text writes it. */
sf_status sf_cluster_part_of(const sf_cluster *cluster, sf_str nodes, sf_arena *arena,
                             sf_diag *diag, sf_cluster **out);
void sf_node_ranges_text(size_t count, const sf_node_range *ranges, sf_buf *out);

#endif
