#include "front/expand_batch_norm.h"

#include "op/slots.h"

/* Numbers of fewer than 32 bits are taken to f32 and back: sums over a batch and the count of its elements would be
 * lost in them. A `vector` holds one number per feature. */
typedef struct norm {
    sf_emitter *emitter;
    sf_pool *pool;
    const sf_type *full, *vector; /* that it is computed in */
    const sf_attr *feature;       /* as a list of dimensions */
    double elements;              /* per feature */
    double epsilon;
} norm;

static norm norm_of(sf_emitter *emitter, const sf_node_spec *spec)
{
    sf_pool *pool = emitter->graph->pool;
    const sf_type *operand = sf_type_of(emitter->graph, spec->operands[0]);
    int64_t feature = spec->attrs[SF_BATCH_NORM_FEATURE]->integer, size = operand->dims[feature];
    sf_dtype dtype = sf_dtype_get(operand->dtype)->bits < 32 ? SF_F32 : operand->dtype;
    return (norm){
        .emitter = emitter,
        .pool = pool,
        .full = sf_type_with(pool, operand, dtype),
        .vector = sf_type_get(pool, dtype, 1, &size),
        .feature = sf_attr_ints(pool, 1, &feature),
        .elements = size > 0 ? (double)(operand->count / size) : 0,
        .epsilon = sf_load_f64(SF_F32, spec->attrs[SF_BATCH_NORM_EPSILON]->dense.data, 0),
    };
}

static const sf_type *type_of(const norm *n, sf_value value)
{
    return sf_type_of(n->emitter->graph, value);
}

static sf_value convert(const norm *n, sf_value value, sf_dtype dtype)
{
    const sf_type *type = sf_type_with(n->pool, type_of(n, value), dtype);
    return sf_emit_one(n->emitter, SF_OP_CONVERT, 1, &value, NULL, type);
}

static sf_value apply(const norm *n, sf_opcode code, sf_value a, sf_value b)
{
    sf_value operands[2] = {a, b};
    return sf_emit_one(n->emitter, code, 2, operands, NULL, type_of(n, a));
}

static sf_value root(const norm *n, sf_value value)
{
    return sf_emit_one(n->emitter, SF_OP_SQRT, 1, &value, NULL, type_of(n, value));
}

static sf_value number(const norm *n, double value, const sf_type *type)
{
    uint64_t storage;
    sf_store_f64(type->dtype, &storage, 0, value);
    const sf_attr *attr = sf_attr_dense(n->pool, type, true, &storage);
    return sf_emit_one(n->emitter, SF_OP_CONSTANT, 0, NULL, &attr, type);
}

/* A vector, for all elements. */
static sf_value spread(const norm *n, sf_value vector)
{
    return sf_emit_one(n->emitter, SF_OP_BROADCAST_IN_DIM, 1, &vector, &n->feature, n->full);
}

/* Over all but the feature. */
static sf_value sum(const norm *n, sf_value full)
{
    int64_t others[SF_MAX_RANK];
    int count = 0;
    for (int i = 0; i < n->full->rank; i++)
        if (i != n->feature->ints[0])
            others[count++] = i;
    const sf_attr *attrs[] = {
        [SF_REDUCE_DIMENSIONS] = sf_attr_ints(n->pool, count, others),
        [SF_REDUCE_BODY] = sf_attr_int(n->pool, SF_MONOID_ADD),
    };
    sf_value operands[2] = {full, number(n, 0, sf_type_scalar(n->pool, n->full->dtype))};
    return sf_emit_one(n->emitter, SF_OP_REDUCE, 2, operands, attrs, n->vector);
}

static sf_value mean(const norm *n, sf_value full)
{
    return apply(n, SF_OP_DIVIDE, sum(n, full), number(n, n->elements, n->vector));
}

static sf_value center(const norm *n, sf_value full, sf_value means)
{
    return apply(n, SF_OP_SUBTRACT, full, spread(n, means));
}

/* The variance with epsilon. */
static sf_value widened(const norm *n, sf_value variance)
{
    return apply(n, SF_OP_ADD, variance, number(n, n->epsilon, n->vector));
}

/* offset + scale * centered / sqrt(variance + epsilon) */
static sf_value normalize(const norm *n, sf_value centered, sf_value scale, sf_value offset,
                          sf_value variance)
{
    sf_value deviation = root(n, widened(n, variance));
    sf_value normal = apply(n, SF_OP_DIVIDE, centered, spread(n, deviation));
    sf_value scaled = apply(n, SF_OP_MULTIPLY, spread(n, scale), normal);
    return apply(n, SF_OP_ADD, scaled, spread(n, offset));
}

/* in: operand, scale, offset, mean, variance */
static void infer(const norm *n, const sf_value *in, sf_value *out)
{
    out[0] = normalize(n, center(n, in[0], in[3]), in[1], in[2], in[4]);
}

/* in: operand, scale, offset; out: normalized, mean, variance */
static void train(const norm *n, const sf_value *in, sf_value *out)
{
    out[1] = mean(n, in[0]);
    sf_value centered = center(n, in[0], out[1]);
    out[2] = mean(n, apply(n, SF_OP_MULTIPLY, centered, centered));
    out[0] = normalize(n, centered, in[1], in[2], out[2]);
}

/* in: operand, scale, mean, variance, the gradient g of the output; out: gradients of operand, scale and offset. With N
 * elements per feature, c the centered operand and v the variance with epsilon:
 *     operand    scale / sqrt(v) / N * (N g - sum g - c sum(g c) / v) */
static void differentiate(const norm *n, const sf_value *in, sf_value *out)
{
    sf_value centered = center(n, in[0], in[2]), gradient = in[4];
    sf_value variance = widened(n, in[3]), deviation = root(n, variance);
    sf_value total = sum(n, gradient);
    sf_value along = sum(n, apply(n, SF_OP_MULTIPLY, gradient, centered));
    sf_value own = apply(n, SF_OP_MULTIPLY, gradient, number(n, n->elements, n->full));
    sf_value drift = apply(n, SF_OP_DIVIDE, apply(n, SF_OP_MULTIPLY, spread(n, along), centered),
                           spread(n, variance));
    sf_value rest = apply(n, SF_OP_SUBTRACT, own, spread(n, total));
    rest = apply(n, SF_OP_SUBTRACT, rest, drift);
    sf_value factor = apply(n, SF_OP_DIVIDE, apply(n, SF_OP_DIVIDE, in[1], deviation),
                            number(n, n->elements, n->vector));
    out[0] = apply(n, SF_OP_MULTIPLY, spread(n, factor), rest);
    out[1] = sum(n, apply(n, SF_OP_MULTIPLY, gradient,
                          apply(n, SF_OP_DIVIDE, centered, spread(n, deviation))));
    out[2] = total;
}

void sf_emit_batch_norm(sf_emitter *emitter, const sf_node_spec *spec, sf_value *out)
{
    norm n = norm_of(emitter, spec);
    sf_value in[5];
    for (uint32_t i = 0; i < spec->noperands; i++)
        in[i] = convert(&n, spec->operands[i], n.full->dtype);
    if (spec->def->id == SF_OP_BATCH_NORM_INFERENCE)
        infer(&n, in, out);
    else if (spec->def->id == SF_OP_BATCH_NORM_TRAINING)
        train(&n, in, out);
    else
        differentiate(&n, in, out);
    for (uint32_t i = 0; i < spec->nresults; i++)
        out[i] = convert(&n, out[i], spec->types[0]->dtype);
}
