/* The initial state of a step.
 *
 * Parameters are drawn by rules, or come from a file. A drawn element depends on the seed, the clean
 * name of the parameter (see ir/name.h) and its index alone. Optimizer state is zero; a key that the step
 * carries along is jax.random.PRNGKey(seed).
 *
 * Rules are "RULE,PATTERN=RULE,...", RULE being one of
 *
 *     normal:STD  truncated:STD  uniform:LIMIT  constant:VALUE  zeros  ones
 *     fan_in[:GAIN]  xavier[:GAIN]  he  default
 *
 * PATTERN has * and ?, and matches a clean name or the last parts of it; of several the first that
 * matches counts. A rule without a pattern is for all parameters that are random by default, and so
 * leaves biases and scales alone. */
#ifndef SF_TRAIN_INIT_H
#define SF_TRAIN_INIT_H

#include "base/diag.h"
#include "base/thread_pool.h"
#include "ir/graph.h"
#include "ir/tensor.h"
#include "train/rank_shards.h"

typedef enum sf_init_kind {
    SF_INIT_DEFAULT,
    SF_INIT_CONSTANT,
    SF_INIT_NORMAL,
    SF_INIT_TRUNCATED, /* normal, cut off at two standard deviations, with `scale` as its own */
    SF_INIT_UNIFORM,
    SF_INIT_FAN_IN, /* truncated, of variance scale^2 / fan in */
    SF_INIT_XAVIER, /* uniform, of variance scale^2 * 2 / (fan in + fan out) */
    SF_INIT_HE,     /* truncated, of variance 2 / fan in */
} sf_init_kind;

typedef struct sf_init_rule {
    const char *pattern; /* NULL: for all that is random by default */
    sf_init_kind kind;
    double scale;
} sf_init_rule;

typedef struct sf_init_rules {
    int count;
    sf_init_rule *at;
} sf_init_rules;

/* True, and *out set, when all of the text is a finite decimal number. */
bool sf_init_number(sf_str text, double *out);

/* Whether the text begins as rules do; else it is taken to be a path. */
bool sf_init_is_rules(const char *text);

/* Everything lives in the arena. NULL gives no rules. */
sf_status sf_init_parse(const char *text, sf_arena *arena, sf_diag *diag, sf_init_rules *out);

/* The rule for argument `index`, a parameter; fan sizes are found in the graph: from the dot
 * product or convolution that the parameter goes to, or else from its shape. */
sf_init_rule sf_init_choose(const sf_graph *graph, uint32_t index, const char *name,
                            const sf_init_rules *rules);

/* Fills the shards of every argument that is kept from step to step (see ir/name.h). `names` are
 * the clean names; threads, or NULL, share the draws, which do not depend on them. A pattern
 * without a match is SF_EUSAGE. */
sf_status sf_init_random(const sf_rank_shards *shards, const char *const *names,
                         const sf_init_rules *rules, uint64_t seed, sf_threads *threads,
                         const sf_holder *holder, sf_diag *diag);

/* Fills the shard that has these runs by a rule that is not the default one. */
void sf_init_fill(const sf_graph *graph, uint32_t index, const char *name, sf_init_rule rule,
                  uint64_t seed, sf_runs runs, sf_threads *threads, const sf_tensor *tensor);

/* Takes the parameters, and optimizer state where it is there, from a safetensors file: by clean name,
 * by "in.I", or by the last parts of the names where these leave one choice. Floats of other types are
 * converted. A parameter that is not there is an error; other state becomes zero. */
sf_status sf_init_file(const sf_rank_shards *shards, const char *const *names, const char *path,
                       uint64_t seed, sf_threads *threads, const sf_holder *holder, sf_diag *diag);

#endif
