/* Packing of 16-bit elements with AVX-512, for the files that are compiled with it.
 *
 * A panel is packed in blocks of 16 rows by 32 steps. A block is sixteen vectors of pairs, element
 * (i, p) and (i, p + 1): either a vector has the pairs of one row, or it has one pair of every row.
 * If the forms of the source and of the panel differ, they are transposes of one another. */
#ifndef SF_RUN_GEMM_GEMM_PAIRS_H
#define SF_RUN_GEMM_GEMM_PAIRS_H

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define SF_ALWAYS static inline __attribute__((always_inline))

/* The source of a block, and how much of it exists; all else is zero. */
typedef struct pairs_source {
    const uint16_t *at;
    int64_t across, along;
    int64_t rows, steps;
} pairs_source;

/* Words x[i][j] become x[j][i]. */
SF_ALWAYS void pairs_transpose(__m512i x[16])
{
    __m512i y[16];
    for (int i = 0; i < 16; i += 2) {
        y[i] = _mm512_unpacklo_epi32(x[i], x[i + 1]);
        y[i + 1] = _mm512_unpackhi_epi32(x[i], x[i + 1]);
    }
    for (int i = 0; i < 16; i += 4)
        for (int j = 0; j < 2; j++) {
            x[i + 2 * j] = _mm512_unpacklo_epi64(y[i + j], y[i + j + 2]);
            x[i + 2 * j + 1] = _mm512_unpackhi_epi64(y[i + j], y[i + j + 2]);
        }
    /* x[4 * r + c] holds, in lane l of 128 bits, rows 4 * r to 4 * r + 3 of column 4 * l + c. */
    for (int c = 0; c < 4; c++) {
        __m512i low = _mm512_shuffle_i32x4(x[c], x[c + 4], 0x44);
        __m512i high = _mm512_shuffle_i32x4(x[c], x[c + 4], 0xee);
        __m512i low2 = _mm512_shuffle_i32x4(x[c + 8], x[c + 12], 0x44);
        __m512i high2 = _mm512_shuffle_i32x4(x[c + 8], x[c + 12], 0xee);
        y[c] = _mm512_shuffle_i32x4(low, low2, 0x88);
        y[c + 4] = _mm512_shuffle_i32x4(low, low2, 0xdd);
        y[c + 8] = _mm512_shuffle_i32x4(high, high2, 0x88);
        y[c + 12] = _mm512_shuffle_i32x4(high, high2, 0xdd);
    }
    for (int i = 0; i < 16; i++)
        x[i] = y[i];
}

SF_ALWAYS __mmask32 pairs_mask(int64_t count)
{
    return count >= 32 ? 0xffffffffu : (1u << count) - 1;
}

/* A vector per row, of steps that lie side by side. */
SF_ALWAYS void pairs_load_rows(const pairs_source *s, __m512i x[16])
{
    __mmask32 mask = pairs_mask(s->steps);
    for (int i = 0; i < 16; i++)
        x[i] = i < s->rows ? _mm512_maskz_loadu_epi16(mask, s->at + i * s->across)
                           : _mm512_setzero_si512();
}

/* A vector per pair of steps, of rows that lie side by side. */
SF_ALWAYS void pairs_load_steps(const pairs_source *s, __m512i x[16])
{
    __mmask16 mask = (__mmask16)pairs_mask(s->rows);
    for (int q = 0; q < 16; q++) {
        const uint16_t *at = s->at + 2 * q * s->along;
        __m256i first = _mm256_setzero_si256(), second = first;
        if (2 * q < s->steps)
            first = _mm256_maskz_loadu_epi16(mask, at);
        if (2 * q + 1 < s->steps)
            second = _mm256_maskz_loadu_epi16(mask, at + s->along);
        x[q] = _mm512_or_si512(_mm512_cvtepu16_epi32(first),
                               _mm512_slli_epi32(_mm512_cvtepu16_epi32(second), 16));
    }
}

/* A vector per row, of elements anywhere. */
static inline void pairs_gather(const pairs_source *s, uint16_t *to)
{
    memset(to, 0, 16 * 32 * sizeof *to);
    for (int64_t i = 0; i < s->rows; i++)
        for (int64_t p = 0; p < s->steps; p++)
            to[i * 32 + p] = s->at[i * s->across + p * s->along];
}

/* Loads a block as `by_rows` says. */
SF_ALWAYS void pairs_load(const pairs_source *s, bool by_rows, __m512i x[16])
{
    _Alignas(64) uint16_t block[16 * 32];
    bool has_rows = s->across != 1;
    if (!has_rows) {
        pairs_load_steps(s, x);
    } else if (s->along == 1) {
        pairs_load_rows(s, x);
    } else {
        pairs_gather(s, block);
        pairs_load_rows(&(pairs_source){block, 32, 1, 16, 32}, x);
    }
    if (has_rows != by_rows)
        pairs_transpose(x);
}

SF_ALWAYS pairs_source pairs_block(const uint16_t *source, int64_t across, int64_t along,
                                   int64_t valid, int64_t k, int64_t i, int64_t p)
{
    int64_t rows = valid - i < 0 ? 0 : valid - i < 16 ? valid - i : 16;
    return (pairs_source){source + i * across + p * along, across, along, rows,
                          k - p < 32 ? k - p : 32};
}

/* Units of two steps; `width` is at most 16 or a multiple of it. */
SF_ALWAYS void pairs_pack_2(const int width, int64_t padded, uint16_t *panel, int64_t valid,
                            int64_t k, const uint16_t *source, int64_t across, int64_t along)
{
    const __mmask16 mask = (__mmask16)pairs_mask(width < 16 ? width : 16);
    for (int64_t p = 0; p < padded; p += 32)
        for (int i = 0; i < width; i += 16) {
            __m512i x[16];
            pairs_source s = pairs_block(source, across, along, valid, k, i, p);
            pairs_load(&s, false, x);
            for (int q = 0; q < 16; q++)
                if (p + 2 * q < padded)
                    _mm512_mask_storeu_epi32(panel + (p + 2 * q) * width + 2 * i, mask, x[q]);
        }
}

/* Units of 32 steps; `width` is a multiple of 16. */
SF_ALWAYS void pairs_pack_32(const int width, uint16_t *panel, int64_t valid, int64_t k,
                             const uint16_t *source, int64_t across, int64_t along)
{
    for (int64_t p = 0; p < k; p += 32)
        for (int i = 0; i < width; i += 16) {
            __m512i x[16];
            pairs_source s = pairs_block(source, across, along, valid, k, i, p);
            pairs_load(&s, true, x);
            for (int r = 0; r < 16; r++)
                _mm512_storeu_si512(panel + p * width + (i + r) * 32, x[r]);
        }
}

#endif
