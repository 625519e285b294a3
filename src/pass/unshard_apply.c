#include "pass/unsharding.h"

size_t unshard_scope_of(const unsharding *u, const sf_program *program)
{
    size_t s = 0;
    while (u->scopes[s].program != program)
        s++;
    return s;
}

/* Whether an argument of the body is the same in every iteration. */
static bool is_fixed(const sf_inst *loop, uint32_t argument)
{
    return argument >= loop->nest->noperands || loop->nest->is_fixed[argument];
}

/* The one that writes the buffer, which only one does; ninsts where none does. */
static uint32_t writer_of(const sf_program *p, uint32_t buffer, uint32_t before)
{
    for (uint32_t i = before; i-- > 0;)
        for (uint32_t j = 0; j < p->insts[i].nout; j++)
            if (p->insts[i].out[j].buffer == buffer)
                return i;
    return (uint32_t)p->ninsts;
}

/* An argument, or a value that loops make of arguments, the same in every iteration. */
static bool is_same(const unsharding *u, size_t s, const sf_view *view, uint32_t before)
{
    const sf_pass_scope *scope = &u->scopes[s];
    const sf_program *p = scope->program;
    const sf_inst *loop = &scope->outer->insts[scope->inst];
    const sf_buffer *buffer = &p->buffers[view->buffer];
    if (buffer->home == SF_HOME_ARGUMENT)
        return is_fixed(loop, buffer->argument);
    uint32_t maker = buffer->home == SF_HOME_ARENA ? writer_of(p, view->buffer, before) : SF_NONE;
    if (maker >= p->ninsts || !u->gathers[s].is_still[maker] ||
        p->insts[maker].kind != SF_INST_LOOP)
        return false;
    for (uint32_t j = 0; j < p->insts[maker].nin; j++)
        if (!is_same(u, s, &p->insts[maker].in[j], maker))
            return false;
    return true;
}

bool unshard_can_hoist(const unsharding *u, size_t s, gather_part at)
{
    const sf_pass_scope *scope = &u->scopes[s];
    if (!scope->outer || scope->runs <= scope->around->runs ||
        scope->outer->insts[scope->inst].kind != SF_INST_WHILE)
        return false;
    return is_same(u, s, &scope->program->insts[at.inst].in[at.part], at.inst);
}

/* Hoisting */

/* Instructions to insert before others of a program. */
typedef struct inserting {
    uint32_t *inst, *before;
    size_t count, capacity;
    size_t before_capacity;
} inserting;

static void insert(unsharding *u, inserting *at, uint32_t inst, uint32_t before)
{
    size_t count = at->count;
    SF_PUSH(u->arena, at->inst, at->count, at->capacity, inst);
    SF_PUSH(u->arena, at->before, count, at->before_capacity, before);
}

static sf_view hoist_view(unsharding *u, size_t s, const sf_view *view, uint32_t before,
                          inserting *into);

/* An instruction of the body, or a part of it, before the loop: part i goes from in[i] to a buffer of its own. */
static sf_view hoist_inst(unsharding *u, size_t s, gather_part at, inserting *into)
{
    const sf_pass_scope *scope = &u->scopes[s];
    sf_program *outer = scope->outer, *body = scope->program;
    sf_inst inst = body->insts[at.inst];
    bool sends = inst.kind == SF_INST_COMM;
    uint32_t first = sends ? at.part : 0, count = sends ? 1 : inst.nin;
    sf_view *in = SF_ARRAY(&outer->arena, count, sf_view);
    for (uint32_t j = 0; j < count; j++)
        in[j] = hoist_view(u, s, &inst.in[first + j], at.inst, into);
    uint32_t results = sends ? 1 : inst.nout;
    sf_view *out = SF_ARRAY(&outer->arena, results, sf_view);
    for (uint32_t j = 0; j < results; j++) {
        out[j] = inst.out[first + j];
        out[j].buffer = sf_program_add_buffer(outer, body->buffers[out[j].buffer].bytes, SF_NONE);
    }
    if (sends) {
        sf_part_origin *part = SF_NEW(&outer->arena, sf_part_origin);
        *part = sf_exchange_part(inst.exchange, at.part);
        inst.exchange = sf_arena_copy(&outer->arena, inst.exchange, sizeof *inst.exchange);
        inst.exchange->parts = part;
    }
    inst.nin = count;
    inst.nout = results;
    inst.in = in;
    inst.out = out;
    inst.origin.node = SF_NONE;
    insert(u, into, sf_program_add(outer, &inst), scope->inst);
    return out[sends ? 0 : at.part];
}

/* The view of the body as one of the program around it. */
static sf_view hoist_view(unsharding *u, size_t s, const sf_view *view, uint32_t before,
                          inserting *into)
{
    const sf_pass_scope *scope = &u->scopes[s];
    const sf_program *body = scope->program;
    const sf_buffer *buffer = &body->buffers[view->buffer];
    sf_view out = *view;
    if (buffer->home == SF_HOME_ARGUMENT) {
        out.buffer = sf_body_argument(&scope->outer->insts[scope->inst], buffer->argument)->buffer;
        return out;
    }
    gather_part maker = {writer_of(body, view->buffer, before), 0};
    while (body->insts[maker.inst].out[maker.part].buffer != view->buffer)
        maker.part++;
    out.buffer = hoist_inst(u, s, maker, into).buffer;
    return out;
}

/* Those of a scope: they are seen by the body from then on. */
static void hoist_chosen(unsharding *u, size_t s, inserting *into)
{
    const sf_pass_scope *scope = &u->scopes[s];
    sf_program *body = scope->program;
    keeping **list = SF_ARRAY(u->arena, u->count, keeping *);
    sf_view *seen = SF_ARRAY(u->arena, u->count, sf_view);
    uint32_t count = 0;
    for (size_t i = 0; i < u->count; i++)
        if (u->list[i].chosen && u->list[i].scope == s)
            list[count++] = &u->list[i];
    if (count == 0)
        return;
    for (uint32_t i = 0; i < count; i++)
        seen[i] = hoist_inst(u, s, list[i]->at[0], into);
    uint32_t first = sf_nest_capture(scope->outer, scope->inst, seen, count);
    for (uint32_t i = 0; i < count; i++)
        for (size_t g = 0; g < list[i]->count; g++) {
            gather_part at = list[i]->at[g];
            sf_program_read_instead(body, at.inst, body->insts[at.inst].out[at.part].buffer,
                                    first + i);
        }
}

/* Leaving out */

/* Loops whose result only a dropped gather read. */
static void drop_unread(const unsharding *u, size_t s, const inserting *added, bool *dropped,
                        size_t count)
{
    const sf_program *p = u->scopes[s].program;
    bool *read = SF_ARRAY(u->arena, p->nbuffers, bool);
    for (size_t a = 0; a < added->count; a++)
        for (uint32_t j = 0; j < p->insts[added->inst[a]].nin; j++)
            read[p->insts[added->inst[a]].in[j].buffer] = true;
    for (uint32_t i = (uint32_t)count; i-- > 0;) {
        const sf_inst *inst = &p->insts[i];
        bool needed = !u->gathers[s].is_still[i] || inst->kind != SF_INST_LOOP;
        for (uint32_t j = 0; j < inst->nout; j++)
            needed = needed || read[inst->out[j].buffer];
        dropped[i] = dropped[i] || !needed;
        for (uint32_t j = 0; !dropped[i] && j < inst->nin; j++)
            read[inst->in[j].buffer] = true;
    }
}

static void arrange(unsharding *u, size_t s, size_t count, const inserting *added)
{
    sf_program *p = u->scopes[s].program;
    bool *dropped = SF_ARRAY(u->arena, count, bool);
    uint32_t *order = SF_ARRAY(u->arena, p->ninsts, uint32_t);
    size_t at = 0;
    for (uint32_t i = 0; i < count; i++)
        dropped[i] = u->gone[s][i] && !sf_drop_parts(p, &p->insts[i], u->gone[s][i]);
    drop_unread(u, s, added, dropped, count);
    for (uint32_t i = 0; i < count; i++) {
        for (size_t a = 0; a < added->count; a++)
            if (added->before[a] == i)
                order[at++] = added->inst[a];
        if (!dropped[i])
            order[at++] = i;
    }
    sf_program_arrange(p, order, at);
}

/* Bodies come before the programs that they are in, so numbers of instructions hold until their own
 * scope is arranged. */
void unshard_apply(unsharding *u)
{
    inserting *added = SF_ARRAY(u->arena, u->nscopes, inserting);
    size_t *counts = SF_ARRAY(u->arena, u->nscopes, size_t);
    for (size_t s = 0; s < u->nscopes; s++)
        counts[s] = u->scopes[s].program->ninsts;
    for (size_t s = 0; s < u->nscopes; s++)
        if (u->scopes[s].outer)
            hoist_chosen(u, s, &added[unshard_scope_of(u, u->scopes[s].outer)]);
    for (size_t s = 0; s < u->nscopes; s++)
        if (u->kept + u->hoisted > 0)
            arrange(u, s, counts[s], &added[s]);
}
