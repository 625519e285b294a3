/* The plan: how a step is split, as data.
 *
 * A plan gives for every node of the step the layouts of its operands and of its results.
 * Everything else follows: a value whose layout differs from that of a node's operand is resharded
 * (shard/reshard.h), and every rank derives its own program from the plan and its number
 * (local/local.h). The layout of a state result is that of the argument it becomes.
 *
 * Beside space it may fix the schedule in time: the nodes of the forward pass that are recomputed,
 * so that their results need not be kept for the backward pass (plan/recompute_clone.h); the number
 * of micro-batches (local/time/microbatches.h); and the pipeline ranks that run its stages, and
 * when (plan/pipeline/pipeline.h).
 *
 * The file is JSON for people: mesh, pins, layouts of arguments by name, and the layouts of nodes, those
 * that are replicated throughout left out. It names the hash of its step and refuses another. */
#ifndef SF_PLAN_PLAN_H
#define SF_PLAN_PLAN_H

#include "base/json.h"
#include "ir/graph.h"
#include "plan/pipeline/pipeline.h"
#include "shard/layout.h"
#include "sheaf/plan.h"

/* A pin, "PATTERN=LAYOUT@AXIS": see plan/pin.h. */
enum { SF_ANY_AXIS = -1 };
typedef struct sf_pin {
    const char *text; /* as it was written */
    const char *pattern;
    int axis;     /* or SF_ANY_AXIS: "*" */
    bool forbids; /* "!": the share, a split, must not be */
    /* Period 0: the default, see shard/layout.h. The dimension may count from the end, -1 is the last: sf_pin_share. */
    sf_share share;
} sf_pin;

/* The share that the pin gives tensors of the type; with dimension SF_MAX_RANK where they have none so far from the end. */
static inline sf_share sf_pin_share(const sf_pin *pin, const sf_type *type)
{
    sf_share share = pin->share;
    if (share.kind == SF_SPLIT && share.dim < 0)
        share.dim = share.dim + type->rank >= 0 ? share.dim + type->rank : SF_MAX_RANK;
    return share;
}

/* Another candidate that a search considered. */
typedef struct sf_alternative {
    const char *name; /* of a recipe, or "search" */
    const char *mesh; /* "data=2,model=4" */
    double seconds;
    int64_t memory;
    bool fits;
    bool lowered; /* its program was simulated; else an estimate */
} sf_alternative;

/* Devices of the cluster that a plan leaves unused. */
typedef struct sf_unused_devices {
    const char *nodes; /* "1", "2-4" */
    const char *what;  /* "8 x V100-32GB-SXM2" */
    const char *why;
} sf_unused_devices;

/* How programs of the plan are rewritten (pass/pass.h). */
typedef struct sf_plan_passes {
    const char *list; /* "fsdp,prefetch", or "": they are not */
    const char *
        cluster; /* whose costs passes go by: a name, or its file as text; "": cores of a machine */
    int64_t memory; /* memory of a device, in bytes; 0: that of the cluster's devices */
    bool may_load;  /* who named them may name files; not kept in a plan file */
} sf_plan_passes;

/* The predicted costs of the plan on its cluster (search/price/price.h), in seconds and bytes. */
typedef struct sf_prediction {
    const char *step;    /* the file of a step whose graph does not know it (ir/graph.h), or "" */
    const char *cluster; /* as sf_cluster_open takes it, "" where that is not known */
    sf_reference cluster_file; /* where it is of a file */
    uint64_t cluster_hash;
    const char *nodes; /* of the cluster: those that ranks are on, in their order; "": all */
    int nunused;
    sf_unused_devices *unused; /* the others */
    double seconds, compute, exposed, hidden, traffic;
    double bound;          /* no plan on these devices takes less */
    double margin;         /* by which a searched plan had to be faster than all recipes */
    int64_t memory, limit; /* of a rank: the peak, and the most that was allowed */
    int nalternatives;
    sf_alternative *alternatives; /* the best of each recipe and mesh, the best first */
    /* The simulation of its programs (search/price/price.h), in the arena of the plan; NULL: it was
     * read from a file. */
    const struct sf_full_price *simulated;
} sf_prediction;

/* A factor other than the batch that each rank computes in chunks. */
typedef struct sf_co_shard {
    /* the recipe of one axis, or the choice of factors (plan/op_selector.h), that determines it */
    const char *by;
    const char *in; /* the scope, as patterns of pins; "": everywhere */
    int chunks;     /* 2 or more */
} sf_co_shard;

struct sf_plan {
    sf_arena arena;
    uint64_t graph;     /* hash of the step */
    const char *recipe; /* or "" */
    sf_mesh mesh;
    int npins;
    sf_pin *pins;         /* those that were obeyed, the earlier the stronger */
    int nrules;           /* the first so many are of a person: plan/pin_rules.h holds them */
    sf_layout *arguments; /* by argument of the step */
    sf_layout *results;   /* by result of the step: its layout */
    /* by node id: operands, then results; inside of regions NULL, but for loops over
     * micro-batches (local/time/microbatches.h) */
    sf_layout **nodes;
    int *pinned;           /* by value of the step: the first pin that matches it, or -1 */
    const char *recompute; /* how `recomputed` was chosen (plan/recompute_policy.h), or "" */
    bool *recomputed;      /* by node: it is recomputed for later phases; NULL: none is */
    /* by node, of those: and once more for its own part of a layer (plan/recompute_clone.h);
     * NULL: none is */
    bool *recomputed_per_part;
    int micro_batches; /* 0 or 1: the batch is not split */
    int nco_shards;
    sf_co_shard
        *co_shards; /* other factors in chunks, inside of the micro-batches (plan/co_shard.h) */
    sf_pipeline *pipeline; /* or NULL: each rank has a part in every node */
    sf_plan_passes passes;
    sf_kernel_choice kernels; /* that programs of ranks have, */
    const char *compiled;     /* and scopes of loops that are compiled, a line each; or NULL */
    sf_prediction *predicted; /* or NULL: no search made it */
    size_t nsaid, said_capacity;
    const char **said; /* the primitives of a schedule, in their order (plan/said.h) */
};

/* All replicated. */
sf_plan *sf_plan_new(const sf_graph *graph, const sf_mesh *mesh);

/* The same for a graph that is equivalent to the step of that hash. */
sf_plan *sf_plan_of(const sf_graph *graph, const sf_mesh *mesh, uint64_t hash);

/* The same layouts, micro-batches, recompute and pipeline; pins, recipe and prediction are not
 * copied. */
sf_plan *sf_plan_copy(const sf_plan *plan, const sf_graph *graph);

/* Copies the number of micro-batches, and the passes. */
void sf_plan_copy_microbatches(const sf_plan *from, sf_plan *to);

/* Scopes whose loops are compiled, a line each, or NULL; copied. */
void sf_plan_set_compiled(sf_plan *plan, const char *scopes);

/* Which kernels and compiled loops programs have. */
void sf_plan_copy_loops(const sf_plan *from, sf_plan *to);

/* Says to a graph that is made for the plan which kernels and compiled loops its program has. */
void sf_plan_apply_loops(const sf_plan *plan, sf_graph *graph);

/* Copies the choice of recomputed nodes; both are for the graph. */
void sf_plan_copy_recompute(const sf_plan *from, const sf_graph *graph, sf_plan *to);

/* Sets the passes over the programs of the plan; they are copied. */
void sf_plan_set_passes(sf_plan *plan, const sf_plan_passes *passes);

/* Puts the plan in stages along an axis of its mesh, along which nothing is split: the pipeline is that of the graph,
 * and is copied; one that the plan has is replaced. State is then in the group of its stage. */
sf_status sf_plan_set_pipeline(sf_plan *plan, const sf_graph *graph, const sf_pipeline *pipeline,
                               sf_diag *diag);

/* Says nothing of an axis any more: everything is replicated along it. */
void sf_plan_forget_axis(sf_plan *plan, const sf_graph *graph, int axis);

/* Ranks of a group run one program, but for their coordinates: how many groups there are, and the first rank of each. */
int sf_plan_groups(const sf_plan *plan);
int sf_plan_group_rank(const sf_plan *plan, int group);

/* Pipeline ranks are along the axis. */
bool sf_plan_pipes(const sf_plan *plan, int axis);

/* SF_EUSAGE where the plan is for another step. Hashes the graph. */
sf_status sf_plan_expect(const sf_plan *plan, const sf_graph *graph, sf_diag *diag);

/* The layout that a value is made with. */
const sf_layout *sf_plan_layout(const sf_plan *plan, const sf_graph *graph, sf_value value);

/* JSON. `file` is the destination, "-" for standard output: the paths of step and cluster are
 * relative to it. NULL: these are left out, so that equal plans have equal texts. */
void sf_plan_write(const sf_plan *plan, const sf_graph *graph, const char *file, sf_buf *out);

/* Reading checks everything that can be checked without the op table: names, numbers of operands, that layouts fit
 * shapes, and the hash of the step. */
sf_status sf_plan_read(sf_str text, const char *file, const sf_graph *graph, sf_diag *diag,
                       sf_plan **out);

/* Whether a tree is a plan at all, and of a version that is known. */
/* SF_EINPUT, with what to do, where the text is that of a step. */
sf_status sf_plan_refuse_step(sf_str text, const char *file, sf_diag *diag);

sf_status sf_plan_read_format(const sf_json *root, const char *file, sf_diag *diag);

#endif
