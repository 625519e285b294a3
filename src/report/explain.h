/* What a plan costs on a cluster, computed once, for text and for JSON. */
#ifndef SF_REPORT_EXPLAIN_H
#define SF_REPORT_EXPLAIN_H

#include "plan/pin.h"
#include "plan/price.h"
#include "report/table.h"
#include "sheaf/plan.h"

/* Collectives of one kind along the same axes in one phase. */
typedef struct sf_explained_moves {
    sf_move_kind kind;
    sf_axes axes;
    sf_phase phase;
    int64_t count;
    double bytes, seconds, exposed;
} sf_explained_moves;

typedef struct sf_explanation {
    const sf_plan *plan;
    const sf_graph *graph;
    const sf_cluster *cluster;
    sf_show_options options;
    sf_diag *diag;
    sf_arena arena;
    sf_efforts *efforts;
    sf_costs *costs;
    sf_price price;
    size_t nmoves, move_capacity;
    sf_priced_move *moves; /* in the order of the step */
    size_t nkinds, kind_capacity;
    sf_explained_moves *kinds;
} sf_explanation;

/* All of the step. */
void sf_explain_text(sf_explanation *e, sf_buf *out);
void sf_explain_json(sf_explanation *e, sf_buf *out);

/* What the pattern matches; SF_EUSAGE when that is nothing. */
sf_status sf_explain_what(sf_explanation *e, const char *what, sf_buf *out);

#endif
