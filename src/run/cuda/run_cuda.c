/* Instructions of a program, one after the other, on a device. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "op/eval.h"
#include "op/op.h"
#include "run/cuda/async_ops.h"
#include "run/cuda/cuda_faults.h"
#include "run/cuda/cuda_fused_launch.h"
#include "run/cuda/nccl_step_end.h"

static sf_status launch_some(cuda *c, const frame *f, const made *m, size_t first, size_t end,
                             sf_diag *diag)
{
    for (size_t i = first; i < end; i++) {
        const ready *r = &m->launches[i];
        SF_TRY(table_of(c)->launch(c->device, r->function, r->blocks, r->threads, r->params, diag));
        if (c->faults)
            SF_TRY(sf_cuda_look_at_faults(c, f, m, &m->code.launches[i], diag));
    }
    return SF_OK;
}

/* A check of a program that tests itself looks at its operands on the host: it reports, and computes nothing. */
static sf_status run_check(cuda *c, const sf_inst *inst, const made *m, sf_diag *diag)
{
    sf_eval eval = {.diag = diag};
    const sf_call *call = inst->call;
    sf_tensor *in = SF_ARRAY(&eval.scratch, inst->nin + 1, sf_tensor);
    sf_status status = sf_cuda_settle(c, diag);
    for (uint32_t i = 0; i < inst->nin && status == SF_OK; i++) {
        int64_t bytes = sf_type_bytes(call->op.in[i]);
        in[i] = (sf_tensor){.type = call->op.in[i],
                            .data = sf_arena_alloc(&eval.scratch, (size_t)bytes + 1)};
        status = table_of(c)->get(c->device, in[i].data, m->in[i], bytes, diag);
    }
    if (status == SF_OK)
        status = call->op.def->eval(&eval, &call->op, in, NULL);
    sf_arena_free(&eval.scratch);
    return status;
}

static sf_status run_while(cuda *c, const sf_inst *inst, const made *m, sf_diag *diag)
{
    const sf_nest *nest = inst->nest;
    for (uint32_t i = 0; i < nest->nresults; i++)
        if (!nest->is_fixed[i] && m->out[i] != m->in[i])
            SF_TRY(
                table_of(c)->copy(c->device, m->out[i], m->in[i], view_bytes(&inst->out[i]), diag));
    for (int64_t i = 0; i < nest->trips; i++)
        SF_TRY(sf_cuda_run(c, &m->bodies[1], diag));
    while (nest->trips < 0) {
        uint8_t goes_on;
        SF_TRY(sf_cuda_run(c, &m->bodies[0], diag));
        SF_TRY(sf_cuda_settle(c, diag));
        SF_TRY(table_of(c)->get(c->device, &goes_on, m->out[nest->nresults], 1, diag));
        if (!goes_on)
            return SF_OK;
        SF_TRY(sf_cuda_run(c, &m->bodies[1], diag));
    }
    return SF_OK;
}

static sf_status run_case(cuda *c, const sf_inst *inst, const made *m, sf_diag *diag)
{
    int32_t index;
    SF_TRY(sf_cuda_settle(c, diag));
    SF_TRY(table_of(c)->get(c->device, &index, m->in[0], sizeof index, diag));
    bool is_known = index >= 0 && (uint32_t)index < inst->nest->nbodies;
    return sf_cuda_run(c, &m->bodies[is_known ? (uint32_t)index : inst->nest->nbodies - 1], diag);
}

static sf_status run_product(cuda *c, const frame *f, const made *m, sf_diag *diag)
{
    if (m->plan) {
        SF_TRY(launch_some(c, f, m, 0, m->code.before, diag));
        SF_TRY(table_of(c)->multiply(c->device, m->plan, m->product, diag));
    }
    return launch_some(c, f, m, m->code.before, m->code.nlaunches, diag);
}

static sf_status run_inst(cuda *c, const frame *f, uint32_t index, sf_diag *diag)
{
    const sf_inst *inst = &f->program->insts[index];
    const made *m = &f->insts[index];
    if (f->puts)
        SF_TRY(sf_cuda_put_before(c, f, index, diag));
    if (f->has_beside)
        SF_TRY(sf_cuda_await(c, f, inst, diag));
    switch (inst->kind) {
    case SF_INST_WHILE:
        return run_while(c, inst, m, diag);
    case SF_INST_CASE:
        return run_case(c, inst, m, diag);
    case SF_INST_COMM:
    case SF_INST_COPY:
        return sf_cuda_start_beside(c, f, index, diag);
    case SF_INST_CALL:
        if (is_check(inst))
            return run_check(c, inst, m, diag);
        break;
    case SF_INST_DOT:
    case SF_INST_CONV:
        return run_product(c, f, m, diag);
    case SF_INST_LOOP:
    case SF_INST_JOIN: /* the awaited event has been waited for */
    case SF_INST_KIND_COUNT:
        break;
    }
    return launch_some(c, f, m, m->code.before, m->code.nlaunches, diag);
}

/* Of a copy, and of a collective by NCCL, when it was on its lane. */
static void note_timings(cuda *c, const double *when)
{
    for (size_t i = 0; i < c->program->ninsts; i++) {
        size_t marks = c->top.insts[i].marks;
        const double *at = marks ? &when[marks] : &when[i];
        c->timings[i] = (sf_timing){.start = at[0], .end = at[1]};
        c->seconds[i] = at[1] - at[0];
    }
    sf_cuda_share_timings(c);
}

sf_status sf_cuda_run_timed(cuda *c, sf_diag *diag)
{
    const sf_program *p = c->program;
    c->is_timed = true;
    SF_TRY(table_of(c)->mark(c->device, SF_LANE_COMPUTE, 0, c->nmarks, diag));
    for (uint32_t i = 0; i < p->ninsts; i++) {
        SF_TRY(run_inst(c, &c->top, i, diag));
        SF_TRY(table_of(c)->mark(c->device, SF_LANE_COMPUTE, i + 1, c->nmarks, diag));
    }
    SF_TRY(sf_cuda_await_all(c, &c->top, diag));
    SF_TRY(sf_cuda_end_step(c, diag));
    c->is_timed = false;
    double *when = sf_alloc(c->nmarks * sizeof *when);
    sf_status status = table_of(c)->when(c->device, c->nmarks, when, diag);
    if (status == SF_OK) {
        note_timings(c, when);
        c->slowest = fmax(c->slowest, when[p->ninsts]);
    }
    sf_free(when);
    return status;
}

sf_status sf_cuda_run(cuda *c, const frame *f, sf_diag *diag)
{
    for (uint32_t i = 0; i < f->program->ninsts; i++)
        SF_TRY(run_inst(c, f, i, diag));
    return sf_cuda_await_all(c, f, diag);
}
