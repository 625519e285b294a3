#include "search/price/estimate_memory.h"

#include "op/op.h"
#include "search/price/moments.h"
#include "search/price/move_cost.h"

static uint32_t later_moment(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* Where things are put, and how they count. Bytes are doubles: exact as far as any machine goes. */
enum { GRAIN = 64 };

typedef struct storage {
    double bytes;
    uint32_t from, to; /* moments, both included */
    sf_memory_kind kind;
} storage;

typedef struct standing {
    const sf_efforts *efforts;
    const sf_reshards *reshards;
    const sf_mesh *mesh;
    sf_arena *arena;
    const uint32_t *moments;
    uint32_t *last; /* by version: the last moment at which it, or a view of it, is read */
    storage *all;
    size_t count, capacity;
    uint32_t end;
} standing;

static void add_storage(standing *s, double bytes, sf_memory_kind kind, uint32_t from, uint32_t to)
{
    storage x = {
        .bytes = (double)((int64_t)(bytes / GRAIN) + 1) * GRAIN, .from = from, .kind = kind};
    x.to = to < from ? from : to > s->end ? s->end : to;
    SF_PUSH(s->arena, s->all, s->count, s->capacity, x);
}

static double version_bytes(const standing *s, uint32_t version)
{
    const sf_value_version *v = &s->reshards->versions[version];
    return sf_shard_bytes(sf_type_of(s->efforts->graph, v->value), v->layout, s->mesh);
}

static uint32_t moment_of(const sf_node_effort *effort)
{
    return sf_moment(effort->inst, SF_BEHIND);
}

/* Backwards over the steps: what a view shows is read as long as the view is, what is moved until it is. */
static void find_last_moments(standing *s)
{
    const sf_reshards *m = s->reshards;
    const sf_efforts *f = s->efforts;
    s->last = SF_ARRAY(s->arena, m->nversions, uint32_t);
    for (uint32_t i = 0; i < f->graph->top->nresults; i++)
        s->last[m->versions[m->results[i]].same] = s->end;
    for (size_t i = m->nsteps; i-- > 0;) {
        uint32_t index = m->steps[i].index;
        if (m->steps[i].is_reshard) {
            const sf_resharding *reshard = &m->reshards[index];
            uint32_t *last = &s->last[m->versions[reshard->from].same];
            bool shows = reshard->kind == SF_RESHARD_SLICE;
            *last = later_moment(*last, shows ? s->last[reshard->to] : s->moments[index]);
            continue;
        }
        const sf_node *node = f->graph->nodes[index];
        uint32_t moment = moment_of(&f->nodes[index]);
        for (uint32_t r = 0; r < node->nresults; r++)
            if (f->place[node->result + r] != node->result + r)
                moment = later_moment(moment, s->last[m->made[node->result + r]]);
        for (uint32_t r = 0; r < m->nreads[index]; r++) {
            uint32_t *last = &s->last[m->versions[m->reads[m->first_read[index] + r]].same];
            *last = later_moment(*last, moment);
        }
    }
}

static sf_memory_kind kind_of_value(const standing *s, sf_value value, sf_memory_kind otherwise)
{
    return s->efforts->gradient[value] ? SF_MEMORY_GRADIENT : otherwise;
}

/* As it was made: as long as in the unsplit program, unless it is moved; then until it has been, or is last read. */
static void add_made_version(standing *s, sf_value value, const bool *is_moved)
{
    const sf_efforts *f = s->efforts;
    uint32_t version = s->reshards->made[value];
    const sf_node *maker = sf_maker(f->graph, value);
    if (version == SF_NONE || f->place[value] != value || !maker)
        return;
    bool leaves = is_moved[version];
    if (!f->stored[value] && !leaves)
        return;
    uint32_t made = f->made[value], from = made > 0 ? sf_moment(made - 1, SF_BEHIND) : 0;
    uint32_t to = leaves ? s->last[version] : sf_moment(f->last[value], SF_BEHIND);
    if (sf_is(maker, SF_OP_CONSTANT))
        add_storage(s, version_bytes(s, version), SF_MEMORY_BATCH, 0, s->end);
    else
        add_storage(s, version_bytes(s, version), kind_of_value(s, value, SF_MEMORY_ACTIVATION),
                    from, to);
    if (f->nodes[maker->id].whole)
        add_storage(s, (double)sf_type_bytes(sf_type_of(f->graph, value)), SF_MEMORY_ACTIVATION,
                    from, from);
}

/* An all-reduce is done in place, a slice is a view. What the state of the next step is goes into its place. */
static void add_moved(standing *s, uint32_t index, const bool *is_state)
{
    const sf_resharding *reshard = &s->reshards->reshards[index];
    uint32_t moment = s->moments[index], last = s->last[reshard->to];
    if (reshard->kind == SF_RESHARD_SLICE || s->efforts->place[reshard->value] == SF_NONE)
        return;
    sf_copies copies = sf_copies_of(s->efforts, s->reshards, reshard);
    if (copies.before > 0)
        add_storage(s, copies.before, SF_MEMORY_MOVED, moment, moment);
    bool in_place = reshard->kind == SF_RESHARD_REDUCE && copies.before <= 0;
    if (!is_state[reshard->to])
        add_storage(s, reshard->after, kind_of_value(s, reshard->value, SF_MEMORY_MOVED),
                    in_place ? moment + 1 : moment, last);
}

static void find_storages(standing *s)
{
    const sf_graph *graph = s->efforts->graph;
    const sf_reshards *m = s->reshards;
    bool *is_moved = SF_ARRAY(s->arena, m->nversions, bool);
    bool *is_state = SF_ARRAY(s->arena, m->nversions, bool);
    for (size_t i = 0; i < m->nreshards; i++)
        is_moved[m->versions[m->reshards[i].from].same] = true;
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        uint32_t version = m->made[graph->top->arguments[i]];
        add_storage(s, version_bytes(s, version), sf_memory_kind_of(graph->arguments[i].role), 0,
                    s->end);
        if (graph->arguments[i].next != SF_NONE)
            is_state[m->versions[m->results[graph->arguments[i].next]].same] = true;
    }
    for (size_t v = 0; v < graph->nvalues; v++)
        add_made_version(s, (sf_value)v, is_moved);
    for (uint32_t i = 0; i < m->nreshards; i++)
        add_moved(s, i, is_state);
}

/* The first moment at which most is held. */
static uint32_t find_peak_moment(standing *s)
{
    double *change = SF_ARRAY(s->arena, s->end + 2, double), held = 0, most = -1;
    uint32_t peak = 0;
    for (size_t i = 0; i < s->count; i++) {
        change[s->all[i].from] += s->all[i].bytes;
        change[s->all[i].to + 1] -= s->all[i].bytes;
    }
    for (uint32_t moment = 0; moment <= s->end; moment++) {
        held += change[moment];
        if (held > most) {
            most = held;
            peak = moment;
        }
    }
    return peak;
}

static int64_t to_bytes(double bytes)
{
    return bytes < 0x1p62 ? (int64_t)bytes : INT64_MAX;
}

void sf_estimate_memory(const sf_efforts *efforts, const sf_reshards *reshards,
                        const uint32_t *moments, sf_arena *arena, sf_price *out)
{
    standing s = {.efforts = efforts,
                  .reshards = reshards,
                  .mesh = &reshards->plan->mesh,
                  .arena = arena,
                  .moments = moments,
                  .end = sf_moment(efforts->ninsts, SF_BEHIND_ALL)};
    double held[SF_MEMORY_KIND_COUNT] = {0}, sum = 0;
    find_last_moments(&s);
    find_storages(&s);
    uint32_t peak = find_peak_moment(&s);
    for (size_t i = 0; i < s.count; i++)
        if (s.all[i].from <= peak && peak <= s.all[i].to)
            held[s.all[i].kind] += s.all[i].bytes;
    for (int k = 0; k < SF_MEMORY_KIND_COUNT; k++) {
        out->by_kind[k] = to_bytes(held[k]);
        sum += held[k];
    }
    out->memory = to_bytes(sum);
}
