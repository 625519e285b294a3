/* Assignments grown from a seed.
 *
 * One node is given a strategy. Then, one after the other, a node next to those that are decided
 * takes the cheapest strategy with them; the node that would lose most by its second choice goes
 * first. If costs are mostly about neighbours agreeing, as in sharding, one seed so decides large
 * parts alike, which moves of a few nodes do not: every one of them would pay at its border. */
#ifndef SF_SOLVE_GROW_H
#define SF_SOLVE_GROW_H

#include "solve/problem/problem.h"

/* State that is kept between seeds of one problem. */
typedef struct sf_grower {
    const sf_problem *problem;
    const int64_t *unary; /* [strategies]: costs of nodes, with prices of usage if there are any */
    int64_t *cost;        /* [strategies]: with the edges to decided nodes */
    int64_t *regret;      /* [nnodes] */
    uint32_t *heap;       /* of nodes next to decided ones, the largest regret first */
    uint32_t *place;      /* [nnodes] in the heap, plus one; 0: not there */
    bool *decided;        /* [nnodes] */
    bool *settled;  /* [nnodes]: neither it nor a neighbour has changed since it was looked at */
    uint32_t count; /* in the heap */
    int64_t work;   /* cells that were looked at, in all */
} sf_grower;

void sf_grower_init(sf_grower *grower, const sf_problem *problem, sf_arena *arena);

/* Decides all nodes: choice[nnodes]. */
void sf_grow(sf_grower *grower, uint32_t node, uint32_t strategy, uint32_t *choice);

/* Decides the nodes that are not `fixed`[nnodes]; of the others choice[] is given. */
void sf_grow_rest(sf_grower *grower, const bool *fixed, uint32_t *choice);

/* Changes single nodes as long as that makes it cheaper. */
void sf_grow_settle(sf_grower *grower, uint32_t *choice);

/* The sum at these unary costs; SF_FORBIDDEN when it takes something forbidden. */
int64_t sf_grow_value(const sf_grower *grower, const uint32_t *choice);

#endif
