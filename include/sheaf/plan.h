/* Plans: how a step is split over ranks. */
#ifndef SHEAF_PLAN_H
#define SHEAF_PLAN_H

#include "sheaf/cluster.h"
#include "sheaf/graph.h"
#include "sheaf/report.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sf_plan sf_plan;

/* What a person says about a split; docs/splitting.md describes meshes, pins and recipes. */
typedef struct sf_pin_options {
    size_t size;             /* of this struct, or 0: see sheaf.h */
    const char *mesh;        /* "data=2,model=4"; NULL with a recipe: one of `ranks` ranks */
    const char *recipe;      /* "dp", "megatron", "2d+zero1", ...; NULL: none */
    int ranks;               /* 0: those of the mesh */
    const char *const *pins; /* "PATTERN=SHARE@AXIS"; stronger than those of the recipe */
    int npins;
    /* What of the forward pass is computed again rather than kept for the backward pass: "none", "layer", "parts", "cheap",
     * "full", or scopes, "layer_?/attn,head"; docs/time.md describes it. NULL, "text": what the text computes again. */
    const char *recompute;
    int micro_batches; /* turns that the batch is cut into, whose gradients are added up; 0, 1: none */
    /* Heads and features in turns, inside of each rank: so many, by a recipe of one axis; NULL: megatron. 0, 1: none. Or a list
     * by scopes, "4@layer_0,sequence:2", with numbers of its own: then this is 2. */
    const char *co_shard;
    int co_shards;
    /* A pipeline: "4" stages, or the scopes that begin all but the first of them, "layer_3,layer_6"; NULL: none. Its schedule
     * is a name, "1f1b", or a file with a table of tasks; NULL: 1f1b. The groups of devices that run the stages stand along
     * an axis "pipe", which a mesh that is given has, and `ranks` counts. docs/pipelines.md describes it. */
    const char *stages, *schedule;
    /* "full": all state in pieces, gathered when it is needed: the recipe with zero3, which is the recipe where there is none,
     * and the passes SF_FULL_STATE_PASSES (sheaf/pass.h). "between": parameters are in pieces between steps, for zero1 and
     * zero2: what a step's updates make is gathered in the next one's forward pass, by SF_BETWEEN_PASSES. NULL, "auto": as the
     * recipe says. */
    const char *shard_state;
} sf_pin_options;

/* Makes a plan from pins: what is pinned is fixed, the rest follows. *out is for sf_plan_free. A recipe
 * that does not apply to the step is SF_EMISMATCH, with the reason. */
SF_API sf_status sf_pin_step(const sf_graph *graph, const sf_pin_options *options, sf_diag *diag,
                             sf_plan **out);

/* Writes the names that pins go by, a line each, with the type: of arguments, gradients and scopes. */
SF_API sf_status sf_pin_names(const sf_graph *graph, const sf_output *output, sf_diag *diag);

/* The default margin. Prices are not exact to that. */
#define SF_PLAN_MARGIN 0.01

/* What to search for a plan with; docs/planning.md describes how. */
typedef struct sf_plan_options {
    size_t size; /* of this struct, or 0: see sheaf.h */
    const sf_cluster *cluster;
    const char *mesh; /* the only one to try, "data=2,model=4"; NULL: all that suit the cluster */
    /* What must hold, as above. Without a mesh, those are tried that have the axes that pins name. */
    const char *const *pins;
    int npins;
    int64_t memory; /* most bytes of a rank; 0: what the devices have */
    /* Share by which a searched plan must be faster than the fastest recipe that fits to be taken; 0:
     * SF_PLAN_MARGIN, negative: the fastest is taken. */
    double margin;
    int level; /* 2: fewer meshes, faster; 3: all; 0: 3 */
    double
        seconds; /* of the call: stop improving then; 0: no limit. Recipes are looked at in any case. With a limit,
                       the answer may differ between runs */
    bool recipes; /* look at recipes alone */
    /* As above, for all plans; "auto": as little as makes a plan fit that is then the fastest; NULL: what the text
     * computes again where that fits, else as "auto". */
    const char *recompute;
    int micro_batches; /* 0: as few as that needs; 1: none */
    int threads;       /* 0: as many as the process may use */
    /* Kept in the plan, for sf_plan_origin_of; or NULL. The file is that of a graph that was given as text: others know
     * theirs. */
    const char *step_file, *cluster_name;
    /* For the reason when nothing fits: JSON, docs/cli.md has the keys. NULL: it is not written. */
    const sf_output *misfit;
    sf_listener *listener; /* told now and then, on the thread of the caller; or NULL */
    void *context;         /* for the listener */
    const char *co_shard;  /* as above, for all plans */
    int co_shards;         /* 0: as few as make a plan fit that is then the fastest; 1: none */
    /* A pipeline of so many stages; 0: of as many as are good, or none; 1: none. And its schedule, "1f1b"; NULL: any. */
    int stages;
    const char *schedule;
    /* Passes that rewrite the programs of plans (sheaf/pass.h), which are priced behind them and keep them; NULL: none. */
    const char *passes;
    /* "full", "between": as above, of plans that have zero3, or zero1-between, in their recipe alone. NULL, "auto": whatever
     * is fastest. */
    const char *shard_state;
    /* A pipeline whose stages but the first begin with these scopes, "layer_3,layer_6"; NULL: wherever it is good. */
    const char *stage_scopes;
} sf_plan_options;

/* Finds the plan that takes the least time on the cluster, but for the margin, of those that fit in its
 * memory, by the prices of docs/planning.md. It has been checked as by sf_plan_check, on some of its ranks.
 * *out is for sf_plan_free, NULL after a failure. Pins that cannot hold: SF_EUSAGE. When nothing fits: SF_EMISMATCH;
 * the message says what is the least that a rank needs, where, and what would make it fit. */
SF_API sf_status sf_plan_search(const sf_graph *graph, const sf_plan_options *options,
                                sf_diag *diag, sf_plan **out);

/* Writes what the plan, which sf_plan_check has passed, costs on the cluster: time, memory by kind, collectives,
 * and the alternatives that the search saw, if it saw them for this cluster. `what` NULL: all of the step;
 * else the tensors and scopes that it matches, as the pattern of a pin does: their layouts, their moves and,
 * for an argument, what other layouts of it would cost. */
SF_API sf_status sf_plan_explain(const sf_plan *plan, const sf_graph *graph,
                                 const sf_cluster *cluster, const char *what,
                                 const sf_show_options *options, const sf_output *output,
                                 sf_diag *diag);

typedef struct sf_sim_options {
    size_t size; /* of this struct, or 0: see sheaf.h */
    /* Where to write the timeline, for Perfetto and chrome://tracing: a process for each rank, a track for each stream,
     * memory as a counter. NULL: it is not written. */
    const sf_output *trace;
    int ranks;           /* most ranks in the timeline, which all do the same; 0: 1 */
    const char *against; /* a timeline of the same plan, from a run: both side by side; or NULL */
} sf_sim_options;

/* Simulates the program that the ranks of the plan run, on the cluster, and writes where the time of a step goes: what
 * is computed, what is waited for, over which links, and the memory. `options` and `show` may be NULL. */
SF_API sf_status sf_plan_simulate(const sf_plan *plan, const sf_graph *graph,
                                  const sf_cluster *cluster, const sf_sim_options *options,
                                  const sf_show_options *show, const sf_output *output,
                                  sf_diag *diag);

typedef struct sf_report_options {
    size_t size;         /* of this struct, or 0: see sheaf.h */
    const char *title;   /* NULL: the name of the step */
    const char *against; /* a timeline of the same plan, from a run: both side by side; or NULL */
    bool json;           /* only the data: docs/report.md has its keys */
    int threads;         /* 0: as many as the process may use */
} sf_report_options;

/* Writes a page about the plan, as it runs on the cluster: one file of HTML that needs nothing else. It has the plan in
 * words, the timeline of a rank and its memory, who sends how much to whom, costs and layouts by module, what the plan
 * would take with other recompute and micro-batches, and what recipes take. `options` may be NULL. */
SF_API sf_status sf_plan_report(const sf_plan *plan, const sf_graph *graph,
                                const sf_cluster *cluster, const sf_report_options *options,
                                const sf_output *output, sf_diag *diag);

/* What a plan was made from: the file of the step, and the cluster as sf_cluster_open takes it; "" where the plan does
 * not say. A file is looked for where it was beside the plan, then where it was: the one that is there, and of two the
 * one that is unchanged. Where there is none, it is the path that it had. SF_EINPUT for what is no plan. */
typedef struct sf_plan_origin {
    char step[4096], cluster[4096];
} sf_plan_origin;
SF_API sf_status sf_plan_origin_of(const char *path, sf_diag *diag, sf_plan_origin *out);

/* Reads the step of a plan: the file `step`, or, for NULL, the one that the plan was made from. It is read as it was
 * then: which loops were unrolled, and what was said of its state and roles; but `options`, which may be NULL, come
 * first. */
SF_API sf_status sf_plan_load_step(const char *plan, const char *step,
                                   const sf_load_options *options, sf_diag *diag, sf_graph **out);

/* Writes in what two plans of this step differ; they are called by those names. */
SF_API sf_status sf_plan_diff(const sf_graph *graph, const sf_plan *left, const sf_plan *right,
                              const char *left_name, const char *right_name,
                              const sf_show_options *options, const sf_output *output,
                              sf_diag *diag);

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

/* How an argument stands on the mesh, as docs/splitting.md writes it: "[R, S(0)]". Goes to `text`, which is returned, cut
 * off where it is longer (rows of stacked layers on many groups); NULL when there is no such argument, or no memory. */
enum { SF_LAYOUT_TEXT = 160 };
SF_API const char *sf_plan_argument_layout(const sf_plan *plan, const sf_graph *graph, int argument,
                                           char text[SF_LAYOUT_TEXT]);

/* A box of a tensor: so many indices of each dimension, from an offset on. This struct will not grow. */
typedef struct sf_box {
    int rank; /* how many dimensions */
    int64_t offset[SF_TENSOR_DIMS], extent[SF_TENSOR_DIMS];
} sf_box;

/* What a rank holds of an argument: boxes, all of one extent. It is one, unless the split is strided. The piece is a
 * row-major tensor whose indices along a dimension are those of the boxes, one after the other; box `index` counts
 * row-major over the dimensions, as elements do. sf_plan_boxes is how many there are, 0 when there is no such argument
 * or rank; sf_plan_box is false for one that is not there. */
SF_API int64_t sf_plan_boxes(const sf_plan *plan, const sf_graph *graph, int argument, int rank);
SF_API bool sf_plan_box(const sf_plan *plan, const sf_graph *graph, int argument, int rank,
                        int64_t index, sf_box *out);

/* Checks, without running anything, that the plan computes the step: see docs/splitting.md. `memory` is
 * the most bytes that a rank may take, 0 for no limit. SF_EMISMATCH names the tensor and the pin. */
SF_API sf_status sf_plan_check(const sf_plan *plan, const sf_graph *graph, int64_t memory,
                               sf_diag *diag);

/* The step at dimensions as small as they can be, and the plan for it, so that a large step can be run
 * where it does not fit: the ops, the pieces and the collectives are the same, the numbers are not.
 * *about, which lives as long as *small, says what was shrunk. */
SF_API sf_status sf_plan_shrink(const sf_plan *plan, const sf_graph *graph, sf_diag *diag,
                                sf_graph **small, sf_plan **small_plan, const char **about);

/* Writes what the plan does: pieces of the state, collectives of a step, memory of a rank. */
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
