#include "plan/co_shard.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "ir/name.h"
#include "plan/op_selector.h"

static const char *const usual = "megatron";

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

/* "[RECIPE:]TURNS[@SCOPE]"; false where it is not. */
static bool read_one(sf_str text, sf_plan *plan)
{
    const char *end = text.at + text.length, *at = memchr(text.at, '@', text.length);
    const char *head = at ? at : end, *colon = memchr(text.at, ':', (size_t)(head - text.at));
    sf_str by = colon ? (sf_str){text.at, (size_t)(colon - text.at)} : sf_str_of(usual);
    sf_str in = at ? (sf_str){at + 1, (size_t)(end - at - 1)} : (sf_str){"", 0};
    const char *digits = colon ? colon + 1 : text.at;
    char *after;
    if (digits == head || *digits < '1' || *digits > '9' || by.length == 0 || (at && !in.length))
        return false;
    long chunks = strtol(digits, &after, 10);
    if (after != head || chunks > INT_MAX)
        return false;
    if (chunks > 1)
        add_co_shard(plan, by, in, (int)chunks);
    return true;
}

static bool read_list(const char *text, sf_plan *plan)
{
    for (const char *at = text;; at++) {
        size_t length = strcspn(at, ",");
        if (!read_one((sf_str){at, length}, plan))
            return false;
        at += length;
        if (!*at)
            return true;
    }
}

void sf_plan_co_shard(sf_plan *plan, const char *by, int chunks)
{
    plan->nco_shards = 0;
    plan->co_shards = NULL;
    if (chunks <= 1 || (by && read_list(by, plan)))
        return;
    plan->nco_shards = 0;
    add_co_shard(plan, sf_str_of(by ? by : usual), (sf_str){"", 0}, chunks);
}

static bool is_in_scope(const sf_co_shard *c, const char *path)
{
    return !*c->in || sf_name_is_in(c->in, path);
}

sf_status sf_co_shard_nodes(const sf_graph *graph, const sf_plan *plan, int index, sf_arena *arena,
                            sf_diag *diag, bool **out)
{
    bool *may = SF_ARRAY(arena, graph->nnodes, bool);
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        const char *path = sf_op_path(node, arena);
        may[node->id] = is_in_scope(&plan->co_shards[index], path);
        for (int before = 0; before < index; before++)
            may[node->id] = may[node->id] && !is_in_scope(&plan->co_shards[before], path);
    }
    *out = may;
    sf_ops ops;
    return *plan->co_shards[index].in
               ? sf_ops_find(graph, plan->co_shards[index].in, arena, diag, &ops)
               : SF_OK;
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
