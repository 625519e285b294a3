/* A lower bound of a step's time, however early its gathers begin (step_lower_bound.h). The list is
 * walked by the clock, with conditions that hold in any order of gathers:
 *
 *  - reductions follow each other, as if there were no gathers;
 *  - before an instruction begins, its links have carried all messages that were waited for up to
 *    it;
 *  - and the gathers among these follow each other, each from where there is memory for it by
 *    itself, or for one that is needed later: that may only be too early.
 *
 * Loops that reshape operands of messages may be anywhere; only their compute counts. */
#include <math.h>

#include "pass/gather_placement.h"
#include "pass/step_lower_bound.h"
#include "prog/fused_launch.h"
#include "sim/instruction_work.h"
#include "sim/links.h"

/* Links, and when the messages sent over them have arrived. */
typedef struct lines {
    sf_links links;
    double *end; /* by instruction; 0: it was not sent */
} lines;

typedef struct bounding {
    const sf_passing *passing;
    const sf_pass_scope *scope;
    sf_placing placing;
    uint32_t *raisers; /* by event: the instruction */
    double *seconds;   /* by instruction: its least time */
    double *start;     /* by instruction: when it begins */
    uint32_t *from;    /* by gather: the instruction before which it may begin */
    lines reductions, gathers, all;
} bounding;

static void send(const bounding *b, lines *l, uint32_t inst, double ready)
{
    const sf_inst *at = &b->scope->program->insts[inst];
    double start = ready;
    if (at->kind == SF_INST_COMM)
        start = sf_links_take(&l->links, b->passing->costs, at->exchange->axes, ready,
                              b->seconds[inst]);
    l->end[inst] = start + b->seconds[inst];
}

static bool is_gather(const bounding *b, uint32_t inst)
{
    return b->placing.gathers.is_gather[inst];
}

/* The first instruction from which on there is memory for it by itself. */
static uint32_t first_place(const bounding *b, uint32_t gather)
{
    int64_t room = b->passing->limit - b->scope->base - sf_placing_bytes(&b->placing, gather);
    uint32_t at = gather;
    while (at > 0 && b->scope->live[at - 1] <= room)
        at--;
    return at;
}

static void find_places(bounding *b)
{
    uint32_t least = (uint32_t)b->scope->program->ninsts;
    for (uint32_t i = least; i-- > 0;)
        if (is_gather(b, i)) {
            uint32_t first = first_place(b, i);
            least = first < least ? first : least;
            b->from[i] = least;
        }
}

/* The messages for which an instruction waits have arrived. */
static double await(bounding *b, const sf_inst *inst, double now)
{
    const sf_program *p = b->scope->program;
    for (uint32_t w = 0; w < inst->nwaits; w++) {
        uint32_t sent = b->raisers[inst->waits[w]];
        if (p->insts[sent].kind == SF_INST_COMM && b->all.end[sent] <= 0)
            send(b, &b->all, sent, 0);
        now = fmax(now, b->all.end[sent]);
        now = fmax(now, b->gathers.end[sent]);
        now = fmax(now, b->reductions.end[sent]);
    }
    return now;
}

static double walk(bounding *b)
{
    const sf_program *p = b->scope->program;
    double now = 0;
    for (uint32_t i = 0; i < p->ninsts; i++) {
        const sf_inst *inst = &p->insts[i];
        if (!sf_goes_beside(inst))
            now = await(b, inst, now);
        b->start[i] = now;
        if (is_gather(b, i))
            send(b, &b->gathers, i, b->start[b->from[i]]);
        else if (sf_goes_beside(inst))
            send(b, &b->reductions, i, now);
        else if (!b->placing.emission.lazy[i])
            now += b->seconds[i];
    }
    for (uint32_t i = 0; i < p->ninsts; i++)
        now = fmax(now, b->reductions.end[i]);
    return now;
}

/* The slowdown of compute by concurrent communication, in any order. */
static double add_drag(const bounding *b, double least)
{
    const sf_program *p = b->scope->program;
    double computed = 0, sent = 0;
    for (uint32_t i = 0; i < p->ninsts; i++) {
        computed += sf_goes_beside(&p->insts[i]) ? 0 : b->seconds[i];
        sent += p->insts[i].kind == SF_INST_COMM ? b->seconds[i] : 0;
    }
    least = fmax(least, computed);
    return least + sf_costs_drag(b->passing->costs) * fmax(0, sent - (least - computed));
}

/* Bytes of a gather take longest alone, and least as part of one of all gathers along the same
 * axes. */
static double share_of_one(const bounding *b, const sf_inst *gather)
{
    const sf_program *p = b->scope->program;
    double all = 0;
    for (uint32_t i = 0; i < p->ninsts; i++)
        if (is_gather(b, i) && p->insts[i].exchange->axes == gather->exchange->axes)
            all += sf_exchange_bytes(&p->insts[i]);
    return all > 0 ? sf_gather_seconds(b->passing, gather, all) / all : 0;
}

static void find_seconds(bounding *b)
{
    const sf_program *p = b->scope->program;
    sf_axes axes = 0;
    double share = -1; /* seconds of a byte, along the axes */
    for (uint32_t i = 0; i < p->ninsts; i++) {
        const sf_timing *t = &b->scope->sim->insts[i];
        b->seconds[i] = t->end - t->start;
        if (!is_gather(b, i))
            continue;
        if (share < 0 || axes != p->insts[i].exchange->axes)
            share = share_of_one(b, &p->insts[i]);
        axes = p->insts[i].exchange->axes;
        b->seconds[i] = fmin(b->seconds[i], share * sf_exchange_bytes(&p->insts[i]));
    }
}

/* The list without gathers, and without waits for them. `from` says where each was. */
static sf_program without_gathers(const bounding *b, uint32_t *from)
{
    sf_arena *arena = b->passing->scratch;
    sf_program out = *b->scope->program;
    out.insts = SF_ARRAY(arena, out.ninsts, sf_inst);
    out.ninsts = 0;
    for (uint32_t i = 0; i < b->scope->program->ninsts; i++) {
        sf_inst *inst = &out.insts[out.ninsts];
        if (is_gather(b, i))
            continue;
        *inst = b->scope->program->insts[i];
        inst->nwaits = 0;
        for (uint32_t w = 0; w < b->scope->program->insts[i].nwaits; w++)
            inst->nwaits += !is_gather(b, b->raisers[b->scope->program->insts[i].waits[w]]);
        from[out.ninsts++] = i;
    }
    return out;
}

/* Where gathers go from between small loops, these are launched as one. */
static void join_launches(bounding *b)
{
    sf_arena *arena = b->passing->scratch;
    uint32_t *from = SF_ARRAY(arena, b->scope->program->ninsts, uint32_t);
    sf_program p = without_gathers(b, from);
    const uint32_t *first = sf_fused_launches_of(&p, NULL, arena);
    for (uint32_t i = 0, end; i < p.ninsts; i = end) {
        double bytes = 0;
        for (end = i; end < p.ninsts && first[end] == i; end++)
            bytes += sf_inst_touched(&p.insts[end]);
        if (end == i + 1 || bytes <= 0)
            continue;
        double rate =
            sf_fused_launch_seconds(&p.insts[i], end - i, NULL, b->passing->costs) / bytes;
        for (uint32_t at = i; at < end; at++)
            b->seconds[from[at]] = fmin(b->seconds[from[at]], rate * sf_inst_touched(&p.insts[at]));
    }
}

static bounding bounding_of(const sf_passing *passing, const sf_pass_scope *scope)
{
    const sf_program *p = scope->program;
    sf_arena *arena = passing->scratch;
    bounding b = {.passing = passing,
                  .scope = scope,
                  .placing = sf_placing_of(passing, scope->program),
                  .raisers = SF_ARRAY(arena, p->nevents, uint32_t),
                  .seconds = SF_ARRAY(arena, p->ninsts, double),
                  .start = SF_ARRAY(arena, p->ninsts, double),
                  .from = SF_ARRAY(arena, p->ninsts, uint32_t),
                  .reductions = {.end = SF_ARRAY(arena, p->ninsts, double)},
                  .gathers = {.end = SF_ARRAY(arena, p->ninsts, double)},
                  .all = {.end = SF_ARRAY(arena, p->ninsts, double)}};
    for (uint32_t i = 0; i < p->ninsts; i++)
        if (p->insts[i].raises != SF_NONE)
            b.raisers[p->insts[i].raises] = i;
    find_seconds(&b);
    join_launches(&b);
    find_places(&b);
    return b;
}

double sf_least_seconds(const sf_passing *passing)
{
    sf_pass_scope *scopes;
    size_t count = sf_scopes_find(passing, passing->scratch, &scopes);
    double *least = SF_ARRAY(passing->scratch, count, double);
    for (size_t s = 0; s < count; s++) {
        bounding b = bounding_of(passing, &scopes[s]);
        for (size_t inner = 0; inner < s; inner++)
            if (scopes[inner].outer == scopes[s].program)
                b.seconds[scopes[inner].inst] -= scopes[inner].runs / scopes[s].runs *
                                                 (scopes[inner].sim->seconds - least[inner]);
        least[s] = add_drag(&b, walk(&b));
    }
    return least[count - 1];
}
