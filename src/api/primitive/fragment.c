#include "api/primitive/fragment.h"

#include <string.h>

#include "op/node_builder.h"
#include "op/slots.h"
#include "op/util.h"

/* The nodes of a sketch, one by one. */
typedef struct building {
    const sf_sketch *sketch;
    sf_emitter *emitter;
    const sf_value *inputs;
    sf_value values[SF_SKETCH_NODES]; /* SF_NONE: a number, whose type is that of who reads it */
    sf_diag *diag;
} building;

static const sf_type *type_at(const building *b, int node)
{
    return b->values[node] == SF_NONE ? NULL : sf_type_of(b->emitter->graph, b->values[node]);
}

static sf_value emit_number(building *b, double number, const sf_type *type)
{
    unsigned char element[SF_ELEMENT_BYTES] = {0};
    if (sf_is_float(type->dtype))
        sf_store_f64(type->dtype, element, 0, number);
    else
        sf_store_i64(type->dtype, element, 0, (int64_t)number);
    const sf_attr *attrs[1] = {sf_attr_dense(b->emitter->graph->pool, type, true, element)};
    return sf_emit_one(b->emitter, SF_OP_CONSTANT, 0, NULL, attrs, type);
}

/* As numpy does: the last dimensions are aligned, and those of size 1 stretch. */
static sf_status stretch(building *b, const char *op, sf_value value, const sf_type *to,
                         sf_value *out)
{
    const sf_type *from = sf_type_of(b->emitter->graph, value);
    int64_t dims[SF_TENSOR_DIMS];
    char ours[SF_TYPE_TEXT], theirs[SF_TYPE_TEXT];
    bool same = from->rank == to->rank;
    for (int d = 0; d < from->rank; d++) {
        int at = d + to->rank - from->rank;
        if (at < 0 || (from->dims[d] != to->dims[at] && from->dims[d] != 1))
            return sf_fail(b->diag, SF_EMISMATCH, SF_NOWHERE, "%s: %s does not stretch to %s", op,
                           sf_type_text(from, ours), sf_type_text(to, theirs));
        same = same && from->dims[d] == to->dims[at];
        dims[d] = at;
    }
    *out = value;
    if (same)
        return SF_OK;
    sf_pool *pool = b->emitter->graph->pool;
    const sf_attr *attrs[1] = {sf_attr_ints(pool, from->rank, dims)};
    *out = sf_emit_one(b->emitter, SF_OP_BROADCAST_IN_DIM, 1, &value, attrs,
                       sf_type_get(pool, from->dtype, to->rank, to->dims));
    return SF_OK;
}

/* The operand with the most dimensions, or elements; NULL: all are numbers. */
static const sf_type *find_widest(const building *b, const sf_sketch_node *node)
{
    const sf_type *widest = NULL;
    for (int i = 0; i < node->noperands; i++) {
        const sf_type *type = type_at(b, node->operands[i]);
        if (type && (!widest || type->rank > widest->rank ||
                     (type->rank == widest->rank && sf_type_bytes(type) > sf_type_bytes(widest))))
            widest = type;
    }
    return widest;
}

/* The type of a number among the operands: of a select, that of the choices, not of the
 * condition. */
static sf_dtype find_dtype(const building *b, const sf_sketch_node *node, sf_dtype otherwise)
{
    for (int i = node->noperands; i-- > 0;)
        if (type_at(b, node->operands[i]))
            return type_at(b, node->operands[i])->dtype;
    return otherwise;
}

static sf_status take_operands(building *b, const sf_sketch_node *node, sf_value *out)
{
    const sf_type *widest = find_widest(b, node);
    bool pointwise = node->def->factors == sf_factors_pointwise;
    sf_pool *pool = b->emitter->graph->pool;
    if (!widest)
        return sf_fail(b->diag, SF_EMISMATCH, SF_NOWHERE, "%s: numbers alone have no type",
                       node->def->name);
    sf_dtype dtype = find_dtype(b, node, widest->dtype);
    for (int i = 0; i < node->noperands; i++) {
        const sf_sketch_node *operand = &b->sketch->nodes[node->operands[i]];
        out[i] = b->values[node->operands[i]];
        if (out[i] == SF_NONE)
            out[i] = emit_number(b, operand->number,
                                 pointwise ? sf_type_get(pool, dtype, widest->rank, widest->dims)
                                           : sf_type_scalar(pool, dtype));
        else if (pointwise)
            SF_TRY(stretch(b, node->def->name, out[i], widest, &out[i]));
    }
    return SF_OK;
}

static const sf_attr *make_attr(sf_pool *pool, const sf_sketched_attr *said)
{
    switch (said->kind) {
    case SF_ATTR_INT:
        return sf_attr_int(pool, said->integer);
    case SF_ATTR_INTS:
        return said->count > 0 ? sf_attr_ints(pool, said->count, said->ints) : NULL;
    case SF_ATTR_TEXT:
        return sf_attr_text(pool, sf_str_of(said->text));
    case SF_ATTR_DENSE:
        break;
    }
    return NULL;
}

static void take_attrs(building *b, const sf_sketch_node *node, const sf_value *operands,
                       const sf_attr **out)
{
    sf_pool *pool = b->emitter->graph->pool;
    for (int i = 0; i < node->nattrs; i++)
        out[node->attrs[i].slot] = make_attr(pool, &node->attrs[i]);
    if (node->def->id == SF_OP_DOT_GENERAL && !out[SF_DOT_LHS_CONTRACTING] &&
        !out[SF_DOT_RHS_CONTRACTING]) { /* the last dimension by the first */
        int64_t last = sf_type_of(b->emitter->graph, operands[0])->rank - 1, first = 0;
        out[SF_DOT_LHS_CONTRACTING] = sf_attr_ints(pool, 1, &last);
        out[SF_DOT_RHS_CONTRACTING] = sf_attr_ints(pool, 1, &first);
    }
}

/* The declared type of the result, if the operands do not determine it; else NULL. */
static const sf_type *declared_type(const building *b, const sf_sketch_node *node,
                                    const sf_type *operand)
{
    if (!node->def->declared && node->rank < 0 && !node->has_dtype)
        return NULL;
    return sf_type_get(b->emitter->graph->pool, node->has_dtype ? node->dtype : operand->dtype,
                       node->rank >= 0 ? node->rank : operand->rank,
                       node->rank >= 0 ? node->dims : operand->dims);
}

static sf_status build_op(building *b, int number)
{
    const sf_sketch_node *node = &b->sketch->nodes[number];
    sf_graph *graph = b->emitter->graph;
    sf_value operands[SF_SKETCH_OPERANDS];
    const sf_type *in[SF_SKETCH_OPERANDS], *out;
    const sf_attr *attrs[32] = {NULL};
    SF_TRY(take_operands(b, node, operands));
    take_attrs(b, node, operands, attrs);
    for (int i = 0; i < node->noperands; i++)
        in[i] = sf_type_of(graph, operands[i]);
    const sf_type *declared = declared_type(b, node, in[0]);
    sf_op op = {.def = node->def,
                .noperands = node->noperands,
                .nresults = 1,
                .in = in,
                .out = declared ? &declared : NULL,
                .attrs = attrs,
                .graph = graph,
                .pool = graph->pool,
                .loc = b->emitter->loc};
    SF_TRY(sf_infer(&op, &out, b->diag));
    sf_node_spec spec = {.def = node->def,
                         .noperands = (uint32_t)node->noperands,
                         .nresults = 1,
                         .operands = operands,
                         .types = &out,
                         .attrs = attrs};
    sf_emit(b->emitter, &spec, &b->values[number]);
    return SF_OK;
}

sf_status sf_fragment_build(const sf_sketch *sketch, sf_emitter *emitter, const sf_value *inputs,
                            sf_diag *diag, sf_value *out)
{
    building b = {.sketch = sketch, .emitter = emitter, .inputs = inputs, .diag = diag};
    for (int n = 0; n < sketch->count; n++) {
        const sf_sketch_node *node = &sketch->nodes[n];
        b.values[n] = node->kind == SF_SKETCH_INPUT ? inputs[node->input] : SF_NONE;
        if (node->kind == SF_SKETCH_OP)
            SF_TRY(build_op(&b, n));
    }
    for (int r = 0; r < sketch->nresults; r++) {
        out[r] = b.values[sketch->results[r]];
        if (out[r] == SF_NONE)
            return sf_fail(diag, SF_EMISMATCH, SF_NOWHERE, "a number alone has no type");
    }
    return SF_OK;
}
