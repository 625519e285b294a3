#include "train/init_fan.h"

#include "base/mem.h"
#include "op/carry.h"
#include "op/op.h"
#include "op/slots.h"

/* The product of the listed dimensions. */
static double size_of_dims(const sf_type *type, sf_ints dims)
{
    double size = 1;
    for (int i = 0; i < dims.count; i++)
        size *= (double)type->dims[dims.at[i]];
    return size;
}

static sf_ints ints_in(const sf_node *node, int slot)
{
    const sf_attr *attr = node->attrs[slot];
    return attr ? (sf_ints){attr->count, attr->ints} : (sf_ints){0, NULL};
}

static int64_t int_in(const sf_node *node, int slot)
{
    return node->attrs[slot] ? node->attrs[slot]->integer : 0;
}

static sf_fan of_dot(const sf_graph *graph, const sf_node *node, bool lhs)
{
    const sf_type *type = sf_type_of(graph, node->operands[lhs ? 0 : 1]);
    double in =
        size_of_dims(type, ints_in(node, lhs ? SF_DOT_LHS_CONTRACTING : SF_DOT_RHS_CONTRACTING));
    double batch = size_of_dims(type, ints_in(node, lhs ? SF_DOT_LHS_BATCH : SF_DOT_RHS_BATCH));
    double outside = in * batch > 0 ? in * batch : 1;
    return (sf_fan){in, (double)type->count / outside};
}

static sf_fan of_convolution(const sf_graph *graph, const sf_node *node)
{
    const sf_type *type = sf_type_of(graph, node->operands[1]);
    double window = size_of_dims(type, ints_in(node, SF_CONV_RHS_SPATIAL));
    return (sf_fan){window * (double)type->dims[int_in(node, SF_CONV_RHS_INPUT)],
                    window * (double)type->dims[int_in(node, SF_CONV_RHS_OUTPUT)]};
}

/* What is a weight still, be it of one layer of several. */
enum {
    CARRIES_WEIGHT = SF_CARRIES_TYPE | SF_CARRIES_SHAPE | SF_CARRIES_ORDER | SF_CARRIES_PART |
                     SF_CARRIES_CHOICE | SF_CARRIES_COPIES
};

static bool find_use(const sf_graph *graph, bool *is_weight, sf_fan *out)
{
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = graph->nodes[graph->top->nodes[i]];
        bool dot = sf_is(node, SF_OP_DOT_GENERAL), conv = sf_is(node, SF_OP_CONVOLUTION);
        if (node->noperands == 0)
            continue;
        if (dot && (is_weight[node->operands[0]] || is_weight[node->operands[1]])) {
            *out = of_dot(graph, node, is_weight[node->operands[0]]);
            return true;
        }
        if (conv && is_weight[node->operands[1]]) {
            *out = of_convolution(graph, node);
            return true;
        }
        if (sf_carries(node, CARRIES_WEIGHT) && is_weight[node->operands[0]])
            is_weight[node->result] = true;
    }
    return false;
}

sf_fan sf_fan_of(const sf_graph *graph, uint32_t index)
{
    const sf_type *type = sf_argument_type(graph, index);
    bool *is_weight = sf_alloc(graph->nvalues * sizeof *is_weight);
    is_weight[graph->top->arguments[index]] = true;
    sf_fan fan;
    if (!find_use(graph, is_weight, &fan)) {
        fan = (sf_fan){1, type->rank > 0 ? (double)type->dims[type->rank - 1] : 1};
        for (int i = 0; i + 1 < type->rank; i++)
            fan.in *= (double)type->dims[i];
    }
    sf_free(is_weight);
    return (sf_fan){fan.in > 1 ? fan.in : 1, fan.out > 1 ? fan.out : 1};
}
