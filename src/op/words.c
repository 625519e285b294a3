#include "op/words.h"

sf_word *sf_words_load(sf_arena *arena, const sf_tensor *tensor, bool real)
{
    int64_t count = tensor->type->count;
    sf_word *words = SF_ARRAY(arena, count, sf_word);
    if (count == 0)
        return words;
    if (real)
        sf_load_f64s(tensor->type->dtype, tensor->data, 0, count, &words->real);
    else
        sf_load_i64s(tensor->type->dtype, tensor->data, 0, count, (int64_t *)&words->integer);
    return words;
}

void sf_words_store(sf_tensor *tensor, bool real, const sf_word *words)
{
    int64_t count = tensor->type->count;
    if (count == 0)
        return;
    if (real)
        sf_store_f64s(tensor->type->dtype, tensor->data, 0, count, &words->real);
    else
        sf_store_i64s(tensor->type->dtype, tensor->data, 0, count,
                      (const int64_t *)&words->integer);
}

sf_word *sf_words_transpose(sf_arena *arena, const sf_word *words, int rank, const int64_t *dims,
                            const int *order)
{
    int64_t strides[SF_MAX_RANK], shape[SF_MAX_RANK], step[SF_MAX_RANK], index[SF_MAX_RANK] = {0};
    int64_t count = 1;
    sf_strides(rank, dims, strides);
    for (int i = 0; i < rank; i++) {
        shape[i] = dims[order[i]];
        step[i] = strides[order[i]];
        count *= shape[i];
    }
    sf_word *out = SF_ARRAY(arena, count, sf_word);
    if (count == 0)
        return out;
    if (rank == 0) {
        out[0] = words[0];
        return out;
    }
    int64_t row = shape[rank - 1], stride = step[rank - 1];
    sf_word *to = out;
    do {
        const sf_word *from = words;
        for (int i = 0; i < rank - 1; i++)
            from += index[i] * step[i];
        for (int64_t i = 0; i < row; i++)
            to[i] = from[i * stride];
        to += row;
    } while (sf_next_index(rank - 1, shape, index));
    return out;
}

void sf_words_add_scaled(sf_dtype dtype, int64_t count, sf_word factor, const sf_word *x,
                         sf_word *sum)
{
    if (dtype == SF_F64) {
        double scale = factor.real;
        for (int64_t i = 0; i < count; i++)
            sum[i].real += scale * x[i].real;
    } else if (sf_is_float(dtype)) {
        for (int64_t i = 0; i < count; i++)
            sum[i].real = sf_round(dtype, sum[i].real + sf_round(dtype, factor.real * x[i].real));
    } else {
        uint64_t scale = factor.integer;
        for (int64_t i = 0; i < count; i++)
            sum[i].integer += scale * x[i].integer;
    }
}
