/* A seat: what one rank runs of a step, and what it holds. A run on one device is one of one rank.
 *
 * Batches and keys come whole and are cut: inputs are lent to whoever fills them, and handed in.
 */
#ifndef SF_TRAIN_RANK_STATE_H
#define SF_TRAIN_RANK_STATE_H

#include "local/local.h"
#include "run/runner.h"
#include "train/checkpoint.h"

typedef struct sf_seat_options {
    const sf_graph *graph;
    const sf_plan *plan; /* NULL: unsplit */
    sf_comm *comm;       /* of a split run, or NULL */
    const char *engine;  /* as sf_runner_options */
    sf_threads *pool;
    int64_t memory, device_memory; /* as sf_engine_options */
    sf_precision precision;
    sf_host_link host_link;
    bool check;
} sf_seat_options;

/* Everything that the options point to is borrowed. */
typedef struct sf_seat {
    sf_seat_options options;
    sf_arena arena;
    const char **names; /* clean, by argument */
    sf_pieces pieces;
    sf_pieces results; /* as pieces, with the layouts of results */
    sf_local *local;   /* or NULL: unsplit */
    sf_runner runner;
    sf_tensor *inputs; /* by argument: whole; with data while they are lent */
    char **wholes;     /* by argument: where it is filled, of those that are split */
} sf_seat;

/* To be closed, after a failure too; but not after a jump, when the arena behind everything is gone. */
sf_status sf_seat_open(const sf_seat_options *options, sf_diag *diag, sf_seat *out);
void sf_seat_close(sf_seat *seat);

/* The pieces, for init.h and checkpoint.h. */
sf_state sf_seat_state(const sf_seat *seat);
sf_holder sf_seat_holder(const sf_seat *seat);

/* Lends those of the inputs that `which`, by argument, says: seat->inputs[i].data is there to be written until they
 * are handed in. */
sf_status sf_seat_lend_inputs(sf_seat *seat, const bool *which, sf_diag *diag);
sf_status sf_seat_hand_in(sf_seat *seat, sf_diag *diag);

/* Takes this rank's piece of an argument from the whole tensor, row-major. */
sf_status sf_seat_write(sf_seat *seat, uint32_t argument, const void *whole, sf_diag *diag);

/* Takes this rank's shard of an argument, row-major, and hands it out; `bytes` are those of the boxes that make it up. */
sf_status sf_seat_write_shard(sf_seat *seat, uint32_t argument, const void *shard, size_t bytes,
                              sf_diag *diag);
sf_status sf_seat_read_shard(sf_seat *seat, uint32_t argument, void *shard, size_t bytes,
                             sf_diag *diag);

/* Puts this rank's pieces where they belong in a whole tensor. Ranks that are threads share it, and each part of it is
 * written by one of them; those that are processes call this together, and each gets all of it. A result is one of the
 * last step. */
sf_status sf_seat_read(sf_seat *seat, uint32_t argument, void *whole, sf_diag *diag);
sf_status sf_seat_read_result(sf_seat *seat, uint32_t result, void *whole, sf_diag *diag);

/* A step, as sf_engine_start and sf_engine_finish: while it goes on, inputs may be lent. */
sf_status sf_seat_start(sf_seat *seat, sf_diag *diag, bool *goes_on);
sf_status sf_seat_finish(sf_seat *seat, sf_diag *diag);

/* The first element of a result of the last step, as a number. */
sf_status sf_seat_number(sf_seat *seat, uint32_t result, sf_diag *diag, double *out);

#endif
