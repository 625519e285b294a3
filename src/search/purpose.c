#include "search/purpose.h"

#include <stdio.h>
#include <string.h>

static bool is_idle(const sf_graph *graph, const sf_plan *plan, int axis)
{
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        if (plan->arguments[i].axes[axis].kind != SF_REPLICATED)
            return false;
    return true;
}

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
    if (data + seq + model <= 0 && is_idle(graph, plan, axis))
        return SF_UNUSED_AXIS;
    return data >= seq && data >= model && data > 0 ? "data" : seq > model ? "seq" : "model";
}

static bool is_taken(const sf_mesh *mesh, sf_axes named, const char *name)
{
    for (int a = 0; a < mesh->naxes; a++)
        if ((named >> a & 1) && strcmp(mesh->axes[a].name, name) == 0)
            return true;
    return false;
}

void sf_plan_name_axes(const sf_efforts *efforts, sf_axes keep, sf_plan *plan)
{
    sf_axes named = keep;
    for (int a = 0; a < plan->mesh.naxes; a++) {
        if (keep >> a & 1)
            continue;
        const char *purpose = purpose_of(efforts, plan, a);
        char name[24];
        int length = snprintf(name, sizeof name, "%s", purpose);
        for (int same = 2; is_taken(&plan->mesh, named, name); same++)
            length = snprintf(name, sizeof name, "%s%d", purpose, same);
        plan->mesh.axes[a].name = sf_arena_string(&plan->arena, name, (size_t)length);
        named |= 1u << a;
    }
}
