/* Strategies: the ways to run an op along one axis of a mesh.
 *
 * They follow from the op's factors and its linearity, and from nothing else:
 *
 *     whole    every rank does all of it
 *     factor   the loop is cut: `period` indices of the factor are one block, each rank takes a
 *              part of every block. Tensors that the factor walks are split; a result of a reduce
 *              factor is partial
 *     linear   the operands in the mask are partial sums, and so is every result; the other
 *              operands are replicated
 *
 * A transparent node (optimization_barrier) has none of these: each of its results has the layout of the
 * operand it is, whatever that may be.
 *
 * Axes are independent of each other as long as the layouts of each tensor fit its shape.
 */
#ifndef SF_SHARD_STRATEGY_H
#define SF_SHARD_STRATEGY_H

#include "op/op.h"
#include "shard/layout.h"

static inline bool sf_is_transparent(const sf_node *node)
{
    return sf_is(node, SF_OP_OPTIMIZATION_BARRIER);
}

typedef enum sf_strategy_kind { SF_RUN_WHOLE, SF_RUN_FACTOR, SF_RUN_LINEAR } sf_strategy_kind;

typedef struct sf_strategy {
    sf_strategy_kind kind;
    int factor;
    int64_t period;
    uint32_t mask;
} sf_strategy;

/* The share of tensor `tensor` (operands first, then results) of the op along the axis. */
sf_share sf_strategy_share(const sf_op *op, const sf_factoring *factoring,
                           const sf_strategy *strategy, int tensor);

/* The strategy that splits the tensor as `share`, a SPLIT, says, over `parts` ranks; false when the op
 * cannot be run so. */
bool sf_strategy_of_split(const sf_factoring *factoring, int tensor, sf_share share, int parts,
                          sf_strategy *out);

/* All of them for an axis of `parts` ranks: whole first, then each factor that can be cut, contiguous,
 * then each linear set. Returns how many; they live in the arena. */
int sf_strategies(const sf_op *op, const sf_factoring *factoring, int parts, sf_arena *arena,
                  sf_strategy **out);

#endif
