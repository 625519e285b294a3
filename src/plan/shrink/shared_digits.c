#include "plan/shrink/shared_digits.h"

#include "base/checked.h"

enum {
    MOST_PARTS = 64, /* how deep digits are cut: each cut halves a size at least */
    LEAST = 8,       /* norms and softmaxes of fewer numbers magnify rounding errors */
};

uint32_t sf_digits_add(sf_digits *digits, int64_t size, bool fixed)
{
    sf_digit_class digit = {
        .size = size, .same = (uint32_t)digits->count, .major = SF_NONE, .minor = SF_NONE};
    digit.fixed = fixed;
    SF_PUSH(digits->arena, digits->at, digits->count, digits->capacity, digit);
    return digit.same;
}

/* The representative of all digits that are the same. */
static uint32_t find_digit(sf_digits *digits, uint32_t digit)
{
    sf_digit_class *at = digits->at;
    while (at[digit].same != digit) {
        at[digit].same = at[at[digit].same].same;
        digit = at[digit].same;
    }
    return digit;
}

static uint32_t find_const(const sf_digits *digits, uint32_t digit)
{
    while (digits->at[digit].same != digit)
        digit = digits->at[digit].same;
    return digit;
}

static void cut_digit(sf_digits *digits, uint32_t digit, int64_t major)
{
    bool fixed = digits->at[digit].fixed;
    int64_t minor = digits->at[digit].size / major;
    uint32_t first = sf_digits_add(digits, major, fixed);
    uint32_t second = sf_digits_add(digits, minor, fixed);
    digits->at[digit].major = first;
    digits->at[digit].minor = second;
}

static void join_digits(sf_digits *digits, uint32_t a, uint32_t b)
{
    bool fixed = digits->at[a].fixed || digits->at[b].fixed;
    digits->at[b].same = a;
    digits->at[a].fixed = fixed;
}

void sf_digits_fix(sf_digits *digits, uint32_t digit)
{
    digit = find_digit(digits, digit);
    digits->at[digit].fixed = true;
    if (digits->at[digit].major != SF_NONE) {
        sf_digits_fix(digits, digits->at[digit].major);
        sf_digits_fix(digits, digits->at[digit].minor);
    }
}

/* Digits of a product that are still to come, the next one last. */
typedef struct side {
    sf_digits *digits;
    int count, next; /* of `products`: those not yet begun */
    const uint32_t *products;
    int nparts;
    uint32_t parts[MOST_PARTS + 1];
} side;

/* The next digit that is not cut, and not of size 1; SF_NONE at the end. */
static uint32_t peek_digit(side *s)
{
    for (;;) {
        if (s->nparts == 0) {
            if (s->next == s->count)
                return SF_NONE;
            s->parts[s->nparts++] = s->products[s->next++];
        }
        uint32_t digit = find_digit(s->digits, s->parts[s->nparts - 1]);
        const sf_digit_class *at = &s->digits->at[digit];
        if (at->size != 1 && at->major == SF_NONE)
            return digit;
        s->nparts--;
        if (at->size != 1) {
            s->parts[s->nparts++] = at->minor;
            s->parts[s->nparts++] = at->major;
        }
    }
}

/* Fixes digits on either side until the products meet; false at the end. */
static bool fix_until_equal(side *a, side *b)
{
    double left = 1, right = 1;
    do {
        side *shorter = left <= right ? a : b;
        uint32_t digit = peek_digit(shorter);
        if (digit == SF_NONE)
            return false;
        sf_digits_fix(shorter->digits, digit);
        *(shorter == a ? &left : &right) *= (double)shorter->digits->at[digit].size;
        shorter->nparts--;
    } while (left != right);
    return true;
}

void sf_digits_tie(sf_digits *digits, int na, const uint32_t *a, int nb, const uint32_t *b)
{
    side left = {.digits = digits, .count = na, .products = a};
    side right = {.digits = digits, .count = nb, .products = b};
    for (;;) {
        uint32_t x = peek_digit(&left), y = peek_digit(&right);
        if (x == SF_NONE || y == SF_NONE)
            break;
        int64_t p = digits->at[x].size, q = digits->at[y].size;
        int64_t common = p > 0 && q > 0 ? sf_gcd(p, q) : p == q ? p : 1;
        if (x == y || p == q) {
            if (x != y)
                join_digits(digits, x, y);
            left.nparts--;
            right.nparts--;
        } else if (common == 1) {
            if (!fix_until_equal(&left, &right))
                break;
        } else {
            if (p != common)
                cut_digit(digits, x, common);
            if (q != common)
                cut_digit(digits, y, common);
        }
    }
    for (uint32_t rest; (rest = peek_digit(&left)) != SF_NONE; left.nparts--)
        sf_digits_fix(digits, rest);
    for (uint32_t rest; (rest = peek_digit(&right)) != SF_NONE; right.nparts--)
        sf_digits_fix(digits, rest);
}

int64_t sf_digits_smaller(int64_t size, int64_t ranks)
{
    int64_t common = sf_gcd(size, ranks);
    for (int64_t smaller = LEAST; smaller < size; smaller++)
        if (sf_gcd(smaller, ranks) == common)
            return smaller;
    return size;
}

int64_t sf_digits_size(const sf_digits *digits, uint32_t digit, int64_t ranks)
{
    const sf_digit_class *at = &digits->at[find_const(digits, digit)];
    if (at->major != SF_NONE)
        return sf_digits_size(digits, at->major, ranks) * sf_digits_size(digits, at->minor, ranks);
    return at->fixed ? at->size : sf_digits_smaller(at->size, ranks);
}

int64_t sf_digits_unit(const sf_digits *digits, uint32_t digit, int64_t unit, int64_t ranks)
{
    const sf_digit_class *at = &digits->at[find_const(digits, digit)];
    if (unit == 1)
        return 1;
    if (unit == at->size)
        return sf_digits_size(digits, digit, ranks);
    if (at->major == SF_NONE)
        return 0;
    int64_t minor = digits->at[find_const(digits, at->minor)].size;
    if (unit <= minor)
        return sf_digits_unit(digits, at->minor, unit, ranks);
    return unit % minor != 0 ? 0
                             : sf_digits_size(digits, at->minor, ranks) *
                                   sf_digits_unit(digits, at->major, unit / minor, ranks);
}
