/* State links by trees, where only the arguments or only the results have names: texts without locations, and HLO. The tensors
 * of one tree lie one after another on both sides. */
#include <stdlib.h>
#include <string.h>

#include "front/state_linker.h"

typedef struct group {
    uint32_t first, count;
} group;

typedef struct trees {
    sf_linker *l;
    bool of_arguments; /* the arguments are named */
    group *groups;
    size_t count, capacity;
} trees;

static const char *name_of(const trees *t, uint32_t i)
{
    const sf_graph *graph = t->l->graph;
    return t->of_arguments ? graph->arguments[i].name : graph->results[i].name;
}

/* The length of the name up to the end of its part number `depth`; 0 is the name before all parts. */
static size_t length_at(const char *name, int depth)
{
    size_t at = strcspn(name, "[.");
    for (; depth > 0 && name[at]; depth--)
        at += 1 + strcspn(name + at + 1, "[.");
    return at;
}

static bool is_free(const trees *t, uint32_t i)
{
    const sf_linker *l = t->l;
    return t->of_arguments ? l->graph->arguments[i].next == SF_NONE && !l->fed[i]
                           : !l->taken[i] && !l->reported[i];
}

static int compare_groups(const void *a, const void *b)
{
    const group *x = a, *y = b;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return x->first < y->first ? -1 : x->first > y->first;
}

/* The largest come first: parts of them look as smaller ones do. */
static void find_groups(trees *t, uint32_t count, int depth)
{
    t->count = 0;
    for (uint32_t i = 0, end; i < count; i = end) {
        size_t length = length_at(name_of(t, i), depth);
        for (end = i + 1; end < count && is_free(t, i) && is_free(t, end); end++)
            if (length_at(name_of(t, end), depth) != length ||
                memcmp(name_of(t, end), name_of(t, i), length) != 0)
                break;
        if (is_free(t, i) && end - i > 1)
            SF_PUSH(&t->l->arena, t->groups, t->count, t->capacity, ((group){i, end - i}));
    }
    if (t->count > 0)
        qsort(t->groups, t->count, sizeof *t->groups, compare_groups);
}

/* How many of the group grow into, or from, as many tensors from `other` on, if all have the same types; else 0. */
static uint32_t count_grown(const trees *t, const group *g, uint32_t other)
{
    const sf_graph *graph = t->l->graph;
    uint32_t grown = 0;
    for (uint32_t k = 0; k < g->count; k++) {
        uint32_t argument = (t->of_arguments ? g->first : other) + k;
        uint32_t result = (t->of_arguments ? other : g->first) + k;
        if (sf_argument_type(graph, argument) != sf_result_type(graph, result) ||
            graph->arguments[argument].next != SF_NONE || t->l->fed[argument] ||
            t->l->taken[result] || t->l->reported[result])
            return 0;
        grown +=
            sf_maker(graph, graph->top->results[result]) && sf_is_new_state(t->l, result, argument);
    }
    return grown;
}

/* Where most of the group grows, and in how many places as much does. */
typedef struct best_place {
    uint32_t at, grown, count;
} best_place;

static bool find_place(const trees *t, const group *g, uint32_t others, best_place *out)
{
    *out = (best_place){0};
    for (uint32_t other = 0; other + g->count <= others; other++) {
        uint32_t grown = count_grown(t, g, other);
        if (grown > out->grown)
            *out = (best_place){other, grown, 1};
        else if (grown > 0 && grown == out->grown)
            out->count++;
    }
    return out->grown > 0;
}

static void link_group(const trees *t, const group *g, uint32_t at)
{
    for (uint32_t k = 0; k < g->count; k++)
        sf_take_result(t->l, (t->of_arguments ? g->first : at) + k,
                       (t->of_arguments ? at : g->first) + k, SF_FROM_ORDER);
}

/* Groups of one size, those first that can be in one place alone: parameters grow from both moments, a moment from itself. Of
 * those that can be in several the first one is in the first. */
static void link_groups(trees *t, size_t first, size_t end, uint32_t others)
{
    enum { MOST_TRIED = 64 };
    for (size_t left = end - first; left > 0;) {
        size_t sure = end, any = end, tried = 0;
        best_place place, best = {0};
        for (size_t i = first; i < end && sure == end && tried < MOST_TRIED; i++) {
            if (t->groups[i].count > 0 && !find_place(t, &t->groups[i], others, &place))
                t->groups[i].count = 0; /* nor will there be one */
            if (t->groups[i].count == 0)
                continue;
            tried++;
            if (place.count == 1)
                sure = i;
            if (any == end || sure == i) {
                any = i;
                best = place;
            }
        }
        if (any == end)
            return;
        link_group(t, &t->groups[any], best.at);
        t->groups[any].count = 0;
        left--;
    }
}

void sf_link_trees(sf_linker *l, bool of_arguments)
{
    enum { DEEPEST = 4 };
    const sf_block *top = l->graph->top;
    uint32_t count = of_arguments ? top->narguments : top->nresults;
    uint32_t others = of_arguments ? top->nresults : top->narguments;
    trees t = {.l = l, .of_arguments = of_arguments};
    for (int depth = 0; depth < DEEPEST; depth++) {
        find_groups(&t, count, depth);
        for (size_t i = 0, end; i < t.count; i = end) {
            for (end = i + 1; end < t.count && t.groups[end].count == t.groups[i].count;)
                end++;
            link_groups(&t, i, end, others);
        }
    }
}
