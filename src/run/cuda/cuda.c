/* The CUDA engine: runs a program on a GPU. The launches of an instruction, and all addresses, are
 * computed once, when it is opened; a step that never waits for the host becomes one graph
 * (cuda_graph.h), and is then started by one call. */
#include <string.h>

#include "base/mem.h"
#include "run/cuda/async_ops.h"
#include "run/cuda/cublaslt_epilogue.h"
#include "run/cuda/cuda_env.h"
#include "run/cuda/cuda_fused_launch.h"
#include "run/cuda/cuda_graph.h"
#include "run/cuda/cuda_target.h"
#include "run/cuda/device_buffers.h"
#include "run/cuda/nccl_groups.h"
#include "run/cuda/nccl_step_end.h"
#include "run/engine/engine_backend.h"
#include "run/engine/memory_fit.h"
#include "run/engine/program_constants.h"
#include "run/text/kernel_check.h"

/* A failure on one rank ends the step of the others. */
static sf_status tell_others(cuda *c, sf_status status, sf_diag *diag)
{
    if (status != SF_OK && c->collectives.comm) {
        sf_comm_abort(c->collectives.comm, sf_diag_reason(diag, status));
        sf_cuda_forget_graph(c); /* first: NCCL waits for those that it has a part in */
        sf_cuda_drop_beside(c);
    }
    return status;
}

static sf_status run_step(cuda *c, sf_diag *diag)
{
    if (!c->graph)
        return sf_cuda_run_timed(c, diag);
    SF_TRY(table_of(c)->replay(c->device, c->graph, diag));
    return sf_cuda_arrive(c, diag);
}

static sf_status start_cuda(void *self, sf_diag *diag, bool *goes_on)
{
    cuda *c = self;
    if (c->steps == 1) {
        SF_TRY(tell_others(c, sf_cuda_find_nccl_groups(c, diag), diag));
        sf_cuda_look_for_host(c);
    }
    if (!c->graph && c->steps > 1)
        sf_cuda_draw(c);
    c->steps++;
    *goes_on = c->graph != NULL;
    return tell_others(c, run_step(c, diag), diag);
}

static sf_status finish_cuda(void *self, sf_diag *diag)
{
    cuda *c = self;
    return tell_others(c, c->graph ? sf_cuda_end_step(c, diag) : SF_OK, diag);
}

/* Placing */

static sf_status place_constant(cuda *c, const sf_buffer *buffer, sf_diag *diag, char **out)
{
    SF_TRY(sf_cuda_own_memory(c, buffer->bytes, diag, out));
    char *elements = sf_alloc((size_t)buffer->bytes + 1);
    if (buffer->home == SF_HOME_CONSTANT) /* kept buffers begin with zeros */
        sf_constant_expand(buffer->constant, elements, buffer->bytes);
    sf_status status = table_of(c)->put(c->device, *out, elements, buffer->bytes, diag);
    sf_free(elements);
    return status;
}

static sf_status place_frame(cuda *c, frame *f, char *const *arenas, char *const *arguments,
                             sf_diag *diag)
{
    const sf_program *p = f->program;
    f->buffers = SF_ARRAY(&c->memory, p->nbuffers, char *);
    for (size_t i = 0; i < p->nbuffers; i++) {
        const sf_buffer *buffer = &p->buffers[i];
        if (sf_in_arena(buffer))
            f->buffers[i] = arenas[buffer->space] + buffer->offset;
        else if (buffer->home == SF_HOME_ARGUMENT)
            f->buffers[i] = arguments[buffer->argument];
        else
            SF_TRY(place_constant(c, buffer, diag, &f->buffers[i]));
    }
    return SF_OK;
}

static sf_status fail_unknown(const sf_inst *inst, sf_diag *diag)
{
    sf_fail(diag, SF_EUNSUPPORTED, inst->origin.loc,
            "engine cuda has no kernel for %s with this body or of this size", inst->origin.op);
    return sf_hint(diag, "option engine cpu runs it");
}

static void make_parts(cuda *c, const frame *f, const sf_inst *inst, made *m)
{
    m->in = SF_ARRAY(&c->memory, inst->nin + 1, char *);
    m->out = SF_ARRAY(&c->memory, inst->nout + 1, char *);
    for (uint32_t i = 0; i < inst->nin; i++)
        m->in[i] = view_pointer(f, &inst->in[i]);
    for (uint32_t i = 0; i < inst->nout; i++)
        m->out[i] = view_pointer(f, &inst->out[i]);
    if (inst->kind == SF_INST_COMM)
        sf_cuda_make_exchange(c, inst, m);
}

static void note_beside(cuda *c, frame *f)
{
    const sf_program *p = f->program;
    f->raisers = SF_ARRAY(&c->memory, p->nevents + 1, uint32_t);
    f->first_event = c->nevents;
    c->nevents += p->nevents;
    for (uint32_t i = 0; i < p->ninsts; i++) {
        if (p->insts[i].raises != SF_NONE)
            f->raisers[p->insts[i].raises] = i;
        f->has_beside = f->has_beside || sf_goes_beside(&p->insts[i]);
        if (p->insts[i].kind == SF_INST_COPY)
            f->copies[sf_copy_lane(p, &p->insts[i])] = true;
    }
}

/* By a library, if that supports it; an epilogue that the library runs is removed from the
 * loops. */
static sf_status plan_product(cuda *c, made *m, sf_inst *inst, sf_diag *diag)
{
    bool is_whole = false;
    int bias = sf_cuda_bias(inst);
    if (inst->kind != SF_INST_DOT && inst->kind != SF_INST_CONV)
        return SF_OK;
    SF_TRY(table_of(c)->plan(c->device, inst, diag, &m->plan, &is_whole));
    if (is_whole) {
        m->product[3] = m->in[bias];
        inst->loop = NULL;
    }
    return SF_OK;
}

/* Addresses of buffers, and the text of all kernels. */
static sf_status open_frame(cuda *c, frame *f, const sf_program *p, char *const *arenas,
                            char *const *arguments, sf_diag *diag)
{
    f->program = p;
    SF_TRY(place_frame(c, f, arenas, arguments, diag));
    f->insts = SF_ARRAY(&c->memory, p->ninsts, made);
    note_beside(c, f);
    for (size_t i = 0; i < p->ninsts; i++) {
        const sf_inst *inst = &p->insts[i], *unknown = NULL;
        made *m = &f->insts[i];
        make_parts(c, f, inst, m);
        sf_inst alone = *inst;
        SF_TRY(plan_product(c, m, &alone, diag));
        sf_write_inst(&c->module, &c->memory, &alone, m->plan != NULL, &m->code, &unknown);
        if (unknown)
            return fail_unknown(inst, diag);
        if (m->code.scratch > c->scratch_bytes)
            c->scratch_bytes = m->code.scratch;
        uint32_t nbodies = sf_body_count(inst);
        m->bodies = nbodies ? SF_ARRAY(&c->memory, nbodies, frame) : NULL;
        for (uint32_t j = 0; j < nbodies; j++) {
            const sf_program *body = inst->nest->bodies[j];
            char **views = SF_ARRAY(&c->memory, body->narguments, char *);
            for (uint32_t k = 0; k < body->narguments; k++)
                views[k] = f->buffers[sf_body_argument(inst, k)->buffer];
            char *inner[SF_SPACE_COUNT] = {m->out[inst->nout - 1]};
            SF_TRY(open_frame(c, &m->bodies[j], body, inner, views, diag));
        }
    }
    sf_cuda_find_fused_launches(c, f);
    return SF_OK;
}

static uint64_t param_value(const cuda *c, const made *m, const sf_param *param)
{
    switch (param->kind) {
    case SF_PARAM_IN:
        return (uint64_t)(uintptr_t)m->in[param->index];
    case SF_PARAM_OUT:
        return (uint64_t)(uintptr_t)m->out[param->index];
    case SF_PARAM_SCRATCH:
        return (uint64_t)(uintptr_t)(c->scratch + param->value);
    case SF_PARAM_FAULTS:
        return (uint64_t)(uintptr_t)c->faults;
    case SF_PARAM_NUMBER:
    case SF_PARAM_SUM:
    case SF_PARAM_ROOM:
    case SF_PARAM_FOLD:
    case SF_PARAM_PLACE:
        break;
    }
    return (uint64_t)param->value;
}

static void **ready_params(cuda *c, const made *m, const sf_launch *launch)
{
    uint32_t nparams = launch->kernel->nparams;
    uint64_t *values = SF_ARRAY(&c->memory, nparams, uint64_t);
    void **params = SF_ARRAY(&c->memory, nparams, void *);
    for (uint32_t k = 0; k < nparams; k++) {
        values[k] = param_value(c, m, &launch->params[k]);
        params[k] = &values[k];
    }
    return params;
}

/* The table of a fused launch. */
static void **ready_table(cuda *c, const frame *f, const sf_fused_launch *fused)
{
    uint64_t *values = SF_ARRAY(&c->memory, fused->launch.kernel->ntable, uint64_t);
    void **params = SF_ARRAY(&c->memory, 1, void *);
    uint32_t at = 0;
    for (uint32_t i = 0; i < fused->count; i++) {
        const sf_launch *launch = &fused->launches[i];
        for (uint32_t k = 0; k < launch->kernel->nparams; k++)
            values[at++] = param_value(c, &f->insts[fused->members[i]], &launch->params[k]);
    }
    params[0] = values;
    return params;
}

/* When kernels are compiled and the scratch memory is allocated. */
static void ready_frame(cuda *c, frame *f)
{
    for (size_t i = 0; i < f->program->ninsts; i++) {
        made *m = &f->insts[i];
        m->launches = SF_ARRAY(&c->memory, m->code.nlaunches, ready);
        for (int j = 0; m->plan && j < 3; j++)
            m->product[j] = (char *)(uintptr_t)param_value(c, m, &m->code.product[j]);
        for (size_t j = 0; j < m->code.nlaunches; j++) {
            const sf_launch *launch = &m->code.launches[j];
            m->launches[j] = (ready){
                c->functions[sf_cuda_number_of(c, launch->kernel)], launch->blocks, launch->threads,
                m->fused ? ready_table(c, f, m->fused) : ready_params(c, m, launch)};
        }
        if (m->exchange && m->code.nlaunches > 0)
            m->exchange->fold = &m->launches[0];
        for (uint32_t j = 0; j < sf_body_count(&f->program->insts[i]); j++)
            ready_frame(c, &m->bodies[j]);
    }
}

/* Memory that the host sees */

/* The memory itself, if it is the host's and nothing goes on there that its thread did not wait for. */
static sf_status show_memory(cuda *c, mirror *m, uint32_t buffer, const char *from, int64_t bytes,
                             sf_diag *diag, void **data)
{
    bool is_at_rest = c->device->is_host && !c->nccl.library;
    if (is_at_rest || c->program->buffers[buffer].space == SF_SPACE_HOST) {
        *data = (char *)from;
        return SF_OK;
    }
    if (!m->data && m->is_pinned)
        SF_TRY(table_of(c)->pin(c->device, bytes, diag, &m->data));
    else if (!m->data)
        m->data = sf_alloc((size_t)bytes + 1);
    *data = m->data;
    if (m->is_zero && c->steps == 0 && !m->is_pinned)
        return SF_OK; /* as new memory of the host is */
    return m->is_same ? SF_OK : table_of(c)->get(c->device, m->data, from, bytes, diag);
}

/* Batches, which the host writes before every step: their copies stay. */
static bool stays_as_it_is(const cuda *c, uint32_t argument)
{
    return c->program->next[argument] == SF_NONE && !c->program->buffers[argument].is_lent;
}

static sf_status lend_argument(void *self, uint32_t argument, bool writes, sf_diag *diag,
                               void **data)
{
    cuda *c = self;
    mirror *m = &c->arguments[argument];
    m->writes = writes;
    m->is_pinned = stays_as_it_is(c, argument);
    sf_status status = show_memory(c, m, argument, c->top.buffers[argument],
                                   c->program->buffers[argument].bytes, diag, data);
    m->is_zero = m->is_zero && !writes;
    return status;
}

/* Memory of the device was cleared when it was allocated, and a mirror of written data is not
 * zero. */
static bool is_clear(const void *self, uint32_t argument)
{
    const cuda *c = self;
    return c->steps == 0 && c->arguments[argument].is_zero;
}

static void drop_mirror(cuda *c, mirror *m)
{
    if (m->data && m->is_pinned)
        table_of(c)->unpin(c->device, m->data);
    else
        sf_free(m->data);
    *m = (mirror){0};
}

static sf_status take_back(void *self, uint32_t argument, sf_diag *diag)
{
    cuda *c = self;
    mirror *m = &c->arguments[argument];
    sf_status status = SF_OK;
    if (m->data && m->writes)
        status = table_of(c)->put(c->device, c->top.buffers[argument], m->data,
                                  c->program->buffers[argument].bytes, diag);
    m->is_same = m->data && status == SF_OK && stays_as_it_is(c, argument);
    if (!m->is_same)
        drop_mirror(c, m);
    return status;
}

static sf_status see_result(void *self, uint32_t result, sf_diag *diag, void **data)
{
    cuda *c = self;
    const sf_view *view = &c->program->results[result];
    return show_memory(c, &c->results[result], view->buffer, view_pointer(&c->top, view),
                       view_bytes(view), diag, data);
}

static int64_t memory_of(const void *self)
{
    const cuda *c = self;
    return sf_program_bytes(c->program) + sf_program_host_bytes(c->program) + c->scratch_bytes +
           c->device->workspace;
}

static int threads_of(const void *self)
{
    return sf_threads_count(((const cuda *)self)->threads);
}

static void print_profile(const void *self, sf_buf *out)
{
    const cuda *c = self;
    sf_program_profile(c->program, c->seconds, 1, out);
}

static const sf_timing *see_timeline(const void *self, const sf_program *program)
{
    const cuda *c = self;
    return c->steps > 0 && program == c->program ? c->timings : NULL;
}

/* Opening and closing */

static void drop_plans(cuda *c, const frame *f)
{
    for (size_t i = 0; f->insts && i < f->program->ninsts; i++) {
        const made *m = &f->insts[i];
        if (m->plan)
            table_of(c)->drop(c->device, m->plan);
        for (uint32_t j = 0; m->bodies && j < sf_body_count(&f->program->insts[i]); j++)
            drop_plans(c, &m->bodies[j]);
    }
}

static void close_cuda(void *self)
{
    cuda *c = self;
    if (c->device) {
        sf_cuda_forget_graph(c);
        sf_nccl_close(&c->nccl);
        for (uint32_t i = 0; c->arguments && i < c->program->narguments; i++)
            drop_mirror(c, &c->arguments[i]);
        for (uint32_t i = 0; c->results && i < c->program->nresults; i++)
            drop_mirror(c, &c->results[i]);
        if (c->top.program)
            drop_plans(c, &c->top);
        sf_cuda_release_owned(c);
        c->device->table->close(c->device);
    }
    if (c->owns_threads)
        sf_threads_free(c->threads);
    sf_kernels_free(&c->module);
    sf_arena_free(&c->memory);
    sf_free(c);
}

/* Ranks of a machine get its GPUs round-robin. */
static int place_on_machine(const sf_comm *comm)
{
    int place = 0;
    if (!comm)
        return 0;
    for (int i = 0; i < sf_comm_rank(comm); i++)
        place += sf_comm_same_host(comm, i, sf_comm_rank(comm));
    return place;
}

static sf_status get_ready(cuda *c, const sf_engine_options *options, sf_diag *diag)
{
    const sf_program *p = c->program;
    char *arenas[SF_SPACE_COUNT];
    if (!c->threads)
        return sf_fail(diag, SF_ENOMEM, SF_NOWHERE, "no threads can be started");
    SF_TRY(sf_constants_check(p, diag));
    SF_TRY(sf_device_open(place_on_machine(options->comm), diag, &c->device));
    c->device->tf32 = options->precision == SF_PRECISION_TF32;
    if (table_of(c)->reserve)
        SF_TRY(table_of(c)->reserve(c->device, sf_cuda_workspace(p), diag));
    int64_t most = options->device_memory ? options->device_memory : c->device->memory;
    sf_room room = {.memory = options->memory, .device = most, .scratch = c->device->workspace};
    SF_TRY(sf_check_room(p, &room, diag));
    char **arguments = SF_ARRAY(&c->memory, p->narguments, char *);
    for (uint32_t i = 0; i < p->narguments; i++)
        if (!p->buffers[i].is_lent)
            SF_TRY(sf_cuda_own_space(c, p->buffers[i].space, p->buffers[i].bytes, diag,
                                     &arguments[i]));
    for (int space = 0; space < SF_SPACE_COUNT; space++)
        SF_TRY(sf_cuda_own_space(c, (sf_space_kind)space, p->arena_bytes[space], diag,
                                 &arenas[space]));
    c->module.needs.checks = sf_cuda_wants_checks();
    if (c->module.needs.checks)
        SF_TRY(sf_cuda_own_space(c, SF_SPACE_HOST, SF_FAULT_BYTES, diag, &c->faults));
    SF_TRY(open_frame(c, &c->top, p, arenas, arguments, diag));
    SF_TRY(sf_cuda_own_memory(c, c->scratch_bytes, diag, &c->scratch));
    sf_cuda_drop_kernels(c);
    c->functions = SF_ARRAY(&c->memory, c->module.nkernels + 1, void *);
    if (c->module.nkernels > 0)
        SF_TRY(table_of(c)->compile(c->device, &c->module, c->threads, diag, c->functions));
    ready_frame(c, &c->top);
    c->nmarks = p->ninsts + 1;
    for (size_t i = 0; i < p->ninsts; i++)
        if (p->insts[i].kind == SF_INST_COPY || p->insts[i].kind == SF_INST_COMM) {
            c->top.insts[i].marks = c->nmarks;
            c->nmarks += 2;
        }
    c->timings = SF_ARRAY(&c->memory, p->ninsts + 1, sf_timing);
    c->seconds = SF_ARRAY(&c->memory, p->ninsts + 1, double);
    c->arguments = SF_ARRAY(&c->memory, p->narguments + 1, mirror);
    c->results = SF_ARRAY(&c->memory, p->nresults + 1, mirror);
    for (uint32_t i = 0; i < p->narguments; i++)
        c->arguments[i].is_zero = !p->buffers[i].is_lent;
    c->collectives = (sf_collectives){.comm = options->comm, .mesh = &p->mesh};
    return table_of(c)->wait(c->device, diag);
}

sf_status sf_cuda_open(const sf_program *program, const sf_engine_options *options, sf_diag *diag,
                       sf_engine *out)
{
    static const sf_engine_table table = {
        .name = "cuda",
        .close = close_cuda,
        .lend = lend_argument,
        .give_back = take_back,
        .is_clear = is_clear,
        .see = see_result,
        .start = start_cuda,
        .finish = finish_cuda,
        .memory = memory_of,
        .threads = threads_of,
        .profile = print_profile,
        .timeline = see_timeline,
    };
    cuda *c = sf_alloc(sizeof *c);
    c->program = program;
    c->owns_threads = !options->pool;
    c->threads = options->pool ? options->pool : sf_threads_new(options->threads);
    sf_status status = get_ready(c, options, diag);
    if (status != SF_OK) {
        close_cuda(c);
        return status;
    }
    out->table = &table;
    out->self = c;
    return SF_OK;
}
