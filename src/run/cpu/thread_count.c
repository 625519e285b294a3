#include "run/cpu/thread_count.h"

/* Steps of each way in a round, and between two rounds. */
enum { TRIALS = 5, FIRST_REST = 64, MOST_REST = 4096 };

/* Seconds of a step that is not small, and how many times slower is clearly slower. */
#define LARGE 10e-3
#define CLEARLY 1.5

static void end_round(sf_crew *crew, bool alone)
{
    bool agrees = alone == crew->chosen && crew->rest > 0;
    crew->rest = !agrees ? FIRST_REST : crew->rest < MOST_REST ? 2 * crew->rest : MOST_REST;
    *crew = (sf_crew){.alone = alone, .chosen = alone, .left = crew->rest, .rest = crew->rest};
}

static void add_step(sf_trial *trial, double seconds)
{
    trial->steps++;
    trial->seconds += seconds;
    if (seconds > trial->slowest)
        trial->slowest = seconds;
}

/* The mean of the others: one step may have been slow for reasons of its own. */
static double usual_seconds(const sf_trial *trial)
{
    return (trial->seconds - trial->slowest) / (trial->steps - 1);
}

void sf_crew_learn(sf_crew *crew, double seconds)
{
    if (crew->left > 0) {
        crew->left--;
        crew->alone = crew->alone && crew->left > 0; /* rounds begin together */
        return;
    }
    const sf_trial *together = &crew->trials[false], *alone = &crew->trials[true];
    add_step(&crew->trials[crew->alone], seconds);
    bool large = !crew->alone && seconds >= LARGE;
    if (large || (alone->steps > 1 && usual_seconds(alone) > CLEARLY * usual_seconds(together)))
        end_round(crew, false);
    else if (alone->steps == TRIALS)
        end_round(crew, usual_seconds(alone) < usual_seconds(together));
    else
        crew->alone = !crew->alone;
}
