/* Whether a step runs on all threads, or on the caller alone, whichever is faster.
 *
 * Small steps are slower on several threads than on one, and so are others on a busy machine. The
 * engine tries both: a round runs steps in both ways, alternating, and keeps the faster one for a
 * while, longer and longer as long as rounds agree. Long steps are not tried alone. */
#ifndef SF_RUN_CPU_THREAD_COUNT_H
#define SF_RUN_CPU_THREAD_COUNT_H

#include <stdbool.h>

/* The times of one way in a round. */
typedef struct sf_trial {
    int steps;
    double seconds, slowest; /* of all, and of the slowest one */
} sf_trial;

typedef struct sf_crew {
    bool alone;  /* the next step runs on the caller alone */
    bool chosen; /* result of the last round: alone */
    sf_trial trials[2];
    int left, rest; /* steps until the next round, and how many there are between rounds */
} sf_crew;

/* The first step meets its memory for the first time and is in no round. */
#define SF_CREW_NEW ((sf_crew){.left = 1})

/* The step that was run as `alone` said took so long. */
void sf_crew_learn(sf_crew *crew, double seconds);

#endif
