#include "search/price/estimate_time.h"

#include <math.h>

#include "op/flops.h"
#include "search/price/inner.h"
#include "search/price/moments.h"
#include "search/price/move_cost.h"
#include "sim/links.h"

/* No flight; and one that has not begun. */
enum { NONE = -1, UNBEGUN = -2 };

/* What a rank comes to: an instruction, the second half of one, or a move. */
typedef struct item {
    enum { INST, SECOND_HALF, MOVE } kind;
    uint32_t index;
} item;

/* What is put off, in order; the first nrun have been run. */
typedef struct queue {
    item *items;
    size_t count, capacity, nrun;
} queue;

typedef struct walk {
    const sf_efforts *efforts;
    const sf_reshards *reshards;
    const sf_mesh *mesh;
    const sf_costs *costs;
    sf_arena *arena;
    double now, compute; /* of what is computed: the time, and what was spent */
    sf_timing *flights;  /* collectives, in the order in which they take off */
    size_t nflights, flight_capacity;
    sf_links links;
    int64_t *by_move; /* its flight, or that of what it is cut from, NONE or UNBEGUN */
    int64_t *by_bucket;
    uint32_t *filled;      /* by bucket: members so far, */
    int64_t *bucket_needs; /* and the last flight that makes an operand of theirs, or NONE */
    bool *is_second;       /* by node: it is of the second half of its instruction */
    bool *is_cut;          /* by instruction: it has a second half */
    double *
        more[2]; /* by instruction, of each half: bytes that moves make it read and write besides */
    const uint32_t *moments; /* by move */
    bool *is_late;           /* by node: it is put off */
    queue updates;           /* instructions, and what goes with them; */
    queue sends;             /* collectives of the update, */
    size_t nearlier;         /* which wait until so many others have been sent */
} walk;

/* Clocks */

static int64_t later_of(const walk *w, int64_t a, int64_t b)
{
    if (a >= 0 && b >= 0)
        return w->flights[a].end > w->flights[b].end ? a : b;
    return a > b ? a : b;
}

static void wait_for_move(walk *w, int64_t awaited)
{
    if (awaited >= 0)
        w->now = sf_wait_exposed(w->flights, NULL, w->nflights, (uint32_t)awaited, w->now);
}

static void add_compute(walk *w, double seconds)
{
    w->now += seconds;
    w->compute += seconds;
}

static int64_t take_off(walk *w, const sf_resharding *reshard, double bytes)
{
    double seconds =
        sf_costs_collective(w->costs, sf_reshard_collective(reshard->kind), reshard->axes, bytes);
    double start = sf_links_take(&w->links, w->costs, reshard->axes, w->now, seconds);
    sf_timing taken = {.start = start, .end = start + seconds, .bytes = bytes};
    SF_PUSH(w->arena, w->flights, w->nflights, w->flight_capacity, taken);
    return (int64_t)w->nflights - 1;
}

/* Versions */

static bool is_shown_by_view(const walk *w, const sf_node *node)
{
    return w->efforts->made[node->result] != w->efforts->nodes[node->id].inst + 1;
}

/* The flight behind a version: of the move that makes it, or of what a view is a view of. */
static int64_t flight_behind(const walk *w, uint32_t version)
{
    const sf_reshards *m = w->reshards;
    uint32_t at = m->versions[version].same, reshard = m->versions[at].reshard;
    if (reshard != SF_NONE) {
        uint32_t bucket = m->reshards[reshard].bucket;
        return bucket == SF_NONE ? w->by_move[reshard] : w->by_bucket[bucket];
    }
    const sf_node *maker = sf_maker(w->efforts->graph, m->versions[at].value);
    int64_t found = NONE;
    if (!maker || !is_shown_by_view(w, maker))
        return NONE; /* what is computed is there by now */
    for (uint32_t r = 0; r < m->nreads[maker->id]; r++)
        found = later_of(w, found, flight_behind(w, m->reads[m->first_read[maker->id] + r]));
    return found;
}

/* Whether the version is there now: nothing that it needs is under way, or put off. */
static bool is_there(const walk *w, uint32_t version)
{
    const sf_value_version *v = &w->reshards->versions[w->reshards->versions[version].same];
    const sf_node *maker = sf_maker(w->efforts->graph, v->value);
    int64_t after = flight_behind(w, version);
    if (after == UNBEGUN || (after >= 0 && w->flights[after].end > w->now))
        return false;
    return v->reshard != SF_NONE || !maker || !w->is_late[maker->id];
}

/* Moves */

/* What a collective sends is copied when it is made, what it leaves where it is first read. */
static void copy_around(walk *w, const sf_resharding *reshard)
{
    sf_copies copies = sf_copies_of(w->efforts, w->reshards, reshard);
    add_compute(w, sf_copy_seconds(w->costs, copies.before));
    bool second = reshard->wanted != SF_NONE && w->is_second[reshard->wanted];
    w->more[second][sf_reading_inst(w->efforts, reshard)] += 2 * copies.after;
}

/* Whether it is sent before all that the update sends, as ranks send in the order of the text. */
static bool is_earlier(const sf_resharding *reshard)
{
    return reshard->phase != SF_UPDATE && !sf_is_local_reshard(reshard->kind);
}

/* A bucket takes off when its last member is there. */
static void fill_bucket(walk *w, const sf_resharding *reshard)
{
    const sf_bucket *bucket = &w->reshards->buckets[reshard->bucket];
    int64_t *needs = &w->bucket_needs[reshard->bucket];
    *needs = later_of(w, *needs, flight_behind(w, reshard->from));
    if (++w->filled[reshard->bucket] < bucket->count)
        return;
    wait_for_move(w, *needs);
    w->by_bucket[reshard->bucket] = take_off(w, reshard, bucket->bytes);
}

static void make_move(walk *w, uint32_t index)
{
    const sf_resharding *reshard = &w->reshards->reshards[index];
    double larger = sf_larger_shard(reshard);
    w->nearlier -= is_earlier(reshard);
    copy_around(w, reshard);
    if (reshard->bucket != SF_NONE) {
        fill_bucket(w, reshard);
    } else if (!sf_is_local_reshard(reshard->kind)) {
        wait_for_move(w, flight_behind(w, reshard->from));
        w->by_move[index] = take_off(w, reshard, larger);
    } else {
        w->by_move[index] = flight_behind(w, reshard->from);
        if (reshard->kind == SF_RESHARD_MASK && w->efforts->place[reshard->value] != SF_NONE)
            add_compute(w, sf_copy_seconds(w->costs, larger));
    }
}

/* Instructions */

/* A node that reads what its own instruction has made and a move has changed runs behind the move, and so does what
 * reads that. */
static void cut_inst(walk *w, uint32_t inst)
{
    const sf_efforts *f = w->efforts;
    const sf_reshards *m = w->reshards;
    for (uint32_t k = f->first_of[inst]; k < f->first_of[inst + 1]; k++) {
        uint32_t id = f->nodes_of[k];
        for (uint32_t r = 0; r < m->nreads[id]; r++) {
            const sf_value_version *read = &m->versions[m->reads[m->first_read[id] + r]];
            const sf_value_version *same = &m->versions[read->same];
            const sf_node *maker = sf_maker(f->graph, same->value);
            if (!maker || f->made[same->value] != inst + 1)
                continue;
            if (same->reshard != SF_NONE)
                w->more[1][inst] += m->reshards[same->reshard].after;
            if (same->reshard != SF_NONE || w->is_second[maker->id])
                w->is_second[id] = w->is_cut[inst] = true;
        }
    }
}

/* A value that leaves an instruction in which it is a register alone is stored for that. */
static void store_moved(walk *w)
{
    const sf_efforts *f = w->efforts;
    for (size_t i = 0; i < w->reshards->nreshards; i++) {
        const sf_resharding *reshard = &w->reshards->reshards[i];
        const sf_node *maker = sf_maker(f->graph, reshard->value);
        if (w->reshards->versions[reshard->from].reshard == SF_NONE && maker &&
            !f->stored[reshard->value] && f->place[reshard->value] != SF_NONE &&
            f->made[reshard->value] > 0)
            w->more[w->is_second[maker->id]][f->made[reshard->value] - 1] += reshard->before;
    }
}

static bool is_in_bucket(const walk *w, item at, uint32_t node)
{
    return w->is_second[node] == (at.kind == SECOND_HALF);
}

static void run_cut_inst(walk *w, item at)
{
    const sf_efforts *f = w->efforts;
    const sf_reshards *m = w->reshards;
    sf_effort joint = {.bytes = w->more[at.kind == SECOND_HALF][at.index]};
    int64_t needs = NONE;
    double inner = 0; /* of collectives */
    for (uint32_t k = f->first_of[at.index]; k < f->first_of[at.index + 1]; k++) {
        const sf_node *node = f->graph->nodes[f->nodes_of[k]];
        if (!is_in_bucket(w, at, node->id))
            continue;
        sf_effort effort = sf_effort_of(f, node, m->plan->nodes[node->id], w->mesh);
        sf_effort_join(&joint, &effort);
        if (sf_is_control(node))
            inner += sf_inner_work_of(f->graph, node, m->plan->nodes[node->id], w->mesh, w->costs)
                         .seconds;
        w->is_late[node->id] = false;
        for (uint32_t r = 0; r < m->nreads[node->id]; r++)
            needs = later_of(w, needs, flight_behind(w, m->reads[m->first_read[node->id] + r]));
    }
    wait_for_move(w, needs);
    add_compute(w, sf_costs_op(w->costs, &joint) + inner);
}

/* Putting off: what is of the update and needs what is under way is run when that has landed; what it sends is sent
 * behind all else. */

/* Whether the version is as it is made within what is to be run. */
static bool is_inside_inst(const walk *w, item at, uint32_t version)
{
    const sf_value_version *v = &w->reshards->versions[w->reshards->versions[version].same];
    const sf_node *maker = sf_maker(w->efforts->graph, v->value);
    return v->reshard == SF_NONE && maker && w->efforts->nodes[maker->id].inst == at.index &&
           is_in_bucket(w, at, maker->id);
}

static bool can_run_inst(const walk *w, item at)
{
    const sf_efforts *f = w->efforts;
    const sf_reshards *m = w->reshards;
    for (uint32_t k = f->first_of[at.index]; k < f->first_of[at.index + 1]; k++)
        for (uint32_t r = 0, id = f->nodes_of[k]; r < m->nreads[id] && is_in_bucket(w, at, id);
             r++) {
            uint32_t read = m->reads[m->first_read[id] + r];
            if (!is_inside_inst(w, at, read) && !is_there(w, read))
                return false;
        }
    return true;
}

static bool can_run(const walk *w, item at)
{
    return at.kind == MOVE ? is_there(w, w->reshards->reshards[at.index].from)
                           : can_run_inst(w, at);
}

static void run_item(walk *w, item at)
{
    if (at.kind == MOVE)
        make_move(w, at.index);
    else
        run_cut_inst(w, at);
}

/* Whether what it makes in the end is of the update. */
static bool is_of_update(const walk *w, item at)
{
    const sf_efforts *f = w->efforts;
    if (at.kind == MOVE)
        return w->reshards->reshards[at.index].phase == SF_UPDATE;
    for (uint32_t k = f->first_of[at.index + 1]; k-- > f->first_of[at.index];)
        if (is_in_bucket(w, at, f->nodes_of[k]))
            return f->graph->nodes[f->nodes_of[k]]->phase == SF_UPDATE;
    return false;
}

static bool is_sent(const walk *w, item at)
{
    return at.kind == MOVE && !sf_is_local_reshard(w->reshards->reshards[at.index].kind);
}

static void put_off(walk *w, queue *q, item at)
{
    const sf_efforts *f = w->efforts;
    SF_PUSH(w->arena, q->items, q->count, q->capacity, at);
    if (at.kind == MOVE)
        return;
    for (uint32_t k = f->first_of[at.index]; k < f->first_of[at.index + 1]; k++)
        if (is_in_bucket(w, at, f->nodes_of[k]))
            w->is_late[f->nodes_of[k]] = true;
}

/* Runs what was put off and can be run now; `all`: whatever must be waited for. */
static void run_queue(walk *w, queue *q, bool all)
{
    while (q->nrun < q->count && (all || can_run(w, q->items[q->nrun])))
        run_item(w, q->items[q->nrun++]);
}

static void come_to(walk *w, item at)
{
    run_queue(w, &w->updates, false);
    if (w->nearlier == 0)
        run_queue(w, &w->sends, false);
    bool is_late = is_of_update(w, at);
    if (is_late && is_sent(w, at) && w->nearlier > 0)
        put_off(w, &w->sends, at);
    else if (is_late && !can_run(w, at))
        put_off(w, &w->updates, at);
    else
        run_item(w, at);
}

/* The step */

/* Moves by moment: those of moment t are moves[first[t]] .. moves[first[t + 1]]. */
typedef struct timeline {
    uint32_t *first, *reshards;
} timeline;

static timeline order_moves(walk *w)
{
    uint32_t count = sf_moment(w->efforts->ninsts + 1, SF_BEFORE);
    size_t nreshards = w->reshards->nreshards;
    timeline t = {SF_ARRAY(w->arena, count + 2, uint32_t), SF_ARRAY(w->arena, nreshards, uint32_t)};
    for (size_t i = 0; i < nreshards; i++)
        t.first[w->moments[i] + 2]++;
    for (uint32_t k = 2; k < count + 2; k++)
        t.first[k] += t.first[k - 1];
    for (uint32_t i = 0; i < nreshards; i++)
        t.reshards[t.first[w->moments[i] + 1]++] = i;
    return t;
}

static void run_plan_step(walk *w)
{
    timeline t = order_moves(w);
    uint32_t ninsts = w->efforts->ninsts;
    for (uint32_t moment = 0; moment < sf_moment(ninsts + 1, SF_BEFORE); moment++) {
        uint32_t inst = moment / SF_MOMENTS, part = moment % SF_MOMENTS;
        if (inst < ninsts && part == SF_BEHIND)
            come_to(w, (item){INST, inst});
        if (inst < ninsts && part == SF_BEHIND_ALL && w->is_cut[inst])
            come_to(w, (item){SECOND_HALF, inst});
        for (uint32_t k = t.first[moment]; k < t.first[moment + 1]; k++)
            come_to(w, (item){MOVE, t.reshards[k]});
    }
    run_queue(w, &w->updates, true);
    run_queue(w, &w->sends, true);
    for (size_t i = 0; i < w->nflights; i++)
        wait_for_move(w, (int64_t)i);
    add_compute(w, sf_copy_seconds(w->costs, w->more[0][ninsts] / 2));
}

/* What is hidden is not for nothing where it drags on what is beside it. */
static void add_up_price(walk *w, sf_price *out)
{
    double drag = sf_costs_drag(w->costs);
    for (size_t i = 0; i < w->nflights; i++) {
        sf_timing *f = &w->flights[i];
        double hidden = fmax(0, f->end - f->start - f->exposed);
        f->exposed += drag * hidden;
        w->now += drag * hidden;
        out->hidden += (1 - drag) * hidden;
        out->traffic += f->bytes;
    }
    out->seconds = w->now;
    out->compute = w->compute;
    out->exposed = w->now - w->compute;
    out->ncollectives = (int)w->nflights;
}

/* Each tensor of a bucket has its part of the time. */
static void show_moves(const walk *w, sf_see_reshard *see, void *context)
{
    const sf_reshards *m = w->reshards;
    for (size_t i = 0; i < m->nreshards; i++) {
        const sf_resharding *reshard = &m->reshards[i];
        if (sf_is_local_reshard(reshard->kind))
            continue;
        const sf_timing *f = &w->flights[flight_behind(w, reshard->to)];
        double bytes = sf_larger_shard(reshard), part = f->bytes > 0 ? bytes / f->bytes : 1;
        sf_simulated_reshard shown = {.value = reshard->value,
                                      .kind = reshard->kind,
                                      .axes = reshard->axes,
                                      .phase = reshard->phase,
                                      .bytes = bytes,
                                      .seconds = part * (f->end - f->start),
                                      .exposed = part * f->exposed,
                                      .before = *m->versions[reshard->from].layout,
                                      .after = *m->versions[reshard->to].layout};
        see(context, &shown);
    }
}

static int64_t *new_flights(walk *w, size_t count, int64_t first)
{
    int64_t *all = SF_ARRAY(w->arena, count, int64_t);
    for (size_t i = 0; i < count; i++)
        all[i] = first;
    return all;
}

static walk open_walk(const sf_efforts *efforts, const sf_reshards *reshards, const sf_costs *costs,
                      sf_arena *arena)
{
    const sf_graph *graph = efforts->graph;
    walk w = {.efforts = efforts,
              .reshards = reshards,
              .mesh = &reshards->plan->mesh,
              .costs = costs,
              .arena = arena,
              .is_second = SF_ARRAY(arena, graph->nnodes, bool),
              .is_cut = SF_ARRAY(arena, efforts->ninsts, bool),
              .is_late = SF_ARRAY(arena, graph->nnodes, bool),
              .filled = SF_ARRAY(arena, reshards->nbuckets, uint32_t)};
    for (int half = 0; half < 2; half++)
        w.more[half] = SF_ARRAY(arena, efforts->ninsts + 1, double);
    for (size_t i = 0; i < reshards->nreshards; i++)
        w.nearlier += is_earlier(&reshards->reshards[i]);
    w.by_move = new_flights(&w, reshards->nreshards, UNBEGUN);
    w.by_bucket = new_flights(&w, reshards->nbuckets, UNBEGUN);
    w.bucket_needs = new_flights(&w, reshards->nbuckets, NONE);
    return w;
}

const uint32_t *sf_estimate_time(const sf_efforts *efforts, const sf_reshards *reshards,
                                 const sf_costs *costs, sf_arena *arena, sf_see_reshard *see,
                                 void *context, sf_price *out)
{
    walk w = open_walk(efforts, reshards, costs, arena);
    for (uint32_t i = 0; i < efforts->ninsts; i++)
        cut_inst(&w, i);
    store_moved(&w);
    w.moments = sf_find_moments(efforts, reshards, w.is_second, arena);
    run_plan_step(&w);
    add_up_price(&w, out);
    if (see)
        show_moves(&w, see, context);
    return w.moments;
}
