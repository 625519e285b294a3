#include "sim/sim.h"

#include <math.h>

#include "prog/check_program.h"
#include "prog/fused_launch.h"
#include "sim/instruction_work.h"
#include "sim/links.h"

/* A message, when both who sends and who receives it have come to it. */
typedef struct meeting {
    uint32_t send, receive; /* instructions of the two, plus one; 0: not yet */
    double sent, received;  /* when they were ready */
} meeting;

/* Messages from one group to another, in order. */
typedef struct channel {
    meeting *at;
    size_t count, capacity;
    size_t sent, received;
} channel;

/* A collective that some of the groups do together. */
typedef struct gathering {
    uint64_t groups, came;
    uint32_t *insts; /* by group: instruction */
    double ready;    /* all that have come */
} gathering;

/* Two pipeline ranks that come together to different collectives. */
typedef struct mismatch {
    int group, other;
    const sf_exchange *a, *b; /* NULL: there are none */
} mismatch;

/* All of them: those of one set of pipeline ranks are in order, among those of others. */
typedef struct gatherings {
    gathering *at;
    size_t count, capacity;
    mismatch fault;
} gatherings;

typedef struct walk {
    const sf_program *p;
    struct walk *all;     /* of the groups that exchange messages, */
    int group, count;     /* which of them this is, and how many there are; 0: it is alone */
    channel *to;          /* by group */
    gatherings *together; /* of all of them */
    uint32_t next;        /* instruction */
    bool *known;          /* by instruction: when it ends; of messages, once both ends have come */
    const sf_costs *costs;
    const sf_nearness *near; /* by instruction; NULL: it does not count */
    const uint32_t
        *fused_launches; /* by instruction: the first of those that are launched with it */
    double rate;         /* of the current fused launch: seconds per byte that is touched */
    sf_timing *insts;
    uint32_t *raisers; /* by event */
    uint32_t *sent;    /* collectives and copies, in order */
    uint32_t nsent;
    sf_links links;
    double now, compute;    /* on the first stream: the time, and the time in instructions */
    double traffic, hidden; /* of collectives in bodies */
    sf_simulation **bodies;
    sf_arena *arena; /* of data that stays */
} walk;

static void wait_for_inst(walk *w, uint32_t inst)
{
    w->now = sf_wait_exposed(w->insts, w->sent, w->nsent, inst, w->now);
}

static void wait_for_inst_events(walk *w, const sf_inst *inst)
{
    for (uint32_t i = 0; i < inst->nwaits; i++) {
        uint32_t raiser = w->raisers[inst->waits[i]];
        if (w->p->insts[raiser].stream != 0)
            wait_for_inst(w, raiser);
    }
}

static double ready_at(const walk *w, const sf_inst *inst)
{
    double ready = w->now;
    for (uint32_t i = 0; i < inst->nwaits; i++)
        ready = fmax(ready, w->insts[w->raisers[inst->waits[i]]].end);
    return ready;
}

/* It goes over the links of who sends, once both are ready. Where the one who receives comes late, others have had them
 * before it. */
static void meet(walk *from, walk *to, const meeting *m)
{
    const sf_inst *inst = &from->p->insts[m->send - 1];
    sf_timing *sent = &from->insts[m->send - 1], *received = &to->insts[m->receive - 1];
    double start = fmax(m->sent, m->received), seconds = 0;
    if (from->costs) {
        sf_axes axes = inst->exchange->axes;
        seconds = sf_costs_collective(from->costs, SF_PERMUTE, axes, sent->bytes);
        if (m->received <= m->sent)
            start = sf_links_take(&from->links, from->costs, axes, start, seconds);
    }
    sent->start = received->start = start;
    sent->end = received->end = start + seconds;
    from->known[m->send - 1] = to->known[m->receive - 1] = true;
}

static void come_to_message(walk *w, uint32_t index)
{
    const sf_inst *inst = &w->p->insts[index];
    bool sends = inst->exchange->to >= 0;
    int other = sends ? inst->exchange->to : inst->exchange->from;
    w->insts[index].bytes = sf_exchange_bytes(inst);
    w->sent[w->nsent++] = index;
    if (other >= w->count) { /* nobody is there: as if it were sent at once */
        w->insts[index].start = w->insts[index].end = ready_at(w, inst);
        w->known[index] = true;
        return;
    }
    walk *from = sends ? w : &w->all[other], *to = sends ? &w->all[other] : w;
    channel *c = &from->to[to->group];
    size_t at = sends ? c->sent++ : c->received++;
    if (at == c->count)
        SF_PUSH(w->arena, c->at, c->count, c->capacity, (meeting){0});
    meeting *m = &c->at[at];
    *(sends ? &m->send : &m->receive) = index + 1;
    *(sends ? &m->sent : &m->received) = ready_at(w, inst);
    if (m->send > 0 && m->receive > 0)
        meet(from, to, m);
}

/* The first of these groups that this one has not come to. */
static gathering *next_gathering(walk *w, uint64_t groups)
{
    gatherings *all = w->together;
    for (size_t i = 0; i < all->count; i++)
        if (all->at[i].groups == groups && !(all->at[i].came >> w->group & 1))
            return &all->at[i];
    gathering new = {.groups = groups, .insts = SF_ARRAY(w->arena, w->count, uint32_t)};
    SF_PUSH(w->arena, all->at, all->count, all->capacity, new);
    return &all->at[all->count - 1];
}

/* Of the pipeline ranks that have come to a collective, two that mean another one by it. */
static void compare_gathered(gatherings *all, const walk *walks, const gathering *g)
{
    int first = __builtin_ctzll(g->groups);
    const sf_inst *a = &walks[first].p->insts[g->insts[first]];
    for (uint64_t rest = g->groups; rest && !all->fault.a; rest &= rest - 1) {
        int group = __builtin_ctzll(rest);
        const sf_inst *b = &walks[group].p->insts[g->insts[group]];
        if (!sf_exchange_matches(a, b))
            all->fault = (mismatch){first, group, a->exchange, b->exchange};
    }
}

/* It begins when the last has come, over the links of all. Those that have gone on by then have had theirs for something else
 * that came later, which does not count. */
static void hold_gathering(walk *all, const gathering *g)
{
    const walk *first = &all[__builtin_ctzll(g->groups)];
    double seconds = 0, start = g->ready;
    const sf_exchange *exchange = first->p->insts[g->insts[first->group]].exchange;
    if (first->costs)
        seconds = sf_costs_collective(first->costs, exchange->kind, exchange->axes,
                                      first->insts[g->insts[first->group]].bytes);
    for (uint64_t rest = g->groups; rest && first->costs; rest &= rest - 1) {
        walk *w = &all[__builtin_ctzll(rest)];
        if (w->now <= g->ready)
            start = fmax(start, sf_links_take(&w->links, w->costs, exchange->axes, start, seconds));
    }
    for (uint64_t rest = g->groups; rest; rest &= rest - 1) {
        walk *w = &all[__builtin_ctzll(rest)];
        sf_timing *t = &w->insts[g->insts[w->group]];
        t->start = start;
        t->end = start + seconds;
        w->known[g->insts[w->group]] = true;
    }
}

static void come_to_gathering(walk *w, uint32_t index)
{
    const sf_inst *inst = &w->p->insts[index];
    gathering *g = next_gathering(w, inst->exchange->groups);
    w->insts[index].bytes = sf_exchange_bytes(inst);
    w->sent[w->nsent++] = index;
    g->insts[w->group] = index;
    g->came |= UINT64_C(1) << w->group;
    g->ready = fmax(g->ready, ready_at(w, inst));
    if (g->came != g->groups)
        return;
    compare_gathered(w->together, w->all, g);
    hold_gathering(w->all, g);
}

static void send_transfer(walk *w, uint32_t index)
{
    const sf_inst *inst = &w->p->insts[index];
    sf_timing *t = &w->insts[index];
    double seconds = 0;
    t->start = ready_at(w, inst);
    t->bytes = sf_exchange_bytes(inst);
    if (w->costs) {
        sf_axes axes = inst->exchange->axes;
        seconds = sf_costs_collective(w->costs, inst->exchange->kind, axes, t->bytes);
        t->start = sf_links_take(&w->links, w->costs, axes, t->start, seconds);
    }
    t->end = t->start + seconds;
    w->known[index] = true;
    w->sent[w->nsent++] = index;
}

static void send_copy(walk *w, uint32_t index)
{
    const sf_inst *inst = &w->p->insts[index];
    sf_timing *t = &w->insts[index];
    bool to_host = w->p->streams[inst->stream].to == SF_SPACE_HOST;
    t->bytes = sf_copy_bytes(inst);
    double seconds = w->costs ? sf_costs_copy(w->costs, t->bytes) : 0;
    t->start = sf_links_copy(&w->links, to_host, ready_at(w, inst), seconds);
    t->end = t->start + seconds;
    w->known[index] = true;
    w->sent[w->nsent++] = index;
}

static void run_bodies(walk *w, uint32_t index)
{
    const sf_inst *inst = &w->p->insts[index];
    sf_simulation *bodies = SF_ARRAY(w->arena, inst->nest->nbodies, sf_simulation);
    w->bodies[index] = bodies;
    for (uint32_t b = 0; b < inst->nest->nbodies; b++) {
        double runs = inst->nest->runs[b];
        sf_simulate(inst->nest->bodies[b], w->costs, w->arena, &bodies[b]);
        w->now += runs * bodies[b].seconds;
        w->compute += runs * bodies[b].compute;
        w->hidden += runs * bodies[b].hidden;
        w->traffic += runs * bodies[b].traffic;
    }
}

/* Whether all that the instruction waits for is known to end. */
static bool can_begin(const walk *w, const sf_inst *inst)
{
    for (uint32_t i = 0; i < inst->nwaits; i++)
        if (!w->known[w->raisers[inst->waits[i]]])
            return false;
    return true;
}

/* Loops of a fused launch have their shares of its time. */
static void price_fused_launch(walk *w, uint32_t first)
{
    uint32_t end = first;
    double bytes = 0;
    for (; end < w->p->ninsts && w->fused_launches[end] == first; end++)
        bytes += sf_inst_touched(&w->p->insts[end]);
    w->rate = end - first < 2 || bytes == 0
                  ? 0
                  : sf_fused_launch_seconds(&w->p->insts[first], end - first,
                                            w->near ? &w->near[first] : NULL, w->costs) /
                        bytes;
}

static double inst_seconds(walk *w, uint32_t index)
{
    const sf_nearness *near = w->near ? &w->near[index] : NULL;
    if (!w->costs)
        return 0;
    if (w->fused_launches[index] == index)
        price_fused_launch(w, index);
    return w->rate > 0 ? w->rate * sf_inst_touched(&w->p->insts[index])
                       : sf_inst_seconds(&w->p->insts[index], near, w->costs);
}

static void run_inst(walk *w, uint32_t index)
{
    const sf_inst *inst = &w->p->insts[index];
    wait_for_inst_events(w, inst);
    w->insts[index].start = w->now;
    if (sf_body_count(inst) > 0) {
        run_bodies(w, index);
    } else {
        double seconds = inst_seconds(w, index);
        w->now += seconds;
        w->compute += seconds;
    }
    w->insts[index].end = w->now;
    w->known[index] = true;
}

static void come_to_exchange(walk *w, uint32_t index)
{
    const sf_exchange *exchange = w->p->insts[index].exchange;
    if (sf_is_one_way(exchange))
        come_to_message(w, index);
    else if (exchange->groups != 0 && w->count > 1)
        come_to_gathering(w, index);
    else
        send_transfer(w, index);
}

/* Whether the pipeline rank can go on: the end of its next instruction's dependencies is known. */
static bool can_go_on(const walk *w)
{
    return w->next < w->p->ninsts && can_begin(w, &w->p->insts[w->next]);
}

/* While it can, up to that time, or up to the next exchange, from which others may go on. */
static void run_insts(walk *w, double until)
{
    bool exchanged = false;
    while (!exchanged && w->now <= until && can_go_on(w)) {
        const sf_inst *inst = &w->p->insts[w->next];
        exchanged = inst->kind == SF_INST_COMM && w->count > 1;
        if (inst->raises != SF_NONE)
            w->raisers[inst->raises] = w->next;
        if (inst->kind == SF_INST_COPY)
            send_copy(w, w->next);
        else if (inst->kind == SF_INST_COMM)
            come_to_exchange(w, w->next);
        else
            run_inst(w, w->next);
        w->next++;
    }
}

static void wait_for_all(walk *w)
{
    for (uint32_t i = 0; i < w->nsent; i++)
        wait_for_inst(w, w->sent[i]);
}

/* Hidden time is not free if it slows down concurrent compute. */
static void add_up_clocks(walk *w, sf_simulation *out)
{
    double drag = w->costs ? sf_costs_drag(w->costs) : 0;
    for (uint32_t i = 0; i < w->nsent; i++) {
        sf_timing *t = &w->insts[w->sent[i]];
        double hidden = fmax(0, t->end - t->start - t->exposed);
        if (w->p->insts[w->sent[i]].kind == SF_INST_COPY) {
            out->copied += t->bytes;
            out->copying += t->end - t->start;
            out->copies_exposed += t->exposed;
            out->ncopies++;
            continue;
        }
        t->exposed += drag * hidden;
        w->now += drag * hidden;
        out->hidden += (1 - drag) * hidden;
        out->traffic += t->bytes;
        out->ncollectives++;
    }
    out->traffic += w->traffic;
    out->hidden += w->hidden;
    out->seconds = w->now;
    out->compute = w->compute;
    out->exposed = w->now - w->compute;
}

/* The message for which a pipeline rank waits in vain. */
static sf_status fail_waiting(const walk *walks, int count, sf_diag *diag)
{
    for (int g = 0; g < count; g++) {
        const walk *w = &walks[g];
        if (w->next == w->p->ninsts)
            continue;
        const sf_inst *inst = &w->p->insts[w->next];
        for (uint32_t i = 0; i < inst->nwaits; i++) {
            uint32_t raiser = w->raisers[inst->waits[i]];
            const sf_exchange *exchange = w->p->insts[raiser].exchange;
            if (w->known[raiser])
                continue;
            bool sends = exchange->to >= 0;
            if (exchange->groups)
                return sf_fail(
                    diag, SF_EMISMATCH, SF_NOWHERE,
                    "pipeline rank %d waits for ever for the others of its stage to come to the "
                    "%s of %s: they wait for each other",
                    g, sf_exchange_name(exchange), exchange->what);
            return sf_fail(diag, SF_EMISMATCH, SF_NOWHERE,
                           "pipeline rank %d waits for ever %s pipeline rank %d %s %s: they wait "
                           "for each other",
                           g, sends ? "for" : "for what", sends ? exchange->to : exchange->from,
                           sends ? "to receive" : "sends,", exchange->what);
        }
    }
    return sf_fail(diag, SF_EMISMATCH, SF_NOWHERE, "pipeline ranks wait for each other");
}

/* The pipeline rank with the earliest clock among those that can go on, and the time of the next
 * one's; NULL: none can. */
static walk *find_earliest(walk *walks, int count, double *next)
{
    walk *first = NULL;
    *next = HUGE_VAL;
    for (int g = 0; g < count; g++) {
        walk *w = &walks[g];
        if (!can_go_on(w))
            continue;
        if (!first || w->now < first->now) {
            *next = first ? first->now : HUGE_VAL;
            first = w;
        } else {
            *next = fmin(*next, w->now);
        }
    }
    return first;
}

/* In the order of time: a group that ran ahead would have had links before messages that were there earlier. */
static sf_status run_groups(walk *walks, int count, sf_diag *diag)
{
    const mismatch *fault = &walks[0].together->fault;
    walk *first;
    double next;
    while (!fault->a && (first = find_earliest(walks, count, &next)))
        run_insts(first, next);
    if (fault->a)
        return sf_fail(diag, SF_EMISMATCH, SF_NOWHERE,
                       "pipeline ranks that share a stage come to different collectives: rank %d "
                       "to %s of %s, rank %d to %s of %s",
                       fault->group, sf_exchange_name(fault->a), fault->a->what, fault->other,
                       sf_exchange_name(fault->b), fault->b->what);
    for (int g = 0; g < count; g++)
        if (walks[g].next < walks[g].p->ninsts)
            return fail_waiting(walks, count, diag);
    for (int g = 0; g < count; g++)
        for (uint32_t i = 0; i < walks[g].nsent; i++)
            if (!walks[g].known[walks[g].sent[i]])
                return sf_fail(diag, SF_EMISMATCH, SF_NOWHERE,
                               "pipeline rank %d: a message of %s has no other end", g,
                               walks[g].p->insts[walks[g].sent[i]].exchange->what);
    return SF_OK;
}

sf_status sf_simulate_groups(int count, sf_program *const *programs, const sf_costs *const *costs,
                             sf_arena *arena, sf_diag *diag, sf_simulation *out)
{
    sf_arena scratch = {0};
    walk *walks = SF_ARRAY(&scratch, count, walk);
    gatherings together = {0};
    for (int g = 0; g < count; g++) {
        const sf_program *p = programs[g];
        out[g] = (sf_simulation){.insts = SF_ARRAY(arena, p->ninsts, sf_timing),
                                 .bodies = SF_ARRAY(arena, p->ninsts, sf_simulation *)};
        walks[g] = (walk){.p = p,
                          .all = walks,
                          .together = &together,
                          .group = g,
                          .count = count > 1 ? count : 0,
                          .costs = costs ? costs[g] : NULL,
                          .insts = out[g].insts,
                          .bodies = out[g].bodies,
                          .arena = arena};
        walks[g].to = SF_ARRAY(&scratch, count, channel);
        walks[g].known = SF_ARRAY(&scratch, p->ninsts, bool);
        walks[g].raisers = SF_ARRAY(&scratch, p->nevents, uint32_t);
        if (costs && sf_costs_sees_near(costs[g]))
            walks[g].near = sf_nearness_of(p, &scratch);
        walks[g].sent = SF_ARRAY(&scratch, p->ninsts, uint32_t);
        walks[g].fused_launches = sf_fused_launches_of(p, NULL, &scratch);
    }
    sf_status status = run_groups(walks, count, diag);
    for (int g = 0; g < count && status == SF_OK; g++) {
        const sf_program *p = programs[g];
        wait_for_all(&walks[g]);
        add_up_clocks(&walks[g], &out[g]);
        uint32_t at;
        out[g].host_memory =
            p->host_state_bytes + sf_live_bytes_in(p, SF_SPACE_HOST, &scratch, NULL, &at);
        out[g].memory =
            p->state_bytes + p->constant_bytes + sf_live_bytes(p, &scratch, NULL, &out[g].peak);
    }
    sf_arena_free(&scratch);
    return status;
}

void sf_simulate(const sf_program *program, const sf_costs *costs, sf_arena *arena,
                 sf_simulation *out)
{
    sf_program *one = (sf_program *)program;
    sf_status status = sf_simulate_groups(1, &one, costs ? &costs : NULL, arena, NULL, out);
    SF_ASSERT(status == SF_OK);
}

typedef struct showing {
    sf_see_exchange *see;
    void *context;
    uint32_t within; /* SF_NONE: at the top */
} showing;

static void show_exchanges(const showing *s, const sf_program *program, const sf_simulation *sim,
                           double times)
{
    for (uint32_t i = 0; i < program->ninsts; i++) {
        const sf_inst *inst = &program->insts[i];
        showing inner = *s;
        if (s->within == SF_NONE)
            inner.within = i;
        if (inst->kind == SF_INST_COMM)
            s->see(s->context, inst, &sim->insts[i], times, inner.within);
        for (uint32_t b = 0; b < sf_body_count(inst); b++)
            show_exchanges(&inner, inst->nest->bodies[b], &sim->bodies[i][b],
                           times * inst->nest->runs[b]);
    }
}

void sf_see_exchanges(const sf_program *program, const sf_simulation *sim, sf_see_exchange *see,
                      void *context)
{
    show_exchanges(&(showing){see, context, SF_NONE}, program, sim, 1);
}

int64_t sf_scratch_bytes(const sf_program *program, const sf_costs *costs)
{
    int threads = sf_costs_threads(costs);
    return threads > 0 || sf_costs_on_gpu(costs) ? program->target->scratch(program, threads) : 0;
}
