#include "plan/co_shard.h"

#include <limits.h>
#include <string.h>

#include "ir/name.h"
#include "plan/op_selector.h"

static void add_co_shard(sf_plan *plan, sf_str by, sf_str in, int chunks)
{
    sf_co_shard *all = SF_ARRAY(&plan->arena, plan->nco_shards + 1, sf_co_shard);
    for (int i = 0; i < plan->nco_shards; i++)
        all[i] = plan->co_shards[i];
    all[plan->nco_shards++] =
        (sf_co_shard){sf_arena_string(&plan->arena, by.at, by.length),
                      sf_arena_string(&plan->arena, in.at, in.length), chunks};
    plan->co_shards = all;
}

void sf_plan_co_shard(sf_plan *plan, size_t count, const sf_co_shard *said)
{
    plan->nco_shards = 0;
    plan->co_shards = NULL;
    for (size_t i = 0; i < count; i++)
        if (said[i].chunks > 1)
            add_co_shard(plan, sf_str_of(said[i].by), sf_str_of(said[i].in), said[i].chunks);
}

static bool is_in_scope(const sf_co_shard *c, const char *path)
{
    return !*c->in || sf_name_is_in(c->in, path);
}

sf_status sf_co_shard_nodes(const sf_graph *graph, const sf_plan *plan, int index, sf_arena *arena,
                            sf_diag *diag, bool **out)
{
    const sf_co_shard *said = &plan->co_shards[index];
    bool *may = SF_ARRAY(arena, graph->nnodes, bool), matches = false, any = false;
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        const char *path = sf_op_path(node, arena);
        may[node->id] = is_in_scope(said, path);
        matches = matches || may[node->id];
        for (int before = 0; before < index; before++)
            may[node->id] = may[node->id] && !is_in_scope(&plan->co_shards[before], path);
        any = any || may[node->id];
    }
    *out = may;
    sf_ops ops;
    if (matches && !any) {
        sf_fail(diag, SF_EUSAGE, SF_NOWHERE,
                "co-shard: the items before %d%s%s decide about all that it matches", said->chunks,
                *said->in ? "@" : "", said->in);
        return sf_hint(diag, "the first item that matches an op counts: drop one of them, or put "
                             "the one for fewer ops first");
    }
    return *said->in ? sf_ops_find(graph, said->in, arena, diag, &ops) : SF_OK;
}

/* JSON: an object, or several in a list */

static void put_one(const sf_co_shard *c, sf_json_writer *json)
{
    sf_json_begin_object(json);
    sf_json_add_string(json, "by", c->by);
    sf_json_add_int(json, "chunks", c->chunks);
    if (*c->in)
        sf_json_add_string(json, "in", c->in);
    sf_json_end_object(json);
}

void sf_co_shards_put(const sf_plan *plan, sf_json_writer *json)
{
    if (plan->nco_shards == 0)
        return;
    sf_json_key(json, "co_shard");
    if (plan->nco_shards > 1)
        sf_json_begin_array(json);
    for (int i = 0; i < plan->nco_shards; i++)
        put_one(&plan->co_shards[i], json);
    if (plan->nco_shards > 1)
        sf_json_end_array(json);
}

static bool get_one(const sf_json *value, sf_plan *plan)
{
    const sf_json *scope = sf_json_get(value, "in");
    sf_str by, in = {"", 0};
    int64_t chunks;
    if (!sf_json_string(sf_json_get(value, "by"), &by) ||
        !sf_json_int(sf_json_get(value, "chunks"), &chunks) || chunks < 1 || chunks > INT_MAX ||
        (scope && !sf_json_string(scope, &in)))
        return false;
    if (chunks > 1)
        add_co_shard(plan, by, in, (int)chunks);
    return true;
}

bool sf_co_shards_get(const sf_json *value, sf_plan *plan)
{
    if (sf_json_kind_of(value) != SF_JSON_ARRAY)
        return get_one(value, plan);
    for (size_t i = 0; i < sf_json_count(value); i++)
        if (!get_one(sf_json_item(value, i), plan))
            return false;
    return true;
}
