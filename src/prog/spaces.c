#include "prog/spaces.h"

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

static void rename_views(sf_program *p, sf_view **views, uint32_t count, uint32_t from, uint32_t to)
{
    sf_view *copy = SF_ARRAY(&p->arena, count, sf_view);
    for (uint32_t i = 0; i < count; i++) {
        copy[i] = (*views)[i];
        if (copy[i].buffer == from)
            copy[i].buffer = to;
    }
    *views = copy;
}

/* Instructions that are undone later keep their views: those that change are copies. */
uint32_t sf_house_on_host(sf_program *p, uint32_t argument)
{
    uint32_t buffer =
        sf_program_add_buffer(p, p->buffers[argument].bytes, p->buffers[argument].value);
    sf_inst *insts = SF_ARRAY(&p->arena, p->ninsts, sf_inst);
    for (size_t i = 0; i < p->ninsts; i++) {
        insts[i] = p->insts[i];
        rename_views(p, &insts[i].in, insts[i].nin, argument, buffer);
        rename_views(p, &insts[i].out, insts[i].nout, argument, buffer);
    }
    p->buffers[argument].space = SF_SPACE_HOST;
    p->insts = insts;
    p->inst_capacity = p->ninsts;
    return buffer;
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
