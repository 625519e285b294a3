/* Within api/: a list of primitives, the meaning of each, and the rules that it passed.
 *
 *     primitive --(api/primitives.c)--> entry --(api/primitive_rules.c)--> kept --(api/primitive_plan.c)--> plan
 *
 * api/primitive_modules.c finds the modules and parameters that an entry can mean.
 *
 * An entry means modules and parameters, found when it was added. The pins and lists of scopes of a
 * plan are written from the entries for each plan. */
#ifndef SF_API_PRIMITIVES_H
#define SF_API_PRIMITIVES_H

#include "plan/plan.h"
#include "sheaf/primitive.h"

typedef struct sf_strings {
    size_t count, capacity;
    const char **at;
} sf_strings;

/* A parameter: its clean name, and that without "params/", by which modules find it. */
typedef struct sf_parameter {
    uint32_t argument;
    const char *name, *path;
} sf_parameter;

typedef struct sf_entry {
    int number; /* it is undone by */
    sf_primitive said;
    size_t nmodules;
    const char **modules;
    size_t nparams;
    const sf_parameter **params;
    const char *text;
    sf_graph *made; /* REPLACE: the step after it, or NULL; then also the modules before it */
    size_t nmodules_before;
    const char **modules_before;
} sf_entry;

/* Ops that were found, of one graph. */
typedef struct sf_subgraph {
    const sf_graph *graph; /* NULL: it is gone */
    int nnodes, ninputs, noutputs;
    uint32_t *nodes; /* in the order of the graph */
    sf_value *inputs, *outputs;
    const sf_scope *scope; /* that all of them are in */
    const char *module;    /* that they are all of, or NULL */
} sf_subgraph;

struct sf_primitives {
    sf_arena arena;
    const sf_graph *base;  /* the step that it is of */
    const sf_graph *graph; /* the same after the last REPLACE */
    size_t nmodules;
    const char **modules; /* in the order of the step */
    size_t nsubgraphs, subgraph_capacity;
    sf_subgraph *subgraphs;
    size_t nparams;
    sf_parameter *params;
    size_t nentries, capacity;
    sf_entry *entries;
    int made;         /* entries in all, also those that were undone */
    int held;         /* > 0: a callback runs, and the step must not change */
    const char *file; /* the file of the current primitive, if it has none itself; or NULL */
    int line;
};

/* Modules and parameters, as the public functions of these names find them. In the arena. */
const char **sf_match_modules(const sf_primitives *list, const char *pattern, sf_arena *arena,
                              size_t *count);
const sf_parameter **sf_match_params(const sf_primitives *list, size_t nmodules,
                                     const char *const *modules, const char *pattern,
                                     sf_arena *arena, size_t *count);

/* Whether the path is that of the module, or of one below it. */
bool sf_is_in_module(const char *path, const char *module);

/* Whether ops of the forward pass are in the module. */
bool sf_module_computes(const sf_primitives *list, const char *module);

/* The modules of the graph that it has now. */
void sf_list_modules(sf_primitives *list);

/* The subgraphs of a primitive are there, and of the step as it is. */
sf_status sf_check_subgraphs(const sf_primitives *list, const sf_primitive *said, sf_diag *diag);

/* The trace that makes a module around this one a leaf; or NULL. */
const sf_entry *sf_find_leaf_around(const sf_primitives *list, const char *module);

/* A loop of the step, not unrolled, that contains the ops of the path; or NULL. */
const sf_node *sf_find_loop_around(const sf_primitives *list, const char *path);
sf_status sf_fail_in_loop(const sf_primitive *said, const char *path, const sf_node *loop,
                          sf_diag *diag);

/* Reports partial sums without a sync: a warning or, of a strict schedule, SF_EMISMATCH. */
sf_status sf_check_syncs(const sf_primitives *list, const sf_plan *plan, sf_diag *diag);

/* Makes the step with the entry's replacement. */
sf_status sf_replace(const sf_primitives *list, sf_entry *entry, sf_diag *diag);

/* The kernel that the entry names is found in each of its modules. */
sf_status sf_check_kernel(const sf_primitives *list, const sf_entry *entry, sf_diag *diag);

/* Primitives of a space: whether one is, whether there is one, the rules for the entry, and the
 * plan. */
bool sf_is_of_space(sf_primitive_kind kind);
bool sf_has_space(const sf_primitives *list);
sf_status sf_check_space(const sf_primitives *list, const sf_entry *entry, sf_diag *diag);
sf_status sf_pin_space(const sf_primitives *list, const sf_plan_spec *spec, sf_diag *diag,
                       sf_plan **out);
/* The fastest plan of a space that fits, over its open choices; with its predicted costs. */
sf_status sf_search_space(const sf_primitives *list, const sf_plan_spec *spec,
                          const sf_plan_options *options, sf_diag *diag, sf_plan **out);
void sf_describe_space(const sf_primitive *said, sf_buf *out);

/* While a function is called that is asked about the step, the list is held: SF_EUSAGE for what would change it, or find in it. Holds
 * are counted. */
void sf_primitives_hold(sf_primitives *list);
void sf_primitives_release(sf_primitives *list);
sf_status sf_check_held(const sf_primitives *list, sf_loc loc, sf_diag *diag);

/* The numbers of those that come next, and of the last one, -1: none; how many there are with numbers from `first` on, below `end`. */
int sf_primitives_next(const sf_primitives *list);
int sf_primitives_last(const sf_primitives *list);
int sf_primitives_between(const sf_primitives *list, int first, int end);

/* Takes all of these back, or none. */
sf_status sf_primitives_undo_between(sf_primitives *list, int first, int end, sf_diag *diag);

/* Where the primitive is said. */
sf_loc sf_said_at(const sf_primitive *said);

/* The entry that sets something of the whole step, or NULL; and the mesh, where one is set. */
const sf_entry *sf_find_setting(const sf_primitives *list, const char *name);
bool sf_find_mesh_set(const sf_primitives *list, sf_arena *arena, sf_mesh *out);

/* The dimension of a parameter that a SHARD is along, which may count from the end. */
int sf_shard_dim(const sf_primitives *list, const sf_primitive *said, const sf_parameter *param);

/* Holds an entry to the rules, as those before it have it. */
sf_status sf_primitive_check(const sf_primitives *list, const sf_entry *entry, sf_diag *diag);

/* Records the applied primitives in the plan. */
void sf_primitives_keep(const sf_primitives *list, sf_plan *plan);

#endif
