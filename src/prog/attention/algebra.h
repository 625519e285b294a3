/* The computation between the products of attention, as sums of terms in its scores S, their
 * exponentials E, the sums Z of these along rows, the gradient G of the weights E / Z, and the sums
 * T of G E along rows:
 *
 *     c S^s E^e Z^z G^g T^t
 *
 * Conversions and broadcasts of rows change nothing here. */
#ifndef SF_PROG_ALGEBRA_H
#define SF_PROG_ALGEBRA_H

#include "prog/attention/graph_view.h"

typedef enum atom { ATOM_S, ATOM_E, ATOM_Z, ATOM_G, ATOM_T, ATOMS } atom;

typedef struct term {
    double factor;
    int powers[ATOMS];
} term;

enum { MOST_TERMS = 4 };

/* No terms: zero. */
typedef struct sum_of_terms {
    int count;
    term terms[MOST_TERMS];
} sum_of_terms;

/* Which values are S, E and G; SF_NONE: none. */
typedef struct algebra {
    const sf_scene *scene;
    sf_value scores, exponentials, gradient;
    sf_value mask; /* that masks elements that are zero already, or SF_NONE */
} algebra;

/* False where the value is no such sum. */
bool algebra_read(const algebra *a, sf_value value, sum_of_terms *out);

/* Whether these are the same sum, up to rounding of factors. */
bool algebra_equal(const sum_of_terms *a, const sum_of_terms *b);

/* Whether the value is one number everywhere, and which. */
bool algebra_number(const sf_scene *scene, sf_value value, double *out);

#endif
