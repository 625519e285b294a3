/* Random numbers of a training run: all are pure functions of the seed and of their purpose, so
 * nothing is stored, and any shard can be drawn anywhere. */
#ifndef SF_TRAIN_RANDOM_DRAW_H
#define SF_TRAIN_RANDOM_DRAW_H

#include <stdint.h>

/* A stream of numbers: a threefry key. */
typedef struct sf_draw {
    uint32_t key[2];
} sf_draw;

/* The purpose of a seed's numbers. */
typedef enum sf_purpose { SF_DRAW_INIT = 1, SF_DRAW_ORDER, SF_DRAW_BATCH } sf_purpose;

/* The stream for a purpose; `which` distinguishes streams of one purpose (a hash of a name, an
 * epoch). */
sf_draw sf_draw_of(uint64_t seed, sf_purpose purpose, uint64_t which);

/* Number `index` of a stream: 64 random bits; a double in (0, 1); from `first` on, numbers of the standard normal distribution, cut
 * off at `limit` standard deviations where that is positive. */
uint64_t sf_draw_bits(const sf_draw *draw, uint64_t index);
double sf_draw_uniform(const sf_draw *draw, uint64_t index);
void sf_draw_normals(const sf_draw *draw, uint64_t first, int64_t count, double limit, double *out);

/* The x with P(X <= x) = p of the standard normal distribution; 0 < p < 1. */
double sf_normal_quantile(double p);

/* Where a permutation of 0 .. count-1 sends `index`; the stream decides which permutation. */
uint64_t sf_draw_permuted(const sf_draw *draw, uint64_t count, uint64_t index);

/* jax.random.PRNGKey(seed) and jax.random.fold_in(key, data), with the threefry keys of JAX. */
void sf_jax_key(uint64_t seed, uint32_t key[2]);
void sf_jax_fold_in(const uint32_t key[2], uint32_t data, uint32_t out[2]);

#endif
