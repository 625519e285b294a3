/* Products of bf16 for AVX512-BF16; compiled with it on, called only where it is there. An instruction
 * adds two products to each of 16 sums; numbers too small to be normal count as zero. */
#if defined(__x86_64__)
#include "run/gemm/gemm_isa_list.h"
#include "run/gemm/gemm_pairs.h"

#define VECTOR_BYTES 64
#define ROWS 12
#define VECTORS 2
#define T float
#define E uint32_t
#define NAME(x) x##_bf16
#define MULTIPLY(sum, a, b)                                                                        \
    (vector_bf16)                                                                                  \
        _mm512_dpbf16_ps((__m512)(sum), (__m512bh)_mm512_set1_epi32((int)(a)), (__m512bh)(b))
#define STEPS(k) (((k) + 1) / 2)
#include "run/gemm/tile.inc"

static void pack_a_dots(void *panel, int64_t valid, int64_t k, const void *source, sf_dtype dtype,
                        int64_t across, int64_t along)
{
    (void)dtype;
    pairs_pack_2(ROWS, 2 * STEPS(k), panel, valid, k, source, across, along);
}

static void pack_b_dots(void *panel, int64_t valid, int64_t k, const void *source, sf_dtype dtype,
                        int64_t across, int64_t along)
{
    (void)dtype;
    pairs_pack_2(WIDTH_bf16, 2 * STEPS(k), panel, valid, k, source, across, along);
}

const sf_gemm_type sf_gemm_avx512_bf16 = {
    .dtype = SF_BF16,
    .sums = SF_F32,
    .mr = ROWS,
    .nr = WIDTH_bf16,
    .rows = 4,
    .lanes = LANES_bf16,
    .unit = 2,
    .mc = 192,
    .kc = 256,
    .nc = 1024,
    .tiles = TILES(bf16),
    .pack_a = pack_a_dots,
    .pack_b = pack_b_dots,
};
#else
typedef int sf_gemm_avx512_bf16_is_not_here;
#endif
