/* Reports of plans with stages: pin, explain, sim and the page agree, over schedules and splits of
 * pipeline ranks. */
#include "sheaf/sheaf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"

typedef struct setting {
    const char *stages, *schedule, *recipe;
    int groups, ranks, microbatches; /* ranks in all */
    const char *cluster;
} setting;

static const setting settings[] = {
    {"2", NULL, NULL, 2, 0, 4, "1x2xCPU"},
    {"layer_1", "gpipe", NULL, 2, 0, 2, "2x1xV100"},
    {"4", "interleaved:2", NULL, 2, 0, 4, "1x2xCPU"},
    {"4", "zb-v", NULL, 2, 0, 4, "1x2xH100"},
    {"2", "chimera", NULL, 2, 0, 4, "1x2xCPU"},
    {"2", "zb-h1", "dp", 2, 4, 2, "2x2xV100"},
    {"2", NULL, "megatron", 2, 4, 4, "1x4xCPU"},
    {"4", "1f1b", NULL, 4, 0, 4, "4x1xV100"},
};
enum { SETTINGS = sizeof settings / sizeof *settings };

static bool take(void *context, const char *text, size_t length)
{
    sf_buf_add(context, text, length);
    return true;
}

static const sf_json *parse(sf_buf *text, sf_arena *arena)
{
    const sf_json *out;
    char *kept = sf_arena_string(arena, text->text, text->length);
    assert_int_equal(sf_json_parse((sf_str){kept, text->length}, "text", arena, &out, NULL), SF_OK);
    sf_buf_free(text);
    return out;
}

static const sf_json *part(const sf_json *object, const char *key)
{
    const sf_json *found = sf_json_get(object, key);
    if (!found)
        fail_msg("there is no %s", key);
    return found;
}

static double number(const sf_json *object, const char *key)
{
    double out = (double)NAN;
    if (!sf_json_number(part(object, key), &out))
        fail_msg("%s is no number", key);
    return out;
}

static double at(const sf_json *list, size_t index)
{
    double out = (double)NAN;
    assert_true(sf_json_number(sf_json_item(list, index), &out));
    return out;
}

typedef struct said {
    const sf_json *pinned, *explained, *simulated, *page;
} said;

static sf_plan *pin(const sf_graph *graph, const setting *s)
{
    sf_plan *plan;
    sf_diag *diag = sf_diag_new();
    sf_plan_spec options = {.size = sizeof options,
                            .recipe = s->recipe,
                            .ranks = s->ranks,
                            .micro_batches = s->microbatches,
                            .stages = s->stages,
                            .schedule = s->schedule};
    assert_int_equal(sf_pin_step(graph, &options, diag, &plan), SF_OK);
    assert_int_equal(sf_diag_count(diag), 0); /* nothing is said to be repeated */
    sf_diag_free(diag);
    return plan;
}

static said ask(const sf_graph *graph, const setting *s, sf_arena *arena)
{
    said out;
    sf_cluster *cluster;
    sf_buf text = {0};
    sf_output output = {.size = sizeof output, .write = take, .context = &text};
    sf_show_options show = {.size = sizeof show, .json = true};
    sf_report_options report = {.size = sizeof report, .json = true, .threads = 1};
    sf_plan *plan = pin(graph, s);
    assert_int_equal(sf_cluster_open(s->cluster, NULL, &cluster), SF_OK);
    assert_int_equal(sf_plan_show(plan, graph, &show, &output, NULL), SF_OK);
    out.pinned = parse(&text, arena);
    assert_int_equal(sf_plan_explain(plan, graph, cluster, NULL, &show, &output, NULL), SF_OK);
    out.explained = parse(&text, arena);
    assert_int_equal(sf_plan_simulate(plan, graph, cluster, NULL, &show, &output, NULL), SF_OK);
    out.simulated = parse(&text, arena);
    assert_int_equal(sf_plan_report(plan, graph, cluster, &report, &output, NULL), SF_OK);
    out.page = parse(&text, arena);
    sf_cluster_free(cluster);
    sf_plan_free(plan);
    return out;
}

/* Pipeline ranks compute different nodes; the replicated compute of their ranks is that of a plan
 * of theirs alone. */
static void check_repeated(const sf_graph *graph, const setting *s, const said *all)
{
    double alone = 0;
    if (s->recipe) {
        sf_arena arena = {0};
        sf_plan *plan;
        sf_buf text = {0};
        sf_output output = {.size = sizeof output, .write = take, .context = &text};
        sf_show_options show = {.size = sizeof show, .json = true};
        sf_plan_spec options = {
            .size = sizeof options, .recipe = s->recipe, .ranks = s->ranks / s->groups};
        assert_int_equal(sf_pin_step(graph, &options, NULL, &plan), SF_OK);
        assert_int_equal(sf_plan_show(plan, graph, &show, &output, NULL), SF_OK);
        alone = number(parse(&text, &arena), "repeated");
        sf_plan_free(plan);
        sf_arena_free(&arena);
    }
    assert_true(fabs(number(all->pinned, "repeated") - alone) < 1e-12);
    assert_true(fabs(number(all->explained, "repeated") - alone) < 1e-12);
    assert_true(fabs(number(part(all->page, "plan"), "repeated") - alone) < 1e-12);
}

static void check_pipeline(const setting *s, const said *all)
{
    const sf_json *const pipelines[] = {part(all->pinned, "pipeline"),
                                        part(all->explained, "pipeline"),
                                        part(part(all->page, "plan"), "pipeline")};
    for (int i = 0; i < 3; i++) {
        sf_str name;
        assert_true(number(pipelines[i], "pipeline_ranks") == s->groups);
        assert_true(sf_json_string(part(pipelines[i], "schedule"), &name));
        assert_true(sf_str_is(name, s->schedule ? s->schedule : "1f1b"));
    }
    static const char *const same[] = {"count", "bytes"};
    for (int i = 0; i < 2; i++) {
        double pinned = number(part(all->pinned, "messages"), same[i]);
        assert_true(pinned > 0);
        assert_true(pinned == number(part(all->explained, "messages"), same[i]));
    }
}

/* The step's time is that of the last, and all stages are there. */
static void check_groups(const setting *s, const said *all)
{
    const sf_json *pipeline = part(all->simulated, "pipeline"),
                  *groups = part(pipeline, "pipeline_ranks");
    double ends = 0, compute = 0, busy = 0, memory = 0, seconds = number(all->simulated, "seconds");
    uint64_t stages = 0;
    assert_int_equal(sf_json_count(groups), s->groups);
    for (size_t g = 0; g < sf_json_count(groups); g++) {
        const sf_json *group = sf_json_item(groups, g), *own = part(group, "stages");
        ends = fmax(ends, number(group, "ends"));
        compute = fmax(compute, number(group, "compute"));
        memory = fmax(memory, number(group, "memory"));
        busy += number(group, "compute");
        assert_true(number(group, "compute") + number(group, "messages") <=
                    number(group, "ends") * (1 + 1e-9));
        for (size_t i = 0; i < sf_json_count(own); i++)
            stages |= UINT64_C(1) << (int)at(own, i);
    }
    assert_true(fabs(ends - seconds) <= 1e-12);
    assert_true(fabs(compute - number(all->simulated, "compute")) <= 1e-12);
    assert_true(memory <= number(all->simulated, "memory"));
    assert_true(fabs(number(pipeline, "idle") - (1 - busy / (seconds * s->groups))) < 1e-9);
    assert_true(stages + 1 == UINT64_C(1) << (int)number(pipeline, "stages"));
}

/* On the page each group has its name, its stages and its compute, on the first of its streams. */
static void check_page_groups(const said *all)
{
    const sf_json *groups = part(all->page, "groups");
    const sf_json *simulated = part(part(all->simulated, "pipeline"), "pipeline_ranks");
    assert_int_equal(sf_json_count(groups), sf_json_count(simulated));
    for (size_t g = 0; g < sf_json_count(groups); g++) {
        const sf_json *group = sf_json_item(groups, g), *spans = part(group, "spans");
        char name[32];
        sf_str text;
        double compute = 0, expected = number(sf_json_item(simulated, g), "compute");
        size_t count = sf_json_count(part(spans, "length"));
        snprintf(name, sizeof name, "pp rank %zu", g);
        assert_true(sf_json_string(part(group, "name"), &text) && sf_str_is(text, name));
        assert_true(sf_json_string(sf_json_item(part(group, "streams"), 0), &text));
        assert_true(sf_str_is(text, "compute"));
        assert_int_equal(sf_json_count(part(group, "stages")),
                         sf_json_count(part(sf_json_item(simulated, g), "stages")));
        for (size_t i = 0; i < count; i++)
            compute += at(part(spans, "stream"), i) == 0 ? at(part(spans, "length"), i) : 0;
        assert_true(fabs(1e-9 * compute - expected) <= 0.01 * expected + 1e-9 * (double)count);
    }
}

/* "pp 2"; messages are in the matrix; micro-batches of the frontier are micro-batches of the
 * schedule. */
static void check_page(const setting *s, const said *all)
{
    const sf_json *cells = part(part(all->page, "traffic"), "cells");
    const sf_json *frontier = part(all->page, "frontier");
    char word[16];
    sf_str text;
    double two = 0, four = 0;
    snprintf(word, sizeof word, "pp %d", s->groups);
    assert_true(sf_json_string(sf_json_item(part(part(all->page, "plan"), "words"), 0), &text));
    assert_true(sf_str_is(text, word));
    assert_true(sf_json_count(cells) >= 8); /* to and fro */
    for (size_t i = 0; i < sf_json_count(frontier); i++) {
        const sf_json *point = sf_json_item(frontier, i);
        double microbatches = number(point, "micro_batches");
        bool refused = sf_json_get(point, "refused") != NULL;
        if (!refused && microbatches == 2 && two == 0)
            two = number(point, "seconds");
        if (!refused && microbatches == 4 && four == 0)
            four = number(point, "seconds");
    }
    assert_true(two != four);
}

static void all_say_the_same(void **state)
{
    sf_graph *graph;
    (void)state;
    assert_int_equal(sf_load("examples/gpt-micro.stablehlo.mlir", NULL, NULL, &graph), SF_OK);
    for (int i = 0; i < SETTINGS; i++) {
        sf_arena arena = {0};
        said all = ask(graph, &settings[i], &arena);
        check_repeated(graph, &settings[i], &all);
        check_pipeline(&settings[i], &all);
        check_groups(&settings[i], &all);
        check_page_groups(&all);
        check_page(&settings[i], &all);
        sf_arena_free(&arena);
    }
    sf_graph_free(graph);
}

static const sf_json *simulate(const sf_graph *graph, const setting *s, sf_arena *arena)
{
    sf_buf text = {0};
    sf_output output = {.size = sizeof output, .write = take, .context = &text};
    sf_show_options show = {.size = sizeof show, .json = true};
    sf_cluster *cluster;
    sf_plan *plan = pin(graph, s);
    assert_int_equal(sf_cluster_open(s->cluster, NULL, &cluster), SF_OK);
    assert_int_equal(sf_plan_simulate(plan, graph, cluster, NULL, &show, &output, NULL), SF_OK);
    sf_cluster_free(cluster);
    sf_plan_free(plan);
    return parse(&text, arena);
}

/* With 1f1b as many micro-batches are in flight however many there are, so more micro-batches take
 * less memory: their gradients are accumulated. */
static void turns_take_no_memory(void **state)
{
    sf_graph *graph;
    double before[4] = {HUGE_VAL, HUGE_VAL, HUGE_VAL, HUGE_VAL};
    (void)state;
    assert_int_equal(sf_load("examples/char-gpt/step.stablehlo.mlir", NULL, NULL, &graph), SF_OK);
    for (int microbatches = 4; microbatches <= 16; microbatches *= 2) {
        sf_arena arena = {0};
        setting s = {"4", "1f1b", NULL, 4, 0, microbatches, "1x4xCPU"};
        const sf_json *groups =
            part(part(simulate(graph, &s, &arena), "pipeline"), "pipeline_ranks");
        for (size_t g = 0; g < 4; g++) {
            double memory = number(sf_json_item(groups, g), "memory");
            assert_true(memory < 0.9 * before[g]);
            before[g] = memory;
        }
        sf_arena_free(&arena);
    }
    sf_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_say_the_same),
                                       cmocka_unit_test(turns_take_no_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
