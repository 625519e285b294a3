/* Moves units over borders, one at a time. Only the operands and results of a unit change, so a
 * walk over all of them takes time linear in the graph. */
#include <math.h>

#include "solve/cut/cut_search.h"

enum { MOST_WALKS = 8, VERY_MANY = 256 };

typedef struct moving {
    const sf_cut_problem *p;
    const sf_cut_graph *graph;
    double limit;
    uint32_t *stage;
    sf_cut_load *load; /* by stage */
    uint32_t *units;   /* by stage: how many */
    bool *is_grouped;  /* by unit: it stays with its group */
    uint32_t *seen;    /* by stage: the last value that was counted there */
    uint32_t stamp;
} moving;

/* The bytes of sending a value. A value of very many readers is sent to all stages in any case. */
static double count_value(moving *m, uint32_t v)
{
    const sf_cut_problem *p = m->p;
    uint32_t stages = 0, stamp = ++m->stamp;
    if (p->first[v + 1] - p->first[v] > VERY_MANY)
        return 0;
    if (p->maker[v] != SF_NO_MAKER)
        m->seen[m->stage[p->maker[v]]] = stamp;
    for (uint32_t k = p->first[v]; k < p->first[v + 1]; k++) {
        uint32_t *seen = &m->seen[m->stage[p->reader[k]]];
        stages += *seen != stamp;
        *seen = stamp;
    }
    if (p->maker[v] == SF_NO_MAKER && stages > 0)
        stages--;
    return stages * p->bytes[v];
}

static double count_unit(moving *m, uint32_t unit)
{
    double bytes = 0;
    for (uint32_t k = m->graph->reads_first[unit]; k < m->graph->reads_first[unit + 1]; k++)
        bytes += count_value(m, m->graph->reads[k]);
    for (uint32_t k = m->graph->makes_first[unit]; k < m->graph->makes_first[unit + 1]; k++)
        bytes += count_value(m, m->graph->makes[k]);
    return bytes;
}

/* The stages that it may be in, between its operands and its readers. */
static void find_range(const moving *m, uint32_t unit, uint32_t *low, uint32_t *high)
{
    const sf_cut_problem *p = m->p;
    *low = 0;
    *high = p->count - 1;
    for (uint32_t k = m->graph->reads_first[unit]; k < m->graph->reads_first[unit + 1]; k++) {
        uint32_t maker = p->maker[m->graph->reads[k]];
        if (maker != SF_NO_MAKER && m->stage[maker] > *low)
            *low = m->stage[maker];
    }
    for (uint32_t k = m->graph->makes_first[unit]; k < m->graph->makes_first[unit + 1]; k++) {
        uint32_t v = m->graph->makes[k];
        for (uint32_t r = p->first[v]; r < p->first[v + 1]; r++)
            if (m->stage[p->reader[r]] < *high)
                *high = m->stage[p->reader[r]];
    }
}

static sf_cut_load add_loads(sf_cut_load a, sf_cut_load b, double sign)
{
    return (sf_cut_load){a.time + sign * b.time, a.fixed + sign * b.fixed, a.kept + sign * b.kept};
}

/* Whether the unit is better off in stage `to`; it is there then. */
static bool try_move(moving *m, uint32_t unit, uint32_t to)
{
    const sf_cut_problem *p = m->p;
    uint32_t from = m->stage[unit];
    sf_cut_load own = sf_cut_load_of(p, unit), there = add_loads(m->load[to], own, 1);
    if (!sf_cut_fits(p, to, there, m->limit) || m->units[from] == 1)
        return false;
    double now = count_unit(m, unit);
    m->stage[unit] = to;
    sf_cut_score before = {
        now, fmax(sf_cut_time(p, from, m->load[from].time), sf_cut_time(p, to, m->load[to].time))};
    sf_cut_score after = {
        count_unit(m, unit),
        fmax(sf_cut_time(p, from, m->load[from].time - own.time), sf_cut_time(p, to, there.time))};
    if (!sf_cut_is_better(after, before)) {
        m->stage[unit] = from;
        return false;
    }
    m->load[from] = add_loads(m->load[from], own, -1);
    m->load[to] = there;
    m->units[from]--;
    m->units[to]++;
    return true;
}

/* Its neighbours, and the ends of where it may be. */
static bool move_unit(moving *m, uint32_t unit)
{
    uint32_t low, high, from = m->stage[unit];
    if (m->is_grouped[unit])
        return false;
    find_range(m, unit, &low, &high);
    return (high > from && try_move(m, unit, from + 1)) ||
           (low < from && try_move(m, unit, from - 1)) ||
           (high > from + 1 && try_move(m, unit, high)) ||
           (low + 1 < from && try_move(m, unit, low));
}

void sf_cut_move(const sf_cut_problem *problem, const sf_cut_graph *graph, double limit,
                 sf_arena *arena, uint32_t *stage)
{
    moving m = {.p = problem, .graph = graph, .limit = limit, .stage = stage};
    m.load = SF_ARRAY(arena, problem->count, sf_cut_load);
    m.units = SF_ARRAY(arena, problem->count, uint32_t);
    m.seen = SF_ARRAY(arena, problem->count, uint32_t);
    m.is_grouped = SF_ARRAY(arena, problem->nunits, bool);
    for (uint32_t k = 0; problem->ngroups > 0 && k < problem->group_first[problem->ngroups]; k++)
        m.is_grouped[problem->grouped[k]] = true;
    for (uint32_t u = 0; u < problem->nunits; u++) {
        m.load[stage[u]] = add_loads(m.load[stage[u]], sf_cut_load_of(problem, u), 1);
        m.units[stage[u]]++;
    }
    bool moved = true;
    for (int walk = 0; walk < MOST_WALKS && moved; walk++) {
        moved = false;
        for (uint32_t i = 0; i < problem->nunits; i++) /* there and back */
            moved |= move_unit(&m, walk % 2 ? i : problem->nunits - 1 - i);
    }
}
