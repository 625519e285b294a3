/* Times of the instructions of a program while it runs: that of the step, or a body of one. */
#ifndef SF_RUN_CPU_INSTRUCTION_TIMES_H
#define SF_RUN_CPU_INSTRUCTION_TIMES_H

#include "base/arena.h"
#include "prog/program.h"
#include "prog/timing.h"

/* By instruction, all of it in the arena. */
typedef struct sf_watch {
    size_t count;
    double *seconds;  /* over all steps; of a collective or copy, to start it and to wait for it */
    double *spans;    /* from begin to end, without warm-up, */
    double *runs;     /* and how often that was */
    sf_timing *insts; /* of the last time */
} sf_watch;

sf_watch sf_watch_new(const sf_program *program, sf_arena *arena);

/* An instruction has begun and ended, or, if it is asynchronous, has been started. Times are those
 * of sf_now, but `began` is when the step did. */
void sf_watch_note(const sf_watch *watch, uint32_t inst, double began, double start, double end);

/* An asynchronous instruction was waited for, from `start` to `end`; it had ended at `over`. */
void sf_watch_wait(const sf_watch *watch, uint32_t inst, double began, double start, double end,
                   double over);

/* Drops the times so far from spans: a first step warms up. */
void sf_watch_forget(const sf_watch *watch);

/* Stores the average times in `insts`. */
void sf_watch_settle(const sf_watch *watch);

#endif
