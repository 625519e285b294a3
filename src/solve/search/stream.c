#include "solve/search/stream.h"

#include <math.h>
#include <string.h>

#include "solve/problem/budget.h"

enum {
    TREE_SIZE = 20,
    MOVES_AT_ONCE = 64, /* between looks at the clock and the temperature */
};

/* How prices follow usage; and the pressure, a factor of the price of usage above the limit: it
 * grows fast while a point is over, so that no run ends there. */
static const double price_up = 1.1, price_down = 0.995;
static const double least_pressure = 2, pressure_up = 1.1, pressure_down = 0.98;

void sf_stream_init(sf_stream *stream, const sf_tables *tables, uint64_t seed, sf_arena *arena)
{
    const sf_problem *problem = tables->problem;
    *stream = (sf_stream){.tables = tables, .dice = {seed}, .best_cost = INT64_MAX};
    sf_watch_init(&stream->watch, problem, arena);
    sf_tree_init(&stream->tree, tables, arena);
    stream->price = SF_ARRAY(arena, stream->watch.capacity, double);
    stream->average = SF_ARRAY(arena, stream->watch.capacity, double);
    stream->pressure = SF_ARRAY(arena, stream->watch.capacity, double);
    stream->usage = SF_ARRAY(arena, stream->watch.capacity, int64_t);
    stream->change = SF_ARRAY(arena, stream->watch.capacity, int64_t);
    stream->unary = SF_ARRAY(arena, problem->first[problem->nnodes], double);
    stream->choice = SF_ARRAY(arena, problem->nnodes, uint32_t);
    stream->best = SF_ARRAY(arena, problem->nnodes, uint32_t);
    stream->profile = SF_ARRAY(arena, problem->ntimes, int64_t);
    stream->forbidden = (int64_t)fmin(tables->forbidden, (double)SF_FORBIDDEN);
}

static int64_t cost_of_choice(const sf_stream *stream, const uint32_t *choice)
{
    const sf_problem *problem = stream->tables->problem;
    int64_t sum = problem->base;
    for (uint32_t v = 0; v < problem->nnodes; v++) {
        int64_t cost = sf_problem_cost(problem, v)[choice[v]];
        sum += cost < stream->forbidden ? cost : stream->forbidden;
    }
    for (uint32_t e = 0; e < problem->nedges; e++) {
        const sf_edge *edge = &problem->edges[e];
        size_t columns = sf_problem_count(problem, edge->b);
        int64_t cost = edge->cost[choice[edge->a] * columns + choice[edge->b]];
        sum += cost < stream->forbidden ? cost : stream->forbidden;
    }
    return sum;
}

/* No cost in it is forbidden. */
static bool is_allowed(const sf_stream *stream)
{
    const sf_problem *problem = stream->tables->problem;
    bool allowed = true;
    for (uint32_t v = 0; v < problem->nnodes; v++)
        allowed = allowed && sf_problem_cost(problem, v)[stream->choice[v]] < SF_FORBIDDEN;
    for (uint32_t e = 0; allowed && e < problem->nedges; e++) {
        const sf_edge *edge = &problem->edges[e];
        size_t columns = sf_problem_count(problem, edge->b);
        allowed =
            edge->cost[stream->choice[edge->a] * columns + stream->choice[edge->b]] < SF_FORBIDDEN;
    }
    return allowed;
}

static void set_prices(sf_stream *stream)
{
    const sf_problem *problem = stream->tables->problem;
    memcpy(stream->unary, stream->tables->unary,
           problem->first[problem->nnodes] * sizeof *stream->unary);
    sf_watch_prices(&stream->watch, stream->price, stream->unary);
    stream->work += stream->watch.first[problem->nnodes];
}

void sf_stream_start(sf_stream *stream, const uint32_t *choice, const sf_watch *watch,
                     const double *price)
{
    memmove(stream->choice, choice, watch->problem->nnodes * sizeof *choice);
    sf_watch_copy(&stream->watch, watch);
    memcpy(stream->price, price, watch->count * sizeof *price);
    stream->cost = cost_of_choice(stream, stream->choice);
    for (uint32_t slot = 0; slot < watch->count; slot++)
        stream->pressure[slot] = least_pressure;
    sf_watch_usage(&stream->watch, stream->choice, stream->usage);
    set_prices(stream);
}

void sf_stream_know(sf_stream *stream, const uint32_t *choice, int64_t cost)
{
    if (stream->found && stream->best_cost <= cost)
        return;
    memcpy(stream->best, choice, stream->tables->problem->nnodes * sizeof *choice);
    stream->best_cost = cost;
    stream->found = true;
}

static void add_watched_point(sf_stream *stream, uint32_t point)
{
    uint32_t before = stream->watch.count;
    sf_watch_add(&stream->watch, point);
    if (stream->watch.count == before)
        return;
    stream->price[before] = stream->average[before] = 0;
    stream->pressure[before] = least_pressure;
    stream->usage[before] = stream->profile[point];
    stream->change[before] = 0;
}

/* The present assignment is cheaper than the best and within the limit where that is watched. Keeps it if
 * it keeps to all rules. */
static void check_stream(sf_stream *stream)
{
    const sf_problem *problem = stream->tables->problem;
    uint32_t worst = problem->ntimes;
    int64_t most = 0;
    sf_problem_usage(problem, stream->choice, stream->profile);
    stream->work += problem->nuses + problem->ntimes;
    for (uint32_t t = 0; t < problem->ntimes; t++) {
        int64_t over = stream->profile[t] - problem->limit[t];
        if (over > most) {
            most = over;
            worst = t;
        }
    }
    if (worst < problem->ntimes)
        add_watched_point(stream, worst);
    else if (is_allowed(stream))
        sf_stream_know(stream, stream->choice, stream->cost);
}

static bool within_limits(const sf_stream *stream)
{
    for (uint32_t slot = 0; slot < stream->watch.count; slot++)
        if (stream->usage[slot] > sf_watch_limit(&stream->watch, slot))
            return false;
    return true;
}

/* The change of the price of usage above the limit. Leaves the change in stream->change. */
static double change_of_price(sf_stream *stream)
{
    const sf_watch *watch = &stream->watch;
    double sum = 0;
    for (uint32_t n = 0; n < stream->tree.count; n++) {
        uint32_t v = stream->tree.node[n], now = stream->choice[v], then = stream->tree.picked[v];
        for (uint32_t h = watch->first[v]; then != now && h < watch->first[v + 1]; h++) {
            const int64_t *usage = watch->problem->uses[watch->held[h].use].usage;
            stream->change[watch->held[h].slot] += usage[then] - usage[now];
        }
    }
    for (uint32_t slot = 0; slot < watch->count; slot++) {
        if (stream->change[slot] == 0)
            continue;
        int64_t over = stream->usage[slot] - sf_watch_limit(watch, slot);
        int64_t after = over + stream->change[slot];
        sum += stream->pressure[slot] * (stream->price[slot] + stream->least_price) *
               ((after > 0 ? (double)after : 0.0) - (over > 0 ? (double)over : 0.0));
    }
    return sum;
}

static void take_move(sf_stream *stream, int64_t change)
{
    for (uint32_t n = 0; n < stream->tree.count; n++)
        stream->choice[stream->tree.node[n]] = stream->tree.picked[stream->tree.node[n]];
    for (uint32_t slot = 0; slot < stream->watch.count; slot++)
        stream->usage[slot] += stream->change[slot];
    stream->cost += change;
    if (stream->cost < stream->best_cost && within_limits(stream))
        check_stream(stream);
}

/* A strategy of the root: the better, the likelier. */
static uint32_t draw_strategy(sf_stream *stream, const double *value, double temperature)
{
    uint32_t count = sf_problem_count(stream->tables->problem, stream->tree.node[0]), best = 0;
    double least = HUGE_VAL;
    for (uint32_t i = 0; i < count; i++) {
        double drawn = value[i] - temperature * sf_dice_wait(&stream->dice);
        if (drawn < least) {
            least = drawn;
            best = i;
        }
    }
    return best;
}

static void move_once(sf_stream *stream, double temperature)
{
    sf_tree *tree = &stream->tree;
    uint32_t root = sf_dice_below(&stream->dice, stream->tables->problem->nnodes);
    sf_tree_grow(tree, root, 1 + sf_dice_below(&stream->dice, TREE_SIZE), &stream->dice);
    const double *value = sf_tree_solve(tree, stream->unary, stream->choice);
    uint32_t strategy = draw_strategy(stream, value, temperature);
    if (!sf_tree_pick(tree, strategy, stream->choice))
        return;
    int64_t change = sf_tree_change(tree, stream->choice, stream->forbidden);
    double total = (double)change + change_of_price(stream);
    if (total <= 0 || total < temperature * sf_dice_wait(&stream->dice))
        take_move(stream, change);
    memset(stream->change, 0, stream->watch.count * sizeof *stream->change);
}

static void press_prices(sf_stream *stream)
{
    for (uint32_t slot = 0; slot < stream->watch.count; slot++) {
        bool over = stream->usage[slot] > sf_watch_limit(&stream->watch, slot);
        double pressure = stream->pressure[slot] * (over ? pressure_up : pressure_down);
        stream->pressure[slot] = fmin(fmax(pressure, least_pressure), 1e6);
    }
}

/* The thermostat. Prices of the later part of a run count for the average. */
static void follow_best(sf_stream *stream, bool sample)
{
    for (uint32_t slot = 0; slot < stream->watch.count; slot++) {
        bool over = stream->usage[slot] > sf_watch_limit(&stream->watch, slot);
        double price = stream->price[slot];
        stream->price[slot] = over ? price * price_up + stream->least_price : price * price_down;
        if (sample)
            stream->average[slot] += stream->price[slot];
    }
    stream->samples += sample;
    set_prices(stream);
}

void sf_stream_run(sf_stream *stream, int64_t work, double deadline, double hot, double cold)
{
    int64_t begin = stream->work, period = stream->tables->problem->nnodes / 5 + MOVES_AT_ONCE;
    int64_t tree_begin = stream->tree.work, followed = stream->moves;
    double done = 0, temperature = hot;
    memset(stream->average, 0, stream->watch.capacity * sizeof *stream->average);
    stream->samples = 0;
    while (done < 1 && (deadline == HUGE_VAL || sf_now() < deadline)) {
        for (int m = 0; m < MOVES_AT_ONCE; m++)
            move_once(stream, temperature);
        press_prices(stream);
        stream->moves += MOVES_AT_ONCE;
        stream->work += stream->tree.work - tree_begin + MOVES_AT_ONCE;
        tree_begin = stream->tree.work;
        done = (double)(stream->work - begin) / (double)work;
        double left = done < 1 ? 1 - done : 0;
        temperature = cold + (hot - cold) * left * left * left;
        if (stream->moves - followed >= period) {
            follow_best(stream, done > 0.5);
            followed = stream->moves;
        }
    }
}
