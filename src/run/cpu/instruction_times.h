/* What the instructions of a program take while it runs: that of the step, or a body of one. */
#ifndef SF_RUN_CPU_INSTRUCTION_TIMES_H
#define SF_RUN_CPU_INSTRUCTION_TIMES_H

#include "base/arena.h"
#include "prog/program.h"
#include "prog/timing.h"

/* By instruction, all of it in the arena. */
typedef struct sf_watch {
    size_t count;
    double *seconds;  /* over all steps; of a collective or copy, to start it and to wait for it */
    double *spans;    /* from its begin to its end, over what counts, */
    double *runs;     /* and how often that was */
    sf_timing *insts; /* of the last time */
} sf_watch;

sf_watch sf_watch_new(const sf_program *program, sf_arena *arena);

/* An instruction has begun and ended, or, of what goes on beside others, has been started. Times are those of sf_now, but `began`
 * is when the step did. */
void sf_watch_note(const sf_watch *watch, uint32_t inst, double began, double start, double end);

/* What was started was waited for, from `start` to `end`; it had ended at `over`. */
void sf_watch_wait(const sf_watch *watch, uint32_t inst, double began, double start, double end,
                   double over);

/* What was so far does not count in spans: a first step warms up. */
void sf_watch_forget(const sf_watch *watch);

/* Brings what it took on average into `insts`. */
void sf_watch_settle(const sf_watch *watch);

#endif
