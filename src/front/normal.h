/* Normal form: one way to say a thing.
 *
 * The same step reaches us in different words: StableHLO broadcasts a size-1 dimension where HLO
 * reshapes first, one text repeats a constant where another shares it. Every node that import adds
 * goes through sf_emit, which rewrites it into one form, so that both texts give the same graph. The
 * rewrites are exact: they move and name data, fold small integers and float arithmetic on constants that
 * IEEE 754 fixes to the last bit. One exception: x + 0 becomes x, which keeps a negative zero.
 */
#ifndef SF_FRONT_NORMAL_H
#define SF_FRONT_NORMAL_H

#include "op/op.h"

/* The place of new nodes, and their tags. */
typedef struct sf_emitter {
    sf_graph *graph;
    sf_block *block;
    const sf_scope *scope;
    sf_phase phase;
    sf_loc loc;
    int64_t sliced_at; /* see sf_emit: the start of the last dynamic slice that became static */
    int64_t slice_length;
    bool slices_disagree;
} sf_emitter;

/* Adds an op in normal form and gives the values of its results. spec->operands are values of the
 * emitter's graph; spec->types are the result types. scope, phase and loc are the emitter's.
 *
 * When a dynamic slice or update along dimension 0 of a tensor with `slice_length` rows has a
 * constant start, `sliced_at` records it (-1 at first; slices_disagree when they differ). So an
 * unrolled loop finds the layer of each iteration. */
void sf_emit(sf_emitter *emitter, const sf_node_spec *spec, sf_value *out);

/* The same, of an op with one result and no regions. */
sf_value sf_emit_one(sf_emitter *emitter, sf_opcode code, uint32_t noperands,
                     const sf_value *operands, const sf_attr *const *attrs, const sf_type *type);

/* The payload, when the value is made by a constant whose elements are known; else NULL. */
const sf_dense *sf_constant_of(const sf_graph *graph, sf_value value);

/* The op applied to constants, when that is a small integer computation or exact arithmetic on splats:
 * sets `out` to the constant it gives and returns true. */
bool sf_fold(const sf_op *op, const sf_dense *const *in, const sf_attr **out);

#endif
