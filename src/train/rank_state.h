/* The state of a rank: its program, and its shards. A run on one device is one of one rank.
 *
 * Batches and keys come whole and are cut: inputs are lent to the caller that fills them, and
 * returned. */
#ifndef SF_TRAIN_RANK_STATE_H
#define SF_TRAIN_RANK_STATE_H

#include "local/local.h"
#include "run/runner.h"
#include "train/checkpoint.h"

typedef struct sf_rank_state_options {
    const sf_graph *graph;
    const sf_plan *plan; /* NULL: unsplit */
    sf_comm *comm;       /* of a split run, or NULL */
    const char *engine;  /* as sf_runner_options */
    sf_threads *pool;
    int64_t memory, device_memory; /* as sf_engine_options */
    sf_precision precision;
    sf_host_link host_link;
    bool check;
} sf_rank_state_options;

/* Everything that the options point to is borrowed. */
typedef struct sf_rank_state {
    sf_rank_state_options options;
    sf_arena arena;
    const char **names; /* clean, by argument */
    sf_rank_shards shards;
    sf_rank_shards results; /* as shards, with the layouts of results */
    sf_local *local;        /* or NULL: unsplit */
    sf_runner runner;
    sf_tensor *inputs; /* by argument: whole; with data while they are lent */
    char **wholes;     /* by argument: where it is filled, of those that are split */
} sf_rank_state;

/* Must be closed, after a failure too; but not after a jump, when the arena is gone. */
sf_status sf_rank_state_open(const sf_rank_state_options *options, sf_diag *diag,
                             sf_rank_state *out);
void sf_rank_state_close(sf_rank_state *rank_state);

/* The shards, for init.h and checkpoint.h. */
sf_state sf_rank_state_values(const sf_rank_state *rank_state);
sf_holder sf_rank_state_holder(const sf_rank_state *rank_state);

/* Lends the inputs marked in `which`, by argument: inputs[i].data may be written until they are
 * returned. */
sf_status sf_rank_state_lend_inputs(sf_rank_state *rank_state, const bool *which, sf_diag *diag);
sf_status sf_rank_state_hand_in(sf_rank_state *rank_state, sf_diag *diag);

/* Takes this rank's shard of an argument from the whole tensor, row-major. */
sf_status sf_rank_state_write(sf_rank_state *rank_state, uint32_t argument, const void *whole,
                              sf_diag *diag);

/* Takes this rank's shard of an argument, row-major, and hands it out; `bytes` are those of the boxes that make it up. */
sf_status sf_rank_state_write_shard(sf_rank_state *rank_state, uint32_t argument, const void *shard,
                                    size_t bytes, sf_diag *diag);
sf_status sf_rank_state_read_shard(sf_rank_state *rank_state, uint32_t argument, void *shard,
                                   size_t bytes, sf_diag *diag);

/* Puts this rank's shards at their places in a whole tensor. Ranks that are threads share it, and
 * each part of it is written by one of them; those that are processes call this together, and each
 * gets all of it. A result is one of the last step. */
sf_status sf_rank_state_read(sf_rank_state *rank_state, uint32_t argument, void *whole,
                             sf_diag *diag);
sf_status sf_rank_state_read_result(sf_rank_state *rank_state, uint32_t result, void *whole,
                                    sf_diag *diag);
sf_status sf_rank_state_read_result_shard(sf_rank_state *rank_state, uint32_t result, void *shard,
                                          size_t bytes, sf_diag *diag);

/* A step, as sf_engine_start and sf_engine_finish: while it goes on, inputs may be lent. */
sf_status sf_rank_state_start(sf_rank_state *rank_state, sf_diag *diag, bool *goes_on);
sf_status sf_rank_state_finish(sf_rank_state *rank_state, sf_diag *diag);

/* The first element of a result of the last step, as a number. */
sf_status sf_rank_state_number(sf_rank_state *rank_state, uint32_t result, sf_diag *diag,
                               double *out);

#endif
