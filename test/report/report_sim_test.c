/* Simulations of plans: the parts add up to the whole, which equals the plan's simulated step time,
 * and the timeline is possible. */
#include "sheaf/sheaf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"

static const char *const recipes[] = {"dp", "zero1", "zero3", "megatron", "2d"};
enum { RECIPES = sizeof recipes / sizeof *recipes };

typedef struct texts {
    sf_buf report, trace, explained;
} texts;

static bool take(void *context, const char *text, size_t length)
{
    sf_buf_add(context, text, length);
    return true;
}

static const sf_json *parse(const sf_buf *text, sf_arena *arena)
{
    const sf_json *out;
    assert_int_equal(sf_json_parse((sf_str){text->text, text->length}, "text", arena, &out, NULL),
                     SF_OK);
    return out;
}

static double number(const sf_json *object, const char *key)
{
    double out;
    if (!sf_json_number(sf_json_get(object, key), &out))
        fail_msg("there is no number %s", key);
    return out;
}

static bool is(const sf_json *object, const char *key, const char *text)
{
    sf_str out;
    return sf_json_string(sf_json_get(object, key), &out) && sf_str_is(out, text);
}

/* Both texts of a recipe on a cluster; of `ranks` ranks. */
static bool simulate(const sf_graph *graph, const char *recipe, const char *cluster_name, int ranks,
                     texts *out)
{
    sf_plan *plan;
    sf_cluster *cluster;
    sf_plan_spec pin = {.size = sizeof pin, .recipe = recipe, .ranks = 8};
    *out = (texts){0};
    if (sf_pin_step(graph, &pin, NULL, &plan) != SF_OK)
        return false;
    assert_int_equal(sf_cluster_open(cluster_name, NULL, &cluster), SF_OK);
    sf_output report = {.size = sizeof report, .write = take, .context = &out->report};
    sf_output trace = {.size = sizeof trace, .write = take, .context = &out->trace};
    sf_output explained = {.size = sizeof explained, .write = take, .context = &out->explained};
    sf_sim_options options = {.size = sizeof options, .trace = &trace, .ranks = ranks};
    sf_show_options show = {.size = sizeof show, .json = true};
    assert_int_equal(sf_plan_simulate(plan, graph, cluster, &options, &show, &report, NULL), SF_OK);
    assert_int_equal(sf_plan_explain(plan, graph, cluster, NULL, &show, &explained, NULL), SF_OK);
    sf_cluster_free(cluster);
    sf_plan_free(plan);
    return true;
}

static void free_texts(texts *t)
{
    sf_buf_free(&t->report);
    sf_buf_free(&t->trace);
    sf_buf_free(&t->explained);
}

static void near(double a, double b)
{
    if (fabs(a - b) > 1e-9 * fmax(fabs(a), fabs(b)) + 1e-15)
        fail_msg("%.17g is not %.17g", a, b);
}

static void check_report(const sf_json *report, const sf_json *explained)
{
    static const char *const same[] = {"seconds", "compute", "exposed", "hidden", "memory"};
    for (int i = 0; i < 5; i++)
        near(number(report, same[i]), number(explained, same[i]));
    near(number(report, "compute") + number(report, "exposed"), number(report, "seconds"));
    const sf_json *kinds = sf_json_get(report, "instructions_by_kind");
    double computed = 0, count = 0, sent = 0;
    for (size_t i = 0; i < sf_json_count(kinds); i++) {
        const sf_json *kind = sf_json_value_at(kinds, i);
        count += number(kind, "count");
        if (sf_str_is(sf_json_key_at(kinds, i), "comm"))
            sent = number(kind, "seconds");
        else
            computed += number(kind, "seconds");
    }
    near(count, number(report, "instructions"));
    near(computed, number(report, "compute")); /* there are no loops */
    const sf_json *comms = sf_json_get(report, "communication");
    double seconds = 0, exposed = 0;
    for (size_t i = 0; i < sf_json_count(comms); i++) {
        seconds += number(sf_json_item(comms, i), "seconds");
        exposed += number(sf_json_item(comms, i), "exposed");
    }
    near(seconds, sent);
    near(exposed, number(report, "exposed"));
    const sf_json *memory = sf_json_get(report, "memory_by_kind");
    double bytes = 0;
    for (size_t i = 0; i < sf_json_count(memory); i++) {
        double some;
        assert_true(sf_json_number(sf_json_value_at(memory, i), &some));
        bytes += some;
    }
    near(bytes, number(report, "memory"));
    assert_true(number(report, "mfu") > 0 && number(report, "mfu") < 1);
}

/* On each track things begin when the one before has ended, and none ends after the step; the counter is never above
 * the peak. */
static void check_trace(const sf_json *trace, const sf_json *report, int ranks)
{
    const sf_json *events = sf_json_get(trace, "traceEvents");
    double ends[64] = {0}, step = 1e6 * number(report, "seconds"), most = 0;
    int processes = 0, insts = 0;
    for (size_t i = 0; i < sf_json_count(events); i++) {
        const sf_json *event = sf_json_item(events, i);
        processes += is(event, "name", "process_name");
        if (is(event, "ph", "C"))
            most = fmax(most, number(sf_json_get(event, "args"), "bytes"));
        if (!is(event, "ph", "X"))
            continue;
        int track = 8 * (int)number(event, "pid") + (int)number(event, "tid");
        double start = number(event, "ts");
        insts++;
        assert_in_range(track, 0, 63);
        assert_true(start >= ends[track] - 2e-3); /* rounded to a nanosecond */
        ends[track] = start + number(event, "dur");
        assert_true(ends[track] <= step + 1e-2);
    }
    assert_int_equal(processes, ranks);
    assert_int_equal(insts, ranks * (int)number(report, "instructions"));
    assert_true(most > 0 && most <= number(report, "memory"));
}

static void test_recipes(void **state)
{
    (void)state;
    static const char *const clusters[] = {"1x8xV100", "2x4xH100", "1x8xCPU"};
    sf_graph *graph;
    int tried = 0;
    assert_int_equal(sf_load("examples/gpt-micro.hlo", NULL, NULL, &graph), SF_OK);
    for (int i = 0; i < RECIPES; i++)
        for (int k = 0; k < 3; k++) {
            texts t;
            sf_arena arena = {0};
            if (!simulate(graph, recipes[i], clusters[k], 1 + k, &t))
                continue;
            tried++;
            const sf_json *report = parse(&t.report, &arena);
            check_report(report, parse(&t.explained, &arena));
            check_trace(parse(&t.trace, &arena), report, 1 + k);
            sf_arena_free(&arena);
            free_texts(&t);
        }
    assert_true(tried >= 6);
    sf_graph_free(graph);
}

static void test_misuse(void **state)
{
    (void)state;
    sf_graph *graph;
    sf_plan *plan;
    sf_cluster *cluster;
    sf_plan_spec pin = {.size = sizeof pin, .recipe = "dp", .ranks = 2};
    sf_sim_options few = {.size = sizeof few, .ranks = -1};
    assert_int_equal(sf_load("examples/gpt-micro.hlo", NULL, NULL, &graph), SF_OK);
    assert_int_equal(sf_pin_step(graph, &pin, NULL, &plan), SF_OK);
    assert_int_equal(sf_cluster_open("1x4xCPU", NULL, &cluster), SF_OK);
    assert_int_equal(sf_plan_simulate(plan, graph, NULL, NULL, NULL, NULL, NULL), SF_EUSAGE);
    assert_int_equal(sf_plan_simulate(plan, graph, cluster, NULL, NULL, NULL, NULL), SF_EUSAGE);
    assert_int_equal(sf_plan_simulate(plan, graph, cluster, &few, NULL, NULL, NULL), SF_EUSAGE);
    sf_cluster_free(cluster);
    sf_plan_free(plan);
    sf_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recipes),
        cmocka_unit_test(test_misuse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
