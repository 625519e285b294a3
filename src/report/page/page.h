/* The page of a plan: all that `sheaf report` shows, computed once, for the page and for JSON.
 *
 *     page.c          opens a plan, fills in all other parts, writes one of the two
 *     page_words.c    the plan in common terms: dp 4, tp 8, ZeRO-1
 *     page_spans.c    the timeline, and the memory in use over time
 *     page_traffic.c  traffic between ranks
 *     page_scopes.c   the modules of the step: layouts, flops, time and memory
 *     page_others.c   the plan with other recompute and micro-batches, and recipes
 *     page_json.c     the data
 *     page_html.c     the page around it: embedded plain files
 *
 * Ranks with equal programs are one group. A plan without stages has one group; each pipeline rank
 * is one. A measured run is a group of its own. */
#ifndef SF_REPORT_PAGE_H
#define SF_REPORT_PAGE_H

#include "base/thread_pool.h"
#include "report/report_sim.h"
#include "report/summary.h"

/* One instruction, or several short ones, on a stream. */
typedef struct sf_page_span {
    uint32_t stream; /* of the group */
    double start, length;
    const char *name, *scope; /* of the longest */
    sf_phase phase;
    sf_inst_kind kind;
    double bytes, exposed; /* of collectives */
    int64_t count;         /* instructions */
} sf_page_span;

/* The memory in use from a time on. */
typedef struct sf_page_held {
    double at;
    double bytes[SF_MEMORY_KIND_COUNT];
} sf_page_held;

typedef struct sf_rank_group {
    const char *name;
    int first, count; /* ranks */
    uint32_t nstages; /* of a pipeline */
    const uint32_t *stages;
    bool measured;
    sf_stream *streams; /* the first is that of compute */
    size_t nstreams, stream_capacity;
    sf_page_span *spans; /* by stream, then in time */
    size_t nspans, span_capacity;
    sf_page_held *held; /* in time; none where it was not simulated */
    size_t nheld, held_capacity;
} sf_rank_group;

/* Bytes of a step from the ranks of a row to those of a column. */
typedef struct sf_page_traffic {
    int nrows, per_row;     /* ranks of a row */
    bool hosts;             /* a row is a host */
    double *bytes;          /* by row, then column */
    int8_t *levels;         /* likewise: the outmost link on the way, -1 where nothing is sent */
    double sent[SF_LEVELS]; /* by the rank that sends most, over links of a level */
} sf_page_traffic;

/* A parameter, as its scope shows it. */
typedef struct sf_page_tensor {
    const char *name, *type;
    const char *layout, *gradient, *state; /* "" where there is none */
    double bytes;                          /* of a rank: with the state of the optimizer */
} sf_page_tensor;

/* Entries are those of sf_summary.scopes; sums are with all below. */
typedef struct sf_page_scope {
    double seconds, waits; /* of a rank: compute, and waits for collectives */
    double held;           /* bytes of a rank at the peak */
    const char *made;      /* type and layout of the largest that its forward pass makes, or "" */
    sf_page_tensor *tensors;
    size_t ntensors, capacity;
} sf_page_scope;

/* Another plan, simulated on the same cluster. */
typedef struct sf_page_other {
    const char *name;      /* of a recipe, or "" */
    const char *recompute; /* of the frontier, or "" */
    int micro_batches;
    char mesh[128];
    double seconds;
    int64_t memory;
    bool fits, exact, chosen; /* exact: by its program; chosen: that is the plan */
    sf_status status;         /* not SF_OK: it cannot be, and `why` */
    char why[200];
} sf_page_other;

typedef struct sf_page {
    sf_sim_report sim;
    const char *title;
    sf_summary summary;
    const char **words; /* "dp 4" */
    size_t nwords, word_capacity;
    const char *made_by; /* "the search", "recipe zero1" */
    const char *peak;    /* the instruction at the peak */
    double bound;        /* seconds */
    double repeated;     /* share of compute that is replicated */
    int64_t limit;       /* bytes of a rank */
    sf_simulated_reshard *reshards;
    size_t nreshards, move_capacity;
    sf_rank_group *groups;
    size_t ngroups, group_capacity;
    sf_page_traffic traffic;
    sf_page_scope *scopes;
    sf_page_other *frontier, *recipes;
    size_t nfrontier, nrecipes;
    const char *recipes_from; /* where they come from, a sentence */
    sf_threads *threads;
    sf_diag *diag;
} sf_page;

void sf_page_find_words(sf_page *page);
void sf_page_find_spans(sf_page *page);
void sf_page_find_traffic(sf_page *page);
sf_status sf_page_find_scopes(sf_page *page);
sf_status sf_page_find_others(sf_page *page);

/* The printable form of a foreign text (base/str.h), in the page's arena. */
const char *sf_page_shown(sf_page *page, const char *text);

/* A layout as people write it; in the page's arena. */
const char *sf_page_layout(sf_page *page, sf_value value, const sf_layout *layout);

/* "compute", "along data". */
const char *sf_page_stream(sf_page *page, const sf_stream *stream);

void sf_page_json(sf_page *page, bool indent, sf_buf *out);

#endif
