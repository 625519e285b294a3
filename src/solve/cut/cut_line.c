/* The best cut of a line: dynamic programming over where stages end.
 *
 *     best[s][i]   of cuts of the first i units into s stages: least bytes, then the least slowest
 *                  stage
 *
 * The last of these stages receives the values that units j .. i read and that are made before j;
 * they are counted for all j as i goes on, unit by unit. Where stage s can end lies between how far
 * the first s stages can reach, and how far the others can reach back; of more places than are
 * worth trying, the narrowest are. */
#include <math.h>
#include <string.h>

#include "solve/cut/cut_search.h"

/* Places tried for each border. */
enum { MOST_PLACES = 256 };

typedef struct line_cut {
    const sf_cut_problem *p;
    const sf_cut_graph *graph;
    const uint32_t *line;
    sf_cut_load *before; /* by place: sums over the units before it */
    double limit;
    uint32_t *low, *high; /* by border, 0 .. count: the places that it may have */
    uint32_t *place;      /* by unit */
    uint32_t *allowed;    /* by place: the last place up to it that parts no group; by place: */
    uint32_t *next;       /* the first one from it on */
    uint32_t *ends;       /* places that part no group, in order, from 0 */
    uint32_t nends;       /* without the first */
    bool is_full;         /* no stage may be empty */
} line_cut;

static sf_cut_load between(const line_cut *c, uint32_t from, uint32_t to)
{
    const sf_cut_load *a = &c->before[from], *b = &c->before[to];
    return (sf_cut_load){b->time - a->time, b->fixed - a->fixed, b->kept - a->kept};
}

static bool fits(const line_cut *c, uint32_t stage, uint32_t from, uint32_t to)
{
    return sf_cut_fits(c->p, stage, between(c, from, to), c->limit);
}

static void find_allowed(line_cut *c, sf_arena *arena)
{
    const sf_cut_problem *p = c->p;
    int32_t *inside = SF_ARRAY(arena, p->nunits + 2, int32_t);
    c->allowed = SF_ARRAY(arena, p->nunits + 1, uint32_t);
    c->next = SF_ARRAY(arena, p->nunits + 1, uint32_t);
    for (uint32_t g = 0; g < p->ngroups; g++) {
        uint32_t from = UINT32_MAX, to = 0;
        for (uint32_t k = p->group_first[g]; k < p->group_first[g + 1]; k++) {
            uint32_t at = c->place[p->grouped[k]];
            from = at < from ? at : from;
            to = at > to ? at : to;
        }
        if (from < to) {
            inside[from + 1]++;
            inside[to + 1]--;
        }
    }
    for (uint32_t i = 1; i <= p->nunits; i++) {
        inside[i] += inside[i - 1];
        c->allowed[i] = inside[i] == 0 ? i : c->allowed[i - 1];
    }
    for (uint32_t i = p->nunits + 1; i-- > 0;)
        c->next[i] = c->allowed[i] == i ? i : c->next[i + 1];
    c->ends = SF_ARRAY(arena, p->nunits + 1, uint32_t);
    for (uint32_t i = 1; i <= p->nunits; i++)
        if (c->allowed[i] == i)
            c->ends[++c->nends] = i;
    c->is_full = p->nunits >= p->count;
}

static line_cut open_line(const sf_cut_problem *problem, const uint32_t *line, sf_arena *arena)
{
    line_cut c = {.p = problem, .line = line};
    c.before = SF_ARRAY(arena, problem->nunits + 1, sf_cut_load);
    c.low = SF_ARRAY(arena, problem->count + 1, uint32_t);
    c.high = SF_ARRAY(arena, problem->count + 1, uint32_t);
    for (uint32_t i = 0; i < problem->nunits; i++) {
        sf_cut_load unit = sf_cut_load_of(problem, line[i]), *last = &c.before[i];
        c.before[i + 1] =
            (sf_cut_load){last->time + unit.time, last->fixed + unit.fixed, last->kept + unit.kept};
    }
    c.place = SF_ARRAY(arena, problem->nunits, uint32_t);
    for (uint32_t i = 0; i < problem->nunits; i++)
        c.place[line[i]] = i;
    find_allowed(&c, arena);
    return c;
}

/* The last place, from `from` to `most`, where the stage may end that begins at `from`. */
static uint32_t reach(const line_cut *c, uint32_t stage, uint32_t from, uint32_t most)
{
    uint32_t low = from, high = most;
    while (low < high) {
        uint32_t middle = low + (high - low + 1) / 2;
        if (fits(c, stage, from, middle))
            low = middle;
        else
            high = middle - 1;
    }
    return c->allowed[low] < from ? from : c->allowed[low];
}

static uint32_t reach_back(const line_cut *c, uint32_t stage, uint32_t to, uint32_t least)
{
    uint32_t low = least, high = to;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (fits(c, stage, middle, to))
            high = middle;
        else
            low = middle + 1;
    }
    return c->next[low] > to ? to : c->next[low];
}

/* Where borders may be, within the limit; false where they may be nowhere. */
static bool find_windows(line_cut *c)
{
    uint32_t count = c->p->count, n = c->p->nunits, ends = c->nends;
    if (c->is_full && ends < count)
        return false;
    c->low[0] = c->high[0] = 0;
    for (uint32_t s = 0; s < count; s++) {
        uint32_t most = c->is_full ? c->ends[ends - (count - s - 1)] : n;
        c->high[s + 1] = reach(c, s, c->high[s], most);
        if (c->is_full && c->high[s + 1] == c->high[s])
            return false;
    }
    if (c->high[count] < n)
        return false;
    c->low[count] = n;
    for (uint32_t s = count; s-- > 1;)
        c->low[s] = reach_back(c, s, c->low[s + 1], c->is_full ? c->ends[s] : 0);
    for (uint32_t s = 0; s <= count; s++)
        if (c->low[s] > c->high[s])
            return false;
    return true;
}

double sf_cut_line_slowest(const sf_cut_problem *problem, const uint32_t *line, sf_arena *arena)
{
    line_cut c = open_line(problem, line, arena);
    double low = 0, high = 0;
    for (uint32_t s = 0; s < problem->count; s++)
        high = fmax(high, sf_cut_time(problem, s, c.before[problem->nunits].time));
    c.limit = high;
    if (!find_windows(&c))
        return HUGE_VAL;
    for (int turn = 0; turn < 60 && high - low > SF_CUT_NEAR * high; turn++) {
        c.limit = (low + high) / 2;
        if (find_windows(&c))
            high = c.limit;
        else
            low = c.limit;
    }
    return high;
}

/* By place: bytes of values that are made before it and read after it, or begin and end so. */
static double *find_widths(const line_cut *c, sf_arena *arena)
{
    const sf_cut_problem *p = c->p;
    const uint32_t *place = c->place;
    double *widths = SF_ARRAY(arena, p->nunits + 2, double);
    for (uint32_t v = 0; v < p->nvalues; v++) {
        uint32_t from = p->maker[v] == SF_NO_MAKER ? UINT32_MAX : place[p->maker[v]], to = 0;
        for (uint32_t k = p->first[v]; k < p->first[v + 1]; k++) {
            uint32_t at = place[p->reader[k]];
            from = at < from ? at : from;
            to = at > to ? at : to;
        }
        if (from >= to)
            continue;
        widths[from + 1] += p->bytes[v];
        widths[to + 1] -= p->bytes[v];
    }
    for (uint32_t i = 1; i <= p->nunits; i++)
        widths[i] += widths[i - 1];
    return widths;
}

/* Places for a border, at most MOST_PLACES: the narrowest of as many ranges, and the ends. */
static uint32_t list_places(const line_cut *c, uint32_t border, const double *widths, uint32_t *out)
{
    uint32_t low = c->low[border], size = c->high[border] - low + 1, count = 0;
    uint32_t ranges = size < MOST_PLACES ? size : MOST_PLACES - 2;
    if (ranges < size)
        out[count++] = low;
    for (uint32_t r = 0; r < ranges; r++) {
        uint32_t from = low + (uint32_t)((uint64_t)size * r / ranges);
        uint32_t to = low + (uint32_t)((uint64_t)size * (r + 1) / ranges), best = from;
        for (uint32_t i = from; i < to; i++)
            if (c->allowed[i] == i && (c->allowed[best] != best || widths[i] < widths[best]))
                best = i;
        if (c->allowed[best] == best && (count == 0 || out[count - 1] != best))
            out[count++] = best;
    }
    if (ranges < size && out[count - 1] != c->high[border])
        out[count++] = c->high[border];
    return count;
}

typedef struct state {
    uint32_t place, from; /* `from` is an index of the places of the border before */
    sf_cut_score score;
} state;

/* The bytes that a stage receives that ends at a place, for each beginning: as the end goes on
 * along the line, a unit there that reads a value adds its bytes for all beginnings after the one
 * that made it, or read it last. */
typedef struct growth {
    const line_cut *c;
    /* by value: of its first reader, which counts as the maker of a value without one */
    const uint32_t *first_place;
    const state *from; /* beginnings, in order */
    uint32_t count, end;
    uint32_t *read; /* by value: the place after its last reader; it may be of a stage before */
    double *steps;  /* by beginning: bytes more than for the one before it */
    double *sent;   /* by beginning: bytes */
} growth;

static growth open_growth(const line_cut *c, const uint32_t *first_place, sf_arena *arena)
{
    return (growth){.c = c,
                    .first_place = first_place,
                    .read = SF_ARRAY(arena, c->p->nvalues, uint32_t),
                    .steps = SF_ARRAY(arena, MOST_PLACES + 2, double),
                    .sent = SF_ARRAY(arena, MOST_PLACES + 2, double)};
}

static void begin_growth(growth *g, const state *from, uint32_t count)
{
    g->from = from;
    g->count = count;
    g->end = count > 0 ? from[0].place : 0;
    memset(g->read, 0, g->c->p->nvalues * sizeof *g->read);
    memset(g->steps, 0, (count + 1) * sizeof *g->steps);
}

/* The first beginning after the place. */
static uint32_t first_behind(const growth *g, uint32_t place)
{
    uint32_t low = 0, high = g->count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (g->from[middle].place > place)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static void read_value(growth *g, uint32_t value, uint32_t at)
{
    const sf_cut_problem *p = g->c->p;
    bool is_made = p->maker[value] != SF_NO_MAKER;
    uint32_t after = is_made ? g->c->place[p->maker[value]] : g->first_place[value];
    if (g->read[value] > after)
        after = g->read[value] - 1;
    g->read[value] = at + 1;
    if (after >= at)
        return;
    g->steps[first_behind(g, after)] += p->bytes[value];
    g->steps[first_behind(g, at)] -= p->bytes[value];
}

static void grow_to(growth *g, uint32_t place)
{
    const sf_cut_graph *graph = g->c->graph;
    for (; g->end < place; g->end++) {
        uint32_t unit = g->c->line[g->end];
        for (uint32_t k = graph->reads_first[unit]; k < graph->reads_first[unit + 1]; k++)
            read_value(g, graph->reads[k], g->end);
    }
    double bytes = 0;
    for (uint32_t b = 0; b < g->count; b++)
        g->sent[b] = bytes += g->steps[b];
}

/* The best that ends at `out->place`, over where the stage begins. */
static void find_best(const line_cut *c, uint32_t stage, growth *g, state *out)
{
    grow_to(g, out->place);
    out->score = (sf_cut_score){HUGE_VAL, HUGE_VAL};
    for (uint32_t b = g->count; b-- > 0;) {
        const state *before = &g->from[b];
        uint32_t from = before->place;
        if (from > out->place || (c->is_full && from == out->place))
            continue;
        if (!fits(c, stage, from, out->place))
            break;
        double time = sf_cut_time(c->p, stage, between(c, from, out->place).time);
        sf_cut_score score = {before->score.bytes + g->sent[b], fmax(before->score.slowest, time)};
        if (isfinite(score.bytes) &&
            (isinf(out->score.bytes) || sf_cut_is_better(score, out->score))) {
            out->score = score;
            out->from = b;
        }
    }
}

static uint32_t *find_first_places(const line_cut *c, sf_arena *arena)
{
    const uint32_t *place = c->place;
    uint32_t *first = SF_ARRAY(arena, c->p->nvalues, uint32_t);
    for (uint32_t v = 0; v < c->p->nvalues; v++) {
        first[v] = UINT32_MAX;
        for (uint32_t k = c->p->first[v]; k < c->p->first[v + 1]; k++)
            if (place[c->p->reader[k]] < first[v])
                first[v] = place[c->p->reader[k]];
    }
    return first;
}

sf_cut_score sf_cut_line(const sf_cut_problem *problem, const sf_cut_graph *graph,
                         const uint32_t *line, double limit, sf_arena *arena, uint32_t *stage)
{
    uint32_t count = problem->count, places[MOST_PLACES + 1];
    line_cut c = open_line(problem, line, arena);
    c.graph = graph;
    c.limit = limit;
    if (!find_windows(&c))
        return (sf_cut_score){HUGE_VAL, HUGE_VAL};
    double *widths = find_widths(&c, arena);
    uint32_t *first_place = find_first_places(&c, arena);
    growth g = open_growth(&c, first_place, arena);
    state **states = SF_ARRAY(arena, count + 1, state *);
    uint32_t *nstates = SF_ARRAY(arena, count + 1, uint32_t);
    for (uint32_t b = 0; b <= count; b++) {
        nstates[b] = list_places(&c, b, widths, places);
        states[b] = SF_ARRAY(arena, nstates[b], state);
        if (b > 0)
            begin_growth(&g, states[b - 1], nstates[b - 1]);
        for (uint32_t k = 0; k < nstates[b]; k++) {
            states[b][k].place = places[k];
            if (b > 0)
                find_best(&c, b - 1, &g, &states[b][k]);
        }
    }
    const state *last = &states[count][0];
    sf_cut_score score = last->score;
    for (uint32_t b = count; isfinite(score.bytes) && b-- > 0;) {
        const state *before = &states[b][last->from];
        for (uint32_t i = before->place; i < last->place; i++)
            stage[line[i]] = b;
        last = before;
    }
    return score;
}
