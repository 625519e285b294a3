#include "pass/gather_placement.h"

#include "prog/edit_program.h"
#include "sim/instruction_work.h"

sf_placing sf_placing_of(const sf_passing *passing, sf_program *program)
{
    sf_placing p = {.passing = passing, .program = program};
    sf_arena *arena = passing->scratch;
    p.gathers = sf_gathers_find(program, arena);
    p.emission = sf_emission_of(program, arena);
    p.group = SF_ARRAY(arena, program->ninsts, uint32_t);
    bool *sent = SF_ARRAY(arena, program->nbuffers, bool);
    for (uint32_t i = (uint32_t)program->ninsts; i-- > 0;) {
        const sf_inst *inst = &program->insts[i];
        bool makes = p.gathers.is_gather[i];
        for (uint32_t j = 0; j < inst->nout; j++)
            makes = makes || (p.gathers.is_still[i] && sent[inst->out[j].buffer]);
        p.emission.lazy[i] = makes && !p.gathers.is_gather[i];
        for (uint32_t j = 0; makes && j < inst->nin; j++)
            sent[inst->in[j].buffer] = true;
    }
    return p;
}

int64_t sf_placing_bytes(const sf_placing *p, uint32_t gather)
{
    const sf_inst *inst = &p->program->insts[gather];
    int64_t bytes = sf_gather_bytes(p->program, inst), grain = p->program->target->align;
    for (uint32_t j = 0; j < inst->nin; j++) {
        const sf_buffer *buffer = &p->program->buffers[inst->in[j].buffer];
        if (buffer->home == SF_HOME_ARENA)
            bytes += (buffer->bytes + grain - 1) / grain * grain;
    }
    return bytes;
}

static bool go_together(const sf_inst *a, const sf_inst *b)
{
    return a->exchange->axes == b->exchange->axes && a->out[0].dtype == b->out[0].dtype;
}

void sf_place_gathers(sf_placing *p, const uint32_t *gathers, size_t count, uint32_t before,
                      double alpha)
{
    double held = 0, alone = 0; /* of the group at hand: its bytes, and its seconds as one */
    uint32_t last = SF_NONE;
    for (size_t i = 0; i < count; i++) {
        const sf_inst *inst = &p->program->insts[gathers[i]];
        double bytes = sf_exchange_bytes(inst);
        double seconds = sf_gather_seconds(p->passing, inst, bytes);
        double both = sf_gather_seconds(p->passing, inst, held + bytes);
        if (last != SF_NONE && go_together(&p->program->insts[last], inst) &&
            alone + seconds > alpha * both) {
            if (p->group[last] == 0)
                p->group[last] = ++p->ngroups;
            p->group[gathers[i]] = p->group[last];
            held += bytes;
            alone = both;
            p->joined++;
        } else {
            held = bytes;
            alone = seconds;
        }
        last = gathers[i];
        sf_emit_before(&p->emission, gathers[i], before);
        p->moved += gathers[i] != before;
    }
}

/* A group is placed where its last member is: all its operands are available by then. */
static void join_groups(sf_placing *p)
{
    sf_program *program = p->program;
    sf_arena *arena = p->passing->scratch;
    const sf_emission *e = &p->emission;
    size_t count = program->ninsts, kept = 0;
    uint32_t *last = SF_ARRAY(arena, p->ngroups + 1, uint32_t);
    uint32_t *order = SF_ARRAY(arena, count, uint32_t), *list = SF_ARRAY(arena, count, uint32_t);
    for (uint32_t i = 0; i < count; i++)
        last[p->group[e->order[i]]] = i;
    size_t nlist = 1;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t group = p->group[e->order[i]];
        if (group == 0) {
            order[kept++] = i;
        } else if (last[group] != i) {
            list[nlist++] = i;
        } else {
            list[0] = i;
            sf_join_exchanges(program, list, nlist);
            nlist = 1;
            order[kept++] = i;
        }
    }
    sf_program_arrange(program, order, kept);
}

void sf_placing_end(sf_placing *p)
{
    sf_emission_end(&p->emission);
    if (p->ngroups > 0)
        join_groups(p);
}
