/* Versions of values: made by nodes, or by reshards, of which some go together. */
#include "ir/name.h"
#include "local/shard/shard_builder.h"

void local_record(local_builder *b, sf_value value, sf_value whole, const sf_layout *layout)
{
    static const sf_local_shard nothing = {.whole = SF_NONE};
    sf_local *local = b->local;
    while (b->npieces <= value)
        SF_PUSH(&local->arena, local->pieces, b->npieces, b->piece_capacity, nothing);
    local->pieces[value] = (sf_local_shard){.whole = whole, .layout = *layout};
}

void local_set(local_builder *b, uint32_t version, sf_value value)
{
    const sf_value_version *v = &b->reshards->versions[version];
    b->versions[version].value = value;
    local_record(b, value, v->value, v->layout);
    b->local->pieces[value].moved = v->reshard != SF_NONE;
}

static local_resharding moving_of(const local_builder *b, const sf_resharding *reshard)
{
    return (local_resharding){.whole = sf_type_of(b->whole, reshard->value),
                              .before = b->reshards->versions[reshard->from].layout,
                              .after = b->reshards->versions[reshard->to].layout,
                              .kind = reshard->kind,
                              .axes = reshard->axes};
}

/* New nodes belong to the reader that needs the reshard, in the phase of the reshard; messages name
 * the maker of the tensor. */
static void place_reshard(local_builder *b, const sf_resharding *reshard)
{
    const sf_node *maker = sf_maker(b->whole, reshard->value);
    const sf_node *wants = reshard->wanted == SF_NONE ? maker : b->whole->nodes[reshard->wanted];
    b->scope = wants ? wants->scope : NULL;
    b->phase = reshard->phase > b->least ? reshard->phase : b->least;
    b->loc = maker ? maker->loc : wants ? wants->loc : SF_NOWHERE;
}

/* Marks the values inside a reshard: all from `first` on. */
static void note_resharded(local_builder *b, sf_value first)
{
    static const sf_layout whole;
    for (sf_value v = first; v < b->graph->nvalues; v++) {
        local_record(b, v, SF_NONE, &whole);
        b->local->pieces[v].moved = true;
    }
}

sf_value local_value(local_builder *b, uint32_t version)
{
    uint32_t at = b->reshards->versions[version].same;
    local_version *v = &b->versions[at];
    if (v->value == SF_NONE) {
        const sf_resharding *reshard = &b->reshards->reshards[b->reshards->versions[at].reshard];
        local_resharding m = moving_of(b, reshard);
        sf_value first = (sf_value)b->graph->nvalues;
        place_reshard(b, reshard);
        SF_ASSERT(v->raw != SF_NONE);
        sf_value after = local_reshard_after(b, v->raw, &m);
        note_resharded(b, first);
        local_set(b, at, after);
    }
    return b->versions[at].value;
}

static void name_tensor(const local_builder *b, const sf_resharding *reshard, uint32_t others,
                        sf_buf *out)
{
    sf_buf name = {0};
    sf_buf_puts(out, sf_value_name(b->whole, reshard->value, &name));
    if (others > 0)
        sf_buf_printf(out, " and %u more", others);
    sf_buf_free(&name);
}

static void note_sent(local_builder *b, uint32_t count, const uint32_t *reshards)
{
    sf_local *local = b->local;
    sf_sent sent = {.kind = b->reshards->reshards[reshards[0]].kind, .count = count};
    sent.parts = sf_arena_array(&local->arena, count, sizeof *sent.parts);
    for (uint32_t i = 0; i < count; i++) {
        const sf_resharding *reshard = &b->reshards->reshards[reshards[i]];
        sent.parts[i].value = reshard->value;
        sent.parts[i].before = *b->reshards->versions[reshard->from].layout;
        sent.parts[i].after = *b->reshards->versions[reshard->to].layout;
    }
    SF_PUSH(&local->arena, local->sent, local->nsent, local->sent_capacity, sent);
}

/* One collective for all of these. */
static void send_together(local_builder *b, uint32_t count, const uint32_t *reshards,
                          const sf_value *operands, const sf_type *const *types)
{
    const sf_resharding *first = &b->reshards->reshards[reshards[0]];
    local_resharding m = moving_of(b, first);
    sf_buf what = {0};
    note_sent(b, count, reshards);
    place_reshard(b, first);
    name_tensor(b, first, count - 1, &what);
    sf_value result = emit_collective(b, sf_reshard_collective(first->kind), count, operands, types,
                                      first->axes, local_reshard_monoid(&m), what.text);
    note_resharded(b, result);
    for (uint32_t i = 0; i < count; i++)
        b->versions[b->reshards->reshards[reshards[i]].to].raw = result + i;
    sf_buf_free(&what);
}

static void join_bucket(local_builder *b, uint32_t index, sf_value operand, const sf_type *type)
{
    uint32_t at = b->reshards->reshards[index].bucket, size = b->reshards->buckets[at].count;
    local_bucket *bucket = &b->buckets[at];
    if (!bucket->reshards) {
        bucket->reshards = SF_ARRAY(&b->arena, size, uint32_t);
        bucket->operands = SF_ARRAY(&b->arena, size, sf_value);
        bucket->types = SF_ARRAY(&b->arena, size, const sf_type *);
    }
    bucket->reshards[bucket->count] = index;
    bucket->operands[bucket->count] = operand;
    bucket->types[bucket->count++] = type;
    if (bucket->count == size)
        send_together(b, size, bucket->reshards, bucket->operands, bucket->types);
}

void local_make_reshard(local_builder *b, uint32_t index)
{
    const sf_resharding *reshard = &b->reshards->reshards[index];
    local_resharding m = moving_of(b, reshard);
    sf_value x = local_value(b, reshard->from), first = (sf_value)b->graph->nvalues;
    place_reshard(b, reshard);
    if (sf_is_local_reshard(reshard->kind)) {
        x = local_reshard_alone(b, x, &m);
        note_resharded(b, first);
        local_set(b, reshard->to, x);
        return;
    }
    x = local_reshard_before(b, x, &m);
    note_resharded(b, first);
    const sf_type *type = local_reshard_type(b, x, &m);
    if (reshard->bucket == SF_NONE || b->between)
        send_together(b, 1, &index, &x, &type);
    else
        join_bucket(b, index, x, type);
}
