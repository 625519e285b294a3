/* One stream of the search: simulated annealing by moves over trees, with prices for usage.
 *
 * The limit is not a wall. Being over it at a watched point costs a price per unit, and the prices
 * follow the usage, as a thermostat follows a temperature: up while a point is over its limit,
 * slowly down while it is not. A good price makes moves propose assignments that fit; the averages
 * of the prices are also good multipliers for the bound. Every assignment that is within the limit
 * at all watched points and cheaper than the best is checked at all points; the point that fails is
 * watched from then on.
 *
 * A stream allocates everything in init and touches nothing but itself when it runs, so streams run
 * on any thread, and their results depend on their start and work alone. */
#ifndef SF_SOLVE_SEARCH_STREAM_H
#define SF_SOLVE_SEARCH_STREAM_H

#include "solve/search/tree.h"

typedef struct sf_stream {
    const sf_tables *tables;
    sf_watch watch;
    sf_tree tree;
    sf_dice dice;
    double *price, *average; /* [watch.capacity], by slot */
    double *pressure;        /* [watch.capacity]: a factor of the price of usage above the limit */
    uint32_t samples;        /* of prices in `average` */
    double least_price;      /* the initial price of a point */
    double *unary;           /* [strategies]: cost and price */
    uint32_t *choice;        /* [nnodes]: where it is */
    int64_t cost;            /* of it, forbidden choices costing `forbidden` */
    int64_t forbidden;
    int64_t *usage, *change; /* [watch.capacity], by slot */
    int64_t *profile;        /* [ntimes] */
    bool found;              /* `best` keeps to all rules */
    uint32_t *best;          /* [nnodes] */
    int64_t best_cost;
    int64_t moves, work;
} sf_stream;

/* least_price: the initial price of a point that is over its limit. */
void sf_stream_init(sf_stream *stream, const sf_tables *tables, uint64_t seed, sf_arena *arena);

/* Goes to an assignment, with prices[count] for the points of `watch`, which it then watches. */
void sf_stream_start(sf_stream *stream, const uint32_t *choice, const sf_watch *watch,
                     const double *price);

/* Passes a feasible assignment. */
void sf_stream_know(sf_stream *stream, const uint32_t *choice, int64_t cost);

/* Works for `work` cells, or until the clock passes `deadline`, while the temperature, in units of cost,
 * falls from hot to cold. */
void sf_stream_run(sf_stream *stream, int64_t work, double deadline, double hot, double cold);

#endif
