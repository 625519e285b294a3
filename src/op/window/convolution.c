/* convolution. For one batch element b, output feature o and output position x:
 *
 *     result[b, x, o] = sum over window positions w and input features i of
 *                       lhs[b, element that window x sees at w, i] * rhs[w, i, o]
 *
 * With feature groups, the output features of group g see only the input features of group g. With
 * batch groups, they see only the batch elements of group g, and the result has that many fewer.
 */
#include "op/slots.h"
#include "op/util.h"
#include "op/window/sliding.h"
#include "op/words.h"

enum { NATTRS = SF_CONV_PRECISION + 1 };

#define NUMBER(attribute)                                                                          \
    {                                                                                              \
        .name = (attribute), .group = "dimension_numbers", .kind = SF_ATTR_INT, .required = true   \
    }
#define NUMBERS(attribute)                                                                         \
    {                                                                                              \
        .name = (attribute), .group = "dimension_numbers", .kind = SF_ATTR_INTS                    \
    }

static const sf_attrdef attrs[NATTRS] = {
    [SF_CONV_STRIDES] = {.name = "window_strides",
                         .key = "stride",
                         .kind = SF_ATTR_INTS,
                         .absent = SF_ABSENT_ONES},
    [SF_CONV_PADDING] = {.name = "padding",
                         .key = "pad",
                         .kind = SF_ATTR_INTS,
                         .text = SF_AS_PAIRS,
                         .absent = SF_ABSENT_ZEROS},
    [SF_CONV_LHS_DILATION] = {.name = "lhs_dilation",
                              .key = "lhs_dilate",
                              .kind = SF_ATTR_INTS,
                              .absent = SF_ABSENT_ONES},
    [SF_CONV_RHS_DILATION] = {.name = "rhs_dilation",
                              .key = "rhs_dilate",
                              .kind = SF_ATTR_INTS,
                              .absent = SF_ABSENT_ONES},
    [SF_CONV_REVERSAL] = {.name = "window_reversal",
                          .key = "reverse",
                          .kind = SF_ATTR_INTS,
                          .text = SF_AS_BOOLS,
                          .absent = SF_ABSENT_ZEROS},
    [SF_CONV_LHS_BATCH] = NUMBER("input_batch_dimension"),
    [SF_CONV_LHS_FEATURE] = NUMBER("input_feature_dimension"),
    [SF_CONV_LHS_SPATIAL] = NUMBERS("input_spatial_dimensions"),
    [SF_CONV_RHS_INPUT] = NUMBER("kernel_input_feature_dimension"),
    [SF_CONV_RHS_OUTPUT] = NUMBER("kernel_output_feature_dimension"),
    [SF_CONV_RHS_SPATIAL] = NUMBERS("kernel_spatial_dimensions"),
    [SF_CONV_OUT_BATCH] = NUMBER("output_batch_dimension"),
    [SF_CONV_OUT_FEATURE] = NUMBER("output_feature_dimension"),
    [SF_CONV_OUT_SPATIAL] = NUMBERS("output_spatial_dimensions"),
    [SF_CONV_FEATURE_GROUPS] = {.name = "feature_group_count",
                                .kind = SF_ATTR_INT,
                                .absent = SF_ABSENT_ONES,
                                .always = true},
    [SF_CONV_BATCH_GROUPS] = {.name = "batch_group_count",
                              .kind = SF_ATTR_INT,
                              .absent = SF_ABSENT_ONES,
                              .always = true},
    [SF_CONV_PRECISION] = {.name = "precision_config",
                           .hlo = "operand_precision",
                           .kind = SF_ATTR_TEXT,
                           .prefix = "#stablehlo<precision ",
                           .text = SF_AS_ENUMS},
};

/* The dimension numbers and windows of a convolution that was checked. */
typedef struct conv {
    int spatial; /* number of spatial dimensions */
    int lhs_batch, lhs_feature, rhs_input, rhs_output, out_batch, out_feature;
    int lhs_at[SF_MAX_RANK], rhs_at[SF_MAX_RANK], out_at[SF_MAX_RANK]; /* spatial dimensions */
    int64_t feature_groups, batch_groups;
    sf_sliding windows[SF_MAX_RANK];
    bool reversed[SF_MAX_RANK];
} conv;

static sf_sliding_lists conv_lists(const sf_op *op)
{
    return (sf_sliding_lists){.strides = sf_op_ints(op, SF_CONV_STRIDES),
                              .padding = sf_op_ints(op, SF_CONV_PADDING),
                              .base = sf_op_ints(op, SF_CONV_LHS_DILATION),
                              .dilation = sf_op_ints(op, SF_CONV_RHS_DILATION)};
}

static conv conv_of(const sf_op *op)
{
    conv c = {
        .spatial = op->in[0]->rank - 2,
        .lhs_batch = (int)sf_op_int(op, SF_CONV_LHS_BATCH, 0),
        .lhs_feature = (int)sf_op_int(op, SF_CONV_LHS_FEATURE, 0),
        .rhs_input = (int)sf_op_int(op, SF_CONV_RHS_INPUT, 0),
        .rhs_output = (int)sf_op_int(op, SF_CONV_RHS_OUTPUT, 0),
        .out_batch = (int)sf_op_int(op, SF_CONV_OUT_BATCH, 0),
        .out_feature = (int)sf_op_int(op, SF_CONV_OUT_FEATURE, 0),
        .feature_groups = sf_op_int(op, SF_CONV_FEATURE_GROUPS, 1),
        .batch_groups = sf_op_int(op, SF_CONV_BATCH_GROUPS, 1),
    };
    sf_ints reversal = sf_op_ints(op, SF_CONV_REVERSAL);
    for (int i = 0; i < c.spatial; i++) {
        c.lhs_at[i] = (int)sf_op_ints(op, SF_CONV_LHS_SPATIAL).at[i];
        c.rhs_at[i] = (int)sf_op_ints(op, SF_CONV_RHS_SPATIAL).at[i];
        c.out_at[i] = (int)sf_op_ints(op, SF_CONV_OUT_SPATIAL).at[i];
        c.windows[i].operand = op->in[0]->dims[c.lhs_at[i]];
        c.windows[i].size = op->in[1]->dims[c.rhs_at[i]];
        c.reversed[i] = reversal.count && reversal.at[i];
        sf_sliding_fill(conv_lists(op), i, &c.windows[i]);
    }
    return c;
}

/* Two numbers and a list must be a permutation of the dimensions. */
static sf_status check_numbers(const sf_op *op, int first, int second, int spatial,
                               const char *what, sf_diag *diag)
{
    int rank = op->in[0]->rank;
    sf_ints list = sf_op_ints(op, spatial);
    int64_t all[SF_MAX_RANK];
    if (list.count != rank - 2)
        return SF_OP_FAIL(op, diag, "%s has %d spatial dimensions, expected %d", what, list.count,
                          rank - 2);
    all[0] = sf_op_int(op, first, 0);
    all[1] = sf_op_int(op, second, 0);
    for (int i = 0; i < list.count; i++)
        all[2 + i] = list.at[i];
    return sf_check_dims(op, (sf_ints){rank, all}, rank, what, diag);
}

static sf_status check_groups(const sf_op *op, const conv *c, sf_diag *diag)
{
    int64_t batch = op->in[0]->dims[c->lhs_batch], input = op->in[0]->dims[c->lhs_feature];
    int64_t per_group = op->in[1]->dims[c->rhs_input], output = op->in[1]->dims[c->rhs_output];
    int64_t features = c->feature_groups, batches = c->batch_groups;
    if (features < 1 || batches < 1)
        return SF_OP_FAIL(op, diag, "the number of groups must be positive");
    if (features != 1 && batches != 1)
        return SF_OP_FAIL(op, diag, "feature groups and batch groups do not go together");
    if (input % features != 0 || output % features != 0)
        return SF_OP_FAIL(op, diag,
                          "%" PRId64 " input and %" PRId64
                          " output features are not a multiple of %" PRId64 " groups",
                          input, output, features);
    if (batch % batches != 0 || output % batches != 0)
        return SF_OP_FAIL(op, diag,
                          "a batch of %" PRId64 " and %" PRId64
                          " output features are not a multiple of %" PRId64 " groups",
                          batch, output, batches);
    if (per_group != input / features)
        return SF_OP_FAIL(op, diag,
                          "the kernel takes %" PRId64 " input features, a group has %" PRId64,
                          per_group, input / features);
    return SF_OK;
}

static sf_status check_operands(const sf_op *op, sf_dtype dtype, sf_diag *diag)
{
    const sf_type *lhs = op->in[0], *rhs = op->in[1];
    if (lhs->rank != rhs->rank || lhs->rank < 2)
        return SF_OP_FAIL(op, diag, "operands have ranks %d and %d, expected the same, at least 2",
                          lhs->rank, rhs->rank);
    SF_TRY(sf_check_product(op, dtype, diag));
    SF_TRY(check_numbers(op, SF_CONV_LHS_BATCH, SF_CONV_LHS_FEATURE, SF_CONV_LHS_SPATIAL,
                         "the input", diag));
    SF_TRY(check_numbers(op, SF_CONV_RHS_INPUT, SF_CONV_RHS_OUTPUT, SF_CONV_RHS_SPATIAL,
                         "the kernel", diag));
    SF_TRY(check_numbers(op, SF_CONV_OUT_BATCH, SF_CONV_OUT_FEATURE, SF_CONV_OUT_SPATIAL,
                         "the output", diag));
    sf_ints reversal = sf_op_ints(op, SF_CONV_REVERSAL);
    if (reversal.count != 0 && reversal.count != lhs->rank - 2)
        return SF_OP_FAIL(op, diag, "window_reversal has %d entries, expected %d", reversal.count,
                          lhs->rank - 2);
    return SF_OK;
}

static sf_status infer_conv(const sf_op *op, const sf_type **out, sf_diag *diag)
{
    sf_dtype dtype = op->out ? op->out[0]->dtype : op->in[0]->dtype;
    SF_TRY(check_operands(op, dtype, diag));
    sf_sliding windows[SF_MAX_RANK];
    int64_t counts[SF_MAX_RANK], dims[SF_MAX_RANK];
    sf_ints lhs = sf_op_ints(op, SF_CONV_LHS_SPATIAL), rhs = sf_op_ints(op, SF_CONV_RHS_SPATIAL);
    for (int i = 0; i < lhs.count; i++) {
        windows[i].operand = op->in[0]->dims[lhs.at[i]];
        windows[i].size = op->in[1]->dims[rhs.at[i]];
    }
    SF_TRY(sf_sliding_check(op, conv_lists(op), lhs.count, windows, counts, diag));
    conv c = conv_of(op);
    SF_TRY(check_groups(op, &c, diag));
    dims[c.out_batch] = op->in[0]->dims[c.lhs_batch] / c.batch_groups;
    dims[c.out_feature] = op->in[1]->dims[c.rhs_output];
    for (int i = 0; i < c.spatial; i++)
        dims[c.out_at[i]] = counts[i];
    out[0] = sf_type_get(op->pool, dtype, op->in[0]->rank, dims);
    return out[0] ? SF_OK : SF_OP_FAIL(op, diag, "the result is too large");
}

/* One factor of the feature and batch dimensions, on the tensors it walks (-1: not there). */
static void add_factor(sf_factoring *out, int64_t size, sf_factor_role role, int lhs, int rhs,
                       int result)
{
    int factor = sf_factor_add(out, size, role, role == SF_REDUCE ? SF_MONOID_ADD : SF_MONOID_NONE);
    int dims[3] = {lhs, rhs, result};
    for (int i = 0; i < 3; i++)
        if (dims[i] >= 0)
            sf_factor_walk(out, i, dims[i], factor);
}

static void factors_conv(const sf_op *op, sf_factoring *out)
{
    conv c = conv_of(op);
    int64_t batch = op->in[0]->dims[c.lhs_batch], input = op->in[1]->dims[c.rhs_input];
    int64_t output = op->in[1]->dims[c.rhs_output];
    /* The group is the major part of the dimensions that it cuts. */
    if (c.feature_groups > 1)
        add_factor(out, c.feature_groups, SF_MAP, c.lhs_feature, c.rhs_output, c.out_feature);
    if (c.batch_groups > 1)
        add_factor(out, c.batch_groups, SF_MAP, c.lhs_batch, c.rhs_output, c.out_feature);
    add_factor(out, batch / c.batch_groups, SF_MAP, c.lhs_batch, -1, c.out_batch);
    add_factor(out, output / c.feature_groups / c.batch_groups, SF_MAP, -1, c.rhs_output,
               c.out_feature);
    add_factor(out, input, SF_REDUCE, c.lhs_feature, c.rhs_input, -1);
    for (int i = 0; i < c.spatial; i++) {
        bool trivial = sf_sliding_trivial(&c.windows[i]);
        add_factor(out, op->out[0]->dims[c.out_at[i]], trivial ? SF_MAP : SF_WINDOW, c.lhs_at[i],
                   -1, c.out_at[i]);
        out->walks[0][c.lhs_at[i]].halo = !trivial;
        add_factor(out, c.windows[i].size, SF_REDUCE, -1, c.rhs_at[i], -1);
    }
}

/* Groups that are split among ranks are fewer on each. */
static void localize_conv(const sf_op *op, const sf_type *const *pieces, const sf_attr **attributes)
{
    conv c = conv_of(op);
    int64_t batch = pieces[2]->dims[c.out_batch], input = pieces[1]->dims[c.rhs_input];
    if (c.feature_groups > 1 && input > 0)
        attributes[SF_CONV_FEATURE_GROUPS] =
            sf_attr_int(op->pool, pieces[0]->dims[c.lhs_feature] / input);
    if (c.batch_groups > 1 && batch > 0)
        attributes[SF_CONV_BATCH_GROUPS] =
            sf_attr_int(op->pool, pieces[0]->dims[c.lhs_batch] / batch);
}

static void halo_conv(const sf_op *op, int factor, int tensor, int dim, int64_t first, int64_t end,
                      int64_t *need_first, int64_t *need_end)
{
    (void)factor, (void)tensor;
    conv c = conv_of(op);
    for (int i = 0; i < c.spatial; i++)
        if (c.lhs_at[i] == dim)
            sf_sliding_need(&c.windows[i], first, end, need_first, need_end);
}

static double flops_conv(const sf_op *op)
{
    double rhs = (double)op->in[1]->count, output = (double)op->in[1]->dims[conv_of(op).rhs_output];
    return output == 0 ? 0 : 2 * (double)op->out[0]->count * (rhs / output);
}

/* Local output features [first, first + count) of one group, and where their inputs are. */
typedef struct group {
    int64_t first, count;
    const int64_t *channels; /* [rhs input feature]: local feature of lhs */
    const int64_t *batches;  /* [result batch]: local batch element of lhs */
} group;

/* A convolution of shards, with all index tables made once. Shapes of the arrays, with S the
 * spatial dimensions flattened: lhs (batch, S, channel), rhs (S, channel, feature), result (batch,
 * S, feature). */
typedef struct job {
    conv c;
    sf_arena *arena;
    sf_dtype sum; /* type of the sums */
    const sf_type *lhs_type, *rhs_type, *out_type;
    const sf_word *lhs, *rhs;
    int64_t lhs_area, rhs_area, out_area; /* elements of S */
    int64_t channels, batch, features;    /* rhs input features; result's batch and features */
    int ngroups;
    group *groups;
    int64_t *seen[SF_MAX_RANK]; /* [result position][kernel position]: position of lhs, or -1 */
} job;

static sf_status fail_conv_halo(sf_eval *eval, const sf_op *op)
{
    return sf_fail(eval->diag, SF_EINPUT, op->loc,
                   "stablehlo.convolution: halo missing: the shard of the input does not hold what "
                   "the shard of the result needs");
}

/* Tabulates which element of lhs each window reads. False when the shard does not hold one. */
static bool look_up_windows(job *j, const sf_tensor *in, const sf_tensor *out)
{
    for (int d = 0; d < j->c.spatial; d++) {
        const sf_sliding *window = &j->c.windows[d];
        sf_span lhs = sf_tensor_span(&in[0], j->c.lhs_at[d]);
        sf_span rhs = sf_tensor_span(&in[1], j->c.rhs_at[d]);
        sf_span result = sf_tensor_span(out, j->c.out_at[d]);
        int64_t nout = j->out_type->dims[j->c.out_at[d]], nk = j->rhs_type->dims[j->c.rhs_at[d]];
        j->seen[d] = SF_ARRAY(j->arena, nout * nk, int64_t);
        for (int64_t i = 0; i < nout * nk; i++) {
            int64_t w = sf_span_global(rhs, i % nk);
            if (j->c.reversed[d])
                w = window->size - 1 - w;
            int64_t element = sf_sliding_at(window, sf_span_global(result, i / nk), w);
            j->seen[d][i] = element < 0 ? -1 : sf_span_local(lhs, element);
            if (element >= 0 && j->seen[d][i] < 0)
                return false;
        }
    }
    return true;
}

/* Fills in the inputs of group number `number`. False when the shard does not hold one. */
static bool look_up_inputs(const job *j, const sf_op *op, const sf_tensor *in, const sf_tensor *out,
                           int64_t number, group *g)
{
    int64_t feature_group = j->c.feature_groups > 1 ? number : 0;
    int64_t batch_group = j->c.batch_groups > 1 ? number : 0;
    sf_span lhs_feature = sf_tensor_span(&in[0], j->c.lhs_feature);
    sf_span lhs_batch = sf_tensor_span(&in[0], j->c.lhs_batch);
    sf_span rhs_input = sf_tensor_span(&in[1], j->c.rhs_input);
    sf_span out_batch = sf_tensor_span(out, j->c.out_batch);
    int64_t *channels = SF_ARRAY(j->arena, j->channels, int64_t);
    int64_t *batches = SF_ARRAY(j->arena, j->batch, int64_t);
    bool held = true;
    for (int64_t i = 0; i < j->channels; i++) {
        int64_t whole = feature_group * op->in[1]->dims[j->c.rhs_input];
        channels[i] = sf_span_local(lhs_feature, whole + sf_span_global(rhs_input, i));
        held = held && channels[i] >= 0;
    }
    for (int64_t i = 0; i < j->batch; i++) {
        int64_t whole = batch_group * op->out[0]->dims[j->c.out_batch];
        batches[i] = sf_span_local(lhs_batch, whole + sf_span_global(out_batch, i));
        held = held && batches[i] >= 0;
    }
    g->channels = channels;
    g->batches = batches;
    return held;
}

static bool look_up_groups(job *j, const sf_op *op, const sf_tensor *in, const sf_tensor *out)
{
    sf_span span = sf_tensor_span(out, j->c.out_feature);
    int64_t ngroups = j->c.feature_groups * j->c.batch_groups;
    if (j->features == 0)
        return true;
    int64_t per_group = op->out[0]->dims[j->c.out_feature] / ngroups, newest = -1;
    size_t count = 0, capacity = 0;
    for (int64_t i = 0; i < j->features; i++) {
        int64_t number = sf_span_global(span, i) / per_group;
        if (number != newest) {
            group g = {.first = i};
            if (!look_up_inputs(j, op, in, out, number, &g))
                return false;
            SF_PUSH(j->arena, j->groups, count, capacity, g);
            newest = number;
        }
        j->groups[count - 1].count++;
    }
    j->ngroups = (int)count;
    return true;
}

/* For result position `at`: the kernel positions that see an element, and which. Returns how many. */
static int64_t visible_element(const job *j, const int64_t *at, int64_t *kernel, int64_t *element)
{
    int64_t w[SF_MAX_RANK] = {0}, sizes[SF_MAX_RANK], count = 0;
    for (int d = 0; d < j->c.spatial; d++)
        sizes[d] = j->rhs_type->dims[j->c.rhs_at[d]];
    for (int64_t k = 0; k < j->rhs_area; k++) {
        int64_t flat = 0;
        for (int d = 0; d < j->c.spatial && flat >= 0; d++) {
            int64_t seen = j->seen[d][at[d] * sizes[d] + w[d]];
            flat = seen < 0 ? -1 : flat * j->lhs_type->dims[j->c.lhs_at[d]] + seen;
        }
        if (flat >= 0) {
            kernel[count] = k;
            element[count++] = flat;
        }
        sf_next_index(j->c.spatial, sizes, w);
    }
    return count;
}

/* The features of one result position. */
static void sum_position(const job *j, int64_t batch, int64_t nvisible, const int64_t *kernel,
                         const int64_t *element, sf_word *sums)
{
    int64_t depth = j->lhs_type->dims[j->c.lhs_feature], parts = sf_parts_of(j->sum);
    for (int g = 0; g < j->ngroups; g++) {
        const group *now = &j->groups[g];
        for (int64_t v = 0; v < nvisible; v++) {
            int64_t x = (now->batches[batch] * j->lhs_area + element[v]) * depth;
            int64_t weights = kernel[v] * j->channels * j->features + now->first;
            for (int64_t i = 0; i < j->channels; i++)
                sf_words_add_scaled(j->sum, now->count, j->lhs + (x + now->channels[i]) * parts,
                                    j->rhs + (weights + i * j->features) * parts,
                                    sums + now->first * parts);
        }
    }
}

static sf_word *sum_all(const job *j)
{
    int parts = sf_parts_of(j->sum);
    sf_word *sums = SF_ARRAY(j->arena, j->batch * j->out_area * j->features * parts, sf_word);
    int64_t *kernel = SF_ARRAY(j->arena, j->rhs_area, int64_t);
    int64_t *element = SF_ARRAY(j->arena, j->rhs_area, int64_t);
    int64_t at[SF_MAX_RANK] = {0}, sizes[SF_MAX_RANK];
    for (int d = 0; d < j->c.spatial; d++)
        sizes[d] = j->out_type->dims[j->c.out_at[d]];
    for (int64_t x = 0; x < j->out_area; x++) {
        int64_t nvisible = visible_element(j, at, kernel, element);
        for (int64_t b = 0; b < j->batch; b++)
            sum_position(j, b, nvisible, kernel, element,
                         sums + (b * j->out_area + x) * j->features * parts);
        sf_next_index(j->c.spatial, sizes, at);
    }
    return sums;
}

static int64_t area_of_dims(const sf_type *type, int count, const int *dims)
{
    int64_t size = 1;
    for (int i = 0; i < count; i++)
        size *= type->dims[dims[i]];
    return size;
}

/* An order of dimensions with the spatial ones from place `at` on. */
static void spatial_order(const int *dims, int count, int at, int *order)
{
    for (int i = 0; i < count; i++)
        order[at + i] = dims[i];
}

static void store_sums(const job *j, sf_word *sums, sf_tensor *out)
{
    int rank = j->out_type->rank, order[SF_MAX_RANK], back[SF_MAX_RANK];
    int64_t dims[SF_MAX_RANK];
    order[0] = j->c.out_batch;
    order[rank - 1] = j->c.out_feature;
    spatial_order(j->c.out_at, j->c.spatial, 1, order);
    for (int i = 0; i < rank; i++) {
        dims[i] = j->out_type->dims[order[i]];
        back[order[i]] = i;
    }
    sf_words_store(out, sf_words_transpose(j->arena, sums, sf_parts_of(j->sum), rank, dims, back));
}

static sf_status eval_piece(sf_eval *eval, const sf_op *op, const sf_tensor *in, sf_tensor *out)
{
    job j = {.c = conv_of(op), .arena = &eval->scratch};
    j.sum = sf_product_dtype(eval, op->out[0]->dtype);
    j.lhs_type = in[0].type, j.rhs_type = in[1].type, j.out_type = out->type;
    j.lhs_area = area_of_dims(j.lhs_type, j.c.spatial, j.c.lhs_at);
    j.rhs_area = area_of_dims(j.rhs_type, j.c.spatial, j.c.rhs_at);
    j.out_area = area_of_dims(j.out_type, j.c.spatial, j.c.out_at);
    j.channels = j.rhs_type->dims[j.c.rhs_input];
    j.batch = j.out_type->dims[j.c.out_batch];
    j.features = j.out_type->dims[j.c.out_feature];
    if (!look_up_windows(&j, in, out) || !look_up_groups(&j, op, in, out))
        return fail_conv_halo(eval, op);

    int rank = j.lhs_type->rank, parts = sf_parts_of(j.sum), order[SF_MAX_RANK];
    order[0] = j.c.lhs_batch;
    order[rank - 1] = j.c.lhs_feature;
    spatial_order(j.c.lhs_at, j.c.spatial, 1, order);
    j.lhs = sf_words_transpose(j.arena, sf_words_load(j.arena, &in[0], j.sum), parts, rank,
                               j.lhs_type->dims, order);
    order[rank - 2] = j.c.rhs_input;
    order[rank - 1] = j.c.rhs_output;
    spatial_order(j.c.rhs_at, j.c.spatial, 0, order);
    j.rhs = sf_words_transpose(j.arena, sf_words_load(j.arena, &in[1], j.sum), parts, rank,
                               j.rhs_type->dims, order);
    store_sums(&j, sum_all(&j), out);
    return SF_OK;
}

static sf_status eval_conv(sf_eval *eval, const sf_op *op, const sf_tensor *in, sf_tensor *out)
{
    if (in[0].type->count == 0 || in[1].type->count == 0 || out->type->count == 0)
        return SF_OK; /* empty, or sums of nothing */
    sf_mark mark = sf_arena_mark(&eval->scratch);
    sf_status status = eval_piece(eval, op, in, out);
    sf_arena_reset(&eval->scratch, mark);
    return status;
}

/* Operands and results as they come, and in order; and for every place of the result, along each dimension, the
 * element under each place of the window. */
static double scratch_conv(const sf_op *op)
{
    sf_ints kernel = sf_op_ints(op, SF_CONV_RHS_SPATIAL);
    sf_ints result = sf_op_ints(op, SF_CONV_OUT_SPATIAL);
    int64_t groups =
        sf_op_int(op, SF_CONV_FEATURE_GROUPS, 1) * sf_op_int(op, SF_CONV_BATCH_GROUPS, 1);
    double seen = 0, area = 1;
    for (int d = 0; d < kernel.count; d++) {
        double size = (double)op->in[1]->dims[kernel.at[d]];
        seen += size * (double)op->out[0]->dims[result.at[d]];
        area *= size;
    }
    double windows = seen + 2 * area + (sf_dimension_sum(op) + 8) * (double)groups;
    return 2 * sf_scratch_words(op) + sizeof(int64_t) * windows;
}

const sf_opdef sf_op_convolution = {
    .name = "convolution",
    .dialect = "stablehlo",
    .hlo = "convolution",
    .doc =
        "Slides a kernel over the spatial dimensions and sums the products over window positions "
        "and input features.",
    .id = SF_OP_CONVOLUTION,
    .form = SF_FORM_CONV,
    .min_operands = 2,
    .max_operands = 2,
    .nresults = 1,
    .attrs = attrs,
    .nattrs = NATTRS,
    .group = "#stablehlo.conv",
    .infer = infer_conv,
    .factors = factors_conv,
    .halo = halo_conv,
    .linear = sf_linear_each,
    .local = localize_conv,
    .flops = flops_conv,
    .eval = eval_conv,
    .positional = true,
    .precision = SF_CONV_PRECISION + 1,
    .cost = SF_COST_PRODUCT,
    .scratch = scratch_conv,
    .sample =
        {.arguments = "%a: tensor<2x8x3xf32>, %b: tensor<3x3x4xf32>",
         .use = "%r = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], "
                "window = "
                "{pad = [[1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : "
                "(tensor<2x8x3xf32>, tensor<3x3x4xf32>) -> tensor<2x8x4xf32>",
         .results = "%r",
         .types = "tensor<2x8x4xf32>"},
};
