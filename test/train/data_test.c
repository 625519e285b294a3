/* Data: what is in a batch, that it depends on the number of the batch alone, and what is refused. */
#include "train/data_kind.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file/safetensors.h"
#include "ir/name.h"

enum { ROWS = 4, ROW = 8, IDS = 109, LABELS = 110 };

static sf_graph *graph;
static sf_arena arena;
static const char **names;
static sf_tensor *arguments;
static bool *wanted;
static char folder[] = "/tmp/sheaf-data-XXXXXX";

static int load(void **state)
{
    (void)state;
    if (!mkdtemp(folder) || sf_load("examples/gpt-micro.hlo", NULL, NULL, &graph) != SF_OK)
        return -1;
    names = sf_clean_names(graph, &arena);
    arguments = SF_ARRAY(&arena, graph->top->narguments, sf_tensor);
    wanted = SF_ARRAY(&arena, graph->top->narguments, bool);
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        const sf_type *type = sf_argument_type(graph, i);
        arguments[i].type = type;
        arguments[i].data = sf_arena_alloc(&arena, (size_t)sf_type_bytes(type));
        wanted[i] = graph->arguments[i].role == SF_ROLE_BATCH;
    }
    return wanted[IDS] && wanted[LABELS] ? 0 : -1;
}

static int unload(void **state)
{
    (void)state;
    char command[100];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    sf_graph_free(graph);
    sf_arena_free(&arena);
    return system(command);
}

static const char *path_of(const char *name)
{
    static char path[100];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static const char *write_file(const char *name, const void *bytes, size_t size)
{
    const char *path = path_of(name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
    return path;
}

static sf_status open_data(const char *source, const char *type, sf_train_order order,
                           uint64_t seed, sf_data *data)
{
    sf_data_options options = {source, type, order, seed};
    return sf_data_open(graph, names, wanted, &options, NULL, data);
}

static int64_t id(int64_t at)
{
    return sf_get_i64(&arguments[IDS], at);
}

static int64_t label(int64_t at)
{
    return sf_get_i64(&arguments[LABELS], at);
}

static void refuse(const char *source, const char *type, sf_status expected)
{
    sf_data data;
    assert_int_equal(open_data(source, type, SF_ORDER_DEFAULT, 0, &data), expected);
    sf_data_close(&data);
}

/* Every window once in an epoch, labels one token further, whatever the width of the tokens. */
static void test_tokens(void **state)
{
    (void)state;
    enum { WINDOWS = 53, COUNT = WINDOWS * ROW + 3 };
    static unsigned char bytes[COUNT * 4];
    for (int width = 1; width <= 4; width *= 2) {
        static const char *const types[] = {"", "u8", "u16", "", "u32"};
        memset(bytes, 0, sizeof bytes);
        for (int i = 0; i < COUNT; i++) {
            bytes[i * width] = (unsigned char)(i & 255);
            if (width > 1)
                bytes[i * width + 1] = (unsigned char)(i >> 8);
        }
        const char *path = write_file("tokens.bin", bytes, (size_t)(COUNT * width));
        sf_data data;
        assert_int_equal(open_data(path, types[width], SF_ORDER_DEFAULT, 3, &data), SF_OK);
        assert_int_equal(data.count, WINDOWS);
        assert_int_equal(data.amount, ROWS * ROW);
        assert_true(data.counts_tokens);
        int seen[WINDOWS] = {0}, orders = 0;
        for (int64_t batch = 0; batch < WINDOWS; batch++) { /* 4 epochs */
            assert_int_equal(sf_data_batch(&data, batch, arguments, NULL), SF_OK);
            for (int row = 0; row < ROWS; row++) {
                int64_t window = sf_data_item(&data, batch * ROWS + row);
                for (int k = 0; k < ROW; k++) {
                    int64_t mask = width == 1 ? 255 : 65535;
                    assert_int_equal(id(row * ROW + k), (window * ROW + k) & mask);
                    assert_int_equal(label(row * ROW + k), (window * ROW + k + 1) & mask);
                }
                orders += window != sf_data_item(&data, (batch * ROWS + row) % WINDOWS);
                seen[window]++;
            }
        }
        for (int i = 0; i < WINDOWS; i++)
            assert_int_equal(seen[i], 4);
        assert_true(orders > WINDOWS); /* epochs differ */
        sf_data_close(&data);
    }
}

static void test_order(void **state)
{
    (void)state;
    static unsigned char bytes[1000];
    for (int i = 0; i < 1000; i++)
        bytes[i] = (unsigned char)(i % 251);
    const char *path = write_file("text.txt", bytes, sizeof bytes);
    sf_data data;
    assert_int_equal(open_data(path, NULL, SF_ORDER_SEQUENTIAL, 0, &data), SF_OK);
    assert_int_equal(sf_data_batch(&data, 2, arguments, NULL), SF_OK);
    for (int i = 0; i < ROWS * ROW; i++)
        assert_int_equal(id(i), 2 * ROWS * ROW + i);
    sf_data_close(&data);
    /* Batch 17 is batch 17, whatever was asked for before; another seed gives another. */
    int64_t first[ROWS * ROW], same = 0;
    for (uint64_t seed = 0; seed < 2; seed++)
        for (int before = 0; before < 3; before++) {
            assert_int_equal(open_data(path, NULL, SF_ORDER_SHUFFLED, seed, &data), SF_OK);
            for (int64_t k = 0; k < before; k++)
                assert_int_equal(sf_data_batch(&data, k, arguments, NULL), SF_OK);
            assert_int_equal(sf_data_batch(&data, 17, arguments, NULL), SF_OK);
            for (int i = 0; i < ROWS * ROW; i++) {
                if (seed == 0 && before == 0)
                    first[i] = id(i);
                else if (seed == 0)
                    assert_int_equal(id(i), first[i]);
                else
                    same += id(i) == first[i];
            }
            sf_data_close(&data);
        }
    assert_true(same < 3 * ROWS * ROW);
}

static void test_bad_tokens(void **state)
{
    (void)state;
    static const unsigned char bytes[64];
    refuse(write_file("odd.u16", bytes, 33), NULL, SF_EINPUT);
    refuse(write_file("few.u16", bytes, 16), NULL, SF_EINPUT); /* 8 tokens, labels want 9 */
    refuse(write_file("empty.u16", bytes, 0), NULL, SF_EINPUT);
    refuse(write_file("nine.u8", bytes, 9), NULL, SF_OK);
    refuse(write_file("type.u16", bytes, 64), "i16", SF_EUSAGE);
    refuse("/nowhere/at/all", NULL, SF_EIO);
    refuse(NULL, NULL, SF_EUSAGE);
    refuse("synthetic:0", NULL, SF_EUSAGE);
    refuse("synthetic:x", NULL, SF_EUSAGE);
}

/* Numbered batches, as in the test files. */
static void test_numbered(void **state)
{
    (void)state;
    static const char path[] = "examples/gpt-micro.io.safetensors";
    sf_safetensors file;
    sf_data data;
    assert_int_equal(sf_safetensors_read(path, NULL, &file), SF_OK);
    assert_int_equal(open_data(path, NULL, SF_ORDER_DEFAULT, 0, &data), SF_OK);
    assert_int_equal(data.count, 10);
    for (int64_t k = 0; k < 23; k++) {
        char name[32];
        assert_int_equal(sf_data_batch(&data, k, arguments, NULL), SF_OK);
        snprintf(name, sizeof name, "batch.%d.ids", (int)(k % 10));
        assert_memory_equal(arguments[IDS].data, sf_safetensors_find(&file, name)->data, 128);
        snprintf(name, sizeof name, "batch.%d.labels", (int)(k % 10));
        assert_memory_equal(arguments[LABELS].data, sf_safetensors_find(&file, name)->data, 128);
    }
    sf_data_close(&data);
    sf_safetensors_close(&file);
}

/* Writes a file of `rows` rows of ids and labels, which count up from `first`. */
static void write_rows(const char *name, int64_t rows, int32_t first, const char *ids)
{
    const int64_t dims[] = {rows, ROW};
    const sf_type *type = sf_type_get(graph->pool, SF_S32, 2, dims);
    int32_t values[2][256];
    for (int i = 0; i < rows * ROW; i++) {
        values[0][i] = first + i;
        values[1][i] = first + i + 1000;
    }
    sf_named_tensor tensors[] = {
        {sf_str_of(ids), {.type = type, .data = values[0]}},
        {sf_str_of("labels"), {.type = type, .data = values[1]}},
    };
    assert_int_equal(sf_safetensors_write(path_of(name), 2, tensors, NULL), SF_OK);
}

/* A directory: files in the order of their names, several batches in one, a rest that is left. */
static void test_directory(void **state)
{
    (void)state;
    sf_data data;
    mkdir(path_of("d"), 0777);
    write_rows("d/b.safetensors", 9, 100, "ids"); /* 2 batches and a row */
    write_rows("d/a.safetensors", 4, 0, "batch['ids']");
    write_file("d/note.txt", "x", 1);
    char source[100];
    strcpy(source, path_of("d"));
    assert_int_equal(open_data(source, NULL, SF_ORDER_DEFAULT, 0, &data), SF_OK);
    assert_int_equal(data.count, 3);
    static const int firsts[] = {0, 100, 132};
    for (int k = 0; k < 6; k++) {
        assert_int_equal(sf_data_batch(&data, k, arguments, NULL), SF_OK);
        assert_int_equal(id(0), firsts[k % 3]);
        assert_int_equal(label(31), firsts[k % 3] + 1031);
    }
    sf_data_close(&data);
    int seen[3] = {0};
    assert_int_equal(open_data(source, NULL, SF_ORDER_SHUFFLED, 4, &data), SF_OK);
    for (int k = 0; k < 6; k++) {
        assert_int_equal(sf_data_batch(&data, k, arguments, NULL), SF_OK);
        for (int f = 0; f < 3; f++)
            seen[f] += id(0) == firsts[f];
    }
    assert_true(seen[0] == 2 && seen[1] == 2 && seen[2] == 2);
    sf_data_close(&data);
    write_rows("d/c.safetensors", 3, 0, "ids"); /* too few rows for a batch */
    refuse(source, NULL, SF_EINPUT);
    write_rows("d/c.safetensors", 4, 0, "pixels"); /* of the right type, but so is another */
    refuse(source, NULL, SF_EINPUT);
    write_file("d/c.safetensors", "not this", 8);
    refuse(source, NULL, SF_EINPUT);
    mkdir(path_of("e"), 0777);
    strcpy(source, path_of("e"));
    refuse(source, NULL, SF_EINPUT);
}

static void test_synthetic(void **state)
{
    (void)state;
    sf_data data;
    assert_int_equal(open_data("synthetic:32", NULL, SF_ORDER_DEFAULT, 0, &data), SF_OK);
    assert_int_equal(sf_data_batch(&data, 5, arguments, NULL), SF_OK);
    int64_t most = 0, sum = 0;
    for (int i = 0; i < ROWS * ROW; i++) {
        assert_true(id(i) >= 0 && id(i) < 32);
        most = id(i) > most ? id(i) : most;
        sum += id(i) * (i + 1);
    }
    assert_true(most > 16);
    assert_int_equal(sf_data_batch(&data, 6, arguments, NULL), SF_OK);
    assert_int_equal(sf_data_batch(&data, 5, arguments, NULL), SF_OK);
    for (int i = 0; i < ROWS * ROW; i++)
        sum -= id(i) * (i + 1);
    assert_int_equal(sum, 0);
    sf_data_close(&data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tokens),     cmocka_unit_test(test_order),
        cmocka_unit_test(test_bad_tokens), cmocka_unit_test(test_numbered),
        cmocka_unit_test(test_directory),  cmocka_unit_test(test_synthetic),
    };
    return cmocka_run_group_tests(tests, load, unload);
}
