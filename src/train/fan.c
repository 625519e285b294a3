#include "train/fan.h"

#include "base/mem.h"
#include "op/op.h"

/* The product of the listed dimensions. */
static double product(const sf_type *type, sf_ints dims)
{
    double size = 1;
    for (int i = 0; i < dims.count; i++)
        size *= (double)type->dims[dims.at[i]];
    return size;
}

static sf_ints ints(const sf_node *node, const char *name)
{
    int slot = sf_attr_slot(node->def, sf_str_of(name));
    const sf_attr *attr = slot < 0 ? NULL : node->attrs[slot];
    return attr ? (sf_ints){attr->count, attr->ints} : (sf_ints){0, NULL};
}

static int64_t integer(const sf_node *node, const char *name)
{
    int slot = sf_attr_slot(node->def, sf_str_of(name));
    return slot < 0 || !node->attrs[slot] ? 0 : node->attrs[slot]->integer;
}

static sf_fan of_dot(const sf_graph *graph, const sf_node *node, bool lhs)
{
    const sf_type *type = sf_type_of(graph, node->operands[lhs ? 0 : 1]);
    double in = product(
        type, ints(node, lhs ? "lhs_contracting_dimensions" : "rhs_contracting_dimensions"));
    double batch =
        product(type, ints(node, lhs ? "lhs_batching_dimensions" : "rhs_batching_dimensions"));
    double outside = in * batch > 0 ? in * batch : 1;
    return (sf_fan){in, (double)type->count / outside};
}

static sf_fan of_convolution(const sf_graph *graph, const sf_node *node)
{
    const sf_type *type = sf_type_of(graph, node->operands[1]);
    double window = product(type, ints(node, "kernel_spatial_dimensions"));
    return (sf_fan){window * (double)type->dims[integer(node, "kernel_input_feature_dimension")],
                    window * (double)type->dims[integer(node, "kernel_output_feature_dimension")]};
}

/* Ops that pass a weight on. */
static bool passes_on(const sf_node *node)
{
    return sf_is(node, SF_OP_CONVERT) || sf_is(node, SF_OP_RESHAPE) ||
           sf_is(node, SF_OP_TRANSPOSE) || sf_is(node, SF_OP_SLICE) ||
           sf_is(node, SF_OP_DYNAMIC_SLICE) || sf_is(node, SF_OP_BROADCAST_IN_DIM);
}

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
        if (passes_on(node) && is_weight[node->operands[0]])
            is_weight[node->result] = true;
    }
    return false;
}

sf_fan sf_fan_of(const sf_graph *graph, uint32_t index)
{
    const sf_type *type = sf_type_of(graph, graph->top->arguments[index]);
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
