/* dot_general: result[batch, m, n] = sum over k of lhs[batch, m, k] * rhs[batch, k, n], where each
 * of the four is any number of dimensions, in any order in the operands. */
#include "op/slots.h"
#include "op/util.h"
#include "op/words.h"

enum { NATTRS = SF_DOT_ALGORITHM + 1 };

static const sf_attrdef attrs[NATTRS] = {
    [SF_DOT_LHS_BATCH] = {.name = "lhs_batching_dimensions",
                          .group = "dot_dimension_numbers",
                          .hlo = "lhs_batch_dims",
                          .kind = SF_ATTR_INTS},
    [SF_DOT_RHS_BATCH] = {.name = "rhs_batching_dimensions",
                          .group = "dot_dimension_numbers",
                          .hlo = "rhs_batch_dims",
                          .kind = SF_ATTR_INTS},
    [SF_DOT_LHS_CONTRACTING] = {.name = "lhs_contracting_dimensions",
                                .group = "dot_dimension_numbers",
                                .hlo = "lhs_contracting_dims",
                                .kind = SF_ATTR_INTS},
    [SF_DOT_RHS_CONTRACTING] = {.name = "rhs_contracting_dimensions",
                                .group = "dot_dimension_numbers",
                                .hlo = "rhs_contracting_dims",
                                .kind = SF_ATTR_INTS},
    [SF_DOT_PRECISION] = {.name = "precision_config",
                          .key = "precision",
                          .hlo = "operand_precision",
                          .kind = SF_ATTR_TEXT,
                          .prefix = "#stablehlo<precision ",
                          .text = SF_AS_ENUMS},
    [SF_DOT_ALGORITHM] = {.name = "algorithm", .kind = SF_ATTR_TEXT},
};

/* The dimensions that are in neither list, in order. Returns how many. */
static int free_dims(int rank, sf_ints batch, sf_ints contracting, int *out)
{
    int count = 0;
    for (int i = 0; i < rank; i++)
        if (!sf_has(batch, i) && !sf_has(contracting, i))
            out[count++] = i;
    return count;
}

static sf_status check_side(const sf_op *op, int operand, sf_ints batch, sf_ints contracting,
                            sf_diag *diag)
{
    const char *side = operand == 0 ? "lhs" : "rhs";
    SF_TRY(
        sf_check_dims(op, batch, op->in[operand]->rank, "the list of batching dimensions", diag));
    SF_TRY(sf_check_dims(op, contracting, op->in[operand]->rank,
                         "the list of contracting dimensions", diag));
    for (int i = 0; i < batch.count; i++)
        if (sf_has(contracting, batch.at[i]))
            return SF_OP_FAIL(op, diag, "dimension %" PRId64 " of %s is both batch and contracted",
                              batch.at[i], side);
    return SF_OK;
}

static sf_status check_pairs(const sf_op *op, sf_ints lhs, sf_ints rhs, const char *what,
                             sf_diag *diag)
{
    if (lhs.count != rhs.count)
        return SF_OP_FAIL(op, diag, "lhs has %d %s dimensions, rhs has %d", lhs.count, what,
                          rhs.count);
    for (int i = 0; i < lhs.count; i++) {
        int64_t a = op->in[0]->dims[lhs.at[i]], b = op->in[1]->dims[rhs.at[i]];
        if (a != b)
            return SF_OP_FAIL(op, diag,
                              "%s dimension %" PRId64 " of lhs has size %" PRId64
                              ", dimension %" PRId64 " of rhs has %" PRId64,
                              what, lhs.at[i], a, rhs.at[i], b);
    }
    return SF_OK;
}

static sf_status infer_dot(const sf_op *op, const sf_type **out, sf_diag *diag)
{
    sf_ints lhs_batch = sf_op_ints(op, SF_DOT_LHS_BATCH),
            lhs_sum = sf_op_ints(op, SF_DOT_LHS_CONTRACTING);
    sf_ints rhs_batch = sf_op_ints(op, SF_DOT_RHS_BATCH),
            rhs_sum = sf_op_ints(op, SF_DOT_RHS_CONTRACTING);
    SF_TRY(check_side(op, 0, lhs_batch, lhs_sum, diag));
    SF_TRY(check_side(op, 1, rhs_batch, rhs_sum, diag));
    SF_TRY(check_pairs(op, lhs_batch, rhs_batch, "batching", diag));
    SF_TRY(check_pairs(op, lhs_sum, rhs_sum, "contracting", diag));

    const sf_type *lhs = op->in[0], *rhs = op->in[1];
    int64_t dims[2 * SF_MAX_RANK];
    int free[SF_MAX_RANK], rank = 0;
    for (int i = 0; i < lhs_batch.count; i++)
        dims[rank++] = lhs->dims[lhs_batch.at[i]];
    for (int i = 0, n = free_dims(lhs->rank, lhs_batch, lhs_sum, free); i < n; i++)
        dims[rank++] = lhs->dims[free[i]];
    for (int i = 0, n = free_dims(rhs->rank, rhs_batch, rhs_sum, free); i < n; i++)
        dims[rank++] = rhs->dims[free[i]];

    /* The result may be wider than the operands: which type is the program's choice. */
    sf_dtype dtype = op->out ? op->out[0]->dtype : lhs->dtype;
    SF_TRY(sf_check_product(op, dtype, diag));
    out[0] = sf_type_get(op->pool, dtype, rank, dims);
    return out[0] ? SF_OK : SF_OP_FAIL(op, diag, "the result is too large");
}

static void factors_dot(const sf_op *op, sf_factoring *out)
{
    sf_ints lhs_batch = sf_op_ints(op, SF_DOT_LHS_BATCH),
            lhs_sum = sf_op_ints(op, SF_DOT_LHS_CONTRACTING);
    sf_ints rhs_batch = sf_op_ints(op, SF_DOT_RHS_BATCH),
            rhs_sum = sf_op_ints(op, SF_DOT_RHS_CONTRACTING);
    const sf_type *lhs = op->in[0], *rhs = op->in[1];
    int free[SF_MAX_RANK], at = 0;
    for (int i = 0; i < lhs_batch.count; i++) {
        int batch = sf_factor_add(out, lhs->dims[lhs_batch.at[i]], SF_MAP, SF_MONOID_NONE);
        sf_factor_walk(out, 0, (int)lhs_batch.at[i], batch);
        sf_factor_walk(out, 1, (int)rhs_batch.at[i], batch);
        sf_factor_walk(out, 2, at++, batch);
    }
    for (int i = 0, n = free_dims(lhs->rank, lhs_batch, lhs_sum, free); i < n; i++) {
        int m = sf_factor_add(out, lhs->dims[free[i]], SF_MAP, SF_MONOID_NONE);
        sf_factor_walk(out, 0, free[i], m);
        sf_factor_walk(out, 2, at++, m);
    }
    for (int i = 0, n = free_dims(rhs->rank, rhs_batch, rhs_sum, free); i < n; i++) {
        int m = sf_factor_add(out, rhs->dims[free[i]], SF_MAP, SF_MONOID_NONE);
        sf_factor_walk(out, 1, free[i], m);
        sf_factor_walk(out, 2, at++, m);
    }
    for (int i = 0; i < lhs_sum.count; i++) {
        int k = sf_factor_add(out, lhs->dims[lhs_sum.at[i]], SF_REDUCE, SF_MONOID_ADD);
        sf_factor_walk(out, 0, (int)lhs_sum.at[i], k);
        sf_factor_walk(out, 1, (int)rhs_sum.at[i], k);
    }
}

static double flops_dot(const sf_op *op)
{
    double count = sf_flops_product(op) * (double)op->out[0]->count;
    sf_ints contracting = sf_op_ints(op, SF_DOT_LHS_CONTRACTING);
    for (int i = 0; i < contracting.count; i++)
        count *= (double)op->in[0]->dims[contracting.at[i]];
    return count;
}

static int append_dims(sf_ints list, int *order, int count)
{
    for (int i = 0; i < list.count; i++)
        order[count++] = (int)list.at[i];
    return count;
}

static int64_t product_of_dims(const sf_type *type, int count, const int *dims)
{
    int64_t size = 1;
    for (int i = 0; i < count; i++)
        size *= type->dims[dims[i]];
    return size;
}

static sf_status eval_dot(sf_eval *eval, const sf_op *op, const sf_tensor *in, sf_tensor *out)
{
    sf_ints lhs_batch = sf_op_ints(op, SF_DOT_LHS_BATCH),
            lhs_sum = sf_op_ints(op, SF_DOT_LHS_CONTRACTING);
    sf_ints rhs_batch = sf_op_ints(op, SF_DOT_RHS_BATCH),
            rhs_sum = sf_op_ints(op, SF_DOT_RHS_CONTRACTING);
    const sf_type *lhs = in[0].type, *rhs = in[1].type;
    if (lhs->count == 0 || rhs->count == 0)
        return SF_OK; /* empty, or sums of nothing */
    sf_dtype sum = sf_product_dtype(eval, op->out[0]->dtype);
    int parts = sf_parts_of(sum); /* words of an element */
    sf_arena *arena = &eval->scratch;
    sf_mark mark = sf_arena_mark(arena);

    /* Bring the operands into the orders (batch, m, k) and (batch, k, n). */
    int left[SF_MAX_RANK], right[SF_MAX_RANK];
    int nbatch = append_dims(lhs_batch, left, 0);
    int nm = free_dims(lhs->rank, lhs_batch, lhs_sum, left + nbatch);
    append_dims(lhs_sum, left, nbatch + nm);
    append_dims(rhs_batch, right, 0);
    append_dims(rhs_sum, right, nbatch);
    int nk = lhs_sum.count;
    int nn = free_dims(rhs->rank, rhs_batch, rhs_sum, right + nbatch + nk);
    int64_t batch = product_of_dims(lhs, nbatch, left), m = product_of_dims(lhs, nm, left + nbatch);
    int64_t k = product_of_dims(lhs, nk, left + nbatch + nm),
            n = product_of_dims(rhs, nn, right + nbatch + nk);
    sf_word *a = sf_words_load(arena, &in[0], sum), *b = sf_words_load(arena, &in[1], sum);
    a = sf_words_transpose(arena, a, parts, lhs->rank, lhs->dims, left);
    b = sf_words_transpose(arena, b, parts, rhs->rank, rhs->dims, right);

    /* Row by row of the result; each element sums over k in order. */
    sf_word *sums = SF_ARRAY(arena, batch * m * n * parts, sf_word);
    for (int64_t row = 0; row < batch * m; row++) {
        const sf_word *rows = b + row / m * k * n * parts;
        for (int64_t i = 0; i < k; i++)
            sf_words_add_scaled(sum, n, a + (row * k + i) * parts, rows + i * n * parts,
                                sums + row * n * parts);
    }
    sf_words_store(&out[0], sums);
    sf_arena_reset(arena, mark);
    return SF_OK;
}

/* As they come, and in order. */
static double scratch_dot(const sf_op *op)
{
    return 2 * sf_scratch_words(op);
}

const sf_opdef sf_op_dot_general = {
    .name = "dot_general",
    .dialect = "stablehlo",
    .hlo = "dot",
    .doc = "The product of two tensors, summed over the contracting dimensions.",
    .id = SF_OP_DOT_GENERAL,
    .form = SF_FORM_DOT,
    .min_operands = 2,
    .max_operands = 2,
    .nresults = 1,
    .attrs = attrs,
    .nattrs = NATTRS,
    .group = "#stablehlo.dot",
    .infer = infer_dot,
    .factors = factors_dot,
    .linear = sf_linear_each,
    .flops = flops_dot,
    .eval = eval_dot,
    .precision = SF_DOT_PRECISION + 1,
    .cost = SF_COST_PRODUCT,
    .scratch = scratch_dot,
    .sample = {.arguments = "%a: tensor<2x3x4xf32>, %b: tensor<2x4x5xf32>",
               .use = "%r = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], "
                      "contracting_dims = [2] x [1] "
                      ": (tensor<2x3x4xf32>, tensor<2x4x5xf32>) -> tensor<2x3x5xf32>",
               .results = "%r",
               .types = "tensor<2x3x5xf32>"},
};
