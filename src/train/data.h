/* The batches of a training run. Batch number n is a function of the data, the seed and n alone: a run
 * that is resumed needs no more than its step.
 *
 * Three kinds of data, see docs/guides/train.md: safetensors with batches, a file of tokens from which
 * windows are cut, and "synthetic" numbers.
 */
#ifndef SF_TRAIN_DATA_H
#define SF_TRAIN_DATA_H

#include "ir/graph.h"
#include "ir/tensor.h"
#include "sheaf/train.h"
#include "train/mapped_file.h"
#include "train/random_draw.h"

typedef struct sf_data sf_data;
typedef struct sf_data_kind sf_data_kind; /* data_kind.h */

typedef struct sf_data_options {
    const char *source;      /* a path, "synthetic" or "synthetic:N" */
    const char *tokens_type; /* "u8", "u16", "u32"; NULL: from the name of the file */
    sf_train_order order;
    uint64_t seed;
} sf_data_options;

/* Filled by sf_data_open. Belongs outside of the guard: after a jump its memory is gone, but the
 * mappings are still to be closed. */
struct sf_data {
    const sf_graph *graph;
    const char *const *names; /* clean names of the arguments */
    const bool *wanted;       /* by argument: to be filled from the data */
    sf_data_options options;
    sf_arena arena;
    sf_mappings mappings;
    const sf_data_kind *kind;
    void *self;
    bool shuffled;
    int64_t count;     /* items in an epoch: batches or windows */
    int64_t per_batch; /* items in a batch */
    int64_t amount;    /* tokens or samples in a batch */
    bool counts_tokens;
    const char
        *about; /* one line: two runs with the same line get the same batches, where the files
                          have the same content */
};

/* Opens the data and checks that it fits; graph, names, wanted and the strings of the options are
 * borrowed. *out must be closed, also when this fails. */
sf_status sf_data_open(const sf_graph *graph, const char *const *names, const bool *wanted,
                       const sf_data_options *options, sf_diag *diag, sf_data *out);

/* Writes batch `number`, counting from 0, into the wanted arguments. */
sf_status sf_data_batch(sf_data *data, int64_t number, const sf_tensor *arguments, sf_diag *diag);

void sf_data_close(sf_data *data);

#endif
