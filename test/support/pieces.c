#include "support/pieces.h"

#include <math.h>
#include <string.h>

const char *test_role_name(sf_factor_role role)
{
    static const char *const names[] = {"map", "reduce", "window", "whole"};
    return names[role];
}

double test_get_part(const sf_tensor *tensor, int64_t index, int part)
{
    sf_dtype dtype = tensor->type->dtype;
    if (sf_is_complex(dtype))
        return sf_load_f64(sf_part_of(dtype), tensor->data, 2 * index + part);
    return part == 0 ? sf_load_f64(dtype, tensor->data, index) : 0;
}

double test_get_size(const sf_tensor *tensor, int64_t index)
{
    double real = sf_get_f64(tensor, index);
    return sf_is_complex(tensor->type->dtype) ? hypot(real, test_get_part(tensor, index, 1))
                                              : fabs(real);
}

int64_t test_span_size(sf_span span)
{
    return span.period == 0 ? 0 : span.whole / span.period * span.length;
}

void test_paste(const sf_tensor *piece, sf_tensor *whole)
{
    const sf_type *type = piece->type;
    size_t width = sf_dtype_get(type->dtype)->bytes;
    int64_t index[SF_MAX_RANK] = {0}, global[SF_MAX_RANK];
    for (int64_t local = 0; local < type->count; local++) {
        for (int i = 0; i < type->rank; i++)
            global[i] = sf_span_global(sf_tensor_span(piece, i), index[i]);
        memcpy((char *)whole->data +
                   (size_t)sf_flat_index(type->rank, whole->type->dims, global) * width,
               (const char *)piece->data + (size_t)local * width, width);
        sf_next_index(type->rank, type->dims, index);
    }
}

/* The span of a dimension when the factor at place `at` of its chain is cut: the factors before it
 * repeat the piece, those after it make it wider. */
static sf_span cut_chain(const sf_factoring *factoring, const sf_walk *walk, int at, int64_t first,
                         int64_t end, int64_t whole)
{
    int64_t minor = 1;
    for (int i = at + 1; i < walk->count; i++)
        minor *= factoring->factors[walk->factors[i]].size;
    int64_t period = factoring->factors[walk->factors[at]].size * minor;
    return (sf_span){whole, period, first * minor, (end - first) * minor};
}

static int64_t clip_to(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

void test_op_piece(const sf_op *op, const sf_factoring *factoring, int factor, int64_t first,
                   int64_t end, int tensor, sf_span *spans)
{
    const sf_type *type = tensor < op->noperands ? op->in[tensor] : op->out[tensor - op->noperands];
    for (int dim = 0; dim < type->rank; dim++) {
        const sf_walk *walk = &factoring->walks[tensor][dim];
        spans[dim] = sf_span_whole(type->dims[dim]);
        for (int i = 0; i < walk->count; i++) {
            if (walk->factors[i] != factor)
                continue;
            if (!walk->halo) {
                spans[dim] = cut_chain(factoring, walk, i, first, end, type->dims[dim]);
                continue;
            }
            int64_t need_first = 0, need_end = type->dims[dim];
            op->def->halo(op, factor, tensor, dim, first, end, &need_first, &need_end);
            need_first = clip_to(need_first, 0, type->dims[dim]);
            need_end = clip_to(need_end, need_first, type->dims[dim]);
            spans[dim] = sf_span_range(type->dims[dim], need_first, need_end - need_first);
        }
    }
}
