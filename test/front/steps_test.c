/* Fourteen training steps as JAX lowered them, each as StableHLO and as HLO text, with JAX's own
 * numbers: both forms are one graph, the graph survives printing and reading, every engine computes
 * JAX's results, and roles, state, phases and scopes of the texts and sidecars are found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "ir/print_graph.h"
#include "op/node_builder.h"
#include "op/op.h"
#include "sheaf/sheaf.h"

enum { FORMS = 2 };
static const char *const forms[FORMS] = {"stablehlo.mlir", "hlo"};

static sf_graph *load(const char *step, const char *form)
{
    char path[128];
    snprintf(path, sizeof path, "test/data/micro/%s.%s.xz", step, form);
    sf_diag *diag = sf_diag_new();
    sf_graph *graph = NULL;
    if (sf_load(path, NULL, diag, &graph) != SF_OK)
        fail_msg("%s", sf_diag_text(diag, 0));
    sf_diag_free(diag);
    return graph;
}

static void skip_without_lzma(void)
{
#if !SF_FEATURE_LZMA
    print_message("liblzma is not in this build, and the steps are compressed with xz\n");
    skip();
#endif
}

/* Printed text reads back as the same graph, and prints to the same text; no sidecar helps the
 * second time, so the text alone has it. */
static void check_round_trip(const sf_graph *graph)
{
    sf_buf text = {0}, recomputed = {0};
    sf_print_stablehlo(graph, &text);
    sf_diag *diag = sf_diag_new();
    sf_graph *copy = NULL;
    if (sf_load_text(text.text, text.length, "converted.mlir", NULL, diag, &copy) != SF_OK)
        fail_msg("%s", sf_diag_text(diag, 0));
    assert_true(sf_graph_hash(copy) == sf_graph_hash(graph));
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        assert_int_equal(copy->arguments[i].next, graph->arguments[i].next);
    sf_print_stablehlo(copy, &recomputed);
    if (strcmp(recomputed.text, text.text) != 0) {
        size_t at = 0;
        while (recomputed.text[at] == text.text[at])
            at++;
        fail_msg("differs when written again: %.200s", recomputed.text + at);
    }
    sf_graph_free(copy);
    sf_diag_free(diag);
    sf_buf_free(&text);
    sf_buf_free(&recomputed);
}

static bool in_16_bits(const sf_graph *graph)
{
    for (size_t i = 0; i < graph->nvalues; i++) {
        sf_dtype dtype = graph->values[i].type->dtype;
        if (dtype == SF_BF16 || dtype == SF_F16)
            return true;
    }
    return false;
}

static void check_numbers(const sf_graph *graph, const char *step, const char *engine, int threads)
{
    char path[128];
    snprintf(path, sizeof path, "test/data/micro/%s.io.safetensors", step);
    sf_verify_options options = {
        .size = sizeof options, .against = path, .engine = engine, .threads = threads};
    sf_verify_report *report = NULL;
    sf_diag *diag = sf_diag_new();
    sf_status status = sf_verify(graph, &options, diag, &report);
    if (status != SF_OK)
        fail_msg("%s", sf_diag_text(diag, 0));
    assert_true(report->passed);
    assert_int_equal(report->nresults, graph->top->nresults);
    assert_int_equal(report->nlosses, 10);
    assert_true(report->loss_error < (in_16_bits(graph) ? 2e-2 : 1e-4));
    for (int i = 0; i < report->nresults && !in_16_bits(graph); i++)
        assert_true(report->results[i]->error <= 1e-4);
    sf_verify_free(report);
    sf_diag_free(diag);
}

/* A result of its own type updates every parameter and every part of the optimizer's state, and one
 * result is the loss. */
static void check_state(const sf_graph *graph)
{
    uint32_t parameters = 0, states = 0, losses = 0;
    bool *taken = sf_alloc(graph->top->nresults + 1);
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        const sf_argument *argument = &graph->arguments[i];
        assert_int_equal(argument->role_from, SF_FROM_SIDECAR);
        parameters += argument->role == SF_ROLE_PARAM;
        states += argument->role == SF_ROLE_STATE;
        if (argument->role != SF_ROLE_PARAM && argument->role != SF_ROLE_STATE) {
            assert_true(argument->next == SF_NONE);
            continue;
        }
        assert_true(argument->next < graph->top->nresults);
        assert_false(taken[argument->next]);
        taken[argument->next] = true;
        assert_ptr_equal(sf_argument_type(graph, i), sf_result_type(graph, argument->next));
    }
    for (uint32_t i = 0; i < graph->top->nresults; i++) {
        losses += graph->results[i].is_loss;
        assert_true(taken[i] != graph->results[i].is_loss);
    }
    /* Adam: two moments of each parameter, and one count. */
    assert_true(parameters > 0);
    assert_int_equal(states, 2 * parameters + 1);
    assert_int_equal(losses, 1);
    sf_free(taken);
}

/* Every phase is there; fills in how many products of matrices each has. */
static void check_phases(const sf_graph *graph, int dots[SF_PHASE_COUNT])
{
    size_t nodes[SF_PHASE_COUNT] = {0};
    memset(dots, 0, SF_PHASE_COUNT * sizeof *dots);
    for (size_t i = 0; i < graph->nnodes; i++) {
        const sf_node *node = graph->nodes[i];
        nodes[node->phase]++;
        dots[node->phase] += node->def->id == SF_OP_DOT_GENERAL;
    }
    assert_true(nodes[SF_FORWARD] > 0);
    assert_true(nodes[SF_BACKWARD] > 0);
    assert_true(nodes[SF_UPDATE] > 0);
    assert_true(dots[SF_FORWARD] > 0);
    assert_true(dots[SF_BACKWARD] > 0);
    assert_int_equal(dots[SF_UPDATE], 0); /* Adam needs none */
}

static void test_step(void **state)
{
    skip_without_lzma();
    const char *step = *state;
    uint64_t hashes[FORMS];
    int dots[FORMS][SF_PHASE_COUNT];
    for (int i = 0; i < FORMS; i++) {
        sf_graph *graph = load(step, forms[i]);
        sf_diag *diag = sf_diag_new();
        if (sf_graph_verify(graph, diag) != SF_OK)
            fail_msg("%s", sf_diag_text(diag, 0));
        sf_diag_free(diag);
        hashes[i] = sf_graph_hash(graph);
        check_state(graph);
        check_phases(graph, dots[i]);
        check_round_trip(graph);
        check_numbers(graph, step, "oracle", 0);
        check_numbers(graph, step, "cpu", 1);
        check_numbers(graph, step, "cpu", 2);
        sf_graph_free(graph);
    }
    assert_true(hashes[0] == hashes[1]);
    /* The StableHLO texts name their ops, the HLO texts do not, so there data flow determines the
     * phases. */
    assert_memory_equal(dots[0], dots[1], sizeof *dots);
}

/* Steps that compute different things have different hashes. */
static void test_hashes_differ(void **state)
{
    skip_without_lzma();
    const char *const *steps = *state;
    uint64_t hashes[16];
    size_t count = 0;
    for (; steps[count]; count++) {
        sf_graph *graph = load(steps[count], "hlo");
        hashes[count] = sf_graph_hash(graph);
        sf_graph_free(graph);
        for (size_t i = 0; i < count; i++)
            assert_true(hashes[i] != hashes[count]);
    }
}

/* Nodes of a scope and all below it, by op and phase. */
typedef struct counts {
    int of[SF_OP_COUNT][SF_PHASE_COUNT];
} counts;

static counts count_scope(const sf_graph *graph, const char *path)
{
    counts result = {0};
    size_t length = strlen(path);
    for (size_t i = 0; i < graph->nnodes; i++) {
        const sf_node *node = graph->nodes[i];
        const char *scope = node->scope->path;
        if (strncmp(scope, path, length) == 0 && (scope[length] == 0 || scope[length] == '/'))
            result.of[node->def->id][node->phase]++;
    }
    return result;
}

/* A scan over stacked weights becomes layers that are scopes of their own, equal in both passes. */
static void test_scan_layers(void **state)
{
    (void)state;
    skip_without_lzma();
    sf_graph *graph = load("gpt-scan-micro", "stablehlo.mlir");
    for (size_t i = 0; i < graph->nnodes; i++)
        assert_int_not_equal(graph->nodes[i]->def->id, SF_OP_WHILE);
    counts first = count_scope(graph, "layers_0");
    assert_int_equal(first.of[SF_OP_DOT_GENERAL][SF_FORWARD], 8);
    assert_int_equal(first.of[SF_OP_DOT_GENERAL][SF_BACKWARD], 16);
    static const char *const others[] = {"layers_1", "layers_2"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        counts other = count_scope(graph, others[i]);
        assert_memory_equal(&other, &first, sizeof first);
    }
    counts none = {0}, past = count_scope(graph, "layers_3");
    assert_memory_equal(&past, &none, sizeof none);
    sf_graph_free(graph);
}

/* A layer of the scan is a layer of the model that was written without one. The causal mask, which
 * all layers share, is in no layer. One difference: the weights come as slices of stacked ones,
 * which takes reshapes. */
static void test_scan_is_unrolled(void **state)
{
    (void)state;
    skip_without_lzma();
    sf_graph *scan = load("gpt-scan-micro", "stablehlo.mlir");
    sf_graph *plain = load("gpt-micro", "stablehlo.mlir");
    counts layer = count_scope(scan, "layers_0");
    counts expected = count_scope(plain, "layer_0");
    for (int op = 0; op < SF_OP_COUNT; op++) {
        if (op == SF_OP_RESHAPE)
            continue;
        for (int phase = 0; phase < SF_PHASE_COUNT; phase++)
            if (layer.of[op][phase] != expected.of[op][phase])
                fail_msg("%s, %s: %d in the loop, but %d without one",
                         sf_opdef_get((sf_opcode)op)->name, sf_phase_name((sf_phase)phase),
                         layer.of[op][phase], expected.of[op][phase]);
    }
    sf_graph_free(scan);
    sf_graph_free(plain);
}

int main(void)
{
    static const char *steps[] = {
        "bert-micro",      "evoformer-micro", "gpt-bf16-micro", "gpt-dropout-micro", "gpt-micro",
        "gpt-remat-micro", "gpt-scan-micro",  "llama-micro",    "mlp-micro",         "moe-micro",
        "swin-micro",      "t5-micro",        "unet-micro",     "wresnet-micro",     NULL};
    enum { STEPS = sizeof steps / sizeof *steps - 1, OTHERS = 3 };
    struct CMUnitTest tests[STEPS + OTHERS] = {0};
    for (int i = 0; i < STEPS; i++)
        tests[i] = (struct CMUnitTest){
            .name = steps[i], .test_func = test_step, .initial_state = (void *)(uintptr_t)steps[i]};
    tests[STEPS] = (struct CMUnitTest){
        .name = "hashes_differ", .test_func = test_hashes_differ, .initial_state = steps};
    tests[STEPS + 1] = (struct CMUnitTest)cmocka_unit_test(test_scan_layers);
    tests[STEPS + 2] = (struct CMUnitTest)cmocka_unit_test(test_scan_is_unrolled);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
