/* What to do when no plan fits: computed, not guessed. */
#ifndef SF_API_ADVICE_H
#define SF_API_ADVICE_H

#include "plan/search.h"

/* The search that found nothing, its limit, and the least that was found. */
typedef struct sf_misfit {
    const sf_graph *graph;
    const sf_search_options *options;
    int64_t limit;
    const sf_candidate *smallest; /* with its plan */
} sf_misfit;

/* Adds a sentence: what a rank holds at its peak, and which of these make it fit, with numbers.
 *
 *  - More devices of the kind. Those that would do if all of it were cut further are searched on, and four
 *    times as many.
 *  - A smaller batch, with activations in proportion; or computing activations again in the backward pass.
 *    Where that alone is not enough: with the fewest devices that make it so, if all is cut further. */
void sf_advise(const sf_misfit *misfit, sf_buf *out);

/* "1.5 GiB"; `text` is returned. */
const char *sf_bytes_text(int64_t bytes, char text[32]);

#endif
