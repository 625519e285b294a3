#include "sim/effort.h"

#include "op/util.h"

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

static double view_bytes(const sf_view *view)
{
    return distinct_elements(view->rank, view->dims, view->strides) * element_width(view->dtype);
}

/* A product that stands in a register when its epilogue reads it is not read from memory. */
static void add_loop_effort(const sf_inst *inst, const sf_loop *loop, sf_effort *out)
{
    double rows = (double)loop->rows, all = rows * (double)loop->columns;
    bool follows = inst->kind != SF_INST_LOOP;
    for (uint32_t i = 0; i < loop->nsteps; i++) {
        const sf_loop_step *step = &loop->steps[i];
        const sf_access *access = &loop->accesses[step->access];
        int rank = access->is_row ? loop->split : loop->rank;
        switch (step->kind) {
        case SF_STEP_LOAD:
            if (!follows || inst->in[access->view].buffer != inst->out[0].buffer)
                out->bytes += distinct_elements(rank, loop->dims, access->strides) *
                              element_width(access->dtype);
            break;
        case SF_STEP_STORE:
            if (!follows || inst->out[access->view].buffer != inst->out[0].buffer)
                out->bytes += distinct_elements(rank, loop->dims, access->strides) *
                              element_width(access->dtype);
            break;
        case SF_STEP_GATHER:
            out->flops += all;
            out->bytes +=
                (step->is_scalar ? 1 : (double)loop->columns) * element_width(access->dtype);
            break;
        case SF_STEP_FOLD:
            out->flops += all;
            break;
        case SF_STEP_OP:
            out->flops += (step->is_row ? rows : all) * sf_vop_weight(step->op);
            break;
        case SF_STEP_CONSTANT:
        case SF_STEP_ROUND:
        case SF_STEP_CONVERT:
        case SF_STEP_EXPAND:
            break;
        }
    }
}

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

static void add_product(const sf_inst *inst, sf_effort *out)
{
    bool is_dot = inst->kind == SF_INST_DOT;
    out->product = true;
    out->math = math_of(inst->in[0].dtype, is_dot ? inst->dot->exact : inst->conv->exact);
    out->flops += is_dot ? sf_dot_flops(inst->dot) : sf_conv_flops(inst->conv);
    for (int i = 0; i < 2; i++)
        out->bytes += view_bytes(&inst->in[i]);
    out->bytes += view_bytes(&inst->out[0]);
}

/* Where a result stands where its operand does, the rest of that is not touched: the op says how much is. */
static void add_call(const sf_inst *inst, sf_effort *out)
{
    const sf_op *op = &inst->call->op;
    out->flops += sf_op_flops(op);
    out->bytes += sf_op_bytes(op);
}

sf_effort sf_inst_effort(const sf_inst *inst)
{
    sf_effort effort = {0};
    if (inst->kind == SF_INST_DOT || inst->kind == SF_INST_CONV)
        add_product(inst, &effort);
    if (inst->kind == SF_INST_CALL)
        add_call(inst, &effort);
    sf_effort loop = {0};
    if (inst->loop)
        add_loop_effort(inst, inst->loop, &loop);
    effort.bytes += loop.bytes;
    *(effort.product ? &effort.vector : &effort.flops) += loop.flops;
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
        bytes += larger_of(i < inst->nin ? view_bytes(&inst->in[i]) : 0,
                           i < inst->nout ? view_bytes(&inst->out[i]) : 0);
    return bytes;
}

double sf_inst_seconds(const sf_inst *inst, const sf_costs *costs)
{
    sf_effort effort = sf_inst_effort(inst);
    return sf_costs_op(costs, &effort);
}
