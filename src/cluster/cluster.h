/* The cluster: devices, their speed, and their links.
 *
 * Devices are numbered node after node. Three levels of links connect them: those inside of a node,
 * the network between nodes, and, if nodes are in racks, the links between racks.
 *
 *     racks        +------ uplink ------+        level 2
 *     nodes     +--network--+  +--network--+     level 1
 *     devices   0 1 2 3   4 5 6 7   8 9 ...      level 0, `inside`
 *
 * A link is described from the point of view of one device: the latency of a message, the bytes per
 * second that the device can send over it (as many can arrive meanwhile), and how many devices can
 * do so at full speed together: NICs are lanes that the devices of a node share, a bus is one lane,
 * a switch has a lane for everyone. Without a switch the links of a device go to the others of its
 * node, and its bandwidth to one of them is less than that to all.
 *
 * Nodes may differ from each other, in devices and in links; the devices of one node are of one kind. A
 * cluster is written by hand, or taken from the library (named test beds, and shorthands such as
 * "2x8xV100"), or measured by `sheaf calibrate`. A measured one has curves, which count instead of the
 * formulas (cluster/cost_model.h). Units are bytes, seconds and operations throughout.
 *
 * Everything lives in the cluster's arena and does not change once it is made. */
#ifndef SF_CLUSTER_CLUSTER_H
#define SF_CLUSTER_CLUSTER_H

#include "base/collective.h"
#include "base/reference.h"
#include "base/str.h"
#include "cluster/gpu_curves.h"
#include "sheaf/cluster.h"

/* Devices of one kind. */
typedef struct sf_device_kind {
    const char *name;
    const char *source; /* of the figures, or "" */
    int64_t memory;     /* bytes, */
    int64_t reserve; /* of which a rank's program has none: what its context, NCCL and gaps take */
    double
        flops[SF_MATH_COUNT]; /* of products, a second, at the peak; 0: it has no units for it; that
                                    of f32 is not 0 */
    double vector_flops;      /* of loops over elements, f32 */
    double bandwidth;         /* of its memory, at the peak */
    double product_share;     /* of the peak that large products reach, 0 to 1 */
    double memory_share;      /* of the bandwidth that long loops reach, 0 to 1 */
    double ramp;              /* seconds that a product loses before all units are busy */
    double launch;            /* the least seconds that any op takes */
    double threads; /* of a rank on a processor, a whole number; 0: not known, or it is none */
    double drag;    /* seconds that kernels lose for a second of a collective beside them */
    double host_bandwidth; /* to memory of the host, and as much from it at the same time; 0: that
                              is its own memory, so a copy reads and writes there */
    double host_latency;   /* of a copy */
    sf_curve products[SF_MATH_COUNT]; /* measured: seconds by flops */
    sf_curve
        batched[SF_MATH_COUNT]; /* measured: of a product among as many as keep `threads` busy */
    sf_curve loops;             /* measured: seconds by bytes read and written */
    sf_curve
        paces; /* measured: seconds for a byte of a loop, by the bytes touched since it was last */
    sf_curve convolutions; /* measured: seconds by flops, in f32, without packing */

    /* Measured, seconds for an element or a run (cluster/cost_model.h); 0: they were not. */
    double divide, function, fold, strided, run;
    double pack, pack_across, pack_run;

    /* Likewise of a GPU: of a fold along a dimension that is not the last, for an element and a run; of a window, for an
     * element that it sees. */
    double transposed, transposed_run, window;
    const sf_gpu *gpu; /* measured, then it is one; NULL: it was not */

    bool
        is_gpu; /* programs for it have the kernels of the CUDA engine, else those of a processor, */
    bool is_plain; /* but none that stands for several ops, attention above all */
} sf_device_kind;

typedef struct sf_link {
    double latency;   /* of a message */
    double bandwidth; /* of one device, in one direction */
    int lanes;        /* devices that can use it at full speed together; 0: all */
    double peer;      /* inside of a node: most of the bandwidth that goes to one other; 0: all */
} sf_link;

/* `count` equal nodes, one after the other. */
typedef struct sf_nodes {
    int count, devices;           /* nodes, and devices in each of them; at least 1 */
    int kind;                     /* of the devices: index into the cluster's */
    sf_link inside;               /* lanes: of a node, for traffic inside of it */
    sf_link network;              /* lanes: of a node, for traffic that leaves it */
    int first_node, first_device; /* numbers of the first ones, set by sf_cluster_finish */
} sf_nodes;

enum { SF_LEVELS = 3, SF_MAX_DEVICES = 1 << 20, SF_MAX_MEASURED = 1024 };

/* The time of a collective in groups of one shape, all groups at the same time. The curve is over
 * the bytes of sf_costs_collective. */
typedef struct sf_measured {
    sf_collective kind;
    int shape[SF_LEVELS]; /* members in a node, nodes in a rack, racks */
    sf_curve curve;
} sf_measured;

/* The measured time of an op. The key identifies its work (sim/instruction_work.h). */
typedef struct sf_seen_op {
    uint64_t key;
    double seconds;
} sf_seen_op;
enum { SF_MAX_SEEN = 1 << 20 };

struct sf_cluster {
    sf_arena arena;
    const char *name;
    const char *source;  /* or "" */
    sf_reference origin; /* of its file */
    int nkinds;
    sf_device_kind *kinds;
    int nruns;
    sf_nodes *nodes; /* `nruns` runs of equal nodes */
    int rack_nodes;  /* nodes in a rack; 0: there are no racks */
    sf_link uplink;  /* lanes: of a rack, for traffic that leaves it; only with racks */
    int nmeasured;
    sf_measured *measured;
    int nseen;
    sf_seen_op *seen;        /* keys increase */
    int nnodes, ndevices;    /* in all: at most SF_MAX_DEVICES */
    const sf_cluster *whole; /* that this is some nodes of (cluster/part.h); or NULL */
};

/* Counts nodes and devices, when all else is set: whoever makes a cluster calls it last. SF_EINPUT, at
 * `loc`, when there are too many. */
sf_status sf_cluster_finish(sf_cluster *cluster, sf_loc loc, sf_diag *diag);

/* An empty one, for sf_cluster_free. */
sf_cluster *sf_cluster_new(void);

/* The run of nodes that a device belongs to, and its node and rack (0 without racks) counted from 0. */
typedef struct sf_device_place {
    int run, node, rack;
} sf_device_place;
sf_device_place sf_cluster_place(const sf_cluster *cluster, int device);

/* A cluster of the library by its name, or from a shorthand,
 *
 *     [NODES x] DEVICES x KIND [@ [NICS x] GIGABITS G]    8xH100  2x8xV100  4x8xH100@400G
 *                                                         8x1xV100S@2x25G
 *
 * without spaces; the default is one node. Several of these are joined by +: 8xA100+8xV100. The
 * kind is a row of the library (cluster/device_library.h) or the beginning of one; it has the
 * links, and the part after @ replaces the network's NICs (default: 1). The message of SF_EUSAGE
 * lists valid names. */
sf_status sf_cluster_make(sf_str text, sf_diag *diag, sf_cluster **out);

/* JSON (docs/reference/cluster.md). Reading is strict: an unknown, missing or out-of-range item is
 * an error at its place. A written cluster reads back as the same. */
sf_status sf_cluster_read(sf_str text, const char *file, sf_diag *diag, sf_cluster **out);
void sf_cluster_write(const sf_cluster *cluster, sf_buf *out);

/* A limit on the memory of a rank, or 0, none, where no device leaves a rank more than the limit: then with a warning. */
int64_t sf_cluster_memory_limit(const sf_cluster *cluster, int64_t limit, sf_diag *diag);

/* Of everything that costs depend on, so not of names and sources: the same on every machine. */
uint64_t sf_cluster_hash(const sf_cluster *cluster);

#endif
