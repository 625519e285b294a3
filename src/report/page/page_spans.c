/* The timeline of ranks with equal programs, and their memory over time.
 *
 * Loops over micro-batches, and other short loops, are shown iteration by iteration: the body was
 * simulated once, and every iteration is like it. */
#include <math.h>
#include <stdlib.h>

#include "report/page/page.h"

/* A page shows no more spans and points than this: short spans beside each other become one, and of points close to each
 * other the highest stays. Loops are shown iteration by iteration up to so many instructions in all. */
enum { MOST_SPANS = 24000, MOST_POINTS = 1600, MOST_ITERATIONS = 40000 };

typedef struct walk {
    sf_page *page;
    sf_rank_group *group;
    size_t iterated;
} walk;

static uint32_t stream_of(walk *w, const sf_stream *stream)
{
    sf_rank_group *g = w->group;
    for (uint32_t s = 0; s < g->nstreams; s++)
        if (g->streams[s].kind == stream->kind && g->streams[s].axes == stream->axes &&
            g->streams[s].to == stream->to)
            return s;
    SF_PUSH(&w->page->sim.arena, g->streams, g->nstreams, g->stream_capacity, *stream);
    return (uint32_t)g->nstreams - 1;
}

static void add_span(walk *w, const sf_program *p, uint32_t index, const sf_timing *t,
                     double offset)
{
    sf_rank_group *g = w->group;
    const sf_inst *inst = &p->insts[index];
    bool sends = sf_goes_beside(inst);
    sf_page_span span = {.stream = stream_of(w, &p->streams[inst->stream]),
                         .start = offset + t->start,
                         .length = fmax(t->end - t->start, 0),
                         .name = inst->kind == SF_INST_COMM ? sf_exchange_name(inst->exchange)
                                 : *inst->origin.op         ? inst->origin.op
                                                            : sf_inst_kind_name(inst->kind),
                         .scope = inst->origin.scope,
                         .phase = inst->origin.phase,
                         .kind = inst->kind,
                         .bytes = sends ? t->bytes : 0,
                         .exposed = sends ? t->exposed : 0,
                         .count = 1};
    SF_PUSH(&w->page->sim.arena, g->spans, g->nspans, g->span_capacity, span);
}

/* How often a loop is shown; 0: as one span. */
static int64_t iterations_to_show(walk *w, const sf_inst *inst)
{
    if (inst->kind != SF_INST_WHILE || inst->nest->nbodies != 2)
        return 0;
    double iterations = round(inst->nest->runs[1]);
    size_t each = inst->nest->bodies[1]->ninsts + 1;
    if (!(iterations >= 1) || iterations * (double)each > (double)(MOST_ITERATIONS - w->iterated))
        return 0;
    w->iterated += (size_t)iterations * each;
    return (int64_t)iterations;
}

static void add_spans(walk *w, const sf_program *p, const sf_timing *insts, sf_simulation **bodies,
                      double offset)
{
    for (uint32_t i = 0; i < p->ninsts; i++) {
        int64_t iterations = bodies && bodies[i] ? iterations_to_show(w, &p->insts[i]) : 0;
        if (iterations == 0) {
            add_span(w, p, i, &insts[i], offset);
            continue;
        }
        const sf_program *body = p->insts[i].nest->bodies[1];
        const sf_simulation *cond = &bodies[i][0], *iteration = &bodies[i][1];
        double at = offset + insts[i].start;
        for (int64_t t = 0; t < iterations; t++, at += iteration->seconds) {
            at += cond->seconds;
            add_spans(w, body, iteration->insts, iteration->bodies, at);
        }
    }
}

/* Many ------------------------------------------------------------------------------------------- */

static int by_stream(const void *left, const void *right)
{
    const sf_page_span *a = left, *b = right;
    if (a->stream != b->stream)
        return a->stream < b->stream ? -1 : 1;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    return (a->length < b->length) - (a->length > b->length);
}

/* Whether the next may go into a span: both short, one right after the other, of one phase and kind
 * of stream. */
static bool goes_into(const sf_page_span *a, const sf_page_span *b, double tiny)
{
    return a->stream == b->stream && a->phase == b->phase && b->length < tiny &&
           a->length < 4 * tiny && b->start - (a->start + a->length) < tiny / 4;
}

static void merge_into(sf_page_span *into, const sf_page_span *span, double *longest)
{
    if (span->length > *longest) {
        *longest = span->length;
        into->name = span->name;
        into->scope = span->scope;
        into->kind = span->kind;
    }
    into->length = fmax(into->length, span->start + span->length - into->start);
    into->bytes += span->bytes;
    into->exposed += span->exposed;
    into->count += span->count;
}

static void merge_spans(sf_rank_group *g, double tiny)
{
    size_t count = 0;
    double longest = 0;
    for (size_t i = 0; i < g->nspans; i++) {
        if (count > 0 && goes_into(&g->spans[count - 1], &g->spans[i], tiny)) {
            merge_into(&g->spans[count - 1], &g->spans[i], &longest);
            continue;
        }
        g->spans[count++] = g->spans[i];
        longest = g->spans[i].length;
    }
    g->nspans = count;
}

static void settle_spans(sf_rank_group *g, double seconds)
{
    if (g->nspans > 0)
        qsort(g->spans, g->nspans, sizeof *g->spans, by_stream);
    for (double tiny = seconds / 4e6; g->nspans > MOST_SPANS && tiny < seconds; tiny *= 2)
        merge_spans(g, tiny);
}

/* Memory ----------------------------------------------------------------------------------------- */

static void add_point(walk *w, double at, const double bytes[SF_MEMORY_KIND_COUNT])
{
    sf_rank_group *g = w->group;
    sf_page_held held = {.at = at};
    bool changed = g->nheld == 0;
    for (int k = 0; k < SF_MEMORY_KIND_COUNT; k++) {
        held.bytes[k] = bytes[k];
        changed = changed || g->held[g->nheld - 1].bytes[k] != bytes[k];
    }
    if (changed)
        SF_PUSH(&w->page->sim.arena, g->held, g->nheld, g->held_capacity, held);
}

/* In an iteration, the live buffers of the body replace the whole of its arena. */
static void add_turn_points(walk *w, const sf_inst *inst, const sf_simulation *bodies,
                            const sf_memory_kind *kinds, const sf_program *p, double at,
                            const double held[SF_MEMORY_KIND_COUNT])
{
    const sf_program *body = inst->nest->bodies[1];
    uint32_t room = inst->out[inst->nout - 1].buffer, peak;
    double bytes[SF_MEMORY_KIND_COUNT];
    int64_t *live;
    int64_t iterations = iterations_to_show(w, inst);
    if (iterations == 0)
        add_point(w, at, held);
    sf_live_bytes(body, &w->page->sim.arena, &live, &peak);
    for (int64_t t = 0; t < iterations; t++, at += bodies[1].seconds) {
        at += bodies[0].seconds;
        for (uint32_t i = 0; i < body->ninsts; i++) {
            if (sf_goes_beside(&body->insts[i]))
                continue;
            for (int k = 0; k < SF_MEMORY_KIND_COUNT; k++)
                bytes[k] = held[k];
            bytes[kinds[room]] -= (double)p->buffers[room].bytes;
            bytes[SF_MEMORY_ACTIVATION] += (double)live[i];
            add_point(w, at + bodies[1].insts[i].start, bytes);
        }
    }
}

/* By instruction, how much more memory of each kind is in use than before it; permanent memory is
 * in the first. */
static double (*find_changes(walk *w, const sf_rank_run *run,
                             const sf_memory_kind *kinds))[SF_MEMORY_KIND_COUNT]
{
    const sf_program *p = run->program;
    double(*change)[SF_MEMORY_KIND_COUNT] =
        sf_arena_array(&w->page->sim.arena, p->ninsts + 2, sizeof *change);
    change[0][SF_MEMORY_SCRATCH] = (double)sf_scratch_bytes(p, run->costs);
    for (size_t i = 0; i < p->nbuffers; i++) {
        const sf_buffer *buffer = &p->buffers[i];
        double bytes = (double)buffer->bytes;
        if (buffer->space != SF_SPACE_DEVICE)
            continue;
        if (!sf_in_arena(buffer))
            change[0][kinds[i]] += bytes;
        if (!sf_in_arena(buffer) || buffer->first == SF_NONE)
            continue;
        change[buffer->first][kinds[i]] += bytes;
        change[buffer->is_result ? p->ninsts : buffer->last + 1][kinds[i]] -= bytes;
        for (uint32_t g = 0; g < buffer->ngaps; g++) {
            change[buffer->gaps[g].first][kinds[i]] -= bytes;
            change[buffer->gaps[g].last + 1][kinds[i]] += bytes;
        }
    }
    return change;
}

/* A collective begins when the compute before it has ended. */
static void add_points(walk *w, const sf_rank_run *run, const sf_memory_kind *kinds)
{
    const sf_program *p = run->program;
    const sf_simulation *sim = &run->sim;
    double(*change)[SF_MEMORY_KIND_COUNT] = find_changes(w, run, kinds);
    double held[SF_MEMORY_KIND_COUNT] = {0}, now = 0;
    w->iterated = 0;
    for (uint32_t i = 0; i < p->ninsts; i++) {
        const sf_inst *inst = &p->insts[i];
        now = inst->stream == 0 ? sim->insts[i].start : now;
        for (int k = 0; k < SF_MEMORY_KIND_COUNT; k++)
            held[k] += change[i][k];
        if (inst->kind == SF_INST_WHILE && inst->nest->nbodies == 2 && sim->bodies[i])
            add_turn_points(w, inst, sim->bodies[i], kinds, p, now, held);
        else
            add_point(w, now, held);
        now = inst->stream == 0 ? sim->insts[i].end : now;
    }
}

static double sum_of(const sf_page_held *held)
{
    double sum = 0;
    for (int k = 0; k < SF_MEMORY_KIND_COUNT; k++)
        sum += held->bytes[k];
    return sum;
}

/* Of points in the same small part of the step, the highest. */
static void thin_points(sf_rank_group *g, double seconds)
{
    if (g->nheld <= MOST_POINTS || !(seconds > 0))
        return;
    size_t count = 0;
    double part = seconds / MOST_POINTS, last = -1;
    for (size_t i = 0; i < g->nheld; i++) {
        double at = floor(g->held[i].at / part);
        if (count == 0 || at != last)
            g->held[count++] = g->held[i];
        else if (sum_of(&g->held[i]) > sum_of(&g->held[count - 1]))
            g->held[count - 1] = g->held[i];
        last = at;
    }
    g->nheld = count;
}

static sf_rank_group *add_group(sf_page *page, const char *name, int ranks, bool measured)
{
    sf_rank_group group = {.name = name, .count = ranks, .measured = measured};
    SF_PUSH(&page->sim.arena, page->groups, page->ngroups, page->group_capacity, group);
    return &page->groups[page->ngroups - 1];
}

static const char *name_of_group(sf_page *page, int group)
{
    sf_buf text = {0};
    if (!page->sim.plan->pipeline)
        return "simulated";
    sf_buf_printf(&text, "pp rank %d", group);
    const char *name = sf_page_shown(page, text.text);
    sf_buf_free(&text);
    return name;
}

void sf_page_find_spans(sf_page *page)
{
    sf_sim_report *r = &page->sim;
    int ranks = sf_mesh_size(&r->plan->mesh) / r->runs.count;
    walk w = {.page = page};
    for (int g = 0; g < r->runs.count; g++) {
        const sf_rank_run *run = &r->runs.at[g];
        w.group = add_group(page, name_of_group(page, g), ranks, false);
        w.group->first = run->rank;
        if (r->plan->pipeline)
            w.group->stages = sf_sim_stages(r, g, &w.group->nstages);
        const sf_memory_kind *kinds = sf_find_buffer_kinds(run->local, run->program, &r->arena);
        stream_of(&w, &run->program->streams[0]);
        add_spans(&w, run->program, run->sim.insts, run->sim.bodies, 0);
        settle_spans(w.group, run->sim.seconds);
        add_points(&w, run, kinds);
        thin_points(w.group, run->sim.seconds);
    }
    if (!r->timed)
        return;
    w.group = add_group(page, "measured", 1, true);
    add_spans(&w, r->program, r->timed, NULL, 0);
    settle_spans(w.group, r->timed_seconds);
}
