/* Sketches: small graphs of ops without types, to look for in a step, or to put into it.
 *
 * A sketch has inputs, numbers, ops on them, and results. As a pattern, an input matches any
 * tensor, the same one wherever it is read; a number matches a constant all of whose elements equal
 * it; an op matches an op with at least the given attributes. As a fragment, its inputs are
 * existing tensors: types are inferred, numbers and tensors of lower rank are broadcast. */
#ifndef SHEAF_SKETCH_H
#define SHEAF_SKETCH_H

#include "sheaf/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sf_sketch sf_sketch;

SF_API sf_status sf_sketch_new(sf_diag *diag, sf_sketch **out);
SF_API void sf_sketch_free(sf_sketch *sketch);

/* Inputs, numbers and ops of a sketch have numbers, from 0 on. */
SF_API sf_status sf_sketch_input(sf_sketch *sketch, sf_diag *diag, int *out);
SF_API sf_status sf_sketch_number(sf_sketch *sketch, double number, sf_diag *diag, int *out);

/* An attribute, as docs/reference/ops.md names it: a number or a list of them, or a text. */
typedef struct sf_sketch_attr {
    size_t size; /* sizeof this struct, see api.h */
    const char *name;
    int count; /* -1: `integer`; -2: `text` */
    int64_t integer;
    const int64_t *ints;
    const char *text;
} sf_sketch_attr;

/* An op by its name in StableHLO, "add", with one result. attrs[nattrs] point to its attributes.
 * `dims` and `dtype` ("f32") are of the result, for ops whose operands do not determine it:
 * reshape, broadcast_in_dim, convert; rank -1 and NULL: not given. SF_EUSAGE for an unknown op,
 * attribute or number. */
SF_API sf_status sf_sketch_op(sf_sketch *sketch, const char *op, int noperands, const int *operands,
                              int nattrs, const sf_sketch_attr *const *attrs, int rank,
                              const int64_t *dims, const char *dtype, sf_diag *diag, int *out);

/* Its results, once. SF_EMISMATCH where a part of it hangs together with no other: numbers tie nothing. */
SF_API sf_status sf_sketch_return(sf_sketch *sketch, int count, const int *results, sf_diag *diag);

#ifdef __cplusplus
}
#endif

#endif
