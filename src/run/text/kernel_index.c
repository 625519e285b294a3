/* gather and scatter.
 *
 * A gather has a thread for each element of the result. A scatter combines updates in the order of their index vectors,
 * in every run, without atomic operations. Where windows that begin at different places have no element in common, index
 * vectors are sorted by where they begin, in a stable way, and for each place a thread an element goes through its
 * updates. Otherwise, or where there are few vectors, a thread has an element of the result and goes through all of them.
 */
#include <inttypes.h>

#include "op/indexing.h"
#include "op/op.h"
#include "op/slots.h"
#include "run/text/library_kernel.h"
#include "run/text/merge_sort.h"

enum { FEW_VECTORS = 16 };

/* Declares s0, s1, ...: where the window of windowed index w0, w1, ... begins. */
static void put_starts(sf_calling *c, const sf_indexing *ix, int indices)
{
    const sf_type *type = c->op->in[indices];
    int64_t stride = 1, vector_stride = 0;
    SF_PUT(c, "s64 vector = 0");
    for (int q = ix->indices_rank - 1; q >= 0; q--) {
        if (q == ix->vector_dim)
            vector_stride = stride;
        else
            SF_PUT(c, " + (s64)w%d * %" PRId64, ix->windowed_of[q], stride);
        stride *= type->dims[q];
    }
    SF_PUT(c, "; (void)vector;\n");
    for (int d = 0; d < ix->operand_rank; d++) {
        SF_PUT(c, "s64 s%d = ", d);
        if (ix->batch_of[d] >= 0)
            SF_PUT(c, "w%d;\n", ix->windowed_of[ix->batch_of[d]]);
        else if (ix->start_of[d] >= 0)
            SF_PUT(c, "WLOAD(%s, p%d, vector + %" PRId64 ");\n", sf_type_name(type->dtype), indices,
                   ix->start_of[d] * vector_stride);
        else
            SF_PUT(c, "0;\n");
        if (ix->batch_of[d] < 0 && sf_is_unsigned(type->dtype))
            SF_PUT(c, "s%d = s%d < 0 ? (s64)~SIGN64 : s%d;\n", d, d, d);
    }
}

bool sf_call_gather(sf_calling *c)
{
    const sf_op *op = c->op;
    const sf_type *operand = op->in[0], *type = op->out[0];
    sf_indexing ix = sf_indexing_get(op, operand, op->in[1]);
    sf_ints sizes = sf_op_ints(op, SF_GATHER_SIZES);
    int width = sf_dtype_get(type->dtype)->bytes;
    sf_write_views(c->w, c->inst);
    sf_call_begin(c, type->count);
    if (operand->count == 0) {
        SF_PUT(c, "AT(moved_%d, p2, at) = 0;\n", width);
        sf_call_end(c, type->count);
        return true;
    }
    sf_put_index(c, "w", "at", type->rank, type->dims);
    put_starts(c, &ix, 1);
    for (int d = 0; d < operand->rank; d++) {
        int64_t last = operand->dims[d] - sizes.at[d];
        if (ix.batch_of[d] < 0)
            SF_PUT(c, "s%d = s%d < 0 ? 0 : s%d > %" PRId64 " ? %" PRId64 " : s%d;\n", d, d, d, last,
                   last, d);
        if (ix.window_of[d] >= 0)
            SF_PUT(c, "s%d += w%d;\n", d, ix.window_of[d]);
    }
    SF_PUT(c, "AT(moved_%d, p2, at) = AT(const moved_%d, p0, ", width, width);
    sf_put_flat(c, "s", operand->rank, operand->dims);
    SF_PUT(c, ");\n");
    sf_call_end(c, type->count);
    return true;
}

/* The updates of a scatter: windows by index vectors. */
typedef struct updates {
    sf_indexing ix;
    int n;                   /* operands that are scattered into */
    int64_t vectors, window; /* how many, and elements of each */
    int npoint, nwindow;
    int point[SF_MAX_RANK],
        along[SF_MAX_RANK]; /* dims of the updates that pick a vector; and the others */
    int64_t point_dims[SF_MAX_RANK], along_dims[SF_MAX_RANK];
} updates;

static updates updates_of(const sf_op *op)
{
    updates u = {.n = (op->noperands - 1) / 2, .vectors = 1, .window = 1};
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
    put_starts(c, &u->ix, u->n);
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

/* Keys: where the window of each vector begins in the operand, or one past all where it does not fit. */
static void write_keys(sf_calling *c, const updates *u, int64_t keys)
{
    const sf_type *type = c->op->in[0];
    sf_write_views(c->w, c->inst);
    int key = sf_write_param(c->w, (sf_param){.kind = SF_PARAM_SCRATCH, .value = keys});
    sf_call_begin(c, u->vectors);
    put_vector(c, u, "at", NULL);
    put_starts(c, &u->ix, u->n);
    put_fits(c, u);
    SF_PUT(c, "AT(s64, p%d, at) = fits ? (s64)(", key);
    sf_put_flat(c, "s", type->rank, type->dims);
    SF_PUT(c, ") : %" PRId64 "ll;\n", type->count);
    sf_call_end(c, u->vectors);
}

/* The first of the vectors with a key goes through all of them, with a thread for each element of the window. */
static void write_runs(sf_calling *c, const updates *u, int64_t keys, int64_t order)
{
    const sf_type *type = c->op->in[0], *update = c->op->in[u->n + 1];
    sf_write_views(c->w, c->inst);
    int key = sf_write_param(c->w, (sf_param){.kind = SF_PARAM_SCRATCH, .value = keys});
    int sorted = sf_write_param(c->w, (sf_param){.kind = SF_PARAM_SCRATCH, .value = order});
    const char *index = c->index;
    sf_call_begin(c, u->vectors * u->window);
    SF_PUT(c, "#define KEY(i) AT(const s64, p%d, AT(const s32, p%d, i))\n", key, sorted);
    SF_PUT(c, "%s first = at / (%s)%" PRId64 ", part = at %% (%s)%" PRId64 ";\n(void)part;\n",
           index, index, u->window, index, u->window);
    SF_PUT(c, "s64 place = KEY(first);\n");
    SF_PUT(c, "if (place == %" PRId64 "ll || (first > 0 && KEY(first - 1) == place)) continue;\n",
           type->count);
    sf_put_captured(c, "t");
    /* The element of the operand: where the window begins, and where this is in it. */
    sf_put_index(c, "x", "part", u->nwindow, u->along_dims);
    SF_PUT(c, "s64 to = place");
    int64_t stride = 1, strides[SF_MAX_RANK];
    for (int d = type->rank - 1; d >= 0; d--) {
        strides[d] = stride;
        stride *= type->dims[d];
    }
    for (int i = 0; i < u->nwindow; i++)
        for (int d = 0; d < type->rank; d++)
            if (u->ix.window_of[d] == u->along[i])
                SF_PUT(c, " + (s64)x%d * %" PRId64, i, strides[d]);
    SF_PUT(c, ";\n");
    put_accumulators(c, u, true, "to");
    /* Its end is known before the loop, so that loads that are far apart in memory are in flight at
     * the same time. Most are short: steps become longer until one is beyond it. */
    SF_PUT(c, "%s count = (%s)%" PRId64 ", end = first + 1, past = end, step = 1;\n", index, index,
           u->vectors);
    SF_PUT(c, "while (past < count && KEY(past) == place) { end = past + 1; past += step; "
              "step *= 2; }\npast = past < count ? past : count;\n");
    SF_PUT(c, "while (end < past) {\n%s half = end + (past - end) / 2;\n", index);
    SF_PUT(c, "if (KEY(half) == place) end = half + 1; else past = half;\n}\n");
    SF_PUT(c, "UNROLL_SOME for (%s n = first; n < end; n++) {\n", index);
    for (int i = 0; i < u->nwindow; i++)
        SF_PUT(c, "%s w%d = x%d;\n", index, u->along[i], i);
    char vector[32];
    snprintf(vector, sizeof vector, "AT(const s32, p%d, n)", sorted);
    sf_put_index(c, "v", vector, u->npoint, u->point_dims);
    for (int i = 0; i < u->npoint; i++)
        SF_PUT(c, "%s w%d = v%d;\n", index, u->point[i], i);
    SF_PUT(c, "s64 from = ");
    sf_put_flat(c, "w", update->rank, update->dims);
    SF_PUT(c, ";\n");
    put_body(c, u, "from");
    SF_PUT(c, "}\n");
    put_accumulators(c, u, false, "to");
    SF_PUT(c, "#undef KEY\n");
    sf_call_end(c, u->vectors * u->window);
}

static void put_less_key(sf_calling *c, const char *a, const char *b, const char *result,
                         const void *context)
{
    (void)context;
    SF_PUT(c, "int %s = AT(const s64, p2, %s) < AT(const s64, p2, %s);\n", result, a, b);
}

bool sf_call_scatter(sf_calling *c)
{
    updates u = updates_of(c->op);
    if (u.n > 16)
        return false;
    for (int i = 0; i < u.n; i++)
        sf_call_copy_first(c, (uint32_t)i);
    if (c->op->in[0]->count == 0 || c->op->in[u.n + 1]->count == 0)
        return true;
    if (u.vectors <= FEW_VECTORS || !windows_are_apart(c->op, &u) || u.vectors > INT32_MAX) {
        write_by_element(c, &u);
        return true;
    }
    int64_t keys = sf_write_scratch(c->w, u.vectors * 8);
    write_keys(c, &u, keys);
    sf_param key = {.kind = SF_PARAM_SCRATCH, .value = keys};
    int64_t order = sf_merge_sort(c, 1, u.vectors, 1, &key, put_less_key, NULL);
    write_runs(c, &u, keys, order);
    return true;
}
