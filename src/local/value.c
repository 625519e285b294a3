/* Versions of values: made by nodes, or by moves, of which some go together. */
#include "ir/name.h"
#include "local/build.h"

void local_record(local_builder *b, sf_value value, sf_value whole, const sf_layout *layout)
{
    static const sf_piece nothing = {.whole = SF_NONE};
    sf_local *local = b->local;
    while (b->npieces <= value)
        SF_PUSH(&local->arena, local->pieces, b->npieces, b->piece_capacity, nothing);
    local->pieces[value] = (sf_piece){whole, *layout};
}

void local_set(local_builder *b, uint32_t version, sf_value value)
{
    const sf_version *v = &b->moves->versions[version];
    b->versions[version].value = value;
    local_record(b, value, v->value, v->layout);
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

sf_value local_value(local_builder *b, uint32_t version)
{
    uint32_t at = b->moves->versions[version].same;
    local_version *v = &b->versions[at];
    if (v->value == SF_NONE) {
        const sf_moving *move = &b->moves->moves[b->moves->versions[at].move];
        local_moving m = moving_of(b, move);
        place_move(b, move);
        SF_ASSERT(v->raw != SF_NONE);
        local_set(b, at, local_move_behind(b, v->raw, &m));
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

/* One collective for all of these. */
static void send_together(local_builder *b, uint32_t count, const uint32_t *moves,
                          const sf_value *operands, const sf_type *const *types)
{
    const sf_moving *first = &b->moves->moves[moves[0]];
    local_moving m = moving_of(b, first);
    sf_buf what = {0};
    place_move(b, first);
    name_tensor(b, first, count - 1, &what);
    sf_value result = emit_collective(b, sf_move_collective(first->kind), count, operands, types,
                                      first->axes, local_move_monoid(&m), what.text);
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
    sf_value x = local_value(b, move->from);
    place_move(b, move);
    if (sf_is_local_move(move->kind)) {
        local_set(b, move->to, local_move_alone(b, x, &m));
        return;
    }
    x = local_move_before(b, x, &m);
    const sf_type *type = local_move_type(b, x, &m);
    if (move->bucket == SF_NONE)
        send_together(b, 1, &index, &x, &type);
    else
        join_bucket(b, index, x, type);
}
