/* Calls: which family writes them, and those that only move elements or work on single ones. */
#include "run/text/library_kernel.h"

#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "op/attention.h"
#include "op/slots.h"

static bool write_pointwise(sf_calling *c)
{
    const sf_op *op = c->op;
    char names[3][16];
    const char *in[3] = {names[0], names[1], names[2]};
    const sf_type *type = op->out[0];
    sf_write_views(c->w, c->inst);
    sf_call_begin(c, type->count);
    for (int i = 0; i < op->noperands; i++) {
        snprintf(names[i], sizeof names[i], "x%d", i);
        SF_PUT(c, "%s x%d = WLOAD(%s, p%d, %s);\n", sf_word_type(op->in[i]->dtype), i,
               sf_type_name(op->in[i]->dtype), i, op->in[i]->rank == 0 ? "0" : "at");
    }
    sf_put_scalar(c->out, op, in, "y");
    SF_PUT(c, "WSTORE(%s, p%d, at, y);\n", sf_type_name(type->dtype), op->noperands);
    sf_call_end(c, type->count);
    return true;
}

static bool write_select(sf_calling *c)
{
    const sf_op *op = c->op;
    int width = sf_call_width(op->out[0]);
    sf_write_views(c->w, c->inst);
    sf_call_begin(c, op->out[0]->count);
    SF_PUT(c,
           "AT(moved_%d, p3, at) = AT(const u8, p0, %s) ? AT(const moved_%d, p1, at) : AT(const "
           "moved_%d, p2, at);\n",
           width, op->in[0]->rank == 0 ? "0" : "at", width, width);
    sf_call_end(c, op->out[0]->count);
    return true;
}

/* The first of the narrow elements has the lowest bits of the wide one; elements narrower than a
 * byte take one. */
static bool write_bitcast(sf_calling *c)
{
    sf_dtype from = sf_part_of(c->op->in[0]->dtype), to = sf_part_of(c->op->out[0]->dtype);
    const sf_dtype_info *a = sf_dtype_get(from), *b = sf_dtype_get(to);
    int64_t count = c->op->out[0]->count * sf_parts_of(c->op->out[0]->dtype);
    sf_write_views(c->w, c->inst);
    sf_call_begin(c, count);
    SF_PUT(c, "u64 bits = 0;\n");
    if (a->bits > b->bits) {
        int ratio = a->bits / b->bits;
        SF_PUT(c, "bits = (u64)AT(const moved_%d, p0, at / %d) >> (at %% %d * %d);\n", a->bytes,
               ratio, ratio, b->bits);
    } else {
        int ratio = b->bits / a->bits;
        SF_PUT(c,
               "for (int k = 0; k < %d; k++) bits |= ((u64)AT(const moved_%d, p0, at * %d + k) & "
               "~0ull >> %d) << (k * %d);\n",
               ratio, a->bytes, ratio, 64 - a->bits, a->bits);
    }
    SF_PUT(c, "AT(moved_%d, p1, at) = (moved_%d)(bits & ~0ull >> %d);\n", b->bytes, b->bytes,
           64 - b->bits);
    sf_call_end(c, count);
    return true;
}

/* Moves */

static bool write_iota(sf_calling *c)
{
    const sf_type *type = c->op->out[0];
    int dim = (int)sf_op_int(c->op, SF_IOTA_DIMENSION, 0);
    bool real = sf_is_float(type->dtype);
    sf_write_views(c->w, c->inst);
    sf_call_begin(c, type->count);
    sf_put_index(c, "i", "at", type->rank, type->dims);
    SF_PUT(c, "WSTORE(%s, p0, at, ", sf_type_name(type->dtype));
    if (sf_is_complex(type->dtype))
        SF_PUT(c, "cplx_of((f64)i%d, 0));\n", dim);
    else
        SF_PUT(c, "(%s)i%d);\n", real ? "f64" : "s64", dim);
    sf_call_end(c, type->count);
    return true;
}

int sf_call_moved_together(const sf_calling *c, int from, int64_t run, int bytes)
{
    int64_t together = bytes / sf_call_width(c->op->out[0]);
    while (together > 1 && (run % together != 0 || c->inst->in[from].offset % together != 0 ||
                            c->inst->out[0].offset % together != 0))
        together /= 2;
    return together > 1 ? (int)together : 1;
}

static bool write_concatenate(sf_calling *c)
{
    const sf_op *op = c->op;
    int dim = (int)sf_op_int(op, SF_CONCATENATE_DIMENSION, 0), width = sf_call_width(op->out[0]);
    int64_t inner = 1, before = 0;
    for (int d = dim + 1; d < op->out[0]->rank; d++)
        inner *= op->out[0]->dims[d];
    int64_t row = op->out[0]->dims[dim] * inner;
    for (int i = 0; i < op->noperands; i++) {
        int64_t own = op->in[i]->dims[dim] * inner;
        if (op->in[i]->count == 0)
            continue;
        int n = sf_call_moved_together(c, i, sf_gcd(sf_gcd(own, row), before), 8);
        sf_write_param(c->w, (sf_param){.kind = SF_PARAM_IN, .index = (uint32_t)i});
        sf_write_param(c->w, (sf_param){.kind = SF_PARAM_OUT});
        sf_call_begin(c, op->in[i]->count / n);
        SF_PUT(c,
               "AT(moved_%d, p1, at / (%s)%" PRId64 " * (%s)%" PRId64 " + at %% (%s)%" PRId64
               " + (%s)%" PRId64 ") = AT(const moved_%d, p0, at);\n",
               width * n, c->index, own / n, c->index, row / n, c->index, own / n, c->index,
               before / n, width * n);
        sf_call_end(c, op->in[i]->count / n);
        before += own;
    }
    return true;
}

static int64_t entry_of(sf_ints list, int index)
{
    return index < list.count ? list.at[index] : 0;
}

/* Elements of the last dimension, where a pad leaves that as it is; else 1. */
static int64_t whole_at_end(const sf_op *op)
{
    int last = op->out[0]->rank - 1;
    if (last < 0 || entry_of(sf_op_ints(op, SF_PAD_LOW), last) != 0 ||
        entry_of(sf_op_ints(op, SF_PAD_INTERIOR), last) != 0 ||
        op->in[0]->dims[last] != op->out[0]->dims[last])
        return 1;
    return op->in[0]->dims[last];
}

static bool write_pad(sf_calling *c)
{
    const sf_op *op = c->op;
    const sf_type *in = op->in[0], *type = op->out[0];
    int64_t before[SF_MAX_RANK], after[SF_MAX_RANK];
    int width = sf_call_width(type), n = sf_call_moved_together(c, 0, whole_at_end(op), 8),
        last = type->rank - 1;
    for (int d = 0; d <= last; d++) {
        before[d] = in->dims[d] / (d == last ? n : 1);
        after[d] = type->dims[d] / (d == last ? n : 1);
    }
    sf_write_views(c->w, c->inst);
    sf_call_begin(c, type->count / n);
    sf_put_index(c, "o", "at", type->rank, after);
    SF_PUT(c, "int inside = 1;\n");
    for (int d = 0; d < type->rank; d++) {
        int64_t low = entry_of(sf_op_ints(op, SF_PAD_LOW), d);
        int64_t step = entry_of(sf_op_ints(op, SF_PAD_INTERIOR), d) + 1;
        SF_PUT(c,
               "s64 i%d = (s64)o%d - %" PRId64 "ll; inside = inside && i%d >= 0 && i%d %% %" PRId64
               " == 0; i%d /= %" PRId64 "; inside = inside && i%d < %" PRId64 ";\n",
               d, d, low, d, d, step, d, step, d, before[d]);
    }
    SF_PUT(c, "moved_%d fill = AT(const moved_%d, p1, 0);\n", width * n, width);
    for (int k = 1; k < n; k *= 2)
        SF_PUT(c, "fill |= fill << %d;\n", k * width * 8);
    SF_PUT(c, "AT(moved_%d, p2, at) = inside ? AT(const moved_%d, p0, ", width * n, width * n);
    sf_put_flat(c, "i", in->rank, before);
    SF_PUT(c, ") : fill;\n");
    sf_call_end(c, type->count / n);
    return true;
}

/* Where a slice begins, s0, s1, ...: brought inside. The starts are operands from `first` on. */
static void put_starts(sf_calling *c, int first, const sf_type *whole, const sf_type *slice)
{
    for (int d = 0; d < whole->rank; d++) {
        sf_dtype dtype = c->op->in[first + d]->dtype;
        int64_t last = whole->dims[d] - slice->dims[d];
        SF_PUT(c, "s64 s%d = WLOAD(%s, p%d, 0);\n", d, sf_type_name(dtype), first + d);
        if (sf_is_unsigned(dtype))
            SF_PUT(c, "s%d = s%d < 0 ? %" PRId64 " : s%d;\n", d, d, last, d);
        SF_PUT(c, "s%d = s%d < 0 ? 0 : s%d > %" PRId64 " ? %" PRId64 " : s%d;\n", d, d, d, last,
               last, d);
    }
}

static bool write_dynamic_slice(sf_calling *c)
{
    const sf_type *in = c->op->in[0], *type = c->op->out[0];
    int width = sf_call_width(type);
    sf_write_views(c->w, c->inst);
    sf_call_begin(c, type->count);
    put_starts(c, 1, in, type);
    sf_put_index(c, "o", "at", type->rank, type->dims);
    for (int d = 0; d < type->rank; d++)
        SF_PUT(c, "s64 i%d = o%d + s%d;\n", d, d, d);
    SF_PUT(c, "AT(moved_%d, p%d, at) = AT(const moved_%d, p0, ", width, c->op->noperands, width);
    sf_put_flat(c, "i", in->rank, in->dims);
    SF_PUT(c, ");\n");
    sf_call_end(c, type->count);
    return true;
}

static bool write_dynamic_update_slice(sf_calling *c)
{
    const sf_type *update = c->op->in[1], *type = c->op->out[0];
    int width = sf_call_width(type);
    sf_call_copy_first(c, 0);
    if (update->count == 0)
        return true;
    sf_write_views(c->w, c->inst);
    sf_call_begin(c, update->count);
    put_starts(c, 2, type, update);
    sf_put_index(c, "u", "at", update->rank, update->dims);
    for (int d = 0; d < type->rank; d++)
        SF_PUT(c, "s64 i%d = u%d + s%d;\n", d, d, d);
    SF_PUT(c, "AT(moved_%d, p%d, ", width, c->op->noperands);
    sf_put_flat(c, "i", type->rank, type->dims);
    SF_PUT(c, ") = AT(const moved_%d, p1, at);\n", width);
    sf_call_end(c, update->count);
    return true;
}

/* Checks have no results, and annotations pass their operand on. */
static bool write_custom(sf_calling *c)
{
    if (c->inst->nout == 0)
        return true;
    sf_call_copy_first(c, 0);
    return c->op->nresults == 1 && c->op->noperands == 1;
}

static sf_call_write *writer_of(const sf_op *op)
{
    switch (op->def->id) {
    case SF_OP_SELECT:
        return write_select;
    case SF_OP_BITCAST_CONVERT:
        return write_bitcast;
    case SF_OP_IOTA:
        return write_iota;
    case SF_OP_CONCATENATE:
        return write_concatenate;
    case SF_OP_PAD:
        return write_pad;
    case SF_OP_DYNAMIC_SLICE:
        return write_dynamic_slice;
    case SF_OP_DYNAMIC_UPDATE_SLICE:
        return write_dynamic_update_slice;
    case SF_OP_GATHER:
        return sf_call_gather;
    case SF_OP_SCATTER:
        return sf_call_scatter;
    case SF_OP_REDUCE:
        return sf_call_reduce;
    case SF_OP_REDUCE_WINDOW:
        return sf_call_window;
    case SF_OP_SELECT_AND_SCATTER:
        return sf_call_select_and_scatter;
    case SF_OP_DOT_GENERAL:
        return sf_call_dot;
    case SF_OP_CONVOLUTION:
        return sf_call_conv;
    case SF_OP_SORT:
        return sf_call_sort;
    case SF_OP_TOP_K:
        return sf_call_top_k;
    case SF_OP_FFT:
        return sf_call_fft;
    case SF_OP_CHOLESKY:
        return sf_call_cholesky;
    case SF_OP_TRIANGULAR_SOLVE:
        return sf_call_solve;
    case SF_OP_RNG_BIT_GENERATOR:
        return sf_call_random;
    case SF_OP_CUSTOM_CALL:
        return write_custom;
    case SF_ATTENTION:
        return sf_call_attention;
    case SF_ATTENTION_GRADIENT:
        return sf_call_attention_gradient;
    default:
        return sf_scalar_has(op->def) ? write_pointwise : NULL;
    }
}

/* Regions that are no plain arithmetic on scalars have no text. */
static bool regions_are_scalar(const sf_call *call)
{
    for (int i = 0; i < call->op.nregions; i++)
        if (!sf_block_is_scalar(call->op.graph, call->op.regions[i]))
            return false;
    for (uint32_t i = 0; i < call->ncaptured; i++)
        if (sf_type_of(call->op.graph, call->captured[i])->rank != 0)
            return false;
    return true;
}

bool sf_write_call(sf_writer *w, const sf_inst *inst)
{
    const sf_op *op = &inst->call->op;
    sf_call_write *write = writer_of(op);
    int64_t most = 0;
    for (int i = 0; i < op->noperands; i++)
        most = op->in[i]->count > most ? op->in[i]->count : most;
    for (int i = 0; i < op->nresults; i++)
        most = op->out[i]->count > most ? op->out[i]->count : most;
    sf_calling c = {
        .w = w, .inst = inst, .op = op, .out = &w->body, .index = sf_index_type(2 * most)};
    return write && regions_are_scalar(inst->call) && write(&c);
}
