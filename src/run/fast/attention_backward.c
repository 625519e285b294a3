/* The backward pass of attention, for keys block by block, and for each along all queries that see
 * it. With weights P, which are recomputed, and the gradient dO of the output:
 *
 *     dV = P^T dO      dS = P (dO V^T - delta) scale      dK = dS^T Q      dQ = dS K
 *
 * where delta is, for each row, the sum of dO O. A share is some blocks of keys of a pair; there are as many shares of a pair as
 * give all threads something to do. Each has a dQ of its own, and the shares of a pair are added up at the end. */
#include <string.h>

#include "base/checked.h"
#include "run/fast/attention_block.h"

enum { ROWS = SF_ATTEND_ROWS, COLUMNS = 128 };

enum { Q, K, V, OUT, ENDS, DOUT };

/* The scratch memory of a thread, and after that the dQ of all shares if a pair has several:
 * bytes. */
typedef struct room {
    int64_t weights, slopes, narrow_weights, narrow_slopes, keys, values, deltas, products, queries;
    int64_t all;
} room;

typedef struct attending {
    sf_attend a;
    room room;
    const sf_tensor *in;
    sf_tensor *out;
    int64_t shares; /* of a pair */
    char *scratch;
    /* of all shares; NULL: a pair is one share, whose dQ is in scratch of its thread */
    float *queries;
} attending;

/* Floats of a dQ: registers are multiples of 16. */
static int64_t query_count(const sf_attend *a)
{
    return (a->queries * a->depth + 15) & -16;
}

static room room_of(const sf_attend *a)
{
    int64_t floats = (int64_t)sizeof(float), block = sf_attend_line(a->rows * a->columns * floats);
    int64_t narrow = sf_attend_line(a->dtype == SF_F32 ? 0 : a->rows * a->columns * a->width);
    int64_t keys = sf_attend_line(a->columns * a->depth * floats);
    room r = {.slopes = block, .narrow_weights = 2 * block};
    r.narrow_slopes = r.narrow_weights + narrow;
    r.keys = r.narrow_slopes + narrow;
    r.values = r.keys + keys;
    r.deltas = r.values + keys;
    r.products = r.deltas + sf_attend_line(a->queries * floats);
    r.queries = r.products + sf_attend_room(a);
    r.all = r.queries + query_count(a) * floats;
    return r;
}

/* One share, in scratch. */
typedef struct share {
    const attending *t;
    int64_t pair, number;
    float *weights, *slopes, *keys, *values, *deltas, *queries;
    char *narrow_weights, *narrow_slopes, *products;
} share;

static float *floats_at(char *scratch, int64_t at)
{
    return (float *)(void *)(scratch + at);
}

/* Two rows of the op's type, in a buffer that has room for both as floats. */
static void find_deltas(const share *s)
{
    const sf_attend *a = &s->t->a;
    sf_matrix x = sf_attend_places(a, &s->t->in[DOUT], s->pair, 0),
              y = sf_attend_places(a, &s->t->in[OUT], s->pair, 0);
    float *one = s->keys, *other = s->values;
    for (int64_t i = 0; i < a->queries; i++) {
        a->vec->loads[a->dtype](one, (char *)x.data + i * x.row * a->width, 1, a->depth);
        a->vec->loads[a->dtype](other, (char *)y.data + i * y.row * a->width, 1, a->depth);
        double sum = 0;
        for (int64_t d = 0; d < a->depth; d++)
            sum += (double)(one[d] * other[d]);
        s->deltas[i] = (float)sum;
    }
}

/* Scores become weights, and their gradient the slope of scores. */
static void slope_rows(const share *s, int64_t first, int64_t rows, int64_t at, int64_t columns)
{
    const sf_attend *a = &s->t->a;
    const float *ends = (const float *)s->t->in[ENDS].data + s->pair * a->queries + first;
    for (int64_t r = 0; r < rows; r++) {
        float *weights = s->weights + r * a->columns, *slopes = s->slopes + r * a->columns;
        int64_t seen = sf_attend_seen(a, first + r, at, columns);
        if (seen > 0) {
            a->vec->soften(weights, weights, a->scale, ends[r], seen);
            a->vec->slope(slopes, weights, slopes, a->scale, s->deltas[first + r], seen);
        }
        memset(weights + seen, 0, (size_t)(columns - seen) * sizeof *weights);
        memset(slopes + seen, 0, (size_t)(columns - seen) * sizeof *slopes);
    }
}

/* Queries [first, first + rows) by keys [at, at + columns). */
static void attend_block(const share *s, int64_t first, int64_t rows, int64_t at, int64_t columns,
                         bool adds)
{
    const attending *t = s->t;
    const sf_attend *a = &t->a;
    sf_matrix q = sf_attend_places(a, &t->in[Q], s->pair, first),
              k = sf_attend_places(a, &t->in[K], s->pair, at),
              v = sf_attend_places(a, &t->in[V], s->pair, at),
              dout = sf_attend_places(a, &t->in[DOUT], s->pair, first);
    sf_attend_product square = {
        .m = rows, .n = columns, .k = a->depth, .to = s->weights, .row = a->columns};
    square.x = q;
    square.y = sf_attend_transposed(k);
    sf_attend_multiply(a, &square, s->products);
    square.x = dout;
    square.y = sf_attend_transposed(v);
    square.to = s->slopes;
    sf_attend_multiply(a, &square, s->products);
    slope_rows(s, first, rows, at, columns);
    sf_matrix weights = sf_attend_narrow(a, s->weights, rows, columns, s->narrow_weights),
              slopes = sf_attend_narrow(a, s->slopes, rows, columns, s->narrow_slopes);
    sf_attend_product across = {
        .m = columns, .n = a->depth, .k = rows, .to = s->values, .row = a->depth, .adds = adds};
    across.x = sf_attend_transposed(weights);
    across.y = dout;
    sf_attend_multiply(a, &across, s->products);
    across.x = sf_attend_transposed(slopes);
    across.y = q;
    across.to = s->keys;
    sf_attend_multiply(a, &across, s->products);
    sf_attend_multiply(a,
                       &(sf_attend_product){.m = rows,
                                            .n = a->depth,
                                            .k = columns,
                                            .x = slopes,
                                            .y = k,
                                            .to = s->queries + first * a->depth,
                                            .row = a->depth,
                                            .adds = true},
                       s->products);
}

static void store_rows(const sf_attend *a, sf_tensor *to, int64_t pair, int64_t first,
                       int64_t count, float *from)
{
    sf_matrix places = sf_attend_places(a, to, pair, first);
    for (int64_t r = 0; r < count; r++)
        sf_attend_store(a, &places, r, from + r * a->depth, 1);
}

static void attend_keys(const share *s, int64_t at)
{
    const sf_attend *a = &s->t->a;
    int64_t columns = a->keys - at < a->columns ? a->keys - at : a->columns;
    int64_t seer = a->causal && at > a->offset ? at - a->offset : 0; /* the first */
    int64_t begin = seer / a->rows * a->rows;
    if (seer >= a->queries) {
        memset(s->keys, 0, (size_t)(columns * a->depth) * sizeof *s->keys);
        memset(s->values, 0, (size_t)(columns * a->depth) * sizeof *s->values);
        begin = a->queries;
    }
    for (int64_t first = begin; first < a->queries; first += a->rows) {
        int64_t rows = a->queries - first < a->rows ? a->queries - first : a->rows;
        attend_block(s, first, rows, at, columns, first > begin);
    }
    store_rows(a, &s->t->out[K], s->pair, at, columns, s->keys);
    store_rows(a, &s->t->out[V], s->pair, at, columns, s->values);
}

/* If earlier keys are seen by more queries, blocks are distributed round-robin, so that shares are
 * about equal. */
static void attend_part(void *context, int part, int64_t first, int64_t end)
{
    const attending *t = context;
    const sf_attend *a = &t->a;
    char *scratch = t->scratch + part * t->room.all;
    share s = {.t = t,
               .weights = floats_at(scratch, t->room.weights),
               .slopes = floats_at(scratch, t->room.slopes),
               .narrow_weights = scratch + t->room.narrow_weights,
               .narrow_slopes = scratch + t->room.narrow_slopes,
               .keys = floats_at(scratch, t->room.keys),
               .values = floats_at(scratch, t->room.values),
               .deltas = floats_at(scratch, t->room.deltas),
               .products = scratch + t->room.products};
    int64_t count = query_count(a);
    for (int64_t i = first; i < end; i++) {
        s.pair = i / t->shares;
        s.number = i % t->shares;
        s.queries = t->queries ? t->queries + i * count : floats_at(scratch, t->room.queries);
        memset(s.queries, 0, (size_t)count * sizeof *s.queries);
        find_deltas(&s);
        for (int64_t at = s.number * a->columns; at < a->keys; at += t->shares * a->columns)
            attend_keys(&s, at);
        if (!t->queries)
            store_rows(a, &t->out[Q], s.pair, 0, a->queries, s.queries);
    }
}

/* dQ of pairs, from those of their shares. */
static void add_part(void *context, int part, int64_t first, int64_t end)
{
    (void)part;
    const attending *t = context;
    const sf_attend *a = &t->a;
    int64_t count = query_count(a);
    for (int64_t pair = first; pair < end; pair++) {
        float *sum = t->queries + pair * t->shares * count;
        for (int64_t i = 1; i < t->shares; i++)
            a->vec->ops[SF_VADD][SF_VF32](sum, sum, sum + i * count, NULL, count);
        store_rows(a, &t->out[Q], pair, 0, a->queries, sum);
    }
}

/* Of a pair. All threads have something to do, and the same where that can be; a pair has no more than blocks of keys. */
static int64_t shares_of(const sf_attend *a, int threads)
{
    int64_t blocks = (a->keys - 1) / a->columns + 1, shares = threads / sf_gcd(threads, a->pairs);
    if (a->pairs >= 4 * (int64_t)threads)
        return 1;
    return shares < blocks ? shares : blocks;
}

static int64_t scratch_of(const sf_op *op, int64_t variant, int threads)
{
    (void)variant;
    sf_attend a = sf_attend_of(op, ROWS, COLUMNS);
    int64_t own = room_of(&a).all * threads, shares = shares_of(&a, threads);
    int64_t queries = a.pairs * shares * query_count(&a) * (int64_t)sizeof(float);
    return shares > 1 ? own + queries : own;
}

static void run_attention(const sf_op *op, int64_t variant, const sf_tensor *in, sf_tensor *out,
                          void *scratch, sf_threads *threads)
{
    (void)variant;
    attending t = {.a = sf_attend_of(op, ROWS, COLUMNS), .in = in, .out = out, .scratch = scratch};
    t.room = room_of(&t.a);
    t.shares = shares_of(&t.a, sf_threads_count(threads));
    if (t.shares > 1)
        t.queries = floats_at(scratch, t.room.all * sf_threads_count(threads));
    sf_threads_run(threads, t.a.pairs * t.shares, 1, attend_part, &t);
    if (t.shares > 1)
        sf_threads_run(threads, t.a.pairs, 1, add_part, &t);
}

const sf_fast sf_fast_attention_gradient = {.scratch = scratch_of, .run = run_attention};
