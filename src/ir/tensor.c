#include "ir/tensor.h"

#include <math.h>
#include <string.h>

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

void sf_tensor_cut(const sf_tensor *whole, sf_tensor *piece)
{
    const sf_type *type = piece->type;
    size_t width = sf_dtype_get(type->dtype)->bytes;
    int64_t index[SF_MAX_RANK] = {0};
    for (int64_t local = 0; local < type->count; local++) {
        int64_t global = 0;
        for (int i = 0; i < type->rank; i++)
            global =
                global * whole->type->dims[i] + sf_span_global(sf_tensor_span(piece, i), index[i]);
        memcpy((char *)piece->data + (size_t)local * width,
               (const char *)whole->data + (size_t)global * width, width);
        sf_next_index(type->rank, type->dims, index);
    }
}
