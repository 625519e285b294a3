/* Calls in which each thread folds the operands of one element of the result: reduce,
 * reduce_window, select_and_scatter, and products of types that no library multiplies. */
#include <inttypes.h>
#include <string.h>

#include "op/op.h"
#include "op/slots.h"
#include "op/window/sliding.h"
#include "run/text/library_kernel.h"
#include "run/text/text_product.h"

enum { MOST_FOLDED = 16 };

static sf_monoid monoid_in(const sf_op *op, int slot)
{
    return op->attrs[slot] ? (sf_monoid)op->attrs[slot]->integer : SF_MONOID_NONE;
}

/* a0, a1, ... = body(a..., b...). */
static void put_fold(sf_calling *c, sf_monoid monoid, int count, int region)
{
    const sf_op *op = c->op;
    if (monoid != SF_MONOID_NONE) {
        SF_PUT(c, "a0 = ");
        sf_put_monoid(c->out, monoid, op->in[0]->dtype, "a0", "b0");
        SF_PUT(c, ";\n");
        return;
    }
    sf_value_name names[2 * MOST_FOLDED];
    const char *arguments[2 * MOST_FOLDED];
    for (int i = 0; i < 2 * count; i++) {
        snprintf(names[i].at, sizeof names[i].at, "%c%d", i < count ? 'a' : 'b', i % count);
        arguments[i] = names[i].at;
    }
    const sf_block *block = op->regions[region];
    SF_PUT(c, "{\n");
    sf_put_block(c->out, op->graph, block, "t", arguments);
    for (int i = 0; i < count; i++)
        SF_PUT(c, "%s n%d = %s;\n", sf_word_type(op->in[i]->dtype), i,
               sf_name_value("t", block->results[i]).at);
    for (int i = 0; i < count; i++)
        SF_PUT(c, "a%d = n%d;\n", i, i);
    SF_PUT(c, "}\n");
}

/* Initial values are operands from `count` on. */
static void put_initial(sf_calling *c, int count)
{
    for (int i = 0; i < count; i++)
        SF_PUT(c, "%s a%d = WLOAD(%s, p%d, 0);\n", sf_word_type(c->op->in[i]->dtype), i,
               sf_type_name(c->op->in[i]->dtype), count + i);
}

static void put_elements(sf_calling *c, int count, const char *at)
{
    for (int i = 0; i < count; i++)
        SF_PUT(c, "%s b%d = WLOAD(%s, p%d, %s);\n", sf_word_type(c->op->in[i]->dtype), i,
               sf_type_name(c->op->in[i]->dtype), i, at);
}

static void put_results(sf_calling *c, int count)
{
    for (int i = 0; i < count; i++)
        SF_PUT(c, "WSTORE(%s, p%u, at, a%d);\n", sf_type_name(c->op->in[i]->dtype),
               c->inst->nin + (uint32_t)i, i);
}

bool sf_call_reduce(sf_calling *c)
{
    const sf_op *op = c->op;
    int count = op->nresults, nkept = 0, nreduced = 0;
    const sf_type *type = op->in[0];
    sf_ints reduced = sf_op_ints(op, SF_REDUCE_DIMENSIONS);
    int64_t kept_dims[SF_MAX_RANK], reduced_dims[SF_MAX_RANK], kept[SF_MAX_RANK], over[SF_MAX_RANK];
    int64_t stride = 1, strides[SF_MAX_RANK], folded = 1;
    if (count > MOST_FOLDED)
        return false;
    for (int d = type->rank - 1; d >= 0; d--) {
        strides[d] = stride;
        stride *= type->dims[d];
    }
    for (int d = 0; d < type->rank; d++) {
        bool is_reduced = false;
        for (int i = 0; i < reduced.count; i++)
            is_reduced = is_reduced || reduced.at[i] == d;
        if (is_reduced) {
            over[nreduced] = strides[d];
            folded *= type->dims[d];
            reduced_dims[nreduced++] = type->dims[d];
        } else {
            kept[nkept] = strides[d];
            kept_dims[nkept++] = type->dims[d];
        }
    }
    sf_write_views(c->w, c->inst);
    sf_call_begin(c, op->out[0]->count);
    sf_put_captured(c, "t");
    sf_put_index(c, "o", "at", nkept, kept_dims);
    SF_PUT(c, "s64 base = 0");
    for (int i = 0; i < nkept; i++)
        SF_PUT(c, " + (s64)o%d * %" PRId64, i, kept[i]);
    SF_PUT(c, ";\n");
    put_initial(c, count);
    SF_PUT(c, "for (%s n = 0; n < (%s)%" PRId64 "; n++) {\n", c->index, c->index, folded);
    sf_put_index(c, "r", "n", nreduced, reduced_dims);
    SF_PUT(c, "s64 from = base");
    for (int i = 0; i < nreduced; i++)
        SF_PUT(c, " + (s64)r%d * %" PRId64, i, over[i]);
    SF_PUT(c, ";\n");
    put_elements(c, count, "from");
    put_fold(c, monoid_in(op, SF_REDUCE_BODY), count, 0);
    SF_PUT(c, "}\n");
    put_results(c, count);
    sf_call_end(c, op->out[0]->count);
    return true;
}

/* Declares i0, i1, ...: the element of window o... at w..., and `seen`: none of it is padding. */
static void put_seen(sf_calling *c, int rank, const sf_sliding *windows)
{
    SF_PUT(c, "int seen = 1;\n");
    for (int d = 0; d < rank; d++)
        SF_PUT(c,
               "s64 i%d = (s64)o%d * %" PRId64 " + (s64)w%d * %" PRId64 " - (%" PRId64
               "ll); seen = seen && i%d >= 0 && i%d %% %" PRId64 " == 0; i%d /= %" PRId64
               "; seen = seen && i%d < %" PRId64 ";\n",
               d, d, windows[d].stride, d, windows[d].dilation, windows[d].low, d, d,
               windows[d].base, d, windows[d].base, d, windows[d].operand);
}

/* The dimension along which windows grow, where that is all they do; -1: none. */
static int grows_along(int rank, const sf_sliding *windows)
{
    int along = -1;
    for (int d = 0; d < rank; d++) {
        bool grows = sf_sliding_growth(&windows[d]) != 0;
        if ((grows && along >= 0) || (!grows && !sf_sliding_trivial(&windows[d])))
            return -1;
        along = grows ? d : along;
    }
    return along;
}

/* A thread walks a line: a window folds the elements of the one before it, and one more. That holds
 * if the padding changes nothing; if it does, the kernel continues with the code that follows. */
static void put_growing(sf_calling *c, const sf_type *type, int along, int growth)
{
    enum { AHEAD = 64 };
    const char *word = sf_word_type(type->dtype), *name = sf_type_name(type->dtype);
    int64_t stride = 1, lines = type->count / type->dims[along];
    for (int d = along + 1; d < type->rank; d++)
        stride *= type->dims[d];
    int64_t step = growth * stride, first = growth > 0 ? 0 : (type->dims[along] - 1) * stride;
    SF_PUT(c, "{\nconst %s start = WLOAD(%s, p1, 0);\n%s a0 = start, b0 = start;\n", word, name,
           word);
    put_fold(c, monoid_in(c->op, SF_REDUCE_WINDOW_BODY), 1, 0);
    SF_PUT(c,
           "const int is_growing = a0 == start;\nfor (s64 line = BLOCK * THREADS + THREAD; "
           "is_growing && line < %" PRId64 "; line += BLOCKS * THREADS) {\ns64 at = line / %" PRId64
           " * %" PRId64 " + line %% %" PRId64 " + %" PRId64 ";\na0 = start;\n",
           lines, stride, stride * type->dims[along], stride, first);
    SF_PUT(c,
           "for (s64 n = 0; n < %" PRId64 "; n += %d) {\n%s next[%d];\nUNROLL\nfor (int i = 0; i < "
           "%d; i++)\nnext[i] = n + i < %" PRId64 " ? WLOAD(%s, p0, at + i * (%" PRId64
           ")) : start;\nUNROLL\nfor (int i = 0; i < %d; i++) {\nif (n + i >= %" PRId64
           ") break;\nb0 = next[i];\n",
           type->dims[along], AHEAD, word, AHEAD, AHEAD, type->dims[along], name, step, AHEAD,
           type->dims[along]);
    put_fold(c, monoid_in(c->op, SF_REDUCE_WINDOW_BODY), 1, 0);
    SF_PUT(c, "WSTORE(%s, p2, at, a0);\nat += %" PRId64 ";\n}\n}\n}\nif (is_growing) return;\n}\n",
           name, step);
}

bool sf_call_window(sf_calling *c)
{
    const sf_op *op = c->op;
    int count = op->nresults, rank = op->in[0]->rank;
    const sf_type *in = op->in[0], *type = op->out[0];
    sf_sliding windows[SF_MAX_RANK];
    int64_t sizes[SF_MAX_RANK], all = 1;
    if (count > MOST_FOLDED)
        return false;
    for (int d = 0; d < rank; d++) {
        windows[d] = sf_reduce_window_window(op, d);
        sizes[d] = windows[d].size;
        all *= sizes[d];
    }
    sf_write_views(c->w, c->inst);
    SF_PUT(c, "{\n");
    int along = grows_along(rank, windows);
    if (along >= 0 && count == 1 && monoid_in(op, SF_REDUCE_WINDOW_BODY) != SF_MONOID_NONE &&
        !sf_is_complex(type->dtype))
        put_growing(c, type, along, sf_sliding_growth(&windows[along]));
    sf_call_begin(c, type->count);
    sf_put_captured(c, "t");
    sf_put_index(c, "o", "at", rank, type->dims);
    put_initial(c, count);
    SF_PUT(c, "for (s64 n = 0; n < %" PRId64 "; n++) {\n", all);
    sf_put_index(c, "w", "n", rank, sizes);
    put_seen(c, rank, windows);
    SF_PUT(c, "s64 from = seen ? (s64)(");
    sf_put_flat(c, "i", rank, in->dims);
    SF_PUT(c, ") : 0;\n");
    for (int i = 0; i < count; i++)
        SF_PUT(c, "%s b%d = seen ? WLOAD(%s, p%d, from) : WLOAD(%s, p%d, 0);\n",
               sf_word_type(op->in[i]->dtype), i, sf_type_name(op->in[i]->dtype), i,
               sf_type_name(op->in[i]->dtype), count + i);
    put_fold(c, monoid_in(op, SF_REDUCE_WINDOW_BODY), count, 0);
    SF_PUT(c, "}\n");
    put_results(c, count);
    SF_PUT(c, "}\n");
    sf_call_end(c, type->count);
    return true;
}

/* Whether element `best` stays selected when `next` comes: `stays`. */
static void put_stays(sf_calling *c)
{
    static const char *const orders[][2] = {{"EQ", "=="}, {"NE", "!="}, {"GE", ">="},
                                            {"GT", ">"},  {"LE", "<="}, {"LT", "<"}};
    const sf_op *op = c->op;
    sf_dtype dtype = op->in[0]->dtype;
    const char *type = sf_type_name(dtype), *word = sf_word_type(dtype);
    SF_PUT(c, "%s x0 = WLOAD(%s, p0, best), x1 = WLOAD(%s, p0, next);\n", word, type, type);
    if (op->attrs[SF_SELECT_AND_SCATTER_SELECT]) {
        const char *cast = sf_is_unsigned(dtype) ? "(u64)" : "";
        for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
            if (strcmp(sf_op_text(op, SF_SELECT_AND_SCATTER_SELECT), orders[i][0]) == 0)
                SF_PUT(c, "stays = %sx0 %s %sx1;\n", cast, orders[i][1], cast);
        return;
    }
    const char *arguments[2] = {"x0", "x1"};
    sf_put_block(c->out, op->graph, op->regions[0], "s", arguments);
    SF_PUT(c, "stays = %s != 0;\n", sf_name_value("s", op->regions[0]->results[0]).at);
}

/* A thread has a window: which element of the operand it selects. */
static void write_selected(sf_calling *c, const sf_sliding *windows, int64_t selected)
{
    const sf_type *type = c->op->in[0], *source = c->op->in[1];
    int64_t sizes[SF_MAX_RANK], all = 1;
    for (int d = 0; d < type->rank; d++) {
        sizes[d] = windows[d].size;
        all *= sizes[d];
    }
    sf_write_views(c->w, c->inst);
    int to = sf_write_param(c->w, (sf_param){.kind = SF_PARAM_SCRATCH, .value = selected});
    sf_call_begin(c, source->count);
    sf_put_captured(c, "s");
    sf_put_index(c, "o", "at", type->rank, source->dims);
    SF_PUT(c, "s64 best = -1;\nfor (%s n = 0; n < (%s)%" PRId64 "; n++) {\n", c->index, c->index,
           all);
    sf_put_index(c, "w", "n", type->rank, sizes);
    put_seen(c, type->rank, windows);
    SF_PUT(c, "if (!seen) continue;\ns64 next = ");
    sf_put_flat(c, "i", type->rank, type->dims);
    SF_PUT(c, ";\nint stays = 0;\nif (best >= 0) {\n");
    put_stays(c);
    SF_PUT(c, "}\nif (!stays) best = next;\n}\nAT(%s, p%d, at) = (%s)best;\n", c->index, to,
           c->index);
    sf_call_end(c, source->count);
}

/* Then one has an element of the result: it goes, in order, over the windows that may see it, and takes from those that select
 * it. */
bool sf_call_select_and_scatter(sf_calling *c)
{
    const sf_op *op = c->op;
    const sf_type *type = op->in[0], *source = op->in[1];
    int rank = type->rank;
    sf_sliding windows[SF_MAX_RANK];
    int64_t near[SF_MAX_RANK], windows_near = 1;
    for (int d = 0; d < rank; d++) {
        windows[d] = sf_select_and_scatter_window(op, d);
        near[d] = (windows[d].size - 1) / windows[d].stride + 1;
        windows_near *= near[d];
    }
    int64_t width = strcmp(c->index, "int") == 0 ? 4 : 8;
    int64_t selected = sf_write_scratch(c->w, source->count * width);
    if (source->count > 0)
        write_selected(c, windows, selected);
    sf_write_views(c->w, c->inst);
    int chosen = sf_write_param(c->w, (sf_param){.kind = SF_PARAM_SCRATCH, .value = selected});
    const char *index = c->index;
    sf_call_begin(c, type->count);
    sf_put_captured(c, "t");
    sf_put_index(c, "e", "at", rank, type->dims);
    SF_PUT(c, "%s a0 = WLOAD(%s, p2, 0);\n", sf_word_type(type->dtype), sf_type_name(type->dtype));
    SF_PUT(c, "for (%s m = 0; m < (%s)%" PRId64 "; m++) {\nint inside = 1;\n", index, index,
           windows_near);
    sf_put_index(c, "f", "m", rank, near);
    for (int d = 0; d < rank; d++)
        SF_PUT(c,
               "%s l%d = e%d + (%s)%" PRId64 ", o%d = l%d / (%s)%" PRId64 " - ((%s)%" PRId64
               " - f%d); inside = inside && l%d >= 0 && o%d >= 0 && o%d < (%s)%" PRId64
               " && l%d < o%d * (%s)%" PRId64 " + (%s)%" PRId64 ";\n",
               index, d, d, index, windows[d].low, d, d, index, windows[d].stride, index,
               near[d] - 1, d, d, d, d, index, source->dims[d], d, d, index, windows[d].stride,
               index, windows[d].size);
    SF_PUT(c, "if (!inside) continue;\n%s from = ", index);
    sf_put_flat(c, "o", rank, source->dims);
    SF_PUT(c, ";\nif (AT(const %s, p%d, from) != at) continue;\n", index, chosen);
    SF_PUT(c, "%s b0 = WLOAD(%s, p1, from);\n", sf_word_type(type->dtype),
           sf_type_name(type->dtype));
    put_fold(c, monoid_in(op, SF_SELECT_AND_SCATTER_BODY), 1, 1);
    SF_PUT(c, "}\nWSTORE(%s, p3, at, a0);\n", sf_type_name(type->dtype));
    sf_call_end(c, type->count);
    return true;
}

/* Products */

static bool has_dim(sf_ints list, int64_t dim)
{
    for (int i = 0; i < list.count; i++)
        if (list.at[i] == dim)
            return true;
    return false;
}

static void row_major(const sf_type *type, int64_t *strides)
{
    int64_t stride = 1;
    for (int d = type->rank - 1; d >= 0; d--) {
        strides[d] = stride;
        stride *= type->dims[d];
    }
}

/* The dimensions of the result are batches, then those of the left operand, then of the right. */
bool sf_call_dot(sf_calling *c)
{
    const sf_op *op = c->op;
    sf_ints batch[2] = {sf_op_ints(op, SF_DOT_LHS_BATCH), sf_op_ints(op, SF_DOT_RHS_BATCH)};
    sf_ints inner[2] = {sf_op_ints(op, SF_DOT_LHS_CONTRACTING),
                        sf_op_ints(op, SF_DOT_RHS_CONTRACTING)};
    int64_t strides[2][SF_MAX_RANK], out[2][SF_MAX_RANK] = {{0}}, sum[2][SF_MAX_RANK];
    int64_t sizes[SF_MAX_RANK], all = 1;
    int at = batch[0].count;
    for (int side = 0; side < 2; side++) {
        row_major(op->in[side], strides[side]);
        for (int i = 0; i < batch[side].count; i++)
            out[side][i] = strides[side][batch[side].at[i]];
        for (int d = 0; d < op->in[side]->rank; d++)
            if (!has_dim(batch[side], d) && !has_dim(inner[side], d))
                out[side][at++] = strides[side][d];
        for (int i = 0; i < inner[side].count; i++)
            sum[side][i] = strides[side][inner[side].at[i]];
    }
    for (int i = 0; i < inner[0].count; i++) {
        sizes[i] = op->in[0]->dims[inner[0].at[i]];
        all *= sizes[i];
    }
    sf_write_views(c->w, c->inst);
    sf_call_begin(c, op->out[0]->count);
    sf_put_index(c, "o", "at", op->out[0]->rank, op->out[0]->dims);
    for (int side = 0; side < 2; side++) {
        SF_PUT(c, "s64 base%d = 0", side);
        for (int d = 0; d < op->out[0]->rank; d++)
            if (out[side][d])
                SF_PUT(c, " + (s64)o%d * %" PRId64, d, out[side][d]);
        SF_PUT(c, ";\n");
    }
    sf_dtype to = op->out[0]->dtype;
    SF_PUT(c, "%s sum = %s;\nfor (s64 n = 0; n < %" PRId64 "; n++) {\n", sf_word_type(to),
           sf_is_complex(to) ? "cplx_of(0, 0)" : "0", all);
    sf_put_index(c, "k", "n", inner[0].count, sizes);
    for (int side = 0; side < 2; side++) {
        SF_PUT(c, "s64 from%d = base%d", side, side);
        for (int i = 0; i < inner[0].count; i++)
            SF_PUT(c, " + (s64)k%d * %" PRId64, i, sum[side][i]);
        SF_PUT(c, ";\n");
    }
    sf_put_product(c->out, op->in[0]->dtype, op->in[1]->dtype, to, "from0", "from1");
    SF_PUT(c, "}\nWSTORE(%s, p2, at, sum);\n", sf_type_name(to));
    sf_call_end(c, op->out[0]->count);
    return true;
}

bool sf_call_conv(sf_calling *c)
{
    const sf_inst *inst = c->inst;
    sf_conv conv = sf_conv_of_op(c->op, &inst->in[0], &inst->in[1], &inst->out[0]);
    sf_write_conv(c->w, &conv);
    return true;
}
