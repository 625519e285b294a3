/* The data of a page. Long lists are columns, and texts that repeat are numbers in a list of texts, so that a step of a
 * hundred layers stays small: docs/reference/cli.md has the keys. */
#include <math.h>

#include "base/json.h"
#include "report/page/page.h"
#include "report/report_passes.h"
#include "report/report_time.h"
#include "report/text_index.h"

/* Texts, each once. */
typedef struct texts {
    sf_page *page;
    sf_index index;
    const char **at;
    size_t count, capacity;
} texts;

static int64_t number_of(texts *t, const char *text)
{
    sf_arena *arena = &t->page->sim.arena;
    uint32_t number = sf_index_find(&t->index, text, SF_NONE);
    if (number != SF_NONE)
        return number;
    const char *shown = sf_page_shown(t->page, text);
    sf_index_add(&t->index, arena, text, (uint32_t)t->count);
    SF_PUSH(arena, t->at, t->count, t->capacity, shown);
    return (int64_t)t->count - 1;
}

/* To four digits: columns are long. */
static void put_short(sf_json_writer *json, double value)
{
    if (value == 0 || !isfinite(value)) {
        sf_json_put_int(json, 0);
        return;
    }
    double unit = pow(10, floor(log10(fabs(value))) - 3);
    double rounded = round(value / unit) * unit;
    if (fabs(value) >= 1000 && fabs(value) < 9e15)
        sf_json_put_int(json, (int64_t)rounded);
    else
        sf_json_put_double(json, rounded);
}

static int64_t nanoseconds(double seconds)
{
    return (int64_t)fmin(fmax(round(1e9 * seconds), 0), 9e15);
}

static void put_head(const sf_page *page, sf_json_writer *json)
{
    const sf_sim_report *r = &page->sim;
    sf_json_add_string(json, "format", "sheaf report");
    sf_json_add_int(json, "version", 1);
    sf_json_add_string(json, "title", page->title);
    sf_json_key(json, "step");
    sf_json_begin_object(json);
    sf_json_add_string(json, "name", sf_page_shown((sf_page *)page, r->graph->name));
    sf_json_add_hex(json, "hash", page->summary.hash);
    sf_json_add_int(json, "nodes", page->summary.total.nodes);
    sf_json_add_double(json, "flops", page->summary.total.flops);
    sf_json_add_int(json, "parameters", page->summary.roles[SF_ROLE_PARAM].elements);
    sf_json_end_object(json);
    sf_json_key(json, "plan");
    sf_json_begin_object(json);
    sf_json_key(json, "words");
    sf_json_begin_row(json);
    for (size_t i = 0; i < page->nwords; i++)
        sf_json_put_string(json, page->words[i]);
    sf_json_end_array(json);
    sf_json_add_string(json, "made_by", page->made_by);
    sf_json_add_int(json, "ranks", sf_mesh_size(&r->plan->mesh));
    sf_json_key(json, "mesh");
    sf_mesh_put_json(&r->plan->mesh, json);
    sf_in_time_json(r->plan, r->graph, json);
    sf_json_add_double(json, "repeated", page->repeated);
    if (r->plan->passes.memory > 0)
        sf_json_add_int(json, "pass_memory", r->plan->passes.memory);
    sf_json_end_object(json);
    sf_json_add_string(json, "cluster", sf_page_shown((sf_page *)page, r->cluster->name));
}

static void put_time(const sf_page *page, sf_json_writer *json)
{
    const sf_sim_report *r = &page->sim;
    sf_json_key(json, "time");
    sf_json_begin_object(json);
    sf_json_add_double(json, "seconds", r->sim.seconds);
    sf_json_add_double(json, "compute", r->sim.compute);
    sf_json_add_double(json, "exposed", r->sim.exposed);
    sf_json_add_double(json, "hidden", r->sim.hidden);
    sf_json_add_double(json, "bound", page->bound);
    sf_json_add_double(json, "flops", r->flops);
    sf_json_add_double(json, "mfu", r->sim.seconds > 0 ? r->best / r->sim.seconds : 0);
    sf_json_add_double(json, "traffic", r->price.traffic);
    if (r->timed) {
        sf_json_add_double(json, "measured", r->timed_seconds);
        sf_json_add_double(json, "measured_exposed", r->timed_waits);
    }
    sf_json_end_object(json);
}

static void put_memory(const sf_page *page, sf_json_writer *json)
{
    const sf_price *price = &page->sim.price;
    sf_json_key(json, "memory");
    sf_json_begin_object(json);
    sf_json_add_int(json, "peak", price->memory);
    sf_json_add_int(json, "limit", page->limit);
    sf_json_add_bool(json, "fits", price->memory <= page->limit);
    sf_json_add_string(json, "where", page->peak);
    sf_json_key(json, "kinds");
    sf_json_begin_object(json);
    for (int k = 0; k < SF_MEMORY_KIND_COUNT; k++)
        sf_json_add_int(json, sf_memory_kind_name((sf_memory_kind)k), price->by_kind[k]);
    sf_json_end_object(json);
    sf_json_end_object(json);
}

/* Groups of ranks -------------------------------------------------------------------------------- */

/* Columns of spans: each begins so long after the one before it in the list began, or before. */
typedef enum column { STREAM, START, LENGTH, NAME, SCOPE, PHASE, BYTES, EXPOSED, COUNT } column;

static int64_t span_field(texts *t, const sf_page_span *span, const sf_page_span *before,
                          column field)
{
    switch (field) {
    case STREAM:
        return span->stream;
    case START:
        return nanoseconds(span->start) - (before ? nanoseconds(before->start) : 0);
    case LENGTH:
        return nanoseconds(span->length);
    case NAME:
        return number_of(t, span->name);
    case SCOPE:
        return number_of(t, span->scope);
    case PHASE:
        return span->phase;
    case BYTES:
        return (int64_t)fmin(span->bytes, 9e15);
    case EXPOSED:
        return nanoseconds(span->exposed);
    case COUNT:
        return span->count;
    }
    return 0;
}

/* A column that is mostly zero is a list of places and values. */
static void put_column(texts *t, const sf_rank_group *g, column field, const char *key,
                       sf_json_writer *json)
{
    bool sparse = field == BYTES || field == EXPOSED || field == COUNT;
    int64_t usual = field == COUNT ? 1 : 0;
    sf_json_key(json, key);
    sf_json_begin_row(json);
    for (size_t i = 0; i < g->nspans; i++) {
        int64_t value = span_field(t, &g->spans[i], i > 0 ? &g->spans[i - 1] : NULL, field);
        if (sparse && value == usual)
            continue;
        if (sparse)
            sf_json_put_int(json, (int64_t)i);
        sf_json_put_int(json, value);
    }
    sf_json_end_array(json);
}

static void put_spans(texts *t, const sf_rank_group *g, sf_json_writer *json)
{
    static const char *const keys[] = {"stream", "start", "length",  "name", "scope",
                                       "phase",  "bytes", "exposed", "count"};
    sf_json_key(json, "spans");
    sf_json_begin_object(json);
    for (int c = STREAM; c <= COUNT; c++)
        put_column(t, g, (column)c, keys[c], json);
    sf_json_end_object(json);
}

/* Of kinds that are there at all. */
static void put_held(const sf_rank_group *g, sf_json_writer *json)
{
    sf_json_key(json, "memory");
    sf_json_begin_object(json);
    sf_json_key(json, "at");
    sf_json_begin_row(json);
    for (size_t i = 0; i < g->nheld; i++)
        sf_json_put_int(json, nanoseconds(g->held[i].at));
    sf_json_end_array(json);
    sf_json_key(json, "kinds");
    sf_json_begin_object(json);
    for (int k = 0; k < SF_MEMORY_KIND_COUNT; k++) {
        double most = 0;
        for (size_t i = 0; i < g->nheld; i++)
            most = fmax(most, g->held[i].bytes[k]);
        if (most == 0)
            continue;
        sf_json_key(json, sf_memory_kind_name((sf_memory_kind)k));
        sf_json_begin_row(json);
        for (size_t i = 0; i < g->nheld; i++)
            sf_json_put_int(json, (int64_t)fmin(g->held[i].bytes[k], 9e15));
        sf_json_end_array(json);
    }
    sf_json_end_object(json);
    sf_json_end_object(json);
}

static void put_stages(const sf_rank_group *g, sf_json_writer *json)
{
    sf_json_key(json, "stages");
    sf_json_begin_row(json);
    for (uint32_t s = 0; s < g->nstages; s++)
        sf_json_put_int(json, g->stages[s]);
    sf_json_end_array(json);
}

static void put_groups(texts *t, sf_json_writer *json)
{
    sf_page *page = t->page;
    sf_json_key(json, "groups");
    sf_json_begin_array(json);
    for (size_t i = 0; i < page->ngroups; i++) {
        const sf_rank_group *g = &page->groups[i];
        sf_json_begin_object(json);
        sf_json_add_string(json, "name", g->name);
        sf_json_add_int(json, "first", g->first);
        sf_json_add_int(json, "ranks", g->count);
        sf_json_add_bool(json, "measured", g->measured);
        if (g->nstages > 0)
            put_stages(g, json);
        sf_json_key(json, "streams");
        sf_json_begin_row(json);
        for (size_t s = 0; s < g->nstreams; s++)
            sf_json_put_string(json, sf_page_stream(page, &g->streams[s]));
        sf_json_end_array(json);
        put_spans(t, g, json);
        put_held(g, json);
        sf_json_end_object(json);
    }
    sf_json_end_array(json);
}

/* Communication ---------------------------------------------------------------------------------- */

static void put_collectives(const sf_page *page, sf_json_writer *json)
{
    const sf_sim_report *r = &page->sim;
    sf_json_key(json, "collectives");
    sf_json_begin_array(json);
    for (size_t i = 0; i < r->ncomms; i++) {
        sf_json_begin_object(json);
        sf_sim_put_comm(r, &r->comms[i], json);
        sf_json_add_int(json, "level", r->comms[i].level);
        sf_json_add_int(json, "links", sf_costs_group_links(r->costs, r->comms[i].axes));
        sf_json_end_object(json);
    }
    sf_json_end_array(json);
}

static void put_traffic(const sf_page *page, sf_json_writer *json)
{
    const sf_page_traffic *t = &page->traffic;
    sf_json_key(json, "traffic");
    sf_json_begin_object(json);
    sf_json_add_int(json, "rows", t->nrows);
    sf_json_add_int(json, "ranks_in_row", t->per_row);
    sf_json_add_bool(json, "hosts", t->hosts);
    sf_json_key(json, "levels");
    sf_json_begin_row(json);
    for (int l = 0; l < SF_LEVELS; l++)
        sf_json_put_string(json, sf_level_name(l));
    sf_json_end_array(json);
    sf_json_key(json, "sent");
    sf_json_begin_row(json);
    for (int l = 0; l < SF_LEVELS; l++)
        put_short(json, t->sent[l]);
    sf_json_end_array(json);
    sf_json_key(json, "cells"); /* row, column, level, bytes */
    sf_json_begin_row(json);
    for (int i = 0; i < t->nrows * t->nrows; i++) {
        if (t->levels[i] < 0)
            continue;
        sf_json_put_int(json, i / t->nrows);
        sf_json_put_int(json, i % t->nrows);
        sf_json_put_int(json, t->levels[i]);
        put_short(json, t->bytes[i]);
    }
    sf_json_end_array(json);
    sf_json_end_object(json);
}

/* Scopes ----------------------------------------------------------------------------------------- */

static void put_tensors(texts *t, const sf_page_scope *scope, sf_json_writer *json)
{
    sf_json_begin_row(json);
    for (size_t i = 0; i < scope->ntensors; i++) {
        const sf_page_tensor *tensor = &scope->tensors[i];
        sf_json_put_int(json, number_of(t, tensor->name));
        sf_json_put_int(json, number_of(t, tensor->type));
        sf_json_put_int(json, number_of(t, tensor->layout));
        sf_json_put_int(json, number_of(t, tensor->gradient));
        sf_json_put_int(json, number_of(t, tensor->state));
        sf_json_put_int(json, (int64_t)fmin(tensor->bytes, 9e15));
    }
    sf_json_end_array(json);
}

static void put_scopes(texts *t, sf_json_writer *json)
{
    const sf_page *page = t->page;
    sf_json_key(
        json,
        "scopes"); /* each: parent, name, parameters, flops, seconds, waits, held, made, tensors */
    sf_json_begin_array(json);
    for (uint32_t i = 0; i < page->summary.nscopes; i++) {
        const sf_scope_cost *cost = &page->summary.scopes[i];
        const sf_page_scope *scope = &page->scopes[i];
        sf_json_begin_row(json);
        sf_json_put_int(json, i == 0 ? -1 : (int64_t)cost->parent);
        sf_json_put_int(json, number_of(t, cost->scope->name));
        sf_json_put_int(json, cost->parameters);
        put_short(json, cost->all.flops);
        put_short(json, scope->seconds);
        put_short(json, scope->waits);
        put_short(json, scope->held);
        sf_json_put_int(json, number_of(t, scope->made));
        put_tensors(t, scope, json);
        sf_json_end_array(json);
    }
    sf_json_end_array(json);
}

/* Other parts
 * ------------------------------------------------------------------------------------ */

static void put_others(sf_page *page, const char *key, const sf_page_other *others, size_t count,
                       sf_json_writer *json)
{
    sf_json_key(json, key);
    sf_json_begin_array(json);
    for (size_t i = 0; i < count; i++) {
        const sf_page_other *o = &others[i];
        sf_json_begin_object(json);
        if (*o->name) {
            sf_json_add_string(json, "name", sf_page_shown(page, o->name));
            sf_json_add_string(json, "mesh", sf_page_shown(page, o->mesh));
        } else {
            sf_json_add_string(json, "recompute", sf_page_shown(page, o->recompute));
            sf_json_add_int(json, "micro_batches", o->micro_batches);
        }
        if (o->status != SF_OK) {
            sf_json_add_string(json, "refused", sf_page_shown(page, o->why));
        } else {
            sf_json_add_double(json, "seconds", o->seconds);
            sf_json_add_int(json, "memory", o->memory);
            sf_json_add_bool(json, "fits", o->fits);
            sf_json_add_bool(json, "exact", o->exact);
            sf_json_add_bool(json, "chosen", o->chosen);
        }
        sf_json_end_object(json);
    }
    sf_json_end_array(json);
}

static void put_measured(const sf_page *page, sf_json_writer *json)
{
    const sf_sim_report *r = &page->sim;
    if (!r->timed)
        return;
    sf_json_key(json, "measured");
    sf_json_begin_array(json);
    for (int k = 0; k < SF_INST_KIND_COUNT; k++) {
        if (r->kinds[k].count == 0)
            continue;
        sf_json_begin_object(json);
        sf_json_add_string(json, "kind", sf_inst_kind_name((sf_inst_kind)k));
        sf_json_add_double(json, "simulated", r->kinds[k].seconds);
        sf_json_add_double(json, "measured", r->timed_kinds[k]);
        sf_json_end_object(json);
    }
    sf_json_end_array(json);
}

static void put_differences(const sf_page *page, sf_json_writer *json)
{
    enum { MOST = 12 };
    const sf_sim_report *r = &page->sim;
    sf_json_key(json, "differences");
    sf_json_begin_array(json);
    for (size_t i = 0; i < r->program->ninsts && i < MOST; i++) {
        const sf_timing *sim = &r->sim.insts[r->differing[i]], *timed = &r->timed[r->differing[i]];
        const sf_origin *origin = &r->program->insts[r->differing[i]].origin;
        sf_json_begin_object(json);
        sf_json_add_string(json, "op", sf_page_shown((sf_page *)page, origin->op));
        sf_json_add_string(json, "phase", sf_phase_name(origin->phase));
        sf_json_add_string(json, "scope", sf_page_shown((sf_page *)page, origin->scope));
        sf_json_add_double(json, "simulated", sim->end - sim->start);
        sf_json_add_double(json, "measured", timed->end - timed->start);
        sf_json_end_object(json);
    }
    sf_json_end_array(json);
}

/* The primitives of a schedule in Lua, line by line. */
static void put_schedule(const sf_page *page, sf_json_writer *json)
{
    const sf_plan *plan = page->sim.plan;
    sf_json_key(json, "schedule");
    sf_json_begin_array(json);
    for (size_t i = 0; i < plan->nsaid; i++)
        sf_json_put_string(json, plan->said[i]);
    sf_json_end_array(json);
}

static void put_texts(const texts *t, sf_json_writer *json)
{
    sf_json_key(json, "texts");
    sf_json_begin_row(json);
    for (size_t i = 0; i < t->count; i++)
        sf_json_put_string(json, t->at[i]);
    sf_json_end_array(json);
}

void sf_page_json(sf_page *page, bool indent, sf_buf *out)
{
    sf_json_writer json = {.buf = out, .indent = indent};
    texts t = {.page = page};
    sf_json_begin_object(&json);
    put_head(page, &json);
    put_time(page, &json);
    put_memory(page, &json);
    sf_outcomes_put(&page->sim.runs.at[page->sim.runs.busiest], &json);
    put_collectives(page, &json);
    put_traffic(page, &json);
    put_others(page, "frontier", page->frontier, page->nfrontier, &json);
    put_others(page, "recipes", page->recipes, page->nrecipes, &json);
    sf_json_add_string(&json, "recipes_from", page->recipes_from);
    put_schedule(page, &json);
    put_measured(page, &json);
    if (page->sim.timed)
        put_differences(page, &json);
    put_groups(&t, &json);
    put_scopes(&t, &json);
    put_texts(&t, &json);
    sf_json_end_object(&json);
    if (indent)
        sf_buf_putc(out, '\n');
}
