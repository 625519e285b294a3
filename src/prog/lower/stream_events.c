/* Events: which instruction waits for which.
 *
 * An instruction of another stream than the first begins when the preceding instructions of the
 * first stream are done: it waits for the last of these. It is open until another instruction waits
 * for it. An instruction that writes operands or results of an open one, or reads its results,
 * waits for it; when that is done on the first stream, all later instructions need not wait. No
 * instruction reads the result of a send, which would stay open for ever: an instruction that waits
 * for a receive also waits for the sends that have arrived by then. */
#include "prog/lower/lowering.h"
#include "prog/split_instruction.h"

/* An open instruction that touches a buffer, or some of it. */
typedef struct touching {
    uint32_t inst;
    const sf_view *view;
    bool writes;
    struct touching *next;
} touching;

typedef struct syncing {
    sf_program *p;
    sf_arena scratch;
    touching **touched; /* by buffer */
    bool *open;         /* by instruction */
    uint32_t *waited; /* by stream: the instruction of the first that it has waited for, plus one */
    size_t waits_capacity; /* of the current instruction */
    uint32_t **sent;       /* by place in the group: messages that were sent there, */
    uint32_t *nsent;       /* how many, */
    uint32_t *narrived;    /* and how many of them have been waited for */
    size_t *sent_capacity;
} syncing;

static uint32_t event_of(sf_program *p, uint32_t index)
{
    if (p->insts[index].raises == SF_NONE)
        p->insts[index].raises = p->nevents++;
    return p->insts[index].raises;
}

static void wait_for_open(syncing *s, sf_inst *inst, uint32_t other)
{
    uint32_t event = event_of(s->p, other);
    size_t count = inst->nwaits;
    for (size_t i = 0; i < count; i++)
        if (inst->waits[i] == event)
            return;
    SF_PUSH(&s->p->arena, inst->waits, count, s->waits_capacity, event);
    inst->nwaits = (uint32_t)count;
}

static bool is_message(const sf_inst *inst)
{
    return inst->kind == SF_INST_COMM && sf_is_one_way(inst->exchange);
}

static void note_sent(syncing *s, uint32_t index)
{
    int to = s->p->insts[index].exchange->to;
    size_t count = s->nsent[to];
    SF_PUSH(&s->scratch, s->sent[to], count, s->sent_capacity[to], index);
    s->nsent[to] = (uint32_t)count;
}

/* The messages that have arrived when this message has come, on the first stream. */
static void wait_for_arrived(syncing *s, sf_inst *inst, const sf_exchange *received)
{
    uint32_t *at = &s->narrived[received->from];
    for (; *at < s->nsent[received->from]; (*at)++) {
        uint32_t other = s->sent[received->from][*at];
        if (s->p->insts[other].exchange->number >= received->arrived)
            return;
        if (s->open[other])
            wait_for_open(s, inst, other);
        s->open[other] = false;
    }
}

/* Waits for the open ones that conflict, and drops the others from the list that are open no more. */
static void wait_at(syncing *s, uint32_t index, const sf_view *view, bool writes)
{
    sf_inst *inst = &s->p->insts[index];
    touching **at = &s->touched[view->buffer];
    while (*at) {
        uint32_t other = (*at)->inst;
        if (s->open[other] && ((*at)->writes || writes) &&
            sf_insts_meet(&s->p->insts[other], (*at)->view, inst, view)) {
            const sf_inst *from = &s->p->insts[other];
            wait_for_open(s, inst, other);
            s->open[other] = inst->stream != 0;
            if (inst->stream == 0 && is_message(from) && from->exchange->from >= 0)
                wait_for_arrived(s, inst, from->exchange);
        }
        if (s->open[other])
            at = &(*at)->next;
        else
            *at = (*at)->next;
    }
}

static void open_at(syncing *s, uint32_t index, const sf_view *view, bool writes)
{
    touching *t = SF_NEW(&s->scratch, touching);
    *t = (touching){index, view, writes, s->touched[view->buffer]};
    s->touched[view->buffer] = t;
}

static void sync_inst(syncing *s, uint32_t index, uint32_t last)
{
    sf_inst *inst = &s->p->insts[index];
    inst->nwaits = 0;
    inst->waits = NULL;
    s->waits_capacity = 0;
    if (inst->stream != 0 && last > s->waited[inst->stream]) {
        wait_for_open(s, inst, last - 1);
        s->waited[inst->stream] = last;
    }
    for (uint32_t i = 0; i < inst->nin; i++)
        wait_at(s, index, &inst->in[i], false);
    for (uint32_t i = 0; i < inst->nout; i++)
        wait_at(s, index, &inst->out[i], true);
    if (inst->stream == 0)
        return;
    if (is_message(inst) && inst->exchange->to >= 0)
        note_sent(s, index);
    s->open[index] = true;
    for (uint32_t i = 0; i < inst->nin; i++)
        open_at(s, index, &inst->in[i], false);
    for (uint32_t i = 0; i < inst->nout; i++)
        open_at(s, index, &inst->out[i], true);
}

static uint32_t stream_of(sf_program *p, const sf_inst *inst)
{
    sf_stream wanted = {.kind = SF_STREAM_COMPUTE};
    if (inst->kind == SF_INST_COMM)
        wanted = (sf_stream){.kind = SF_STREAM_COMM, .axes = inst->exchange->axes};
    if (inst->kind == SF_INST_COPY)
        wanted = (sf_stream){.kind = SF_STREAM_COPY, .to = p->buffers[inst->out[0].buffer].space};
    for (uint32_t s = 0; s < p->nstreams; s++)
        if (p->streams[s].kind == wanted.kind && p->streams[s].axes == wanted.axes &&
            p->streams[s].to == wanted.to)
            return s;
    SF_PUSH(&p->arena, p->streams, p->nstreams, p->stream_capacity, wanted);
    return (uint32_t)p->nstreams - 1;
}

void sync_insts(sf_program *p)
{
    syncing s = {.p = p};
    uint32_t last = 0; /* of the first stream, plus one */
    if (p->nstreams == 0)
        SF_PUSH(&p->arena, p->streams, p->nstreams, p->stream_capacity,
                ((sf_stream){.kind = SF_STREAM_COMPUTE}));
    p->nevents = 0;
    for (size_t i = 0; i < p->ninsts; i++) {
        p->insts[i].stream = stream_of(p, &p->insts[i]);
        p->insts[i].raises = SF_NONE;
    }
    s.touched = SF_ARRAY(&s.scratch, p->nbuffers, touching *);
    s.open = SF_ARRAY(&s.scratch, p->ninsts, bool);
    s.waited = SF_ARRAY(&s.scratch, p->nstreams, uint32_t);
    int ranks = sf_mesh_size(&p->mesh);
    s.sent = SF_ARRAY(&s.scratch, ranks, uint32_t *);
    s.nsent = SF_ARRAY(&s.scratch, ranks, uint32_t);
    s.narrived = SF_ARRAY(&s.scratch, ranks, uint32_t);
    s.sent_capacity = SF_ARRAY(&s.scratch, ranks, size_t);
    for (uint32_t i = 0; i < p->ninsts; i++) {
        sync_inst(&s, i, last);
        if (p->insts[i].stream == 0)
            last = i + 1;
    }
    sf_arena_free(&s.scratch);
}

uint32_t *find_waiters(const sf_program *p, sf_arena *arena)
{
    uint32_t *waiters = SF_ARRAY(arena, p->ninsts, uint32_t);
    uint32_t *first = SF_ARRAY(arena, p->nevents, uint32_t); /* by event */
    for (uint32_t e = 0; e < p->nevents; e++)
        first[e] = SF_NONE;
    for (uint32_t i = (uint32_t)p->ninsts; i-- > 0;)
        for (uint32_t w = 0; w < p->insts[i].nwaits && p->insts[i].stream == 0; w++)
            first[p->insts[i].waits[w]] = i;
    for (size_t i = 0; i < p->ninsts; i++)
        waiters[i] = p->insts[i].raises == SF_NONE ? SF_NONE : first[p->insts[i].raises];
    return waiters;
}
