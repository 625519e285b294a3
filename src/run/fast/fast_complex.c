/* Element-wise ops of complex numbers: the kernels of the op table, each thread on a range of elements. Loops
 * have no registers for them. */
#include "op/util.h"
#include "run/fast/fast_kernels.h"

typedef struct ranging {
    const sf_op *op;
    const sf_tensor *in;
    const sf_tensor *out;
} ranging;

/* Room for the type of a tensor of one dimension, as those of a range are. */
typedef union range_type {
    sf_type type;
    char bytes[sizeof(sf_type) + sizeof(int64_t)];
} range_type;

enum { MOST_OPERANDS = 3 };

static int64_t choose_complex(const sf_op *op)
{
    if (op->def->factors != sf_factors_pointwise || op->noperands > MOST_OPERANDS)
        return SF_FAST_NONE;
    bool is_complex = sf_is_complex(op->out[0]->dtype);
    for (int i = 0; i < op->noperands; i++)
        is_complex = is_complex || sf_is_complex(op->in[i]->dtype);
    return is_complex ? 0 : SF_FAST_NONE;
}

/* Elements [first, end) of the tensor; a scalar beside larger ones stays whole. */
static sf_tensor cut_range(const sf_tensor *tensor, int64_t first, int64_t end, range_type *range)
{
    if (tensor->type->rank == 0)
        return *tensor;
    range->type = (sf_type){.dtype = tensor->type->dtype, .rank = 1, .count = end - first};
    range->type.dims[0] = end - first;
    int64_t width = sf_dtype_get(tensor->type->dtype)->bytes;
    return (sf_tensor){.type = &range->type, .data = (char *)tensor->data + first * width};
}

static void run_range(void *context, int part, int64_t first, int64_t end)
{
    (void)part;
    const ranging *r = context;
    range_type types[MOST_OPERANDS + 1];
    sf_tensor in[MOST_OPERANDS];
    for (int i = 0; i < r->op->noperands; i++)
        in[i] = cut_range(&r->in[i], first, end, &types[i]);
    sf_tensor out = cut_range(r->out, first, end, &types[MOST_OPERANDS]);
    sf_status status = r->op->def->eval(NULL, r->op, in, &out);
    SF_ASSERT(status == SF_OK); /* such kernels need nothing and cannot fail */
}

static void run_complex(const sf_op *op, int64_t variant, const sf_tensor *in, sf_tensor *out,
                        void *scratch, sf_threads *threads)
{
    (void)variant, (void)scratch;
    ranging r = {op, in, out};
    if (out->type->count > 0)
        sf_threads_run(threads, out->type->count, 1 + sf_threads_grain(threads) / 8, run_range, &r);
}

const sf_fast sf_fast_complex = {.choose = choose_complex, .run = run_complex};
