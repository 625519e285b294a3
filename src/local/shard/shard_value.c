/* Versions of values: made by nodes, or by moves, of which some go together. */
#include "ir/name.h"
#include "local/shard/shard_builder.h"

void local_record(local_builder *b, sf_value value, sf_value whole, const sf_layout *layout)
{
    static const sf_piece nothing = {.whole = SF_NONE};
    sf_local *local = b->local;
    while (b->npieces <= value)
        SF_PUSH(&local->arena, local->pieces, b->npieces, b->piece_capacity, nothing);
    local->pieces[value] = (sf_piece){.whole = whole, .layout = *layout};
}

void local_set(local_builder *b, uint32_t version, sf_value value)
{
    const sf_value_version *v = &b->moves->versions[version];
    b->versions[version].value = value;
    local_record(b, value, v->value, v->layout);
    b->local->pieces[value].moved = v->move != SF_NONE;
}

static local_moving moving_of(const local_builder *b, const sf_moving *move)
{
    return (local_moving){.whole = sf_type_of(b->whole, move->value),
                          .before = b->moves->versions[move->from].layout,
                          .after = b->moves->versions[move->to].layout,
                          .kind = move->kind,
                          .axes = move->axes};
}

/* New nodes belong to who wants the move, in the phase of the move; messages are about what makes the tensor. */
static void place_move(local_builder *b, const sf_moving *move)
{
    const sf_node *maker = sf_maker(b->whole, move->value);
    const sf_node *wants = move->wanted == SF_NONE ? maker : b->whole->nodes[move->wanted];
    b->scope = wants ? wants->scope : NULL;
    b->phase = move->phase;
    b->loc = maker ? maker->loc : wants ? wants->loc : SF_NOWHERE;
}

/* What stands inside of a move: all values from `first` on. */
static void note_moved(local_builder *b, sf_value first)
{
    static const sf_layout whole;
    for (sf_value v = first; v < b->graph->nvalues; v++) {
        local_record(b, v, SF_NONE, &whole);
        b->local->pieces[v].moved = true;
    }
}

sf_value local_value(local_builder *b, uint32_t version)
{
    uint32_t at = b->moves->versions[version].same;
    local_version *v = &b->versions[at];
    if (v->value == SF_NONE) {
        const sf_moving *move = &b->moves->moves[b->moves->versions[at].move];
        local_moving m = moving_of(b, move);
        sf_value first = (sf_value)b->graph->nvalues;
        place_move(b, move);
        SF_ASSERT(v->raw != SF_NONE);
        sf_value behind = local_move_behind(b, v->raw, &m);
        note_moved(b, first);
        local_set(b, at, behind);
    }
    return b->versions[at].value;
}

static void name_tensor(const local_builder *b, const sf_moving *move, uint32_t others, sf_buf *out)
{
    sf_buf name = {0};
    sf_buf_puts(out, sf_value_name(b->whole, move->value, &name));
    if (others > 0)
        sf_buf_printf(out, " and %u more", others);
    sf_buf_free(&name);
}

static void note_sent(local_builder *b, uint32_t count, const uint32_t *moves)
{
    sf_local *local = b->local;
    sf_sent sent = {.kind = b->moves->moves[moves[0]].kind, .count = count};
    sent.parts = sf_arena_array(&local->arena, count, sizeof *sent.parts);
    for (uint32_t i = 0; i < count; i++) {
        const sf_moving *move = &b->moves->moves[moves[i]];
        sent.parts[i].value = move->value;
        sent.parts[i].before = *b->moves->versions[move->from].layout;
        sent.parts[i].after = *b->moves->versions[move->to].layout;
    }
    SF_PUSH(&local->arena, local->sent, local->nsent, local->sent_capacity, sent);
}

/* One collective for all of these. */
static void send_together(local_builder *b, uint32_t count, const uint32_t *moves,
                          const sf_value *operands, const sf_type *const *types)
{
    const sf_moving *first = &b->moves->moves[moves[0]];
    local_moving m = moving_of(b, first);
    sf_buf what = {0};
    note_sent(b, count, moves);
    place_move(b, first);
    name_tensor(b, first, count - 1, &what);
    sf_value result = emit_collective(b, sf_move_collective(first->kind), count, operands, types,
                                      first->axes, local_move_monoid(&m), what.text);
    note_moved(b, result);
    for (uint32_t i = 0; i < count; i++)
        b->versions[b->moves->moves[moves[i]].to].raw = result + i;
    sf_buf_free(&what);
}

static void join_bucket(local_builder *b, uint32_t index, sf_value operand, const sf_type *type)
{
    uint32_t at = b->moves->moves[index].bucket, size = b->moves->buckets[at].count;
    local_bucket *bucket = &b->buckets[at];
    if (!bucket->moves) {
        bucket->moves = SF_ARRAY(&b->arena, size, uint32_t);
        bucket->operands = SF_ARRAY(&b->arena, size, sf_value);
        bucket->types = SF_ARRAY(&b->arena, size, const sf_type *);
    }
    bucket->moves[bucket->count] = index;
    bucket->operands[bucket->count] = operand;
    bucket->types[bucket->count++] = type;
    if (bucket->count == size)
        send_together(b, size, bucket->moves, bucket->operands, bucket->types);
}

void local_make_move(local_builder *b, uint32_t index)
{
    const sf_moving *move = &b->moves->moves[index];
    local_moving m = moving_of(b, move);
    sf_value x = local_value(b, move->from), first = (sf_value)b->graph->nvalues;
    place_move(b, move);
    if (sf_is_local_move(move->kind)) {
        x = local_move_alone(b, x, &m);
        note_moved(b, first);
        local_set(b, move->to, x);
        return;
    }
    x = local_move_before(b, x, &m);
    note_moved(b, first);
    const sf_type *type = local_move_type(b, x, &m);
    if (move->bucket == SF_NONE || b->between)
        send_together(b, 1, &index, &x, &type);
    else
        join_bucket(b, index, x, type);
}
