#include "run/engine/engine_collective.h"

#include <string.h>

static sf_status group_of_axes(sf_collectives *c, sf_axes axes, sf_diag *diag, sf_group **out)
{
    sf_group **slot = &c->groups[axes];
    if (!*slot) {
        int rank = sf_comm_rank(c->comm), count = sf_group_size(c->mesh, axes);
        sf_arena scratch = {0};
        int *ranks = SF_ARRAY(&scratch, count, int);
        for (int place = 0; place < count; place++)
            ranks[place] = sf_group_member(c->mesh, axes, rank, place);
        sf_status status = sf_comm_group(c->comm, ranks, count, diag, slot);
        sf_arena_free(&scratch);
        SF_TRY(status);
    }
    *out = *slot;
    return SF_OK;
}

/* Of those along the axis, the ones that are in the set. */
static sf_status group_of_set(sf_collectives *c, const sf_exchange *exchange, sf_diag *diag,
                              sf_group **out)
{
    int rank = sf_comm_rank(c->comm), ranks[64], count = 0;
    for (uint64_t rest = exchange->groups; rest; rest &= rest - 1)
        ranks[count++] = sf_group_member(c->mesh, exchange->axes, rank, __builtin_ctzll(rest));
    return sf_comm_group(c->comm, ranks, count, diag, out);
}

/* Those who send each other messages, in one direction: so each pair has its own order, whatever others do. */
static sf_status pair_of(sf_collectives *c, const sf_exchange *exchange, sf_diag *diag,
                         sf_group **out)
{
    int rank = sf_comm_rank(c->comm);
    bool sends = exchange->to >= 0;
    int peer =
        sf_group_member(c->mesh, exchange->axes, rank, sends ? exchange->to : exchange->from);
    return sf_comm_pair(c->comm, sends ? rank : peer, sends ? peer : rank, diag, out);
}

/* A group of one: the operands are the results. */
static void copy_parts(const sf_collective_memory *memory)
{
    for (uint32_t i = 0; i < memory->nparts; i++)
        if (memory->in[i] != memory->out[i])
            memcpy(memory->out[i], memory->in[i],
                   (size_t)(memory->counts[i] * sf_dtype_get(memory->dtype)->bytes));
}

sf_status sf_collective_prepare(sf_collectives *c, const sf_exchange *exchange,
                                const sf_collective_memory *memory, sf_loc loc, sf_arena *arena,
                                sf_diag *diag, sf_group **group, sf_transfer *out)
{
    if (!c->comm || exchange->axes >> c->mesh->naxes)
        return sf_fail(diag, SF_EUSAGE, loc, "the %s needs the ranks of its group",
                       sf_collective_name(exchange->kind));
    bool one_way = sf_is_one_way(exchange);
    SF_TRY(one_way            ? pair_of(c, exchange, diag, group)
           : exchange->groups ? group_of_set(c, exchange, diag, group)
                              : group_of_axes(c, exchange->axes, diag, group));
    /* Complex numbers travel as their parts, unless they are multiplied. */
    bool as_parts = exchange->monoid != SF_MONOID_MUL;
    sf_dtype dtype = as_parts ? sf_part_of(memory->dtype) : memory->dtype;
    int width = as_parts ? sf_parts_of(memory->dtype) : 1;
    sf_transfer_part *parts = SF_ARRAY(arena, memory->nparts, sf_transfer_part);
    for (uint32_t i = 0; i < memory->nparts; i++) {
        int64_t count = memory->counts[i] * width;
        if (sf_collective_get(exchange->kind)->out_blocks)
            count /= exchange->size;
        parts[i] = (sf_transfer_part){.in = memory->in ? memory->in[i] : NULL,
                                      .out = memory->out ? memory->out[i] : NULL,
                                      .count = count,
                                      .stride = memory->strides ? memory->strides[i] * width : 0};
    }
    *out = (sf_transfer){.kind = exchange->kind,
                         .dtype = dtype,
                         .monoid = exchange->monoid,
                         .to = one_way && exchange->to >= 0 ? 1 : exchange->to,
                         .from = one_way && exchange->from >= 0 ? 0 : exchange->from,
                         .nparts = (int)memory->nparts,
                         .parts = parts,
                         .what = exchange->what,
                         .memory = memory->where};
    return SF_OK;
}

sf_status sf_collective_start(sf_collectives *c, const sf_exchange *exchange,
                              const sf_collective_memory *memory, sf_loc loc, sf_diag *diag,
                              sf_request **request)
{
    *request = NULL;
    if (exchange->size == 1) {
        copy_parts(memory);
        return SF_OK;
    }
    sf_arena scratch = {0};
    sf_group *group;
    sf_transfer transfer;
    sf_status status =
        sf_collective_prepare(c, exchange, memory, loc, &scratch, diag, &group, &transfer);
    if (status == SF_OK)
        status = sf_comm_start(group, &transfer, diag, request);
    sf_arena_free(&scratch);
    return status;
}
