#include "pass/pass_scope.h"

#include "sim/sim.h"

typedef struct listing {
    sf_arena *arena;
    sf_pass_scope *list;
    size_t count;
} listing;

static size_t count_scopes(const sf_program *p)
{
    size_t count = 1;
    for (size_t i = 0; i < p->ninsts; i++)
        for (uint32_t b = 0; b < sf_body_count(&p->insts[i]); b++)
            count += count_scopes(p->insts[i].nest->bodies[b]);
    return count;
}

static void list_scope(listing *l, sf_pass_scope *scope);

static void list_bodies(listing *l, sf_pass_scope *scope, uint32_t index)
{
    const sf_inst *inst = &scope->program->insts[index];
    int64_t arena = scope->program->buffers[inst->out[inst->nout - 1].buffer].bytes;
    for (uint32_t b = inst->kind == SF_INST_WHILE; b < inst->nest->nbodies; b++) {
        sf_pass_scope *inner = SF_NEW(l->arena, sf_pass_scope);
        *inner = (sf_pass_scope){.program = inst->nest->bodies[b],
                                 .sim = &scope->sim->bodies[index][b],
                                 .base = scope->base + scope->live[index] - arena,
                                 .runs = scope->runs * inst->nest->runs[b],
                                 .outer = scope->program,
                                 .inst = index,
                                 .around = scope};
        list_scope(l, inner);
    }
}

static void list_scope(listing *l, sf_pass_scope *scope)
{
    int64_t *live;
    uint32_t at;
    sf_live_bytes(scope->program, l->arena, &live, &at);
    scope->live = live;
    for (uint32_t i = 0; i < scope->program->ninsts; i++)
        if (sf_body_count(&scope->program->insts[i]) > 0)
            list_bodies(l, scope, i);
    l->list[l->count++] = *scope;
}

size_t sf_scopes_find(const sf_passing *passing, sf_arena *arena, sf_pass_scope **out)
{
    sf_program *p = passing->program;
    listing l = {.arena = arena};
    l.list = SF_ARRAY(arena, count_scopes(p), sf_pass_scope);
    sf_pass_scope *top = SF_NEW(arena, sf_pass_scope);
    *top = (sf_pass_scope){.program = p,
                           .sim = &passing->profile.sim,
                           .base = p->state_bytes + p->constant_bytes,
                           .runs = 1};
    list_scope(&l, top);
    *out = l.list;
    return l.count;
}

/* Gathers */

typedef struct finding {
    const sf_program *p;
    uint32_t *writers; /* by buffer: instructions that write it */
    bool *still;       /* by buffer: it was made from arguments that no instruction has written */
    bool *is_result;
} finding;

static bool reads_still(const finding *f, const sf_inst *inst)
{
    for (uint32_t j = 0; j < inst->nin; j++)
        if (!f->still[inst->in[j].buffer])
            return false;
    return inst->nin > 0;
}

static bool writes_alone(const finding *f, const sf_inst *inst)
{
    for (uint32_t j = 0; j < inst->nout; j++) {
        uint32_t buffer = inst->out[j].buffer;
        if (f->p->buffers[buffer].home != SF_HOME_ARENA || f->writers[buffer] != 1 ||
            f->is_result[buffer])
            return false;
    }
    return true;
}

/* One between pipeline ranks stays: those that it is shared with wait for it in other programs. */
static bool is_gathering(const sf_inst *inst)
{
    return inst->kind == SF_INST_COMM && inst->exchange->kind == SF_ALL_GATHER &&
           inst->exchange->groups == 0;
}

static void look_at(finding *f, uint32_t index, sf_gathers *out)
{
    const sf_inst *inst = &f->p->insts[index];
    bool kind = inst->kind == SF_INST_LOOP || is_gathering(inst);
    bool still = kind && reads_still(f, inst) && writes_alone(f, inst);
    out->is_still[index] = still;
    out->is_gather[index] = still && is_gathering(inst);
    out->count += out->is_gather[index];
    for (uint32_t j = 0; j < inst->nout; j++)
        f->still[inst->out[j].buffer] = still;
}

sf_gathers sf_gathers_find(const sf_program *p, sf_arena *arena)
{
    sf_gathers out = {.is_still = SF_ARRAY(arena, p->ninsts, bool),
                      .is_gather = SF_ARRAY(arena, p->ninsts, bool)};
    finding f = {.p = p};
    f.writers = SF_ARRAY(arena, p->nbuffers, uint32_t);
    f.still = SF_ARRAY(arena, p->nbuffers, bool);
    f.is_result = SF_ARRAY(arena, p->nbuffers, bool);
    for (size_t b = 0; b < p->nbuffers; b++)
        f.still[b] = p->buffers[b].home == SF_HOME_ARGUMENT;
    for (uint32_t i = 0; i < p->nresults; i++)
        f.is_result[p->results[i].buffer] = true;
    for (size_t i = 0; i < p->ninsts; i++)
        for (uint32_t j = 0; j < p->insts[i].nout; j++)
            f.writers[p->insts[i].out[j].buffer]++;
    for (uint32_t i = 0; i < p->ninsts; i++)
        look_at(&f, i, &out);
    return out;
}

bool sf_inst_reduces(const sf_inst *inst)
{
    return inst->kind == SF_INST_COMM && sf_collective_get(inst->exchange->kind)->reduces;
}

int64_t sf_gather_bytes(const sf_program *p, const sf_inst *inst)
{
    int64_t bytes = 0, grain = p->target->align;
    for (uint32_t j = 0; j < inst->nout; j++)
        bytes += (p->buffers[inst->out[j].buffer].bytes + grain - 1) / grain * grain;
    return bytes;
}

double sf_gather_seconds(const sf_passing *passing, const sf_inst *inst, double bytes)
{
    return sf_costs_collective(passing->costs, inst->exchange->kind, inst->exchange->axes, bytes);
}
