/* gather: a thread for each element of the result, or some that lie beside each other. */
#include "run/text/kernel_index.h"

#include <inttypes.h>

#include "base/checked.h"
#include "op/op.h"
#include "op/slots.h"

void sf_put_window_starts(sf_calling *c, const sf_indexing *ix, int indices)
{
    const sf_type *type = c->op->in[indices];
    int64_t stride = 1, vector_stride = 0;
    SF_PUT(c, "s64 vector = 0");
    for (int q = ix->indices_rank - 1; q >= 0; q--) {
        if (q == ix->vector_dim)
            vector_stride = stride;
        else
            SF_PUT(c, " + (s64)w%d * %" PRId64, ix->windowed_of[q], stride);
        stride *= type->dims[q];
    }
    SF_PUT(c, "; (void)vector;\n");
    for (int d = 0; d < ix->operand_rank; d++) {
        SF_PUT(c, "s64 s%d = ", d);
        if (ix->batch_of[d] >= 0)
            SF_PUT(c, "w%d;\n", ix->windowed_of[ix->batch_of[d]]);
        else if (ix->start_of[d] >= 0)
            SF_PUT(c, "WLOAD(%s, p%d, vector + %" PRId64 ");\n", sf_type_name(type->dtype), indices,
                   ix->start_of[d] * vector_stride);
        else
            SF_PUT(c, "0;\n");
        if (ix->batch_of[d] < 0 && sf_is_unsigned(type->dtype))
            SF_PUT(c, "s%d = s%d < 0 ? (s64)~SIGN64 : s%d;\n", d, d, d);
    }
}

/* Elements of a window that lie beside each other, in the operand and in the result; else 1. */
static int64_t beside_each_other(const sf_op *op, const sf_indexing *ix)
{
    const sf_type *operand = op->in[0], *type = op->out[0];
    int last = operand->rank - 1;
    if (last < 0 || ix->window_of[last] != type->rank - 1 || ix->start_of[last] >= 0)
        return 1;
    return sf_gcd(operand->dims[last], type->dims[type->rank - 1]);
}

bool sf_call_gather(sf_calling *c)
{
    const sf_op *op = c->op;
    const sf_type *operand = op->in[0], *type = op->out[0];
    sf_indexing ix = sf_indexing_get(op, operand, op->in[1]);
    sf_ints sizes = sf_op_ints(op, SF_GATHER_SIZES);
    int width = sf_dtype_get(type->dtype)->bytes;
    int64_t from[SF_MAX_RANK], to[SF_MAX_RANK], n = 1;
    if (operand->count > 0)
        n = sf_call_moved_together(c, 0, beside_each_other(op, &ix), 16);
    for (int d = 0; d < operand->rank; d++)
        from[d] = operand->dims[d] / (d == operand->rank - 1 ? n : 1);
    for (int d = 0; d < type->rank; d++)
        to[d] = type->dims[d] / (d == type->rank - 1 ? n : 1);
    width *= (int)n;
    sf_write_views(c->w, c->inst);
    sf_call_begin(c, type->count / n);
    if (operand->count == 0) {
        SF_PUT(c, "AT(moved_%d, p2, at) = 0;\n", width);
        sf_call_end(c, type->count);
        return true;
    }
    sf_put_index(c, "w", "at", type->rank, to);
    sf_put_window_starts(c, &ix, 1);
    for (int d = 0; d < operand->rank; d++) {
        int64_t last = operand->dims[d] - sizes.at[d];
        if (ix.batch_of[d] < 0)
            SF_PUT(c, "s%d = s%d < 0 ? 0 : s%d > %" PRId64 " ? %" PRId64 " : s%d;\n", d, d, d, last,
                   last, d);
        if (ix.window_of[d] >= 0)
            SF_PUT(c, "s%d += w%d;\n", d, ix.window_of[d]);
    }
    SF_PUT(c, "AT(moved_%d, p2, at) = AT(const moved_%d, p0, ", width, width);
    sf_put_flat(c, "s", operand->rank, from);
    SF_PUT(c, ");\n");
    sf_call_end(c, type->count / n);
    return true;
}
