/* All cuts of a small graph. The units of the first s stages are a set that is closed under their
 * operands; a cut is a chain of such sets, each within the next. There are few of them if a graph
 * is narrow, however long it is. */
#include <math.h>
#include <stdlib.h>

#include "solve/cut/cut_search.h"

enum { MOST_UNITS = 64, MOST_SETS = 1024 };

typedef struct closed_sets {
    const sf_cut_problem *p;
    uint64_t *needs;   /* by unit: its direct operands, as units */
    uint64_t *readers; /* by value */
    uint64_t *sets;    /* in order of size */
    sf_cut_load *load; /* by set */
    uint32_t count;
} closed_sets;

static uint64_t bit(uint32_t unit)
{
    return UINT64_C(1) << unit;
}

static void find_needs(closed_sets *c, sf_arena *arena)
{
    const sf_cut_problem *p = c->p;
    c->needs = SF_ARRAY(arena, p->nunits, uint64_t);
    c->readers = SF_ARRAY(arena, p->nvalues, uint64_t);
    for (uint32_t v = 0; v < p->nvalues; v++)
        for (uint32_t k = p->first[v]; k < p->first[v + 1]; k++) {
            c->readers[v] |= bit(p->reader[k]);
            if (p->maker[v] != SF_NO_MAKER)
                c->needs[p->reader[k]] |= bit(p->maker[v]);
        }
}

static bool parts_group(const closed_sets *c, uint64_t set)
{
    for (uint32_t g = 0; g < c->p->ngroups; g++) {
        uint64_t all = 0;
        for (uint32_t k = c->p->group_first[g]; k < c->p->group_first[g + 1]; k++)
            all |= bit(c->p->grouped[k]);
        if ((all & set) && (all & ~set))
            return true;
    }
    return false;
}

static bool is_known(const closed_sets *c, uint32_t from, uint64_t set)
{
    for (uint32_t i = from; i < c->count; i++)
        if (c->sets[i] == set)
            return true;
    return false;
}

/* Sets of one more unit, from those of the last size. False where there are too many. */
static bool list_sets(closed_sets *c, sf_arena *arena)
{
    c->sets = SF_ARRAY(arena, MOST_SETS, uint64_t);
    c->load = SF_ARRAY(arena, MOST_SETS, sf_cut_load);
    c->count = 1;
    for (uint32_t size = 0, begin = 0; size < c->p->nunits; size++) {
        uint32_t end = c->count;
        for (uint32_t i = begin; i < end; i++)
            for (uint32_t u = 0; u < c->p->nunits; u++) {
                uint64_t set = c->sets[i] | bit(u);
                if ((c->sets[i] & bit(u)) || (c->needs[u] & ~c->sets[i]) || is_known(c, end, set))
                    continue;
                if (c->count == MOST_SETS)
                    return false;
                sf_cut_load unit = sf_cut_load_of(c->p, u), *all = &c->load[i];
                c->load[c->count] = (sf_cut_load){all->time + unit.time, all->fixed + unit.fixed,
                                                  all->kept + unit.kept};
                c->sets[c->count++] = set;
            }
        begin = end;
    }
    return true;
}

static double count_sent(const closed_sets *c, uint64_t before, uint64_t stage)
{
    const sf_cut_problem *p = c->p;
    double bytes = 0;
    for (uint32_t v = 0; v < p->nvalues; v++) {
        uint64_t from = p->maker[v] == SF_NO_MAKER ? c->readers[v] : bit(p->maker[v]);
        bytes += (from & before) && (c->readers[v] & stage) ? p->bytes[v] : 0;
    }
    return bytes;
}

typedef struct chain {
    sf_cut_score score;
    uint32_t before; /* the set that it goes on from */
} chain;

typedef enum aim { THE_SLOWEST, BYTES } aim;

static bool is_better(aim of, sf_cut_score a, sf_cut_score b)
{
    return of == BYTES ? isinf(b.bytes) || sf_cut_is_better(a, b) : a.slowest < b.slowest;
}

/* chains[set * (count + 1) + s]: the best of the set in s stages. */
static void find_chains(const closed_sets *c, aim of, double limit, chain *chains)
{
    uint32_t count = c->p->count, row = count + 1;
    bool full = c->p->nunits >= count;
    for (uint32_t i = 0; i < c->count * row; i++)
        chains[i] = (chain){.score = {HUGE_VAL, HUGE_VAL}};
    chains[0].score = (sf_cut_score){0, 0};
    for (uint32_t i = 0; i < c->count; i++)
        for (uint32_t j = 0; j <= i && !parts_group(c, c->sets[i]); j++) {
            if ((c->sets[j] & ~c->sets[i]) || (full && i == j))
                continue;
            sf_cut_load load = {c->load[i].time - c->load[j].time,
                                c->load[i].fixed - c->load[j].fixed,
                                c->load[i].kept - c->load[j].kept};
            double sent = of == BYTES ? count_sent(c, c->sets[j], c->sets[i] & ~c->sets[j]) : 0;
            for (uint32_t s = 0; s < count; s++) {
                const chain *before = &chains[j * row + s];
                if (isinf(before->score.bytes) || !sf_cut_fits(c->p, s, load, limit))
                    continue;
                sf_cut_score score = {before->score.bytes + sent,
                                      fmax(before->score.slowest, sf_cut_time(c->p, s, load.time))};
                if (is_better(of, score, chains[i * row + s + 1].score))
                    chains[i * row + s + 1] = (chain){score, j};
            }
        }
}

bool sf_cut_exactly(const sf_cut_problem *problem, sf_arena *arena, sf_cut *out)
{
    closed_sets c = {.p = problem};
    uint32_t count = problem->count, row = count + 1;
    if (problem->nunits > MOST_UNITS)
        return false;
    find_needs(&c, arena);
    if (!list_sets(&c, arena))
        return false;
    chain *chains = SF_ARRAY(arena, c.count * row, chain);
    const chain *whole = &chains[(c.count - 1) * row + count];
    find_chains(&c, THE_SLOWEST, HUGE_VAL, chains);
    *out = (sf_cut){.least_slowest = whole->score.slowest, .is_exact = true};
    if (isinf(whole->score.slowest))
        return true;
    out->limit = whole->score.slowest * (1 + problem->tolerance);
    find_chains(&c, BYTES, out->limit, chains);
    out->stage = SF_ARRAY(arena, problem->nunits, uint32_t);
    out->bytes = whole->score.bytes;
    out->slowest = whole->score.slowest;
    for (uint32_t i = c.count - 1, s = count; s-- > 0;) {
        uint32_t before = chains[i * row + s + 1].before;
        for (uint32_t u = 0; u < problem->nunits; u++)
            if (c.sets[i] & ~c.sets[before] & bit(u))
                out->stage[u] = s;
        i = before;
    }
    return true;
}
