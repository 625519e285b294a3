#include "plan/repeated.h"

#include <string.h>

#include "ir/name.h"
#include "op/flops.h"
#include "op/util.h"

static bool is_plain_update(const sf_node *node)
{
    return node->phase == SF_UPDATE && node->def->factors == sf_factors_pointwise;
}

/* Ranks along an axis that is called idle are there to do the same as others: where more would not be faster. */
static double count_ranks(const sf_mesh *mesh)
{
    double ranks = 1;
    for (int axis = 0; axis < mesh->naxes; axis++)
        if (strncmp(mesh->axes[axis].name, SF_IDLE_AXIS, strlen(SF_IDLE_AXIS)) != 0)
            ranks *= mesh->axes[axis].size;
    return ranks;
}

sf_repeated sf_find_repeated(const sf_graph *graph, const sf_plan *plan)
{
    sf_repeated out = {0};
    double ranks = count_ranks(&plan->mesh), most = 0, avoidable = 0;
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        double flops = sf_node_flops(graph, node);
        sf_axes split = sf_layouts_split(plan->nodes[node->id], node->noperands + node->nresults);
        double parts = sf_group_size(&plan->mesh, split);
        double more = parts < ranks ? flops * ranks / parts - flops : 0;
        out.once += flops;
        out.done += flops + more;
        if (is_plain_update(node))
            continue;
        avoidable += more;
        if (more > most) {
            most = more;
            out.most = node;
        }
    }
    if (out.done > 0) {
        out.share = (out.done - out.once) / out.done;
        out.avoidable = avoidable / out.done;
        out.of_most = most / out.done;
    }
    return out;
}

void sf_warn_repeated(const sf_graph *graph, const sf_plan *plan, sf_diag *diag)
{
    sf_repeated repeated = sf_find_repeated(graph, plan);
    if (repeated.avoidable <= SF_REPEATED_MUCH)
        return;
    sf_buf name = {0};
    sf_warn(diag, SF_NOWHERE,
            "%.0f %% of what the ranks compute is done by several of them alike, %.0f %% by %s, "
            "which is not split",
            100 * repeated.avoidable, 100 * repeated.of_most,
            sf_value_name(graph, repeated.most->result, &name));
    sf_buf_free(&name);
}
