#include "ir/tensor.h"

#include <math.h>
#include <string.h>

double sf_get_part(const sf_tensor *tensor, int64_t index, int part)
{
    sf_dtype dtype = tensor->type->dtype;
    if (sf_is_complex(dtype))
        return sf_load_f64(sf_part_of(dtype), tensor->data, 2 * index + part);
    return part == 0 ? sf_load_f64(dtype, tensor->data, index) : 0;
}

double sf_get_size(const sf_tensor *tensor, int64_t index)
{
    double real = sf_get_f64(tensor, index);
    return sf_is_complex(tensor->type->dtype) ? hypot(real, sf_get_part(tensor, index, 1))
                                              : fabs(real);
}

bool sf_next_index(int rank, const int64_t *dims, int64_t *index)
{
    for (int i = rank - 1; i >= 0; i--) {
        if (++index[i] < dims[i])
            return true;
        index[i] = 0;
    }
    return false;
}

int64_t sf_flat_index(int rank, const int64_t *dims, const int64_t *index)
{
    int64_t flat = 0;
    for (int i = 0; i < rank; i++)
        flat = flat * dims[i] + index[i];
    return flat;
}

/* Moves every element of the shard from or to its place in the whole. */
static void move_elements(const sf_tensor *piece, const sf_tensor *whole, bool into_whole)
{
    const sf_type *type = piece->type;
    size_t width = sf_dtype_get(type->dtype)->bytes;
    int64_t index[SF_MAX_RANK] = {0};
    for (int64_t local = 0; local < type->count; local++) {
        int64_t global = 0;
        for (int i = 0; i < type->rank; i++)
            global =
                global * whole->type->dims[i] + sf_span_global(sf_tensor_span(piece, i), index[i]);
        char *in_piece = (char *)piece->data + (size_t)local * width;
        char *in_whole = (char *)whole->data + (size_t)global * width;
        memcpy(into_whole ? in_whole : in_piece, into_whole ? in_piece : in_whole, width);
        sf_next_index(type->rank, type->dims, index);
    }
}

void sf_tensor_cut(const sf_tensor *whole, sf_tensor *piece)
{
    move_elements(piece, whole, false);
}

void sf_tensor_paste(const sf_tensor *piece, sf_tensor *whole)
{
    move_elements(piece, whole, true);
}
