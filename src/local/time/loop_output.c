#include <string.h>

#include "local/time/microbatch_builder.h"
#include "op/node_builder.h"

local_resharding loop_output_reshard(const microbatching *t, const loop_output *l)
{
    const sf_resharding *reshard = &t->b->reshards->reshards[l->reshard];
    return (local_resharding){.whole = sf_type_of(t->step, reshard->value),
                              .before = t->b->reshards->versions[reshard->from].layout,
                              .after = &microbatch_invariant,
                              .kind = l->is_sum ? SF_RESHARD_REDUCE : SF_RESHARD_GATHER,
                              .axes = 1u << MICROBATCH_AXIS};
}

/* 16 bits are too few for a sum over many micro-batches. */
static sf_dtype sum_type(sf_dtype dtype)
{
    return dtype == SF_BF16 || dtype == SF_F16 ? SF_F32 : dtype;
}

static sf_monoid monoid_of(const microbatching *t, const loop_output *l)
{
    local_resharding m = loop_output_reshard(t, l);
    return local_reshard_monoid(&m);
}

loop_output loop_output_of(const microbatching *t, uint32_t index)
{
    const local_builder *b = t->b;
    const sf_resharding *reshard = &b->reshards->reshards[index];
    const sf_type *whole = sf_type_of(t->step, reshard->value);
    const sf_type *shard = local_type(b, whole, b->reshards->versions[reshard->from].layout);
    loop_output l = {.reshard = index, .is_sum = sf_move_reduces(reshard->kind)};
    bool adds = l.is_sum && monoid_of(t, &l) == SF_MONOID_ADD;
    l.type = !l.is_sum ? local_rows(b, t->microbatches, shard)
             : adds    ? sf_type_with(b->graph->pool, shard, sum_type(shard->dtype))
                       : shard;
    return l;
}

sf_value loop_output_start(microbatching *t, const loop_output *l)
{
    return l->is_sum ? emit_identity(t->b, monoid_of(t, l), l->type)
                     : emit_number(t->b, l->type, 0);
}

/* The sum so far plus this micro-batch's part. */
static sf_value add_part(microbatching *t, const loop_output *l, sf_value sum, sf_value part)
{
    local_builder *b = t->b;
    sf_layout layout = loop_output_layout(t, l), layouts[3] = {layout, layout, layout};
    sf_value wide = emit_convert(b, part, l->type->dtype);
    if (wide != part)
        microbatch_settle(t, sf_maker(b->graph, wide), layouts);
    if (sum == SF_NONE)
        return wide;
    sf_value out = emit_binary(b, sf_op_of_monoid(monoid_of(t, l)), sum, wide);
    microbatch_settle(t, sf_maker(b->graph, out), layouts);
    return out;
}

/* All micro-batches so far, with this one in its place. */
static sf_value put_part(microbatching *t, const loop_output *l, sf_value rows, sf_value part,
                         sf_value microbatch)
{
    local_builder *b = t->b;
    sf_value operands[2 + SF_MAX_RANK], zero = emit_like(b, microbatch, 0);
    int64_t dims[SF_MAX_RANK];
    memcpy(dims, l->type->dims, (size_t)l->type->rank * sizeof *dims);
    dims[0] = 1;
    operands[0] = rows;
    operands[1] = emit_reshape(b, part, l->type->rank, dims);
    for (int d = 0; d < l->type->rank; d++)
        operands[2 + d] = d == 0 ? microbatch : zero;
    return emit_op(b, SF_OP_DYNAMIC_UPDATE_SLICE, 2 + (uint32_t)l->type->rank, operands, NULL,
                   l->type);
}

sf_value loop_output_add(microbatching *t, const loop_output *l, sf_value so_far,
                         sf_value microbatch)
{
    local_builder *b = t->b;
    const sf_resharding *reshard = &b->reshards->reshards[l->reshard];
    const sf_node *maker = sf_maker(t->step, reshard->value);
    local_resharding m = loop_output_reshard(t, l);
    sf_value part = local_value(b, reshard->from);
    local_note_place(b, maker, maker ? maker->phase : SF_FORWARD);
    part = local_reshard_before(b, part, &m);
    return l->is_sum ? add_part(t, l, so_far, part) : put_part(t, l, so_far, part, microbatch);
}

sf_value loop_output_join(microbatching *t, const loop_output *l, sf_value sum, sf_value part)
{
    const sf_resharding *reshard = &t->b->reshards->reshards[l->reshard];
    local_note_place(t->b, sf_maker(t->step, reshard->value), reshard->phase);
    return add_part(t, l, sum, part);
}

sf_value loop_output_end(microbatching *t, const loop_output *l, sf_value value)
{
    local_builder *b = t->b;
    const sf_resharding *reshard = &b->reshards->reshards[l->reshard];
    local_note_place(b, sf_maker(t->step, reshard->value), reshard->phase);
    sf_value narrow = emit_convert(b, value, sf_type_of(t->step, reshard->value)->dtype);
    if (narrow != value) {
        sf_layout layout = loop_output_layout(t, l), layouts[2] = {layout, layout};
        microbatch_settle(t, sf_maker(b->graph, narrow), layouts);
    }
    return narrow;
}
