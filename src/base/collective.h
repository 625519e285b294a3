/* The collectives: what the members of a group of ranks do together. Costs, programs and communicators speak of
 * the same ones. */
#ifndef SF_BASE_COLLECTIVE_H
#define SF_BASE_COLLECTIVE_H

typedef enum sf_collective {
    SF_ALL_REDUCE,
    SF_ALL_GATHER,
    SF_REDUCE_SCATTER,
    SF_ALL_TO_ALL,
    SF_BROADCAST,
    SF_PERMUTE,
    SF_COLLECTIVE_COUNT
} sf_collective;

const char *sf_collective_name(sf_collective kind); /* "all_reduce", ... */

#endif
