/* Clocks of links: which collectives can go on at the same time.
 *
 * Inside of hosts, between hosts and between racks there are different links. A collective has those that its group
 * spans to itself, as long as it takes, and waits for those who came before it.
 */
#ifndef SF_SIM_LINKS_H
#define SF_SIM_LINKS_H

#include "cluster/cost.h"

typedef struct sf_links {
    double free[SF_LEVELS]; /* when those of a level are free again */
} sf_links;

/* When a collective along the axes that is ready at `now` and takes so long begins; it then has its links. */
double sf_links_take(sf_links *links, const sf_costs *costs, uint32_t axes, double now,
                     double seconds);

#endif
