#include "run/gemm/gemm.h"

#include <stdio.h>
#include <string.h>

#include "base/diag.h"
#include "run/gemm/blas.h"
#include "run/gemm/gemm_block.h"
#include "run/gemm/gemm_store.h"

static bool multiplies_type(sf_dtype dtype)
{
    return dtype == SF_F32 || dtype == SF_BF16 || dtype == SF_F16;
}

bool sf_gemm_can(sf_dtype a, sf_dtype b, sf_dtype c)
{
    if (a == SF_F64 || b == SF_F64 || c == SF_F64)
        return a == b && b == c;
    return multiplies_type(a) && multiplies_type(b) && multiplies_type(c);
}

const char *sf_gemm_library(void)
{
    static char own[32];
    if (sf_blas_name())
        return sf_blas_name();
    snprintf(own, sizeof own, "own, %s", sf_isa_name(sf_gemm_set_get()->isa));
    return own;
}

static sf_matrix transposed_matrix(sf_matrix x)
{
    int64_t row = x.row;
    x.row = x.column;
    x.column = row;
    return x;
}

/* C' = B' A'. */
static void transpose_gemm(sf_gemm *g)
{
    sf_matrix a = g->a;
    int64_t m = g->m;
    g->m = g->n;
    g->n = m;
    g->a = transposed_matrix(g->b);
    g->b = transposed_matrix(a);
    g->c = transposed_matrix(g->c);
}

/* A distance that is never walked may be called anything: 1 for a vector's sake. */
static void settle_strides(int64_t rows, int64_t columns, sf_matrix *x)
{
    if (columns == 1)
        x->column = 1;
    else if (rows == 1 && x->column != 1)
        x->row = 1;
}

/* The product with C's columns side by side where that can be, and one row rather than one column. */
static sf_gemm settle_gemm(const sf_gemm *gemm)
{
    sf_gemm g = *gemm;
    settle_strides(g.m, g.k, &g.a);
    settle_strides(g.k, g.n, &g.b);
    settle_strides(g.m, g.n, &g.c);
    if (g.c.column != 1 && g.c.row == 1)
        transpose_gemm(&g);
    if (g.n == 1 && g.m > 1)
        transpose_gemm(&g);
    return g;
}

static int64_t element_size(const sf_matrix *x)
{
    return sf_dtype_get(x->dtype)->bytes;
}

static void *element_address(const sf_matrix *x, int64_t batch, int64_t i, int64_t j)
{
    return (char *)x->data + (batch * x->batch + i * x->row + j * x->column) * element_size(x);
}

/* Everything a thread needs to know. */
typedef struct product {
    sf_gemm g;
    const sf_gemm_type *type;
    sf_cut cut;
} product;

static void pack_rows(const void *context, int64_t batch, int64_t first, int64_t count, int64_t p,
                      int64_t k, void *panels)
{
    const product *x = context;
    const sf_matrix *a = &x->g.a;
    int64_t mr = x->type->mr, panel = mr * sf_gemm_row_bytes(x->type, k);
    for (int64_t i = 0; i < count; i += mr)
        x->type->pack_a((char *)panels + i / mr * panel, count - i < mr ? count - i : mr, k,
                        element_address(a, batch, first + i, p), a->dtype, a->row, a->column);
}

static void pack_columns(const void *context, int64_t batch, int64_t first, int64_t count,
                         int64_t p, int64_t k, void *panels)
{
    const product *x = context;
    const sf_matrix *b = &x->g.b;
    int64_t nr = x->type->nr, panel = nr * sf_gemm_row_bytes(x->type, k);
    for (int64_t j = 0; j < count; j += nr)
        x->type->pack_b((char *)panels + j / nr * panel, count - j < nr ? count - j : nr, k,
                        element_address(b, batch, p, first + j), b->dtype, b->column, b->row);
}

static void store_product(const void *context, int64_t batch, int64_t i, int64_t rows, int64_t j,
                          int64_t columns, const void *sums, int64_t ld)
{
    const product *x = context;
    const sf_matrix *c = &x->g.c;
    int64_t size = sf_dtype_get(x->type->sums)->bytes;
    for (int64_t r = 0; r < rows; r++)
        sf_sums_store(element_address(c, batch, i + r, j), c->dtype, c->column,
                      (const char *)sums + r * ld * size, columns, x->g.accumulate);
}

/* Packing pays when a panel is used several times, or would be walked in steps too long for the
 * cache. */
static bool stays_packed(const sf_gemm_type *type, const sf_matrix *x, int64_t across,
                         int64_t along, int64_t k, int64_t uses)
{
    enum { FEW_USES = 2, SMALL_BYTES = 1 << 16 };
    return x->dtype == type->dtype && type->unit == 1 && across == 1 && along >= 0 &&
           (uses <= FEW_USES || k * along * element_size(x) <= SMALL_BYTES);
}

static sf_blocks blocks_of_product(const product *x)
{
    const sf_gemm *g = &x->g;
    const sf_gemm_type *type = x->type;
    sf_blocks blocks = {.type = type,
                        .batches = g->batches,
                        .m = g->m,
                        .n = g->n,
                        .k = g->k,
                        .context = x,
                        .pack_a = pack_rows,
                        .pack_b = pack_columns,
                        .a_batch = g->a.batch,
                        .a_step = g->a.column,
                        .b_batch = g->b.batch,
                        .b_step = g->b.row,
                        .direct = g->c.dtype == type->sums && g->c.column == 1,
                        .c = g->c.data,
                        .c_batch = g->c.batch,
                        .c_row = g->c.row,
                        .accumulate = g->accumulate,
                        .store = store_product,
                        .epilogue = g->epilogue,
                        .scratch = g->scratch};
    if (stays_packed(type, &g->a, g->a.row, g->a.column, g->k, (g->n - 1) / type->nr + 1))
        blocks.a = g->a.data;
    if (stays_packed(type, &g->b, g->b.column, g->b.row, g->k, (g->m - 1) / type->mr + 1))
        blocks.b = g->b.data;
    return blocks;
}

/* One row of C, from elements that lie side by side: bound by memory, so no packing. */
static bool is_row(const product *x)
{
    const sf_gemm *g = &x->g;
    return x->type->row && g->m == 1 && g->k > 0 && g->a.column == 1 &&
           (g->b.column == 1 || g->b.row == 1) && g->a.dtype == x->type->dtype &&
           g->b.dtype == x->type->dtype && g->c.dtype == x->type->dtype;
}

static void do_product_rows(void *context, int part, int64_t first, int64_t end)
{
    const product *x = context;
    const sf_gemm *g = &x->g;
    for (int64_t index = first; index < end; index++) {
        sf_cell cell = sf_cut_cell(&x->cut, index);
        x->type->row(cell.n, g->k, element_address(&g->a, cell.batch, 0, 0),
                     element_address(&g->b, cell.batch, 0, cell.j), g->b.row, g->b.column,
                     element_address(&g->c, cell.batch, 0, cell.j), g->c.column, g->accumulate);
        sf_epilogue_run(g->epilogue, part, cell.batch, 1, cell.j, cell.n);
    }
}

static void do_library(void *context, int part, int64_t first, int64_t end)
{
    const product *x = context;
    for (int64_t index = first; index < end; index++) {
        sf_cell cell = sf_cut_cell(&x->cut, index);
        sf_blas_run(&x->g, cell.batch, cell.i, cell.m, cell.j, cell.n);
        sf_epilogue_run(x->g.epilogue, part, cell.batch * x->g.m + cell.i, cell.m, cell.j, cell.n);
    }
}

static product product_of(const sf_gemm *gemm)
{
    product x = {.g = settle_gemm(gemm)};
    x.type = sf_gemm_type_for(sf_gemm_set_get(), gemm->a.dtype, gemm->b.dtype);
    return x;
}

int64_t sf_gemm_scratch(const sf_gemm *gemm, int threads)
{
    product x = product_of(gemm);
    if (is_row(&x) || sf_blas_can(&x.g))
        return 0;
    sf_blocks blocks = blocks_of_product(&x);
    return sf_blocks_scratch(&blocks, threads);
}

int64_t sf_gemm_room(const sf_gemm *gemm)
{
    product x = product_of(gemm);
    sf_blocks blocks = blocks_of_product(&x);
    sf_gemm thin = *gemm; /* one column: it is turned, and done as one row */
    thin.n = 1;
    product y = product_of(&thin);
    sf_blocks one = blocks_of_product(&y);
    int64_t most = sf_blocks_scratch(&blocks, 1), least = sf_blocks_scratch(&one, 1);
    return most > least ? most : least;
}

void sf_gemm_run(const sf_gemm *gemm, sf_threads *threads)
{
    SF_ASSERT(sf_gemm_can(gemm->a.dtype, gemm->b.dtype, gemm->c.dtype));
    if (gemm->batches == 0 || gemm->m == 0 || gemm->n == 0)
        return;
    product x = product_of(gemm);
    bool row = is_row(&x);
    if (!row && !sf_blas_can(&x.g)) {
        sf_blocks blocks = blocks_of_product(&x);
        sf_blocks_run(&blocks, threads);
        return;
    }
    const sf_epilogue *epilogue = x.g.epilogue;
    x.cut = sf_cut_make(x.g.batches, x.g.m, x.g.n, x.g.k + (epilogue ? epilogue->work : 0), 32,
                        epilogue && epilogue->whole_rows ? x.g.n : 32, sf_threads_count(threads));
    sf_threads_run(threads, x.cut.batches * x.cut.rows * x.cut.columns, x.cut.grain,
                   row ? do_product_rows : do_library, &x);
}
