#include "prog/instruction_deps.h"

/* Who touched a buffer: the last to write it, and those who have read it since. */
typedef struct reader {
    uint32_t inst;
    struct reader *next;
} reader;

typedef struct linking {
    const sf_program *p;
    sf_arena *arena, scratch;
    uint32_t *writer; /* by buffer, plus one */
    reader **readers; /* by buffer */
    uint32_t *mark;   /* by instruction: the one that it was last put before, plus one */
    uint32_t *list;
    size_t count, capacity;
} linking;

static void put_before(linking *l, uint32_t inst, uint32_t other)
{
    if (other == inst || l->mark[other] == inst + 1)
        return;
    l->mark[other] = inst + 1;
    SF_PUSH(l->arena, l->list, l->count, l->capacity, other);
}

static void read_buffer(linking *l, uint32_t inst, uint32_t buffer)
{
    if (l->writer[buffer] > 0)
        put_before(l, inst, l->writer[buffer] - 1);
    reader *r = SF_NEW(&l->scratch, reader);
    *r = (reader){inst, l->readers[buffer]};
    l->readers[buffer] = r;
}

static void write_buffer(linking *l, uint32_t inst, uint32_t buffer)
{
    if (l->writer[buffer] > 0)
        put_before(l, inst, l->writer[buffer] - 1);
    for (const reader *r = l->readers[buffer]; r; r = r->next)
        put_before(l, inst, r->inst);
    l->readers[buffer] = NULL;
    l->writer[buffer] = inst + 1;
}

static bool is_between_groups(const sf_inst *inst)
{
    return inst->kind == SF_INST_COMM &&
           (sf_is_one_way(inst->exchange) || inst->exchange->groups != 0);
}

sf_deps sf_deps_of(const sf_program *p, sf_arena *arena)
{
    linking l = {.p = p, .arena = arena};
    sf_deps deps = {.first = SF_ARRAY(arena, p->ninsts + 1, uint32_t)};
    uint32_t between = 0; /* the last exchange between pipeline ranks, plus one */
    l.writer = SF_ARRAY(&l.scratch, p->nbuffers, uint32_t);
    l.readers = SF_ARRAY(&l.scratch, p->nbuffers, reader *);
    l.mark = SF_ARRAY(&l.scratch, p->ninsts, uint32_t);
    for (uint32_t i = 0; i < p->ninsts; i++) {
        const sf_inst *inst = &p->insts[i];
        deps.first[i] = (uint32_t)l.count;
        for (uint32_t j = 0; j < inst->nin; j++)
            read_buffer(&l, i, inst->in[j].buffer);
        for (uint32_t j = 0; j < inst->nout; j++)
            write_buffer(&l, i, inst->out[j].buffer);
        if (!is_between_groups(inst))
            continue;
        if (between > 0)
            put_before(&l, i, between - 1);
        between = i + 1;
    }
    deps.first[p->ninsts] = (uint32_t)l.count;
    deps.before = l.list;
    sf_arena_free(&l.scratch);
    return deps;
}

bool sf_deps_allow(const sf_deps *deps, const uint32_t *order, size_t count, sf_arena *scratch)
{
    bool *done = SF_ARRAY(scratch, count, bool);
    for (size_t i = 0; i < count; i++) {
        uint32_t inst = order[i];
        if (inst >= count || done[inst])
            return false;
        for (uint32_t b = deps->first[inst]; b < deps->first[inst + 1]; b++)
            if (!done[deps->before[b]])
                return false;
        done[inst] = true;
    }
    return true;
}
