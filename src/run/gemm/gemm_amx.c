/* Products of bf16 for AMX; compiled with it on, called only where it is there.
 *
 * A tile register holds 16 rows of 64 bytes: 16x32 elements of A, as many of B in pairs of steps, or
 * 16x16 sums. Four hold sums, two A, two B. Numbers too small to be normal count as zero.
 */
#if defined(__x86_64__)
#include "run/gemm/gemm_isa_list.h"
#include "run/gemm/gemm_pairs.h"

enum { SIDE = 16, DEPTH = 32, MR = 32, NR = 32 };

/* The layout of the registers is set per thread: palette 1, bytes and rows of each of eight. */
static void enter_tiles(void *before)
{
    static const _Alignas(64) struct {
        uint8_t palette, start, zero[14];
        uint16_t bytes[16];
        uint8_t rows[16];
    } shape = {.palette = 1,
               .bytes = {64, 64, 64, 64, 64, 64, 64, 64},
               .rows = {16, 16, 16, 16, 16, 16, 16, 16}};
    _Static_assert(sizeof shape == SF_GEMM_STATE, "the format of ldtilecfg");
    _tile_storeconfig(before);
    _tile_loadconfig(&shape);
}

/* Registers that nobody described cost nothing at a switch of threads or a signal. */
static void leave_tiles(const void *before)
{
    if (*(const uint8_t *)before == 0)
        _tile_release();
    else
        _tile_loadconfig(before);
}

SF_ALWAYS void multiply_tiles(const int rows, const int columns, int64_t k, const uint16_t *a,
                              const uint16_t *b, float *c, int64_t ldc, bool accumulate)
{
    enum { A_ROW = DEPTH * 2, B_ROW = NR * 4 }; /* bytes */
    int64_t c_row = ldc * (int64_t)sizeof *c;
    float *below = c + SIDE * ldc;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    if (accumulate) {
        _tile_loadd(0, c, c_row);
        if (columns > 1)
            _tile_loadd(1, c + SIDE, c_row);
        if (rows > 1)
            _tile_loadd(2, below, c_row);
        if (rows > 1 && columns > 1)
            _tile_loadd(3, below + SIDE, c_row);
    }
    for (int64_t p = 0; p < k; p += DEPTH) {
        _tile_loadd(6, b, B_ROW);
        _tile_loadd(4, a, A_ROW);
        _tile_dpbf16ps(0, 4, 6);
        if (rows > 1) {
            _tile_loadd(5, a + SIDE * DEPTH, A_ROW);
            _tile_dpbf16ps(2, 5, 6);
        }
        if (columns > 1) {
            _tile_loadd(7, b + SIDE * 2, B_ROW);
            _tile_dpbf16ps(1, 4, 7);
        }
        if (rows > 1 && columns > 1)
            _tile_dpbf16ps(3, 5, 7);
        a += MR * DEPTH;
        b += NR * DEPTH;
    }
    _tile_stored(0, c, c_row);
    if (columns > 1)
        _tile_stored(1, c + SIDE, c_row);
    if (rows > 1)
        _tile_stored(2, below, c_row);
    if (rows > 1 && columns > 1)
        _tile_stored(3, below + SIDE, c_row);
}

#define TILE(rows, columns)                                                                        \
    static void tile_##rows##_##columns(int64_t k, const void *a, int64_t lda, const void *b,      \
                                        int64_t ldb, void *c, int64_t ldc, bool accumulate)        \
    {                                                                                              \
        (void)lda;                                                                                 \
        (void)ldb;                                                                                 \
        multiply_tiles(rows, columns, k, a, b, c, ldc, accumulate);                                \
    }
TILE(1, 1)
TILE(1, 2)
TILE(2, 1)
TILE(2, 2)

static void pack_a_tiles(void *panel, int64_t valid, int64_t k, const void *source, sf_dtype dtype,
                         int64_t across, int64_t along)
{
    (void)dtype;
    pairs_pack_32(MR, panel, valid, k, source, across, along);
}

static void pack_b_tiles(void *panel, int64_t valid, int64_t k, const void *source, sf_dtype dtype,
                         int64_t across, int64_t along)
{
    (void)dtype;
    pairs_pack_2(NR, (k + DEPTH - 1) / DEPTH * DEPTH, panel, valid, k, source, across, along);
}

const sf_gemm_type sf_gemm_amx_bf16 = {
    .dtype = SF_BF16,
    .sums = SF_F32,
    .mr = MR,
    .nr = NR,
    .rows = SIDE,
    .lanes = SIDE,
    .unit = DEPTH,
    .mc = 128,
    .kc = 512,
    .nc = 512,
    .tiles = {{tile_1_1, tile_1_2}, {tile_2_1, tile_2_2}},
    .pack_a = pack_a_tiles,
    .pack_b = pack_b_tiles,
    .enter = enter_tiles,
    .leave = leave_tiles,
};
#else
typedef int sf_gemm_amx_is_not_here;
#endif
