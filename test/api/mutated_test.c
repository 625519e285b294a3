/* Files from others that somebody has edited, or a disk has damaged: whatever is in them, each reader ends, says what is wrong or
 * takes them for what they say, and what is then done with them ends as well. A plan that is accepted computes the step.
 *
 * SHEAF_MUTATIONS and SHEAF_MUTATION_SEED say how many of each kind are tried, and from which seed on; a file that was tried when
 * the process died is left in the folder that is named then. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "plan/pipeline/schedule.h"
#include "plan/plan.h"
#include "sheaf/sheaf.h"
#include "support/mutate.h"
#include "support/sanitized.h"

static char folder[] = "/tmp/sheaf-mutated-XXXXXX";
static sf_graph *step; /* small: it is verified often */
static sf_cluster *cluster;
static unsigned case_seed;

enum { MOST_SECONDS = 60 };

#define STEP "test/data/micro/mlp-micro.stablehlo.mlir.xz"
#define SIDECAR "test/data/micro/mlp-micro.json"

/* What can be edited without much of it being refused at once. */
static const char small_step[] =
    "func.func public @main(%w: tensor<8x4xf32> loc(\"params/w\"), %x: tensor<8x8xf32> "
    "loc(\"batch/x\")) -> (tensor<8x4xf32>, tensor<f32> {jax.result_info = \"loss\"}) {\n"
    "%a = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x8xf32>, "
    "tensor<8x4xf32>) -> tensor<8x4xf32> loc(\"l0/dot\")\n"
    "%b = stablehlo.tanh %a : tensor<8x4xf32>\n"
    "%c = stablehlo.reshape %b : (tensor<8x4xf32>) -> tensor<2x4x4xf32>\n"
    "%s = stablehlo.slice %c [0:2, 1:4:2, 0:4] : (tensor<2x4x4xf32>) -> tensor<2x2x4xf32>\n"
    "%t = stablehlo.transpose %s, dims = [2, 0, 1] : (tensor<2x2x4xf32>) -> tensor<4x2x2xf32>\n"
    "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
    "%l = stablehlo.reduce(%t init: %z) applies stablehlo.add across dimensions = [0, 1, 2] : "
    "(tensor<4x2x2xf32>, tensor<f32>) -> tensor<f32>\n"
    "%k = stablehlo.constant dense<[1, 2]> : tensor<2xi32>\n"
    "%g = \"stablehlo.gather\"(%w, %k) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], "
    "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = "
    "array<i64: 1, 4>}> : (tensor<8x4xf32>, tensor<2xi32>) -> tensor<2x4xf32>\n"
    "%p = stablehlo.pad %g, %z, low = [3, 0], high = [3, 0], interior = [0, 0] : "
    "(tensor<2x4xf32>, tensor<f32>) -> tensor<8x4xf32>\n"
    "%n = stablehlo.subtract %w, %p : tensor<8x4xf32>\n"
    "return %n, %l : tensor<8x4xf32>, tensor<f32>\n}\n";

static int number(const char *name, int otherwise)
{
    const char *said = getenv(name);
    return said && *said ? atoi(said) : otherwise;
}

/* Of those that are few, half is for the sanitizers: what they find is in the code that is reached. */
static int mutations(int few, int many)
{
    return number("SHEAF_MUTATIONS", !test_short() ? many : test_sanitized() ? few / 2 : few);
}

static const char *path_of(const char *name)
{
    static char path[300];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static bool drop_text(void *context, const char *text, size_t length)
{
    *(size_t *)context += text ? length : 0;
    return true;
}

static size_t dropped;
static const sf_output nowhere = {.size = sizeof nowhere, .write = drop_text, .context = &dropped};

static bool keep_text(void *context, const char *text, size_t length)
{
    sf_buf_add(context, text, length);
    return true;
}

static void put_file(const char *name, sf_str text)
{
    FILE *file = fopen(path_of(name), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text.at, 1, text.length, file), text.length);
    fclose(file);
}

static sf_str read_whole(const char *path, sf_arena *arena)
{
    sf_str text;
    assert_int_equal(sf_file_read(path, arena, 0, &text, NULL), SF_OK);
    return text;
}

/* A file that was refused says why, and no reason is empty. */
static void judge(sf_status status, sf_diag *diag)
{
    if (status == SF_OK)
        return;
    if (sf_diag_count(diag) == 0 || !*sf_diag_text(diag, 0))
        fail_msg("refused without a reason");
}

/* The kinds of files */

typedef void mutator(sf_str text, uint64_t seed, sf_buf *out);

static void mutate_json(sf_str text, uint64_t seed, sf_buf *out)
{
    if (seed % 16 == 0)
        test_mutate_bytes(text, seed, out);
    else if (!test_mutate_json(text, seed, out))
        test_mutate_text(text, seed, out);
}

static void mutate_lines(sf_str text, uint64_t seed, sf_buf *out)
{
    if (seed % 8 == 0)
        test_mutate_bytes(text, seed, out);
    else
        test_mutate_text(text, seed, out);
}

/* Counted by kind: what was accepted at all. A mutator all of whose files are refused tests little. */
typedef struct tally {
    int tried, accepted;
} tally;

typedef bool taker(sf_str text, void *context); /* whether it was accepted */

static tally try_all(sf_str good, mutator *mutate, taker *take, void *context, int cases)
{
    tally t = {0};
    unsigned first = (unsigned)number("SHEAF_MUTATION_SEED", 1);
    for (unsigned seed = first; seed < first + (unsigned)cases; seed++) {
        sf_buf text = {0};
        case_seed = seed;
        mutate(good, seed, &text);
        put_file("case", (sf_str){text.text ? text.text : "", text.length});
        alarm(MOST_SECONDS);
        t.tried++;
        t.accepted += take((sf_str){text.text ? text.text : "", text.length}, context);
        alarm(0);
        sf_buf_free(&text);
    }
    return t;
}

static void say(const char *what, tally t)
{
    printf("%s: %d tried, %d accepted\n", what, t.tried, t.accepted);
}

/* Plans */

typedef struct plan_work {
    sf_graph *graph;
    uint64_t original; /* a hash of the text, as it is written back */
    int simulated, verified, most;
} plan_work;

static uint64_t hash_plan(const sf_plan *plan, const sf_graph *graph)
{
    sf_buf text = {0};
    sf_plan_write(plan, graph, NULL, &text);
    uint64_t hash = 5381;
    for (size_t i = 0; i < text.length; i++)
        hash = hash * 33 + (unsigned char)text.text[i];
    sf_buf_free(&text);
    return hash;
}

static void verify(plan_work *work, const sf_plan *plan)
{
    sf_verify_options options = {.size = sizeof options,
                                 .engine = "cpu",
                                 .threads = 1,
                                 .steps = 1,
                                 .check = true,
                                 .limit = 30};
    sf_verify_report *report = NULL;
    sf_diag *diag = sf_diag_new();
    sf_status status = sf_verify_plan(work->graph, plan, &options, diag, &report);
    judge(status, diag);
    if (status == SF_EMISMATCH && report)
        fail_msg("case %u: an accepted plan computes something else: %s", case_seed,
                 sf_diag_text(diag, 0));
    sf_verify_free(report);
    sf_diag_free(diag);
    work->verified++;
}

static bool take_plan(sf_str text, void *context)
{
    enum { MOST_RANKS = 16 };
    plan_work *work = context;
    sf_plan *plan = NULL;
    sf_diag *diag = sf_diag_new();
    (void)text;
    sf_status status = sf_plan_load(work->graph, path_of("case"), diag, &plan);
    judge(status, diag);
    sf_plan_origin origin = {.size = sizeof origin};
    sf_plan_origin_of(path_of("case"), NULL, &origin);
    bool accepted = status == SF_OK;
    if (accepted && sf_plan_ranks(plan) <= MOST_RANKS) {
        bool changed = hash_plan(plan, work->graph) != work->original;
        sf_plan_show(plan, work->graph, NULL, &nowhere, NULL);
        status = sf_plan_check(plan, work->graph, 0, diag);
        judge(status, diag);
        accepted = status == SF_OK;
        if (accepted) {
            status = sf_plan_simulate(plan, work->graph, cluster, NULL, NULL, &nowhere, diag);
            judge(status, diag);
            work->simulated += status == SF_OK;
            judge(sf_plan_explain(plan, work->graph, cluster, NULL, NULL, &nowhere, diag), diag);
        }
        if (accepted && changed && work->verified < work->most)
            verify(work, plan);
    }
    sf_plan_free(plan);
    sf_diag_free(diag);
    return accepted;
}

static void test_plans(void **state)
{
    static const char *const pins[] = {"*/kernel=S(1)@model", "*=R@data"};
    static const char *const batch = "batch*=S(0)@data";
    const sf_plan_spec specs[] = {
        {.size = sizeof(sf_plan_spec), .recipe = "dp", .ranks = 4, .micro_batches = 2},
        {.size = sizeof(sf_plan_spec),
         .recipe = "zero3",
         .ranks = 4,
         .recompute = "full",
         .passes = "fsdp,prefetch"},
        {.size = sizeof(sf_plan_spec), .mesh = "data=2,model=2", .pins = pins, .npins = 2},
        {.size = sizeof(sf_plan_spec),
         .mesh = "pipe=2,data=2",
         .pins = &batch,
         .npins = 1,
         .stages = "2",
         .micro_batches = 4,
         .schedule = "1f1b"},
        {.size = sizeof(sf_plan_spec),
         .recipe = "dp",
         .ranks = 4,
         .stages = "2",
         .micro_batches = 2,
         .schedule = "gpipe"},
    };
    int accepted = 0;
    (void)state;
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        sf_plan *plan;
        sf_buf text = {0};
        sf_diag *diag = sf_diag_new();
        if (sf_pin_step(step, &specs[i], diag, &plan) != SF_OK)
            fail_msg("%s", sf_diag_text(diag, 0));
        plan_work work = {
            .graph = step, .original = hash_plan(plan, step), .most = mutations(6, 200)};
        sf_plan_save(plan, step,
                     &(sf_output){.size = sizeof(sf_output), .write = keep_text, .context = &text},
                     NULL);
        sf_plan_free(plan);
        tally t = try_all((sf_str){text.text, text.length}, mutate_json, take_plan, &work,
                          mutations(100, 4000));
        say("plan", t);
        printf("simulated: %d, verified: %d\n", work.simulated, work.verified);
        accepted += work.simulated * work.verified;
        sf_buf_free(&text);
        sf_diag_free(diag);
    }
    assert_true(accepted > 0);
}

/* Clusters, and a plan simulated there */

static bool take_cluster(sf_str text, void *context)
{
    const sf_plan *plan = context;
    sf_cluster *read = NULL;
    sf_diag *diag = sf_diag_new();
    (void)text;
    char path[320];
    snprintf(path, sizeof path, "%s/case", folder);
    sf_status status = sf_cluster_open(path, diag, &read);
    judge(status, diag);
    if (status == SF_OK) {
        sf_cluster_show(read, NULL, &nowhere, NULL);
        sf_cluster_save(read, &nowhere, NULL);
        judge(sf_plan_simulate(plan, step, read, NULL, NULL, &nowhere, diag), diag);
        if (case_seed % 8 == 0 && sf_cluster_devices(read) <= 8) {
            sf_plan_options options = {
                .size = sizeof options, .cluster = read, .level = 2, .threads = 1};
            sf_plan *found = NULL;
            judge(sf_plan_search(step, NULL, &options, diag, &found), diag);
            sf_plan_free(found);
        }
    }
    sf_cluster_free(read);
    sf_diag_free(diag);
    return status == SF_OK;
}

static void test_clusters(void **state)
{
    static const char *const names[] = {"2x2xV100", "rhino-m8", "4xH100"};
    (void)state;
    sf_plan_spec spec = {.size = sizeof spec, .recipe = "dp", .ranks = 4};
    sf_plan *plan;
    assert_int_equal(sf_pin_step(step, &spec, NULL, &plan), SF_OK);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        sf_cluster *good;
        sf_buf text = {0};
        assert_int_equal(sf_cluster_open(names[i], NULL, &good), SF_OK);
        sf_cluster_save(
            good, &(sf_output){.size = sizeof(sf_output), .write = keep_text, .context = &text},
            NULL);
        sf_cluster_free(good);
        tally t = try_all((sf_str){text.text, text.length}, mutate_json, take_cluster, plan,
                          mutations(100, 4000));
        say(names[i], t);
        assert_true(t.accepted > 0);
        sf_buf_free(&text);
    }
    sf_plan_free(plan);
}

/* Steps and sidecars */

static bool use_graph(sf_graph *graph)
{
    sf_diag *diag = sf_diag_new();
    sf_show(graph, NULL, &nowhere, NULL);
    judge(sf_show_program(graph, &nowhere, diag), diag);
    sf_plan_spec spec = {.size = sizeof spec, .recipe = "dp", .ranks = 4};
    sf_plan *plan = NULL;
    sf_status status = sf_pin_step(graph, &spec, diag, &plan);
    judge(status, diag);
    if (status == SF_OK)
        judge(sf_plan_check(plan, graph, 0, diag), diag);
    sf_plan_free(plan);
    sf_diag_free(diag);
    return true;
}

static bool take_step(sf_str text, void *context)
{
    sf_graph *graph = NULL;
    sf_diag *diag = sf_diag_new();
    sf_load_options options = {
        .size = sizeof options, .sidecar = "none", .unroll = 8, .most_nodes = 20000};
    (void)context;
    sf_status status = sf_load_text(text.at, text.length, "case", &options, diag, &graph);
    judge(status, diag);
    if (status == SF_OK)
        use_graph(graph);
    sf_graph_free(graph);
    sf_diag_free(diag);
    return status == SF_OK;
}

static bool take_sidecar(sf_str text, void *context)
{
    sf_graph *graph = NULL;
    sf_diag *diag = sf_diag_new();
    char path[320];
    (void)text;
    (void)context;
    snprintf(path, sizeof path, "%s", path_of("case"));
    sf_load_options options = {.size = sizeof options, .sidecar = path};
    sf_status status = sf_load(STEP, &options, diag, &graph);
    judge(status, diag);
    if (status == SF_OK)
        use_graph(graph);
    sf_graph_free(graph);
    sf_diag_free(diag);
    return status == SF_OK;
}

static void test_steps(void **state)
{
    static const char *const hlo[] = {"fuzz/corpus/hlo/while.hlo",
                                      "fuzz/corpus/hlo/convolution.hlo",
                                      "fuzz/corpus/hlo/gather_scatter.hlo"};
    (void)state;
    sf_arena arena = {0};
    say("stablehlo",
        try_all(sf_str_of(small_step), mutate_lines, take_step, NULL, mutations(150, 8000)));
    for (int i = 0; i < 3; i++)
        say("hlo", try_all(read_whole(hlo[i], &arena), mutate_lines, take_step, NULL,
                           mutations(60, 4000)));
    say("sidecar", try_all(read_whole(SIDECAR, &arena), mutate_json, take_sidecar, NULL,
                           mutations(150, 4000)));
    sf_arena_free(&arena);
}

/* Tables of schedules */

static bool take_schedule(sf_str text, void *context)
{
    sf_plan *plan = NULL;
    sf_diag *diag = sf_diag_new();
    plan_work *work = context;
    char path[320];
    (void)text;
    snprintf(path, sizeof path, "%s", path_of("case"));
    sf_plan_spec spec = {
        .size = sizeof spec, .stages = "2", .ranks = 2, .micro_batches = 4, .schedule = path};
    sf_status status = sf_pin_step(step, &spec, diag, &plan);
    judge(status, diag);
    if (status == SF_OK) {
        status = sf_plan_check(plan, step, 0, diag);
        judge(status, diag);
        judge(sf_plan_simulate(plan, step, cluster, NULL, NULL, &nowhere, diag), diag);
        if (status == SF_OK && hash_plan(plan, step) != work->original &&
            work->verified < work->most)
            verify(work, plan);
    }
    sf_plan_free(plan);
    sf_diag_free(diag);
    return status == SF_OK;
}

static void test_schedules(void **state)
{
    static const char *const tables[] = {
        "0: F0.0 F0.1 B0.0 F0.2 B0.1 F0.3 B0.2 B0.3\n1: F1.0 B1.0 F1.1 B1.1 F1.2 B1.2 F1.3 B1.3\n",
        "0: F0.0 F0.1 F0.2 F0.3 B0.0 B0.1 B0.2 B0.3\n1: F1.0 F1.1 F1.2 F1.3 B1.0 B1.1 B1.2 B1.3\n"};
    int accepted = 0;
    (void)state;
    for (int i = 0; i < 2; i++) {
        plan_work work = {.graph = step, .most = mutations(5, 100)};
        tally t =
            try_all(sf_str_of(tables[i]), mutate_lines, take_schedule, &work, mutations(150, 8000));
        say("schedule", t);
        printf("verified: %d\n", work.verified);
        accepted += t.accepted;
    }
    assert_true(accepted > 0);
}

/* Values and checkpoints */

static bool take_values(sf_str text, void *context)
{
    char path[320];
    sf_diag *diag = sf_diag_new();
    sf_verify_report *report = NULL;
    (void)text;
    (void)context;
    snprintf(path, sizeof path, "%s", path_of("case"));
    sf_verify_options options = {
        .size = sizeof options, .against = path, .steps = 1, .engine = "cpu", .threads = 1};
    sf_status status = sf_verify(step, &options, diag, &report);
    judge(status, diag);
    sf_verify_free(report);
    sf_diag_free(diag);
    return status == SF_OK || status == SF_EMISMATCH;
}

static sf_train_options training(const sf_plan *plan)
{
    return (sf_train_options){.size = sizeof(sf_train_options),
                              .steps = 2,
                              .data = "synthetic",
                              .engine = "cpu",
                              .threads = 1,
                              .plan = plan};
}

/* One file of a checkpoint is edited. */
typedef struct checkpoint {
    char path[320], file[700];
    const sf_plan *plan;
} checkpoint;

static bool take_checkpoint(sf_str text, void *context)
{
    const checkpoint *c = context;
    sf_diag *diag = sf_diag_new();
    FILE *file = fopen(c->file, "wb");
    assert_non_null(file);
    fwrite(text.at, 1, text.length, file);
    fclose(file);
    sf_train_options options = training(c->plan);
    options.steps = 3;
    options.resume = true;
    options.resume_from = c->path;
    sf_status status = sf_train(step, &options, diag, NULL);
    judge(status, diag);
    sf_diag_free(diag);
    return status == SF_OK;
}

/* Digests refuse nearly everything before it is looked at: so also as earlier versions were, which had none. */
static void try_without_digests(sf_str good, checkpoint *c, const char *version)
{
    sf_buf text = {0};
    const char *at = strstr(good.at, "\"version\": 3");
    assert_non_null(at);
    at += strlen("\"version\": ");
    sf_buf_printf(&text, "%.*s%s%s", (int)(at - good.at), good.at, version, at + 1);
    say("checkpoint without digests", try_all((sf_str){text.text, text.length}, mutate_json,
                                              take_checkpoint, c, mutations(80, 3000)));
    take_checkpoint(good, c);
    sf_buf_free(&text);
}

static void test_values(void **state)
{
    (void)state;
    sf_arena arena = {0};
    tally t = try_all(read_whole("test/data/micro/mlp-micro.io.safetensors", &arena),
                      test_mutate_safetensors, take_values, NULL, mutations(80, 3000));
    say("values", t);
    assert_true(t.accepted > 0);
    sf_arena_free(&arena);
}

static void test_checkpoints(void **state)
{
    static const char *const files[2][3] = {
        {"checkpoint.json", "state.safetensors", NULL},
        {"checkpoint.json", "state-00001-of-00004.safetensors", "state-00001-of-00004.json"}};
    (void)state;
    sf_plan_spec spec = {.size = sizeof spec, .recipe = "zero3", .ranks = 4};
    sf_plan *plan;
    assert_int_equal(sf_pin_step(step, &spec, NULL, &plan), SF_OK);
    for (int p = 0; p < 2; p++) {
        sf_arena arena = {0};
        checkpoint c = {.plan = p ? plan : NULL};
        snprintf(c.path, sizeof c.path, "%s/run-%d", folder, p);
        sf_train_options options = training(c.plan);
        options.save = c.path;
        sf_diag *diag = sf_diag_new();
        if (sf_train(step, &options, diag, NULL) != SF_OK)
            fail_msg("%s", sf_diag_text(diag, 0));
        sf_diag_free(diag);
        for (int f = 0; f < 3 && files[p][f]; f++) {
            snprintf(c.file, sizeof c.file, "%s/step-000002/%s", c.path, files[p][f]);
            sf_str good = read_whole(c.file, &arena);
            bool json = strstr(files[p][f], ".json") != NULL;
            tally t = try_all(good, json ? mutate_json : test_mutate_safetensors, take_checkpoint,
                              &c, mutations(80, 3000));
            say(files[p][f], t);
            assert_true(take_checkpoint(good, &c));
            if (f == 0)
                try_without_digests(good, &c, p ? "2" : "1");
        }
        sf_arena_free(&arena);
    }
    sf_plan_free(plan);
}

/* Timelines */

static bool take_timeline(sf_str text, void *context)
{
    const sf_plan *plan = context;
    sf_cluster *seen = NULL;
    sf_diag *diag = sf_diag_new();
    char path[320];
    (void)text;
    snprintf(path, sizeof path, "%s", path_of("case"));
    sf_status status = sf_cluster_measured(cluster, path, diag, &seen);
    judge(status, diag);
    if (status == SF_OK)
        judge(sf_plan_simulate(plan, step, seen, NULL, NULL, &nowhere, diag), diag);
    sf_sim_options options = {.size = sizeof options, .against = path};
    judge(sf_plan_simulate(plan, step, cluster, &options, NULL, &nowhere, diag), diag);
    sf_report_options report = {.size = sizeof report, .against = path, .threads = 1};
    if (case_seed % 16 == 0)
        judge(sf_plan_report(plan, step, cluster, &report, &nowhere, diag), diag);
    sf_cluster_free(seen);
    sf_diag_free(diag);
    return status == SF_OK;
}

static void test_timelines(void **state)
{
    (void)state;
    sf_plan_spec spec = {.size = sizeof spec, .recipe = "zero3", .ranks = 4};
    sf_plan *plan;
    sf_buf text = {0};
    sf_output trace = {.size = sizeof trace, .write = keep_text, .context = &text};
    assert_int_equal(sf_pin_step(step, &spec, NULL, &plan), SF_OK);
    sf_train_options options = training(plan);
    options.trace = &trace;
    assert_int_equal(sf_train(step, &options, NULL, NULL), SF_OK);
    tally t = try_all((sf_str){text.text, text.length}, mutate_json, take_timeline, plan,
                      mutations(100, 4000));
    say("timeline", t);
    sf_buf_free(&text);
    sf_plan_free(plan);
}

/* Problems of the solver, and logs of tuning */

static bool take_problem(sf_str text, void *context)
{
    sf_choices *choices = NULL;
    sf_solution *solution = NULL;
    sf_diag *diag = sf_diag_new();
    (void)text;
    (void)context;
    sf_status status = sf_choices_load(path_of("case"), diag, &choices);
    judge(status, diag);
    sf_solve_options options = {.size = sizeof options, .work = 100000, .threads = 1};
    if (status == SF_OK)
        judge(sf_choices_solve(choices, &options, diag, &solution), diag);
    sf_solution_free(solution);
    sf_choices_free(choices);
    sf_diag_free(diag);
    return status == SF_OK;
}

static sf_status apply_setting(void *context, sf_settings *settings, sf_primitives *list,
                               sf_diag *diag)
{
    int64_t data;
    char mesh[32];
    (void)context;
    SF_TRY(sf_settings_int(settings, "data", 1, 2, 1, diag, &data));
    snprintf(mesh, sizeof mesh, "data=%d,model=%d", (int)data, 4 / (int)data);
    const sf_primitive said = {
        .size = sizeof said, .kind = SF_PRIMITIVE_SET, .name = "mesh", .value = mesh};
    return sf_primitives_add(list, &said, diag, NULL);
}

static sf_status tune(sf_diag *diag)
{
    char path[320];
    sf_tune_report *report = NULL;
    snprintf(path, sizeof path, "%s", path_of("case"));
    sf_tune_options options = {.size = sizeof options,
                               .cluster = cluster,
                               .algorithm = "exhaustive",
                               .threads = 1,
                               .log = path};
    sf_status status = sf_tune(step, apply_setting, NULL, &options, diag, &report);
    if (report)
        sf_tune_page(report, "page", &nowhere, NULL);
    sf_tune_free(report);
    return status;
}

static bool take_log(sf_str text, void *context)
{
    sf_diag *diag = sf_diag_new();
    (void)text;
    (void)context;
    sf_status status = tune(diag);
    judge(status, diag);
    sf_diag_free(diag);
    return status == SF_OK;
}

static void test_problems_and_logs(void **state)
{
    (void)state;
    sf_arena arena = {0};
    sf_str problem = read_whole("fuzz/corpus/choices/small.json", &arena);
    say("problem", try_all(problem, mutate_json, take_problem, NULL, mutations(200, 8000)));
    unlink(path_of("case"));
    sf_diag *diag = sf_diag_new();
    if (tune(diag) != SF_OK)
        fail_msg("%s", sf_diag_text(diag, 0));
    sf_diag_free(diag);
    sf_str log = read_whole(path_of("case"), &arena);
    say("log", try_all(log, mutate_lines, take_log, NULL, mutations(100, 3000)));
    sf_arena_free(&arena);
}

static void too_long(int signal)
{
    static const char said[] = "a file made a reader hang: see the folder /tmp/sheaf-mutated-*\n";
    (void)signal;
    if (write(STDERR_FILENO, said, sizeof said - 1) > 0)
        abort();
}

static int set_up(void **state)
{
    (void)state;
    signal(SIGALRM, too_long);
    if (!mkdtemp(folder))
        return -1;
    sf_load_options options = {.size = sizeof options, .sidecar = SIDECAR};
    return sf_load(STEP, &options, NULL, &step) == SF_OK &&
                   sf_cluster_open("2x2xV100", NULL, &cluster) == SF_OK
               ? 0
               : -1;
}

static int tear_down(void **state)
{
    char command[64];
    (void)state;
    sf_graph_free(step);
    sf_cluster_free(cluster);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plans),       cmocka_unit_test(test_clusters),
        cmocka_unit_test(test_steps),       cmocka_unit_test(test_schedules),
        cmocka_unit_test(test_checkpoints), cmocka_unit_test(test_values),
        cmocka_unit_test(test_timelines),   cmocka_unit_test(test_problems_and_logs),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
