/* Clusters: the devices and links that a plan is made for. docs/reference/cluster.md describes
 * names, shorthands and the JSON. */
#ifndef SHEAF_CLUSTER_H
#define SHEAF_CLUSTER_H

#include "sheaf/event.h"
#include "sheaf/report.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sf_cluster sf_cluster;

/* A cluster by its name in the library ("rhino-m8"), by a shorthand ("2x8xV100"), or from a JSON file:
 * whatever has a '/' or ends in ".json", and "-", standard input. *out is for sf_cluster_free. */
SF_API sf_status sf_cluster_open(const char *what, sf_diag *diag, sf_cluster **out);
SF_API void sf_cluster_free(sf_cluster *cluster);

/* The cluster with the times of a run: `trace` is the file of its timeline
 * (sf_train_options.trace). Passes and simulations on the cluster use the average times of the
 * instructions and collectives in the trace, and the cost model for all others. *out is for
 * sf_cluster_free. */
SF_API sf_status sf_cluster_measured(const sf_cluster *cluster, const char *trace, sf_diag *diag,
                                     sf_cluster **out);

/* Writes JSON, which sf_cluster_open reads. */
SF_API sf_status sf_cluster_save(const sf_cluster *cluster, const sf_output *output, sf_diag *diag);

/* Writes the cluster as text: devices, links, times of collectives. With options->json as
 * sf_cluster_save does. */
SF_API sf_status sf_cluster_show(const sf_cluster *cluster, const sf_show_options *options,
                                 const sf_output *output, sf_diag *diag);

/* Lists the library: test beds and kinds of devices. */
SF_API sf_status sf_cluster_list(const sf_show_options *options, const sf_output *output,
                                 sf_diag *diag);

SF_API int sf_cluster_devices(const sf_cluster *cluster);

typedef struct sf_calibrate_options {
    size_t size;      /* sizeof this struct, see api.h */
    int ranks;        /* threads of this process, 0: 1; under mpirun: 0, or the number it started */
    int threads;      /* of all ranks of this process together; 0: as many as there are */
    double seconds;   /* about how long each curve may be measured; 0: 1 */
    int64_t largest;  /* bytes of the largest collective; 0: 64 MiB */
    const char *name; /* of the cluster; NULL: that of the host */
    sf_listener *listener;   /* called before each curve; or NULL */
    void *context;           /* for the listener */
    const char *engine;      /* "cpu" or "cuda"; NULL: "cpu" */
    const char *precision;   /* with "cuda", of products of f32: "f32" or "tf32"; NULL: "f32" */
    sf_interrupt *interrupt; /* stops the call when it is raised; or NULL */
} sf_calibrate_options;

/* Measures this machine, all ranks working at the same time: products by size and type, loops over
 * elements, and collectives in groups of every shape. Under mpirun all processes call it; ranks are on
 * one node where their hosts have one name, and all nodes need as many, numbered one after the other.
 * *out is NULL in all processes but that of rank 0. */
SF_API sf_status sf_calibrate(const sf_calibrate_options *options, sf_diag *diag, sf_cluster **out);

#ifdef __cplusplus
}
#endif

#endif
