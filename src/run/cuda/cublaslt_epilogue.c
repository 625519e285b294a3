#include "run/cuda/cublaslt_epilogue.h"

enum { ALIGNMENT = 16 };

/* The same row for all rows, whose columns are side by side. */
static bool is_one_row(const sf_loop *loop, const sf_access *access)
{
    int64_t stride = 1;
    for (int d = loop->rank - 1; d >= 0 && !access->is_row; d--) {
        if (loop->dims[d] != 1 && access->strides[d] != (d < loop->split ? 0 : stride))
            return false;
        stride *= loop->dims[d];
    }
    return !access->is_row;
}

/* Steps of a loop that adds one register to another and stores the sum. */
typedef struct sum {
    const sf_loop_step *loads[2], *add, *round, *store;
    int nloads;
} sum;

static bool read_steps(const sf_loop *loop, sum *s)
{
    for (uint32_t i = 0; i < loop->nsteps; i++) {
        const sf_loop_step *step = &loop->steps[i];
        if (step->is_row)
            return false;
        if (step->kind == SF_STEP_LOAD && s->nloads < 2)
            s->loads[s->nloads++] = step;
        else if (step->kind == SF_STEP_OP && step->op == SF_VADD && !s->add)
            s->add = step;
        else if (step->kind == SF_STEP_ROUND && s->add && !s->round)
            s->round = step;
        else if (step->kind == SF_STEP_STORE && !s->store)
            s->store = step;
        else
            return false;
    }
    return s->nloads == 2 && s->add && s->store;
}

/* Registers are reused, so the order determines the readers: two loads, a sum of both, which is
 * stored. */
static bool is_in_order(const sum *s)
{
    const sf_loop_step *last = s->round ? s->round : s->add;
    bool adds_both = (s->add->a == s->loads[0]->dst && s->add->b == s->loads[1]->dst) ||
                     (s->add->a == s->loads[1]->dst && s->add->b == s->loads[0]->dst);
    return s->loads[0]->dst != s->loads[1]->dst && s->loads[0] < s->add && s->loads[1] < s->add &&
           last < s->store && adds_both && (!s->round || s->round->a == s->add->dst) &&
           s->store->a == last->dst;
}

/* The operand, of `in`, that is a row which the loop adds to the product, whose buffer is `product`; -1 where it does otherwise. */
static int find_bias(const sf_loop *loop, const sf_view *in, uint32_t product, sf_dtype dtype)
{
    sum s = {.nloads = 0};
    if (!read_steps(loop, &s) || !is_in_order(&s))
        return -1;
    for (int i = 0; i < 2; i++) {
        const sf_access *bias = &loop->accesses[s.loads[i]->access],
                        *other = &loop->accesses[s.loads[!i]->access],
                        *stored = &loop->accesses[s.store->access];
        const sf_view *view = &in[bias->view];
        if (in[other->view].buffer == product && view->buffer != product && bias->dtype == dtype &&
            other->dtype == dtype && stored->dtype == dtype &&
            view->offset * sf_dtype_get(dtype)->bytes % ALIGNMENT == 0 && is_one_row(loop, bias))
            return (int)bias->view;
    }
    return -1;
}

/* Matrices row by row, of types of which the library's sums are floats. */
static bool has_epilogues(const sf_inst *inst)
{
    sf_dtype dtype = inst->out[0].dtype;
    return inst->kind == SF_INST_DOT && inst->dot->nbatch == 0 && inst->dot->c_column == 1 &&
           (dtype == SF_F32 || dtype == SF_BF16 || dtype == SF_F16);
}

bool sf_cuda_follows(const sf_inst *product, const sf_inst *inst, const sf_loop *loop)
{
    return has_epilogues(product) &&
           find_bias(loop, inst->in, product->out[0].buffer, product->out[0].dtype) >= 0;
}

int sf_cuda_bias(const sf_inst *inst)
{
    return inst->loop && has_epilogues(inst)
               ? find_bias(inst->loop, inst->in, inst->out[0].buffer, inst->out[0].dtype)
               : -1;
}
