/* Reductions start early, and in buckets.
 *
 * A reduction is emitted where its result is first wanted. For a gradient that is the update, in the order
 * of the parameters, long after it was made. Here it moves up, right behind what makes its operand, so
 * that it can go on beside the rest of the backward pass. Then all-reduces that come close to each other
 * become one: a message for each bias would cost little but its latency.
 *
 * What is looked at is which node reads which, never a constant, so all ranks come to the same order.
 */
#include <string.h>

#include "op/slots.h"
#include "plan/moves.h"
#include "prog/local_build.h"

/* All-reduces of one kind that nothing reads before the last of them. */
typedef struct bucket {
    const sf_node *first, *last;
    uint32_t count;
    int64_t bytes;
    bool closed;
} bucket;

typedef struct early {
    local_builder *b;
    sf_graph *graph;
    sf_block *top;
    sf_arena arena;
    uint32_t *behind;   /* by node: the place in the block behind which it can stand */
    uint32_t *member;   /* by value: its bucket, or SF_NONE */
    sf_value *replaced; /* by value: what stands for it now */
    bucket *buckets;
    size_t nbuckets, capacity;
    uint32_t *open; /* buckets that may not be closed yet */
    size_t nopen, open_capacity;
    uint32_t *order; /* the block's nodes, in the new order */
    uint32_t count;
} early;

static bool is_reduction(const sf_node *node)
{
    return sf_is(node, SF_OP_ALL_REDUCE) || sf_is(node, SF_OP_REDUCE_SCATTER);
}

/* Calls `each` for what the node reads, inside of its regions too. */
static void for_operands(const early *e, const sf_node *node, void *context,
                         void (*each)(void *context, sf_value value))
{
    for (uint32_t i = 0; i < node->noperands; i++)
        each(context, node->operands[i]);
    for (uint32_t r = 0; r < node->nregions; r++) {
        const sf_block *block = node->regions[r];
        for (uint32_t i = 0; i < block->nnodes; i++)
            for_operands(e, e->graph->nodes[block->nodes[i]], context, each);
        for (uint32_t i = 0; i < block->nresults; i++)
            each(context, block->results[i]);
    }
}

static void set_flag(void *context, sf_value value)
{
    ((bool *)context)[value] = true;
}

/* Whether the node only brings the operand of a reduction into shape: nothing that stays reads it. */
static bool serves_reduction(const early *e, const sf_node *node, const bool *stays)
{
    return node->nresults == 1 && node->noperands == 1 && node->nregions == 0 &&
           !sf_is_collective(node) && !stays[node->result] &&
           e->b->local->pieces[node->result].whole == SF_NONE;
}

/* Backwards, so that who reads a value is known before its maker is looked at. */
static bool *find_moving(early *e)
{
    bool *stays = SF_ARRAY(&e->arena, e->graph->nvalues, bool); /* by value: read by what stays */
    bool *moving = SF_ARRAY(&e->arena, e->graph->nnodes, bool);
    for (uint32_t i = 0; i < e->top->nresults; i++)
        stays[e->top->results[i]] = true;
    for (uint32_t i = e->top->nnodes; i-- > 0;) {
        const sf_node *node = e->graph->nodes[e->top->nodes[i]];
        moving[node->id] = is_reduction(node) || serves_reduction(e, node, stays);
        if (!moving[node->id])
            for_operands(e, node, stays, set_flag);
    }
    return moving;
}

/* A node that moves belongs to the phase of what makes its operand. */
static void move_up(early *e)
{
    const bool *moving = find_moving(e);
    uint32_t count = e->top->nnodes;
    uint32_t *start = SF_ARRAY(&e->arena, count + 1, uint32_t);
    for (uint32_t i = 0; i < count; i++) {
        sf_node *node = e->graph->nodes[e->top->nodes[i]];
        const sf_node *maker = moving[node->id] ? sf_maker(e->graph, node->operands[0]) : NULL;
        e->behind[node->id] = maker ? e->behind[maker->id] : i;
        node->phase = maker ? maker->phase : node->phase;
        start[e->behind[node->id] + 1]++;
    }
    for (uint32_t i = 0; i < count; i++)
        start[i + 1] += start[i];
    for (uint32_t i = 0; i < count; i++)
        e->order[start[e->behind[e->top->nodes[i]]]++] = e->top->nodes[i];
    e->count = count;
}

/* Buckets */

static void close_bucket(void *context, sf_value value)
{
    early *e = context;
    if (e->member[value] != SF_NONE)
        e->buckets[e->member[value]].closed = true;
}

static bool is_alike(const early *e, const sf_node *a, const sf_node *b)
{
    return a->attrs[SF_COLLECTIVE_AXES] == b->attrs[SF_COLLECTIVE_AXES] &&
           a->attrs[SF_COLLECTIVE_BODY] == b->attrs[SF_COLLECTIVE_BODY] && a->phase == b->phase &&
           sf_type_of(e->graph, a->result)->dtype == sf_type_of(e->graph, b->result)->dtype;
}

/* An open bucket of the node's kind with room for it, or SF_NONE. */
static uint32_t find_bucket(early *e, const sf_node *node, int64_t bytes)
{
    size_t kept = 0;
    uint32_t found = SF_NONE;
    for (size_t i = 0; i < e->nopen; i++) {
        const bucket *k = &e->buckets[e->open[i]];
        if (k->closed)
            continue;
        if (k->bytes + bytes <= SF_BUCKET_BYTES && is_alike(e, k->first, node))
            found = e->open[i];
        e->open[kept++] = e->open[i];
    }
    e->nopen = kept;
    return found;
}

static void join_bucket(early *e, const sf_node *node)
{
    int64_t bytes = sf_type_bytes(sf_type_of(e->graph, node->result));
    uint32_t at = find_bucket(e, node, bytes);
    if (at == SF_NONE) {
        bucket empty = {.first = node};
        at = (uint32_t)e->nbuckets;
        SF_PUSH(&e->arena, e->buckets, e->nbuckets, e->capacity, empty);
        SF_PUSH(&e->arena, e->open, e->nopen, e->open_capacity, at);
    }
    e->buckets[at].last = node;
    e->buckets[at].count++;
    e->buckets[at].bytes += bytes;
    e->member[node->result] = at;
}

static void fill_buckets(early *e)
{
    for (uint32_t i = 0; i < e->count; i++) {
        const sf_node *node = e->graph->nodes[e->order[i]];
        for_operands(e, node, e, close_bucket);
        if (sf_is(node, SF_OP_ALL_REDUCE))
            join_bucket(e, node);
    }
}

static const sf_attr *what_of_bucket(const early *e, const bucket *k)
{
    sf_buf text = {0};
    sf_buf_printf(&text, "%s and %u more", k->first->attrs[SF_COLLECTIVE_WHAT]->text, k->count - 1);
    const sf_attr *what = sf_attr_text(e->graph->pool, sf_str_of(text.text));
    sf_buf_free(&text);
    return what;
}

/* One node for all members, which stand in no block from now on. */
static uint32_t emit_bucket(early *e, uint32_t index, const sf_node *const *members)
{
    const bucket *k = &e->buckets[index];
    sf_value *operands = SF_ARRAY(&e->arena, k->count, sf_value);
    const sf_type **types = SF_ARRAY(&e->arena, k->count, const sf_type *);
    const sf_attr *attrs[SF_COLLECTIVE_BODY + 1];
    memcpy(attrs, k->first->attrs, sizeof attrs);
    attrs[SF_COLLECTIVE_WHAT] = what_of_bucket(e, k);
    for (uint32_t i = 0; i < k->count; i++) {
        operands[i] = members[i]->operands[0];
        types[i] = sf_type_of(e->graph, members[i]->result);
    }
    sf_node_spec spec = {
        .def = k->first->def,
        .noperands = k->count,
        .operands = operands,
        .nresults = k->count,
        .types = types,
        .attrs = attrs,
        .scope = k->first->scope,
        .phase = k->first->phase,
        .loc = k->first->loc,
    };
    const sf_node *node = sf_graph_add(e->graph, e->top, &spec);
    for (uint32_t i = 0; i < k->count; i++) {
        sf_piece *piece = &e->b->local->pieces[members[i]->result];
        sf_piece claim = *piece;
        piece->whole = SF_NONE;
        e->replaced[members[i]->result] = node->result + i;
        local_record(e->b, node->result + i, claim.whole, &claim.layout);
    }
    return node->id;
}

static void emit_buckets(early *e)
{
    const sf_node ***members = SF_ARRAY(&e->arena, e->nbuckets, const sf_node **);
    uint32_t *filled = SF_ARRAY(&e->arena, e->nbuckets, uint32_t);
    uint32_t kept = 0;
    for (size_t i = 0; i < e->nbuckets; i++)
        members[i] = SF_ARRAY(&e->arena, e->buckets[i].count, const sf_node *);
    for (uint32_t i = 0; i < e->count; i++) {
        const sf_node *node = e->graph->nodes[e->order[i]];
        uint32_t at = sf_is(node, SF_OP_ALL_REDUCE) ? e->member[node->result] : SF_NONE;
        if (at == SF_NONE || e->buckets[at].count == 1) {
            e->order[kept++] = node->id;
            continue;
        }
        members[at][filled[at]++] = node;
        if (node == e->buckets[at].last)
            e->order[kept++] = emit_bucket(e, at, members[at]);
    }
    e->count = kept;
}

static void replace(const early *e, size_t nvalues, sf_value *values, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (values[i] < nvalues)
            values[i] = e->replaced[values[i]];
}

static void replace_all(early *e, size_t nvalues)
{
    for (size_t i = 0; i < e->graph->nnodes; i++) {
        const sf_node *node = e->graph->nodes[i];
        replace(e, nvalues, node->operands, node->noperands);
        for (uint32_t r = 0; r < node->nregions; r++)
            replace(e, nvalues, node->regions[r]->results, node->regions[r]->nresults);
    }
    replace(e, nvalues, e->top->results, e->top->nresults);
}

/* Numbers follow the order. */
static void set_order(early *e)
{
    int64_t number = 0;
    for (uint32_t i = 0; i < e->count; i++) {
        sf_node *node = e->graph->nodes[e->order[i]];
        e->top->nodes[i] = e->order[i];
        if (!sf_is_collective(node))
            continue;
        const sf_attr **attrs =
            sf_arena_copy(&e->graph->arena, node->attrs, (size_t)node->def->nattrs * sizeof *attrs);
        attrs[SF_COLLECTIVE_NUMBER] = sf_attr_int(e->graph->pool, number++);
        node->attrs = attrs;
    }
    e->top->nnodes = e->count;
}

void local_early(local_builder *b)
{
    early e = {.b = b, .graph = b->graph, .top = b->graph->top};
    size_t nvalues = b->graph->nvalues;
    e.behind = SF_ARRAY(&e.arena, b->graph->nnodes, uint32_t);
    e.order = SF_ARRAY(&e.arena, e.top->nnodes, uint32_t);
    e.member = SF_ARRAY(&e.arena, nvalues, uint32_t);
    e.replaced = SF_ARRAY(&e.arena, nvalues, sf_value);
    for (size_t i = 0; i < nvalues; i++) {
        e.member[i] = SF_NONE;
        e.replaced[i] = (sf_value)i;
    }
    move_up(&e);
    fill_buckets(&e);
    emit_buckets(&e);
    replace_all(&e, nvalues);
    set_order(&e);
    sf_arena_free(&e.arena);
}
