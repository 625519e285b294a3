/* The forward pass of attention: the rows of a block visit all keys that they see, and keep their
 * largest score, the sum of their exponentials and the weighted values so far (Milakov and
 * Gimelshein 2018; Dao et al. 2022). */
#include <math.h>
#include <string.h>

#include "run/fast/attention_block.h"

enum { ROWS = SF_ATTEND_ROWS, COLUMNS = 512 };

/* The scratch memory of a thread: bytes from its beginning. */
typedef struct room {
    int64_t scores, narrow, values, tops, sums, products, all;
} room;

typedef struct attending {
    sf_attend a;
    room room;
    const sf_tensor *in;
    sf_tensor *out;
    int64_t blocks; /* of rows, of each pair */
    char *scratch;
} attending;

static room room_of(const sf_attend *a)
{
    int64_t block = a->rows * a->columns, floats = (int64_t)sizeof(float);
    room r = {0};
    r.narrow = r.scores + block * floats;
    r.values = r.narrow + sf_attend_line(a->dtype == SF_F32 ? 0 : block * a->width);
    r.tops = r.values + sf_attend_line(a->rows * a->depth * floats);
    r.sums = r.tops + sf_attend_line(a->rows * floats);
    r.products = r.sums + sf_attend_line(a->rows * floats);
    r.all = r.products + sf_attend_room(a);
    return r;
}

/* Rows [first, first + rows) of a pair, in scratch. */
typedef struct rows {
    const attending *t;
    int64_t pair, first, count;
    float *scores, *values, *tops, *sums;
    char *narrow, *products;
} rows;

/* Scores of keys [at, at + count) become exponentials, those of hidden ones 0. */
static void soften_row(const rows *b, int64_t r, int64_t at, int64_t count)
{
    const sf_attend *a = &b->t->a;
    const sf_vec *vec = a->vec;
    float *row = b->scores + r * a->columns;
    int64_t seen = sf_attend_seen(a, b->first + r, at, count);
    float top = -INFINITY, sum = 0;
    if (seen > 0) {
        vec->folds[SF_VFOLD_MAX][SF_VF32](&top, row, seen);
        top = fmaxf(b->tops[r], top * a->scale);
        vec->soften(row, row, a->scale, top, seen);
        vec->folds[SF_VFOLD_SUM][SF_VF32](&sum, row, seen);
        float less = at > 0 ? expf(b->tops[r] - top) : 0;
        for (int64_t i = 0; at > 0 && less != 1 && i < a->depth; i++)
            b->values[r * a->depth + i] *= less;
        b->sums[r] = at > 0 ? b->sums[r] * less + sum : sum;
        b->tops[r] = top;
    }
    memset(row + seen, 0, (size_t)(count - seen) * sizeof *row);
}

static void attend_block(const rows *b)
{
    const attending *t = b->t;
    const sf_attend *a = &t->a;
    int64_t end = sf_attend_seen(a, b->first + b->count - 1, 0, a->keys);
    sf_matrix queries = sf_attend_places(a, &t->in[0], b->pair, b->first);
    for (int64_t r = 0; r < b->count; r++)
        b->tops[r] = -INFINITY;
    for (int64_t at = 0; at < end; at += a->columns) {
        int64_t count = end - at < a->columns ? end - at : a->columns;
        sf_matrix keys = sf_attend_places(a, &t->in[1], b->pair, at);
        sf_attend_multiply(a,
                           &(sf_attend_product){.m = b->count,
                                                .n = count,
                                                .k = a->depth,
                                                .x = queries,
                                                .y = sf_attend_transposed(keys),
                                                .to = b->scores,
                                                .row = a->columns},
                           b->products);
        for (int64_t r = 0; r < b->count; r++)
            soften_row(b, r, at, count);
        sf_attend_multiply(
            a,
            &(sf_attend_product){.m = b->count,
                                 .n = a->depth,
                                 .k = count,
                                 .x = sf_attend_narrow(a, b->scores, b->count, count, b->narrow),
                                 .y = sf_attend_places(a, &t->in[2], b->pair, at),
                                 .to = b->values,
                                 .row = a->depth,
                                 .adds = at > 0},
            b->products);
    }
    sf_matrix out = sf_attend_places(a, &t->out[0], b->pair, b->first);
    float *ends = (float *)t->out[1].data + b->pair * a->queries + b->first;
    for (int64_t r = 0; r < b->count; r++) {
        sf_attend_store(a, &out, r, b->values + r * a->depth, 1 / b->sums[r]);
        ends[r] = b->tops[r] + logf(b->sums[r]);
    }
}

/* Where later rows see more keys, a short block follows each long one, so that threads have equal parts. */
static void attend_part(void *context, int part, int64_t first, int64_t end)
{
    const attending *t = context;
    const sf_attend *a = &t->a;
    char *scratch = t->scratch + part * t->room.all;
    rows b = {.t = t,
              .scores = (float *)(void *)(scratch + t->room.scores),
              .narrow = scratch + t->room.narrow,
              .values = (float *)(void *)(scratch + t->room.values),
              .tops = (float *)(void *)(scratch + t->room.tops),
              .sums = (float *)(void *)(scratch + t->room.sums),
              .products = scratch + t->room.products};
    for (int64_t i = first; i < end; i++) {
        int64_t turn = i % t->blocks, block = turn % 2 ? t->blocks - 1 - turn / 2 : turn / 2;
        b.pair = i / t->blocks;
        b.first = block * a->rows;
        b.count = a->queries - b.first < a->rows ? a->queries - b.first : a->rows;
        attend_block(&b);
    }
}

static int64_t scratch_of(const sf_op *op, int64_t variant, int threads)
{
    (void)variant;
    sf_attend a = sf_attend_of(op, ROWS, COLUMNS);
    return room_of(&a).all * threads;
}

static void run_attention(const sf_op *op, int64_t variant, const sf_tensor *in, sf_tensor *out,
                          void *scratch, sf_threads *threads)
{
    (void)variant;
    attending t = {.a = sf_attend_of(op, ROWS, COLUMNS), .in = in, .out = out, .scratch = scratch};
    t.room = room_of(&t.a);
    t.blocks = (t.a.queries - 1) / t.a.rows + 1;
    sf_threads_run(threads, t.a.pairs * t.blocks, 1, attend_part, &t);
}

const sf_fast sf_fast_attention = {.scratch = scratch_of, .run = run_attention};
