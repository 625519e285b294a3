/* cholesky and triangular_solve, on stacks of matrices. Arithmetic is in double; each number is
 * rounded once, when it is stored. */
#include <math.h>

#include "op/util.h"
#include "op/words.h"

/* The batch dimensions, all but the last two, are the same factor in every tensor. */
static void batch_factors(const sf_op *op, sf_factoring *out)
{
    for (int d = 0; d < op->in[0]->rank - 2; d++) {
        int factor = sf_factor_add(out, op->in[0]->dims[d], SF_MAP, SF_MONOID_NONE);
        for (int tensor = 0; tensor < out->ntensors; tensor++)
            sf_factor_walk(out, tensor, d, factor);
    }
}

static sf_status check_square(const sf_op *op, sf_diag *diag)
{
    const sf_type *a = op->in[0];
    if (!sf_is_float(a->dtype))
        return SF_OP_FAIL(op, diag, "the operand is of %s, expected a float type",
                          sf_dtype_get(a->dtype)->name);
    if (a->rank < 2 || a->dims[a->rank - 1] != a->dims[a->rank - 2])
        return SF_OP_FAIL(op, diag, "the last two dimensions are not those of a square matrix");
    return SF_OK;
}

/* The number of matrices in a shard. */
static int64_t batch_count(const sf_type *type)
{
    int64_t count = 1;
    for (int i = 0; i < type->rank - 2; i++)
        count *= type->dims[i];
    return count;
}

/* cholesky */

enum { CHOLESKY_LOWER, CHOLESKY_NATTRS };

static const sf_attrdef cholesky_attrs[CHOLESKY_NATTRS] = {
    [CHOLESKY_LOWER] = {.name = "lower", .kind = SF_ATTR_INT, .text = SF_AS_BOOL},
};

static sf_status infer_cholesky(const sf_op *op, const sf_type **out, sf_diag *diag)
{
    SF_TRY(check_square(op, diag));
    out[0] = op->in[0];
    return SF_OK;
}

static void cholesky_factors(const sf_op *op, sf_factoring *out)
{
    batch_factors(op, out);
    for (int tensor = 0; tensor < 2; tensor++)
        for (int d = op->in[0]->rank - 2; d < op->in[0]->rank; d++)
            sf_factor_whole(out, tensor, d, op->in[0]->dims[d]);
}

static double cholesky_flops(const sf_op *op)
{
    double n = (double)op->in[0]->dims[op->in[0]->rank - 1];
    return (double)op->in[0]->count * n / 3;
}

/* a = l l^T with l lower, from the lower triangle of a; with `row` and `column` the strides of the
 * matrix, which the upper form exchanges. The other triangle becomes zero. */
static void factorize_matrix(sf_word *a, int64_t n, int64_t row, int64_t column)
{
    for (int64_t j = 0; j < n; j++) {
        for (int64_t i = 0; i < j; i++)
            a[i * row + j * column].real = 0;
        for (int64_t i = j; i < n; i++) {
            double sum = a[i * row + j * column].real;
            for (int64_t k = 0; k < j; k++)
                sum -= a[i * row + k * column].real * a[j * row + k * column].real;
            double diagonal = a[j * row + j * column].real;
            a[i * row + j * column].real = i == j ? sqrt(sum) : sum / diagonal;
        }
    }
}

static sf_status eval_cholesky(sf_eval *eval, const sf_op *op, const sf_tensor *in, sf_tensor *out)
{
    sf_mark mark = sf_arena_mark(&eval->scratch);
    const sf_type *type = in[0].type;
    int64_t n = type->dims[type->rank - 1], count = batch_count(type);
    bool lower = sf_op_int(op, CHOLESKY_LOWER, 0) != 0;
    sf_word *words = sf_words_load(&eval->scratch, &in[0], SF_F64);
    for (int64_t b = 0; b < count; b++)
        factorize_matrix(words + b * n * n, n, lower ? n : 1, lower ? 1 : n);
    sf_words_store(out, words);
    sf_arena_reset(&eval->scratch, mark);
    return SF_OK;
}

const sf_opdef sf_op_cholesky = {
    .name = "cholesky",
    .dialect = "stablehlo",
    .hlo = "cholesky",
    .doc = "The Cholesky factor of each symmetric positive definite matrix.",
    .id = SF_OP_CHOLESKY,
    .form = SF_FORM_OPERANDS,
    .min_operands = 1,
    .max_operands = 1,
    .nresults = 1,
    .attrs = cholesky_attrs,
    .nattrs = CHOLESKY_NATTRS,
    .infer = infer_cholesky,
    .factors = cholesky_factors,
    .flops = cholesky_flops,
    .eval = eval_cholesky,
    .cost = SF_COST_HEAVY,
    .scratch = sf_scratch_words_and_places,
    .sample = {.arguments = "%a: tensor<2x3x3xf32>",
               .use = "%r = stablehlo.cholesky %a, lower = true : tensor<2x3x3xf32>",
               .results = "%r",
               .types = "tensor<2x3x3xf32>"},
};

/* triangular_solve */

enum { LEFT_SIDE, LOWER, UNIT_DIAGONAL, TRANSPOSE_A, SOLVE_NATTRS };

static const sf_attrdef solve_attrs[SOLVE_NATTRS] = {
    [LEFT_SIDE] = {.name = "left_side", .kind = SF_ATTR_INT, .text = SF_AS_BOOL, .required = true},
    [LOWER] = {.name = "lower", .kind = SF_ATTR_INT, .text = SF_AS_BOOL, .required = true},
    [UNIT_DIAGONAL] = {.name = "unit_diagonal",
                       .kind = SF_ATTR_INT,
                       .text = SF_AS_BOOL,
                       .required = true},
    [TRANSPOSE_A] = {.name = "transpose_a",
                     .kind = SF_ATTR_TEXT,
                     .prefix = "#stablehlo<transpose ",
                     .required = true},
};

static bool is_transposed(const sf_op *op)
{
    return strcmp(sf_op_text(op, TRANSPOSE_A), "NO_TRANSPOSE") != 0;
}

static sf_status infer_solve(const sf_op *op, const sf_type **out, sf_diag *diag)
{
    const sf_type *a = op->in[0], *b = op->in[1];
    const char *transpose = sf_op_text(op, TRANSPOSE_A);
    SF_TRY(check_square(op, diag));
    if (a->dtype != b->dtype || a->rank != b->rank)
        return SF_OP_FAIL(op, diag, "the operands differ in rank or element type");
    for (int d = 0; d < a->rank - 2; d++)
        if (a->dims[d] != b->dims[d])
            return SF_OP_FAIL(op, diag, "the operands differ in batch dimension %d", d);
    bool left = sf_op_int(op, LEFT_SIDE, 0) != 0;
    if (b->dims[b->rank - (left ? 2 : 1)] != a->dims[a->rank - 1])
        return SF_OP_FAIL(op, diag, "the matrices do not fit together");
    if (strcmp(transpose, "NO_TRANSPOSE") != 0 && strcmp(transpose, "TRANSPOSE") != 0 &&
        strcmp(transpose, "ADJOINT") != 0)
        return SF_OP_FAIL(
            op, diag, "transpose_a is %s, expected NO_TRANSPOSE, TRANSPOSE or ADJOINT", transpose);
    out[0] = b;
    return SF_OK;
}

static void solve_factors(const sf_op *op, sf_factoring *out)
{
    const sf_type *a = op->in[0], *b = op->in[1];
    int rows = a->rank - 2, columns = a->rank - 1;
    bool left = sf_op_int(op, LEFT_SIDE, 0) != 0;
    /* The right-hand sides are independent of each other. */
    int independent = left ? columns : rows, solved = left ? rows : columns;
    batch_factors(op, out);
    sf_factor_whole(out, 0, rows, a->dims[rows]);
    sf_factor_whole(out, 0, columns, a->dims[columns]);
    int factor = sf_factor_add(out, b->dims[independent], SF_MAP, SF_MONOID_NONE);
    for (int tensor = 1; tensor <= 2; tensor++) {
        sf_factor_walk(out, tensor, independent, factor);
        sf_factor_whole(out, tensor, solved, b->dims[solved]);
    }
}

static int solve_linear(const sf_op *op, uint32_t masks[])
{
    (void)op;
    masks[0] = 2;
    return 1;
}

static double solve_flops(const sf_op *op)
{
    return (double)op->in[1]->count * (double)op->in[0]->dims[op->in[0]->rank - 1];
}

/* One triangular system t x = b, in place of b. Strides of t: `row` and `column`; of x: `step`. */
static void substitute_column(const sf_word *t, int64_t n, int64_t row, int64_t column, bool lower,
                              bool unit, sf_word *x, int64_t step)
{
    for (int64_t done = 0; done < n; done++) {
        int64_t i = lower ? done : n - 1 - done;
        double sum = x[i * step].real;
        for (int64_t k = 0; k < done; k++) {
            int64_t other = lower ? k : n - 1 - k;
            sum -= t[i * row + other * column].real * x[other * step].real;
        }
        x[i * step].real = unit ? sum : sum / t[i * row + i * column].real;
    }
}

static sf_status eval_solve(sf_eval *eval, const sf_op *op, const sf_tensor *in, sf_tensor *out)
{
    sf_mark mark = sf_arena_mark(&eval->scratch);
    const sf_type *a = in[0].type, *b = in[1].type;
    bool left = sf_op_int(op, LEFT_SIDE, 0) != 0, lower = sf_op_int(op, LOWER, 0) != 0;
    bool unit = sf_op_int(op, UNIT_DIAGONAL, 0) != 0;
    int64_t n = a->dims[a->rank - 1], rows = b->dims[b->rank - 2], columns = b->dims[b->rank - 1];
    /* x a = b is a^T x^T = b^T, so a is transposed if exactly one of the two holds. */
    bool flipped = is_transposed(op) == left;
    const sf_word *t = sf_words_load(&eval->scratch, &in[0], SF_F64);
    sf_word *x = sf_words_load(&eval->scratch, &in[1], SF_F64);
    for (int64_t m = 0, count = batch_count(b); m < count; m++)
        for (int64_t i = 0; i < (left ? columns : rows); i++)
            substitute_column(t + m * n * n, n, flipped ? 1 : n, flipped ? n : 1, lower != flipped,
                              unit, x + m * rows * columns + i * (left ? 1 : columns),
                              left ? columns : 1);
    sf_words_store(out, x);
    sf_arena_reset(&eval->scratch, mark);
    return SF_OK;
}

const sf_opdef sf_op_triangular_solve = {
    .name = "triangular_solve",
    .dialect = "stablehlo",
    .hlo = "triangular-solve",
    .doc = "The solution of linear systems with triangular matrices.",
    .id = SF_OP_TRIANGULAR_SOLVE,
    .form = SF_FORM_GENERIC,
    .min_operands = 2,
    .max_operands = 2,
    .nresults = 1,
    .attrs = solve_attrs,
    .nattrs = SOLVE_NATTRS,
    .infer = infer_solve,
    .factors = solve_factors,
    .linear = solve_linear,
    .flops = solve_flops,
    .eval = eval_solve,
    .cost = SF_COST_HEAVY,
    .scratch = sf_scratch_words_and_places,
    .sample =
        {.arguments = "%a: tensor<2x3x3xf32>, %b: tensor<2x3x4xf32>",
         .use = "%r = \"stablehlo.triangular_solve\"(%a, %b) <{left_side = true, lower = true, "
                "transpose_a = "
                "#stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> : (tensor<2x3x3xf32>, "
                "tensor<2x3x4xf32>) -> tensor<2x3x4xf32>",
         .results = "%r",
         .types = "tensor<2x3x4xf32>"},
};
