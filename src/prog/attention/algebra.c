#include "prog/attention/algebra.h"

#include <math.h>

#include "op/carry.h"
#include "op/slots.h"

enum { DEEPEST = 48 };

bool algebra_number(const sf_scene *scene, sf_value value, double *out)
{
    const sf_node *node = scene_maker(scene, value);
    while (sf_carries(node, SF_CARRIES_SHAPE | SF_CARRIES_COPIES))
        node = scene_maker(scene, node->operands[0]);
    if (!node || !sf_is(node, SF_OP_CONSTANT))
        return false;
    const sf_dense *dense = &node->attrs[SF_CONSTANT_VALUE]->dense;
    if (!dense->data || (!dense->splat && dense->type->count != 1) ||
        !sf_is_float(dense->type->dtype))
        return false;
    *out = sf_load_f64(dense->type->dtype, dense->data, 0);
    return true;
}

static bool same_powers(const term *a, const term *b)
{
    for (int i = 0; i < ATOMS; i++)
        if (a->powers[i] != b->powers[i])
            return false;
    return true;
}

static bool add_term(sum_of_terms *sum, const term *t)
{
    for (int i = 0; i < sum->count; i++)
        if (same_powers(&sum->terms[i], t)) {
            sum->terms[i].factor += t->factor;
            return true;
        }
    if (sum->count == MOST_TERMS)
        return false;
    sum->terms[sum->count++] = *t;
    return true;
}

bool algebra_equal(const sum_of_terms *a, const sum_of_terms *b)
{
    if (a->count != b->count)
        return false;
    for (int i = 0; i < a->count; i++) {
        int j = 0;
        while (j < b->count && !same_powers(&a->terms[i], &b->terms[j]))
            j++;
        if (j == b->count ||
            fabs(a->terms[i].factor - b->terms[j].factor) > 1e-6 * fabs(b->terms[j].factor))
            return false;
    }
    return true;
}

static void one_term(sum_of_terms *out, atom of)
{
    *out = (sum_of_terms){.count = 1, .terms[0] = {.factor = 1}};
    out->terms[0].powers[of] = 1;
}

/* x + sign * y */
static bool add_sums(const sum_of_terms *x, const sum_of_terms *y, double sign, sum_of_terms *out)
{
    *out = *x;
    for (int i = 0; i < y->count; i++) {
        term t = y->terms[i];
        t.factor *= sign;
        if (!add_term(out, &t))
            return false;
    }
    return true;
}

/* x * y, or, with `sign` -1, x / y, where y must be one term */
static bool multiply_sums(const sum_of_terms *x, const sum_of_terms *y, int sign, sum_of_terms *out)
{
    *out = (sum_of_terms){0};
    if (sign < 0 && (y->count != 1 || y->terms[0].factor == 0))
        return false;
    for (int i = 0; i < x->count; i++)
        for (int j = 0; j < y->count; j++) {
            term t = x->terms[i];
            t.factor = sign < 0 ? t.factor / y->terms[j].factor : t.factor * y->terms[j].factor;
            for (int k = 0; k < ATOMS; k++)
                t.powers[k] += sign * y->terms[j].powers[k];
            if (!add_term(out, &t))
                return false;
        }
    return true;
}

/* The sum along a row of the scores. A factor that is one number per row moves out of the sum; of
 * the others, E gives Z, and G E gives T. */
static bool sum_along_row(const sum_of_terms *x, sum_of_terms *out)
{
    *out = (sum_of_terms){0};
    for (int i = 0; i < x->count; i++) {
        term t = x->terms[i];
        if (t.powers[ATOM_S] != 0 || t.powers[ATOM_E] != 1 ||
            (t.powers[ATOM_G] != 0 && t.powers[ATOM_G] != 1))
            return false;
        t.powers[t.powers[ATOM_G] == 1 ? ATOM_T : ATOM_Z] += 1;
        t.powers[ATOM_E] = t.powers[ATOM_G] = 0;
        if (!add_term(out, &t))
            return false;
    }
    return true;
}

static bool is_sum_along_row(const algebra *a, const sf_node *node)
{
    const sf_type *type = sf_type_of(a->scene->graph, node->operands[0]);
    const sf_attr *dims = node->attrs[SF_REDUCE_DIMENSIONS], *body = node->attrs[SF_REDUCE_BODY];
    double start;
    return node->noperands == 2 && body && body->integer == SF_MONOID_ADD && dims &&
           dims->count == 1 && dims->ints[0] == type->rank - 1 && type->rank == 4 &&
           algebra_number(a->scene, node->operands[1], &start) && start == 0;
}

/* Whether a value of this type has a number for each row: [b, h, q] of the scores, with or without dimensions of size 1. */
static bool is_of_rows(const algebra *a, const sf_type *type)
{
    const sf_type *scores = sf_type_of(a->scene->graph, a->scores);
    int at = 0;
    if (scores->dims[3] == 1)
        return false; /* rows and scores would look the same */
    for (int d = 0; d < 3; d++) {
        while (at < type->rank && type->dims[at] == 1 && scores->dims[d] != 1)
            at++;
        if (scores->dims[d] == 1)
            continue;
        if (at == type->rank || type->dims[at++] != scores->dims[d])
            return false;
    }
    while (at < type->rank && type->dims[at] == 1)
        at++;
    return at == type->rank;
}

/* Rows that are repeated along k. */
static bool repeats_rows(const algebra *a, const sf_node *node)
{
    const sf_attr *dims = node->attrs[SF_BROADCAST_DIMENSIONS];
    const sf_type *from = sf_type_of(a->scene->graph, node->operands[0]),
                  *to = sf_type_of(a->scene->graph, node->result);
    if (!dims || to->rank != 4 || !is_of_rows(a, from))
        return false;
    for (int i = 0; i < dims->count; i++)
        if (from->dims[i] != 1 && (dims->ints[i] == 3 || from->dims[i] != to->dims[dims->ints[i]] ||
                                   (i > 0 && dims->ints[i] <= dims->ints[i - 1])))
            return false;
    return to->dims[3] == sf_type_of(a->scene->graph, a->scores)->dims[3];
}

/* Between [b, h, q] and [b, h, q, 1], say. */
static bool keeps_rows(const algebra *a, const sf_node *node)
{
    return is_of_rows(a, sf_type_of(a->scene->graph, node->operands[0])) &&
           is_of_rows(a, sf_type_of(a->scene->graph, node->result));
}

static bool read_value(const algebra *a, sf_value value, int depth, sum_of_terms *out);

static bool read_two(const algebra *a, const sf_node *node, int depth, sum_of_terms *out)
{
    sum_of_terms x, y;
    if (!read_value(a, node->operands[0], depth, &x) ||
        !read_value(a, node->operands[1], depth, &y))
        return false;
    if (sf_is(node, SF_OP_ADD) || sf_is(node, SF_OP_SUBTRACT))
        return add_sums(&x, &y, sf_is(node, SF_OP_ADD) ? 1 : -1, out);
    return multiply_sums(&x, &y, sf_is(node, SF_OP_MULTIPLY) ? 1 : -1, out);
}

static bool read_node(const algebra *a, const sf_node *node, int depth, sum_of_terms *out)
{
    static const sum_of_terms none = {0};
    sum_of_terms x;
    double zero;
    switch (node->def->id) {
    case SF_OP_ADD:
    case SF_OP_SUBTRACT:
    case SF_OP_MULTIPLY:
    case SF_OP_DIVIDE:
        return read_two(a, node, depth, out);
    case SF_OP_NEGATE:
        return read_value(a, node->operands[0], depth, &x) && add_sums(&none, &x, -1, out);
    case SF_OP_CONVERT:
        return read_value(a, node->operands[0], depth, out);
    case SF_OP_RESHAPE:
        return keeps_rows(a, node) && read_value(a, node->operands[0], depth, out);
    case SF_OP_BROADCAST_IN_DIM:
        return repeats_rows(a, node) && read_value(a, node->operands[0], depth, out);
    case SF_OP_REDUCE:
        return is_sum_along_row(a, node) && read_value(a, node->operands[0], depth, &x) &&
               sum_along_row(&x, out);
    case SF_OP_SELECT:
        return scene_same(a->scene, node->operands[0], a->mask) &&
               algebra_number(a->scene, node->operands[2], &zero) && zero == 0 &&
               read_value(a, node->operands[1], depth, out);
    default:
        return false;
    }
}

static bool read_value(const algebra *a, sf_value value, int depth, sum_of_terms *out)
{
    double number;
    const sf_value atoms[] = {
        [ATOM_S] = a->scores, [ATOM_E] = a->exponentials, [ATOM_G] = a->gradient};
    for (atom i = ATOM_S; i <= ATOM_G; i++)
        if (i != ATOM_Z && scene_same(a->scene, value, atoms[i])) {
            one_term(out, i);
            return true;
        }
    if (algebra_number(a->scene, value, &number)) {
        *out = (sum_of_terms){.count = number != 0, .terms[0] = {.factor = number}};
        return true;
    }
    const sf_node *node = scene_maker(a->scene, value);
    return node && depth < DEEPEST && read_node(a, node, depth + 1, out);
}

bool algebra_read(const algebra *a, sf_value value, sum_of_terms *out)
{
    return read_value(a, value, 0, out);
}
