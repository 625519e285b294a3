/* A resting buffer may also be dropped, and recomputed by its maker right before its next use, for
 * the same bytes for which others are copied to the host. All operands of the maker must be
 * unchanged and in memory then: arguments that were not written by then, and buffers that live
 * until then in any case. */
#include "pass/offload.h"
#include "prog/edit_program.h"

/* Who can be run a second time: it has one result, and changes nothing. */
static bool is_plain(const sf_inst *inst)
{
    bool kind = inst->kind == SF_INST_LOOP || (inst->kind == SF_INST_DOT && !inst->loop);
    return kind && inst->nout == 1 && !inst->piece && sf_inst_changed(inst) == 0;
}

static uint32_t *find_makers(const sf_offload *o)
{
    const sf_program *p = o->program;
    uint32_t *makers = SF_ARRAY(o->arena, p->nbuffers, uint32_t);
    bool *seen = SF_ARRAY(o->arena, p->nbuffers, bool);
    for (size_t b = 0; b < p->nbuffers; b++)
        makers[b] = SF_NONE;
    for (uint32_t i = 0; i < p->ninsts; i++)
        for (uint32_t j = 0; j < p->insts[i].nout; j++) {
            uint32_t buffer = p->insts[i].out[j].buffer;
            makers[buffer] = seen[buffer] ? SF_NONE : i;
            seen[buffer] = true;
        }
    return makers;
}

static bool is_written_before(const sf_program *p, uint32_t buffer, uint32_t end)
{
    for (uint32_t i = 0; i < end; i++)
        for (uint32_t j = 0; j < p->insts[i].nout; j++)
            if (p->insts[i].out[j].buffer == buffer)
                return true;
    return false;
}

/* Whether the maker's operands are unchanged and in memory before the instruction. */
static bool is_there(const sf_offload *o, uint32_t buffer, uint32_t inst)
{
    const sf_buffer *b = &o->program->buffers[buffer];
    if (b->space != SF_SPACE_DEVICE)
        return false;
    if (b->home == SF_HOME_ARGUMENT)
        return !b->is_lent && !is_written_before(o->program, buffer, inst);
    if (b->home == SF_HOME_ARENA)
        return o->makers[buffer] != SF_NONE && b->first != SF_NONE && b->last >= inst &&
               b->ngaps == 0;
    return true;
}

static bool can_ever(const sf_offload *o, const sf_rest *rest)
{
    const sf_buffer *b = &o->program->buffers[rest->buffer];
    uint32_t maker = o->makers[rest->buffer];
    if (b->home != SF_HOME_ARENA || b->is_result || rest->before == SF_NONE || maker == SF_NONE ||
        !is_plain(&o->program->insts[maker]))
        return false;
    const sf_inst *inst = &o->program->insts[maker];
    for (uint32_t j = 0; j < inst->nin; j++)
        if (inst->in[j].buffer == rest->buffer || !is_there(o, inst->in[j].buffer, rest->after))
            return false;
    return true;
}

void sf_recompute_find(sf_offload *o)
{
    o->makers = find_makers(o);
    o->ntaken = SF_ARRAY(o->arena, o->program->nbuffers, uint32_t);
    o->is_pinned = SF_ARRAY(o->arena, o->program->nbuffers, bool);
    for (size_t r = 0; r < o->nrests; r++) {
        sf_rest *rest = &o->rests[r];
        const sf_timing *times = o->sim->insts;
        rest->recomputed = -1;
        if (can_ever(o, rest))
            rest->recomputed =
                times[o->makers[rest->buffer]].end - times[o->makers[rest->buffer]].start;
    }
}

bool sf_recompute_can(const sf_offload *o, const sf_rest *rest)
{
    if (!o->with_recompute || rest->recomputed < 0)
        return false;
    const sf_inst *inst = &o->program->insts[o->makers[rest->buffer]];
    for (uint32_t j = 0; j < inst->nin; j++)
        if (o->ntaken[inst->in[j].buffer] > 0)
            return false;
    return true;
}

void sf_recompute_take(sf_offload *o, sf_rest *rest)
{
    const sf_inst *inst = &o->program->insts[o->makers[rest->buffer]];
    rest->is_recomputed = true;
    for (uint32_t j = 0; j < inst->nin; j++)
        o->is_pinned[inst->in[j].buffer] = true;
}

sf_inst sf_recompute_inst(sf_offload *o, const sf_rest *rest)
{
    sf_program *p = o->program;
    uint32_t was = rest->buffer, after = rest->after;
    sf_inst inst = p->insts[o->makers[was]];
    uint32_t buffer = sf_program_add_buffer(p, p->buffers[was].bytes, p->buffers[was].value);
    inst.in = sf_arena_copy(&p->arena, inst.in, inst.nin * sizeof *inst.in);
    inst.out = sf_arena_copy(&p->arena, inst.out, sizeof *inst.out);
    inst.out[0].buffer = buffer;
    sf_program_read_instead(p, after - 1, was, buffer);
    for (size_t r = 0; r < o->nrests; r++)
        if (o->rests[r].buffer == was && o->rests[r].before != SF_NONE &&
            o->rests[r].before >= after)
            o->rests[r].buffer = buffer;
    return inst;
}
