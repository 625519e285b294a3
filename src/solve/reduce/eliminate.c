#include "solve/reduce/eliminate.h"

#include <string.h>

/* A table that takes part in the elimination of a node: an edge, or the result of another
 * elimination. */
typedef struct table {
    const int64_t *cost;
    size_t own; /* step per strategy of the node that is eliminated */
    size_t *
        stride; /* [separator]: step per strategy of each node of its separator, 0 where it has no part */
} table;

/* The result of eliminating the node at a position: over its separator, the first node slowest. */
typedef struct bucket {
    int64_t *message;
    uint32_t *children; /* positions whose separator begins with this node */
    size_t nchildren, capacity;
} bucket;

typedef struct eliminator {
    const sf_problem *problem;
    const sf_elimination *order;
    sf_arena *arena;
    uint32_t *place; /* [nnodes]: position of a node */
    bucket *buckets; /* by position */
} eliminator;

/* One elimination: the tables of the node, and their offsets as the separator's strategies are
 * counted through. */
typedef struct step {
    uint32_t node, count;
    uint32_t nseparator;
    const uint32_t *separator;
    table *tables;
    uint32_t ntables;
} step;

static uint32_t find_in(const step *s, uint32_t node)
{
    uint32_t at = 0;
    while (s->separator[at] != node)
        at++;
    return at;
}

static void add_elimination_edge(const eliminator *e, step *s, const sf_edge *edge)
{
    bool first = edge->a == s->node;
    size_t columns = sf_problem_count(e->problem, edge->b);
    table *t = &s->tables[s->ntables++];
    *t = (table){edge->cost, first ? columns : 1, SF_ARRAY(e->arena, s->nseparator, size_t)};
    t->stride[find_in(s, sf_edge_other(edge, s->node))] = first ? 1 : columns;
}

static void add_message(const eliminator *e, step *s, uint32_t child)
{
    uint32_t first = e->order->separator_first[child], end = e->order->separator_first[child + 1];
    table *t = &s->tables[s->ntables++];
    *t = (table){e->buckets[child].message, 1, SF_ARRAY(e->arena, s->nseparator, size_t)};
    size_t stride = 1;
    for (uint32_t i = end; i-- > first;) {
        uint32_t node = e->order->separator[i];
        if (node == s->node)
            t->own = stride;
        else
            t->stride[find_in(s, node)] = stride;
        stride *= sf_problem_count(e->problem, node);
    }
}

static step make_elimination_step(const eliminator *e, uint32_t position)
{
    const sf_problem *p = e->problem;
    uint32_t v = e->order->node[position], first = e->order->separator_first[position];
    step s = {.node = v,
              .count = sf_problem_count(p, v),
              .nseparator = e->order->separator_first[position + 1] - first,
              .separator = e->order->separator + first};
    const bucket *b = &e->buckets[position];
    uint32_t degree = p->link_first[v + 1] - p->link_first[v];
    s.tables = SF_ARRAY(e->arena, degree + b->nchildren, table);
    for (uint32_t k = 0; k < degree; k++) {
        const sf_edge *edge = &p->edges[p->links[p->link_first[v] + k]];
        if (e->place[sf_edge_other(edge, v)] > position)
            add_elimination_edge(e, &s, edge);
    }
    for (size_t k = 0; k < b->nchildren; k++)
        add_message(e, &s, b->children[k]);
    return s;
}

/* The cost of each strategy of the node, with its tables at the given offsets. */
static void add_costs(const sf_problem *problem, const step *s, const size_t *offset, int64_t *sum)
{
    memcpy(sum, sf_problem_cost(problem, s->node), s->count * sizeof *sum);
    for (uint32_t k = 0; k < s->ntables; k++) {
        const int64_t *cost = s->tables[k].cost + offset[k];
        size_t own = s->tables[k].own;
        for (uint32_t i = 0; i < s->count; i++) {
            int64_t more = cost[i * own], both = sum[i] + more; /* of two such: no overflow */
            sum[i] = sum[i] >= SF_FORBIDDEN || more >= SF_FORBIDDEN ? SF_FORBIDDEN : both;
        }
    }
}

static int64_t least_of_table(const int64_t *values, uint32_t count, uint32_t *at)
{
    *at = 0;
    for (uint32_t i = 1; i < count; i++)
        if (values[i] < values[*at])
            *at = i;
    return values[*at];
}

/* Counts the separator's strategies up by one, the last node fastest, and moves the offsets along; false
 * after the last. */
static bool advance_digits(const sf_problem *problem, const step *s, uint32_t *digit,
                           size_t *offset)
{
    for (uint32_t d = s->nseparator; d-- > 0;) {
        uint32_t count = sf_problem_count(problem, s->separator[d]);
        bool carry = ++digit[d] == count;
        for (uint32_t k = 0; k < s->ntables; k++)
            offset[k] +=
                carry ? -(size_t)(count - 1) * s->tables[k].stride[d] : s->tables[k].stride[d];
        if (!carry)
            return true;
        digit[d] = 0;
    }
    return false;
}

static void eliminate_at(eliminator *e, uint32_t position, int64_t *message)
{
    sf_mark mark = sf_arena_mark(e->arena);
    step s = make_elimination_step(e, position);
    uint32_t *digit = SF_ARRAY(e->arena, s.nseparator, uint32_t), at;
    size_t *offset = SF_ARRAY(e->arena, s.ntables, size_t);
    int64_t *sum = SF_ARRAY(e->arena, s.count, int64_t);
    size_t cell = 0;
    do {
        add_costs(e->problem, &s, offset, sum);
        message[cell++] = least_of_table(sum, s.count, &at);
    } while (advance_digits(e->problem, &s, digit, offset));
    sf_arena_reset(e->arena, mark);
}

static void choose_at(eliminator *e, uint32_t position, uint32_t *choice)
{
    sf_mark mark = sf_arena_mark(e->arena);
    step s = make_elimination_step(e, position);
    size_t *offset = SF_ARRAY(e->arena, s.ntables, size_t);
    int64_t *sum = SF_ARRAY(e->arena, s.count, int64_t);
    for (uint32_t k = 0; k < s.ntables; k++)
        for (uint32_t d = 0; d < s.nseparator; d++)
            offset[k] += choice[s.separator[d]] * s.tables[k].stride[d];
    add_costs(e->problem, &s, offset, sum);
    least_of_table(sum, s.count, &choice[s.node]);
    sf_arena_reset(e->arena, mark);
}

static size_t message_cells(const eliminator *e, uint32_t position)
{
    size_t cells = 1;
    for (uint32_t i = e->order->separator_first[position];
         i < e->order->separator_first[position + 1]; i++)
        cells *= sf_problem_count(e->problem, e->order->separator[i]);
    return cells;
}

/* All messages, those of a node's children before its own; the sum of those that go to nobody. */
static int64_t send_messages(eliminator *e)
{
    int64_t cost = e->problem->base;
    for (uint32_t p = 0; p < e->problem->nnodes; p++) {
        bucket *b = &e->buckets[p];
        uint32_t first = e->order->separator_first[p], end = e->order->separator_first[p + 1];
        b->message = SF_ARRAY(e->arena, message_cells(e, p), int64_t);
        eliminate_at(e, p, b->message);
        if (first == end) {
            cost = sf_cost_add(cost, b->message[0]);
            continue;
        }
        bucket *parent = &e->buckets[e->place[e->order->separator[first]]];
        SF_PUSH(e->arena, parent->children, parent->nchildren, parent->capacity, p);
    }
    return cost;
}

int64_t sf_eliminate(const sf_problem *problem, const sf_elimination *order, sf_arena *scratch,
                     uint32_t *choice)
{
    sf_mark mark = sf_arena_mark(scratch);
    eliminator e = {problem, order, scratch, SF_ARRAY(scratch, problem->nnodes, uint32_t),
                    SF_ARRAY(scratch, problem->nnodes, bucket)};
    for (uint32_t p = 0; p < problem->nnodes; p++)
        e.place[order->node[p]] = p;
    int64_t cost = send_messages(&e);
    for (uint32_t p = problem->nnodes; cost < SF_FORBIDDEN && p-- > 0;)
        choose_at(&e, p, choice);
    sf_arena_reset(scratch, mark);
    return cost;
}
