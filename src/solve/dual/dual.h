/* Lower bounds, by sequential tree-reweighted message passing (TRW-S).
 *
 * Two things make a problem hard, the edges and the limit, and both are relaxed here:
 *
 *   limit   each watched point has a multiplier, a price per unit of usage; a solution then pays
 *   for its usage and gets the price of the limit back, so one within the limit never pays more
 *   edges   messages move cost between edges and nodes. They change no assignment's cost, but once they have
 *           moved it well, the least of each node and of each edge, taken apart, sum up to a good bound
 *
 * Any messages and any non-negative multipliers give a valid bound. So they are looked for in floating
 * point, and the bound that is handed out is computed from them in integers: it is exact.
 *
 * V. Kolmogorov, Convergent tree-reweighted message passing for energy minimization, PAMI 2006. */
#ifndef SF_SOLVE_DUAL_H
#define SF_SOLVE_DUAL_H

#include "solve/dual/watched_times.h"

/* The costs of a problem for floating-point work, read-only and shared: matrices both ways round, so that
 * the inner loop always runs along a row. */
typedef struct sf_tables {
    const sf_problem *problem;
    double forbidden; /* the cost of a forbidden choice: more than any allowed assignment */
    double *unary;    /* [strategies] */
    float *cells;
    size_t *at;      /* [nedges + 1]: half of it is the edge's first cell */
    uint32_t widest; /* strategies of a node, at most */
} sf_tables;

void sf_tables_init(sf_tables *tables, const sf_problem *problem, sf_arena *arena);

/* The matrix of an edge as seen from one end: a row for each strategy of the other end, so that
 * view[j * count(node) + i] is the cost of i here and j there. */
static inline const float *sf_tables_view(const sf_tables *tables, uint32_t edge, uint32_t node)
{
    size_t first = tables->at[edge], cells = tables->at[edge + 1] - first;
    return tables->cells + 2 * first + (tables->problem->edges[edge].a == node ? cells : 0);
}

/* Cells of all matrices: the work of a step over the whole problem. */
static inline int64_t sf_tables_cells(const sf_tables *tables)
{
    return (int64_t)tables->at[tables->problem->nedges] +
           tables->problem->first[tables->problem->nnodes];
}

/* out[i] = the least of value[j] + rows[j * columns + i] over j. */
void sf_least_sums(const double *value, const float *rows, uint32_t count, uint32_t columns,
                   double *out);

/* Changes single nodes as long as that makes unary[strategies] plus the edges cheaper. Takes scratch for
 * `widest` values. Returns the work. */
int64_t sf_tables_descend(const sf_tables *tables, const double *unary, double *scratch,
                          uint32_t *choice);

/* The state of the message passing. Everything is allocated by init. */
typedef struct sf_dual {
    const sf_tables *tables;
    sf_watch watch;
    double *multiplier; /* [watch.capacity], by slot */
    double *unary;      /* [strategies]: cost and price */
    double *messages;
    size_t *message_at; /* [nedges + 1]: to the strategies of a, then of b */
    uint32_t *choice;   /* [nnodes]: an assignment read off the messages in the last pass */
    double *sum, *seen, *scratch; /* [widest] each */
    int64_t work;
} sf_dual;

void sf_dual_init(sf_dual *dual, const sf_tables *tables, sf_arena *arena);

/* How many messages there are. */
size_t sf_dual_messages(const sf_dual *dual);

/* To be called after multipliers have changed. */
void sf_dual_price(sf_dual *dual);

/* A pass over all nodes in order of their ids, or against it. */
void sf_dual_pass(sf_dual *dual, bool forward);

/* The bound of the current messages and multipliers, in floating point: for steering. */
double sf_dual_estimate(const sf_dual *dual);

/* The cost of an assignment at the current prices, less the price of the limits. */
double sf_dual_value(const sf_dual *dual, const uint32_t *choice);

/* The bound that messages and multipliers prove, exactly: no assignment within the limit costs less.
 * SF_FORBIDDEN when they prove that there is none. strategy_bound, where not NULL, gets for every
 * strategy the same for assignments that take it. */
int64_t sf_dual_prove(const sf_dual *dual, int64_t *strategy_bound, sf_arena *scratch);

/* All of it for one problem: messages and multipliers are found with about `sweeps` sweeps.
 * multiplier[ntimes], or NULL for zeros: the start, and on return the result. Ends early once the
 * bound reaches `upper`. *work, unless NULL, gets the number of cells visited. */
int64_t sf_dual_bound(const sf_problem *problem, double *multiplier, int sweeps, int64_t upper,
                      int64_t *strategy_bound, int64_t *work, sf_arena *scratch);

#endif
