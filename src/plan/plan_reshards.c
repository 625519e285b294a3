#include "plan/plan_reshards.h"

#include "ir/clone.h"
#include "ir/name.h"

enum { ANY_PHASE = -1 };

typedef struct walk {
    sf_reshards *out;
    const sf_graph *graph;
    const sf_plan *plan;
    sf_arena *arena;
    sf_arena scratch;
    sf_ways ways;
    sf_diag *diag;
    uint32_t *last;    /* by value: its last version */
    uint32_t *step_of; /* by node: its step */
    uint32_t *step_of_reshard;
    size_t step_of_reshard_capacity;
    uint32_t *after; /* by step: the step after which it is finally placed */
    size_t behind_capacity;
    sf_phase phase; /* of the current node */
    uint32_t node;
    sf_status status; /* of the values that its regions read */
} walk;

/* Versions */

static uint32_t add_version(walk *w, sf_value value, const sf_layout *layout, int phase,
                            uint32_t reshard)
{
    sf_reshards *m = w->out;
    uint32_t at = (uint32_t)m->nversions;
    sf_value_version version = {value, layout, phase, reshard, at, SF_NONE};
    SF_PUSH(w->arena, m->versions, m->nversions, m->version_capacity, version);
    if (m->made[value] == SF_NONE)
        m->made[value] = at;
    else
        m->versions[w->last[value]].next = at;
    w->last[value] = at;
    return at;
}

static uint32_t add_reshard_step(walk *w, bool is_reshard, uint32_t index)
{
    sf_reshards *m = w->out;
    uint32_t at = (uint32_t)m->nsteps;
    size_t count = at;
    SF_PUSH(w->arena, m->steps, m->nsteps, m->step_capacity, ((sf_step_item){is_reshard, index}));
    SF_PUSH(&w->scratch, w->after, count, w->behind_capacity, at);
    return at;
}

/* Moves it to right after its operand's maker, in the phase of that. */
static void move_up(walk *w, uint32_t step, sf_resharding *reshard)
{
    const sf_value_version *from = &w->out->versions[w->out->versions[reshard->from].same];
    const sf_node *maker = sf_maker(w->graph, reshard->value);
    if (from->reshard != SF_NONE) {
        w->after[step] = w->after[w->step_of_reshard[from->reshard]];
        reshard->phase = w->out->reshards[from->reshard].phase;
    } else if (maker) {
        w->after[step] = w->step_of[maker->id];
        reshard->phase = maker->phase;
    }
}

static uint32_t add_reshard(walk *w, uint32_t from, const sf_move *reshard)
{
    sf_reshards *m = w->out;
    sf_value value = m->versions[from].value;
    const sf_type *type = sf_type_of(w->graph, value);
    const sf_mesh *mesh = &w->plan->mesh;
    double made = sf_shard_bytes(type, m->versions[m->made[value]].layout, mesh);
    double before = sf_shard_bytes(type, m->versions[from].layout, mesh);
    double after = sf_shard_bytes(type, &reshard->after, mesh);
    /* A layout larger than the one made, a gathered parameter, is not kept between phases. */
    int phase = after <= made ? ANY_PHASE : (int)w->phase;
    if (sf_group_size(mesh, reshard->axes) == 1) {
        uint32_t alias = add_version(w, value, &reshard->after, phase, m->versions[from].reshard);
        m->versions[alias].same = m->versions[from].same;
        return alias;
    }
    uint32_t index = (uint32_t)m->nreshards;
    uint32_t to = add_version(w, value, &reshard->after, phase, index);
    uint32_t step = add_reshard_step(w, true, index);
    size_t count = index;
    sf_resharding moving = {value, reshard->kind, reshard->axes, w->phase, from,
                            to,    w->node,       SF_NONE,       before,   after};
    if (sf_starts_early(&moving))
        move_up(w, step, &moving);
    SF_PUSH(w->arena, m->reshards, m->nreshards, m->move_capacity, moving);
    SF_PUSH(&w->scratch, w->step_of_reshard, count, w->step_of_reshard_capacity, step);
    return to;
}

static sf_status fail_to_move(walk *w, sf_value value, const sf_layout *to)
{
    const sf_type *type = sf_type_of(w->graph, value);
    const sf_node *maker = sf_maker(w->graph, value);
    sf_buf name = {0}, text = {0};
    sf_layout_print(w->out->versions[w->out->made[value]].layout, &w->plan->mesh, type->rank,
                    type->dims, &text);
    sf_buf_puts(&text, " cannot become ");
    sf_layout_print(to, &w->plan->mesh, type->rank, type->dims, &text);
    sf_status status = sf_fail(w->diag, SF_EINPUT, maker ? maker->loc : SF_NOWHERE,
                               "plan: %s as %s", sf_value_name(w->graph, value, &name), text.text);
    int pin = w->plan->pinned ? w->plan->pinned[value] : -1;
    if (pin >= 0 && pin < w->plan->npins)
        status = sf_hint(w->diag, "the pin %s decided it", w->plan->pins[pin].text);
    sf_buf_free(&name);
    sf_buf_free(&text);
    return status;
}

/* The value in that layout, resharded if necessary. */
static sf_status want_version(walk *w, sf_value value, const sf_layout *layout, uint32_t *out)
{
    const sf_type *type = sf_type_of(w->graph, value);
    const sf_way *best = NULL;
    uint32_t from = SF_NONE;
    for (uint32_t v = w->out->made[value]; v != SF_NONE; v = w->out->versions[v].next) {
        const sf_value_version *version = &w->out->versions[v];
        if (version->phase != ANY_PHASE && version->phase != (int)w->phase)
            continue;
        if (sf_layout_equal(version->layout, layout)) {
            *out = v;
            return SF_OK;
        }
        const sf_way *way = sf_ways_find(&w->ways, type, version->layout, layout);
        if (way->exists && (!best || way->cost < best->cost)) {
            best = way;
            from = v;
        }
    }
    if (!best)
        return fail_to_move(w, value, layout);
    for (int i = 0; i < best->count; i++)
        from = add_reshard(w, from, &best->reshards[i]);
    *out = from;
    return SF_OK;
}

/* The walk over the step */

static sf_status read_version(walk *w, sf_value value, const sf_layout *layout)
{
    uint32_t version;
    SF_TRY(want_version(w, value, layout, &version));
    SF_PUSH(w->arena, w->out->reads, w->out->read_count, w->out->read_capacity, version);
    return SF_OK;
}

/* Values of the top block are whole in regions. */
static void read_captured(void *context, sf_value value)
{
    static const sf_layout replicated;
    walk *w = context;
    if (w->out->made[value] != SF_NONE && w->status == SF_OK)
        w->status = read_version(w, value, &replicated);
}

static sf_status walk_node(walk *w, const sf_node *node)
{
    sf_reshards *m = w->out;
    const sf_layout *layouts = w->plan->nodes[node->id];
    w->phase = node->phase;
    w->node = node->id;
    m->first_read[node->id] = (uint32_t)m->read_count;
    for (uint32_t o = 0; o < node->noperands; o++)
        SF_TRY(read_version(w, node->operands[o], &layouts[o]));
    for (uint32_t r = 0; r < node->nregions; r++)
        sf_block_uses(w->graph, node->regions[r], read_captured, w);
    SF_TRY(w->status);
    m->nreads[node->id] = (uint32_t)m->read_count - m->first_read[node->id];
    w->step_of[node->id] = add_reshard_step(w, false, node->id);
    for (uint32_t r = 0; r < node->nresults; r++)
        add_version(w, node->result + r, &layouts[node->noperands + r], ANY_PHASE, SF_NONE);
    return SF_OK;
}

static sf_status walk_step(walk *w)
{
    const sf_block *top = w->graph->top;
    for (uint32_t i = 0; i < top->narguments; i++)
        add_version(w, top->arguments[i], &w->plan->arguments[i], ANY_PHASE, SF_NONE);
    for (uint32_t i = 0; i < top->nnodes; i++)
        SF_TRY(walk_node(w, w->graph->nodes[top->nodes[i]]));
    w->node = SF_NONE;
    for (uint32_t i = 0; i < top->nresults; i++) {
        const sf_node *maker = sf_maker(w->graph, top->results[i]);
        w->phase = maker ? maker->phase : SF_UPDATE;
        SF_TRY(want_version(w, top->results[i], &w->plan->results[i], &w->out->results[i]));
    }
    return SF_OK;
}

/* Steps in their final order: a counting sort, which keeps those after one step in order. */
static void sort_steps(walk *w)
{
    sf_reshards *m = w->out;
    uint32_t *start = SF_ARRAY(&w->scratch, m->nsteps + 1, uint32_t);
    sf_step_item *sorted = SF_ARRAY(w->arena, m->nsteps, sf_step_item);
    for (size_t i = 0; i < m->nsteps; i++)
        start[w->after[i] + 1]++;
    for (size_t i = 0; i < m->nsteps; i++)
        start[i + 1] += start[i];
    for (size_t i = 0; i < m->nsteps; i++)
        sorted[start[w->after[i]]++] = m->steps[i];
    m->steps = sorted;
    m->step_capacity = m->nsteps;
}

/* Buckets */

typedef struct filling {
    sf_reshards *m;
    sf_arena *arena, *scratch;
    bool *closed; /* by bucket */
    size_t closed_capacity;
    uint32_t *open; /* buckets that may not be closed yet */
    size_t nopen, open_capacity;
} filling;

static void close_bucket(filling *f, uint32_t version)
{
    const sf_value_version *v = &f->m->versions[version];
    if (v->reshard != SF_NONE && f->m->reshards[v->reshard].bucket != SF_NONE)
        f->closed[f->m->reshards[v->reshard].bucket] = true;
}

static sf_monoid monoid_of_partial(const sf_reshards *m, const sf_resharding *reshard)
{
    int axis = 0;
    while (!(reshard->axes >> axis & 1))
        axis++;
    return m->versions[reshard->from].layout->axes[axis].monoid;
}

static bool goes_together(sf_reshard_kind kind)
{
    return sf_move_reduces(kind) || kind == SF_RESHARD_GATHER;
}

static bool is_alike(const sf_reshards *m, const sf_resharding *a, const sf_resharding *b)
{
    return a->kind == b->kind && a->axes == b->axes && a->phase == b->phase &&
           (!sf_move_reduces(a->kind) || monoid_of_partial(m, a) == monoid_of_partial(m, b)) &&
           sf_type_of(m->graph, a->value)->dtype == sf_type_of(m->graph, b->value)->dtype;
}

/* The last open bucket of the reshard's kind with room for it, or a new one. */
static uint32_t find_bucket(filling *f, const sf_resharding *reshard, double bytes)
{
    sf_reshards *m = f->m;
    size_t kept = 0, count = m->nbuckets;
    uint32_t found = SF_NONE;
    for (size_t i = 0; i < f->nopen; i++) {
        uint32_t at = f->open[i];
        if (f->closed[at])
            continue;
        if (m->buckets[at].bytes + bytes <= SF_BUCKET_BYTES &&
            is_alike(m, &m->reshards[m->buckets[at].last], reshard))
            found = at;
        f->open[kept++] = at;
    }
    f->nopen = kept;
    if (found != SF_NONE)
        return found;
    found = (uint32_t)m->nbuckets;
    SF_PUSH(f->arena, m->buckets, m->nbuckets, m->bucket_capacity, (sf_bucket){0});
    SF_PUSH(f->scratch, f->closed, count, f->closed_capacity, false);
    SF_PUSH(f->scratch, f->open, f->nopen, f->open_capacity, found);
    return found;
}

static void fill_buckets(sf_reshards *m, sf_arena *arena, sf_arena *scratch)
{
    filling f = {.m = m, .arena = arena, .scratch = scratch};
    for (size_t i = 0; i < m->nsteps; i++) {
        uint32_t index = m->steps[i].index;
        if (!m->steps[i].is_reshard) {
            for (uint32_t r = 0; r < m->nreads[index]; r++)
                close_bucket(&f, m->reads[m->first_read[index] + r]);
            continue;
        }
        sf_resharding *reshard = &m->reshards[index];
        close_bucket(&f, reshard->from);
        if (!goes_together(reshard->kind))
            continue;
        double bytes = sf_larger_shard(reshard);
        reshard->bucket = find_bucket(&f, reshard, bytes);
        sf_bucket *bucket = &m->buckets[reshard->bucket];
        bucket->count++;
        bucket->last = index;
        bucket->bytes += bytes;
    }
}

/* Room for a plan without reshards, so that little is copied. */
static void reserve_reads(walk *w)
{
    sf_reshards *m = w->out;
    const sf_graph *graph = w->graph;
    m->version_capacity = graph->nvalues + graph->nvalues / 8 + 16;
    m->versions = SF_ARRAY(w->arena, m->version_capacity, sf_value_version);
    m->step_capacity = w->behind_capacity = graph->nnodes + graph->nnodes / 8 + 16;
    m->steps = SF_ARRAY(w->arena, m->step_capacity, sf_step_item);
    w->after = SF_ARRAY(&w->scratch, w->behind_capacity, uint32_t);
    m->read_capacity = 2 * graph->nnodes + 16;
    m->reads = SF_ARRAY(w->arena, m->read_capacity, uint32_t);
}

sf_status sf_reshards_of(const sf_graph *graph, const sf_plan *plan, sf_arena *arena, sf_diag *diag,
                         sf_reshards **out)
{
    sf_reshards *m = SF_NEW(arena, sf_reshards);
    walk w = {.out = m, .graph = graph, .plan = plan, .arena = arena, .diag = diag};
    w.ways = (sf_ways){.mesh = &plan->mesh, .arena = arena};
    w.last = SF_ARRAY(&w.scratch, graph->nvalues, uint32_t);
    w.step_of = SF_ARRAY(&w.scratch, graph->nnodes, uint32_t);
    m->graph = graph;
    m->plan = plan;
    m->made = SF_ARRAY(arena, graph->nvalues, uint32_t);
    m->first_read = SF_ARRAY(arena, graph->nnodes, uint32_t);
    m->nreads = SF_ARRAY(arena, graph->nnodes, uint32_t);
    m->results = SF_ARRAY(arena, graph->top->nresults, uint32_t);
    reserve_reads(&w);
    for (size_t v = 0; v < graph->nvalues; v++)
        m->made[v] = SF_NONE;
    sf_status status = walk_step(&w);
    if (status == SF_OK) {
        sort_steps(&w);
        fill_buckets(m, arena, &w.scratch);
        *out = m;
    }
    sf_arena_free(&w.scratch);
    return status;
}
