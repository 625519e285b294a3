/* The candidates that a search tells of beside its answer: the best of each name on each mesh, by their programs where these were
 * simulated, else by estimates. No estimate says that a candidate fits and is faster than the answer: such a row is simulated
 * (search/finalists.c), or is none. */
#ifndef SF_SEARCH_CANDIDATE_TABLE_H
#define SF_SEARCH_CANDIDATE_TABLE_H

#include "search/fit.h"

/* Sets the alternatives of what is predicted, in the arena of the plan: the best first. */
void sf_table_list(const sf_found_plans *found, sf_plan *plan, sf_prediction *out);

/* Those of another prediction. */
void sf_table_copy(const sf_prediction *from, sf_plan *plan, sf_prediction *out);

/* The row that says most for itself without having been simulated: it fits, and takes less than `seconds`. -1: none does. */
int sf_table_claim(const sf_prediction *predicted, double seconds);

/* Has the plan of the row, a recipe on a mesh with the pins that are asked for, fit as options say, and sets the row to what its program
 * takes. *out and *runs are to be freed; *out is NULL, and the status says why, where the row is no such plan. */
sf_status sf_table_simulate(const sf_graph *graph, const sf_search_options *options,
                            sf_fit_known *known, sf_alternative *row, sf_plan **out,
                            sf_price *price, sf_group_runs *runs);

void sf_table_drop(sf_prediction *predicted, int row);

/* The plan itself is a row, and rows are in order. `is_tuned`: what it has beside layouts was changed since. */
void sf_table_finish(sf_plan *plan, bool is_tuned);

#endif
