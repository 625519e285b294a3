/* Collectives start early, and in buckets.
 *
 * A reduction is emitted where its result is first wanted. For a gradient that is the update, in the order
 * of the parameters, long after it was made. Here it moves up, right behind what makes its operand, so
 * that it can go on beside the rest of the backward pass. So does what brings a result of the step together,
 * beside the other updates. Then collectives of a kind that come close to each other become one: a message
 * for each bias would cost little but its latency.
 *
 * What is looked at is which node reads which, never a constant, so all ranks come to the same order.
 */
#include <string.h>

#include "local/build.h"
#include "op/slots.h"
#include "plan/moves.h"

/* Collectives of one kind that nothing reads before the last of them. */
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
    uint32_t *behind;   /* by node: the place in the block behind which it stands, in the end */
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

static bool starts_early(const early *e, const sf_node *node)
{
    return is_reduction(node) ||
           (sf_is(node, SF_OP_ALL_GATHER) && node->id >= e->b->first_for_results);
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

static bool is_inside_move(const early *e, const sf_node *node)
{
    return e->b->local->pieces[node->result].whole == SF_NONE;
}

/* Whether the node only brings the operand of a collective into shape: nothing that stays reads it. */
static bool serves_collective(const early *e, const sf_node *node, const bool *stays)
{
    return node->nresults == 1 && node->noperands == 1 && node->nregions == 0 &&
           !sf_is_collective(node) && !stays[node->result] && is_inside_move(e, node);
}

/* Whether the node, the last or one before in its move, brings what was gathered into shape. */
static bool follows_gather(const early *e, const sf_node *node)
{
    bool shapes = sf_is(node, SF_OP_RESHAPE) || sf_is(node, SF_OP_TRANSPOSE);
    const sf_node *maker = shapes ? sf_maker(e->graph, node->operands[0]) : NULL;
    return maker && is_inside_move(e, maker) &&
           (sf_is(maker, SF_OP_ALL_GATHER) || follows_gather(e, maker));
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
        moving[node->id] = starts_early(e, node) || serves_collective(e, node, stays);
        if (!moving[node->id])
            for_operands(e, node, stays, set_flag);
    }
    return moving;
}

/* Readers of values: where in the block the first of them stands. */
typedef struct readers {
    uint32_t *first; /* by value */
    uint32_t place;  /* of the one that is looked at */
} readers;

static void note_reader(void *context, sf_value value)
{
    readers *r = context;
    if (r->place < r->first[value])
        r->first[value] = r->place;
}

/* Nodes that follow a gather stand before who reads them: until then the gather is not waited for. Those that
 * move up read at once. */
static uint32_t *find_readers(early *e, const bool *moving)
{
    readers r = {.first = SF_ARRAY(&e->arena, e->graph->nvalues, uint32_t)};
    for (size_t i = 0; i < e->graph->nvalues; i++)
        r.first[i] = e->top->nnodes;
    for (uint32_t i = e->top->nnodes; i-- > 0;) {
        const sf_node *node = e->graph->nodes[e->top->nodes[i]];
        r.place = moving[node->id] ? 0 : follows_gather(e, node) ? r.first[node->result] : i;
        for_operands(e, node, &r, note_reader);
    }
    return r.first;
}

/* A node that moves up belongs to the phase of what makes its operand. */
static void move_nodes(early *e)
{
    const bool *moving = find_moving(e);
    const uint32_t *first = find_readers(e, moving);
    uint32_t count = e->top->nnodes;
    uint32_t *start = SF_ARRAY(&e->arena, count + 1, uint32_t);
    for (uint32_t i = 0; i < count; i++) {
        sf_node *node = e->graph->nodes[e->top->nodes[i]];
        const sf_node *maker = moving[node->id] ? sf_maker(e->graph, node->operands[0]) : NULL;
        uint32_t before = follows_gather(e, node) ? first[node->result] : 0;
        e->behind[node->id] = maker ? e->behind[maker->id] : before > i ? before - 1 : i;
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

static bool goes_together(const sf_node *node)
{
    return is_reduction(node) || sf_is(node, SF_OP_ALL_GATHER);
}

static bool is_alike(const early *e, const sf_node *a, const sf_node *b)
{
    return a->def == b->def && a->attrs[SF_COLLECTIVE_AXES] == b->attrs[SF_COLLECTIVE_AXES] &&
           (!is_reduction(a) || a->attrs[SF_COLLECTIVE_BODY] == b->attrs[SF_COLLECTIVE_BODY]) &&
           a->phase == b->phase &&
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
    int64_t in = sf_type_bytes(sf_type_of(e->graph, node->operands[0]));
    int64_t out = sf_type_bytes(sf_type_of(e->graph, node->result)), bytes = in > out ? in : out;
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
        if (goes_together(node))
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
    memcpy(attrs, k->first->attrs, (size_t)k->first->def->nattrs * sizeof *attrs);
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
        uint32_t at = goes_together(node) ? e->member[node->result] : SF_NONE;
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
    move_nodes(&e);
    fill_buckets(&e);
    emit_buckets(&e);
    replace_all(&e, nvalues);
    set_order(&e);
    sf_arena_free(&e.arena);
}
