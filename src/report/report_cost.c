#include "base/checked.h"
#include "report/summary.h"

void sf_add_limited(int64_t *to, int64_t more)
{
    if (!sf_add(*to, more, to))
        *to = INT64_MAX;
}

void sf_cost_add(sf_cost *to, const sf_cost *more)
{
    to->nodes += more->nodes;
    to->flops += more->flops;
    to->bytes += more->bytes;
    to->unknown_trips = to->unknown_trips || more->unknown_trips;
}
