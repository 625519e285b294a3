/* Whether the layouts that a plan gives to a node follow from its factors. Axes are looked at one by one:
 * each must have a strategy (shard/strategy.h) whose shares are those of all tensors. */
#include <stdio.h>

#include "ir/name.h"
#include "local/shard/shard_builder.h"

static int tensor_count(const local_node *n)
{
    return n->op.noperands + n->op.nresults;
}

static const sf_type *whole_type(const local_node *n, int tensor)
{
    return tensor < n->op.noperands ? n->op.in[tensor] : n->op.out[tensor - n->op.noperands];
}

static sf_value whole_value(const local_node *n, int tensor)
{
    return tensor < n->op.noperands ? n->node->operands[tensor]
                                    : n->node->result + (sf_value)(tensor - n->op.noperands);
}

/* "operand 1, params/w, as [S(0), R]". */
static void describe_tensor(const local_builder *b, const local_node *n, int tensor, sf_buf *out)
{
    const sf_type *type = whole_type(n, tensor);
    bool is_operand = tensor < n->op.noperands;
    sf_buf_printf(out, "%s %d", is_operand ? "operand" : "result",
                  is_operand ? tensor : tensor - n->op.noperands);
    sf_buf name = {0};
    if (is_operand)
        sf_buf_printf(out, ", %s,", sf_value_name(b->whole, whole_value(n, tensor), &name));
    sf_buf_free(&name);
    sf_buf_puts(out, " as ");
    sf_layout_print(&n->layouts[tensor], b->mesh, type->rank, type->dims, out);
}

/* Names the node, the tensor, the error, and the pin that decided it, if one did. */
static sf_status refuse_layout(local_builder *b, const local_node *n, int tensor, const char *why)
{
    sf_buf text = {0};
    const char *scope = n->node->scope->path;
    describe_tensor(b, n, tensor, &text);
    sf_status status =
        sf_fail(b->diag, SF_EINPUT, n->node->loc, "plan: %s.%s%s%s: %s %s", n->op.def->dialect,
                n->op.def->name, *scope ? " in " : "", scope, text.text, why);
    int pin = b->plan->pinned ? b->plan->pinned[whole_value(n, tensor)] : -1;
    if (pin >= 0 && pin < b->plan->npins)
        status = sf_hint(b->diag, "the pin %s decided it", b->plan->pins[pin].text);
    sf_buf_free(&text);
    return status;
}

static sf_status check_fits(local_builder *b, const local_node *n)
{
    for (int t = 0; t < tensor_count(n); t++) {
        const sf_type *type = whole_type(n, t);
        char why[SF_WHY_TEXT], text[SF_WHY_TEXT + 40];
        if (sf_layout_fits(&n->layouts[t], b->mesh, type->rank, type->dims, why))
            continue;
        snprintf(text, sizeof text, "does not fit: %s", why);
        return refuse_layout(b, n, t, text);
    }
    return SF_OK;
}

/* A barrier passes each operand on as it is, whatever the others are. */
static sf_status check_barrier(local_builder *b, const local_node *n)
{
    for (int i = 0; i < n->op.noperands; i++)
        if (!sf_layout_equal(&n->layouts[i], &n->layouts[n->op.noperands + i]))
            return refuse_layout(b, n, n->op.noperands + i, "is not what the operand is");
    return SF_OK;
}

/* Layouts inside follow from those of operands and results, whatever these are. */
static sf_status check_control(local_builder *b, const local_node *n)
{
    int misfit = sf_region_misfit(n->node, n->layouts);
    if (misfit < 0)
        return SF_OK;
    return refuse_layout(b, n, misfit,
                         misfit < n->op.noperands ? "differs from rank to rank, and decides"
                                                  : "is not what the operand is");
}

/* The first tensor that the strategy does not fit, or -1. */
static int first_misfit(const local_node *n, const local_shape *shape, const sf_strategy *strategy,
                        int axis)
{
    for (int t = 0; t < tensor_count(n); t++)
        if (!sf_share_equal(n->layouts[t].axes[axis],
                            sf_strategy_share(&n->op, &shape->factoring, strategy, t)))
            return t;
    return -1;
}

static sf_status refuse_pair(local_builder *b, const local_node *n, int axis, int tensor, int other)
{
    sf_buf text = {0};
    sf_buf_puts(&text, "does not go with ");
    describe_tensor(b, n, other, &text);
    sf_buf_printf(&text, " along axis %s", b->mesh->axes[axis].name);
    sf_status status = refuse_layout(b, n, tensor, text.text);
    sf_buf_free(&text);
    return status;
}

static sf_status check_partial(local_builder *b, const local_node *n, local_shape *shape, int axis,
                               int partial)
{
    sf_strategy *all;
    int count =
        sf_strategies(&n->op, &shape->factoring, b->mesh->axes[axis].size, &b->scratch, &all);
    for (int i = 0; i < count; i++)
        if (all[i].kind == SF_RUN_LINEAR && first_misfit(n, shape, &all[i], axis) < 0) {
            shape->strategies[axis] = all[i];
            return SF_OK;
        }
    char text[100];
    snprintf(text, sizeof text, "is partial along axis %.40s, which the op cannot have or make",
             b->mesh->axes[axis].name);
    return refuse_layout(b, n, partial, text);
}

/* Along an axis of one rank all layouts are the same. */
static sf_status check_axis(local_builder *b, const local_node *n, local_shape *shape, int axis)
{
    int split = -1, partial = -1;
    for (int t = 0; t < tensor_count(n); t++) {
        sf_share_kind kind = n->layouts[t].axes[axis].kind;
        if (kind == SF_SPLIT && split < 0)
            split = t;
        if (kind == SF_PARTIAL && partial < 0)
            partial = t;
    }
    shape->strategies[axis] = (sf_strategy){.kind = SF_RUN_WHOLE};
    if (b->mesh->axes[axis].size == 1)
        return SF_OK;
    if (split < 0)
        return partial < 0 ? SF_OK : check_partial(b, n, shape, axis, partial);
    if (!sf_strategy_of_split(&shape->factoring, split, n->layouts[split].axes[axis],
                              b->mesh->axes[axis].size, &shape->strategies[axis])) {
        char text[100];
        snprintf(text, sizeof text, "is split along axis %.40s where the op cannot be",
                 b->mesh->axes[axis].name);
        return refuse_layout(b, n, split, text);
    }
    int misfit = first_misfit(n, shape, &shape->strategies[axis], axis);
    return misfit < 0 ? SF_OK : refuse_pair(b, n, axis, misfit, split);
}

sf_status local_check(local_builder *b, const local_node *n, local_shape *shape)
{
    SF_TRY(check_fits(b, n));
    if (sf_is_collective(n->node) && !sf_is_between_groups(n->node))
        return sf_fail(
            b->diag, SF_EINPUT, n->node->loc,
            "sheaf.%s: the step is the local program of one rank and cannot be split again",
            n->op.def->name);
    if (n->op.def->id == SF_OP_OPTIMIZATION_BARRIER)
        return check_barrier(b, n);
    if (n->op.def->control != SF_CONTROL_NONE)
        return check_control(b, n); /* by its regions: factors of all of a body are not needed */
    sf_op_factors(&n->op, &b->arena, &shape->factoring);
    for (int axis = 0; axis < b->mesh->naxes; axis++)
        SF_TRY(check_axis(b, n, shape, axis));
    return SF_OK;
}
