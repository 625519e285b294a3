/* What an instruction does, as a device sees it: operations, and bytes that it reads and writes. */
#ifndef SF_SIM_EFFORT_H
#define SF_SIM_EFFORT_H

#include "cluster/cost.h"
#include "prog/program.h"

/* Of everything but COMM, WHILE and CASE. An element that is read again and again, because a stride is 0, counts
 * once. */
sf_effort sf_inst_effort(const sf_inst *inst);

/* Bytes that a member of the group puts into the collective or gets out of it, whichever is more: what
 * sf_costs_collective takes. */
double sf_exchange_bytes(const sf_inst *inst);

/* Seconds on the slowest device. Of a loop that stays, those of its bodies for as many turns as it is known to
 * have, else one; of branches, of all. A collective inside of a body is waited for where it stands. COMM: nothing. */
typedef struct sf_inst_time {
    double compute;
    double waits, bytes; /* of collectives in bodies */
} sf_inst_time;
sf_inst_time sf_inst_seconds(const sf_inst *inst, const sf_costs *costs);

#endif
