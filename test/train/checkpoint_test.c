/* Checkpoints: what goes in comes out, what is in the way goes away, and nothing else does. */
#include "train/checkpoint.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "ir/name.h"

static sf_graph *graph, *other;
static sf_arena arena;
static const char **names;
static sf_tensor *arguments, *loaded;
static char folder[] = "/tmp/sheaf-checkpoint-XXXXXX";

static sf_tensor *make_arguments(void)
{
    sf_tensor *made = SF_ARRAY(&arena, graph->top->narguments, sf_tensor);
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        const sf_type *type = sf_argument_type(graph, i);
        made[i].type = type;
        made[i].data = sf_arena_alloc(&arena, (size_t)sf_type_bytes(type));
        for (int64_t k = 0; k < type->count; k++)
            sf_store_bits(type->dtype, made[i].data, k, (uint64_t)(i * 1000 + k));
    }
    return made;
}

static int load(void **state)
{
    (void)state;
    if (!mkdtemp(folder) ||
        sf_load("examples/gpt-micro.stablehlo.mlir", NULL, NULL, &graph) != SF_OK ||
        sf_load("test/data/micro/gpt-remat-micro.stablehlo.mlir.xz", NULL, NULL, &other) != SF_OK)
        return -1;
    names = sf_clean_names(graph, &arena);
    arguments = make_arguments();
    loaded = make_arguments();
    return 0;
}

static int unload(void **state)
{
    (void)state;
    char command[100];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    sf_graph_free(graph);
    sf_graph_free(other);
    sf_arena_free(&arena);
    return system(command);
}

static const char *path_of(const char *name)
{
    static char paths[4][200];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static sf_status save(const char *directory, int64_t step, int64_t keep)
{
    sf_checkpoints dir;
    sf_checkpoint_info info = {step, 0xfedcba9876543210, sf_graph_hash(graph), "data \"é\""};
    assert_int_equal(sf_checkpoints_open(path_of(directory), NULL, &dir), SF_OK);
    sf_rank_shards shards = sf_rank_shards_whole(graph, &arena);
    sf_state whole = {&shards, names, {.tensors = arguments}, NULL};
    sf_status status = sf_checkpoints_save(&dir, &whole, &info, keep, NULL);
    sf_checkpoints_close(&dir);
    return status;
}

static sf_status load_as(const char *path, const sf_graph *of, const char *const *called,
                         sf_checkpoint_info *info)
{
    sf_mappings mappings = {0};
    sf_rank_shards shards = sf_rank_shards_whole(of, &arena);
    sf_state whole = {&shards, called, {.tensors = loaded}, NULL};
    sf_status status = sf_checkpoint_load(path, &whole, &mappings, &arena, info, NULL);
    assert_null(mappings.newest);
    return status;
}

static sf_status read_back(const char *path, const sf_graph *of, sf_checkpoint_info *info)
{
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        memset(loaded[i].data, 0xff, (size_t)sf_type_bytes(loaded[i].type));
    return load_as(path, of, names, info);
}

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

static void test_round_trip(void **state)
{
    (void)state;
    char found[SF_PATH_SIZE];
    sf_checkpoint_info info;
    assert_int_equal(save("deep/er/run", 41, 2), SF_OK);
    assert_int_equal(sf_checkpoint_find(path_of("deep/er/run/"), found, NULL), SF_OK);
    assert_non_null(strstr(found, "/step-000041"));
    assert_int_equal(read_back(found, graph, &info), SF_OK);
    assert_int_equal(info.step, 41);
    assert_true(info.seed == 0xfedcba9876543210);
    assert_string_equal(info.data, "data \"é\"");
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        if (sf_argument_is_kept(&graph->arguments[i]))
            assert_memory_equal(arguments[i].data, loaded[i].data,
                                (size_t)sf_type_bytes(loaded[i].type));
    assert_int_equal(read_back(found, other, &info), SF_EINPUT);
    char itself[SF_PATH_SIZE];
    assert_int_equal(sf_checkpoint_find(found, itself, NULL), SF_OK);
    assert_string_equal(itself, found);
    assert_int_equal(sf_checkpoint_find(path_of("none"), found, NULL), SF_OK);
    assert_string_equal(found, "");
}

static void test_keep(void **state)
{
    (void)state;
    for (int64_t step = 1; step <= 5; step++)
        assert_int_equal(save("keep", step * 10, 2), SF_OK);
    assert_false(exists(path_of("keep/step-000030")));
    assert_true(exists(path_of("keep/step-000040")) && exists(path_of("keep/step-000050")));
    /* Going back: later ones stay, the older ones go. */
    assert_int_equal(save("keep", 45, 1), SF_OK);
    assert_true(exists(path_of("keep/step-000050")) && exists(path_of("keep/step-000045")));
    assert_false(exists(path_of("keep/step-000040")));
    char found[SF_PATH_SIZE];
    assert_int_equal(sf_checkpoint_find(path_of("keep"), found, NULL), SF_OK);
    assert_non_null(strstr(found, "step-000045"));
    /* What is not a checkpoint is not ours to remove. */
    mkdir(path_of("keep/step-000001.mine"), 0777);
    mkdir(path_of("keep/other"), 0777);
    assert_int_equal(save("keep", 60, 1), SF_OK);
    assert_true(exists(path_of("keep/step-000001.mine")) && exists(path_of("keep/other")));
    assert_false(exists(path_of("keep/step-000050")));
}

static void test_replace(void **state)
{
    (void)state;
    char found[SF_PATH_SIZE];
    sf_checkpoint_info info;
    assert_int_equal(save("again", 7, 2), SF_OK);
    sf_store_bits(SF_F32, arguments[0].data, 0, 12345);
    assert_int_equal(save("again", 7, 2), SF_OK);
    assert_int_equal(sf_checkpoint_find(path_of("again"), found, NULL), SF_OK);
    assert_int_equal(read_back(found, graph, &info), SF_OK);
    assert_memory_equal(arguments[0].data, loaded[0].data, 64);
    DIR *directory = opendir(path_of("again"));
    int count = 0;
    while (readdir(directory))
        count++;
    closedir(directory);
    assert_int_equal(count, 4); /* ., .., latest, step-000007 */
}

static void test_numbers(void **state)
{
    (void)state;
    assert_int_equal(sf_checkpoint_number("step-000100"), 100);
    assert_int_equal(sf_checkpoint_number("step-12345678"), 12345678);
    assert_int_equal(sf_checkpoint_number("step-000100.old"), 100);
    static const char *const bad[] = {"step-",  "step--1", "step-1x", ".step-1.tmp-2",
                                      "latest", "",        "step",    "step-99999999999999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(sf_checkpoint_number(bad[i]), -1);
}

static void test_lock(void **state)
{
    (void)state;
    sf_checkpoints first, second;
    assert_int_equal(sf_checkpoints_open(path_of("lock"), NULL, &first), SF_OK);
    assert_int_equal(sf_checkpoints_open(path_of("lock"), NULL, &second), SF_EIO);
    sf_checkpoints_close(&first);
    assert_int_equal(sf_checkpoints_open(path_of("lock"), NULL, &second), SF_OK);
    sf_checkpoints_close(&second);
}

/* A disk that cannot be written to: nothing is lost and nothing is left behind. */
static void test_failed_save(void **state)
{
    (void)state;
    char found[SF_PATH_SIZE];
    assert_int_equal(save("full", 1, 2), SF_OK);
    mkdir(path_of("full/step-000002"), 0777);
    mkdir(path_of("full/step-000002/x"), 0777); /* cannot be replaced: we remove files only */
    sf_status status = save("full", 2, 2);
    if (status == SF_OK) { /* the two changed places; the old one is hidden now */
        assert_int_equal(sf_checkpoint_find(path_of("full"), found, NULL), SF_OK);
        assert_non_null(strstr(found, "step-000002"));
    } else {
        assert_int_equal(sf_checkpoint_find(path_of("full"), found, NULL), SF_OK);
        assert_non_null(strstr(found, "step-000001"));
    }
    sf_checkpoints dir;
    assert_int_equal(sf_checkpoints_open("/proc/nobody/here", NULL, &dir), SF_EIO);
    sf_checkpoints_close(&dir);
}

/* A run of the StableHLO text goes on with the HLO text of the same step. */
static void test_other_spelling(void **state)
{
    (void)state;
    sf_graph *hlo;
    sf_checkpoint_info info;
    char found[SF_PATH_SIZE];
    assert_int_equal(sf_load("examples/gpt-micro.hlo", NULL, NULL, &hlo), SF_OK);
    const char **called = sf_clean_names(hlo, &arena);
    for (uint32_t i = 0; i < hlo->top->narguments; i++)
        called[i] = sf_name_key(sf_str_of(called[i]), &arena);
    assert_int_equal(save("spelling", 1, 2), SF_OK);
    assert_int_equal(sf_checkpoint_find(path_of("spelling"), found, NULL), SF_OK);
    memset(loaded[0].data, 0xff, (size_t)sf_type_bytes(loaded[0].type));
    assert_int_equal(load_as(found, hlo, called, &info), SF_OK);
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        if (sf_argument_is_kept(&graph->arguments[i]))
            assert_memory_equal(arguments[i].data, loaded[i].data,
                                (size_t)sf_type_bytes(loaded[i].type));
    called[0] = "another";
    assert_int_equal(load_as(found, hlo, called, &info), SF_EINPUT);
    sf_graph_free(hlo);
}

/* Names that differ by spelling alone are matched to the letter, or not at all. */
static void test_twins(void **state)
{
    (void)state;
    sf_checkpoint_info info;
    char found[SF_PATH_SIZE];
    const char *first = names[0], *second = names[1];
    names[0] = "w/0", names[1] = "w_0";
    assert_int_equal(save("twins", 1, 2), SF_OK);
    assert_int_equal(sf_checkpoint_find(path_of("twins"), found, NULL), SF_OK);
    assert_int_equal(read_back(found, graph, &info), SF_OK);
    names[0] = "w_0", names[1] = "w/0";
    assert_int_equal(read_back(found, graph, &info), SF_EINPUT);
    names[0] = first, names[1] = second;
}

/* Loading takes no second copy of the state. */
static void test_memory(void **state)
{
    (void)state;
    static const char step[] = "func.func @main(%a: tensor<4194304xui8>) -> tensor<4194304xui8> {\n"
                               "  %0 = stablehlo.add %a, %a : tensor<4194304xui8>\n"
                               "  return %0 : tensor<4194304xui8>\n}\n";
    sf_graph *large;
    sf_checkpoints dir;
    sf_mappings mappings = {0};
    sf_load_options options = {.state = "0=0"};
    const char *name = "a", *path = path_of("large.mlir");
    char found[SF_PATH_SIZE];
    assert_int_equal(sf_file_write(path, step, sizeof step - 1, NULL), SF_OK);
    assert_int_equal(sf_load(path, &options, NULL, &large), SF_OK);
    sf_tensor tensor = {.type = sf_argument_type(large, 0)};
    tensor.data = sf_alloc((size_t)tensor.type->count);
    sf_checkpoint_info info = {1, 0, sf_graph_hash(large), ""};
    assert_int_equal(sf_checkpoints_open(path_of("large"), NULL, &dir), SF_OK);
    sf_rank_shards shards = sf_rank_shards_whole(large, &arena);
    sf_state state_of_large = {&shards, &name, {.tensors = &tensor}, NULL};
    assert_int_equal(sf_checkpoints_save(&dir, &state_of_large, &info, 1, NULL), SF_OK);
    sf_checkpoints_close(&dir);
    assert_int_equal(sf_checkpoint_find(path_of("large"), found, NULL), SF_OK);

    void *fill = sf_alloc(sf_mem_peak() - sf_mem_live());
    size_t peak = sf_mem_peak();
    assert_int_equal(sf_checkpoint_load(found, &state_of_large, &mappings, &arena, &info, NULL),
                     SF_OK);
    assert_true(sf_mem_peak() - peak < (size_t)tensor.type->count / 2);
    sf_free(fill);
    sf_free(tensor.data);
    sf_graph_free(large);
}

/* Every allocation may fail while loading: no crash, and the next try succeeds. */
static void test_without_memory(void **state)
{
    (void)state;
    assert_int_equal(save("memory", 1, 2), SF_OK);
    char found[SF_PATH_SIZE];
    assert_int_equal(sf_checkpoint_find(path_of("memory"), found, NULL), SF_OK);
    for (long after = 0;; after++) {
        sf_guard guard;
        volatile bool done = false;
        static sf_mappings mappings;
        sf_guard_enter(&guard);
        if (setjmp(guard.target) == 0) {
            sf_arena scratch = {0};
            sf_checkpoint_info info;
            sf_rank_shards shards = sf_rank_shards_whole(graph, &scratch);
            sf_state whole = {&shards, names, {.tensors = loaded}, NULL};
            sf_mem_fail_after(after);
            sf_status status = sf_checkpoint_load(found, &whole, &mappings, &scratch, &info, NULL);
            sf_mem_fail_after(-1);
            done = status == SF_OK;
            sf_arena_free(&scratch);
            sf_guard_leave(&guard);
        }
        sf_mem_fail_after(-1);
        sf_mappings_close(&mappings);
        if (done)
            break;
        assert_true(after < 1000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),     cmocka_unit_test(test_keep),
        cmocka_unit_test(test_replace),        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_lock),           cmocka_unit_test(test_failed_save),
        cmocka_unit_test(test_other_spelling), cmocka_unit_test(test_twins),
        cmocka_unit_test(test_memory),         cmocka_unit_test(test_without_memory),
    };
    return cmocka_run_group_tests(tests, load, unload);
}
