/* Plans: how a step is split over ranks. */
#ifndef SHEAF_PLAN_H
#define SHEAF_PLAN_H

#include "sheaf/cluster.h"
#include "sheaf/graph.h"
#include "sheaf/report.h"
#include "sheaf/spec.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sf_plan sf_plan;

/* Makes the plan that the specification fixes; tensors that it does not pin follow by sharding propagation. Needs a mesh, or a
 * recipe or stages with `ranks`. Passes go by the costs of a machine's cores: sf_plan_use_passes takes a cluster. *out is for
 * sf_plan_free. A recipe that does not apply to the step is SF_EMISMATCH, with the reason. */
SF_API sf_status sf_pin_step(const sf_graph *graph, const sf_plan_spec *spec, sf_diag *diag,
                             sf_plan **out);

/* Writes the names that pins go by, a line each, with the type: of arguments, gradients and scopes. */
SF_API sf_status sf_pin_names(const sf_graph *graph, const sf_output *output, sf_diag *diag);

/* The default margin. The cost model is not exact to that. */
#define SF_PLAN_MARGIN 0.01

/* How to search for a plan; docs/design/planning.md describes it. */
typedef struct sf_plan_options {
    size_t size; /* sizeof this struct, see api.h */
    const sf_cluster *cluster;
    /* Share by which a searched plan must be faster than the fastest recipe that fits to be taken; 0:
     * SF_PLAN_MARGIN, negative: the fastest is taken. */
    double margin;
    int level; /* 2: fewer meshes, faster; 3: all; 0: 3 */
    double
        seconds; /* of the call: stop improving then; 0: no limit. Recipes are considered in any case. With a limit, the
                       answer may differ between runs */
    bool recipes; /* consider recipes alone */
    int threads;  /* 0: as many as the process may use */
    /* Kept in the plan, for sf_plan_origin_of; or NULL. The file is that of a graph that was given as text: others know
     * theirs. */
    const char *step_file, *cluster_name;
    /* For the reason when nothing fits: JSON, docs/reference/cli.md has the keys. NULL: it is not written. */
    const sf_output *misfit;
    sf_listener *listener;   /* called now and then; or NULL */
    void *context;           /* for the listener */
    sf_interrupt *interrupt; /* stops the call when it is raised; or NULL */
    /* Bytes of each device that plans leave free, in place of what the cluster says; SF_EUSAGE where devices differ in memory
     * or have no more, or with spec.memory. 0: as the cluster says; below 0: none. */
    int64_t reserve;
} sf_plan_options;

/* Finds the plan with the least step time on the cluster, within the margin, among plans that
 * satisfy the specification (NULL: any) and fit in device memory, by the cost model of
 * docs/design/planning.md. If the specification has no mesh, the search tries meshes that have the
 * axes of the pins. The plan has passed sf_plan_check on some of its ranks. *out is for
 * sf_plan_free, NULL after a failure. A specification that no plan satisfies: SF_EUSAGE. If no plan
 * fits: SF_EMISMATCH; the message states the least memory that a rank needs, the tensors that need
 * it, and changes that would make the plan fit. */
SF_API sf_status sf_plan_search(const sf_graph *graph, const sf_plan_spec *spec,
                                const sf_plan_options *options, sf_diag *diag, sf_plan **out);

/* Writes the costs of the plan on the cluster: time, memory by kind, collectives, and the
 * candidates considered, if this cluster was searched. The plan has passed sf_plan_check. `what`
 * NULL: all of the step; else the tensors and scopes that it matches, as the pattern of a pin does:
 * their layouts, their resharding and, for an argument, the cost of its other layouts. */
SF_API sf_status sf_plan_explain(const sf_plan *plan, const sf_graph *graph,
                                 const sf_cluster *cluster, const char *what,
                                 const sf_show_options *options, const sf_output *output,
                                 sf_diag *diag);

typedef struct sf_sim_options {
    size_t size; /* sizeof this struct, see api.h */
    /* Where to write the timeline, for Perfetto and chrome://tracing: a process for each rank, a track for each stream,
     * memory as a counter. NULL: it is not written. */
    const sf_output *trace;
    int ranks;           /* most ranks in the timeline, which all do the same; 0: 1 */
    const char *against; /* a timeline of the same plan, from a run: both side by side; or NULL */
} sf_sim_options;

/* Simulates the plan's programs on the cluster and writes how the time of a step is spent: compute,
 * waits, links, and the memory. `options` and `show` may be NULL. */
SF_API sf_status sf_plan_simulate(const sf_plan *plan, const sf_graph *graph,
                                  const sf_cluster *cluster, const sf_sim_options *options,
                                  const sf_show_options *show, const sf_output *output,
                                  sf_diag *diag);

typedef struct sf_report_options {
    size_t size;         /* sizeof this struct, see api.h */
    const char *title;   /* NULL: the name of the step */
    const char *against; /* a timeline of the same plan, from a run: both side by side; or NULL */
    bool json;           /* only the data: the command "report --json" prints the same */
    int threads;         /* 0: as many as the process may use */
} sf_report_options;

/* Writes a page about the plan on the cluster: one self-contained file of HTML. It has the plan
 * in words, the timeline of a rank and its memory, traffic between ranks, costs and layouts by
 * module, step times with other recompute and micro-batches, and those of recipes. `options` may
 * be NULL. */
SF_API sf_status sf_plan_report(const sf_plan *plan, const sf_graph *graph,
                                const sf_cluster *cluster, const sf_report_options *options,
                                const sf_output *output, sf_diag *diag);

/* The inputs from which a plan was made: the file of the step, and the cluster as sf_cluster_open
 * takes it; "" where the plan names none. The file is looked up at its old path relative to the
 * plan, then at its old path; of two files, the unchanged one is taken. If neither exists, this is
 * the recorded path. SF_EINPUT for a file that is not a plan. */
typedef struct sf_plan_origin {
    size_t size; /* sizeof this struct, see api.h */
    char step[4096], cluster[4096];
} sf_plan_origin;
SF_API sf_status sf_plan_origin_of(const char *path, sf_diag *diag, sf_plan_origin *out);

/* Reads the step of a plan: the file `step`, or, for NULL, the file from which the plan was made.
 * Loop unrolling, state and roles are as recorded in the plan, unless `options`, which may be NULL,
 * set them. */
SF_API sf_status sf_plan_load_step(const char *plan, const char *step,
                                   const sf_load_options *options, sf_diag *diag, sf_graph **out);

/* Writes the differences between two plans of this step, under these names. */
SF_API sf_status sf_plan_diff(const sf_graph *graph, const sf_plan *left, const sf_plan *right,
                              const char *left_name, const char *right_name,
                              const sf_show_options *options, const sf_output *output,
                              sf_diag *diag);

/* The same, with both plans simulated on that cluster, in place of what searches expected of them. */
SF_API sf_status sf_plan_diff_on(const sf_graph *graph, const sf_plan *left, const sf_plan *right,
                                 const char *left_name, const char *right_name,
                                 const sf_cluster *cluster, const sf_show_options *options,
                                 const sf_output *output, sf_diag *diag);

/* Reads a plan, which must be one for this step, and writes one: JSON. The path "-" is standard input. */
SF_API sf_status sf_plan_load(const sf_graph *graph, const char *path, sf_diag *diag,
                              sf_plan **out);
SF_API sf_status sf_plan_save(const sf_plan *plan, const sf_graph *graph, const sf_output *output,
                              sf_diag *diag);

SF_API void sf_plan_free(sf_plan *plan);

/* How many ranks it is for. */
SF_API int sf_plan_ranks(const sf_plan *plan);

/* The seconds of a step that the search which made it expects; 0 for a plan that no search made. */
SF_API double sf_plan_seconds(const sf_plan *plan);

/* The axes of its mesh: how many, and the name and size of each; NULL and 0 for one that is not there. Ranks are
 * numbered row-major, the last axis running fastest. */
SF_API int sf_plan_axes(const sf_plan *plan);
SF_API const char *sf_plan_axis_name(const sf_plan *plan, int axis);
SF_API int sf_plan_axis_size(const sf_plan *plan, int axis);

/* The layout of an argument, as docs/guides/split-by-hand.md writes it: "[R, S(0)]". Goes to `text`, which is returned, cut
 * off where it is longer (rows of stacked layers on many groups); NULL when there is no such argument, or no memory. */
enum { SF_LAYOUT_TEXT = 160 };
SF_API const char *sf_plan_argument_layout(const sf_plan *plan, const sf_graph *graph, int argument,
                                           char text[SF_LAYOUT_TEXT]);

/* The same of a result, as the step returns it. */
SF_API const char *sf_plan_result_layout(const sf_plan *plan, const sf_graph *graph, int result,
                                         char text[SF_LAYOUT_TEXT]);

/* A box of a tensor: so many indices of each dimension, from an offset on. The caller sets `size`. */
typedef struct sf_box {
    size_t size; /* sizeof this struct, see api.h */
    int rank;    /* how many dimensions */
    int64_t offset[SF_TENSOR_DIMS], extent[SF_TENSOR_DIMS];
} sf_box;

/* The shard of an argument on a rank: boxes, all of one extent; one box, unless the split is strided. The shard is a
 * row-major tensor whose indices along a dimension are those of the boxes, one after the other; box `index` counts
 * row-major over the dimensions, as elements do. sf_plan_boxes is how many there are, 0 when there is no such argument
 * or rank, or the rank is of a stage without it; sf_plan_box is false for one that is not there. */
SF_API int64_t sf_plan_boxes(const sf_plan *plan, const sf_graph *graph, int argument, int rank);
SF_API bool sf_plan_box(const sf_plan *plan, const sf_graph *graph, int argument, int rank,
                        int64_t index, sf_box *out);

/* The same of a result. */
SF_API int64_t sf_plan_result_boxes(const sf_plan *plan, const sf_graph *graph, int result,
                                    int rank);
SF_API bool sf_plan_result_box(const sf_plan *plan, const sf_graph *graph, int result, int rank,
                               int64_t index, sf_box *out);

/* The tensors of the step that a name matches, as sf_plan_explain takes it: arguments by their names, gradients, and what ops
 * compute, by "layer_0/mlp/up/dot_general" or by the scopes around that; NULL: all. Writes the numbers of up to
 * `capacity` of them to `out` and returns how many there are; -1 without memory. */
SF_API int sf_plan_tensors(const sf_plan *plan, const sf_graph *graph, const char *name,
                           int capacity, int *out);

/* A tensor of the step and its layout. The caller sets `size`. */
typedef struct sf_plan_tensor_view {
    size_t size;                  /* sizeof this struct, see api.h */
    char name[256];               /* as above; cut off where it is longer */
    const char *phase;            /* "forward", "backward", ...; of an argument "" */
    const char *dtype;            /* of the whole tensor, as of sf_tensor_type */
    int rank;                     /* how many dimensions */
    int64_t dims[SF_TENSOR_DIMS]; /* of the whole tensor */
    char layout[SF_LAYOUT_TEXT];  /* as sf_plan_argument_layout writes it */
} sf_plan_tensor_view;

/* The tensor of that number; false where there is none. */
SF_API bool sf_plan_tensor(const sf_plan *plan, const sf_graph *graph, int tensor,
                           sf_plan_tensor_view *out);

/* Writes the local program of a rank, as the engine "cpu" runs it: a line per instruction, as sf_show_program writes it. */
SF_API sf_status sf_plan_show_program(const sf_plan *plan, const sf_graph *graph, int rank,
                                      const sf_output *output, sf_diag *diag);

/* Writes the programs of all ranks as one StableHLO module, for a compiler that runs it on as many devices, numbered as the
 * ranks are. @main takes the number of its rank, tensor<i32>, and the rank's shards of the arguments, and gives its shards
 * of the results; collectives are those of StableHLO. Passes are not applied. SF_EUNSUPPORTED where ranks have different
 * programs: pipelines and uneven partitions. */
SF_API sf_status sf_plan_save_stablehlo(const sf_plan *plan, const sf_graph *graph,
                                        const sf_output *output, sf_diag *diag);

/* Checks, without running anything, that the plan computes the step: see docs/guides/split-by-hand.md. `memory` is
 * the most bytes that a rank may take, 0 for no limit. SF_EMISMATCH names the tensor and the pin. */
SF_API sf_status sf_plan_check(const sf_plan *plan, const sf_graph *graph, int64_t memory,
                               sf_diag *diag);

/* The step at dimensions as small as they can be, and the plan for it, so that a large step runs on
 * a small machine: the ops, the shards and the collectives are the same, the numbers are not.
 * *about, which lives as long as *small, lists the reduced dimensions. */
SF_API sf_status sf_plan_shrink(const sf_plan *plan, const sf_graph *graph, sf_diag *diag,
                                sf_graph **small, sf_plan **small_plan, const char **about);

/* Writes a summary of the plan: shards of the state, collectives of a step, memory of a rank. */
SF_API sf_status sf_plan_show(const sf_plan *plan, const sf_graph *graph,
                              const sf_show_options *options, const sf_output *output,
                              sf_diag *diag);

/* How many processes mpirun, or the like, started with this one among them; 0: it did not. */
SF_API int sf_ranks_started(void);

/* For such processes, which all call it: SF_OK when all of them have SF_OK. Else all get the status of the
 * first that failed, and it alone keeps its messages. `limit` as for sf_train. In another program it is
 * `mine`. */
SF_API sf_status sf_ranks_agree(sf_status mine, double limit, sf_diag *diag);

/* The recipes, by number: their names and half a sentence about each; NULL past the last. */
SF_API const char *sf_recipe_name(int index);
SF_API const char *sf_recipe_about(int index);

#ifdef __cplusplus
}
#endif

#endif
