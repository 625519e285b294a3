#include "plan/co_shard.h"

#include <limits.h>
#include <string.h>

#include "ir/name.h"
#include "plan/op_selector.h"

void sf_plan_co_shard(sf_plan *plan, size_t count, const sf_co_shard *said)
{
    bool any = false;
    for (size_t i = 0; i < count; i++)
        any = any || said[i].chunks > 1;
    plan->nco_shards = any ? (int)count : 0;
    plan->co_shards = any ? SF_ARRAY(&plan->arena, count, sf_co_shard) : NULL;
    for (int i = 0; i < plan->nco_shards; i++)
        plan->co_shards[i] = (sf_co_shard){
            sf_arena_string(&plan->arena, said[i].by, strlen(said[i].by)),
            sf_arena_string(&plan->arena, said[i].in, strlen(said[i].in)), said[i].chunks};
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

static bool get_one(const sf_json *value, sf_arena *arena, sf_co_shard *out)
{
    const sf_json *scope = sf_json_get(value, "in");
    sf_str by, in = {"", 0};
    int64_t chunks;
    if (!sf_json_string(sf_json_get(value, "by"), &by) ||
        !sf_json_int(sf_json_get(value, "chunks"), &chunks) || chunks < 1 || chunks > INT_MAX ||
        (scope && !sf_json_string(scope, &in)))
        return false;
    *out = (sf_co_shard){sf_arena_string(arena, by.at, by.length),
                         sf_arena_string(arena, in.at, in.length), (int)chunks};
    return true;
}

bool sf_co_shards_get(const sf_json *value, sf_plan *plan)
{
    bool is_list = sf_json_kind_of(value) == SF_JSON_ARRAY;
    size_t count = is_list ? sf_json_count(value) : 1;
    sf_co_shard *all = SF_ARRAY(&plan->arena, count, sf_co_shard);
    for (size_t i = 0; i < count; i++)
        if (!get_one(is_list ? sf_json_item(value, i) : value, &plan->arena, &all[i]))
            return false;
    sf_plan_co_shard(plan, count, all);
    return true;
}
