/* The collectives of groups of ranks. Costs, programs and communicators use the same ones, and read
 * their properties from one table.
 *
 *                     reduces  gathers  in_blocks  out_blocks  route
 *     all_reduce      yes      yes      no         no          ring
 *     all_gather      no       yes      no         yes         ring
 *     reduce_scatter  yes      no       yes        no          ring
 *     all_to_all      no       no       yes        yes         direct
 *     broadcast       no       no       no         no          chain
 *     permute         no       no       no         no          peer */
#ifndef SF_BASE_COLLECTIVE_H
#define SF_BASE_COLLECTIVE_H

#include <stdbool.h>

#include "base/str.h"

typedef enum sf_collective {
    SF_ALL_REDUCE,
    SF_ALL_GATHER,
    SF_REDUCE_SCATTER,
    SF_ALL_TO_ALL,
    SF_BROADCAST,
    SF_PERMUTE,
    SF_COLLECTIVE_COUNT
} sf_collective;

/* How data travels; small messages may use a tree. */
typedef enum sf_route {
    SF_ROUTE_NONE,
    SF_ROUTE_RING, /* blocks or segments go round the members: once where they are combined, once where
                        they are gathered */
    SF_ROUTE_DIRECT, /* each member sends to each other */
    SF_ROUTE_CHAIN,  /* from one member on to the next */
    SF_ROUTE_PEER,   /* to one member, from one */
} sf_route;

typedef struct sf_collective_info {
    const char *name;
    bool reduces;    /* values of all members are combined */
    bool gathers;    /* each member gets the data of every member, or their combination */
    bool in_blocks;  /* the operand has a block for each member, */
    bool out_blocks; /* the result has one */
    sf_route route;
} sf_collective_info;

/* Of SF_COLLECTIVE_COUNT, and other values: "none", which does nothing. */
const sf_collective_info *sf_collective_get(sf_collective kind);
sf_collective sf_collective_find(sf_str name); /* SF_COLLECTIVE_COUNT where there is none */

const char *sf_collective_name(sf_collective kind); /* "all_reduce", ... */

/* Operand and result have no blocks, so the members share a tensor out by segments: an all_reduce, which can be done in
 * place. */
bool sf_collective_has_segments(sf_collective kind);

/* Bytes that a member sends for each byte of the collective (defined in cluster/cost_model.h). */
double sf_collective_sent(sf_collective kind, double members);

#endif
