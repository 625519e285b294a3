/* How far rounding may move the results of a step: the results of noisy runs (api/noise.h) of it.
 *
 * Runs come in pairs of opposite noise. The deviation of an element is the largest difference of
 * any run from the one without noise; an infinity if one of them had no finite number. */
#ifndef SF_API_VERIFY_NOISE_RANGE_H
#define SF_API_VERIFY_NOISE_RANGE_H

#include "ir/tensor.h"
#include "run/runner.h"

/* Of a step, most pairs of runs: more if products are narrow, since the effect of noise is rounded
 * there, and a pair is less often on both sides. */
enum { SF_NOISE_PAIRS = 2, SF_NOISE_PAIRS_NARROWED = 4 };

typedef struct sf_noise_range {
    const sf_graph *step;
    float **at;   /* by result and element, of complex ones by part */
    int pairs;    /* that are in it */
    int64_t runs; /* noisy ones so far, of all steps */

    sf_precision
        precision; /* of the runs that are judged: where products are narrowed, so they are here, and noise is of bf16 */

    /* Of whom runs the noisy step; opened when it is first wanted. */
    sf_runner_options options;
    sf_graph *noisy;
    sf_runner runner;
} sf_noise_range;

/* `options` are those of the unsplit run. Results of the other functions live in the arena. */
void sf_noise_range_init(const sf_graph *step, const sf_runner_options *options, sf_arena *arena,
                         sf_noise_range *out);
void sf_noise_range_close(sf_noise_range *noise);

/* Runs the noisy step as run number `run`, counted from 0, of those that differ in their noise: 2 k
 * and 2 k + 1 are a pair. `results`, one for each, are the engine's until the next run. */
sf_status sf_noise_range_run(sf_noise_range *noise, const sf_tensor *arguments, int run,
                             sf_tensor *results, sf_diag *diag);

/* Most pairs for the runs that are judged. */
int sf_noise_range_pairs(const sf_noise_range *noise);

/* Another step follows. */
void sf_noise_range_clear(sf_noise_range *noise);

/* Widens the deviation by another pair of runs; `expected` are the results without noise. */
sf_status sf_noise_range_widen(sf_noise_range *noise, const sf_tensor *arguments,
                               const sf_tensor *expected, sf_diag *diag);

#endif
