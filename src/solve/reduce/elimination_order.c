#include "solve/reduce/eliminate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The graph as elimination changes it: sorted neighbours of each node that is left. */
typedef struct row {
    uint32_t *nodes;
    uint32_t count;
} row;

/* A heap of nodes by the size of their tables. Entries are never updated: a node whose size changed
 * is pushed once more, and entries with an outdated size are skipped. */
typedef struct entry {
    double size; /* log2 of the cells */
    uint32_t node;
} entry;

typedef struct orderer {
    const sf_problem *problem;
    sf_arena *arena; /* scratch */
    row *rows;
    double *size; /* of the node's table now; negative once it is eliminated */
    entry *heap;
    size_t nheap, heap_capacity;
    uint32_t *merged; /* [nnodes] scratch */
} orderer;

static bool entry_before(entry a, entry b)
{
    return a.size < b.size || (a.size == b.size && a.node < b.node);
}

static void push_entry(orderer *o, entry e)
{
    SF_PUSH(o->arena, o->heap, o->nheap, o->heap_capacity, e);
    size_t at = o->nheap - 1;
    while (at > 0 && entry_before(e, o->heap[(at - 1) / 2])) {
        o->heap[at] = o->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    o->heap[at] = e;
}

static entry pop_entry(orderer *o)
{
    entry top = o->heap[0], last = o->heap[--o->nheap];
    size_t at = 0;
    for (size_t child = 1; child < o->nheap; child = 2 * at + 1) {
        if (child + 1 < o->nheap && entry_before(o->heap[child + 1], o->heap[child]))
            child++;
        if (!entry_before(o->heap[child], last))
            break;
        o->heap[at] = o->heap[child];
        at = child;
    }
    if (o->nheap > 0)
        o->heap[at] = last;
    return top;
}

static void measure_node(orderer *o, uint32_t v)
{
    double size = log2(sf_problem_count(o->problem, v));
    for (uint32_t k = 0; k < o->rows[v].count; k++)
        size += log2(sf_problem_count(o->problem, o->rows[v].nodes[k]));
    if (size == o->size[v])
        return;
    o->size[v] = size;
    push_entry(o, (entry){size, v});
}

static int order_ids(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

static void fill_rows(orderer *o)
{
    const sf_problem *p = o->problem;
    for (uint32_t v = 0; v < p->nnodes; v++) {
        uint32_t degree = p->link_first[v + 1] - p->link_first[v], count = 0;
        uint32_t *nodes = SF_ARRAY(o->arena, degree, uint32_t);
        for (uint32_t k = 0; k < degree; k++)
            nodes[k] = sf_edge_other(&p->edges[p->links[p->link_first[v] + k]], v);
        if (degree)
            qsort(nodes, degree, sizeof *nodes, order_ids);
        for (uint32_t k = 0; k < degree; k++)
            if (k == 0 || nodes[k] != nodes[k - 1])
                nodes[count++] = nodes[k];
        o->rows[v] = (row){nodes, count};
    }
}

/* The neighbours of u become those of u and v, without the two. */
static void unite_nodes(orderer *o, uint32_t u, uint32_t v)
{
    const row *a = &o->rows[u], *b = &o->rows[v];
    uint32_t n = 0, i = 0, j = 0;
    while (i < a->count || j < b->count) {
        uint32_t next;
        if (j == b->count || (i < a->count && a->nodes[i] <= b->nodes[j])) {
            next = a->nodes[i];
            j += j < b->count && b->nodes[j] == next;
            i++;
        } else {
            next = b->nodes[j++];
        }
        if (next != u && next != v)
            o->merged[n++] = next;
    }
    if (n > a->count)
        o->rows[u].nodes = SF_ARRAY(o->arena, n, uint32_t);
    if (n > 0)
        memcpy(o->rows[u].nodes, o->merged, n * sizeof *o->merged);
    o->rows[u].count = n;
}

/* Eliminates nodes until all are, or the work is over the limit. */
static bool run_elimination(orderer *o, int64_t limit, sf_elimination *out)
{
    uint32_t position = 0, nseparator = 0;
    size_t capacity = 0, count = 0;
    while (o->nheap > 0) {
        entry e = pop_entry(o);
        if (o->size[e.node] != e.size)
            continue;
        const row *r = &o->rows[e.node];
        int64_t own = sf_problem_count(o->problem, e.node);
        if (e.size >= 62 || exp2(e.size) + (double)out->cells > (double)limit)
            return false;
        out->cells += (int64_t)llround(exp2(e.size));
        out->kept += (int64_t)llround(exp2(e.size)) / own;
        out->width = r->count > out->width ? r->count : out->width;
        out->node[position] = e.node;
        out->separator_first[position++] = nseparator;
        for (uint32_t k = 0; k < r->count; k++)
            SF_PUSH(o->arena, out->separator, count, capacity, r->nodes[k]);
        nseparator += r->count;
        o->size[e.node] = -1;
        for (uint32_t k = 0; k < r->count; k++)
            unite_nodes(o, r->nodes[k], e.node);
        for (uint32_t k = 0; k < r->count; k++)
            measure_node(o, r->nodes[k]);
    }
    out->separator_first[position] = nseparator;
    return true;
}

static void sort_separators(const sf_problem *problem, sf_elimination *order, sf_arena *arena)
{
    uint32_t *place = SF_ARRAY(arena, problem->nnodes, uint32_t);
    for (uint32_t p = 0; p < problem->nnodes; p++)
        place[order->node[p]] = p;
    for (uint32_t i = 0; i < order->separator_first[problem->nnodes]; i++)
        order->separator[i] = place[order->separator[i]];
    for (uint32_t p = 0; p < problem->nnodes; p++) {
        uint32_t first = order->separator_first[p], end = order->separator_first[p + 1];
        if (end > first)
            qsort(order->separator + first, end - first, sizeof(uint32_t), order_ids);
        for (uint32_t i = first; i < end; i++)
            order->separator[i] = order->node[order->separator[i]];
    }
}

bool sf_order_find(const sf_problem *problem, int64_t limit, sf_arena *arena, sf_elimination *out)
{
    uint32_t nnodes = problem->nnodes;
    *out = (sf_elimination){.node = SF_ARRAY(arena, nnodes, uint32_t),
                            .separator_first = SF_ARRAY(arena, nnodes + 1, uint32_t),
                            .separator = SF_ARRAY(arena, 1, uint32_t)};
    orderer o = {.problem = problem,
                 .arena = arena,
                 .rows = SF_ARRAY(arena, nnodes, row),
                 .size = SF_ARRAY(arena, nnodes, double),
                 .merged = SF_ARRAY(arena, nnodes, uint32_t)};
    fill_rows(&o);
    for (uint32_t v = 0; v < nnodes; v++) {
        o.size[v] = -1;
        measure_node(&o, v);
    }
    if (!run_elimination(&o, limit, out))
        return false;
    sort_separators(problem, out, arena);
    return true;
}
