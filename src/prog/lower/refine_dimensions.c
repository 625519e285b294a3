/* Nodes of loops with the dimensions that dimension_cuts.h finds, so that nodes on both sides of a
 * reshape are in one loop. A node with a cut dimension is replaced by one with all of its blocks as
 * dimensions; readers that need the old dimensions read a reshape of it.
 *
 *     concatenate(a, b)                          select(counter == 0, broadcast(a), broadcast(b))
 *     pad(a, v), to twice as much                select(counter == half, broadcast(a), v)
 *
 * where the counter counts halves. Values that only a and b need are computed there, in both
 * halves: twice, from operands that are loaded in any case, instead of being stored, loaded and
 * stored. */
#include "ir/clone.h"
#include "op/slots.h"
#include "prog/lower/dimension_cuts.h"

typedef struct finer {
    const sf_graph *graph;
    sf_regraph *out;
    cutting cuts;
    sf_value
        *fine; /* by value of the graph: the same with dimensions as they are cut, or SF_NONE */
    const sf_node *now; /* in whose place nodes are made */
} finer;

enum { MOST_MADE = 16 }; /* nodes in the place of one, at most in the middle */

static sf_value add(finer *f, sf_opcode code, uint32_t noperands, const sf_value *operands,
                    const sf_attr *const *attrs, const sf_type *type)
{
    return sf_regraph_add(f->out, f->now, code, noperands, operands, attrs, type);
}

static const sf_type *fine_type(finer *f, sf_value like, sf_dtype dtype)
{
    int64_t dims[SF_MAX_RANK];
    int rank = cut_dims(&f->cuts, like, dims);
    return sf_type_get(f->out->graph->pool, dtype, rank, dims);
}

static sf_value splat(finer *f, const sf_type *type, const void *data)
{
    const sf_attr *value = sf_attr_dense(f->out->graph->pool, type, true, data);
    return add(f, SF_OP_CONSTANT, 0, NULL, &value, type);
}

static const sf_dense *splat_of(const sf_graph *graph, sf_value value)
{
    const sf_node *node = sf_maker(graph, value);
    if (!node || !sf_is(node, SF_OP_CONSTANT))
        return NULL;
    const sf_dense *dense = &node->attrs[SF_CONSTANT_VALUE]->dense;
    return dense->splat && dense->data ? dense : NULL;
}

/* The value as the text has it. */
static sf_value plain_of(finer *f, sf_value value)
{
    if (f->out->values[value] == SF_NONE)
        f->out->values[value] =
            add(f, SF_OP_RESHAPE, 1, &f->fine[value], NULL, sf_type_of(f->graph, value));
    return f->out->values[value];
}

static sf_value fine_of(finer *f, sf_value value)
{
    const sf_dense *dense = splat_of(f->graph, value);
    if (f->fine[value] != SF_NONE)
        return f->fine[value];
    const sf_type *type = fine_type(f, value, sf_type_of(f->graph, value)->dtype);
    f->fine[value] = dense ? splat(f, type, dense->data)
                           : add(f, SF_OP_RESHAPE, 1, &f->out->values[value], NULL, type);
    return f->fine[value];
}

static sf_value make_pointwise(finer *f, const sf_node *node)
{
    int map[SF_MAX_RANK];
    sf_value operands[3];
    for (uint32_t i = 0; i < node->noperands; i++)
        operands[i] = linked_dims(f->graph, node, PART_POINTWISE, i, map)
                          ? fine_of(f, node->operands[i])
                          : plain_of(f, node->operands[i]);
    const sf_type *type = fine_type(f, node->result, sf_type_of(f->graph, node->result)->dtype);
    return sf_regraph_add(f->out, node, (sf_opcode)node->def->id, node->noperands, operands,
                          node->attrs, type);
}

static sf_value make_broadcast(finer *f, const sf_node *node)
{
    const sf_type *to = sf_type_of(f->graph, node->result);
    int64_t dims[SF_MAX_RANK];
    int map[SF_MAX_RANK], rank = 0, first;
    linked_dims(f->graph, node, PART_BROADCAST, 0, map);
    for (int d = 0; d < to->rank; d++)
        for (int i = 0, count = cut_dims_of(&f->cuts, node->result, d, &first);
             map[d] >= 0 && i < count; i++)
            dims[rank++] = first + i;
    const sf_attr *along = sf_attr_ints(f->out->graph->pool, rank, dims);
    sf_value operand = fine_of(f, node->operands[0]);
    return add(f, SF_OP_BROADCAST_IN_DIM, 1, &operand, &along,
               fine_type(f, node->result, to->dtype));
}

static sf_value make_fold(finer *f, const sf_node *node)
{
    const sf_attr *gone = node->attrs[SF_REDUCE_DIMENSIONS];
    const sf_attr *attrs[2] = {NULL, node->attrs[SF_REDUCE_BODY]};
    int64_t dims[SF_MAX_RANK];
    int rank = 0, first;
    for (int j = 0; j < gone->count; j++)
        for (int i = 0,
                 count = cut_dims_of(&f->cuts, node->operands[0], (int)gone->ints[j], &first);
             i < count; i++)
            dims[rank++] = first + i;
    attrs[SF_REDUCE_DIMENSIONS] = sf_attr_ints(f->out->graph->pool, rank, dims);
    const sf_value operands[2] = {fine_of(f, node->operands[0]), plain_of(f, node->operands[1])};
    return add(f, SF_OP_REDUCE, 2, operands, attrs,
               fine_type(f, node->result, sf_type_of(f->graph, node->result)->dtype));
}

/* An operand of a join, in the shape of the result: dimension `half` of `shape` is not of the
 * operand. */
static sf_value widen(finer *f, sf_value value, const sf_type *shape, int half)
{
    const sf_dense *dense = splat_of(f->graph, value);
    sf_pool *pool = f->out->graph->pool;
    const sf_type *type = sf_type_with(pool, shape, sf_type_of(f->graph, value)->dtype);
    if (dense)
        return splat(f, type, dense->data);
    if (f->cuts.is_absorbed[value]) {
        const sf_node *node = sf_maker(f->graph, value);
        sf_value operands[3];
        int map[SF_MAX_RANK];
        for (uint32_t i = 0; i < node->noperands; i++)
            operands[i] = linked_dims(f->graph, node, PART_POINTWISE, i, map)
                              ? widen(f, node->operands[i], shape, half)
                              : plain_of(f, node->operands[i]);
        return sf_regraph_add(f->out, node, (sf_opcode)node->def->id, node->noperands, operands,
                              node->attrs, type);
    }
    int64_t dims[SF_MAX_RANK];
    for (int d = 0, at = 0; d < shape->rank; d++)
        if (d != half)
            dims[at++] = d;
    const sf_attr *along = sf_attr_ints(pool, shape->rank - 1, dims);
    sf_value operand = fine_of(f, value);
    return add(f, SF_OP_BROADCAST_IN_DIM, 1, &operand, &along, type);
}

static sf_value make_join(finer *f, const sf_node *node)
{
    sf_pool *pool = f->out->graph->pool;
    const sf_type *shape = fine_type(f, node->result, sf_type_of(f->graph, node->result)->dtype);
    const sf_type *index = sf_type_with(pool, shape, SF_S32);
    int half;
    join j;
    join_of(f->graph, node, &j);
    int count = cut_dims_of(&f->cuts, node->result, j.dim, &half);
    half += j.alternates ? count - 1 : 0;
    int32_t which = j.half[0];
    const sf_attr *equal[2] = {[SF_COMPARE_DIRECTION] = sf_attr_text(pool, sf_str_of("EQ"))};
    const sf_attr *along = sf_attr_int(pool, half);
    sf_value halves[2] = {add(f, SF_OP_IOTA, 0, NULL, &along, index), splat(f, index, &which)};
    sf_value is_first = add(f, SF_OP_COMPARE, 2, halves, equal, sf_type_with(pool, shape, SF_PRED));
    const sf_dense *dense = splat_of(f->graph, node->operands[1]);
    const sf_attr *none = sf_attr_ints(pool, 0, NULL);
    sf_value other = j.nparts == 2 ? widen(f, node->operands[1], shape, half)
                     : dense       ? splat(f, shape, dense->data)
                                   : add(f, SF_OP_BROADCAST_IN_DIM, 1,
                                         (sf_value[]){plain_of(f, node->operands[1])}, &none, shape);
    sf_value first = widen(f, node->operands[0], shape, half);
    return add(f, SF_OP_SELECT, 3, (sf_value[]){is_first, first, other}, NULL, shape);
}

/* Whether the node is made with other dimensions. */
static bool is_finer(const finer *f, const sf_node *node)
{
    part kind = f->cuts.parts[node->id];
    if (kind == PART_NONE)
        return false;
    bool any = kind == PART_JOIN || is_cut(&f->cuts, node->result);
    for (uint32_t i = 0; i < node->noperands; i++)
        any = any || is_cut(&f->cuts, node->operands[i]);
    return any;
}

static sf_value make_finer(finer *f, const sf_node *node)
{
    switch (f->cuts.parts[node->id]) {
    case PART_POINTWISE:
        return make_pointwise(f, node);
    case PART_BROADCAST:
        return make_broadcast(f, node);
    case PART_FOLD:
        return make_fold(f, node);
    case PART_RESHAPE:
        return fine_of(f, node->operands[0]);
    case PART_JOIN:
        return make_join(f, node);
    case PART_NONE:
        break;
    }
    return SF_NONE;
}

static void need_plain(void *context, sf_value value)
{
    finer *f = context;
    if (f->out->values[value] != SF_NONE || f->fine[value] != SF_NONE)
        plain_of(f, value);
}

static void add_finer(finer *f, const sf_node *node)
{
    f->now = node;
    if (node->nresults == 1 && f->cuts.is_absorbed[node->result])
        return;
    if (is_finer(f, node)) {
        sf_value made = make_finer(f, node);
        f->fine[node->result] = made;
        f->out->nodes[node->id] = sf_maker(f->out->graph, made)->id;
        return;
    }
    for (uint32_t i = 0; i < node->noperands; i++)
        plain_of(f, node->operands[i]);
    for (uint32_t r = 0; r < node->nregions; r++)
        sf_block_uses(f->graph, node->regions[r], need_plain, f);
    sf_node_clone(f->graph, node, f->out->graph, f->out->graph->top, f->out->values);
    f->out->nodes[node->id] = (uint32_t)f->out->graph->nnodes - 1;
}

static void make_all(finer *f)
{
    const sf_graph *graph = f->graph;
    const sf_block *top = graph->top;
    uint32_t made = 0;
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        add_finer(f, node);
        while (made < f->out->graph->nnodes)
            f->out->node_of[made++] = node->id;
    }
    for (uint32_t i = 0; i < top->nresults; i++)
        plain_of(f, top->results[i]);
    for (uint32_t i = 0; graph->arguments && i < top->narguments; i++)
        if (graph->arguments[i].gradient != SF_NONE)
            plain_of(f, graph->arguments[i].gradient);
    while (made < f->out->graph->nnodes)
        f->out->node_of[made++] = f->now->id;
}

sf_regraph find_finer(const sf_graph *graph)
{
    sf_regraph out = {0};
    sf_arena arena = {0};
    finer f = {.graph = graph, .out = &out};
    find_cuts(graph, &arena, &f.cuts);
    if (!f.cuts.any) {
        sf_arena_free(&arena);
        return out;
    }
    sf_regraph_begin(graph, MOST_MADE * graph->nnodes, &out);
    f.fine = SF_ARRAY(&arena, graph->nvalues, sf_value);
    for (sf_value v = 0; v < graph->nvalues; v++)
        f.fine[v] = SF_NONE;
    make_all(&f);
    sf_regraph_end(graph, &out);
    /* The value in memory is the computed one; others read it through other dimensions. */
    for (sf_value v = 0; v < graph->nvalues; v++) {
        const sf_node *node = sf_maker(graph, v);
        if (node && f.fine[v] != SF_NONE && is_finer(&f, node) &&
            f.cuts.parts[node->id] != PART_RESHAPE)
            out.values[v] = f.fine[v];
    }
    sf_arena_free(&arena);
    return out;
}
