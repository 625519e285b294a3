/* Progress of long calls, and how to stop them. */
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
    SF_EVENT_STAGE = 3, /* a search for a plan, calibration: the text names the stage */
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

/* A listener receives events. It returns true to continue and false to stop soon: training saves
 * and returns, a search or the solver returns its best result, verification ends with the steps
 * that were made, calibration shortens the remaining measurements, tuning ends with the trials that
 * were made. After it returned false it may be called more often, and must return false each time.
 *
 * It runs on the thread that called the library, inside that call, whatever threads the library
 * uses: a program that needs it on another thread makes the call there. Under mpirun the listener
 * of every process is called, and one that returns false stops all processes. */
typedef bool sf_listener(void *context, const sf_event *event);

/* A flag that stops a call from another thread or from a signal handler. The options of long calls
 * take one. Raising it has the effect of a listener that returns false: a run stops at its next
 * step, a search within a moment. It stays raised until it is cleared, and may be shared by several
 * calls. */
typedef struct sf_interrupt sf_interrupt;

SF_API sf_interrupt *sf_interrupt_new(void); /* NULL without memory */
SF_API void sf_interrupt_free(sf_interrupt *interrupt);

/* Any thread and any signal handler may call these at any time; NULL does nothing. */
SF_API void sf_interrupt_raise(sf_interrupt *interrupt);
SF_API void sf_interrupt_clear(sf_interrupt *interrupt);
SF_API bool sf_interrupt_is_raised(const sf_interrupt *interrupt);

#ifdef __cplusplus
}
#endif

#endif
