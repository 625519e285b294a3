#include "solve/search/trial.h"

#include <math.h>
#include <string.h>

#include "solve/problem/budget.h"

enum { MOST_ROUNDS = 4, PASSES_A_READING = 8 };

void sf_trial_init(sf_trial *trial, const sf_tables *tables, sf_arena *arena)
{
    uint32_t nnodes = tables->problem->nnodes;
    *trial = (sf_trial){.read_value = HUGE_VAL};
    sf_dual_init(&trial->dual, tables, arena);
    sf_bundle_init(&trial->bundle, &trial->dual, arena);
    trial->read = SF_ARRAY(arena, nnodes, uint32_t);
    trial->scratch = SF_ARRAY(arena, nnodes, uint32_t);
    trial->messages = SF_ARRAY(arena, sf_dual_messages(&trial->dual), double);
}

/* Reads an assignment off the messages, improves it, and keeps it if it is better. */
static void read_off(sf_trial *trial)
{
    sf_dual *dual = &trial->dual;
    uint32_t nnodes = dual->tables->problem->nnodes;
    memcpy(trial->scratch, dual->choice, nnodes * sizeof *trial->scratch);
    dual->work += sf_tables_descend(dual->tables, dual->unary, dual->scratch, trial->scratch);
    double value = sf_dual_value(dual, trial->scratch);
    if (value >= trial->read_value)
        return;
    trial->read_value = value;
    trial->read_is_new = true;
    memcpy(trial->read, trial->scratch, nnodes * sizeof *trial->read);
}

void sf_trial_run(sf_trial *trial, int64_t work, double deadline)
{
    sf_dual *dual = &trial->dual;
    int64_t begin = dual->work;
    bool half = false;
    for (int pass = 0; dual->work - begin < work; pass++) {
        sf_dual_pass(dual, pass % 2 == 0);
        if (deadline < HUGE_VAL && sf_now() > deadline)
            break;
        if (pass % PASSES_A_READING == 1)
            read_off(trial);
        if (!half && pass % 2 == 1 && dual->work - begin > work / 2) {
            half = true;
            trial->half = sf_dual_estimate(dual);
        }
    }
    trial->estimate = sf_dual_estimate(dual);
    trial->rounds++;
}

bool sf_trial_judge(sf_trial *trial)
{
    size_t size = sf_dual_messages(&trial->dual) * sizeof *trial->messages;
    bool better = trial->estimate > trial->bundle.bound;
    sf_bundle_judge(&trial->bundle, trial->estimate, !trial->proposed && !trial->returned);
    if (better)
        memcpy(trial->messages, trial->dual.messages, size);
    else
        memcpy(trial->dual.messages, trial->messages, size);
    return better;
}

/* The average prices of the streams as multipliers: false when there are none. */
static bool propose_moves(sf_trial *trial, const sf_stream *streams, int count)
{
    sf_dual *dual = &trial->dual;
    uint32_t samples = 0;
    for (int k = 0; k < count; k++)
        samples += streams[k].samples;
    if (samples == 0)
        return false;
    memset(dual->multiplier, 0, dual->watch.count * sizeof *dual->multiplier);
    for (int k = 0; k < count; k++)
        for (uint32_t slot = 0; slot < streams[k].watch.count; slot++) {
            uint32_t there = sf_watch_add(&dual->watch, streams[k].watch.point[slot]);
            if (there < dual->watch.count)
                dual->multiplier[there] += streams[k].average[slot] / samples;
        }
    sf_dual_price(dual);
    return true;
}

static bool goes_on(const sf_trial *trial, double little)
{
    double rise = trial->estimate - trial->half;
    if (trial->rounds >= MOST_ROUNDS || trial->estimate + 4 * rise < trial->bundle.bound)
        return false;
    return rise > little;
}

void sf_trial_restart(sf_trial *trial)
{
    trial->rounds = 0;
    trial->read_value = sf_dual_value(&trial->dual, trial->read);
}

/* Prices of the streams are tried while that succeeds, and each time that it does not, the bundle
 * has more rounds before the next try. After a failure the messages of the center are improved
 * first, or younger messages would make worse multipliers look better. */
void sf_trial_next(sf_trial *trial, const sf_stream *streams, int count, double little)
{
    if (goes_on(trial, little))
        return;
    bool better = sf_trial_judge(trial), failed = !better && !trial->returned;
    if (trial->proposed) {
        trial->wait = better ? 0 : 2 * trial->waited + 1;
        trial->waited = trial->wait;
    }
    trial->returned = trial->proposed = false;
    if (failed) {
        trial->returned = true;
        sf_bundle_return(&trial->bundle);
    } else if (trial->wait == 0 && propose_moves(trial, streams, count)) {
        trial->proposed = true;
    } else {
        trial->wait -= trial->wait > 0;
        sf_bundle_next(&trial->bundle);
    }
    sf_trial_restart(trial);
}
