/* The laws of a summary: every node counts once in every division of the step, every argument has one
 * role, and the parameters are those that the sidecar counts. */
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/json.h"
#include "op/op.h"
#include "report/summary.h"
#include "sheaf/sheaf.h"

static sf_graph *load(const char *path)
{
    sf_graph *graph;
    sf_diag *diag = sf_diag_new();
    if (sf_load(path, NULL, diag, &graph) != SF_OK)
        fail_msg("%s", sf_diag_text(diag, 0));
    sf_diag_free(diag);
    return graph;
}

/* Costs are counts, which doubles add up exactly at this size. */
static void assert_cost(const sf_cost *a, const sf_cost *b)
{
    assert_int_equal(a->nodes, b->nodes);
    assert_true(a->flops == b->flops);
    assert_true(a->bytes == b->bytes);
    assert_int_equal(a->unknown_trips, b->unknown_trips);
}

/* Nodes in the body of a reduction or a sort are part of that op. */
static int64_t count_inside(const sf_graph *graph, const sf_block *block, bool inside)
{
    int64_t count = inside ? block->nnodes : 0;
    for (uint32_t i = 0; i < block->nnodes; i++) {
        const sf_node *node = graph->nodes[block->nodes[i]];
        bool is_control = sf_is(node, SF_OP_WHILE) || sf_is(node, SF_OP_CASE);
        for (uint32_t r = 0; r < node->nregions; r++)
            count += count_inside(graph, node->regions[r], inside || !is_control);
    }
    return count;
}

static void check_costs(const sf_summary *summary)
{
    sf_cost ops = {0}, phases = {0}, scopes = {0};
    for (uint32_t i = 0; i < summary->nops; i++)
        sf_cost_add(&ops, &summary->ops[i].cost);
    for (int i = 0; i < SF_PHASE_COUNT; i++)
        sf_cost_add(&phases, &summary->phases[i]);
    for (uint32_t i = 0; i < summary->nscopes; i++)
        sf_cost_add(&scopes, &summary->scopes[i].own);
    assert_cost(&ops, &summary->total);
    assert_cost(&phases, &summary->total);
    assert_cost(&scopes, &summary->total);
    assert_cost(&summary->scopes[0].all, &summary->total);
    const sf_graph *graph = summary->graph;
    assert_int_equal(summary->total.nodes + count_inside(graph, graph->top, false), graph->nnodes);
    for (int i = 0; i < SF_PHASE_COUNT; i++)
        assert_true(summary->scopes[0].phases[i] == summary->phases[i].flops);
}

/* Each scope is the sum of its own nodes and of the scopes right below it, which follow it. */
static void check_tree(const sf_summary *summary)
{
    const sf_scope_cost *scopes = summary->scopes;
    assert_int_equal(scopes[0].end, summary->nscopes);
    for (uint32_t i = 0; i < summary->nscopes; i++) {
        sf_cost all = scopes[i].own;
        int64_t below = 0;
        for (uint32_t child = i + 1; child < scopes[i].end; child = scopes[child].end) {
            assert_int_equal(scopes[child].parent, i);
            assert_ptr_equal(scopes[child].scope->parent, scopes[i].scope);
            sf_cost_add(&all, &scopes[child].all);
            below += scopes[child].parameters;
        }
        assert_cost(&all, &scopes[i].all);
        assert_true(below <= scopes[i].parameters);
    }
}

static void check_arguments(const sf_summary *summary)
{
    const sf_graph *graph = summary->graph;
    sf_role_total all = {0};
    int64_t found = 0, links = 0;
    for (int i = 0; i < SF_ROLE_COUNT; i++) {
        all.count += summary->roles[i].count;
        all.elements += summary->roles[i].elements;
        all.bytes += summary->roles[i].bytes;
        for (int j = 0; j < SF_SOURCE_COUNT; j++)
            found += summary->roles[i].from[j];
    }
    assert_int_equal(all.count, graph->top->narguments);
    assert_int_equal(all.count, summary->arguments.count);
    assert_int_equal(all.elements, summary->arguments.elements);
    assert_int_equal(all.bytes, summary->arguments.bytes);
    assert_int_equal(found, all.count);
    for (int j = 0; j < SF_SOURCE_COUNT; j++)
        links += summary->found[SF_FOUND_STATE][j];
    assert_int_equal(links, summary->links);
    for (uint32_t i = 0; i < graph->top->nresults; i++)
        if (summary->becomes[i] != SF_NONE) {
            assert_int_equal(graph->arguments[summary->becomes[i]].next, i);
            links--;
        }
    assert_int_equal(links, 0);
    assert_int_equal(summary->scopes[0].parameters, summary->roles[SF_ROLE_PARAM].elements);
}

static void check_laws(const char *path, int64_t parameters)
{
    sf_graph *graph = load(path);
    sf_summary summary;
    sf_summarize(graph, path, &summary);
    check_costs(&summary);
    check_tree(&summary);
    check_arguments(&summary);
    assert_int_equal(summary.roles[SF_ROLE_PARAM].elements, parameters);
    sf_summary_free(&summary);
    sf_graph_free(graph);
}

static int64_t params_of(const char *path)
{
    sf_arena arena = {0};
    sf_str text;
    const sf_json *json;
    int64_t params = -1;
    assert_int_equal(sf_file_read(path, &arena, 0, &text, NULL), SF_OK);
    assert_int_equal(sf_json_parse(text, path, &arena, &json, NULL), SF_OK);
    assert_true(sf_json_int(sf_json_get(json, "params"), &params));
    sf_arena_free(&arena);
    return params;
}

static void test_example(void **state)
{
    (void)state;
    int64_t params = params_of("examples/gpt-micro.json");
    assert_int_equal(params, 7232);
    check_laws("examples/gpt-micro.stablehlo.mlir", params);
    check_laws("examples/gpt-micro.hlo", params);
}

static void test_all_models(void **state)
{
    (void)state;
#if !SF_FEATURE_LZMA
    skip();
#endif
    static const char *const endings[] = {".stablehlo.mlir.xz", ".hlo.xz"};
    glob_t found;
    assert_int_equal(glob("test/data/micro/*.json", 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++)
        for (size_t j = 0; j < sizeof endings / sizeof *endings; j++) {
            char path[1024];
            const char *sidecar = found.gl_pathv[i];
            snprintf(path, sizeof path, "%.*s%s", (int)(strlen(sidecar) - strlen(".json")), sidecar,
                     endings[j]);
            check_laws(path, params_of(sidecar));
        }
    globfree(&found);
}

/* A loop over a tensor argument: its trip count is unknown. */
static const char LOOP[] =
    "func.func @main(%n: tensor<i32>, %x: tensor<4xf32>) -> tensor<4xf32> {\n"
    "  %zero = stablehlo.constant dense<0> : tensor<i32>\n"
    "  %one = stablehlo.constant dense<1> : tensor<i32>\n"
    "  %r:2 = stablehlo.while(%i = %zero, %y = %x) : tensor<i32>, tensor<4xf32>\n"
    "    cond {\n"
    "      %c = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
    "      stablehlo.return %c : tensor<i1>\n"
    "    } do {\n"
    "      %j = stablehlo.add %i, %one : tensor<i32>\n"
    "      %z = stablehlo.multiply %y, %y : tensor<4xf32>\n"
    "      stablehlo.return %j, %z : tensor<i32>, tensor<4xf32>\n"
    "    }\n"
    "  return %r#1 : tensor<4xf32>\n"
    "}\n";

static void test_loop(void **state)
{
    (void)state;
    sf_graph *graph;
    sf_summary summary;
    assert_int_equal(sf_load_text(LOOP, strlen(LOOP), "loop", NULL, NULL, &graph), SF_OK);
    sf_summarize(graph, NULL, &summary);
    check_costs(&summary);
    assert_int_equal(summary.loops, 1);
    assert_true(summary.total.unknown_trips);
    for (uint32_t i = 0; i < summary.nops; i++) {
        const sf_op_cost *op = &summary.ops[i];
        assert_int_equal(op->cost.unknown_trips, op->def->id != SF_OP_CONSTANT);
        if (op->def->id == SF_OP_MULTIPLY)
            assert_true(op->cost.flops == 4);
    }
    sf_summary_free(&summary);
    sf_graph_free(graph);
}

/* The same loop, a number of times that is known but too large to unroll: the body costs that often,
 * and the condition once more. */
static void test_counted_loop(void **state)
{
    (void)state;
    static const char argument[] = "%n: tensor<i32>, ";
    static const char limit[] = "  %n = stablehlo.constant dense<3000> : tensor<i32>\n";
    sf_buf text = {0};
    const char *rest = strstr(LOOP, argument), *body = strchr(LOOP, '\n') + 1;
    sf_buf_add(&text, LOOP, (size_t)(rest - LOOP));
    rest += sizeof argument - 1;
    sf_buf_add(&text, rest, (size_t)(body - rest));
    sf_buf_puts(&text, limit);
    sf_buf_puts(&text, body);
    sf_graph *graph;
    sf_summary summary;
    assert_int_equal(sf_load_text(text.text, text.length, "loop", NULL, NULL, &graph), SF_OK);
    sf_summarize(graph, NULL, &summary);
    check_costs(&summary);
    assert_int_equal(summary.loops, 1);
    assert_false(summary.total.unknown_trips);
    for (uint32_t i = 0; i < summary.nops; i++) {
        const sf_op_cost *op = &summary.ops[i];
        if (op->def->id == SF_OP_MULTIPLY)
            assert_true(op->cost.flops == 3000 * 4);
        if (op->def->id == SF_OP_COMPARE)
            assert_true(op->cost.flops == 3001);
    }
    sf_summary_free(&summary);
    sf_graph_free(graph);
    sf_buf_free(&text);
}

static void test_names(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        int family, order;
    } cases[] = {
        {"layer_2", "layer_10", 0, -1}, {"layer_10", "layer_10", 0, 0},
        {"norm", "norm1", -1, -1},      {"s0b1_c2", "s1b0_c1", 0, -1},
        {"attn", "mlp", -1, -1},        {"x007", "x7", 0, 0},
        {"a1b", "a1c", -1, -1},         {"99999999999999999999", "100000000000000000000", 0, -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(sf_compare_names(cases[i].a, cases[i].b, false), cases[i].family);
        assert_int_equal(sf_compare_names(cases[i].a, cases[i].b, true), cases[i].order);
        assert_int_equal(sf_compare_names(cases[i].b, cases[i].a, true), -cases[i].order);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_example), cmocka_unit_test(test_all_models),
        cmocka_unit_test(test_loop),    cmocka_unit_test(test_counted_loop),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
