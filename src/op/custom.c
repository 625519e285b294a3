/* custom_call: a call by name of a function outside of the dialect. A few names have a meaning
 * here: annotations, which return their operand, the checks of self-testing programs, and kernels
 * that a user has bound (op/user_kernel.h).
 *
 * The checks are those of StableHLO's own interpreter: expect_eq compares with ==, expect_close
 * allows three units in the last place, expect_almost_eq an absolute 0.001 between numbers of the
 * same sign. Numbers that are no floats must always be equal. */
#include <math.h>

#include "base/mem.h"
#include "op/slots.h"
#include "op/user_kernel.h"
#include "op/util.h"

static const sf_attrdef attrs[SF_CUSTOM_ATTRS] = {
    [SF_CUSTOM_TARGET] = {.name = "call_target_name",
                          .hlo = "custom_call_target",
                          .kind = SF_ATTR_TEXT,
                          .required = true},
    [SF_CUSTOM_SIDE_EFFECT] = {.name = "has_side_effect",
                               .hlo = "custom_call_has_side_effect",
                               .kind = SF_ATTR_INT,
                               .text = SF_AS_BOOL},
    [SF_CUSTOM_CONFIG] = {.name = "backend_config", .kind = SF_ATTR_TEXT, .text = SF_AS_CONFIG},
    [SF_CUSTOM_API_VERSION] = {.name = "api_version",
                               .kind = SF_ATTR_INT,
                               .text = SF_AS_I32,
                               .absent = SF_ABSENT_ONES},
    [SF_CUSTOM_SHARDING] = {.name = "mhlo.sharding", .hlo = "sharding", .kind = SF_ATTR_TEXT},
};

typedef bool holds(sf_dtype dtype, const void *actual, const void *expected, int64_t index);

static bool is_equal_element(sf_dtype dtype, const void *actual, const void *expected,
                             int64_t index)
{
    if (sf_is_float(dtype))
        return sf_load_f64(dtype, actual, index) == sf_load_f64(dtype, expected, index);
    return sf_load_bits(dtype, actual, index) == sf_load_bits(dtype, expected, index);
}

/* The distance in units of the last place, where every float type counts up in its bit patterns from
 * zero; without the sign bit. */
static uint64_t magnitude_bits(sf_dtype dtype, const void *data, int64_t index, double value)
{
    uint64_t bits = sf_load_bits(dtype, data, index);
    bool has_sign = signbit(value) != 0;
    return has_sign ? bits & ~(UINT64_C(1) << (sf_dtype_get(dtype)->bits - 1)) : bits;
}

static bool is_close(sf_dtype dtype, const void *actual, const void *expected, int64_t index)
{
    if (!sf_is_float(dtype))
        return is_equal_element(dtype, actual, expected, index);
    double a = sf_load_f64(dtype, actual, index), b = sf_load_f64(dtype, expected, index);
    if (isnan(a) || isnan(b))
        return isnan(a) && isnan(b);
    if (isinf(a) || isinf(b))
        return a == b;
    uint64_t from = magnitude_bits(dtype, actual, index, a),
             to = magnitude_bits(dtype, expected, index, b);
    if (signbit(a) != signbit(b))
        return from <= 3 && to <= 3 && from + to <= 3;
    return (from > to ? from - to : to - from) <= 3;
}

static bool is_almost_equal(sf_dtype dtype, const void *actual, const void *expected, int64_t index)
{
    if (!sf_is_float(dtype))
        return is_equal_element(dtype, actual, expected, index);
    double a = sf_load_f64(dtype, actual, index), b = sf_load_f64(dtype, expected, index);
    if (a == b || (isnan(a) && isnan(b)))
        return true;
    if (!isfinite(a) || !isfinite(b) || signbit(a) != signbit(b))
        return false;
    return fabs(a - b) <= 0.001;
}

static const struct check {
    const char *name;
    holds *holds;
    const char *meaning;
} checks[] = {
    {"check.expect_eq", is_equal_element, "must be equal"},
    {"check.expect_close", is_close, "must be within 3 units in the last place"},
    {"check.expect_almost_eq", is_almost_equal,
     "must have the same sign and differ by 0.001 at most"},
};

/* Annotations: they describe where or how a tensor is kept, and do not change it. */
static const char *const identities[] = {
    "Sharding",   "LayoutConstraint", "annotate_device_placement",
    "MoveToHost", "MoveToDevice",     "xla.sdy.FuncResultSharding",
};

static const struct check *check_of(const sf_op *op)
{
    const char *target = sf_op_text(op, SF_CUSTOM_TARGET);
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        if (strcmp(target, checks[i].name) == 0)
            return &checks[i];
    return NULL;
}

static bool is_identity(const sf_op *op)
{
    const char *target = sf_op_text(op, SF_CUSTOM_TARGET);
    for (size_t i = 0; i < sizeof identities / sizeof *identities; i++)
        if (strcmp(target, identities[i]) == 0)
            return true;
    return false;
}

static bool same_type(const sf_type *a, const sf_type *b)
{
    return a->dtype == b->dtype && sf_same_shape(a, b);
}

/* Operands that the kernel takes by rows are as large as its first result there. */
static sf_status check_rows(const sf_op *op, const sf_user_kernel *kernel, sf_diag *diag)
{
    for (int i = 0; i < op->noperands + op->nresults && op->nresults > 0; i++) {
        const sf_type *first = op->out[0],
                      *type = i < op->noperands ? op->in[i] : op->out[i - op->noperands];
        for (int d = 0; d < kernel->rows && d < first->rank && type->rank == first->rank; d++)
            if (type->dims[d] != first->dims[d])
                return SF_OP_FAIL(op, diag,
                                  "@%s splits dimension %d, which is of %" PRId64
                                  " in one tensor and of %" PRId64 " in another",
                                  kernel->name, d, type->dims[d], first->dims[d]);
    }
    return SF_OK;
}

static sf_status infer_custom(const sf_op *op, const sf_type **out, sf_diag *diag)
{
    const char *target = sf_op_text(op, SF_CUSTOM_TARGET);
    if (is_identity(op)) {
        if (op->noperands != 1 || op->nresults != 1)
            return SF_OP_FAIL(op, diag, "@%s takes one operand and gives it back", target);
        out[0] = op->in[0];
        return SF_OK;
    }
    if (check_of(op)) {
        if (op->noperands != 2 || op->nresults != 0 || !same_type(op->in[0], op->in[1]))
            return SF_OP_FAIL(op, diag, "@%s takes two operands of one type and has no result",
                              target);
        return SF_OK;
    }
    if (op->nresults > 0 && !op->out)
        return SF_OP_FAIL(op, diag, "the types of the results must be declared");
    if (sf_bound_find(target))
        SF_TRY(check_rows(op, sf_bound_find(target), diag));
    for (int i = 0; i < op->nresults; i++)
        out[i] = op->out[i];
    return SF_OK;
}

static const sf_user_kernel *kernel_of(const sf_op *op)
{
    return sf_bound_find(sf_op_text(op, SF_CUSTOM_TARGET));
}

static const sf_type *tensor_type(const sf_op *op, int tensor)
{
    return tensor < op->noperands ? op->in[tensor] : op->out[tensor - op->noperands];
}

/* The first dimensions that the kernel splits, of tensors with the size of the first result there;
 * all others are whole. */
static void factors_kernel(const sf_op *op, const sf_user_kernel *kernel, sf_factoring *out)
{
    const sf_type *first = op->out[0];
    int rows = kernel->rows < first->rank ? kernel->rows : first->rank;
    int factors[SF_MAX_RANK];
    for (int d = 0; d < rows; d++)
        factors[d] = sf_factor_add(out, first->dims[d], SF_MAP, SF_MONOID_NONE);
    for (int i = 0; i < op->noperands + op->nresults; i++) {
        const sf_type *type = tensor_type(op, i);
        for (int d = 0; d < type->rank; d++)
            if (d < rows && type->rank == first->rank)
                sf_factor_walk(out, i, d, factors[d]);
            else
                sf_factor_whole(out, i, d, type->dims[d]);
    }
}

static void factors_custom(const sf_op *op, sf_factoring *out)
{
    const sf_user_kernel *kernel = kernel_of(op);
    if (is_identity(op))
        sf_factors_pointwise(op, out);
    else if (kernel && op->nresults > 0)
        factors_kernel(op, kernel, out);
    else
        sf_factors_whole(op, out);
}

static int linear_custom(const sf_op *op, uint32_t masks[])
{
    return is_identity(op) ? sf_linear_first(op, masks) : 0;
}

/* Writes "[1, 2]", the place of element `flat`. */
static void place_text(const sf_type *type, int64_t flat, char *text, size_t size)
{
    int64_t index[SF_MAX_RANK];
    for (int d = type->rank - 1; d >= 0; d--) {
        index[d] = flat % type->dims[d];
        flat /= type->dims[d];
    }
    size_t at = (size_t)snprintf(text, size, "[");
    for (int d = 0; d < type->rank; d++)
        at += (size_t)snprintf(text + at, size - at, "%s%" PRId64, d ? ", " : "", index[d]);
    snprintf(text + at, size - at, "]");
}

static void element_text(const sf_tensor *tensor, int64_t index, char *text, size_t size)
{
    sf_dtype dtype = tensor->type->dtype;
    if (sf_is_complex(dtype))
        snprintf(text, size, "(%.17g, %.17g)", sf_get_f64(tensor, index),
                 sf_load_f64(sf_part_of(dtype), tensor->data, 2 * index + 1));
    else if (sf_is_float(dtype))
        snprintf(text, size, "%.17g", sf_get_f64(tensor, index));
    else if (sf_is_unsigned(dtype))
        snprintf(text, size, "%" PRIu64, sf_load_bits(dtype, tensor->data, index));
    else
        snprintf(text, size, "%" PRId64, sf_get_i64(tensor, index));
}

/* Complex numbers are as close as their parts are. */
static bool check_holds(const struct check *check, const sf_tensor *in, int64_t index)
{
    sf_dtype dtype = in[0].type->dtype;
    int parts = sf_parts_of(dtype);
    for (int part = 0; part < parts; part++)
        if (!check->holds(sf_part_of(dtype), in[0].data, in[1].data, parts * index + part))
            return false;
    return true;
}

static sf_status eval_check(sf_eval *eval, const sf_op *op, const struct check *check,
                            const sf_tensor *in)
{
    const sf_type *type = in[0].type;
    int64_t wrong = 0, first = 0;
    for (int64_t i = type->count - 1; i >= 0; i--)
        if (!check_holds(check, in, i)) {
            wrong++;
            first = i;
        }
    if (wrong == 0)
        return SF_OK;
    char place[400], actual[80], expected[80];
    place_text(type, first, place, sizeof place);
    element_text(&in[0], first, actual, sizeof actual);
    element_text(&in[1], first, expected, sizeof expected);
    return sf_fail(eval->diag, SF_EMISMATCH, op->loc,
                   "%s: element %s is %s, expected %s (%s; %" PRId64 " of %" PRId64
                   " elements are wrong)",
                   check->name, place, actual, expected, check->meaning, wrong, type->count);
}

/* Linear algebra is a library call on CPUs and GPUs. On TPUs some of it is ops of StableHLO; the rest is a call there, too. */
static const struct {
    const char *words[9]; /* one of them is in the name; the last is NULL */
    const char *advice;
} advices[] = {
    {{"potrf", "trsm", "Cholesky", "trtr"},
     "jax.jit(f).trace(*args).lower(lowering_platforms=(\"tpu\",)) writes cholesky and triangular "
     "solve as ops instead"},
    {{"geqrf", "orgqr", "ungqr", "geqp3", "Qr", "Householder"},
     "jax writes QR as a call on every platform. Of a matrix of full rank, write r = "
     "cholesky(a.T @ a).T and q = solve_triangular(r.T, a.T, lower=True).T, and lower for "
     "lowering_platforms=(\"tpu\",), where both are ops; or give the call a kernel of your own"},
    {{"syevd", "heevd", "syevj", "Eigh", "geev", "gees", "hetrd", "sytrd"},
     "jax writes eigh as a call on every platform. For roots and inverses of matrices, as in "
     "Shampoo, write a Newton iteration of matrix products (Newton-Schulz) in its place; or give "
     "the call a kernel of your own"},
    {{"gesdd", "gesvd", "gesvdj", "Svd"},
     "jax writes the SVD as calls on every platform. To make a matrix orthogonal, as in Muon, "
     "write a "
     "Newton-Schulz iteration of matrix products in its place; or give the call a kernel of your "
     "own"},
    {{"getrf", "LuDecomposition", "lu_pivots"},
     "jax writes LU as a call on every platform. Of a positive definite matrix, write "
     "jax.scipy.linalg.cho_solve in place of solve and inv, and lower for "
     "lowering_platforms=(\"tpu\",), where it is ops; or give the call a kernel of your own"},
};

static const char *advice_for(const char *target)
{
    for (size_t i = 0; i < sizeof advices / sizeof *advices; i++)
        for (const char *const *word = advices[i].words; *word; word++)
            if (strstr(target, *word))
                return advices[i].advice;
    return "lower the step without this kernel, for instance for another platform: "
           "jax.jit(f).trace(*args).lower(lowering_platforms=...); or give the call a kernel of "
           "your own";
}

static sf_status unknown_target(sf_eval *eval, const sf_op *op)
{
    const char *target = sf_op_text(op, SF_CUSTOM_TARGET);
    sf_fail(eval->diag, SF_EUNSUPPORTED, op->loc, "custom call @%s has no meaning here", target);
    return sf_hint(eval->diag, "%s", advice_for(target));
}

static sf_status eval_kernel(sf_eval *eval, const sf_op *op, const sf_user_kernel *kernel,
                             const sf_tensor *in, sf_tensor *out)
{
    enum { MOST_TENSORS = 64 };
    sf_kernel_tensor tensors[MOST_TENSORS];
    sf_tensor_type types[MOST_TENSORS];
    const sf_kernel_tensor *shown[MOST_TENSORS];
    int count = op->noperands + op->nresults;
    if (count > MOST_TENSORS)
        return sf_fail(eval->diag, SF_EUNSUPPORTED, op->loc, "kernel %s: more than %d tensors",
                       kernel->name, MOST_TENSORS);
    for (int i = 0; i < count; i++) {
        const sf_tensor *tensor = i < op->noperands ? &in[i] : &out[i - op->noperands];
        sf_view_type(tensor->type, &types[i]);
        tensors[i] =
            (sf_kernel_tensor){.size = sizeof *tensors, .type = &types[i], .data = tensor->data};
        shown[i] = &tensors[i];
    }
    int failed = kernel->run(op->noperands, shown, op->nresults, shown + op->noperands);
    return failed ? sf_fail(eval->diag, SF_EMISMATCH, op->loc, "kernel %s failed, with %d",
                            kernel->name, failed)
                  : SF_OK;
}

static sf_status eval_custom(sf_eval *eval, const sf_op *op, const sf_tensor *in, sf_tensor *out)
{
    const struct check *check = check_of(op);
    if (check)
        return eval_check(eval, op, check, in);
    if (is_identity(op)) {
        if (in[0].type->count > 0)
            memcpy(out[0].data, in[0].data, (size_t)sf_type_bytes(in[0].type));
        return SF_OK;
    }
    if (kernel_of(op))
        return eval_kernel(eval, op, kernel_of(op), in, out);
    return unknown_target(eval, op);
}

/* Any other op has. */
static bool has_meaning(const sf_graph *graph, const sf_node *node)
{
    if (!sf_is(node, SF_OP_CUSTOM_CALL))
        return true;
    /* The meaning of a call depends on its name and the first tensors alone. */
    const sf_type **types = sf_alloc(((size_t)node->noperands + node->nresults) * sizeof *types);
    sf_op op = sf_op_of(graph, node, types);
    bool has = check_of(&op) || is_identity(&op) || kernel_of(&op);
    sf_free(types);
    return has;
}

/* Returns the first, and counts all. */
static const sf_node *find_strangers(const sf_graph *graph, const sf_block *block, size_t *count)
{
    const sf_node *first = NULL;
    for (uint32_t i = 0; i < block->nnodes; i++) {
        const sf_node *node = graph->nodes[block->nodes[i]], *found = NULL;
        bool is_stranger = !has_meaning(graph, node);
        *count += is_stranger;
        for (uint32_t r = 0; r < node->nregions && !found; r++)
            found = find_strangers(graph, node->regions[r], count);
        first = first ? first : is_stranger ? node : found;
    }
    return first;
}

void sf_warn_strangers(const sf_graph *graph, sf_diag *diag)
{
    size_t count = 0;
    const sf_node *first = find_strangers(graph, graph->top, &count);
    if (!first)
        return;
    sf_warn(diag, first->loc,
            "this step cannot be run here: custom call @%s%s has no meaning to sheaf, so what it "
            "takes is not in any figure",
            first->attrs[SF_CUSTOM_TARGET]->text, count > 1 ? ", like others," : "");
    sf_hint(diag, "%s", advice_for(first->attrs[SF_CUSTOM_TARGET]->text));
}

const sf_opdef sf_op_custom_call = {
    .name = "custom_call",
    .dialect = "stablehlo",
    .hlo = "custom-call",
    .doc = "The results of an external kernel, called by name. Sharding annotations and checks are "
           "known by name.",
    .id = SF_OP_CUSTOM_CALL,
    .form = SF_FORM_CALL,
    .min_operands = 0,
    .max_operands = -1,
    .nresults = -1,
    .effect = SF_CUSTOM_SIDE_EFFECT + 1,
    .attrs = attrs,
    .nattrs = SF_CUSTOM_ATTRS,
    .infer = infer_custom,
    .factors = factors_custom,
    .linear = linear_custom,
    .eval = eval_custom,
    .positional = true,
    .cost = SF_COST_HEAVY,
};
