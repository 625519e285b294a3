#include "ir/canon.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/intern.h"
#include "base/mem.h"
#include "ir/clone.h"
#include "ir/opdef.h"

/* Order: depth first from roots. */

/* A requested node, and the same after its operands. */
typedef struct frame {
    uint32_t node, level, place; /* place: among the operands of one node */
    bool recomputed;
} frame;

/* Those of one level in the order of operands: the last is taken first. */
static int deepest_last(const void *a, const void *b)
{
    const frame *x = a, *y = b;
    if (x->level != y->level)
        return x->level < y->level ? -1 : 1;
    return x->place < y->place ? 1 : -1;
}

/* By node, for all blocks, one after the other. */
typedef struct arranger {
    sf_graph *graph;
    sf_arena arena;
    uint32_t *block; /* its block, counted from 1; 0: one that was not visited */
    bool *placed;
    uint32_t *level;     /* the length of the longest path to it */
    uint32_t *effect;    /* the one with an effect before it, or SF_NONE */
    sf_value **captured; /* values of its block that its regions use */
    uint32_t *ncaptured;
    frame *stack;
    size_t depth, capacity;
    uint32_t now; /* the block at hand */
    uint32_t *order, count;
} arranger;

static arranger arranger_for(sf_graph *graph)
{
    arranger a = {.graph = graph};
    a.block = SF_ARRAY(&a.arena, graph->nnodes, uint32_t);
    a.placed = SF_ARRAY(&a.arena, graph->nnodes, bool);
    a.level = SF_ARRAY(&a.arena, graph->nnodes, uint32_t);
    a.effect = SF_ARRAY(&a.arena, graph->nnodes, uint32_t);
    a.captured = SF_ARRAY(&a.arena, graph->nnodes, sf_value *);
    a.ncaptured = SF_ARRAY(&a.arena, graph->nnodes, uint32_t);
    a.order = SF_ARRAY(&a.arena, graph->nnodes, uint32_t);
    return a;
}

static bool is_inside_block(const arranger *a, uint32_t node)
{
    return node != SF_NONE && a->block[node] == a->now;
}

static void capture_values(arranger *a, uint32_t by, const sf_value *values, uint32_t count,
                           size_t *capacity)
{
    size_t ncaptured = a->ncaptured[by];
    for (uint32_t i = 0; i < count; i++)
        if (is_inside_block(a, a->graph->values[values[i]].node))
            SF_PUSH(&a->arena, a->captured[by], ncaptured, *capacity, values[i]);
    a->ncaptured[by] = (uint32_t)ncaptured;
}

static void rank_captures(arranger *a, uint32_t by, const sf_block *block, size_t *capacity)
{
    for (uint32_t i = 0; i < block->nnodes; i++) {
        const sf_node *node = a->graph->nodes[block->nodes[i]];
        capture_values(a, by, node->operands, node->noperands, capacity);
        for (uint32_t j = 0; j < node->nregions; j++)
            rank_captures(a, by, node->regions[j], capacity);
    }
    capture_values(a, by, block->results, block->nresults, capacity);
}

static void push_node(arranger *a, uint32_t node, uint32_t place)
{
    frame f = {.node = node, .place = place};
    if (!is_inside_block(a, node) || a->placed[node])
        return;
    f.level = a->level[node];
    SF_PUSH(&a->arena, a->stack, a->depth, a->capacity, f);
}

static void push_needs(arranger *a, const sf_node *node)
{
    size_t first = a->depth;
    uint32_t place = 0;
    for (uint32_t i = 0; i < node->noperands; i++)
        push_node(a, a->graph->values[node->operands[i]].node, place++);
    for (uint32_t i = 0; i < a->ncaptured[node->id]; i++)
        push_node(a, a->graph->values[a->captured[node->id][i]].node, place++);
    push_node(a, a->effect[node->id], place);
    if (a->depth > first)
        qsort(&a->stack[first], a->depth - first, sizeof *a->stack, deepest_last);
}

static void place_with_needs(arranger *a, uint32_t root)
{
    push_node(a, root, 0);
    while (a->depth > 0) {
        frame *top = &a->stack[a->depth - 1];
        uint32_t node = top->node;
        if (a->placed[node]) {
            a->depth--;
        } else if (!top->recomputed) {
            top->recomputed = true;
            push_needs(a, a->graph->nodes[node]);
        } else {
            a->order[a->count++] = node;
            a->placed[node] = true;
            a->depth--;
        }
    }
}

static void place_values(arranger *a, size_t count, const sf_value *values)
{
    for (size_t i = 0; i < count; i++)
        place_with_needs(a, a->graph->values[values[i]].node);
}

static void look_at_use(arranger *a, sf_value value, uint32_t *level)
{
    uint32_t maker = a->graph->values[value].node;
    if (is_inside_block(a, maker) && a->level[maker] > *level)
        *level = a->level[maker];
}

static void set_level(arranger *a, const sf_node *node)
{
    uint32_t level = 0;
    for (uint32_t i = 0; i < node->noperands; i++)
        look_at_use(a, node->operands[i], &level);
    for (uint32_t i = 0; i < a->ncaptured[node->id]; i++)
        look_at_use(a, a->captured[node->id][i], &level);
    a->level[node->id] = level + 1;
}

static void arrange_block(arranger *a, sf_block *block, size_t nroots, const sf_value *roots)
{
    uint32_t last = SF_NONE; /* with an effect */
    a->now++;
    a->count = 0;
    for (uint32_t i = 0; i < block->nnodes; i++)
        a->block[block->nodes[i]] = a->now;
    for (uint32_t i = 0; i < block->nnodes; i++) {
        const sf_node *node = a->graph->nodes[block->nodes[i]];
        size_t capacity = 0;
        for (uint32_t r = 0; r < node->nregions; r++)
            rank_captures(a, node->id, node->regions[r], &capacity);
        set_level(a, node);
        a->effect[node->id] = SF_NONE;
        if (sf_node_has_effect(a->graph, node)) {
            a->effect[node->id] = last;
            last = node->id;
        }
    }
    place_values(a, nroots, roots);
    place_values(a, block->nresults, block->results);
    place_with_needs(a, last);
    if (a->count > 0)
        memcpy(block->nodes, a->order, a->count * sizeof *a->order);
    block->nnodes = a->count;
}

static void arrange_nested(arranger *a, const sf_block *block)
{
    for (uint32_t i = 0; i < block->nnodes; i++) {
        const sf_node *node = a->graph->nodes[block->nodes[i]];
        for (uint32_t r = 0; r < node->nregions; r++) {
            arrange_nested(a, node->regions[r]);
            arrange_block(a, node->regions[r], 0, NULL);
        }
    }
}

typedef struct canon {
    sf_graph *graph;
    const uint32_t *places; /* by node, or NULL */
    const uint64_t *hashes; /* by value */
    uint32_t *level;        /* by value: the length of the longest path to it */
    sf_value *same;         /* by value: the merged value */
    sf_value *twin;         /* by value of a nested block: its like in another */
    arranger arranger;
} canon;

/* Merging */

static void rename_values(const canon *c, sf_value *values, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        values[i] = c->same[values[i]];
}

static bool takes_nothing(const sf_graph *graph, sf_value value)
{
    const sf_node *node = sf_maker(graph, value);
    return node && node->noperands == 0;
}

static int compare_numbers(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* How two values are made, as far as one sees from there; `budget` is how many more may be looked at. */
static int compare_makers(const canon *c, sf_value a, sf_value b, int depth, int *budget)
{
    const sf_value_info *x = &c->graph->values[a], *y = &c->graph->values[b];
    if (a == b || depth == 0 || --*budget < 0)
        return 0;
    if (x->node == SF_NONE || y->node == SF_NONE)
        return x->node == y->node   ? compare_numbers(x->index, y->index)
               : x->node == SF_NONE ? -1
                                    : 1;
    const sf_node *m = c->graph->nodes[x->node], *n = c->graph->nodes[y->node];
    int order = compare_numbers((uint64_t)m->def->id, (uint64_t)n->def->id);
    if (order == 0)
        order = compare_numbers(m->noperands, n->noperands);
    for (int i = 0; i < m->def->nattrs && order == 0; i++)
        order = compare_numbers(m->attrs[i] ? m->attrs[i]->hash : 0,
                                n->attrs[i] ? n->attrs[i]->hash : 0);
    for (uint32_t i = 0; i < m->noperands && order == 0; i++)
        order = compare_makers(c, m->operands[i], n->operands[i], depth - 1, budget);
    return order;
}

/* Constants come last, else values with fewer steps first. The order must be the same in all layers
 * of a network, so hashes only break ties. */
static void order_by_rank(const canon *c, sf_node *node)
{
    enum { DEPTH = 8 };
    int budget = 1 << DEPTH;
    if (!node->def->commutative || node->noperands != 2)
        return;
    sf_value a = node->operands[0], b = node->operands[1];
    int order = takes_nothing(c->graph, a) - takes_nothing(c->graph, b);
    if (order == 0)
        order = compare_numbers(c->level[a], c->level[b]);
    if (order == 0)
        order = compare_makers(c, a, b, DEPTH, &budget);
    if (order == 0)
        order = compare_numbers(c->hashes[a], c->hashes[b]);
    if (order > 0) {
        node->operands[0] = b;
        node->operands[1] = a;
    }
}

static void set_value_levels(const canon *c, const sf_node *node)
{
    uint32_t level = 0;
    for (uint32_t i = 0; i < node->noperands; i++)
        if (c->level[node->operands[i]] > level)
            level = c->level[node->operands[i]];
    for (uint32_t i = 0; i < node->nresults; i++)
        c->level[node->result + i] = level + 1;
}

static bool same_block(const canon *c, const sf_block *a, const sf_block *b);

static bool same_values(const canon *c, uint32_t count, const sf_value *a, const sf_value *b)
{
    for (uint32_t i = 0; i < count; i++)
        if (a[i] != b[i] && c->twin[b[i]] != a[i])
            return false;
    return true;
}

static uint32_t place_of(const canon *c, const sf_node *node)
{
    return c->places && node->noperands > 0 ? c->places[node->id] : 0;
}

static bool same_computation(const canon *c, const sf_node *a, const sf_node *b)
{
    if (a->def != b->def || a->noperands != b->noperands || a->nresults != b->nresults ||
        a->nregions != b->nregions || !same_values(c, a->noperands, a->operands, b->operands))
        return false;
    for (int i = 0; i < a->def->nattrs; i++)
        if (a->attrs[i] != b->attrs[i])
            return false;
    if (place_of(c, a) != place_of(c, b))
        return false;
    for (uint32_t i = 0; i < a->nresults; i++)
        if (sf_type_of(c->graph, a->result + i) != sf_type_of(c->graph, b->result + i))
            return false;
    for (uint32_t i = 0; i < a->nregions; i++)
        if (!same_block(c, a->regions[i], b->regions[i]))
            return false;
    return true;
}

/* Both are arranged, so nodes are compared one by one. */
static bool same_block(const canon *c, const sf_block *a, const sf_block *b)
{
    if (a->narguments != b->narguments || a->nnodes != b->nnodes || a->nresults != b->nresults)
        return false;
    for (uint32_t i = 0; i < a->narguments; i++) {
        if (sf_type_of(c->graph, a->arguments[i]) != sf_type_of(c->graph, b->arguments[i]))
            return false;
        c->twin[b->arguments[i]] = a->arguments[i];
    }
    for (uint32_t i = 0; i < a->nnodes; i++) {
        const sf_node *x = c->graph->nodes[a->nodes[i]], *y = c->graph->nodes[b->nodes[i]];
        if (!same_computation(c, x, y))
            return false;
        for (uint32_t r = 0; r < x->nresults; r++)
            c->twin[y->result + r] = x->result + r;
    }
    return same_values(c, a->nresults, a->results, b->results);
}

typedef struct sought {
    const canon *canon;
    const sf_node *node;
} sought;

static bool is_sought_value(const void *item, const void *key)
{
    const sought *s = key;
    return same_computation(s->canon, item, s->node);
}

static uint64_t hash_canon_node(const canon *c, const sf_node *node)
{
    uint64_t hash = sf_hash_mix((uint64_t)node->def->id, node->nresults);
    hash = sf_hash_mix(hash, place_of(c, node));
    for (uint32_t i = 0; i < node->noperands; i++)
        hash = sf_hash_mix(hash, node->operands[i]);
    for (int i = 0; i < node->def->nattrs; i++)
        hash = sf_hash_mix(hash, node->attrs[i] ? node->attrs[i]->hash : 0);
    return node->nresults > 0 ? sf_hash_mix(hash, c->hashes[node->result]) : hash;
}

/* The earlier of two nodes that compute the same replaces both. */
static void merge_into(const canon *c, sf_node *first, const sf_node *node)
{
    for (uint32_t i = 0; i < node->nresults; i++)
        c->same[node->result + i] = first->result + i;
    first->scope = sf_scope_common(first->scope, node->scope);
}

static void merge_block(canon *c, sf_block *block)
{
    sf_interner seen = {0};
    sf_arena table = {0};
    uint32_t kept = 0;
    for (uint32_t i = 0; i < block->nnodes; i++) {
        sf_node *node = c->graph->nodes[block->nodes[i]];
        rename_values(c, node->operands, node->noperands);
        order_by_rank(c, node);
        set_value_levels(c, node);
        for (uint32_t r = 0; r < node->nregions; r++) {
            merge_block(c, node->regions[r]);
            arrange_block(&c->arranger, node->regions[r], 0, NULL);
        }
        if (!sf_node_has_effect(c->graph, node)) {
            sf_intern_slot *slot = sf_intern_find(&seen, &table, hash_canon_node(c, node),
                                                  is_sought_value, &(sought){c, node});
            if (slot->item) {
                merge_into(c, c->graph->nodes[((const sf_node *)slot->item)->id], node);
                continue;
            }
            slot->item = node;
        }
        block->nodes[kept++] = node->id;
    }
    block->nnodes = kept;
    rename_values(c, block->results, block->nresults);
    sf_arena_free(&table);
}

void sf_graph_merge(sf_graph *graph, const uint32_t *places, sf_value *same)
{
    canon c = {.graph = graph, .places = places, .arranger = arranger_for(graph)};
    uint64_t *hashes = sf_value_hashes(graph);
    c.hashes = hashes;
    c.level = sf_alloc(graph->nvalues * sizeof *c.level);
    c.same = same ? same : sf_alloc(graph->nvalues * sizeof *c.same);
    c.twin = sf_alloc(graph->nvalues * sizeof *c.twin);
    for (size_t v = 0; v < graph->nvalues; v++) {
        c.same[v] = (sf_value)v;
        c.twin[v] = SF_NONE;
    }
    merge_block(&c, graph->top);
    sf_arena_free(&c.arranger.arena);
    sf_free(c.twin);
    if (!same)
        sf_free(c.same);
    sf_free(c.level);
    sf_free(hashes);
}

void sf_graph_arrange(sf_graph *graph, size_t nroots, const sf_value *roots)
{
    arranger a = arranger_for(graph);
    arrange_nested(&a, graph->top);
    arrange_block(&a, graph->top, nroots, roots);
    sf_arena_free(&a.arena);
}

/* Pruning */

static void mark_use(void *context, sf_value value)
{
    ((bool *)context)[value] = true;
}

static bool is_asked_for(const sf_graph *graph, const sf_node *node, const bool *marks)
{
    for (uint32_t r = 0; r < node->nresults; r++)
        if (marks[node->result + r])
            return true;
    return sf_node_has_effect(graph, node);
}

void sf_graph_prune(sf_graph *graph)
{
    sf_block *top = graph->top;
    bool *marks = sf_alloc(graph->nvalues * sizeof *marks);
    memset(marks, 0, graph->nvalues * sizeof *marks);
    for (uint32_t i = 0; i < top->nresults; i++)
        marks[top->results[i]] = true;
    uint32_t left = top->nnodes;
    for (uint32_t i = top->nnodes; i-- > 0;) {
        const sf_node *node = graph->nodes[top->nodes[i]];
        if (!is_asked_for(graph, node, marks))
            continue;
        top->nodes[--left] = node->id;
        for (uint32_t o = 0; o < node->noperands; o++)
            marks[node->operands[o]] = true;
        for (uint32_t r = 0; r < node->nregions; r++)
            sf_block_uses(graph, node->regions[r], mark_use, marks);
    }
    top->nnodes -= left;
    if (left > 0)
        memmove(top->nodes, top->nodes + left, top->nnodes * sizeof *top->nodes);
    sf_free(marks);
}
