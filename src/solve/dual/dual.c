#include "solve/dual/dual.h"

#include <math.h>
#include <string.h>

void sf_dual_init(sf_dual *dual, const sf_tables *tables, sf_arena *arena)
{
    const sf_problem *problem = tables->problem;
    size_t size = 0;
    *dual = (sf_dual){.tables = tables};
    sf_watch_init(&dual->watch, problem, arena);
    dual->message_at = SF_ARRAY(arena, problem->nedges + 1, size_t);
    for (uint32_t e = 0; e < problem->nedges; e++) {
        dual->message_at[e] = size;
        size += sf_problem_count(problem, problem->edges[e].a) +
                sf_problem_count(problem, problem->edges[e].b);
    }
    dual->message_at[problem->nedges] = size;
    dual->messages = SF_ARRAY(arena, size, double);
    dual->multiplier = SF_ARRAY(arena, dual->watch.capacity, double);
    dual->unary = SF_ARRAY(arena, problem->first[problem->nnodes], double);
    dual->choice = SF_ARRAY(arena, problem->nnodes, uint32_t);
    dual->sum = SF_ARRAY(arena, tables->widest, double);
    dual->seen = SF_ARRAY(arena, tables->widest, double);
    dual->scratch = SF_ARRAY(arena, tables->widest, double);
    sf_dual_price(dual);
}

size_t sf_dual_messages(const sf_dual *dual)
{
    return dual->message_at[dual->tables->problem->nedges];
}

void sf_dual_price(sf_dual *dual)
{
    const sf_problem *problem = dual->tables->problem;
    memcpy(dual->unary, dual->tables->unary, problem->first[problem->nnodes] * sizeof *dual->unary);
    sf_watch_prices(&dual->watch, dual->multiplier, dual->unary);
}

/* The message of an edge to one of its ends: added to the node, subtracted from the edge. */
static double *message_to(const sf_dual *dual, uint32_t e, uint32_t node)
{
    const sf_edge *edge = &dual->tables->problem->edges[e];
    uint32_t skip = node == edge->a ? 0 : sf_problem_count(dual->tables->problem, edge->a);
    return dual->messages + dual->message_at[e] + skip;
}

static void add_rows(double *sum, const double *values, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        sum[i] += values[i];
}

/* Moves to node v all that the edge costs it, whatever the other end does. */
static void pull_message(sf_dual *dual, uint32_t e, uint32_t v, uint32_t other)
{
    const sf_problem *problem = dual->tables->problem;
    uint32_t count = sf_problem_count(problem, v), there = sf_problem_count(problem, other);
    const double *sent = message_to(dual, e, other);
    for (uint32_t j = 0; j < there; j++)
        dual->scratch[j] = -sent[j];
    sf_least_sums(dual->scratch, sf_tables_view(dual->tables, e, v), there, count,
                  message_to(dual, e, v));
    dual->work += (int64_t)count * there;
}

static uint32_t least_at(const double *values, uint32_t count)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < count; i++)
        if (values[i] < values[best])
            best = i;
    return best;
}

/* A node collects from the edges to earlier nodes and shares its resulting cost among the edges to
 * later ones, in equal parts of at most 1 / (edges to earlier nodes). On the way the assignment is
 * read off: earlier nodes are decided. */
static void visit_node(sf_dual *dual, uint32_t v, bool forward)
{
    const sf_problem *problem = dual->tables->problem;
    uint32_t count = sf_problem_count(problem, v), after = 0, ahead = 0;
    memcpy(dual->sum, dual->unary + problem->first[v], count * sizeof *dual->sum);
    memcpy(dual->seen, dual->sum, count * sizeof *dual->seen);
    for (uint32_t l = problem->link_first[v]; l < problem->link_first[v + 1]; l++) {
        uint32_t e = problem->links[l], other = sf_edge_other(&problem->edges[e], v);
        if ((other > v) == forward) {
            ahead++;
            add_rows(dual->seen, message_to(dual, e, v), count);
        } else {
            after++;
            pull_message(dual, e, v, other);
            const float *row =
                sf_tables_view(dual->tables, e, v) + (size_t)dual->choice[other] * count;
            for (uint32_t i = 0; i < count; i++)
                dual->seen[i] += (double)row[i];
        }
        add_rows(dual->sum, message_to(dual, e, v), count);
    }
    dual->choice[v] = least_at(dual->seen, count);
    double share = 1.0 / (ahead > after ? ahead : after > 0 ? after : 1);
    for (uint32_t l = problem->link_first[v]; l < problem->link_first[v + 1]; l++) {
        uint32_t e = problem->links[l], other = sf_edge_other(&problem->edges[e], v);
        double *message = message_to(dual, e, v);
        for (uint32_t i = 0; (other > v) == forward && i < count; i++)
            message[i] -= share * dual->sum[i];
    }
    dual->work += (int64_t)count * (ahead + after);
}

void sf_dual_pass(sf_dual *dual, bool forward)
{
    uint32_t nnodes = dual->tables->problem->nnodes;
    for (uint32_t n = 0; n < nnodes; n++)
        visit_node(dual, forward ? n : nnodes - 1 - n, forward);
}

static double least_of_node(const sf_dual *dual, uint32_t v)
{
    const sf_problem *problem = dual->tables->problem;
    double least = HUGE_VAL;
    for (uint32_t i = 0; i < sf_problem_count(problem, v); i++) {
        double sum = dual->unary[problem->first[v] + i];
        for (uint32_t l = problem->link_first[v]; l < problem->link_first[v + 1]; l++)
            sum += message_to(dual, problem->links[l], v)[i];
        least = fmin(least, sum);
    }
    return least;
}

static double least_of_edge(const sf_dual *dual, uint32_t e)
{
    const sf_problem *problem = dual->tables->problem;
    const sf_edge *edge = &problem->edges[e];
    uint32_t rows = sf_problem_count(problem, edge->a),
             columns = sf_problem_count(problem, edge->b);
    const float *cells = sf_tables_view(dual->tables, e, edge->b);
    const double *to_a = message_to(dual, e, edge->a), *to_b = message_to(dual, e, edge->b);
    double least = HUGE_VAL;
    for (uint32_t i = 0; i < rows; i++)
        for (uint32_t j = 0; j < columns; j++) {
            double cost = (double)cells[(size_t)i * columns + j] - to_a[i] - to_b[j];
            least = cost < least ? cost : least;
        }
    return least;
}

static double price_of_limits(const sf_dual *dual)
{
    double sum = 0;
    for (uint32_t slot = 0; slot < dual->watch.count; slot++)
        sum += dual->multiplier[slot] * (double)sf_watch_limit(&dual->watch, slot);
    return sum;
}

double sf_dual_estimate(const sf_dual *dual)
{
    const sf_problem *problem = dual->tables->problem;
    double sum = (double)problem->base - price_of_limits(dual);
    for (uint32_t v = 0; v < problem->nnodes; v++)
        sum += least_of_node(dual, v);
    for (uint32_t e = 0; e < problem->nedges; e++)
        sum += least_of_edge(dual, e);
    return sum;
}

double sf_dual_value(const sf_dual *dual, const uint32_t *choice)
{
    const sf_problem *problem = dual->tables->problem;
    double sum = (double)problem->base - price_of_limits(dual);
    for (uint32_t v = 0; v < problem->nnodes; v++)
        sum += dual->unary[problem->first[v] + choice[v]];
    for (uint32_t e = 0; e < problem->nedges; e++) {
        const sf_edge *edge = &problem->edges[e];
        sum += (double)sf_tables_view(
            dual->tables, e, edge->b)[(size_t)choice[edge->a] * sf_problem_count(problem, edge->b) +
                                      choice[edge->b]];
    }
    return sum;
}
