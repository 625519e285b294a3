/* From each product that could be weights times values, back to the scores, and then on to the products of the backward pass that
 * read the same values. */
#include "prog/attention/find_attention.h"

#include <string.h>

#include "op/carry.h"
#include "op/slots.h"
#include "prog/attention/attention_match.h"
#include "prog/attention/positions.h"

/* A product of two batches, of one dimension each that is summed over and that is not. */
typedef struct product {
    const sf_node *node;
    int batch[2][2], contracting[2], free[2]; /* by operand */
} product;

typedef struct finding {
    const sf_graph *graph;
    const sf_scene *scene;
    const sf_target *target;
    bool rounds, narrows;
    sf_dtype
        *read_as; /* by value: the type that all its readers convert it to, its own, or ONLY_WIDE */
    sf_arena scratch;
    product *products; /* of the block: all that could be one of attention, in order */
    size_t nproducts, products_capacity;
    bool *taken; /* by node: it makes a gradient of one that was found */
    found *list;
    size_t count, capacity;
} finding;

static int other_dim(int taken0, int taken1, int taken2)
{
    return 6 - taken0 - taken1 - taken2;
}

static bool read_product(const sf_graph *graph, const sf_node *node, product *out)
{
    if (!node || !sf_is(node, SF_OP_DOT_GENERAL) || node->attrs[SF_DOT_PRECISION])
        return false;
    const sf_attr *const *attrs = node->attrs;
    *out = (product){.node = node};
    for (int i = 0; i < 2; i++) {
        const sf_attr *batch = attrs[i ? SF_DOT_RHS_BATCH : SF_DOT_LHS_BATCH];
        const sf_attr *sum = attrs[i ? SF_DOT_RHS_CONTRACTING : SF_DOT_LHS_CONTRACTING];
        if (sf_type_of(graph, node->operands[i])->rank != 4 || !batch || !sum ||
            batch->count != 2 || sum->count != 1)
            return false;
        out->batch[i][0] = (int)batch->ints[0];
        out->batch[i][1] = (int)batch->ints[1];
        out->contracting[i] = (int)sum->ints[0];
        out->free[i] = other_dim(out->batch[i][0], out->batch[i][1], out->contracting[i]);
    }
    return true;
}

/* Operand i, with its places along the one and its depth along the other of its two dimensions. */
static operand operand_of(const product *p, int i, bool places_are_summed)
{
    int place = places_are_summed ? p->contracting[i] : p->free[i];
    int depth = places_are_summed ? p->free[i] : p->contracting[i];
    return (operand){p->node->operands[i], {p->batch[i][0], place, p->batch[i][1], depth}};
}

static bool same_operand(const sf_scene *scene, const operand *a, const operand *b)
{
    return scene_same(scene, a->value, b->value) && memcmp(a->dims, b->dims, sizeof a->dims) == 0;
}

/* Whether operand i is [b, h, q, k] in this order, and summed over dimension `dim` of it. */
static bool is_square(const product *p, int i, int dim)
{
    return p->batch[i][0] == 0 && p->batch[i][1] == 1 && p->contracting[i] == dim;
}

static const sf_node *behind_converts(const sf_scene *scene, sf_value value)
{
    const sf_node *node = scene_maker(scene, value);
    while (node && sf_is(node, SF_OP_CONVERT))
        node = scene_maker(scene, node->operands[0]);
    return node;
}

/* The nearest node of that op, looking through products, quotients and conversions; NULL: none. */
static const sf_node *behind_factors(const sf_scene *scene, sf_value value, sf_opcode op, int depth)
{
    const sf_node *node = behind_converts(scene, value);
    if (!node || sf_is(node, op) || depth == 0)
        return node && sf_is(node, op) ? node : NULL;
    if (!sf_is(node, SF_OP_MULTIPLY) && !sf_is(node, SF_OP_DIVIDE))
        return NULL;
    const sf_node *in = behind_factors(scene, node->operands[0], op, depth - 1);
    return in ? in : behind_factors(scene, node->operands[1], op, depth - 1);
}

/* Masks */

/* true where a flag is that everywhere. */
static bool is_flag(const sf_scene *scene, sf_value value, bool flag)
{
    const sf_node *node = scene_maker(scene, value);
    while (node && sf_is(node, SF_OP_BROADCAST_IN_DIM))
        node = scene_maker(scene, node->operands[0]);
    if (!node || !sf_is(node, SF_OP_CONSTANT))
        return false;
    const sf_dense *dense = &node->attrs[SF_CONSTANT_VALUE]->dense;
    return dense->data && dense->splat && (*(const uint8_t *)dense->data != 0) == flag;
}

/* The comparison that makes a mask, and which of its dimensions are *q and *k of the mask; NULL:
 * there is none. */
static const sf_node *find_compare(const sf_scene *scene, sf_value mask, int *q, int *k)
{
    const sf_node *node = scene_maker(scene, mask);
    while (node && !sf_is(node, SF_OP_COMPARE)) {
        int from = 0; /* the operand that makes it */
        if (sf_is(node, SF_OP_BROADCAST_IN_DIM)) {
            const sf_attr *dims = node->attrs[SF_BROADCAST_DIMENSIONS];
            int inner_q = -1, inner_k = -1;
            for (int i = 0; dims && i < dims->count; i++) {
                inner_q = dims->ints[i] == *q ? i : inner_q;
                inner_k = dims->ints[i] == *k ? i : inner_k;
            }
            if (inner_q < 0 || inner_k < 0)
                return NULL;
            *q = inner_q;
            *k = inner_k;
        } else if (sf_is(node, SF_OP_AND)) {
            from = is_flag(scene, node->operands[0], true);
            if (!is_flag(scene, node->operands[!from], true))
                return NULL;
        } else if (!sf_is(node, SF_OP_SELECT) || !is_flag(scene, node->operands[1], true) ||
                   !is_flag(scene, node->operands[2], false)) {
            return NULL;
        }
        node = scene_maker(scene, node->operands[from]);
    }
    return node;
}

/* Whether a mask of [.., q, k] is true where k <= q + *offset. */
static bool is_causal(const sf_scene *scene, sf_value mask, int64_t *offset)
{
    int rank = sf_type_of(scene->graph, mask)->rank, q = rank - 2, k = rank - 1;
    const sf_node *node = find_compare(scene, mask, &q, &k);
    positions left, right;
    if (!node || !positions_read(scene, node->operands[0], &left) ||
        !positions_read(scene, node->operands[1], &right))
        return false;
    const char *direction = node->attrs[SF_COMPARE_DIRECTION]->text;
    bool transposed = strcmp(direction, "LE") == 0 || strcmp(direction, "LT") == 0;
    bool without = strcmp(direction, "GT") == 0 || strcmp(direction, "LT") == 0;
    if (!transposed && !without && strcmp(direction, "GE") != 0)
        return false;
    const positions *of_q = transposed ? &right : &left, *of_k = transposed ? &left : &right;
    *offset = of_q->first - of_k->first - without;
    return positions_dim(of_q) == q && positions_dim(of_k) == k;
}

/* Results that are only converted */

enum { NOT_READ = SF_DTYPE_COUNT, ONLY_WIDE };

static void read_as(finding *c, sf_value value, sf_dtype dtype)
{
    sf_dtype *was = &c->read_as[value];
    if (dtype != (sf_dtype)NOT_READ)
        *was = *was == (sf_dtype)NOT_READ || *was == dtype ? dtype : (sf_dtype)ONLY_WIDE;
}

/* From the end: transposes and reshapes are read as their results are. */
static void find_readers(finding *c, const sf_block *block)
{
    for (uint32_t i = 0; i < block->nresults; i++)
        read_as(c, block->results[i], (sf_dtype)ONLY_WIDE);
    for (uint32_t i = block->nnodes; i-- > 0;) {
        const sf_node *node = c->graph->nodes[block->nodes[i]];
        for (uint32_t r = 0; r < node->nregions; r++)
            find_readers(c, node->regions[r]);
        for (uint32_t o = 0; o < node->noperands; o++)
            read_as(c, node->operands[o],
                    sf_is(node, SF_OP_CONVERT) ? sf_type_of(c->graph, node->result)->dtype
                    : sf_is(node, SF_OP_TRANSPOSE) || sf_is(node, SF_OP_RESHAPE)
                        ? c->read_as[node->result]
                        : (sf_dtype)ONLY_WIDE);
    }
}

/* Whether the result of a product may be of that type: it is, or is rounded to it in any case. */
static bool may_be(const finding *c, sf_value result, sf_dtype dtype)
{
    return sf_type_of(c->graph, result)->dtype == dtype ||
           (sf_type_of(c->graph, result)->dtype == SF_F32 &&
            (c->narrows || c->read_as[result] == dtype));
}

/* Forward */

/* Whether the value is the most of each row of x, repeated along rows. */
static bool is_row_top(const sf_scene *scene, sf_value value, sf_value x)
{
    double number;
    const sf_node *node = scene_maker(scene, value);
    while (node) {
        bool bounded[2] = {false, false}; /* by a number, which is that operand */
        for (int i = 0; i < 2 && sf_is(node, SF_OP_MAXIMUM); i++)
            bounded[i] = algebra_number(scene, node->operands[i], &number);
        if (!bounded[0] && !bounded[1] &&
            !sf_carries(node, SF_CARRIES_TYPE | SF_CARRIES_SHAPE | SF_CARRIES_COPIES))
            break;
        node = scene_maker(scene, node->operands[bounded[0] ? 1 : 0]);
    }
    if (!node || !sf_is(node, SF_OP_REDUCE) || node->noperands != 2 ||
        !scene_same(scene, node->operands[0], x))
        return false;
    const sf_attr *body = node->attrs[SF_REDUCE_BODY], *dims = node->attrs[SF_REDUCE_DIMENSIONS];
    return body && body->integer == SF_MONOID_MAX && dims && dims->count == 1 && dims->ints[0] == 3;
}

/* x is the operand of the softmax: scaled scores, with a mask or without. */
static bool read_scores(found *f, sf_value x)
{
    const sf_scene *scene = f->algebra.scene;
    const sf_node *node = behind_converts(scene, x);
    double hidden;
    f->algebra.mask = SF_NONE;
    if (node && sf_is(node, SF_OP_SELECT)) {
        if (!algebra_number(scene, node->operands[2], &hidden) || hidden > -1e4 ||
            !is_causal(scene, node->operands[0], &f->offset))
            return false;
        f->causal = true;
        f->algebra.mask = node->operands[0];
        x = node->operands[1];
    }
    const sf_node *dot = behind_factors(scene, x, SF_OP_DOT_GENERAL, 6);
    product p;
    if (!read_product(scene->graph, dot, &p) ||
        scene->block_of[dot->id] != scene->block_of[f->out->id])
        return false;
    f->scores = dot;
    f->algebra.scores = dot->result;
    f->q = operand_of(&p, 0, false);
    f->k = operand_of(&p, 1, false);
    sum_of_terms read;
    sum_of_terms scaled = {.count = 1, .terms[0] = {.powers[ATOM_S] = 1}};
    if (!algebra_read(&f->algebra, x, &read) || read.count != 1)
        return false;
    f->scale = scaled.terms[0].factor = read.terms[0].factor;
    return algebra_equal(&read, &scaled);
}

/* E / Z */
static const sum_of_terms weights = {
    .count = 1, .terms[0] = {.factor = 1, .powers[ATOM_E] = 1, .powers[ATOM_Z] = -1}};

static bool is_sum(const found *f, sf_value value, const sum_of_terms *what)
{
    sum_of_terms read;
    return algebra_read(&f->algebra, value, &read) && algebra_equal(&read, what);
}

static bool suits_target(const finding *c, const found *f)
{
    const sf_type *q = sf_type_of(c->graph, f->q.value), *k = sf_type_of(c->graph, f->k.value),
                  *v = sf_type_of(c->graph, f->v.value);
    sf_attending a = {.dtype = q->dtype,
                      .queries = q->dims[f->q.dims[1]],
                      .keys = k->dims[f->k.dims[1]],
                      .depth = q->dims[f->q.dims[3]],
                      .causal = f->causal,
                      .offset = f->offset,
                      .rounds = c->rounds,
                      .asked = c->graph->kernels == SF_KERNELS_ALL};
    bool one_type =
        q->dtype == k->dtype && q->dtype == v->dtype && may_be(c, f->out->result, q->dtype);
    return one_type && v->dims[f->v.dims[3]] == a.depth && f->offset >= 0 && q->count > 0 &&
           k->count > 0 && f->scale > 0 && c->target->attends(&a);
}

/* Operand `side` of the product is weights, and the other values. */
static bool read_forward(finding *c, const product *p, int side, found *f)
{
    const sf_scene *scene = c->scene;
    const sf_node *e = behind_factors(scene, p->node->operands[side], SF_OP_EXPONENTIAL, 4);
    if (!is_square(p, side, 3) || !e)
        return false;
    const sf_node *less = behind_converts(scene, e->operands[0]);
    if (!less || !sf_is(less, SF_OP_SUBTRACT) ||
        !is_row_top(scene, less->operands[1], less->operands[0]))
        return false;
    *f = (found){.out = p->node,
                 .v = operand_of(p, 1 - side, true),
                 .algebra = {scene, SF_NONE, e->result, SF_NONE, SF_NONE}};
    return read_scores(f, less->operands[0]) && is_sum(f, p->node->operands[side], &weights) &&
           suits_target(c, f);
}

/* Backward */

/* The gradient of the weights: the gradient of the output times the values. */
static bool is_weight_gradient(const found *f, const product *p)
{
    operand v = operand_of(p, 1, false);
    return same_operand(f->algebra.scene, &v, &f->v);
}

static bool same_as(const found *f, const operand *a, const operand *b)
{
    return same_operand(f->algebra.scene, a, b);
}

/* Which gradient the product makes, and which of its operands is the square one, with f->algebra.gradient and f->dout known;
 * -1: none. */
static int gradient_of(const found *f, const product *p, int *square_side)
{
    const sum_of_terms dscores = {
        .count = 2,
        .terms = {{f->scale, {[ATOM_E] = 1, [ATOM_Z] = -1, [ATOM_G] = 1}},
                  {-f->scale, {[ATOM_E] = 1, [ATOM_Z] = -2, [ATOM_T] = 1}}}};
    for (int side = 0; side < 2; side++) {
        operand places = operand_of(p, 1 - side, true);
        sf_value square = p->node->operands[side];
        *square_side = side;
        if (is_square(p, side, 2) && same_as(f, &places, &f->dout) && is_sum(f, square, &weights))
            return 2;
        if (is_square(p, side, 2) && same_as(f, &places, &f->q) && is_sum(f, square, &dscores))
            return 1;
        if (is_square(p, side, 3) && same_as(f, &places, &f->k) && is_sum(f, square, &dscores))
            return 0;
    }
    return -1;
}

static bool reads(const finding *c, const product *p, const operand *o)
{
    return scene_same(c->scene, p->node->operands[0], o->value) ||
           scene_same(c->scene, p->node->operands[1], o->value);
}

/* Finds the gradients of the output and of the weights. */
static bool read_ends(const finding *c, size_t from, found *f)
{
    size_t at = from;
    while (at < c->nproducts &&
           !(reads(c, &c->products[at], &f->v) && is_weight_gradient(f, &c->products[at])))
        at++;
    if (at == c->nproducts)
        return false;
    const product *p = &c->products[at];
    f->algebra.gradient = p->node->result;
    f->dout = operand_of(p, 0, false);
    return sf_type_of(c->graph, f->dout.value)->dtype == sf_type_of(c->graph, f->q.value)->dtype;
}

static void read_backward(const finding *c, size_t from, found *f)
{
    if (!read_ends(c, from, f))
        return;
    for (size_t i = from; i < c->nproducts; i++) {
        const product *p = &c->products[i];
        int side;
        if (c->taken[p->node->id] ||
            !(reads(c, p, &f->dout) || reads(c, p, &f->q) || reads(c, p, &f->k)))
            continue;
        int which = gradient_of(f, p, &side);
        if (which < 0 || f->gradients[which] ||
            !may_be(c, p->node->result, sf_type_of(c->graph, f->q.value)->dtype))
            continue;
        f->gradients[which] = p->node;
        f->square_is_left[which] = side == 0;
        if (!f->first &&
            which == 2) /* the other product reads the same operand, which may be made later */
            f->dout = operand_of(p, 1 - side, true);
        f->first = f->first ? f->first : p->node;
    }
    f->has_gradient = f->gradients[0] && f->gradients[1] && f->gradients[2];
    for (int g = 0; g < 3 && f->has_gradient; g++)
        c->taken[f->gradients[g]->id] = true;
}

/* If a forward pass is recomputed, gradients belong to its last copy. */
static void find_in_block(finding *c, const sf_block *block)
{
    c->nproducts = 0;
    for (uint32_t i = 0; i < block->nnodes; i++) {
        product p;
        if (read_product(c->graph, c->graph->nodes[block->nodes[i]], &p))
            SF_PUSH(&c->scratch, c->products, c->nproducts, c->products_capacity, p);
    }
    for (size_t i = c->nproducts; i-- > 0;) {
        found f;
        if (!(read_forward(c, &c->products[i], 0, &f) || read_forward(c, &c->products[i], 1, &f)))
            continue;
        read_backward(c, i + 1, &f);
        SF_PUSH(&c->scratch, c->list, c->count, c->capacity, f);
    }
    for (uint32_t i = 0; i < block->nnodes; i++) {
        const sf_node *node = c->graph->nodes[block->nodes[i]];
        for (uint32_t r = 0; node->def->control != SF_CONTROL_NONE && r < node->nregions; r++)
            find_in_block(c, node->regions[r]);
    }
}

sf_regraph sf_find_attention(const sf_graph *graph, const sf_target *target, bool rounds,
                             bool narrows)
{
    finding c = {.graph = graph, .target = target, .rounds = rounds, .narrows = narrows};
    sf_regraph out = {0};
    if (target->attends && graph->kernels != SF_KERNELS_NONE) {
        sf_scene s = scene_of(graph, &c.scratch);
        c.scene = &s;
        c.taken = SF_ARRAY(&c.scratch, graph->nnodes, bool);
        c.read_as = SF_ARRAY(&c.scratch, graph->nvalues, sf_dtype);
        for (sf_value v = 0; v < graph->nvalues; v++)
            c.read_as[v] = (sf_dtype)NOT_READ;
        find_readers(&c, graph->top);
        find_in_block(&c, graph->top);
        if (c.count > 0)
            rewrite_attention(graph, c.list, c.count, &out);
    }
    sf_arena_free(&c.scratch);
    return out;
}
