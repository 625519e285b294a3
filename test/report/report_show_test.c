/* The two faces of a summary: text that fits and is safe, JSON that is whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/mem.h"
#include "report/report_show.h"
#include "sheaf/sheaf.h"

static const char STEP[] = "examples/gpt-micro.stablehlo.mlir";

static sf_buf render(const char *path, const sf_show_options *options)
{
    sf_graph *graph;
    sf_summary summary;
    sf_buf out = {0};
    assert_int_equal(sf_load(path, NULL, NULL, &graph), SF_OK);
    sf_summarize(graph, path, &summary);
    if (options->json)
        sf_summary_json(&summary, &out);
    else
        sf_summary_text(&summary, options, &out);
    sf_summary_free(&summary);
    sf_graph_free(graph);
    return out;
}

static size_t longest_line(const char *text)
{
    size_t longest = 0;
    while (*text) {
        size_t length = strcspn(text, "\n");
        longest = length > longest ? length : longest;
        text += length + (text[length] == '\n');
    }
    return longest;
}

static void test_widths(void **state)
{
    (void)state;
    static const int widths[] = {90, 100, 120};
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        sf_buf out = render(STEP, &SF_OPTIONS(sf_show_options, .width = widths[i]));
        assert_true(longest_line(out.text) <= (size_t)widths[i]);
        sf_buf_free(&out);
    }
    sf_buf out = render(STEP, &(sf_show_options){.size = sizeof(sf_show_options)});
    assert_non_null(strstr(out.text, "['params']['layer_0']['mlp']['down']['kernel']\n"));
    assert_null(strchr(out.text, '\033'));
    assert_null(strstr(out.text, " \n"));
    sf_buf_free(&out);
    out = render(STEP, &SF_OPTIONS(sf_show_options, .colour = true));
    assert_non_null(strchr(out.text, '\033'));
    sf_buf_free(&out);
}

static void test_folding(void **state)
{
    (void)state;
    sf_buf folded = render(STEP, &(sf_show_options){.size = sizeof(sf_show_options)});
    sf_buf all = render(STEP, &SF_OPTIONS(sf_show_options, .all = true));
    sf_buf shallow = render(STEP, &SF_OPTIONS(sf_show_options, .depth = 1));
    assert_non_null(strstr(folded.text, "    layer_0 .. layer_1 (2x)"));
    assert_null(strstr(all.text, "(2x)"));
    assert_non_null(strstr(all.text, "    layer_0 "));
    assert_non_null(strstr(all.text, "    layer_1 "));
    assert_non_null(strstr(folded.text, "      mlp "));
    assert_null(strstr(shallow.text, "      mlp "));
    sf_buf_free(&folded);
    sf_buf_free(&all);
    sf_buf_free(&shallow);
}

static int64_t int_at(const sf_json *object, const char *key)
{
    int64_t value = -1;
    assert_true(sf_json_int(sf_json_get(object, key), &value));
    return value;
}

static void test_json(void **state)
{
    (void)state;
    sf_buf out = render(STEP, &SF_OPTIONS(sf_show_options, .json = true));
    sf_arena arena = {0};
    const sf_json *json;
    assert_int_equal(sf_json_parse((sf_str){out.text, out.length}, "show", &arena, &json, NULL),
                     SF_OK);
    assert_int_equal(int_at(json, "parameters"), 7232);
    assert_int_equal(sf_json_count(sf_json_get(json, "arguments")), 111);
    assert_int_equal(sf_json_count(sf_json_get(json, "results")), 110);
    assert_int_equal(int_at(sf_json_get(json, "state"), "links"), 109);
    assert_int_equal(int_at(json, "loss"), 109);
    int64_t flops = 0;
    const sf_json *ops = sf_json_get(json, "ops");
    for (size_t i = 0; i < sf_json_count(ops); i++)
        flops += int_at(sf_json_item(ops, i), "flops");
    assert_int_equal(flops, int_at(sf_json_get(json, "total"), "flops"));
    sf_arena_free(&arena);
    sf_buf_free(&out);
}

/* Names come from a file: nothing in them reaches the terminal as a command. */
static void test_hostile_names(void **state)
{
    (void)state;
    static const char TEXT[] =
        "func.func @main(%x: tensor<4xf32> loc(\"a\\1B[31m\\0Ab\")) -> tensor<4xf32> {\n"
        "  %r = stablehlo.add %x, %x : tensor<4xf32> loc(\"jit(f)/m\\1B]0;x\\07/add\")\n"
        "  return %r : tensor<4xf32>\n"
        "}\n";
    sf_graph *graph;
    sf_summary summary;
    sf_buf out = {0};
    assert_int_equal(sf_load_text(TEXT, strlen(TEXT), "t", NULL, NULL, &graph), SF_OK);
    graph->name = "s\033t\np";
    sf_summarize(graph, "f\033g", &summary);
    sf_summary_text(&summary, &SF_OPTIONS(sf_show_options, .all = true), &out);
    assert_null(strchr(out.text, '\033'));
    assert_null(strchr(out.text, '\a'));
    sf_buf_free(&out);
    sf_summary_free(&summary);
    sf_graph_free(graph);
}

/* Whichever allocation fails, the report fails as a whole and no memory is lost. */
static void check_no_memory(const sf_graph *graph, const sf_show_options *options)
{
    size_t live = sf_mem_live();
    sf_status status = SF_ENOMEM;
    for (long n = 0; status == SF_ENOMEM; n++) {
        sf_mem_fail_after(n);
        status = sf_show(graph, options, &SF_OPTIONS(sf_output, .path = "/dev/null"), NULL);
        sf_mem_fail_after(-1);
        assert_true(status == SF_OK || status == SF_ENOMEM);
        assert_int_equal(sf_mem_live(), live);
    }
    assert_int_equal(status, SF_OK);
}

static void test_no_memory(void **state)
{
    (void)state;
    sf_graph *graph;
    assert_int_equal(sf_load("examples/check.mlir", NULL, NULL, &graph), SF_OK);
    check_no_memory(graph, NULL);
    check_no_memory(graph, &SF_OPTIONS(sf_show_options, .all = true, .colour = true, .width = 60));
    check_no_memory(graph, &SF_OPTIONS(sf_show_options, .json = true));
    sf_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_widths),    cmocka_unit_test(test_folding),
        cmocka_unit_test(test_json),      cmocka_unit_test(test_hostile_names),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
