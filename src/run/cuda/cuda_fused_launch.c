#include "run/cuda/cuda_fused_launch.h"

#include "prog/fused_launch.h"

static void find_in_stretch(cuda *c, frame *f, uint32_t first, uint32_t count)
{
    sf_code **codes = SF_ARRAY(&c->memory, count, sf_code *);
    sf_fused_launch *fused_launches;
    for (uint32_t i = 0; i < count; i++)
        codes[i] = &f->insts[first + i].code;
    size_t found = sf_write_fused_launches(&c->module, &c->memory, codes, count, &fused_launches);
    for (size_t b = 0; b < found; b++) {
        uint32_t *members = SF_ARRAY(&c->memory, fused_launches[b].count, uint32_t);
        for (uint32_t i = 0; i < fused_launches[b].count; i++) {
            members[i] = first + fused_launches[b].members[i];
            f->insts[members[i]].code.nlaunches = 0;
        }
        fused_launches[b].members = members;
        made *leader = &f->insts[members[0]];
        leader->fused = &fused_launches[b];
        leader->code.launches[0] = fused_launches[b].launch;
        leader->code.nlaunches = 1;
    }
}

void sf_cuda_find_fused_launches(cuda *c, frame *f)
{
    uint32_t ninsts = (uint32_t)f->program->ninsts;
    const uint32_t *firsts = sf_fused_launches_of(f->program, f->buffers, &c->memory);
    for (uint32_t i = 0, end; i < ninsts; i = end) {
        for (end = i + 1; end < ninsts && firsts[end] == i;)
            end++;
        if (end - i > 1)
            find_in_stretch(c, f, i, end - i);
    }
}

size_t sf_cuda_number_of(const cuda *c, const sf_kernel *kernel)
{
    size_t i = 0;
    while (c->module.kernels[i] != kernel)
        i++;
    return i;
}

static void note_launched(const cuda *c, const frame *f, bool *is_launched)
{
    for (size_t i = 0; i < f->program->ninsts; i++) {
        const made *m = &f->insts[i];
        for (size_t j = 0; j < m->code.nlaunches; j++)
            is_launched[sf_cuda_number_of(c, m->code.launches[j].kernel)] = true;
        for (uint32_t j = 0; j < sf_body_count(&f->program->insts[i]); j++)
            note_launched(c, &m->bodies[j], is_launched);
    }
}

void sf_cuda_drop_kernels(cuda *c)
{
    bool *is_launched = SF_ARRAY(&c->memory, c->module.nkernels, bool);
    size_t kept = 0;
    note_launched(c, &c->top, is_launched);
    for (size_t i = 0; i < c->module.nkernels; i++)
        if (is_launched[i])
            c->module.kernels[kept++] = c->module.kernels[i];
    c->module.nkernels = kept;
}

static void share_timing(cuda *c, const sf_fused_launch *fused)
{
    const sf_inst *insts = c->program->insts;
    double all = 0, at = c->timings[fused->members[0]].start;
    double seconds = c->seconds[fused->members[0]];
    for (uint32_t i = 0; i < fused->count; i++)
        all += sf_inst_touched(&insts[fused->members[i]]);
    for (uint32_t i = 0; i < fused->count; i++) {
        uint32_t member = fused->members[i];
        double share = all > 0 ? sf_inst_touched(&insts[member]) / all : 1.0 / fused->count;
        c->seconds[member] = seconds * share;
        c->timings[member] = (sf_timing){.start = at, .end = at + seconds * share};
        at += seconds * share;
    }
}

void sf_cuda_share_timings(cuda *c)
{
    for (size_t i = 0; i < c->program->ninsts; i++)
        if (c->top.insts[i].fused)
            share_timing(c, c->top.insts[i].fused);
}
