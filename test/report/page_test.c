/* The data of a page: its parts are the whole, over recipes, clusters, and how plans go on in time. */
#include "sheaf/sheaf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"

typedef struct setting {
    const char *recipe, *recompute;
    int micro_batches;
    const char *cluster; /* of 4 devices */
} setting;

static const setting settings[] = {
    {"dp", NULL, 1, "1x4xCPU"},          {"zero1", NULL, 1, "2x2xV100"},
    {"zero3", NULL, 1, "4x1xV100"},      {"megatron", NULL, 1, "1x4xH100"},
    {"sequence", NULL, 1, "2x2xV100"},   {"2d", NULL, 1, "2x2xV100"},
    {"2d+zero1", "layer", 1, "1x4xCPU"}, {"dp", "full", 1, "2x2xH100"},
    {"megatron", "cheap", 2, "1x4xCPU"}, {"megatron", NULL, 4, "2x2xV100"},
};
enum { SETTINGS = sizeof settings / sizeof *settings };

static const char step[] = "examples/gpt-micro.stablehlo.mlir";

static bool take(void *context, const char *text, size_t length)
{
    sf_buf_add(context, text, length);
    return true;
}

static double number(const sf_json *object, const char *key)
{
    double out;
    if (!sf_json_number(sf_json_get(object, key), &out))
        fail_msg("there is no number %s", key);
    return out;
}

static double at(const sf_json *list, size_t index)
{
    double out = (double)NAN;
    assert_true(index < sf_json_count(list));
    assert_true(sf_json_number(sf_json_item(list, index), &out));
    return out;
}

static const sf_json *part(const sf_json *object, const char *key)
{
    const sf_json *found = sf_json_get(object, key);
    if (!found)
        fail_msg("there is no %s", key);
    return found;
}

static const sf_json *make(const sf_graph *graph, const setting *s, sf_buf *text, sf_arena *arena)
{
    sf_plan *plan;
    sf_cluster *cluster;
    const sf_json *out;
    sf_plan_spec pin = {.size = sizeof pin,
                        .recipe = s->recipe,
                        .ranks = 4,
                        .recompute = s->recompute,
                        .micro_batches = s->micro_batches};
    sf_report_options options = {.size = sizeof options, .json = true, .threads = 1};
    sf_output output = {.size = sizeof output, .write = take, .context = text};
    assert_int_equal(sf_pin_step(graph, &pin, NULL, &plan), SF_OK);
    assert_int_equal(sf_cluster_open(s->cluster, NULL, &cluster), SF_OK);
    assert_int_equal(sf_plan_report(plan, graph, cluster, &options, &output, NULL), SF_OK);
    assert_int_equal(sf_json_parse((sf_str){text->text, text->length}, "page", arena, &out, NULL),
                     SF_OK);
    sf_cluster_free(cluster);
    sf_plan_free(plan);
    return out;
}

/* Nothing overlaps on the compute stream, all of it is the compute, and nothing goes on past the step. Times are rounded
 * to nanoseconds. */
static void check_spans(const sf_json *page)
{
    const sf_json *group = sf_json_item(part(page, "groups"), 0), *spans = part(group, "spans");
    const sf_json *starts = part(spans, "start"), *lengths = part(spans, "length");
    size_t count = sf_json_count(starts);
    double start = 0, end = 0, compute = 0, seconds = number(part(page, "time"), "seconds");
    assert_int_equal(sf_json_count(lengths), count);
    for (size_t i = 0; i < count; i++) {
        start += at(starts, i);
        assert_true(start + at(lengths, i) <= 1e9 * seconds + 10);
        if (at(part(spans, "stream"), i) != 0)
            continue;
        assert_true(start >= end - 3);
        end = start + at(lengths, i);
        compute += at(lengths, i);
    }
    double expected = number(part(page, "time"), "compute");
    assert_true(fabs(1e-9 * compute - expected) <= 0.01 * expected + 1e-9 * (double)count);
}

static double sum_at(const sf_json *kinds, size_t index)
{
    double sum = 0;
    for (size_t k = 0; k < sf_json_count(kinds); k++)
        sum += at(sf_json_value_at(kinds, k), index);
    return sum;
}

/* The curve goes up to the peak, but for gaps, and there it has the same kinds as the memory at the
 * peak. */
static void check_memory(const sf_json *page, bool microbatches)
{
    const sf_json *memory = part(sf_json_item(part(page, "groups"), 0), "memory");
    const sf_json *kinds = part(memory, "kinds"), *peaks = part(part(page, "memory"), "kinds");
    double peak = number(part(page, "memory"), "peak"), most = 0, last = -1;
    size_t where = 0, count = sf_json_count(part(memory, "at"));
    assert_true(count > 0);
    for (size_t i = 0; i < count; i++) {
        assert_true(at(part(memory, "at"), i) >= last);
        last = at(part(memory, "at"), i);
        if (sum_at(kinds, i) > most) {
            most = sum_at(kinds, i);
            where = i;
        }
    }
    assert_true(most <= peak);
    if (microbatches) /* a body has gaps of its own */
        return;
    assert_true(most >= peak - number(peaks, "gaps"));
    for (size_t k = 0; most == peak - number(peaks, "gaps") && k < sf_json_count(kinds); k++) {
        char key[64];
        snprintf(key, sizeof key, "%.*s", SF_STR_ARGS(sf_json_key_at(kinds, k)));
        assert_true(at(sf_json_value_at(kinds, k), where) == number(peaks, key));
    }
}

/* Modules add up to the step, and to no more than their outer ones. They are rounded to four
 * digits. */
static void check_scopes(const sf_json *page)
{
    enum { PARENT, NAME, PARAMETERS, FLOPS, SECONDS, WAITS, HELD };
    const sf_json *scopes = part(page, "scopes");
    size_t count = sf_json_count(scopes);
    double compute = number(part(page, "time"), "compute");
    assert_true(count > 10);
    assert_true(fabs(at(sf_json_item(scopes, 0), SECONDS) - compute) <= 2e-3 * compute);
    for (int column = FLOPS; column <= HELD; column++)
        for (size_t i = 0; i < count; i++) {
            double below = 0, all = at(sf_json_item(scopes, i), (size_t)column);
            for (size_t j = i + 1; j < count; j++)
                if (at(sf_json_item(scopes, j), PARENT) == (double)i)
                    below += at(sf_json_item(scopes, j), (size_t)column);
            assert_true(below <= all * 1.002 + 1e-12);
        }
}

/* As much comes in as goes out; nobody sends to himself, and levels are those of the cluster:
 * so many devices in a node. */
static void check_traffic(const sf_json *page, int devices)
{
    const sf_json *cells = part(part(page, "traffic"), "cells");
    double out[4] = {0}, in[4] = {0};
    assert_true(sf_json_count(cells) % 4 == 0);
    assert_true(sf_json_count(cells) > 0);
    for (size_t i = 0; i < sf_json_count(cells); i += 4) {
        int from = (int)at(cells, i), to = (int)at(cells, i + 1);
        assert_true(from >= 0 && from < 4 && to >= 0 && to < 4 && from != to);
        assert_int_equal((int)at(cells, i + 2), from / devices == to / devices ? 0 : 1);
        out[from] += at(cells, i + 3);
        in[to] += at(cells, i + 3);
    }
    for (int r = 0; r < 4; r++)
        assert_true(fabs(out[r] - in[r]) <= 2e-3 * out[r]);
}

/* One of the frontier is the plan, with its simulated step time. */
static void check_frontier(const sf_json *page)
{
    const sf_json *frontier = part(page, "frontier");
    int chosen = 0;
    for (size_t i = 0; i < sf_json_count(frontier); i++) {
        const sf_json *point = sf_json_item(frontier, i);
        bool is_chosen = false;
        sf_json_bool(sf_json_get(point, "chosen"), &is_chosen);
        if (!is_chosen)
            continue;
        chosen++;
        assert_true(number(point, "seconds") == number(part(page, "time"), "seconds"));
        assert_true(number(point, "memory") == number(part(page, "memory"), "peak"));
    }
    assert_int_equal(chosen, 1);
    assert_int_equal(sf_json_count(frontier), 16);
    assert_true(sf_json_count(part(page, "recipes")) >= 6);
}

static void parts_are_the_whole(void **state)
{
    sf_graph *graph;
    (void)state;
    assert_int_equal(sf_load(step, NULL, NULL, &graph), SF_OK);
    for (int i = 0; i < SETTINGS; i++) {
        sf_buf text = {0};
        sf_arena arena = {0};
        const sf_json *page = make(graph, &settings[i], &text, &arena);
        check_spans(page);
        check_memory(page, settings[i].micro_batches > 1);
        check_scopes(page);
        check_traffic(page, strstr(settings[i].cluster, "1x4x")   ? 4
                            : strstr(settings[i].cluster, "2x2x") ? 2
                                                                  : 1);
        check_frontier(page);
        sf_arena_free(&arena);
        sf_buf_free(&text);
    }
    sf_graph_free(graph);
}

static void what_is_wrong_is_refused(void **state)
{
    sf_graph *graph;
    sf_plan *plan;
    sf_cluster *cluster;
    sf_buf text = {0};
    sf_output output = {.size = sizeof output, .write = take, .context = &text};
    (void)state;
    assert_int_equal(sf_load(step, NULL, NULL, &graph), SF_OK);
    assert_int_equal(
        sf_pin_step(graph,
                    &(sf_plan_spec){.size = sizeof(sf_plan_spec), .recipe = "dp", .ranks = 2}, NULL,
                    &plan),
        SF_OK);
    assert_int_equal(sf_cluster_open("1x4xCPU", NULL, &cluster), SF_OK);
    assert_int_equal(sf_plan_report(plan, graph, NULL, NULL, &output, NULL), SF_EUSAGE);
    assert_int_equal(sf_plan_report(plan, graph, cluster, NULL, &output, NULL), SF_EUSAGE);
    sf_cluster_free(cluster);
    assert_int_equal(sf_cluster_open("1x2xCPU", NULL, &cluster), SF_OK);
    sf_report_options negative = {.size = sizeof negative, .threads = -1},
                      nowhere = {.size = sizeof nowhere, .against = "nowhere.json"};
    assert_int_equal(sf_plan_report(plan, graph, cluster, &negative, &output, NULL), SF_EUSAGE);
    assert_int_equal(sf_plan_report(plan, graph, cluster, &nowhere, &output, NULL), SF_EIO);
    assert_int_equal(text.length, 0);
    assert_int_equal(sf_plan_report(plan, graph, cluster, NULL, &output, NULL), SF_OK);
    assert_true(text.length > 0 && strncmp(text.text, "<!doctype html>", 15) == 0);
    sf_buf_free(&text);
    sf_cluster_free(cluster);
    sf_plan_free(plan);
    sf_graph_free(graph);
}

/* Memory runs out, at one allocation after the other: that is said, nothing is written, and nothing is left. */
static void memory_may_run_out(void **state)
{
    sf_graph *graph;
    sf_plan *plan;
    sf_cluster *cluster;
    sf_status status = SF_ENOMEM;
    sf_report_options options = {.size = sizeof options, .threads = 1};
    size_t at_first = sf_mem_live();
    (void)state;
    assert_int_equal(sf_load("test/data/micro/mlp-micro.stablehlo.mlir.xz", NULL, NULL, &graph),
                     SF_OK);
    assert_int_equal(
        sf_pin_step(graph,
                    &(sf_plan_spec){.size = sizeof(sf_plan_spec), .recipe = "zero1", .ranks = 2},
                    NULL, &plan),
        SF_OK);
    assert_int_equal(sf_cluster_open("1x2xCPU", NULL, &cluster), SF_OK);
    for (long successes = 0; status != SF_OK; successes += 1 + successes / 12) {
        sf_buf text = {0};
        sf_output output = {.size = sizeof output, .write = take, .context = &text};
        size_t before = sf_mem_live();
        sf_diag *diag = sf_diag_new();
        sf_mem_fail_after(successes);
        status = sf_plan_report(plan, graph, cluster, &options, &output, diag);
        sf_mem_fail_after(-1);
        assert_true(status == SF_OK || status == SF_ENOMEM);
        assert_true(status == SF_OK || sf_diag_count(diag) > 0);
        assert_int_equal(text.length > 0, status == SF_OK);
        sf_diag_free(diag);
        sf_buf_free(&text);
        assert_int_equal(sf_mem_live(), before);
    }
    sf_cluster_free(cluster);
    sf_plan_free(plan);
    sf_graph_free(graph);
    assert_int_equal(sf_mem_live(), at_first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_the_whole),
        cmocka_unit_test(what_is_wrong_is_refused),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
