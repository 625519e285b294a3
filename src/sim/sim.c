#include "sim/sim.h"

#include <math.h>

#include "sim/effort.h"
#include "sim/links.h"

typedef struct walk {
    const sf_program *p;
    const sf_costs *costs;
    sf_timing *insts;
    uint32_t *raisers; /* by event */
    uint32_t *sent;    /* collectives, in order */
    uint32_t nsent;
    sf_links links;
    double now, compute;    /* on the first stream: the time, and what was spent in instructions */
    double traffic, hidden; /* of collectives in bodies */
    sf_simulation **bodies;
    sf_arena *arena; /* of what stays */
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

static void send_transfer(walk *w, uint32_t index)
{
    const sf_inst *inst = &w->p->insts[index];
    sf_timing *t = &w->insts[index];
    double ready = w->now;
    for (uint32_t i = 0; i < inst->nwaits; i++)
        ready = fmax(ready, w->insts[w->raisers[inst->waits[i]]].end);
    t->bytes = sf_exchange_bytes(inst);
    double seconds =
        sf_costs_collective(w->costs, inst->exchange->kind, inst->exchange->axes, t->bytes);
    t->start = sf_links_take(&w->links, w->costs, inst->exchange->axes, ready, seconds);
    t->end = t->start + seconds;
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

static void run_insts(walk *w)
{
    const sf_program *p = w->p;
    for (uint32_t i = 0; i < p->ninsts; i++) {
        const sf_inst *inst = &p->insts[i];
        if (inst->raises != SF_NONE)
            w->raisers[inst->raises] = i;
        if (inst->kind == SF_INST_COMM) {
            send_transfer(w, i);
            continue;
        }
        wait_for_inst_events(w, inst);
        w->insts[i].start = w->now;
        if (sf_body_count(inst) > 0) {
            run_bodies(w, i);
        } else {
            double seconds = sf_inst_seconds(inst, w->costs);
            w->now += seconds;
            w->compute += seconds;
        }
        w->insts[i].end = w->now;
    }
    for (uint32_t i = 0; i < w->nsent; i++)
        wait_for_inst(w, w->sent[i]);
}

/* What is hidden is not for nothing where it drags on what is computed beside it. */
static void add_up_clocks(walk *w, sf_simulation *out)
{
    double drag = sf_costs_drag(w->costs);
    for (uint32_t i = 0; i < w->nsent; i++) {
        sf_timing *t = &w->insts[w->sent[i]];
        double hidden = fmax(0, t->end - t->start - t->exposed);
        t->exposed += drag * hidden;
        w->now += drag * hidden;
        out->hidden += (1 - drag) * hidden;
        out->traffic += t->bytes;
    }
    out->traffic += w->traffic;
    out->hidden += w->hidden;
    out->seconds = w->now;
    out->compute = w->compute;
    out->exposed = w->now - w->compute;
    out->ncollectives = (int)w->nsent;
}

int64_t sf_live_bytes(const sf_program *p, sf_arena *arena, int64_t **live, uint32_t *at)
{
    int64_t *bytes = SF_ARRAY(arena, p->ninsts + 1, int64_t), grain = p->target->align, peak = 0;
    *at = 0;
    for (size_t i = 0; i < p->nbuffers; i++) {
        const sf_buffer *buffer = &p->buffers[i];
        int64_t room = (buffer->bytes + grain - 1) / grain * grain;
        if (buffer->home != SF_HOME_ARENA || buffer->space != SF_SPACE_DEVICE ||
            buffer->first == SF_NONE)
            continue;
        bytes[buffer->first] += room;
        bytes[buffer->is_result ? p->ninsts : buffer->last + 1] -= room;
    }
    for (uint32_t i = 0; i < p->ninsts; i++) {
        bytes[i] += i > 0 ? bytes[i - 1] : 0;
        if (bytes[i] > peak) {
            peak = bytes[i];
            *at = i;
        }
    }
    if (live)
        *live = bytes;
    return peak;
}

void sf_simulate(const sf_program *program, const sf_costs *costs, sf_arena *arena,
                 sf_simulation *out)
{
    sf_arena scratch = {0};
    *out = (sf_simulation){.insts = SF_ARRAY(arena, program->ninsts, sf_timing)};
    out->bodies = SF_ARRAY(arena, program->ninsts, sf_simulation *);
    walk w = {
        .p = program, .costs = costs, .insts = out->insts, .bodies = out->bodies, .arena = arena};
    w.raisers = SF_ARRAY(&scratch, program->nevents, uint32_t);
    w.sent = SF_ARRAY(&scratch, program->ninsts, uint32_t);
    run_insts(&w);
    add_up_clocks(&w, out);
    out->memory = program->state_bytes + program->constant_bytes +
                  sf_live_bytes(program, &scratch, NULL, &out->peak);
    sf_arena_free(&scratch);
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
