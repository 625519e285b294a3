
/* What attention (attention_kernel.cu) stands on: products of the tensor cores by fragments, of which each of the 32 threads of a warp
 * has a part, and copies that go on beside the compute. On the host, threads of a warp lay out for each other what they
 * have. Where all factors are float (`wide`), they are rounded to TF32. */

#if defined(__CUDACC__)
#define GROUP_MAY_WAIT 1 /* warps of a block may do different products */

/* c, 16 x 8, grows by a, 16 x 16 (wide: 16 x 8), times b. */
DEVICE void multiply_fragments(f32 *c, const u32 *a, u32 b0, u32 b1, int wide)
{
    if (wide)
        asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    else
        asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* Four matrices of 8 x 8 narrow elements, turned; thread 8 i + r has where row r of matrix i stands. */
DEVICE void load_transposed(u32 *to, const void *row)
{
    u32 at = (u32)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(at)
                 : "memory");
}

/* 16 bytes into shared memory, zeros where they are not valid. */
DEVICE void copy_aside(void *to, const void *from, int valid)
{
    u32 at = (u32)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(valid ? 16 : 0) : "memory");
}

DEVICE void await_copies(void)
{
    asm volatile("cp.async.wait_all;" ::: "memory");
}

DEVICE u32 round_tf32(f32 x)
{
    u32 rounded;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(x));
    return rounded;
}

DEVICE f32 power_of_2(f32 x)
{
    f32 y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* Groups of 4 warps, as GPUs from sm_90a on have them, multiply what stands in shared memory by itself. A tile is 64 rows of 128
 * bytes at a multiple of 1024, the 16 bytes at place c of row r standing at c ^ r % 8. d, 64 x 64, is the product of a and of b,
 * both 32 bytes of 64 rows; or b is 16 rows (`turned`, of narrow elements). It is added to what was there (`adds`). a has 16 rows a
 * warp, as in multiply_fragments. Between begin_products and
 * await_products, of all between begin_products and end_products, nobody touches these registers. */
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define HAS_GROUPS 1

DEVICE u64 describe_tile(const void *tile)
{
    u32 at = (u32)__cvta_generic_to_shared(tile);
    return (u64)((at & 0x3ffff) >> 4) | 64ull << 16 | 64ull << 32 | 1ull << 62;
}

#define SUM4(d, i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define SUM32(d)                                                                                   \
    SUM4(d, 0), SUM4(d, 4), SUM4(d, 8), SUM4(d, 12), SUM4(d, 16), SUM4(d, 20), SUM4(d, 24), SUM4(d, 28)
#define SUMS_TEXT                                                                                  \
    "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,"  \
    "%25,%26,%27,%28,%29,%30,%31}, "
#define MULTIPLY_HELD(d, a, b, adds, shape, turns)                                                 \
    asm volatile("{.reg .pred p;\nsetp.ne.b32 p, %37, 0;\nwgmma.mma_async.sync.aligned." shape " " \
                 SUMS_TEXT "{%32,%33,%34,%35}, %36, p, 1, 1" turns ";\n}"                          \
                 : SUM32(d)                                                                        \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(describe_tile(b)), "r"(adds))
#define MULTIPLY_TILES(d, a, b, adds, shape, turns)                                                \
    asm volatile("{.reg .pred p;\nsetp.ne.b32 p, %34, 0;\nwgmma.mma_async.sync.aligned." shape " " \
                 SUMS_TEXT "%32, %33, p, 1, 1" turns ";\n}"                                        \
                 : SUM32(d)                                                                        \
                 : "l"(describe_tile(a)), "l"(describe_tile(b)), "r"(adds))
#define NARROW_SHAPE "m64n64k16.f32.bf16.bf16"
#define WIDE_SHAPE "m64n64k8.f32.tf32.tf32"

DEVICE void multiply_held(f32 *d, const u32 *a, const void *b, int transposed, int adds, int wide)
{
    if (wide)
        MULTIPLY_HELD(d, a, b, adds, WIDE_SHAPE, "");
    else if (transposed)
        MULTIPLY_HELD(d, a, b, adds, NARROW_SHAPE, ", 1");
    else
        MULTIPLY_HELD(d, a, b, adds, NARROW_SHAPE, ", 0");
}

/* The same with a tile as a. */
DEVICE void multiply_tiles(f32 *d, const void *a, const void *b, int adds, int wide)
{
    if (wide)
        MULTIPLY_TILES(d, a, b, adds, WIDE_SHAPE, "");
    else
        MULTIPLY_TILES(d, a, b, adds, NARROW_SHAPE, ", 0, 0");
}

DEVICE void begin_products(void)
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

DEVICE void end_products(void)
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* d is what a product adds to, or will have added to. */
DEVICE void touch_sums(f32 *d)
{
    asm volatile("" : SUM32(d)::"memory");
}

/* All that was begun and ended is done but, with `but` 1, for the last. */
DEVICE void await_products(int but)
{
    if (but == 1)
        asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
    else
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}

/* What this thread copied can be multiplied, behind a barrier. */
DEVICE void show_copies(void)
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
#endif
#else
#define GROUP_MAY_WAIT 0
static _Thread_local u32 sf_fragments[1024][6];
static _Thread_local const u16 *sf_rows[1024];

static f32 fragment_element(int warp, int lane, int reg, int half, int wide)
{
    u32 word = sf_fragments[warp * 32 + lane][reg];
    return wide ? float32(word) : get_bf16((u16)(half ? word >> 16 : word));
}

static void multiply_fragments(f32 *c, const u32 *a, u32 b0, u32 b1, int wide)
{
    int lane = sf_thread % 32, warp = sf_thread / 32, depth = wide ? 8 : 16, each = wide ? 4 : 8;
    for (int i = 0; i < 4; i++)
        sf_fragments[sf_thread][i] = a[i];
    sf_fragments[sf_thread][4] = b0;
    sf_fragments[sf_thread][5] = b1;
    sf_barrier();
    for (int i = 0; i < 4; i++) {
        int row = lane / 4, low = i / 2, column = lane % 4 * 2 + i % 2;
        for (int k = 0; k < depth; k++) {
            int place = wide ? k % 4 : k % 8 / 2, half = wide ? 0 : k % 2, second = k >= each;
            c[i] += fragment_element(warp, row * 4 + place, low + 2 * second, half, wide) *
                    fragment_element(warp, column * 4 + place, 4 + second, half, wide);
        }
    }
    sf_barrier();
}

static void load_transposed(u32 *to, const void *row)
{
    int lane = sf_thread % 32, warp = sf_thread / 32;
    sf_rows[sf_thread] = (const u16 *)row;
    sf_barrier();
    for (int i = 0; i < 4; i++) {
        const u16 **rows = &sf_rows[warp * 32 + i * 8 + lane % 4 * 2];
        to[i] = (u32)rows[0][lane / 4] | (u32)rows[1][lane / 4] << 16;
    }
    sf_barrier();
}

static void copy_aside(void *to, const void *from, int valid)
{
    if (valid)
        memcpy(to, from, 16);
    else
        memset(to, 0, 16);
}
#define await_copies() (void)0
#define round_tf32(x) bits32(x)
#define power_of_2(x) exp2f(x)

#if HAS_GROUPS
#define begin_products() (void)0
#define end_products() (void)0
#define touch_sums(d) (void)0
#define await_products(but) (void)0
#define show_copies() (void)0

/* An element of a tile, `bytes` behind `tile`, which stands there somewhere. */
static f32 tile_element(const void *tile, int bytes, int wide)
{
    u64 at = (u64)tile + bytes;
    at ^= (at >> 7 & 7) << 4;
    return wide ? *(const f32 *)at : get_bf16(*(const u16 *)at);
}

static void multiply_held(f32 *d, const u32 *a, const void *b, int transposed, int adds, int wide)
{
    int lane = sf_thread % 32, warp = sf_thread / 32, depth = wide ? 8 : 16, size = wide ? 4 : 2;
    for (int i = 0; i < 4; i++)
        sf_fragments[sf_thread][i] = a[i];
    sf_barrier();
    for (int i = 0; i < 32; i++) {
        int row = lane / 4, low = i % 4 / 2, column = i / 4 * 8 + lane % 4 * 2 + i % 2;
        f32 sum = adds ? d[i] : 0;
        for (int k = 0; k < depth; k++)
            sum += fragment_element(warp, row * 4 + (wide ? k % 4 : k % 8 / 2), low + 2 * (k >= depth / 2),
                                    wide ? 0 : k % 2, wide) *
                   tile_element(b, transposed ? k * 128 + column * 2 : column * 128 + k * size, wide);
        d[i] = sum;
    }
    sf_barrier();
}

static void multiply_tiles(f32 *d, const void *a, const void *b, int adds, int wide)
{
    int lane = sf_thread % 32, warp = sf_thread / 32 % 4, size = wide ? 4 : 2;
    for (int i = 0; i < 32; i++) {
        int row = warp * 16 + lane / 4 + i % 4 / 2 * 8, column = i / 4 * 8 + lane % 4 * 2 + i % 2;
        f32 sum = adds ? d[i] : 0;
        for (int at = 0; at < 32; at += size)
            sum += tile_element(a, row * 128 + at, wide) * tile_element(b, column * 128 + at, wide);
        d[i] = sum;
    }
}
#endif
#endif

/* Which pair of batch and head a block has, and its turn among those of the pair. Some pairs (`near`) go together, so that what
 * their blocks read is still in the cache of the GPU when another block reads it. */
DEVICE void find_turn(s64 block, int pairs, int near, int tiles, int *pair, int *turn)
{
    const int chunk = (int)(block / ((s64)near * tiles)), first = chunk * near;
    const int at = (int)(block - (s64)first * tiles), width = pairs - first < near ? pairs - first : near;
    *pair = first + at % width;
    *turn = at / width;
}

/* 16 bytes, moved together. */
typedef struct ALIGNED(16) words4 {
    u32 words[4];
} words4;

/* In bytes, where the 16 at place c of row r stand in tiles side by side. */
DEVICE int place_in_tile(int r, int c)
{
    return c / 8 * 64 * 128 + r * 128 + ((c ^ r) & 7) * 16;
}

/* Rows `row` and row + 8 of a matrix, 16 columns from `column` on (wide: 8), as a left factor; zeros behind its last row. Columns
 * of a wide one stand as 0, 2, 4, 6, 1, 3, 5, 7, so that each thread has neighbours; the right factor does so, too. */
DEVICE void load_left(u32 *to, const void *from, s64 row, s64 rows, s64 pitch, int column, int wide)
{
    for (int i = 0; i < 4; i++)
        to[i] = 0;
    for (int i = 0; i < 2; i++) {
        s64 at = (row + i * 8) * pitch + column + THREAD % 4 * 2;
        if (row + i * 8 >= rows)
            continue;
        if (wide) {
            to[i] = round_tf32(((const f32 *)from)[at]);
            to[i + 2] = round_tf32(((const f32 *)from)[at + 1]);
        } else {
            to[i] = *(const u32 *)((const u16 *)from + at);
            to[i + 2] = *(const u32 *)((const u16 *)from + at + 8);
        }
    }
}

/* Sums of products become a left factor: one of 8 columns, or of a pair of these. */
DEVICE void turn_left(u32 *to, const f32 *first, const f32 *second, int wide)
{
    if (wide) {
        to[0] = round_tf32(first[0]);
        to[1] = round_tf32(first[2]);
        to[2] = round_tf32(first[1]);
        to[3] = round_tf32(first[3]);
    } else {
        to[0] = pack_bf16(first[0], first[1]);
        to[1] = pack_bf16(first[2], first[3]);
        to[2] = pack_bf16(second[0], second[1]);
        to[3] = pack_bf16(second[2], second[3]);
    }
}

/* What of a row of two matrices a thread has, multiplied and added up over the row. */
DEVICE f32 dot_rows(const void *x, const void *y, int depth, int wide)
{
    f32 sum = 0;
    for (int c = THREAD % 4 * 2; c < depth; c += 8)
        for (int i = 0; i < 2; i++)
            sum += wide ? ((const f32 *)x)[c + i] * ((const f32 *)y)[c + i]
                        : get_bf16(((const u16 *)x)[c + i]) * get_bf16(((const u16 *)y)[c + i]);
    sum += SHUFFLE(sum, 1);
    return sum + SHUFFLE(sum, 2);
}

DEVICE void store_pair(void *to, f32 x, f32 y, int wide)
{
    if (wide) {
        ((f32 *)to)[0] = x;
        ((f32 *)to)[1] = y;
    } else {
        *(u32 *)to = pack_bf16(x, y);
    }
}
