/* Memory that is written over: the next value of an argument replaces it in its buffer, and a
 * tensor that an instruction changes, and that has no other reader, is changed in place. */
#include "prog/lower/lowering.h"

/* The buffer that replaces this one. */
static uint32_t renamed_buffer(const lowering *l, uint32_t buffer)
{
    while (l->renamed[buffer] != buffer)
        buffer = l->renamed[buffer];
    return buffer;
}

/* Replaces renamed buffers in all instructions and results. */
static void apply_names(lowering *l)
{
    sf_program *p = l->program;
    for (uint32_t b = 0; b < p->nbuffers; b++)
        l->renamed[b] = renamed_buffer(l, b);
    for (size_t i = 0; i < p->ninsts; i++) {
        const sf_inst *inst = &p->insts[i];
        for (uint32_t j = 0; j < inst->nin; j++)
            inst->in[j].buffer = l->renamed[inst->in[j].buffer];
        for (uint32_t j = 0; j < inst->nout; j++)
            inst->out[j].buffer = l->renamed[inst->out[j].buffer];
    }
    for (uint32_t i = 0; i < p->nresults; i++)
        p->results[i].buffer = l->renamed[p->results[i].buffer];
}

/* Those that were added since are called as they are. */
static void name_buffers(lowering *l)
{
    size_t count = l->program->nbuffers;
    uint32_t *names = SF_ARRAY(&l->scratch, count, uint32_t);
    for (uint32_t b = 0; b < count; b++)
        names[b] = b < l->nrenamed ? l->renamed[b] : b;
    l->renamed = names;
    l->nrenamed = count;
}

/* In step */

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
            if (access->is_row || access->windows || !sf_view_is_contiguous(view) ||
                view->offset != 0)
                return false;
        }
        if (step->kind == SF_STEP_STORE && inst->out[access->view].buffer == to)
            writes = !access->is_row;
    }
    return writes;
}

/* The instruction, which changes its first operands, can write result `index` over that operand: it reads it no
 * other way. */
static bool can_change(const lowering *l, const sf_inst *inst, uint32_t index)
{
    uint32_t from = renamed_buffer(l, inst->in[index].buffer), reads = 0;
    for (uint32_t i = 0; i < inst->nin; i++)
        reads += renamed_buffer(l, inst->in[i].buffer) == from;
    return reads == 1 && sf_view_fills(l->program, &inst->in[index]);
}

/* The instruction can write `to` in the memory of `from`. */
static bool is_in_step(const lowering *l, const sf_inst *inst, uint32_t from, uint32_t to)
{
    if (inst->kind == SF_INST_LOOP)
        return loop_in_step(inst, from, to);
    for (uint32_t i = 0; i < sf_inst_changed(inst); i++)
        if (inst->in[i].buffer == from && inst->out[i].buffer == to)
            return can_change(l, inst, i);
    return false;
}

/* State */

/* Whether the next value of an argument may be written over the old one: everybody has read that by
 * then, or reads it in step. `last` is the last to read it, plus one. */
static bool may_overwrite(const lowering *l, uint32_t argument, const sf_view *next, uint32_t last)
{
    const sf_program *p = l->program;
    uint32_t when = l->made[next->buffer];
    if (p->buffers[next->buffer].home != SF_HOME_ARENA || !sf_view_fills(p, next) ||
        last > when + 1)
        return false;
    return last <= when || is_in_step(l, &p->insts[when], argument, next->buffer);
}

/* A copy at the end of the run into the buffer of the argument. Its source is not an argument that
 * is still to change: keep_old_values copied that. */
static void copy_at_end(lowering *l, uint32_t argument, uint32_t result)
{
    sf_program *p = l->program;
    sf_view copy = copy_of(l, &p->results[result], NULL);
    p->buffers[copy.buffer].bytes = 0;
    copy.buffer = argument;
    p->insts[p->ninsts - 1].out[0].buffer = argument;
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
            p->results[i] = copy_of(l, &p->results[i], NULL);
    }
}

/* By buffer: the last instruction that reads it, plus one; 0: none does. */
static uint32_t *last_readers(lowering *l)
{
    const sf_program *p = l->program;
    uint32_t *last = SF_ARRAY(&l->scratch, p->nbuffers, uint32_t);
    for (uint32_t i = 0; i < p->ninsts; i++)
        for (uint32_t j = 0; j < p->insts[i].nin; j++)
            last[p->insts[i].in[j].buffer] = i + 1;
    return last;
}

/* A result that another argument took the buffer of cannot have it as well. */
void update_in_place(lowering *l)
{
    sf_program *p = l->program;
    uint32_t *late = SF_ARRAY(&l->scratch, p->narguments, uint32_t), nlate = 0;
    keep_old_values(l);
    name_buffers(l);
    const uint32_t *last = last_readers(l);
    bool *taken = SF_ARRAY(&l->scratch, p->nbuffers, bool);
    for (uint32_t i = 0; i < p->narguments; i++) {
        const sf_view *next = p->next[i] == SF_NONE ? NULL : &p->results[p->next[i]];
        if (!next || next->buffer == i)
            continue;
        if (!taken[next->buffer] && may_overwrite(l, i, next, last[i])) {
            taken[next->buffer] = true;
            l->renamed[next->buffer] = i;
        } else {
            late[nlate++] = i;
        }
    }
    apply_names(l);
    for (uint32_t i = 0; i < nlate; i++)
        copy_at_end(l, late[i], p->next[late[i]]);
}

/* Operands */

/* The same, of buffers that may be changed. Results have readers after the run; a value that is
 * sent to another pipeline rank may arrive late, after its replacement would be made. */
static uint32_t *last_readers_before_change(lowering *l)
{
    const sf_program *p = l->program;
    uint32_t *last = last_readers(l);
    for (uint32_t i = 0; i < p->nresults; i++)
        last[p->results[i].buffer] = SF_NONE;
    for (uint32_t i = 0; i < p->ninsts; i++) {
        const sf_inst *inst = &p->insts[i];
        bool sends = inst->kind == SF_INST_COMM && sf_is_one_way(inst->exchange);
        for (uint32_t j = 0; j < inst->nin && sends; j++)
            last[inst->in[j].buffer] = SF_NONE;
    }
    return last;
}

/* By buffer: how often the instruction reads it, which changes some; a loop that stayed may change thousands. */
static void count_reads(const lowering *l, const sf_inst *inst, uint32_t *reads)
{
    for (uint32_t i = 0; i < inst->nin; i++)
        reads[renamed_buffer(l, inst->in[i].buffer)] = 0;
    for (uint32_t i = 0; i < inst->nin; i++)
        reads[renamed_buffer(l, inst->in[i].buffer)]++;
}

void reuse_operands(lowering *l)
{
    sf_program *p = l->program;
    name_buffers(l);
    uint32_t *last = last_readers_before_change(l),
             *reads = SF_ARRAY(&l->scratch, p->nbuffers, uint32_t);
    for (uint32_t i = 0; i < p->ninsts; i++) {
        const sf_inst *inst = &p->insts[i];
        uint32_t nchanged = sf_inst_changed(inst);
        if (nchanged > 0)
            count_reads(l, inst, reads);
        for (uint32_t j = 0; j < nchanged; j++) {
            uint32_t from = renamed_buffer(l, inst->in[j].buffer),
                     to = renamed_buffer(l, inst->out[j].buffer);
            if (from == to || p->buffers[from].home != SF_HOME_ARENA || last[from] != i + 1 ||
                p->buffers[to].home != SF_HOME_ARENA || reads[from] != 1 ||
                !sf_view_fills(p, &inst->in[j]))
                continue;
            last[from] = last[to];
            l->renamed[to] = from;
        }
    }
    apply_names(l);
}

/* Whether the loop, the last to read `from`, can make `to` there: element by element, of the same width. */
static bool can_stand_over(const lowering *l, const sf_inst *inst, uint32_t operand,
                           uint32_t result)
{
    const sf_program *p = l->program;
    const sf_view *from = &inst->in[operand], *to = &inst->out[result];
    return p->buffers[from->buffer].home == SF_HOME_ARENA &&
           p->buffers[to->buffer].home == SF_HOME_ARENA &&
           sf_dtype_get(from->dtype)->bytes == sf_dtype_get(to->dtype)->bytes &&
           p->buffers[from->buffer].bytes == p->buffers[to->buffer].bytes &&
           sf_view_fills(p, from) && sf_view_fills(p, to) &&
           loop_in_step(inst, from->buffer, to->buffer);
}

void reuse_in_loops(lowering *l)
{
    sf_program *p = l->program;
    name_buffers(l);
    uint32_t *last = last_readers_before_change(l);
    uint32_t *writes = SF_ARRAY(&l->scratch, p->nbuffers, uint32_t);
    for (uint32_t i = 0; i < p->ninsts; i++)
        for (uint32_t j = 0; j < p->insts[i].nout; j++)
            writes[p->insts[i].out[j].buffer]++;
    for (uint32_t i = 0; i < p->ninsts; i++) {
        sf_inst *inst = &p->insts[i];
        for (uint32_t j = 0; inst->kind == SF_INST_LOOP && j < inst->nout; j++)
            for (uint32_t k = 0; k < inst->nin; k++) {
                uint32_t from = inst->in[k].buffer, to = inst->out[j].buffer;
                if (last[from] != i + 1 || writes[from] > 1 || writes[to] > 1 ||
                    l->renamed[from] != from || !can_stand_over(l, inst, k, j))
                    continue;
                writes[from] = writes[to] =
                    2; /* neither replaces another buffer or is replaced by one */
                l->renamed[to] = from;
                break;
            }
    }
    apply_names(l);
}
