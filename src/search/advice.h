/* What to do when no plan fits: computed, not guessed. */
#ifndef SF_SEARCH_ADVICE_H
#define SF_SEARCH_ADVICE_H

#include "search/search.h"

/* The search that found nothing, and the smallest that it found, lowered. */
typedef struct sf_misfit {
    const sf_graph *graph;
    const sf_search_options *options; /* with the limit of memory */
    const sf_candidate *smallest;     /* with its plan */
} sf_misfit;

/* One thing that makes it fit.
 *
 *  - More devices of the kind. Those that would do if all of it were cut further are searched on, and twice and
 *    four times as many, until a plan fits when it is lowered.
 *  - A smaller batch, with activations in proportion; or computing activations again in the backward pass.
 *    Where that alone is not enough: with the fewest devices that make it so, if all is cut further. */
typedef enum sf_remedy_kind { SF_MORE_DEVICES, SF_SMALLER_BATCH, SF_COMPUTE_AGAIN } sf_remedy_kind;

enum { SF_REMEDIES = SF_COMPUTE_AGAIN + 1 };

typedef struct sf_remedy {
    sf_remedy_kind kind;
    int devices;
    const char *name, *mesh;    /* of the plan that was found on more devices */
    int64_t batch, whole_batch; /* the smaller one, and the one of the step */
    int64_t memory;             /* that a rank then takes, about */
} sf_remedy;

typedef struct sf_advice {
    int devices, most_devices; /* of the cluster; the most that were thought of */
    int count;
    sf_remedy remedies[SF_REMEDIES];
} sf_advice;

/* Texts are in the arena. */
void sf_advise(const sf_misfit *misfit, sf_arena *arena, sf_advice *out);

/* Adds a sentence: what a rank holds at its peak, and what makes it fit, with numbers. */
void sf_advice_text(const sf_misfit *misfit, const sf_advice *advice, sf_buf *out);

/* All of that for machines; docs/reference/cli.md has the keys. */
void sf_advice_json(const sf_misfit *misfit, const sf_advice *advice, sf_buf *out);

#endif
