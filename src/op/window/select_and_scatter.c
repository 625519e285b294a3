/* select_and_scatter, the gradient of pooling: in each window of the operand one element is selected,
 * and the source's value for that window is combined into the result at that place. */
#include "base/checked.h"
#include "op/body.h"
#include "op/slots.h"
#include "op/util.h"
#include "op/window/sliding.h"

enum { NATTRS = SF_SELECT_AND_SCATTER_BODY + 1 };
enum { SELECT_REGION, SCATTER_REGION };
enum { OPERAND, SOURCE, INIT, RESULT };

static const sf_attrdef attrs[NATTRS] = {
    [SF_SELECT_AND_SCATTER_SIZES] = {.name = "window_dimensions",
                                     .kind = SF_ATTR_INTS,
                                     .absent = SF_ABSENT_ONES},
    [SF_SELECT_AND_SCATTER_STRIDES] = {.name = "window_strides",
                                       .kind = SF_ATTR_INTS,
                                       .absent = SF_ABSENT_ONES},
    [SF_SELECT_AND_SCATTER_PADDING] = {.name = "padding",
                                       .kind = SF_ATTR_INTS,
                                       .text = SF_AS_PAIRS,
                                       .absent = SF_ABSENT_ZEROS},
    [SF_SELECT_AND_SCATTER_SELECT] = {.name = "select", .kind = SF_ATTR_TEXT, .derived = true},
    [SF_SELECT_AND_SCATTER_BODY] = {.name = "body", .kind = SF_ATTR_INT, .derived = true},
};

static sf_sliding_lists select_lists(const sf_op *op)
{
    return (sf_sliding_lists){.strides = sf_op_ints(op, SF_SELECT_AND_SCATTER_STRIDES),
                              .padding = sf_op_ints(op, SF_SELECT_AND_SCATTER_PADDING)};
}

sf_sliding sf_select_and_scatter_window(const sf_op *op, int dim)
{
    sf_ints sizes = sf_op_ints(op, SF_SELECT_AND_SCATTER_SIZES);
    sf_sliding window = {.operand = op->in[OPERAND]->dims[dim],
                         .size = sizes.count ? sizes.at[dim] : 1};
    sf_sliding_fill(select_lists(op), dim, &window);
    return window;
}

/* The comparison that keeps the selected element against the next one. */
typedef enum order { EQ, NE, GE, GT, LE, LT, NO_ORDER } order;

static order order_of_select(const sf_op *op)
{
    static const char *const names[] = {"EQ", "NE", "GE", "GT", "LE", "LT"};
    int i = 0;
    while (i < NO_ORDER && strcmp(names[i], sf_op_text(op, SF_SELECT_AND_SCATTER_SELECT)) != 0)
        i++;
    return (order)i;
}

static sf_status check_select_bodies(const sf_op *op, sf_diag *diag)
{
    if (!op->attrs[SF_SELECT_AND_SCATTER_SELECT] != !op->attrs[SF_SELECT_AND_SCATTER_BODY])
        return SF_OP_FAIL(op, diag, "only one of the two bodies is recognised");
    if (op->attrs[SF_SELECT_AND_SCATTER_SELECT] && order_of_select(op) == NO_ORDER)
        return SF_OP_FAIL(op, diag, "selects by the unknown comparison %s",
                          sf_op_text(op, SF_SELECT_AND_SCATTER_SELECT));
    if (!op->attrs[SF_SELECT_AND_SCATTER_SELECT])
        SF_TRY(sf_check_scalar_block(op, SELECT_REGION, 1, 1, SF_PRED, diag));
    return sf_check_body(op, SF_SELECT_AND_SCATTER_BODY, SCATTER_REGION, 1, diag);
}

static sf_status infer_select_and_scatter(const sf_op *op, const sf_type **out, sf_diag *diag)
{
    const sf_type *operand = op->in[OPERAND], *source = op->in[SOURCE], *init = op->in[INIT];
    sf_ints sizes = sf_op_ints(op, SF_SELECT_AND_SCATTER_SIZES);
    if (source->dtype != operand->dtype || source->rank != operand->rank)
        return SF_OP_FAIL(op, diag, "operand and source differ in rank or element type");
    if (sf_is_complex(operand->dtype))
        return SF_OP_FAIL(op, diag, "not defined on elements of type %s",
                          sf_dtype_get(operand->dtype)->name);
    if (init->rank != 0 || init->dtype != operand->dtype)
        return SF_OP_FAIL(op, diag, "the initial value is no scalar of the operand's type %s",
                          sf_dtype_get(operand->dtype)->name);
    SF_TRY(check_select_bodies(op, diag));
    if (sizes.count != 0 && sizes.count != operand->rank)
        return SF_OP_FAIL(op, diag, "window_dimensions has %d entries, expected %d", sizes.count,
                          operand->rank);
    sf_sliding windows[SF_MAX_RANK];
    int64_t counts[SF_MAX_RANK];
    for (int d = 0; d < operand->rank; d++) {
        windows[d].operand = operand->dims[d];
        windows[d].size = sizes.count ? sizes.at[d] : 1;
    }
    SF_TRY(sf_sliding_check(op, select_lists(op), operand->rank, windows, counts, diag));
    for (int d = 0; d < operand->rank; d++)
        if (counts[d] != source->dims[d])
            return SF_OP_FAIL(op, diag,
                              "dimension %d has %" PRId64 " windows, but the source has %" PRId64
                              " values",
                              d, counts[d], source->dims[d]);
    out[0] = operand;
    return SF_OK;
}

/* The factor of a dimension counts positions of the result; the source and the operand are read
 * around them. */
static void factors_select_and_scatter(const sf_op *op, sf_factoring *out)
{
    for (int d = 0; d < op->in[OPERAND]->rank; d++) {
        sf_sliding window = sf_select_and_scatter_window(op, d);
        bool trivial = sf_sliding_trivial(&window);
        int factor =
            sf_factor_add(out, window.operand, trivial ? SF_MAP : SF_WINDOW, SF_MONOID_NONE);
        sf_factor_walk(out, OPERAND, d, factor);
        sf_factor_walk(out, SOURCE, d, factor);
        sf_factor_walk(out, RESULT, d, factor);
        out->walks[OPERAND][d].halo = out->walks[SOURCE][d].halo = !trivial;
    }
}

/* Positions [first, end) of the result get values from the windows that touch them; to know whether
 * they do, all of those windows must be seen. */
static void halo_select_and_scatter(const sf_op *op, int factor, int tensor, int dim, int64_t first,
                                    int64_t end, int64_t *need_first, int64_t *need_end)
{
    (void)factor;
    sf_sliding window = sf_select_and_scatter_window(op, dim);
    int64_t windows = op->in[SOURCE]->dims[dim];
    int64_t from = sf_ceil_div(first + window.low - window.size + 1, window.stride);
    int64_t to = sf_floor_div(end - 1 + window.low, window.stride) + 1;
    from = from < 0 ? 0 : from;
    to = to > windows ? windows : to;
    *need_first = *need_end = 0;
    if (first >= end || from >= to)
        return;
    if (tensor == OPERAND) {
        sf_sliding_need(&window, from, to, need_first, need_end);
    } else {
        *need_first = from;
        *need_end = to;
    }
}

static double flops_select_and_scatter(const sf_op *op)
{
    double count = (double)op->in[SOURCE]->count;
    for (int d = 0; d < op->in[OPERAND]->rank; d++)
        count *= (double)sf_select_and_scatter_window(op, d).size;
    return count + (double)op->in[SOURCE]->count;
}

typedef struct job {
    sf_eval *eval;
    const sf_op *op;
    bool known; /* the bodies are a comparison and a monoid */
    order order;
    sf_monoid monoid;
    sf_dtype dtype;
    sf_body select, scatter;            /* where they are regions */
    const sf_tensor *in;                /* shards */
    sf_tensor *out;                     /* shard */
    sf_word *operand, *source, *result; /* elements, where the bodies are known */
    sf_run *runs[SF_MAX_RANK];    /* [source position]: the elements of its window, in the shard */
    int64_t *places[SF_MAX_RANK]; /* [operand position]: the same in the result's shard, or -1 */
} job;

static bool compare_words(const job *j, sf_word a, sf_word b)
{
    bool equal, less;
    if (sf_is_float(j->dtype)) {
        equal = a.real == b.real;
        less = a.real < b.real;
        if (!(equal || less || a.real > b.real))
            return j->order == NE; /* a NaN */
    } else {
        equal = a.integer == b.integer;
        less = sf_is_unsigned(j->dtype) ? a.integer < b.integer
                                        : (int64_t)a.integer < (int64_t)b.integer;
    }
    bool by_order[] = {[EQ] = equal,           [NE] = !equal,        [GE] = !less,
                       [GT] = !less && !equal, [LE] = less || equal, [LT] = less};
    return by_order[j->order];
}

/* Whether the selected element stays selected when `next` comes. */
static sf_status keeps_selected(job *j, int64_t selected, int64_t next, bool *out)
{
    if (j->known) {
        *out = compare_words(j, j->operand[selected], j->operand[next]);
        return SF_OK;
    }
    sf_body_set(&j->select, 0, &j->in[OPERAND], selected);
    sf_body_set(&j->select, 1, &j->in[OPERAND], next);
    SF_TRY(sf_body_run(&j->select));
    *out = sf_get_i64(&j->select.results[0], 0) != 0;
    return SF_OK;
}

static sf_status scatter_source(job *j, int64_t place, int64_t source)
{
    if (j->known) {
        sf_words_combine(j->monoid, j->dtype, &j->result[place], &j->source[source]);
        return SF_OK;
    }
    sf_body_set(&j->scatter, 0, j->out, place);
    sf_body_set(&j->scatter, 1, &j->in[SOURCE], source);
    SF_TRY(sf_body_step(&j->scatter));
    sf_body_get(&j->scatter, 0, j->out, place);
    return SF_OK;
}

/* Selects in the window of source position `at`, and scatters its value if the selected place is in
 * the result's shard. A window of padding alone selects nothing. */
static sf_status visit_window(job *j, const int64_t *at, int64_t source)
{
    const sf_type *operand = j->in[OPERAND].type;
    int64_t counts[SF_MAX_RANK], w[SF_MAX_RANK] = {0}, selected = -1, place = 0;
    for (int d = 0; d < operand->rank; d++) {
        counts[d] = j->runs[d][at[d]].count;
        if (counts[d] == 0)
            return SF_OK;
    }
    do {
        int64_t flat = 0;
        for (int d = 0; d < operand->rank; d++)
            flat = flat * operand->dims[d] + j->runs[d][at[d]].first + w[d];
        bool stays = false;
        if (selected >= 0)
            SF_TRY(keeps_selected(j, selected, flat, &stays));
        if (!stays)
            selected = flat;
    } while (sf_next_index(operand->rank, counts, w));

    int64_t index[SF_MAX_RANK], rest = selected;
    for (int d = operand->rank - 1; d >= 0; d--) {
        index[d] = rest % operand->dims[d];
        rest /= operand->dims[d];
    }
    for (int d = 0; d < operand->rank; d++) {
        int64_t local = j->places[d][index[d]];
        if (local < 0)
            return SF_OK;
        place = place * j->out->type->dims[d] + local;
    }
    return scatter_source(j, place, source);
}

/* Tabulates windows and places. False when the shard of the operand does not hold a window. */
static bool tabulate_windows(job *j)
{
    sf_arena *arena = &j->eval->scratch;
    for (int d = 0; d < j->out->type->rank; d++) {
        sf_sliding window = sf_select_and_scatter_window(j->op, d);
        sf_span operand = sf_tensor_span(&j->in[OPERAND], d);
        sf_span source = sf_tensor_span(&j->in[SOURCE], d);
        sf_span result = sf_tensor_span(j->out, d);
        int64_t nsource = j->in[SOURCE].type->dims[d], noperand = j->in[OPERAND].type->dims[d];
        j->runs[d] = SF_ARRAY(arena, nsource, sf_run);
        for (int64_t i = 0; i < nsource; i++) {
            j->runs[d][i] = sf_sliding_run(&window, sf_span_global(source, i));
            if (!sf_run_localize(operand, &j->runs[d][i]))
                return false;
        }
        j->places[d] = SF_ARRAY(arena, noperand, int64_t);
        for (int64_t i = 0; i < noperand; i++)
            j->places[d][i] = sf_span_local(result, sf_span_global(operand, i));
    }
    return true;
}

/* Fills the result with the initial value and unpacks the bodies' operands. */
static void prepare_job(job *j)
{
    sf_arena *arena = &j->eval->scratch;
    int64_t count = j->out->type->count;
    if (!j->known) {
        j->select = sf_body_new(j->eval, j->op, SELECT_REGION, 1, 1);
        j->scatter = sf_body_new(j->eval, j->op, SCATTER_REGION, 1, 1);
        sf_body_set(&j->scatter, 0, &j->in[INIT], 0);
        for (int64_t i = 0; i < count; i++)
            sf_body_get(&j->scatter, 0, j->out, i);
        return;
    }
    j->operand = sf_words_load(arena, &j->in[OPERAND], j->dtype);
    j->source = sf_words_load(arena, &j->in[SOURCE], j->dtype);
    j->result = SF_ARRAY(arena, count, sf_word);
    sf_word init = *sf_words_load(arena, &j->in[INIT], j->dtype);
    for (int64_t i = 0; i < count; i++)
        j->result[i] = init;
}

static sf_status run_job(job *j)
{
    const sf_type *source = j->in[SOURCE].type;
    int64_t at[SF_MAX_RANK] = {0};
    if (!tabulate_windows(j))
        return sf_fail(j->eval->diag, SF_EINPUT, j->op->loc,
                       "stablehlo.select_and_scatter: halo missing: the shard of the operand does "
                       "not hold the windows of the shard of the source");
    prepare_job(j);
    for (int64_t i = 0; i < source->count; i++) {
        SF_TRY(visit_window(j, at, i));
        sf_next_index(source->rank, source->dims, at);
    }
    if (j->known)
        sf_words_store(j->out, j->result);
    return SF_OK;
}

static sf_status eval_select_and_scatter(sf_eval *eval, const sf_op *op, const sf_tensor *in,
                                         sf_tensor *out)
{
    sf_mark mark = sf_arena_mark(&eval->scratch);
    job j = {.eval = eval,
             .op = op,
             .known = op->attrs[SF_SELECT_AND_SCATTER_BODY] != NULL,
             .order = order_of_select(op),
             .monoid = sf_op_monoid(op, SF_SELECT_AND_SCATTER_BODY),
             .dtype = sf_sum_dtype(eval, op->in[OPERAND]->dtype),
             .in = in,
             .out = out};
    sf_status status = run_job(&j);
    sf_arena_reset(&eval->scratch, mark);
    return status;
}

const sf_opdef sf_op_select_and_scatter = {
    .name = "select_and_scatter",
    .dialect = "stablehlo",
    .hlo = "select-and-scatter",
    .doc =
        "Selects an element of each window and combines the source's value into the result there.",
    .id = SF_OP_SELECT_AND_SCATTER,
    .form = SF_FORM_GENERIC,
    .min_operands = 3,
    .max_operands = 3,
    .nresults = 1,
    .nregions = 2,
    .attrs = attrs,
    .nattrs = NATTRS,
    .infer = infer_select_and_scatter,
    .factors = factors_select_and_scatter,
    .halo = halo_select_and_scatter,
    .flops = flops_select_and_scatter,
    .eval = eval_select_and_scatter,
    .scratch = sf_scratch_words_and_places,
    .sample = {.arguments = "%a: tensor<3x8xf32>, %b: tensor<3x4xf32>, %c: tensor<f32>",
               .use = "%r = \"stablehlo.select_and_scatter\"(%a, %b, %c) <{window_dimensions = "
                      "array<i64: 1, 2>, "
                      "window_strides = array<i64: 1, 2>}> ({\n"
                      "  ^bb0(%x: tensor<f32>, %y: tensor<f32>):\n"
                      "    %z = stablehlo.compare GE, %x, %y, FLOAT : (tensor<f32>, tensor<f32>) "
                      "-> tensor<i1>\n"
                      "    stablehlo.return %z : tensor<i1>\n"
                      "  }, {\n" SF_SAMPLE_BODY(
                          "add") "  }) : (tensor<3x8xf32>, tensor<3x4xf32>, tensor<f32>) -> "
                                 "tensor<3x8xf32>",
               .results = "%r",
               .types = "tensor<3x8xf32>"},
};
