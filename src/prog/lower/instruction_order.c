#include <stdlib.h>

#include "prog/lower/lowering.h"

/* The order of the text is a good one, except that it leaves all updates to the end, with every
 * gradient alive. So the text's order is kept, but an instruction is taken as soon as it is ready
 * when it frees at least as much as it needs. A new value of an argument needs no memory once the
 * old one has no other reader, because it replaces it in place.
 *
 * Collectives stay in the order of the text, which is the same on all ranks: in another order the
 * ranks would wait for each other. A collective that is taken is in flight. It completes when the
 * target's number of later collectives, and of their bytes, have been taken, or when the next
 * instruction of the text needs its result, and not before earlier collectives. So communication
 * and computation overlap. A gather, which is ready long before its result is needed, is taken when
 * an instruction waits for the gather before it. */

/* Bytes of a few numbers: they can wait in memory for nothing. */
enum { SMALL = 64 };

typedef struct order {
    lowering *l;
    sf_program *p;
    uint32_t *waits;     /* by instruction: inputs not yet made */
    uint32_t *readers;   /* by buffer: instructions that have not read it yet */
    uint32_t *becomes;   /* by buffer: the argument's buffer that it replaces, or SF_NONE */
    uint32_t *successor; /* by buffer of an argument: the instruction that makes its next value */
    uint32_t *heads, *next, *who; /* by buffer: list of the instructions that read it */
    const bool **is_first;        /* by instruction and input: none before it reads the buffer */
    bool *done;
    uint32_t turn;    /* the first collective that is not done, or the end */
    uint32_t *flight; /* collectives that were taken, in order; the first `landed` are complete */
    uint32_t ntaken, nlanded;
    int64_t after;   /* bytes of those that were taken after the first that is not complete */
    uint32_t *gains; /* instructions that take_with_gains took: its work list */
    sf_inst *ordered;
    uint32_t *position; /* by old index */
    uint32_t count;
} order;

/* A loop that stayed may have thousands of inputs, so that each is looked at once. */
static void find_first_reads(order *o, size_t links)
{
    bool *flags = SF_ARRAY(&o->l->scratch, links, bool);
    uint32_t *reader = SF_ARRAY(&o->l->scratch, o->p->nbuffers, uint32_t); /* the last, plus one */
    for (uint32_t i = 0; i < o->p->ninsts; i++) {
        const sf_inst *inst = &o->p->insts[i];
        o->is_first[i] = flags;
        for (uint32_t j = 0; j < inst->nin; j++) {
            uint32_t *before = &reader[inst->in[j].buffer];
            *flags++ = *before != i + 1;
            *before = i + 1;
        }
    }
}

/* Lists the readers of every buffer, and counts the dependencies of every instruction. */
static void link_readers(order *o)
{
    size_t links = 0, used = 0;
    for (size_t i = 0; i < o->p->ninsts; i++)
        links += o->p->insts[i].nin;
    o->next = SF_ARRAY(&o->l->scratch, links, uint32_t);
    o->who = SF_ARRAY(&o->l->scratch, links, uint32_t);
    find_first_reads(o, links);
    for (size_t i = 0; i < o->p->nbuffers; i++)
        o->heads[i] = SF_NONE;
    for (uint32_t i = (uint32_t)o->p->ninsts; i-- > 0;)
        for (uint32_t j = 0; j < o->p->insts[i].nin; j++) {
            uint32_t buffer = o->p->insts[i].in[j].buffer;
            if (!o->is_first[i][j])
                continue;
            o->readers[buffer]++;
            o->waits[i] += o->l->made[buffer] != ALWAYS;
            o->who[used] = i;
            o->next[used] = o->heads[buffer];
            o->heads[buffer] = (uint32_t)used++;
        }
}

static void link_state(order *o)
{
    const sf_program *p = o->p;
    for (size_t i = 0; i < o->p->nbuffers; i++)
        o->becomes[i] = o->successor[i] = SF_NONE;
    for (uint32_t i = 0; i < p->narguments; i++) {
        if (p->next[i] == SF_NONE)
            continue;
        uint32_t buffer = p->results[p->next[i]].buffer;
        if (o->l->made[buffer] == ALWAYS)
            continue;
        o->becomes[buffer] = i; /* the buffers of arguments come first, in order */
        o->successor[i] = o->l->made[buffer];
    }
}

static bool reads(const order *o, uint32_t index, uint32_t buffer)
{
    for (uint32_t at = o->heads[buffer]; at != SF_NONE; at = o->next[at])
        if (o->who[at] == index)
            return true;
    return false;
}

/* Bytes that the instruction frees, less those that it needs. A new value of an argument that others have yet to read would need a place until the end, and a copy: it is none, and waits for them. */
static int64_t gain_of(const order *o, uint32_t index)
{
    const sf_inst *inst = &o->p->insts[index];
    int64_t gain = 0;
    for (uint32_t i = 0; i < inst->nin; i++) {
        const sf_buffer *buffer = &o->p->buffers[inst->in[i].buffer];
        if (buffer->home == SF_HOME_ARENA && o->readers[inst->in[i].buffer] == 1 &&
            o->is_first[index][i])
            gain += buffer->bytes;
    }
    for (uint32_t i = 0; i < inst->nout; i++) {
        uint32_t state = o->becomes[inst->out[i].buffer];
        uint32_t others = state == SF_NONE ? 1 : o->readers[state] - reads(o, index, state);
        if (state != SF_NONE && others > 0)
            return -1;
        if (others > 0)
            gain -= o->p->buffers[inst->out[i].buffer].bytes;
    }
    return gain;
}

static bool is_collective(const order *o, uint32_t inst)
{
    return o->p->insts[inst].kind == SF_INST_COMM;
}

static bool is_ready(const order *o, uint32_t inst)
{
    return inst != SF_NONE && !o->done[inst] && o->waits[inst] == 0 &&
           (inst == o->turn || !is_collective(o, inst));
}

static void find_backward_turn(order *o)
{
    while (o->turn < o->p->ninsts && (o->done[o->turn] || !is_collective(o, o->turn)))
        o->turn++;
}

/* The bytes that a collective sends or receives, whichever is more. */
static int64_t collective_bytes(const order *o, uint32_t index)
{
    const sf_inst *inst = &o->p->insts[index];
    int64_t in = 0, out = 0;
    for (uint32_t i = 0; i < inst->nin; i++)
        in += o->p->buffers[inst->in[i].buffer].bytes;
    for (uint32_t i = 0; i < inst->nout; i++)
        out += o->p->buffers[inst->out[i].buffer].bytes;
    return in > out ? in : out;
}

/* Marks the instruction's results as made. */
static void give_results(order *o, uint32_t index)
{
    const sf_inst *inst = &o->p->insts[index];
    for (uint32_t i = 0; i < inst->nout; i++)
        for (uint32_t at = o->heads[inst->out[i].buffer]; at != SF_NONE; at = o->next[at])
            o->waits[o->who[at]]--;
}

static void take_inst(order *o, uint32_t index)
{
    const sf_inst *inst = &o->p->insts[index];
    o->done[index] = true;
    o->position[index] = o->count;
    o->ordered[o->count++] = *inst;
    find_backward_turn(o);
    for (uint32_t i = 0; i < inst->nin; i++)
        o->readers[inst->in[i].buffer] -= o->is_first[index][i];
    if (!is_collective(o, index)) {
        give_results(o, index);
        return;
    }
    o->after += o->ntaken > o->nlanded ? collective_bytes(o, index) : 0;
    o->flight[o->ntaken++] = index;
}

/* An instruction that became ready, or can now write in place, because of the instruction just
 * taken. */
static uint32_t next_gain(const order *o, uint32_t index)
{
    const sf_inst *inst = &o->p->insts[index];
    for (uint32_t i = 0; i < inst->nout; i++)
        for (uint32_t at = o->heads[inst->out[i].buffer]; at != SF_NONE; at = o->next[at])
            if (is_ready(o, o->who[at]) && gain_of(o, o->who[at]) >= 0)
                return o->who[at];
    for (uint32_t i = 0; i < inst->nin; i++) {
        uint32_t successor = o->successor[inst->in[i].buffer];
        if (is_ready(o, successor) && gain_of(o, successor) >= 0)
            return successor;
    }
    return SF_NONE;
}

/* Takes instructions that became ready because of the instruction, which was taken or completed,
 * then those that became ready because of these, and so on. */
static void take_gains(order *o, uint32_t index)
{
    uint32_t count = 0;
    o->gains[count++] = index;
    for (uint32_t at = 0; at < count; at++)
        for (uint32_t found; (found = next_gain(o, o->gains[at])) != SF_NONE;) {
            take_inst(o, found);
            o->gains[count++] = found;
        }
}

static void land_first(order *o)
{
    uint32_t first = o->flight[o->nlanded++];
    if (o->nlanded < o->ntaken)
        o->after -= collective_bytes(o, o->flight[o->nlanded]);
    give_results(o, first);
    take_gains(o, first);
}

/* Whoever waits for a collective lets the next gather go first: it is on its way while that one's result is used. */
static void take_ahead(order *o)
{
    if (o->turn == o->p->ninsts || o->p->insts[o->turn].exchange->kind != SF_ALL_GATHER)
        return;
    const sf_inst *gather = &o->p->insts[o->turn];
    /* a conversion, or a copy, of the tensor that it sends */
    for (uint32_t i = 0; i < gather->nin; i++) {
        uint32_t maker = o->l->made[gather->in[i].buffer];
        if (maker != ALWAYS && is_ready(o, maker) && o->p->insts[maker].kind == SF_INST_LOOP)
            take_inst(o, maker);
    }
    if (is_ready(o, o->turn))
        take_inst(o, o->turn);
}

static void take_in_turn(order *o, uint32_t index)
{
    while (!o->done[index] && o->waits[index] > 0) {
        if (o->ntaken - o->nlanded == 1)
            take_ahead(o);
        land_first(o);
    }
    if (o->done[index])
        return;
    take_inst(o, index);
    take_gains(o, index);
    while (o->ntaken - o->nlanded > o->l->target->in_flight &&
           o->after >= o->l->target->flight_bytes)
        land_first(o);
}

static bool is_small_loop(const order *o, uint32_t index)
{
    const sf_inst *inst = &o->p->insts[index];
    int64_t bytes = 0;
    for (uint32_t i = 0; i < inst->nout; i++)
        bytes += o->p->buffers[inst->out[i].buffer].bytes;
    return inst->kind == SF_INST_LOOP && bytes <= SMALL;
}

/* Learning rates and corrections are computed from arguments alone, and every update waits for them. */
static void take_small(order *o)
{
    for (uint32_t i = 0; i < o->p->ninsts; i++)
        if (is_ready(o, i) && is_small_loop(o, i))
            take_inst(o, i);
}

/* Receives */

static bool is_receive(const sf_inst *inst)
{
    return inst->kind == SF_INST_COMM && sf_is_one_way(inst->exchange) && inst->exchange->from >= 0;
}

typedef struct starting {
    uint32_t key, old;
} starting;

static int compare_starting(const void *a, const void *b)
{
    const starting *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->old > y->old) - (x->old < y->old);
}

/* A receive is placed where its result is first needed, so that no instruction that waits for it
 * precedes the sends before it. It has no dependencies, so it begins together with the previous
 * receives, beside the readers of those. */
static void start_receives_early(order *o)
{
    uint32_t count = o->count, *to = SF_ARRAY(&o->l->scratch, count, uint32_t);
    starting *list = SF_ARRAY(&o->l->scratch, count, starting);
    sf_inst *insts = SF_ARRAY(&o->p->arena, count, sf_inst);
    uint32_t before = 0, last = 0; /* where receives begin, and where the current ones are */
    for (uint32_t i = 0; i < count; i++) {
        bool receives = is_receive(&o->ordered[i]);
        list[i] = (starting){2 * i + 1, i};
        if (receives)
            list[i].key = 2 * before;
        last = receives ? i + 1 : last;
        if (o->ordered[i].kind != SF_INST_COMM && last > 0) {
            before = last;
            last = 0;
        }
    }
    qsort(list, count, sizeof *list, compare_starting);
    for (uint32_t i = 0; i < count; i++) {
        insts[i] = o->ordered[list[i].old];
        to[list[i].old] = i;
    }
    for (uint32_t i = 0; i < count; i++)
        o->position[i] = to[o->position[i]];
    o->ordered = insts;
}

static bool receives_any(const order *o)
{
    for (uint32_t i = 0; i < o->count; i++)
        if (is_receive(&o->ordered[i]))
            return true;
    return false;
}

/* Renumbers makers of values by the new order. */
static void follow_order(const order *o)
{
    lowering *l = o->l;
    for (size_t i = 0; i < o->p->nbuffers; i++)
        if (l->made[i] != ALWAYS)
            l->made[i] = o->position[l->made[i]];
    for (size_t i = 0; i < l->nclusters; i++)
        l->clusters[i]->inst = o->position[l->clusters[i]->inst];
}

void order_insts(lowering *l)
{
    sf_program *p = l->program;
    size_t ninsts = p->ninsts, nbuffers = p->nbuffers;
    order o = {.l = l, .p = p};
    o.waits = SF_ARRAY(&l->scratch, ninsts, uint32_t);
    o.readers = SF_ARRAY(&l->scratch, nbuffers, uint32_t);
    o.becomes = SF_ARRAY(&l->scratch, nbuffers, uint32_t);
    o.successor = SF_ARRAY(&l->scratch, nbuffers, uint32_t);
    o.heads = SF_ARRAY(&l->scratch, nbuffers, uint32_t);
    o.is_first = SF_ARRAY(&l->scratch, ninsts, const bool *);
    o.done = SF_ARRAY(&l->scratch, ninsts, bool);
    o.position = SF_ARRAY(&l->scratch, ninsts, uint32_t);
    o.ordered = SF_ARRAY(&p->arena, ninsts, sf_inst);
    o.flight = SF_ARRAY(&l->scratch, ninsts, uint32_t);
    o.gains = SF_ARRAY(&l->scratch, ninsts + 1, uint32_t);
    link_readers(&o);
    link_state(&o);
    find_backward_turn(&o);
    take_small(&o);
    for (uint32_t i = 0; i < ninsts; i++)
        take_in_turn(&o, i);
    if (receives_any(&o))
        start_receives_early(&o);
    p->insts = o.ordered;
    p->inst_capacity = ninsts;
    follow_order(&o);
}
