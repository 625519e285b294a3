/* The cost model: times of ops and collectives on a cluster.
 *
 * sf_costs is a mesh laid on a cluster. It is made once for a mesh, in time proportional to its
 * devices; after that every query takes constant time, whatever the number of devices. Queries do
 * not change it, so threads may share it.
 *
 * Ranks of a mesh are numbered row-major, the last axis running fastest (as in shard/mesh.h), and rank r
 * is device `first` + r. So axes that come late have small strides and stay inside of nodes. A set of
 * axes cuts the mesh into groups. A collective along it runs in all of these groups at the same time, and
 * takes as long as in the slowest.
 *
 * THE GROUP. Seen from level l (cluster.h), a group has g_l members: g_0 in each node, over g_1
 * nodes in each rack, over g_2 racks; n = g_0 g_1 g_2 in all. m_l = g_0 ... g_(l-1) of them share
 * one port of level l. A member has a_l, the latency of the level, and b_l, its share of the
 * bandwidth when all devices of the mesh use that level together:
 *
 *     b_l = bandwidth_l * min(1, lanes_l / devices of the mesh that share these lanes)
 *
 * Inside of a node it is at most (g_0 - 1) times the bandwidth to one other, if that is limited.
 * Traffic that leaves a rack has passed the network of its node, so b_2 is at most b_1 and a_2 at
 * least a_1. If nodes differ, a_l is the largest and b_l the smallest in the group. The traffic of
 * the m_l members together, in as many channels, has c_l = m_l b_l, that of the slowest port.
 *
 * THE COLLECTIVE of S bytes. Formulas for n members with latency a and bandwidth c:
 *
 *     all_gather, reduce_scatter    ring  (n-1) a + (n-1)/n S/c     tree  L a + S/c,  L = log2 n, up
 *     all_reduce                    a reduce_scatter and an all_gather
 *     broadcast                     ring  (n-1) a + S/c             tree  L (a + S/c)
 *     all_to_all                    pairs (n-1) a + (n-1)/n S/c
 *     permute                             a + S/c
 *
 * In a group within one level these are the result, the cheaper one of two. In one that spans
 * several there are two ways, of which the cheaper counts:
 *
 *     flat          the formulas, over all n, with a = max a_l and c = min c_l over the levels it
 *                   spans. all_to_all: sum over levels of p_l (a_l + S/(n b_l)), p_l being the
 *                   members that are reached over level l: m_(l+1) - m_l. permute is always flat,
 *                   with c = min b_l
 *     hierarchical  level by level: reduce_scatter inside, then outside on the remaining S/m_l;
 *                   all_gather the other way round; all_reduce as both, with an all_reduce on the
 *                   outmost level. broadcast: over one level after the other, S at c_l. all_to_all:
 *                   S over one level after the other, at b_l. Only where the members divide evenly
 *
 * (The ring and hierarchical schemes are those of NCCL and of BlueConnect, Cho et al. 2019; costs
 * in the manner of Thakur, Rabenseifner and Gropp 2005.) If groups of this shape were measured, the
 * curve is the result instead. All results are 0 in groups of one, and never decrease in S.
 *
 * THE OP. A product takes max(launch, ramp + flops / (product_share * peak), bytes / (memory_share
 * * bandwidth)), so its efficiency is product_share * f / (f + f0), where f0 = ramp * product_share
 * * peak flops is what it needs to reach half of it. Anything else takes max(launch, flops /
 * vector_flops, bytes / (memory_share * bandwidth)). Measured curves count instead of the second
 * and the third term, each where it is there; if loops were measured, the time of their flops is
 * added to that of their bytes, since processors alternate between them. Batched products take the
 * sum of their times, or, if that was measured and is less, their time when each thread has its
 * own. Where passes over elements were measured, a loop takes its bytes and its passes, which are
 * shared by as many threads as have a part in it; where convolutions were, one takes its curve and
 * its packing. A copy between a device and its host takes host_latency + bytes / host_bandwidth,
 * each way by itself; where the host's memory is the device's own, launch and reads and writes in
 * it. Epilogues are added to the product's time, with their bytes if loops were measured. All these
 * curves are of memory that was touched long ago; if paces were measured, near data takes less.
 * Where the mesh has several kinds of devices, the slowest counts. An op on a measured GPU
 * (cluster/gpu_curves.h) takes the maximum of launch, compute and memory time: the whole batch at a
 * time, epilogues with their product, and both concurrently. */
#ifndef SF_CLUSTER_COST_MODEL_H
#define SF_CLUSTER_COST_MODEL_H

#include "cluster/cluster.h"

enum { SF_COSTS_AXES = 4 };

/* The work of a loop over elements, pass by pass. In elements, but for runs. */
typedef struct sf_passes {
    double light, divides,
        functions; /* ops: of one instruction or few; divisions and roots; exp and the like */
    double folds;
    double copies;  /* to and from registers, of data in a cache */
    double strided; /* to and from memory, not side by side */
    double runs;    /* stretches that are one kernel call each; rows that are folded */
} sf_passes;

/* The packing of a convolution before its products: elements that are rearranged, those of a window
 * side by side or, as in gradients of kernels, across; and their runs. Each thread packs its own
 * operands, so common operands are packed several times: elements of windows by those that have
 * other features, and the kernel by those that have other windows. */
typedef struct sf_packing {
    double elements, across, runs;
    double kernel;                 /* of the elements, those of the kernel */
    int64_t rows, features, steps; /* of the product that it becomes; 0: nothing is packed twice */
} sf_packing;

/* How long ago, in bytes that were touched since: the last is farther than caches reach. */
enum { SF_NEAR_STEPS = 12 };
double sf_near_distance(int step);

/* The work of an op, or a fused group of ops, on one device. Uncounted work is 0. */
typedef struct sf_effort {
    bool product;        /* dot, convolution: flops are those of products, in `math` */
    sf_math math;        /* for math without units on the device see sf_math_done */
    double flops, bytes; /* bytes read and written in its memory */
    double near
        [SF_NEAR_STEPS]; /* of these, those touched last within the distance of the step, and not of the one before */
    double vector;  /* flops beside a product: those of its epilogue */
    double after;   /* of the bytes, those that only that reads and writes */
    double batches; /* equal products that the flops are of; 0 is 1 */
    bool counted;   /* `passes` has the work of its loop */
    double shares;  /* threads that have a part in the loop, of any number of them; 0: all */
    double units;   /* that these parts consist of; 0: they are equal */
    sf_passes passes;
    sf_unit unit;   /* of a GPU that does it, */
    sf_touch touch; /* and how it goes over memory; */
    double depth;   /* of a product: the terms of each element of the result; */
    double calls;   /* of a product: calls of a library that it takes; 0 is 1 */
    double padding; /* of a convolution: flops with few channels made sixteen, by flops; 0 is 1 */
    sf_packing packing; /* empty: it is no convolution, or one that is a plain product */
} sf_effort;

typedef enum sf_algorithm {
    SF_ALGORITHM_NONE, /* a group of one */
    SF_ALGORITHM_RING, /* pairs, for all_to_all; direct, for permute */
    SF_ALGORITHM_TREE,
    SF_ALGORITHM_HIERARCHICAL,
    SF_ALGORITHM_MEASURED,
    SF_ALGORITHM_COUNT
} sf_algorithm;
const char *sf_algorithm_name(sf_algorithm algorithm);

typedef struct sf_costs sf_costs;

/* Lays a mesh of `naxes` axes (0 to SF_COSTS_AXES) of these sizes on the devices from `first` on.
 * SF_EUSAGE when the cluster has too few. *out lives in the arena, and no longer than the cluster. */
sf_status sf_costs_new(const sf_cluster *cluster, int naxes, const int *sizes, int first,
                       sf_arena *arena, sf_diag *diag, sf_costs **out);

/* The same for the ranks that have the coordinate `at` on the axis, which run a program of their own: ops are on their
 * devices alone, and collectives in their groups; along sets that have the axis, as on the whole mesh. Where all nodes are
 * the same that is `costs` itself. */
const sf_costs *sf_costs_at(const sf_costs *costs, int axis, int at, sf_arena *arena);

/* Seconds of a collective along the set of axes (bit a stands for axis a; the set is one of the
 * mesh). `bytes`, not negative, is the size of a member's operand or result, whichever is more:
 *
 *     all_reduce, broadcast, permute, all_to_all    the tensor of a member
 *     all_gather                                    the result of a member
 *     reduce_scatter                                the operand of a member */
double sf_costs_collective(const sf_costs *costs, sf_collective kind, uint32_t axes, double bytes);

/* The same, and how it is done in the slowest group. */
double sf_costs_collective_how(const sf_costs *costs, sf_collective kind, uint32_t axes,
                               double bytes, sf_algorithm *how);

/* Seconds of an op on the slowest device of the mesh. */
double sf_costs_op(const sf_costs *costs, const sf_effort *effort);

/* The least seconds of devices of a kind in which all of a product, or of the bytes where it is none, is done in shards of any size, with
 * whatever is read near, and no launch: no program is faster. Of the effort flops, bytes, math, unit and depth count. */
double sf_costs_least(const sf_costs *costs, int kind, const sf_effort *effort);

/* The same of one that devices of different kinds share by their speed: `effort` is what each would have in equal parts. */
double sf_costs_op_shared(const sf_costs *costs, const sf_effort *effort);

/* Kinds of devices that the mesh has, how many devices it has of one, and seconds of an op on one of those. */
int sf_costs_kinds(const sf_costs *costs);
int sf_costs_count(const sf_costs *costs, int kind);
double sf_costs_op_on(const sf_costs *costs, int kind, const sf_effort *effort);

/* Whether the cluster has measured times of ops; and the time for a key, false if it has none. */
bool sf_costs_have_seen(const sf_costs *costs);
bool sf_costs_seen(const sf_costs *costs, uint64_t key, double *seconds);

/* Whether the distance of data matters. */
bool sf_costs_sees_near(const sf_costs *costs);

/* Seconds of a copy of so many bytes between a device and its host, one way, on the device that takes longest. */
double sf_costs_copy(const sf_costs *costs, double bytes);

/* Seconds that kernels lose for a second of a collective beside them, on the device that loses most. */
double sf_costs_drag(const sf_costs *costs);

/* Whether its devices are GPUs that were measured; those of one mesh are or are not. */
bool sf_costs_on_gpu(const sf_costs *costs);

/* Threads that a rank has on the device that has most of them; 0 where that is not known. */
int sf_costs_threads(const sf_costs *costs);

/* Bytes that a rank may take: memory of the device of the mesh that has the least, without what is reserved. */
int64_t sf_costs_memory(const sf_costs *costs);

/* Members of a group along the axes. */
int sf_costs_group_size(const sf_costs *costs, uint32_t axes);

/* The shape of the groups along the axes: members in a node, nodes in a rack, racks; false if
 * groups differ in that, or do not divide evenly. */
bool sf_costs_group_shape(const sf_costs *costs, uint32_t axes, int shape[SF_LEVELS]);

/* The outmost level that a group along the axes spans: 0 inside of nodes, 1 between nodes, 2 between
 * racks; -1 for groups of one. */
int sf_costs_group_level(const sf_costs *costs, uint32_t axes);

/* The levels whose links a collective along the axes uses: bit l is level l. */
uint32_t sf_costs_group_links(const sf_costs *costs, uint32_t axes);

/* The math in which such a device computes products of this math: f8 falls back on f16, all others
 * on f32. */
sf_math sf_math_done(const sf_device_kind *kind, sf_math math);

#endif
