/* Selective unshard (DeepCompile, section 4.3): free memory keeps gathered tensors, so that they
 * need not be gathered once more. Within a scope, the backward pass reads tensors that the forward
 * pass gathered. A body of a loop reads tensors that were gathered before the loop. The one that
 * saves most time per byte goes first; each is checked against the memory limit at every
 * instruction over which it lives longer.
 *
 * Time is that of the collectives, as in the paper, or their exposed time, with or without gathers
 * before loops, where they are exposed: all ways are tried. Content hashes (prog/buffer_content.h)
 * determine which gathers make the same. unshard_apply.c applies the decision. */
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "pass/passes.h"
#include "pass/unsharding.h"
#include "prog/buffer_content.h"
#include "sim/instruction_work.h"

typedef struct choosing {
    unsharding u;
    sf_content ***contents; /* by scope, of its instructions */
    uint32_t **last;        /* by scope: by buffer, the last that reads it, plus one */
    int64_t **more;         /* by scope: by instruction, bytes that live because of the choice */
} choosing;

static const sf_inst *inst_of(const choosing *c, size_t s, gather_part at)
{
    return &c->u.scopes[s].program->insts[at.inst];
}

/* The contents of a scope's arguments: of a body, those of its surroundings. */
static const sf_content *arguments_of(const choosing *c, const sf_pass_scope *scope)
{
    if (!scope->outer)
        return NULL;
    return sf_contents_of_body(scope->outer, arguments_of(c, scope->around), scope->inst,
                               c->u.arena);
}

static void read_scope(choosing *c, size_t s)
{
    const sf_pass_scope *scope = &c->u.scopes[s];
    const sf_program *p = scope->program;
    c->u.gathers[s] = sf_gathers_find(p, c->u.arena);
    c->u.gone[s] = SF_ARRAY(c->u.arena, p->ninsts, bool *);
    c->last[s] = SF_ARRAY(c->u.arena, p->nbuffers, uint32_t);
    c->more[s] = SF_ARRAY(c->u.arena, p->ninsts, int64_t);
    for (uint32_t i = 0; i < p->ninsts; i++)
        for (uint32_t j = 0; j < p->insts[i].nin; j++)
            c->last[s][p->insts[i].in[j].buffer] = i + 1;
    if (c->u.gathers[s].count > 0)
        c->contents[s] = sf_contents_of(p, arguments_of(c, scope), c->u.arena);
}

/* Candidates */

static keeping *find_keeping(choosing *c, size_t first, size_t s, sf_content content)
{
    unsharding *u = &c->u;
    for (size_t i = first; i < u->count; i++)
        if (u->list[i].content == content)
            return &u->list[i];
    SF_PUSH(u->arena, u->list, u->count, u->capacity, ((keeping){.scope = s, .content = content}));
    return &u->list[u->count - 1];
}

static int64_t part_bytes(const choosing *c, size_t s, gather_part at)
{
    const sf_program *p = c->u.scopes[s].program;
    int64_t grain = p->target->align;
    return (p->buffers[p->insts[at.inst].out[at.part].buffer].bytes + grain - 1) / grain * grain;
}

/* Seconds that a part of a collective takes, or that are waited for it. */
static double part_seconds(const choosing *c, size_t s, gather_part at)
{
    const sf_inst *inst = inst_of(c, s, at);
    const sf_timing *timing = &c->u.scopes[s].sim->insts[at.inst];
    double bytes = (double)part_bytes(c, s, at), all = sf_exchange_bytes(inst);
    if (c->u.passing->variant % 2 == 1)
        return all > 0 ? timing->exposed * bytes / all : 0;
    return sf_gather_seconds(c->u.passing, inst, bytes);
}

static void list_candidates(choosing *c, size_t s)
{
    const sf_pass_scope *scope = &c->u.scopes[s];
    size_t first = c->u.count;
    for (uint32_t i = 0; i < scope->program->ninsts; i++)
        for (uint32_t j = 0; c->u.gathers[s].is_gather[i] && j < scope->program->insts[i].nout;
             j++) {
            gather_part at = {i, j};
            keeping *k = find_keeping(c, first, s, c->contents[s][i][j]);
            SF_PUSH(c->u.arena, k->at, k->count, k->capacity, at);
            k->bytes = part_bytes(c, s, at);
            k->seconds += part_seconds(c, s, at);
            k->hoists =
                c->u.passing->variant % SF_UNSHARD_WAYS < 2 && unshard_can_hoist(&c->u, s, at);
        }
}

/* The time saved in a step: that of all but one gather, of the loop or of each run of the scope. */
static double saving_of(const choosing *c, const keeping *k)
{
    const sf_pass_scope *scope = &c->u.scopes[k->scope];
    double each = k->seconds / (double)k->count,
           once = k->hoists ? scope->around->runs : scope->runs;
    return each * (scope->runs * (double)k->count - once);
}

static int most_for_a_byte_first(const void *a, const void *b)
{
    const keeping *x = a, *y = b;
    double left = x->saving * y->price, right = y->saving * x->price;
    if (left != right)
        return left > right ? -1 : 1;
    if (x->scope != y->scope)
        return x->scope < y->scope ? -1 : 1;
    if (x->at[0].inst != y->at[0].inst)
        return x->at[0].inst < y->at[0].inst ? -1 : 1;
    return (x->at[0].part > y->at[0].part) - (x->at[0].part < y->at[0].part);
}

/* Memory */

static int64_t bytes_around(const choosing *c, size_t s)
{
    int64_t bytes = c->u.scopes[s].base;
    for (const sf_pass_scope *at = &c->u.scopes[s]; at->around; at = at->around)
        bytes += c->more[unshard_scope_of(&c->u, at->outer)][at->inst];
    return bytes;
}

/* Whether so many bytes more fit while the instructions run. */
static bool fits(const choosing *c, size_t s, uint32_t from, uint32_t end, int64_t bytes)
{
    int64_t room = c->u.passing->limit - bytes_around(c, s) - bytes;
    for (uint32_t i = from; i < end; i++)
        if (c->u.scopes[s].live[i] + c->more[s][i] > room)
            return false;
    return true;
}

/* The last instruction that reads it, plus one. */
static uint32_t end_of(const choosing *c, size_t s, gather_part at)
{
    uint32_t last = c->last[s][inst_of(c, s, at)->out[at.part].buffer];
    return last > at.inst ? last : at.inst + 1;
}

static void leave_out(choosing *c, size_t s, gather_part at)
{
    bool **gone = &c->u.gone[s][at.inst];
    if (!*gone)
        *gone = SF_ARRAY(c->u.arena, inst_of(c, s, at)->nout, bool);
    (*gone)[at.part] = true;
    c->u.dropped++;
}

/* In other orders, short-lived tensors go first: they block fewer others. */
static void price_keeping(const choosing *c, keeping *k)
{
    uint32_t end = end_of(c, k->scope, k->at[k->count - 1]);
    k->saving = saving_of(c, k);
    k->price = (double)k->bytes;
    if (c->u.passing->variant >= SF_UNSHARD_WAYS && !k->hoists)
        k->price *= (double)(end - k->at[0].inst);
}

/* Within a scope, the next reads the first's, as far as memory goes. */
static void keep_in_scope(choosing *c, const keeping *k)
{
    sf_program *p = c->u.scopes[k->scope].program;
    gather_part held = k->at[0];
    uint32_t end = end_of(c, k->scope, held);
    for (size_t i = 1; i < k->count; i++) {
        gather_part recomputed = k->at[i];
        uint32_t own = end_of(c, k->scope, recomputed);
        if (end < recomputed.inst && !fits(c, k->scope, end, recomputed.inst, k->bytes)) {
            held = recomputed;
            end = own;
            continue;
        }
        for (uint32_t j = end; j < recomputed.inst; j++)
            c->more[k->scope][j] += k->bytes;
        sf_program_read_instead(p, recomputed.inst,
                                p->insts[recomputed.inst].out[recomputed.part].buffer,
                                p->insts[held.inst].out[held.part].buffer);
        leave_out(c, k->scope, recomputed);
        end = own > end ? own : end;
        c->u.kept++;
    }
}

/* While the loop runs, it is in memory; the body's own is not. */
static void add_hoisted(choosing *c, const keeping *k, int64_t sign)
{
    const sf_pass_scope *scope = &c->u.scopes[k->scope];
    c->more[unshard_scope_of(&c->u, scope->outer)][scope->inst] += sign * k->bytes;
    for (size_t g = 0; g < k->count; g++)
        for (uint32_t i = k->at[g].inst; i < end_of(c, k->scope, k->at[g]); i++)
            c->more[k->scope][i] -= sign * k->bytes;
}

static void hoist(choosing *c, keeping *k)
{
    const sf_pass_scope *scope = &c->u.scopes[k->scope];
    add_hoisted(c, k, 1);
    if (!fits(c, k->scope, 0, (uint32_t)scope->program->ninsts, 0)) {
        add_hoisted(c, k, -1);
        k->hoists = false;
        keep_in_scope(c, k);
        return;
    }
    for (size_t g = 0; g < k->count; g++)
        leave_out(c, k->scope, k->at[g]);
    k->chosen = true;
    c->u.hoisted++;
}

static void choose(choosing *c, uint64_t allowed)
{
    unsharding *u = &c->u;
    size_t some = 0; /* that would save time; those whose bit is not set are left as they are */
    for (size_t i = 0; i < u->count; i++) {
        keeping *k = &u->list[i];
        price_keeping(c, k);
        if (k->saving > 0 && some < 64 && !(allowed >> some++ & 1))
            k->saving = 0;
    }
    u->savings = some;
    if (u->count > 0)
        qsort(u->list, u->count, sizeof *u->list, most_for_a_byte_first);
    for (size_t i = 0; i < u->count; i++) {
        keeping *k = &u->list[i];
        if (k->saving <= 0)
            continue;
        if (k->hoists)
            hoist(c, k);
        else
            keep_in_scope(c, k);
    }
}

size_t unshard_some(const sf_passing *passing, uint64_t allowed)
{
    choosing c = {.u = {.passing = passing, .arena = passing->scratch}};
    unsharding *u = &c.u;
    u->nscopes = sf_scopes_find(passing, u->arena, &u->scopes);
    u->gathers = SF_ARRAY(u->arena, u->nscopes, sf_gathers);
    u->gone = SF_ARRAY(u->arena, u->nscopes, bool **);
    c.contents = SF_ARRAY(u->arena, u->nscopes, sf_content **);
    c.last = SF_ARRAY(u->arena, u->nscopes, uint32_t *);
    c.more = SF_ARRAY(u->arena, u->nscopes, int64_t *);
    for (size_t s = 0; s < u->nscopes; s++)
        read_scope(&c, s);
    for (size_t s = 0; s < u->nscopes; s++)
        list_candidates(&c, s);
    choose(&c, allowed);
    unshard_apply(u);
    sf_buf_printf(passing->note,
                  "%zu gather%s left out: %zu kept for the backward pass, %zu before the loop",
                  u->dropped, sf_plural(u->dropped), u->kept, u->hoisted);
    return u->savings;
}

sf_status sf_pass_unshard(sf_passing *passing)
{
    unshard_some(passing, UINT64_MAX);
    return SF_OK;
}
