#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/rng.h"

/* Random123, tests/kat_vectors. */
static void test_threefry_known_answers(void **state)
{
    (void)state;
    static const uint32_t cases[][6] = {
        /* counter, key, result */
        {0, 0, 0, 0, 0x6b200159, 0x99ba4efe},
        {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0x1cb996fc, 0xbb002be7},
        {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xc4923a9c, 0x483df7a0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t out[2];
        sf_rng_threefry(cases[i] + 2, cases[i], out);
        assert_memory_equal(out, cases[i] + 4, sizeof out);
    }
}

static void test_philox_known_answers(void **state)
{
    (void)state;
    static const uint32_t cases[][10] = {
        {0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
        {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0x408f276d,
         0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
        {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0xd16cfe09,
         0x94fdcceb, 0x5001e420, 0x24126ea1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t out[4];
        sf_rng_philox(cases[i] + 4, cases[i], out);
        assert_memory_equal(out, cases[i] + 6, sizeof out);
    }
}

/* stablehlo/testdata/rng_bit_generator.mlir */
static void test_stablehlo_known_answer(void **state)
{
    (void)state;
    const uint64_t old[2] = {3, 3};
    uint64_t bits, next[2];
    sf_rng rng;
    assert_int_equal(sf_rng_init(&rng, SF_RNG_THREEFRY, old, 2, 8, NULL, 0, SF_NOWHERE, NULL),
                     SF_OK);
    sf_rng_bits(&rng, 0, 1, &bits);
    sf_rng_next_state(&rng, next);
    assert_true(bits == UINT64_C(3349939604322698703));
    assert_true(next[0] == 3 && next[1] == 4);
}

static uint64_t element(const void *bits, int width, int64_t at)
{
    switch (width) {
    case 1:
        return ((const uint8_t *)bits)[at];
    case 2:
        return ((const uint16_t *)bits)[at];
    case 4:
        return ((const uint32_t *)bits)[at];
    default:
        return ((const uint64_t *)bits)[at];
    }
}

static int read_numbers(char *text, const char *separators, int base, uint64_t *out)
{
    int count = 0;
    for (char *part = strtok(text, separators); part; part = strtok(NULL, separators))
        out[count++] = strtoull(part, NULL, base);
    return count;
}

static void check_line(char *line)
{
    char algorithm, old_text[64], shape[64], new_text[64];
    int words, bits;
    uint64_t digest;
    assert_int_equal(sscanf(line, "G %c %d %63s %63s %d %63s %" SCNx64, &algorithm, &words,
                            old_text, shape, &bits, new_text, &digest),
                     7);
    uint64_t old[3], want[3], got[3], sizes[8];
    int64_t dims[8];
    assert_int_equal(read_numbers(old_text, ",", 16, old), words);
    assert_int_equal(read_numbers(new_text, ",", 16, want), words);
    int rank = shape[0] == '-' ? 0 : read_numbers(shape, "x", 10, sizes);
    for (int i = 0; i < rank; i++)
        dims[i] = (int64_t)sizes[i];
    sf_rng rng;
    assert_int_equal(sf_rng_init(&rng, algorithm == 'P' ? SF_RNG_PHILOX : SF_RNG_THREEFRY, old,
                                 words, bits / 8, dims, rank, SF_NOWHERE, NULL),
                     SF_OK);
    uint64_t out[100], sum = 0;
    assert_true(rng.size <= 100);
    sf_rng_bits(&rng, 0, rng.size, out);
    for (int64_t i = 0; i < rng.size; i++)
        sum = sum * UINT64_C(0x9e3779b97f4a7c15) + element(out, bits / 8, i) + 1;
    sf_rng_next_state(&rng, got);
    if (sum != digest || memcmp(got, want, (size_t)words * sizeof *got) != 0)
        fail_msg("not what XLA draws: %s", line);
}

static void test_draws_what_xla_draws(void **state)
{
    (void)state;
    FILE *file = fopen("test/data/rng/xla.txt", "r");
    assert_non_null(file);
    char line[512];
    int lines = 0;
    while (fgets(line, sizeof line, file)) {
        if (line[0] == '#')
            continue;
        check_line(line);
        lines++;
    }
    fclose(file);
    assert_int_equal(lines, 360);
}

/* Any shard draws the numbers of the whole there. */
static void check_pieces(sf_rng_algorithm algorithm, int words, int width, const int64_t *dims,
                         int rank)
{
    const uint64_t old[3] = {UINT64_C(0x0123456789abcdef), UINT64_MAX - 3, 9};
    sf_rng rng;
    assert_int_equal(sf_rng_init(&rng, algorithm, old, words, width, dims, rank, SF_NOWHERE, NULL),
                     SF_OK);
    uint64_t whole[128], piece[128];
    sf_rng_bits(&rng, 0, rng.size, whole);
    for (int64_t first = 0; first <= rng.size; first++) {
        for (int64_t count = 0; count <= rng.size - first; count++) {
            memset(piece, 0xa5, sizeof piece);
            sf_rng_bits(&rng, first, count, piece);
            size_t bytes = (size_t)(count * width);
            assert_memory_equal(piece, (char *)whole + first * width, bytes);
            assert_int_equal(((unsigned char *)piece)[bytes], 0xa5);
        }
    }
}

static void test_pieces(void **state)
{
    (void)state;
    static const int64_t shapes[][3] = {{1, 1, 1}, {5, 3, 3},  {3, 4, 5}, {2, 3, 5}, {3, 5, 2},
                                        {1, 7, 1}, {16, 1, 1}, {0, 2, 2}, {3, 3, 0}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        for (int width = 1; width <= 8; width *= 2) {
            check_pieces(SF_RNG_THREEFRY, 2, width, shapes[i], 3);
            check_pieces(SF_RNG_PHILOX, 2, width, shapes[i], 3);
            check_pieces(SF_RNG_PHILOX, 3, width, shapes[i], 3);
        }
    }
}

/* The 128-bit counter of Philox: the third word is its high half, and a carry goes there. */
static void test_philox_carry(void **state)
{
    (void)state;
    const uint64_t old[3] = {5, UINT64_MAX, 7};
    const int64_t dims[1] = {8};
    uint32_t bits[8], want[8];
    uint64_t next[3];
    sf_rng rng;
    assert_int_equal(sf_rng_init(&rng, SF_RNG_PHILOX, old, 3, 4, dims, 1, SF_NOWHERE, NULL), SF_OK);
    sf_rng_bits(&rng, 0, 8, bits);
    const uint32_t key[2] = {5, 0};
    sf_rng_philox(key, (const uint32_t[4]){UINT32_MAX, UINT32_MAX, 7, 0}, want);
    sf_rng_philox(key, (const uint32_t[4]){0, 0, 8, 0}, want + 4);
    assert_memory_equal(bits, want, sizeof want);
    sf_rng_next_state(&rng, next);
    assert_true(next[0] == 5 && next[1] == 1 && next[2] == 8);
}

static void test_refuses(void **state)
{
    (void)state;
    const uint64_t old[4] = {0};
    const int64_t negative[1] = {-1}, huge[2] = {INT64_MAX, 4};
    sf_rng rng;
    sf_diag *diag = sf_diag_new();
    sf_loc at = {"f", 1, 1};
    assert_int_equal(sf_rng_init(&rng, SF_RNG_THREEFRY, old, 3, 4, NULL, 0, at, diag), SF_EINPUT);
    assert_string_equal(sf_diag_text(diag, 0),
                        "f:1:1: error: THREE_FRY has a state of 2 64-bit words, not 3");
    assert_int_equal(sf_rng_init(&rng, SF_RNG_PHILOX, old, 4, 4, NULL, 0, at, diag), SF_EINPUT);
    assert_int_equal(sf_rng_init(&rng, SF_RNG_PHILOX, old, 2, 3, NULL, 0, at, diag), SF_EINPUT);
    assert_int_equal(sf_rng_init(&rng, SF_RNG_PHILOX, old, 2, 4, negative, 1, at, diag), SF_EINPUT);
    assert_int_equal(sf_rng_init(&rng, SF_RNG_PHILOX, old, 2, 4, huge, 2, at, diag), SF_EINPUT);
    assert_int_equal(sf_diag_count(diag), 5);
    sf_diag_free(diag);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threefry_known_answers),
        cmocka_unit_test(test_philox_known_answers),
        cmocka_unit_test(test_stablehlo_known_answer),
        cmocka_unit_test(test_draws_what_xla_draws),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_philox_carry),
        cmocka_unit_test(test_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
