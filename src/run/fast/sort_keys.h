/* Comparators of sort that compare keys: one operand after the other, each by the order of its type.
 *
 * Frameworks write such an order in many ops: zeros of both signs and all NaNs are made one before
 * they are compared in total order, and a second operand counts where the first are equal. Other
 * comparators are not recognised, and the sort calls the comparator itself. */
#ifndef SF_RUN_FAST_SORT_KEYS_H
#define SF_RUN_FAST_SORT_KEYS_H

#include "ir/opdef.h"

typedef struct sf_order_key {
    int operand;
    bool descending;
    bool
        total; /* of floats: the total order, in which -0 < +0 and a NaN has its place; else a NaN comes
                   before nothing and after nothing */
    bool folds_zero, folds_nan; /* zeros of both signs, all NaNs are one */
    bool stops_at_nan;          /* after a NaN the next keys do not count: it is equal to nothing */
} sf_order_key;

enum { SF_ORDER_MOST = 4, SF_ORDER_OPERANDS = 1024 };

typedef struct sf_order {
    int count;
    sf_order_key keys[SF_ORDER_MOST];
} sf_order;

/* False when the comparator is not known to be such an order of the first SF_ORDER_OPERANDS operands. */
bool sf_order_of(const sf_op *sort, sf_order *out);

/* The order as a number of 63 bits, and back. */
int64_t sf_order_number(const sf_order *order);
sf_order sf_order_of_number(int64_t number);

#endif
