#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "prog/lower.h"

static bool is_whole(const sf_program *p, const sf_view *view)
{
    return view->offset == 0 && sf_view_is_contiguous(view) &&
           sf_view_count(view) * sf_dtype_get(view->dtype)->bytes == p->buffers[view->buffer].bytes;
}

/* The loop writes `to` element by element, and reads `from` in step with it: every tile reads its part of
 * the one before it writes its part of the other. */
static bool loop_in_step(const sf_inst *inst, uint32_t from, uint32_t to)
{
    bool writes = false;
    for (uint32_t i = 0; i < inst->loop->nsteps; i++) {
        const sf_loop_step *step = &inst->loop->steps[i];
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

/* How many results start as their operands: instructions that change a tensor rather than make one. */
static uint32_t count_changed(const sf_inst *inst)
{
    if (inst->kind == SF_INST_WHILE)
        return inst->node->nresults;
    if (inst->kind != SF_INST_OP && inst->kind != SF_INST_COMM)
        return 0;
    bool changes = sf_is(inst->node, SF_OP_SCATTER) ||
                   sf_is(inst->node, SF_OP_DYNAMIC_UPDATE_SLICE) ||
                   sf_is(inst->node, SF_OP_ALL_REDUCE);
    return changes ? inst->node->nresults : 0;
}

/* The instruction can write `to` where `from` stands. */
static bool is_in_step(const sf_program *p, const sf_inst *inst, uint32_t from, uint32_t to)
{
    if (inst->kind == SF_INST_LOOP)
        return loop_in_step(inst, from, to);
    uint32_t changed = count_changed(inst), reads = 0;
    bool meets = false;
    for (uint32_t i = 0; i < inst->nin; i++) {
        reads += inst->in[i].buffer == from;
        meets = meets || (i < changed && inst->in[i].buffer == from && is_whole(p, &inst->in[i]) &&
                          inst->out[i].buffer == to);
    }
    return meets && reads == 1;
}

/* Whether the next value of an argument may be written over the old one: everybody has read that by
 * then, or reads it in step. */
static bool may_overwrite(const lowering *l, uint32_t argument, const sf_view *next)
{
    const sf_program *p = l->program;
    uint32_t when = l->made[next->buffer];
    if (p->buffers[next->buffer].home != SF_HOME_ARENA || !is_whole(p, next))
        return false;
    for (uint32_t i = when; i < p->ninsts; i++)
        for (uint32_t j = 0; j < p->insts[i].nin; j++) {
            if (p->insts[i].in[j].buffer != argument)
                continue;
            if (i > when || !is_in_step(p, &p->insts[i], argument, next->buffer))
                return false;
        }
    return true;
}

/* The instructions that touch a buffer: none before the first, none behind the last. */
typedef struct span {
    uint32_t first, last;
} span;

static void touch(span *spans, uint32_t buffer, uint32_t inst)
{
    span *s = &spans[buffer];
    s->first = s->first < inst ? s->first : inst;
    s->last = s->last > inst ? s->last : inst;
}

/* By buffer; for sf_free. */
static span *find_spans(const sf_program *p)
{
    span *spans = sf_alloc(p->nbuffers * sizeof *spans);
    for (size_t i = 0; i < p->nbuffers; i++)
        spans[i].first = SF_NONE;
    for (uint32_t i = 0; i < p->ninsts; i++) {
        for (uint32_t j = 0; j < p->insts[i].nin; j++)
            touch(spans, p->insts[i].in[j].buffer, i);
        for (uint32_t j = 0; j < p->insts[i].nout; j++)
            touch(spans, p->insts[i].out[j].buffer, i);
    }
    return spans;
}

/* A step replaces thousands of buffers, most of which live for a few instructions: only those are looked
 * at. */
static void replace_buffer(sf_program *p, span *spans, uint32_t from, uint32_t to)
{
    if (spans[from].first != SF_NONE) {
        touch(spans, to, spans[from].first);
        touch(spans, to, spans[from].last);
    }
    for (size_t i = spans[from].first; i <= spans[from].last; i++) {
        for (uint32_t j = 0; j < p->insts[i].nin; j++)
            if (p->insts[i].in[j].buffer == from)
                p->insts[i].in[j].buffer = to;
        for (uint32_t j = 0; j < p->insts[i].nout; j++)
            if (p->insts[i].out[j].buffer == from)
                p->insts[i].out[j].buffer = to;
    }
    for (uint32_t i = 0; i < p->nresults; i++)
        if (p->results[i].buffer == from)
            p->results[i].buffer = to;
}

/* A copy at the end of the run into the storage of the argument. What it reads is not an argument that is
 * still to change: keep_old_values copied that. */
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
    for (uint32_t i = 0; i < p->nresults; i++) {
        uint32_t buffer = p->results[i].buffer;
        if (p->buffers[buffer].home != SF_HOME_ARGUMENT)
            continue;
        uint32_t next = p->next[p->buffers[buffer].argument];
        if (next != SF_NONE && p->results[next].buffer != buffer)
            p->results[i] = copy_of(l, p->results[i], NULL);
    }
}

void update_in_place(lowering *l)
{
    sf_program *p = l->program;
    uint32_t *late = sf_alloc(p->narguments * sizeof *late);
    uint32_t nlate = 0;
    keep_old_values(l);
    span *spans = find_spans(p);
    for (uint32_t i = 0; i < p->narguments; i++) {
        if (p->next[i] == SF_NONE || p->results[p->next[i]].buffer == i)
            continue;
        const sf_view *next = &p->results[p->next[i]];
        if (may_overwrite(l, i, next))
            replace_buffer(p, spans, next->buffer, i);
        else
            late[nlate++] = i;
    }
    for (uint32_t i = 0; i < nlate; i++)
        copy_at_end(l, late[i], p->next[late[i]]);
    sf_free(spans);
    sf_free(late);
}

/* A tensor that an instruction changes, and that nobody needs as it was, is changed where it stands. */
void reuse_operands(lowering *l)
{
    sf_program *p = l->program;
    uint32_t *last = sf_alloc(p->nbuffers * sizeof *last);
    for (uint32_t i = 0; i < p->ninsts; i++)
        for (uint32_t j = 0; j < p->insts[i].nin; j++)
            last[p->insts[i].in[j].buffer] = i;
    for (uint32_t i = 0; i < p->nresults; i++)
        last[p->results[i].buffer] = SF_NONE;
    span *spans = find_spans(p);
    for (uint32_t i = 0; i < p->ninsts; i++) {
        const sf_inst *inst = &p->insts[i];
        for (uint32_t j = 0; j < count_changed(inst); j++) {
            uint32_t from = inst->in[j].buffer, to = inst->out[j].buffer;
            if (p->buffers[from].home != SF_HOME_ARENA || last[from] != i ||
                p->buffers[to].home != SF_HOME_ARENA || !is_in_step(p, inst, from, to))
                continue;
            last[from] = last[to];
            replace_buffer(p, spans, to, from);
        }
    }
    sf_free(spans);
    sf_free(last);
}

/* Backwards, with the next instruction that touches a buffer and the next that writes it. */
static void find_until(sf_program *p)
{
    uint32_t *touched = sf_alloc(p->nbuffers * sizeof *touched);
    uint32_t *written = sf_alloc(p->nbuffers * sizeof *written);
    memset(touched, 0xff, p->nbuffers * sizeof *touched);
    memset(written, 0xff, p->nbuffers * sizeof *written);
    for (uint32_t i = (uint32_t)p->ninsts; i-- > 0;) {
        sf_inst *inst = &p->insts[i];
        inst->until = SF_NONE;
        for (uint32_t j = 0; j < inst->nin; j++)
            if (written[inst->in[j].buffer] < inst->until)
                inst->until = written[inst->in[j].buffer];
        for (uint32_t j = 0; j < inst->nout; j++)
            if (touched[inst->out[j].buffer] < inst->until)
                inst->until = touched[inst->out[j].buffer];
        for (uint32_t j = 0; j < inst->nin; j++)
            touched[inst->in[j].buffer] = i;
        for (uint32_t j = 0; j < inst->nout; j++)
            touched[inst->out[j].buffer] = written[inst->out[j].buffer] = i;
    }
    sf_free(touched);
    sf_free(written);
}

/* The last instruction that may run before the buffers of this one are done with. */
static uint32_t end_of(const sf_program *p, uint32_t index)
{
    const sf_inst *inst = &p->insts[index];
    if (inst->kind != SF_INST_COMM)
        return index;
    return inst->until == SF_NONE ? (uint32_t)p->ninsts - 1 : inst->until - 1;
}

void find_lives(sf_program *p)
{
    find_until(p);
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
            if (buffer->last < end_of(p, i))
                buffer->last = end_of(p, i);
        }
    }
    for (uint32_t i = 0; i < p->nresults; i++)
        p->buffers[p->results[i].buffer].is_result = true;
}

/* A buffer while it is placed: its bytes from offset on, its time from first to last. */
typedef struct placed {
    int64_t bytes, offset;
    uint32_t first, last, buffer;
} placed;

static int largest_first(const void *a, const void *b)
{
    const placed *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return x->buffer < y->buffer ? -1 : 1;
}

/* The first gap that is large enough between those that stand in the arena, by offset, at the same
 * time; else the end of the last of these. */
static int64_t find_place(const placed *standing, size_t count, const placed *x)
{
    int64_t end = 0;
    for (size_t i = 0; i < count; i++) {
        const placed *y = &standing[i];
        if (y->last < x->first || y->first > x->last)
            continue;
        if (y->offset - end >= x->bytes)
            break;
        if (y->offset + y->bytes > end)
            end = y->offset + y->bytes;
    }
    return end;
}

static size_t list_buffers(const sf_program *p, placed *out)
{
    enum { ALIGN = 64 };
    size_t count = 0;
    for (uint32_t i = 0; i < p->nbuffers; i++) {
        const sf_buffer *buffer = &p->buffers[i];
        if (buffer->home == SF_HOME_ARENA && buffer->first != SF_NONE && buffer->bytes > 0)
            out[count++] = (placed){.bytes = (buffer->bytes + ALIGN - 1) / ALIGN * ALIGN,
                                    .first = buffer->first,
                                    .last = buffer->is_result ? SF_NONE : buffer->last,
                                    .buffer = i};
    }
    qsort(out, count, sizeof *out, largest_first);
    return count;
}

void sf_program_place(sf_program *p)
{
    find_lives(p);
    placed *list = sf_alloc((p->nbuffers + 1) * sizeof *list);
    placed *standing = sf_alloc((p->nbuffers + 1) * sizeof *standing); /* by offset */
    size_t count = list_buffers(p, list);
    p->arena_bytes = p->constant_bytes = 0;
    for (size_t i = 0; i < p->nbuffers; i++)
        if (p->buffers[i].home == SF_HOME_CONSTANT)
            p->constant_bytes += p->buffers[i].bytes;
    for (size_t i = 0; i < p->ninsts; i++)
        for (uint32_t j = 0; j < p->insts[i].nbodies; j++)
            p->constant_bytes += p->insts[i].bodies[j]->constant_bytes;
    for (size_t i = 0; i < count; i++) {
        placed *x = &list[i];
        size_t at = i;
        x->offset = find_place(standing, i, x);
        for (; at > 0 && standing[at - 1].offset > x->offset; at--)
            standing[at] = standing[at - 1];
        standing[at] = *x;
        p->buffers[x->buffer].offset = x->offset;
        if (x->offset + x->bytes > p->arena_bytes)
            p->arena_bytes = x->offset + x->bytes;
    }
    sf_free(list);
    sf_free(standing);
}
