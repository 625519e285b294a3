#include "solve/order/modulo_schedule.h"

#include <stdlib.h>
#include <string.h>

#include "solve/search/dice.h"

/* A wait of one kind for another, so many micro-batches before. */
typedef struct unit_wait {
    uint32_t before, after, microbatches;
    int64_t delay;
} unit_wait;

/* A kind on the circle of a machine. */
typedef struct arc {
    int64_t slot, time; /* 0 <= slot < period */
} arc;

typedef struct circle {
    arc *arcs; /* sorted by slot; room for all kinds of the machine */
    uint32_t narcs;
    int64_t load; /* of all kinds that will be placed here */
} circle;

typedef struct repeating {
    const sf_jobs *jobs;
    uint32_t nkinds, nmicrobatches;
    const sf_job *kinds; /* the jobs of micro-batch 0 */
    unit_wait *waits;
    uint32_t nwaits;
    uint32_t *order; /* kinds, sorted so that dependencies in the same micro-batch come first */
    circle circles[SF_MOST_MACHINES];
    int64_t period;
    int64_t *start;   /* by kind; -1: not placed yet */
    int64_t *slots;   /* by kind: settled beforehand, or -1 */
    int64_t *options; /* room for the starts that are tried for one kind */
    uint32_t *shuffled;
    sf_dice dice;
    uint32_t
        boldness; /* how often, of 1000 times, a later start is taken than the first that will do */
    sf_arena *arena;
} repeating;

/* The repeating part */

static bool is_repeated(const repeating *r)
{
    for (uint32_t j = 0; j < r->jobs->njobs; j++) {
        const sf_job *a = &r->jobs->jobs[j], *b = &r->jobs->jobs[j % r->nkinds];
        if (a->machines != b->machines || a->time != b->time || a->at_start != b->at_start ||
            a->at_end != b->at_end)
            return false;
    }
    return true;
}

/* The last micro-batch has all kinds of waits for earlier ones. */
static bool read_waits(repeating *r)
{
    uint32_t last = r->nmicrobatches - 1;
    r->waits = SF_ARRAY(r->arena, r->jobs->nwaits + 1, unit_wait);
    for (uint32_t w = 0; w < r->jobs->nwaits; w++) {
        const sf_wait *it = &r->jobs->waits[w];
        uint32_t from = it->before / r->nkinds, to = it->after / r->nkinds;
        if (from > to)
            return false;
        if (to == last)
            r->waits[r->nwaits++] =
                (unit_wait){it->before % r->nkinds, it->after % r->nkinds, to - from, it->delay};
    }
    return true;
}

static bool sort_kinds(repeating *r)
{
    uint32_t *missing = SF_ARRAY(r->arena, r->nkinds, uint32_t);
    uint32_t n = 0;
    r->order = SF_ARRAY(r->arena, r->nkinds, uint32_t);
    for (uint32_t w = 0; w < r->nwaits; w++)
        missing[r->waits[w].after] += r->waits[w].microbatches == 0;
    for (uint32_t k = 0; k < r->nkinds; k++)
        if (missing[k] == 0)
            r->order[n++] = k;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t w = 0; w < r->nwaits; w++)
            if (r->waits[w].microbatches == 0 && r->waits[w].before == r->order[i] &&
                --missing[r->waits[w].after] == 0)
                r->order[n++] = r->waits[w].after;
    return n == r->nkinds;
}

/* Circles */

static int64_t modulo(int64_t a, int64_t period)
{
    int64_t rest = a % period;
    return rest < 0 ? rest + period : rest;
}

/* The least start not before `from` that lies at the slot. */
static int64_t start_at(int64_t from, int64_t slot, int64_t period)
{
    return from + modulo(slot - from, period);
}

static bool is_free(const repeating *r, const circle *c, int64_t slot, int64_t time)
{
    for (uint32_t i = 0; i < c->narcs; i++) {
        int64_t ahead = modulo(slot - c->arcs[i].slot, r->period);
        if (ahead < c->arcs[i].time || (ahead + time > r->period))
            return false;
    }
    return time <= r->period;
}

static void lay(circle *c, int64_t slot, int64_t time)
{
    uint32_t at = c->narcs++;
    for (; at > 0 && c->arcs[at - 1].slot > slot; at--)
        c->arcs[at] = c->arcs[at - 1];
    c->arcs[at] = (arc){slot, time};
}

static void take_up(circle *c, int64_t slot)
{
    uint32_t at = 0;
    while (c->arcs[at].slot != slot)
        at++;
    c->narcs--;
    for (; at < c->narcs; at++)
        c->arcs[at] = c->arcs[at + 1];
}

/* Gaps that are too short for any unplaced kind are within the slack of the period. */
static bool has_room(const repeating *r, uint32_t machine, int64_t shortest)
{
    const circle *c = &r->circles[machine];
    int64_t wasted = 0;
    for (uint32_t i = 0; i < c->narcs && shortest < INT64_MAX; i++) {
        const arc *a = &c->arcs[i], *b = &c->arcs[(i + 1) % c->narcs];
        int64_t gap = b->slot - a->slot - a->time + (i + 1 == c->narcs ? r->period : 0);
        wasted += gap < shortest ? gap : 0;
    }
    return wasted <= r->period - c->load;
}

/* Of the kinds on the machine that lie nowhere yet. */
static int64_t shortest_left(const repeating *r, uint32_t machine, uint32_t except)
{
    int64_t shortest = INT64_MAX;
    for (uint32_t k = 0; k < r->nkinds; k++)
        if (k != except && r->start[k] < 0 && r->slots[k] < 0 && r->kinds[k].time > 0 &&
            r->kinds[k].machines >> machine & 1 && r->kinds[k].time < shortest)
            shortest = r->kinds[k].time;
    return shortest;
}

static bool try_slot(repeating *r, uint32_t kind, int64_t slot)
{
    const sf_job *it = &r->kinds[kind];
    if (it->time == 0)
        return true;
    for (uint64_t rest = it->machines; rest; rest &= rest - 1)
        if (!is_free(r, &r->circles[__builtin_ctzll(rest)], slot, it->time))
            return false;
    bool good = true;
    for (uint64_t rest = it->machines; rest; rest &= rest - 1) {
        uint32_t m = (uint32_t)__builtin_ctzll(rest);
        lay(&r->circles[m], slot, it->time);
        good = good && has_room(r, m, shortest_left(r, m, kind));
    }
    for (uint64_t rest = it->machines; rest && !good; rest &= rest - 1)
        take_up(&r->circles[__builtin_ctzll(rest)], slot);
    return good;
}

/* Placing */

/* When a kind may start, for those that it waits for and that have been placed. */
static int64_t earliest(const repeating *r, uint32_t kind)
{
    int64_t from = 0;
    for (uint32_t w = 0; w < r->nwaits; w++) {
        const unit_wait *it = &r->waits[w];
        if (it->after != kind || r->start[it->before] < 0)
            continue;
        int64_t at = r->start[it->before] + r->kinds[it->before].time + it->delay -
                     (int64_t)it->microbatches * r->period;
        from = at > from ? at : from;
    }
    return from;
}

/* Waits of later micro-batches for this one, by kinds that have been placed. */
static bool is_in_time(const repeating *r, uint32_t kind)
{
    for (uint32_t w = 0; w < r->nwaits; w++) {
        const unit_wait *it = &r->waits[w];
        if (it->before == kind && r->start[it->after] >= 0 &&
            r->start[kind] + r->kinds[kind].time + it->delay >
                r->start[it->after] + (int64_t)it->microbatches * r->period)
            return false;
    }
    return true;
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* As early as possible, or next to another kind on one of its machines, before or after it. */
static uint32_t list_starts(repeating *r, uint32_t kind)
{
    const sf_job *it = &r->kinds[kind];
    int64_t from = earliest(r, kind);
    uint32_t n = 0;
    r->options[n++] = from;
    for (uint64_t rest = it->machines; rest && it->time > 0; rest &= rest - 1) {
        const circle *c = &r->circles[__builtin_ctzll(rest)];
        for (uint32_t i = 0; i < c->narcs && n < 4 * r->nkinds; i++) {
            r->options[n++] = start_at(from, c->arcs[i].slot + c->arcs[i].time, r->period);
            r->options[n++] = start_at(from, c->arcs[i].slot - it->time, r->period);
        }
    }
    qsort(r->options, n, sizeof *r->options, by_value);
    return n;
}

static bool place(repeating *r, uint32_t kind)
{
    if (r->slots[kind] >= 0) {
        r->start[kind] = start_at(earliest(r, kind), r->slots[kind], r->period);
        return is_in_time(r, kind);
    }
    uint32_t n = list_starts(r, kind);
    int64_t second = -1;
    for (uint32_t i = 0; i < n; i++) {
        if (i > 0 && r->options[i] == r->options[i - 1])
            continue;
        int64_t start = r->options[i];
        if (!try_slot(r, kind, modulo(start, r->period)))
            continue;
        bool skipped = sf_dice_below(&r->dice, 1000) < r->boldness;
        if (skipped && second < 0 && r->kinds[kind].time > 0) {
            second = start;
            for (uint64_t rest = r->kinds[kind].machines; rest; rest &= rest - 1)
                take_up(&r->circles[__builtin_ctzll(rest)], modulo(start, r->period));
            continue;
        }
        r->start[kind] = start;
        return is_in_time(r, kind);
    }
    if (second < 0 || !try_slot(r, kind, modulo(second, r->period)))
        return false;
    r->start[kind] = second;
    return is_in_time(r, kind);
}

/* Kinds that occupy several machines must find them free together. So they get their slots first: as they lie when all kinds
 * of the busiest machine are put side by side in some order. */
static void settle_shared(repeating *r)
{
    uint32_t busiest = 0, n = 0;
    for (uint32_t m = 0; m < r->jobs->nmachines; m++)
        busiest = r->circles[m].load > r->circles[busiest].load ? m : busiest;
    for (uint32_t i = 0; i < r->nkinds; i++) {
        r->slots[i] = -1;
        if (r->kinds[r->order[i]].machines >> busiest & 1)
            r->shuffled[n++] = r->order[i];
    }
    for (uint32_t i = n; i > 1 && r->boldness > 0; i--) {
        uint32_t other = sf_dice_below(&r->dice, i);
        uint32_t kept = r->shuffled[i - 1];
        r->shuffled[i - 1] = r->shuffled[other];
        r->shuffled[other] = kept;
    }
    int64_t at = 0;
    for (uint32_t i = 0; i < n; i++) {
        const sf_job *it = &r->kinds[r->shuffled[i]];
        if ((it->machines & (it->machines - 1)) != 0 && it->time > 0) {
            r->slots[r->shuffled[i]] = at;
            for (uint64_t rest = it->machines; rest; rest &= rest - 1)
                lay(&r->circles[__builtin_ctzll(rest)], at, it->time);
        }
        at += it->time;
    }
}

/* Kinds that take memory start late, by whole periods, as far as the kinds that wait for them
 * allow. */
static void delay_takers(repeating *r)
{
    for (uint32_t i = r->nkinds; i-- > 0;) {
        uint32_t kind = r->order[i];
        if (r->kinds[kind].at_start + r->kinds[kind].at_end <= 0)
            continue;
        int64_t latest = INT64_MAX;
        for (uint32_t w = 0; w < r->nwaits; w++) {
            const unit_wait *it = &r->waits[w];
            if (it->before != kind || it->after == kind)
                continue;
            int64_t at = r->start[it->after] + (int64_t)it->microbatches * r->period - it->delay -
                         r->kinds[kind].time;
            latest = at < latest ? at : latest;
        }
        if (latest < INT64_MAX && latest > r->start[kind])
            r->start[kind] += (latest - r->start[kind]) / r->period * r->period;
    }
}

static bool try_once(repeating *r)
{
    for (uint32_t k = 0; k < r->nkinds; k++)
        r->start[k] = -1;
    for (uint32_t m = 0; m < r->jobs->nmachines; m++)
        r->circles[m].narcs = 0;
    settle_shared(r);
    for (uint32_t i = 0; i < r->nkinds; i++)
        if (!place(r, r->order[i]))
            return false;
    delay_takers(r);
    return true;
}

/* The most memory in use on a machine in the middle: each micro-batch frees as much as it took, so
 * only the number of micro-batches that have started a kind, or ended it, matters. */
static int64_t middle_peak(const repeating *r, uint32_t machine)
{
    int64_t peak = 0, late = 0;
    for (uint32_t k = 0; k < r->nkinds; k++)
        late = r->start[k] > late ? r->start[k] : late;
    for (uint32_t k = 0; k < r->nkinds; k++) {
        if (!(r->kinds[k].machines >> machine & 1))
            continue;
        int64_t now = start_at(late, r->start[k], r->period) + r->period, used = 0;
        for (uint32_t l = 0; l < r->nkinds; l++) {
            const sf_job *it = &r->kinds[l];
            if (!(it->machines >> machine & 1))
                continue;
            int64_t begun = (now - r->start[l]) / r->period + 1;
            int64_t past = now - r->start[l] - it->time;
            int64_t ended = past < 0 ? 0 : past / r->period + 1;
            /* A kind without duration comes and goes at once: order decides, and judges of queues know it. */
            used += it->at_start * begun + it->at_end * (l == k ? begun - 1 : ended);
        }
        peak = used > peak ? used : peak;
    }
    return peak;
}

static bool middle_fits(const repeating *r)
{
    int64_t net[SF_MOST_MACHINES] = {0};
    for (uint32_t k = 0; k < r->nkinds; k++)
        for (uint64_t rest = r->kinds[k].machines; rest; rest &= rest - 1)
            net[__builtin_ctzll(rest)] += r->kinds[k].at_start + r->kinds[k].at_end;
    for (uint32_t m = 0; m < r->jobs->nmachines && r->jobs->limits; m++)
        if (net[m] == 0 && middle_peak(r, m) > r->jobs->limits[m])
            return false;
    return true;
}

/* Keeping the best */

static int64_t length_of(const repeating *r, const sf_repeat *it)
{
    return (r->nmicrobatches - 1) * it->period + it->span;
}

static uint32_t keep(repeating *r, sf_repeat *out, uint32_t count, uint32_t most)
{
    sf_repeat it = {.period = r->period};
    int64_t first = INT64_MAX;
    for (uint32_t k = 0; k < r->nkinds; k++)
        first = r->start[k] < first ? r->start[k] : first;
    for (uint32_t k = 0; k < r->nkinds; k++) {
        int64_t end = r->start[k] + r->kinds[k].time - first;
        it.span = end > it.span ? end : it.span;
    }
    for (uint32_t i = 0; i < count; i++)
        if (out[i].period == it.period && out[i].span == it.span &&
            memcmp(out[i].start, r->start, r->nkinds * sizeof *r->start) == 0)
            return count;
    uint32_t at = count < most ? count : most - 1;
    if (count == most && length_of(r, &out[at]) <= length_of(r, &it))
        return count;
    for (; at > 0 && length_of(r, &out[at - 1]) > length_of(r, &it); at--)
        out[at] = out[at - 1];
    it.start = sf_arena_copy(r->arena, r->start, r->nkinds * sizeof *r->start);
    out[at] = it;
    return count < most ? count + 1 : count;
}

/* From kinds to jobs. */
static void unroll(const repeating *r, sf_repeat *it)
{
    int64_t *start = SF_ARRAY(r->arena, r->jobs->njobs, int64_t);
    for (uint32_t j = 0; j < r->jobs->njobs; j++)
        start[j] = it->start[j % r->nkinds] + (int64_t)(j / r->nkinds) * it->period;
    it->start = start;
}

static int64_t shortest_period(repeating *r)
{
    int64_t period = 1;
    uint32_t sizes[SF_MOST_MACHINES] = {0};
    for (uint32_t k = 0; k < r->nkinds; k++)
        for (uint64_t rest = r->kinds[k].machines; rest; rest &= rest - 1) {
            sizes[__builtin_ctzll(rest)]++;
            r->circles[__builtin_ctzll(rest)].load += r->kinds[k].time;
        }
    for (uint32_t m = 0; m < r->jobs->nmachines; m++) {
        r->circles[m].arcs = SF_ARRAY(r->arena, sizes[m] + 1, arc);
        period = r->circles[m].load > period ? r->circles[m].load : period;
    }
    return period;
}

uint32_t sf_repeat_find(const sf_jobs *jobs, uint32_t nkinds, uint32_t tries, uint32_t most,
                        sf_arena *arena, sf_repeat *out)
{
    if (nkinds == 0 || jobs->njobs % nkinds != 0 || jobs->njobs == 0)
        return 0;
    repeating *r = SF_NEW(arena, repeating);
    *r = (repeating){.jobs = jobs,
                     .nkinds = nkinds,
                     .nmicrobatches = jobs->njobs / nkinds,
                     .kinds = jobs->jobs,
                     .arena = arena,
                     .dice = {1}};
    if (!is_repeated(r) || !read_waits(r) || !sort_kinds(r))
        return 0;
    r->start = SF_ARRAY(arena, nkinds, int64_t);
    r->slots = SF_ARRAY(arena, nkinds, int64_t);
    r->shuffled = SF_ARRAY(arena, nkinds, uint32_t);
    r->options = SF_ARRAY(arena, 4 * nkinds + 4, int64_t);
    int64_t shortest = shortest_period(r);
    uint32_t count = 0;
    static const double factors[] = {1, 1.03, 1.08, 1.17, 1.33, 1.6, 2, 3, 5, 8};
    for (size_t f = 0; f < sizeof factors / sizeof *factors; f++) {
        r->period = (int64_t)((double)shortest * factors[f]);
        for (uint32_t i = 0; i < tries; i++) {
            r->boldness = i == 0 ? 0 : 600 * i / tries;
            if (try_once(r) && middle_fits(r))
                count = keep(r, out, count, most);
        }
        if (count == most && factors[f] >= 1.3)
            break;
    }
    for (uint32_t i = 0; i < count; i++)
        unroll(r, &out[i]);
    return count;
}
