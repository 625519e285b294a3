/* sort by a known order, and top_k.
 *
 * Every element gets a key: a number whose order, as an unsigned one, is the required order. Lines
 * are sorted by their keys, the last key first, each time stably: short ones by insertion, others
 * by the bytes of the key. Threads share the lines.
 *
 * A comparator that finds a NaN neither before nor after anything is no order, and the result
 * depends on which elements are compared. Lines with such a NaN are merged as the oracle merges. */
#include <math.h>
#include <string.h>

#include "op/op.h"
#include "op/slots.h"
#include "run/fast/fast_kernels.h"
#include "run/fast/sort_keys.h"

typedef struct entry {
    uint64_t key;
    int64_t index;
} entry;

typedef struct sorting {
    const sf_op *op;
    const sf_tensor *in;
    sf_tensor *out;
    sf_order order;
    int64_t size, stride, k; /* elements of a line, their distance; how many are kept of top_k */
    char *scratch;
    int64_t part_bytes;
} sorting;

/* The memory of one part: two arrays of entries, then keys by operand. */
typedef struct workspace {
    entry *entries, *spare;
    uint64_t *keys[SF_ORDER_MOST];
} workspace;

static workspace workspace_of(const sorting *s, int part)
{
    workspace w = {.entries = (entry *)(s->scratch + part * s->part_bytes)};
    w.spare = w.entries + s->size;
    for (int i = 0; i < SF_ORDER_MOST; i++)
        w.keys[i] = (uint64_t *)(w.spare + s->size) + i * s->size;
    return w;
}

static int64_t bytes_of_part(int64_t size, int nkeys)
{
    return size * (int64_t)(2 * sizeof(entry) + (size_t)nkeys * sizeof(uint64_t));
}

/* How the bits of an element become a key. */
typedef struct keying {
    uint64_t sign, mask, infinity; /* infinity: its bits; a larger magnitude is a NaN */
    bool is_float, is_signed, one_zero, one_nan, minds_nan;
    uint64_t turn; /* all ones for a descending order */
} keying;

static keying keying_of(sf_dtype dtype, const sf_order_key *key, bool is_last)
{
    const sf_dtype_info *info = sf_dtype_get(dtype);
    keying k = {.sign = UINT64_C(1) << (info->bits - 1)};
    k.mask = k.sign | (k.sign - 1);
    k.infinity = ((UINT64_C(1) << info->exponent) - 1) << info->mantissa;
    k.is_float = info->class == SF_FLOAT;
    k.is_signed = info->class == SF_SIGNED;
    k.one_zero = key->folds_zero || !key->total;
    k.one_nan = key->folds_nan;
    k.minds_nan = !key->total || (!is_last && key->stops_at_nan);
    k.turn = key->descending ? k.mask : 0;
    return k;
}

/* As unsigned numbers: negative ones below the others, and of floats turned around. */
static inline uint64_t key_of(const keying *k, uint64_t bits, bool *lost)
{
    bits &= k->mask;
    if (!k->is_float)
        return (k->is_signed ? bits ^ k->sign : bits) ^ k->turn;
    uint64_t magnitude = bits & (k->sign - 1), key;
    bool nan = magnitude > k->infinity;
    key = bits & k->sign ? k->sign - 1 - magnitude : bits | k->sign;
    key = k->one_zero && magnitude == 0 ? k->sign : key;
    key = k->one_nan && nan ? k->mask : key;
    *lost = *lost || (k->minds_nan && nan);
    return key ^ k->turn;
}

#define FILL(type)                                                                                 \
    for (int64_t i = 0; i < count; i++) {                                                          \
        type bits;                                                                                 \
        memcpy(&bits, from + i * stride * (int64_t)sizeof bits, sizeof bits);                      \
        keys[i] = key_of(k, bits, &lost);                                                          \
    }

static bool fill_from_bits(const keying *k, int bytes, const char *from, int64_t stride,
                           int64_t count, uint64_t *keys)
{
    bool lost = false;
    if (bytes == 1)
        FILL(uint8_t)
    else if (bytes == 2)
        FILL(uint16_t)
    else if (bytes == 4)
        FILL(uint32_t)
    else
        FILL(uint64_t)
    return lost;
}

/* The keys of a line that starts at element `base`; true when the line has a NaN that has no place in the
 * order. */
static bool fill_keys(const sorting *s, int number, int64_t base, uint64_t *keys)
{
    const sf_order_key *key = &s->order.keys[number];
    const sf_tensor *from = &s->in[key->operand];
    sf_dtype dtype = from->type->dtype;
    int bytes = sf_dtype_get(dtype)->bytes;
    keying k = keying_of(dtype, key, number == s->order.count - 1);
    return fill_from_bits(&k, bytes, (const char *)from->data + base * bytes, s->stride, s->size,
                          keys);
}

static void insertion_sort(entry *entries, int64_t count)
{
    for (int64_t i = 1; i < count; i++) {
        entry moved = entries[i];
        int64_t at = i;
        for (; at > 0 && moved.key < entries[at - 1].key; at--)
            entries[at] = entries[at - 1];
        entries[at] = moved;
    }
}

/* Byte by byte, the lowest first; bytes that all keys share are skipped. Gives the array that is sorted. */
static entry *byte_sort(entry *from, entry *to, int64_t count)
{
    uint64_t differ = 0;
    for (int64_t i = 1; i < count; i++)
        differ |= from[i].key ^ from[0].key;
    for (int shift = 0; shift < 64; shift += 8) {
        if ((differ >> shift & 255) == 0)
            continue;
        int64_t places[256] = {0}, next = 0;
        for (int64_t i = 0; i < count; i++)
            places[from[i].key >> shift & 255]++;
        for (int b = 0; b < 256; b++) {
            int64_t here = places[b];
            places[b] = next;
            next += here;
        }
        for (int64_t i = 0; i < count; i++)
            to[places[from[i].key >> shift & 255]++] = from[i];
        entry *sorted = to;
        to = from;
        from = sorted;
    }
    return from;
}

static const entry *sort_by_keys(const sorting *s, const workspace *w)
{
    enum { SHORT = 48 };
    entry *entries = w->entries, *spare = w->spare;
    for (int64_t i = 0; i < s->size; i++)
        entries[i].index = i;
    for (int k = s->order.count - 1; k >= 0; k--) {
        for (int64_t i = 0; i < s->size; i++)
            entries[i].key = w->keys[k][entries[i].index];
        if (s->size <= SHORT) {
            insertion_sort(entries, s->size);
        } else {
            entry *sorted = byte_sort(entries, spare, s->size);
            spare = sorted == entries ? spare : entries;
            entries = sorted;
        }
    }
    return entries;
}

/* The comparator's result for elements a and b of a line. */
static bool row_before(const sorting *s, const workspace *w, int64_t base, int64_t a, int64_t b)
{
    for (int k = 0; k < s->order.count; k++) {
        const sf_order_key *key = &s->order.keys[k];
        const sf_tensor *from = &s->in[key->operand];
        uint64_t x = w->keys[k][a], y = w->keys[k][b];
        bool nan =
            sf_is_float(from->type->dtype) && (isnan(sf_get_f64(from, base + a * s->stride)) ||
                                               isnan(sf_get_f64(from, base + b * s->stride)));
        if (x < y && (key->total || !nan))
            return true;
        if (x != y || (nan && key->stops_at_nan))
            return false;
    }
    return false;
}

static const entry *sort_rows(const sorting *s, const workspace *w, int64_t base)
{
    entry *from = w->entries, *to = w->spare;
    for (int64_t i = 0; i < s->size; i++)
        from[i].index = i;
    for (int64_t width = 1; width < s->size; width *= 2) {
        for (int64_t first = 0; first < s->size; first += 2 * width) {
            int64_t middle = first + width < s->size ? first + width : s->size;
            int64_t end = middle + width < s->size ? middle + width : s->size;
            int64_t left = first, right = middle;
            for (int64_t i = first; i < end; i++) {
                bool take_right =
                    left == middle ||
                    (right < end && row_before(s, w, base, from[right].index, from[left].index));
                to[i] = take_right ? from[right++] : from[left++];
            }
        }
        entry *merged = to;
        to = from;
        from = merged;
    }
    return from;
}

static void copy_elements(int64_t width, char *to, int64_t to_stride, const char *from,
                          int64_t from_stride, const entry *entries, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        const char *element = from + entries[i].index * from_stride * width;
        if (width == 4)
            memcpy(to + i * to_stride * 4, element, 4);
        else
            memcpy(to + i * to_stride * width, element, (size_t)width);
    }
}

static void sort_lines(void *context, int part, int64_t first, int64_t end)
{
    const sorting *s = context;
    workspace w = workspace_of(s, part);
    for (int64_t n = first; n < end; n++) {
        int64_t base = n / s->stride * s->stride * s->size + n % s->stride;
        bool lost = false;
        for (int k = 0; k < s->order.count; k++)
            lost = fill_keys(s, k, base, w.keys[k]) || lost;
        const entry *sorted = lost ? sort_rows(s, &w, base) : sort_by_keys(s, &w);
        for (int t = 0; t < s->op->noperands; t++) {
            int64_t width = sf_dtype_get(s->in[t].type->dtype)->bytes;
            copy_elements(width, (char *)s->out[t].data + base * width, s->stride,
                          (const char *)s->in[t].data + base * width, s->stride, sorted, s->size);
        }
    }
}

static int line_dim(const sf_op *op)
{
    int64_t dim = sf_op_int(op, SF_SORT_DIMENSION, -1);
    return (int)(dim < 0 ? dim + op->in[0]->rank : dim);
}

static int64_t parts_of_rows(int64_t lines, int threads)
{
    return lines < threads ? lines : threads;
}

/* The variant is the order. */
static int64_t choose_sort(const sf_op *op)
{
    sf_order order;
    return sf_order_of(op, &order) ? sf_order_number(&order) : SF_FAST_NONE;
}

static int64_t sort_scratch(const sf_op *op, int64_t variant, int threads)
{
    if (op->in[0]->count == 0)
        return 0;
    int64_t size = op->in[0]->dims[line_dim(op)];
    sf_order order = sf_order_of_number(variant);
    return parts_of_rows(op->in[0]->count / size, threads) * bytes_of_part(size, order.count);
}

static void run_sort(const sf_op *op, int64_t variant, const sf_tensor *in, sf_tensor *out,
                     void *scratch, sf_threads *threads)
{
    const sf_type *type = op->in[0];
    if (type->count == 0)
        return;
    sorting s = {.op = op, .in = in, .out = out, .stride = 1, .scratch = scratch};
    s.order = sf_order_of_number(variant);
    int dim = line_dim(op);
    s.size = type->dims[dim];
    for (int d = dim + 1; d < type->rank; d++)
        s.stride *= type->dims[d];
    s.part_bytes = bytes_of_part(s.size, s.order.count);
    sf_threads_run(threads, type->count / s.size, 1 + sf_threads_grain(threads) / s.size / 8,
                   sort_lines, &s);
}

const sf_fast sf_fast_sort = {.choose = choose_sort, .scratch = sort_scratch, .run = run_sort};

/* The k first of a line, when k is small: a sorted list that few elements get into. */
static const entry *pick_first(const sorting *s, const workspace *w)
{
    entry *best = w->entries;
    int64_t count = 0;
    for (int64_t i = 0; i < s->size; i++) {
        uint64_t key = w->keys[0][i];
        if (count == s->k && key >= best[count - 1].key)
            continue;
        int64_t at = count < s->k ? count++ : count - 1;
        for (; at > 0 && key < best[at - 1].key; at--)
            best[at] = best[at - 1];
        best[at] = (entry){key, i};
    }
    return best;
}

static void top_lines(void *context, int part, int64_t first, int64_t end)
{
    enum { FEW = 64 };
    const sorting *s = context;
    workspace w = workspace_of(s, part);
    int64_t width = sf_dtype_get(s->in[0].type->dtype)->bytes;
    for (int64_t n = first; n < end; n++) {
        fill_keys(s, 0, n * s->size, w.keys[0]);
        const entry *sorted = s->k <= FEW ? pick_first(s, &w) : sort_by_keys(s, &w);
        copy_elements(width, (char *)s->out[0].data + n * s->k * width, 1,
                      (const char *)s->in[0].data + n * s->size * width, 1, sorted, s->k);
        for (int64_t i = 0; i < s->k; i++)
            ((int32_t *)s->out[1].data)[n * s->k + i] = (int32_t)sorted[i].index;
    }
}

static int64_t last_dim(const sf_type *type)
{
    return type->dims[type->rank - 1];
}

/* Narrow floats with a code of their own for NaN are the oracle's. */
static int64_t choose_top(const sf_op *op)
{
    const sf_dtype_info *info = sf_dtype_get(op->in[0]->dtype);
    return info->class != SF_FLOAT || info->bits >= 16 ? 0 : SF_FAST_NONE;
}

static int64_t top_scratch(const sf_op *op, int64_t variant, int threads)
{
    (void)variant;
    int64_t size = last_dim(op->in[0]);
    return size == 0 ? 0 : parts_of_rows(op->in[0]->count / size, threads) * bytes_of_part(size, 1);
}

static void run_top(const sf_op *op, int64_t variant, const sf_tensor *in, sf_tensor *out,
                    void *scratch, sf_threads *threads)
{
    (void)variant;
    if (out[0].type->count == 0)
        return;
    sorting s = {.op = op, .in = in, .out = out, .stride = 1, .scratch = scratch};
    s.order = (sf_order){1, {{.descending = true, .total = true}}};
    s.size = last_dim(op->in[0]);
    s.k = last_dim(op->out[0]);
    s.part_bytes = bytes_of_part(s.size, 1);
    sf_threads_run(threads, op->in[0]->count / s.size, 1 + sf_threads_grain(threads) / s.size,
                   top_lines, &s);
}

const sf_fast sf_fast_top_k = {.choose = choose_top, .scratch = top_scratch, .run = run_top};
