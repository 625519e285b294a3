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

/* A thread makes some neighbours of the last dimension, its lanes, where windows have one place there. */

/* At most so many copies of the body of a kernel. */
enum { MOST_COPIES = 128 };

static int lanes_of(const sf_calling *c, int operands, const sf_sliding *windows)
{
    const sf_type *type = c->op->out[0];
    int lanes = 16;
    if (type->rank == 0 || !sf_sliding_trivial(&windows[type->rank - 1]))
        return 1;
    for (int i = 0; i < operands; i++) {
        int together = sf_call_moved_together(c, i, type->dims[type->rank - 1], 16);
        lanes = together < lanes ? together : lanes;
    }
    return lanes;
}

/* Declares NAME0, NAME1, ...: the index of the first lane of thread `at`. */
static void put_lanes_index(sf_calling *c, const char *name, const sf_type *type, int lanes)
{
    int64_t dims[SF_MAX_RANK];
    int last = type->rank - 1;
    for (int d = 0; d <= last; d++)
        dims[d] = type->dims[d] / (d == last ? lanes : 1);
    sf_put_index(c, name, "at", type->rank, dims);
    if (lanes > 1)
        SF_PUT(c, "%s%d *= %d;\n", name, last, lanes);
}

/* Declares NAME: the elements that all lanes have of a parameter, from `at` on, if there are any; else as they may be. */
static void put_lanes(sf_calling *c, const char *name, const char *type, int param, const char *at,
                      const char *condition, int lanes, int width)
{
    SF_PUT(c,
           "ALIGNED(16) %s %s[%d];\nif (%s) move_elements(%s, SOME(const %s, p%d, %s, %d), %d);\n",
           type, name, lanes, condition, name, type, param, at, lanes, lanes * width);
}

/* Stores `word`, of each lane, of the type as elements. */
static void put_stored_lanes(sf_calling *c, const sf_type *type, uint32_t param, const char *words,
                             int lanes)
{
    const char *name = sf_type_name(type->dtype);
    SF_PUT(c,
           "ALIGNED(16) raw_%s stored_%s[%d];\nUNROLL\nfor (int k = 0; k < %d; k++) stored_%s[k] = "
           "wput_%s(%s[k]);\nmove_elements(SOME(raw_%s, p%u, (s64)at * %d, %d), stored_%s, %d);\n",
           name, words, lanes, lanes, words, name, words, name, param, lanes, lanes, words,
           lanes * sf_call_width(type));
}

static const char *unrolled(int64_t count, int lanes)
{
    return count * lanes <= MOST_COPIES ? "UNROLL\n" : "";
}

/* The type of positions of windows. */
static const char *position_type(int rank, const sf_sliding *windows)
{
    int64_t most = 0;
    for (int d = 0; d < rank; d++) {
        const sf_sliding *w = &windows[d];
        int64_t low = w->low < 0 ? -w->low : w->low;
        int64_t reach = w->operand * w->base + w->size * w->dilation + w->high + w->stride + low;
        most = reach > most ? reach : most;
    }
    return sf_index_type(most);
}

/* Declares i0, i1, ...: the element of window o... at w..., and `seen`: none of it is padding. */
static void put_seen(sf_calling *c, int rank, const sf_sliding *windows)
{
    const char *type = position_type(rank, windows);
    SF_PUT(c, "int seen = 1;\n");
    for (int d = 0; d < rank; d++)
        SF_PUT(c,
               "%s i%d = (%s)o%d * (%s)%" PRId64 " + (%s)w%d * (%s)%" PRId64 " - ((%s)%" PRId64
               "); seen = seen && i%d >= 0 && i%d %% %" PRId64 " == 0; i%d /= %" PRId64
               "; seen = seen && i%d < %" PRId64 ";\n",
               type, d, type, d, type, windows[d].stride, type, d, type, windows[d].dilation, type,
               windows[d].low, d, d, windows[d].base, d, windows[d].base, d, windows[d].operand);
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
    int lanes = count == 1 ? lanes_of(c, 1, windows) : 1;
    sf_call_begin(c, type->count / lanes);
    sf_put_captured(c, "t");
    put_lanes_index(c, "o", type, lanes);
    for (int i = 0; i < count; i++)
        SF_PUT(c,
               "const %s start%d = WLOAD(%s, p%d, 0);\n%s sum%d[%d];\nUNROLL\nfor (int k = 0; k < "
               "%d; k++) sum%d[k] = start%d;\n",
               sf_word_type(op->in[i]->dtype), i, sf_type_name(op->in[i]->dtype), count + i,
               sf_word_type(op->in[i]->dtype), i, lanes, lanes, i, i);
    SF_PUT(c, "%sfor (%s n = 0; n < (%s)%" PRId64 "; n++) {\n", unrolled(all, lanes), c->index,
           c->index, all);
    sf_put_index(c, "w", "n", rank, sizes);
    put_seen(c, rank, windows);
    SF_PUT(c, "s64 from = seen ? (s64)(");
    sf_put_flat(c, "i", rank, in->dims);
    SF_PUT(c, ") : 0;\n");
    for (int i = 0; i < count; i++) {
        char name[16], raw[32];
        snprintf(name, sizeof name, "m%d", i);
        snprintf(raw, sizeof raw, "raw_%s", sf_type_name(op->in[i]->dtype));
        put_lanes(c, name, raw, i, "from", "seen", lanes, sf_call_width(op->in[i]));
    }
    SF_PUT(c, "UNROLL\nfor (int k = 0; k < %d; k++) {\n", lanes);
    for (int i = 0; i < count; i++)
        SF_PUT(c, "%s a%d = sum%d[k], b%d = seen ? wget_%s(m%d[k]) : start%d;\n",
               sf_word_type(op->in[i]->dtype), i, i, i, sf_type_name(op->in[i]->dtype), i, i);
    put_fold(c, monoid_in(op, SF_REDUCE_WINDOW_BODY), count, 0);
    for (int i = 0; i < count; i++)
        SF_PUT(c, "sum%d[k] = a%d;\n", i, i);
    SF_PUT(c, "}\n}\n");
    for (int i = 0; i < count; i++) {
        char name[16];
        snprintf(name, sizeof name, "sum%d", i);
        put_stored_lanes(c, op->in[i], c->inst->nin + (uint32_t)i, name, lanes);
    }
    SF_PUT(c, "}\n");
    sf_call_end(c, type->count / lanes);
    return true;
}

/* Whether the element x0 stays selected when x1 comes: `stays`. */
static void put_stays(sf_calling *c)
{
    static const char *const orders[][2] = {{"EQ", "=="}, {"NE", "!="}, {"GE", ">="},
                                            {"GT", ">"},  {"LE", "<="}, {"LT", "<"}};
    const sf_op *op = c->op;
    sf_dtype dtype = op->in[0]->dtype;
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

/* A thread has a window of each of its lanes: which element of the operand it selects. */
static void write_selected(sf_calling *c, const sf_sliding *windows, int64_t selected, int lanes)
{
    const sf_type *type = c->op->in[0], *source = c->op->in[1];
    const char *word = sf_word_type(type->dtype), *name = sf_type_name(type->dtype);
    int64_t sizes[SF_MAX_RANK], all = 1;
    char raw[32];
    snprintf(raw, sizeof raw, "raw_%s", name);
    for (int d = 0; d < type->rank; d++) {
        sizes[d] = windows[d].size;
        all *= sizes[d];
    }
    sf_write_views(c->w, c->inst);
    int to = sf_write_param(c->w, (sf_param){.kind = SF_PARAM_SCRATCH, .value = selected});
    sf_call_begin(c, source->count / lanes);
    sf_put_captured(c, "s");
    put_lanes_index(c, "o", source, lanes);
    SF_PUT(c,
           "ALIGNED(16) %s best[%d];\n%s kept[%d];\nUNROLL\nfor (int k = 0; k < %d; k++) best[k] = "
           "-1;\n%sfor (%s n = 0; n < (%s)%" PRId64 "; n++) {\n",
           c->index, lanes, word, lanes, lanes, unrolled(all, lanes), c->index, c->index, all);
    sf_put_index(c, "w", "n", type->rank, sizes);
    put_seen(c, type->rank, windows);
    SF_PUT(c, "if (!seen) continue;\ns64 next = ");
    sf_put_flat(c, "i", type->rank, type->dims);
    SF_PUT(c, ";\n");
    put_lanes(c, "m", raw, 0, "next", "1", lanes, sf_call_width(type));
    SF_PUT(
        c,
        "UNROLL\nfor (int k = 0; k < %d; k++) {\nconst %s x1 = wget_%s(m[k]);\nint stays = 0;\nif "
        "(best[k] >= 0) {\nconst %s x0 = kept[k];\n",
        lanes, word, name, word);
    put_stays(c);
    SF_PUT(c,
           "}\nif (!stays) { best[k] = (%s)next + k; kept[k] = x1; }\n}\n}\nmove_elements(SOME(%s, "
           "p%d, (s64)at * %d, %d), best, %d * (int)sizeof(%s));\n",
           c->index, c->index, to, lanes, lanes, lanes, c->index);
    sf_call_end(c, source->count / lanes);
}

/* Then one has so many elements of the result: it goes, in order, over the windows that may see them, and takes from those that
 * select them. */
bool sf_call_select_and_scatter(sf_calling *c)
{
    const sf_op *op = c->op;
    const sf_type *type = op->in[0], *source = op->in[1];
    const char *index = c->index, *word = sf_word_type(type->dtype),
               *name = sf_type_name(type->dtype);
    int rank = type->rank;
    char raw[32];
    sf_sliding windows[SF_MAX_RANK];
    int64_t near[SF_MAX_RANK], windows_near = 1;
    for (int d = 0; d < rank; d++) {
        windows[d] = sf_select_and_scatter_window(op, d);
        near[d] = (windows[d].size - 1) / windows[d].stride + 1;
        windows_near *= near[d];
    }
    int lanes = lanes_of(c, 2, windows), width = strcmp(index, "int") == 0 ? 4 : 8;
    int64_t selected = sf_write_scratch(c->w, source->count * width);
    snprintf(raw, sizeof raw, "raw_%s", name);
    if (source->count > 0)
        write_selected(c, windows, selected, lanes);
    sf_write_views(c->w, c->inst);
    int param = sf_write_param(c->w, (sf_param){.kind = SF_PARAM_SCRATCH, .value = selected});
    sf_call_begin(c, type->count / lanes);
    sf_put_captured(c, "t");
    put_lanes_index(c, "e", type, lanes);
    SF_PUT(c, "%s sum[%d];\nUNROLL\nfor (int k = 0; k < %d; k++) sum[k] = WLOAD(%s, p2, 0);\n",
           word, lanes, lanes, name);
    SF_PUT(c, "%sfor (%s m = 0; m < (%s)%" PRId64 "; m++) {\nint inside = 1;\n",
           unrolled(windows_near, lanes), index, index, windows_near);
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
    SF_PUT(c, ";\n");
    put_lanes(c, "chosen", index, param, "from", "1", lanes, width);
    put_lanes(c, "given", raw, 1, "from", "1", lanes, sf_call_width(type));
    SF_PUT(
        c,
        "UNROLL\nfor (int k = 0; k < %d; k++) {\nif (chosen[k] != at * %d + k) continue;\n%s a0 = "
        "sum[k], b0 = wget_%s(given[k]);\n",
        lanes, lanes, word, name);
    put_fold(c, monoid_in(op, SF_SELECT_AND_SCATTER_BODY), 1, 1);
    SF_PUT(c, "sum[k] = a0;\n}\n}\n");
    put_stored_lanes(c, type, 3, "sum", lanes);
    sf_call_end(c, type->count / lanes);
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
