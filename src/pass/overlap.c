/* Splits a product and its collective into chunks, so that they overlap: the result of one chunk is
 * sent while the next is computed (collective matmul; asynchronous tensor parallelism). If a
 * collective follows a product, and each rank gets some of its rows, the rows of a chunk are
 * reduced when they are available; if a product follows a gather, it begins with the rows that have
 * arrived.
 *
 *     product -- reduce_scatter          product 0 | product 1 | product 2
 *                                        ......... | reduce 0  | reduce 1  | reduce 2
 *
 * Each chunk has rows of every block of the collective, so every element is summed in the same
 * order as without chunks: results are bitwise equal. A sum of two is, in any order, so there
 * chunks are contiguous rows.
 *
 * The number of chunks is chosen for each product, by the times of its chunks and those of the
 * collective and by the exposed time of the collective; one number for all of them is tried,
 * too. */
#include <math.h>

#include "base/units.h"
#include "pass/pass_scope.h"
#include "pass/passes.h"
#include "prog/edit_program.h"
#include "prog/instruction_deps.h"
#include "prog/split_instruction.h"
#include "sim/instruction_work.h"

enum { TURNS };

/* Fewer rows than this are no work for a kernel. */
enum { LEAST_ROWS = 4 };

static const uint32_t tried[] = {2, 4, 8, 16};
enum { TRIED = sizeof tried / sizeof *tried };
_Static_assert(SF_OVERLAP_WAYS == 1 + TRIED,
               "a way for each number of chunks, and one for the best");

/* A product beside a collective. */
typedef struct site {
    uint32_t product, exchange;
    bool gathers;    /* the collective comes first */
    uint32_t blocks; /* that rows of a chunk are taken from */
    uint32_t chunks; /* 0: it stays */
} site;

typedef struct overlapping {
    const sf_passing *passing;
    const sf_pass_scope *scope;
    sf_program *p;
    sf_deps deps;
    uint32_t *of_product; /* by instruction: the site that it is the product of, plus one */
    site *sites;
    size_t count, capacity;
} overlapping;

static bool can_be_cut(const sf_program *p, const sf_inst *inst)
{
    if (inst->kind != SF_INST_COMM || inst->piece || inst->nin != 1 || inst->nout != 1)
        return false;
    const sf_exchange *x = inst->exchange;
    bool kind = x->kind == SF_ALL_GATHER || (sf_inst_reduces(inst) && x->monoid == SF_MONOID_ADD);
    return kind && x->groups == 0 && x->size > 1 && sf_view_fills(p, inst->in) &&
           sf_view_fills(p, inst->out);
}

static bool touches(const sf_view *views, uint32_t count, uint32_t buffer)
{
    for (uint32_t i = 0; i < count; i++)
        if (views[i].buffer == buffer)
            return true;
    return false;
}

static bool makes_whole(const sf_program *p, const sf_inst *inst)
{
    for (uint32_t i = 0; i < inst->nout; i++)
        if (!sf_view_fills(p, &inst->out[i]))
            return false;
    return true;
}

/* The maker of the collective's operand, if no other instruction keeps the collective from
 * following it directly. */
static uint32_t product_before(const overlapping *o, uint32_t exchange)
{
    uint32_t last = 0, buffer = o->p->insts[exchange].in[0].buffer;
    for (uint32_t b = o->deps.first[exchange]; b < o->deps.first[exchange + 1]; b++)
        last = o->deps.before[b] > last ? o->deps.before[b] : last;
    const sf_inst *inst = &o->p->insts[last];
    bool makes = last < exchange && touches(inst->out, inst->nout, buffer);
    return makes && inst->kind == SF_INST_DOT ? last : SF_NONE;
}

/* Rows of the split operand are contiguous, and are those that the gather receives. */
static bool takes_rows(const sf_program *p, const sf_inst *product, uint32_t cut, uint32_t buffer)
{
    const sf_dot *d = product->dot;
    const sf_view *view = &product->in[cut];
    bool in_order =
        cut == 0 ? d->a_row == d->k && d->a_column == 1 : d->b_column == d->k && d->b_row == 1;
    return view->buffer == buffer && in_order && sf_view_fills(p, view) &&
           product->in[1 - cut].buffer != buffer &&
           !(product->nin > 2 && touches(product->in + 2, product->nin - 2, buffer));
}

/* The first reader of the gathered tensor. */
static uint32_t product_behind(const overlapping *o, uint32_t exchange)
{
    uint32_t buffer = o->p->insts[exchange].out[0].buffer, cut;
    for (uint32_t i = exchange + 1; i < o->p->ninsts; i++) {
        const sf_inst *inst = &o->p->insts[i];
        if (touches(inst->out, inst->nout, buffer))
            return SF_NONE;
        if (touches(inst->in, inst->nin, buffer))
            return sf_dot_can_cut(inst, 1, &cut) && takes_rows(o->p, inst, cut, buffer) ? i
                                                                                        : SF_NONE;
    }
    return SF_NONE;
}

static void find_sites(overlapping *o)
{
    for (uint32_t x = 0; x < o->p->ninsts; x++) {
        const sf_inst *inst = &o->p->insts[x];
        if (!can_be_cut(o->p, inst))
            continue;
        site s = {.exchange = x, .gathers = !sf_inst_reduces(inst)};
        bool alike = sf_collective_has_segments(inst->exchange->kind) && inst->exchange->size == 2;
        s.blocks = alike ? 1 : (uint32_t)inst->exchange->size;
        s.product = s.gathers ? product_behind(o, x) : product_before(o, x);
        if (s.product == SF_NONE || o->of_product[s.product] ||
            !makes_whole(o->p, &o->p->insts[s.product]))
            continue;
        SF_PUSH(o->passing->scratch, o->sites, o->count, o->capacity, s);
        o->of_product[s.product] = (uint32_t)o->count;
    }
}

/* Whether it can be done in so many chunks. */
static bool has_chunks(const overlapping *o, const site *s, uint32_t chunks)
{
    uint32_t cut;
    const sf_inst *product = &o->p->insts[s->product];
    if (!sf_dot_can_cut(product, s->blocks * chunks, &cut))
        return false;
    int64_t rows = cut == 0 ? product->dot->m : product->dot->n;
    return rows / (s->blocks * chunks) >= LEAST_ROWS;
}

/* Seconds of the product and of the exposed part of the collective, in so many chunks. The part
 * that overlapped with other instructions still does: it is free. */
static double seconds_in(const overlapping *o, const site *s, uint32_t chunks)
{
    const sf_inst *product = &o->p->insts[s->product], *exchange = &o->p->insts[s->exchange];
    const sf_timing *timing = &o->scope->sim->insts[s->exchange];
    const sf_costs *costs = o->passing->costs;
    sf_inst piece = sf_dot_piece(o->p, product, s->blocks * chunks, 0);
    double each = s->blocks * sf_inst_seconds(&piece, NULL, costs);
    double sent = sf_gather_seconds(o->passing, exchange, timing->bytes / chunks);
    double beside = timing->end - timing->start - timing->exposed;
    if (s->gathers) {
        double now = beside;
        for (uint32_t t = 1; t <= chunks; t++)
            now = fmax(now, t * sent) + each;
        return now - beside;
    }
    double link = 0;
    for (uint32_t t = 1; t <= chunks; t++)
        link = fmax(link, t * each) + sent;
    return fmax(chunks * each, link - beside);
}

static void choose_chunks(const overlapping *o, site *s, uint32_t wanted)
{
    double least = sf_inst_seconds(&o->p->insts[s->product], NULL, o->passing->costs) +
                   o->scope->sim->insts[s->exchange].exposed;
    for (int i = 0; i < TRIED; i++) {
        uint32_t chunks = wanted > 0 ? wanted : tried[i];
        if (!has_chunks(o, s, chunks))
            continue;
        double seconds = seconds_in(o, s, chunks);
        if (seconds >= least)
            continue;
        least = seconds;
        s->chunks = chunks;
    }
}

/* Applying */

/* The original instruction, to which its chunks refer: lists change. */
static const sf_inst *keep_inst(sf_program *p, uint32_t index)
{
    sf_inst *inst = sf_arena_copy(&p->arena, &p->insts[index], sizeof *inst);
    inst->in = sf_arena_copy(&p->arena, inst->in, inst->nin * sizeof *inst->in);
    inst->out = sf_arena_copy(&p->arena, inst->out, inst->nout * sizeof *inst->out);
    if (inst->kind == SF_INST_COMM)
        inst->exchange = sf_arena_copy(&p->arena, inst->exchange, sizeof *inst->exchange);
    return inst;
}

typedef struct listing {
    uint32_t *order;
    size_t count, capacity;
} listing;

static void put(const overlapping *o, listing *list, uint32_t inst)
{
    SF_PUSH(o->passing->scratch, list->order, list->count, list->capacity, inst);
}

static void put_rows(const overlapping *o, const site *s, const sf_inst *whole, uint32_t chunk,
                     listing *list)
{
    for (uint32_t b = 0; b < s->blocks; b++) {
        sf_inst piece = sf_dot_piece(o->p, whole, s->blocks * s->chunks, b * s->chunks + chunk);
        put(o, list, sf_program_add(o->p, &piece));
    }
}

static void put_turn(const overlapping *o, const site *s, const sf_inst *whole, uint32_t chunk,
                     listing *list)
{
    sf_cells some = {s->chunks, chunk, 1, 1}, of_all = some;
    if (s->blocks > 1)
        of_all = (sf_cells){s->blocks * s->chunks, chunk, s->chunks, s->blocks};
    const sf_collective_info *info = sf_collective_get(whole->exchange->kind);
    sf_inst piece = sf_exchange_piece(o->p, whole, info->reduces ? of_all : some,
                                      info->gathers ? of_all : some);
    put(o, list, sf_program_add(o->p, &piece));
}

/* A gather in chunks in place of the original, and the product in place of its original; or both in
 * place of the product. */
static void put_site(const overlapping *o, const site *s, uint32_t index, listing *list)
{
    const sf_inst *product = index == s->product ? keep_inst(o->p, s->product) : NULL;
    bool sends = index == s->exchange || !s->gathers;
    const sf_inst *exchange = sends ? keep_inst(o->p, s->exchange) : NULL;
    if (!product && !s->gathers)
        return;
    for (uint32_t t = 0; t < s->chunks; t++) {
        if (product)
            put_rows(o, s, product, t, list);
        if (sends)
            put_turn(o, s, exchange, t, list);
    }
}

static void apply(overlapping *o)
{
    size_t count = o->p->ninsts;
    const site **at = SF_ARRAY(o->passing->scratch, count, const site *);
    listing list = {0};
    for (size_t i = 0; i < o->count; i++)
        if (o->sites[i].chunks > 0)
            at[o->sites[i].product] = at[o->sites[i].exchange] = &o->sites[i];
    for (uint32_t i = 0; i < count; i++)
        if (at[i])
            put_site(o, at[i], i, &list);
        else
            put(o, &list, i);
    sf_program_arrange(o->p, list.order, list.count);
}

static uint32_t wanted_chunks(const sf_passing *passing)
{
    if (!isnan(passing->options[TURNS]))
        return (uint32_t)fmin(fmax(passing->options[TURNS], 2), 1024);
    return passing->variant > 0 ? tried[passing->variant - 1] : 0;
}

static void overlap_scope(const sf_passing *passing, const sf_pass_scope *scope, size_t *done,
                          uint32_t *most)
{
    overlapping o = {.passing = passing, .scope = scope, .p = scope->program};
    o.deps = sf_deps_of(o.p, passing->scratch);
    o.of_product = SF_ARRAY(passing->scratch, o.p->ninsts, uint32_t);
    find_sites(&o);
    size_t before = *done;
    for (size_t i = 0; i < o.count; i++) {
        choose_chunks(&o, &o.sites[i], wanted_chunks(passing));
        *done += o.sites[i].chunks > 0;
        *most = o.sites[i].chunks > *most ? o.sites[i].chunks : *most;
    }
    if (*done > before)
        apply(&o);
}

sf_status sf_pass_overlap(sf_passing *passing)
{
    sf_pass_scope *scopes;
    size_t count = sf_scopes_find(passing, passing->scratch, &scopes), done = 0;
    uint32_t most = 0;
    for (size_t s = 0; s < count; s++)
        overlap_scope(passing, &scopes[s], &done, &most);
    sf_buf_printf(passing->note, "%zu product%s in chunks with %s collective", done,
                  sf_plural(done), done == 1 ? "its" : "their");
    if (done != 1)
        sf_buf_puts(passing->note, "s");
    if (done > 0)
        sf_buf_printf(passing->note, ", up to %u", most);
    return SF_OK;
}
