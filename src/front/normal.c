#include "front/normal.h"

#include <string.h>

#include "base/mem.h"
#include "front/expand_batch_norm.h"
#include "op/eval.h"
#include "op/slots.h"

/* Integers are folded up to this many elements: loop counters, index arithmetic, the rotation tables
 * of threefry. */
enum { FOLD_COUNT = 64, FOLD_OPERANDS = 8, LONGEST_CHAIN = 1024 };

const sf_dense *sf_constant_of(const sf_graph *graph, sf_value value)
{
    const sf_node *node = sf_maker(graph, value);
    bool is_known =
        node && sf_is(node, SF_OP_CONSTANT) && node->attrs[SF_CONSTANT_VALUE]->dense.data;
    return is_known ? &node->attrs[SF_CONSTANT_VALUE]->dense : NULL;
}

static const sf_node *maker_if(const sf_emitter *emitter, sf_value value, sf_opcode code)
{
    const sf_node *node = sf_maker(emitter->graph, value);
    return node && sf_is(node, code) ? node : NULL;
}

sf_value sf_emit_one(sf_emitter *emitter, sf_opcode code, uint32_t noperands,
                     const sf_value *operands, const sf_attr *const *attrs, const sf_type *type)
{
    sf_node_spec spec = {
        .def = sf_opdef_get(code),
        .noperands = noperands,
        .operands = operands,
        .nresults = 1,
        .types = &type,
        .attrs = attrs,
    };
    sf_value out;
    sf_emit(emitter, &spec, &out);
    return out;
}

static sf_value add_constant(sf_emitter *emitter, const sf_attr *value)
{
    return sf_emit_one(emitter, SF_OP_CONSTANT, 0, NULL, &value, value->dense.type);
}

static sf_value add_reshape(sf_emitter *emitter, sf_value operand, const sf_type *type)
{
    return sf_emit_one(emitter, SF_OP_RESHAPE, 1, &operand, NULL, type);
}

/* A rule reads a node before it is added. It may change the spec and return false, or give the
 * values that replace the node and return true. */
typedef bool rule(sf_emitter *emitter, sf_node_spec *spec, sf_value *out);

static bool square_rule(sf_emitter *emitter, sf_node_spec *spec, sf_value *out)
{
    sf_value twice[2] = {spec->operands[0], spec->operands[0]};
    *out = sf_emit_one(emitter, SF_OP_MULTIPLY, 2, twice, NULL, spec->types[0]);
    return true;
}

static bool reshape_rule(sf_emitter *emitter, sf_node_spec *spec, sf_value *out)
{
    sf_value operand = spec->operands[0];
    const sf_type *type = spec->types[0];
    const sf_dense *constant = sf_constant_of(emitter->graph, operand);
    const sf_node *before = maker_if(emitter, operand, SF_OP_RESHAPE);
    if (sf_type_of(emitter->graph, operand) == type)
        *out = operand;
    else if (constant)
        *out = add_constant(
            emitter, sf_attr_dense(emitter->graph->pool, type, constant->splat, constant->data));
    else if (before)
        *out = add_reshape(emitter, before->operands[0], type);
    else
        return false;
    return true;
}

/* Broadcasts in normal form take an operand without size-1 dimensions and really broadcast. */
static bool broadcast_rule(sf_emitter *emitter, sf_node_spec *spec, sf_value *out)
{
    sf_pool *pool = emitter->graph->pool;
    const sf_type *from = sf_type_of(emitter->graph, spec->operands[0]), *to = spec->types[0];
    const sf_attr *dims = spec->attrs[SF_BROADCAST_DIMENSIONS];
    const sf_dense *constant = sf_constant_of(emitter->graph, spec->operands[0]);
    if (constant && constant->splat) {
        *out = add_constant(emitter, sf_attr_dense(pool, to, true, constant->data));
        return true;
    }
    int64_t kept_sizes[SF_MAX_RANK], kept_dims[SF_MAX_RANK];
    int kept = 0;
    bool in_order = true;
    for (int i = 0; i < from->rank; i++) {
        if (from->dims[i] == 1)
            continue;
        kept_sizes[kept] = from->dims[i];
        kept_dims[kept] = dims->ints[i];
        in_order = in_order && (kept == 0 || kept_dims[kept - 1] < kept_dims[kept]);
        kept++;
    }
    if (from->count == to->count && in_order) {
        *out = add_reshape(emitter, spec->operands[0], to);
        return true;
    }
    if (kept == from->rank)
        return false;
    sf_value operand =
        add_reshape(emitter, spec->operands[0], sf_type_get(pool, from->dtype, kept, kept_sizes));
    const sf_attr *attr = sf_attr_ints(pool, kept, kept_dims);
    *out = sf_emit_one(emitter, SF_OP_BROADCAST_IN_DIM, 1, &operand, &attr, to);
    return true;
}

static bool transpose_rule(sf_emitter *emitter, sf_node_spec *spec, sf_value *out)
{
    const sf_attr *order = spec->attrs[SF_TRANSPOSE_PERMUTATION];
    const sf_dense *constant = sf_constant_of(emitter->graph, spec->operands[0]);
    const sf_node *before = maker_if(emitter, spec->operands[0], SF_OP_TRANSPOSE);
    const sf_type *from = sf_type_of(emitter->graph, spec->operands[0]);
    int64_t composed[SF_MAX_RANK], newest = -1;
    bool in_order = true; /* but for dimensions of size 1 */
    for (int i = 0; i < order->count; i++) {
        if (from->dims[order->ints[i]] == 1)
            continue;
        in_order = in_order && order->ints[i] > newest;
        newest = order->ints[i];
    }
    for (int i = 0; before && i < order->count; i++)
        composed[i] = before->attrs[SF_TRANSPOSE_PERMUTATION]->ints[order->ints[i]];
    if (before) {
        const sf_attr *attr = sf_attr_ints(emitter->graph->pool, order->count, composed);
        *out = sf_emit_one(emitter, SF_OP_TRANSPOSE, 1, before->operands, &attr, spec->types[0]);
    } else if (in_order)
        *out = add_reshape(emitter, spec->operands[0], spec->types[0]);
    else if (constant && constant->splat)
        *out = add_constant(
            emitter, sf_attr_dense(emitter->graph->pool, spec->types[0], true, constant->data));
    else
        return false;
    return true;
}

/* A counter along one dimension of many is a counter along the only one, broadcast. */
static bool iota_rule(sf_emitter *emitter, sf_node_spec *spec, sf_value *out)
{
    sf_pool *pool = emitter->graph->pool;
    const sf_type *type = spec->types[0];
    int64_t dim = spec->attrs[SF_IOTA_DIMENSION]->integer;
    if (type->rank < 2)
        return false;
    const sf_attr *zero = sf_attr_int(pool, 0), *dims = sf_attr_ints(pool, 1, &dim);
    sf_value counter = sf_emit_one(emitter, SF_OP_IOTA, 0, NULL, &zero,
                                   sf_type_get(pool, type->dtype, 1, &type->dims[dim]));
    *out = sf_emit_one(emitter, SF_OP_BROADCAST_IN_DIM, 1, &counter, &dims, type);
    return true;
}

static bool is_splat_of(const sf_emitter *emitter, sf_value value, double number)
{
    const sf_dense *constant = sf_constant_of(emitter->graph, value);
    if (!constant || !constant->splat)
        return false;
    sf_dtype dtype = constant->type->dtype;
    bool is_real = !sf_is_complex(dtype) || sf_load_f64(sf_part_of(dtype), constant->data, 1) == 0;
    return is_real && sf_load_f64(dtype, constant->data, 0) == number;
}

/* x + 0, x - 0, x * 1 and x / 1 are x. For floats, x + 0 keeps a negative zero that the sum would have
 * made positive; the others are exact. */
static bool neutral_rule(sf_emitter *emitter, sf_node_spec *spec, sf_value *out)
{
    bool is_sum = spec->def->id == SF_OP_ADD || spec->def->id == SF_OP_SUBTRACT;
    if (spec->types[0]->dtype == SF_PRED || !is_splat_of(emitter, spec->operands[1], !is_sum))
        return false;
    *out = spec->operands[0];
    return true;
}

/* A constant is the second operand where the order does not matter. */
static void order_commutative(sf_emitter *emitter, sf_node_spec *spec, sf_value swapped[2])
{
    if (!spec->def->commutative || !sf_constant_of(emitter->graph, spec->operands[0]) ||
        sf_constant_of(emitter->graph, spec->operands[1]))
        return;
    swapped[0] = spec->operands[1];
    swapped[1] = spec->operands[0];
    spec->operands = swapped;
}

static bool same_type_rule(sf_emitter *emitter, sf_node_spec *spec, sf_value *out)
{
    if (sf_type_of(emitter->graph, spec->operands[0]) != spec->types[0])
        return false;
    *out = spec->operands[0];
    return true;
}

/* A pad that cuts off as much as it adds has the same type, and other elements. */
static bool pad_rule(sf_emitter *emitter, sf_node_spec *spec, sf_value *out)
{
    const sf_attr *low = spec->attrs[SF_PAD_LOW], *interior = spec->attrs[SF_PAD_INTERIOR];
    for (int d = 0; d < spec->types[0]->rank; d++)
        if (low->ints[d] != 0 || interior->ints[d] != 0)
            return false;
    return same_type_rule(emitter, spec, out);
}

/* To a format that has all values of the type: JAX marks so the values that a policy of
 * jax.checkpoint keeps. */
static bool precision_rule(sf_emitter *emitter, sf_node_spec *spec, sf_value *out)
{
    const sf_dtype_info *info = sf_dtype_get(sf_type_of(emitter->graph, spec->operands[0])->dtype);
    if (spec->attrs[SF_PRECISION_EXPONENT]->integer < info->exponent ||
        spec->attrs[SF_PRECISION_MANTISSA]->integer < info->mantissa)
        return false;
    *out = spec->operands[0];
    return true;
}

/* Reads the starts of a dynamic slice of shape `sizes` in `whole`, clamped; false unless all are
 * constants. */
static bool constant_starts(sf_emitter *emitter, const sf_value *starts, const sf_type *whole,
                            const int64_t *sizes, int64_t *out)
{
    for (int i = 0; i < whole->rank; i++) {
        const sf_dense *start = sf_constant_of(emitter->graph, starts[i]);
        if (!start)
            return false;
        int64_t value = sf_load_i64(start->type->dtype, start->data, 0);
        bool is_huge = value < 0 && sf_is_unsigned(start->type->dtype);
        int64_t last = whole->dims[i] - sizes[i];
        out[i] = is_huge || value > last ? last : value < 0 ? 0 : value;
    }
    if (whole->rank > 0 && whole->dims[0] == emitter->slice_length && sizes[0] == 1) {
        emitter->slices_disagree |= emitter->sliced_at >= 0 && emitter->sliced_at != out[0];
        emitter->sliced_at = out[0];
    }
    return true;
}

/* Follows a static slice with unit strides through updates that it lies beside or inside of. Gives
 * the value to slice and moves the starts accordingly. */
static sf_value slice_source(sf_emitter *emitter, sf_value from, int rank, int64_t *starts,
                             const int64_t *sizes)
{
    for (int step = 0; step < LONGEST_CHAIN; step++) {
        const sf_node *node = maker_if(emitter, from, SF_OP_DYNAMIC_UPDATE_SLICE);
        if (!node)
            return from;
        const sf_type *update = sf_type_of(emitter->graph, node->operands[1]);
        int64_t at[SF_MAX_RANK];
        sf_emitter quiet = *emitter;
        quiet.slice_length = -1;
        if (!constant_starts(&quiet, node->operands + 2, sf_type_of(emitter->graph, from),
                             update->dims, at))
            return from;
        bool inside = true, beside = false;
        for (int i = 0; i < rank; i++) {
            int64_t end = starts[i] + sizes[i], update_end = at[i] + update->dims[i];
            inside = inside && starts[i] >= at[i] && end <= update_end;
            beside = beside || end <= at[i] || starts[i] >= update_end;
        }
        if (!inside && !beside)
            return from;
        from = node->operands[inside ? 1 : 0];
        for (int i = 0; inside && i < rank; i++)
            starts[i] -= at[i];
    }
    return from;
}

/* A static slice with unit strides, in normal form. */
static sf_value add_slice(sf_emitter *emitter, sf_value from, const int64_t *first,
                          const sf_type *to)
{
    sf_pool *pool = emitter->graph->pool;
    int64_t starts[SF_MAX_RANK], limits[SF_MAX_RANK], ones[SF_MAX_RANK];
    memcpy(starts, first, (size_t)to->rank * sizeof *starts);
    from = slice_source(emitter, from, to->rank, starts, to->dims);
    if (sf_type_of(emitter->graph, from) == to)
        return from;
    for (int i = 0; i < to->rank; i++) {
        limits[i] = starts[i] + to->dims[i];
        ones[i] = 1;
    }
    const sf_attr *attrs[] = {
        [SF_SLICE_STARTS] = sf_attr_ints(pool, to->rank, starts),
        [SF_SLICE_LIMITS] = sf_attr_ints(pool, to->rank, limits),
        [SF_SLICE_STRIDES] = sf_attr_ints(pool, to->rank, ones),
    };
    sf_node_spec spec = {
        .def = sf_opdef_get(SF_OP_SLICE),
        .noperands = 1,
        .operands = &from,
        .nresults = 1,
        .types = &to,
        .attrs = attrs,
        .scope = emitter->scope,
        .phase = emitter->phase,
        .loc = emitter->loc,
    };
    return sf_graph_add(emitter->graph, emitter->block, &spec)->result;
}

static bool slice_rule(sf_emitter *emitter, sf_node_spec *spec, sf_value *out)
{
    const sf_attr *strides = spec->attrs[SF_SLICE_STRIDES];
    for (int i = 0; i < strides->count; i++)
        if (strides->ints[i] != 1)
            return false;
    *out =
        add_slice(emitter, spec->operands[0], spec->attrs[SF_SLICE_STARTS]->ints, spec->types[0]);
    return true;
}

static bool dynamic_slice_rule(sf_emitter *emitter, sf_node_spec *spec, sf_value *out)
{
    int64_t starts[SF_MAX_RANK];
    const sf_type *whole = sf_type_of(emitter->graph, spec->operands[0]);
    if (!constant_starts(emitter, spec->operands + 1, whole, spec->types[0]->dims, starts))
        return false;
    *out = add_slice(emitter, spec->operands[0], starts, spec->types[0]);
    return true;
}

static bool dynamic_update_rule(sf_emitter *emitter, sf_node_spec *spec, sf_value *out)
{
    int64_t starts[SF_MAX_RANK];
    const sf_type *update = sf_type_of(emitter->graph, spec->operands[1]);
    if (update != spec->types[0]) {
        constant_starts(emitter, spec->operands + 2, spec->types[0], update->dims, starts);
        return false;
    }
    *out = spec->operands[1];
    return true;
}

/* Turning a dimension of size 1 around changes nothing. */
static bool reverse_rule(sf_emitter *emitter, sf_node_spec *spec, sf_value *out)
{
    (void)emitter;
    const sf_attr *dims = spec->attrs[SF_REVERSE_DIMENSIONS];
    for (int i = 0; i < dims->count; i++)
        if (spec->types[0]->dims[dims->ints[i]] > 1)
            return false;
    *out = spec->operands[0];
    return true;
}

/* A reduction over dimensions of size 1 from the monoid's identity only drops them. */
static bool reduce_rule(sf_emitter *emitter, sf_node_spec *spec, sf_value *out)
{
    const sf_attr *body = spec->attrs[SF_REDUCE_BODY], *dims = spec->attrs[SF_REDUCE_DIMENSIONS];
    const sf_type *type = sf_type_of(emitter->graph, spec->operands[0]);
    if (!body || !dims || spec->nresults != 1 || type->count != spec->types[0]->count)
        return false;
    sf_monoid monoid = (sf_monoid)body->integer;
    bool is_one = monoid == SF_MONOID_MUL || monoid == SF_MONOID_AND;
    bool is_zero = monoid == SF_MONOID_ADD || monoid == SF_MONOID_OR || monoid == SF_MONOID_XOR;
    bool is_logic =
        monoid == SF_MONOID_AND && type->dtype != SF_PRED; /* its identity is all ones */
    if (is_logic || (!is_one && !is_zero) || !is_splat_of(emitter, spec->operands[1], is_one))
        return false;
    *out = add_reshape(emitter, spec->operands[0], spec->types[0]);
    return true;
}

static bool select_rule(sf_emitter *emitter, sf_node_spec *spec, sf_value *out)
{
    const sf_dense *predicate = sf_constant_of(emitter->graph, spec->operands[0]);
    if (!predicate || !predicate->splat)
        return false;
    *out = spec->operands[sf_load_i64(SF_PRED, predicate->data, 0) ? 1 : 2];
    return true;
}

/* An empty configuration is none. A sharding constraint is no op in StableHLO. */
static bool custom_call_rule(sf_emitter *emitter, sf_node_spec *spec, sf_value *out)
{
    (void)emitter;
    if (strcmp(spec->attrs[SF_CUSTOM_TARGET]->text, "xla.sdy.FuncResultSharding") == 0) {
        *out = spec->operands[0];
        return true;
    }
    const sf_attr **attrs = (const sf_attr **)spec->attrs; /* sf_emit's own copy */
    const sf_attr *config = attrs[SF_CUSTOM_CONFIG];
    if (config && (config->count == 0 || sf_str_is(sf_attr_bytes(config), "{}")))
        attrs[SF_CUSTOM_CONFIG] = NULL;
    return false;
}

/* The default comparison of a type needs no attribute. */
static bool compare_rule(sf_emitter *emitter, sf_node_spec *spec, sf_value *out)
{
    (void)emitter, (void)out;
    const sf_attr **attrs = (const sf_attr **)spec->attrs; /* sf_emit's own copy */
    const sf_attr *type = attrs[SF_COMPARE_TYPE];
    if (type && strcmp(type->text, "TOTALORDER") != 0)
        attrs[SF_COMPARE_TYPE] = NULL;
    return false;
}

static bool batch_norm_rule(sf_emitter *emitter, sf_node_spec *spec, sf_value *out)
{
    sf_emit_batch_norm(emitter, spec, out);
    return true;
}

/* A part of a value that was composed of parts is that part; a real number is its own real part,
 * and has the imaginary part 0. */
static bool part_rule(sf_emitter *emitter, sf_node_spec *spec, sf_value *out)
{
    bool is_real = spec->def->id == SF_OP_REAL;
    const sf_node *whole = maker_if(emitter, spec->operands[0], SF_OP_COMPLEX);
    double zero = 0;
    if (whole)
        *out = whole->operands[!is_real];
    else if (sf_type_of(emitter->graph, spec->operands[0]) != spec->types[0])
        return false;
    else if (is_real)
        *out = spec->operands[0];
    else
        *out =
            add_constant(emitter, sf_attr_dense(emitter->graph->pool, spec->types[0], true, &zero));
    return true;
}

/* The parts of a number, composed to the same number. */
static bool complex_rule(sf_emitter *emitter, sf_node_spec *spec, sf_value *out)
{
    const sf_node *real = maker_if(emitter, spec->operands[0], SF_OP_REAL);
    const sf_node *imag = maker_if(emitter, spec->operands[1], SF_OP_IMAG);
    if (!real || !imag || real->operands[0] != imag->operands[0])
        return false;
    *out = real->operands[0];
    return true;
}

static rule *const rules[SF_OP_COUNT] = {
    [SF_OP_ADD] = neutral_rule,
    [SF_OP_SUBTRACT] = neutral_rule,
    [SF_OP_MULTIPLY] = neutral_rule,
    [SF_OP_DIVIDE] = neutral_rule,
    [SF_OP_BATCH_NORM_GRAD] = batch_norm_rule,
    [SF_OP_BATCH_NORM_INFERENCE] = batch_norm_rule,
    [SF_OP_BATCH_NORM_TRAINING] = batch_norm_rule,
    [SF_OP_IOTA] = iota_rule,
    [SF_OP_SQUARE] = square_rule,
    [SF_OP_RESHAPE] = reshape_rule,
    [SF_OP_BROADCAST_IN_DIM] = broadcast_rule,
    [SF_OP_TRANSPOSE] = transpose_rule,
    [SF_OP_CONVERT] = same_type_rule,
    [SF_OP_BITCAST_CONVERT] = same_type_rule,
    [SF_OP_REDUCE_PRECISION] = precision_rule,
    [SF_OP_CUSTOM_CALL] = custom_call_rule,
    [SF_OP_SLICE] = slice_rule,
    [SF_OP_DYNAMIC_SLICE] = dynamic_slice_rule,
    [SF_OP_DYNAMIC_UPDATE_SLICE] = dynamic_update_rule,
    [SF_OP_REDUCE] = reduce_rule,
    [SF_OP_REVERSE] = reverse_rule,
    [SF_OP_SELECT] = select_rule,
    [SF_OP_COMPARE] = compare_rule,
    [SF_OP_CONCATENATE] = same_type_rule,
    [SF_OP_PAD] = pad_rule,
    [SF_OP_REAL] = part_rule,
    [SF_OP_IMAG] = part_rule,
    [SF_OP_COMPLEX] = complex_rule,
};

static bool is_default(const sf_attrdef *def, const sf_attr *attr)
{
    int64_t fill = def->absent == SF_ABSENT_ONES;
    if (attr->kind == SF_ATTR_INT)
        return attr->integer == fill;
    if (attr->kind != SF_ATTR_INTS)
        return false;
    if (def->absent == SF_ABSENT_EMPTY)
        return attr->count == 0;
    for (int i = 0; i < attr->count; i++)
        if (attr->ints[i] != fill)
            return false;
    return true;
}

/* Float arithmetic whose result IEEE 754 fixes to the last bit: folding it changes nothing. Of
 * complex numbers it fixes ops on each part alone. */
static bool is_exact(const sf_op *op)
{
    bool is_complex = sf_is_complex(op->in[0]->dtype);
    switch (op->def->id) {
    case SF_OP_ADD:
    case SF_OP_SUBTRACT:
    case SF_OP_NEGATE:
    case SF_OP_CONVERT:
    case SF_OP_COMPARE:
    case SF_OP_REAL:
    case SF_OP_IMAG:
    case SF_OP_COMPLEX:
        return true;
    case SF_OP_MULTIPLY:
    case SF_OP_DIVIDE:
    case SF_OP_ABS:
    case SF_OP_SQRT:
    case SF_OP_MAXIMUM:
    case SF_OP_MINIMUM:
        return !is_complex;
    default:
        return false;
    }
}

/* Constants that are worth computing with: small integers of any shape, and splats. */
static bool may_fold(const sf_op *op, const sf_dense *const *in, bool *by_element)
{
    const sf_opdef *def = op->def;
    if (op->noperands == 0 || op->noperands > FOLD_OPERANDS || op->nregions > 0 || def->effect ||
        op->nresults != 1 || def->id == SF_OP_OPTIMIZATION_BARRIER)
        return false;
    bool all_splat = is_exact(op), all_small = true;
    for (int i = -1; i < op->noperands; i++) {
        const sf_type *type = i < 0 ? op->out[0] : op->in[i];
        if (i >= 0 && !in[i])
            return false;
        all_small = all_small && !sf_is_inexact(type->dtype) && type->count <= FOLD_COUNT;
        all_splat = all_splat && (i < 0 || in[i]->splat) && sf_same_shape(type, op->out[0]);
    }
    *by_element = all_splat;
    return all_splat || all_small;
}

bool sf_fold(const sf_op *op, const sf_dense *const *in, const sf_attr **out)
{
    bool splat;
    if (!may_fold(op, in, &splat))
        return false;
    _Alignas(16) char storage[FOLD_OPERANDS][FOLD_COUNT * SF_ELEMENT_BYTES];
    const sf_type *types[FOLD_OPERANDS + 1];
    sf_tensor tensors[FOLD_OPERANDS], result = {0};
    sf_op scalar = *op;
    for (int i = 0; i < op->noperands; i++) {
        sf_dtype dtype = op->in[i]->dtype;
        types[i] = splat ? sf_type_scalar(op->pool, dtype) : op->in[i];
        tensors[i] = (sf_tensor){.type = types[i], .data = storage[i]};
        size_t bytes = sf_dtype_get(dtype)->bytes;
        for (int64_t j = 0; j < types[i]->count; j++)
            memcpy(storage[i] + (size_t)j * bytes,
                   (const char *)in[i]->data + (size_t)sf_dense_at(in[i], j) * bytes, bytes);
    }
    types[op->noperands] = splat ? sf_type_scalar(op->pool, op->out[0]->dtype) : op->out[0];
    scalar.in = types;
    scalar.out = types + op->noperands;
    bool done = sf_eval_op(&scalar, tensors, &result, NULL) == SF_OK;
    if (done)
        *out = sf_attr_dense(op->pool, op->out[0], splat, result.data);
    sf_free(result.data);
    return done;
}

static bool fold_rule(sf_emitter *emitter, const sf_node_spec *spec, sf_value *out)
{
    const sf_type *in[FOLD_OPERANDS];
    const sf_dense *constants[FOLD_OPERANDS];
    const sf_attr *value;
    if (spec->noperands == 0 || spec->noperands > FOLD_OPERANDS || spec->nresults != 1)
        return false;
    for (uint32_t i = 0; i < spec->noperands; i++) {
        constants[i] = sf_constant_of(emitter->graph, spec->operands[i]);
        if (!constants[i])
            return false;
        in[i] = constants[i]->type;
    }
    sf_op op = {
        .def = spec->def,
        .noperands = (int)spec->noperands,
        .nresults = 1,
        .nregions = (int)spec->nregions,
        .in = in,
        .out = spec->types,
        .attrs = spec->attrs,
        .pool = emitter->graph->pool,
    };
    if (!sf_fold(&op, constants, &value))
        return false;
    *out = add_constant(emitter, value);
    return true;
}

void sf_emit(sf_emitter *emitter, const sf_node_spec *given, sf_value *out)
{
    enum { MOST_ATTRS = 24 };
    const sf_attr *attrs[MOST_ATTRS];
    sf_node_spec spec = *given;
    SF_ASSERT(spec.def->nattrs <= MOST_ATTRS);
    for (int i = 0; i < spec.def->nattrs; i++) {
        const sf_attrdef *def = &spec.def->attrs[i];
        attrs[i] = given->attrs[i];
        if (attrs[i] && !def->required && !def->derived && is_default(def, attrs[i]))
            attrs[i] = NULL;
    }
    spec.attrs = attrs;
    sf_value swapped[2];
    order_commutative(emitter, &spec, swapped);
    if (fold_rule(emitter, &spec, out))
        return;
    rule *rewrite = rules[spec.def->id];
    if (rewrite && rewrite(emitter, &spec, out))
        return;
    spec.scope = emitter->scope;
    spec.phase = emitter->phase;
    spec.loc = emitter->loc;
    const sf_node *node = sf_graph_add(emitter->graph, emitter->block, &spec);
    for (uint32_t i = 0; i < node->nresults; i++)
        out[i] = node->result + i;
}
