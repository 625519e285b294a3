#include "prog/lower/dimension_cuts.h"

#include <string.h>

#include "ir/clone.h"
#include "op/slots.h"

/* Kinds of nodes */

bool join_of(const sf_graph *graph, const sf_node *node, join *out)
{
    if (!sf_is(node, SF_OP_CONCATENATE) && !sf_is(node, SF_OP_PAD))
        return false;
    const sf_type *to = sf_type_of(graph, node->result);
    const sf_type *from = sf_type_of(graph, node->operands[0]);
    *out = (join){.dim = -1, .nparts = 1};
    for (int d = 0; d < to->rank; d++) {
        if (to->dims[d] == from->dims[d])
            continue;
        if (out->dim >= 0 || from->dims[d] < 2 || to->dims[d] != 2 * from->dims[d])
            return false;
        out->dim = d;
    }
    if (out->dim < 0 || sf_is_complex(to->dtype) || sf_dtype_get(to->dtype)->bits < 8)
        return false;
    if (sf_is(node, SF_OP_CONCATENATE)) {
        out->nparts = 2;
        out->half[1] = 1;
        return node->noperands == 2 && sf_same_shape(from, sf_type_of(graph, node->operands[1]));
    }
    int64_t low = node->attrs[SF_PAD_LOW]->ints[out->dim];
    out->alternates = node->attrs[SF_PAD_INTERIOR]->ints[out->dim] == 1;
    out->half[0] = low != 0;
    for (int d = 0; d < to->rank; d++)
        if (node->attrs[SF_PAD_INTERIOR]->ints[d] != (d == out->dim && out->alternates) ||
            (d != out->dim && node->attrs[SF_PAD_LOW]->ints[d] != 0))
            return false;
    return low == 0 || low == (out->alternates ? 1 : from->dims[out->dim]);
}

static bool has_rising_dims(const sf_node *node)
{
    const sf_attr *dims = node->attrs[SF_BROADCAST_DIMENSIONS];
    for (int i = 1; i < dims->count; i++)
        if (dims->ints[i] <= dims->ints[i - 1])
            return false;
    return true;
}

static part part_of(const sf_graph *graph, const sf_node *node)
{
    sf_vop op;
    sf_vfold fold;
    join j;
    if (node->nregions > 0 || node->nresults != 1 || is_counter(graph, node) ||
        sf_type_of(graph, node->result)->count == 0)
        return PART_NONE;
    return vop_of(graph, node, &op)                                       ? PART_POINTWISE
           : fold_of(graph, node, &fold)                                  ? PART_FOLD
           : join_of(graph, node, &j)                                     ? PART_JOIN
           : sf_is(node, SF_OP_RESHAPE)                                   ? PART_RESHAPE
           : sf_is(node, SF_OP_BROADCAST_IN_DIM) && has_rising_dims(node) ? PART_BROADCAST
                                                                          : PART_NONE;
}

bool linked_dims(const sf_graph *graph, const sf_node *node, part kind, uint32_t operand, int *map)
{
    const sf_type *to = sf_type_of(graph, node->result);
    const sf_type *from = sf_type_of(graph, node->operands[operand]);
    for (int d = 0; d < to->rank; d++)
        map[d] = -1;
    switch (kind) {
    case PART_POINTWISE:
    case PART_JOIN:
        for (int d = 0; d < to->rank && from->rank == to->rank; d++)
            map[d] = d;
        return from->rank == to->rank;
    case PART_BROADCAST:
        for (int i = 0; i < from->rank; i++) {
            int64_t d = node->attrs[SF_BROADCAST_DIMENSIONS]->ints[i];
            map[d] = from->dims[i] == to->dims[d] ? i : -1;
        }
        return true;
    case PART_FOLD: {
        const sf_attr *gone = node->attrs[SF_REDUCE_DIMENSIONS];
        for (int i = 0, d = 0; i < from->rank && operand == 0; i++) {
            bool stays = true;
            for (int j = 0; j < gone->count; j++)
                stays = stays && gone->ints[j] != i;
            if (stays)
                map[d++] = i;
        }
        return operand == 0;
    }
    case PART_NONE:
    case PART_RESHAPE:
        break;
    }
    return false;
}

/* Blocks */

static int64_t stride_of(const sf_type *type, int dim)
{
    int64_t stride = 1;
    for (int d = type->rank - 1; d > dim; d--)
        stride *= type->dims[d];
    return stride;
}

/* Blocks of so many elements are rows of the tensor as it is. */
static bool is_own(const sf_type *type, int64_t at)
{
    int64_t stride = 1;
    for (int d = type->rank - 1; d >= 0 && stride < at; d--)
        stride *= type->dims[d];
    return stride == at;
}

/* True where there were no such blocks before and there can be. */
static bool add_cut(cutting *c, sf_value value, int64_t at)
{
    cuts *have = &c->cuts[value];
    int64_t all = sf_type_of(c->graph, value)->count;
    int place = 0;
    while (place < have->count && have->at[place] < at)
        place++;
    int64_t below = place > 0 ? have->at[place - 1] : 1;
    int64_t above = place < have->count ? have->at[place] : all;
    if (at <= below || at >= above || at % below != 0 || above % at != 0 ||
        have->count == SF_MAX_RANK - 1)
        return false;
    memmove(&have->at[place + 1], &have->at[place],
            (size_t)(have->count - place) * sizeof *have->at);
    have->at[place] = at;
    have->count++;
    return true;
}

bool is_cut(const cutting *c, sf_value value)
{
    const sf_type *type = sf_type_of(c->graph, value);
    for (int i = 0; i < c->cuts[value].count; i++)
        if (!is_own(type, c->cuts[value].at[i]))
            return true;
    return false;
}

int cut_dims(const cutting *c, sf_value value, int64_t *dims)
{
    const cuts *have = &c->cuts[value];
    int64_t above = sf_type_of(c->graph, value)->count;
    int rank = 0;
    for (int i = have->count; i-- > 0; above = have->at[i])
        dims[rank++] = above / have->at[i];
    if (above > 1)
        dims[rank++] = above;
    return rank;
}

int cut_dims_of(const cutting *c, sf_value value, int dim, int *first)
{
    const sf_type *type = sf_type_of(c->graph, value);
    const cuts *have = &c->cuts[value];
    int64_t low = stride_of(type, dim), high = low * type->dims[dim];
    int count = high > low;
    *first = 0;
    for (int i = 0; i < have->count; i++) {
        count += have->at[i] > low && have->at[i] < high;
        *first += have->at[i] >= high;
    }
    return count;
}

/* Propagates cuts of rows: blocks of part of a dimension of `from`, to dimension map[d] of `to`; if
 * halves alternate element by element, `twice` as large there, or else here. */
static bool pass_cuts(cutting *c, sf_value from, sf_value to, const int *map, const join *j,
                      bool twice)
{
    const sf_type *a = sf_type_of(c->graph, from), *b = sf_type_of(c->graph, to);
    bool any = false;
    for (int d = 0; d < a->rank; d++) {
        int64_t low = stride_of(a, d), high = low * a->dims[d];
        for (int i = 0; map[d] >= 0 && i < c->cuts[from].count; i++) {
            int64_t at = c->cuts[from].at[i], size = at / low;
            if (at <= low || at >= high ||
                (j->alternates && d == j->dim && !twice && size % 2 != 0))
                continue;
            size = j->alternates && d == j->dim ? (twice ? size * 2 : size / 2) : size;
            if (size < b->dims[map[d]])
                any = add_cut(c, to, size * stride_of(b, map[d])) || any;
        }
    }
    return any;
}

static bool pass_linked(cutting *c, const sf_node *node, uint32_t operand)
{
    int map[SF_MAX_RANK], back[SF_MAX_RANK];
    join j = {.dim = -1};
    sf_value from = node->operands[operand];
    if (!linked_dims(c->graph, node, c->parts[node->id], operand, map))
        return false;
    for (int d = 0; d < SF_MAX_RANK; d++)
        back[d] = -1;
    for (int d = 0; d < sf_type_of(c->graph, node->result)->rank; d++)
        if (map[d] >= 0)
            back[map[d]] = d;
    if (c->parts[node->id] == PART_JOIN)
        join_of(c->graph, node, &j);
    bool any = pass_cuts(c, from, node->result, back, &j, true);
    return pass_cuts(c, node->result, from, map, &j, false) || any;
}

/* All blocks, those that are rows as well, where `all`. */
static bool pass_reshaped(cutting *c, sf_value from, sf_value to, bool all)
{
    const sf_type *type = sf_type_of(c->graph, from);
    bool any = false;
    for (int i = 0; i < c->cuts[from].count; i++)
        if (all || !is_own(type, c->cuts[from].at[i]))
            any = add_cut(c, to, c->cuts[from].at[i]) || any;
    return any;
}

static bool pass_node(cutting *c, const sf_node *node)
{
    bool any = false;
    if (c->parts[node->id] == PART_RESHAPE) {
        any = pass_reshaped(c, node->operands[0], node->result, false);
        return pass_reshaped(c, node->result, node->operands[0], false) || any;
    }
    for (uint32_t i = 0; c->parts[node->id] != PART_NONE && i < node->noperands; i++)
        any = pass_linked(c, node, i) || any;
    return any;
}

/* Where cuts begin */

static void count_reader(void *context, sf_value value)
{
    ((cutting *)context)->readers[value]++;
}

static void count_readers(cutting *c)
{
    const sf_block *top = c->graph->top;
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(c->graph, i);
        for (uint32_t j = 0; j < node->noperands; j++)
            c->readers[node->operands[j]]++;
        for (uint32_t r = 0; r < node->nregions; r++)
            sf_block_uses(c->graph, node->regions[r], count_reader, c);
    }
    for (uint32_t i = 0; i < top->nresults; i++)
        c->readers[top->results[i]]++;
}

static part part_of_maker(const cutting *c, sf_value value)
{
    const sf_node *node = sf_maker(c->graph, value);
    return node ? c->parts[node->id] : PART_NONE;
}

/* The loop that computes both halves makes a concatenation, if these have no other reader; the
 * loops that read a padded tensor make it, if all readers are loops. `plain`: by value, how many
 * element-wise ops read it. */
static bool join_pays(const cutting *c, const sf_node *node, const uint32_t *plain)
{
    if (sf_is(node, SF_OP_PAD))
        return plain[node->result] > 0 && plain[node->result] == c->readers[node->result];
    for (int i = 0; i < 2; i++)
        if (part_of_maker(c, node->operands[i]) != PART_POINTWISE ||
            c->readers[node->operands[i]] != 1)
            return false;
    return true;
}

/* Values of one shape that element-wise ops connect, by one of them. */
static sf_value find_sum(sf_value *sums, sf_value value)
{
    while (sums[value] != value)
        value = sums[value] = sums[sums[value]];
    return value;
}

static bool joins_sum(const cutting *c, sf_value a, sf_value b)
{
    return sf_same_shape(sf_type_of(c->graph, a), sf_type_of(c->graph, b));
}

/* A pad that is added to another one, which is no half, is read as that one is: through a window (prog/loop.h), with all of its
 * dimensions. */
static void drop_mixed_pads(cutting *c, sf_arena *arena)
{
    const sf_block *top = c->graph->top;
    sf_value *sums = SF_ARRAY(arena, c->graph->nvalues, sf_value);
    bool *is_mixed = SF_ARRAY(arena, c->graph->nvalues, bool);
    for (sf_value v = 0; v < c->graph->nvalues; v++)
        sums[v] = v;
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(c->graph, i);
        for (uint32_t o = 0; c->parts[node->id] == PART_POINTWISE && o < node->noperands; o++)
            if (joins_sum(c, node->operands[o], node->result))
                sums[find_sum(sums, node->operands[o])] = find_sum(sums, node->result);
    }
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(c->graph, i);
        if (sf_is(node, SF_OP_PAD) && c->parts[node->id] != PART_JOIN)
            is_mixed[find_sum(sums, node->result)] = true;
    }
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(c->graph, i);
        if (sf_is(node, SF_OP_PAD) && is_mixed[find_sum(sums, node->result)])
            c->parts[node->id] = PART_NONE;
    }
}

static void find_parts(cutting *c, sf_arena *arena)
{
    uint32_t *plain = SF_ARRAY(arena, c->graph->nvalues, uint32_t);
    const sf_block *top = c->graph->top;
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(c->graph, i);
        part kind = c->parts[node->id] = part_of(c->graph, node);
        for (uint32_t j = 0; kind == PART_POINTWISE && j < node->noperands; j++)
            plain[node->operands[j]]++;
    }
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(c->graph, i);
        if (c->parts[node->id] == PART_JOIN && !join_pays(c, node, plain))
            c->parts[node->id] = PART_NONE;
    }
    drop_mixed_pads(c, arena);
}

/* Between ops of loops, a reshape hands on all blocks. */
static void begin_at_reshapes(cutting *c, sf_arena *arena)
{
    const sf_block *top = c->graph->top;
    bool *is_read = SF_ARRAY(arena, c->graph->nvalues, bool);
    for (uint32_t i = top->nnodes; i-- > 0;) {
        const sf_node *node = sf_top_node(c->graph, i);
        part kind = c->parts[node->id];
        for (uint32_t j = 0; kind != PART_NONE && j < node->noperands; j++)
            if (kind != PART_RESHAPE || is_read[node->result])
                is_read[node->operands[j]] = true;
    }
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(c->graph, i);
        if (c->parts[node->id] != PART_RESHAPE || !is_read[node->result] ||
            part_of_maker(c, node->operands[0]) == PART_NONE)
            continue;
        c->any = pass_reshaped(c, node->operands[0], node->result, true) || c->any;
        c->any = pass_reshaped(c, node->result, node->operands[0], true) || c->any;
    }
}

static void begin_at_joins(cutting *c)
{
    join j;
    for (uint32_t i = 0; i < c->graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(c->graph, i);
        if (c->parts[node->id] != PART_JOIN || !join_of(c->graph, node, &j))
            continue;
        const sf_type *type = sf_type_of(c->graph, node->result);
        add_cut(c, node->result,
                stride_of(type, j.dim) * (j.alternates ? 2 : type->dims[j.dim] / 2));
        c->any = true;
    }
}

/* A value whose cuts from two sides turned out incompatible keeps its dimensions. */

/* Dimension d of a is cut as e of b is, halves apart. */
static bool has_same_cuts(const cutting *c, sf_value a, int d, sf_value b, int e, const join *j)
{
    int64_t x[SF_MAX_RANK], y[SF_MAX_RANK];
    int first, other, count = cut_dims_of(c, a, d, &first) - (d == j->dim);
    cut_dims(c, a, x);
    cut_dims(c, b, y);
    first += d == j->dim && !j->alternates;
    return cut_dims_of(c, b, e, &other) == count &&
           memcmp(x + first, y + other, (size_t)count * sizeof *x) == 0;
}

static bool agrees(const cutting *c, const sf_node *node)
{
    part kind = c->parts[node->id];
    int map[SF_MAX_RANK];
    join j = {.dim = -1};
    if (kind == PART_RESHAPE) {
        const cuts *a = &c->cuts[node->operands[0]], *b = &c->cuts[node->result];
        return a->count == b->count && memcmp(a->at, b->at, (size_t)a->count * sizeof *a->at) == 0;
    }
    if (kind == PART_JOIN)
        join_of(c->graph, node, &j);
    for (uint32_t i = 0; i < node->noperands; i++) {
        if (!linked_dims(c->graph, node, kind, i, map))
            continue;
        for (int d = 0; d < sf_type_of(c->graph, node->result)->rank; d++)
            if (map[d] >= 0 && !has_same_cuts(c, node->result, d, node->operands[i], map[d], &j))
                return false;
    }
    return true;
}

/* Operands that only the node needs, computed by a few element-wise ops; not scalars, which are read as they are. */
static void absorb(cutting *c, const sf_node *node, int most)
{
    int map[SF_MAX_RANK];
    for (uint32_t i = 0; most > 0 && i < node->noperands; i++) {
        sf_value value = node->operands[i];
        if (c->readers[value] != 1 || part_of_maker(c, value) != PART_POINTWISE ||
            !linked_dims(c->graph, node, c->parts[node->id], i, map))
            continue;
        c->is_absorbed[value] = true;
        absorb(c, sf_maker(c->graph, value), most - 1);
    }
}

void find_cuts(const sf_graph *graph, sf_arena *arena, cutting *out)
{
    enum { MOST_ABSORBED = 4 };
    *out = (cutting){.graph = graph};
    out->parts = SF_ARRAY(arena, graph->nnodes, part);
    out->cuts = SF_ARRAY(arena, graph->nvalues, cuts);
    out->readers = SF_ARRAY(arena, graph->nvalues, uint32_t);
    out->is_absorbed = SF_ARRAY(arena, graph->nvalues, bool);
    count_readers(out);
    find_parts(out, arena);
    for (sf_value v = 0; v < graph->nvalues; v++) {
        const sf_type *type = sf_type_of(graph, v);
        for (int d = 0; type->count > 0 && d < type->rank; d++)
            add_cut(out, v, stride_of(type, d));
    }
    begin_at_reshapes(out, arena);
    begin_at_joins(out);
    uint32_t nnodes = graph->top->nnodes;
    for (bool more = out->any; more;) {
        more = false;
        for (uint32_t i = 0; i < nnodes; i++)
            more = pass_node(out, sf_top_node(graph, i)) || more;
        for (uint32_t i = nnodes; more && i-- > 0;)
            pass_node(out, sf_top_node(graph, i));
    }
    for (uint32_t i = 0; out->any && i < nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        if (out->parts[node->id] != PART_NONE && !agrees(out, node))
            out->parts[node->id] = PART_NONE;
    }
    for (uint32_t i = 0; out->any && i < nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        if (out->parts[node->id] == PART_JOIN)
            absorb(out, node, MOST_ABSORBED);
    }
}
