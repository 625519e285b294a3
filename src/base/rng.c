#include "base/rng.h"

#include <inttypes.h>

#include "base/checked.h"

static uint32_t rotate_left(uint32_t x, int by)
{
    return x << by | x >> (32 - by);
}

static inline void threefry(const uint32_t schedule[3], uint32_t *first, uint32_t *second)
{
    static const int rotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
    uint32_t x0 = *first + schedule[0], x1 = *second + schedule[1];
    for (uint32_t group = 1; group <= 5; group++) {
        const int *by = rotations[(group - 1) % 2];
        for (int i = 0; i < 4; i++) {
            x0 += x1;
            x1 = rotate_left(x1, by[i]) ^ x0;
        }
        x0 += schedule[group % 3];
        x1 += schedule[(group + 1) % 3] + group;
    }
    *first = x0;
    *second = x1;
}

void sf_rng_threefry_many(const uint32_t key[2], int count, uint32_t *first, uint32_t *second)
{
    const uint32_t schedule[3] = {key[0], key[1], UINT32_C(0x1BD11BDA) ^ key[0] ^ key[1]};
    for (int i = 0; i < count; i++)
        threefry(schedule, &first[i], &second[i]);
}

void sf_rng_threefry(const uint32_t key[2], const uint32_t counter[2], uint32_t out[2])
{
    uint32_t first = counter[0], second = counter[1];
    sf_rng_threefry_many(key, 1, &first, &second);
    out[0] = first;
    out[1] = second;
}

void sf_rng_philox(const uint32_t key[2], const uint32_t counter[4], uint32_t out[4])
{
    uint32_t k0 = key[0], k1 = key[1];
    uint32_t x0 = counter[0], x1 = counter[1], x2 = counter[2], x3 = counter[3];
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = UINT64_C(0xD2511F53) * x0;
        uint64_t p1 = UINT64_C(0xCD9E8D57) * x2;
        x0 = (uint32_t)(p1 >> 32) ^ x1 ^ k0;
        x1 = (uint32_t)p1;
        x2 = (uint32_t)(p0 >> 32) ^ x3 ^ k1;
        x3 = (uint32_t)p0;
        k0 += UINT32_C(0x9E3779B9);
        k1 += UINT32_C(0xBB67AE85);
    }
    out[0] = x0;
    out[1] = x1;
    out[2] = x2;
    out[3] = x3;
}

static sf_status init_state(sf_rng *rng, const uint64_t *state, sf_loc loc, sf_diag *diag)
{
    int words = rng->state_words;
    if (words != 2 && !(words == 3 && rng->algorithm == SF_RNG_PHILOX))
        return sf_fail(diag, SF_EINPUT, loc, "%s has a state of %s 64-bit words, not %d",
                       rng->algorithm == SF_RNG_PHILOX ? "PHILOX" : "THREE_FRY",
                       rng->algorithm == SF_RNG_PHILOX ? "2 or 3" : "2", words);
    rng->key[0] = (uint32_t)state[0];
    rng->key[1] = (uint32_t)(state[0] >> 32);
    rng->low = state[1];
    rng->high = words == 3 ? state[2] : state[0];
    return SF_OK;
}

/* The dimension along which XLA distributes the two words of a Threefry block. */
static int split_dimension(const int64_t *dims, int rank)
{
    int largest = 0;
    for (int i = 0; i < rank; i++) {
        if (dims[i] % 2 == 0)
            return i;
        if (dims[i] > dims[largest])
            largest = i;
    }
    return largest;
}

static void init_layout(sf_rng *rng, const int64_t *dims, int rank)
{
    rng->split = rng->inner = 1;
    if (rng->algorithm == SF_RNG_PHILOX) {
        int64_t per_block = rng->width == 8 ? 2 : 4;
        rng->blocks = sf_ceil_div(rng->size, per_block);
    } else if (rng->width == 8 || rng->size == 0) {
        rng->blocks = rng->size;
    } else {
        int at = split_dimension(dims, rank);
        if (rank > 0)
            rng->split = dims[at];
        for (int i = at + 1; i < rank; i++)
            rng->inner *= dims[i];
        rng->blocks = rng->size / rng->split * sf_ceil_div(rng->split, 2);
    }
}

sf_status sf_rng_init(sf_rng *rng, sf_rng_algorithm algorithm, const uint64_t *state,
                      int state_words, int width, const int64_t *dims, int rank, sf_loc loc,
                      sf_diag *diag)
{
    *rng = (sf_rng){.algorithm = algorithm, .width = width, .state_words = state_words, .size = 1};
    if (width != 1 && width != 2 && width != 4 && width != 8)
        return sf_fail(diag, SF_EINPUT, loc, "random bits have 1, 2, 4 or 8 bytes, not %d", width);
    for (int i = 0; i < rank; i++) {
        if (dims[i] < 0)
            return sf_fail(diag, SF_EINPUT, loc, "dimension %d is negative: %" PRId64, i, dims[i]);
        if (!sf_mul(rng->size, dims[i], &rng->size))
            return sf_fail(diag, SF_EINPUT, loc, "the tensor has more than 2^63 elements");
    }
    SF_TRY(init_state(rng, state, loc, diag));
    init_layout(rng, dims, rank);
    return SF_OK;
}

static void threefry_block(const sf_rng *rng, int64_t block, uint32_t out[2])
{
    uint64_t at = rng->low + (uint64_t)block;
    sf_rng_threefry(rng->key, (uint32_t[2]){(uint32_t)at, (uint32_t)(at >> 32)}, out);
}

static void philox_block(const sf_rng *rng, int64_t block, uint32_t out[4])
{
    uint64_t low = rng->low + (uint64_t)block;
    uint64_t high = rng->high + (low < rng->low);
    const uint32_t counter[4] = {(uint32_t)low, (uint32_t)(low >> 32), (uint32_t)high,
                                 (uint32_t)(high >> 32)};
    sf_rng_philox(rng->key, counter, out);
}

static uint64_t join_words(const uint32_t words[2])
{
    return words[0] | (uint64_t)words[1] << 32;
}

static void store_word(void *out, int width, int64_t at, uint32_t value)
{
    if (width == 4)
        ((uint32_t *)out)[at] = value;
    else if (width == 2)
        ((uint16_t *)out)[at] = (uint16_t)value;
    else
        ((uint8_t *)out)[at] = (uint8_t)value;
}

static void threefry_wide(const sf_rng *rng, int64_t first, int64_t count, uint64_t *out)
{
    for (int64_t i = 0; i < count; i++) {
        uint32_t words[2];
        threefry_block(rng, first + i, words);
        out[i] = join_words(words);
    }
}

static void threefry_narrow(const sf_rng *rng, int64_t first, int64_t count, void *out)
{
    int64_t half = sf_ceil_div(rng->split, 2);
    int64_t inner = first % rng->inner;
    int64_t split = first / rng->inner % rng->split;
    int64_t outer = first / rng->inner / rng->split;
    uint32_t words[2];
    int64_t have = -1; /* the block in `words` */
    for (int64_t i = 0; i < count; i++) {
        int64_t block = (outer * half + split / 2) * rng->inner + inner;
        if (block != have)
            threefry_block(rng, block, words);
        have = block;
        store_word(out, rng->width, i, words[split % 2]);
        if (++inner < rng->inner)
            continue;
        inner = 0;
        if (++split < rng->split)
            continue;
        split = 0;
        outer++;
    }
}

static void philox_wide(const sf_rng *rng, int64_t first, int64_t count, uint64_t *out)
{
    uint32_t words[4];
    for (int64_t i = first; i < first + count; i++) {
        if (i == first || i % 2 == 0)
            philox_block(rng, i / 2, words);
        out[i - first] = join_words(words + i % 2 * 2);
    }
}

static void philox_narrow(const sf_rng *rng, int64_t first, int64_t count, void *out)
{
    uint32_t words[4];
    for (int64_t i = first; i < first + count; i++) {
        if (i == first || i % 4 == 0)
            philox_block(rng, i / 4, words);
        store_word(out, rng->width, i - first, words[i % 4]);
    }
}

void sf_rng_bits(const sf_rng *rng, int64_t first, int64_t count, void *out)
{
    SF_ASSERT(first >= 0 && count >= 0 && first <= rng->size && count <= rng->size - first);
    if (rng->algorithm == SF_RNG_PHILOX) {
        if (rng->width == 8)
            philox_wide(rng, first, count, out);
        else
            philox_narrow(rng, first, count, out);
    } else {
        if (rng->width == 8)
            threefry_wide(rng, first, count, out);
        else
            threefry_narrow(rng, first, count, out);
    }
}

void sf_rng_next_state(const sf_rng *rng, uint64_t *state)
{
    state[0] = rng->key[0] | (uint64_t)rng->key[1] << 32;
    state[1] = rng->low + (uint64_t)rng->blocks;
    if (rng->state_words == 3)
        state[2] = rng->high + (state[1] < rng->low);
}
