/* Within api/: the state of tuning a step.
 *
 *     apply --(api/tune_points.c)--> points --(tune/)--> trials --(api/tune_log.c)--> log
 *                                              ^  |
 *                                              +--+ (api/tune.c) */
#ifndef SF_API_TUNING_H
#define SF_API_TUNING_H

#include "api/tune/settings.h"
#include "train/train_log.h"
#include "tune/tuner.h"

/* A setting: which value each variable has, by number, and as text, "batch=4,ratio=12". */
typedef struct sf_point {
    int nvariables;
    const int64_t *chosen;
    const char *text;
    const char **values; /* by variable of the space; NULL: it has no such variable */
} sf_point;

typedef struct sf_tuning {
    const sf_graph *graph;
    sf_tune_apply *apply;
    void *context;
    sf_tune_options options;
    sf_diag *diag;
    sf_arena arena; /* of the report, and all below */
    sf_tune_report *report;
    sf_point *at;
    sf_points points;
    sf_trial *simulated; /* by point: as the log has it; `setting` is NULL where it does not */
    const sf_trial **trials;
    size_t capacity;
    sf_cluster *own; /* where the caller has none */
    sf_log log;
    bool returned; /* memory did not run out, or not past a call that noticed */
} sf_tuning;

/* Runs the program for every setting there is. */
sf_status sf_tuning_find_points(sf_tuning *tuning);

/* Runs it for one. The list is for sf_primitives_free, NULL after a failure. */
sf_status sf_tuning_apply(sf_tuning *tuning, sf_settings *settings, sf_diag *diag,
                          sf_primitives **out);

/* Reads the log that is there, and opens it. */
sf_status sf_tuning_open_log(sf_tuning *tuning);
sf_status sf_tuning_write_log(sf_tuning *tuning, const sf_trial *trial);

#endif
