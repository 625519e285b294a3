#include "plan/pipeline/layer_stack.h"

#include "ir/uses.h"
#include "op/flops.h"
#include "op/op.h"
#include "op/slots.h"
#include "op/util.h"
#include "plan/pipeline/stage.h"
#include "shard/strategy.h"

/* Kinds of nodes with respect to rows */

bool sf_constant_int(const sf_graph *graph, sf_value value, int64_t *out)
{
    const sf_node *maker = sf_maker(graph, value);
    if (!maker || !sf_is(maker, SF_OP_CONSTANT))
        return false;
    const sf_dense *dense = &maker->attrs[SF_CONSTANT_VALUE]->dense;
    if (!dense->data || dense->type->count != 1 || sf_is_inexact(dense->type->dtype))
        return false;
    *out = sf_load_i64(dense->type->dtype, dense->data, 0);
    return true;
}

/* Ops that know positions, draw, or have a meaning of their own. */
static bool knows_positions(const sf_node *node)
{
    return node->def->positional || node->nregions > 0 || sf_is_control(node);
}

/* Whether the dimension is walked by the factor and by nothing else. */
static bool is_walked_by(sf_walk walk, int factor)
{
    return walk.count == 1 && walk.factors[0] == factor && !walk.halo;
}

/* Row by row: one factor walks dimension 0 of the tensors that have rows, all results among them, and nothing else. */
static bool is_by_row(const sf_graph *graph, const sf_node *node, uint32_t tensor, sf_arena *arena,
                      sf_row_op *out)
{
    uint32_t count = node->noperands + node->nresults;
    sf_factoring f;
    if (knows_positions(node))
        return false;
    sf_op op = sf_op_of(graph, node, SF_ARRAY(arena, count, const sf_type *));
    const sf_type *type =
        tensor < node->noperands ? op.in[tensor] : op.out[tensor - node->noperands];
    sf_op_factors(&op, arena, &f);
    if (type->rank == 0 || f.walks[tensor][0].count != 1)
        return false;
    int factor = f.walks[tensor][0].factors[0];
    bool *has_rows = SF_ARRAY(arena, count, bool), good = f.factors[factor].role == SF_MAP;
    for (uint32_t t = 0; t < count && good; t++) {
        int rank = (t < node->noperands ? op.in[t] : op.out[t - node->noperands])->rank;
        for (int d = 0; d < rank; d++) {
            for (int i = 0; i < f.walks[t][d].count; i++)
                if (f.walks[t][d].factors[i] == factor)
                    good = good && d == 0 && is_walked_by(f.walks[t][d], factor);
        }
        has_rows[t] = rank > 0 && is_walked_by(f.walks[t][0], factor);
        good = good && (t < node->noperands || has_rows[t]);
    }
    out->has_rows = has_rows;
    return good;
}

static bool is_all_of_others(const sf_type *a, const sf_type *b)
{
    for (int d = 1; d < a->rank; d++)
        if (a->dims[d] != b->dims[d])
            return false;
    return true;
}

static bool puts_rows(const sf_graph *graph, const sf_node *node, sf_row_op *out)
{
    const sf_type *whole = sf_type_of(graph, node->operands[0]),
                  *part = sf_type_of(graph, node->operands[1]);
    if (whole->rank == 0 || !is_all_of_others(whole, part) ||
        !sf_constant_int(graph, node->operands[2], &out->first))
        return false;
    int64_t last = whole->dims[0] - part->dims[0]; /* starts are clamped */
    out->first = out->first < 0 ? 0 : out->first > last ? last : out->first;
    out->count = part->dims[0];
    return true;
}

static int64_t number_at(const sf_op *op, int slot, int dim, int64_t absent)
{
    sf_ints list = sf_op_ints(op, slot);
    return dim < list.count ? list.at[dim] : absent;
}

static bool pads_rows(const sf_op *op, sf_row_op *out)
{
    int rank = op->in[0]->rank;
    for (int d = 0; d < rank; d++) {
        int64_t low = number_at(op, SF_PAD_LOW, d, 0), high = number_at(op, SF_PAD_HIGH, d, 0);
        if (number_at(op, SF_PAD_INTERIOR, d, 0) != 0 || low < 0 || high < 0 ||
            (d > 0 && (low > 0 || high > 0)))
            return false;
    }
    out->first = rank > 0 ? number_at(op, SF_PAD_LOW, 0, 0) : 0;
    out->count = rank > 0 ? op->in[0]->dims[0] : 0;
    return rank > 0 && out->count < op->out[0]->dims[0];
}

static bool takes_rows(const sf_op *op, sf_row_op *out)
{
    if (op->in[0]->rank == 0 || number_at(op, SF_SLICE_STRIDES, 0, 1) != 1 ||
        op->out[0]->dims[0] == op->in[0]->dims[0])
        return false;
    out->first = number_at(op, SF_SLICE_STARTS, 0, 0);
    out->count = op->out[0]->dims[0];
    return true;
}

/* Whether it changes nothing to begin with the value more than once. */
static bool may_repeat(const sf_graph *graph, sf_monoid monoid, sf_value value)
{
    const sf_node *maker = sf_maker(graph, value);
    const sf_dense *dense =
        maker && sf_is(maker, SF_OP_CONSTANT) ? &maker->attrs[SF_CONSTANT_VALUE]->dense : NULL;
    switch (monoid) {
    case SF_MONOID_MIN:
    case SF_MONOID_MAX:
    case SF_MONOID_AND:
    case SF_MONOID_OR:
        return true;
    case SF_MONOID_ADD:
        return dense && dense->data && sf_load_f64(dense->type->dtype, dense->data, 0) == 0;
    case SF_MONOID_NONE:
    case SF_MONOID_MUL:
    case SF_MONOID_XOR:
    case SF_MONOID_SECOND:
    case SF_MONOID_COUNT:
        break;
    }
    return false;
}

static bool folds_rows(const sf_graph *graph, const sf_node *node, const sf_op *op)
{
    return op->noperands == 2 && op->nregions == 0 &&
           sf_has(sf_op_ints(op, SF_REDUCE_DIMENSIONS), 0) &&
           may_repeat(graph, sf_op_monoid(op, SF_REDUCE_BODY), node->operands[1]);
}

sf_row_op sf_row_op_of(const sf_graph *graph, const sf_node *node, uint32_t tensor, sf_arena *arena)
{
    sf_row_op out = {.kind = SF_ROWS_MIXED};
    bool is_result = tensor >= node->noperands;
    if (sf_is_transparent(node))
        return (sf_row_op){.kind = SF_ROWS_HANDED_ON};
    sf_op op =
        sf_op_of(graph, node, SF_ARRAY(arena, node->noperands + node->nresults, const sf_type *));
    if (is_by_row(graph, node, tensor, arena, &out))
        out.kind = SF_ROWS_EACH;
    else if (sf_is(node, SF_OP_DYNAMIC_UPDATE_SLICE) && (is_result || tensor == 0) &&
             puts_rows(graph, node, &out))
        out.kind = SF_ROWS_PUT;
    else if (sf_is(node, SF_OP_CONCATENATE) && is_result &&
             sf_op_int(&op, SF_CONCATENATE_DIMENSION, 0) == 0)
        out.kind = SF_ROWS_JOINED;
    else if (sf_is(node, SF_OP_PAD) && is_result && pads_rows(&op, &out))
        out.kind = SF_ROWS_PADDED;
    else if (sf_is(node, SF_OP_SLICE) && !is_result && takes_rows(&op, &out))
        out.kind = SF_ROWS_TAKEN;
    else if (sf_is(node, SF_OP_REDUCE) && tensor == 0 && folds_rows(graph, node, &op))
        out.kind = SF_ROWS_FOLDED;
    return out;
}

/* Finding */

typedef struct finding {
    const sf_graph *graph;
    sf_arena *arena, *scratch;
    sf_uses uses;
    const bool *moving; /* by node */
    sf_stacks out;
    sf_value *found; /* values of the current stack */
    size_t nfound, capacity;
    uint32_t taken; /* slices of it that the forward pass reads */
} finding;

enum { DEEPEST = 32 };

/* Whether all rows of a value are the same, whoever's they are: they follow from constants and numbers. Such a value is no
 * part of a stack, as those of others may read it, too. */
static bool is_uniform(const finding *f, sf_value value, int depth)
{
    const sf_node *maker = sf_maker(f->graph, value);
    if (!maker || depth == DEEPEST)
        return false;
    if (sf_is(maker, SF_OP_CONSTANT))
        return maker->attrs[SF_CONSTANT_VALUE]->dense.splat;
    sf_mark mark = sf_arena_mark(f->scratch);
    uint32_t result = maker->noperands + (value - maker->result);
    sf_row_op op = sf_row_op_of(f->graph, maker, result, f->scratch);
    bool uniform = op.kind == SF_ROWS_EACH;
    for (uint32_t o = 0; o < maker->noperands && uniform; o++)
        uniform = !op.has_rows[o] || is_uniform(f, maker->operands[o], depth + 1);
    sf_arena_reset(f->scratch, mark);
    return uniform;
}

static bool add_value(finding *f, sf_value value)
{
    uint32_t *stack = &f->out.of_value[value];
    if (*stack == f->out.count)
        return true;
    if (*stack != SF_NONE)
        return false; /* of another, which was complete without this */
    *stack = f->out.count;
    SF_PUSH(f->arena, f->found, f->nfound, f->capacity, value);
    return true;
}

static bool add_operand(finding *f, sf_value value)
{
    return is_uniform(f, value, 0) || add_value(f, value);
}

/* All that the node has by rows, when one of its tensors is part of the stack. */
static bool add_by_row(finding *f, const sf_node *node, const sf_row_op *op)
{
    bool good = true;
    for (uint32_t o = 0; o < node->noperands && good; o++)
        good = !op->has_rows[o] || add_operand(f, node->operands[o]);
    for (uint32_t r = 0; r < node->nresults && good; r++)
        good = add_value(f, node->result + r);
    return good;
}

/* A value that the forward pass computes row by row from a batch is no weight. */
static bool is_activation(const finding *f, const sf_node *node)
{
    return node->phase == SF_FORWARD && f->moving[node->id];
}

static bool follow_maker(finding *f, sf_value value)
{
    const sf_node *maker = sf_maker(f->graph, value);
    if (!maker)
        return !sf_is_handed_in(&f->graph->arguments[f->graph->values[value].index]);
    uint32_t result = value - maker->result;
    sf_row_op op = sf_row_op_of(f->graph, maker, maker->noperands + result, f->scratch);
    if (is_activation(f, maker))
        return false;
    switch (op.kind) {
    case SF_ROWS_EACH:
        return add_by_row(f, maker, &op);
    case SF_ROWS_HANDED_ON:
        return add_value(f, maker->operands[result]);
    case SF_ROWS_PUT:
        return add_operand(f, maker->operands[0]);
    case SF_ROWS_JOINED:
    case SF_ROWS_PADDED:
        return true;
    case SF_ROWS_MIXED:
    case SF_ROWS_TAKEN:
    case SF_ROWS_FOLDED:
        break;
    }
    return false;
}

static bool follow_use(finding *f, sf_value_use use)
{
    if (use.node == SF_NONE)
        return true; /* a result of the step: looked at when all is found */
    if (use.operand == SF_NONE)
        return false;
    const sf_node *reader = f->graph->nodes[use.node];
    sf_row_op op = sf_row_op_of(f->graph, reader, use.operand, f->scratch);
    switch (op.kind) {
    case SF_ROWS_EACH:
        return add_by_row(f, reader, &op);
    case SF_ROWS_HANDED_ON:
        return add_value(f, reader->result + use.operand);
    case SF_ROWS_PUT:
        return add_value(f, reader->result);
    case SF_ROWS_TAKEN:
        f->taken += reader->phase == SF_FORWARD;
        return true;
    case SF_ROWS_FOLDED:
        return true;
    case SF_ROWS_JOINED:
    case SF_ROWS_PADDED:
    case SF_ROWS_MIXED:
        break;
    }
    return false;
}

static bool follow(finding *f, sf_value value)
{
    sf_mark mark = sf_arena_mark(f->scratch);
    bool good = follow_maker(f, value);
    for (uint32_t u = f->uses.first[value]; u < f->uses.first[value + 1] && good; u++)
        good = follow_use(f, f->uses.at[u]);
    sf_arena_reset(f->scratch, mark);
    return good;
}

static bool is_found(const finding *f, sf_value value)
{
    return f->out.of_value[value] == f->out.count;
}

/* The next value of each of its arguments is part of it, and no other result of the step is. */
static bool is_closed(const finding *f)
{
    const sf_block *top = f->graph->top;
    bool *becomes = SF_ARRAY(f->scratch, top->nresults, bool);
    for (uint32_t i = 0; i < top->narguments; i++) {
        uint32_t next = f->graph->arguments[i].next;
        bool found = is_found(f, top->arguments[i]);
        if (next != SF_NONE && found != is_found(f, top->results[next]))
            return false;
        if (next != SF_NONE)
            becomes[next] = true;
    }
    for (uint32_t i = 0; i < top->nresults; i++)
        if (is_found(f, top->results[i]) && !becomes[i])
            return false;
    return true;
}

/* The stack of a parameter, if it is one. */
static bool find_stack(finding *f, uint32_t argument)
{
    f->nfound = 0;
    f->taken = 0;
    bool good = add_value(f, f->graph->top->arguments[argument]);
    for (size_t i = 0; i < f->nfound && good; i++)
        good = follow(f, f->found[i]);
    good = good && f->taken > 0 && is_closed(f);
    for (size_t i = 0; i < f->nfound && !good; i++)
        f->out.of_value[f->found[i]] = SF_NONE;
    return good;
}

static bool may_be_stack(const finding *f, uint32_t argument)
{
    const sf_type *type = sf_argument_type(f->graph, argument);
    return f->graph->arguments[argument].role == SF_ROLE_PARAM && type->rank > 0 &&
           type->dims[0] > 1 && f->out.of_value[f->graph->top->arguments[argument]] == SF_NONE;
}

sf_stacks sf_find_stacks(const sf_graph *graph, sf_arena *arena)
{
    const sf_block *top = graph->top;
    sf_arena scratch = {0};
    finding f = {.graph = graph, .arena = arena, .scratch = &scratch};
    f.uses = sf_uses_of(graph, arena);
    f.moving = sf_find_moving(graph, arena);
    f.out.rows = SF_ARRAY(arena, top->narguments, int64_t);
    f.out.of_value = SF_ARRAY(arena, graph->nvalues, uint32_t);
    for (sf_value v = 0; v < graph->nvalues; v++)
        f.out.of_value[v] = SF_NONE;
    for (uint32_t i = 0; i < top->narguments; i++)
        if (may_be_stack(&f, i) && find_stack(&f, i))
            f.out.rows[f.out.count++] = sf_argument_type(graph, i)->dims[0];
    sf_arena_free(&scratch);
    return f.out;
}
