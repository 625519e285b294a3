/* The arithmetic of reductions between ranks: dst = a . b, element by element.
 *
 * Numbers are combined as the CPU engine combines them (run/vec/vec.h): floats of up to 32 bits in
 * float, rounded to their type after every step; integers wrap; for booleans `add` and `max` are
 * or, `mul` and `min` are and. Complex numbers are added as their parts are, so callers pass the
 * type of the parts; here they are only multiplied. */
#ifndef SF_RUN_COMM_REDUCE_ELEMENTS_H
#define SF_RUN_COMM_REDUCE_ELEMENTS_H

#include "ir/factor.h"
#include "run/vec/vec.h"

typedef struct sf_combine {
    sf_dtype dtype;
    sf_vkernel *kernel;
    sf_vload *load; /* NULL: elements in memory are registers as they are */
    sf_vstore *store;
    int64_t bytes; /* of an element in memory */
} sf_combine;

/* False when elements of that type cannot be combined that way: bitwise on floats, no monoid, or one
 * that depends on an order which ranks do not have. */
bool sf_combine_get(sf_dtype dtype, sf_monoid monoid, sf_combine *out);

/* dst may be a or b; nothing past `count` elements is touched. */
void sf_combine_run(const sf_combine *combine, void *dst, const void *a, const void *b,
                    int64_t count);

#endif
