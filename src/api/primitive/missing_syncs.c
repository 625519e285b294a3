/* Partial sums without a sync: a schedule shards a parameter along the summed dimension of a
 * product, and has no sync for the partial sum. Sharding propagation reduces it right after the
 * product, so the step is correct; but a user who places syncs by hand has forgotten one. */
#include <string.h>

#include "api/primitive/primitives.h"
#include "op/op.h"

/* Whether a sync over the axis comes after the scope, or after one that it is in. */
static bool is_synced(const sf_primitives *list, const char *scope, const char *axis)
{
    for (size_t i = 0; i < list->nentries; i++) {
        const sf_entry *entry = &list->entries[i];
        if (entry->said.kind != SF_PRIMITIVE_SYNC || strcmp(entry->said.mode, "forward") != 0 ||
            strcmp(entry->said.axis, axis) != 0)
            continue;
        for (size_t m = 0; m < entry->nmodules; m++)
            if (sf_is_in_module(scope, entry->modules[m]))
                return true;
    }
    return false;
}

static bool reads(const sf_primitives *list, const sf_node *node, const sf_entry *shard)
{
    for (size_t p = 0; p < shard->nparams; p++)
        for (uint32_t o = 0; o < node->noperands; o++)
            if (node->operands[o] == list->graph->top->arguments[shard->params[p]->argument])
                return true;
    return false;
}

/* The first product that makes a partial sum over the axis of the shard, of a sharded operand; or
 * NULL. */
static const sf_node *find_unsynced(const sf_primitives *list, const sf_plan *plan,
                                    const sf_entry *shard)
{
    int axis = sf_mesh_axis(&plan->mesh, sf_str_of(shard->said.axis));
    if (axis < 0 || plan->mesh.axes[axis].size < 2)
        return NULL;
    for (uint32_t i = 0; i < list->graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(list->graph, i);
        if (node->phase == SF_FORWARD && sf_is_product(node->def) && reads(list, node, shard) &&
            sf_plan_layout(plan, list->graph, node->result)->axes[axis].kind == SF_PARTIAL &&
            !is_synced(list, node->scope->path, shard->said.axis))
            return node;
    }
    return NULL;
}

static sf_status tell(const sf_primitives *list, const sf_entry *shard, const sf_node *node,
                      sf_diag *diag)
{
    static const char words[] = "%s is sharded over what its product adds up: each rank along %s "
                                "has a part of the sum, and "
                                "no sync says where the parts are added";
    const sf_primitive *said = &shard->said;
    if (!sf_find_setting(list, "strict")) {
        sf_warn(diag, sf_said_at(said), words, node->scope->path, said->axis);
        sf_hint(diag, "they are reduced right after it; say so, sync(\"forward\")");
        return SF_OK;
    }
    sf_fail(diag, SF_EMISMATCH, sf_said_at(said), words, node->scope->path, said->axis);
    return sf_hint(diag,
                   "the schedule is strict: say it, sync(\"forward\"), of that module or of one "
                   "that it is in");
}

sf_status sf_check_syncs(const sf_primitives *list, const sf_plan *plan, sf_diag *diag)
{
    for (size_t i = 0; i < list->nentries; i++) {
        const sf_entry *entry = &list->entries[i];
        const sf_node *node =
            entry->said.kind == SF_PRIMITIVE_SHARD ? find_unsynced(list, plan, entry) : NULL;
        if (node)
            SF_TRY(tell(list, entry, node, diag));
    }
    return SF_OK;
}
