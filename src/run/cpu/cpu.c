/* The CPU engine: lowers the step once, and runs the program. */
#include <inttypes.h>
#include <string.h>

#include "base/machine.h"
#include "base/mem.h"
#include "op/eval.h"
#include "prog/program.h"
#include "run/collective.h"
#include "run/conv/op.h"
#include "run/cpu/loop.h"
#include "run/engine_kind.h"
#include "run/fast/fast.h"
#include "run/gemm/gemm.h"

/* A program in memory: that of the step, or a body of one of its instructions. */
typedef struct frame {
    const sf_program *program;
    char **buffers;        /* by buffer: where it stands */
    sf_pointers *pointers; /* by instruction */
    struct frame **bodies; /* by instruction: its bodies */
} frame;

struct cpu {
    const sf_graph *graph;
    sf_program *program;
    sf_threads *threads;
    bool owns_threads;
    char *scratch;
    frame top;
    void **owned; /* memory of arguments and constants */
    size_t nowned, owned_capacity;
    int64_t scratch_bytes;
    sf_eval_need need; /* of the instructions that use the kernels of the op table */
    sf_arena memory;   /* of the lists above */
    sf_collectives collectives;
    sf_eval eval;    /* for instructions that use the kernels of the op table */
    double *seconds; /* by instruction, over all steps */
    int64_t steps;
};

static char *view_pointer(const frame *f, const sf_view *view)
{
    return f->buffers[view->buffer] + view->offset * sf_dtype_get(view->dtype)->bytes;
}

static sf_gemm gemm_of(const struct cpu *cpu, const sf_inst *inst, const sf_pointers *at)
{
    const sf_dot *dot = inst->dot;
    return (sf_gemm){
        .batches = 1,
        .m = dot->m,
        .n = dot->n,
        .k = dot->k,
        .a = {at->in ? at->in[0] : NULL, inst->in[0].dtype, 0, dot->a_row, dot->a_column},
        .b = {at->in ? at->in[1] : NULL, inst->in[1].dtype, 0, dot->b_row, dot->b_column},
        .c = {at->out ? at->out[0] : NULL, inst->out[0].dtype, 0, dot->c_row, dot->c_column},
        .scratch = cpu->scratch,
    };
}

/* Batches of one stride in all three matrices go to the library as one; the others are walked. */
static int inner_batches(const sf_dot *dot, int64_t *count)
{
    int at = dot->nbatch;
    *count = 1;
    while (at > 0) {
        int d = at - 1;
        bool follows = at == dot->nbatch || (dot->a_batch[d] == dot->a_batch[at] * dot->batch[at] &&
                                             dot->b_batch[d] == dot->b_batch[at] * dot->batch[at] &&
                                             dot->c_batch[d] == dot->c_batch[at] * dot->batch[at]);
        if (!follows)
            break;
        *count *= dot->batch[d];
        at = d;
    }
    return at;
}

static void run_dot(struct cpu *cpu, const sf_inst *inst, const sf_pointers *at,
                    sf_epilogue *epilogue)
{
    const sf_dot *dot = inst->dot;
    if (sf_view_count(&inst->out[0]) == 0) /* a walk over no batches would still begin */
        return;
    sf_gemm gemm = gemm_of(cpu, inst, at);
    gemm.epilogue = epilogue;
    int outer = inner_batches(dot, &gemm.batches);
    if (sf_view_count(&inst->out[0]) == 0)
        return;
    if (dot->nbatch > 0) {
        gemm.a.batch = dot->a_batch[dot->nbatch - 1];
        gemm.b.batch = dot->b_batch[dot->nbatch - 1];
        gemm.c.batch = dot->c_batch[dot->nbatch - 1];
    }
    int64_t index[SF_MAX_RANK] = {0};
    int64_t a_width = sf_dtype_get(gemm.a.dtype)->bytes,
            b_width = sf_dtype_get(gemm.b.dtype)->bytes;
    int64_t c_width = sf_dtype_get(gemm.c.dtype)->bytes;
    do {
        int64_t a = 0, b = 0, c = 0;
        for (int d = 0; d < outer; d++) {
            a += index[d] * dot->a_batch[d];
            b += index[d] * dot->b_batch[d];
            c += index[d] * dot->c_batch[d];
        }
        gemm.a.data = at->in[0] + a * a_width;
        gemm.b.data = at->in[1] + b * b_width;
        gemm.c.data = at->out[0] + c * c_width;
        if (epilogue)
            epilogue->first = c / sf_dot_columns(dot);
        sf_gemm_run(&gemm, cpu->threads);
    } while (sf_next_index(outer, dot->batch, index));
}

/* The result is written over this operand, which the kernels of the op table read to the end. */
static bool stands_in_place(const sf_inst *inst, uint32_t operand)
{
    return operand < inst->node->nresults && inst->in[operand].buffer == inst->out[operand].buffer;
}

/* An op by a fast kernel, or by that of the op table, on whole contiguous tensors. */
static sf_status run_op(struct cpu *cpu, const sf_inst *inst, const sf_pointers *at, sf_diag *diag)
{
    const sf_node *node = inst->node;
    sf_mark mark = sf_arena_mark(&cpu->eval.scratch);
    sf_arena *scratch = &cpu->eval.scratch;
    const sf_type **types = SF_ARRAY(scratch, node->noperands + node->nresults, const sf_type *);
    sf_tensor *in = SF_ARRAY(scratch, node->noperands, sf_tensor);
    sf_tensor *out = SF_ARRAY(scratch, node->nresults, sf_tensor);
    sf_op op = sf_op_of(cpu->graph, node, types);
    cpu->eval.diag = diag;
    for (uint32_t i = 0; i < node->noperands; i++)
        in[i] = (sf_tensor){.type = op.in[i], .data = at->in[i]};
    for (uint32_t i = 0; i < node->nresults; i++)
        out[i] = (sf_tensor){.type = op.out[i], .data = at->out[i]};
    int64_t variant;
    const sf_fast *kernel = sf_fast_find(&op, &variant);
    if (kernel) {
        sf_fast_run(kernel, &op, variant, in, out, cpu->scratch, cpu->threads);
        sf_arena_reset(scratch, mark);
        return SF_OK;
    }
    for (uint32_t i = 0; i < node->noperands; i++)
        if (stands_in_place(inst, i))
            in[i].data = sf_arena_copy(scratch, in[i].data, (size_t)sf_type_bytes(op.in[i]));
    for (uint32_t i = 0; i < node->nresults; i++)
        memset(out[i].data, 0, (size_t)sf_type_bytes(op.out[i]));
    for (uint32_t i = 0; i < inst->ncaptured; i++)
        cpu->eval.values[inst->captured[i]] = (sf_tensor){
            .type = sf_type_of(cpu->graph, inst->captured[i]), .data = at->in[node->noperands + i]};
    sf_status status = node->def->eval(&cpu->eval, &op, in, out);
    for (uint32_t i = 0; i < inst->ncaptured; i++)
        cpu->eval.values[inst->captured[i]].data = NULL;
    sf_arena_reset(scratch, mark);
    return status;
}

/* Those of the step's own block go on beside what follows. */
static sf_status run_collective(struct cpu *cpu, const frame *f, uint32_t index, sf_diag *diag)
{
    const sf_inst *inst = &f->program->insts[index];
    const sf_pointers *at = &f->pointers[index];
    sf_request *request;
    SF_TRY(sf_collective_start(&cpu->collectives, cpu->graph, inst->node, at->in, at->out, diag,
                               &request));
    if (!request)
        return SF_OK;
    if (f != &cpu->top)
        return sf_comm_wait(request, diag);
    sf_collectives_add(&cpu->collectives, (sf_flight){index, inst->until, request});
    return SF_OK;
}

static sf_conv conv_of(const struct cpu *cpu, const sf_inst *inst)
{
    const sf_type *types[3];
    sf_op op = sf_op_of(cpu->graph, inst->node, types);
    return sf_conv_of_op(&op, &inst->in[0], &inst->in[1], &inst->out[0]);
}

static void run_conv(struct cpu *cpu, const sf_inst *inst, const sf_pointers *at,
                     sf_epilogue *epilogue)
{
    sf_conv conv = conv_of(cpu, inst);
    conv.lhs = at->in[0];
    conv.rhs = at->in[1];
    conv.out = at->out[0];
    conv.scratch = cpu->scratch;
    conv.epilogue = epilogue;
    sf_conv_run(&conv, cpu->threads);
}

/* A multiple of 64. */
static int64_t product_scratch(const struct cpu *cpu, const sf_inst *inst)
{
    int threads = sf_threads_count(cpu->threads);
    int64_t bytes;
    if (inst->kind == SF_INST_CONV) {
        sf_conv conv = conv_of(cpu, inst);
        bytes = sf_conv_scratch(&conv, threads);
    } else {
        sf_gemm gemm = gemm_of(cpu, inst, &(sf_pointers){0});
        inner_batches(inst->dot, &gemm.batches);
        bytes = sf_gemm_scratch(&gemm, threads);
    }
    return (bytes + 63) / 64 * 64;
}

static void run_piece(const void *context, int part, int64_t row, int64_t rows, int64_t column,
                      int64_t columns)
{
    sf_loop_piece(context, part, row, rows, column, columns);
}

/* A product, with the loop behind it if it has one; the loop's scratch follows that of the product. */
static void run_product(struct cpu *cpu, const sf_inst *inst, const sf_pointers *at)
{
    enum { STEP_WORK = 8 }; /* a step of a loop costs as much as some multiplications */
    void (*run)(struct cpu *, const sf_inst *, const sf_pointers *, sf_epilogue *) =
        inst->kind == SF_INST_DOT ? run_dot : run_conv;
    if (!inst->loop) {
        run(cpu, inst, at, NULL);
        return;
    }
    sf_loop_job job = sf_loop_begin(inst->loop, *at, cpu->scratch + product_scratch(cpu, inst),
                                    sf_threads_count(cpu->threads));
    sf_epilogue epilogue = {.run = run_piece,
                            .context = &job,
                            .whole_rows = sf_loop_wants_rows(inst->loop),
                            .work = STEP_WORK * inst->loop->nsteps};
    run(cpu, inst, at, &epilogue);
    sf_loop_end(&job);
}

static sf_status run_inst(struct cpu *cpu, const frame *f, uint32_t index, sf_diag *diag);

static sf_status run_frame(struct cpu *cpu, const frame *f, sf_diag *diag)
{
    for (uint32_t i = 0; i < f->program->ninsts; i++)
        SF_TRY(run_inst(cpu, f, i, diag));
    return SF_OK;
}

static sf_status run_while(struct cpu *cpu, const sf_inst *inst, const sf_pointers *at,
                           const frame *bodies, sf_diag *diag)
{
    for (uint32_t i = 0; i < inst->node->nresults; i++) {
        int64_t bytes = sf_type_bytes(sf_type_of(cpu->graph, inst->node->result + i));
        if (!inst->is_fixed[i] && at->out[i] != at->in[i] && bytes > 0)
            memcpy(at->out[i], at->in[i], (size_t)bytes);
    }
    for (;;) {
        SF_TRY(run_frame(cpu, &bodies[0], diag));
        if (!*at->out[inst->node->nresults])
            return SF_OK;
        SF_TRY(run_frame(cpu, &bodies[1], diag));
    }
}

static sf_status run_case(struct cpu *cpu, const sf_inst *inst, const sf_pointers *at,
                          const frame *bodies, sf_diag *diag)
{
    int32_t index;
    memcpy(&index, at->in[0], sizeof index);
    bool is_known = index >= 0 && (uint32_t)index < inst->nbodies;
    return run_frame(cpu, &bodies[is_known ? (uint32_t)index : inst->nbodies - 1], diag);
}

static sf_status run_inst(struct cpu *cpu, const frame *f, uint32_t index, sf_diag *diag)
{
    const sf_inst *inst = &f->program->insts[index];
    const sf_pointers *at = &f->pointers[index];
    switch (inst->kind) {
    case SF_INST_LOOP:
        sf_loop_run(inst->loop, *at, cpu->scratch, cpu->threads);
        return SF_OK;
    case SF_INST_DOT:
    case SF_INST_CONV:
        run_product(cpu, inst, at);
        return SF_OK;
    case SF_INST_WHILE:
        return run_while(cpu, inst, at, f->bodies[index], diag);
    case SF_INST_CASE:
        return run_case(cpu, inst, at, f->bodies[index], diag);
    case SF_INST_COMM:
        return run_collective(cpu, f, index, diag);
    case SF_INST_OP:
    case SF_INST_KIND_COUNT:
        break;
    }
    return run_op(cpu, inst, at, diag);
}

/* Of a collective, the time to start it and the time that it was waited for. */
static sf_status run_step(struct cpu *cpu, sf_diag *diag)
{
    for (uint32_t i = 0; i < cpu->program->ninsts; i++) {
        SF_TRY(sf_collectives_wait(&cpu->collectives, i, cpu->seconds, diag));
        double before = sf_now();
        SF_TRY(run_inst(cpu, &cpu->top, i, diag));
        cpu->seconds[i] += sf_now() - before;
    }
    return sf_collectives_wait(&cpu->collectives, SF_NONE, cpu->seconds, diag);
}

static sf_status step(void *self, sf_diag *diag)
{
    struct cpu *cpu = self;
    sf_status status = run_step(cpu, diag);
    if (status != SF_OK)
        sf_collectives_drop(&cpu->collectives, diag);
    cpu->steps++;
    return status;
}

static void *own(struct cpu *cpu, int64_t bytes)
{
    void *memory = sf_alloc((size_t)bytes);
    SF_PUSH(&cpu->memory, cpu->owned, cpu->nowned, cpu->owned_capacity, memory);
    return memory;
}

static void expand_constant(const sf_dense *dense, char *to, int64_t bytes)
{
    int64_t width = sf_dtype_get(dense->type->dtype)->bytes;
    for (int64_t i = 0; i < bytes / width; i++)
        memcpy(to + i * width, (const char *)dense->data + sf_dense_at(dense, i) * width,
               (size_t)width);
}

static void place_buffers(struct cpu *cpu, frame *f, char *arena, char *const *arguments)
{
    const sf_program *p = f->program;
    f->buffers = SF_ARRAY(&cpu->memory, p->nbuffers, char *);
    for (size_t i = 0; i < p->nbuffers; i++) {
        const sf_buffer *buffer = &p->buffers[i];
        if (buffer->home == SF_HOME_ARENA) {
            f->buffers[i] = arena + buffer->offset;
        } else if (buffer->home == SF_HOME_ARGUMENT) {
            f->buffers[i] = arguments[buffer->argument];
        } else {
            f->buffers[i] = own(cpu, buffer->bytes);
            expand_constant(buffer->constant, f->buffers[i], buffer->bytes);
        }
    }
}

static void point_views(struct cpu *cpu, frame *f)
{
    const sf_program *p = f->program;
    f->pointers = SF_ARRAY(&cpu->memory, p->ninsts, sf_pointers);
    for (size_t i = 0; i < p->ninsts; i++) {
        const sf_inst *inst = &p->insts[i];
        sf_pointers *at = &f->pointers[i];
        at->in = SF_ARRAY(&cpu->memory, inst->nin, char *);
        at->out = SF_ARRAY(&cpu->memory, inst->nout, char *);
        for (uint32_t j = 0; j < inst->nin; j++)
            at->in[j] = view_pointer(f, &inst->in[j]);
        for (uint32_t j = 0; j < inst->nout; j++)
            at->out[j] = view_pointer(f, &inst->out[j]);
    }
}

/* Everything stands where it stands for good, in bodies too. */
static void open_frame(struct cpu *cpu, const sf_program *p, char *arena, char *const *arguments,
                       frame *out)
{
    out->program = p;
    place_buffers(cpu, out, arena, arguments);
    point_views(cpu, out);
    out->bodies = SF_ARRAY(&cpu->memory, p->ninsts, frame *);
    for (size_t i = 0; i < p->ninsts; i++) {
        const sf_inst *inst = &p->insts[i];
        out->bodies[i] = SF_ARRAY(&cpu->memory, inst->nbodies, frame);
        for (uint32_t j = 0; j < inst->nbodies; j++) {
            const sf_program *body = inst->bodies[j];
            char **views = SF_ARRAY(&cpu->memory, body->narguments, char *);
            for (uint32_t k = 0; k < body->narguments; k++)
                views[k] = out->buffers[sf_body_argument(inst, k)->buffer];
            open_frame(cpu, body, out->pointers[i].out[inst->nout - 1], views, &out->bodies[i][j]);
        }
    }
}

static int64_t op_scratch(struct cpu *cpu, const sf_inst *inst, int threads)
{
    sf_mark mark = sf_arena_mark(&cpu->memory);
    uint32_t ntypes = inst->node->noperands + inst->node->nresults;
    sf_op op = sf_op_of(cpu->graph, inst->node, SF_ARRAY(&cpu->memory, ntypes, const sf_type *));
    int64_t variant;
    const sf_fast *kernel = sf_fast_find(&op, &variant);
    bool is_fast = kernel != NULL;
    int64_t bytes = is_fast ? sf_fast_scratch(kernel, &op, variant, threads) : 0;
    int64_t lists = (int64_t)(ntypes * (sizeof(sf_type *) + sizeof(sf_tensor)) + 64);
    sf_eval_need need = is_fast ? (sf_eval_need){0} : sf_eval_needs(&op);
    for (uint32_t i = 0; i < inst->node->noperands; i++)
        if (!is_fast && stands_in_place(inst, i))
            need.scratch += sf_type_bytes(op.in[i]) + 64;
    if (need.scratch + lists > cpu->need.scratch)
        cpu->need.scratch = need.scratch + lists;
    cpu->need.values += need.values;
    sf_arena_reset(&cpu->memory, mark);
    return bytes;
}

static int64_t scratch_of_all(struct cpu *cpu, const sf_program *p);

static int64_t most_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t scratch_of(struct cpu *cpu, const sf_inst *inst)
{
    int threads = sf_threads_count(cpu->threads);
    if (inst->kind == SF_INST_WHILE || inst->kind == SF_INST_CASE) {
        int64_t most = 0;
        for (uint32_t i = 0; i < inst->nbodies; i++)
            most = most_of(most, scratch_of_all(cpu, inst->bodies[i]));
        return most;
    }
    if (inst->kind == SF_INST_COMM)
        return 0;
    if (inst->kind == SF_INST_OP)
        return op_scratch(cpu, inst, threads);
    return (inst->loop ? sf_loop_scratch(inst->loop, threads) : 0) +
           (inst->kind == SF_INST_LOOP ? 0 : product_scratch(cpu, inst));
}

static int64_t scratch_of_all(struct cpu *cpu, const sf_program *p)
{
    int64_t most = 0;
    for (size_t i = 0; i < p->ninsts; i++)
        most = most_of(most, scratch_of(cpu, &p->insts[i]));
    return most;
}

static int64_t memory_of(const void *self)
{
    const struct cpu *cpu = self;
    return cpu->program->arena_bytes + cpu->program->state_bytes + cpu->program->constant_bytes +
           cpu->scratch_bytes + cpu->need.scratch + cpu->need.values;
}

static void close_cpu(void *self)
{
    struct cpu *cpu = self;
    for (size_t i = 0; i < cpu->nowned; i++)
        sf_free(cpu->owned[i]);
    sf_eval_close(&cpu->eval);
    if (cpu->owns_threads)
        sf_threads_free(cpu->threads);
    sf_program_free(cpu->program);
    sf_arena_free(&cpu->memory);
    sf_free(cpu);
}

/* Constants whose elements the text left out cannot be run. */
static sf_status check_constants(const sf_program *p, sf_diag *diag)
{
    for (size_t i = 0; i < p->nbuffers; i++)
        if (p->buffers[i].home == SF_HOME_CONSTANT && !p->buffers[i].constant->data) {
            sf_fail(diag, SF_EINPUT, SF_NOWHERE,
                    "the elements of a constant were left out of the text");
            return sf_hint(diag, "print the step with its large constants");
        }
    for (size_t i = 0; i < p->ninsts; i++)
        for (uint32_t j = 0; j < p->insts[i].nbodies; j++)
            SF_TRY(check_constants(p->insts[i].bodies[j], diag));
    return SF_OK;
}

static sf_status check_memory(struct cpu *cpu, int64_t limit, sf_diag *diag)
{
    cpu->scratch_bytes = scratch_of_all(cpu, cpu->program);
    if (limit <= 0 || memory_of(cpu) <= limit)
        return SF_OK;
    sf_fail(diag, SF_ENOMEM, SF_NOWHERE,
            "the step needs %" PRId64 " bytes (%" PRId64 " of arguments, %" PRId64
            " between them), and there are %" PRId64,
            memory_of(cpu), cpu->program->state_bytes, cpu->program->arena_bytes, limit);
    return sf_hint(diag, "split it over more ranks, or its state as well (sheaf pin -r zero3)");
}

/* The arena keeps its first chunk, so that a step that takes no more takes no memory. */
static void reserve(sf_arena *arena, int64_t bytes)
{
    sf_mark mark = sf_arena_mark(arena);
    if (bytes > 0)
        sf_arena_alloc(arena, (size_t)bytes);
    sf_arena_reset(arena, mark);
}

static sf_status open_cpu(const sf_graph *graph, const sf_engine_options *options, sf_diag *diag,
                          void **self)
{
    struct cpu *cpu = sf_alloc(sizeof *cpu);
    cpu->graph = graph;
    cpu->program = sf_lower(graph);
    cpu->owns_threads = !options->pool;
    cpu->threads = options->pool ? options->pool : sf_threads_new(options->threads);
    sf_status status = SF_OK;
    if (!cpu->threads)
        status = sf_fail(diag, SF_ENOMEM, SF_NOWHERE, "no threads can be started");
    if (status == SF_OK)
        status = check_constants(cpu->program, diag);
    if (status == SF_OK)
        status = check_memory(cpu, options->memory ? options->memory : sf_machine_memory(), diag);
    if (status != SF_OK) {
        close_cpu(cpu);
        return status;
    }
    char **arguments = SF_ARRAY(&cpu->memory, cpu->program->narguments, char *);
    for (uint32_t i = 0; i < cpu->program->narguments; i++)
        arguments[i] = own(cpu, cpu->program->buffers[i].bytes);
    open_frame(cpu, cpu->program, own(cpu, cpu->program->arena_bytes), arguments, &cpu->top);
    cpu->scratch = own(cpu, cpu->scratch_bytes);
    cpu->seconds = SF_ARRAY(&cpu->memory, cpu->program->ninsts, double);
    cpu->collectives = (sf_collectives){.comm = options->comm, .mesh = options->mesh};
    cpu->collectives.flights = SF_ARRAY(&cpu->memory, cpu->program->ninsts + 1, sf_flight);
    cpu->eval = (sf_eval){.graph = graph};
    cpu->eval.values = sf_alloc(graph->nvalues * sizeof *cpu->eval.values);
    reserve(&cpu->eval.scratch, cpu->need.scratch);
    *self = cpu;
    return SF_OK;
}

static sf_tensor get_argument(void *self, uint32_t index)
{
    struct cpu *cpu = self;
    sf_value value = cpu->graph->top->arguments[index];
    return (sf_tensor){.type = sf_type_of(cpu->graph, value), .data = cpu->top.buffers[index]};
}

static sf_tensor get_result(void *self, uint32_t index)
{
    struct cpu *cpu = self;
    sf_value value = cpu->graph->top->results[index];
    return (sf_tensor){.type = sf_type_of(cpu->graph, value),
                       .data = view_pointer(&cpu->top, &cpu->program->results[index])};
}

static void print_profile(const void *self, sf_buf *out)
{
    const struct cpu *cpu = self;
    sf_program_profile(cpu->program, cpu->seconds, cpu->steps, out);
}

static int threads_of(const void *self)
{
    return sf_threads_count(((const struct cpu *)self)->threads);
}

const sf_engine_table sf_engine_cpu = {
    .name = "cpu",
    .open = open_cpu,
    .close = close_cpu,
    .argument = get_argument,
    .result = get_result,
    .step = step,
    .memory = memory_of,
    .threads = threads_of,
    .profile = print_profile,
};
