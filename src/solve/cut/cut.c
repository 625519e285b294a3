#include "solve/cut/cut.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "solve/cut/cut_search.h"

static void count_by_unit(uint32_t *first, uint32_t nunits)
{
    for (uint32_t u = 0; u < nunits; u++)
        first[u + 1] += first[u];
}

sf_cut_graph sf_cut_graph_of(const sf_cut_problem *problem, sf_arena *arena)
{
    const sf_cut_problem *p = problem;
    sf_cut_graph g = {.reads_first = SF_ARRAY(arena, p->nunits + 2, uint32_t),
                      .reads = SF_ARRAY(arena, p->first[p->nvalues], uint32_t),
                      .makes_first = SF_ARRAY(arena, p->nunits + 2, uint32_t),
                      .makes = SF_ARRAY(arena, p->nvalues, uint32_t)};
    /* While units are filled in, first[u + 1] is where the next of u goes. */
    for (uint32_t v = 0; v < p->nvalues; v++) {
        if (p->maker[v] != SF_NO_MAKER)
            g.makes_first[p->maker[v] + 2]++;
        for (uint32_t k = p->first[v]; k < p->first[v + 1]; k++)
            g.reads_first[p->reader[k] + 2]++;
    }
    count_by_unit(g.makes_first + 1, p->nunits);
    count_by_unit(g.reads_first + 1, p->nunits);
    for (uint32_t v = 0; v < p->nvalues; v++) {
        if (p->maker[v] != SF_NO_MAKER)
            g.makes[g.makes_first[p->maker[v] + 1]++] = v;
        for (uint32_t k = p->first[v]; k < p->first[v + 1]; k++)
            g.reads[g.reads_first[p->reader[k] + 1]++] = v;
    }
    return g;
}

double sf_cut_bytes(const sf_cut_problem *problem, const uint32_t *stage, sf_arena *arena)
{
    double bytes = 0;
    uint32_t *seen = SF_ARRAY(arena, problem->count, uint32_t);
    for (uint32_t v = 0; v < problem->nvalues; v++) {
        uint32_t maker = problem->maker[v], stages = 0;
        if (maker != SF_NO_MAKER)
            seen[stage[maker]] = v + 1;
        for (uint32_t k = problem->first[v]; k < problem->first[v + 1]; k++) {
            stages += seen[stage[problem->reader[k]]] != v + 1;
            seen[stage[problem->reader[k]]] = v + 1;
        }
        bytes += (stages - (maker == SF_NO_MAKER && stages > 0)) * problem->bytes[v];
    }
    return bytes;
}

double sf_cut_slowest(const sf_cut_problem *problem, const uint32_t *stage, sf_arena *arena)
{
    double *time = SF_ARRAY(arena, problem->count, double), slowest = 0;
    for (uint32_t u = 0; u < problem->nunits; u++)
        time[stage[u]] += problem->time[u];
    for (uint32_t s = 0; s < problem->count; s++)
        slowest = fmax(slowest, sf_cut_time(problem, s, time[s]));
    return slowest;
}

/* Time is shared by speed at best, and the longest unit is in one stage. */
static double bound_slowest(const sf_cut_problem *problem)
{
    double time = 0, longest = 0, speed = 0, fastest = 0;
    for (uint32_t u = 0; u < problem->nunits; u++) {
        time += problem->time[u];
        longest = fmax(longest, problem->time[u]);
    }
    for (uint32_t s = 0; s < problem->count; s++) {
        double own = problem->speed ? problem->speed[s] : 1;
        speed += own;
        fastest = fmax(fastest, own);
    }
    return fmax(time / speed, longest / fastest);
}

/* Lines */

typedef struct ranked {
    double key;
    uint32_t unit;
} ranked;

static int by_key(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->unit > y->unit) - (x->unit < y->unit);
}

/* By the time of the longest way to a unit, or from it, so that branches run beside each other. */
static void find_line_by_way(const sf_cut_problem *p, const sf_cut_graph *g, bool from,
                             sf_arena *arena, uint32_t *line)
{
    ranked *all = SF_ARRAY(arena, p->nunits, ranked);
    for (uint32_t i = 0; i < p->nunits; i++) {
        uint32_t u = from ? p->nunits - 1 - i : i;
        double way = 0;
        for (uint32_t k = g->reads_first[u]; !from && k < g->reads_first[u + 1]; k++) {
            uint32_t maker = p->maker[g->reads[k]];
            if (maker != SF_NO_MAKER)
                way = fmax(way, all[maker].key);
        }
        for (uint32_t k = g->makes_first[u]; from && k < g->makes_first[u + 1]; k++)
            for (uint32_t r = p->first[g->makes[k]]; r < p->first[g->makes[k] + 1]; r++)
                way = fmax(way, -all[p->reader[r]].key);
        way += p->time[u];
        all[u] = (ranked){from ? -way : way, u};
    }
    if (p->nunits > 0)
        qsort(all, p->nunits, sizeof *all, by_key);
    for (uint32_t i = 0; i < p->nunits; i++)
        line[i] = all[i].unit;
}

enum { LINES = 3 };

static void find_lines(const sf_cut_problem *p, const sf_cut_graph *g, sf_arena *arena,
                       uint32_t *lines[LINES])
{
    for (int l = 0; l < LINES; l++)
        lines[l] = SF_ARRAY(arena, p->nunits, uint32_t);
    for (uint32_t u = 0; u < p->nunits; u++)
        lines[0][u] = u;
    find_line_by_way(p, g, false, arena, lines[1]);
    find_line_by_way(p, g, true, arena, lines[2]);
}

bool sf_cut_lines(const sf_cut_problem *p, sf_arena *arena, sf_cut *out)
{
    *out =
        (sf_cut){.stage = SF_ARRAY(arena, p->nunits, uint32_t), .least_slowest = bound_slowest(p)};
    uint32_t *lines[LINES], *trial = SF_ARRAY(arena, p->nunits, uint32_t);
    sf_cut_graph graph = sf_cut_graph_of(p, arena);
    double slowest = HUGE_VAL;
    find_lines(p, &graph, arena, lines);
    for (int l = 0; l < LINES; l++)
        slowest = fmin(slowest, sf_cut_line_slowest(p, lines[l], arena));
    if (isinf(slowest))
        return false;
    sf_cut_score best = {HUGE_VAL, HUGE_VAL};
    out->limit = slowest * (1 + p->tolerance);
    for (int l = 0; l < LINES; l++) {
        sf_mark mark = sf_arena_mark(arena);
        if (isfinite(sf_cut_line(p, &graph, lines[l], out->limit, arena, trial).bytes)) {
            sf_cut_move(p, &graph, out->limit, arena, trial);
            sf_cut_score score = {sf_cut_bytes(p, trial, arena), sf_cut_slowest(p, trial, arena)};
            if (isinf(best.bytes) || sf_cut_is_better(score, best)) {
                best = score;
                memcpy(out->stage, trial, p->nunits * sizeof *trial);
            }
        }
        sf_arena_reset(arena, mark);
    }
    out->bytes = best.bytes;
    out->slowest = best.slowest;
    return true;
}

bool sf_cut_solve(const sf_cut_problem *problem, sf_arena *arena, sf_cut *out)
{
    if (sf_cut_exactly(problem, arena, out))
        return out->stage != NULL;
    return sf_cut_lines(problem, arena, out);
}
