/* sort and top_k. */
#include <inttypes.h>
#include <string.h>

#include "op/op.h"
#include "op/slots.h"
#include "run/text/merge_sort.h"

/* Both orders begin as the identity: elements that an inconsistent comparison leaves unset have a
 * valid index. */
static void write_identity(sf_calling *c, int64_t count, int64_t size, int64_t a, int64_t b)
{
    sf_write_param(c->w, (sf_param){.kind = SF_PARAM_SCRATCH, .value = a});
    sf_write_param(c->w, (sf_param){.kind = SF_PARAM_SCRATCH, .value = b});
    sf_call_begin(c, count);
    SF_PUT(c, "AT(s32, p0, at) = AT(s32, p1, at) = (s32)(at %% (%s)%" PRId64 ");\n", c->index,
           size);
    sf_call_end(c, count);
}

/* Runs of `width` elements become runs of twice that. An element of the left run goes after those
 * of the right one that come before it; one of the right run after those of the left one that do
 * not come after it. */
static void put_merge(sf_calling *c, int64_t lines, int64_t size, int64_t stride, int width,
                      sf_put_less *less, const void *context)
{
    sf_call_begin(c, lines * size);
    SF_PUT(c, "s64 size = %" PRId64 ", width = p%d;\n", size, width);
    SF_PUT(c, "s64 line = at / size, i = at %% size;\n");
    SF_PUT(c, "s64 base = line / %" PRId64 " * %" PRId64 " + line %% %" PRId64 ";\n(void)base;\n",
           stride, stride * size, stride);
    SF_PUT(c, "const s32 *from = SOME(const s32, p0, line * size, size);\ns32 *to = SOME(s32, p1, "
              "line * size, size);\n");
    SF_PUT(c, "s64 left = i / (2 * width) * (2 * width), middle = left + width;\n");
    SF_PUT(c, "s32 own = from[i];\nif (middle >= size) { to[i] = own; continue; }\n");
    SF_PUT(c,
           "int is_left = i < middle;\ns64 end = middle + width < size ? middle + width : size;\n");
    SF_PUT(c, "s64 low = is_left ? middle : left, high = is_left ? end : middle, start = low;\n");
    SF_PUT(c, "s64 mine = base + own * (s64)%" PRId64 ";\n", stride);
    SF_PUT(c, "while (low < high) {\ns64 half = (low + high) / 2;\n");
    SF_PUT(c, "s64 other = base + from[half] * (s64)%" PRId64 ";\n", stride);
    SF_PUT(c, "s64 first = is_left ? other : mine, second = is_left ? mine : other;\n");
    less(c, "first", "second", "before", context);
    SF_PUT(c, "if (is_left ? before : !before) low = half + 1; else high = half;\n}\n");
    SF_PUT(c, "to[left + (is_left ? i - left : i - middle) + (low - start)] = own;\n");
}

int64_t sf_merge_sort(sf_calling *c, int64_t lines, int64_t size, int64_t stride,
                      const sf_param *what, sf_put_less *less, const void *context)
{
    int64_t count = lines * size;
    int64_t orders[2] = {sf_write_scratch(c->w, count * 4), sf_write_scratch(c->w, count * 4)};
    write_identity(c, count, size, orders[0], orders[1]);
    sf_param from = {.kind = SF_PARAM_SCRATCH, .value = orders[0]};
    sf_param to = {.kind = SF_PARAM_SCRATCH, .value = orders[1]};
    sf_param params[3 + 2 * 64];
    uint32_t nparams = 2;
    bool first = true;
    if (size <= 1)
        return orders[0];
    for (int64_t width = 1; width < size; width *= 2) {
        sf_param number = {.kind = SF_PARAM_NUMBER, .value = width};
        if (first) {
            sf_write_param(c->w, from);
            sf_write_param(c->w, to);
            if (what)
                sf_write_param(c->w, *what);
            else
                sf_write_views(c->w, c->inst);
            int at = sf_write_param(c->w, number);
            nparams = (uint32_t)c->w->nparams;
            for (uint32_t i = 0; i < nparams; i++)
                params[i] = c->w->params[i];
            put_merge(c, lines, size, stride, at, less, context);
            sf_call_end(c, count);
            first = false;
        } else {
            params[0] = from;
            params[1] = to;
            params[nparams - 1] = number;
            sf_write_again(c->w, sf_blocks_for(count, SF_CALL_THREADS), SF_CALL_THREADS, params);
        }
        sf_param other = from;
        from = to;
        to = other;
    }
    return from.value;
}

/* sort */

static void put_sort_less(sf_calling *c, const char *a, const char *b, const char *result,
                          const void *context)
{
    (void)context;
    const sf_op *op = c->op;
    const sf_block *block = op->regions[0];
    sf_value_name names[2 * 32];
    const char *arguments[2 * 32];
    for (int i = 0; i < 2 * op->noperands; i++) {
        snprintf(names[i].at, sizeof names[i].at, "x%d", i);
        arguments[i] = names[i].at;
        SF_PUT(c, "%s x%d = WLOAD(%s, p%d, %s);\n", sf_word_type(op->in[i / 2]->dtype), i,
               sf_type_name(op->in[i / 2]->dtype), 2 + i / 2, i % 2 ? b : a);
    }
    const sf_call *call = c->inst->call;
    for (uint32_t i = 0; i < call->ncaptured; i++) {
        sf_dtype dtype = sf_type_of(op->graph, call->captured[i])->dtype;
        SF_PUT(c, "%s %s = WLOAD(%s, p%d, 0);\n", sf_word_type(dtype),
               sf_name_value("t", call->captured[i]).at, sf_type_name(dtype),
               2 + op->noperands + (int)i);
    }
    sf_put_block(c->out, op->graph, block, "t", arguments);
    SF_PUT(c, "int %s = %s != 0;\n", result, sf_name_value("t", block->results[0]).at);
}

bool sf_call_sort(sf_calling *c)
{
    const sf_op *op = c->op;
    const sf_type *type = op->in[0];
    int dim = (int)sf_op_int(op, SF_SORT_DIMENSION, -1);
    dim = dim < 0 ? dim + type->rank : dim;
    if (op->noperands > 32 || c->inst->nin + c->inst->nout > 120)
        return false;
    if (type->count == 0)
        return true;
    int64_t size = type->dims[dim], stride = 1;
    for (int d = dim + 1; d < type->rank; d++)
        stride *= type->dims[d];
    if (size > INT32_MAX)
        return false;
    int64_t order = sf_merge_sort(c, type->count / size, size, stride, NULL, put_sort_less, NULL);
    sf_write_views(c->w, c->inst);
    int sorted = sf_write_param(c->w, (sf_param){.kind = SF_PARAM_SCRATCH, .value = order});
    sf_call_begin(c, type->count);
    SF_PUT(c, "s64 line = at / (%s)%" PRId64 ", i = at %% (%s)%" PRId64 ";\n", c->index, size,
           c->index, size);
    SF_PUT(c, "s64 base = line / %" PRId64 " * %" PRId64 " + line %% %" PRId64 ";\n", stride,
           stride * size, stride);
    SF_PUT(c,
           "s64 from = base + AT(const s32, p%d, at) * (s64)%" PRId64
           ", to = base + i * (s64)%" PRId64 ";\n",
           sorted, stride, stride);
    for (int t = 0; t < op->noperands; t++) {
        int width = sf_dtype_get(op->in[t]->dtype)->bytes;
        SF_PUT(c, "AT(moved_%d, p%u, to) = AT(const moved_%d, p%d, from);\n", width,
               c->inst->nin + (uint32_t)t, width, t);
    }
    sf_call_end(c, type->count);
    return true;
}

/* top_k: by the total order, the largest first. */

static void put_greater(sf_calling *c, const char *a, const char *b, const char *result,
                        const void *context)
{
    (void)context;
    sf_dtype dtype = c->op->in[0]->dtype;
    const sf_dtype_info *info = sf_dtype_get(dtype);
    const char *const places[2] = {a, b};
    for (int i = 0; i < 2; i++) {
        if (info->class == SF_FLOAT)
            SF_PUT(c, "s64 key%d = order_of_bits(AT(const u%d, p2, %s), %d, %d, %d);\n", i,
                   info->bytes * 8, places[i], info->bits,
                   info->bits != info->exponent + info->mantissa,
                   strstr(info->hlo, "fnuz") != NULL);
        else
            SF_PUT(c, "s64 key%d = WLOAD(%s, p2, %s)%s;\n", i, info->hlo, places[i],
                   info->class == SF_UNSIGNED ? " ^ (s64)SIGN64" : "");
    }
    SF_PUT(c, "int %s = key0 > key1;\n", result);
}

bool sf_call_top_k(sf_calling *c)
{
    const sf_type *in = c->op->in[0], *out = c->op->out[0];
    if (out->count == 0)
        return true;
    int64_t size = in->dims[in->rank - 1], k = out->dims[out->rank - 1];
    sf_param operand = {.kind = SF_PARAM_IN};
    if (size > INT32_MAX)
        return false;
    int64_t order = sf_merge_sort(c, in->count / size, size, 1, &operand, put_greater, NULL);
    sf_write_views(c->w, c->inst);
    int sorted = sf_write_param(c->w, (sf_param){.kind = SF_PARAM_SCRATCH, .value = order});
    int width = sf_dtype_get(in->dtype)->bytes;
    sf_call_begin(c, out->count);
    SF_PUT(c, "s64 line = at / (%s)%" PRId64 ", i = at %% (%s)%" PRId64 ";\n", c->index, k,
           c->index, k);
    SF_PUT(c, "s32 from = AT(const s32, p%d, line * %" PRId64 " + i);\n", sorted, size);
    SF_PUT(c, "AT(moved_%d, p1, at) = AT(const moved_%d, p0, line * %" PRId64 " + from);\n", width,
           width, size);
    SF_PUT(c, "AT(s32, p2, at) = from;\n");
    sf_call_end(c, out->count);
    return true;
}
