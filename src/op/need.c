/* How much memory the kernels of the op table take: most hold operands and results as words of 64 bits,
 * and tables of places along each dimension. */
#include "op/eval.h"
#include "op/slots.h"
#include "op/words.h"

/* A list or two of a kernel, and the rounding of each. */
enum { LISTS = 2048 };

/* Saturates: sizes come from the user, and what does not fit is refused later. */
static int64_t saturated_bytes(double bytes)
{
    return bytes < 0x1p60 ? (int64_t)bytes : INT64_C(1) << 60;
}

static double count_elements(int count, const sf_type *const *types)
{
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += (double)types[i]->count;
    return sum;
}

static double sum_of_lengths(int count, const sf_type *const *types)
{
    double sum = 0;
    for (int i = 0; i < count; i++)
        for (int d = 0; d < types[i]->rank; d++)
            sum += (double)types[i]->dims[d];
    return sum;
}

static double bytes_of_types(int count, const sf_type *const *types)
{
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += (double)sf_type_bytes(types[i]) + 16;
    return sum;
}

/* For every place of the result, along each dimension, the element under each place of the window. */
static double windows_of_conv(const sf_op *op)
{
    sf_ints kernel = sf_op_ints(op, SF_CONV_RHS_SPATIAL);
    sf_ints result = sf_op_ints(op, SF_CONV_OUT_SPATIAL);
    int64_t groups =
        sf_op_int(op, SF_CONV_FEATURE_GROUPS, 1) * sf_op_int(op, SF_CONV_BATCH_GROUPS, 1);
    double seen = 0, area = 1;
    for (int d = 0; d < kernel.count; d++) {
        double size = (double)op->in[1]->dims[kernel.at[d]];
        seen += size * (double)op->out[0]->dims[result.at[d]];
        area *= size;
    }
    double inputs = sum_of_lengths(2, op->in) + sum_of_lengths(1, op->out) + 8;
    return seen + 2 * area + inputs * (double)groups;
}

static double scratch_need(const sf_op *op)
{
    double in = count_elements(op->noperands, op->in), out = count_elements(op->nresults, op->out);
    double words = sizeof(sf_word) * (in + out);
    if (op->nresults > 0)
        words *= sf_parts_of(op->out[0]->dtype);
    switch (op->def->id) {
    case SF_OP_CONVOLUTION: /* as they come, and in order */
        return 2 * words + sizeof(int64_t) * windows_of_conv(op);
    case SF_OP_DOT_GENERAL:
        return 2 * words;
    case SF_OP_FFT: /* a box twice, and a line, padded to a power of two, twice */
        return 11 * 2 * words;
    case SF_OP_REDUCE:
    case SF_OP_REDUCE_WINDOW:
    case SF_OP_SELECT_AND_SCATTER:
    case SF_OP_SCATTER:
    case SF_OP_CHOLESKY:
    case SF_OP_TRIANGULAR_SOLVE:
        break;
    case SF_OP_WHILE: /* the next values */
        return bytes_of_types(op->noperands, op->in) + (double)op->noperands * sizeof(sf_tensor);
    default: /* element by element, or row by row */
        words = 0;
    }
    double along = sum_of_lengths(op->noperands, op->in) + sum_of_lengths(op->nresults, op->out);
    return words + 3 * sizeof(int64_t) * along;
}

static sf_eval_need need_of_block(const sf_graph *graph, const sf_block *block);

static void add_value_need(const sf_graph *graph, sf_value value, sf_eval_need *need)
{
    need->values += saturated_bytes((double)sf_type_bytes(sf_type_of(graph, value)) / 64 + 1) * 64;
}

static sf_eval_need need_of_node(const sf_graph *graph, const sf_node *node)
{
    sf_arena arena = {0};
    const sf_type **types = SF_ARRAY(&arena, node->noperands + node->nresults, const sf_type *);
    sf_op op = sf_op_of(graph, node, types);
    sf_eval_need need = sf_eval_needs(&op);
    sf_arena_free(&arena);
    for (uint32_t i = 0; i < node->nresults; i++)
        add_value_need(graph, node->result + i, &need);
    return need;
}

static sf_eval_need need_of_block(const sf_graph *graph, const sf_block *block)
{
    sf_eval_need need = {0};
    for (uint32_t i = 0; i < block->narguments; i++)
        add_value_need(graph, block->arguments[i], &need);
    for (uint32_t i = 0; i < block->nnodes; i++) {
        sf_eval_need node = need_of_node(graph, graph->nodes[block->nodes[i]]);
        need.values += node.values;
        need.scratch = node.scratch > need.scratch ? node.scratch : need.scratch;
    }
    return need;
}

sf_eval_need sf_eval_needs(const sf_op *op)
{
    int tensors = op->noperands + op->nresults;
    sf_eval_need need = {.scratch = saturated_bytes(scratch_need(op)) + LISTS + 128 * tensors};
    int64_t inner = 0;
    for (int i = 0; i < op->nregions; i++) {
        sf_eval_need block = need_of_block(op->graph, op->regions[i]);
        need.values += block.values;
        inner = block.scratch > inner ? block.scratch : inner;
    }
    need.scratch += inner;
    return need;
}
