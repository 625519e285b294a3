/* Plans that people found by hand, found by the search, on a GPT whose sizes ask for each of them
 * (test/data/plan/make_steps.py). test/cli/plan_large.sh does the like for models of real size. */
#include <math.h>
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

/* A step with what was found for it. */
typedef struct finding {
    sf_graph *graph;
    sf_plan *plan; /* NULL when nothing fits */
    sf_arena arena;
    sf_names names;
} finding;

static void load(const char *name, finding *f)
{
    *f = (finding){.graph = test_step_of("plan", name)};
    f->names = sf_names_of(f->graph, &f->arena);
}

static void unload(finding *f)
{
    sf_plan_free(f->plan);
    sf_arena_free(&f->arena);
    sf_graph_free(f->graph);
}

/* Replaces the plan by one that the specification asks for. */
static void search_by(finding *f, const char *cluster_name, const sf_plan_spec *spec, int level,
                      double margin)
{
    sf_diag *diag = sf_diag_new();
    sf_cluster *cluster;
    assert_int_equal(sf_cluster_open(cluster_name, diag, &cluster), SF_OK);
    sf_plan_options options = {
        .size = sizeof options, .cluster = cluster, .margin = margin, .level = level};
    sf_plan_free(f->plan);
    f->plan = NULL;
    sf_status status = sf_plan_search(f->graph, spec, &options, diag, &f->plan);
    if (status != SF_OK && status != SF_EMISMATCH)
        fail_msg("%s", sf_diag_text(diag, 0));
    sf_cluster_free(cluster);
    sf_diag_free(diag);
}

static sf_plan_spec in_space(int64_t memory)
{
    return (sf_plan_spec){.size = sizeof(sf_plan_spec),
                          .memory = memory,
                          .recompute = "none",
                          .micro_batches = 1,
                          .co_shard = "none",
                          .passes = "none"};
}

static void search(finding *f, const char *cluster_name, int level, int64_t memory, double margin)
{
    sf_plan_spec spec = in_space(memory);
    search_by(f, cluster_name, &spec, level, margin);
}

/* All arguments that the pattern matches, and there are so many, have this share along every axis. */
static void check_shares(finding *f, const char *pattern, size_t many, sf_share_kind kind, int dim)
{
    size_t count;
    const sf_named **found = sf_names_match(&f->names, pattern, &f->arena, &count);
    assert_int_equal(count, many);
    for (size_t i = 0; i < count; i++) {
        const sf_layout *layout = sf_plan_layout(f->plan, f->graph, found[i]->first);
        for (int a = 0; a < f->plan->mesh.naxes; a++)
            if (layout->axes[a].kind != kind || (kind == SF_SPLIT && layout->axes[a].dim != dim))
                fail_msg("%s is not %s(%d) along axis %d", found[i]->name,
                         kind == SF_SPLIT ? "S" : "R", dim, a);
    }
}

/* One long sequence: tokens are split, and no weights but the positions, which are tokens. Every layer gathers
 * its keys and values, and sums up their gradients. */
static void test_long_sequence(void **state)
{
    (void)state;
    finding f;
    load("gpt-long", &f);
    search(&f, "1x8xV100", 3, 0, SF_PLAN_MARGIN);
    assert_non_null(f.plan);
    check_shares(&f, "/batch/*", 2, SF_SPLIT, 1);
    check_shares(&f, "/params/layer_*", 32, SF_REPLICATED, 0);
    check_shares(&f, "/params/wte/*", 1, SF_REPLICATED, 0);
    check_shares(&f, "/layer_?/mlp/up", 2, SF_SPLIT, 1);
    sf_local *local = test_local(f.graph, f.plan, 0);
    const int64_t keys = INT64_C(16384) * 512 * 4;
    int gathered = 0, scattered = 0;
    for (int i = 0; test_collective(local, i); i++) {
        const sf_node *node = test_collective(local, i);
        int64_t taken = sf_type_bytes(sf_type_of(local->graph, node->operands[0]));
        int64_t made = sf_type_bytes(sf_type_of(local->graph, node->result));
        assert_true(taken <= keys && made <= keys);
        gathered += strcmp(node->def->name, "all_gather") == 0 && made == keys;
        scattered += strcmp(node->def->name, "reduce_scatter") == 0 && taken == keys;
    }
    assert_int_equal(gathered, 4);
    assert_int_equal(scattered, 4);
    sf_local_free(local);
    unload(&f);
}

/* Reductions in a block of a layer, in one phase. */
static int count_reductions(const sf_local *local, const char *block, sf_phase phase)
{
    int count = 0;
    for (int i = 0; test_collective(local, i); i++) {
        const sf_node *node = test_collective(local, i);
        if (strncmp(node->scope->path, block, strlen(block)) != 0 || node->phase != phase)
            continue;
        assert_string_equal(node->def->name, "all_reduce");
        count++;
    }
    return count;
}

/* Few tokens on large weights: heads and columns, then rows, and one reduction a block and direction. What else
 * is sent is the embedding, the logits and the gradient of the last. */
static void test_megatron(void **state)
{
    (void)state;
    static const char *const blocks[] = {"layer_0/attn", "layer_0/mlp", "layer_1/attn",
                                         "layer_1/mlp"};
    finding f;
    load("gpt-wide", &f);
    search(&f, "1x8xV100", 3, 0, SF_PLAN_MARGIN);
    assert_non_null(f.plan);
    for (const char *name = "qkv"; *name; name++) {
        char pattern[64];
        snprintf(pattern, sizeof pattern, "/*/layer_?/attn/%c/kernel", *name);
        check_shares(&f, pattern, 8, SF_SPLIT, 1);
    }
    check_shares(&f, "/*/layer_?/attn/o/kernel", 8, SF_SPLIT, 0);
    check_shares(&f, "/*/layer_?/up/kernel", 8, SF_SPLIT, 1);
    check_shares(&f, "/*/layer_?/down/kernel", 8, SF_SPLIT, 0);
    sf_local *local = test_local(f.graph, f.plan, 0);
    int all = 0;
    while (test_collective(local, all))
        all++;
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        assert_int_equal(count_reductions(local, blocks[i], SF_FORWARD), 1);
        assert_int_equal(count_reductions(local, blocks[i], SF_BACKWARD), 1);
    }
    assert_int_equal(all, 8 + 3);
    sf_local_free(local);
    unload(&f);
}

/* What a plan splits of one role. */
typedef struct state_split {
    int count;
    int64_t bytes;                                  /* of the whole tensors that are split */
    int64_t smallest_split, largest_whole, largest; /* tensors */
} state_split;

static state_split measure(const finding *f, sf_role role)
{
    state_split s = {.smallest_split = INT64_MAX};
    for (uint32_t i = 0; i < f->graph->top->narguments; i++) {
        int64_t bytes = sf_type_bytes(sf_argument_type(f->graph, i));
        if (f->graph->arguments[i].role != role)
            continue;
        s.largest = bytes > s.largest ? bytes : s.largest;
        if (sf_layout_is_replicated(&f->plan->arguments[i])) {
            s.largest_whole = bytes > s.largest_whole ? bytes : s.largest_whole;
            continue;
        }
        s.smallest_split = bytes < s.smallest_split ? bytes : s.smallest_split;
        s.bytes += bytes;
        s.count++;
    }
    return s;
}

static void check_data_parallel(finding *f)
{
    assert_int_equal(f->plan->mesh.naxes, 1);
    check_shares(f, "/batch/*", 2, SF_SPLIT, 0);
    check_shares(f, "/params/*", 36, SF_REPLICATED, 0);
}

/* A large batch: data parallel. On more devices no less of the optimizer's state is worth splitting, as updates of
 * all of it do not get faster: on two next to nothing (Rhino, 7.3). */
static void test_strong_scaling(void **state)
{
    (void)state;
    static const char *const clusters[] = {"1x2xV100", "1x4xV100", "1x8xV100"};
    int counts[3];
    int64_t memory = INT64_MAX;
    finding f;
    load("gpt-batch", &f);
    for (int i = 0; i < 3; i++) {
        search(&f, clusters[i], 2, 0, SF_PLAN_MARGIN);
        assert_non_null(f.plan);
        check_data_parallel(&f);
        state_split opt = measure(&f, SF_ROLE_STATE);
        assert_true(opt.smallest_split >= opt.largest_whole);
        assert_true(f.plan->predicted->memory < memory);
        memory = f.plan->predicted->memory;
        counts[i] = opt.count;
    }
    assert_true(counts[0] <= 2); /* the embedding, if anything */
    assert_true(counts[0] <= counts[1] && counts[1] <= counts[2]);
    unload(&f);
}

/* Less memory: ZeRO, on the large tensors alone, and never on fewer of them with less memory. (Gathers go on beside what is
 * computed, so to split all of them costs little more than to split some.) In the short version, test/cli/plan.sh does the
 * like for a smaller step. */
static void test_less_memory(void **state)
{
    (void)state;
    static const int64_t limits[] = {1000, 640, 560};
    enum { LIMITS = sizeof limits / sizeof *limits, SMALL = 64 /* times less than the largest */ };
    const double NEARLY =
        0.95; /* a recipe leaves small ones whole, a search may leave one that is not */
    state_split params[LIMITS], opt[LIMITS];
    double seconds = 0;
    int64_t before = 0;
    finding f;
    load("gpt-batch", &f);
    for (int i = 0; i < LIMITS; i++) {
        search(&f, "1x8xV100", 2, limits[i] << 20, SF_PLAN_MARGIN);
        assert_non_null(f.plan);
        params[i] = measure(&f, SF_ROLE_PARAM);
        opt[i] = measure(&f, SF_ROLE_STATE);
        assert_true(f.plan->predicted->memory <= limits[i] << 20);
        assert_true(f.plan->predicted->seconds >= seconds / (1 + 1.2 * SF_PLAN_MARGIN));
        assert_true(params[i].smallest_split >= params[i].largest / SMALL);
        /* A recipe leaves small state whole; a search may split it as well, which costs nothing. */
        assert_true(!*f.plan->recipe || opt[i].smallest_split >= opt[i].largest / SMALL);
        int64_t bytes = params[i].bytes + opt[i].bytes;
        assert_true(i == 0 || (double)params[i].bytes >= NEARLY * (double)params[i - 1].bytes);
        assert_true((double)bytes >= NEARLY * (double)before);
        before = bytes;
        seconds = f.plan->predicted->seconds;
    }
    assert_true(params[0].count <= 1); /* the embedding, if anything */
    if (params[1].count == 0 || params[2].count < params[1].count)
        fail_msg("%d and %d parameters are split", params[1].count, params[2].count);
    unload(&f);
}

/* By their prices all plans take more than this; what is lowered does not. In the long version, as above. */
static void test_price_too_high(void **state)
{
    (void)state;
    const int64_t limit = INT64_C(675) << 20;
    finding f;
    load("gpt-batch", &f);
    search(&f, "1x8xV100", 2, limit, SF_PLAN_MARGIN);
    assert_non_null(f.plan);
    assert_true(f.plan->predicted->memory <= limit);
    search(&f, "1x8xV100", 2, limit / 2, SF_PLAN_MARGIN);
    assert_null(f.plan);
    unload(&f);
}

/* What fits in less fits in more: above a limit within which there is a plan there is one, and none that is slower by more than
 * the search is content with. In space alone, and as plans are looked for unless something is said. */
static void test_more_memory(void **state)
{
    (void)state;
    static const struct {
        bool in_space;
        int64_t limit; /* MiB */
        double slower; /* than the one before, at most */
    } rows[] = {
        {true, 660, HUGE_VAL}, {true, 690, 1.03}, {false, 600, HUGE_VAL}, {false, 700, 1.01}};
    double before = HUGE_VAL;
    finding f;
    load("gpt-batch", &f);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t limit = rows[i].limit << 20;
        sf_plan_spec spec = rows[i].in_space
                                ? in_space(limit)
                                : (sf_plan_spec){.size = sizeof(sf_plan_spec), .memory = limit};
        search_by(&f, "1x8xV100", &spec, 2, SF_PLAN_MARGIN);
        if (!f.plan)
            fail_msg("nothing is found within %d MiB", (int)rows[i].limit);
        print_message("%d MiB: %.2f ms\n", (int)rows[i].limit, 1e3 * f.plan->predicted->seconds);
        assert_true(f.plan->predicted->memory <= limit);
        assert_true(f.plan->predicted->seconds <= rows[i].slower * before);
        before = f.plan->predicted->seconds;
    }
    unload(&f);
}

/* By how much the searched plan is faster than the recipe decides which is taken. */
static void test_margin(void **state)
{
    (void)state;
    finding f;
    load("gpt-long", &f);
    search(&f, "1x8xV100", 2, 0, -1);
    assert_string_equal(f.plan->recipe, "");
    double best = f.plan->predicted->seconds, recipe = 1e9;
    for (int i = 0; i < f.plan->predicted->nalternatives; i++) {
        const sf_alternative *a = &f.plan->predicted->alternatives[i];
        if (strcmp(a->name, "search") != 0 && a->fits && a->seconds < recipe)
            recipe = a->seconds;
    }
    double gain = recipe / best - 1;
    assert_true(gain > 0.02);
    search(&f, "1x8xV100", 2, 0, gain - 0.01);
    assert_true(f.plan->predicted->seconds == best);
    search(&f, "1x8xV100", 2, 0, gain + 0.01);
    assert_true(fabs(f.plan->predicted->seconds - recipe) < 0.02 * recipe); /* lowered only now */
    assert_true(*f.plan->recipe);
    unload(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_long_sequence),
        cmocka_unit_test(test_megatron),
        cmocka_unit_test(test_strong_scaling),
        cmocka_unit_test(test_margin),
    };
    const struct CMUnitTest of_memory[] = {
        cmocka_unit_test(test_less_memory),
        cmocka_unit_test(test_price_too_high),
        cmocka_unit_test(test_more_memory),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed + (test_short() ? 0 : cmocka_run_group_tests(of_memory, NULL, NULL));
}
