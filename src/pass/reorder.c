#include "pass/reorder.h"

#include "prog/edit_program.h"

sf_emission sf_emission_of(sf_program *p, sf_arena *arena)
{
    sf_emission e = {.program = p, .arena = arena, .deps = sf_deps_of(p, arena)};
    e.lazy = SF_ARRAY(arena, p->ninsts, bool);
    e.eager = SF_ARRAY(arena, p->ninsts, bool);
    e.done = SF_ARRAY(arena, p->ninsts, bool);
    e.follows = SF_ARRAY(arena, p->ninsts, uint32_t);
    e.heads = SF_ARRAY(arena, p->ninsts, uint32_t);
    e.tails = SF_ARRAY(arena, p->ninsts, uint32_t);
    e.before = SF_ARRAY(arena, p->ninsts, uint32_t);
    e.missing = SF_ARRAY(arena, p->ninsts, uint32_t);
    e.order = SF_ARRAY(arena, p->ninsts, uint32_t);
    for (uint32_t i = 0; i < p->ninsts; i++) {
        e.before[i] = i;
        e.heads[i] = e.follows[i] = SF_NONE;
    }
    return e;
}

void sf_emit_before(sf_emission *e, uint32_t inst, uint32_t other)
{
    if (e->heads[other] == SF_NONE)
        e->heads[other] = inst;
    else
        e->follows[e->tails[other]] = inst;
    e->tails[other] = inst;
    e->follows[inst] = SF_NONE;
    e->before[inst] = other;
}

/* Which eager ones need each. */
static void link_eager(sf_emission *e)
{
    size_t count = e->program->ninsts, links = 0;
    e->after_first = SF_ARRAY(e->arena, count + 2, uint32_t);
    for (uint32_t i = 0; i < count; i++) {
        e->missing[i] = e->deps.first[i + 1] - e->deps.first[i];
        for (uint32_t b = e->deps.first[i]; e->eager[i] && b < e->deps.first[i + 1]; b++, links++)
            e->after_first[e->deps.before[b] + 2]++;
    }
    for (size_t i = 0; i < count; i++)
        e->after_first[i + 2] += e->after_first[i + 1];
    e->after = SF_ARRAY(e->arena, links, uint32_t);
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t b = e->deps.first[i]; e->eager[i] && b < e->deps.first[i + 1]; b++)
            e->after[e->after_first[e->deps.before[b] + 1]++] = i;
}

static void put(sf_emission *e, uint32_t inst)
{
    e->done[inst] = true;
    e->order[e->count++] = inst;
}

/* Emits dependencies first. A stack of its own: chains of dependencies can be long. */
static void emit_inst(sf_emission *e, uint32_t inst, uint32_t *stack)
{
    size_t depth = 0;
    stack[depth++] = inst;
    while (depth > 0) {
        uint32_t top = stack[depth - 1], b = e->deps.first[top];
        while (b < e->deps.first[top + 1] && e->done[e->deps.before[b]])
            b++;
        if (b < e->deps.first[top + 1]) {
            stack[depth++] = e->deps.before[b];
            continue;
        }
        depth--;
        if (!e->done[top])
            put(e, top);
    }
}

/* Emits those that became ready because of emitted ones since `from`, and because of these. */
static void emit_eager(sf_emission *e, size_t from)
{
    for (size_t at = from; at < e->count; at++) {
        uint32_t inst = e->order[at];
        for (uint32_t a = e->after_first[inst]; a < e->after_first[inst + 1]; a++)
            if (--e->missing[e->after[a]] == 0 && !e->done[e->after[a]])
                put(e, e->after[a]);
    }
}

void sf_emission_end(sf_emission *e)
{
    size_t count = e->program->ninsts;
    uint32_t *stack = SF_ARRAY(e->arena, count + 1, uint32_t);
    link_eager(e);
    for (int late = 0; late < 2; late++)
        for (uint32_t i = 0; i < count; i++) {
            size_t from = e->count;
            for (uint32_t a = e->heads[i]; a != SF_NONE && late == 0; a = e->follows[a])
                if (!e->done[a])
                    emit_inst(e, a, stack);
            bool waits = late == 0 && (e->lazy[i] || e->before[i] != i);
            if (!e->done[i] && !waits)
                emit_inst(e, i, stack);
            emit_eager(e, from);
        }
    sf_program_arrange(e->program, e->order, e->count);
}
