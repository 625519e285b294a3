/* The plan: how a step is split, as data.
 *
 * A plan says for every node of the step which layouts its operands must have and which its results
 * have. Everything else follows: a value whose layout differs from what a node wants is resharded on
 * the way (shard/reshard.h), and every rank derives its own program from the plan and its number
 * (local/local.h). The layout of a state result is that of the argument it becomes.
 *
 * Beside space it may say something about time: which nodes of the forward pass are computed again, so that their
 * results need not be kept for the backward pass (plan/recompute_clone.h); into how many turns the batch is cut, one behind
 * the other (local/time/microbatches.h); and which groups of ranks run which stages of it, and when (plan/pipeline/pipeline.h).
 *
 * The file is JSON for people: mesh, pins, layouts of arguments by name, and the layouts of nodes, those
 * that are replicated throughout left out. It names the hash of its step and refuses another.
 */
#ifndef SF_PLAN_PLAN_H
#define SF_PLAN_PLAN_H

#include "base/json.h"
#include "ir/graph.h"
#include "plan/pipeline/pipeline.h"
#include "shard/layout.h"
#include "sheaf/plan.h"

/* A pin, "PATTERN=SHARE@AXIS": see plan/pin.h. */
enum { SF_ANY_AXIS = -1 };
typedef struct sf_pin {
    const char *text; /* as it was written */
    const char *pattern;
    int axis;       /* or SF_ANY_AXIS: "*" */
    bool forbids;   /* "!": the share, a split, must not be */
    sf_share share; /* period 0: the default, see shard/layout.h */
} sf_pin;

/* What else a search looked at. */
typedef struct sf_alternative {
    const char *name; /* of a recipe, or "search" */
    const char *mesh; /* "data=2,model=4" */
    double seconds;
    int64_t memory;
    bool fits;
    bool lowered; /* priced by its program; else an estimate */
} sf_alternative;

/* Devices of the cluster that a plan leaves idle. */
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
    int64_t memory; /* bytes of a device that there are; 0: what devices of the cluster have */
    bool may_load;  /* who named them may name files; not kept in a plan file */
} sf_plan_passes;

/* What a search expects of the plan on its cluster (search/price/price.h), in seconds and bytes. */
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
    /* What its programs said when it was priced (search/price/price.h), in the arena of the plan; NULL: it was read from a file. */
    const struct sf_full_price *simulated;
} sf_prediction;

/* What is cut in turns inside of each rank, beside the batch. */
typedef struct sf_co_shard {
    const char *
        by; /* the recipe of one axis, or the choice of factors (plan/op_selector.h), that says what */
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
    sf_layout *results;   /* by result of the step: what it is returned as */
    sf_layout *
        *nodes;  /* by node id: operands, then results; inside of regions NULL, but for what turns
                                 hold (local/time/microbatches.h) */
    int *pinned; /* by value of the step: the first pin that matches it, or -1 */
    const char *recompute; /* how `again` was chosen (plan/recompute_policy.h), or "" */
    bool *recomputed;      /* by node: it is computed again for later phases; NULL: none is */
    bool *
        recomputed_per_part; /* by node, of those: and again for its own part of a layer (plan/recompute_clone.h); NULL: none is */
    int micro_batches;       /* turns that the batch is cut into; 0 or 1: none */
    int nco_shards;
    sf_co_shard *
        co_shards; /* what of the rest is cut in turns, inside of those of the batch (plan/co_shard.h) */
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

/* The same for a graph that stands for the step of that hash. */
sf_plan *sf_plan_of(const sf_graph *graph, const sf_mesh *mesh, uint64_t hash);

/* The same layouts, and the same in time; pins, recipe and prediction stay behind. */
sf_plan *sf_plan_copy(const sf_plan *plan, const sf_graph *graph);

/* In how many turns the one is, and by which passes it is rewritten, the other is as well. */
void sf_plan_copy_microbatches(const sf_plan *from, sf_plan *to);

/* Scopes whose loops are compiled, a line each, or NULL; copied. */
void sf_plan_set_compiled(sf_plan *plan, const char *scopes);

/* Which kernels and compiled loops programs have. */
void sf_plan_copy_loops(const sf_plan *from, sf_plan *to);

/* Says to a graph that is made for the plan which kernels and compiled loops its program has. */
void sf_plan_apply_loops(const sf_plan *plan, sf_graph *graph);

/* What the one computes again, the other does as well; both are for the graph. */
void sf_plan_copy_recompute(const sf_plan *from, const sf_graph *graph, sf_plan *to);

/* Has the programs of the plan rewritten; what is said is copied. */
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

/* Groups of a pipeline stand along the axis. */
bool sf_plan_pipes(const sf_plan *plan, int axis);

/* SF_EUSAGE where the plan is for another step. Hashes the graph. */
sf_status sf_plan_expect(const sf_plan *plan, const sf_graph *graph, sf_diag *diag);

/* The layout that a value is made with. */
const sf_layout *sf_plan_layout(const sf_plan *plan, const sf_graph *graph, sf_value value);

/* JSON. `file` is where it goes, "-" for standard output: from there, step and cluster are found again. NULL: where they
 * are is left out, so that equal plans have equal texts. */
void sf_plan_write(const sf_plan *plan, const sf_graph *graph, const char *file, sf_buf *out);

/* Reading checks everything that can be checked without the op table: names, numbers of operands, that layouts fit
 * shapes, and the hash of the step. */
sf_status sf_plan_read(sf_str text, const char *file, const sf_graph *graph, sf_diag *diag,
                       sf_plan **out);

/* Whether a tree is a plan at all, and of a version that is known. */
/* SF_EUSAGE, with what to do, where the text is that of a step. */
sf_status sf_plan_refuse_step(sf_str text, const char *file, sf_diag *diag);

sf_status sf_plan_read_format(const sf_json *root, const char *file, sf_diag *diag);

#endif
