/* The CPU engine: runs a program, instruction by instruction. Addresses never change, so pointers
 * and tensors are computed once, when it is opened. */
#include <inttypes.h>
#include <string.h>

#include "base/machine.h"
#include "base/mem.h"
#include "base/units.h"
#include "op/eval.h"
#include "run/cpu/compiled_loops.h"
#include "run/cpu/host_copies.h"
#include "run/cpu/instruction_times.h"
#include "run/cpu/run_product.h"
#include "run/cpu/scratch.h"
#include "run/cpu/thread_count.h"
#include "run/engine/engine_backend.h"
#include "run/engine/engine_collective.h"
#include "run/engine/memory_fit.h"
#include "run/engine/program_constants.h"
#include "run/fast/fast.h"

/* The tensors of a CALL, and how many elements the results of a COMM have. */
typedef struct operands {
    sf_tensor *in, *out;
    int64_t *counts, *strides; /* and how far their blocks are from each other */
} operands;

/* A program in memory: that of the step, or a body of one of its instructions. */
typedef struct frame {
    const sf_program *program;
    char **buffers;            /* by buffer: its address */
    sf_pointers *pointers;     /* by instruction */
    operands *operands;        /* by instruction */
    sf_request **requests;     /* by instruction: of a collective that is under way */
    sf_copy **copies;          /* by instruction: of COPY */
    uint32_t *raisers;         /* by event: who raises it */
    struct frame **bodies;     /* by instruction: its bodies */
    const sf_native **natives; /* by instruction: the code of its loop, or NULL */
    sf_tensor *values;         /* of the program's inner graph, for the kernels of the op table */
    sf_watch watch;
} frame;

typedef struct cpu {
    const sf_program *program;
    sf_threads *threads;
    bool owns_threads;
    sf_crew crew;
    char *scratch;
    frame top;
    void **owned; /* memory of arguments, constants and the arena */
    size_t nowned, owned_capacity;
    sf_cpu_scratch reserved;
    sf_room room;    /* memory limits when it was opened */
    sf_arena memory; /* of the lists above */
    sf_collectives collectives;
    sf_host_link host_link;
    sf_lanes *lanes; /* for copies, or NULL: there are none */
    sf_eval eval;    /* for instructions that use the kernels of the op table */
    sf_natives natives;
    double began; /* the last step */
    int64_t steps;
} cpu;

static char *view_pointer(const frame *f, const sf_view *view)
{
    return f->buffers[view->buffer] + view->offset * sf_dtype_get(view->dtype)->bytes;
}

static bool has_bodies(const sf_inst *inst)
{
    return inst->kind == SF_INST_WHILE || inst->kind == SF_INST_CASE;
}

/* Calls */

/* By the kernel of the op table, on whole contiguous tensors. */
static sf_status run_reference(cpu *c, const frame *f, uint32_t index, sf_diag *diag)
{
    const sf_inst *inst = &f->program->insts[index];
    const sf_call *call = inst->call;
    const operands *at = &f->operands[index];
    static const sf_graph empty;
    sf_arena *scratch = &c->eval.scratch;
    sf_mark mark = sf_arena_mark(scratch);
    uint32_t noperands = (uint32_t)call->op.noperands;
    sf_tensor *in = SF_ARRAY(scratch, noperands, sf_tensor);
    c->eval.graph = call->op.graph ? call->op.graph : &empty;
    c->eval.values = f->values;
    c->eval.diag = diag;
    for (uint32_t i = 0; i < noperands; i++) {
        in[i] = at->in[i];
        if (sf_stands_in_place(inst, i))
            in[i].data = sf_arena_copy(scratch, in[i].data, (size_t)sf_type_bytes(call->op.in[i]));
    }
    for (uint32_t i = 0; i < inst->nout; i++)
        memset(at->out[i].data, 0, (size_t)sf_type_bytes(call->op.out[i]));
    for (uint32_t i = 0; i < call->ncaptured; i++)
        f->values[call->captured[i]] = at->in[noperands + i];
    sf_status status = call->op.def->eval(&c->eval, &call->op, in, at->out);
    for (uint32_t i = 0; i < call->ncaptured; i++)
        f->values[call->captured[i]].data = NULL;
    sf_arena_reset(scratch, mark);
    return status;
}

static sf_status run_call(cpu *c, const frame *f, uint32_t index, sf_diag *diag)
{
    const sf_call *call = f->program->insts[index].call;
    const operands *at = &f->operands[index];
    if (!call->kernel)
        return run_reference(c, f, index, diag);
    sf_fast_run(call->kernel, &call->op, call->variant, at->in, at->out, c->scratch, c->threads);
    return SF_OK;
}

/* Collectives */

static sf_status start_collective(cpu *c, const frame *f, uint32_t index, sf_diag *diag)
{
    const sf_inst *inst = &f->program->insts[index];
    bool gives = inst->nout > 0; /* a message that is sent does not */
    sf_collective_memory memory = {.dtype = gives ? inst->out[0].dtype : inst->in[0].dtype,
                                   .nparts = gives ? inst->nout : inst->nin,
                                   .counts = f->operands[index].counts,
                                   .strides = f->operands[index].strides,
                                   .in = inst->nin > 0 ? f->pointers[index].in : NULL,
                                   .out = gives ? f->pointers[index].out : NULL};
    return sf_collective_start(&c->collectives, inst->exchange, &memory, inst->origin.loc, diag,
                               &f->requests[index]);
}

static sf_status wait_for_collective(const cpu *c, const frame *f, uint32_t index, sf_diag *diag)
{
    sf_request *request = f->requests[index];
    double ended;
    if (!request)
        return SF_OK;
    double start = sf_now();
    f->requests[index] = NULL;
    sf_status status = sf_comm_wait_timed(request, diag, &ended);
    sf_watch_wait(&f->watch, index, c->began, start, sf_now(), ended);
    return status;
}

/* Copies */

static void wait_for_copy(const cpu *c, const frame *f, uint32_t index)
{
    sf_copy *copy = f->copies[index];
    if (!copy || !copy->open)
        return;
    double start = sf_now();
    sf_copy_wait(copy, c->lanes);
    sf_watch_wait(&f->watch, index, c->began, start, sf_now(), copy->end);
    f->watch.insts[index].start = copy->start - c->began;
}

/* It follows copies the other way by itself; collectives have been waited for. */
static void start_copy(const cpu *c, const frame *f, uint32_t index)
{
    const sf_inst *inst = &f->program->insts[index];
    sf_copy *copy = f->copies[index];
    copy->job.nafter = 0;
    for (uint32_t i = 0; i < inst->nwaits; i++) {
        sf_copy *other = f->copies[f->raisers[inst->waits[i]]];
        if (other && other->open)
            copy->job.after[copy->job.nafter++] = &other->job;
    }
    sf_copy_start(copy, c->lanes, f->program->streams[inst->stream].to);
}

/* Earlier instructions of this stream are done here: only asynchronous ones are waited for. */
static sf_status wait_for_events(const cpu *c, const frame *f, const sf_inst *inst, sf_diag *diag)
{
    for (uint32_t i = 0; i < inst->nwaits; i++) {
        uint32_t raiser = f->raisers[inst->waits[i]];
        SF_TRY(wait_for_collective(c, f, raiser, diag));
        if (inst->kind != SF_INST_COPY)
            wait_for_copy(c, f, raiser);
    }
    return SF_OK;
}

/* At the end of a step, or after a failure: nobody may touch its memory any more. */
static void wait_for_copies(const cpu *c, const frame *f)
{
    for (uint32_t i = 0; c->lanes && i < f->program->ninsts; i++)
        wait_for_copy(c, f, i);
}

/* After a failure: waits for requests in flight, so that their memory can be reused. Returns
 * whether there is any. */
static bool drop_requests(const cpu *c, const frame *f, sf_diag *unheard, bool wait)
{
    bool any = false;
    for (uint32_t i = 0; i < f->program->ninsts; i++) {
        const sf_inst *inst = &f->program->insts[i];
        any = any || f->requests[i];
        if (wait)
            wait_for_collective(c, f, i, unheard);
        for (uint32_t j = 0; has_bodies(inst) && j < inst->nest->nbodies; j++)
            any = drop_requests(c, &f->bodies[i][j], unheard, wait) || any;
    }
    return any;
}

/* Informs the other ranks, so that they stop waiting. */
static void drop_collectives(cpu *c, sf_diag *diag)
{
    sf_diag unheard = {0};
    if (!drop_requests(c, &c->top, &unheard, false))
        return;
    sf_comm_abort(c->collectives.comm, sf_diag_reason(diag, SF_EPEER));
    drop_requests(c, &c->top, &unheard, true);
    sf_diag_clear(&unheard);
}

/* Running */

static sf_status run_one_inst(cpu *c, const frame *f, uint32_t index, sf_diag *diag);

static sf_status run_frame(cpu *c, const frame *f, sf_diag *diag)
{
    for (uint32_t i = 0; i < f->program->ninsts; i++) {
        SF_TRY(wait_for_events(c, f, &f->program->insts[i], diag));
        double before = sf_now();
        SF_TRY(run_one_inst(c, f, i, diag));
        sf_watch_note(&f->watch, i, c->began, before, sf_now());
    }
    for (uint32_t i = 0; i < f->program->ninsts; i++)
        SF_TRY(wait_for_collective(c, f, i, diag));
    wait_for_copies(c, f);
    return SF_OK;
}

static sf_status run_while(cpu *c, const sf_inst *inst, const sf_pointers *at, const frame *bodies,
                           sf_diag *diag)
{
    const sf_nest *nest = inst->nest;
    for (uint32_t i = 0; i < nest->nresults; i++) {
        const sf_view *view = &inst->out[i];
        int64_t bytes = sf_view_count(view) * sf_dtype_get(view->dtype)->bytes;
        if (!nest->is_fixed[i] && at->out[i] != at->in[i] && bytes > 0)
            memcpy(at->out[i], at->in[i], (size_t)bytes);
    }
    for (;;) {
        SF_TRY(run_frame(c, &bodies[0], diag));
        if (!*at->out[nest->nresults])
            return SF_OK;
        SF_TRY(run_frame(c, &bodies[1], diag));
    }
}

static sf_status run_case(cpu *c, const sf_inst *inst, const sf_pointers *at, const frame *bodies,
                          sf_diag *diag)
{
    int32_t index;
    memcpy(&index, at->in[0], sizeof index);
    bool is_known = index >= 0 && (uint32_t)index < inst->nest->nbodies;
    uint32_t last = inst->nest->nbodies - 1;
    return run_frame(c, &bodies[is_known ? (uint32_t)index : last], diag);
}

static sf_status run_one_inst(cpu *c, const frame *f, uint32_t index, sf_diag *diag)
{
    const sf_inst *inst = &f->program->insts[index];
    const sf_pointers *at = &f->pointers[index];
    switch (inst->kind) {
    case SF_INST_LOOP:
        sf_loop_run(inst->loop, f->natives[index], *at, c->scratch, c->threads);
        return SF_OK;
    case SF_INST_DOT:
    case SF_INST_CONV:
        sf_product_run(inst, f->natives[index], at, c->scratch, c->threads);
        return SF_OK;
    case SF_INST_WHILE:
        return run_while(c, inst, at, f->bodies[index], diag);
    case SF_INST_CASE:
        return run_case(c, inst, at, f->bodies[index], diag);
    case SF_INST_COMM:
        return start_collective(c, f, index, diag);
    case SF_INST_COPY:
        start_copy(c, f, index);
        return SF_OK;
    case SF_INST_JOIN: /* its events have been waited for */
        return SF_OK;
    case SF_INST_CALL:
    case SF_INST_KIND_COUNT:
        break;
    }
    return run_call(c, f, index, diag);
}

static frame *body_of(const frame *f, uint32_t inst, uint32_t body)
{
    return &f->bodies[inst][body];
}

/* The first step warms up: its times do not count in averages, if others follow. */
static void forget_first(const frame *f)
{
    sf_watch_forget(&f->watch);
    for (uint32_t i = 0; i < f->program->ninsts; i++)
        for (uint32_t j = 0; j < sf_body_count(&f->program->insts[i]); j++)
            forget_first(body_of(f, i, j));
}

static sf_status step_cpu(void *self, sf_diag *diag)
{
    cpu *c = self;
    if (c->steps == 1)
        forget_first(&c->top);
    c->began = sf_now();
    sf_threads_set_alone(c->threads, c->crew.alone);
    sf_status status = run_frame(c, &c->top, diag);
    sf_threads_set_alone(c->threads, false);
    sf_crew_learn(&c->crew, sf_now() - c->began);
    if (status != SF_OK) {
        drop_collectives(c, diag);
        wait_for_copies(c, &c->top);
    }
    c->steps++;
    return status;
}

/* Memory */

static void *own_memory(cpu *c, int64_t bytes)
{
    void *memory = sf_alloc((size_t)bytes);
    SF_PUSH(&c->memory, c->owned, c->nowned, c->owned_capacity, memory);
    return memory;
}

/* As own_memory, but memory may be short: the message has the prediction. */
static sf_status find_memory(cpu *c, int64_t bytes, sf_diag *diag, char **out)
{
    *out = sf_alloc_try((size_t)bytes);
    if (!*out)
        return sf_fail_room(c->program, &c->room, bytes, diag);
    SF_PUSH(&c->memory, c->owned, c->nowned, c->owned_capacity, *out);
    return SF_OK;
}

/* Of arguments, and the arena of each space. */
static sf_status find_places(cpu *c, char **arguments, char **arenas, sf_diag *diag)
{
    const sf_program *p = c->program;
    for (uint32_t i = 0; i < p->narguments; i++)
        if (!p->buffers[i].is_lent)
            SF_TRY(find_memory(c, p->buffers[i].bytes, diag, &arguments[i]));
    for (int space = 0; space < SF_SPACE_COUNT; space++)
        SF_TRY(find_memory(c, p->arena_bytes[space], diag, &arenas[space]));
    return SF_OK;
}

static void place_frame(cpu *c, frame *f, char *const *arenas, char *const *arguments)
{
    const sf_program *p = f->program;
    f->buffers = SF_ARRAY(&c->memory, p->nbuffers, char *);
    for (size_t i = 0; i < p->nbuffers; i++) {
        const sf_buffer *buffer = &p->buffers[i];
        if (sf_in_arena(buffer)) {
            f->buffers[i] = arenas[buffer->space] + buffer->offset;
        } else if (buffer->home == SF_HOME_ARGUMENT) {
            f->buffers[i] = arguments[buffer->argument];
        } else {
            f->buffers[i] = own_memory(c, buffer->bytes);
            if (buffer->home == SF_HOME_CONSTANT)
                sf_constant_expand(buffer->constant, f->buffers[i], buffer->bytes);
        }
    }
}

static void point_views(cpu *c, frame *f)
{
    const sf_program *p = f->program;
    f->pointers = SF_ARRAY(&c->memory, p->ninsts, sf_pointers);
    for (size_t i = 0; i < p->ninsts; i++) {
        const sf_inst *inst = &p->insts[i];
        sf_pointers *at = &f->pointers[i];
        at->in = SF_ARRAY(&c->memory, inst->nin, char *);
        at->out = SF_ARRAY(&c->memory, inst->nout, char *);
        for (uint32_t j = 0; j < inst->nin; j++)
            at->in[j] = view_pointer(f, &inst->in[j]);
        for (uint32_t j = 0; j < inst->nout; j++)
            at->out[j] = view_pointer(f, &inst->out[j]);
    }
}

static void list_call(cpu *c, const frame *f, uint32_t index)
{
    const sf_inst *inst = &f->program->insts[index];
    const sf_call *call = inst->call;
    const sf_pointers *at = &f->pointers[index];
    operands *o = &f->operands[index];
    uint32_t noperands = (uint32_t)call->op.noperands;
    o->in = SF_ARRAY(&c->memory, inst->nin, sf_tensor);
    o->out = SF_ARRAY(&c->memory, inst->nout, sf_tensor);
    for (uint32_t i = 0; i < inst->nin; i++) {
        const sf_type *type = i < noperands
                                  ? call->op.in[i]
                                  : sf_type_of(call->op.graph, call->captured[i - noperands]);
        o->in[i] = (sf_tensor){.type = type, .data = at->in[i]};
    }
    for (uint32_t i = 0; i < inst->nout; i++)
        o->out[i] = (sf_tensor){.type = call->op.out[i], .data = at->out[i]};
}

static void list_operands(cpu *c, frame *f)
{
    const sf_program *p = f->program;
    f->operands = SF_ARRAY(&c->memory, p->ninsts, operands);
    f->copies = SF_ARRAY(&c->memory, p->ninsts, sf_copy *);
    for (uint32_t i = 0; i < p->ninsts; i++) {
        const sf_inst *inst = &p->insts[i];
        if (inst->kind == SF_INST_CALL)
            list_call(c, f, i);
        if (inst->kind == SF_INST_COPY)
            f->copies[i] =
                sf_copy_new(inst, f->pointers[i].in, f->pointers[i].out, &c->host_link, &c->memory);
        if (inst->kind != SF_INST_COMM)
            continue;
        const sf_view *parts = inst->nout > 0 ? inst->out : inst->in;
        uint32_t nparts = inst->nout > 0 ? inst->nout : inst->nin;
        f->operands[i].counts = SF_ARRAY(&c->memory, nparts, int64_t);
        f->operands[i].strides = SF_ARRAY(&c->memory, nparts, int64_t);
        for (uint32_t j = 0; j < nparts; j++) {
            f->operands[i].counts[j] = sf_view_count(&parts[j]);
            f->operands[i].strides[j] = sf_exchange_stride(inst, j);
        }
    }
}

static void list_events(cpu *c, frame *f)
{
    const sf_program *p = f->program;
    f->requests = SF_ARRAY(&c->memory, p->ninsts, sf_request *);
    f->raisers = SF_ARRAY(&c->memory, p->nevents, uint32_t);
    for (uint32_t i = 0; i < p->ninsts; i++)
        if (p->insts[i].raises != SF_NONE)
            f->raisers[p->insts[i].raises] = i;
}

/* Addresses never change, in bodies too. */
static void open_frame(cpu *c, const sf_program *p, char *const *arenas, char *const *arguments,
                       frame *out)
{
    out->program = p;
    out->watch = sf_watch_new(p, &c->memory);
    place_frame(c, out, arenas, arguments);
    point_views(c, out);
    list_operands(c, out);
    list_events(c, out);
    if (p->inner)
        out->values = SF_ARRAY(&c->memory, p->inner->nvalues, sf_tensor);
    out->bodies = SF_ARRAY(&c->memory, p->ninsts, frame *);
    out->natives = SF_ARRAY(&c->memory, p->ninsts, const sf_native *);
    for (size_t i = 0; i < p->ninsts; i++) {
        const sf_inst *inst = &p->insts[i];
        out->natives[i] = sf_natives_find(&c->natives, inst);
        if (!has_bodies(inst))
            continue;
        out->bodies[i] = SF_ARRAY(&c->memory, inst->nest->nbodies, frame);
        for (uint32_t j = 0; j < inst->nest->nbodies; j++) {
            const sf_program *body = inst->nest->bodies[j];
            char **views = SF_ARRAY(&c->memory, body->narguments, char *);
            for (uint32_t k = 0; k < body->narguments; k++)
                views[k] = out->buffers[sf_body_argument(inst, k)->buffer];
            char *inner[SF_SPACE_COUNT] = {out->pointers[i].out[inst->nout - 1]};
            open_frame(c, body, inner, views, &out->bodies[i][j]);
        }
    }
}

/* Values that the regions of calls left, in bodies too. */
static void free_values(const frame *f)
{
    const sf_program *p = f->program;
    if (!p)
        return;
    for (size_t v = 0; f->values && v < p->inner->nvalues; v++)
        sf_free(f->values[v].data);
    for (size_t i = 0; f->bodies && i < p->ninsts; i++)
        for (uint32_t j = 0; f->bodies[i] && j < p->insts[i].nest->nbodies; j++)
            free_values(&f->bodies[i][j]);
}

static int64_t memory_of(const void *self)
{
    const cpu *c = self;
    return sf_program_bytes(c->program) + sf_program_host_bytes(c->program) +
           sf_cpu_scratch_bytes(c->program, sf_threads_count(c->threads));
}

/* Opening and closing */

static void close_cpu(void *self)
{
    cpu *c = self;
    free_values(&c->top);
    for (size_t i = 0; i < c->nowned; i++)
        sf_free(c->owned[i]);
    sf_arena_free(&c->eval.scratch);
    sf_natives_free(&c->natives);
    if (c->owns_threads)
        sf_threads_free(c->threads);
    sf_arena_free(&c->memory);
    sf_free(c);
}

static bool has_copies(const sf_program *p)
{
    for (size_t s = 0; s < p->nstreams; s++)
        if (p->streams[s].kind == SF_STREAM_COPY)
            return true;
    return false;
}

/* The arena keeps its first chunk, so that a step that takes no more takes no memory. */
static void reserve_arena(sf_arena *arena, int64_t bytes)
{
    sf_mark mark = sf_arena_mark(arena);
    if (bytes > 0)
        sf_arena_alloc(arena, (size_t)bytes);
    sf_arena_reset(arena, mark);
}

static sf_status lend_argument(void *self, uint32_t argument, bool writes, sf_diag *diag,
                               void **data)
{
    (void)writes, (void)diag;
    *data = ((cpu *)self)->top.buffers[argument];
    return SF_OK;
}

static sf_status see_result(void *self, uint32_t result, sf_diag *diag, void **data)
{
    (void)diag;
    const cpu *c = self;
    *data = view_pointer(&c->top, &c->program->results[result]);
    return SF_OK;
}

static void print_profile(const void *self, sf_buf *out)
{
    const cpu *c = self;
    sf_program_profile(c->program, c->top.watch.seconds, c->steps, out);
}

/* The frame of the program: that of the step, or of a body in it. */
static const frame *find_frame(const frame *f, const sf_program *program)
{
    const frame *found = f->program == program ? f : NULL;
    for (uint32_t i = 0; i < f->program->ninsts && !found; i++)
        for (uint32_t j = 0; j < sf_body_count(&f->program->insts[i]) && !found; j++)
            found = find_frame(body_of(f, i, j), program);
    return found;
}

static const sf_timing *see_timeline(const void *self, const sf_program *program)
{
    const cpu *c = self;
    const frame *f = c->steps > 0 ? find_frame(&c->top, program) : NULL;
    if (f)
        sf_watch_settle(&f->watch);
    return f ? f->watch.insts : NULL;
}

static int threads_of(const void *self)
{
    return sf_threads_count(((const cpu *)self)->threads);
}

static const sf_engine_table table = {
    .name = "cpu",
    .close = close_cpu,
    .lend = lend_argument,
    .see = see_result,
    .step = step_cpu,
    .memory = memory_of,
    .threads = threads_of,
    .profile = print_profile,
    .timeline = see_timeline,
};

static sf_status get_cpu_ready(cpu *c, const sf_engine_options *options, sf_diag *diag)
{
    if (!c->threads)
        return sf_fail(diag, SF_ENOMEM, SF_NOWHERE, "no threads can be started");
    SF_TRY(sf_constants_check(c->program, diag));
    SF_TRY(sf_natives_open(&c->natives, c->program, diag));
    c->lanes = has_copies(c->program) ? sf_threads_lanes(c->threads) : NULL;
    if (has_copies(c->program) && !c->lanes)
        return sf_fail(diag, SF_ENOMEM, SF_NOWHERE, "no memory for copies");
    c->reserved = sf_cpu_scratch_of(c->program, sf_threads_count(c->threads));
    c->room = (sf_room){.memory = options->memory ? options->memory : sf_machine_memory(),
                        .device = options->device_memory,
                        .scratch = sf_cpu_scratch_bytes(c->program, sf_threads_count(c->threads))};
    return sf_check_room(c->program, &c->room, diag);
}

sf_status sf_cpu_open(const sf_program *program, const sf_engine_options *options, sf_diag *diag,
                      sf_engine *out)
{
    cpu *c = sf_alloc(sizeof *c);
    c->program = program;
    c->crew = SF_CREW_NEW;
    c->owns_threads = !options->pool;
    c->threads = options->pool ? options->pool : sf_threads_new(options->threads);
    char **arguments = SF_ARRAY(&c->memory, program->narguments, char *), *arenas[SF_SPACE_COUNT];
    sf_status status = get_cpu_ready(c, options, diag);
    if (status == SF_OK)
        status = find_places(c, arguments, arenas, diag);
    if (status != SF_OK) {
        close_cpu(c);
        return status;
    }
    c->host_link = options->host_link;
    open_frame(c, program, arenas, arguments, &c->top);
    c->scratch = own_memory(c, c->reserved.kernels);
    c->collectives = (sf_collectives){.comm = options->comm, .mesh = &program->mesh};
    reserve_arena(&c->eval.scratch, c->reserved.need.scratch);
    out->table = &table;
    out->self = c;
    return SF_OK;
}
