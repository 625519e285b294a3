/* A training run on one rank: its step, its step count, and its checkpoints. Training and sessions
 * share it; they fill the arguments, and end it.
 *
 * Ranks of a split run call these functions together. */
#ifndef SF_TRAIN_TRAINING_RUN_H
#define SF_TRAIN_TRAINING_RUN_H

#include "train/rank_state.h"

/* Belongs outside of the guard, because it holds files: sf_train_run_end closes them, after a jump too. A zeroed one is
 * closed. */
typedef struct sf_train_run {
    sf_rank_state rank_state;
    uint32_t loss;           /* result, or SF_NONE */
    double last;             /* loss of the last step; NaN before it, and where there is none */
    sf_checkpoint_info info; /* the steps that were made among it */
    int64_t saved;           /* step of the last checkpoint; -1: none */
    char *resumed;           /* the checkpoint that was loaded or saved last, or NULL */
    char *data;              /* of info, where it comes from a checkpoint; or NULL */
    sf_checkpoints checkpoints;
    sf_mappings mappings; /* of a checkpoint, while it is read */
} sf_train_run;

/* To be closed, after a failure too; but not after a jump, when its memory is gone. */
sf_status sf_train_run_open(const sf_rank_state_options *options, sf_diag *diag, sf_train_run *out);
void sf_train_run_close(sf_train_run *training_run);

/* Closes the files. */
void sf_train_run_end(sf_train_run *training_run);

/* The state before the first step: by rules, or from a safetensors file or a checkpoint (see init.h); NULL: by the
 * default rules. */
sf_status sf_train_run_init(sf_train_run *training_run, const char *init, uint64_t seed,
                            sf_diag *diag);

/* Hands in the inputs that were lent, and makes a step. */
sf_status sf_train_run_step(sf_train_run *training_run, sf_diag *diag);

/* The same in two halves, as sf_engine_start and sf_engine_finish: the next inputs may be lent while it goes on. */
sf_status sf_train_run_start(sf_train_run *training_run, sf_diag *diag, bool *goes_on);
sf_status sf_train_run_finish(sf_train_run *training_run, sf_diag *diag);

/* The checkpoint of a path, as sf_checkpoint_find; SF_EINPUT if there is none. */
sf_status sf_train_run_find(const char *path, char out[SF_PATH_SIZE], sf_diag *diag);

/* Takes state, step and seed from a checkpoint. */
sf_status sf_train_run_load(sf_train_run *training_run, const char *checkpoint, sf_diag *diag);

/* Makes the directory the one to save to. SF_EUSAGE where it holds checkpoints, unless the one loaded or saved last is
 * among them. All ranks get the same status. */
sf_status sf_train_run_enter(sf_train_run *training_run, const char *directory, sf_diag *diag);

/* Saves to that directory; `keep` as of sf_train. */
sf_status sf_train_run_save(sf_train_run *training_run, int64_t keep, sf_diag *diag);

/* The path of the checkpoint of the step at hand, in `out`, which is returned. */
enum { SF_TRAIN_RUN_PATH = SF_PATH_SIZE + 32 };
const char *sf_train_run_path(const sf_train_run *training_run, char out[SF_TRAIN_RUN_PATH]);

#endif
