/* A summary of a step: arguments, results, and costs by op, phase and scope.
 *
 * Costs are those of the op table, of every op by itself: nothing is fused, so `bytes` is the sum
 * of the bytes that ops read and write. Each node counts once, in one op kind, one phase and one
 * scope; so ops, phases and the root scope all add up to the total. The body of a loop costs as
 * often as it runs; where the trip count is not known it counts once, and `sf_cost.unknown_trips`
 * marks it. Every branch of a `case` counts. */
#ifndef SF_REPORT_SUMMARY_H
#define SF_REPORT_SUMMARY_H

#include "ir/graph.h"

typedef struct sf_cost {
    int64_t nodes;
    double flops, bytes;
    bool unknown_trips; /* has nodes of a loop with an unknown trip count, counted once */
} sf_cost;

typedef struct sf_op_cost {
    const sf_opdef *def;
    sf_cost cost;
} sf_op_cost;

/* Tensors by role, and its source. Sums stop at INT64_MAX. */
typedef struct sf_role_total {
    int64_t count, elements, bytes;
    int64_t from[SF_SOURCE_COUNT];
} sf_role_total;

/* A scope with all below it. */
typedef struct sf_scope_cost {
    const sf_scope *scope;
    uint32_t parent;               /* entry of sf_summary.scopes; its own for the root */
    uint32_t end;                  /* the entry after the last one below this */
    sf_cost own, all;              /* without and with the scopes below */
    double phases[SF_PHASE_COUNT]; /* flops of `all` */
    int64_t parameters;            /* elements of parameters that are at home here or below */
} sf_scope_cost;

/* What was found out of the step, how often by which source. */
typedef enum sf_finding {
    SF_FOUND_ROLES,
    SF_FOUND_STATE,
    SF_FOUND_LOSS,
    SF_FOUND_PHASES,
    SF_FOUND_SCOPES,
    SF_FOUND_TRIPS, /* of loops that stayed; SF_FROM_NOTHING: not known */
    SF_FINDING_COUNT
} sf_finding;
const char *sf_finding_name(sf_finding finding);

/* "sidecar"; what the user said goes by the option. */
const char *sf_finding_source(sf_finding finding, sf_source source);

typedef struct sf_summary {
    sf_arena arena;
    const sf_graph *graph; /* borrowed */
    const char *file;      /* borrowed, or NULL */
    uint64_t hash;
    sf_cost total;
    sf_cost phases[SF_PHASE_COUNT];
    sf_op_cost *ops; /* most flops first, then most bytes, then by name */
    uint32_t nops;
    sf_role_total roles[SF_ROLE_COUNT];
    sf_role_total arguments, results; /* `from` of these is empty */
    uint32_t *largest;                /* argument numbers, most bytes first, then in order */
    uint32_t *becomes;                /* by result: the argument it becomes next, or SF_NONE */
    int64_t links;
    int64_t found[SF_FINDING_COUNT][SF_SOURCE_COUNT];
    uint32_t loss;         /* result, or SF_NONE */
    sf_scope_cost *scopes; /* a scope before those below it; siblings in order of the step, numbered
                               ones together. The first is the root */
    uint32_t nscopes;
    int64_t loops, branches; /* `while` and `case` nodes that stayed */
    sf_cost recomputed;      /* recompute in the text, counted once in `total`, */
    const sf_scope *
        *recomputed_in; /* and the outermost scopes that it is in, in order of the step */
    uint32_t nrecomputed_in;
} sf_summary;

/* The graph outlives the summary. */
void sf_summarize(const sf_graph *graph, const char *file, sf_summary *out);
void sf_summary_free(sf_summary *summary);

/* For summary.c: the scope tree from the costs of nodes (by node id; nodes == 0 where not counted),
 * with each parameter in the scope where it is at home. */
void sf_summarize_scopes(sf_summary *summary, const sf_cost *costs);

/* Orders names of scopes. With `numbers`, as people do: layer_2 before layer_10. Without, numbers
 * are ignored, and 0 means that the names are of one family: s0b1_conv and s2b0_conv. */
int sf_compare_names(const char *a, const char *b, bool numbers);

void sf_cost_add(sf_cost *to, const sf_cost *more);

/* Adds; stops at INT64_MAX. */
void sf_add_limited(int64_t *to, int64_t more);

#endif
