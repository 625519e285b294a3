#include "run/cuda/nccl_order.h"

#include "base/hash.h"
#include "run/comm/exchange_order.h"
#include "run/comm/rank_agreement.h"

/* How many messages, or collectives, of a group the rank has come to. */
typedef struct tally {
    const sf_group *group;
    bool is_pair;
    uint64_t count;
} tally;

typedef struct listing {
    cuda *c;
    sf_comings comings;
    tally *tallies;
    size_t ntallies, tally_capacity;
    bool has_messages;
} listing;

static uint64_t count_of(listing *l, const sf_group *group, bool is_pair)
{
    tally fresh = {.group = group, .is_pair = is_pair};
    size_t i = 0;
    while (i < l->ntallies && (l->tallies[i].group != group || l->tallies[i].is_pair != is_pair))
        i++;
    if (i == l->ntallies)
        SF_PUSH(&l->c->memory, l->tallies, l->ntallies, l->tally_capacity, fresh);
    return l->tallies[i].count++;
}

/* Members have the messages of a group in the same order, and its collectives. */
static uint64_t key_of(listing *l, const sf_group *group, bool is_pair)
{
    uint64_t key = sf_hash_mix(is_pair ? 2 : 1, count_of(l, group, is_pair));
    for (int i = 0; i < sf_comm_group_size(group); i++)
        key = sf_hash_mix(key, (uint64_t)sf_comm_group_ranks(group)[i]);
    return key;
}

static void list_coming(listing *l, uint64_t key, uint32_t members, uint32_t at)
{
    sf_comings *all = &l->comings;
    sf_coming coming = {key, members, at};
    SF_PUSH(&l->c->memory, all->at, all->count, all->capacity, coming);
}

static bool is_met(const sf_inst *inst)
{
    return inst->kind == SF_INST_COMM && inst->exchange->size > 1;
}

static void list_begun(listing *l, const sf_inst *inst, exchange *e, uint32_t at)
{
    bool is_pair = sf_is_one_way(inst->exchange);
    e->key = key_of(l, e->group, is_pair);
    l->has_messages = l->has_messages || (e->nccl && is_pair);
    list_coming(l, e->key, (uint32_t)sf_comm_group_size(e->group), at);
}

/* An exchange in a body is put at its place, and counts as waited for there: each iteration is the
 * same. */
static void list_body(listing *l, const frame *f, uint32_t at)
{
    for (size_t i = 0; i < f->program->ninsts; i++) {
        const sf_inst *inst = &f->program->insts[i];
        if (is_met(inst)) {
            list_begun(l, inst, f->insts[i].exchange, at);
            list_coming(l, f->insts[i].exchange->key, 0, at);
        }
        for (uint32_t j = 0; j < sf_body_count(inst); j++)
            list_body(l, &f->insts[i].bodies[j], at);
    }
}

static void list_step(listing *l, const frame *f)
{
    for (uint32_t i = 0; i < f->program->ninsts; i++) {
        const sf_inst *inst = &f->program->insts[i];
        for (uint32_t j = 0; j < inst->nwaits; j++) {
            uint32_t raiser = f->raisers[inst->waits[j]];
            if (is_met(&f->program->insts[raiser]))
                list_coming(l, f->insts[raiser].exchange->key, 0, i);
        }
        if (is_met(inst))
            list_begun(l, inst, f->insts[i].exchange, i);
        for (uint32_t j = 0; j < sf_body_count(inst); j++)
            list_body(l, &f->insts[i].bodies[j], i);
    }
}

/* The events of all ranks, by rank. */
static sf_status gather_comings(listing *l, sf_arena *scratch, sf_diag *diag, sf_comings **out)
{
    sf_comm *comm = l->c->collectives.comm;
    int size = sf_comm_size(comm);
    uint64_t *counts = SF_ARRAY(scratch, size, uint64_t);
    size_t most = 0;
    SF_TRY(sf_agree_list(comm, l->comings.count, "what ranks come to", diag, counts));
    for (int r = 0; r < size; r++)
        most = counts[r] > most ? counts[r] : most;
    sf_coming *mine = SF_ARRAY(scratch, most + 1, sf_coming);
    sf_coming *all = SF_ARRAY(scratch, (size_t)size * most + 1, sf_coming);
    for (size_t i = 0; i < l->comings.count; i++)
        mine[i] = l->comings.at[i];
    SF_TRY(sf_agree_rows(comm, mine, most * sizeof *mine, "what ranks come to", diag, all));
    *out = SF_ARRAY(scratch, size, sf_comings);
    for (int r = 0; r < size; r++)
        (*out)[r] =
            (sf_comings){.at = all + (size_t)r * most, .count = counts[r], .capacity = counts[r]};
    return SF_OK;
}

/* The instruction of the step that begins it, or SF_NONE: it is one of a body. */
static uint32_t beginner_of(const frame *f, const sf_coming *coming)
{
    const made *m = &f->insts[coming->at];
    return m->exchange && m->exchange->key == coming->key ? coming->at : SF_NONE;
}

static void set_puts(cuda *c, const sf_comings *mine, const sf_put *puts, size_t count)
{
    frame *f = &c->top;
    uint32_t end = (uint32_t)f->program->ninsts;
    f->puts = SF_ARRAY(&c->memory, count + 1, uint32_t);
    f->first_put = SF_ARRAY(&c->memory, end + 2, uint32_t);
    uint32_t nputs = 0, at = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t inst = beginner_of(f, &mine->at[puts[i].begun]);
        exchange *e = inst == SF_NONE ? NULL : f->insts[inst].exchange;
        if (!e || !e->nccl)
            continue;
        while (at < puts[i].before && at < end)
            f->first_put[++at] = nputs;
        e->is_put_later = true;
        e->begun = c->nevents++;
        f->puts[nputs++] = inst;
    }
    while (at <= end)
        f->first_put[++at] = nputs;
}

sf_status sf_cuda_find_puts(cuda *c, sf_diag *diag, bool *is_found)
{
    listing l = {.c = c};
    sf_arena scratch = {0};
    sf_comings *ranks = NULL;
    sf_put *puts;
    size_t count;
    list_step(&l, &c->top);
    *is_found = true;
    sf_status status = sf_agree_any(c->collectives.comm, SF_OK, "messages", diag, &l.has_messages);
    if (status == SF_OK && l.has_messages)
        status = gather_comings(&l, &scratch, diag, &ranks);
    if (status == SF_OK && ranks) {
        *is_found = sf_order_meetings(sf_comm_size(c->collectives.comm), ranks,
                                      sf_comm_rank(c->collectives.comm), &scratch, &puts, &count);
        if (*is_found)
            set_puts(c, &l.comings, puts, count);
    }
    sf_arena_free(&scratch);
    return status;
}
