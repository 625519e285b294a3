/* Who reads the values of a step, seen through barriers: their results are their operands. */
#ifndef SF_SEARCH_PRICE_READERS_H
#define SF_SEARCH_PRICE_READERS_H

#include "ir/graph.h"

/* operand SF_NONE: in the node's regions. node SF_NONE: `operand` is a result of the step. */
typedef struct sf_reader {
    uint32_t node, operand;
} sf_reader;

typedef struct sf_readers {
    bool *is_top;      /* by value: of the top block */
    sf_value *origin;  /* by value: what a barrier handed on, else itself */
    sf_reader *at;     /* of value v, which is its own origin: at[first[v]] .. at[first[v + 1]] */
    uint32_t *first;   /* by value */
    uint32_t *becomes; /* by result of the step: the argument, or SF_NONE */
} sf_readers;

/* In the arena. */
sf_readers sf_readers_of(const sf_graph *graph, sf_arena *arena);

#endif
