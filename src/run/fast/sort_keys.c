#include "run/fast/sort_keys.h"

#include <math.h>
#include <string.h>

#include "op/op.h"
#include "op/slots.h"

/* A side of a comparison: an argument of the comparator, with zeros or NaNs made one. */
typedef struct side {
    int argument; /* 2 * operand for the left element, one more for the right; -1 for anything else */
    bool folds_zero, folds_nan;
} side;

static const sf_node *made_by(const sf_op *op, sf_value value, sf_opcode code)
{
    const sf_node *node = sf_maker(op->graph, value);
    return node && sf_is(node, code) ? node : NULL;
}

static int argument_of(const sf_op *op, sf_value value)
{
    const sf_block *block = op->regions[0];
    for (uint32_t i = 0; i < block->narguments; i++)
        if (block->arguments[i] == value)
            return (int)i;
    return -1;
}

static bool constant_in_body(const sf_op *op, sf_value value, double *out)
{
    const sf_node *node = made_by(op, value, SF_OP_CONSTANT);
    if (!node || !node->attrs[SF_CONSTANT_VALUE]->dense.data)
        return false;
    const sf_dense *dense = &node->attrs[SF_CONSTANT_VALUE]->dense;
    if (dense->type->rank != 0 || !sf_is_float(dense->type->dtype))
        return false;
    *out = sf_load_f64(dense->type->dtype, dense->data, 0);
    return true;
}

static bool has_text(const sf_node *node, int slot, const char *text)
{
    return node->attrs[slot] && strcmp(node->attrs[slot]->text, text) == 0;
}

/* The predicate says that the argument is zero, or that it is a NaN. */
static bool asks_zero_or_nan(const sf_op *op, sf_value predicate, int argument, bool *zero,
                             bool *nan)
{
    const sf_node *node = made_by(op, predicate, SF_OP_COMPARE);
    if (!node || has_text(node, SF_COMPARE_TYPE, "TOTALORDER"))
        return false;
    int a = argument_of(op, node->operands[0]), b = argument_of(op, node->operands[1]);
    double number;
    *nan = has_text(node, SF_COMPARE_DIRECTION, "NE") && a == argument && b == argument;
    *zero = has_text(node, SF_COMPARE_DIRECTION, "EQ") &&
            ((a == argument && constant_in_body(op, node->operands[1], &number) && number == 0) ||
             (b == argument && constant_in_body(op, node->operands[0], &number) && number == 0));
    return *nan || *zero;
}

/* Follows select(x is zero, 0, rest) and select(x is NaN, NaN, rest) to x. */
static side side_of(const sf_op *op, sf_value value)
{
    enum { MOST = 4 };
    sf_value inner = value;
    for (int i = 0; i < MOST && made_by(op, inner, SF_OP_SELECT); i++)
        inner = sf_maker(op->graph, inner)->operands[2];
    side out = {.argument = argument_of(op, inner)};
    for (const sf_node *node; out.argument >= 0 && value != inner; value = node->operands[2]) {
        bool zero, nan;
        double number;
        node = sf_maker(op->graph, value);
        if (!asks_zero_or_nan(op, node->operands[0], out.argument, &zero, &nan) ||
            !constant_in_body(op, node->operands[1], &number) || (zero && number != 0) ||
            (nan && (!isnan(number) || signbit(number))))
            return (side){.argument = -1};
        out.folds_zero = out.folds_zero || zero;
        out.folds_nan = out.folds_nan || nan;
    }
    return out;
}

/* Float types whose bits are read as sign and magnitude; integers all are. */
static bool has_order(sf_dtype dtype)
{
    return !sf_is_inexact(dtype) || dtype == SF_F64 || dtype == SF_F32 || dtype == SF_BF16 ||
           dtype == SF_F16;
}

/* A comparison of the two elements of one operand. For LT, `descending` means that the right one
 * comes first. */
static bool compares_operand(const sf_op *op, const sf_node *node, sf_order_key *out)
{
    side a = side_of(op, node->operands[0]), b = side_of(op, node->operands[1]);
    if (a.argument < 0 || b.argument < 0 || a.argument / 2 != b.argument / 2 ||
        a.argument == b.argument || a.folds_zero != b.folds_zero || a.folds_nan != b.folds_nan)
        return false;
    *out = (sf_order_key){.operand = a.argument / 2,
                          .descending = a.argument > b.argument,
                          .folds_zero = a.folds_zero,
                          .folds_nan = a.folds_nan};
    sf_dtype dtype = op->in[out->operand]->dtype;
    out->total = !sf_is_float(dtype) || has_text(node, SF_COMPARE_TYPE, "TOTALORDER");
    return has_order(dtype) && out->operand < SF_ORDER_OPERANDS;
}

static bool is_before(const sf_op *op, sf_value value, sf_order_key *out)
{
    const sf_node *node = made_by(op, value, SF_OP_COMPARE);
    if (!node || !compares_operand(op, node, out))
        return false;
    bool greater = has_text(node, SF_COMPARE_DIRECTION, "GT");
    out->descending = out->descending != greater;
    return greater || has_text(node, SF_COMPARE_DIRECTION, "LT");
}

/* Equal by the same key. Between a total order of zeros and an equality that takes them for one there is
 * none. */
static bool is_equal_body(const sf_op *op, sf_value value, sf_order_key *key)
{
    const sf_node *node = made_by(op, value, SF_OP_COMPARE);
    sf_order_key other;
    if (!node || !has_text(node, SF_COMPARE_DIRECTION, "EQ") ||
        !compares_operand(op, node, &other) || other.operand != key->operand ||
        other.folds_zero != key->folds_zero || other.folds_nan != key->folds_nan)
        return false;
    key->stops_at_nan = !other.total;
    return key->total ? other.total || key->folds_zero : !other.total;
}

/* before(key) or (equal(key) and rest); or select(equal(key), rest, before(key)). */
static bool is_led(const sf_op *op, sf_value value, sf_order_key *key, sf_value *rest)
{
    const sf_node *node = made_by(op, value, SF_OP_SELECT);
    if (node) {
        *rest = node->operands[1];
        return is_before(op, node->operands[2], key) && is_equal_body(op, node->operands[0], key);
    }
    node = made_by(op, value, SF_OP_OR);
    for (int i = 0; node && i < 2; i++) {
        const sf_node *both = made_by(op, node->operands[1 - i], SF_OP_AND);
        if (!both || !is_before(op, node->operands[i], key))
            continue;
        for (int j = 0; j < 2; j++) {
            *rest = both->operands[1 - j];
            if (is_equal_body(op, both->operands[j], key))
                return true;
        }
    }
    return false;
}

bool sf_order_of(const sf_op *sort, sf_order *out)
{
    if (sort->nregions != 1 || sort->regions[0]->nresults != 1)
        return false;
    sf_value value = sort->regions[0]->results[0];
    for (out->count = 0; out->count < SF_ORDER_MOST;) {
        sf_order_key *key = &out->keys[out->count++];
        if (is_before(sort, value, key))
            return true;
        if (!is_led(sort, value, key, &value))
            return false;
    }
    return false;
}

/* How many keys there are, then the keys, the first one lowest: five flags and the operand. */
enum { COUNT_BITS = 3, KEY_BITS = 15 };
enum { DESCENDING = 1, TOTAL = 2, FOLDS_ZERO = 4, FOLDS_NAN = 8, STOPS_AT_NAN = 16, OPERAND = 32 };
_Static_assert(1 << KEY_BITS == OPERAND * SF_ORDER_OPERANDS && SF_ORDER_MOST < 1 << COUNT_BITS &&
                   SF_ORDER_MOST * KEY_BITS + COUNT_BITS <= 63,
               "an order is a positive number");

static int64_t number_of_key(const sf_order_key *key)
{
    return (key->descending ? DESCENDING : 0) | (key->total ? TOTAL : 0) |
           (key->folds_zero ? FOLDS_ZERO : 0) | (key->folds_nan ? FOLDS_NAN : 0) |
           (key->stops_at_nan ? STOPS_AT_NAN : 0) | key->operand * OPERAND;
}

int64_t sf_order_number(const sf_order *order)
{
    int64_t number = 0;
    for (int k = order->count - 1; k >= 0; k--)
        number = number << KEY_BITS | number_of_key(&order->keys[k]);
    return number << COUNT_BITS | order->count;
}

sf_order sf_order_of_number(int64_t number)
{
    sf_order order = {.count = (int)(number & ((1 << COUNT_BITS) - 1))};
    number >>= COUNT_BITS;
    for (int k = 0; k < order.count; k++, number >>= KEY_BITS) {
        int key = (int)(number & ((1 << KEY_BITS) - 1));
        order.keys[k] = (sf_order_key){.operand = key / OPERAND,
                                       .descending = key & DESCENDING,
                                       .total = key & TOTAL,
                                       .folds_zero = key & FOLDS_ZERO,
                                       .folds_nan = key & FOLDS_NAN,
                                       .stops_at_nan = key & STOPS_AT_NAN};
    }
    return order;
}
