/* How long work tells its caller where it is, and asks whether to go on. */
#ifndef SHEAF_EVENT_H
#define SHEAF_EVENT_H

#include <stddef.h>

#include "sheaf/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum sf_event_kind {
    SF_EVENT_START = 0, /* training: everything is ready */
    SF_EVENT_STEP = 1,  /* training, verification, a session: a step was made */
    SF_EVENT_SAVED = 2, /* training: a checkpoint is safely on disk */
    SF_EVENT_STAGE = 3, /* a search for a plan, calibration: the text says what is done now */
    SF_EVENT_SOLVE = 4, /* the solver: `solve` says how far it is */
} sf_event_kind;

typedef struct sf_event {
    size_t size; /* of this struct, as the library has it */
    sf_event_kind kind;
    int rank;         /* which speaks: 0, unless this process is one of mpirun */
    const char *text; /* STAGE: for people; SAVED: the path; START: the checkpoint resumed from */
    int64_t step, steps;                   /* made so far, and in all */
    double loss;                           /* STEP: of that step; NaN when it has none */
    const struct sf_train_progress *train; /* of training, see train.h; else NULL */
    const struct sf_solve_progress *solve; /* of the solver, see solve.h; else NULL */
} sf_event;

/* A listener is told of events. It returns true to go on and false to stop soon: training saves and returns, a
 * search or the solver gives the best that it has, verification ends with the steps that were made, calibration
 * measures the rest in a hurry. Whoever has returned false may still be called, and returns false again.
 *
 * It is called by one thread at a time, which may be another than the one that called the library. Where ranks are
 * threads, one of them speaks for all; under mpirun every process is told, and one that wants to stop stops all. */
typedef bool sf_listener(void *context, const sf_event *event);

#ifdef __cplusplus
}
#endif

#endif
