#include "run/fast/fast.h"

#include "op/attention.h"
#include "run/fast/fast_kernels.h"

static const sf_fast *const kernels[SF_ATTENTION_GRADIENT + 1] = {
    [SF_ATTENTION] = &sf_fast_attention,
    [SF_ATTENTION_GRADIENT] = &sf_fast_attention_gradient,
    [SF_OP_BITCAST_CONVERT] = &sf_fast_bitcast_convert,
    [SF_OP_BROADCAST_IN_DIM] = &sf_fast_broadcast_in_dim,
    [SF_OP_CONCATENATE] = &sf_fast_concatenate,
    [SF_OP_DYNAMIC_SLICE] = &sf_fast_dynamic_slice,
    [SF_OP_DYNAMIC_UPDATE_SLICE] = &sf_fast_dynamic_update_slice,
    [SF_OP_GATHER] = &sf_fast_gather,
    [SF_OP_IOTA] = &sf_fast_iota,
    [SF_OP_PAD] = &sf_fast_pad,
    [SF_OP_REDUCE] = &sf_fast_reduce,
    [SF_OP_REDUCE_WINDOW] = &sf_fast_reduce_window,
    [SF_OP_RESHAPE] = &sf_fast_reshape,
    [SF_OP_REVERSE] = &sf_fast_reverse,
    [SF_OP_RNG_BIT_GENERATOR] = &sf_fast_rng_bit_generator,
    [SF_OP_SCATTER] = &sf_fast_scatter,
    [SF_OP_SELECT_AND_SCATTER] = &sf_fast_select_and_scatter,
    [SF_OP_SLICE] = &sf_fast_slice,
    [SF_OP_SORT] = &sf_fast_sort,
    [SF_OP_TOP_K] = &sf_fast_top_k,
    [SF_OP_TRANSPOSE] = &sf_fast_transpose,
};

const sf_fast *sf_fast_find(const sf_op *op, int64_t *variant)
{
    const sf_fast *kernel = kernels[op->def->id];
    if (!kernel)
        kernel = &sf_fast_complex;
    *variant = kernel->choose ? kernel->choose(op) : 0;
    return *variant == SF_FAST_NONE ? NULL : kernel;
}

int64_t sf_fast_scratch(const sf_fast *kernel, const sf_op *op, int64_t variant, int threads)
{
    return kernel->scratch ? kernel->scratch(op, variant, threads) : 0;
}

void sf_fast_run(const sf_fast *kernel, const sf_op *op, int64_t variant, const sf_tensor *in,
                 sf_tensor *out, void *scratch, sf_threads *threads)
{
    kernel->run(op, variant, in, out, scratch, threads);
}
