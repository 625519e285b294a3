/* The lives of buffers: between which instructions their contents matter, and the gaps in which a copy elsewhere does
 * instead. */
#include "prog/lower/lowering.h"

/* The last instruction that may run before the buffers of this one are done with. */
static uint32_t end_of_buffer(const sf_program *p, uint32_t index, const uint32_t *waiters)
{
    if (p->insts[index].stream == 0)
        return index;
    return waiters[index] == SF_NONE ? (uint32_t)p->ninsts - 1 : waiters[index] - 1;
}

static void live_until(sf_buffer *buffer, uint32_t from, uint32_t to)
{
    if (buffer->first == SF_NONE)
        buffer->first = from;
    if (buffer->last < to)
        buffer->last = to;
}

/* A copy that fills the whole buffer: its content since the last use is dead. */
static void add_gap(sf_program *p, uint32_t index, const sf_view *out)
{
    sf_buffer *buffer = &p->buffers[out->buffer];
    bool fills = sf_view_size(out) == buffer->bytes;
    if (!fills || buffer->first == SF_NONE || buffer->last + 1 >= index)
        return;
    sf_gap *gaps = SF_ARRAY(&p->arena, buffer->ngaps + 1, sf_gap);
    for (uint32_t i = 0; i < buffer->ngaps; i++)
        gaps[i] = buffer->gaps[i];
    gaps[buffer->ngaps++] = (sf_gap){buffer->last + 1, index - 1};
    buffer->gaps = gaps;
}

/* A lent buffer lives before the first instruction and after the last. */
static void begin_life(const sf_program *p, sf_buffer *buffer)
{
    buffer->first = buffer->is_lent && p->ninsts > 0 ? 0 : SF_NONE;
    buffer->last = 0;
    buffer->is_result = false;
    buffer->ngaps = 0;
    buffer->gaps = NULL;
}

/* A body has its arguments from the program around it. */
static void count_state(sf_program *p)
{
    p->state_bytes = p->host_state_bytes = 0;
    for (uint32_t i = 0; p->argument_types && i < p->narguments; i++) {
        const sf_buffer *buffer = &p->buffers[i];
        if (buffer->space == SF_SPACE_HOST)
            p->host_state_bytes += buffer->bytes;
        else if (!buffer->is_lent)
            p->state_bytes += buffer->bytes;
    }
}

void find_lives(sf_program *p)
{
    sf_arena scratch = {0};
    const uint32_t *waiters = find_waiters(p, &scratch);
    for (size_t i = 0; i < p->nbuffers; i++)
        begin_life(p, &p->buffers[i]);
    for (uint32_t i = 0; i < p->ninsts; i++) {
        const sf_inst *inst = &p->insts[i];
        uint32_t end = end_of_buffer(p, i, waiters);
        for (uint32_t j = 0; j < inst->nout && inst->kind == SF_INST_COPY; j++)
            add_gap(p, i, &inst->out[j]);
        for (uint32_t j = 0; j < inst->nin; j++)
            live_until(&p->buffers[inst->in[j].buffer], i, end);
        for (uint32_t j = 0; j < inst->nout; j++)
            live_until(&p->buffers[inst->out[j].buffer], i, end);
    }
    for (size_t i = 0; i < p->nbuffers; i++)
        if (p->buffers[i].is_lent)
            p->buffers[i].is_result = true;
    for (uint32_t i = 0; i < p->nresults; i++)
        p->buffers[p->results[i].buffer].is_result = true;
    count_state(p);
    sf_arena_free(&scratch);
}

bool sf_buffer_lives(const sf_program *p, uint32_t buffer, uint32_t inst)
{
    const sf_buffer *b = &p->buffers[buffer];
    if (b->first == SF_NONE || inst < b->first || (inst > b->last && !b->is_result))
        return false;
    for (uint32_t g = 0; g < b->ngaps; g++)
        if (inst >= b->gaps[g].first && inst <= b->gaps[g].last)
            return false;
    return true;
}

int64_t sf_live_bytes_in(const sf_program *p, sf_space_kind space, sf_arena *arena, int64_t **live,
                         uint32_t *at)
{
    int64_t *bytes = SF_ARRAY(arena, p->ninsts + 1, int64_t), grain = p->target->align, peak = 0;
    *at = 0;
    for (size_t i = 0; i < p->nbuffers; i++) {
        const sf_buffer *buffer = &p->buffers[i];
        int64_t room = (buffer->bytes + grain - 1) / grain * grain;
        if (!sf_in_arena(buffer) || buffer->space != space || buffer->first == SF_NONE)
            continue;
        bytes[buffer->first] += room;
        bytes[buffer->is_result ? p->ninsts : buffer->last + 1] -= room;
        for (uint32_t g = 0; g < buffer->ngaps; g++) {
            bytes[buffer->gaps[g].first] -= room;
            bytes[buffer->gaps[g].last + 1] += room;
        }
    }
    for (uint32_t i = 0; i < p->ninsts; i++) {
        bytes[i] += i > 0 ? bytes[i - 1] : 0;
        if (bytes[i] > peak) {
            peak = bytes[i];
            *at = i;
        }
    }
    if (live)
        *live = bytes;
    return peak;
}

int64_t sf_live_bytes(const sf_program *p, sf_arena *arena, int64_t **live, uint32_t *at)
{
    return sf_live_bytes_in(p, SF_SPACE_DEVICE, arena, live, at);
}
