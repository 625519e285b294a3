/* From messages and multipliers in floating point to a bound in integers.
 *
 * Messages may be rounded to any integers: they add to one side as much as they subtract from the
 * other, so rounding makes the bound a little worse but keeps it valid. The same holds for
 * multipliers: they become fractions of a power of two, and are used as those. Costs count in units
 * of 2^-unit. */
#include "solve/dual/dual.h"

#include <math.h>
#include <string.h>

typedef __int128 wide;

/* Messages and costs in units stay below this, so that three of them fit into 63 bits. */
#define MOST_UNITS (INT64_C(1) << 60)

/* Multipliers stay below this: times the usage of all nodes, which fits into 63 bits, at every watched
 * point, that fits into 127. */
#define MULTIPLIER_BITS 54

/* The cost of a forbidden choice; sums of a million such values fit. */
#define NEVER ((wide)1 << 100)

typedef struct rounding {
    const sf_dual *dual;
    int unit;            /* bits after the point of costs */
    int fraction;        /* bits after the point of multipliers, no fewer */
    int64_t *multiplier; /* [watch.count] */
    wide *node;          /* [strategies]: the cost of each, with the messages of its edges */
    wide *over;          /* [strategies]: the cost of the edges above their least */
    int64_t *sent;       /* [2 * widest]: the messages of an edge, in units */
    int64_t *least;      /* [2 * widest]: the least of an edge for each strategy of its ends */
} rounding;

/* More bits make the rounding finer; costs must stay below MOST_UNITS. */
static void choose_unit(rounding *proof)
{
    int bits;
    frexp(proof->dual->tables->forbidden, &bits);
    proof->unit = bits > 60 ? 0 : 60 - bits > 20 ? 20 : 60 - bits;
}

static void round_multipliers(rounding *proof)
{
    const sf_dual *dual = proof->dual;
    double most = 0;
    int bits;
    for (uint32_t slot = 0; slot < dual->watch.count; slot++)
        most = fmax(most, dual->multiplier[slot]);
    frexp(most, &bits);
    int room = MULTIPLIER_BITS - bits;
    proof->fraction = room < proof->unit ? proof->unit : room > 80 ? 80 : room;
    for (uint32_t slot = 0; slot < dual->watch.count; slot++) {
        double value = ldexp(dual->multiplier[slot], proof->fraction);
        proof->multiplier[slot] = (int64_t)fmin(value, (double)(INT64_C(1) << MULTIPLIER_BITS));
    }
}

/* A sum of prices in units, rounded down. */
static wide round_down(const rounding *proof, wide paid)
{
    return paid >> (proof->fraction - proof->unit);
}

/* A cost in units; of a negative one, the bits are those that a product would have. */
static wide in_units(const rounding *proof, int64_t cost)
{
    return (wide)((unsigned __int128)(wide)cost << proof->unit);
}

static void start_node(rounding *proof, uint32_t v)
{
    const sf_watch *watch = &proof->dual->watch;
    const sf_problem *problem = watch->problem;
    for (uint32_t s = problem->first[v]; s < problem->first[v + 1]; s++) {
        wide paid = 0;
        for (uint32_t h = watch->first[v]; h < watch->first[v + 1]; h++)
            paid += (wide)proof->multiplier[watch->held[h].slot] *
                    problem->uses[watch->held[h].use].usage[s - problem->first[v]];
        bool never = problem->cost[s] >= SF_FORBIDDEN;
        proof->node[s] =
            never ? NEVER : round_down(proof, paid) + in_units(proof, problem->cost[s]);
    }
}

static void round_messages(rounding *proof, const double *messages, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        double units = round(ldexp(messages[i], proof->unit));
        proof->sent[i] = (int64_t)fmax(-(double)MOST_UNITS, fmin((double)MOST_UNITS, units));
        proof->least[i] = INT64_MAX;
    }
}

/* Adds the edge's messages to its ends, and returns the least that is left of the edge. */
static wide take_edge(rounding *proof, uint32_t e)
{
    const sf_problem *problem = proof->dual->tables->problem;
    const sf_edge *edge = &problem->edges[e];
    uint32_t rows = sf_problem_count(problem, edge->a),
             columns = sf_problem_count(problem, edge->b);
    int64_t *to_b = proof->sent + rows, *least_b = proof->least + rows, least = INT64_MAX;
    round_messages(proof, proof->dual->messages + proof->dual->message_at[e], rows + columns);
    for (uint32_t i = 0; i < rows; i++)
        for (uint32_t j = 0; j < columns; j++) {
            int64_t cost = edge->cost[(size_t)i * columns + j];
            if (cost >= SF_FORBIDDEN)
                continue;
            cost = cost * (INT64_C(1) << proof->unit) - proof->sent[i] - to_b[j];
            proof->least[i] = cost < proof->least[i] ? cost : proof->least[i];
            least_b[j] = cost < least_b[j] ? cost : least_b[j];
        }
    for (uint32_t i = 0; i < rows; i++)
        least = proof->least[i] < least ? proof->least[i] : least;
    for (uint32_t k = 0; k < rows + columns; k++) {
        uint32_t s = k < rows ? problem->first[edge->a] + k : problem->first[edge->b] + k - rows;
        proof->node[s] += proof->sent[k];
        proof->over[s] += proof->least[k] == INT64_MAX ? NEVER : (wide)proof->least[k] - least;
    }
    return least == INT64_MAX ? NEVER : (wide)least;
}

static wide least_rounded(const rounding *proof, uint32_t v)
{
    const uint32_t *first = proof->dual->tables->problem->first;
    wide least = NEVER;
    for (uint32_t s = first[v]; s < first[v + 1]; s++)
        least = proof->node[s] < least ? proof->node[s] : least;
    return least;
}

/* A bound in units as a cost: costs are whole, so it is rounded up. */
static int64_t rounded_cost(const rounding *proof, wide units)
{
    wide cost = -(-units >> proof->unit) + proof->dual->tables->problem->base;
    return cost >= SF_FORBIDDEN   ? SF_FORBIDDEN
           : cost < -SF_FORBIDDEN ? -SF_FORBIDDEN
                                  : (int64_t)cost;
}

static wide prove_bound(rounding *proof)
{
    const sf_problem *problem = proof->dual->tables->problem;
    wide sum = 0, paid = 0;
    for (uint32_t v = 0; v < problem->nnodes; v++)
        start_node(proof, v);
    for (uint32_t e = 0; e < problem->nedges; e++)
        sum += take_edge(proof, e);
    for (uint32_t v = 0; v < problem->nnodes; v++)
        sum += least_rounded(proof, v);
    for (uint32_t slot = 0; slot < proof->dual->watch.count; slot++)
        paid += (wide)proof->multiplier[slot] * sf_watch_limit(&proof->dual->watch, slot);
    return sum + round_down(proof, -paid);
}

int64_t sf_dual_prove(const sf_dual *dual, int64_t *strategy_bound, sf_arena *scratch)
{
    const sf_problem *problem = dual->tables->problem;
    uint32_t strategies = problem->first[problem->nnodes];
    sf_mark mark = sf_arena_mark(scratch);
    rounding proof = {.dual = dual,
                      .multiplier = SF_ARRAY(scratch, dual->watch.count, int64_t),
                      .node = SF_ARRAY(scratch, strategies, wide),
                      .over = SF_ARRAY(scratch, strategies, wide),
                      .sent = SF_ARRAY(scratch, 2 * (size_t)dual->tables->widest, int64_t),
                      .least = SF_ARRAY(scratch, 2 * (size_t)dual->tables->widest, int64_t)};
    choose_unit(&proof);
    round_multipliers(&proof);
    wide sum = prove_bound(&proof);
    for (uint32_t v = 0; strategy_bound && v < problem->nnodes; v++) {
        wide least = least_rounded(&proof, v);
        for (uint32_t s = problem->first[v]; s < problem->first[v + 1]; s++)
            strategy_bound[s] = rounded_cost(&proof, sum - least + proof.node[s] + proof.over[s]);
    }
    sf_arena_reset(scratch, mark);
    return rounded_cost(&proof, sum);
}
