#include "run/cpu/host_copies.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/machine.h"

static void sleep_until(double then)
{
    for (double left; (left = then - sf_now()) > 0;) {
        struct timespec rest = {(time_t)left, (long)(1e9 * (left - (double)(time_t)left))};
        nanosleep(&rest, NULL);
    }
}

static void run_copy(void *context)
{
    sf_copy *c = context;
    int64_t bytes = 0;
    c->start = sf_now();
    for (uint32_t i = 0; i < c->nparts; i++) {
        const sf_copy_part *part = &c->parts[i];
        if (part->bytes > 0)
            memcpy(part->to, part->from, (size_t)part->bytes);
        bytes += part->bytes;
    }
    if (c->link->bandwidth > 0)
        sleep_until(c->start + c->link->latency + (double)bytes / c->link->bandwidth);
    c->end = sf_now();
}

sf_copy *sf_copy_new(const sf_inst *inst, char *const *in, char *const *out,
                     const sf_host_link *link, sf_arena *arena)
{
    sf_copy *c = SF_NEW(arena, sf_copy);
    c->job = (sf_lane_job){.work = run_copy, .context = c};
    c->job.after = SF_ARRAY(arena, inst->nwaits, sf_lane_job *);
    c->link = link;
    c->nparts = inst->nin;
    c->parts = SF_ARRAY(arena, inst->nin, sf_copy_part);
    for (uint32_t i = 0; i < inst->nin; i++)
        c->parts[i] = (sf_copy_part){in[i], out[i], sf_view_size(&inst->in[i])};
    return c;
}

void sf_copy_start(sf_copy *copy, sf_lanes *lanes, sf_space_kind to)
{
    copy->open = true;
    sf_lanes_start(lanes, to == SF_SPACE_HOST ? 0 : 1, &copy->job);
}

void sf_copy_wait(sf_copy *copy, sf_lanes *lanes)
{
    if (copy->open)
        sf_lanes_wait(lanes, &copy->job);
    copy->open = false;
}
