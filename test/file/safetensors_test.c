/* safetensors: written files read back bit for bit; all others are refused. */
#include "file/safetensors.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"

static char path[] = "/tmp/sheaf-safetensors-XXXXXX";

static int make_path(void **state)
{
    (void)state;
    int fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

static int remove_path(void **state)
{
    (void)state;
    return unlink(path);
}

/* splitmix64 */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static bool fits(sf_dtype dtype)
{
    return dtype == SF_PRED || sf_dtype_get(dtype)->bits % 8 == 0;
}

static sf_tensor random_tensor(sf_arena *arena, sf_pool *pool, sf_dtype dtype, uint64_t *random)
{
    int64_t dims[4];
    int rank = (int)(next_random(random) % 5);
    for (int i = 0; i < rank; i++)
        dims[i] = (int64_t)(next_random(random) % 5);
    sf_tensor tensor = {.type = sf_type_get(pool, dtype, rank, dims)};
    size_t bytes = (size_t)sf_type_bytes(tensor.type);
    unsigned char *data = sf_arena_alloc(arena, bytes + 1);
    for (size_t i = 0; i < bytes; i++)
        data[i] = (unsigned char)(dtype == SF_PRED ? next_random(random) & 1 : next_random(random));
    tensor.data = data;
    return tensor;
}

static void assert_same(const sf_named_tensor *a, const sf_named_tensor *b)
{
    assert_true(sf_str_equal(a->name, b->name));
    assert_int_equal(a->tensor.type->dtype, b->tensor.type->dtype);
    assert_true(sf_same_shape(a->tensor.type, b->tensor.type));
    assert_memory_equal(a->tensor.data, b->tensor.data, (size_t)sf_type_bytes(a->tensor.type));
}

static void test_round_trip(void **state)
{
    (void)state;
    enum { MOST = 60 };
    static const char *const odd_names[] = {
        "", "a\"b\\c", "\xc3\xa9t\xc3\xa9", "line\nbreak", "['w'].x/y", "__metadata"};
    uint64_t random = 1;
    for (int trial = 0; trial < 50; trial++) {
        sf_arena arena = {0};
        sf_pool *pool = sf_pool_new();
        sf_named_tensor tensors[MOST];
        size_t count = 0;
        for (int i = 0; i < SF_DTYPE_COUNT && trial > 0; i++) {
            if (!fits((sf_dtype)i))
                continue;
            char name[32];
            snprintf(name, sizeof name, "t.%d", i);
            bool use_odd = count < sizeof odd_names / sizeof *odd_names && trial % 2;
            const char *text = use_odd ? odd_names[count] : name;
            tensors[count].name = sf_str_of(sf_arena_string(&arena, text, strlen(text)));
            tensors[count].tensor = random_tensor(&arena, pool, (sf_dtype)i, &random);
            count++;
        }
        sf_safetensors file;
        assert_int_equal(sf_safetensors_write(path, count, tensors, NULL), SF_OK);
        assert_int_equal(sf_safetensors_read(path, NULL, &file), SF_OK);
        assert_int_equal(file.count, count);
        for (size_t i = 0; i < count; i++) {
            assert_same(&file.tensors[i], &tensors[i]);
            assert_ptr_equal(sf_safetensors_find(&file, tensors[i].name.at),
                             &file.tensors[i].tensor);
        }
        assert_null(sf_safetensors_find(&file, "nobody"));
        sf_safetensors_close(&file);
        sf_pool_release(pool);
        sf_arena_free(&arena);
    }
    assert_int_equal(sf_mem_live(), 0);
}

/* The format itself, not our idea of it: these bytes were put together by hand. */
static const char sample[] = "\x60\0\0\0\0\0\0\0"
                             "{\"a\":{\"dtype\":\"I16\",\"shape\":[2],\"data_offsets\":[1,5]},"
                             "\"b\":{\"dtype\":\"BOOL\",\"shape\":[],"
                             "\"data_offsets\":[0,1]}}"
                             "\x01\x34\x12\xff\xff";

static void test_known_bytes(void **state)
{
    (void)state;
    char bytes[sizeof sample];
    size_t header = strlen(sample + 8) - 5;
    memcpy(bytes, sample, sizeof sample);
    bytes[0] = (char)header;
    sf_safetensors file;
    sf_str text = {bytes, sizeof sample - 1};
    assert_int_equal(sf_safetensors_parse(text, "sample", NULL, &file), SF_OK);
    const sf_tensor *a = sf_safetensors_find(&file, "a");
    assert_non_null(a);
    assert_int_equal(a->type->count, 2);
    assert_int_equal(sf_get_i64(a, 0), 0x1234);
    assert_int_equal(sf_get_i64(a, 1), -1);
    assert_int_equal(sf_get_i64(sf_safetensors_find(&file, "b"), 0), 1);
    sf_safetensors_close(&file);
}

static void test_layout_of_what_is_written(void **state)
{
    (void)state;
    sf_arena arena = {0};
    sf_pool *pool = sf_pool_new();
    uint16_t numbers[] = {1, 0x0203};
    sf_named_tensor tensor = {
        sf_str_of("x"), {.type = sf_type_get(pool, SF_U16, 1, &(int64_t){2}), .data = numbers}};
    assert_int_equal(sf_safetensors_write(path, 1, &tensor, NULL), SF_OK);
    sf_str bytes;
    assert_int_equal(sf_file_read(path, &arena, 0, &bytes, NULL), SF_OK);
    size_t header = (unsigned char)bytes.at[0];
    assert_memory_equal(bytes.at + 1, "\0\0\0\0\0\0\0", 7);
    assert_int_equal(header % 8, 0);
    assert_int_equal(bytes.length, 8 + header + 4);
    assert_memory_equal(bytes.at + 8 + header, "\x01\x00\x03\x02", 4);
    assert_int_equal(bytes.at[8], '{');
    sf_pool_release(pool);
    sf_arena_free(&arena);
}

static sf_status parse(const char *header, size_t header_length, size_t data_length)
{
    char bytes[4096] = {0};
    assert_true(8 + header_length + data_length <= sizeof bytes);
    for (int i = 0; i < 8; i++)
        bytes[i] = (char)((uint64_t)header_length >> 8 * i);
    memcpy(bytes + 8, header, header_length);
    sf_safetensors file;
    sf_str text = {bytes, 8 + header_length + data_length};
    sf_diag *diag = sf_diag_new();
    sf_status status = sf_safetensors_parse(text, "test", diag, &file);
    if (status == SF_OK)
        sf_safetensors_close(&file);
    else
        assert_true(sf_diag_count(diag) > 0);
    sf_diag_free(diag);
    assert_int_equal(sf_mem_live(), 0);
    return status;
}

#define ENTRY(dtype, shape, offsets)                                                               \
    "{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

static void test_headers(void **state)
{
    (void)state;
    static const struct {
        const char *header;
        size_t data;
        sf_status status;
    } cases[] = {
        {"{}", 0, SF_OK},
        {"{}      ", 0, SF_OK},
        {"{\"__metadata__\":{}}", 0, SF_OK},
        {"{\"__metadata__\":{\"a\":\"b\"},\"x\":" ENTRY("F32", "[1]", "[0,4]") "}", 4, SF_OK},
        {"{\"x\":" ENTRY("F32", "[]", "[0,4]") "}", 4, SF_OK},
        {"{\"x\":" ENTRY("F32", "[0,9]", "[0,0]") "}", 0, SF_OK},
        {"{\"x\":" ENTRY("U8", "[2]", "[1,3]") ",\"y\":" ENTRY("U8", "[1]", "[0,1]") "}", 3, SF_OK},
        {"{\"x\":" ENTRY("U8", "[0]", "[1,1]") ",\"y\":" ENTRY("U8", "[1]", "[0,1]") "}", 1, SF_OK},
        {"", 0, SF_EINPUT},
        {" {}", 0, SF_EINPUT},
        {"\xef\xbb\xbf{}", 0, SF_EINPUT},
        {"[]", 0, SF_EINPUT},
        {"{", 0, SF_EINPUT},
        {"{}x", 0, SF_EINPUT},
        {"{}", 1, SF_EINPUT},
        {"{\"x\":1}", 0, SF_EINPUT},
        {"{\"x\":{}}", 0, SF_EINPUT},
        {"{\"__metadata__\":[]}", 0, SF_EINPUT},
        {"{\"__metadata__\":{\"a\":1}}", 0, SF_EINPUT},
        {"{\"__metadata__\":{\"a\":{}}}", 0, SF_EINPUT},
        {"{\"x\":{\"shape\":[1],\"data_offsets\":[0,4]}}", 4, SF_EINPUT},
        {"{\"x\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, SF_EINPUT},
        {"{\"x\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, SF_EINPUT},
        {"{\"x\":{\"dtype\":3,\"shape\":[1],\"data_offsets\":[0,4]}}", 4, SF_EINPUT},
        {"{\"x\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"y\":0}}", 4, SF_EINPUT},
        {"{\"x\":" ENTRY("F33", "[1]", "[0,4]") "}", 4, SF_EUNSUPPORTED},
        {"{\"x\":" ENTRY("f32", "[1]", "[0,4]") "}", 4, SF_EUNSUPPORTED},
        {"{\"x\":" ENTRY("", "[1]", "[0,4]") "}", 4, SF_EUNSUPPORTED},
        {"{\"x\":" ENTRY("F4", "[2]", "[0,1]") "}", 1, SF_EUNSUPPORTED},
        {"{\"x\":" ENTRY("F6_E2M3", "[4]", "[0,3]") "}", 3, SF_EUNSUPPORTED},
        {"{\"x\":" ENTRY("I4", "[2]", "[0,2]") "}", 2, SF_EUNSUPPORTED},
        {"{\"x\":" ENTRY("F32", "1", "[0,4]") "}", 4, SF_EINPUT},
        {"{\"x\":" ENTRY("F32", "[-1]", "[0,4]") "}", 4, SF_EINPUT},
        {"{\"x\":" ENTRY("F32", "[1.0]", "[0,4]") "}", 4, SF_EINPUT},
        {"{\"x\":" ENTRY("F32", "[\"1\"]", "[0,4]") "}", 4, SF_EINPUT},
        {"{\"x\":" ENTRY("F32", "[4611686018427387904,4]", "[0,0]") "}", 0, SF_EINPUT},
        {"{\"x\":" ENTRY("F32", "[4294967296,4294967296]", "[0,0]") "}", 0, SF_EINPUT},
        {"{\"x\":" ENTRY("F32", "[99999999999999999999]", "[0,0]") "}", 0, SF_EINPUT},
        {"{\"x\":" ENTRY("F32", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "[0,4]") "}", 4,
         SF_EUNSUPPORTED},
        {"{\"x\":" ENTRY("F32", "[1]", "[0]") "}", 4, SF_EINPUT},
        {"{\"x\":" ENTRY("F32", "[1]", "[0,4,8]") "}", 4, SF_EINPUT},
        {"{\"x\":" ENTRY("F32", "[1]", "[4,0]") "}", 4, SF_EINPUT},
        {"{\"x\":" ENTRY("F32", "[1]", "[-4,0]") "}", 4, SF_EINPUT},
        {"{\"x\":" ENTRY("F32", "[1]", "[0,8]") "}", 4, SF_EINPUT},
        {"{\"x\":" ENTRY("F32", "[1]", "[0,4.0]") "}", 4, SF_EINPUT},
        {"{\"x\":" ENTRY("F32", "[1]", "[9223372036854775803,9223372036854775807]") "}", 4,
         SF_EINPUT},
        {"{\"x\":" ENTRY("F32", "[2]", "[0,4]") "}", 4, SF_EINPUT},
        {"{\"x\":" ENTRY("F64", "[1]", "[0,4]") "}", 4, SF_EINPUT},
        {"{\"x\":" ENTRY("F32", "[1]", "[1,5]") "}", 5, SF_EINPUT},
        {"{\"x\":" ENTRY("F32", "[1]", "[0,4]") "}", 5, SF_EINPUT},
        {"{\"x\":" ENTRY("U8", "[1]", "[0,1]") ",\"y\":" ENTRY("U8", "[1]", "[2,3]") "}", 3,
         SF_EINPUT},
        {"{\"x\":" ENTRY("U8", "[2]", "[0,2]") ",\"y\":" ENTRY("U8", "[2]", "[1,3]") "}", 3,
         SF_EINPUT},
        {"{\"x\":" ENTRY("U8", "[2]", "[0,2]") ",\"y\":" ENTRY("U8", "[2]", "[0,2]") "}", 2,
         SF_EINPUT},
        {"{\"x\":" ENTRY("U8", "[3]", "[0,3]") ",\"y\":" ENTRY("U8", "[0]", "[1,1]") "}", 3,
         SF_EINPUT},
        {"{\"x\":" ENTRY("U8", "[1]", "[0,1]") ",\"x\":" ENTRY("U8", "[1]", "[1,2]") "}", 2,
         SF_EINPUT},
        {"{\"x\xff\":" ENTRY("U8", "[1]", "[0,1]") "}", 1, SF_EINPUT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sf_status status = parse(cases[i].header, strlen(cases[i].header), cases[i].data);
        if (status != cases[i].status)
            fail_msg("case %zu, %s: %s", i, cases[i].header, sf_status_name(status));
    }
}

static void test_lengths_of_headers(void **state)
{
    (void)state;
    static const uint64_t lengths[] = {3,          100000001,      UINT64_C(1) << 32,
                                       UINT64_MAX, UINT64_MAX - 7, UINT64_C(1) << 63};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        char bytes[10] = "\0\0\0\0\0\0\0\0{}";
        for (int k = 0; k < 8; k++)
            bytes[k] = (char)(lengths[i] >> 8 * k);
        sf_safetensors file;
        assert_int_equal(sf_safetensors_parse((sf_str){bytes, 10}, "test", NULL, &file), SF_EINPUT);
    }
}

static void test_bad_bool(void **state)
{
    (void)state;
    static const char header[] = "{\"x\":" ENTRY("BOOL", "[2]", "[0,2]") "}";
    char bytes[200] = {0};
    size_t length = strlen(header);
    bytes[0] = (char)length;
    memcpy(bytes + 8, header, length);
    memcpy(bytes + 8 + length, "\x01\x02", 2);
    sf_safetensors file;
    sf_str text = {bytes, 8 + length + 2};
    assert_int_equal(sf_safetensors_parse(text, "test", NULL, &file), SF_EINPUT);
    bytes[8 + length + 1] = 0;
    assert_int_equal(sf_safetensors_parse(text, "test", NULL, &file), SF_OK);
    sf_safetensors_close(&file);
}

/* Every beginning of a good file is a bad file. The copy is exact, so a sanitizer sees a step past
 * the end. */
static void test_truncation(void **state)
{
    (void)state;
    sf_arena arena = {0};
    sf_pool *pool = sf_pool_new();
    uint64_t random = 5;
    sf_named_tensor tensors[3];
    for (int i = 0; i < 3; i++) {
        static const char *const names[] = {"a", "b", "c"};
        static const sf_dtype types[] = {SF_F32, SF_PRED, SF_BF16};
        tensors[i].name = sf_str_of(names[i]);
        do
            tensors[i].tensor = random_tensor(&arena, pool, types[i], &random);
        while (tensors[i].tensor.type->count == 0);
    }
    assert_int_equal(sf_safetensors_write(path, 3, tensors, NULL), SF_OK);
    sf_str bytes;
    assert_int_equal(sf_file_read(path, &arena, 0, &bytes, NULL), SF_OK);
    for (size_t length = 0; length <= bytes.length; length++) {
        char *copy = malloc(length ? length : 1);
        assert_non_null(copy);
        memcpy(copy, bytes.at, length);
        sf_safetensors file;
        sf_status status = sf_safetensors_parse((sf_str){copy, length}, "cut", NULL, &file);
        assert_int_equal(status, length == bytes.length ? SF_OK : SF_EINPUT);
        if (status == SF_OK)
            sf_safetensors_close(&file);
        free(copy);
    }
    sf_pool_release(pool);
    sf_arena_free(&arena);
}

static void test_refused_writes(void **state)
{
    (void)state;
    sf_pool *pool = sf_pool_new();
    uint64_t zero = 0;
    sf_tensor byte = {.type = sf_type_scalar(pool, SF_U8), .data = &zero};
    sf_tensor nibble = {.type = sf_type_scalar(pool, SF_S4), .data = &zero};
    sf_named_tensor twice[] = {
        {sf_str_of("a"), byte}, {sf_str_of("b"), byte}, {sf_str_of("a"), byte}};
    sf_named_tensor reserved = {sf_str_of("__metadata__"), byte};
    sf_named_tensor narrow = {sf_str_of("n"), nibble};
    assert_int_equal(sf_safetensors_write(path, 3, twice, NULL), SF_EUSAGE);
    assert_int_equal(sf_safetensors_write(path, 1, &reserved, NULL), SF_EUSAGE);
    assert_int_equal(sf_safetensors_write(path, 1, &narrow, NULL), SF_EUNSUPPORTED);
    assert_int_equal(sf_safetensors_write("/nowhere/x", 1, twice, NULL), SF_EIO);
    sf_pool_release(pool);
    assert_int_equal(sf_mem_live(), 0);
}

static void test_missing_file(void **state)
{
    (void)state;
    sf_safetensors file;
    sf_diag *diag = sf_diag_new();
    assert_int_equal(sf_safetensors_read("/nowhere/x", diag, &file), SF_EIO);
    assert_int_equal(sf_diag_count(diag), 1);
    sf_diag_free(diag);
    sf_safetensors_close(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_known_bytes),
        cmocka_unit_test(test_layout_of_what_is_written),
        cmocka_unit_test(test_headers),
        cmocka_unit_test(test_lengths_of_headers),
        cmocka_unit_test(test_bad_bool),
        cmocka_unit_test(test_truncation),
        cmocka_unit_test(test_refused_writes),
        cmocka_unit_test(test_missing_file),
    };
    return cmocka_run_group_tests(tests, make_path, remove_path);
}
