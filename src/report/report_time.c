#include "report/report_time.h"

#include "op/flops.h"
#include "op/op.h"
#include "op/util.h"
#include "plan/co_shard.h"
#include "plan/recompute_policy.h"

double sf_recomputed_share(const sf_plan *plan, const sf_graph *graph)
{
    double recomputed = 0, all = sf_step_flops(graph);
    for (uint32_t i = 0; plan->recomputed && i < graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        int times = plan->recomputed[node->id] +
                    (plan->recomputed_per_part && plan->recomputed_per_part[node->id]);
        recomputed += times > 0 ? times * sf_node_flops(graph, node) : 0;
    }
    return all > 0 ? recomputed / all : 0;
}

__attribute__((format(printf, 2, 3))) static const char *say(sf_arena *arena, const char *format,
                                                             ...)
{
    sf_buf text = {0};
    va_list arguments;
    va_start(arguments, format);
    sf_buf_vprintf(&text, format, arguments);
    va_end(arguments);
    const char *kept = sf_arena_string(arena, text.text, text.length);
    sf_buf_free(&text);
    return kept;
}

static const char *say_stages(const sf_plan *plan, sf_arena *arena)
{
    const sf_pipeline *pipeline = plan->pipeline;
    return say(arena, "%u, by %s, on %d pipeline rank%s", pipeline->stages.count,
               *pipeline->name ? pipeline->name : "a table", sf_plan_groups(plan),
               sf_plural((uint64_t)sf_plan_groups(plan)));
}

static const char *describe_recomputed(const sf_plan *plan, const sf_graph *graph, sf_arena *arena)
{
    return say(arena, "%u ops of the forward pass, by %s: %.1f %% of the step's compute",
               sf_count_recomputed(graph, plan), plan->recompute,
               100 * sf_recomputed_share(plan, graph));
}

static const char *say_shards(const sf_plan *plan, sf_arena *arena)
{
    const char *text = "";
    for (int i = 0; i < plan->nco_shards; i++) {
        const sf_co_shard *c = &plan->co_shards[i];
        text = say(arena, "%s%s%d, of what %s splits%s%s", text, i > 0 ? "; " : "", c->chunks,
                   c->by, *c->in ? " in " : "", c->in);
    }
    return say(arena, "%s, one after another in each rank", text);
}

void sf_in_time_facts(const sf_plan *plan, const sf_graph *graph, sf_arena *arena,
                      sf_fact out[SF_IN_TIME_FACTS])
{
    out[0] = (sf_fact){"stages", plan->pipeline ? say_stages(plan, arena) : NULL};
    out[1] = (sf_fact){"micro-batches",
                       plan->micro_batches > 1
                           ? say(arena, "%d, whose gradients are added up", plan->micro_batches)
                           : NULL};
    out[2] = (sf_fact){"co-shard", plan->nco_shards > 0 ? say_shards(plan, arena) : NULL};
    out[3] =
        (sf_fact){"recompute", plan->recomputed ? describe_recomputed(plan, graph, arena) : NULL};
    out[4] = (sf_fact){"passes", *plan->passes.list ? plan->passes.list : NULL};
}

void sf_in_time_text(const sf_plan *plan, const sf_graph *graph, int width, sf_buf *out)
{
    sf_arena arena = {0};
    sf_fact facts[SF_IN_TIME_FACTS];
    sf_in_time_facts(plan, graph, &arena, facts);
    for (int i = 0; i < SF_IN_TIME_FACTS; i++)
        if (facts[i].text)
            sf_buf_printf(out, "  %-*s %s\n", width, facts[i].label, facts[i].text);
    sf_arena_free(&arena);
}

void sf_in_time_json(const sf_plan *plan, const sf_graph *graph, sf_json_writer *json)
{
    sf_json_add_int(json, "micro_batches", plan->micro_batches > 1 ? plan->micro_batches : 1);
    sf_co_shards_put(plan, json);
    if (plan->pipeline) {
        sf_json_key(json, "pipeline");
        sf_json_begin_object(json);
        sf_json_add_string(json, "schedule", plan->pipeline->name);
        sf_json_add_int(json, "stages", plan->pipeline->stages.count);
        sf_json_add_int(json, "pipeline_ranks", sf_plan_groups(plan));
        sf_json_end_object(json);
    }
    if (*plan->passes.list)
        sf_json_add_string(json, "pass_list", plan->passes.list);
    if (!plan->recomputed)
        return;
    sf_json_key(json, "recompute");
    sf_json_begin_object(json);
    sf_json_add_string(json, "by", plan->recompute);
    sf_json_add_int(json, "nodes", sf_count_recomputed(graph, plan));
    sf_json_add_double(json, "share", sf_recomputed_share(plan, graph));
    sf_json_end_object(json);
}

bool sf_rounds_products(const sf_graph *graph, const sf_target *target)
{
    for (size_t i = 0; target->rounds && i < graph->nnodes; i++) {
        const sf_node *node = graph->nodes[i];
        const sf_type *types[3];
        if (!sf_is_product(node->def) || sf_type_of(graph, node->operands[0])->dtype != SF_F32)
            continue;
        SF_ASSERT(node->noperands == 2 && node->nresults == 1);
        sf_op op = sf_op_of(graph, node, types);
        if (!sf_op_is_exact(&op))
            return true;
    }
    return false;
}

void sf_precision_text(const sf_graph *graph, const sf_target *target, sf_buf *out)
{
    if (sf_rounds_products(graph, target))
        sf_buf_puts(out, "  products of f32 in TF32, as train and run with --precision tf32\n");
}

void sf_precision_json(const sf_graph *graph, const sf_target *target, sf_json_writer *json)
{
    sf_json_add_string(json, "precision", sf_rounds_products(graph, target) ? "tf32" : "f32");
}

void sf_messages_text(const sf_plan *plan, sf_messages most, sf_style style, sf_buf *out)
{
    if (plan->pipeline)
        sf_remark(out, style, "between pipeline ranks: %s messages of %s, of the one that has most",
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
