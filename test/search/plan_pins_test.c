/* Pins in a search: what they force or forbid holds in every plan, with and without a mesh, and what cannot hold is refused with
 * a reason. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ir/name.h"
#include "plan/pin.h"
#include "sheaf/sheaf.h"
#include "support/plans.h"
#include "support/sanitized.h"

enum { MOST_PINS = 4 };

static sf_graph *graph;
static sf_arena arena;
static sf_names names;

/* Ways to search. In the short version, the last alone. */
static const struct way {
    const char *mesh;
    bool recipes;
    int level;
} ways[] = {{NULL, false, 3}, {NULL, true, 3}, {NULL, false, 2}, {"data=2,model=2", false, 3}};
enum { WAYS = sizeof ways / sizeof *ways };

/* The plan, or NULL and why there is none. */
static sf_plan *search(const struct way *way, const char *cluster_name, int threads,
                       const char *const pins[MOST_PINS], test_refusal *refusal)
{
    sf_diag *diag = sf_diag_new();
    sf_cluster *cluster;
    sf_plan *plan = NULL;
    assert_int_equal(sf_cluster_open(cluster_name, diag, &cluster), SF_OK);
    sf_plan_spec spec = {.size = sizeof spec, .mesh = way->mesh, .pins = pins, .stages = "1"};
    while (spec.npins < MOST_PINS && pins[spec.npins])
        spec.npins++;
    sf_plan_options options = {.size = sizeof options,
                               .cluster = cluster,
                               .level = way->level,
                               .recipes = way->recipes,
                               .threads = threads};
    refusal->status = sf_plan_search(graph, &spec, &options, diag, &plan);
    for (int i = 0, at = 0; i < sf_diag_count(diag); i++)
        at += snprintf(refusal->text + at, sizeof refusal->text - (size_t)at, "%s\n",
                       sf_diag_text(diag, i));
    sf_cluster_free(cluster);
    sf_diag_free(diag);
    return plan;
}

static sf_plan *found(const struct way *way, const char *cluster, int threads,
                      const char *const pins[MOST_PINS])
{
    test_refusal refusal;
    sf_plan *plan = search(way, cluster, threads, pins, &refusal);
    if (!plan)
        fail_msg("%s: %s", pins[0], refusal.text);
    return plan;
}

/* Where a value is split: a bit for each dimension. */
static unsigned split_dims(const sf_plan *plan, sf_value value)
{
    const sf_layout *layout = sf_plan_layout(plan, graph, value);
    unsigned dims = 0;
    for (int a = 0; a < plan->mesh.naxes; a++)
        dims |= layout->axes[a].kind == SF_SPLIT ? 1u << layout->axes[a].dim : 0;
    return dims;
}

/* The same of all arguments that the pattern matches, and of those along one axis; NULL: any. */
static void check_split(const sf_plan *plan, const char *pattern, const char *axis, unsigned dims)
{
    size_t count;
    const sf_named **matched = sf_names_match(&names, pattern, &arena, &count);
    assert_true(count > 0);
    for (size_t i = 0; i < count; i++) {
        unsigned are = split_dims(plan, matched[i]->first);
        const sf_layout *layout = sf_plan_layout(plan, graph, matched[i]->first);
        for (int a = 0; a < plan->mesh.naxes && axis; a++)
            if (strcmp(plan->mesh.axes[a].name, axis) == 0)
                are = layout->axes[a].kind == SF_SPLIT ? 1u << layout->axes[a].dim : 0;
        if (are != dims)
            fail_msg("%s is split by dimensions %x, not %x", matched[i]->name, are, dims);
    }
}

static void test_whole_or_split(void **state)
{
    (void)state;
    static const struct {
        const char *pins[MOST_PINS], *pattern;
        unsigned dims;
    } rows[] = {
        {{"batch/*=R@*"}, "/batch/*", 0},
        {{"/params/*=R@*"}, "/params/*", 0},
        {{"mlp/up/kernel=S(0)@*", "wte/embedding=S(1)@*"}, "/params/layer_?/mlp/up/kernel", 1},
        {{"mlp/up/kernel=S(0)@*", "wte/embedding=S(1)@*"}, "/opt/0/mu/params/*/mlp/up/kernel", 1},
        {{"mlp/up/kernel=S(0)@*", "wte/embedding=S(1)@*"}, "/params/wte/embedding", 2},
    };
    const char *const *before = NULL;
    for (int w = test_short() ? WAYS - 1 : 0; w < WAYS; w++) {
        sf_plan *plan = NULL;
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            if (!before || !plan || before[0] != rows[i].pins[0]) {
                sf_plan_free(plan);
                plan = found(&ways[w], "2x2xV100", 0, rows[i].pins);
            }
            before = rows[i].pins;
            check_split(plan, rows[i].pattern, NULL, rows[i].dims);
        }
        sf_plan_free(plan);
    }
}

/* Of arguments, and of what is computed. */
static void test_forbidden(void **state)
{
    (void)state;
    for (int w = test_short() ? WAYS - 1 : 0; w < WAYS; w++) {
        sf_plan *plan =
            found(&ways[w], "2x2xV100", 0, (const char *[MOST_PINS]){"batch/*=!S(0)@*"});
        size_t count;
        const sf_named **ids = sf_names_match(&names, "/batch/ids", &arena, &count);
        assert_int_equal(split_dims(plan, ids[0]->first) & 1, 0);
        sf_plan_free(plan);
        plan = found(&ways[w], "2x2xV100", 0, (const char *[MOST_PINS]){"layer_*/attn*=R@*"});
        int seen = 0;
        for (uint32_t i = 0; i < graph->top->nnodes; i++) {
            const sf_node *node = sf_top_node(graph, i);
            if (node->phase != SF_FORWARD || strncmp(node->scope->path, "layer_", 6) != 0 ||
                !strstr(node->scope->path, "/attn"))
                continue;
            assert_int_equal(split_dims(plan, node->result), 0);
            seen++;
        }
        assert_true(seen > 10);
        sf_plan_free(plan);
    }
}

/* The mesh has the axes that pins name, and the plan keeps its pins. */
static void test_axes(void **state)
{
    (void)state;
    static const char *const pins[MOST_PINS] = {"batch/*=S(0)@data", "mlp/up/kernel=S(1)@model",
                                                "mlp/down/kernel=!S(1)@*"};
    for (int w = test_short() ? WAYS - 1 : 0; w < WAYS; w++) {
        sf_plan *plan = found(&ways[w], "2x2xV100", 0, pins);
        check_split(plan, "/batch/ids", "data", 1);
        check_split(plan, "/params/*/mlp/up/kernel", "model", 2);
        size_t count;
        const sf_named **down = sf_names_match(&names, "/params/*/mlp/down/kernel", &arena, &count);
        for (size_t i = 0; i < count; i++)
            assert_int_equal(split_dims(plan, down[i]->first) & 2, 0);
        sf_buf text = {0};
        sf_plan_write(plan, graph, NULL, &text);
        for (int i = 0; pins[i]; i++)
            assert_non_null(strstr(text.text, pins[i]));
        sf_buf_free(&text);
        sf_plan_free(plan);
    }
    /* An axis that no recipe has. */
    const char *cluster = test_short() ? "1x2xV100" : "2x2xV100";
    sf_plan *plan =
        found(&ways[0], cluster, 0,
              (const char *[MOST_PINS]){"mlp/up/kernel=S(1)@tp", "wte/embedding=!S(0)@*"});
    check_split(plan, "/params/*/mlp/up/kernel", "tp", 2);
    sf_local_free(test_local(graph, plan, 0));
    sf_plan_free(plan);
}

/* Of a step that is fastest on one device: its axis has several ranks all the same, or the pin would split into one part. */
static void test_parts(void **state)
{
    (void)state;
    static const char *const pins[] = {"mlp/up/kernel=S(1)@*", "batch/ids=S(0)@*",
                                       "mlp/up/kernel=S(1)@tp"};
    for (size_t p = 0; p < sizeof pins / sizeof *pins; p++) {
        sf_plan *plan = found(&ways[0], "1x2xV100", 0, (const char *[MOST_PINS]){pins[p]});
        size_t count;
        const sf_named **split = sf_names_match(
            &names, p == 1 ? "/batch/ids" : "/params/*/mlp/up/kernel", &arena, &count);
        for (size_t i = 0; i < count; i++) {
            const sf_layout *layout = sf_plan_layout(plan, graph, split[i]->first);
            const sf_type *type = sf_type_of(graph, split[i]->first);
            assert_int_equal(sf_shard_bytes(type, layout, &plan->mesh), sf_type_bytes(type) / 2);
        }
        sf_plan_free(plan);
    }
}

/* Exceptions come first. */
static void test_exceptions(void **state)
{
    (void)state;
    sf_plan *plan = found(&ways[WAYS - 1], "2x2xV100", 0,
                          (const char *[MOST_PINS]){"/params/layer_0/mlp/up/kernel=R@*",
                                                    "/params/*/mlp/up/kernel=S(1)@*"});
    check_split(plan, "/params/layer_0/mlp/up/kernel", NULL, 0);
    check_split(plan, "/params/layer_1/mlp/up/kernel", NULL, 2);
    sf_plan_free(plan);
}

/* The same plan from one thread and from several. */
static void test_threads(void **state)
{
    (void)state;
    sf_buf texts[2] = {0};
    for (int i = 0; i < 2; i++) {
        sf_plan *plan =
            found(&ways[0], test_short() ? "1x2xV100" : "2x2xV100", 1 + 3 * i,
                  (const char *[MOST_PINS]){"mlp/up/kernel=S(1)@*", "batch/*=S(0)@data"});
        sf_plan_write(plan, graph, NULL, &texts[i]);
        sf_plan_free(plan);
    }
    assert_string_equal(texts[0].text, texts[1].text);
    for (int i = 0; i < 2; i++)
        sf_buf_free(&texts[i]);
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *cluster, *pins[MOST_PINS], *text;
    } rows[] = {
        {"2x2xV100", {"nothing=S(0)@*"}, "matches no argument, gradient or scope"},
        {"2x2xV100", {"mlp/up/kernel=S(5)@*"}, "there is no dimension 5 in a tensor of rank 2"},
        {"2x2xV100", {"mlp/up/kernel=S(5)@model"}, "there is no dimension 5 in a tensor of rank 2"},
        {"2x2xV100", {"batch/ids=R@*", "batch/ids=S(0)@data"}, "contradicts pin \"batch/ids=R@*\""},
        {"2x2xV100", {"batch/ids=S(0)@*", "batch/ids=!S(0)@*"}, "no axis is left"},
        {"2x2xV100", {"a=R@a", "a=R@b", "a=R@c", "a=R@d"}, "more than three axes"},
        {"2x2xV100", {"batch/ids=!R@data"}, "only splits can be forbidden"},
        {"1x8xV100",
         {"batch/ids=S(0)@a", "batch/ids=S(0)@b", "batch/ids=S(0)@c"},
         "does not go with the others"},
        {"1x8xV100",
         {"batch/ids=S(0)@a", "batch/ids=S(0)@b", "batch/ids=S(0)@c"},
         "so it is on a=2,b=2,c=2"},
        {"1x3xV100",
         {"batch/ids=S(0)@data"},
         "dimension 0 of size 4 does not split into 3 equal parts"},
        {"1x3xV100",
         {"batch/ids=S(0)@data"},
         "so it is on data=3, and the pins hold on no other mesh of 3 devices either"},
        {"1x3xV100",
         {"batch/ids=R@a", "batch/ids=R@b"},
         "pins name 2 axes, and 3 devices cannot be cut into so many"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        test_refusal refusal;
        assert_null(search(&ways[0], rows[i].cluster, 1, rows[i].pins, &refusal));
        assert_says(refusal, SF_EUSAGE, rows[i].text);
    }
}

static int open_step(void **state)
{
    (void)state;
    assert_int_equal(sf_load("examples/gpt-micro.stablehlo.mlir", NULL, NULL, &graph), SF_OK);
    names = sf_names_of(graph, &arena);
    return 0;
}

static int close_step(void **state)
{
    (void)state;
    sf_graph_free(graph);
    sf_arena_free(&arena);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_or_split), cmocka_unit_test(test_forbidden),
        cmocka_unit_test(test_axes),           cmocka_unit_test(test_exceptions),
        cmocka_unit_test(test_threads),        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_parts),
    };
    return cmocka_run_group_tests(tests, open_step, close_step);
}
