#include "prog/attention/positions.h"

#include "op/slots.h"

enum {
    DEEPEST = 24,
    LARGEST = 1 << 30
}; /* ops between; sizes and numbers, so that sums stay small */

static bool read_value(const sf_scene *scene, sf_value value, int depth, positions *out);

static bool read_constant(const sf_node *node, positions *out)
{
    const sf_dense *dense = &node->attrs[SF_CONSTANT_VALUE]->dense;
    if (!dense->data || (!dense->splat && dense->type->count != 1))
        return false;
    out->first = sf_load_i64(dense->type->dtype, dense->data, 0);
    return out->first < LARGEST && out->first > -LARGEST;
}

/* x + y, x - y */
static bool read_sum(const sf_scene *scene, const sf_node *node, int depth, positions *out)
{
    positions x, y;
    int sign = sf_is(node, SF_OP_ADD) ? 1 : -1;
    if (!read_value(scene, node->operands[0], depth, &x) ||
        !read_value(scene, node->operands[1], depth, &y))
        return false;
    out->first = x.first + sign * y.first;
    for (int d = 0; d < SF_MAX_RANK; d++)
        out->steps[d] = x.steps[d] + sign * y.steps[d];
    return true;
}

static bool read_broadcast(const sf_node *node, const positions *x, positions *out)
{
    const sf_attr *dims = node->attrs[SF_BROADCAST_DIMENSIONS];
    out->first = x->first;
    for (int i = 0; dims && i < dims->count; i++)
        out->steps[dims->ints[i]] = x->steps[i];
    return true;
}

static bool read_slice(const sf_type *type, const sf_node *node, const positions *x, positions *out)
{
    const sf_attr *starts = node->attrs[SF_SLICE_STARTS], *strides = node->attrs[SF_SLICE_STRIDES];
    out->first = x->first;
    for (int d = 0; d < type->rank; d++) {
        out->first += starts ? starts->ints[d] * x->steps[d] : 0;
        out->steps[d] = type->dims[d] > 1 ? x->steps[d] * (strides ? strides->ints[d] : 1) : 0;
    }
    return true;
}

/* From the last dimension on: those that go on as one are one, which the new ones are parts of. */
static bool read_reshape(const sf_type *from, const sf_type *to, const positions *x, positions *out)
{
    int64_t sizes[SF_MAX_RANK], steps[SF_MAX_RANK], taken = 1;
    int count = 0, at = 0;
    for (int d = from->rank; d-- > 0;) {
        if (from->dims[d] == 1)
            continue;
        if (count > 0 && x->steps[d] == steps[count - 1] * sizes[count - 1]) {
            sizes[count - 1] *= from->dims[d];
        } else {
            sizes[count] = from->dims[d];
            steps[count++] = x->steps[d];
        }
    }
    out->first = x->first;
    for (int d = to->rank; d-- > 0;) {
        if (to->dims[d] == 1)
            continue;
        if (taken == sizes[at]) {
            at++;
            taken = 1;
        }
        if (at == count || sizes[at] % (taken * to->dims[d]) != 0)
            return false;
        out->steps[d] = steps[at] * taken;
        taken *= to->dims[d];
    }
    return true;
}

static bool read_node(const sf_scene *scene, const sf_node *node, int depth, positions *out)
{
    const sf_type *type = sf_type_of(scene->graph, node->result);
    positions x;
    switch (node->def->id) {
    case SF_OP_IOTA: {
        int64_t dim = node->attrs[SF_IOTA_DIMENSION] ? node->attrs[SF_IOTA_DIMENSION]->integer : 0;
        out->steps[dim] = type->dims[dim] > 1;
        return true;
    }
    case SF_OP_CONSTANT:
        return read_constant(node, out);
    case SF_OP_ADD:
    case SF_OP_SUBTRACT:
        return read_sum(scene, node, depth, out);
    case SF_OP_CONVERT:
        return read_value(scene, node->operands[0], depth, out);
    case SF_OP_BROADCAST_IN_DIM:
        return read_value(scene, node->operands[0], depth, &x) && read_broadcast(node, &x, out);
    case SF_OP_SLICE:
        return read_value(scene, node->operands[0], depth, &x) && read_slice(type, node, &x, out);
    case SF_OP_RESHAPE:
        return read_value(scene, node->operands[0], depth, &x) &&
               read_reshape(sf_type_of(scene->graph, node->operands[0]), type, &x, out);
    default:
        return false;
    }
}

static bool read_value(const sf_scene *scene, sf_value value, int depth, positions *out)
{
    const sf_type *type = sf_type_of(scene->graph, value);
    const sf_node *node = scene_maker(scene, value);
    *out = (positions){0};
    return node && depth < DEEPEST && type->count > 0 && type->count < LARGEST &&
           (type->dtype == SF_S32 || type->dtype == SF_S64 || type->dtype == SF_U32 ||
            type->dtype == SF_U64) &&
           read_node(scene, node, depth + 1, out);
}

bool positions_read(const sf_scene *scene, sf_value value, positions *out)
{
    return read_value(scene, value, 0, out);
}

int positions_dim(const positions *p)
{
    int dim = -1;
    for (int d = 0; d < SF_MAX_RANK; d++) {
        if (p->steps[d] == 0)
            continue;
        if (p->steps[d] != 1 || dim >= 0)
            return -1;
        dim = d;
    }
    return dim;
}
