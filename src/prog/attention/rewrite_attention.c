/* Copies the graph node by node, with one op in place of the product that ends the forward pass,
 * and one in place of the first product of the backward pass. Unused nodes are dropped. */
#include <string.h>

#include "ir/clone.h"
#include "op/attention.h"
#include "op/slots.h"
#include "prog/attention/attention_match.h"

typedef struct rewriting {
    const sf_graph *graph;
    found *list;
    size_t count;
    sf_graph *to;
    sf_block *at; /* where nodes are added */
    sf_regraph *out;
    sf_arena scratch;
    sf_value *map;    /* by value of the graph: its replacement, or SF_NONE */
    bool *is_used;    /* likewise */
    bool *keeps;      /* by node: it stays */
    found **forward;  /* by node: which it ends, */
    found **backward; /* or one of whose gradients it makes */
} rewriting;

static void use(rewriting *r, sf_value value)
{
    r->is_used[value] = true;
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

/* Other ranks wait at a collective, even if its result is not needed here: pipeline ranks have one
 * in common for a result that only some of them read. */
static bool meets_others(const sf_graph *graph, const sf_node *node)
{
    for (uint32_t b = 0; b < node->nregions; b++)
        for (uint32_t i = 0; i < node->regions[b]->nnodes; i++)
            if (meets_others(graph, graph->nodes[node->regions[b]->nodes[i]]))
                return true;
    return sf_is_collective(node);
}

static bool is_needed(const rewriting *r, const sf_node *node)
{
    bool needed = sf_node_has_effect(r->graph, node) || meets_others(r->graph, node);
    for (uint32_t i = 0; i < node->nresults; i++)
        needed = needed || r->is_used[node->result + i];
    return needed;
}

/* Walks back from the results of a block; all values that loops and branches carry count as
 * needed. */
static void find_used(rewriting *r, const sf_block *block)
{
    for (uint32_t i = 0; i < block->nresults; i++)
        use(r, block->results[i]);
    for (uint32_t i = block->nnodes; i-- > 0;) {
        const sf_node *node = r->graph->nodes[block->nodes[i]];
        if (!is_needed(r, node))
            continue;
        found *f = r->forward[node->id] ? r->forward[node->id] : r->backward[node->id];
        if (f) {
            use_found(r, f, !r->forward[node->id]);
            continue;
        }
        r->keeps[node->id] = true;
        for (uint32_t o = 0; o < node->noperands; o++)
            use(r, node->operands[o]);
        for (uint32_t b = 0; b < node->nregions; b++)
            find_used(r, node->regions[b]);
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
    return sf_graph_add(r->to, r->at, &spec)->result;
}

static sf_value as_places(rewriting *r, const operand *o, const sf_node *like)
{
    return add_transpose(r, r->map[o->value], o->dims, like);
}

/* [batch, place, head, depth] as `product` has it, whose operand `square` is [b, h, q, k]: in that order, and of that type. */
static sf_value as_product(rewriting *r, sf_value value, bool square_is_left,
                           const sf_node *product, const sf_node *like)
{
    static const int square_first[] = {0, 2, 1, 3}, depth_first[] = {0, 2, 3, 1};
    sf_value transposed =
        add_transpose(r, value, square_is_left ? square_first : depth_first, like);
    sf_dtype dtype = sf_type_of(r->graph, product->result)->dtype;
    const sf_type *is = sf_type_of(r->to, transposed);
    if (is->dtype == dtype)
        return transposed;
    const sf_type *type = sf_type_get(r->to->pool, dtype, is->rank, is->dims);
    sf_node_spec spec = {.def = sf_opdef_get(SF_OP_CONVERT),
                         .noperands = 1,
                         .operands = &transposed,
                         .nresults = 1,
                         .types = &type,
                         .scope = like->scope,
                         .phase = like->phase,
                         .loc = like->loc};
    return sf_graph_add(r->to, r->at, &spec)->result;
}

static sf_node_spec spec_of(rewriting *r, const found *f, const sf_node *like,
                            const sf_attr **attrs)
{
    float scale = (float)f->scale;
    uint32_t bits;
    memcpy(&bits, &scale, sizeof bits);
    attrs[SF_ATTENTION_CAUSAL] = f->causal ? sf_attr_int(r->to->pool, 1) : NULL;
    attrs[SF_ATTENTION_OFFSET] = f->offset > 0 ? sf_attr_int(r->to->pool, f->offset) : NULL;
    attrs[SF_ATTENTION_SCALE] = sf_attr_int(r->to->pool, bits);
    return (sf_node_spec){
        .attrs = attrs, .scope = like->scope, .phase = like->phase, .loc = like->loc};
}

static uint32_t add_forward(rewriting *r, found *f)
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
    const sf_node *node = sf_graph_add(r->to, r->at, &spec);
    f->made[0] = node->result;
    f->made[1] = node->result + 1;
    r->map[f->out->result] =
        as_product(r, f->made[0], f->out->operands[1] == f->v.value, f->out, f->out);
    return node->id;
}

static uint32_t add_backward(rewriting *r, found *f, const sf_node *like)
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
    const sf_node *node = sf_graph_add(r->to, r->at, &spec);
    for (uint32_t i = 0; i < 3; i++)
        r->map[f->gradients[i]->result] =
            as_product(r, node->result + i, f->square_is_left[i], f->gradients[i], like);
    return node->id;
}

static bool add_form(void *context, const sf_node *node, sf_block *to)
{
    rewriting *r = context;
    found *forward = r->forward[node->id], *backward = r->backward[node->id];
    r->at = to;
    if (r->keeps[node->id])
        return false;
    if (forward && forward->is_used) {
        r->out->nodes[node->id] = add_forward(r, forward);
    } else if (backward && backward->is_gradient_used && node == backward->first) {
        uint32_t op = add_backward(r, backward, node);
        for (int g = 0; g < 3; g++)
            r->out->nodes[backward->gradients[g]->id] = op;
    }
    return true;
}

/* Nodes that are dropped and lead to one that an op replaces count as computed by that op. */
static void give_to_op(const rewriting *r, const sf_node *node, uint32_t op)
{
    for (uint32_t o = 0; o < node->noperands; o++) {
        const sf_node *maker = sf_maker(r->graph, node->operands[o]);
        if (!maker || r->keeps[maker->id] || r->out->nodes[maker->id] != SF_NONE)
            continue;
        r->out->nodes[maker->id] = op;
        give_to_op(r, maker, op);
    }
}

static void find_computed(const rewriting *r)
{
    for (size_t i = 0; i < r->count; i++)
        if (r->list[i].is_used)
            give_to_op(r, r->list[i].out, r->out->nodes[r->list[i].out->id]);
    for (size_t i = 0; i < r->count; i++)
        for (int g = 0; r->list[i].is_gradient_used && g < 3; g++)
            give_to_op(r, r->list[i].gradients[g], r->out->nodes[r->list[i].gradients[g]->id]);
}

static void mark_found(rewriting *r)
{
    memset(r->is_used, 0, r->graph->nvalues * sizeof *r->is_used);
    memset(r->keeps, 0, r->graph->nnodes * sizeof *r->keeps);
    memset(r->forward, 0, r->graph->nnodes * sizeof(found *));
    memset(r->backward, 0, r->graph->nnodes * sizeof(found *));
    for (size_t i = 0; i < r->count; i++) {
        found *f = &r->list[i];
        f->is_used = f->is_gradient_used = false;
        r->forward[f->out->id] = f;
        for (int g = 0; g < 3 && f->has_gradient; g++)
            r->backward[f->gradients[g]->id] = f;
    }
    find_used(r, r->graph->top);
}

/* Scores that are needed besides would be computed twice. */
static bool drop_one(rewriting *r)
{
    for (size_t i = 0; i < r->count; i++)
        if (r->keeps[r->list[i].scores->id]) {
            r->list[i] = r->list[--r->count];
            return true;
        }
    return false;
}

void rewrite_attention(const sf_graph *graph, found *list, size_t count, sf_regraph *out)
{
    rewriting r = {.graph = graph, .list = list, .count = count, .out = out};
    r.is_used = SF_ARRAY(&r.scratch, graph->nvalues, bool);
    r.keeps = SF_ARRAY(&r.scratch, graph->nnodes, bool);
    r.forward = SF_ARRAY(&r.scratch, graph->nnodes, found *);
    r.backward = SF_ARRAY(&r.scratch, graph->nnodes, found *);
    do
        mark_found(&r);
    while (drop_one(&r));
    if (r.count > 0) {
        enum { MOST_MADE = 17 }; /* two ops, transposes before and after them, and conversions */
        sf_regraph_begin(graph, MOST_MADE * r.count, out);
        r.to = out->graph;
        r.map = out->values;
        sf_regraph_copy(graph, add_form, &r, out);
        sf_regraph_end(graph, out);
        find_computed(&r);
    }
    sf_arena_free(&r.scratch);
}
