#include "sim/links.h"

#include <math.h>

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

double sf_links_copy(sf_links *links, bool to_host, double now, double seconds)
{
    double *free = to_host ? &links->out_free : &links->in_free, start = fmax(now, *free);
    *free = start + seconds;
    return start;
}

/* The one that ended then, or `none`. */
static uint32_t find_ended(const sf_timing *all, const uint32_t *sent, size_t count, double then,
                           uint32_t none)
{
    for (size_t i = count; i-- > 0;) {
        uint32_t at = sent ? sent[i] : (uint32_t)i;
        if (all[at].end == then)
            return at;
    }
    return none;
}

double sf_wait_exposed(sf_timing *all, const uint32_t *sent, size_t count, uint32_t awaited,
                       double now)
{
    double until = fmax(all[awaited].end, now), from = until;
    uint32_t at = awaited;
    while (from > now) {
        double begin = fmin(fmax(all[at].start, now), from);
        all[at].exposed += from - begin;
        if (begin == from || begin == now) /* most waits end here, before any other is looked for */
            break;
        from = begin;
        at = find_ended(all, sent, count, from, awaited);
    }
    return until;
}
