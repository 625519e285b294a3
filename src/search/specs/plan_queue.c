#include "search/specs/plan_queue.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "base/machine.h"

enum { MOST_WIDTH = 64 };

typedef struct entry {
    sf_choice choice;
    sf_judged judged;
    int expanded; /* by moves without passes, 1; and by those with them, 2 */
    bool is_echo; /* an earlier one costs the same: it says the same in other words */
} entry;

typedef struct queue {
    const sf_queue_options *options;
    const sf_judge *judge;
    sf_arena arena;
    entry *entries;
    size_t count, capacity, estimated;
    size_t nodes; /* of the step */
    struct finalist *finalists;
    size_t nfinalists, finalist_capacity;
} queue;

static double key_of(const entry *e)
{
    return !e->judged.is_plan ? HUGE_VAL : e->judged.seconds * fmax(1, e->judged.filled);
}

static bool is_over(const queue *q)
{
    const sf_queue_options *o = q->options;
    return (o->deadline > 0 && sf_now() > o->deadline) || sf_interrupt_is_raised(o->interrupt);
}

static bool is_known(const queue *q, const sf_choice *choice)
{
    for (size_t i = 0; i < q->count; i++)
        if (sf_choice_same(&q->entries[i].choice, choice))
            return true;
    return false;
}

/* Whether another choice costs the same: then it says the same in other words, and its moves say no more. */
static bool is_echo(const queue *q, const entry *e)
{
    for (const entry *other = q->entries; other < e; other++)
        if (other->judged.is_plan && other->judged.seconds == e->judged.seconds &&
            other->judged.filled == e->judged.filled)
            return true;
    return false;
}

static void add(void *context, const sf_choice *choice)
{
    queue *q = context;
    entry e = {.choice = *choice};
    if (sf_choice_obey(q->options->rules, &e.choice) && !is_known(q, &e.choice))
        SF_PUSH(&q->arena, q->entries, q->count, q->capacity, e);
}

/* Estimates ------------------------------------------------------------------------------------------ */

static void estimate_one(void *context, int64_t i, int part)
{
    queue *q = context;
    entry *e = &q->entries[q->estimated + (size_t)i];
    (void)part;
    e->judged = sf_judge_estimate(q->judge, &e->choice);
}

static void estimate_new(queue *q)
{
    sf_guarded_each(q->options->threads, (int64_t)(q->count - q->estimated), estimate_one, q);
    for (; q->estimated < q->count; q->estimated++)
        q->entries[q->estimated].is_echo = is_echo(q, &q->entries[q->estimated]);
}

/* The first `count` of the queue, by their keys; returns how many there are. */
static int find_first(const queue *q, int count, entry **out)
{
    int found = 0;
    for (size_t i = 0; i < q->count; i++) {
        entry *e = &q->entries[i];
        int at = found;
        if (!e->judged.is_plan || e->is_echo)
            continue;
        while (at > 0 && key_of(out[at - 1]) > key_of(e))
            at--;
        if (at == count)
            continue;
        found += found < count;
        memmove(out + at + 1, out + at, (size_t)(found - at - 1) * sizeof *out);
        out[at] = e;
    }
    return found;
}

/* State in shards that passes gather and free, with what is computed again as the text says, and with cheap values computed again:
 * the estimates of passes are dear, so that moves to them come late. */
static void add_by_passes(queue *q, sf_choice c)
{
    c.genes[SF_GENE_STATE] = SF_STATE_BY_PASSES;
    c.genes[SF_GENE_RECOMPUTE] = 0;
    add(q, &c);
    c.genes[SF_GENE_RECOMPUTE] = 2;
    add(q, &c);
}

/* A mesh, with nothing else; as ZeRO-3 with cheap values recomputed; and with state by passes. What is between is a move away. */
static void add_mesh(queue *q, int groups, int data, int role, int size)
{
    sf_choice c = {
        .axes = {1, 1, 1, 1, 1, 1, 1}, .micro_batches = groups > 1 ? 2 * groups : 1, .chunks = 1};
    c.axes[SF_AXIS_PIPE] = groups;
    c.axes[SF_AXIS_DATA] = data;
    c.axes[role] *= size;
    add(q, &c);
    c.genes[SF_GENE_STATE] = c.axes[SF_AXIS_DATA] == 1 ? 0 : groups > 1 ? 1 : 3;
    c.genes[SF_GENE_RECOMPUTE] = 2;
    add(q, &c);
    if (groups == 1 && c.axes[SF_AXIS_DATA] > 1)
        add_by_passes(q, c);
}

/* State is sharded within nodes. */
static void add_replicas(queue *q, int replicas, int data)
{
    sf_choice c = {.axes = {1, 1, replicas, data, 1, 1, 1}, .micro_batches = 1, .chunks = 1};
    c.genes[SF_GENE_STATE] = 3;
    c.genes[SF_GENE_RECOMPUTE] = 2;
    add(q, &c);
    add_by_passes(q, c);
}

/* All devices along one axis; nodes along data, the devices of each along another; pipeline ranks, and data along the rest. */
static void add_recipes(queue *q)
{
    const sf_cluster *cluster = q->options->cluster;
    int devices = cluster->ndevices, nodes = cluster->nnodes;
    add_mesh(q, 1, 1, SF_AXIS_DATA, devices);
    if (devices > 1)
        add_mesh(q, 1, 1, SF_AXIS_UNUSED, devices);
    if (nodes > 1 && nodes < devices && devices % nodes == 0)
        add_replicas(q, nodes, devices / nodes);
    for (int role = SF_AXIS_SEQ; role < SF_AXIS_ROLES; role++) {
        if (nodes == 1 || nodes == devices || devices % nodes != 0)
            add_mesh(q, 1, 1, role, devices);
        else
            add_mesh(q, 1, nodes, role, devices / nodes);
    }
    for (int groups = 2; groups <= devices && groups <= 16; groups *= 2)
        if (devices % groups == 0)
            add_mesh(q, groups, 1, SF_AXIS_DATA, devices / groups);
}

/* The first that is not expanded: by moves without passes, and with them where it is still among the first then. */
static bool expand_first(queue *q, int width)
{
    entry *first[MOST_WIDTH];
    int count = find_first(q, width < MOST_WIDTH ? width : MOST_WIDTH, first);
    for (int i = 0; i < count; i++) {
        entry *e = first[i];
        bool passes = e->expanded == 1;
        if (e->expanded == 2)
            continue;
        sf_choice choice = e->choice;
        e->expanded++;
        sf_choice_moves(&choice, passes, add, q);
        estimate_new(q);
        return true;
    }
    return false;
}

/* The judge ------------------------------------------------------------------------------------------ */

/* A choice to be simulated: of a queue, or one that recomputes so much that it just fits, between two of the queue that differ in
 * what they recompute. */
typedef struct finalist {
    const entry *at;    /* which fits, or is thought to */
    const entry *loose; /* the same with less recomputed, which does not; or NULL */
    double kept;        /* the part of the forward pass that is as in `loose` */
    double seconds;
} finalist;

static bool is_same_but_recompute(const sf_choice *a, const sf_choice *b)
{
    sf_choice c = *a;
    c.genes[SF_GENE_RECOMPUTE] = b->genes[SF_GENE_RECOMPUTE];
    return sf_choice_same(&c, b);
}

static bool is_plain(const entry *e)
{
    const char *recompute = sf_gene_text(&e->choice, SF_GENE_RECOMPUTE);
    return e->choice.axes[SF_AXIS_PIPE] == 1 && e->choice.micro_batches == 1 &&
           (strcmp(recompute, "none") == 0 || strcmp(recompute, "text") == 0);
}

static void add_finalist(queue *q, finalist f)
{
    SF_PUSH(&q->arena, q->finalists, q->nfinalists, q->finalist_capacity, f);
}

/* As far as its estimate is exact. */
static bool may_fit(const sf_judged *judged)
{
    return judged->is_plan && judged->filled <= 1 + SF_FOLD_MEMORY_ERROR;
}

static void list_finalists(queue *q)
{
    for (size_t i = 0; i < q->count; i++) {
        const entry *tight = &q->entries[i];
        if (!may_fit(&tight->judged) || tight->is_echo)
            continue;
        add_finalist(q, (finalist){tight, NULL, 0, tight->judged.seconds});
        for (size_t k = 0; k < q->count; k++) {
            const entry *loose = &q->entries[k];
            const sf_judged *l = &loose->judged, *t = &tight->judged;
            if (loose->is_echo || !is_plain(loose) || !l->is_plan || l->filled <= 1 ||
                l->seconds >= t->seconds || !is_same_but_recompute(&loose->choice, &tight->choice))
                continue;
            if (t->filled >= 1)
                continue;
            double kept = (1 - t->filled) / (l->filled - t->filled);
            add_finalist(
                q, (finalist){tight, loose, kept, t->seconds + kept * (l->seconds - t->seconds)});
        }
    }
}

static int by_seconds(const void *a, const void *b)
{
    const finalist *x = a, *y = b;
    if (x->seconds != y->seconds)
        return x->seconds < y->seconds ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

/* Keeps less where it does not fit: the memory that is missing, by the slope between the two estimates. */
static sf_judged simulate_as(queue *q, finalist *f, bool placed, sf_queue_found *out,
                             sf_plan **plan, sf_price *price)
{
    enum { TRIES = 3 };
    sf_judged judged = {0};
    for (int i = 0; i < TRIES; i++) {
        sf_plan_free(*plan);
        *plan = NULL;
        judged = sf_judge_simulate(q->judge, &f->at->choice, f->kept, placed, plan, price);
        out->simulated++;
        if (!judged.is_plan || judged.filled <= 1 || f->kept <= 0)
            break;
        f->kept -= (judged.filled - 1) / (f->loose->judged.filled - f->at->judged.filled);
        f->kept = fmax(0, f->kept - 1e-3);
    }
    return judged;
}

/* Places, which take most of the time, only for what may be faster than the best. */
static sf_judged simulate(queue *q, finalist *f, double best, sf_queue_found *out, sf_plan **plan,
                          sf_price *price)
{
    sf_judged judged = simulate_as(q, f, false, out, plan, price);
    return sf_judged_fits(&judged) && judged.seconds < best
               ? simulate_as(q, f, true, out, plan, price)
               : judged;
}

/* Nodes of the programs that are lowered. */
static double count_work(const queue *q, const sf_choice *choice)
{
    double nodes = (double)q->nodes;
    return choice->axes[SF_AXIS_PIPE] > 1 ? nodes * choice->micro_batches : nodes;
}

/* As much work as for the estimates, and the first in any case. */
static void judge_first(queue *q, sf_queue_found *out)
{
    double best = q->options->known > 0 ? q->options->known : HUGE_VAL;
    double left = (double)q->estimated * sf_judge_work(q->judge);
    list_finalists(q);
    if (q->nfinalists > 1)
        qsort(q->finalists, q->nfinalists, sizeof *q->finalists, by_seconds);
    for (size_t i = 0; i < q->nfinalists && q->finalists[i].seconds < best && !is_over(q); i++) {
        finalist *f = &q->finalists[i];
        sf_plan *plan = NULL;
        sf_price price;
        double work = count_work(q, &f->at->choice);
        if (work > left && i > 0)
            continue;
        left -= work;
        sf_judged judged = simulate(q, f, best, out, &plan, &price);
        if (sf_judged_fits(&judged) && judged.seconds < best) {
            best = judged.seconds;
            sf_plan_free(out->plan);
            out->plan = plan;
            out->price = price;
            out->choice = f->at->choice;
            out->kept = f->kept;
            plan = NULL;
        }
        sf_plan_free(plan);
    }
}

sf_status sf_search_queue(const sf_graph *graph, const sf_queue_options *options,
                          sf_queue_found *out)
{
    sf_judge *judge =
        sf_judge_new(graph, options->cluster, options->target, options->rules, options->memory);
    queue q = {.options = options, .judge = judge, .nodes = graph->nnodes};
    *out = (sf_queue_found){0};
    add_recipes(&q);
    estimate_new(&q);
    while ((int)q.estimated < options->budget && !is_over(&q) && expand_first(&q, options->width))
        ;
    out->estimates = (int)q.estimated;
    judge_first(&q, out);
    sf_arena_free(&q.arena);
    sf_judge_free(judge);
    return SF_OK;
}
