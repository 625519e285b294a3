#include "plan/shrink/mean_counts.h"

#include "op/carry.h"
#include "op/op.h"
#include "op/slots.h"

/* How far to follow a value through ops that only rearrange it. */
enum { FAR = 6 };

typedef struct use {
    const sf_node *node;
    struct use *next;
} use;

typedef struct finder {
    const sf_graph *graph;
    sf_arena *arena;
    use **uses; /* by value */
    sf_counted *out;
    bool *mixed; /* by node: a constant with another use */
} finder;

int64_t sf_count_dims(const sf_type *type, uint32_t dims)
{
    int64_t count = 1;
    for (int d = 0; d < type->rank; d++)
        if (dims >> d & 1)
            count *= type->dims[d];
    return count;
}

static bool op_rearranges(const sf_node *node)
{
    return sf_carries(node, SF_CARRIES_TYPE | SF_CARRIES_SHAPE | SF_CARRIES_COPIES);
}

/* The maker of the value, rearrangements aside. */
static const sf_node *origin_of(const sf_graph *graph, sf_value value)
{
    const sf_node *node = sf_maker(graph, value);
    for (int i = 0; i < FAR && op_rearranges(node); i++)
        node = sf_maker(graph, node->operands[0]);
    return node;
}

/* The whole number that a constant repeats, or 0. */
static int64_t number_at(const sf_node *node)
{
    if (!node || !sf_is(node, SF_OP_CONSTANT))
        return 0;
    const sf_dense *dense = &node->attrs[SF_CONSTANT_VALUE]->dense;
    if (!dense->splat || !dense->data || !sf_is_float(dense->type->dtype))
        return 0;
    double value = sf_load_f64(dense->type->dtype, dense->data, 0);
    return value >= 2 && value < 0x1p53 && value == (double)(int64_t)value ? (int64_t)value : 0;
}

static bool counts_sum(const finder *f, const sf_node *sum, int64_t number, sf_counted *out)
{
    if (!sum || !sf_is(sum, SF_OP_REDUCE))
        return false;
    const sf_attr *dims = sum->attrs[SF_REDUCE_DIMENSIONS];
    *out = (sf_counted){.value = sum->operands[0]};
    for (int i = 0; dims && i < dims->count; i++)
        out->dims |= 1u << dims->ints[i];
    return sf_count_dims(sf_type_of(f->graph, out->value), out->dims) == number;
}

/* The dimensions that a broadcast makes or repeats along. */
static uint32_t repeated_dim(const sf_graph *graph, const sf_node *node)
{
    const sf_type *in = sf_type_of(graph, node->operands[0]);
    const sf_type *out = sf_type_of(graph, node->result);
    const sf_attr *dims = node->attrs[SF_BROADCAST_DIMENSIONS];
    uint32_t set = (1u << out->rank) - 1;
    for (int d = 0; d < in->rank; d++)
        if (in->dims[d] == out->dims[dims->ints[d]])
            set &= ~(1u << dims->ints[d]);
    return set;
}

static bool counts_repeats(const finder *f, sf_value value, int64_t number, int far,
                           sf_counted *out)
{
    for (const use *u = f->uses[value]; u && far > 0; u = u->next) {
        if (!op_rearranges(u->node))
            continue;
        *out = (sf_counted){.value = u->node->result};
        if (sf_is(u->node, SF_OP_BROADCAST_IN_DIM)) {
            out->dims = repeated_dim(f->graph, u->node);
            if (sf_count_dims(sf_type_of(f->graph, out->value), out->dims) == number)
                return true;
        }
        if (counts_repeats(f, u->node->result, number, far - 1, out))
            return true;
    }
    return false;
}

static void look_at_constant(finder *f, const sf_node *node)
{
    const sf_node *constant = origin_of(f->graph, node->operands[1]);
    int64_t number = number_at(constant);
    sf_counted counted;
    if (number == 0)
        return;
    if (!counts_sum(f, origin_of(f->graph, node->operands[0]), number, &counted) &&
        !counts_repeats(f, node->result, number, FAR, &counted))
        counted.value = SF_NONE;
    sf_counted *known = &f->out[constant->id];
    if (counted.value == SF_NONE || (known->value != SF_NONE && known->value != counted.value))
        f->mixed[constant->id] = true;
    *known = counted;
}

sf_counted *sf_find_counted(const sf_graph *graph, sf_arena *arena)
{
    finder f = {.graph = graph, .arena = arena};
    f.uses = SF_ARRAY(arena, graph->nvalues, use *);
    f.out = SF_ARRAY(arena, graph->nnodes, sf_counted);
    f.mixed = SF_ARRAY(arena, graph->nnodes, bool);
    for (size_t i = 0; i < graph->nnodes; i++)
        f.out[i].value = SF_NONE;
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = graph->nodes[graph->top->nodes[i]];
        for (uint32_t k = 0; k < node->noperands; k++) {
            use *u = SF_NEW(arena, use);
            *u = (use){node, f.uses[node->operands[k]]};
            f.uses[node->operands[k]] = u;
        }
    }
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = graph->nodes[graph->top->nodes[i]];
        if (sf_is(node, SF_OP_DIVIDE))
            look_at_constant(&f, node);
    }
    for (size_t i = 0; i < graph->nnodes; i++)
        if (f.mixed[i])
            f.out[i].value = SF_NONE;
    return f.out;
}
