/* Clocks of links: which collectives can go on at the same time.
 *
 * Inside of hosts, between hosts and between racks there are different links. A collective has those that its group
 * spans to itself, as long as it takes, and waits for those who came before it. So do copies between a device and its
 * host, each way.
 */
#ifndef SF_SIM_LINKS_H
#define SF_SIM_LINKS_H

#include "cluster/cost_model.h"
#include "prog/timing.h"

typedef struct sf_links {
    double free[SF_LEVELS];   /* when those of a level are next free */
    double out_free, in_free; /* when that to the host is, and that from it */
} sf_links;

/* When a collective along the axes that is ready at `now` and takes so long begins; it then has its links. */
double sf_links_take(sf_links *links, const sf_costs *costs, uint32_t axes, double now,
                     double seconds);

/* The same of a copy to the host or from it. */
double sf_links_copy(sf_links *links, bool to_host, double now, double seconds);

/* Waits from `now` on for a collective, and returns when it has ended. The wait is exposed time: of
 * that collective, from when it began, and before, of the one that it queued after. Those that were
 * sent are `sent`, numbers in `all`; NULL: all of them. */
double sf_wait_exposed(sf_timing *all, const uint32_t *sent, size_t count, uint32_t awaited,
                       double now);

#endif
