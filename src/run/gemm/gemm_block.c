#include "run/gemm/gemm_block.h"

#include <string.h>

static int64_t smaller_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t round_up_to(int64_t a, int64_t unit)
{
    return (a + unit - 1) / unit * unit;
}

/* Where a thread packs: a block of A, one of B, and sums where C cannot take them. Sums are for this
 * many rows, so that packing a block of B is a small part of the work on it. */
enum { SUM_BLOCKS = 4, LINE = 64 };

typedef struct room {
    int64_t a, b, sums, all; /* bytes */
    int64_t most_rows, most_columns;
} room;

static room room_for(const sf_blocks *blocks)
{
    const sf_gemm_type *type = blocks->type;
    int64_t size = sf_dtype_get(type->dtype)->bytes;
    int64_t depth = sf_gemm_steps(type, smaller_of(type->kc, blocks->k));
    int64_t rows = round_up_to(smaller_of(type->mc, blocks->m), type->mr);
    room r = {.most_rows = blocks->m};
    r.most_columns = round_up_to(smaller_of(type->nc, blocks->n), type->nr);
    r.a = round_up_to(rows * depth * size, LINE);
    r.b = round_up_to(depth * r.most_columns * size, LINE);
    if (!blocks->direct) {
        r.most_rows = smaller_of(SUM_BLOCKS * type->mc, round_up_to(blocks->m, type->mr));
        r.sums = round_up_to(r.most_rows * r.most_columns * sf_dtype_get(type->sums)->bytes, LINE);
    }
    /* An odd number of lines between the parts keeps them from the same places in the caches. */
    r.all = r.a + r.b + r.sums + LINE;
    return r;
}

int64_t sf_blocks_scratch(const sf_blocks *blocks, int threads)
{
    if (blocks->batches == 0 || blocks->m == 0 || blocks->n == 0)
        return 0;
    return room_for(blocks).all * threads;
}

/* One block of A against one of B: rows [i, i + m), columns [j, j + n), steps [p, p + k). */
typedef struct block {
    const sf_blocks *blocks;
    const sf_epilogue *epilogue; /* NULL where it has to wait for more columns */
    int part;
    int64_t batch, i, m, j, n, p, k;
    char *packed_a, *packed_b;
    char *c; /* of row i, column j */
    int64_t ldc;
    bool accumulate, padded; /* padded: C has room for whole tiles */
    int64_t size, packed;    /* bytes of an element of C, and of a row (column) of a panel */
} block;

/* A panel, packed or in place. In place, no tile may read past the last row or column. */
static bool in_place(const void *data, int64_t count, int64_t unit)
{
    return data && count % unit == 0;
}

static const void *panel_a(const block *b, int64_t i, int64_t rows, int64_t *step)
{
    const sf_blocks *s = b->blocks;
    if (in_place(s->a, rows, s->type->rows)) {
        *step = s->a_step;
        return (const char *)s->a + (b->batch * s->a_batch + b->i + i + b->p * s->a_step) * b->size;
    }
    *step = s->type->mr;
    return b->packed_a + i * b->packed;
}

static const void *panel_b(const block *b, int64_t j, int64_t columns, int64_t *step)
{
    const sf_blocks *s = b->blocks;
    if (in_place(s->b, columns, s->type->lanes)) {
        *step = s->b_step;
        return (const char *)s->b + (b->batch * s->b_batch + b->p * s->b_step + b->j + j) * b->size;
    }
    *step = s->type->nr;
    return b->packed_b + j * b->packed;
}

/* Adds or copies the part of a tile that exists. */
static void copy_tile(const block *b, const char *tile, int64_t rows, int64_t columns, char *c)
{
    int64_t nr = b->blocks->type->nr;
    for (int64_t i = 0; i < rows; i++) {
        const char *from = tile + i * nr * b->size;
        char *to = c + i * b->ldc * b->size;
        if (!b->accumulate)
            memcpy(to, from, (size_t)(columns * b->size));
        else if (b->blocks->type->sums == SF_F64)
            for (int64_t j = 0; j < columns; j++)
                ((double *)(void *)to)[j] += ((const double *)(const void *)from)[j];
        else
            for (int64_t j = 0; j < columns; j++)
                ((float *)(void *)to)[j] += ((const float *)(const void *)from)[j];
    }
}

static void multiply_block(const block *b)
{
    const sf_gemm_type *type = b->blocks->type;
    _Alignas(LINE) char edge[SF_GEMM_MOST_TILE];
    for (int64_t j = 0; j < b->n; j += type->nr) {
        int64_t columns = smaller_of(type->nr, b->n - j), ldb;
        int64_t vectors = (columns - 1) / type->lanes + 1;
        const void *from_b = panel_b(b, j, columns, &ldb);
        for (int64_t i = 0; i < b->m; i += type->mr) {
            int64_t rows = smaller_of(type->mr, b->m - i), lda;
            int64_t units = (rows - 1) / type->rows + 1;
            const void *from_a = panel_a(b, i, rows, &lda);
            sf_gemm_tile *tile = type->tiles[units - 1][vectors - 1];
            char *c = b->c + (i * b->ldc + j) * b->size;
            if (b->padded || (units * type->rows == rows && vectors * type->lanes == columns)) {
                tile(b->k, from_a, lda, from_b, ldb, c, b->ldc, b->accumulate);
            } else {
                tile(b->k, from_a, lda, from_b, ldb, edge, type->nr, false);
                copy_tile(b, edge, rows, columns, c);
            }
        }
    }
}

/* Packs panels that are not used in place: all, or the last panel if it is not full. */
static void pack_panels(const block *b, sf_blocks_pack *with, const void *data, int64_t width,
                        int64_t unit, int64_t first, int64_t count, char *panels)
{
    int64_t done = data ? count / width * width : 0;
    if (data && in_place(data, count - done, unit))
        return;
    with(b->blocks->context, b->batch, first + done, count - done, b->p, b->k,
         panels + done * b->packed);
}

static void finish_rows(const block *b, int64_t i, int64_t m)
{
    sf_epilogue_run(b->epilogue, b->part, b->batch * b->blocks->m + i, m, b->j, b->n);
}

/* Rows [b.i, b.i + b.m) and columns [b.j, b.j + b.n), all steps: C is as b.c says. */
static void multiply_cell(block b)
{
    const sf_blocks *s = b.blocks;
    const sf_gemm_type *type = s->type;
    int64_t first = b.i, rows = b.m;
    char *c = b.c;
    for (int64_t i = 0; s->k == 0 && !b.accumulate && i < rows; i++)
        memset(c + i * b.ldc * b.size, 0, (size_t)(b.n * b.size));
    if (s->k == 0 && s->direct)
        finish_rows(&b, first, rows);
    for (b.p = 0; b.p < s->k; b.p += type->kc) {
        b.k = smaller_of(type->kc, s->k - b.p);
        b.packed = sf_gemm_steps(type, b.k) * sf_dtype_get(type->dtype)->bytes;
        pack_panels(&b, s->pack_b, s->b, type->nr, type->lanes, b.j, b.n, b.packed_b);
        for (int64_t i = 0; i < rows; i += type->mc) {
            b.i = first + i;
            b.m = smaller_of(type->mc, rows - i);
            b.c = c + i * b.ldc * b.size;
            pack_panels(&b, s->pack_a, s->a, type->mr, type->rows, b.i, b.m, b.packed_a);
            multiply_block(&b);
            if (s->direct && b.p + b.k == s->k)
                finish_rows(&b, b.i, b.m);
        }
        b.accumulate = true;
    }
}

typedef struct task {
    const sf_blocks *blocks;
    sf_cut cut;
    room room;
} task;

static void do_cells(void *context, int part, int64_t from, int64_t end)
{
    const task *t = context;
    const sf_blocks *s = t->blocks;
    block b = {.blocks = s, .part = part, .size = sf_dtype_get(s->type->sums)->bytes};
    /* Rows that are wider than a block are complete only after the last. */
    bool late = s->epilogue && s->epilogue->whole_rows && s->n > t->room.most_columns;
    b.epilogue = late ? NULL : s->epilogue;
    _Alignas(LINE) char before[SF_GEMM_STATE];
    if (s->type->enter)
        s->type->enter(before);
    b.packed_a = (char *)s->scratch + part * t->room.all;
    b.packed_b = b.packed_a + t->room.a;
    char *sums = b.packed_b + t->room.b;
    for (int64_t index = from; index < end; index++) {
        sf_cell cell = sf_cut_cell(&t->cut, index);
        b.batch = cell.batch;
        for (int64_t j = 0; j < cell.n; j += t->room.most_columns)
            for (int64_t i = 0; i < cell.m; i += t->room.most_rows) {
                b.i = cell.i + i;
                b.j = cell.j + j;
                b.m = smaller_of(t->room.most_rows, cell.m - i);
                b.n = smaller_of(t->room.most_columns, cell.n - j);
                b.padded = !s->direct;
                b.accumulate = s->direct && s->accumulate;
                b.ldc = s->direct ? s->c_row : t->room.most_columns;
                b.c = s->direct
                          ? (char *)s->c + (b.batch * s->c_batch + b.i * s->c_row + b.j) * b.size
                          : sums;
                multiply_cell(b);
                if (s->direct)
                    continue;
                s->store(s->context, b.batch, b.i, b.m, b.j, b.n, sums, b.ldc);
                finish_rows(&b, b.i, b.m);
            }
        if (late)
            sf_epilogue_run(s->epilogue, part, b.batch * s->m + cell.i, cell.m, 0, s->n);
    }
    if (s->type->leave)
        s->type->leave(before);
}

void sf_blocks_run(const sf_blocks *blocks, sf_threads *threads)
{
    const sf_gemm_type *type = blocks->type;
    if (blocks->batches == 0 || blocks->m == 0 || blocks->n == 0)
        return;
    task t = {.blocks = blocks, .room = room_for(blocks)};
    const sf_epilogue *epilogue = blocks->epilogue;
    t.cut = sf_cut_make(blocks->batches, blocks->m, blocks->n,
                        blocks->k + (epilogue ? epilogue->work : 0), type->mr,
                        epilogue && epilogue->whole_rows ? blocks->n : type->nr,
                        sf_threads_count(threads));
    sf_threads_run(threads, t.cut.batches * t.cut.rows * t.cut.columns, t.cut.grain, do_cells, &t);
}
