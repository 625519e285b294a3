#include "plan/layers.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "ir/name.h"
#include "ir/opdef.h"
#include "op/op.h"

typedef struct finding {
    const sf_graph *graph;
    const sf_uses *uses;
    const bool *is_free;
    sf_arena *arena;
    sf_layers layers;
} finding;

/* Layers by name */

/* "layer_" of "layer_12", or nothing. */
static size_t stem_length(const char *name)
{
    size_t length = strlen(name), stem = length;
    while (stem > 0 && isdigit((unsigned char)name[stem - 1]))
        stem--;
    return stem < length ? stem : SIZE_MAX;
}

typedef struct counted_scope {
    const sf_scope *scope;
    size_t stem;
} counted_scope;

static int by_family(const void *a, const void *b)
{
    const counted_scope *x = a, *y = b;
    if (x->scope->parent != y->scope->parent)
        return x->scope->parent->id < y->scope->parent->id ? -1 : 1;
    if (x->stem != y->stem)
        return x->stem < y->stem ? -1 : 1;
    int order = strncmp(x->scope->name, y->scope->name, x->stem);
    return order ? order : (x->scope->id > y->scope->id) - (x->scope->id < y->scope->id);
}

static bool same_family(const counted_scope *a, const counted_scope *b)
{
    return a->scope->parent == b->scope->parent && a->stem == b->stem &&
           strncmp(a->scope->name, b->scope->name, a->stem) == 0;
}

/* By scope id: the number of those that it is counted with, from 1 on; 0: it is not one of several. */
static uint32_t *find_families(finding *c)
{
    const sf_block *top = c->graph->top;
    uint32_t nscopes = sf_scope_count(c->graph->pool), number = 0;
    bool *seen = SF_ARRAY(c->arena, nscopes, bool);
    uint32_t *family = SF_ARRAY(c->arena, nscopes, uint32_t);
    counted_scope *list = SF_ARRAY(c->arena, nscopes, counted_scope);
    size_t count = 0;
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(c->graph, i);
        for (const sf_scope *s = node->scope; node->phase == SF_FORWARD && s->parent; s = s->parent)
            if (!seen[s->id]) {
                seen[s->id] = true;
                if (stem_length(s->name) != SIZE_MAX)
                    list[count++] = (counted_scope){s, stem_length(s->name)};
            }
    }
    if (count > 0)
        qsort(list, count, sizeof *list, by_family);
    for (size_t i = 1; i < count; i++)
        if (same_family(&list[i - 1], &list[i])) {
            uint32_t *first = &family[list[i - 1].scope->id];
            *first = *first ? *first : ++number;
            family[list[i].scope->id] = *first;
        }
    return family;
}

/* Scopes that are counted, inside of others that are. */
typedef struct nesting {
    finding *c;
    const uint32_t *family;    /* by scope */
    const sf_scope **outer;    /* by node: the outermost scope that is counted, or NULL; */
    const sf_scope **inner;    /* and the next one inside of it */
    uint32_t *products;        /* by scope, of those two */
    uint32_t *place, *members; /* by scope: its place in its family, from 1 on; by family */
    uint32_t *of_family;       /* by family: products */
    uint32_t *best;            /* by scope: of the families inside, the one with most products */
    uint32_t *links;           /* by family: members that go on from the one before */
} nesting;

static void find_nested(nesting *n)
{
    const sf_block *top = n->c->graph->top;
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(n->c->graph, i);
        const sf_scope **outer = &n->outer[node->id], **inner = &n->inner[node->id];
        for (const sf_scope *s = node->scope; node->phase == SF_FORWARD && s->parent; s = s->parent)
            if (n->family[s->id]) {
                *inner = *outer;
                *outer = s;
            }
        if (*outer)
            n->products[(*outer)->id] += sf_is_product(node->def);
        if (!*inner)
            continue;
        uint32_t family = n->family[(*inner)->id];
        n->products[(*inner)->id] += sf_is_product(node->def);
        n->of_family[family] += sf_is_product(node->def);
        if (!n->place[(*inner)->id])
            n->place[(*inner)->id] = ++n->members[family];
        if (n->of_family[family] > n->of_family[n->best[(*outer)->id]])
            n->best[(*outer)->id] = family;
    }
}

/* The place of the node in the family that has most of its outer scope; 0: it is in none of those. */
static uint32_t place_of(const nesting *n, uint32_t node)
{
    const sf_scope *inner = n->inner[node];
    return inner && n->family[inner->id] == n->best[n->outer[node]->id] ? n->place[inner->id] : 0;
}

/* Which members follow the one before them: no node of theirs follows from a later member. */
static void find_links(nesting *n)
{
    const sf_graph *graph = n->c->graph;
    uint32_t *last = SF_ARRAY(n->c->arena, graph->nnodes, uint32_t); /* that it follows from */
    bool *linked = SF_ARRAY(n->c->arena, sf_scope_count(graph->pool), bool);
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        uint32_t place = n->outer[node->id] ? place_of(n, node->id) : 0;
        for (uint32_t o = 0; o < node->noperands && n->outer[node->id]; o++) {
            const sf_node *maker = sf_maker(graph, node->operands[o]);
            if (!maker || n->outer[maker->id] != n->outer[node->id])
                continue;
            uint32_t before = place_of(n, maker->id);
            before = before > last[maker->id] ? before : last[maker->id];
            last[node->id] = before > last[node->id] ? before : last[node->id];
        }
        if (place > 1 && last[node->id] + 1 == place && !linked[n->inner[node->id]->id]) {
            linked[n->inner[node->id]->id] = true;
            n->links[n->family[n->inner[node->id]->id]]++;
        }
    }
}

/* By scope: whether its inner numbered scopes are the layers. */
static bool *find_split(const nesting *n, uint32_t nscopes)
{
    enum { FEW_PRODUCTS = 2 };
    bool *split = SF_ARRAY(n->c->arena, nscopes, bool), *few = SF_ARRAY(n->c->arena, nscopes, bool);
    for (uint32_t i = 0; i < n->c->graph->top->nnodes; i++) {
        const sf_scope *inner = n->inner[n->c->graph->top->nodes[i]];
        if (inner && n->products[inner->id] < FEW_PRODUCTS)
            few[n->family[inner->id]] = true;
    }
    for (uint32_t s = 0; s < nscopes; s++) {
        uint32_t best = n->best[s];
        split[s] = best && !few[best] && n->members[best] > 1 &&
                   n->links[best] + 1 == n->members[best] &&
                   2 * n->of_family[best] > n->products[s];
    }
    return split;
}

static void find_named_layers(finding *c)
{
    const sf_block *top = c->graph->top;
    uint32_t nscopes = sf_scope_count(c->graph->pool);
    uint32_t *number = SF_ARRAY(c->arena, nscopes, uint32_t);
    nesting n = {.c = c,
                 .family = find_families(c),
                 .outer = SF_ARRAY(c->arena, c->graph->nnodes, const sf_scope *),
                 .inner = SF_ARRAY(c->arena, c->graph->nnodes, const sf_scope *),
                 .products = SF_ARRAY(c->arena, nscopes, uint32_t),
                 .place = SF_ARRAY(c->arena, nscopes, uint32_t),
                 .members = SF_ARRAY(c->arena, nscopes, uint32_t),
                 .of_family = SF_ARRAY(c->arena, nscopes, uint32_t),
                 .best = SF_ARRAY(c->arena, nscopes, uint32_t),
                 .links = SF_ARRAY(c->arena, nscopes, uint32_t)};
    find_nested(&n);
    find_links(&n);
    const bool *split = find_split(&n, nscopes);
    for (uint32_t i = 0; i < top->nnodes; i++) {
        uint32_t node = top->nodes[i];
        const sf_scope *layer = n.outer[node];
        if (layer && split[layer->id])
            layer = place_of(&n, node) ? n.inner[node] : NULL;
        if (!layer)
            continue;
        if (!number[layer->id])
            number[layer->id] = ++c->layers.count;
        c->layers.of[node] = number[layer->id];
    }
}

/* Layers by the narrowest places */

static bool flows_forward(const finding *c, const sf_node *node)
{
    return node->phase == SF_FORWARD && !c->is_free[node->id];
}

/* By place in the top block: bytes that the forward pass hands over it. */
static double *find_widths(finding *c)
{
    const sf_block *top = c->graph->top;
    double *widths = SF_ARRAY(c->arena, top->nnodes + 1, double);
    uint32_t *place = SF_ARRAY(c->arena, c->graph->nnodes, uint32_t);
    for (uint32_t i = 0; i < top->nnodes; i++)
        place[top->nodes[i]] = i;
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(c->graph, i);
        for (uint32_t r = 0; r < node->nresults && flows_forward(c, node); r++) {
            sf_value value = node->result + r;
            uint32_t last = i;
            for (uint32_t u = c->uses->first[value]; u < c->uses->first[value + 1]; u++) {
                uint32_t user = c->uses->at[u].node;
                if (user != SF_NONE && flows_forward(c, c->graph->nodes[user]))
                    last = place[user];
            }
            double bytes = (double)sf_type_bytes(sf_type_of(c->graph, value));
            widths[i] += bytes;
            widths[last] -= bytes;
        }
    }
    for (uint32_t i = 1; i < top->nnodes; i++)
        widths[i] += widths[i - 1];
    return widths;
}

double sf_least_width(const sf_graph *graph, const bool *counts, const double *widths,
                      uint32_t first, uint32_t end)
{
    double least = 0, since = 0;
    bool begun = false;
    for (uint32_t i = first; i < end; i++) {
        const sf_node *node = sf_top_node(graph, i);
        if (!counts[node->id])
            continue;
        if (sf_is_product(node->def)) { /* products on both sides */
            least = begun && since > 0 && (least == 0 || since < least) ? since : least;
            begun = true;
            since = 0;
        }
        if (begun && widths[i] > 0 && (since == 0 || widths[i] < since))
            since = widths[i];
    }
    return least;
}

void sf_cut_narrow(const sf_graph *graph, const bool *counts, const double *widths, double most,
                   uint32_t first, uint32_t end, sf_layers *out)
{
    bool has_product = false;
    out->count++;
    for (uint32_t i = first; i < end; i++) {
        const sf_node *node = sf_top_node(graph, i);
        if (!counts[node->id])
            continue;
        out->of[node->id] = out->count;
        has_product = has_product || sf_is_product(node->def);
        if (has_product && widths[i] <= most) {
            out->count++;
            has_product = false;
        }
    }
}

static void find_narrow_layers(finding *c)
{
    const sf_block *top = c->graph->top;
    const double *widths = find_widths(c);
    bool *counts = SF_ARRAY(c->arena, c->graph->nnodes, bool);
    for (uint32_t i = 0; i < top->nnodes; i++)
        counts[top->nodes[i]] = flows_forward(c, sf_top_node(c->graph, i));
    double least = sf_least_width(c->graph, counts, widths, 0, top->nnodes);
    if (least > 0)
        sf_cut_narrow(c->graph, counts, widths, 1.01 * least, 0, top->nnodes, &c->layers);
}

/* Nodes between layers, such as the sums of a residual stream, belong to the last layer that they
 * read. */
static void find_between(finding *c)
{
    const sf_block *top = c->graph->top;
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(c->graph, i);
        uint32_t last = SF_NO_LAYER;
        if (c->layers.of[node->id] != SF_NO_LAYER || !flows_forward(c, node))
            continue;
        for (uint32_t o = 0; o < node->noperands; o++) {
            const sf_node *maker = sf_maker(c->graph, node->operands[o]);
            if (maker && c->layers.of[maker->id] > last)
                last = c->layers.of[maker->id];
        }
        if (last < c->layers.count) /* the loss comes after the last layer */
            c->layers.of[node->id] = last;
    }
}

sf_layers sf_find_layers(const sf_graph *graph, const sf_uses *uses, const bool *is_free,
                         uint32_t group, sf_arena *arena)
{
    const sf_block *top = graph->top;
    finding c = {.graph = graph, .uses = uses, .is_free = is_free, .arena = arena};
    c.layers.of = SF_ARRAY(arena, graph->nnodes, uint32_t);
    find_named_layers(&c);
    if (c.layers.count < 2) {
        c.layers.count = 0;
        find_narrow_layers(&c);
    }
    find_between(&c);
    for (uint32_t i = 0; i < top->nnodes && group > 1; i++) {
        uint32_t *layer = &c.layers.of[top->nodes[i]];
        if (*layer != SF_NO_LAYER)
            *layer = (*layer - 1) / group + 1;
    }
    return c.layers;
}
