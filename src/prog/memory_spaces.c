#include "prog/memory_spaces.h"

#include "base/mem.h"

uint32_t sf_add_host_buffer(sf_program *p, uint32_t buffer)
{
    uint32_t host = sf_program_add_buffer(p, p->buffers[buffer].bytes, p->buffers[buffer].value);
    p->buffers[host].space = SF_SPACE_HOST;
    return host;
}

/* All of a buffer, as bytes. */
static sf_view bytes_of_buffer(const sf_program *p, uint32_t buffer)
{
    return (sf_view){.buffer = buffer,
                     .dtype = SF_U8,
                     .rank = 1,
                     .dims = {p->buffers[buffer].bytes},
                     .strides = {1}};
}

static sf_inst new_inst(sf_inst_kind kind)
{
    return (sf_inst){.kind = kind, .raises = SF_NONE, .origin = SF_NO_ORIGIN};
}

sf_inst sf_copy_inst(sf_program *p, uint32_t from, uint32_t to)
{
    SF_ASSERT(p->buffers[from].bytes == p->buffers[to].bytes);
    sf_inst inst = new_inst(SF_INST_COPY);
    inst.nin = inst.nout = 1;
    inst.in = SF_NEW(&p->arena, sf_view);
    inst.out = SF_NEW(&p->arena, sf_view);
    *inst.in = bytes_of_buffer(p, from);
    *inst.out = bytes_of_buffer(p, to);
    return inst;
}

sf_inst sf_join_inst(sf_program *p, const uint32_t *buffers, uint32_t count)
{
    sf_inst inst = new_inst(SF_INST_JOIN);
    inst.nin = count;
    inst.in = SF_ARRAY(&p->arena, count, sf_view);
    for (uint32_t i = 0; i < count; i++)
        inst.in[i] = bytes_of_buffer(p, buffers[i]);
    return inst;
}

/* Whoever keeps the list of instructions keeps their views: those that change are copies. */
static sf_view *rename_views(sf_program *p, sf_view *views, uint32_t count, const uint32_t *named)
{
    uint32_t i = 0;
    while (i < count && named[views[i].buffer] == 0)
        i++;
    if (i == count)
        return views;
    sf_view *copy = sf_arena_copy(&p->arena, views, count * sizeof *views);
    for (i = 0; i < count; i++)
        if (named[copy[i].buffer] > 0)
            copy[i].buffer = named[copy[i].buffer];
    return copy;
}

void sf_house_on_host(sf_program *p, const uint32_t *arguments, size_t count, uint32_t *buffers)
{
    sf_arena scratch = {0};
    uint32_t *named = SF_ARRAY(&scratch, p->nbuffers, uint32_t); /* by buffer: its new one */
    for (size_t a = 0; a < count; a++) {
        const sf_buffer was = p->buffers[arguments[a]];
        p->buffers[arguments[a]].space = SF_SPACE_HOST;
        buffers[a] = named[arguments[a]] = sf_program_add_buffer(p, was.bytes, was.value);
    }
    sf_inst *insts = sf_arena_copy(&p->arena, p->insts, p->ninsts * sizeof *insts);
    for (size_t i = 0; i < p->ninsts; i++) {
        insts[i].in = rename_views(p, insts[i].in, insts[i].nin, named);
        insts[i].out = rename_views(p, insts[i].out, insts[i].nout, named);
    }
    p->insts = insts;
    p->inst_capacity = p->ninsts;
    sf_arena_free(&scratch);
}

void sf_insert_insts(sf_program *p, const sf_insertion *list, size_t count)
{
    size_t all = p->ninsts + count, at = 0, next = 0;
    sf_inst *insts = SF_ARRAY(&p->arena, all, sf_inst);
    for (uint32_t i = 0; i <= p->ninsts; i++) {
        for (; next < count && list[next].before == i; next++)
            insts[at++] = list[next].inst;
        if (i < p->ninsts)
            insts[at++] = p->insts[i];
    }
    SF_ASSERT(at == all);
    p->insts = insts;
    p->ninsts = p->inst_capacity = all;
}
