#include "sim/step_bound.h"

#include <math.h>

#include "op/attention.h"
#include "sim/instruction_work.h"

/* A kernel that every plan runs, whole or in shards. */
typedef struct kernel {
    sf_effort effort;
    double runs;
} kernel;

typedef struct bounding {
    kernel *kernels;
    size_t count, capacity;
    double read;    /* bytes of operands of kernels, and of arguments that loops read */
    double written; /* by products; */
    double results; /* of the step, written by loops, which may be the same */
    sf_arena arena;
} bounding;

/* Which kernels there are ------------------------------------------------------------------------ */

static bool attends_always(const sf_attending *what)
{
    (void)what;
    return true;
}

/* Whether attention of some size is a kernel of the target: then shards may be of that size. */
static bool may_attend(const sf_target *target)
{
    static const sf_dtype dtypes[] = {SF_F32, SF_BF16, SF_F16};
    for (size_t t = 0; target->attends && t < sizeof dtypes / sizeof *dtypes; t++)
        for (int64_t places = 1; places <= 1 << 16; places *= 2) {
            sf_attending what = {.dtype = dtypes[t],
                                 .queries = places,
                                 .keys = places,
                                 .depth = 64,
                                 .causal = true,
                                 .rounds = target->rounds};
            if (target->attends(&what))
                return true;
        }
    return false;
}

static bool is_attention(const sf_effort *effort)
{
    return effort->unit == SF_UNIT_ATTENTION || effort->unit == SF_UNIT_ATTENTION_GRADIENT;
}

/* Products and loops do all places, and keep the scores, of which the gradient's kernel makes the product once more: 4 for 5. */
static double least_flops(const sf_effort *effort, const sf_op *op)
{
    double all = effort->flops / sf_attention_seen_by_last(op);
    return fmin(effort->flops, effort->unit == SF_UNIT_ATTENTION_GRADIENT ? 0.8 * all : all);
}

static void add_kernel(bounding *b, const sf_inst *inst, double runs)
{
    sf_effort effort = sf_inst_effort(inst);
    if (!effort.product)
        return;
    effort.vector = effort.after = 0;
    if (is_attention(&effort))
        effort.flops = least_flops(&effort, &inst->call->op);
    double out = is_attention(&effort) ? 0 : sf_view_bytes(&inst->out[0]);
    if (!is_attention(&effort))
        effort.bytes = sf_view_bytes(&inst->in[0]) + sf_view_bytes(&inst->in[1]) + out;
    SF_PUSH(&b->arena, b->kernels, b->count, b->capacity, ((kernel){effort, runs}));
    b->read += runs * (effort.bytes - out);
    b->written += runs * out;
}

static void add_kernels(bounding *b, const sf_program *program, double runs)
{
    for (size_t i = 0; i < program->ninsts; i++) {
        const sf_inst *inst = &program->insts[i];
        add_kernel(b, inst, runs);
        for (uint32_t j = 0; j < sf_body_count(inst); j++)
            add_kernels(b, inst->nest->bodies[j], runs * inst->nest->runs[j]);
    }
}

/* The state ---------------------------------------------------------------------------------------- */

static bool is_whole(const sf_program *program, const sf_view *view)
{
    return sf_view_bytes(view) >= (double)program->buffers[view->buffer].bytes;
}

/* Notes in `by` how the instruction touches whole buffers. */
static void note_views(const sf_program *program, uint32_t count, const sf_view *views, bool *by)
{
    for (uint32_t i = 0; i < count; i++)
        if (is_whole(program, &views[i]))
            by[views[i].buffer] = true;
}

/* Once each: what products read is among their operands. A loop may write where its product does. */
static void add_state(bounding *b, const sf_program *program)
{
    bool *in_product = SF_ARRAY(&b->arena, program->nbuffers, bool);
    bool *read = SF_ARRAY(&b->arena, program->nbuffers, bool);
    bool *written = SF_ARRAY(&b->arena, program->nbuffers, bool);
    for (size_t i = 0; i < program->ninsts; i++) {
        const sf_inst *inst = &program->insts[i];
        bool is_product = inst->kind == SF_INST_DOT || inst->kind == SF_INST_CONV;
        if (is_product || inst->kind == SF_INST_LOOP) {
            note_views(program, inst->nin, inst->in, is_product ? in_product : read);
            note_views(program, inst->nout, inst->out, is_product ? in_product : written);
        }
    }
    for (size_t i = 0; i < program->nbuffers; i++) {
        const sf_buffer *buffer = &program->buffers[i];
        if (buffer->home == SF_HOME_ARGUMENT && read[i] && !in_product[i])
            b->read += (double)buffer->bytes;
        if (buffer->is_result && written[i])
            b->results += (double)buffer->bytes;
    }
}

/* Seconds ------------------------------------------------------------------------------------------ */

static double kernel_seconds(const kernel *k, const sf_costs *costs, int kind)
{
    return k->runs * sf_costs_least(costs, kind, &k->effort);
}

static double state_seconds(const bounding *b, const sf_costs *costs, int kind)
{
    sf_effort bytes = {.bytes = b->read + fmax(b->written, b->results)};
    return sf_costs_least(costs, kind, &bytes);
}

/* By kind: weights whose sum over the devices is one, more for the faster. */
static double *weigh_kinds(const bounding *b, const sf_costs *costs, sf_arena *arena)
{
    int nkinds = sf_costs_kinds(costs);
    double *weights = SF_ARRAY(arena, nkinds, double), all = 0;
    for (int k = 0; k < nkinds; k++) {
        double busy = state_seconds(b, costs, k);
        for (size_t i = 0; i < b->count; i++)
            busy += kernel_seconds(&b->kernels[i], costs, k);
        weights[k] = busy > 0 ? 1 / busy : 1;
        all += weights[k] * sf_costs_count(costs, k);
    }
    for (int k = 0; k < nkinds; k++)
        weights[k] /= all;
    return weights;
}

static double least_launch(const sf_costs *costs)
{
    static const sf_effort nothing;
    double least = HUGE_VAL;
    for (int k = 0; k < sf_costs_kinds(costs); k++)
        least = fmin(least, sf_costs_op_on(costs, k, &nothing));
    return least;
}

/* No device is busy for longer than the step takes, so neither is a weighted mean of them; and a share of a kernel adds that share of
 * what it adds where it adds the least. Without stages each device launches it. */
static sf_step_bound sum_bound(bounding *b, const sf_costs *costs)
{
    const double *weights = weigh_kinds(b, costs, &b->arena);
    double launch = least_launch(costs), bytes = HUGE_VAL;
    sf_step_bound out = {0};
    for (int k = 0; k < sf_costs_kinds(costs); k++)
        bytes = fmin(bytes, weights[k] * state_seconds(b, costs, k));
    for (size_t i = 0; i < b->count; i++) {
        double least = HUGE_VAL;
        for (int k = 0; k < sf_costs_kinds(costs); k++)
            least = fmin(least, weights[k] * kernel_seconds(&b->kernels[i], costs, k));
        out.seconds += least;
        out.unstaged += fmax(least, b->kernels[i].runs * launch);
    }
    out.seconds = fmax(out.seconds, bytes);
    out.unstaged = fmax(out.unstaged, bytes);
    return out;
}

sf_step_bound sf_step_bound_of(const sf_graph *graph, const sf_target *target,
                               const sf_costs *costs)
{
    bounding b = {0};
    sf_target most = *target;
    if (sf_costs_have_seen(costs))
        return (sf_step_bound){0};
    if (may_attend(target))
        most.attends = attends_always;
    sf_program *program =
        sf_lower(graph, &(sf_lower_options){.target = &most, .unplaced = true}, NULL);
    add_kernels(&b, program, 1);
    add_state(&b, program);
    sf_step_bound out = sum_bound(&b, costs);
    sf_program_free(program);
    sf_arena_free(&b.arena);
    return out;
}
