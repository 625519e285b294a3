#include "run/engine/memory_fit.h"

#include <inttypes.h>

#include "base/units.h"

enum { NAMED = 3 };

static int64_t rounded_bytes(const sf_program *p, const sf_buffer *buffer)
{
    int64_t grain = p->target->align;
    return (buffer->bytes + grain - 1) / grain * grain;
}

static bool stands_at(const sf_program *p, uint32_t buffer, uint32_t at)
{
    const sf_buffer *b = &p->buffers[buffer];
    return sf_in_arena(b) && b->space == SF_SPACE_DEVICE && sf_buffer_lives(p, buffer, at);
}

/* The instruction that first writes the buffer: it names the content. */
static const sf_inst *maker_of_buffer(const sf_program *p, uint32_t buffer)
{
    for (uint32_t i = p->buffers[buffer].first; i < p->ninsts; i++)
        for (uint32_t j = 0; j < p->insts[i].nout; j++)
            if (p->insts[i].out[j].buffer == buffer)
                return &p->insts[i];
    return NULL;
}

/* The largest buffer that lives then and comes after `above` in the order of size and number;
 * SF_NONE: there is none. */
static uint32_t next_largest(const sf_program *p, uint32_t at, uint32_t above)
{
    uint32_t best = SF_NONE;
    for (uint32_t b = 0; b < p->nbuffers; b++) {
        int64_t bytes = p->buffers[b].bytes;
        bool behind = above == SF_NONE || bytes < p->buffers[above].bytes ||
                      (b > above && bytes == p->buffers[above].bytes);
        if (behind && stands_at(p, b, at) && (best == SF_NONE || bytes > p->buffers[best].bytes))
            best = b;
    }
    return best;
}

static void name_largest(const sf_program *p, uint32_t at, sf_buf *out)
{
    uint32_t b = SF_NONE;
    for (int i = 0; i < NAMED && (b = next_largest(p, at, b)) != SF_NONE; i++) {
        const sf_inst *maker = maker_of_buffer(p, b);
        sf_buf_printf(out, "%s%s", i == 0 ? ": " : ", ",
                      sf_text_bytes((double)p->buffers[b].bytes).at);
        if (p->buffers[b].home == SF_HOME_ARGUMENT)
            sf_buf_printf(out, " of argument %u", p->buffers[b].argument);
        else if (maker)
            sf_buf_printf(out, " of %s%s%s",
                          *maker->origin.op ? maker->origin.op : sf_inst_kind_name(maker->kind),
                          *maker->origin.scope ? " in " : "", maker->origin.scope);
    }
}

static void add_share(sf_buf *out, int64_t bytes, const char *what)
{
    if (bytes > 0)
        sf_buf_printf(out, ", %s %s", sf_text_bytes((double)bytes).at, what);
}

/* "12.0 MiB of the device (...)" */
static void put_room(const sf_program *p, const sf_room *room, sf_buf *out)
{
    sf_arena scratch = {0};
    uint32_t at;
    int64_t live = sf_live_bytes(p, &scratch, NULL, &at), lent = 0;
    for (uint32_t b = 0; b < p->narguments; b++)
        lent += stands_at(p, b, at) ? rounded_bytes(p, &p->buffers[b]) : 0;
    sf_arena_free(&scratch);
    sf_buf_printf(out, "%s of the device (%s of arguments, %s between them",
                  sf_text_bytes((double)sf_program_bytes(p)).at,
                  sf_text_bytes((double)(p->state_bytes + lent)).at,
                  sf_text_bytes((double)(live - lent)).at);
    if (p->ninsts > 0) {
        const sf_inst *inst = &p->insts[at];
        sf_buf_printf(out, " at instruction %u, %s%s%s", at, sf_inst_kind_name(inst->kind),
                      *inst->origin.scope ? " in " : "", inst->origin.scope);
        name_largest(p, at, out);
    }
    add_share(out, p->arena_bytes[SF_SPACE_DEVICE] - live, "lost between these");
    add_share(out, p->constant_bytes, "of constants");
    sf_buf_putc(out, ')');
    add_share(out, room->scratch, "beside it for kernels");
    if (sf_program_host_bytes(p) > 0)
        sf_buf_printf(out, " and %s of the host",
                      sf_text_bytes((double)sf_program_host_bytes(p)).at);
}

sf_status sf_check_room(const sf_program *p, const sf_room *room, sf_diag *diag)
{
    int64_t device = sf_program_bytes(p);
    int64_t all = device + sf_program_host_bytes(p) + room->scratch;
    bool fits_device = room->device <= 0 || device <= room->device;
    if (fits_device && (room->memory <= 0 || all <= room->memory))
        return SF_OK;
    sf_buf text = {0};
    put_room(p, room, &text);
    sf_fail(diag, SF_ENOMEM, SF_NOWHERE, "the step needs %s, and there are %s", text.text,
            sf_text_bytes((double)(fits_device ? room->memory : room->device)).at);
    sf_buf_free(&text);
    return sf_hint(
        diag, fits_device ? "split it over more ranks, or its state as well, as recipe zero3 does"
              : p->offloads
                  ? "what the pass offload could move to the host is there: split the step over "
                    "more ranks, or its state as well, as recipe zero3 does; or take more "
                    "micro-batches, or recompute"
                  : "of a plan, --passes offload moves tensors that do not fit to the host; or "
                    "split it over more ranks, or its state as well, as recipe zero3 does");
}

sf_status sf_fail_room(const sf_program *p, const sf_room *room, int64_t bytes, sf_diag *diag)
{
    sf_buf text = {0};
    put_room(p, room, &text);
    sf_fail(diag, SF_ENOMEM, SF_NOWHERE,
            "the machine gives no more memory, not these %s; predicted were %s",
            sf_text_bytes((double)bytes).at, text.text);
    sf_buf_free(&text);
    return sf_hint(diag, "others have it, or a limit of the shell is below that; --memory says how "
                         "much there is, so that this is known before");
}
