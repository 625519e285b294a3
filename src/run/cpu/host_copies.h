/* Copies between memory spaces, concurrent with compute: a lane each way.
 *
 * The host's memory is the CPU's own, so a copy is one of bytes. A link to the host may be
 * throttled: a copy then takes at least as long as it would over such a link, without holding up
 * the processor. */
#ifndef SF_RUN_CPU_HOST_COPIES_H
#define SF_RUN_CPU_HOST_COPIES_H

#include "base/work_queue.h"
#include "prog/program.h"
#include "run/engine/engine.h"

typedef struct sf_copy_part {
    const char *from;
    char *to;
    int64_t bytes;
} sf_copy_part;

/* One that is under way, or was. */
typedef struct sf_copy {
    sf_lane_job job;
    const sf_host_link *link;
    sf_copy_part *parts;
    uint32_t nparts;
    bool open;         /* nobody has waited for it since it was started */
    double start, end; /* when it was, of the clock of base/machine.h; valid once it has ended */
} sf_copy;

/* The copy of a COPY instruction, from in[i] to out[i], in the arena. */
sf_copy *sf_copy_new(const sf_inst *inst, char *const *in, char *const *out,
                     const sf_host_link *link, sf_arena *arena);

/* `after`: copies that have been started, and must have ended before; it has room for them. */
void sf_copy_start(sf_copy *copy, sf_lanes *lanes, sf_space_kind to);
void sf_copy_wait(sf_copy *copy, sf_lanes *lanes);

#endif
