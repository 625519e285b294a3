/* The part of the search that works on the bound: multipliers on trial.
 *
 * Multipliers come from three places: a ramp at the start, the prices of the streams, and the bundle. Each
 * set is on trial for some rounds of message passing; then it becomes the center if the bound is better, or
 * messages and multipliers of the center come back. Meanwhile assignments are read off the messages.
 */
#ifndef SF_SOLVE_SEARCH_TRIAL_H
#define SF_SOLVE_SEARCH_TRIAL_H

#include "solve/dual/bundle.h"
#include "solve/search/stream.h"

typedef struct sf_trial {
    sf_dual dual;
    sf_bundle bundle;
    int rounds;            /* with these multipliers */
    double half, estimate; /* their bounds in the middle and at the end of the last round */
    uint32_t *read;        /* [nnodes]: the best assignment that was read off, improved */
    double read_value;     /* its cost at the present multipliers */
    bool read_is_new;      /* since the caller last reset this */
    uint32_t *scratch;     /* [nnodes] */
    double *messages;      /* of the dual, when its multipliers became the center */
    bool proposed;         /* the multipliers are prices of the streams */
    bool returned;         /* the multipliers are the center's, for better messages */
    int wait, waited; /* rounds of the bundle before the next try of prices; and the last time */
} sf_trial;

void sf_trial_init(sf_trial *trial, const sf_tables *tables, sf_arena *arena);

/* A round: `work` cells of message passing, or until the clock passes the deadline. Allocates nothing. */
void sf_trial_run(sf_trial *trial, int64_t work, double deadline);

/* Ends the trial. True when the multipliers are the new center. */
bool sf_trial_judge(sf_trial *trial);

/* After a round: goes on with the same multipliers while that promises more than `little`, or else judges
 * them and takes others. */
void sf_trial_next(sf_trial *trial, const sf_stream *streams, int count, double little);

/* Multipliers have been set: the assignment that was read off has another value now. */
void sf_trial_restart(sf_trial *trial);

#endif
