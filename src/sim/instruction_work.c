#include "sim/instruction_work.h"

#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "op/attention.h"
#include "op/util.h"
#include "prog/tiling.h"

static double element_width(sf_dtype dtype)
{
    return (double)sf_dtype_get(dtype)->bytes;
}

/* Elements along dimensions that are walked at all. */
static double distinct_elements(int rank, const int64_t *dims, const int64_t *strides)
{
    double count = 1;
    for (int i = 0; i < rank; i++)
        count *= strides[i] == 0 && dims[i] > 0 ? 1 : (double)dims[i];
    return count;
}

double sf_view_bytes(const sf_view *view)
{
    return distinct_elements(view->rank, view->dims, view->strides) * element_width(view->dtype);
}

/* Loops */

static double row_count(const sf_loop *loop)
{
    return (double)loop->rows;
}

static double element_count(const sf_loop *loop)
{
    return row_count(loop) * (double)loop->columns;
}

/* Stretches with one stride that an access is walked in; one for all rows where they follow each other. */
static double count_runs(const sf_loop *loop, const sf_access *access)
{
    int last = loop->rank - 1;
    double runs = row_count(loop);
    if (access->is_row)
        return loop->split <= 1 ? 0 : runs;
    if (last < loop->split)
        return 0;
    if (last == loop->split) {
        int64_t across = loop->split > 0 ? access->strides[loop->split - 1] : 0;
        bool follow = across == access->strides[last] * loop->dims[last];
        return loop->split == 0 || (loop->split == 1 && follow) ? 0 : runs;
    }
    for (int d = loop->split; d < last; d++)
        runs *= (double)loop->dims[d];
    return runs;
}

/* Elements of the tensor that are read or written. */
static double touched_elements(const sf_loop *loop, const sf_access *access, int rank)
{
    int64_t dims[SF_MAX_RANK];
    for (int d = 0; d < rank; d++)
        dims[d] = sf_access_size(loop, access, d);
    return distinct_elements(rank, dims, access->strides);
}

/* Repeated operands, and those in a register when an epilogue reads them, are copied within a
 * cache. */
static void add_access(const sf_loop *loop, const sf_access *access, bool in_register,
                       sf_effort *out)
{
    int rank = access->is_row ? loop->split : loop->rank;
    double all = access->is_row ? row_count(loop) : element_count(loop);
    double distinct = touched_elements(loop, access, rank);
    int64_t stride = rank > 0 ? access->strides[rank - 1] : 0;
    if (!in_register)
        out->bytes += distinct * element_width(access->dtype);
    if (in_register || distinct < all)
        out->passes.copies += all;
    if (stride != 0 && stride != 1)
        out->passes.strided += all;
    if (distinct > 1 && (access->is_row || distinct < all))
        out->touch = SF_TOUCH_REPEATS;
    out->passes.runs += count_runs(loop, access);
}

static void add_op(sf_vop op, double elements, sf_effort *out)
{
    double weight = sf_vop_weight(op);
    out->flops += elements * weight;
    *(sf_vop_is_function(op) ? &out->passes.functions
      : weight > 1           ? &out->passes.divides
                             : &out->passes.light) += elements;
}

static void add_step(const sf_inst *inst, const sf_loop *loop, const sf_loop_step *step,
                     sf_effort *out)
{
    const sf_access *access = &loop->accesses[step->access];
    double all = step->is_row ? row_count(loop) : element_count(loop);
    bool follows = inst->kind != SF_INST_LOOP;
    switch (step->kind) {
    case SF_STEP_LOAD:
        add_access(loop, access, follows && inst->in[access->view].buffer == inst->out[0].buffer,
                   out);
        break;
    case SF_STEP_STORE:
        add_access(loop, access, follows && inst->out[access->view].buffer == inst->out[0].buffer,
                   out);
        break;
    case SF_STEP_GATHER:
        out->flops += element_count(loop);
        *(step->is_scalar ? &out->passes.folds : &out->passes.light) += element_count(loop);
        out->passes.runs += step->is_scalar ? 0 : row_count(loop);
        out->bytes += (step->is_scalar ? 1 : (double)loop->columns) * element_width(access->dtype);
        break;
    case SF_STEP_FOLD:
        out->flops += element_count(loop);
        out->passes.folds += element_count(loop);
        out->passes.runs += row_count(loop);
        break;
    case SF_STEP_OP:
        add_op(step->op, all, out);
        break;
    case SF_STEP_EXPAND:
    case SF_STEP_INDEX:
    case SF_STEP_ROUND:
    case SF_STEP_CONVERT:
        out->passes.copies += all;
        break;
    case SF_STEP_CONSTANT:
        break;
    }
}

static sf_effort loop_effort(const sf_inst *inst)
{
    sf_effort effort = {.counted = inst->loop != NULL};
    for (uint32_t i = 0; inst->loop && i < inst->loop->nsteps; i++)
        add_step(inst, inst->loop, &inst->loop->steps[i], &effort);
    if (inst->loop &&
        inst->loop
            ->compiled) { /* registers are those of the processor: docs/design/performance.md */
        effort.passes.light = effort.passes.copies = effort.passes.folds = effort.passes.runs = 0;
    }
    if (inst->kind == SF_INST_LOOP && inst->loop) { /* an epilogue runs on the product's threads */
        effort.shares = (double)sf_loop_shares(inst->loop);
        effort.units = (double)sf_loop_tile(inst->loop).units;
    }
    return effort;
}

/* Products */

static sf_math math_of(sf_dtype dtype, bool exact)
{
    if (dtype == SF_F64)
        return SF_MATH_F64;
    if (dtype == SF_BF16)
        return SF_MATH_BF16;
    if (dtype == SF_F16)
        return SF_MATH_F16;
    if (sf_is_float(dtype) && sf_dtype_get(dtype)->bits <= 8)
        return SF_MATH_F8;
    return dtype == SF_F32 && !exact ? SF_MATH_TF32 : SF_MATH_F32;
}

/* Every window has just the element of its own number: a product of the tensors as they are. */
static bool is_plain(const sf_conv *conv)
{
    for (int d = 0; d < conv->spatial; d++) {
        const sf_conv_dim *dim = &conv->space[d];
        if (dim->window != 1 || dim->stride != 1 || dim->low != 0 || dim->base != 1)
            return false;
    }
    return true;
}

/* How many elements of windows are contiguous: channels of one, or else of many windows in one
 * place. */
static double run_length(const sf_conv *conv, bool *across)
{
    double length = conv->lhs_feature == 1 ? (double)conv->channels : 1, within = length;
    if (conv->lhs_batch == 1 && (double)conv->batch > length)
        length = (double)conv->batch;
    for (int d = 0; d < conv->spatial; d++) {
        const sf_conv_dim *dim = &conv->space[d];
        if (dim->lhs_stride == 1 && dim->stride == 1 && dim->base == 1 && (double)dim->out > length)
            length = (double)dim->out;
    }
    *across = length > within;
    return length;
}

/* The elements of each window are copied side by side, and so is the kernel. */
static sf_packing packing_of(const sf_conv *conv)
{
    double rows = (double)conv->batch, steps = (double)conv->channels;
    int64_t groups = conv->feature_groups * conv->batch_groups;
    if (is_plain(conv))
        return (sf_packing){0};
    for (int d = 0; d < conv->spatial; d++) {
        rows *= (double)conv->space[d].out;
        steps *= (double)conv->space[d].window;
    }
    bool is_across;
    double windows = (double)groups * rows * steps * sf_conv_seen(conv);
    double runs = windows / run_length(conv, &is_across);
    double kernel = steps * (double)conv->features;
    return (sf_packing){.elements = is_across ? kernel : kernel + windows,
                        .across = is_across ? windows : 0,
                        .runs = runs,
                        .kernel = kernel,
                        .rows = (int64_t)ceil(rows * sf_conv_seen(conv)),
                        .features = conv->features / groups,
                        .steps = (int64_t)ceil(steps * sf_conv_seen(conv))};
}

static double padded(int64_t channels)
{
    enum { LEAST = 16 };
    return channels > 0 && channels < LEAST ? (double)LEAST / (double)channels : 1;
}

/* The kind of product on a GPU. A window of one place is a product of the images as they are, and
 * so is the gradient of its kernel; convolutions with strides are slower. */
static void set_unit(const sf_conv *conv, sf_effort *out)
{
    bool is_gradient = out->packing.across > 0, is_one = true, spreads = false, skips = false;
    out->depth = (double)conv->channels;
    for (int d = 0; d < conv->spatial; d++) {
        const sf_conv_dim *dim = &conv->space[d];
        out->depth *= (double)dim->window;
        is_one = is_one && dim->out == 1 && dim->dilation == 1;
        spreads = spreads || dim->base > 1;
        skips = skips || (is_gradient ? dim->dilation : dim->stride) > 1;
    }
    if (out->packing.runs == 0 || (is_gradient && is_one))
        return;
    out->padding = padded(is_gradient ? conv->batch : conv->channels) * padded(conv->features);
    if (is_gradient)
        out->unit = skips ? SF_UNIT_STRIDED_GRADIENT : SF_UNIT_KERNEL_GRADIENT;
    else
        out->unit = spreads ? SF_UNIT_TRANSPOSED : skips ? SF_UNIT_STRIDED : SF_UNIT_CONVOLUTION;
}

static void add_product(const sf_inst *inst, sf_effort *out)
{
    out->product = true;
    out->touch = SF_TOUCH_LOOP;
    if (inst->kind == SF_INST_DOT) {
        out->math = math_of(inst->in[0].dtype, inst->dot->exact);
        out->flops += sf_dot_flops(inst->dot);
        out->depth = (double)inst->dot->k;
        out->batches = 1;
        for (int d = 0; d < inst->dot->nbatch; d++)
            out->batches *= (double)inst->dot->batch[d];
        int64_t together;
        sf_dot_inner_batches(inst->dot, &together);
        out->calls = out->batches / (double)(together > 0 ? together : 1);
    } else {
        out->math = math_of(inst->in[0].dtype, inst->conv->exact);
        out->flops += sf_conv_flops(inst->conv);
        out->packing = packing_of(inst->conv);
        set_unit(inst->conv, out);
    }
    for (int i = 0; i < 2; i++)
        out->bytes += sf_view_bytes(&inst->in[i]);
    out->bytes += sf_view_bytes(&inst->out[0]);
}

/* Scores and values that follow from them are made in blocks that stay in a cache; each head of
 * each example is a product of its own. If ranks have parts of all places, one represents all of
 * them, with the time of the last. Of a score, most of the forward pass is an exponential and a
 * sum, and of the backward pass an exponential and a slope. */
static void add_attention(const sf_op *op, sf_effort *out)
{
    const sf_type *q = op->in[0];
    bool is_backward = op->def->id == SF_ATTENTION_GRADIENT;
    double scores =
        (double)q->dims[0] * (double)q->dims[2] * (double)q->dims[1] * (double)op->in[1]->dims[1];
    scores *= sf_attention_seen_by_last(op);
    out->flops *= sf_attention_seen_by_last(op) / sf_attention_seen(op);
    out->product = true;
    out->unit = is_backward ? SF_UNIT_ATTENTION_GRADIENT : SF_UNIT_ATTENTION;
    out->depth = (double)q->dims[3];
    out->math = math_of(q->dtype, false);
    out->batches = (double)q->dims[0] * (double)q->dims[2];
    out->counted = true;
    out->passes = (sf_passes){.functions = scores,
                              .light = (is_backward ? 5 : 2) * scores,
                              .folds = is_backward ? 0 : 2 * scores};
    out->vector = sf_vop_weight(SF_VEXP) * scores + out->passes.light + out->passes.folds;
}

/* If a result is in the memory of its operand, other elements are not touched: the op gives the
 * number. */
static void add_call(const sf_inst *inst, sf_effort *out)
{
    const sf_op *op = &inst->call->op;
    out->flops += sf_op_flops(op);
    out->bytes += sf_op_bytes(op);
    if (op->def->id == SF_ATTENTION || op->def->id == SF_ATTENTION_GRADIENT)
        add_attention(op, out);
    else
        out->touch = SF_TOUCH_MOVES;
}

sf_effort sf_inst_effort(const sf_inst *inst)
{
    sf_effort effort = loop_effort(inst);
    if (inst->kind == SF_INST_DOT || inst->kind == SF_INST_CONV) {
        effort.vector = effort.flops;
        effort.after = effort.bytes;
        effort.flops = 0;
        add_product(inst, &effort);
    }
    if (inst->kind == SF_INST_CALL)
        add_call(inst, &effort);
    return effort;
}

static double larger_of(double a, double b)
{
    return a > b ? a : b;
}

double sf_exchange_bytes(const sf_inst *inst)
{
    double bytes = 0;
    for (uint32_t i = 0; i < inst->nin || i < inst->nout; i++) /* a message has one end */
        bytes += larger_of(i < inst->nin ? sf_view_bytes(&inst->in[i]) : 0,
                           i < inst->nout ? sf_view_bytes(&inst->out[i]) : 0);
    return bytes;
}

double sf_copy_bytes(const sf_inst *inst)
{
    double bytes = 0;
    for (uint32_t i = 0; i < inst->nin; i++)
        bytes += (double)sf_view_size(&inst->in[i]);
    return bytes;
}

static uint64_t hash_numbers(uint64_t hash, size_t count, const double *numbers)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t bits;
        double number = numbers[i] + 0.0; /* one zero */
        memcpy(&bits, &number, sizeof bits);
        hash = sf_hash_mix(hash, bits);
    }
    return hash;
}

static uint64_t effort_key(const sf_inst *inst, const sf_effort *e)
{
    const sf_passes *p = &e->passes;
    const sf_packing *k = &e->packing;
    const double words[] = {(double)inst->kind, e->product,      (double)e->math,
                            e->counted,         (double)e->unit, (double)e->touch};
    const double numbers[] = {e->flops,  e->bytes, e->vector, e->after, e->batches,
                              e->shares, e->units, e->depth,  e->calls, e->padding};
    const double passes[] = {p->light,  p->divides, p->functions, p->folds,
                             p->copies, p->strided, p->runs};
    const double packing[] = {k->elements,     k->across,           k->runs,         k->kernel,
                              (double)k->rows, (double)k->features, (double)k->steps};
    uint64_t hash = hash_numbers(0, sizeof words / sizeof *words, words);
    hash = hash_numbers(hash, sizeof numbers / sizeof *numbers, numbers);
    hash = hash_numbers(hash, sizeof passes / sizeof *passes, passes);
    return hash_numbers(hash, sizeof packing / sizeof *packing, packing);
}

uint64_t sf_inst_key(const sf_inst *inst)
{
    sf_effort effort = sf_inst_effort(inst);
    return effort_key(inst, &effort);
}

double sf_inst_seconds(const sf_inst *inst, const sf_nearness *near, const sf_costs *costs)
{
    double seen;
    if (inst->kind == SF_INST_JOIN)
        return 0;
    sf_effort effort = sf_inst_effort(inst);
    if (sf_costs_have_seen(costs) && sf_costs_seen(costs, effort_key(inst, &effort), &seen))
        return seen;
    for (int s = 0; near && s < SF_NEAR_STEPS; s++)
        effort.near[s] = near->share[s] * effort.bytes;
    return sf_costs_op(costs, &effort);
}

/* Of loops: the work of both. */
static void add_loop(sf_effort *to, const sf_effort *effort)
{
    const sf_passes *p = &effort->passes;
    to->counted = true;
    to->flops += effort->flops;
    to->bytes += effort->bytes;
    for (int s = 0; s < SF_NEAR_STEPS; s++)
        to->near[s] += effort->near[s];
    to->shares += effort->shares;
    to->units += effort->units;
    to->touch = effort->touch > to->touch ? effort->touch : to->touch;
    to->passes.light += p->light;
    to->passes.divides += p->divides;
    to->passes.functions += p->functions;
    to->passes.folds += p->folds;
    to->passes.copies += p->copies;
    to->passes.strided += p->strided;
    to->passes.runs += p->runs;
}

double sf_fused_launch_seconds(const sf_inst *insts, uint32_t count, const sf_nearness *near,
                               const sf_costs *costs)
{
    sf_effort all = {0};
    double seen = 0, one;
    uint32_t nseen = 0;
    for (uint32_t i = 0; i < count; i++) {
        sf_effort effort = loop_effort(&insts[i]);
        if (sf_costs_have_seen(costs) &&
            sf_costs_seen(costs, effort_key(&insts[i], &effort), &one)) {
            seen += one;
            nseen++;
        }
        for (int s = 0; near && s < SF_NEAR_STEPS; s++)
            effort.near[s] = near[i].share[s] * effort.bytes;
        add_loop(&all, &effort);
    }
    return nseen == count ? seen : sf_costs_op(costs, &all);
}
