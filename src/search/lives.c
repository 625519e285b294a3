#include "search/lives.h"

#include <math.h>

#include "op/op.h"
#include "search/copies.h"

/* A node at place w of the order runs at tick 4 w + RUNS, between the moves before it and those behind. */
enum { BEFORE, RUNS, BEHIND, TICKS = 4 };
enum { SF_IN_FLIGHT = 2, SF_FLIGHT_BYTES = 16 << 20 };

/* A collective that was taken has landed when enough others have been taken, or when somebody wants it in
 * the order of the step: as in prog/order.c. */
typedef struct flight {
    int64_t start, land;
    double bytes;
    int64_t wanted; /* by the first reader, in the order of the step */
} flight;

/* Where allocators put things. */
enum { GRAIN = 64 };

/* Bytes are doubles: exact as far as any machine goes, and nothing overflows beyond. */
typedef struct storage {
    double bytes;
    int64_t from, to; /* ticks between which it is held, both included */
    sf_memory_kind kind;
    int64_t before, after; /* the last use in the forward pass, and the first behind it; 0: none */
} storage;

typedef struct lives {
    const sf_efforts *efforts;
    const sf_moves *moves;
    const sf_graph *graph;
    const sf_mesh *mesh;
    sf_arena arena;
    int64_t *when;         /* by node: its place in the order */
    int64_t *version_when; /* by version: that of what makes it */
    int64_t *bucket_when;  /* by bucket: that of its last member */
    uint32_t *flight_of_move;
    flight *flights; /* collectives, in order */
    size_t nflights;
    uint32_t *storages; /* by version, or SF_NONE */
    uint32_t *sources;  /* by version: what it can be computed from again, or SF_NONE */
    bool *always;       /* by version: it stands somewhere all the time */
    storage *all;
    size_t count, capacity;
    int64_t end;  /* the last tick */
    int64_t turn; /* that of the last node of the forward pass */
} lives;

/* When */

static int64_t latest(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t earliest(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The flight of the move that makes the version, or SF_NONE. */
static uint32_t flight_of(const lives *l, uint32_t version)
{
    uint32_t move = l->moves->versions[version].move;
    if (move == SF_NONE || !sf_is_reduction(l->moves->moves[move].kind))
        return SF_NONE;
    uint32_t bucket = l->moves->moves[move].bucket;
    return l->flight_of_move[bucket == SF_NONE ? move : l->moves->buckets[bucket].last];
}

static void place_node(lives *l, const sf_node *node, int64_t index)
{
    const sf_moves *m = l->moves;
    int64_t ready = 0;
    for (uint32_t r = 0; r < m->nreads[node->id]; r++) {
        uint32_t read = m->versions[m->reads[m->first_read[node->id] + r]].same;
        uint32_t at = flight_of(l, read);
        if (at == SF_NONE) {
            ready = latest(ready, l->version_when[read]);
            continue;
        }
        flight *f = &l->flights[at];
        f->wanted = earliest(f->wanted, index);
        ready = latest(ready, latest(f->start, f->land));
    }
    l->when[node->id] = node->phase == SF_UPDATE ? ready : index;
    for (uint32_t r = 0; r < node->nresults; r++)
        l->version_when[m->made[node->result + r]] = l->when[node->id];
}

/* The last of a bucket takes off, with all others. */
static void place_move(lives *l, uint32_t at, int64_t index, uint32_t *taken)
{
    const sf_moving *move = &l->moves->moves[at];
    int64_t made = l->version_when[l->moves->versions[move->from].same];
    int64_t start = sf_is_reduction(move->kind) ? made : index;
    l->version_when[move->to] = start;
    if (move->bucket != SF_NONE) {
        int64_t *ready = &l->bucket_when[move->bucket];
        start = *ready = latest(*ready, start);
        if (l->moves->buckets[move->bucket].last != at)
            return;
    }
    if (sf_is_local_move(move->kind))
        return;
    flight *taking = &l->flights[*taken];
    l->flight_of_move[at] = (*taken)++;
    taking->start = start;
    if (!sf_starts_early(move))
        taking->wanted = start;
    taking->bytes =
        move->bucket != SF_NONE ? l->moves->buckets[move->bucket].bytes : sf_larger_piece(move);
}

static void place_steps(lives *l)
{
    const sf_moves *m = l->moves;
    int64_t index = 0;
    uint32_t taken = 0;
    for (size_t i = 0; i < m->nsteps; i++) {
        if (m->steps[i].is_move)
            place_move(l, m->steps[i].index, index, &taken);
        else
            place_node(l, l->graph->nodes[m->steps[i].index], index++);
    }
    l->end = TICKS * index;
    l->nflights = taken;
}

/* They land in the order in which they were taken. */
static void find_landings(lives *l)
{
    size_t last = 0;   /* the collective that pushes this one down */
    double behind = 0; /* bytes of those behind this one, up to that */
    for (size_t i = 0; i < l->nflights; i++) {
        flight *f = &l->flights[i];
        while (last < l->nflights &&
               (last < i + SF_IN_FLIGHT || behind < (double)SF_FLIGHT_BYTES)) {
            last++;
            behind += last < l->nflights ? l->flights[last].bytes : 0;
        }
        int64_t pushed = last < l->nflights ? l->flights[last].start : INT64_MAX;
        f->land = earliest(earliest(pushed, f->wanted), l->end / TICKS);
        behind -= i + 1 < l->nflights ? l->flights[i + 1].bytes : 0;
    }
    for (size_t i = l->nflights; i-- > 0;) {
        flight *f = &l->flights[i];
        if (i + 1 < l->nflights)
            f->land = earliest(f->land, f[1].land);
        f->land = latest(f->start, f->land);
    }
}

/* Nobody reads from a bucket before all its members have been seen, so its time is known by then. Where
 * collectives land follows from where they start; a second walk then lets the update wait for that. */
static void find_when(lives *l)
{
    const sf_moves *m = l->moves;
    l->when = SF_ARRAY(&l->arena, l->graph->nnodes, int64_t);
    l->version_when = SF_ARRAY(&l->arena, m->nversions, int64_t);
    l->bucket_when = SF_ARRAY(&l->arena, m->nbuckets, int64_t);
    l->flight_of_move = SF_ARRAY(&l->arena, m->nmoves, uint32_t);
    l->flights = SF_ARRAY(&l->arena, m->nmoves, flight);
    for (size_t i = 0; i < m->nmoves; i++)
        l->flights[i].wanted = INT64_MAX;
    place_steps(l);
    find_landings(l);
    place_steps(l);
    for (uint32_t i = 0; i < l->graph->top->nnodes; i++) {
        const sf_node *node = l->graph->nodes[l->graph->top->nodes[i]];
        if (node->phase == SF_FORWARD)
            l->turn = latest(l->turn, TICKS * l->when[node->id] + BEHIND);
    }
}

/* Storage */

static uint32_t add_storage(lives *l, double bytes, sf_memory_kind kind, int64_t tick)
{
    storage s = {.bytes = ceil(bytes / GRAIN) * GRAIN, .from = tick, .to = tick, .kind = kind};
    SF_PUSH(&l->arena, l->all, l->count, l->capacity, s);
    return (uint32_t)l->count - 1;
}

static double bytes_of(const lives *l, uint32_t version)
{
    const sf_version *v = &l->moves->versions[version];
    return sf_piece_bytes(sf_type_of(l->graph, v->value), v->layout, l->mesh);
}

/* Where the version stands, or what it is computed from again; SF_NONE: nowhere. */
static uint32_t storage_of(const lives *l, uint32_t version)
{
    uint32_t at = l->moves->versions[version].same;
    if (l->storages[at] == SF_NONE && l->sources[at] != SF_NONE)
        at = l->sources[at];
    return l->storages[at];
}

static void use(lives *l, uint32_t version, int64_t tick)
{
    uint32_t at = storage_of(l, version);
    if (at == SF_NONE)
        return;
    tick = earliest(tick, l->end);
    if (l->all[at].from > tick)
        l->all[at].from = tick;
    if (l->all[at].to < tick)
        l->all[at].to = tick;
    if (tick <= l->turn)
        l->all[at].before = latest(l->all[at].before, tick);
    else
        l->all[at].after = l->all[at].after ? earliest(l->all[at].after, tick) : tick;
}

static bool is_view(const lives *l, sf_value value)
{
    return l->efforts->place[value] != value;
}

static uint32_t make_storage(lives *l, uint32_t version)
{
    sf_value value = l->moves->versions[version].value;
    const sf_node *maker = sf_maker(l->graph, value);
    sf_memory_kind kind = l->efforts->gradient[value] ? SF_MEMORY_GRADIENT : SF_MEMORY_ACTIVATION;
    int64_t when = maker ? l->when[maker->id] : 0;
    uint32_t at = add_storage(l, bytes_of(l, version), kind, TICKS * when + RUNS);
    if (maker && sf_is(maker, SF_OP_CONSTANT))
        l->all[at] = (storage){.bytes = l->all[at].bytes, .to = l->end, .kind = SF_MEMORY_BATCH};
    return at;
}

/* The one version that what the node makes can be computed from again, or SF_NONE: what an operand comes
 * from, or the operand itself. What is there anyway does not count, but what was moved is not. */
static uint32_t find_source(const lives *l, const sf_node *node)
{
    const sf_moves *m = l->moves;
    uint32_t source = SF_NONE;
    for (uint32_t o = 0; o < node->noperands; o++) {
        uint32_t read = m->versions[m->reads[m->first_read[node->id] + o]].same;
        uint32_t from = l->sources[read] == SF_NONE ? read : l->sources[read];
        if (l->always[read])
            continue;
        if (storage_of(l, from) == SF_NONE || (source != SF_NONE && source != from))
            return SF_NONE;
        source = from;
    }
    return source;
}

/* Arguments as they are given, constants, and views of them. */
static bool is_always_there(const lives *l, const sf_node *node, uint32_t result)
{
    const sf_moves *m = l->moves;
    sf_value value = node->result + result;
    if (sf_is(node, SF_OP_CONSTANT) || l->efforts->place[value] == SF_NONE)
        return true;
    return is_view(l, value) &&
           l->always[m->versions[m->reads[m->first_read[node->id] + result]].same];
}

/* Everything that is read in the kernel waits for it. */
static void live_node(lives *l, const sf_node *node)
{
    const sf_moves *m = l->moves;
    const uint32_t *reads = &m->reads[m->first_read[node->id]];
    int64_t tick = TICKS * l->when[l->efforts->nodes[node->id].kernel] + RUNS;
    for (uint32_t r = 0; r < m->nreads[node->id]; r++)
        use(l, reads[r], tick);
    if (node->nresults == 1 && l->efforts->source[node->result] != SF_NONE)
        l->sources[m->made[node->result]] = find_source(l, node);
    for (uint32_t r = 0; r < node->nresults; r++) {
        sf_value value = node->result + r;
        uint32_t version = m->made[value];
        l->always[version] = is_always_there(l, node, r);
        if (is_view(l, value))
            l->storages[version] =
                l->efforts->place[value] == SF_NONE ? SF_NONE : storage_of(l, reads[r]);
        else if (l->efforts->stored[value] &&
                 !(l->efforts->again[value] && l->sources[version] != SF_NONE))
            l->storages[version] = make_storage(l, version);
        if (l->efforts->nodes[node->id].whole)
            add_storage(l, (double)sf_type_bytes(sf_type_of(l->graph, value)), SF_MEMORY_ACTIVATION,
                        tick);
    }
}

/* The tick of a move: behind what makes its operand, or before who wants it. */
static int64_t tick_of(const lives *l, const sf_moving *move)
{
    if (sf_is_reduction(move->kind))
        return TICKS * l->bucket_when[move->bucket] + BEHIND;
    if (move->bucket != SF_NONE)
        move = &l->moves->moves[l->moves->buckets[move->bucket].last];
    if (move->wanted == SF_NONE && move->bucket != SF_NONE)
        return TICKS * l->bucket_when[move->bucket] + BEFORE;
    if (move->wanted == SF_NONE)
        return l->end;
    return TICKS * l->when[l->efforts->nodes[move->wanted].kernel] + BEFORE;
}

/* What has to be copied for a scatter is copied as soon as it is made, and what that sends is held until it has
 * landed. What a gather has to bring in order behind it is left out: by then others have landed. */
static void hold_copies(lives *l, const sf_moving *move, uint32_t from, bool copied, int64_t tick)
{
    if (move->kind == SF_MOVE_SCATTER) {
        int64_t land = TICKS * l->flights[flight_of(l, move->to)].land + BEHIND;
        tick = copied ? TICKS * l->version_when[move->to] + BEHIND : land;
        if (copied)
            l->all[add_storage(l, move->before, SF_MEMORY_MOVED, tick)].to = earliest(land, l->end);
    } else if (move->kind == SF_MOVE_EXCHANGE) {
        add_storage(l, move->before, SF_MEMORY_MOVED, tick);
    }
    /* An all-reduce is done in place. */
    use(l, from, move->kind == SF_MOVE_REDUCE && !copied ? tick - 1 : tick);
}

static void live_move(lives *l, const sf_moving *move)
{
    uint32_t from = l->moves->versions[move->from].same;
    int64_t tick = tick_of(l, move);
    bool copied = sf_copies_of(l->efforts, l->moves, move).before > 0;
    sf_memory_kind kind = l->efforts->gradient[move->value] ? SF_MEMORY_GRADIENT : SF_MEMORY_MOVED;
    if (l->storages[from] == SF_NONE && l->efforts->place[move->value] == SF_NONE)
        return; /* what stands nowhere is cut and masked for nothing */
    if (l->storages[from] == SF_NONE)
        l->storages[from] = make_storage(l, from);
    if (move->kind == SF_MOVE_REDUCE && copied) /* before it waits for the others of its bucket */
        tick = TICKS * l->version_when[from] + BEHIND;
    hold_copies(l, move, from, copied, tick);
    l->always[move->to] = move->kind == SF_MOVE_SLICE && l->always[from];
    if (move->kind == SF_MOVE_SLICE)
        l->storages[move->to] = l->storages[from];
    else
        l->storages[move->to] = add_storage(l, move->after, kind, tick);
}

static sf_memory_kind kind_of_role(sf_role role)
{
    return role == SF_ROLE_PARAM   ? SF_MEMORY_PARAM
           : role == SF_ROLE_STATE ? SF_MEMORY_STATE
                                   : SF_MEMORY_BATCH;
}

static void live_arguments(lives *l)
{
    for (uint32_t i = 0; i < l->graph->top->narguments; i++) {
        uint32_t version = l->moves->made[l->graph->top->arguments[i]];
        uint32_t at =
            add_storage(l, bytes_of(l, version), kind_of_role(l->graph->arguments[i].role), 0);
        l->all[at].to = l->end;
        l->storages[version] = at;
        l->always[version] = true;
    }
}

/* A result that becomes an argument is written over it. */
static void live_results(lives *l)
{
    uint32_t narguments = l->graph->top->narguments;
    for (uint32_t i = 0; i < l->graph->top->nresults; i++)
        use(l, l->moves->results[i], l->end);
    for (uint32_t i = 0; i < narguments; i++) {
        uint32_t next = l->graph->arguments[i].next;
        uint32_t at = next == SF_NONE ? SF_NONE : storage_of(l, l->moves->results[next]);
        if (at != SF_NONE && at >= narguments)
            l->all[at].bytes = 0;
    }
}

static void find_storages(lives *l)
{
    const sf_moves *m = l->moves;
    l->storages = SF_ARRAY(&l->arena, m->nversions, uint32_t);
    l->sources = SF_ARRAY(&l->arena, m->nversions, uint32_t);
    l->always = SF_ARRAY(&l->arena, m->nversions, bool);
    for (size_t v = 0; v < m->nversions; v++)
        l->storages[v] = l->sources[v] = SF_NONE;
    live_arguments(l);
    for (size_t i = 0; i < m->nsteps; i++) {
        if (m->steps[i].is_move)
            live_move(l, &m->moves[m->steps[i].index]);
        else
            live_node(l, l->graph->nodes[m->steps[i].index]);
    }
    live_results(l);
}

/* Which storages are looked at, as bits of kinds, and whether activations that wait for the backward pass are
 * let go and computed again there. */
typedef struct view {
    uint32_t kinds;
    bool again;
} view;
enum { ALL_KINDS = (1 << SF_MEMORY_KIND_COUNT) - 1 };

static bool is_let_go(const lives *l, const storage *s, view v)
{
    return v.again && s->kind == SF_MEMORY_ACTIVATION && s->from <= l->turn && s->after > 0;
}

/* The first tick at which most is held, and how much that is. */
static int64_t find_peak(lives *l, view v, double *most)
{
    double *change = SF_ARRAY(&l->arena, l->end + 2, double);
    for (size_t i = 0; i < l->count; i++) {
        const storage *s = &l->all[i];
        if (!(v.kinds >> s->kind & 1))
            continue;
        change[s->from] += s->bytes;
        change[s->to + 1] -= s->bytes;
        if (is_let_go(l, s, v)) {
            change[latest(s->from, s->before) + 1] -= s->bytes;
            change[s->after] += s->bytes;
        }
    }
    double held = 0;
    int64_t peak = 0;
    *most = -1;
    for (int64_t tick = 0; tick <= l->end; tick++) {
        held += change[tick];
        if (held > *most) {
            *most = held;
            peak = tick;
        }
    }
    return peak;
}

static int64_t to_bytes(double bytes)
{
    return bytes < 0x1p62 ? (int64_t)bytes : INT64_MAX;
}

void sf_price_memory(const sf_efforts *efforts, const sf_moves *moves, sf_price *out)
{
    const sf_block *top = efforts->graph->top;
    lives l = {
        .efforts = efforts, .moves = moves, .graph = efforts->graph, .mesh = &moves->plan->mesh};
    double held[SF_MEMORY_KIND_COUNT] = {0}, sum = 0;
    find_when(&l);
    find_storages(&l);
    double most;
    int64_t peak = find_peak(&l, (view){.kinds = ALL_KINDS}, &most), place = peak / TICKS;
    for (size_t i = 0; i < l.count; i++)
        if (l.all[i].from <= peak && peak <= l.all[i].to)
            held[l.all[i].kind] += l.all[i].bytes;
    for (int k = 0; k < SF_MEMORY_KIND_COUNT; k++) {
        out->by_kind[k] = to_bytes(held[k]);
        sum += held[k];
    }
    out->memory = to_bytes(sum);
    if (top->nnodes > 0)
        out->peak = top->nodes[place < top->nnodes ? place : top->nnodes - 1];
    sf_arena_free(&l.arena);
}

sf_status sf_find_relief(const sf_efforts *efforts, const sf_plan *plan, sf_diag *diag,
                         sf_relief *out)
{
    const uint32_t batch = 1u << SF_MEMORY_ACTIVATION | 1u << SF_MEMORY_BATCH;
    lives l = {.efforts = efforts, .graph = efforts->graph, .mesh = &plan->mesh};
    sf_moves *moves;
    sf_status status = sf_moves_of(efforts->graph, plan, &l.arena, diag, &moves);
    if (status == SF_OK) {
        double bytes;
        l.moves = moves;
        find_when(&l);
        find_storages(&l);
        find_peak(&l, (view){.kinds = ALL_KINDS & ~batch}, &bytes);
        out->state = to_bytes(bytes);
        find_peak(&l, (view){.kinds = batch}, &bytes);
        out->batch = to_bytes(bytes);
        find_peak(&l, (view){.kinds = ALL_KINDS, .again = true}, &bytes);
        out->again = to_bytes(bytes);
    }
    sf_arena_free(&l.arena);
    return status;
}

sf_status sf_find_held(const sf_efforts *efforts, const sf_plan *plan, sf_arena *arena,
                       sf_diag *diag, double **out)
{
    lives l = {.efforts = efforts, .graph = efforts->graph, .mesh = &plan->mesh};
    sf_moves *moves;
    double most;
    *out = SF_ARRAY(arena, efforts->graph->nvalues, double);
    sf_status status = sf_moves_of(efforts->graph, plan, &l.arena, diag, &moves);
    if (status == SF_OK) {
        l.moves = moves;
        find_when(&l);
        find_storages(&l);
        int64_t peak = find_peak(&l, (view){.kinds = ALL_KINDS}, &most);
        bool *counted = SF_ARRAY(&l.arena, l.count, bool);
        for (uint32_t v = 0; v < moves->nversions; v++) {
            uint32_t at = l.storages[v];
            if (at == SF_NONE || counted[at] || l.all[at].from > peak || peak > l.all[at].to)
                continue;
            counted[at] = true;
            (*out)[moves->versions[v].value] += l.all[at].bytes;
        }
    }
    sf_arena_free(&l.arena);
    return status;
}
