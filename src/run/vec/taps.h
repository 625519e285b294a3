/* Sums of products of shifted rows, for one instruction set. */
#ifndef SF_RUN_VEC_TAPS_H
#define SF_RUN_VEC_TAPS_H

#include "run/vec/vec_reduce.h"

/* The sums of `each` vectors from element i on, which stay in registers over all taps. */
#define TAPS_BLOCK(name, type, vector, each)                                                       \
    static inline void name(type *out, int64_t i, const sf_taps *t)                                \
    {                                                                                              \
        enum { WIDTH = VECTOR_BYTES / (int)sizeof(type) };                                         \
        vector sums[each] = {0};                                                                   \
        const type *a = (const type *)t->a + i, *b = (const type *)t->b + (t->repeat ? 0 : i);     \
        for (int64_t n = 0; n < t->count; n++)                                                     \
            for (int v = 0; v < each; v++) {                                                       \
                vector x, y;                                                                       \
                memcpy(&x, a + t->a_at[n] + v * WIDTH, sizeof x);                                  \
                if (t->repeat)                                                                     \
                    y = b[t->b_at[n]] - (vector){0};                                               \
                else                                                                               \
                    memcpy(&y, b + t->b_at[n] + v * WIDTH, sizeof y);                              \
                sums[v] += x * y;                                                                  \
            }                                                                                      \
        memcpy(out, sums, sizeof sums);                                                            \
    }

TAPS_BLOCK(f32_taps4, float, floats, 4)
TAPS_BLOCK(f32_taps1, float, floats, 1)
TAPS_BLOCK(f64_taps4, double, doubles, 4)
TAPS_BLOCK(f64_taps1, double, doubles, 1)

/* The last elements of a row, less than a vector, are the end of a vector that begins earlier, if
 * the row is that long. */
#define TAPS(p, type)                                                                              \
    static inline type p##_taps0(int64_t i, const sf_taps *t)                                      \
    {                                                                                              \
        const type *a = t->a, *b = t->b;                                                           \
        type sum = 0;                                                                              \
        for (int64_t n = 0; n < t->count; n++)                                                     \
            sum += a[t->a_at[n] + i] * b[t->b_at[n] + (t->repeat ? 0 : i)];                        \
        return sum;                                                                                \
    }                                                                                              \
                                                                                                   \
    static void p##_taps(void *dst, int64_t count, const sf_taps *t, bool accumulate)              \
    {                                                                                              \
        enum { WIDTH = VECTOR_BYTES / (int)sizeof(type) };                                         \
        type *to = dst, sums[4 * WIDTH];                                                           \
        for (int64_t i = 0; i < count;) {                                                          \
            int64_t left = count - i, from = left < WIDTH ? count - WIDTH : i, some = 1;           \
            if (left >= 4 * WIDTH)                                                                 \
                p##_taps4(sums, i, t);                                                             \
            else if (from >= 0)                                                                    \
                p##_taps1(sums, from, t);                                                          \
            else                                                                                   \
                sums[0] = p##_taps0(i, t);                                                         \
            if (from >= 0)                                                                         \
                some = (left >= 4 * WIDTH ? 4 * WIDTH : WIDTH) - (i - from);                       \
            else                                                                                   \
                from = i;                                                                          \
            for (int64_t k = 0; k < some; k++)                                                     \
                to[i + k] = accumulate ? to[i + k] + sums[i - from + k] : sums[i - from + k];      \
            i += some;                                                                             \
        }                                                                                          \
    }

TAPS(f32, float)
TAPS(f64, double)

/* Elements [i, i + the width of a vector) of `rows` rows. */
#define TAPROWS_BLOCK(name, type, bytes, rows)                                                     \
    static inline void name(type *dst, int64_t dst_row, int64_t i, const sf_taps *t,               \
                            int64_t b_row)                                                         \
    {                                                                                              \
        typedef type vector __attribute__((vector_size(bytes)));                                   \
        const type *a = (const type *)t->a + i, *b = t->b;                                         \
        vector sums[rows] = {0}, x;                                                                \
        for (int64_t n = 0; n < t->count; n++) {                                                   \
            memcpy(&x, a + t->a_at[n], sizeof x);                                                  \
            for (int r = 0; r < rows; r++)                                                         \
                sums[r] += x * b[t->b_at[n] + r * b_row];                                          \
        }                                                                                          \
        for (int r = 0; r < rows; r++)                                                             \
            memcpy(dst + r * dst_row + i, &sums[r], sizeof x);                                     \
    }

enum {
    WIDE = VECTOR_BYTES,
    HALF = VECTOR_BYTES >= 32 ? VECTOR_BYTES / 2 : 16,
};

/* The widest vectors that fit; floats end with those of 16 bytes, which 4 elements are. */
#define TAPROWS(p, type)                                                                           \
    TAPROWS_BLOCK(p##_wide8, type, WIDE, 8)                                                        \
    TAPROWS_BLOCK(p##_wide1, type, WIDE, 1)                                                        \
    TAPROWS_BLOCK(p##_half8, type, HALF, 8)                                                        \
    TAPROWS_BLOCK(p##_half1, type, HALF, 1)                                                        \
    TAPROWS_BLOCK(p##_least8, type, 16, 8)                                                         \
    TAPROWS_BLOCK(p##_least1, type, 16, 1)                                                         \
                                                                                                   \
    static void p##_taprows(void *dst, int64_t dst_row, int64_t rows, int64_t count,               \
                            const sf_taps *taps, int64_t b_row)                                    \
    {                                                                                              \
        for (int64_t r = 0; r < rows;) {                                                           \
            bool many = rows - r >= 8;                                                             \
            sf_taps t = *taps;                                                                     \
            type *to = (type *)dst + r * dst_row;                                                  \
            t.b = (const type *)t.b + r * b_row;                                                   \
            for (int64_t i = 0, bytes; i < count; i += bytes / (int64_t)sizeof(type)) {            \
                int64_t left = (count - i) * (int64_t)sizeof(type);                                \
                bytes = left >= WIDE ? WIDE : left >= HALF ? HALF : 16;                            \
                if (bytes == WIDE)                                                                 \
                    (many ? p##_wide8 : p##_wide1)(to, dst_row, i, &t, b_row);                     \
                else if (bytes == HALF)                                                            \
                    (many ? p##_half8 : p##_half1)(to, dst_row, i, &t, b_row);                     \
                else                                                                               \
                    (many ? p##_least8 : p##_least1)(to, dst_row, i, &t, b_row);                   \
            }                                                                                      \
            r += many ? 8 : 1;                                                                     \
        }                                                                                          \
    }

TAPROWS(f32, float)
TAPROWS(f64, double)

#endif
