/* The state of sharding propagation, which the files of plan/propagate.h share.
 *
 *     propagate.c           pins, axis by axis; regions, whose ends are given
 *     propagate_seeds.c     products that a pin decides
 *     propagate_splits.c    splits, from op to op
 *     propagate_defaults.c  values that no split has reached: constants, and partial sums */
#ifndef SF_PLAN_PROPAGATION_H
#define SF_PLAN_PROPAGATION_H

#include "ir/uses.h"
#include "op/op.h"
#include "plan/pin_rules.h"
#include "plan/propagate.h"
#include "shard/strategy.h"

/* Facts about an op that do not depend on the axis. */
typedef struct applied {
    sf_op op;
    sf_factoring factoring;
} applied;

/* A product that a pinned value decides, see hold_product. */
typedef struct held {
    const sf_node *node;
    struct held *next; /* another that the same value decides */
} held;

typedef struct propagation {
    const sf_graph *graph;
    sf_plan *plan;
    const bool *settled; /* by node id: its layouts are given; or NULL */
    size_t nchosen;
    const sf_chosen *chosen;
    sf_diag *diag;
    sf_arena arena;
    const applied **ops; /* by node id; of equal nodes the same, of settled ones NULL */
    sf_uses uses;
    bool *is_fixed; /* by node id: sf_find_fixed */
    sf_rules rules;
    int grant; /* of wishes, see plan/pin_rules.h */

    int axis, parts;  /* of the current axis: */
    sf_fixed fixed;   /* by rules */
    sf_share *shares; /* by value: its share, where `known` */
    bool *known;
    int *pin;         /* by value: the pin that `shares` is from, or -1 */
    sf_value *of_pin; /* by pin: the values that are split by it, as a list, */
    sf_value *next;   /* which goes on here, by value */
    bool *has_chosen; /* by node id: plan->nodes is filled for this axis */
    bool *is_partial; /* by value: it is made as a partial sum; see choose_rest */
    held **held;      /* by value: the products that it decides */
    sf_value *queue;
    size_t head, count, capacity;
} propagation;

static inline bool is_settled(const propagation *c, const sf_node *node)
{
    return c->settled && c->settled[node->id];
}

/* propagate_splits.c: the layout of a value as far as earlier axes go, and whether it fits with a share of this one. */
sf_layout *made_as(const propagation *c, sf_value value);
bool share_fits_value(const propagation *c, const sf_layout *earlier, const sf_type *type,
                      sf_share share, char *why);

/* Sets the share of a value, unless that is known; a split will propagate. */
void know_share(propagation *c, sf_value value, sf_share share);

bool strategy_fits(const propagation *c, const sf_node *node, const sf_strategy *strategy);
void choose_strategy(propagation *c, const sf_node *node, sf_strategy strategy);

/* Propagates the splits of a chosen node's tensors; of one tensor through a transparent node; all
 * that are queued. */
void propagate_from(propagation *c, const sf_node *node);
void pass_through(propagation *c, const sf_node *node, uint32_t tensor, sf_share share);
void propagate_splits(propagation *c);

/* propagate_seeds.c: ops that were chosen, then products that pins decide. */
sf_status choose_ops(propagation *c);
void propagate_chosen(propagation *c);
void hold_products(propagation *c);
void list_pinned(propagation *c);
void propagate_pin(propagation *c, int pin);

/* propagate_defaults.c */
void choose_free(propagation *c);
void choose_rest(propagation *c);
void share_gathers(propagation *c);

#endif
