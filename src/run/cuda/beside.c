/* What goes on beside the compute: collectives and copies. Each begins where it stands in the list, and is waited for by who waits
 * for its event.
 *
 * Ranks of one process see each other's memory of the device: their communicator copies and adds there, by the functions below.
 * Between processes a collective goes through memory of the host. */
#include <string.h>

#include "base/mem.h"
#include "run/cuda/beside.h"

/* Collectives in memory of the device */

/* Any thread may come here, for this rank. */
static bool note_failure(sf_diag *unheard, sf_status status)
{
    sf_diag_free(unheard);
    return status == SF_OK;
}

static bool copy_on_device(void *context, void *out, const void *in, int64_t bytes)
{
    const exchange *e = context;
    sf_diag *unheard = sf_diag_new();
    const sf_device_table *table = table_of(e->engine);
    sf_status status = table->move(e->engine->device, SF_LANE_EXCHANGE, out, in, bytes, unheard);
    if (status == SF_OK)
        status = table->wait_on(e->engine->device, SF_LANE_EXCHANGE, unheard);
    return note_failure(unheard, status);
}

/* The kernel takes sources in the order in which they are combined, the result and the number of elements. */
static bool fold_on_device(void *context, const void *const *sources, int members, int segment,
                           void *out, int64_t count)
{
    const exchange *e = context;
    uint64_t values[SF_MOST_FOLDED + 2];
    void *params[SF_MOST_FOLDED + 2];
    const sf_device_table *table = table_of(e->engine);
    sf_diag *unheard = sf_diag_new();
    for (int i = 0; i < members; i++)
        values[i] = (uint64_t)(uintptr_t)sources[(segment + 1 + i) % members];
    values[members] = (uint64_t)(uintptr_t)out;
    values[members + 1] = (uint64_t)count;
    for (int i = 0; i < members + 2; i++)
        params[i] = &values[i];
    sf_status status =
        table->launch_on(e->engine->device, SF_LANE_EXCHANGE, e->fold->function,
                         sf_blocks_for(count, e->fold->threads), e->fold->threads, params, unheard);
    if (status == SF_OK)
        status = table->wait_on(e->engine->device, SF_LANE_EXCHANGE, unheard);
    return note_failure(unheard, status);
}

static bool reduces(const sf_inst *inst)
{
    return inst->exchange->kind == SF_ALL_REDUCE || inst->exchange->kind == SF_REDUCE_SCATTER;
}

void sf_cuda_make_exchange(cuda *c, const sf_inst *inst, made *m)
{
    const sf_view *parts = inst->nout > 0 ? inst->out : inst->in;
    uint32_t nparts = inst->nout > 0 ? inst->nout : inst->nin;
    exchange *e = SF_NEW(&c->memory, exchange);
    m->exchange = e;
    e->engine = c;
    e->counts = SF_ARRAY(&c->memory, nparts + 1, int64_t);
    e->strides = SF_ARRAY(&c->memory, nparts + 1, int64_t);
    for (uint32_t i = 0; i < nparts; i++) {
        e->counts[i] = sf_view_count(&parts[i]);
        e->strides[i] = sf_exchange_stride(inst, i);
    }
    e->where = (sf_transfer_memory){e, copy_on_device, fold_on_device};
}

/* Through memory of the host */

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

static sf_status stage_operands(cuda *c, const sf_inst *inst, const made *m, sf_diag *diag)
{
    exchange *e = m->exchange;
    e->in = SF_ARRAY(&e->staging, inst->nin + 1, char *);
    e->out = SF_ARRAY(&e->staging, inst->nout + 1, char *);
    for (uint32_t i = 0; i < inst->nin; i++) {
        e->in[i] = sf_arena_alloc(&e->staging, (size_t)view_bytes(&inst->in[i]) + 1);
        SF_TRY(bring_blocks(c, &inst->in[i], m->in[i], e->in[i], false, diag));
    }
    for (uint32_t i = 0; i < inst->nout; i++)
        e->out[i] = sf_arena_alloc(&e->staging, (size_t)view_bytes(&inst->out[i]) + 1);
    return SF_OK;
}

/* A group of one: the operands are the results. */
static sf_status copy_alone(cuda *c, const sf_inst *inst, const made *m, sf_diag *diag)
{
    for (uint32_t i = 0; i < inst->nout && i < inst->nin; i++)
        if (m->out[i] != m->in[i])
            SF_TRY(
                table_of(c)->copy(c->device, m->out[i], m->in[i], view_bytes(&inst->out[i]), diag));
    return SF_OK;
}

static sf_status start_exchange(cuda *c, const sf_inst *inst, const made *m, sf_diag *diag)
{
    exchange *e = m->exchange;
    bool gives = inst->nout > 0;
    bool direct = c->collectives.comm && sf_comm_is_one_process(c->collectives.comm) &&
                  (!reduces(inst) || e->fold);
    if (inst->exchange->size == 1)
        return copy_alone(c, inst, m, diag);
    sf_collective_memory memory = {.dtype = gives ? inst->out[0].dtype : inst->in[0].dtype,
                                   .nparts = gives ? inst->nout : inst->nin,
                                   .counts = e->counts};
    if (direct) {
        SF_TRY(table_of(c)->wait(
            c->device, diag)); /* what is read is there, and nobody reads what is written */
        memory.strides = e->strides;
        memory.where = &e->where;
    } else {
        SF_TRY(stage_operands(c, inst, m, diag));
    }
    memory.in = inst->nin == 0 ? NULL : direct ? m->in : e->in;
    memory.out = !gives ? NULL : direct ? m->out : e->out;
    e->staged = !direct;
    return sf_collective_start(&c->collectives, inst->exchange, &memory, inst->origin.loc, diag,
                               &e->request);
}

static sf_status end_exchange(cuda *c, const sf_inst *inst, const made *m, sf_diag *diag)
{
    exchange *e = m->exchange;
    if (!e->request)
        return SF_OK;
    sf_request *request = e->request;
    e->request = NULL;
    sf_status status = sf_comm_wait(request, diag);
    for (uint32_t i = 0; e->staged && i < inst->nout && status == SF_OK; i++)
        status = bring_blocks(c, &inst->out[i], m->out[i], e->out[i], true, diag);
    sf_arena_free(&e->staging);
    return status;
}

/* Copies */

static sf_status start_copy(cuda *c, const frame *f, const sf_inst *inst, const made *m,
                            sf_diag *diag)
{
    sf_lane lane = sf_copy_lane(f->program, inst);
    bool timed = c->is_timed && m->marks > 0;
    SF_TRY(table_of(c)->follow(c->device, lane, SF_LANE_COMPUTE, diag));
    if (timed)
        SF_TRY(table_of(c)->mark(c->device, lane, m->marks, c->nmarks, diag));
    for (uint32_t i = 0; i < inst->nout; i++)
        SF_TRY(table_of(c)->move(c->device, lane, m->out[i], m->in[i], view_bytes(&inst->out[i]),
                                 diag));
    if (timed)
        SF_TRY(table_of(c)->mark(c->device, lane, m->marks + 1, c->nmarks, diag));
    if (inst->raises == SF_NONE)
        return SF_OK;
    return table_of(c)->raise(c->device, lane, f->first_event + inst->raises, c->nevents, diag);
}

/* All */

sf_status sf_cuda_start_beside(cuda *c, const frame *f, uint32_t index, sf_diag *diag)
{
    const sf_inst *inst = &f->program->insts[index];
    const made *m = &f->insts[index];
    return inst->kind == SF_INST_COMM ? start_exchange(c, inst, m, diag)
                                      : start_copy(c, f, inst, m, diag);
}

sf_status sf_cuda_await(cuda *c, const frame *f, const sf_inst *inst, sf_diag *diag)
{
    sf_lane lane = inst->kind == SF_INST_COPY ? sf_copy_lane(f->program, inst) : SF_LANE_COMPUTE;
    for (uint32_t i = 0; i < inst->nwaits; i++) {
        uint32_t raiser = f->raisers[inst->waits[i]];
        const sf_inst *other = &f->program->insts[raiser];
        if (other->kind == SF_INST_COMM)
            SF_TRY(end_exchange(c, other, &f->insts[raiser], diag));
        if (other->kind == SF_INST_COPY)
            SF_TRY(table_of(c)->await(c->device, lane, f->first_event + inst->waits[i], diag));
    }
    return SF_OK;
}

sf_status sf_cuda_await_all(cuda *c, const frame *f, sf_diag *diag)
{
    if (!f->has_beside)
        return SF_OK;
    for (size_t i = 0; i < f->program->ninsts; i++)
        if (f->program->insts[i].kind == SF_INST_COMM)
            SF_TRY(end_exchange(c, &f->program->insts[i], &f->insts[i], diag));
    for (int lane = 0; lane < SF_LANE_COUNT; lane++)
        if (f->copies[lane])
            SF_TRY(table_of(c)->follow(c->device, SF_LANE_COMPUTE, (sf_lane)lane, diag));
    return SF_OK;
}

/* Waits for those that are under way, in all frames; they have been told to stop. */
static void drop_requests(cuda *c, const frame *f, sf_diag *unheard)
{
    for (size_t i = 0; i < f->program->ninsts; i++) {
        const sf_inst *inst = &f->program->insts[i];
        const made *m = &f->insts[i];
        if (inst->kind == SF_INST_COMM)
            end_exchange(c, inst, m, unheard);
        for (uint32_t j = 0; j < sf_body_count(inst); j++)
            drop_requests(c, &m->bodies[j], unheard);
    }
}

void sf_cuda_drop_beside(cuda *c)
{
    sf_diag *unheard = sf_diag_new();
    drop_requests(c, &c->top, unheard);
    sf_diag_free(unheard);
}
