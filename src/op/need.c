/* How much memory the kernels of the op table take: most hold operands and results as words of 64 bits,
 * and tables of places along each dimension. */
#include "op/eval.h"
#include "op/util.h"
#include "op/words.h"

/* A list or two of a kernel, and the rounding of each. */
enum { LISTS = 2048 };

/* Saturates: sizes come from the user, and too large ones are refused later. */
static int64_t saturated_bytes(double bytes)
{
    return bytes < 0x1p60 ? (int64_t)bytes : INT64_C(1) << 60;
}

double sf_scratch_words(const sf_op *op)
{
    double count = 0;
    for (int i = 0; i < op->noperands; i++)
        count += (double)op->in[i]->count;
    for (int i = 0; i < op->nresults; i++)
        count += (double)op->out[i]->count;
    return sizeof(sf_word) * count * (op->nresults > 0 ? sf_parts_of(op->out[0]->dtype) : 1);
}

static double sum_of_lengths(int count, const sf_type *const *types)
{
    double sum = 0;
    for (int i = 0; i < count; i++)
        for (int d = 0; d < types[i]->rank; d++)
            sum += (double)types[i]->dims[d];
    return sum;
}

double sf_dimension_sum(const sf_op *op)
{
    return sum_of_lengths(op->noperands, op->in) + sum_of_lengths(op->nresults, op->out);
}

double sf_scratch_places(const sf_op *op)
{
    return 3 * sizeof(int64_t) * sf_dimension_sum(op);
}

double sf_scratch_words_and_places(const sf_op *op)
{
    return sf_scratch_words(op) + sf_scratch_places(op);
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
    double scratch = op->def->scratch ? op->def->scratch(op) : sf_scratch_places(op);
    sf_eval_need need = {.scratch = saturated_bytes(scratch) + LISTS + 128 * tensors};
    int64_t inner = 0;
    for (int i = 0; i < op->nregions; i++) {
        sf_eval_need block = need_of_block(op->graph, op->regions[i]);
        need.values += block.values;
        inner = block.scratch > inner ? block.scratch : inner;
    }
    need.scratch += inner;
    return need;
}
