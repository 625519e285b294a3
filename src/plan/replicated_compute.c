#include "plan/replicated_compute.h"

#include <stdio.h>
#include <string.h>

#include "ir/name.h"
#include "op/flops.h"
#include "op/util.h"
#include "plan/region_plan.h"

static bool is_plain_update(const sf_node *node)
{
    return node->phase == SF_UPDATE && node->def->factors == sf_factors_pointwise;
}

bool sf_plan_idles(const sf_graph *graph, const sf_plan *plan, int axis)
{
    if (!sf_axis_is_unused(&plan->mesh.axes[axis]))
        return false;
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        if (plan->arguments[i].axes[axis].kind != SF_REPLICATED)
            return false;
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        for (uint32_t t = 0; t < node->noperands + node->nresults; t++)
            if (plan->nodes[node->id][t].axes[axis].kind != SF_REPLICATED)
                return false;
    }
    return true;
}

/* Who would do the same where nothing is split. Groups of a pipeline have stages of their own. */
static double count_ranks(const sf_graph *graph, const sf_plan *plan)
{
    double ranks = 1;
    for (int axis = 0; axis < plan->mesh.naxes; axis++)
        if (!sf_plan_idles(graph, plan, axis) && !sf_plan_pipes(plan, axis))
            ranks *= plan->mesh.axes[axis].size;
    return ranks;
}

typedef struct counting {
    sf_repeated out;
    double ranks, most, avoidable;
} counting;

static void name_most(counting *c, const sf_graph *graph, const sf_node *node, double more)
{
    sf_buf name = {0};
    c->most = more;
    snprintf(c->out.most, sizeof c->out.most, "%s", sf_value_name(graph, node->result, &name));
    sf_buf_free(&name);
}

static void count_node(counting *c, const sf_graph *graph, const sf_plan *plan, const sf_node *node,
                       double times)
{
    double flops = times * sf_node_flops(graph, node);
    sf_axes split = sf_layouts_split(plan->nodes[node->id], node->noperands + node->nresults);
    double parts = sf_group_size(&plan->mesh, split);
    double more = parts < c->ranks ? flops * c->ranks / parts - flops : 0;
    c->out.once += flops;
    c->out.done += flops + more;
    if (is_plain_update(node))
        return;
    c->avoidable += more;
    if (more > c->most && node->nresults > 0)
        name_most(c, graph, node, more);
}

static void count_step(void *context, const sf_graph *graph, const sf_plan *plan, double times)
{
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        if (sf_is_control(node))
            sf_plan_regions(graph, &plan->mesh, plan->nodes, node, plan->nodes[node->id], times,
                            count_step, context);
        else
            count_node(context, graph, plan, node, times);
    }
}

sf_repeated sf_find_repeated(const sf_graph *graph, const sf_plan *plan)
{
    counting c = {.ranks = count_ranks(graph, plan)};
    count_step(&c, graph, plan, 1);
    if (c.out.done > 0) {
        c.out.share = (c.out.done - c.out.once) / c.out.done;
        c.out.avoidable = c.avoidable / c.out.done;
        c.out.of_most = c.most / c.out.done;
    }
    return c.out;
}

void sf_warn_repeated(const sf_graph *graph, const sf_plan *plan, sf_diag *diag)
{
    sf_repeated repeated = sf_find_repeated(graph, plan);
    if (repeated.avoidable <= SF_REPEATED_MUCH)
        return;
    sf_warn(diag, SF_NOWHERE,
            "%.0f %% of the ranks' compute is replicated, %.0f %% in %s, "
            "which is not split",
            100 * repeated.avoidable, 100 * repeated.of_most, repeated.most);
}
