/* One order for the exchanges of ranks with different programs. A device may run its work one after
 * the other, whatever the lanes, and an exchange waits for that of other ranks: two stages that
 * each put their receive first wait for each other for ever. So each rank puts an exchange only
 * when all of its members have come to it, by a clock on which every instruction takes a tick; then
 * everything that one waits for, here or elsewhere, was put before it. */
#ifndef SF_RUN_COMM_EXCHANGE_ORDER_H
#define SF_RUN_COMM_EXCHANGE_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

/* An event of a rank. Those of a rank are in the order of its program, of one instruction its waits
 * first. */
typedef struct sf_coming {
    uint64_t key;     /* of the exchange, the same on all members */
    uint32_t members; /* that begin it, as this rank does here; 0: this rank waits for it */
    uint32_t at;      /* the instruction */
} sf_coming;

typedef struct sf_comings {
    sf_coming *at;
    size_t count, capacity;
} sf_comings;

/* The exchange that the rank has begun is put before it comes to instruction `before`; the last may
 * be one past its end. */
typedef struct sf_put {
    uint32_t begun, before;
} sf_put;

/* All exchanges that `rank` begins, in the order in which they are put, in the arena. False: some
 * cannot be put, since ranks wait for each other in a cycle, or for an exchange that some member
 * never begins. */
bool sf_order_meetings(int nranks, const sf_comings *ranks, int rank, sf_arena *arena,
                       sf_put **puts, size_t *count);

#endif
