#include "shard/reshard.h"

#include <math.h>

#include "base/hash.h"
#include "shard/reshard_space.h"

static const struct {
    const char *name; /* NULL: that of the collective */
    sf_collective collective;
} kinds[SF_RESHARD_KIND_COUNT] = {
    [SF_RESHARD_SLICE] = {"slice", SF_COLLECTIVE_COUNT},
    [SF_RESHARD_MASK] = {"mask", SF_COLLECTIVE_COUNT},
    [SF_RESHARD_GATHER] = {NULL, SF_ALL_GATHER},
    [SF_RESHARD_REDUCE] = {NULL, SF_ALL_REDUCE},
    [SF_RESHARD_SCATTER] = {NULL, SF_REDUCE_SCATTER},
    [SF_RESHARD_EXCHANGE] = {NULL, SF_ALL_TO_ALL},
    [SF_RESHARD_SWAP] = {NULL, SF_PERMUTE},
};

const char *sf_reshard_kind_name(sf_reshard_kind kind)
{
    return kinds[kind].name ? kinds[kind].name : sf_collective_name(kinds[kind].collective);
}

sf_collective sf_reshard_collective(sf_reshard_kind kind)
{
    return kinds[kind].collective;
}

bool sf_move_reduces(sf_reshard_kind kind)
{
    return sf_collective_get(kinds[kind].collective)->reduces;
}

/* The constants are powers of two, so that they add up the same in any order. */
double sf_reshard_bytes(void *context, const sf_mesh *mesh, sf_reshard_kind kind, sf_axes axes,
                        double bytes)
{
    (void)context;
    const double local = 1.0 / 4096, collective = 32768;
    sf_collective with = kinds[kind].collective;
    if (with == SF_COLLECTIVE_COUNT)
        return local;
    return sf_collective_sent(with, sf_group_size(mesh, axes)) * bytes + collective;
}

/* The cost of a sequence; of equal costs, fewer reshards are cheaper. */
typedef struct price {
    double cost;
    int reshards;
} price;

static const price out_of_reach = {HUGE_VAL, 0};

static bool is_less(price a, price b)
{
    return a.cost != b.cost ? a.cost < b.cost : a.reshards < b.reshards;
}

static price sum_of_prices(price a, price b)
{
    return (price){a.cost + b.cost, a.reshards + b.reshards};
}

enum { SPLITS = 1 << SF_MAX_AXES, CLASSES = 1 << SF_MAX_AXES * SF_COARSE_BITS, NOT_QUEUED = -1 };

typedef struct node {
    sf_packed_layout state;
    int parent; /* by number, -1 at the start */
    sf_reshard_kind kind;
    sf_axes axes;
    price spent, total; /* until here; and at least, until the end */
    int place;          /* in the queue, or NOT_QUEUED once it has been expanded */
} node;

typedef struct search {
    sf_arena arena;
    sf_space fine, coarse;
    sf_reshard_cost *cost;
    void *context;
    double bytes[SPLITS]; /* of a shard, by the axes that split it */
    /* The cost of a reshard depends on these three, so it is computed once for each. */
    double costs[SF_RESHARD_KIND_COUNT][SPLITS][SPLITS];
    price ahead[CLASSES]; /* at least, from a state of that class to the end */
    sf_packed_layout end;
    price best;   /* of the ways to the end that are known */
    int expanded; /* the node whose moves are being looked at */
    node *nodes;
    size_t nnodes, nodes_capacity;
    int *queue; /* a binary heap of nodes */
    size_t queued, queue_capacity;
    int *table; /* by hash of the state: number of its node + 1 */
    size_t table_size;
} search;

static price price_of_step(search *s, const sf_space_step *step)
{
    double *known = &s->costs[step->kind][step->axes][step->split];
    if (*known < 0) {
        double cost =
            s->cost(s->context, s->fine.mesh, step->kind, step->axes, s->bytes[step->split]);
        *known = cost >= 0 ? cost : HUGE_VAL;
    }
    return (price){*known, 1};
}

typedef struct edge {
    sf_packed_layout from, to;
    price price;
} edge;

typedef struct edge_list {
    search *search;
    sf_packed_layout from; /* of those that are being added */
    edge *edges;
    size_t count, capacity;
} edge_list;

static void add_space_edge(void *context, const sf_space_step *step)
{
    edge_list *list = context;
    edge e = {list->from, step->to, price_of_step(list->search, step)};
    SF_PUSH(&list->search->arena, list->edges, list->count, list->capacity, e);
}

static bool is_class(const sf_space *coarse, sf_packed_layout state)
{
    for (int a = 0; a < coarse->mesh->naxes; a++) {
        uint64_t used = 1 | coarse->splits[a] | coarse->partials[a];
        if (!(used >> sf_state_choice(coarse, state, a) & 1))
            return false;
    }
    return true;
}

/* The cheapest way to the end from every class: Bellman and Ford's, over all reshards of the coarse
 * space. The bound of a class is never more than that of a state of it, and never drops by more
 * than the cost of a reshard. */
static void look_ahead(search *s, sf_packed_layout end)
{
    edge_list list = {.search = s};
    sf_packed_layout classes = 1u << s->coarse.mesh->naxes * SF_COARSE_BITS;
    for (list.from = 0; list.from < classes; list.from++) {
        s->ahead[list.from] = out_of_reach;
        if (is_class(&s->coarse, list.from))
            sf_space_reshards(&s->coarse, list.from, add_space_edge, &list);
    }
    s->ahead[end] = (price){0};
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = 0; i < list.count; i++) {
            const edge *e = &list.edges[i];
            price way = sum_of_prices(e->price, s->ahead[e->to]);
            if (is_less(way, s->ahead[e->from])) {
                s->ahead[e->from] = way;
                changed = true;
            }
        }
    }
}

/* Of two nodes of one total, the one nearer to the end comes first, then the older one. */
static bool state_before(const search *s, int a, int b)
{
    const node *x = &s->nodes[a], *y = &s->nodes[b];
    if (is_less(x->total, y->total) || is_less(y->total, x->total))
        return is_less(x->total, y->total);
    if (is_less(x->spent, y->spent) || is_less(y->spent, x->spent))
        return is_less(y->spent, x->spent);
    return a < b;
}

static void put_in_heap_at(search *s, size_t place, int number)
{
    s->queue[place] = number;
    s->nodes[number].place = (int)place;
}

static void sift_up(search *s, int number)
{
    size_t place = (size_t)s->nodes[number].place;
    while (place > 0 && state_before(s, number, s->queue[(place - 1) / 2])) {
        put_in_heap_at(s, place, s->queue[(place - 1) / 2]);
        place = (place - 1) / 2;
    }
    put_in_heap_at(s, place, number);
}

static int pop_state(search *s)
{
    int first = s->queue[0], last = s->queue[--s->queued];
    size_t place = 0;
    for (size_t child = 1; child < s->queued; child = 2 * place + 1) {
        if (child + 1 < s->queued && state_before(s, s->queue[child + 1], s->queue[child]))
            child++;
        if (!state_before(s, s->queue[child], last))
            break;
        put_in_heap_at(s, place, s->queue[child]);
        place = child;
    }
    if (s->queued)
        put_in_heap_at(s, place, last);
    s->nodes[first].place = NOT_QUEUED;
    return first;
}

static int *slot_of_state(search *s, sf_packed_layout state)
{
    size_t at = (size_t)sf_hash_mix(0, state) & (s->table_size - 1);
    while (s->table[at] && s->nodes[s->table[at] - 1].state != state)
        at = (at + 1) & (s->table_size - 1);
    return &s->table[at];
}

static void grow_state_table(search *s)
{
    s->table_size = s->table_size ? s->table_size * 4 : 256;
    s->table = SF_ARRAY(&s->arena, s->table_size, int);
    for (size_t i = 0; i < s->nnodes; i++)
        *slot_of_state(s, s->nodes[i].state) = (int)i + 1;
}

static int add_space_node(search *s, sf_packed_layout state)
{
    if (s->nnodes * 2 >= s->table_size)
        grow_state_table(s);
    int number = (int)s->nnodes;
    node fresh = {.state = state, .parent = -1, .total = out_of_reach, .spent = out_of_reach};
    *slot_of_state(s, state) = number + 1;
    SF_PUSH(&s->arena, s->nodes, s->nnodes, s->nodes_capacity, fresh);
    SF_PUSH(&s->arena, s->queue, s->queued, s->queue_capacity, number);
    s->nodes[number].place = (int)s->queued - 1;
    return number;
}

/* Takes a step from the node that is being expanded. One that cannot be better than the best way
 * known so far is not worth remembering. */
static void reach_state(void *context, const sf_space_step *step)
{
    search *s = context;
    price spent = sum_of_prices(s->nodes[s->expanded].spent, price_of_step(s, step));
    price total = sum_of_prices(spent, s->ahead[sf_space_class(&s->fine, step->to)]);
    if (!is_less(total, s->best) || spent.reshards > SF_MAX_RESHARDS)
        return;
    int number = *slot_of_state(s, step->to) - 1;
    if (number >= 0 &&
        (s->nodes[number].place == NOT_QUEUED || !is_less(spent, s->nodes[number].spent)))
        return;
    if (number < 0)
        number = add_space_node(s, step->to);
    node *at = &s->nodes[number];
    at->parent = s->expanded;
    at->kind = step->kind;
    at->axes = step->axes;
    at->spent = spent;
    at->total = total;
    sift_up(s, number);
    if (step->to == s->end)
        s->best = total;
}

static void write_path(const search *s, int number, sf_path *out)
{
    const node *end = &s->nodes[number];
    out->cost = end->spent.cost;
    out->count = end->spent.reshards;
    for (int i = out->count - 1; i >= 0; i--) {
        const node *at = &s->nodes[number];
        out->reshards[i] = (sf_move){at->kind, at->axes, sf_space_layout(&s->fine, at->state)};
        number = at->parent;
    }
}

/* A* with the bound from the coarse space, which is consistent: so a node is settled when it is
 * taken out of the queue. */
static bool find_path(search *s, sf_packed_layout start, sf_path *out)
{
    int first = add_space_node(s, start);
    s->nodes[first].spent = (price){0};
    while (s->queued) {
        s->expanded = pop_state(s);
        sf_packed_layout state = s->nodes[s->expanded].state;
        if (state == s->end) {
            write_path(s, s->expanded, out);
            return true;
        }
        sf_space_reshards(&s->fine, state, reach_state, s);
    }
    return false;
}

/* The axes that a way keeps away from: those in front of the first one whose share changes. */
static sf_axes axes_in_front(const sf_mesh *mesh, const sf_layout *from, const sf_layout *to)
{
    sf_axes front = 0;
    for (int a = 0; a < mesh->naxes; a++) {
        if (sf_share_equal(from->axes[a], to->axes[a]))
            front |= 1u << a;
        else if (mesh->axes[a].size > 1)
            break;
    }
    return front;
}

static void init_costs(search *s, const sf_type *type, sf_axes front)
{
    const sf_mesh *mesh = s->fine.mesh;
    for (sf_axes split = 0; split < 1u << mesh->naxes; split++)
        s->bytes[split] = (double)sf_type_bytes(type) / sf_group_size(mesh, split);
    for (int kind = 0; kind < SF_RESHARD_KIND_COUNT; kind++)
        for (sf_axes axes = 0; axes < 1u << mesh->naxes; axes++)
            for (sf_axes split = 0; split < 1u << mesh->naxes; split++)
                s->costs[kind][axes][split] = axes & front ? HUGE_VAL : -1;
}

bool sf_reshard(const sf_mesh *mesh, const sf_type *type, const sf_layout *from,
                const sf_layout *to, sf_reshard_cost *cost, void *context, sf_path *out)
{
    out->count = 0;
    out->cost = 0;
    if (sf_layout_equal(from, to))
        return true;
    search s; /* large, and its parts are filled as they are needed */
    s.arena = (sf_arena){0};
    s.cost = cost;
    s.context = context;
    s.nodes = NULL;
    s.queue = s.table = NULL;
    s.nnodes = s.nodes_capacity = s.queued = s.queue_capacity = s.table_size = 0;
    s.best = out_of_reach;
    sf_space_fine(mesh, type, from, to, &s.fine);
    sf_space_coarse(&s.fine, &s.coarse);
    init_costs(&s, type, axes_in_front(mesh, from, to));
    s.end = sf_space_state(&s.fine, to);
    look_ahead(&s, sf_space_class(&s.fine, s.end));
    bool found = find_path(&s, sf_space_state(&s.fine, from), out);
    sf_arena_free(&s.arena);
    return found;
}
