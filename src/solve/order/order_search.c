#include "solve/order/order_search.h"

#include <string.h>

#include "solve/order/list_schedule.h"
#include "solve/order/modulo_schedule.h"
#include "solve/order/order_exact.h"
#include "solve/order/order_polish.h"
#include "solve/search/dice.h"

enum {
    FEW_JOBS = 40,
    URGENCIES = 4,
    LOOKS = 16, /* to look at so many jobs takes as long as to time one */
};

typedef struct searching {
    const sf_jobs *jobs;
    const sf_order_options *options;
    const int64_t *tails;
    sf_order_result *out;
    uint64_t work;    /* left, in jobs of queues that are timed */
    int64_t *urgency; /* room for it */
    sf_arena *arena;
} searching;

/* Keeping the best */

static int64_t total_peak(const sf_jobs *jobs, const sf_times *times)
{
    int64_t sum = 0;
    for (uint32_t m = 0; m < jobs->nmachines; m++)
        sum += times->peaks[m];
    return sum;
}

static bool is_better(const sf_jobs *jobs, const sf_times *a, const sf_times *b)
{
    if (a->fits != b->fits)
        return a->fits;
    int64_t more = total_peak(jobs, a) - total_peak(jobs, b);
    if (!a->fits && more != 0)
        return more < 0;
    return a->makespan != b->makespan ? a->makespan < b->makespan : more < 0;
}

static void spend(searching *s, uint64_t work)
{
    s->work = s->work > work ? s->work - work : 0;
}

/* Something is known, and no work is left to better it. */
static bool is_over(const searching *s)
{
    return s->out->found && s->work == 0;
}

/* Takes queues that were made since the mark, or gives their memory back. */
static void offer(searching *s, const sf_queues *queues, sf_mark mark)
{
    sf_times times;
    spend(s, s->jobs->njobs);
    sf_queues_time(s->jobs, queues, s->arena, &times);
    if (times.nstuck > 0 || (s->out->found && !is_better(s->jobs, &times, &s->out->times))) {
        sf_arena_reset(s->arena, mark);
        return;
    }
    s->out->found = true;
    s->out->queues = *queues;
    s->out->times = times;
}

/* A copy: queues are polished in place. */
static void offer_known(searching *s)
{
    const sf_queues *known = s->options->known;
    sf_mark mark = sf_arena_mark(s->arena);
    sf_queues copy = sf_queues_new(s->jobs, s->arena);
    for (uint32_t m = 0; m < s->jobs->nmachines; m++) {
        copy.counts[m] = known->counts[m];
        memcpy(copy.jobs[m], known->jobs[m], known->counts[m] * sizeof *copy.jobs[m]);
    }
    offer(s, &copy, mark);
}

/* Nothing is left to be gained in time. */
static bool is_done(const searching *s)
{
    return s->out->found && s->out->times.fits && s->out->times.makespan <= s->out->bound;
}

/* Bound */

static int64_t *find_heads(const sf_jobs *jobs, sf_arena *arena)
{
    int64_t *heads = SF_ARRAY(arena, jobs->njobs + 1, int64_t);
    uint32_t *missing = SF_ARRAY(arena, jobs->njobs + 1, uint32_t);
    uint32_t *ready = SF_ARRAY(arena, jobs->njobs + 1, uint32_t);
    uint32_t nready = 0;
    for (uint32_t j = 0; j < jobs->njobs; j++)
        if ((missing[j] = jobs->first_in[j + 1] - jobs->first_in[j]) == 0)
            ready[nready++] = j;
    while (nready > 0) {
        uint32_t job = ready[--nready];
        for (uint32_t o = jobs->first_out[job]; o < jobs->first_out[job + 1]; o++) {
            const sf_wait *wait = &jobs->waits[jobs->out[o]];
            int64_t head = heads[job] + jobs->jobs[job].time + wait->delay;
            heads[wait->after] = head > heads[wait->after] ? head : heads[wait->after];
            if (--missing[wait->after] == 0)
                ready[nready++] = wait->after;
        }
    }
    return heads;
}

int64_t sf_jobs_bound(const sf_jobs *jobs, sf_arena *arena)
{
    const int64_t *heads = find_heads(jobs, arena), *tails = sf_jobs_tails(jobs, arena);
    int64_t bound = 0;
    for (uint32_t m = 0; m < jobs->nmachines && tails; m++) {
        int64_t load = 0, head = INT64_MAX, tail = INT64_MAX;
        for (uint32_t j = 0; j < jobs->njobs; j++) {
            int64_t chain = heads[j] + jobs->jobs[j].time + tails[j];
            bound = m == 0 && chain > bound ? chain : bound;
            if (!(jobs->jobs[j].machines >> m & 1))
                continue;
            load += jobs->jobs[j].time;
            head = heads[j] < head ? heads[j] : head;
            tail = tails[j] < tail ? tails[j] : tail;
        }
        if (head < INT64_MAX && head + load + tail > bound)
            bound = head + load + tail;
    }
    return bound;
}

/* Lists */

static int64_t urgency_of(const searching *s, uint32_t job, int which)
{
    const sf_job *it = &s->jobs->jobs[job];
    const int64_t much = INT64_C(1) << 40;
    bool frees = it->at_start + it->at_end < 0;
    int64_t microbatch = -(int64_t)it->microbatch * much;
    switch (which) {
    case 0:
        return s->tails[job];
    case 1:
        return microbatch + s->tails[job] / 2;
    case 2:
        return (frees ? much : 0) * (1 << 20) + microbatch;
    default:
        return (frees && s->jobs->first_out[job] < s->jobs->first_out[job + 1] ? much : 0) *
                   (1 << 20) +
               s->tails[job] / 2;
    }
}

/* With as wide a window as does not get stuck. */
static bool list_in_window(searching *s, sf_list_options options, sf_queues *queues)
{
    uint32_t nmicrobatches = 0;
    for (uint32_t j = 0; j < s->jobs->njobs; j++)
        nmicrobatches = s->jobs->jobs[j].microbatch >= nmicrobatches
                            ? s->jobs->jobs[j].microbatch + 1
                            : nmicrobatches;
    for (uint32_t window = nmicrobatches; window > 0 && !is_over(s); window /= 2) {
        uint64_t looked = 0;
        options.window = window == nmicrobatches ? 0 : window;
        options.looked = &looked;
        bool good = sf_list_schedule(s->jobs, &options, s->arena, queues);
        spend(s, s->jobs->njobs + looked / LOOKS);
        if (good)
            return true;
    }
    return false;
}

/* By s->urgency. */
static void try_lists(searching *s)
{
    for (int patient = 0; patient < 2 && !is_over(s); patient++) {
        sf_queues queues;
        sf_mark mark = sf_arena_mark(s->arena);
        sf_list_options options = {.urgency = s->urgency, .patient = patient};
        if (list_in_window(s, options, &queues))
            offer(s, &queues, mark);
        else
            sf_arena_reset(s->arena, mark);
    }
}

static void try_urgencies(searching *s)
{
    for (int which = 0; which < URGENCIES && !is_over(s); which++) {
        for (uint32_t j = 0; j < s->jobs->njobs; j++)
            s->urgency[j] = urgency_of(s, j, which);
        try_lists(s);
    }
}

/* Jobs a little more or less urgent than that: often it is all that is missing. */
static void try_noise(searching *s)
{
    enum { TRIES = 100 };
    sf_dice dice = {1};
    int64_t longest = 0;
    for (uint32_t j = 0; j < s->jobs->njobs; j++)
        longest = s->tails[j] > longest ? s->tails[j] : longest;
    uint32_t most = longest / 8 >= UINT32_MAX ? UINT32_MAX : (uint32_t)(longest / 8) + 1;
    uint64_t kept = s->work / 2; /* for the following searches */
    for (int i = 0; i < TRIES && s->work > kept && !is_done(s); i++) {
        for (uint32_t j = 0; j < s->jobs->njobs; j++)
            s->urgency[j] = urgency_of(s, j, i % URGENCIES) + sf_dice_below(&dice, most);
        try_lists(s);
    }
}

/* The middle as it was found, with its ends as they follow from it, and with ends put together by lists: there jobs go as the
 * middle would have them, but none waits where it could start. */
static void try_repeats(searching *s)
{
    enum {
        MOST = 16,
        MOST_KINDS = 1024
    }; /* the time that it takes grows with the square of kinds */
    sf_repeat ways[MOST];
    if (s->options->nkinds > MOST_KINDS || is_over(s))
        return;
    uint32_t tries = s->options->nkinds > 64 ? 8 : s->options->nkinds > 24 ? 40 : 200;
    uint32_t n = sf_repeat_find(s->jobs, s->options->nkinds, tries, MOST, s->arena, ways);
    for (uint32_t i = 0; i < n && !is_over(s); i++) {
        sf_mark mark = sf_arena_mark(s->arena);
        sf_queues queues = sf_queues_by_start(s->jobs, ways[i].start, s->arena);
        offer(s, &queues, mark);
        for (uint32_t j = 0; j < s->jobs->njobs; j++)
            s->urgency[j] = -ways[i].start[j];
        try_lists(s);
    }
}

static void try_exact(searching *s)
{
    sf_exact exact;
    sf_mark mark = sf_arena_mark(s->arena);
    int64_t below = s->out->found && s->out->times.fits ? s->out->times.makespan : INT64_MAX;
    uint64_t nodes = s->work / (4 * (uint64_t)s->jobs->njobs + 1);
    sf_exact_schedule(s->jobs, below, nodes, s->arena, &exact);
    if (exact.found)
        offer(s, &exact.queues, mark);
    s->out->proven |= exact.proven && s->out->found && s->out->times.fits;
}

/* If no solution fits, one that shows the violation. */
static void try_without_limits(searching *s)
{
    sf_jobs jobs = *s->jobs;
    sf_queues queues;
    sf_mark mark = sf_arena_mark(s->arena);
    jobs.limits = NULL;
    if (sf_list_schedule(&jobs, &(sf_list_options){.urgency = s->tails, .window = 1}, s->arena,
                         &queues))
        offer(s, &queues, mark);
}

void sf_order_search(const sf_jobs *jobs, const sf_order_options *options, sf_arena *arena,
                     sf_order_result *out)
{
    *out = (sf_order_result){0};
    searching s = {.jobs = jobs,
                   .options = options,
                   .tails = sf_jobs_tails(jobs, arena),
                   .out = out,
                   .work = options->work ? options->work : 1 << 23,
                   .arena = arena};
    if (!s.tails || jobs->njobs == 0)
        return;
    s.urgency = SF_ARRAY(arena, jobs->njobs, int64_t);
    out->bound = sf_jobs_bound(jobs, arena);
    if (options->known)
        offer_known(&s);
    try_urgencies(&s);
    try_repeats(&s);
    try_noise(&s);
    if (out->found && !is_done(&s)) {
        uint64_t evaluations = s.work / 2 / jobs->njobs;
        sf_queues_polish(jobs, &out->queues, &out->times,
                         evaluations > 2000 ? 2000 : (uint32_t)evaluations, arena);
    }
    if (jobs->njobs <= FEW_JOBS && !is_done(&s))
        try_exact(&s);
    if (!out->found)
        try_without_limits(&s);
    out->proven |= is_done(&s);
}
