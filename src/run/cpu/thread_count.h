/* Who runs a step: all threads, or the caller alone, whichever takes less time.
 *
 * Small steps are slower on several threads than on one, and so are others on a machine whose processors have more to
 * do. Which they are is found by trying: a round runs steps in both ways, in turn, and what was faster is kept for a
 * while, longer and longer as long as rounds agree. Steps that take long are not tried alone.
 */
#ifndef SF_RUN_CPU_THREAD_COUNT_H
#define SF_RUN_CPU_THREAD_COUNT_H

#include <stdbool.h>

/* What a round has seen of one way. */
typedef struct sf_trial {
    int steps;
    double seconds, slowest; /* of all, and of the slowest one */
} sf_trial;

typedef struct sf_crew {
    bool alone;  /* the next step is to be run by the caller alone */
    bool chosen; /* what the last round found: alone */
    sf_trial trials[2];
    int left, rest; /* steps until the next round, and how many there are between rounds */
} sf_crew;

/* The first step meets its memory for the first time and is in no round. */
#define SF_CREW_NEW ((sf_crew){.left = 1})

/* The step that was run as `alone` said took so long. */
void sf_crew_learn(sf_crew *crew, double seconds);

#endif
