/* Forms of nodes with which less is read or stored, for a target that wants few passes.
 *
 * The gradient of a bias is a sum over images and pixels, and a norm beside it has sums over pixels
 * of the same numbers: loops of two kinds, each of which reads all of them. If there is such a sum,
 * the other is first taken over the same dimensions, in the same loop; the remaining sum is small.
 *
 *     reduce(x, images and pixels)               reduce(reduce(x, pixels), images)
 *
 * So is a sum with few results, where what is left lies between: each row of a loop is one result, and pixels of an image are rows
 * enough for all multiprocessors.
 *
 * The gradient of a maximum compares its operands; the result of the maximum gives the same answer.
 * The result is in memory if a product reads it, so the operand need not be.
 *
 *     compare(x > c), beside y = maximum(x, c)   compare(y > c) */
#include <string.h>

#include "ir/clone.h"
#include "op/slots.h"
#include "prog/lower/lowering.h"

enum { NEAR_OPS = 3 }; /* between a sum and a value that another sum reads, too */

typedef struct folding {
    const sf_graph *graph;
    const sf_node **sums; /* that loops can do, in order */
    size_t nsums;
    uint32_t *seen; /* by value: the sum, plus one, that is computed from it */
} folding;

static bool is_sum(const sf_graph *graph, const sf_node *node)
{
    sf_vfold fold;
    if (!fold_of(graph, node, &fold) || fold != SF_VFOLD_SUM)
        return false;
    sf_dtype dtype = sf_type_of(graph, node->result)->dtype;
    const sf_dense *init = &sf_maker(graph, node->operands[1])->attrs[SF_CONSTANT_VALUE]->dense;
    return (dtype == SF_F32 || dtype == SF_F64) && sf_load_f64(dtype, init->data, 0) == 0;
}

static uint64_t dims_of(const sf_node *node)
{
    const sf_attr *dims = node->attrs[SF_REDUCE_DIMENSIONS];
    uint64_t set = 0;
    for (int i = 0; i < dims->count; i++)
        set |= (uint64_t)1 << dims->ints[i];
    return set;
}

/* Calls for all values of the shape that the value is computed from, a few ops away; true as soon as one is. */
typedef bool see_value(folding *f, sf_value value, uint32_t mark);

static bool look_back(folding *f, sf_value value, const sf_type *shape, int depth, uint32_t mark,
                      see_value *see)
{
    const sf_node *node = sf_maker(f->graph, value);
    sf_vop op;
    if (!sf_same_shape(sf_type_of(f->graph, value), shape) ||
        (node && (sf_is(node, SF_OP_CONSTANT) || sf_is(node, SF_OP_BROADCAST_IN_DIM))))
        return false;
    if (see(f, value, mark))
        return true;
    for (uint32_t i = 0; depth > 0 && node && vop_of(f->graph, node, &op) && i < node->noperands;
         i++)
        if (look_back(f, node->operands[i], shape, depth - 1, mark, see))
            return true;
    return false;
}

static bool mark_value(folding *f, sf_value value, uint32_t mark)
{
    f->seen[value] = mark;
    return false;
}

static bool is_marked(folding *f, sf_value value, uint32_t mark)
{
    return f->seen[value] == mark;
}

/* A sum of values computed from the same operands, over some of the dimensions but not the first;
 * NULL if there is none. */
static const sf_node *find_beside(folding *f, const sf_node *node)
{
    const sf_type *shape = sf_type_of(f->graph, node->operands[0]);
    uint64_t all = dims_of(node);
    if (sf_type_of(f->graph, node->result)->count == 1 || (all & 1) == 0)
        return NULL;
    look_back(f, node->operands[0], shape, NEAR_OPS, node->id + 1, mark_value);
    for (size_t i = 0; i < f->nsums; i++) {
        const sf_node *other = f->sums[i];
        uint64_t some = dims_of(other);
        if (other->phase == node->phase && some != 0 && some != all && (some & ~all) == 0 &&
            (some & 1) == 0 &&
            look_back(f, other->operands[0], shape, NEAR_OPS, node->id + 1, is_marked))
            return other;
    }
    return NULL;
}

/* The dimensions after the last that is left, of a sum of few results over these and others; 0: it is none. */
static uint64_t find_inner(const sf_graph *graph, const sf_node *node)
{
    enum { FEW_RESULTS = 512, LONG_ROW = 256 };
    const sf_type *from = sf_type_of(graph, node->operands[0]);
    int64_t results = sf_type_of(graph, node->result)->count, row = 1;
    uint64_t all = dims_of(node), inner = 0;
    for (int d = from->rank - 1; d >= 0 && (from->dims[d] == 1 || all >> d & 1); d--) {
        inner |= (all & (uint64_t)1 << d);
        row *= from->dims[d];
    }
    bool is_rest = row > 0 && from->count / row > results;
    return results > 1 && results <= FEW_RESULTS && row >= LONG_ROW && is_rest ? inner : 0;
}

/* First over `some` of the dimensions. */
static void add_in_alternation(sf_regraph *out, const sf_graph *graph, const sf_node *node,
                               uint64_t some)
{
    sf_pool *pool = out->graph->pool;
    const sf_type *from = sf_type_of(graph, node->operands[0]);
    const sf_attr *attrs[2] = {NULL, node->attrs[SF_REDUCE_BODY]};
    uint64_t all = dims_of(node);
    int64_t dims[SF_MAX_RANK], left[SF_MAX_RANK], first[SF_MAX_RANK];
    int rank = 0, nleft = 0, nfirst = 0;
    for (int d = 0; d < from->rank; d++) {
        if (some >> d & 1) {
            first[nfirst++] = d;
            continue;
        }
        if (all >> d & 1)
            left[nleft++] = rank;
        dims[rank++] = from->dims[d];
    }
    sf_value operands[2] = {out->values[node->operands[0]], out->values[node->operands[1]]};
    attrs[SF_REDUCE_DIMENSIONS] = sf_attr_ints(pool, nfirst, first);
    operands[0] = sf_regraph_add(out, node, SF_OP_REDUCE, 2, operands, attrs,
                                 sf_type_get(pool, from->dtype, rank, dims));
    attrs[SF_REDUCE_DIMENSIONS] = sf_attr_ints(pool, nleft, left);
    out->values[node->result] = sf_regraph_add(out, node, SF_OP_REDUCE, 2, operands, attrs,
                                               sf_type_of(graph, node->result));
}

/* Masks */

/* The operand of a reshape. */
static sf_value behind_one(const sf_graph *graph, sf_value value)
{
    const sf_node *node = sf_maker(graph, value);
    return node && sf_is(node, SF_OP_RESHAPE) ? node->operands[0] : value;
}

static bool is_constant(const sf_graph *graph, sf_value value)
{
    const sf_node *node = sf_maker(graph, value);
    return node && sf_is(node, SF_OP_CONSTANT);
}

static bool is_same(const sf_graph *graph, sf_value a, sf_value b)
{
    return a == b || (is_constant(graph, a) && is_constant(graph, b) &&
                      sf_maker(graph, a)->attrs[SF_CONSTANT_VALUE] ==
                          sf_maker(graph, b)->attrs[SF_CONSTANT_VALUE]);
}

/* How many large values from elsewhere the value is computed from by element-wise ops, two at most. */
static int count_sources(const sf_graph *graph, sf_value value, int depth, sf_value *known)
{
    const sf_node *node = sf_maker(graph, value);
    sf_vop op;
    int count = 0;
    if (node && (sf_is(node, SF_OP_CONSTANT) || sf_is(node, SF_OP_BROADCAST_IN_DIM)))
        return 0;
    if (!node || !vop_of(graph, node, &op) || depth == 0) {
        count = *known != value;
        *known = value;
        return count;
    }
    for (uint32_t i = 0; count < 2 && i < node->noperands; i++)
        count += count_sources(graph, node->operands[i], depth - 1, known);
    return count;
}

/* Whether a value need not be stored if it is not compared: recomputing it reads no more memory
 * than the value takes, or only the comparison and the maximum read it. */
static bool can_go(const sf_graph *graph, sf_value value, const uint32_t *readers)
{
    enum { DEEP = 12 };
    sf_value none = SF_NONE;
    const sf_node *node = sf_maker(graph, value);
    sf_vop op;
    return node && (vop_of(graph, node, &op) ? count_sources(graph, value, DEEP, &none) > 1
                                             : readers[value] == 2);
}

/* Operands of maxima, by value; readers that are no loops, by value; and numbers of readers. */
typedef struct masking {
    const sf_node **maxima;
    bool *stands;
    uint32_t *readers;
} masking;

/* The maximum of the same two, with a reader that is no loop, so that it is in memory; NULL if
 * there is none. */
static const sf_node *find_maximum(const sf_graph *graph, const sf_node *node, const masking *m)
{
    if (!sf_is(node, SF_OP_COMPARE) || node->attrs[SF_COMPARE_TYPE] ||
        strcmp(node->attrs[SF_COMPARE_DIRECTION]->text, "GT") != 0)
        return NULL;
    const sf_node *other = m->maxima[node->operands[0]];
    if (!other || !m->stands[other->result] || other->id > node->id)
        return NULL;
    sf_value bound = other->operands[other->operands[0] == node->operands[0]];
    return is_same(graph, bound, node->operands[1]) && can_go(graph, node->operands[0], m->readers)
               ? other
               : NULL;
}

static void add_mask(sf_regraph *out, const sf_graph *graph, const sf_node *node,
                     const sf_node *maximum)
{
    const sf_value operands[2] = {out->values[maximum->result], out->values[node->operands[1]]};
    out->values[node->result] = sf_regraph_add(out, node, SF_OP_COMPARE, 2, operands, node->attrs,
                                               sf_type_of(graph, node->result));
}

/* By node: how it has another form. */
typedef struct other_form {
    uint64_t first;         /* a sum: over these dimensions first; 0: as it is */
    const sf_node *maximum; /* a comparison: of its result; or NULL */
} other_form;

static other_form *find_forms_of(const sf_graph *graph, sf_arena *arena, size_t *count)
{
    uint32_t nnodes = graph->top->nnodes;
    folding f = {.graph = graph};
    f.sums = SF_ARRAY(arena, nnodes, const sf_node *);
    f.seen = SF_ARRAY(arena, graph->nvalues, uint32_t);
    other_form *forms = SF_ARRAY(arena, graph->nnodes, other_form);
    masking m = {SF_ARRAY(arena, graph->nvalues, const sf_node *),
                 SF_ARRAY(arena, graph->nvalues, bool), SF_ARRAY(arena, graph->nvalues, uint32_t)};
    for (uint32_t i = 0; i < nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        bool is_product = sf_is_product(node->def);
        if (is_sum(graph, node))
            f.sums[f.nsums++] = node;
        for (uint32_t j = 0; sf_is(node, SF_OP_MAXIMUM) && j < node->noperands; j++)
            m.maxima[node->operands[j]] = node;
        for (uint32_t j = 0; j < node->noperands; j++) {
            m.stands[behind_one(graph, node->operands[j])] |= is_product;
            m.readers[node->operands[j]]++;
        }
    }
    *count = 0;
    for (size_t i = 0; i < f.nsums; i++) {
        const sf_node *beside = find_beside(&f, f.sums[i]);
        forms[f.sums[i]->id].first = beside ? dims_of(beside) : find_inner(graph, f.sums[i]);
    }
    for (uint32_t i = 0; i < nnodes; i++) {
        other_form *form = &forms[sf_top_node(graph, i)->id];
        form->maximum = find_maximum(graph, sf_top_node(graph, i), &m);
        *count += form->first != 0 || form->maximum;
    }
    return forms;
}

sf_regraph find_fewer(const sf_graph *graph)
{
    sf_regraph out = {0};
    sf_arena arena = {0};
    size_t count;
    const other_form *forms = find_forms_of(graph, &arena, &count);
    if (count > 0) {
        sf_regraph_begin(graph, count, &out);
        for (uint32_t i = 0; i < graph->top->nnodes; i++) {
            const sf_node *node = sf_top_node(graph, i);
            const other_form *form = &forms[node->id];
            uint32_t made = (uint32_t)out.graph->nnodes;
            if (form->maximum)
                add_mask(&out, graph, node, form->maximum);
            else if (form->first)
                add_in_alternation(&out, graph, node, form->first);
            else
                sf_node_clone(graph, node, out.graph, out.graph->top, out.values);
            out.nodes[node->id] = (uint32_t)out.graph->nnodes - 1;
            while (made < out.graph->nnodes)
                out.node_of[made++] = node->id;
        }
        sf_regraph_end(graph, &out);
    }
    sf_arena_free(&arena);
    return out;
}
