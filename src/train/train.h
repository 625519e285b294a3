/* The training loop of include/sheaf/train.h. */
#ifndef SF_TRAIN_TRAIN_H
#define SF_TRAIN_TRAIN_H

#include "sheaf/train.h"
#include "train/data.h"
#include "train/train_log.h"
#include "train/training_run.h"

/* A run. Zeroed but for the first four and the report; belongs outside of the guard, because it holds
 * files: sf_training_end closes them, after a jump too. */
typedef struct sf_training {
    const sf_graph *graph;
    sf_train_options options;
    sf_diag *diag;
    sf_threads *pool; /* borrowed; for the engine */
    sf_comm *comm;    /* of a split run, or NULL */
    sf_train_report report;

    sf_arena arena;
    sf_train_run training_run;
    bool *wanted;               /* by argument: from the data */
    bool *filled;               /* by argument: anew for each step, from the data or as a key */
    bool is_filled;             /* inputs are there for the step that comes, */
    struct sf_filling *filling; /* or may be soon: data are drawn beside a step; or NULL */
    bool settled;               /* it failed, and all ranks know */
    bool asked;                 /* the listener wants to stop */
    int64_t memory;             /* of the rank that takes most */
    double flops;               /* of a step */
    double pace;                /* seconds of a step, smoothed; 0 before the first */
    double computed;            /* seconds of the last step that its program took, */
    double waited; /* and those in which it waited for data to be drawn and brought to the device */
    sf_data data;
    sf_log log;
} sf_training;

/* Everything from the first check to the last checkpoint. Frees its memory; files stay open. */
sf_status sf_training_run(sf_training *training);

/* Closes the files. */
void sf_training_end(sf_training *training);

/* Engine, state and data, ready for the first step. */
sf_status sf_training_prepare(sf_training *training);

/* A status that all ranks share, unless it is SF_EPEER: notes that, and returns it. */
sf_status sf_training_note(sf_training *training, sf_status status);

/* sf_agree on each rank's own result. */
sf_status sf_training_settle(sf_training *training, sf_status mine, const char *what);

/* Whether this rank speaks for all: prints, logs, names checkpoints. */
bool sf_training_is_first(const sf_training *training);

/* Fills the key arguments that the step does not carry along: jax.random.fold_in(PRNGKey(seed), step).
 * Of several, the later ones fold in their number among the keys first. */
void sf_fill_keys(const sf_graph *graph, uint64_t seed, int64_t step, const sf_tensor *arguments);

#endif
