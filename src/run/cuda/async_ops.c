/* Asynchronous operations: collectives and copies. Each begins at its place in the list, and
 * instructions that wait for its event wait for it.
 *
 * If each rank has a GPU, NCCL runs those that it supports (nccl_groups.h). Else, ranks of one
 * process on one GPU access each other's memory: their communicator copies and adds there, by the
 * functions below. All others go through memory of the host. */
#include <string.h>

#include "base/mem.h"
#include "run/cuda/async_ops.h"
#include "run/cuda/nccl_groups.h"
#include "run/cuda/nccl_small_reduce.h"
#include "run/cuda/nccl_step_end.h"

/* Events before and after an asynchronous operation, in a step that is timed. */
static sf_status mark_beside(cuda *c, sf_lane lane, const made *m, size_t which, sf_diag *diag)
{
    if (!c->is_timed || m->marks == 0)
        return SF_OK;
    return table_of(c)->mark(c->device, lane, m->marks + which, c->nmarks, diag);
}

static sf_status end_beside(cuda *c, const frame *f, sf_lane lane, const sf_inst *inst,
                            const made *m, sf_diag *diag)
{
    SF_TRY(mark_beside(c, lane, m, 1, diag));
    if (inst->raises == SF_NONE)
        return SF_OK;
    return table_of(c)->raise(c->device, lane, f->first_event + inst->raises, c->nevents, diag);
}

/* Collectives in memory of the device */

/* Any thread may come here, for this rank. */
static bool copy_on_device(void *context, void *out, const void *in, int64_t bytes)
{
    const exchange *e = context;
    const sf_device_table *table = table_of(e->engine);
    sf_status status = table->move(e->engine->device, SF_LANE_EXCHANGE, out, in, bytes, NULL);
    if (status == SF_OK)
        status = table->wait_on(e->engine->device, SF_LANE_EXCHANGE, NULL);
    return status == SF_OK;
}

static bool fold_on_device(void *context, const void *const *sources, int members, int segment,
                           void *out, int64_t count)
{
    const exchange *e = context;
    uint64_t values[SF_MOST_FOLDED + 2];
    void *params[SF_MOST_FOLDED + 2];
    const sf_device_table *table = table_of(e->engine);
    sf_cuda_fold_values(sources, members, segment, out, count, values, params);
    sf_status status =
        table->launch_on(e->engine->device, SF_LANE_EXCHANGE, e->fold->function,
                         sf_blocks_for(count, e->fold->threads), e->fold->threads, params, NULL);
    if (status == SF_OK)
        status = table->wait_on(e->engine->device, SF_LANE_EXCHANGE, NULL);
    return status == SF_OK;
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

/* The operand or result of a collective, between its view on the device and contiguous memory. */
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

/* Lanes are not in a graph, and operations on different lanes are not ordered: so exchanges follow
 * each other in the order in which they are put, which is one in which no rank waits for ever
 * (nccl_order.h). */
static sf_status keep_order(cuda *c, sf_lane lane, sf_diag *diag)
{
    sf_lane before = c->last_put;
    c->last_put = lane;
    if (!c->is_drawn || before == SF_LANE_COMPUTE || before == lane)
        return SF_OK;
    return table_of(c)->follow(c->device, lane, before, diag);
}

/* On its lane, after the compute that precedes it. */
static sf_status put_by_nccl(cuda *c, const frame *f, const sf_inst *inst, const made *m,
                             sf_diag *diag)
{
    const exchange *e = m->exchange;
    sf_lane lane = e->nccl->lane;
    SF_TRY(e->is_put_later ? table_of(c)->await(c->device, lane, e->begun, diag)
                           : table_of(c)->follow(c->device, lane, SF_LANE_COMPUTE, diag));
    SF_TRY(keep_order(c, lane, diag));
    SF_TRY(mark_beside(c, lane, m, 0, diag));
    SF_TRY(sf_nccl_put(&c->nccl, e->nccl, &e->transfer, diag));
    for (int i = 0; i < e->nfolds; i++)
        SF_TRY(table_of(c)->launch_on(c->device, lane, e->folds[i].function, e->folds[i].blocks,
                                      e->folds[i].threads, e->folds[i].params, diag));
    return end_beside(c, f, lane, inst, m, diag);
}

sf_status sf_cuda_put_before(cuda *c, const frame *f, uint32_t index, sf_diag *diag)
{
    for (uint32_t i = f->first_put[index]; i < f->first_put[index + 1]; i++)
        SF_TRY(put_by_nccl(c, f, &f->program->insts[f->puts[i]], &f->insts[f->puts[i]], diag));
    return SF_OK;
}

static sf_status start_by_comm(cuda *c, const sf_inst *inst, const made *m, sf_diag *diag)
{
    exchange *e = m->exchange;
    bool direct = c->collectives.comm && sf_comm_is_one_process(c->collectives.comm) &&
                  c->device->count == 1 &&
                  (!sf_collective_get(inst->exchange->kind)->reduces || e->fold);
    sf_collective_memory memory = sf_cuda_memory_of(inst, m);
    SF_TRY(sf_cuda_settle(c, diag));
    if (direct) {
        SF_TRY(table_of(c)->wait(c->device,
                                 diag)); /* operands are ready, and results have no readers left */
        memory.where = &e->where;
    } else {
        SF_TRY(stage_operands(c, inst, m, diag));
        memory.strides = NULL;
        memory.in = memory.in ? e->in : NULL;
        memory.out = memory.out ? e->out : NULL;
    }
    e->staged = !direct;
    return sf_collective_start(&c->collectives, inst->exchange, &memory, inst->origin.loc, diag,
                               &e->request);
}

static sf_status start_exchange(cuda *c, const frame *f, const sf_inst *inst, const made *m,
                                sf_diag *diag)
{
    const exchange *e = m->exchange;
    if (e->nccl && e->is_put_later)
        return table_of(c)->raise(c->device, SF_LANE_COMPUTE, e->begun, c->nevents, diag);
    if (e->nccl)
        return put_by_nccl(c, f, inst, m, diag);
    SF_TRY(mark_beside(c, SF_LANE_COMPUTE, m, 0, diag));
    SF_TRY(inst->exchange->size == 1 ? copy_alone(c, inst, m, diag)
                                     : start_by_comm(c, inst, m, diag));
    return mark_beside(c, SF_LANE_COMPUTE, m, 1, diag);
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
    SF_TRY(table_of(c)->follow(c->device, lane, SF_LANE_COMPUTE, diag));
    SF_TRY(mark_beside(c, lane, m, 0, diag));
    for (uint32_t i = 0; i < inst->nout; i++)
        SF_TRY(table_of(c)->move(c->device, lane, m->out[i], m->in[i], view_bytes(&inst->out[i]),
                                 diag));
    return end_beside(c, f, lane, inst, m, diag);
}

/* All */

sf_status sf_cuda_start_beside(cuda *c, const frame *f, uint32_t index, sf_diag *diag)
{
    const sf_inst *inst = &f->program->insts[index];
    const made *m = &f->insts[index];
    return inst->kind == SF_INST_COMM ? start_exchange(c, f, inst, m, diag)
                                      : start_copy(c, f, inst, m, diag);
}

sf_status sf_cuda_await(cuda *c, const frame *f, const sf_inst *inst, sf_diag *diag)
{
    sf_lane lane = inst->kind == SF_INST_COPY ? sf_copy_lane(f->program, inst) : SF_LANE_COMPUTE;
    for (uint32_t i = 0; i < inst->nwaits; i++) {
        uint32_t raiser = f->raisers[inst->waits[i]];
        const sf_inst *other = &f->program->insts[raiser];
        bool by_nccl = other->kind == SF_INST_COMM && f->insts[raiser].exchange->nccl;
        if (other->kind == SF_INST_COMM)
            SF_TRY(end_exchange(c, other, &f->insts[raiser], diag));
        if (other->kind == SF_INST_COPY || by_nccl)
            SF_TRY(table_of(c)->await(c->device, lane, f->first_event + inst->waits[i], diag));
    }
    return SF_OK;
}

sf_status sf_cuda_await_all(cuda *c, const frame *f, sf_diag *diag)
{
    if (!f->has_beside)
        return SF_OK;
    if (f->puts)
        SF_TRY(sf_cuda_put_before(c, f, (uint32_t)f->program->ninsts, diag));
    for (size_t i = 0; i < f->program->ninsts; i++) {
        if (f->program->insts[i].kind != SF_INST_COMM)
            continue;
        const exchange *e = f->insts[i].exchange;
        SF_TRY(end_exchange(c, &f->program->insts[i], &f->insts[i], diag));
        if (e->nccl && e->is_last)
            SF_TRY(table_of(c)->follow(c->device, SF_LANE_COMPUTE, e->nccl->lane, diag));
    }
    for (int lane = 0; lane < SF_LANE_COUNT; lane++)
        if (f->copies[lane])
            SF_TRY(table_of(c)->follow(c->device, SF_LANE_COMPUTE, (sf_lane)lane, diag));
    return SF_OK;
}

/* Waits for those that are under way, in all frames; they have been told to stop. */
static void drop_requests(cuda *c, const frame *f)
{
    for (size_t i = 0; i < f->program->ninsts; i++) {
        const sf_inst *inst = &f->program->insts[i];
        const made *m = &f->insts[i];
        if (inst->kind == SF_INST_COMM)
            end_exchange(c, inst, m, NULL);
        for (uint32_t j = 0; j < sf_body_count(inst); j++)
            drop_requests(c, &m->bodies[j]);
    }
}

void sf_cuda_drop_beside(cuda *c)
{
    sf_cuda_leave_nccl_groups(c);
    drop_requests(c, &c->top);
}
