/* Instructions of a program, one after the other, on a device. */
#include <string.h>

#include "base/mem.h"
#include "op/eval.h"
#include "op/op.h"
#include "run/cuda/cuda.h"

static sf_status launch_some(cuda *c, const made *m, size_t first, size_t end, sf_diag *diag)
{
    for (size_t i = first; i < end; i++) {
        const ready *r = &m->launches[i];
        SF_TRY(table_of(c)->launch(c->device, r->function, r->blocks, r->threads, r->params, diag));
    }
    return SF_OK;
}

/* A check of a program that tests itself looks at its operands on the host: it reports, and computes nothing. */
static sf_status run_check(cuda *c, const sf_inst *inst, const made *m, sf_diag *diag)
{
    sf_eval eval = {.diag = diag};
    const sf_call *call = inst->call;
    sf_tensor *in = SF_ARRAY(&eval.scratch, inst->nin + 1, sf_tensor);
    sf_status status = SF_OK;
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
    for (;;) {
        uint8_t goes_on;
        SF_TRY(sf_cuda_run(c, &m->bodies[0], diag));
        SF_TRY(table_of(c)->get(c->device, &goes_on, m->out[nest->nresults], 1, diag));
        if (!goes_on)
            return SF_OK;
        SF_TRY(sf_cuda_run(c, &m->bodies[1], diag));
    }
}

static sf_status run_case(cuda *c, const sf_inst *inst, const made *m, sf_diag *diag)
{
    int32_t index;
    SF_TRY(table_of(c)->get(c->device, &index, m->in[0], sizeof index, diag));
    bool is_known = index >= 0 && (uint32_t)index < inst->nest->nbodies;
    return sf_cuda_run(c, &m->bodies[is_known ? (uint32_t)index : inst->nest->nbodies - 1], diag);
}

/* What a collective takes or gives, between its place on the device and one in which it lies together. */
static sf_status bring_blocks(cuda *c, const sf_view *view, char *device, char *host,
                              bool to_device, sf_diag *diag)
{
    int64_t blocks = sf_view_is_contiguous(view) ? 1 : view->dims[0];
    int64_t bytes = view_bytes(view) / (blocks > 0 ? blocks : 1);
    int64_t step = blocks > 1 ? view->strides[0] * sf_dtype_get(view->dtype)->bytes : 0;
    for (int64_t b = 0; b < blocks; b++, device += step, host += bytes)
        SF_TRY(to_device ? table_of(c)->put(c->device, device, host, bytes, diag)
                         : table_of(c)->get(c->device, host, device, bytes, diag));
    return SF_OK;
}

/* Through memory of the host, and waited for where it stands. */
static sf_status run_exchange(cuda *c, const sf_inst *inst, const made *m, sf_diag *diag)
{
    sf_arena scratch = {0};
    bool gives = inst->nout > 0;
    uint32_t nparts = gives ? inst->nout : inst->nin;
    char **in = SF_ARRAY(&scratch, inst->nin + 1, char *),
         **out = SF_ARRAY(&scratch, nparts + 1, char *);
    sf_status status = SF_OK;
    for (uint32_t i = 0; i < inst->nin && status == SF_OK; i++) {
        in[i] = sf_arena_alloc(&scratch, (size_t)view_bytes(&inst->in[i]) + 1);
        status = bring_blocks(c, &inst->in[i], m->in[i], in[i], false, diag);
    }
    for (uint32_t i = 0; i < inst->nout; i++)
        out[i] = sf_arena_alloc(&scratch, (size_t)view_bytes(&inst->out[i]) + 1);
    sf_collective_memory memory = {.dtype = gives ? inst->out[0].dtype : inst->in[0].dtype,
                                   .nparts = nparts,
                                   .counts = m->counts,
                                   .in = inst->nin > 0 ? in : NULL,
                                   .out = gives ? out : NULL};
    sf_request *request = NULL;
    if (status == SF_OK)
        status = sf_collective_start(&c->collectives, inst->exchange, &memory, inst->origin.loc,
                                     diag, &request);
    if (status == SF_OK && request)
        status = sf_comm_wait(request, diag);
    for (uint32_t i = 0; i < inst->nout && status == SF_OK; i++)
        status = bring_blocks(c, &inst->out[i], m->out[i], out[i], true, diag);
    sf_arena_free(&scratch);
    return status;
}

/* Between memory of the device and of the host, one after the other. */
static sf_status run_copy(cuda *c, const frame *f, const sf_inst *inst, const made *m,
                          sf_diag *diag)
{
    const sf_buffer *buffers = f->program->buffers;
    for (uint32_t i = 0; i < inst->nout; i++) {
        bool from_host = buffers[inst->in[i].buffer].space == SF_SPACE_HOST;
        bool to_host = buffers[inst->out[i].buffer].space == SF_SPACE_HOST;
        int64_t bytes = view_bytes(&inst->out[i]);
        if (from_host && to_host)
            memmove(m->out[i], m->in[i], (size_t)bytes);
        else if (to_host)
            SF_TRY(table_of(c)->get(c->device, m->out[i], m->in[i], bytes, diag));
        else if (from_host)
            SF_TRY(table_of(c)->put(c->device, m->out[i], m->in[i], bytes, diag));
        else
            SF_TRY(table_of(c)->copy(c->device, m->out[i], m->in[i], bytes, diag));
    }
    return SF_OK;
}

static sf_status run_inst(cuda *c, const frame *f, const sf_inst *inst, const made *m,
                          sf_diag *diag)
{
    switch (inst->kind) {
    case SF_INST_WHILE:
        return run_while(c, inst, m, diag);
    case SF_INST_CASE:
        return run_case(c, inst, m, diag);
    case SF_INST_COMM:
        return run_exchange(c, inst, m, diag);
    case SF_INST_COPY:
        return run_copy(c, f, inst, m, diag);
    case SF_INST_CALL:
        if (is_check(inst))
            return run_check(c, inst, m, diag);
        break;
    case SF_INST_DOT:
    case SF_INST_CONV:
        if (m->plan) {
            SF_TRY(launch_some(c, m, 0, m->code.before, diag));
            SF_TRY(table_of(c)->multiply(c->device, m->plan, m->product, diag));
        }
        break;
    case SF_INST_LOOP:
    case SF_INST_JOIN: /* copies have ended when they have begun */
    case SF_INST_KIND_COUNT:
        break;
    }
    return launch_some(c, m, m->code.before, m->code.nlaunches, diag);
}

sf_status sf_cuda_run_timed(cuda *c, sf_diag *diag)
{
    const sf_program *p = c->program;
    size_t count = p->ninsts + 1;
    SF_TRY(table_of(c)->mark(c->device, 0, count, diag));
    for (size_t i = 0; i < p->ninsts; i++) {
        SF_TRY(run_inst(c, &c->top, &p->insts[i], &c->top.insts[i], diag));
        SF_TRY(table_of(c)->mark(c->device, i + 1, count, diag));
    }
    SF_TRY(table_of(c)->wait(c->device, diag));
    double *ends = sf_alloc(count * sizeof *ends);
    sf_status status = table_of(c)->when(c->device, count, ends, diag);
    for (size_t i = 0; i < p->ninsts && status == SF_OK; i++) {
        c->timings[i] = (sf_timing){.start = ends[i], .end = ends[i + 1]};
        c->seconds[i] = ends[i + 1] - ends[i];
    }
    sf_free(ends);
    return status;
}

sf_status sf_cuda_run(cuda *c, const frame *f, sf_diag *diag)
{
    for (size_t i = 0; i < f->program->ninsts; i++)
        SF_TRY(run_inst(c, f, &f->program->insts[i], &f->insts[i], diag));
    return SF_OK;
}
