#include "support/plans.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "plan/recompute_policy.h"
#include "sheaf/sheaf.h"
#include "support/sanitized.h"

const char *const test_steps[] = {
    "mlp-micro",  "gpt-micro",      "gpt-bf16-micro", "gpt-dropout-micro", "gpt-remat-micro",
    "bert-micro", "gpt-scan-micro", "llama-micro",    "moe-micro",         "swin-micro",
    "t5-micro",   "unet-micro",     "wresnet-micro",  "evoformer-micro",   NULL};

bool test_takes(int i)
{
    return !test_short() || i % 3 == 1;
}

sf_graph *test_step(const char *name)
{
    return test_step_of("micro", name);
}

sf_graph *test_step_of(const char *folder, const char *name)
{
#if !SF_FEATURE_LZMA
    skip();
#endif
    char path[128];
    sf_diag *diag = sf_diag_new();
    sf_graph *graph;
    snprintf(path, sizeof path, "test/data/%s/%s.stablehlo.mlir.xz", folder, name);
    if (sf_load(path, NULL, diag, &graph) != SF_OK)
        fail_msg("%s", sf_diag_text(diag, 0));
    sf_diag_free(diag);
    return graph;
}

sf_graph *test_step_text(const char *text)
{
    sf_diag *diag = sf_diag_new();
    sf_graph *graph = NULL;
    sf_load_options options = {.size = sizeof options, .unroll = -1};
    if (sf_load_text(text, strlen(text), "sample", &options, diag, &graph) != SF_OK)
        fail_msg("%s", sf_diag_text(diag, 0));
    sf_diag_free(diag);
    return graph;
}

const sf_node *test_node(const sf_graph *graph, sf_opcode code, int nth)
{
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = graph->nodes[graph->top->nodes[i]];
        if (sf_is(node, code) && nth-- == 0)
            return node;
    }
    fail_msg("no such node");
    return NULL;
}

sf_plan *test_pin(const sf_graph *graph, const char *recipe, int ranks, const char *mesh,
                  const char *const *pins, test_refusal *refusal)
{
    sf_diag *diag = sf_diag_new();
    sf_plan *plan = NULL;
    sf_plan_spec options = {.size = sizeof options,
                            .mesh = mesh,
                            .recipe = recipe,
                            .ranks = ranks,
                            .pins = pins,
                            .recompute = "none"}; /* whatever the text computes again */
    while (pins && pins[options.npins])
        options.npins++;
    *refusal = (test_refusal){.status = sf_pin_step(graph, &options, diag, &plan)};
    if (refusal->status != SF_OK) {
        const char *text = sf_diag_text(diag, 0);
        snprintf(refusal->text, sizeof refusal->text, "%s", text ? text : "no message");
        plan = NULL;
    }
    sf_diag_free(diag);
    return plan;
}

sf_plan *test_plan(const sf_graph *graph, const char *recipe, int ranks, const char *mesh,
                   const char *const *pins)
{
    test_refusal refusal;
    sf_plan *plan = test_pin(graph, recipe, ranks, mesh, pins, &refusal);
    if (!plan)
        fail_msg("%s", refusal.text);
    return plan;
}

sf_local *test_local(const sf_graph *graph, const sf_plan *plan, int rank)
{
    sf_diag *diag = sf_diag_new();
    sf_local *local;
    if (sf_local_new(graph, plan, rank, diag, &local) != SF_OK)
        fail_msg("%s", sf_diag_text(diag, 0));
    sf_diag_free(diag);
    return local;
}

sf_node *test_collective(const sf_local *local, int at)
{
    const sf_block *top = local->graph->top;
    for (uint32_t i = 0; i < top->nnodes; i++)
        if (sf_is_collective(local->graph->nodes[top->nodes[i]]) && at-- == 0)
            return local->graph->nodes[top->nodes[i]];
    return NULL;
}

sf_status test_recompute(const sf_graph *graph, sf_plan *plan, const char *how, sf_diag *diag)
{
    sf_recompute_spec read;
    SF_TRY(sf_recompute_read(how, &plan->arena, diag, &read));
    return sf_plan_recompute(graph, plan, &read, diag);
}
