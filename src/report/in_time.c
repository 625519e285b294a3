#include "report/in_time.h"

#include "op/flops.h"
#include "plan/recompute.h"

double sf_share_again(const sf_plan *plan, const sf_graph *graph)
{
    double again = 0, all = sf_step_flops(graph);
    for (uint32_t i = 0; plan->again && i < graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        again += plan->again[node->id] ? sf_node_flops(graph, node) : 0;
    }
    return all > 0 ? again / all : 0;
}

void sf_in_time_text(const sf_plan *plan, const sf_graph *graph, int width, sf_buf *out)
{
    const sf_pipeline *pipeline = plan->pipeline;
    if (pipeline)
        sf_buf_printf(out, "  %-*s %u, by %s, in %d group%s of ranks\n", width, "stages",
                      pipeline->stages.count, *pipeline->name ? pipeline->name : "a table",
                      sf_plan_groups(plan), sf_plural((uint64_t)sf_plan_groups(plan)));
    if (plan->micro_batches > 1)
        sf_buf_printf(out, "  %-*s %d micro-batches, whose gradients are added up\n", width,
                      "turns", plan->micro_batches);
    if (plan->co_shards > 1)
        sf_buf_printf(out, "  %-*s %d, of what %s splits, one behind the other in each rank\n",
                      width, "shards", plan->co_shards, plan->co_shard);
    if (plan->again)
        sf_buf_printf(out,
                      "  %-*s %u ops of the forward pass, by %s: %.1f %% of the step's compute\n",
                      width, "again", sf_count_again(graph, plan), plan->recompute,
                      100 * sf_share_again(plan, graph));
}

void sf_in_time_json(const sf_plan *plan, const sf_graph *graph, sf_json_writer *json)
{
    sf_json_add_int(json, "micro_batches", plan->micro_batches > 1 ? plan->micro_batches : 1);
    if (plan->co_shards > 1) {
        sf_json_key(json, "co_shard");
        sf_json_begin_object(json);
        sf_json_add_string(json, "by", plan->co_shard);
        sf_json_add_int(json, "turns", plan->co_shards);
        sf_json_end_object(json);
    }
    if (plan->pipeline) {
        sf_json_key(json, "pipeline");
        sf_json_begin_object(json);
        sf_json_add_string(json, "schedule", plan->pipeline->name);
        sf_json_add_int(json, "stages", plan->pipeline->stages.count);
        sf_json_add_int(json, "groups", sf_plan_groups(plan));
        sf_json_end_object(json);
    }
    if (!plan->again)
        return;
    sf_json_key(json, "recompute");
    sf_json_begin_object(json);
    sf_json_add_string(json, "by", plan->recompute);
    sf_json_add_int(json, "nodes", sf_count_again(graph, plan));
    sf_json_add_double(json, "share", sf_share_again(plan, graph));
    sf_json_end_object(json);
}

void sf_messages_text(const sf_plan *plan, sf_messages most, sf_style style, sf_buf *out)
{
    if (plan->pipeline)
        sf_remark(out, style, "between groups: %s messages of %s, of the group that has most",
                  sf_text_count(most.count).at, sf_text_bytes(most.bytes).at);
}

void sf_messages_json(const sf_plan *plan, sf_messages most, sf_json_writer *json)
{
    if (!plan->pipeline)
        return;
    sf_json_key(json, "messages");
    sf_json_begin_object(json);
    sf_json_add_int(json, "count", most.count);
    sf_json_add_double(json, "bytes", most.bytes);
    sf_json_end_object(json);
}
