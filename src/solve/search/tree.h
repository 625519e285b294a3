/* Moves over trees: the best change of many nodes at once.
 *
 * Grown from a root along random edges, a tree takes in a node only while that has one edge into the tree;
 * so the graph on the nodes of the tree is a tree, and with all other nodes as they are, dynamic programming
 * finds, for every strategy of the root, the best strategies of all others.
 */
#ifndef SF_SOLVE_SEARCH_TREE_H
#define SF_SOLVE_SEARCH_TREE_H

#include "solve/dual/dual.h"
#include "solve/search/dice.h"

/* Exponentially distributed with mean 1, to four digits. From additions, products and quotients alone, so
 * it is the same on every machine, which a library's logarithm is not. */
double sf_dice_wait(sf_dice *dice);

typedef struct sf_tree {
    const sf_tables *tables;
    uint32_t count;
    uint32_t *node;   /* [nnodes]: the root, then each after its parent */
    uint32_t *edge;   /* [nnodes]: to the parent; of the root, nothing */
    uint32_t *picked; /* [nnodes], by id: the new strategy of each node of the tree */
    double *value;    /* [strategies]: the best cost of the subtree below each */
    double *scratch;  /* [widest] */
    uint32_t turn;
    uint32_t *inside; /* [nnodes]: equal to turn for nodes of the tree */
    uint32_t *near;   /* [nnodes]: equal to turn for its neighbours */
    uint32_t *edges;  /* [nnodes]: of a neighbour into the tree, */
    uint32_t *last;   /* [nnodes]: and one of them */
    uint32_t *border; /* [nnodes]: neighbours to choose from */
    int64_t work;
} sf_tree;

void sf_tree_init(sf_tree *tree, const sf_tables *tables, sf_arena *arena);

/* At most `size` nodes. */
void sf_tree_grow(sf_tree *tree, uint32_t root, uint32_t size, sf_dice *dice);

/* The best cost of the tree for every strategy of the root, the other nodes being as chosen. */
const double *sf_tree_solve(sf_tree *tree, const double *unary, const uint32_t *choice);

/* Picks the strategies that go with one of the root. False when they are those that are chosen now. */
bool sf_tree_pick(sf_tree *tree, uint32_t strategy, const uint32_t *choice);

/* The change of the cost by taking the picked strategies, exactly, but for forbidden ones: these
 * cost `forbidden`. */
int64_t sf_tree_change(const sf_tree *tree, const uint32_t *choice, int64_t forbidden);

#endif
