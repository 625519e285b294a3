#include "solve/branch.h"

#include <math.h>
#include <string.h>

#include "base/guard.h"
#include "base/mem.h"
#include "solve/dual/dual.h"
#include "solve/reduce/eliminate.h"
#include "solve/reduce/reductions.h"

enum {
    ROUND = 4,                 /* nodes of the tree that are visited at a time */
    ELIMINATE_LIMIT = 1 << 22, /* cells, for the remaining problem of one node */
    FIRST_SWEEPS = 400,        /* for the bound of the root, which starts from nothing */
    SWEEPS = 60,               /* and of the others, which start from their parent's multipliers */
    OPEN_LIMIT = 200000,       /* nodes that wait */
};

/* A node of the tree that waits. */
typedef struct leaf {
    int64_t bound;
    uint64_t order;     /* when it was made: breaks ties */
    bool *keep;         /* [strategies] of the root problem */
    double *multiplier; /* [ntimes] of the root problem */
} leaf;

/* The result of a visit. */
typedef struct visit {
    leaf from;
    int64_t work;
    int64_t bound; /* SF_FORBIDDEN: nothing better is in it */
    bool solved;   /* the remaining problem was solved: `cost` and `choice` */
    int64_t cost;
    uint32_t *choice; /* [nnodes] */
    bool again; /* enough strategies were removed to bound the problem once more before a split */
    bool *low;  /* [strategies]: keep, for the first child; that is all when `again` */
    bool *high; /* and the second */
    double *multiplier; /* [ntimes] */
} visit;

typedef struct tree {
    const sf_problem *problem;
    sf_branch *branch;
    leaf *heap;
    size_t count, capacity;
    uint64_t made;
    visit round[ROUND];
    int64_t upper; /* only answers below this are looked for */
    int sweeps;
    bool *all;          /* [strategies], all true */
    double *multiplier; /* [ntimes]: found at the root */
} tree;

/* The remaining problem of a visit. */
typedef struct place {
    sf_arena arena;
    sf_network net;
    sf_problem rest;
    uint32_t *node_of;
    uint32_t *point_of; /* [rest.ntimes]: points of the root problem */
    double *multiplier; /* [rest.ntimes] */
} place;

static bool leaf_before(const leaf *a, const leaf *b)
{
    return a->bound < b->bound || (a->bound == b->bound && a->order < b->order);
}

static void push_leaf(tree *t, leaf l)
{
    if (t->count == t->capacity) {
        size_t capacity = t->capacity ? 2 * t->capacity : 64;
        leaf *heap = sf_alloc(capacity * sizeof *heap);
        if (t->count > 0)
            memcpy(heap, t->heap, t->count * sizeof *heap);
        sf_free(t->heap);
        t->heap = heap;
        t->capacity = capacity;
    }
    size_t at = t->count++;
    for (; at > 0 && leaf_before(&l, &t->heap[(at - 1) / 2]); at = (at - 1) / 2)
        t->heap[at] = t->heap[(at - 1) / 2];
    t->heap[at] = l;
}

static leaf pop_leaf(tree *t)
{
    leaf top = t->heap[0], last = t->heap[--t->count];
    size_t at = 0;
    for (size_t child = 1; child < t->count; child = 2 * at + 1) {
        if (child + 1 < t->count && leaf_before(&t->heap[child + 1], &t->heap[child]))
            child++;
        if (!leaf_before(&t->heap[child], &last))
            break;
        t->heap[at] = t->heap[child];
        at = child;
    }
    if (t->count > 0)
        t->heap[at] = last;
    return top;
}

static void drop_leaf(leaf *l)
{
    sf_free(l->keep);
    sf_free(l->multiplier);
}

/* Points of the remaining problem are some of the root's, in the same order and with the same
 * names. */
static void place_points(const sf_problem *root, place *here, const double *multiplier)
{
    here->point_of = SF_ARRAY(&here->arena, here->rest.ntimes, uint32_t);
    here->multiplier = SF_ARRAY(&here->arena, here->rest.ntimes, double);
    for (uint32_t n = 0, t = 0; n < here->rest.ntimes; n++) {
        while (root->time[t] != here->rest.time[n])
            t++;
        here->point_of[n] = t;
        here->multiplier[n] = multiplier[t];
    }
}

/* Solves a problem without uses, or an empty one; true when the visit is done with that. */
static bool finish_place(place *here, visit *v)
{
    sf_elimination order;
    uint32_t *choice = SF_ARRAY(&here->arena, here->rest.nnodes, uint32_t);
    if (here->rest.nuses > 0 || !sf_order_find(&here->rest, ELIMINATE_LIMIT, &here->arena, &order))
        return false;
    v->cost = sf_eliminate(&here->rest, &order, &here->arena, choice);
    v->work += order.cells;
    v->solved = v->cost < SF_FORBIDDEN;
    v->bound = SF_FORBIDDEN;
    if (v->solved)
        sf_net_lift(&here->net, here->node_of, here->rest.nnodes, choice, v->choice);
    return true;
}

/* Marks the root's strategies that the remaining problem has; all strategies of nodes that it does
 * not have, whose choice follows. */
static void keep_rest(const sf_problem *root, const place *here, const bool *left, const bool *from,
                      bool *keep)
{
    memcpy(keep, from, root->first[root->nnodes]);
    for (uint32_t n = 0; n < here->rest.nnodes; n++) {
        uint32_t v = here->node_of[n];
        memset(keep + root->first[v], false, sf_problem_count(root, v));
        for (uint32_t i = 0; i < sf_problem_count(&here->rest, n); i++)
            if (left[here->rest.first[n] + i])
                keep[root->first[v] + here->net.nodes[v].name[i]] = true;
    }
}

/* The price of a strategy's usage. */
static void price_choices(const place *here, double *priced)
{
    for (uint32_t u = 0; u < here->rest.nuses; u++) {
        const sf_use *use = &here->rest.uses[u];
        double sum = 0;
        for (uint32_t t = use->begin; t < use->end; t++)
            sum += here->multiplier[t];
        for (uint32_t i = 0; sum > 0 && i < sf_problem_count(&here->rest, use->node); i++)
            priced[here->rest.first[use->node] + i] += sum * (double)use->usage[i];
    }
}

/* The node to split, and the value at which. The gap of the bound is mostly due to the limit: so it
 * is the node whose strategies differ most in the price of their usage, and its expensive ones are
 * split from its cheap ones. If none differs, the one whose strategies' bounds do. */
static uint32_t pick_node(const sf_problem *rest, const bool *left, const double *value,
                          double *middle)
{
    uint32_t best = UINT32_MAX;
    double most = 0;
    for (uint32_t n = 0; n < rest->nnodes; n++) {
        double low = HUGE_VAL, high = -HUGE_VAL;
        for (uint32_t s = rest->first[n]; s < rest->first[n + 1]; s++)
            if (left[s]) {
                low = value[s] < low ? value[s] : low;
                high = value[s] > high ? value[s] : high;
            }
        if (high - low > most) {
            most = high - low;
            best = n;
            *middle = low + (high - low) / 2;
        }
    }
    return best;
}

static void split_place(const sf_problem *root, place *here, visit *v, bool *left,
                        const int64_t *bounds)
{
    const sf_problem *rest = &here->rest;
    uint32_t strategies = rest->first[rest->nnodes];
    double *value = SF_ARRAY(&here->arena, strategies, double), middle = 0;
    price_choices(here, value);
    uint32_t node = pick_node(rest, left, value, &middle);
    if (node == UINT32_MAX) {
        for (uint32_t s = 0; s < strategies; s++)
            value[s] = (double)(bounds[s] - rest->base);
        node = pick_node(rest, left, value, &middle);
    }
    if (node == UINT32_MAX) { /* all the same: one strategy against the others */
        for (node = 0; node < rest->nnodes && sf_problem_count(rest, node) < 2;)
            node++;
        for (uint32_t s = rest->first[node]; s < rest->first[node + 1]; s++)
            value[s] = s > rest->first[node];
        middle = 0.5;
    }
    bool *side = SF_ARRAY(&here->arena, strategies, bool);
    for (int high = 0; high < 2; high++) {
        memcpy(side, left, strategies);
        for (uint32_t s = rest->first[node]; s < rest->first[node + 1]; s++)
            side[s] = left[s] && (value[s] > middle) == high;
        keep_rest(root, here, side, v->from.keep, high ? v->high : v->low);
    }
}

/* Bounds the remaining problem, and removes strategies or splits. */
static void bound_rest(const sf_problem *root, place *here, visit *v, int64_t upper, int sweeps)
{
    const sf_problem *rest = &here->rest;
    uint32_t strategies = rest->first[rest->nnodes], gone = 0;
    int64_t *bounds = SF_ARRAY(&here->arena, strategies, int64_t);
    bool *left = SF_ARRAY(&here->arena, strategies, bool);
    int64_t work = 0;
    int64_t bound =
        sf_dual_bound(rest, here->multiplier, sweeps, upper, bounds, &work, &here->arena);
    v->work += work;
    v->bound = bound > v->from.bound ? bound : v->from.bound;
    if (v->bound >= upper) {
        v->bound = SF_FORBIDDEN;
        return;
    }
    for (uint32_t s = 0; s < strategies; s++) {
        left[s] = bounds[s] < upper;
        gone += !left[s];
    }
    for (uint32_t n = 0; n < rest->ntimes; n++)
        v->multiplier[here->point_of[n]] = here->multiplier[n];
    v->again = gone > strategies / 8;
    if (v->again)
        keep_rest(root, here, left, v->from.keep, v->low);
    else
        split_place(root, here, v, left, bounds);
}

static void visit_leaf(const tree *t, visit *v)
{
    const sf_problem *root = t->problem;
    int64_t upper = t->upper;
    place here = {0};
    v->bound = SF_FORBIDDEN;
    sf_network_init(&here.net, root, &here.arena);
    sf_net_keep_all(&here.net, root, v->from.keep);
    sf_reduce(&here.net);
    v->work += here.net.work + root->nedges + root->nnodes;
    if (!here.net.infeasible && here.net.base < upper) {
        sf_net_problem(&here.net, &here.arena, &here.rest, &here.node_of);
        place_points(root, &here, v->from.multiplier);
        if (!finish_place(&here, v))
            bound_rest(root, &here, v, upper, t->sweeps);
    }
    sf_arena_free(&here.arena);
}

static void visit_one(void *context, int64_t i, int part)
{
    tree *t = context;
    (void)part;
    visit_leaf(t, &t->round[i]);
}

static void open_leaf(tree *t, int64_t bound, const bool *keep, const double *multiplier)
{
    size_t strategies = t->problem->first[t->problem->nnodes];
    leaf l = {bound, t->made++, sf_alloc(strategies),
              sf_alloc(t->problem->ntimes * sizeof *multiplier)};
    memcpy(l.keep, keep, strategies);
    if (t->problem->ntimes > 0)
        memcpy(l.multiplier, multiplier, t->problem->ntimes * sizeof *multiplier);
    push_leaf(t, l);
}

/* Adds a visit's result to the tree. */
static void take_choice(tree *t, visit *v, uint32_t *choice)
{
    sf_branch *branch = t->branch;
    branch->visits++;
    branch->budget->work += v->work;
    if (v->solved && v->cost < t->upper) {
        t->upper = branch->cost = v->cost;
        branch->found = true;
        memcpy(choice, v->choice, t->problem->nnodes * sizeof *choice);
    }
    if (v->bound < t->upper) {
        open_leaf(t, v->bound, v->low, v->multiplier);
        if (!v->again)
            open_leaf(t, v->bound, v->high, v->multiplier);
    }
    drop_leaf(&v->from);
}

static void run_branch_round(tree *t, int count)
{
    size_t bytes = t->problem->ntimes * sizeof *t->multiplier;
    for (int i = 0; i < count; i++) {
        visit *v = &t->round[i];
        v->work = 0;
        v->solved = v->again = false;
        if (bytes > 0)
            memcpy(v->multiplier, v->from.multiplier, bytes);
    }
    sf_guarded_each(t->branch->budget->threads, count, visit_one, t);
}

/* The tree's own bound: no answer below `upper` costs less. */
static int64_t least_open(const tree *t)
{
    return t->count > 0 && t->heap[0].bound < t->upper ? t->heap[0].bound : t->upper;
}

static bool may_go_on(const tree *t)
{
    return t->count < OPEN_LIMIT && !sf_budget_spent(t->branch->budget);
}

/* Visits until nothing below `upper` is open, or the budget ends: false. */
static void grow_tree(tree *t, uint32_t *choice)
{
    sf_branch *branch = t->branch;
    while (least_open(t) < t->upper && may_go_on(t)) {
        int count = 0;
        while (count < ROUND && least_open(t) < t->upper)
            t->round[count++].from = pop_leaf(t);
        run_branch_round(t, count);
        for (int i = 0; i < count; i++)
            take_choice(t, &t->round[i], choice);
        int64_t bound = least_open(t);
        branch->bound = bound > branch->bound ? bound : branch->bound;
        sf_budget_report(branch->budget, branch->cost < SF_FORBIDDEN, branch->cost, branch->bound);
    }
}

static void clear_tree(tree *t)
{
    while (t->count > 0) {
        leaf l = pop_leaf(t);
        drop_leaf(&l);
    }
}

/* A bound and multipliers for the whole, with more work than later visits take. */
static void start_tree(tree *t, uint32_t *choice)
{
    visit *v = &t->round[0];
    t->upper = t->branch->cost;
    t->sweeps = FIRST_SWEEPS;
    open_leaf(t, t->branch->bound, t->all, t->multiplier);
    v->from = pop_leaf(t);
    run_branch_round(t, 1);
    if (t->problem->ntimes > 0)
        memcpy(t->multiplier, v->multiplier, t->problem->ntimes * sizeof *t->multiplier);
    int64_t bound = v->bound < t->upper ? v->bound : t->upper;
    t->branch->bound = bound > t->branch->bound ? bound : t->branch->bound;
    take_choice(t, v, choice);
    clear_tree(t);
    t->sweeps = SWEEPS;
}

/* How far above the bound answers are looked for at first: an answer is likely to be near, and a tree that
 * looks no further is small. When it holds none, that itself is a better bound, and one looks further. */
static int64_t first_slack(int64_t bound)
{
    int64_t size = bound < 0 ? -bound : bound;
    return size / 1000 + 1;
}

static void search_tree(tree *t, uint32_t *choice)
{
    sf_branch *branch = t->branch;
    start_tree(t, choice);
    int64_t slack = first_slack(branch->bound), widest = 2000 * slack;
    while (branch->bound < branch->cost && !sf_budget_spent(branch->budget)) {
        bool all = slack > widest || branch->cost - branch->bound <= slack;
        t->upper = all ? branch->cost : branch->bound + slack;
        open_leaf(t, branch->bound, t->all, t->multiplier);
        grow_tree(t, choice);
        bool done = least_open(t) >= t->upper;
        if (done && t->upper > branch->bound)
            branch->bound = t->upper;
        clear_tree(t);
        if (!done)
            break;
        slack *= 4;
    }
}

int64_t sf_branch_least_work(const sf_problem *problem)
{
    return FIRST_SWEEPS * (int64_t)sf_problem_cells(problem);
}

void sf_branch_solve(sf_branch *branch, const sf_problem *problem, uint32_t *choice,
                     sf_arena *arena)
{
    size_t strategies = problem->first[problem->nnodes];
    tree t = {.problem = problem,
              .branch = branch,
              .all = SF_ARRAY(arena, strategies, bool),
              .multiplier = SF_ARRAY(arena, problem->ntimes, double)};
    memset(t.all, true, strategies);
    if (branch->multiplier && problem->ntimes > 0)
        memcpy(t.multiplier, branch->multiplier, problem->ntimes * sizeof *t.multiplier);
    branch->found = false;
    branch->visits = 0;
    for (int i = 0; i < ROUND; i++)
        t.round[i] = (visit){.choice = SF_ARRAY(arena, problem->nnodes, uint32_t),
                             .low = SF_ARRAY(arena, strategies, bool),
                             .high = SF_ARRAY(arena, strategies, bool),
                             .multiplier = SF_ARRAY(arena, problem->ntimes, double)};
    search_tree(&t, choice);
    clear_tree(&t);
    sf_free(t.heap);
}
