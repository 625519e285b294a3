#include <string.h>

#include "local/time/microbatch_builder.h"
#include "op/node_builder.h"

local_moving turn_landing_move(const turning *t, const turn_landing *l)
{
    const sf_moving *move = &t->b->moves->moves[l->move];
    return (local_moving){.whole = sf_type_of(t->step, move->value),
                          .before = t->b->moves->versions[move->from].layout,
                          .after = &turn_still,
                          .kind = l->is_sum ? SF_MOVE_REDUCE : SF_MOVE_GATHER,
                          .axes = 1u << TURN_AXIS};
}

/* 16 bits are too few to add up many turns in. */
static sf_dtype sum_type(sf_dtype dtype)
{
    return dtype == SF_BF16 || dtype == SF_F16 ? SF_F32 : dtype;
}

static sf_monoid monoid_of(const turning *t, const turn_landing *l)
{
    local_moving m = turn_landing_move(t, l);
    return local_move_monoid(&m);
}

turn_landing turn_land(const turning *t, uint32_t index)
{
    const local_builder *b = t->b;
    const sf_moving *move = &b->moves->moves[index];
    const sf_type *whole = sf_type_of(t->step, move->value);
    const sf_type *piece = local_type(b, whole, b->moves->versions[move->from].layout);
    turn_landing l = {.move = index, .is_sum = sf_move_reduces(move->kind)};
    bool adds = l.is_sum && monoid_of(t, &l) == SF_MONOID_ADD;
    l.type = !l.is_sum ? local_rows(b, t->turns, piece)
             : adds    ? sf_type_with(b->graph->pool, piece, sum_type(piece->dtype))
                       : piece;
    return l;
}

sf_value turn_landing_start(turning *t, const turn_landing *l)
{
    return l->is_sum ? emit_identity(t->b, monoid_of(t, l), l->type)
                     : emit_number(t->b, l->type, 0);
}

/* The sum so far and this turn's part. */
static sf_value add_part(turning *t, const turn_landing *l, sf_value sum, sf_value part)
{
    local_builder *b = t->b;
    sf_layout layout = turn_landing_layout(t, l), layouts[3] = {layout, layout, layout};
    sf_value wide = emit_convert(b, part, l->type->dtype);
    if (wide != part)
        turn_settle(t, sf_maker(b->graph, wide), layouts);
    if (sum == SF_NONE)
        return wide;
    sf_value out = emit_binary(b, sf_op_of_monoid(monoid_of(t, l)), sum, wide);
    turn_settle(t, sf_maker(b->graph, out), layouts);
    return out;
}

/* All turns so far, and this one in its place. */
static sf_value put_part(turning *t, const turn_landing *l, sf_value rows, sf_value part,
                         sf_value turn)
{
    local_builder *b = t->b;
    sf_value operands[2 + SF_MAX_RANK], zero = emit_like(b, turn, 0);
    int64_t dims[SF_MAX_RANK];
    memcpy(dims, l->type->dims, (size_t)l->type->rank * sizeof *dims);
    dims[0] = 1;
    operands[0] = rows;
    operands[1] = emit_reshape(b, part, l->type->rank, dims);
    for (int d = 0; d < l->type->rank; d++)
        operands[2 + d] = d == 0 ? turn : zero;
    return emit_op(b, SF_OP_DYNAMIC_UPDATE_SLICE, 2 + (uint32_t)l->type->rank, operands, NULL,
                   l->type);
}

sf_value turn_landing_add(turning *t, const turn_landing *l, sf_value so_far, sf_value turn)
{
    local_builder *b = t->b;
    const sf_moving *move = &b->moves->moves[l->move];
    const sf_node *maker = sf_maker(t->step, move->value);
    local_moving m = turn_landing_move(t, l);
    sf_value part = local_value(b, move->from);
    local_note_place(b, maker, maker ? maker->phase : SF_FORWARD);
    part = local_move_before(b, part, &m);
    return l->is_sum ? add_part(t, l, so_far, part) : put_part(t, l, so_far, part, turn);
}

sf_value turn_landing_join(turning *t, const turn_landing *l, sf_value sum, sf_value part)
{
    const sf_moving *move = &t->b->moves->moves[l->move];
    local_note_place(t->b, sf_maker(t->step, move->value), move->phase);
    return add_part(t, l, sum, part);
}

sf_value turn_landing_end(turning *t, const turn_landing *l, sf_value value)
{
    local_builder *b = t->b;
    const sf_moving *move = &b->moves->moves[l->move];
    local_note_place(b, sf_maker(t->step, move->value), move->phase);
    sf_value narrow = emit_convert(b, value, sf_type_of(t->step, move->value)->dtype);
    if (narrow != value) {
        sf_layout layout = turn_landing_layout(t, l), layouts[2] = {layout, layout};
        turn_settle(t, sf_maker(b->graph, narrow), layouts);
    }
    return narrow;
}
