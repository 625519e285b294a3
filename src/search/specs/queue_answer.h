/* The plan that the queue finds, as the answer of a search: checked, and with its prediction. */
#ifndef SF_SEARCH_SPECS_QUEUE_ANSWER_H
#define SF_SEARCH_SPECS_QUEUE_ANSWER_H

#include "search/specs/plan_queue.h"

/* *out is for sf_plan_free; NULL, with SF_OK: nothing that was simulated fits, and is faster
 * than what is known. */
sf_status sf_answer_by_queue(const sf_graph *graph, const sf_queue_options *options, sf_diag *diag,
                             sf_plan **out);

#endif
