/* Counter-based random bits: Threefry-2x32 and Philox-4x32 (Salmon et al., SC 2011).
 *
 * A block of random words is a pure function of a key and a counter. The counter of an element
 * comes from its index in the tensor, so a shard of a tensor draws exactly the numbers of the whole
 * tensor there, on any rank and in any order.
 *
 * sf_rng_bits lays the words out as XLA does for StableHLO's rng_bit_generator. The state is a tensor
 * of ui64; c is the counter and i the row-major index of an element:
 *
 *   algorithm  state            key     c                 element i of u64         of u32
 *   THREE_FRY  [key, c]         lo, hi  64 bits           block c + i, both words  see below
 *   PHILOX     [key, c]         lo, hi  128, high is key  block c + i/2, words     block c + i/4,
 *   PHILOX     [key, c, c.hi]   lo, hi  128 bits          2(i%2) and 2(i%2)+1      word i%4
 *
 * 64-bit values are cut into words and put together low word first. u8 and u16 are the low bits of
 * the u32 there. DEFAULT is PHILOX in XLA on CPU and GPU.
 *
 * Threefry gives two words a block, and XLA distributes them along one dimension, the *split* one:
 * the first of even size, or if all are odd the first among the largest. With d its size, h =
 * ceil(d/2) and `inner` the product of the dimensions after it, the element at (outer, s, inner) is
 * word s%2 of block c + (outer * h + s/2) * inner_size + inner. A scalar is word 0 of block c.
 *
 * The new state is the old one with c advanced by the number of blocks that the tensor took. */
#ifndef SF_BASE_RNG_H
#define SF_BASE_RNG_H

#include <stdint.h>

#include "base/diag.h"

typedef enum sf_rng_algorithm { SF_RNG_THREEFRY, SF_RNG_PHILOX } sf_rng_algorithm;

/* One block of Threefry-2x32 with 20 rounds, which is also JAX's threefry2x32. */
void sf_rng_threefry(const uint32_t key[2], const uint32_t counter[2], uint32_t out[2]);

/* Many of them: counters (first[i], second[i]) become their random words. */
void sf_rng_threefry_many(const uint32_t key[2], int count, uint32_t *first, uint32_t *second);

/* One block of Philox-4x32 with 10 rounds. */
void sf_rng_philox(const uint32_t key[2], const uint32_t counter[4], uint32_t out[4]);

/* One draw of rng_bit_generator. Filled by sf_rng_init, read-only afterwards. */
typedef struct sf_rng {
    sf_rng_algorithm algorithm;
    int width;       /* bytes of an element: 1, 2, 4 or 8 */
    int state_words; /* of the state: 2 or 3 */
    uint32_t key[2];
    uint64_t low, high;   /* the counter of the first block */
    int64_t split, inner; /* threefry: size of the split dimension, and of all after it */
    int64_t size, blocks; /* elements of the whole tensor, and the blocks that it takes */
} sf_rng;

/* Prepares the draw of a tensor of the shape dims[rank] whose elements have `width` bytes. SF_EINPUT,
 * with a message at `loc`, when state, width or shape is not one that the algorithm takes. */
sf_status sf_rng_init(sf_rng *rng, sf_rng_algorithm algorithm, const uint64_t *state,
                      int state_words, int width, const int64_t *dims, int rank, sf_loc loc,
                      sf_diag *diag);

/* Writes the elements with row-major index first, ..., first + count - 1 to `out`, an array of
 * uint8_t, uint16_t, uint32_t or uint64_t after the width. The range lies inside the tensor. */
void sf_rng_bits(const sf_rng *rng, int64_t first, int64_t count, void *out);

/* The state after the whole tensor was drawn: `state_words` words. */
void sf_rng_next_state(const sf_rng *rng, uint64_t *state);

#endif
