#include "ir/type.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int64_t sf_type_bytes(const sf_type *type)
{
    return type->count * sf_dtype_get(type->dtype)->bytes;
}

bool sf_same_shape(const sf_type *a, const sf_type *b)
{
    if (a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i])
            return false;
    return true;
}

const char *sf_type_text(const sf_type *type, char text[SF_TYPE_TEXT])
{
    int at = snprintf(text, SF_TYPE_TEXT, "tensor<");
    for (int i = 0; i < type->rank; i++)
        at += snprintf(text + at, (size_t)(SF_TYPE_TEXT - at), "%" PRId64 "x", type->dims[i]);
    snprintf(text + at, (size_t)(SF_TYPE_TEXT - at), "%s>", sf_dtype_get(type->dtype)->name);
    return text;
}

void sf_strides(int rank, const int64_t *dims, int64_t *strides)
{
    int64_t stride = 1;
    for (int i = rank - 1; i >= 0; i--) {
        strides[i] = stride;
        stride *= dims[i];
    }
}

void sf_view_type(const sf_type *type, sf_tensor_type *out)
{
    const sf_dtype_info *dtype = sf_dtype_get(type->dtype);
    *out = (sf_tensor_type){.size = sizeof *out,
                            .dtype = dtype->name,
                            .bytes = dtype->bytes,
                            .rank = type->rank,
                            .count = type->count};
    memcpy(out->dims, type->dims, (size_t)type->rank * sizeof *out->dims);
}
