#include <string.h>

#include "base/mem.h"
#include "prog/lower.h"

/* The loop writes `to` element by element, and reads `from` in step with it: every tile reads its part of
 * the one before it writes its part of the other. */
static bool is_in_step(const sf_inst *inst, uint32_t from, uint32_t to)
{
    if (inst->kind != SF_INST_LOOP)
        return false;
    bool writes = false;
    for (uint32_t i = 0; i < inst->loop->nsteps; i++) {
        const sf_step *step = &inst->loop->steps[i];
        const sf_access *access = &inst->loop->accesses[step->access];
        if (step->kind == SF_STEP_LOAD && inst->in[access->view].buffer == from) {
            const sf_view *view = &inst->in[access->view];
            if (access->is_row || !sf_view_is_contiguous(view) || view->offset != 0)
                return false;
        }
        if (step->kind == SF_STEP_STORE && inst->out[access->view].buffer == to)
            writes = !access->is_row;
    }
    return writes;
}

/* Whether the next value of an argument may be written over the old one: everybody has read that by
 * then, or reads it in step. */
static bool may_overwrite(const lowering *l, uint32_t argument, uint32_t buffer)
{
    const sf_program *p = l->program;
    uint32_t when = l->made[buffer];
    for (uint32_t i = when; i < p->ninsts; i++)
        for (uint32_t j = 0; j < p->insts[i].nin; j++) {
            if (p->insts[i].in[j].buffer != argument)
                continue;
            if (i > when || !is_in_step(&p->insts[i], argument, buffer))
                return false;
        }
    return true;
}

static void replace_buffer(sf_program *p, uint32_t from, uint32_t to)
{
    for (size_t i = 0; i < p->ninsts; i++) {
        for (uint32_t j = 0; j < p->insts[i].nin; j++)
            if (p->insts[i].in[j].buffer == from)
                p->insts[i].in[j].buffer = to;
        for (uint32_t j = 0; j < p->insts[i].nout; j++)
            if (p->insts[i].out[j].buffer == from)
                p->insts[i].out[j].buffer = to;
    }
    for (uint32_t i = 0; i < p->graph->top->nresults; i++)
        if (p->results[i].buffer == from)
            p->results[i].buffer = to;
}

/* A copy at the end of the step into the storage of the argument. */
static void copy_at_end(lowering *l, uint32_t argument, uint32_t result)
{
    sf_program *p = l->program;
    sf_view copy = copy_of(l, p->results[result], NULL);
    sf_inst *inst = &p->insts[p->ninsts - 1];
    p->buffers[copy.buffer].bytes = 0;
    inst->out[0].buffer = copy.buffer = argument;
    p->results[result] = copy;
}

/* Results that are, or are parts of, arguments which change are copied while these are as they were. */
static void keep_old_values(lowering *l)
{
    sf_program *p = l->program;
    for (uint32_t i = 0; i < p->graph->top->nresults; i++) {
        uint32_t buffer = p->results[i].buffer;
        if (p->buffers[buffer].home != SF_HOME_ARGUMENT)
            continue;
        uint32_t next = p->graph->arguments[p->buffers[buffer].argument].next;
        if (next != SF_NONE && p->results[next].buffer != buffer)
            p->results[i] = copy_of(l, p->results[i], NULL);
    }
}

/* The result is all that its buffer holds. */
static bool fills_buffer(const sf_program *p, const sf_view *result)
{
    int64_t bytes = sf_view_count(result) * sf_dtype_get(result->dtype)->bytes;
    return result->offset == 0 && bytes == p->buffers[result->buffer].bytes;
}

void update_in_place(lowering *l)
{
    sf_program *p = l->program;
    const sf_graph *graph = p->graph;
    uint32_t *late = sf_alloc(graph->top->narguments * sizeof *late);
    uint32_t nlate = 0;
    keep_old_values(l);
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        uint32_t result = graph->arguments[i].next;
        if (result == SF_NONE || p->results[result].buffer == i)
            continue;
        uint32_t buffer = p->results[result].buffer;
        if (p->buffers[buffer].home == SF_HOME_ARENA && fills_buffer(p, &p->results[result]) &&
            may_overwrite(l, i, buffer))
            replace_buffer(p, buffer, i);
        else
            late[nlate++] = i;
    }
    for (uint32_t i = 0; i < nlate; i++)
        copy_at_end(l, late[i], graph->arguments[late[i]].next);
    sf_free(late);
}

/* A hole in the arena. */
typedef struct hole {
    int64_t offset, bytes;
} hole;

typedef struct placing {
    hole *holes; /* by offset; none touches the next */
    size_t count, capacity;
    int64_t end; /* of the arena so far */
} placing;

static void insert_hole(placing *s, size_t at, hole h)
{
    if (s->count == s->capacity) {
        s->capacity = s->capacity ? 2 * s->capacity : 64;
        hole *larger = sf_alloc(s->capacity * sizeof *larger);
        if (s->count)
            memcpy(larger, s->holes, s->count * sizeof *larger);
        sf_free(s->holes);
        s->holes = larger;
    }
    memmove(&s->holes[at + 1], &s->holes[at], (s->count - at) * sizeof *s->holes);
    s->holes[at] = h;
    s->count++;
}

static void remove_hole(placing *s, size_t at)
{
    s->count--;
    memmove(&s->holes[at], &s->holes[at + 1], (s->count - at) * sizeof *s->holes);
}

/* The smallest hole that is large enough, else the end of the arena. */
static int64_t take_place(placing *s, int64_t bytes)
{
    size_t best = s->count;
    for (size_t i = 0; i < s->count; i++)
        if (s->holes[i].bytes >= bytes &&
            (best == s->count || s->holes[i].bytes < s->holes[best].bytes))
            best = i;
    if (best < s->count) {
        int64_t offset = s->holes[best].offset;
        s->holes[best].offset += bytes;
        s->holes[best].bytes -= bytes;
        if (s->holes[best].bytes == 0)
            remove_hole(s, best);
        return offset;
    }
    int64_t offset = s->end;
    if (s->count && s->holes[s->count - 1].offset + s->holes[s->count - 1].bytes == s->end)
        offset = s->holes[--s->count].offset;
    s->end = offset + bytes;
    return offset;
}

static void give_place(placing *s, int64_t offset, int64_t bytes)
{
    size_t at = 0;
    while (at < s->count && s->holes[at].offset < offset)
        at++;
    insert_hole(s, at, (hole){offset, bytes});
    if (at + 1 < s->count && s->holes[at].offset + s->holes[at].bytes == s->holes[at + 1].offset) {
        s->holes[at].bytes += s->holes[at + 1].bytes;
        remove_hole(s, at + 1);
    }
    if (at > 0 && s->holes[at - 1].offset + s->holes[at - 1].bytes == s->holes[at].offset) {
        s->holes[at - 1].bytes += s->holes[at].bytes;
        remove_hole(s, at);
    }
}

static void find_lives(sf_program *p)
{
    for (size_t i = 0; i < p->nbuffers; i++) {
        p->buffers[i].first = SF_NONE;
        p->buffers[i].last = 0;
        p->buffers[i].is_result = false;
    }
    for (uint32_t i = 0; i < p->ninsts; i++) {
        const sf_inst *inst = &p->insts[i];
        for (uint32_t j = 0; j < inst->nin + inst->nout; j++) {
            uint32_t index = j < inst->nin ? inst->in[j].buffer : inst->out[j - inst->nin].buffer;
            sf_buffer *buffer = &p->buffers[index];
            if (buffer->first == SF_NONE)
                buffer->first = i;
            buffer->last = i;
        }
    }
    for (uint32_t i = 0; i < p->graph->top->nresults; i++)
        p->buffers[p->results[i].buffer].is_result = true;
}

void sf_program_place(sf_program *p)
{
    enum { ALIGN = 64 };
    placing s = {0};
    find_lives(p);
    uint32_t *starts = sf_alloc((p->nbuffers + 1) * sizeof *starts); /* buffers, by first use */
    uint32_t *counts = sf_alloc((p->ninsts + 2) * sizeof *counts);
    uint32_t *ends = sf_alloc((p->nbuffers + 1) * sizeof *ends);
    uint32_t *end_counts = sf_alloc((p->ninsts + 2) * sizeof *end_counts);
    p->constant_bytes = 0;
    for (size_t i = 0; i < p->nbuffers; i++) {
        if (p->buffers[i].home == SF_HOME_CONSTANT)
            p->constant_bytes += p->buffers[i].bytes;
        if (p->buffers[i].home != SF_HOME_ARENA || p->buffers[i].first == SF_NONE)
            continue;
        counts[p->buffers[i].first + 1]++;
        end_counts[p->buffers[i].last + 1]++;
    }
    for (size_t i = 0; i < p->ninsts; i++) {
        counts[i + 1] += counts[i];
        end_counts[i + 1] += end_counts[i];
    }
    for (uint32_t i = 0; i < p->nbuffers; i++) {
        if (p->buffers[i].home != SF_HOME_ARENA || p->buffers[i].first == SF_NONE)
            continue;
        starts[counts[p->buffers[i].first]++] = i;
        ends[end_counts[p->buffers[i].last]++] = i;
    }
    uint32_t started = 0, ended = 0;
    for (uint32_t i = 0; i < p->ninsts; i++) {
        for (; started < counts[i]; started++) {
            sf_buffer *buffer = &p->buffers[starts[started]];
            int64_t bytes = (buffer->bytes + ALIGN - 1) / ALIGN * ALIGN;
            buffer->offset = bytes ? take_place(&s, bytes) : 0;
            if (s.end > p->arena_bytes)
                p->arena_bytes = s.end;
        }
        for (; ended < end_counts[i]; ended++) {
            const sf_buffer *buffer = &p->buffers[ends[ended]];
            int64_t bytes = (buffer->bytes + ALIGN - 1) / ALIGN * ALIGN;
            if (bytes && !buffer->is_result)
                give_place(&s, buffer->offset, bytes);
        }
    }
    sf_free(end_counts);
    sf_free(ends);
    sf_free(counts);
    sf_free(starts);
    sf_free(s.holes);
}
