/* select_and_scatter with a comparison and a sum: the gradient of pooling.
 *
 * Dimensions in which the windows are single elements are apart: those before the others are shared out
 * to the threads, those after them lie side by side and are worked on together.
 */
#include <string.h>

#include "op/slots.h"
#include "op/util.h"
#include "op/window/sliding.h"
#include "run/fast/box.h"
#include "run/fast/fast_fold.h"
#include "run/fast/fast_kernels.h"

enum { OPERAND, SOURCE, INIT };
enum { SIDE = 128 };

typedef enum order { GE, GT, LE, LT, NO_ORDER } order;

typedef struct selecting {
    sf_folding folding;
    order order;
    int rank; /* of the dimensions between */
    int64_t outer, inner, chunks;
    int64_t windows[SF_MAX_RANK], strides[SF_MAX_RANK]; /* strides: of the operand */
    int64_t operand_count, source_count;                /* per index of outer */
    const sf_run *runs[SF_MAX_RANK];
    const char *operand, *source;
    char *out, *sums;
    int64_t width, sum_width;
    sf_word init;
} selecting;

static order order_of_body(const sf_op *op)
{
    static const char *const names[] = {"GE", "GT", "LE", "LT"};
    int i = 0;
    while (i < NO_ORDER && strcmp(names[i], sf_op_text(op, SF_SELECT_AND_SCATTER_SELECT)) != 0)
        i++;
    return (order)i;
}

/* The variant is the order. Types whose order is not that of their register have none. */
static int64_t choose_select(const sf_op *op)
{
    sf_dtype dtype = op->in[OPERAND]->dtype;
    order by = order_of_body(op);
    if (sf_op_monoid(op, SF_SELECT_AND_SCATTER_BODY) != SF_MONOID_ADD || by == NO_ORDER ||
        dtype == SF_U32 || dtype == SF_U64 || sf_is_complex(dtype) || op->in[OPERAND]->count == 0)
        return SF_FAST_NONE;
    return by;
}

static int64_t select_scratch(const sf_op *op, int64_t variant, int threads)
{
    (void)variant, (void)threads;
    int64_t runs = 0;
    for (int d = 0; d < op->in[SOURCE]->rank; d++)
        runs += op->in[SOURCE]->dims[d];
    bool native = sf_dtype_get(op->in[OPERAND]->dtype)->bits >= 32;
    return ((runs * (int64_t)sizeof(sf_run) + 63) & -64) +
           (native ? 0 : op->in[OPERAND]->count * 4);
}

/* Keeps the better of the selected element and the element at `at`, together with its partner. */
#define KEEP(member, operator)                                                                     \
    for (int64_t i = 0; i < count; i++) {                                                          \
        bool keep = best->member[i] operator next->member[i];                                      \
        best->member[i] = keep ? best->member[i] : next->member[i];                                \
        places[i] = keep ? places[i] : at;                                                         \
    }
#define KEEP_BY_ORDER(member)                                                                      \
    switch (by) {                                                                                  \
    case GE:                                                                                       \
        KEEP(member, >=)                                                                           \
        break;                                                                                     \
    case GT:                                                                                       \
        KEEP(member, >)                                                                            \
        break;                                                                                     \
    case LE:                                                                                       \
        KEEP(member, <=)                                                                           \
        break;                                                                                     \
    case LT:                                                                                       \
    case NO_ORDER:                                                                                 \
        KEEP(member, <)                                                                            \
        break;                                                                                     \
    }

typedef union side {
    _Alignas(64) float f32[SIDE];
    double f64[SIDE];
    int32_t i32[SIDE];
    int64_t i64[SIDE];
} side;

static void keep_better_row(sf_vclass class, order by, int64_t count, const side *restrict next,
                            int64_t at, side *restrict best, int64_t *restrict places)
{
    switch (class) {
    case SF_VF32:
        KEEP_BY_ORDER(f32)
        break;
    case SF_VF64:
        KEEP_BY_ORDER(f64)
        break;
    case SF_VI32:
        KEEP_BY_ORDER(i32)
        break;
    case SF_VI64:
    case SF_VCLASS_COUNT:
        KEEP_BY_ORDER(i64)
        break;
    }
}

static void add_at(sf_vclass class, char *sums, const side *values, const int64_t *places,
                   int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        switch (class) {
        case SF_VF32:
            ((float *)sums)[places[i] + i] += values->f32[i];
            break;
        case SF_VF64:
            ((double *)sums)[places[i] + i] += values->f64[i];
            break;
        case SF_VI32:
            ((uint32_t *)sums)[places[i] + i] += (uint32_t)values->i32[i];
            break;
        case SF_VI64:
        case SF_VCLASS_COUNT:
            ((uint64_t *)sums)[places[i] + i] += (uint64_t)values->i64[i];
            break;
        }
}

/* The windows of source position `at`, for `count` elements side by side. `operand` and `sums` are where
 * these begin in this index of outer. False when the window sees only padding. */
static bool select_side(const selecting *s, const int64_t *at, const char *operand, int64_t count,
                        int64_t *places)
{
    int64_t counts[SF_MAX_RANK], w[SF_MAX_RANK] = {0}, first = 0;
    side best, next;
    bool begun = false;
    for (int d = 0; d < s->rank; d++) {
        sf_run run = s->runs[d][at[d]];
        counts[d] = run.count;
        first += run.first * s->strides[d];
        if (run.count == 0)
            return false;
    }
    sf_vload *load = s->folding.vec->loads[s->folding.dtype];
    do {
        int64_t place = first;
        for (int d = 0; d < s->rank; d++)
            place += w[d] * s->strides[d];
        load(begun ? &next : &best, operand + place * s->width, 1, count);
        if (begun)
            keep_better_row(s->folding.class, s->order, count, &next, place, &best, places);
        else
            for (int64_t i = 0; i < count; i++)
                places[i] = place;
        begun = true;
    } while (sf_next_index(s->rank, counts, w));
    return true;
}

static void select_part(void *context, int part, int64_t first, int64_t end)
{
    (void)part;
    const selecting *s = context;
    const sf_folding *f = &s->folding;
    for (int64_t unit = first; unit < end; unit++) {
        int64_t outer = unit / s->chunks, from = unit % s->chunks * SIDE;
        int64_t count = s->inner - from < SIDE ? s->inner - from : SIDE, places[SIDE];
        int64_t base = outer * s->operand_count + from, at[SF_MAX_RANK] = {0};
        char *sums = s->sums + base * s->sum_width;
        sf_register row;
        sf_register_fill(f->class, s->init, count, &row);
        for (int64_t i = 0; i < s->operand_count; i += s->inner)
            memcpy(sums + i * s->sum_width, &row, (size_t)(count * s->sum_width));
        for (int64_t i = 0; i < s->source_count; i += s->inner) {
            side values;
            if (select_side(s, at, s->operand + base * s->width, count, places)) {
                f->vec->loads[f->dtype](
                    &values, s->source + (outer * s->source_count + i + from) * s->width, 1, count);
                add_at(f->class, sums, &values, places, count);
            }
            sf_next_index(s->rank, s->windows, at);
        }
        if (s->sums == s->out)
            continue;
        for (int64_t i = 0; i < s->operand_count; i += s->inner) {
            memcpy(&row, sums + i * s->sum_width, (size_t)(count * s->sum_width));
            f->vec->stores[f->dtype](s->out + (base + i) * s->width, 1, &row, count);
        }
    }
}

/* Sorts the dimensions into outer, between and inner; tabulates the windows of those between. */
static char *set_dims(selecting *s, const sf_op *op, sf_run *runs)
{
    const sf_type *operand = op->in[OPERAND], *source = op->in[SOURCE];
    int64_t strides[SF_MAX_RANK];
    int begin = 0, end = operand->rank;
    sf_sliding windows[SF_MAX_RANK];
    for (int d = 0; d < operand->rank; d++)
        windows[d] = sf_select_and_scatter_window(op, d);
    while (begin < end && sf_sliding_trivial(&windows[begin]))
        begin++;
    while (end > begin && sf_sliding_trivial(&windows[end - 1]))
        end--;
    sf_strides(operand->rank, operand->dims, strides);
    s->outer = s->inner = s->operand_count = s->source_count = 1;
    for (int d = 0; d < operand->rank; d++) {
        if (d < begin)
            s->outer *= operand->dims[d];
        else if (d >= end)
            s->inner *= operand->dims[d];
        if (d < begin)
            continue;
        s->operand_count *= operand->dims[d];
        s->source_count *= source->dims[d];
    }
    for (int d = begin; d < end; d++) {
        s->windows[s->rank] = source->dims[d];
        s->strides[s->rank] = strides[d];
        s->runs[s->rank++] = runs;
        for (int64_t i = 0; i < source->dims[d]; i++)
            *runs++ = sf_sliding_run(&windows[d], i);
    }
    s->chunks = (s->inner + SIDE - 1) / SIDE;
    return (char *)runs;
}

static void run_select(const sf_op *op, int64_t variant, const sf_tensor *in, sf_tensor *out,
                       void *scratch, sf_threads *threads)
{
    sf_dtype dtype = out->type->dtype;
    selecting s = {.folding = sf_folding_of(SF_MONOID_ADD, dtype),
                   .order = (order)variant,
                   .operand = in[OPERAND].data,
                   .source = in[SOURCE].data,
                   .out = out->data,
                   .width = sf_dtype_get(dtype)->bytes};
    char *end = set_dims(&s, op, scratch);
    bool native = sf_folding_native(&s.folding);
    s.sums = native ? s.out : (char *)scratch + ((end - (char *)scratch + 63) & -64);
    s.sum_width = native ? s.width : 4;
    if (sf_is_float(dtype))
        s.init.real = sf_get_f64(&in[INIT], 0);
    else
        s.init.integer = (uint64_t)sf_get_i64(&in[INIT], 0);
    sf_threads_run(threads, s.outer * s.chunks,
                   1 + sf_threads_grain(threads) / (SIDE * s.source_count + 1), select_part, &s);
}

const sf_fast sf_fast_select_and_scatter = {
    .choose = choose_select, .scratch = select_scratch, .run = run_select};
