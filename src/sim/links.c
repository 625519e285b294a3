#include "sim/links.h"

double sf_links_take(sf_links *links, const sf_costs *costs, uint32_t axes, double now,
                     double seconds)
{
    uint32_t used = sf_costs_group_links(costs, axes);
    double start = now;
    for (int l = 0; l < SF_LEVELS; l++)
        if (used >> l & 1 && links->free[l] > start)
            start = links->free[l];
    for (int l = 0; l < SF_LEVELS; l++)
        if (used >> l & 1)
            links->free[l] = start + seconds;
    return start;
}
