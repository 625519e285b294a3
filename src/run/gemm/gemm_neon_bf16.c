/* Products of bf16 for aarch64 with BF16; compiled with it on, called only where it is there. BFMMLA
 * multiplies 2 rows by 2 columns over 4 steps. Numbers too small to be normal count as zero. */
#if defined(__aarch64__)
#include <arm_neon.h>
#include <string.h>

#include "run/gemm/gemm_isa_list.h"

enum { MR = 8, NR = 8, ROWS = 4, LANES = 4, UNIT = 4 };

static inline bfloat16x8_t load_pairs(const uint16_t *from)
{
    return vreinterpretq_bf16_u16(vld1q_u16(from));
}

static inline void finish_sums(float32x4_t sums, float *c, bool accumulate)
{
    vst1q_f32(c, accumulate ? vaddq_f32(vld1q_f32(c), sums) : sums);
}

/* sums[i][j]: rows 2 * i and 2 * i + 1 of columns 2 * j and 2 * j + 1. */
static inline __attribute__((always_inline)) void multiply_pairs(const int rows, const int columns,
                                                                 int64_t k, const uint16_t *a,
                                                                 const uint16_t *b, float *c,
                                                                 int64_t ldc, bool accumulate)
{
    float32x4_t sums[MR / 2][NR / 2];
    for (int i = 0; i < rows / 2; i++)
        for (int j = 0; j < columns / 2; j++)
            sums[i][j] = vdupq_n_f32(0);
    for (int64_t p = 0; p < k; p += UNIT) {
        bfloat16x8_t from_a[MR / 2];
        for (int i = 0; i < rows / 2; i++)
            from_a[i] = load_pairs(a + i * 2 * UNIT);
        for (int j = 0; j < columns / 2; j++) {
            bfloat16x8_t from_b = load_pairs(b + j * 2 * UNIT);
            for (int i = 0; i < rows / 2; i++)
                sums[i][j] = vbfmmlaq_f32(sums[i][j], from_a[i], from_b);
        }
        a += MR * UNIT;
        b += NR * UNIT;
    }
    for (int i = 0; i < rows / 2; i++)
        for (int j = 0; j < columns / 2; j += 2) {
            float32x4_t left = sums[i][j], right = sums[i][j + 1];
            float *to = c + 2 * i * ldc + 2 * j;
            finish_sums(vcombine_f32(vget_low_f32(left), vget_low_f32(right)), to, accumulate);
            finish_sums(vcombine_f32(vget_high_f32(left), vget_high_f32(right)), to + ldc,
                        accumulate);
        }
}

#define TILE(rows, columns)                                                                        \
    static void tile_##rows##_##columns(int64_t k, const void *a, int64_t lda, const void *b,      \
                                        int64_t ldb, void *c, int64_t ldc, bool accumulate)        \
    {                                                                                              \
        (void)lda;                                                                                 \
        (void)ldb;                                                                                 \
        multiply_pairs(rows, columns, k, a, b, c, ldc, accumulate);                                \
    }
TILE(4, 4)
TILE(4, 8)
TILE(8, 4)
TILE(8, 8)

static inline __attribute__((always_inline)) void pack_pairs(const int width, uint16_t *panel,
                                                             int64_t valid, int64_t k,
                                                             const uint16_t *source, int64_t across,
                                                             int64_t along)
{
    for (int64_t p = 0; p < k; p += UNIT) {
        uint16_t *to = panel + p * width;
        int64_t steps = k - p < UNIT ? k - p : UNIT;
        if (valid < width || steps < UNIT)
            memset(to, 0, (size_t)(width * UNIT) * sizeof *to);
        if (along == 1 && steps == UNIT)
            for (int64_t i = 0; i < valid; i++)
                memcpy(to + i * UNIT, source + i * across + p, UNIT * sizeof *to);
        else
            for (int64_t q = 0; q < steps; q++)
                for (int64_t i = 0; i < valid; i++)
                    to[i * UNIT + q] = source[i * across + (p + q) * along];
    }
}

static void pack_a_pairs(void *panel, int64_t valid, int64_t k, const void *source, sf_dtype dtype,
                         int64_t across, int64_t along)
{
    (void)dtype;
    pack_pairs(MR, panel, valid, k, source, across, along);
}

static void pack_b_pairs(void *panel, int64_t valid, int64_t k, const void *source, sf_dtype dtype,
                         int64_t across, int64_t along)
{
    (void)dtype;
    pack_pairs(NR, panel, valid, k, source, across, along);
}

const sf_gemm_type sf_gemm_neon_bf16 = {
    .dtype = SF_BF16,
    .sums = SF_F32,
    .mr = MR,
    .nr = NR,
    .rows = ROWS,
    .lanes = LANES,
    .unit = UNIT,
    .mc = 192,
    .kc = 256,
    .nc = 1024,
    .tiles = {{tile_4_4, tile_4_8}, {tile_8_4, tile_8_8}},
    .pack_a = pack_a_pairs,
    .pack_b = pack_b_pairs,
};
#else
typedef int sf_gemm_neon_bf16_is_not_here;
#endif
