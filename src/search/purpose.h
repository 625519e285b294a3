/* What the axes of a plan are for: names for people.
 *
 * An axis is called by what the products of the forward phase make along it, weighed by bytes: "data" where
 * it splits their first dimension, "model" where it splits the last or they are sums, "seq" where it splits
 * what is between, and "idle" where neither they nor arguments are split. Of several that are alike the
 * second is "data2", and so on.
 */
#ifndef SF_SEARCH_PURPOSE_H
#define SF_SEARCH_PURPOSE_H

#include "plan/plan.h"
#include "search/price/node_work.h"

/* Names all axes but those of `keep`. */
void sf_plan_name_axes(const sf_efforts *efforts, sf_axes keep, sf_plan *plan);

#endif
