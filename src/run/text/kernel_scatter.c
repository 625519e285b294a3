/* scatter: combines updates in one order in every run, without atomic operations.
 *
 * Where windows that begin at different places have no element in common, index vectors are sorted by where they begin, in a stable
 * way. Then threads go through equal parts of that order where the body is associative, so that it does not matter how many vectors
 * have one place; else one goes through all of a place. Where windows overlap, or there are few vectors, a thread has an element of
 * the result and goes through all of them.
 */
#include <inttypes.h>

#include "base/checked.h"
#include "op/op.h"
#include "op/slots.h"
#include "run/text/kernel_index.h"
#include "run/text/key_sort.h"

enum { FEW_VECTORS = 16 };

/* The updates of a scatter: windows by index vectors. */
typedef struct updates {
    sf_indexing ix;
    int n;                   /* operands that are scattered into */
    int64_t vectors, window; /* how many, and elements of each, */
    int64_t beside;          /* of which a thread has so many, beside each other in memory */
    int npoint, nwindow;
    int point[SF_MAX_RANK],
        along[SF_MAX_RANK]; /* dims of the updates that pick a vector; and the others */
    int64_t point_dims[SF_MAX_RANK], along_dims[SF_MAX_RANK];
} updates;

static updates updates_of(const sf_op *op)
{
    updates u = {.n = (op->noperands - 1) / 2, .vectors = 1, .window = 1, .beside = 1};
    u.ix = sf_indexing_get(op, op->in[0], op->in[u.n]);
    const sf_type *type = op->in[u.n + 1];
    for (int p = 0; p < type->rank; p++) {
        if (u.ix.indices_of[p] >= 0) {
            u.point[u.npoint] = p;
            u.point_dims[u.npoint++] = type->dims[p];
            u.vectors *= type->dims[p];
        } else {
            u.along[u.nwindow] = p;
            u.along_dims[u.nwindow++] = type->dims[p];
            u.window *= type->dims[p];
        }
    }
    return u;
}

static int64_t window_size(const sf_op *op, const updates *u, int d)
{
    int p = u->ix.window_of[d];
    return p >= 0 ? op->in[u->n + 1]->dims[p] : 1;
}

/* Windows that begin at different places have nothing in common. */
static bool windows_are_apart(const sf_op *op, const updates *u)
{
    for (int d = 0; d < u->ix.operand_rank; d++)
        if (u->ix.start_of[d] >= 0 && window_size(op, u, d) != 1 &&
            window_size(op, u, d) != op->in[0]->dims[d])
            return false;
    return true;
}

/* w0, w1, ... of the vector `from`; those along the window are 0 unless they are given. */
static void put_vector(sf_calling *c, const updates *u, const char *from, const char *window)
{
    sf_put_index(c, "v", from, u->npoint, u->point_dims);
    for (int i = 0; i < u->npoint; i++)
        SF_PUT(c, "%s w%d = v%d;\n", c->index, u->point[i], i);
    if (window)
        sf_put_index(c, "x", window, u->nwindow, u->along_dims);
    for (int i = 0; i < u->nwindow; i++) {
        SF_PUT(c, "%s w%d = ", c->index, u->along[i]);
        if (window)
            SF_PUT(c, "x%d;\n", i);
        else
            SF_PUT(c, "0; (void)w%d;\n", u->along[i]);
    }
}

/* Whether the window lies inside as a whole: `fits`. */
static void put_fits(sf_calling *c, const updates *u)
{
    SF_PUT(c, "int fits = 1");
    for (int d = 0; d < u->ix.operand_rank; d++)
        if (u->ix.batch_of[d] < 0)
            SF_PUT(c, " && s%d >= 0 && s%d <= %" PRId64, d, d,
                   c->op->in[0]->dims[d] - window_size(c->op, u, d));
    SF_PUT(c, ";\n");
}

/* aI = body(aI, update `from`), for all operands I. */
static void put_body(sf_calling *c, const updates *u, const char *from)
{
    const sf_op *op = c->op;
    sf_monoid monoid = op->attrs[SF_SCATTER_BODY] ? (sf_monoid)op->attrs[SF_SCATTER_BODY]->integer
                                                  : SF_MONOID_NONE;
    SF_PUT(c, "{\n");
    for (int i = 0; i < u->n; i++)
        SF_PUT(c, "%s b%d = WLOAD(%s, p%d, %s);\n", sf_word_type(op->in[i]->dtype), i,
               sf_type_name(op->in[i]->dtype), u->n + 1 + i, from);
    if (monoid != SF_MONOID_NONE) {
        SF_PUT(c, "a0 = ");
        sf_put_monoid(c->out, monoid, op->in[0]->dtype, "a0", "b0");
        SF_PUT(c, ";\n}\n");
        return;
    }
    sf_value_name names[2 * 16];
    const char *arguments[2 * 16];
    for (int i = 0; i < 2 * u->n; i++) {
        snprintf(names[i].at, sizeof names[i].at, "%c%d", i < u->n ? 'a' : 'b', i % u->n);
        arguments[i] = names[i].at;
    }
    sf_put_block(c->out, op->graph, op->regions[0], "t", arguments);
    for (int i = 0; i < u->n; i++)
        SF_PUT(c, "%s n%d = %s;\n", sf_word_type(op->in[i]->dtype), i,
               sf_name_value("t", op->regions[0]->results[i]).at);
    for (int i = 0; i < u->n; i++)
        SF_PUT(c, "a%d = n%d;\n", i, i);
    SF_PUT(c, "}\n");
}

static void put_accumulators(sf_calling *c, const updates *u, bool load, const char *at)
{
    for (int i = 0; i < u->n; i++) {
        const char *type = sf_type_name(c->op->in[i]->dtype);
        if (load)
            SF_PUT(c, "%s a%d = WLOAD(%s, p%u, %s);\n", sf_word_type(c->op->in[i]->dtype), i, type,
                   c->inst->nin + (uint32_t)i, at);
        else
            SF_PUT(c, "WSTORE(%s, p%u, %s, a%d);\n", type, c->inst->nin + (uint32_t)i, at, i);
    }
}

/* A thread has an element and looks at all windows. */
static void write_by_element(sf_calling *c, const updates *u)
{
    const sf_type *type = c->op->in[0], *update = c->op->in[u->n + 1];
    sf_write_views(c->w, c->inst);
    sf_call_begin(c, type->count);
    sf_put_captured(c, "t");
    sf_put_index(c, "o", "at", type->rank, type->dims);
    put_accumulators(c, u, true, "at");
    SF_PUT(c, "int any = 0;\nfor (%s n = 0; n < (%s)%" PRId64 "; n++) {\n", c->index, c->index,
           u->vectors);
    put_vector(c, u, "n", NULL);
    sf_put_window_starts(c, &u->ix, u->n);
    put_fits(c, u);
    for (int d = 0; d < type->rank; d++) {
        SF_PUT(c, "fits = fits && o%d >= s%d && o%d < s%d + %" PRId64 ";\n", d, d, d, d,
               window_size(c->op, u, d));
        if (u->ix.window_of[d] >= 0)
            SF_PUT(c, "w%d = (%s)(o%d - s%d);\n", u->ix.window_of[d], c->index, d, d);
    }
    SF_PUT(c, "if (!fits) continue;\nany = 1;\ns64 from = ");
    sf_put_flat(c, "w", update->rank, update->dims);
    SF_PUT(c, ";\n");
    put_body(c, u, "from");
    SF_PUT(c, "}\nif (!any) continue;\n");
    put_accumulators(c, u, false, "at");
    sf_call_end(c, type->count);
}

/* Vectors sorted by where their windows begin. The places where they may are counted, along dims that vectors index and those of
 * batches: `dims` of the operand, of so many places each. */
typedef struct places {
    int n, dims[SF_MAX_RANK];
    int64_t sizes[SF_MAX_RANK], count; /* one past the last is for windows that do not fit */
    int64_t sorted; /* in scratch memory: keys and numbers (run/text/key_sort.h) */
} places;

static places places_of(const sf_op *op, const updates *u)
{
    places p = {.count = 1};
    for (int d = 0; d < u->ix.operand_rank; d++) {
        if (u->ix.batch_of[d] < 0 && u->ix.start_of[d] < 0)
            continue;
        p.dims[p.n] = d;
        p.sizes[p.n] = op->in[0]->dims[d] - window_size(op, u, d) + 1;
        p.count *= p.sizes[p.n++];
    }
    return p;
}

static void sort_vectors(sf_calling *c, const updates *u, places *p)
{
    int64_t elements = sf_write_scratch(c->w, u->vectors * 8);
    sf_write_views(c->w, c->inst);
    int key = sf_write_param(c->w, (sf_param){.kind = SF_PARAM_SCRATCH, .value = elements});
    sf_call_begin(c, u->vectors);
    put_vector(c, u, "at", NULL);
    sf_put_window_starts(c, &u->ix, u->n);
    put_fits(c, u);
    SF_PUT(c, "u64 place = 0;\n");
    for (int i = 0; i < p->n; i++)
        SF_PUT(c, "place = place * %" PRId64 "ull + (u64)s%d;\n", p->sizes[i], p->dims[i]);
    SF_PUT(c, "AT(u64, p%d, at) = (fits ? place : %" PRId64 "ull) << %d | (u64)at;\n", key,
           p->count, SF_KEY_SHIFT);
    sf_call_end(c, u->vectors);
    p->sorted = sf_key_sort(c, u->vectors, p->count + 1, elements);
}

/* Names for what is sorted: the vector at place `i` in the order, and where its window begins, NONE where it does not fit. */
static void put_sorted(sf_calling *c, const places *p, int param)
{
    SF_PUT(c,
           "#define VECTOR(i) ((s64)(AT(const u64, p%d, i) & %" PRId64 "))\n"
           "#define PLACE(i) ((s64)(AT(const u64, p%d, i) >> %d))\nconst s64 NONE = %" PRId64
           "; (void)NONE;\n",
           param, ((int64_t)1 << SF_KEY_SHIFT) - 1, param, SF_KEY_SHIFT, p->count);
}

static void end_sorted(sf_calling *c)
{
    SF_PUT(c, "#undef VECTOR\n#undef PLACE\n");
}

/* Declares `to`, the element at x0, x1, ... in the window of the operand that begins at `place`. */
static void put_target(sf_calling *c, const updates *u, const places *p)
{
    const sf_type *type = c->op->in[0];
    int64_t stride = 1, strides[SF_MAX_RANK];
    for (int d = type->rank - 1; d >= 0; d--) {
        strides[d] = stride;
        stride *= type->dims[d];
    }
    SF_PUT(c, "s64 to = 0, rest = place;\n");
    for (int i = p->n - 1; i >= 0; i--)
        SF_PUT(c, "to += rest %% %" PRId64 " * %" PRId64 "; rest /= %" PRId64 ";\n", p->sizes[i],
               strides[p->dims[i]], p->sizes[i]);
    for (int i = 0; i < u->nwindow; i++)
        for (int d = 0; d < type->rank; d++)
            if (u->ix.window_of[d] == u->along[i])
                SF_PUT(c, "to += (s64)x%d * %" PRId64 ";\n", i, strides[d]);
}

/* Declares `from`, the element of the updates at x0, x1, ... in the window of the vector at place `n` in the order. */
static void put_source(sf_calling *c, const updates *u)
{
    const sf_type *update = c->op->in[u->n + 1];
    for (int i = 0; i < u->nwindow; i++)
        SF_PUT(c, "%s w%d = x%d;\n", c->index, u->along[i], i);
    sf_put_index(c, "v", "VECTOR(n)", u->npoint, u->point_dims);
    for (int i = 0; i < u->npoint; i++)
        SF_PUT(c, "%s w%d = v%d;\n", c->index, u->point[i], i);
    SF_PUT(c, "s64 from = ");
    sf_put_flat(c, "w", update->rank, update->dims);
    SF_PUT(c, ";\n");
}

/* Threads for the elements of windows of so many vectors, or parts of them: `first`, and x0, x1, ... in the window. */
static void begin_windows(sf_calling *c, const updates *u, int64_t count)
{
    sf_call_begin(c, count * (u->window / u->beside));
    SF_PUT(c,
           "s64 first = (s64)at / %" PRId64 ";\n%s part = (%s)((s64)at %% %" PRId64 ") * %" PRId64
           ";\n(void)part;\n",
           u->window / u->beside, c->index, c->index, u->window / u->beside, u->beside);
    sf_put_captured(c, "t");
    sf_put_index(c, "x", "part", u->nwindow, u->along_dims);
}

static void end_windows(sf_calling *c, const updates *u, int64_t count)
{
    sf_call_end(c, count * (u->window / u->beside));
}

/* Any body: the first of the vectors with a place goes through all of them. */
static void write_in_order(sf_calling *c, const updates *u, const places *p)
{
    sf_write_views(c->w, c->inst);
    int sorted = sf_write_param(c->w, (sf_param){.kind = SF_PARAM_SCRATCH, .value = p->sorted});
    begin_windows(c, u, u->vectors);
    put_sorted(c, p, sorted);
    SF_PUT(c, "s64 place = PLACE(first);\n"
              "if (place == NONE || (first > 0 && PLACE(first - 1) == place)) continue;\n");
    put_target(c, u, p);
    put_accumulators(c, u, true, "to");
    SF_PUT(c, "for (s64 n = first; n < %" PRId64 " && PLACE(n) == place; n++) {\n", u->vectors);
    put_source(c, u);
    put_body(c, u, "from");
    SF_PUT(c, "}\n");
    put_accumulators(c, u, false, "to");
    end_sorted(c);
    end_windows(c, u, u->vectors);
}

/* A sum of updates that wait for more at the same place, and where that is. The first level has the updates themselves; the next has
 * what was left over where parts of the order end in the midst of a place: two sums for each part. */
typedef struct level {
    int64_t count;
    bool is_first;
    /* In scratch memory. Twice a place, and one more where there is no sum, in the midst of a place; of the first level, the order. */
    int64_t places, sums;
} level;

/* The elements that a thread has beside each other: a PACK, moved as a whole. */
static void put_pack(sf_calling *c, const updates *u)
{
    SF_PUT(c,
           "typedef union {\nmoved_%d all;\nraw_%s each[%" PRId64 "];\n} pack;\nenum { BESIDE = "
           "%" PRId64 " };\n",
           sf_call_width(c->op->in[0]) * (int)u->beside, sf_type_name(c->op->in[0]->dtype),
           u->beside, u->beside);
}

/* WHAT = the pack of parameter `from` with element `at`. */
static void put_load(sf_calling *c, const updates *u, const char *what, int from, const char *at)
{
    SF_PUT(c, "%s.all = AT(const moved_%d, p%d, (%s) / BESIDE);\n", what,
           sf_call_width(c->op->in[0]) * (int)u->beside, from, at);
}

static void put_store(sf_calling *c, const updates *u, const char *what, int to, const char *at)
{
    SF_PUT(c, "AT(moved_%d, p%d, (%s) / BESIDE) = %s.all;\n",
           sf_call_width(c->op->in[0]) * (int)u->beside, to, at, what);
}

/* For each K of the pack: A = body(A, B), words of its kind. */
static void put_combined(sf_calling *c, const char *a, const char *b)
{
    SF_PUT(c, "%s = ", a);
    sf_put_monoid(c->out, (sf_monoid)c->op->attrs[SF_SCATTER_BODY]->integer, c->op->in[0]->dtype, a,
                  b);
    SF_PUT(c, ";\n");
}

/* The result at `place` is combined with the sum. */
static void put_result(sf_calling *c, const updates *u, const places *p)
{
    const char *type = sf_type_name(c->op->in[0]->dtype);
    int result = (int)c->inst->nin;
    SF_PUT(c, "{\npack all;\n");
    put_target(c, u, p);
    put_load(c, u, "all", result, "to");
    SF_PUT(c, "UNROLL for (int k = 0; k < BESIDE; k++) {\n%s word = wget_%s(all.each[k]);\n",
           sf_word_type(c->op->in[0]->dtype), type);
    put_combined(c, "word", "sum[k]");
    SF_PUT(c, "all.each[k] = wput_%s(word);\n}\n", type);
    put_store(c, u, "all", result, "to");
    SF_PUT(c, "}\n");
}

/* Loads some at once: where they are, what they are and whether they have none. So loads that are far apart in memory are in flight
 * at the same time. */
static void put_loads(sf_calling *c, const updates *u, const level *l, int at, int sums)
{
    SF_PUT(c,
           "UNROLL for (int j = 0; j < BATCH; j++) {\ns64 n = some + j;\nif (n >= end) break;\n");
    SF_PUT(c, "next[j] = PLACE(n);\n");
    if (l->is_first) {
        put_source(c, u);
        SF_PUT(c, "bare[j] = 0;\n");
        put_load(c, u, "added[j]", u->n + 1, "from");
    } else {
        char from[64];
        snprintf(from, sizeof from, "n * %" PRId64 " + part", u->window);
        SF_PUT(c, "bare[j] = (int)(AT(const s64, p%d, n) & 1);\n", at);
        put_load(c, u, "added[j]", sums, from);
    }
    SF_PUT(c, "}\n");
}

/* Keeps the sum for the next level, as number `which` of the two of this part. */
static void put_kept(sf_calling *c, const updates *u, int which, int to_sums)
{
    char to[64];
    snprintf(to, sizeof to, "(2 * first + %d) * %" PRId64 " + part", which, u->window);
    SF_PUT(c,
           "if (has) {\npack kept;\nUNROLL for (int k = 0; k < BESIDE; k++) kept.each[k] = "
           "wput_%s(sum[k]);\n",
           sf_type_name(c->op->in[0]->dtype));
    put_store(c, u, "kept", to_sums, to);
    SF_PUT(c, "}\n");
}

/* A thread goes through a part of the order and adds up what is at the same place. What it has of a place that begins in an earlier
 * part, or goes on in the next, is for the next level. */
static void write_level(sf_calling *c, const updates *u, const places *p, const level *l,
                        int64_t size, level *next)
{
    int64_t parts = (l->count + size - 1) / size;
    const char *type = sf_type_name(c->op->in[0]->dtype), *word = sf_word_type(c->op->in[0]->dtype);
    bool is_last = parts == 1;
    *next = (level){.count = 2 * parts};
    if (!is_last) {
        next->places = sf_write_scratch(c->w, next->count * 8);
        next->sums = sf_write_scratch(c->w, next->count * u->window * sf_call_width(c->op->in[0]));
    }
    sf_write_views(c->w, c->inst);
    sf_param scratch = {.kind = SF_PARAM_SCRATCH};
    scratch.value = l->places;
    int at = sf_write_param(c->w, scratch), sums = -1, to = -1, to_sums = -1;
    if (!l->is_first) {
        scratch.value = l->sums;
        sums = sf_write_param(c->w, scratch);
    }
    if (!is_last) {
        scratch.value = next->places;
        to = sf_write_param(c->w, scratch);
        scratch.value = next->sums;
        to_sums = sf_write_param(c->w, scratch);
    }
    begin_windows(c, u, parts);
    if (l->is_first)
        put_sorted(c, p, at);
    else
        SF_PUT(c, "#define PLACE(i) (AT(const s64, p%d, i) >> 1)\nconst s64 NONE = %" PRId64 ";\n",
               at, p->count);
    SF_PUT(c,
           "enum { BATCH = 4 };\ns64 begin = first * %" PRId64 ", end = begin + %" PRId64
           "; end = end < %" PRId64 " ? end : %" PRId64 ";\n",
           size, size, l->count, l->count);
    SF_PUT(c,
           "s64 earlier = begin > 0 ? PLACE(begin - 1) : NONE, later = end < %" PRId64
           " ? PLACE(end) : NONE;\n",
           l->count);
    put_pack(c, u);
    SF_PUT(c,
           "s64 place = NONE, head = -1, tail = -1;\nint is_head = 1, has = 0;\n%s sum[BESIDE];\n",
           word);
    SF_PUT(c, "for (s64 some = begin; some <= end; some += BATCH) {\ns64 next[BATCH];\n"
              "int bare[BATCH];\npack added[BATCH];\n");
    put_loads(c, u, l, at, sums);
    SF_PUT(c,
           "UNROLL for (int j = 0; j < BATCH; j++) {\nif (some + j > end) break;\n"
           "int is_end = some + j == end;\nif (!is_end && next[j] == place) {\n"
           "if (bare[j]) continue;\nUNROLL for (int k = 0; k < BESIDE; k++) {\n"
           "%s word = wget_%s(added[j].each[k]);\nif (has) ",
           word, type);
    put_combined(c, "sum[k]", "word");
    SF_PUT(c, "else sum[k] = word;\n}\nhas = 1;\ncontinue;\n}\n");
    SF_PUT(c, "if (place != NONE) {\nint goes_on = is_end && place == later;\n");
    if (is_last) {
        SF_PUT(c, "(void)goes_on; (void)head; (void)tail; (void)is_head; (void)earlier;\n");
    } else {
        SF_PUT(c, "if (is_head && place == earlier) {\nhead = place * 2 + !has;\n"
                  "if (goes_on) tail = place * 2 + 1;\n");
        put_kept(c, u, 0, to_sums);
        SF_PUT(c, "} else if (goes_on) {\ntail = place * 2 + !has;\n");
        put_kept(c, u, 1, to_sums);
        SF_PUT(c, "} else ");
    }
    SF_PUT(c, "if (has) ");
    put_result(c, u, p);
    SF_PUT(c,
           "is_head = 0;\n}\nif (is_end) break;\nplace = next[j];\nhas = !bare[j];\n"
           "UNROLL for (int k = 0; k < BESIDE; k++) sum[k] = wget_%s(added[j].each[k]);\n"
           "is_head = is_head && some + j == begin;\n}\n}\n",
           type);
    if (!is_last)
        SF_PUT(c,
               "if (part == 0) {\nAT(s64, p%d, 2 * first) = head < 0 ? NONE * 2 : head;\n"
               "AT(s64, p%d, 2 * first + 1) = tail < 0 ? NONE * 2 : tail;\n}\n",
               to, to);
    if (l->is_first)
        end_sorted(c);
    else
        SF_PUT(c, "#undef PLACE\n");
    end_windows(c, u, parts);
}

/* So many vectors a part that there are threads enough. */
static int64_t size_of_parts(const updates *u)
{
    enum { LEAST = 16, MOST = 256, THREADS = 1 << 18 };
    int64_t size = u->vectors * (u->window / u->beside) / THREADS;
    return size < LEAST ? LEAST : size > MOST ? MOST : size;
}

/* A body that is associative. */
static void write_by_parts(sf_calling *c, const updates *u, const places *p)
{
    enum { LATER = 32 };
    level now = {.count = u->vectors, .is_first = true, .places = p->sorted}, next;
    int64_t size = size_of_parts(u);
    for (bool more = true; more; now = next, size = LATER) {
        more = now.count > size;
        write_level(c, u, p, &now, size, &next);
    }
}

/* How many elements of a window lie beside each other wherever it is, in the updates and in the result. */
static int64_t elements_beside(const sf_calling *c, const updates *u)
{
    enum { BYTES = 16, MOST = 8 };
    const sf_type *type = c->op->in[0], *update = c->op->in[u->n + 1];
    int last = type->rank - 1;
    if (last < 0 || u->ix.window_of[last] != update->rank - 1 || u->ix.start_of[last] >= 0)
        return 1;
    int64_t run = sf_gcd(type->dims[last], update->dims[update->rank - 1]);
    run = sf_gcd(run, sf_gcd(c->inst->in[u->n + 1].offset, c->inst->out[0].offset));
    int64_t beside = BYTES / sf_call_width(type);
    return sf_gcd(run, beside < MOST ? beside : MOST);
}

static bool is_associative(const sf_op *op)
{
    return op->attrs[SF_SCATTER_BODY] &&
           (sf_monoid)op->attrs[SF_SCATTER_BODY]->integer != SF_MONOID_NONE;
}

bool sf_call_scatter(sf_calling *c)
{
    updates u = updates_of(c->op);
    places p = places_of(c->op, &u);
    if (u.n > 16)
        return false;
    for (int i = 0; i < u.n; i++)
        sf_call_copy_first(c, (uint32_t)i);
    if (c->op->in[0]->count == 0 || c->op->in[u.n + 1]->count == 0)
        return true;
    if (u.vectors <= FEW_VECTORS || !windows_are_apart(c->op, &u) || u.vectors > INT32_MAX ||
        p.count >= (int64_t)1 << SF_MOST_KEY_BITS) {
        write_by_element(c, &u);
        return true;
    }
    sort_vectors(c, &u, &p);
    if (is_associative(c->op))
        u.beside = elements_beside(c, &u);
    (is_associative(c->op) ? write_by_parts : write_in_order)(c, &u, &p);
    return true;
}
