/* The training loop through the public API: JAX's losses, callbacks, keys, and no memory. */
#include "sheaf/sheaf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "file/safetensors.h"
#include "train/train.h"

static char folder[] = "/tmp/sheaf-train-XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    char command[100];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

struct seen {
    int events[3];
    double losses[100];
    int64_t stop_at; /* 0: never */
    sf_train_progress last;
};

static bool see(void *context, const sf_event *event)
{
    struct seen *seen = context;
    seen->events[event->kind]++;
    if (event->kind == SF_EVENT_STEP && event->step <= 100)
        seen->losses[event->step - 1] = event->loss;
    seen->last = *event->train;
    return seen->stop_at == 0 || event->step < seen->stop_at;
}

static sf_train_options options_of(const char *io, struct seen *seen)
{
    return (sf_train_options){
        .size = sizeof(sf_train_options),
        .data = io,
        .init = io,
        .engine = "oracle",
        .listener = see,
        .context = seen,
    };
}

/* The micro steps, from JAX's weights on JAX's batches; those with a key get the same key in every step
 * there, so they are left out. */
static void test_losses(void **state)
{
    (void)state;
    static const char *const steps[] = {"gpt-micro", "mlp-micro", "llama-micro", "wresnet-micro"};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        char step[100], io[100];
        sf_graph *graph;
        sf_safetensors file;
        struct seen seen = {0};
        snprintf(step, sizeof step, "test/data/micro/%s.stablehlo.mlir.xz", steps[i]);
        snprintf(io, sizeof io, "test/data/micro/%s.io.safetensors", steps[i]);
        assert_int_equal(sf_load(step, NULL, NULL, &graph), SF_OK);
        assert_int_equal(sf_safetensors_read(io, NULL, &file), SF_OK);
        sf_train_options options = options_of(io, &seen);
        options.steps = 4;
        sf_train_report report = {.size = sizeof report};
        assert_int_equal(sf_train(graph, &options, NULL, &report), SF_OK);
        assert_int_equal(report.step, 4);
        assert_int_equal(seen.events[SF_EVENT_START], 1);
        assert_int_equal(seen.events[SF_EVENT_STEP], 4);
        assert_int_equal(seen.events[SF_EVENT_SAVED], 0);
        assert_true(seen.last.flops > 0 && seen.last.rate > 0 && seen.last.memory > 0);
        const sf_tensor *losses = sf_safetensors_find(&file, "losses");
        for (int k = 0; k < 4; k++) {
            double expected = sf_get_f64(losses, k);
            assert_true(fabs(seen.losses[k] - expected) < 1e-4 * fabs(expected));
        }
        sf_safetensors_close(&file);
        sf_graph_free(graph);
    }
}

static void test_stop_and_resume(void **state)
{
    (void)state;
    static const char io[] = "examples/gpt-micro.io.safetensors";
    sf_graph *graph;
    char save[100];
    struct seen whole = {0}, part = {.stop_at = 3};
    sf_train_report report = {.size = sizeof report};
    assert_int_equal(sf_load("examples/gpt-micro.hlo", NULL, NULL, &graph), SF_OK);
    sf_train_options options = options_of(io, &whole);
    options.steps = 12;
    options.order = SF_ORDER_SHUFFLED;
    assert_int_equal(sf_train(graph, &options, NULL, &report), SF_OK);
    snprintf(save, sizeof save, "%s/run", folder);
    options.context = &part;
    options.save = save;
    options.resume = true;
    assert_int_equal(sf_train(graph, &options, NULL, &report), SF_OK);
    assert_true(report.interrupted && report.step == 3 && part.events[SF_EVENT_SAVED] == 1);
    part.stop_at = 0;
    assert_int_equal(sf_train(graph, &options, NULL, &report), SF_OK);
    assert_true(!report.interrupted && report.first == 3 && report.step == 12);
    assert_memory_equal(whole.losses, part.losses, 12 * sizeof(double));
    sf_graph_free(graph);
}

/* What the step needs besides batches: --set, and a fresh key in every step. */
static void test_set_and_keys(void **state)
{
    (void)state;
    static const char text[] =
        "func.func @main(%w: tensor<f32> loc(\"params\"), %rate: tensor<f32> loc(\"rate\"), "
        "%key: tensor<2xui32> loc(\"key\")) -> (tensor<f32>, tensor<f32>) {\n"
        "  %k = stablehlo.slice %key [1:2] : (tensor<2xui32>) -> tensor<1xui32>\n"
        "  %r = stablehlo.reshape %k : (tensor<1xui32>) -> tensor<ui32>\n"
        "  %f = stablehlo.convert %r : (tensor<ui32>) -> tensor<f32>\n"
        "  %s = stablehlo.add %w, %rate : tensor<f32>\n"
        "  return %s, %f : tensor<f32>, tensor<f32>\n}\n";
    sf_load_options load = {.size = sizeof load, .state = "0=0"};
    sf_graph *graph;
    struct seen seen = {0};
    sf_diag *diag = sf_diag_new();
    sf_status status = sf_load_text(text, sizeof text - 1, "text", &load, diag, &graph);
    if (status != SF_OK)
        print_message("%s\n", sf_diag_text(diag, 0));
    assert_int_equal(status, SF_OK);
    sf_train_options options = options_of(NULL, &seen);
    options.steps = 3;
    options.seed = 7;
    options.has_seed = true;
    assert_int_equal(sf_train(graph, &options, NULL, NULL), SF_EUSAGE); /* no data, no rate */
    options.set = "rate=0.5";
    assert_int_equal(sf_train(graph, &options, NULL, NULL), SF_OK);
    uint32_t key[2], folded[2];
    sf_jax_key(7, key);
    for (uint32_t i = 0; i < 3; i++) {
        sf_jax_fold_in(key, i, folded);
        assert_true(seen.losses[i] == (double)(float)folded[1]);
    }
    static const char *const bad[] = {"rate", "rate=", "rate=x", "nobody=1", "params=1", "=1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        options.set = bad[i];
        assert_int_equal(sf_train(graph, &options, NULL, NULL), SF_EUSAGE);
    }
    sf_diag_free(diag);
    sf_graph_free(graph);
}

static int threads_of_process(void)
{
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *entry; tasks && (entry = readdir(tasks));)
        count += entry->d_name[0] != '.';
    if (tasks)
        closedir(tasks);
    return count;
}

/* A thread that was joined may be seen for a moment longer. */
static bool has_threads(int count)
{
    for (int i = 0; i < 1000 && threads_of_process() != count; i++)
        usleep(1000);
    return threads_of_process() == count;
}

/* Every allocation may fail, checkpoint and log included, and leaves neither memory nor threads. */
static void train_without_memory(const char *engine, long by_after_300)
{
    int threads = threads_of_process();
    static const char io[] = "test/data/micro/mlp-micro.io.safetensors";
    sf_graph *graph;
    char save[100], log[100];
    struct seen seen = {0};
    assert_int_equal(sf_load("test/data/micro/mlp-micro.stablehlo.mlir.xz", NULL, NULL, &graph),
                     SF_OK);
    snprintf(save, sizeof save, "%s/memory-%s", folder, engine);
    snprintf(log, sizeof log, "%s/memory.jsonl", folder);
    sf_train_options options = options_of(io, &seen);
    options.steps = 1;
    options.save = save;
    options.log = log;
    options.resume = true;
    options.engine = engine;
    options.threads = 2;
    for (long after = 0, by = 1;; after += by) {
        size_t before = sf_mem_live();
        sf_mem_fail_after(after);
        sf_status status = sf_train(graph, &options, NULL, NULL);
        sf_mem_fail_after(-1);
        assert_int_equal(sf_mem_live(), before);
        assert_true(has_threads(threads));
        if (status == SF_OK)
            break;
        assert_int_equal(status, SF_ENOMEM);
        by = after < 300 ? 1 : by_after_300;
    }
    sf_graph_free(graph);
}

static void test_without_memory(void **state)
{
    (void)state;
    train_without_memory("oracle", 17);
    train_without_memory("cpu", 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_losses),
        cmocka_unit_test(test_stop_and_resume),
        cmocka_unit_test(test_set_and_keys),
        cmocka_unit_test(test_without_memory),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
