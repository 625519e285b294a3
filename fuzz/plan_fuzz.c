/* Reads any text as a plan for a small step. What is accepted is written and read again, and must come out
 * the same; and the checker judges it, whatever its verdict. What that accepts is simulated, and one in eight is run: it computes
 * what the step does. */
#include <stdio.h>
#include <string.h>

#include "guarded.h"
#include "outcome.h"
#include "plan/plan.h"
#include "sheaf/sheaf.h"

static const char step[] =
    "func.func public @main(%w: tensor<8x4xf32> loc(\"params/w\"), %v: tensor<4x6xf32> "
    "loc(\"params/v\"), %x: tensor<4x8xf32> loc(\"batch/x\")) -> (tensor<8x4xf32>, "
    "tensor<4x6xf32>, tensor<f32>) {\n"
    "%a = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4x8xf32>, "
    "tensor<8x4xf32>) -> tensor<4x4xf32>\n"
    "%b = stablehlo.tanh %a : tensor<4x4xf32>\n"
    "%c = stablehlo.reshape %b : (tensor<4x4xf32>) -> tensor<2x2x4xf32>\n"
    "%d = stablehlo.dot_general %c, %v, contracting_dims = [2] x [0] : (tensor<2x2x4xf32>, "
    "tensor<4x6xf32>) -> tensor<2x2x6xf32>\n"
    "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
    "%e = stablehlo.reduce(%d init: %z) applies stablehlo.add across dimensions = [0, 1, 2] : "
    "(tensor<2x2x6xf32>, tensor<f32>) -> tensor<f32>\n"
    "%f = stablehlo.add %w, %w : tensor<8x4xf32>\n"
    "return %f, %v, %e : tensor<8x4xf32>, tensor<4x6xf32>, tensor<f32>\n}\n";

static const sf_graph *step_graph(void)
{
    static sf_graph *graph;
    if (!graph) {
        sf_status status = sf_load_text(step, strlen(step), "step", NULL, NULL, &graph);
        SF_ASSERT(status == SF_OK);
    }
    return graph;
}

static bool drop_text(void *context, const char *text, size_t length)
{
    (void)context;
    return text && length;
}

static void use(const sf_graph *graph, const sf_plan *plan, bool run)
{
    enum { MOST_RANKS = 8 };
    static const sf_output nowhere = {.size = sizeof nowhere, .write = drop_text};
    char name[32];
    sf_cluster *cluster;
    sf_diag *diag = sf_diag_new();
    snprintf(name, sizeof name, "%dxV100", sf_plan_ranks(plan));
    if (sf_cluster_open(name, NULL, &cluster) == SF_OK) {
        sf_plan_simulate(plan, graph, cluster, NULL, NULL, &nowhere, NULL);
        sf_cluster_free(cluster);
    }
    sf_verify_options options = {
        .size = sizeof options, .engine = "cpu", .threads = 1, .steps = 1, .limit = 30};
    sf_verify_report *report = NULL;
    if (run && sf_plan_ranks(plan) <= MOST_RANKS) {
        sf_status status = sf_verify_plan(graph, plan, &options, diag, &report);
        SF_ASSERT(status != SF_EMISMATCH || !report || report->passed);
        sf_verify_free(report);
    }
    sf_diag_free(diag);
}

static void read_write_read(sf_str text, sf_arena *arena, sf_diag *diag)
{
    (void)arena;
    const sf_graph *graph = step_graph();
    sf_plan *plan, *recomputed;
    sf_status status = sf_plan_read(text, "fuzz", graph, diag, &plan);
    fuzz_check_outcome(status, diag);
    if (status != SF_OK)
        return;
    sf_buf first = {0}, second = {0};
    sf_plan_write(plan, graph, "-", &first);
    status = sf_plan_read((sf_str){first.text, first.length}, "again", graph, diag, &recomputed);
    SF_ASSERT(status == SF_OK);
    sf_plan_write(recomputed, graph, "-", &second);
    SF_ASSERT(strcmp(first.text, second.text) == 0);
    if (sf_plan_ranks(plan) <= 64 && sf_plan_check(plan, graph, 0, diag) == SF_OK)
        use(graph, plan, text.length % 8 == 0);
    sf_plan_free(plan);
    sf_plan_free(recomputed);
    sf_buf_free(&first);
    sf_buf_free(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    step_graph(); /* outside of the guard: it stays */
    return fuzz_guarded(read_write_read, data, size);
}
