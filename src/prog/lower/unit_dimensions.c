/* Products without dimensions of 1. Texts have a dimension for heads that share keys, or for a group, which is 1 where there is
 * but one: products of five dimensions, which kernels of four do not match. Nodes around products of more than four dimensions
 * are computed without those of 1; readers that need them read a reshape. */
#include "op/slots.h"
#include "prog/lower/lowering.h"

enum { FEW = 4, MOST_MADE = 6 /* nodes in the place of one */ };

typedef struct squeezing {
    const sf_graph *graph;
    sf_regraph *out;
    const sf_block **
        home; /* by value: the block in which it is made without dimensions of 1; NULL: it is not */
    bool *needed;   /* by value: somebody reads it as the text has it */
    bool *done;     /* by node: it is made without */
    sf_value *twin; /* by value: the one without, in the block `at`, or SF_NONE */
    const sf_block **at;
    size_t ndone, nproducts;
} squeezing;

static bool has_units(const sf_type *type)
{
    for (int d = 0; d < type->rank; d++)
        if (type->dims[d] == 1)
            return true;
    return false;
}

/* By dimension: which it is without those of 1, or -1; returns how many are left. */
static int squeeze(const sf_type *type, int map[SF_MAX_RANK], int64_t dims[SF_MAX_RANK])
{
    int rank = 0;
    for (int d = 0; d < type->rank; d++) {
        map[d] = type->dims[d] == 1 ? -1 : rank;
        if (map[d] >= 0)
            dims[rank++] = type->dims[d];
    }
    return rank;
}

static const sf_type *squeezed_type(squeezing *s, sf_value value)
{
    const sf_type *type = sf_type_of(s->graph, value);
    int map[SF_MAX_RANK];
    int64_t dims[SF_MAX_RANK];
    int rank = squeeze(type, map, dims);
    return sf_type_get(s->out->graph->pool, type->dtype, rank, dims);
}

static int count_left(const sf_type *type, const sf_attr *list)
{
    int count = 0;
    for (int i = 0; list && i < list->count; i++)
        count += type->dims[list->ints[i]] != 1;
    return count;
}

/* Which nodes ---------------------------------------------------------------------------------------- */

/* Whether it adds up along dimensions of 1 alone, from zero. */
static bool is_no_sum(const sf_graph *graph, const sf_node *node)
{
    if (!sf_is(node, SF_OP_REDUCE) || node->noperands != 2 || !node->attrs[SF_REDUCE_BODY] ||
        node->attrs[SF_REDUCE_BODY]->integer != SF_MONOID_ADD)
        return false;
    const sf_node *start = sf_maker(graph, node->operands[1]);
    const sf_dense *from =
        start && sf_is(start, SF_OP_CONSTANT) ? &start->attrs[SF_CONSTANT_VALUE]->dense : NULL;
    return from && from->data && sf_is_float(from->type->dtype) &&
           sf_load_f64(from->type->dtype, from->data, 0) == 0 &&
           count_left(sf_type_of(graph, node->operands[0]), node->attrs[SF_REDUCE_DIMENSIONS]) == 0;
}

static bool is_supported(const sf_graph *graph, const sf_node *node)
{
    sf_vop op;
    sf_vfold fold;
    if (node->nregions > 0 || node->nresults != 1 || node->noperands == 0 ||
        sf_type_of(graph, node->result)->count == 0)
        return false;
    const sf_type *first = sf_type_of(graph, node->operands[0]);
    if (sf_is(node, SF_OP_DOT_GENERAL))
        return count_left(first, node->attrs[SF_DOT_LHS_CONTRACTING]) > 0;
    if (sf_is(node, SF_OP_BROADCAST_IN_DIM) || sf_is(node, SF_OP_TRANSPOSE) ||
        sf_is(node, SF_OP_RESHAPE))
        return true;
    if (is_no_sum(graph, node))
        return true;
    if (fold_of(graph, node, &fold))
        return node->noperands == 2 && count_left(first, node->attrs[SF_REDUCE_DIMENSIONS]) > 0;
    return !is_counter(graph, node) && vop_of(graph, node, &op);
}

/* Whether the operand is read without its dimensions of 1, as the result is made. */
static bool is_part(const sf_graph *graph, const sf_node *node, uint32_t operand)
{
    sf_vop op;
    if (sf_is(node, SF_OP_REDUCE))
        return operand == 0;
    return !vop_of(graph, node, &op) || sf_same_shape(sf_type_of(graph, node->operands[operand]),
                                                      sf_type_of(graph, node->result));
}

static bool is_large(const sf_type *type)
{
    return type->rank > FEW && has_units(type);
}

static bool is_wanted(const squeezing *s, const sf_block *block, const sf_node *node)
{
    if (!is_supported(s->graph, node))
        return false;
    bool wanted = is_large(sf_type_of(s->graph, node->result));
    for (uint32_t i = 0; i < node->noperands; i++)
        wanted = wanted || is_large(sf_type_of(s->graph, node->operands[i])) ||
                 s->home[node->operands[i]] == block;
    return wanted;
}

static void choose(squeezing *s, const sf_block *block)
{
    for (uint32_t i = 0; i < block->nnodes; i++) {
        const sf_node *node = s->graph->nodes[block->nodes[i]];
        bool done = s->done[node->id] = is_wanted(s, block, node);
        s->ndone += done;
        s->nproducts += done && sf_is(node, SF_OP_DOT_GENERAL);
        if (done && has_units(sf_type_of(s->graph, node->result)))
            s->home[node->result] = block;
        for (uint32_t o = 0; o < node->noperands; o++) {
            sf_value value = node->operands[o];
            if (!done || s->home[value] != block || !is_part(s->graph, node, o))
                s->needed[value] = true;
        }
        for (uint32_t r = 0; r < node->nregions; r++)
            choose(s, node->regions[r]);
    }
    for (uint32_t i = 0; i < block->nresults; i++)
        s->needed[block->results[i]] = true;
}

/* Making them ---------------------------------------------------------------------------------------- */

static sf_value twin_of(squeezing *s, const sf_node *node, sf_value value)
{
    if (!has_units(sf_type_of(s->graph, value)))
        return s->out->values[value];
    if (s->twin[value] == SF_NONE || s->at[value] != s->out->at) {
        s->twin[value] = sf_regraph_add(s->out, node, SF_OP_RESHAPE, 1, &s->out->values[value],
                                        NULL, squeezed_type(s, value));
        s->at[value] = s->out->at;
    }
    return s->twin[value];
}

/* A list of dimensions, without those of 1. */
static const sf_attr *squeezed_dims(squeezing *s, const sf_attr *list, const sf_type *of)
{
    int map[SF_MAX_RANK], count = 0;
    int64_t dims[SF_MAX_RANK], left[SF_MAX_RANK];
    squeeze(of, map, dims);
    for (int i = 0; list && i < list->count; i++)
        if (map[list->ints[i]] >= 0)
            left[count++] = map[list->ints[i]];
    return list ? sf_attr_ints(s->out->graph->pool, count, left) : NULL;
}

static bool rises(const sf_attr *dims, int rank)
{
    for (int i = 0; i < dims->count; i++)
        if (dims->ints[i] != i)
            return false;
    return dims->count == rank;
}

static sf_value make_broadcast(squeezing *s, const sf_node *node, sf_value operand)
{
    const sf_type *from = sf_type_of(s->graph, node->operands[0]),
                  *to = sf_type_of(s->graph, node->result), *type = squeezed_type(s, node->result);
    int map[SF_MAX_RANK], count = 0;
    int64_t sizes[SF_MAX_RANK], dims[SF_MAX_RANK];
    squeeze(to, map, sizes);
    for (int i = 0; i < from->rank; i++)
        if (from->dims[i] != 1)
            dims[count++] = map[node->attrs[SF_BROADCAST_DIMENSIONS]->ints[i]];
    const sf_attr *along = sf_attr_ints(s->out->graph->pool, count, dims);
    if (rises(along, type->rank))
        return operand;
    return sf_regraph_add(s->out, node, SF_OP_BROADCAST_IN_DIM, 1, &operand, &along, type);
}

static sf_value make_transpose(squeezing *s, const sf_node *node, sf_value operand)
{
    const sf_attr *order = squeezed_dims(s, node->attrs[SF_TRANSPOSE_PERMUTATION],
                                         sf_type_of(s->graph, node->operands[0]));
    if (rises(order, order->count))
        return operand;
    return sf_regraph_add(s->out, node, SF_OP_TRANSPOSE, 1, &operand, &order,
                          squeezed_type(s, node->result));
}

static sf_value make_reshape(squeezing *s, const sf_node *node, sf_value operand)
{
    const sf_type *type = squeezed_type(s, node->result);
    return sf_same_shape(sf_type_of(s->out->graph, operand), type)
               ? operand
               : sf_regraph_add(s->out, node, SF_OP_RESHAPE, 1, &operand, NULL, type);
}

static sf_value make_other(squeezing *s, const sf_node *node, const sf_value *operands)
{
    const sf_attr *attrs[SF_DOT_ALGORITHM + 1] = {NULL};
    const sf_attr *const *given = node->attrs;
    const sf_type *types[2] = {NULL, NULL};
    for (uint32_t i = 0; i < node->noperands && i < 2; i++)
        types[i] = sf_type_of(s->graph, node->operands[i]);
    if (sf_is(node, SF_OP_REDUCE)) {
        attrs[SF_REDUCE_DIMENSIONS] = squeezed_dims(s, node->attrs[SF_REDUCE_DIMENSIONS], types[0]);
        attrs[SF_REDUCE_BODY] = node->attrs[SF_REDUCE_BODY];
        given = attrs;
    } else if (sf_is(node, SF_OP_DOT_GENERAL)) {
        for (int a = SF_DOT_LHS_BATCH; a <= SF_DOT_RHS_CONTRACTING; a++)
            attrs[a] = squeezed_dims(s, node->attrs[a],
                                     types[a == SF_DOT_RHS_BATCH || a == SF_DOT_RHS_CONTRACTING]);
        attrs[SF_DOT_PRECISION] = node->attrs[SF_DOT_PRECISION];
        attrs[SF_DOT_ALGORITHM] = node->attrs[SF_DOT_ALGORITHM];
        given = attrs;
    }
    return sf_regraph_add(s->out, node, (sf_opcode)node->def->id, node->noperands, operands, given,
                          squeezed_type(s, node->result));
}

static sf_value make(squeezing *s, const sf_node *node)
{
    enum { MOST = 3 };
    sf_value operands[MOST];
    for (uint32_t i = 0; i < node->noperands; i++)
        operands[i] = is_part(s->graph, node, i) ? twin_of(s, node, node->operands[i])
                                                 : s->out->values[node->operands[i]];
    return is_no_sum(s->graph, node)             ? operands[0]
           : sf_is(node, SF_OP_BROADCAST_IN_DIM) ? make_broadcast(s, node, operands[0])
           : sf_is(node, SF_OP_TRANSPOSE)        ? make_transpose(s, node, operands[0])
           : sf_is(node, SF_OP_RESHAPE)          ? make_reshape(s, node, operands[0])
                                                 : make_other(s, node, operands);
}

static bool add_squeezed(void *context, const sf_node *node, sf_block *to)
{
    squeezing *s = context;
    if (!s->done[node->id])
        return false;
    sf_value made = make(s, node), result = node->result;
    s->out->nodes[node->id] =
        sf_maker(s->out->graph, made) ? sf_maker(s->out->graph, made)->id : SF_NONE;
    if (!has_units(sf_type_of(s->graph, result))) {
        s->out->values[result] = made;
        return true;
    }
    s->twin[result] = made;
    s->at[result] = to;
    if (s->needed[result])
        s->out->values[result] = sf_regraph_add(s->out, node, SF_OP_RESHAPE, 1, &made, NULL,
                                                sf_type_of(s->graph, result));
    return true;
}

sf_regraph find_squeezed(const sf_graph *graph)
{
    sf_regraph out = {0};
    sf_arena arena = {0};
    squeezing s = {.graph = graph,
                   .out = &out,
                   .home = SF_ARRAY(&arena, graph->nvalues, const sf_block *),
                   .needed = SF_ARRAY(&arena, graph->nvalues, bool),
                   .done = SF_ARRAY(&arena, graph->nnodes, bool),
                   .twin = SF_ARRAY(&arena, graph->nvalues, sf_value),
                   .at = SF_ARRAY(&arena, graph->nvalues, const sf_block *)};
    choose(&s, graph->top);
    for (uint32_t i = 0; graph->arguments && i < graph->top->narguments; i++)
        if (graph->arguments[i].gradient != SF_NONE)
            s.needed[graph->arguments[i].gradient] = true;
    if (s.nproducts > 0) {
        for (sf_value v = 0; v < graph->nvalues; v++)
            s.twin[v] = SF_NONE;
        sf_regraph_begin(graph, MOST_MADE * s.ndone, &out);
        sf_regraph_copy(graph, add_squeezed, &s, &out);
        sf_regraph_end(graph, &out);
        for (sf_value v = 0; v < graph->nvalues; v++) /* what is in memory is what was computed */
            if (s.home[v] && s.twin[v] != SF_NONE)
                out.values[v] = s.twin[v];
    }
    sf_arena_free(&arena);
    return out;
}
