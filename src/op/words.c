#include "op/words.h"

/* Moves the real numbers, which are at the beginning, two words apart; zeros between them. */
static void spread_reals(sf_word *words, int64_t count)
{
    for (int64_t i = count - 1; i >= 0; i--) {
        words[2 * i] = words[i];
        words[2 * i + 1].real = 0;
    }
}

sf_word *sf_words_load(sf_arena *arena, const sf_tensor *tensor, sf_dtype as)
{
    sf_dtype dtype = tensor->type->dtype;
    int64_t count = tensor->type->count;
    sf_word *words = SF_ARRAY(arena, count * sf_parts_of(as), sf_word);
    if (count == 0)
        return words;
    if (sf_is_complex(as) && sf_is_complex(dtype)) {
        sf_load_f64s(sf_part_of(dtype), tensor->data, 0, 2 * count, &words->real);
    } else if (sf_is_complex(as)) {
        sf_load_f64s(dtype, tensor->data, 0, count, &words->real);
        spread_reals(words, count);
    } else if (sf_is_float(as)) {
        sf_load_f64s(dtype, tensor->data, 0, count, &words->real);
    } else {
        sf_load_i64s(dtype, tensor->data, 0, count, (int64_t *)&words->integer);
    }
    return words;
}

void sf_words_store(sf_tensor *tensor, const sf_word *words)
{
    sf_dtype part = sf_part_of(tensor->type->dtype);
    int64_t count = tensor->type->count * sf_parts_of(tensor->type->dtype);
    if (count == 0)
        return;
    if (sf_is_float(part))
        sf_store_f64s(part, tensor->data, 0, count, &words->real);
    else
        sf_store_i64s(part, tensor->data, 0, count, (const int64_t *)&words->integer);
}

static void copy_strided(int64_t count, int parts, const sf_word *from, int64_t stride, sf_word *to)
{
    if (parts == 1) {
        for (int64_t i = 0; i < count; i++)
            to[i] = from[i * stride];
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        to[2 * i] = from[2 * i * stride];
        to[2 * i + 1] = from[2 * i * stride + 1];
    }
}

sf_word *sf_words_transpose(sf_arena *arena, const sf_word *words, int parts, int rank,
                            const int64_t *dims, const int *order)
{
    int64_t strides[SF_MAX_RANK], shape[SF_MAX_RANK], step[SF_MAX_RANK], index[SF_MAX_RANK] = {0};
    int64_t count = 1;
    sf_strides(rank, dims, strides);
    for (int i = 0; i < rank; i++) {
        shape[i] = dims[order[i]];
        step[i] = strides[order[i]];
        count *= shape[i];
    }
    sf_word *out = SF_ARRAY(arena, count * parts, sf_word);
    if (count == 0)
        return out;
    if (rank == 0) {
        copy_strided(1, parts, words, 1, out);
        return out;
    }
    int64_t row = shape[rank - 1], stride = step[rank - 1];
    sf_word *to = out;
    do {
        int64_t from = 0;
        for (int i = 0; i < rank - 1; i++)
            from += index[i] * step[i];
        copy_strided(row, parts, words + from * parts, stride, to);
        to += row * parts;
    } while (sf_next_index(rank - 1, shape, index));
    return out;
}

void sf_words_multiply(sf_dtype dtype, const sf_word *a, const sf_word *b, sf_word *product)
{
    sf_dtype part = sf_part_of(dtype);
    double real = a[0].real * b[0].real - sf_round(part, a[1].real * b[1].real);
    double imag = a[1].real * b[0].real + sf_round(part, a[0].real * b[1].real);
    product[0].real = sf_round(part, real);
    product[1].real = sf_round(part, imag);
}

static void add_scaled_complex(sf_dtype dtype, int64_t count, const sf_word *factor,
                               const sf_word *x, sf_word *sum)
{
    sf_word product[2];
    for (int64_t i = 0; i < 2 * count; i += 2) {
        sf_words_multiply(dtype, factor, x + i, product);
        for (int p = 0; p < 2; p++)
            sum[i + p].real = sf_round(sf_part_of(dtype), sum[i + p].real + product[p].real);
    }
}

void sf_words_add_scaled(sf_dtype dtype, int64_t count, const sf_word *factor, const sf_word *x,
                         sf_word *sum)
{
    if (dtype == SF_F64) {
        double scale = factor->real;
        for (int64_t i = 0; i < count; i++)
            sum[i].real += scale * x[i].real;
    } else if (sf_is_float(dtype)) {
        for (int64_t i = 0; i < count; i++)
            sum[i].real = sf_round(dtype, sum[i].real + sf_round(dtype, factor->real * x[i].real));
    } else if (sf_is_complex(dtype)) {
        add_scaled_complex(dtype, count, factor, x, sum);
    } else {
        uint64_t scale = factor->integer;
        for (int64_t i = 0; i < count; i++)
            sum[i].integer += scale * x[i].integer;
    }
}
