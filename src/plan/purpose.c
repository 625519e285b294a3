#include "plan/purpose.h"

#include <stdio.h>
#include <string.h>

static const char *purpose_of(const sf_efforts *efforts, const sf_plan *plan, int axis)
{
    const sf_graph *graph = efforts->graph;
    double data = 0, seq = 0, model = 0;
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = graph->nodes[graph->top->nodes[i]];
        if (node->phase != SF_FORWARD || !efforts->nodes[node->id].product)
            continue;
        const sf_type *type = sf_type_of(graph, node->result);
        sf_share share = plan->nodes[node->id][node->noperands].axes[axis];
        double bytes = (double)sf_type_bytes(type);
        if (share.kind == SF_SPLIT && share.dim == 0)
            data += bytes;
        else if (share.kind == SF_SPLIT && share.dim < type->rank - 1)
            seq += bytes;
        else if (share.kind != SF_REPLICATED)
            model += bytes;
    }
    return data >= seq && data >= model && data > 0 ? "data" : seq > model ? "seq" : "model";
}

void sf_plan_name_axes(const sf_efforts *efforts, sf_plan *plan)
{
    const char *purposes[SF_MAX_AXES];
    for (int a = 0; a < plan->mesh.naxes; a++) {
        int same = 1;
        purposes[a] = purpose_of(efforts, plan, a);
        for (int b = 0; b < a; b++)
            same += strcmp(purposes[a], purposes[b]) == 0;
        char name[24];
        int length = same == 1 ? snprintf(name, sizeof name, "%s", purposes[a])
                               : snprintf(name, sizeof name, "%s%d", purposes[a], same);
        plan->mesh.axes[a].name = sf_arena_string(&plan->arena, name, (size_t)length);
    }
}
