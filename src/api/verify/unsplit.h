/* The unsplit run that a split one is compared with: its arguments, batches and results, all whole.
 *
 * It runs twice. `own` is its own state, which makes the losses; `split` is the state of the split
 * run, from which each of its steps is repeated, to check the results. Batches are the same for
 * both.
 *
 * Memory that ranks share is made by sf_unsplit_open and stays where it is; only the rank that leads in
 * its process calls the functions below, while the others wait, and the engine is that rank's. */
#ifndef SF_API_UNSPLIT_H
#define SF_API_UNSPLIT_H

#include "api/verify/replay.h"
#include "run/runner.h"
#include "sheaf/eval.h"
#include "train/data.h"

typedef struct sf_unsplit {
    const sf_graph *graph;
    uint32_t loss;     /* which result */
    sf_tensor *split;  /* arguments */
    sf_tensor *own;    /* arguments; those that are not state are `split` */
    sf_tensor *theirs; /* results of the last step from `split` */
    double own_loss;   /* of the last step from `own` */

    sf_arena arena;
    sf_replay replay; /* where there is a file */
    bool has_file;
    sf_data data; /* and where there is none */
    bool *wanted;
    const char *init;
    uint64_t seed;
    sf_runner runner;
} sf_unsplit;

/* From options->against, or, where that is NULL, as training starts: `init`, `data` and `seed` are of those
 * options. To be closed, also when this fails; but not
 * after a jump. */
sf_status sf_unsplit_open(const sf_graph *graph, const sf_verify_options *options, sf_diag *diag,
                          sf_unsplit *out);
void sf_unsplit_close(sf_unsplit *unsplit);

/* How many steps there are batches for. */
int sf_unsplit_count(const sf_unsplit *unsplit);

/* The batch of a step into `split` and `own`. */
sf_status sf_unsplit_batch(sf_unsplit *unsplit, int step, sf_diag *diag);

/* A step from `split` and one from `own`, which goes on; where `same`, they are the same. A loss that is no
 * finite number is SF_EMISMATCH: it would agree with anything. */
sf_status sf_unsplit_step(sf_unsplit *unsplit, bool same, sf_diag *diag);

/* Whole results that become the state of `split`. */
void sf_unsplit_follow(sf_unsplit *unsplit, const sf_tensor *results);

/* Resets the state of `split` to that before the first step. */
sf_status sf_unsplit_restart(sf_unsplit *unsplit, sf_arena *scratch, sf_diag *diag);

#endif
