#include "run/cuda/nccl_groups.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "run/comm/rank_agreement.h"
#include "run/cuda/device_buffers.h"
#include "run/cuda/nccl_order.h"
#include "run/cuda/nccl_small_reduce.h"

/* Exchanges */

sf_collective_memory sf_cuda_memory_of(const sf_inst *inst, const made *m)
{
    bool gives = inst->nout > 0;
    return (sf_collective_memory){.dtype = gives ? inst->out[0].dtype : inst->in[0].dtype,
                                  .nparts = gives ? inst->nout : inst->nin,
                                  .counts = m->exchange->counts,
                                  .strides = m->exchange->strides,
                                  .in = inst->nin > 0 ? m->in : NULL,
                                  .out = gives ? m->out : NULL};
}

/* Visits every exchange of several ranks, in program order. */
typedef sf_status visitor(cuda *c, void *context, const sf_inst *inst, const made *m,
                          sf_diag *diag);

static sf_status visit_exchanges(cuda *c, const frame *f, visitor *visit, void *context,
                                 sf_diag *diag)
{
    for (size_t i = 0; i < f->program->ninsts; i++) {
        const sf_inst *inst = &f->program->insts[i];
        const made *m = &f->insts[i];
        if (inst->kind == SF_INST_COMM && inst->exchange->size > 1)
            SF_TRY(visit(c, context, inst, m, diag));
        for (uint32_t j = 0; j < sf_body_count(inst); j++)
            SF_TRY(visit_exchanges(c, &m->bodies[j], visit, context, diag));
    }
    return SF_OK;
}

/* The ranks */

/* The properties of each rank. */
typedef struct nccl_groups {
    bool shared; /* ranks may have a GPU together */
    uint64_t *ids[2];
    uint64_t *can;
    size_t capacity; /* of groups */
} nccl_groups;

static bool has_own_gpus(const cuda *c, const nccl_groups *y, const sf_group *group)
{
    const int *ranks = sf_comm_group_ranks(group);
    int count = sf_comm_group_size(group);
    for (int i = 0; i < count && !y->shared; i++)
        for (int j = 0; j < i; j++)
            if (y->ids[0][ranks[i]] == y->ids[0][ranks[j]] &&
                y->ids[1][ranks[i]] == y->ids[1][ranks[j]] &&
                sf_comm_same_host(c->collectives.comm, ranks[i], ranks[j]))
                return false;
    return true;
}

/* Two ranks that send each other messages, and have collectives as well, come to them in different orders: these are two groups. */
static sf_nccl_group *find_group(const cuda *c, const sf_group *group, const sf_inst *inst)
{
    for (int i = 0; i < c->nccl.ngroups; i++)
        if (c->nccl.groups[i].group == group &&
            c->nccl.groups[i].is_pair == sf_is_one_way(inst->exchange))
            return &c->nccl.groups[i];
    return NULL;
}

static sf_status note_group(cuda *c, void *context, const sf_inst *inst, const made *m,
                            sf_diag *diag)
{
    nccl_groups *y = context;
    exchange *e = m->exchange;
    sf_collective_memory memory = sf_cuda_memory_of(inst, m);
    sf_group *group;
    SF_TRY(sf_collective_prepare(&c->collectives, inst->exchange, &memory, inst->origin.loc,
                                 &c->memory, diag, &group, &e->transfer));
    e->group = group;
    bool can = sf_nccl_can(&e->transfer) || sf_cuda_gathered_bytes(e) > 0;
    e->may_go = can && has_own_gpus(c, y, group);
    if (e->may_go && !find_group(c, group, inst)) {
        size_t count = (size_t)c->nccl.ngroups;
        sf_nccl_group g = {.group = group, .is_pair = sf_is_one_way(inst->exchange)};
        SF_PUSH(&c->memory, c->nccl.groups, count, y->capacity, g);
        c->nccl.ngroups = (int)count;
    }
    return SF_OK;
}

/* The signature that must be the same on all members. */
static sf_status sign_group(cuda *c, void *context, const sf_inst *inst, const made *m,
                            sf_diag *diag)
{
    (void)context, (void)diag;
    exchange *e = m->exchange;
    const sf_transfer *t = &e->transfer;
    e->nccl = e->may_go ? find_group(c, e->group, inst) : NULL;
    if (!e->nccl)
        return SF_OK;
    uint64_t hash = e->nccl->signature;
    hash = sf_hash_mix(hash, (uint64_t)t->kind + 1);
    hash = sf_hash_mix(hash, (uint64_t)t->dtype);
    hash = sf_hash_mix(hash, (uint64_t)t->monoid);
    for (int i = 0; i < t->nparts; i++)
        hash = sf_hash_mix(hash, (uint64_t)t->parts[i].count);
    e->nccl->signature = hash;
    return SF_OK;
}

static int compare_groups(const void *a, const void *b)
{
    const sf_nccl_group *x = a, *y = b;
    int count = sf_comm_group_size(x->group), other = sf_comm_group_size(y->group);
    const int *ranks = sf_comm_group_ranks(x->group), *others = sf_comm_group_ranks(y->group);
    if (x->is_pair != y->is_pair)
        return x->is_pair ? 1 : -1;
    for (int i = 0; i < count && i < other; i++)
        if (ranks[i] != others[i])
            return ranks[i] < others[i] ? -1 : 1;
    return count - other;
}

/* Those that are gathered have one room for it: they are on one lane. */
static sf_status find_room(cuda *c, void *context, const sf_inst *inst, const made *m,
                           sf_diag *diag)
{
    (void)c, (void)inst, (void)diag;
    int64_t *most = context;
    const exchange *e = m->exchange;
    int64_t bytes = e->nccl && !sf_nccl_can(&e->transfer) ? sf_cuda_gathered_bytes(e) : 0;
    *most = bytes > *most ? bytes : *most;
    return SF_OK;
}

static sf_status give_room(cuda *c, void *context, const sf_inst *inst, const made *m,
                           sf_diag *diag)
{
    (void)inst, (void)diag;
    if (m->exchange->nccl && !sf_nccl_can(&m->exchange->transfer))
        sf_cuda_make_gathered(c, m->exchange, context);
    return SF_OK;
}

static sf_status gather_small(cuda *c, sf_diag *diag)
{
    int64_t bytes = 0;
    char *room;
    SF_TRY(visit_exchanges(c, &c->top, find_room, &bytes, diag));
    if (bytes == 0)
        return SF_OK;
    SF_TRY(sf_cuda_own_memory(c, bytes, diag, &room));
    return visit_exchanges(c, &c->top, give_room, room, diag);
}

/* Which of them the lane that computes follows at the end of a frame. */
static void find_last(const frame *f)
{
    uint64_t seen = 0;
    for (size_t i = f->program->ninsts; i-- > 0;) {
        const sf_inst *inst = &f->program->insts[i];
        const made *m = &f->insts[i];
        if (inst->kind == SF_INST_COMM && m->exchange->nccl) {
            uint64_t bit = UINT64_C(1) << m->exchange->nccl->lane;
            m->exchange->is_last = !(seen & bit);
            seen |= bit;
        }
        for (uint32_t j = 0; j < sf_body_count(inst); j++)
            find_last(&m->bodies[j]);
    }
}

static sf_status ask_ranks(cuda *c, nccl_groups *y, sf_diag *why, sf_diag *diag)
{
    sf_comm *comm = c->collectives.comm;
    int size = sf_comm_size(comm);
    bool asked;
    uint64_t can;
    SF_TRY(sf_nccl_asked(c->device, diag, &asked, &y->shared));
    can = asked && sf_nccl_load(&c->nccl, why) == SF_OK;
    y->can = SF_ARRAY(&c->memory, size, uint64_t);
    SF_TRY(sf_agree_list(comm, can, "who has NCCL", diag, y->can));
    for (int i = 0; i < 2; i++) {
        y->ids[i] = SF_ARRAY(&c->memory, size, uint64_t);
        SF_TRY(sf_agree_list(comm, c->device->id[i], "who has which GPU", diag, y->ids[i]));
    }
    return SF_OK;
}

static sf_status keep_out(cuda *c, void *context, const sf_inst *inst, const made *m, sf_diag *diag)
{
    (void)c, (void)context, (void)inst, (void)diag;
    m->exchange->nccl = NULL;
    return SF_OK;
}

/* Whether NCCL is used, on all ranks or none. The first rank that lacks it reports the missing
 * part. */
static sf_status find_groups(cuda *c, nccl_groups *y, const sf_diag *why, sf_diag *diag, bool *any)
{
    sf_comm *comm = c->collectives.comm;
    int size = sf_comm_size(comm), first = 0;
    SF_TRY(visit_exchanges(c, &c->top, note_group, y, diag));
    *any = c->nccl.ngroups > 0;
    SF_TRY(sf_agree_any(comm, SF_OK, "whether NCCL is used", diag, any));
    while (first < size && y->can[first])
        first++;
    if (*any && first == sf_comm_rank(comm) && why->count > 0)
        sf_warn(diag, SF_NOWHERE, "ranks exchange through memory of the host: %s",
                why->messages[0].text);
    *any = *any && first == size;
    if (*any && c->nccl.ngroups > 0)
        qsort(c->nccl.groups, (size_t)c->nccl.ngroups, sizeof *c->nccl.groups, compare_groups);
    return visit_exchanges(c, &c->top, *any ? sign_group : keep_out, NULL, diag);
}

static sf_status order_puts(cuda *c, sf_diag *diag, bool *any)
{
    if (!*any)
        return SF_OK;
    SF_TRY(sf_cuda_find_puts(c, diag, any));
    if (!*any && sf_comm_rank(c->collectives.comm) == 0)
        sf_warn(diag, SF_NOWHERE,
                "ranks exchange through memory of the host: messages of this program have no order "
                "in which GPUs could bring them one after the other");
    return SF_OK;
}

sf_status sf_cuda_find_nccl_groups(cuda *c, sf_diag *diag)
{
    nccl_groups y = {0};
    bool any = false;
    if (!c->collectives.comm || sf_comm_size(c->collectives.comm) == 1)
        return SF_OK;
    sf_diag why = {0};
    c->nccl = (sf_nccl){.device = c->device, .comm = c->collectives.comm};
    sf_status status = ask_ranks(c, &y, &why, diag);
    if (status == SF_OK)
        status = find_groups(c, &y, &why, diag, &any);
    if (status == SF_OK)
        status = order_puts(c, diag, &any);
    if (status == SF_OK && any)
        status = sf_cuda_own_memory(c, 1, diag, &c->nccl.byte);
    if (status == SF_OK && any)
        status = sf_nccl_join(&c->nccl, diag);
    sf_diag_clear(&why);
    SF_TRY(status);
    if (!any)
        c->nccl.library = NULL;
    if (!c->nccl.library)
        return visit_exchanges(c, &c->top, keep_out, NULL, diag);
    find_last(&c->top);
    return gather_small(c, diag);
}
