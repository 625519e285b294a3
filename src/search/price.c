#include "search/price.h"

#include <math.h>

#include "plan/moves.h"
#include "search/copies.h"
#include "search/lives.h"

const char *sf_memory_kind_name(sf_memory_kind kind)
{
    static const char *const names[] = {"parameters", "optimizer state", "batch",
                                        "gradients",  "activations",     "moved versions"};
    return names[kind];
}

static sf_collective collective_of(sf_move_kind kind)
{
    switch (kind) {
    case SF_MOVE_GATHER:
        return SF_ALL_GATHER;
    case SF_MOVE_REDUCE:
        return SF_ALL_REDUCE;
    case SF_MOVE_SCATTER:
        return SF_REDUCE_SCATTER;
    case SF_MOVE_EXCHANGE:
        return SF_ALL_TO_ALL;
    case SF_MOVE_SLICE:
    case SF_MOVE_MASK:
    case SF_MOVE_SWAP:
    case SF_MOVE_KIND_COUNT:
    default:
        return SF_PERMUTE;
    }
}

/* The larger of the pieces is `bytes`; a slice reads and writes the smaller one. */
static double seconds_of(const sf_costs *costs, const sf_mesh *mesh, sf_move_kind kind,
                         sf_axes axes, double bytes)
{
    int size = sf_group_size(mesh, axes);
    if (size == 1)
        return 0;
    if (!sf_is_local_move(kind))
        return sf_costs_collective(costs, collective_of(kind), axes, bytes);
    sf_effort copy = {.bytes = 2 * bytes / (kind == SF_MOVE_SLICE ? size : 1)};
    return sf_costs_op(costs, &copy);
}

double sf_move_seconds(void *context, const sf_mesh *mesh, sf_move_kind kind, sf_axes axes,
                       double bytes)
{
    return seconds_of(context, mesh, kind, axes, bytes);
}

double sf_move_seconds_together(void *context, const sf_mesh *mesh, sf_move_kind kind, sf_axes axes,
                                double bytes)
{
    enum { COMPANY = 16 }; /* tensors in a bucket that starts at once */
    double alone = seconds_of(context, mesh, kind, axes, bytes);
    if (sf_is_local_move(kind) || bytes >= SF_BUCKET_BYTES)
        return alone;
    double full = seconds_of(context, mesh, kind, axes, SF_BUCKET_BYTES);
    double start = seconds_of(context, mesh, kind, axes, 0);
    return fmin(alone, start / COMPANY + full * (bytes / SF_BUCKET_BYTES));
}

/* A collective on its stream. */
typedef struct run {
    double start, end, bytes;
    double exposed; /* what the ops wait for it, and what it takes from those beside it */
} run;

enum { NONE = -1 }; /* no run */

typedef struct simulation {
    const sf_efforts *efforts;
    const sf_moves *moves;
    const sf_mesh *mesh;
    const sf_costs *costs;
    sf_arena arena;
    double now, compute; /* on the stream of ops: the time, and what was spent in ops */
    double late;         /* copies behind collectives that nobody but the caller waits for */
    run *runs;           /* one after the other */
    size_t nruns, run_capacity;
    int64_t *run_of; /* by move: its run, or that of what it is cut from, or NONE */
    int64_t *bucket_run;
    uint32_t *filled;      /* by bucket: members so far, */
    int64_t *bucket_needs; /* and the last run that makes an operand of theirs, or NONE */
    int64_t *awaited;      /* by version as made: what a view of it waits for, or NONE */
    sf_effort *joint;      /* by kernel: what it does, as far as it has been walked */
    int64_t *needs;        /* by kernel: the last run that it reads from, or NONE */
    bool *leaves;          /* by value: it is moved as it was made, though it is not stored */
    int64_t *lands; /* by version of the update: the run after which it can be made, or NONE */
} simulation;

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The run behind a version. */
static int64_t run_behind(const simulation *s, uint32_t version)
{
    uint32_t at = s->moves->versions[version].same, move = s->moves->versions[at].move;
    if (move == SF_NONE)
        return s->awaited[at];
    uint32_t bucket = s->moves->moves[move].bucket;
    return bucket == SF_NONE ? s->run_of[move] : s->bucket_run[bucket];
}

/* Runs that go on while the ops wait are exposed. */
static void wait_for(simulation *s, int64_t awaited)
{
    if (awaited == NONE || s->runs[awaited].end <= s->now)
        return;
    for (int64_t i = awaited; i >= 0 && s->runs[i].end > s->now; i--)
        s->runs[i].exposed += s->runs[i].end - fmax(s->runs[i].start, s->now);
    s->now = s->runs[awaited].end;
}

static void compute(simulation *s, double seconds)
{
    s->now += seconds;
    s->compute += seconds;
}

/* The operand is there: what ops make is made by now, and what runs make was waited for. */
static int64_t start_run(simulation *s, const sf_moving *move, double bytes)
{
    double start = s->nruns > 0 ? fmax(s->now, s->runs[s->nruns - 1].end) : s->now;
    double seconds = sf_costs_collective(s->costs, collective_of(move->kind), move->axes, bytes);
    run r = {.start = start, .end = start + seconds, .bytes = bytes};
    SF_PUSH(&s->arena, s->runs, s->nruns, s->run_capacity, r);
    return (int64_t)s->nruns - 1;
}

/* What a collective sends is copied when it is made, what it leaves where it is first read. */
static void copy_around(simulation *s, const sf_moving *move)
{
    sf_copies copies = sf_copies_of(s->efforts, s->moves, move);
    compute(s, sf_copy_seconds(s->costs, copies.before));
    if (move->wanted == SF_NONE)
        s->late += sf_copy_seconds(s->costs, copies.behind);
    else
        s->joint[s->efforts->nodes[move->wanted].kernel].bytes += 2 * copies.behind;
}

/* A bucket runs when its last member is there. */
static void run_move(simulation *s, uint32_t index)
{
    const sf_moving *move = &s->moves->moves[index];
    copy_around(s, move);
    if (move->bucket != SF_NONE) {
        const sf_bucket *bucket = &s->moves->buckets[move->bucket];
        int64_t *needs = &s->bucket_needs[move->bucket];
        *needs = later(*needs, run_behind(s, move->from));
        if (++s->filled[move->bucket] < bucket->count)
            return;
        wait_for(s, *needs);
        s->bucket_run[move->bucket] = start_run(s, move, bucket->bytes);
    } else if (!sf_is_local_move(move->kind)) {
        wait_for(s, run_behind(s, move->from));
        s->run_of[index] = start_run(s, move, sf_larger_piece(move));
    } else {
        s->run_of[index] = run_behind(s, move->from);
        if (s->efforts->place[move->value] != SF_NONE)
            compute(s,
                    seconds_of(s->costs, s->mesh, move->kind, move->axes, sf_larger_piece(move)));
    }
}

static void run_kernel(simulation *s, uint32_t kernel)
{
    wait_for(s, s->needs[kernel]);
    compute(s, sf_costs_op(s->costs, &s->joint[kernel]));
}

static void join(sf_effort *to, const sf_effort *more)
{
    to->flops += more->flops;
    to->bytes += more->bytes;
    if (more->product) {
        to->product = true;
        to->math = more->math;
    }
}

/* A value that leaves in the middle of a kernel cuts it in two. */
static void cut_kernel(simulation *s, const sf_node *node)
{
    uint32_t kernel = s->efforts->nodes[node->id].kernel;
    const sf_layout *layout = &s->moves->plan->nodes[node->id][node->noperands];
    s->joint[kernel].bytes +=
        sf_piece_bytes(sf_type_of(s->efforts->graph, node->result), layout, s->mesh);
    run_kernel(s, kernel);
    s->joint[kernel] = (sf_effort){0};
}

static void run_node(simulation *s, const sf_node *node)
{
    const sf_moves *m = s->moves;
    const sf_node_effort *own = &s->efforts->nodes[node->id];
    sf_effort effort = sf_effort_of(s->efforts, node, m->plan->nodes[node->id], s->mesh);
    int64_t needs = NONE;
    for (uint32_t r = 0; r < m->nreads[node->id]; r++)
        needs = later(needs, run_behind(s, m->reads[m->first_read[node->id] + r]));
    join(&s->joint[own->kernel], &effort);
    s->needs[own->kernel] = later(s->needs[own->kernel], needs);
    if (own->starts)
        run_kernel(s, node->id);
    else if (own->kernel != node->id && s->leaves[node->result])
        cut_kernel(s, node);
    else
        for (uint32_t r = 0; r < node->nresults; r++)
            s->awaited[m->made[node->result + r]] = needs;
}

static void run_step(simulation *s, sf_step_item step)
{
    if (step.is_move)
        run_move(s, step.index);
    else
        run_node(s, s->efforts->graph->nodes[step.index]);
}

static int64_t lands_after(const simulation *s, uint32_t version)
{
    return later(s->lands[s->moves->versions[version].same], run_behind(s, version));
}

static int64_t when_updated(simulation *s, sf_step_item step)
{
    const sf_moves *m = s->moves;
    int64_t after = NONE;
    if (step.is_move) {
        after = lands_after(s, m->moves[step.index].from);
        s->lands[m->moves[step.index].to] = after;
        return after;
    }
    const sf_node *node = s->efforts->graph->nodes[step.index];
    for (uint32_t r = 0; r < m->nreads[node->id]; r++)
        after = later(after, lands_after(s, m->reads[m->first_read[node->id] + r]));
    for (uint32_t r = 0; r < node->nresults; r++)
        s->lands[m->made[node->result + r]] = after;
    return after;
}

static bool is_update(const simulation *s, sf_step_item step)
{
    return (step.is_move ? s->moves->moves[step.index].phase
                         : s->efforts->graph->nodes[step.index]->phase) == SF_UPDATE;
}

/* Updates in the order in which what they wait for lands, those that wait for one run in the order of the step. */
static void run_updates(simulation *s, size_t count, const sf_step_item *updates)
{
    int64_t nruns = (int64_t)s->nruns;
    size_t *starts = SF_ARRAY(&s->arena, nruns + 2, size_t);
    int64_t *after = SF_ARRAY(&s->arena, count, int64_t);
    sf_step_item *ordered = SF_ARRAY(&s->arena, count, sf_step_item);
    for (size_t i = 0; i < count; i++) {
        after[i] = when_updated(s, updates[i]);
        starts[after[i] - NONE + 1]++;
    }
    for (int64_t r = 0; r <= nruns; r++)
        starts[r + 1] += starts[r];
    for (size_t i = 0; i < count; i++)
        ordered[starts[after[i] - NONE]++] = updates[i];
    for (size_t i = 0; i < count; i++)
        run_step(s, ordered[i]);
}

/* Parameters are updated as their gradients come, so that the others are on their way meanwhile (prog/order.c). */
static void run_steps(simulation *s)
{
    const sf_moves *m = s->moves;
    sf_step_item *updates = SF_ARRAY(&s->arena, m->nsteps, sf_step_item);
    size_t count = 0;
    for (size_t i = 0; i < m->nsteps; i++) {
        if (is_update(s, m->steps[i]))
            updates[count++] = m->steps[i];
        else
            run_step(s, m->steps[i]);
    }
    run_updates(s, count, updates);
    wait_for(s, (int64_t)s->nruns - 1);
    compute(s, s->late);
}

static int64_t *no_runs(simulation *s, size_t count)
{
    int64_t *runs = SF_ARRAY(&s->arena, count, int64_t);
    for (size_t i = 0; i < count; i++)
        runs[i] = NONE;
    return runs;
}

static void prepare(simulation *s)
{
    const sf_moves *m = s->moves;
    const sf_graph *graph = s->efforts->graph;
    s->run_of = no_runs(s, m->nmoves);
    s->bucket_run = no_runs(s, m->nbuckets);
    s->bucket_needs = no_runs(s, m->nbuckets);
    s->awaited = no_runs(s, m->nversions);
    s->lands = no_runs(s, m->nversions);
    s->needs = no_runs(s, graph->nnodes);
    s->filled = SF_ARRAY(&s->arena, m->nbuckets, uint32_t);
    s->joint = SF_ARRAY(&s->arena, graph->nnodes, sf_effort);
    s->leaves = SF_ARRAY(&s->arena, graph->nvalues, bool);
    for (size_t i = 0; i < m->nmoves; i++) {
        const sf_moving *move = &m->moves[i];
        if (m->versions[move->from].move == SF_NONE && !s->efforts->stored[move->value] &&
            s->efforts->place[move->value] != SF_NONE)
            s->leaves[move->value] = true;
    }
}

/* What is hidden is not for nothing where it drags on the ops beside it. */
static void add_up(simulation *s, sf_price *out)
{
    for (size_t i = 0; i < s->nruns; i++) {
        run *r = &s->runs[i];
        double hidden = fmax(0, r->end - r->start - r->exposed);
        double drag = sf_costs_drag(s->costs) * hidden;
        r->exposed += drag;
        s->now += drag;
        out->hidden += hidden - drag;
        out->traffic += r->bytes;
    }
    out->seconds = s->now;
    out->compute = s->compute;
    out->exposed = s->now - s->compute;
    out->ncollectives = (int)s->nruns;
}

/* Each tensor of a bucket has its part of the time. */
static void show_moves(const simulation *s, sf_see_move *see, void *context)
{
    const sf_moves *m = s->moves;
    for (size_t i = 0; i < m->nsteps; i++) {
        if (!m->steps[i].is_move)
            continue;
        const sf_moving *move = &m->moves[m->steps[i].index];
        if (sf_is_local_move(move->kind))
            continue;
        const run *r = &s->runs[run_behind(s, move->to)];
        double bytes = sf_larger_piece(move), part = r->bytes > 0 ? bytes / r->bytes : 1;
        sf_priced_move shown = {.value = move->value,
                                .kind = move->kind,
                                .axes = move->axes,
                                .phase = move->phase,
                                .bytes = bytes,
                                .seconds = part * (r->end - r->start),
                                .exposed = part * r->exposed,
                                .before = *m->versions[move->from].layout,
                                .after = *m->versions[move->to].layout};
        see(context, &shown);
    }
}

sf_status sf_price_plan(const sf_efforts *efforts, const sf_plan *plan, const sf_costs *costs,
                        sf_see_move *see, void *context, sf_diag *diag, sf_price *out)
{
    simulation s = {.efforts = efforts, .mesh = &plan->mesh, .costs = costs};
    sf_moves *moves;
    sf_status status = sf_moves_of(efforts->graph, plan, &s.arena, diag, &moves);
    if (status == SF_OK) {
        *out = (sf_price){0};
        s.moves = moves;
        prepare(&s);
        run_steps(&s);
        add_up(&s, out);
        sf_price_memory(efforts, moves, out);
        if (see)
            show_moves(&s, see, context);
    }
    sf_arena_free(&s.arena);
    return status;
}
