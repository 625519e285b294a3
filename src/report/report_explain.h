/* The costs of a plan on a cluster, computed once, for text and for JSON.
 *
 *     report_explain.c        simulates the plan, then one of
 *     explain_all.c    all of the step
 *     explain_what.c   some of its tensors, with
 *     explain_other.c  the costs of other layouts of them
 *     explain_gathers.c  why gathers of them are at their places, after passes
 *     explain_words.c  words for all of these */
#ifndef SF_REPORT_REPORT_EXPLAIN_H
#define SF_REPORT_REPORT_EXPLAIN_H

#include "plan/json/prediction_json.h"
#include "plan/pin.h"
#include "report/table.h"
#include "search/price/node_work.h"
#include "search/price/price.h"
#include "sheaf/plan.h"
#include "sim/step_bound.h"

/* Collectives of one kind along the same axes in one phase. */
typedef struct sf_explained_reshards {
    sf_reshard_kind kind;
    sf_axes axes;
    sf_phase phase;
    int64_t count;
    double bytes, seconds, exposed;
} sf_explained_reshards;

typedef struct sf_explanation {
    const sf_plan *plan;
    const sf_graph *graph;
    const sf_cluster *cluster;
    sf_show_options options;
    sf_diag *diag;
    sf_arena arena;
    sf_efforts *efforts;
    sf_costs *costs;
    const sf_target *target;
    const sf_full_price *simulated;
    /* Seconds that no plan on these devices is below, nor one without stages; found here, whatever the plan's file says. */
    sf_step_bound bound;
    size_t nkinds, kind_capacity;
    sf_explained_reshards *kinds;
} sf_explanation;

/* The cluster of the plan, if that is another one; else NULL. And a layout as text. */
const char *sf_explain_made_for(const sf_explanation *e);
const char *sf_explain_layout(sf_explanation *e, sf_value value, const sf_layout *layout);

/* Where the peak of memory is. */
const char *sf_explain_peak(sf_explanation *e);

/* All of the step. */
void sf_explain_text(sf_explanation *e, sf_buf *out);
void sf_explain_json(sf_explanation *e, sf_buf *out);

/* The tensors and scopes that the pattern matches, as text or JSON; SF_EUSAGE without a match. */
sf_status sf_explain_what(sf_explanation *e, const char *what, sf_buf *out);

/* Another layout of a tensor, and of similar ones, and the step time with all others chosen for
 * it. */
typedef struct sf_other_layout {
    sf_value value;
    const char *layout;
    double seconds;
    int64_t memory;
} sf_other_layout;

/* None for a plan in stages: estimates know no groups. Of up to four arguments and gradients among the values and of two that products make, or else of another,
 * along each axis; in the arena, the fastest of each first. */
sf_status sf_explain_others(sf_explanation *e, size_t count, const sf_value *values,
                            size_t *nothers, sf_other_layout **out);

/* A gather of an argument that is split, after the passes of the plan. Instructions are those of
 * the program, or of the body of the loop that it is in. */
typedef struct sf_explained_gather {
    uint32_t argument;
    uint32_t inst, reader; /* the first to read it; SF_NONE: nobody there does */
    bool in_loop;
    double seconds, exposed;
    const char *read_by; /* its scope */
    const char *why;     /* why it is there, and not earlier */
} sf_explained_gather;

/* Those of the arguments that are wanted, in the order of the program; none where the plan has no passes. In the arena of e. */
sf_status sf_explain_gathers(sf_explanation *e, const bool *is_wanted, size_t *count,
                             sf_explained_gather **out);

#endif
