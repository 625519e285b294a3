/* One order for what ranks exchange, where each has a program of its own. A device may do one thing after the other, whatever lanes they
 * were put on, and what it does waits for the same of others: two stages that each put what they receive first wait for each other
 * without end. So each rank puts an exchange only where all of its members have come to it, by a clock on which every instruction takes a
 * tick; then everything that one waits for, here or elsewhere, was put before it. */
#ifndef SF_RUN_COMM_EXCHANGE_ORDER_H
#define SF_RUN_COMM_EXCHANGE_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

/* What a rank comes to. Those of a rank stand in the order of its program, of one instruction what it waits for first. */
typedef struct sf_coming {
    uint64_t key;     /* of the exchange, the same on all members */
    uint32_t members; /* that begin it, as this rank does here; 0: this rank waits for it */
    uint32_t at;      /* the instruction */
} sf_coming;

typedef struct sf_comings {
    sf_coming *at;
    size_t count, capacity;
} sf_comings;

/* What the rank has begun is put before it comes to instruction `before`; the last there is may be one past its end. */
typedef struct sf_put {
    uint32_t begun, before;
} sf_put;

/* All that `rank` begins, in the order in which it is put, in the arena. False: not all of it can be, since ranks wait for each other
 * in a circle, or for what some member never begins. */
bool sf_order_meetings(int nranks, const sf_comings *ranks, int rank, sf_arena *arena,
                       sf_put **puts, size_t *count);

#endif
