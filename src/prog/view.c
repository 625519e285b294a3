#include "prog/view.h"

#include "op/op.h"
#include "op/slots.h"

sf_view sf_view_whole(uint32_t buffer, const sf_type *type)
{
    sf_view view = {.buffer = buffer, .dtype = type->dtype, .rank = type->rank};
    for (int i = 0; i < type->rank; i++)
        view.dims[i] = type->dims[i];
    sf_strides(type->rank, type->dims, view.strides);
    return view;
}

int64_t sf_view_count(const sf_view *view)
{
    int64_t count = 1;
    for (int i = 0; i < view->rank; i++)
        count *= view->dims[i];
    return count;
}

int64_t sf_view_size(const sf_view *view)
{
    return sf_view_count(view) * sf_dtype_get(view->dtype)->bytes;
}

bool sf_view_is_contiguous(const sf_view *view)
{
    int64_t stride = 1;
    for (int i = view->rank - 1; i >= 0; i--) {
        if (view->dims[i] != 1 && view->strides[i] != stride)
            return false;
        stride *= view->dims[i];
    }
    return true;
}

bool sf_view_is_blocks(const sf_view *view)
{
    if (view->rank < 1 || view->strides[0] < 0 || sf_view_is_contiguous(view))
        return false;
    sf_view block = {.dtype = view->dtype, .rank = view->rank - 1};
    for (int i = 0; i < block.rank; i++) {
        block.dims[i] = view->dims[i + 1];
        block.strides[i] = view->strides[i + 1];
    }
    return sf_view_is_contiguous(&block) && view->strides[0] >= sf_view_count(&block);
}

/* Bytes from the first to the one after the last; dimensions whose stride is a multiple of `period`
 * are left out (0: there is none). */
static void reach_of(const sf_view *view, int64_t period, int64_t *first, int64_t *end)
{
    int64_t width = sf_dtype_get(view->dtype)->bytes;
    *first = view->offset * width;
    *end = *first + width;
    for (int i = 0; i < view->rank; i++) {
        int64_t step = view->strides[i] * width, way = (view->dims[i] - 1) * step;
        if (period > 0 && step % period == 0)
            continue;
        *(way < 0 ? first : end) += way;
    }
}

/* In every stretch of `period` bytes, each has a part of its own. */
static bool take_turns(const sf_view *a, const sf_view *b, int64_t period)
{
    int64_t first[2], end[2];
    reach_of(a, period, &first[0], &end[0]);
    reach_of(b, period, &first[1], &end[1]);
    for (int i = 0; i < 2; i++) {
        int64_t length = end[i] - first[i], phase = (first[i] % period + period) % period;
        if (phase + length > period)
            return false;
        first[i] = phase;
        end[i] = phase + length;
    }
    return end[0] <= first[1] || end[1] <= first[0];
}

bool sf_views_meet(const sf_view *a, const sf_view *b)
{
    int64_t first[2], end[2];
    if (sf_view_count(a) == 0 || sf_view_count(b) == 0)
        return false;
    reach_of(a, 0, &first[0], &end[0]);
    reach_of(b, 0, &first[1], &end[1]);
    if (end[0] <= first[1] || end[1] <= first[0])
        return false;
    for (int side = 0; side < 2; side++) {
        const sf_view *view = side == 0 ? a : b;
        int64_t width = sf_dtype_get(view->dtype)->bytes;
        for (int i = 0; i < view->rank; i++)
            if (view->dims[i] > 1 && view->strides[i] > 0 &&
                take_turns(a, b, view->strides[i] * width))
                return false;
    }
    return true;
}

sf_view sf_view_squeeze(const sf_view *view)
{
    sf_view out = {.buffer = view->buffer, .dtype = view->dtype, .offset = view->offset};
    for (int i = 0; i < view->rank; i++) {
        if (view->dims[i] == 1)
            continue;
        out.dims[out.rank] = view->dims[i];
        out.strides[out.rank++] = view->strides[i];
    }
    return out;
}

/* Merges neighbouring dimensions that one stride can walk. */
static sf_view merge_view_dims(const sf_view *view)
{
    sf_view in = sf_view_squeeze(view), out = in;
    out.rank = 0;
    for (int i = 0; i < in.rank; i++) {
        int last = out.rank - 1;
        if (last >= 0 && out.strides[last] == in.strides[i] * in.dims[i]) {
            out.dims[last] *= in.dims[i];
            out.strides[last] = in.strides[i];
            continue;
        }
        out.dims[out.rank] = in.dims[i];
        out.strides[out.rank++] = in.strides[i];
    }
    return out;
}

/* Splits the merged dimensions into the dimensions of `type`; false if a new dimension would cross
 * a boundary that no stride can walk. */
static bool reshape_view(const sf_view *view, const sf_type *type, sf_view *out)
{
    sf_view merged = merge_view_dims(view);
    *out = (sf_view){
        .buffer = view->buffer, .dtype = view->dtype, .offset = view->offset, .rank = type->rank};
    int at = merged.rank - 1;
    int64_t left = at >= 0 ? merged.dims[at] : 1, stride = at >= 0 ? merged.strides[at] : 1;
    for (int i = type->rank - 1; i >= 0; i--) {
        out->dims[i] = type->dims[i];
        out->strides[i] = stride;
        if (type->dims[i] == 1)
            continue;
        if (type->count == 0)
            continue;
        if (left == 1 && at > 0) {
            at--;
            left = merged.dims[at];
            stride = out->strides[i] = merged.strides[at];
        }
        if (left % type->dims[i] != 0)
            return false;
        left /= type->dims[i];
        stride *= type->dims[i];
    }
    return true;
}

static void broadcast_view(const sf_op *op, const sf_view *operand, sf_view *out)
{
    sf_ints dims = sf_op_ints(op, SF_BROADCAST_DIMENSIONS);
    const sf_type *to = op->out[0];
    *out = (sf_view){.buffer = operand->buffer,
                     .dtype = operand->dtype,
                     .offset = operand->offset,
                     .rank = to->rank};
    for (int i = 0; i < to->rank; i++)
        out->dims[i] = to->dims[i];
    for (int i = 0; i < dims.count; i++)
        if (operand->dims[i] != 1)
            out->strides[dims.at[i]] = operand->strides[i];
}

static void slice_view(const sf_op *op, const sf_view *operand, sf_view *out)
{
    sf_ints starts = sf_op_ints(op, SF_SLICE_STARTS), steps = sf_op_ints(op, SF_SLICE_STRIDES);
    *out = *operand;
    for (int i = 0; i < out->rank; i++) {
        out->offset += starts.at[i] * operand->strides[i];
        out->strides[i] *= steps.at[i];
        out->dims[i] = op->out[0]->dims[i];
    }
}

/* Every other float, from the first or from the second on. */
static void part_view(const sf_view *operand, int part, sf_view *out)
{
    *out = *operand;
    if (!sf_is_complex(operand->dtype))
        return;
    out->dtype = sf_part_of(operand->dtype);
    out->offset = 2 * operand->offset + part;
    for (int i = 0; i < out->rank; i++)
        out->strides[i] *= 2;
}

sf_view sf_view_raw(const sf_view *view)
{
    sf_view out = *view;
    if (view->dtype == SF_C64)
        out.dtype = SF_S64;
    if (view->dtype != SF_C128)
        return out;
    part_view(view, 0, &out);
    out.dims[out.rank] = 2;
    out.strides[out.rank++] = 1;
    return out;
}

bool sf_is_view_op(const sf_node *node)
{
    switch (node->def->id) {
    case SF_OP_RESHAPE:
    case SF_OP_TRANSPOSE:
    case SF_OP_BROADCAST_IN_DIM:
    case SF_OP_SLICE:
    case SF_OP_REVERSE:
    case SF_OP_REAL: /* of complex numbers: import knows the parts of others */
    case SF_OP_IMAG:
        return true;
    default:
        return false;
    }
}

bool sf_view_of_op(const sf_op *op, const sf_view *operand, sf_view *out)
{
    switch (op->def->id) {
    case SF_OP_RESHAPE:
        return reshape_view(operand, op->out[0], out);
    case SF_OP_TRANSPOSE:
        *out = *operand;
        for (int i = 0; i < out->rank; i++) {
            int64_t from = sf_op_ints(op, SF_TRANSPOSE_PERMUTATION).at[i];
            out->dims[i] = operand->dims[from];
            out->strides[i] = operand->strides[from];
        }
        return true;
    case SF_OP_BROADCAST_IN_DIM:
        broadcast_view(op, operand, out);
        return true;
    case SF_OP_SLICE:
        slice_view(op, operand, out);
        return true;
    case SF_OP_REAL:
    case SF_OP_IMAG:
        part_view(operand, op->def->id == SF_OP_IMAG, out);
        return true;
    case SF_OP_REVERSE: {
        sf_ints dims = sf_op_ints(op, SF_REVERSE_DIMENSIONS);
        *out = *operand;
        for (int i = 0; i < dims.count; i++) {
            int64_t d = dims.at[i];
            if (out->dims[d] > 0) /* else there is no last element to begin with */
                out->offset += (out->dims[d] - 1) * out->strides[d];
            out->strides[d] = -out->strides[d];
        }
        return true;
    }
    default:
        return false;
    }
}
