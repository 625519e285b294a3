#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "prog/program.h"

static void print_view(sf_buf *out, const sf_program *p, const sf_view *view)
{
    const sf_buffer *buffer = &p->buffers[view->buffer];
    static const char letters[] = {'b', 'a', 'c'};
    sf_buf_printf(out, " %c%u:%s[", letters[buffer->home],
                  buffer->home == SF_HOME_ARGUMENT ? buffer->argument : view->buffer,
                  sf_dtype_get(view->dtype)->name);
    for (int i = 0; i < view->rank; i++)
        sf_buf_printf(out, "%s%" PRId64, i ? "," : "", view->dims[i]);
    sf_buf_putc(out, ']');
    if (!sf_view_is_contiguous(view))
        sf_buf_putc(out, '~');
    if (buffer->space == SF_SPACE_HOST)
        sf_buf_puts(out, "@host");
    if (sf_in_arena(buffer))
        sf_buf_printf(out, "@%" PRId64, buffer->offset);
}

static void print_loop(sf_buf *out, const sf_loop *loop)
{
    uint32_t ops = 0, folds = 0;
    for (uint32_t i = 0; i < loop->nsteps; i++) {
        ops += loop->steps[i].kind == SF_STEP_OP || loop->steps[i].kind == SF_STEP_CONVERT;
        folds += loop->steps[i].kind == SF_STEP_FOLD || loop->steps[i].kind == SF_STEP_GATHER;
    }
    sf_buf_printf(out, " %" PRId64 "x%" PRId64 " ops %u folds %u registers %u", loop->rows,
                  loop->columns, ops, folds, loop->nregisters);
}

/* "w3" waits for event 3, "e3" raises it. */
static void print_events(sf_buf *out, const sf_inst *inst)
{
    for (uint32_t i = 0; i < inst->nwaits; i++)
        sf_buf_printf(out, " w%u", inst->waits[i]);
    if (inst->raises != SF_NONE)
        sf_buf_printf(out, " e%u", inst->raises);
}

static bool is_shown(const sf_inst *inst, uint32_t output)
{
    return inst->kind != SF_INST_WHILE || output >= inst->nest->nresults ||
           !inst->nest->is_fixed[output];
}

static void print_inst(sf_buf *out, const sf_program *p, uint32_t index, int depth)
{
    const sf_inst *inst = &p->insts[index];
    sf_buf_printf(out, "%*s%5u s%u %-4s", 4 * depth, "", index, inst->stream,
                  sf_inst_kind_name(inst->kind));
    print_events(out, inst);
    if (inst->kind == SF_INST_CALL)
        sf_buf_printf(out, " %s", inst->call->op.def->name);
    if (inst->kind == SF_INST_COMM)
        sf_buf_printf(out, " %s", sf_exchange_name(inst->exchange));
    if (inst->kind == SF_INST_DOT)
        sf_buf_printf(out, " %" PRId64 "x%" PRId64 "x%" PRId64, inst->dot->m, inst->dot->n,
                      inst->dot->k);
    if (inst->loop && inst->kind != SF_INST_LOOP)
        sf_buf_puts(out, " + loop");
    if (inst->loop)
        print_loop(out, inst->loop);
    for (uint32_t i = 0; i < inst->nin; i++)
        print_view(out, p, &inst->in[i]);
    sf_buf_puts(out, " ->");
    for (uint32_t i = 0; i < inst->nout; i++)
        if (is_shown(inst, i))
            print_view(out, p, &inst->out[i]);
    if (*inst->origin.scope)
        sf_buf_printf(out, "  %s", inst->origin.scope);
    sf_buf_putc(out, '\n');
}

/* Bodies are printed below their instruction, indented; their buffers are numbered on their own. */
static void print_insts(sf_buf *out, const sf_program *p, int depth)
{
    for (uint32_t i = 0; i < p->ninsts; i++) {
        const sf_inst *inst = &p->insts[i];
        print_inst(out, p, i, depth);
        for (uint32_t j = 0; j < sf_body_count(inst); j++) {
            sf_buf_printf(out, "%*sbody %u\n", 4 * depth + 6, "", j);
            print_insts(out, inst->nest->bodies[j], depth + 1);
        }
    }
}

void sf_program_print(const sf_program *p, sf_buf *out)
{
    sf_buf_printf(out,
                  "program of %zu instructions: arguments %" PRId64 " bytes, arena %" PRId64
                  " bytes, constants %" PRId64 " bytes",
                  p->ninsts, p->state_bytes, p->arena_bytes[SF_SPACE_DEVICE], p->constant_bytes);
    if (sf_program_host_bytes(p) > 0)
        sf_buf_printf(out, ", host %" PRId64 " bytes", sf_program_host_bytes(p));
    sf_buf_putc(out, '\n');
    print_insts(out, p, 0);
}

typedef struct timed {
    uint32_t inst;
    double seconds;
} timed;

static int slowest_first(const void *a, const void *b)
{
    const timed *x = a, *y = b;
    return (x->seconds < y->seconds) - (x->seconds > y->seconds);
}

static double flops_of(const sf_inst *inst)
{
    return inst->kind == SF_INST_DOT    ? sf_dot_flops(inst->dot)
           : inst->kind == SF_INST_CONV ? sf_conv_flops(inst->conv)
                                        : 0;
}

static void print_rates(sf_buf *out, const sf_inst *inst, double seconds)
{
    double flops = flops_of(inst);
    if (seconds <= 0)
        seconds = HUGE_VAL;
    sf_buf_printf(out, " %8.1f GB/s", sf_inst_touched(inst) / seconds / 1e9);
    if (flops > 0)
        sf_buf_printf(out, " %7.2f TFLOP/s", flops / seconds / 1e12);
}

void sf_program_profile(const sf_program *p, const double *seconds, int64_t steps, sf_buf *out)
{
    enum { SHOWN = 40 };
    timed *list = sf_alloc(p->ninsts * sizeof *list);
    double kinds[SF_INST_KIND_COUNT] = {0}, all = 0, scale = steps ? 1e3 / (double)steps : 0;
    for (uint32_t i = 0; i < p->ninsts; i++) {
        list[i] = (timed){i, seconds[i]};
        kinds[p->insts[i].kind] += seconds[i];
        all += seconds[i];
    }
    qsort(list, p->ninsts, sizeof *list, slowest_first);
    sf_buf_printf(out, "step %.3f ms\n", all * scale);
    for (int kind = 0; kind < SF_INST_KIND_COUNT; kind++)
        sf_buf_printf(out, "  %-5s %10.3f ms %5.1f%%\n", sf_inst_kind_name((sf_inst_kind)kind),
                      kinds[kind] * scale, all > 0 ? 100 * kinds[kind] / all : 0.0);
    for (size_t i = 0; i < p->ninsts && i < SHOWN; i++) {
        sf_buf_printf(out, "%10.3f ms", list[i].seconds * scale);
        print_rates(out, &p->insts[list[i].inst], list[i].seconds / (double)(steps ? steps : 1));
        print_inst(out, p, list[i].inst, 0);
    }
    sf_free(list);
}
