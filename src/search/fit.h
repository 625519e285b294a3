/* A plan in time: as little is computed again, and as few turns are taken, as makes it fit.
 *
 * Either costs time: recompute runs twice, and turns have smaller products and send more often. So a plan
 * that fits stays as it is. Else the ways to make it fit are tried, each with its program: nodes computed again, those
 * first that take the least time for the bytes that they make, until it fits, within layers, then within 2 of them, 4 and
 * so on; the batch in micro-batches, 2, 4 and so on; heads and features in chunks; and, where nothing fits, turns with nodes
 * computed again; where nothing does, layers computed again in parts (plan/recompute_policy.h). The fastest that fits is taken. Of a large step, what cannot fit, by what the last tries saved, is not tried.
 */
#ifndef SF_SEARCH_FIT_H
#define SF_SEARCH_FIT_H

#include "search/search.h"

enum { SF_MOST_FITTED = 32, SF_MOST_DOUBLED = 31 };

/* What is known from plans that were looked at with the same options. */
typedef struct sf_fit_known {
    double worth; /* seconds from which on nobody wants to know how a plan can be made to fit */
    size_t count;
    sf_price unlimited[SF_MOST_FITTED]; /* those that do not fit, as they are */
    double fitted[SF_MOST_FITTED];      /* seconds of each as it fits; HUGE_VAL: it does not */
    bool recomputed[SF_MOST_FITTED];    /* it fits with some computed again, and not in turns */
    /* How many times as long as without them plans take in 2^n turns, at the least: of heads and features, of the batch, of both; 0: not known. */
    double slower[3][SF_MOST_DOUBLED];
} sf_fit_known;

/* Sets what the plan computes again and its turns as the options want them, and prices it. It may still not fit: then it
 * is the smallest that was seen. One that nobody wants, or that another, which *known gains, tells of, is left as it is. *runs, to be freed, also after a failure, is what was lowered for the price; of none
 * that does not fit. */
sf_status sf_fit_in_time(const sf_graph *graph, const sf_search_options *options,
                         const sf_costs *costs, sf_fit_known *known, sf_plan *plan, sf_diag *diag,
                         sf_price *out, sf_group_runs *runs);

/* Plans are priced behind the passes that are asked for, in stages or not: these say what runs. */
void sf_fit_passes(sf_plan *plan, const sf_search_options *options);

#endif
