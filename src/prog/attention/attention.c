/* Finding: from each product that could be weights times values, back to the scores, and then on to the products of the backward
 * pass that read the same values. Rewriting: the graph node by node, with one op in the place of the product that ends the
 * forward pass, and one in that of the first of the backward pass; what nobody needs then is left out. */
#include "prog/attention/attention.h"

#include <string.h>

#include "base/mem.h"
#include "ir/clone.h"
#include "op/attention.h"
#include "op/slots.h"
#include "prog/attention/algebra.h"

/* A product of two batches, of one dimension each that is summed over and that is not. */
typedef struct product {
    const sf_node *node;
    int batch[2][2], contracting[2], free[2]; /* by operand */
} product;

/* An operand as [batch, place, head, depth]: dimension i of that is dims[i] of the value. */
typedef struct operand {
    sf_value value;
    int dims[4];
} operand;

typedef struct found {
    operand q, k, v, dout;
    const sf_node *out; /* the product that makes it */
    const sf_node *scores;
    algebra algebra;
    double scale;
    bool causal;
    bool has_gradient;
    const sf_node *gradients[3]; /* the products that make dq, dk, dv */
    uint32_t first;              /* where the first of the backward products stands in the block */
    sf_value made[2], made_gradients[3];
    bool is_used, is_gradient_used;
} found;

typedef struct finding {
    const sf_graph *graph;
    const sf_target *target;
    bool rounds;
    sf_arena scratch;
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

static bool same_operand(const operand *a, const operand *b)
{
    return a->value == b->value && memcmp(a->dims, b->dims, sizeof a->dims) == 0;
}

/* Whether operand i is [b, h, q, k] in this order, and summed over dimension `dim` of it. */
static bool is_square(const product *p, int i, int dim)
{
    return p->batch[i][0] == 0 && p->batch[i][1] == 1 && p->contracting[i] == dim;
}

static const sf_node *behind_converts(const sf_graph *graph, sf_value value)
{
    const sf_node *node = sf_maker(graph, value);
    while (node && sf_is(node, SF_OP_CONVERT))
        node = sf_maker(graph, node->operands[0]);
    return node;
}

/* The nearest node of that op behind products, quotients and conversions; NULL: none. */
static const sf_node *behind_factors(const sf_graph *graph, sf_value value, sf_opcode op, int depth)
{
    const sf_node *node = behind_converts(graph, value);
    if (!node || sf_is(node, op) || depth == 0)
        return node && sf_is(node, op) ? node : NULL;
    if (!sf_is(node, SF_OP_MULTIPLY) && !sf_is(node, SF_OP_DIVIDE))
        return NULL;
    const sf_node *in = behind_factors(graph, node->operands[0], op, depth - 1);
    return in ? in : behind_factors(graph, node->operands[1], op, depth - 1);
}

/* Masks */

/* Whether the value counts along a dimension; -1: it does not. */
static int counts_along(const sf_graph *graph, sf_value value)
{
    const sf_node *node = sf_maker(graph, value);
    if (node && sf_is(node, SF_OP_IOTA))
        return (int)(node->attrs[SF_IOTA_DIMENSION] ? node->attrs[SF_IOTA_DIMENSION]->integer : 0);
    if (!node || !sf_is(node, SF_OP_BROADCAST_IN_DIM))
        return -1;
    int inner = counts_along(graph, node->operands[0]);
    const sf_attr *dims = node->attrs[SF_BROADCAST_DIMENSIONS];
    return inner < 0 || !dims ? -1 : (int)dims->ints[inner];
}

/* true where a flag is that everywhere. */
static bool is_flag(const sf_graph *graph, sf_value value, bool flag)
{
    const sf_node *node = sf_maker(graph, value);
    while (node && sf_is(node, SF_OP_BROADCAST_IN_DIM))
        node = sf_maker(graph, node->operands[0]);
    if (!node || !sf_is(node, SF_OP_CONSTANT))
        return false;
    const sf_dense *dense = &node->attrs[SF_CONSTANT_VALUE]->dense;
    return dense->data && dense->splat && (*(const uint8_t *)dense->data != 0) == flag;
}

/* Whether a mask of [.., q, k] is true where k is not behind q. */
static bool is_causal(const sf_graph *graph, sf_value mask)
{
    const sf_node *node = sf_maker(graph, mask);
    int rank = sf_type_of(graph, mask)->rank, q = rank - 2, k = rank - 1;
    for (;;) {
        if (node && sf_is(node, SF_OP_BROADCAST_IN_DIM)) {
            const sf_attr *dims = node->attrs[SF_BROADCAST_DIMENSIONS];
            int inner_q = -1, inner_k = -1;
            for (int i = 0; dims && i < dims->count; i++) {
                inner_q = dims->ints[i] == q ? i : inner_q;
                inner_k = dims->ints[i] == k ? i : inner_k;
            }
            if (inner_q < 0 || inner_k < 0)
                return false;
            q = inner_q;
            k = inner_k;
        } else if (!node || !sf_is(node, SF_OP_SELECT) ||
                   !is_flag(graph, node->operands[1], true) ||
                   !is_flag(graph, node->operands[2], false)) {
            break;
        }
        node = sf_maker(graph, node->operands[0]);
    }
    if (!node || !sf_is(node, SF_OP_COMPARE))
        return false;
    const char *direction = node->attrs[SF_COMPARE_DIRECTION]->text;
    int left = counts_along(graph, node->operands[0]),
        right = counts_along(graph, node->operands[1]);
    return (strcmp(direction, "GE") == 0 && left == q && right == k) ||
           (strcmp(direction, "LE") == 0 && left == k && right == q);
}

/* Forward */

/* Whether the value is the most of each row of x, repeated along rows. */
static bool is_row_top(const sf_graph *graph, sf_value value, sf_value x)
{
    double number;
    const sf_node *node = sf_maker(graph, value);
    while (node &&
           (sf_is(node, SF_OP_BROADCAST_IN_DIM) || sf_is(node, SF_OP_RESHAPE) ||
            sf_is(node, SF_OP_CONVERT) ||
            (sf_is(node, SF_OP_MAXIMUM) && algebra_number(graph, node->operands[1], &number))))
        node = sf_maker(graph, node->operands[0]);
    if (!node || !sf_is(node, SF_OP_REDUCE) || node->noperands != 2 || node->operands[0] != x)
        return false;
    const sf_attr *body = node->attrs[SF_REDUCE_BODY], *dims = node->attrs[SF_REDUCE_DIMENSIONS];
    return body && body->integer == SF_MONOID_MAX && dims && dims->count == 1 && dims->ints[0] == 3;
}

/* x is what the softmax is of: scores, scaled, and hidden where the mask says so. */
static bool read_scores(found *f, sf_value x)
{
    const sf_graph *graph = f->algebra.graph;
    const sf_node *node = behind_converts(graph, x);
    double hidden;
    f->algebra.mask = SF_NONE;
    if (node && sf_is(node, SF_OP_SELECT)) {
        if (!algebra_number(graph, node->operands[2], &hidden) || hidden > -1e4 ||
            !is_causal(graph, node->operands[0]))
            return false;
        f->causal = true;
        f->algebra.mask = node->operands[0];
        x = node->operands[1];
    }
    const sf_node *dot = behind_factors(graph, x, SF_OP_DOT_GENERAL, 6);
    product p;
    if (!read_product(graph, dot, &p))
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
                  *v = sf_type_of(c->graph, f->v.value),
                  *out = sf_type_of(c->graph, f->out->result);
    int64_t depth = q->dims[f->q.dims[3]];
    bool one_type = q->dtype == k->dtype && q->dtype == v->dtype && q->dtype == out->dtype;
    bool one_length = q->dims[f->q.dims[1]] == k->dims[f->k.dims[1]];
    return one_type && v->dims[f->v.dims[3]] == depth && (!f->causal || one_length) &&
           q->count > 0 && k->count > 0 && c->target->attends(q->dtype, depth, c->rounds);
}

/* Operand `side` of the product is weights, and the other values. */
static bool read_forward(finding *c, const product *p, int side, found *f)
{
    const sf_graph *graph = c->graph;
    const sf_node *e = behind_factors(graph, p->node->operands[side], SF_OP_EXPONENTIAL, 4);
    if (!is_square(p, side, 3) || !e)
        return false;
    const sf_node *less = behind_converts(graph, e->operands[0]);
    if (!less || !sf_is(less, SF_OP_SUBTRACT) ||
        !is_row_top(graph, less->operands[1], less->operands[0]))
        return false;
    *f = (found){.out = p->node,
                 .v = operand_of(p, 1 - side, true),
                 .algebra = {graph, SF_NONE, e->result, SF_NONE, SF_NONE}};
    return read_scores(f, less->operands[0]) && is_sum(f, p->node->operands[side], &weights) &&
           suits_target(c, f);
}

/* Backward */

/* The gradient of the weights: of what comes out, times values. */
static bool is_weight_gradient(const found *f, const product *p)
{
    operand v = operand_of(p, 1, false);
    return same_operand(&v, &f->v);
}

/* Which gradient the product makes, with f->algebra.gradient and f->dout known; -1: none. */
static int gradient_of(const found *f, const product *p)
{
    const sum_of_terms dscores = {
        .count = 2,
        .terms = {{f->scale, {[ATOM_E] = 1, [ATOM_Z] = -1, [ATOM_G] = 1}},
                  {-f->scale, {[ATOM_E] = 1, [ATOM_Z] = -2, [ATOM_T] = 1}}}};
    for (int side = 0; side < 2; side++) {
        operand places = operand_of(p, 1 - side, true);
        sf_value square = p->node->operands[side];
        if (is_square(p, side, 2) && same_operand(&places, &f->dout) && is_sum(f, square, &weights))
            return 2;
        if (is_square(p, side, 2) && same_operand(&places, &f->q) && is_sum(f, square, &dscores))
            return 1;
        if (is_square(p, side, 3) && same_operand(&places, &f->k) && is_sum(f, square, &dscores))
            return 0;
    }
    return -1;
}

static bool reads(const sf_node *node, sf_value value)
{
    return node->operands[0] == value || node->operands[1] == value;
}

static void read_backward(const finding *c, uint32_t from, found *f)
{
    const sf_block *top = c->graph->top;
    product p;
    uint32_t at = from;
    while (at < top->nnodes && !(read_product(c->graph, sf_top_node(c->graph, at), &p) &&
                                 reads(p.node, f->v.value) && is_weight_gradient(f, &p)))
        at++;
    if (at == top->nnodes || sf_type_of(c->graph, p.node->operands[0])->dtype !=
                                 sf_type_of(c->graph, f->out->result)->dtype)
        return;
    f->algebra.gradient = p.node->result;
    f->dout = operand_of(&p, 0, false);
    f->first = UINT32_MAX;
    for (uint32_t i = from; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(c->graph, i);
        if (node == f->out || !read_product(c->graph, node, &p) ||
            !(reads(node, f->dout.value) || reads(node, f->q.value) || reads(node, f->k.value)))
            continue;
        int which = gradient_of(f, &p);
        if (which < 0 || f->gradients[which])
            continue;
        f->gradients[which] = node;
        f->first = i < f->first ? i : f->first;
    }
    f->has_gradient = f->gradients[0] && f->gradients[1] && f->gradients[2];
}

static void find_all(finding *c)
{
    const sf_block *top = c->graph->top;
    for (uint32_t i = 0; i < top->nnodes; i++) {
        product p;
        found f;
        if (!read_product(c->graph, sf_top_node(c->graph, i), &p) ||
            !(read_forward(c, &p, 0, &f) || read_forward(c, &p, 1, &f)))
            continue;
        read_backward(c, i + 1, &f);
        SF_PUSH(&c->scratch, c->list, c->count, c->capacity, f);
    }
}

/* Rewriting */

typedef struct rewriting {
    finding *c;
    sf_graph *to;
    sf_value *map;    /* by value of the graph */
    bool *is_used;    /* likewise */
    found **forward;  /* by node: which it ends, */
    found **backward; /* or one of whose gradients it makes */
} rewriting;

static void use(rewriting *r, sf_value value)
{
    r->is_used[value] = true;
}

static void see_use(void *context, sf_value value)
{
    use(context, value);
}

static void use_found(rewriting *r, found *f, bool backward)
{
    use(r, f->q.value);
    use(r, f->k.value);
    use(r, f->v.value);
    f->is_used = true;
    if (!backward)
        return;
    use(r, f->dout.value);
    f->is_gradient_used = true;
}

static bool is_needed(const rewriting *r, const sf_node *node)
{
    bool needed = sf_node_has_effect(r->c->graph, node);
    for (uint32_t i = 0; i < node->nresults; i++)
        needed = needed || r->is_used[node->result + i];
    return needed;
}

/* From the results back. */
static void find_used(rewriting *r, bool *keeps)
{
    const sf_graph *graph = r->c->graph;
    const sf_block *top = graph->top;
    for (uint32_t i = 0; i < top->nresults; i++)
        use(r, top->results[i]);
    for (uint32_t i = top->nnodes; i-- > 0;) {
        const sf_node *node = sf_top_node(graph, i);
        if (!is_needed(r, node))
            continue;
        found *f = r->forward[node->id] ? r->forward[node->id] : r->backward[node->id];
        if (f) {
            use_found(r, f, !r->forward[node->id]);
            continue;
        }
        keeps[i] = true;
        for (uint32_t o = 0; o < node->noperands; o++)
            use(r, node->operands[o]);
        for (uint32_t b = 0; b < node->nregions; b++)
            sf_block_uses(graph, node->regions[b], see_use, r);
    }
}

static sf_value add_transpose(rewriting *r, sf_value value, const int *dims, const sf_node *like)
{
    const sf_type *from = sf_type_of(r->to, value);
    int64_t permutation[4], sizes[4];
    bool is_plain = true;
    for (int i = 0; i < 4; i++) {
        permutation[i] = dims[i];
        sizes[i] = from->dims[dims[i]];
        is_plain = is_plain && dims[i] == i;
    }
    if (is_plain)
        return value;
    const sf_type *type = sf_type_get(r->to->pool, from->dtype, 4, sizes);
    const sf_attr *attrs[] = {sf_attr_ints(r->to->pool, 4, permutation)};
    sf_node_spec spec = {.def = sf_opdef_get(SF_OP_TRANSPOSE),
                         .noperands = 1,
                         .nresults = 1,
                         .operands = &value,
                         .types = &type,
                         .attrs = attrs,
                         .scope = like->scope,
                         .phase = like->phase,
                         .loc = like->loc};
    return sf_graph_add(r->to, r->to->top, &spec)->result;
}

static sf_value as_places(rewriting *r, const operand *o, const sf_node *like)
{
    return add_transpose(r, r->map[o->value], o->dims, like);
}

/* [batch, place, head, depth] as a product has it whose operand `square` is [b, h, q, k]. */
static sf_value as_product(rewriting *r, sf_value value, bool square_is_left, const sf_node *like)
{
    static const int square_first[] = {0, 2, 1, 3}, depth_first[] = {0, 2, 3, 1};
    return add_transpose(r, value, square_is_left ? square_first : depth_first, like);
}

static sf_node_spec spec_of(rewriting *r, const found *f, const sf_node *like,
                            const sf_attr **attrs)
{
    float scale = (float)f->scale;
    uint32_t bits;
    memcpy(&bits, &scale, sizeof bits);
    attrs[SF_ATTENTION_CAUSAL] = f->causal ? sf_attr_int(r->to->pool, 1) : NULL;
    attrs[SF_ATTENTION_SCALE] = sf_attr_int(r->to->pool, bits);
    return (sf_node_spec){
        .attrs = attrs, .scope = like->scope, .phase = like->phase, .loc = like->loc};
}

static void add_forward(rewriting *r, found *f)
{
    sf_value in[3] = {as_places(r, &f->q, f->out), as_places(r, &f->k, f->out),
                      as_places(r, &f->v, f->out)};
    const sf_type *q = sf_type_of(r->to, in[0]);
    const int64_t rows[3] = {q->dims[0], q->dims[2], q->dims[1]};
    const sf_type *types[2] = {q, sf_type_get(r->to->pool, SF_F32, 3, rows)};
    const sf_attr *attrs[SF_ATTENTION_SLOTS];
    sf_node_spec spec = spec_of(r, f, f->out, attrs);
    spec.def = &sf_op_attention;
    spec.noperands = 3;
    spec.operands = in;
    spec.nresults = 2;
    spec.types = types;
    const sf_node *node = sf_graph_add(r->to, r->to->top, &spec);
    f->made[0] = node->result;
    f->made[1] = node->result + 1;
    r->map[f->out->result] = as_product(r, f->made[0], f->out->operands[1] == f->v.value, f->out);
}

static void add_backward(rewriting *r, found *f, const sf_node *like)
{
    sf_value in[6] = {as_places(r, &f->q, like),
                      as_places(r, &f->k, like),
                      as_places(r, &f->v, like),
                      f->made[0],
                      f->made[1],
                      as_places(r, &f->dout, like)};
    const sf_type *types[3];
    for (int i = 0; i < 3; i++)
        types[i] = sf_type_of(r->to, in[i]);
    const sf_attr *attrs[SF_ATTENTION_SLOTS];
    sf_node_spec spec = spec_of(r, f, like, attrs);
    spec.def = &sf_op_attention_gradient;
    spec.noperands = 6;
    spec.operands = in;
    spec.nresults = 3;
    spec.types = types;
    const sf_node *node = sf_graph_add(r->to, r->to->top, &spec);
    const sf_value places[3] = {f->k.value, f->q.value, f->dout.value};
    for (uint32_t i = 0; i < 3; i++)
        r->map[f->gradients[i]->result] =
            as_product(r, node->result + i, f->gradients[i]->operands[1] == places[i], like);
}

static void copy_node(rewriting *r, const sf_node *node)
{
    const sf_graph *from = r->c->graph;
    sf_mark mark = sf_arena_mark(&r->c->scratch);
    sf_block **regions = SF_ARRAY(&r->c->scratch, node->nregions + 1, sf_block *);
    sf_value *operands = SF_ARRAY(&r->c->scratch, node->noperands + 1, sf_value);
    const sf_type **types = SF_ARRAY(&r->c->scratch, node->nresults + 1, const sf_type *);
    for (uint32_t i = 0; i < node->nregions; i++)
        regions[i] = sf_block_clone(from, node->regions[i], r->to, r->map);
    for (uint32_t i = 0; i < node->noperands; i++)
        operands[i] = r->map[node->operands[i]];
    for (uint32_t i = 0; i < node->nresults; i++)
        types[i] = sf_type_of(from, node->result + i);
    sf_node_spec spec = sf_spec_like(node);
    spec.operands = operands;
    spec.types = types;
    spec.attrs = node->attrs;
    spec.regions = regions;
    spec.again = node->again;
    const sf_node *added = sf_graph_add(r->to, r->to->top, &spec);
    for (uint32_t i = 0; i < node->nresults; i++)
        r->map[node->result + i] = added->result + i;
    sf_arena_reset(&r->c->scratch, mark);
}

static void copy_nodes(rewriting *r, const bool *keeps)
{
    const sf_block *top = r->c->graph->top;
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(r->c->graph, i);
        found *forward = r->forward[node->id], *backward = r->backward[node->id];
        if (keeps[i])
            copy_node(r, node);
        else if (forward && forward->is_used)
            add_forward(r, forward);
        else if (backward && backward->is_gradient_used && i == backward->first)
            add_backward(r, backward, node);
    }
}

static void rewrite(rewriting *r)
{
    const sf_graph *graph = r->c->graph;
    const sf_block *top = graph->top;
    bool *keeps = SF_ARRAY(&r->c->scratch, top->nnodes + 1, bool);
    for (size_t i = 0; i < r->c->count; i++) {
        found *f = &r->c->list[i];
        r->forward[f->out->id] = f;
        for (int g = 0; g < 3 && f->has_gradient; g++)
            r->backward[f->gradients[g]->id] = f;
    }
    find_used(r, keeps);
    for (uint32_t i = 0; i < top->narguments; i++)
        r->map[top->arguments[i]] =
            sf_block_argument(r->to, r->to->top, sf_type_of(graph, top->arguments[i]));
    copy_nodes(r, keeps);
    sf_value *results = SF_ARRAY(&r->c->scratch, top->nresults + 1, sf_value);
    for (uint32_t i = 0; i < top->nresults; i++)
        results[i] = r->map[top->results[i]];
    sf_block_return(r->to, r->to->top, top->nresults, results);
    sf_graph_clone_head(graph, r->to);
    for (uint32_t i = 0; graph->arguments && i < top->narguments; i++) {
        sf_value gradient = graph->arguments[i].gradient;
        r->to->arguments[i].gradient =
            gradient != SF_NONE && r->is_used[gradient] ? r->map[gradient] : SF_NONE;
    }
}

sf_graph *sf_find_attention(const sf_graph *graph, const sf_target *target, bool rounds)
{
    finding c = {.graph = graph, .target = target, .rounds = rounds};
    sf_graph *to = NULL;
    if (target->attends)
        find_all(&c);
    if (c.count > 0) {
        sf_pool *pool = sf_pool_derive(graph->pool);
        to = sf_graph_new(pool);
        sf_pool_release(pool);
        rewriting r = {.c = &c,
                       .to = to,
                       .map = SF_ARRAY(&c.scratch, graph->nvalues, sf_value),
                       .is_used = SF_ARRAY(&c.scratch, graph->nvalues, bool),
                       .forward = SF_ARRAY(&c.scratch, graph->nnodes, found *),
                       .backward = SF_ARRAY(&c.scratch, graph->nnodes, found *)};
        rewrite(&r);
    }
    sf_arena_free(&c.scratch);
    return to;
}
