#include "plan/recompute.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "ir/name.h"
#include "ir/opdef.h"
#include "ir/uses.h"
#include "op/op.h"
#include "op/slots.h"
#include "plan/again.h"
#include "plan/pin.h"

/* Products of no more than so many terms are cheap: the heads of attention are shorter, hidden sizes longer. */
enum { FEW_TERMS = 256 };

enum { NO_LAYER = 0 };

typedef struct choosing {
    const sf_graph *graph;
    sf_plan *plan;
    sf_diag *diag;
    sf_arena arena;
    sf_uses uses;
    bool *is_fixed;  /* by node: sf_find_fixed */
    uint32_t *layer; /* by node: the part of the forward pass that it is in, or NO_LAYER */
    uint32_t nlayers;
    uint32_t group; /* layers that are taken together */
} choosing;

/* Part of it would have to be sent again. */
static bool is_partial(const choosing *c, const sf_node *node)
{
    for (uint32_t r = 0; r < node->nresults; r++)
        if (sf_layout_is_partial(&c->plan->nodes[node->id][node->noperands + r]))
            return true;
    return false;
}

static bool can_be_again(const choosing *c, const sf_node *node)
{
    return sf_can_run_again(c->graph, node) && !c->is_fixed[node->id] && !is_partial(c, node);
}

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

/* By scope id: whether it is one of several that are counted. */
static bool *find_counted(choosing *c)
{
    const sf_block *top = c->graph->top;
    uint32_t nscopes = sf_scope_count(c->graph->pool);
    bool *seen = SF_ARRAY(&c->arena, nscopes, bool), *counted = SF_ARRAY(&c->arena, nscopes, bool);
    counted_scope *list = SF_ARRAY(&c->arena, nscopes, counted_scope);
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
        if (same_family(&list[i - 1], &list[i]))
            counted[list[i - 1].scope->id] = counted[list[i].scope->id] = true;
    return counted;
}

/* The outermost of them is the layer. */
static void find_named_layers(choosing *c)
{
    const sf_block *top = c->graph->top;
    bool *counted = find_counted(c);
    uint32_t *number = SF_ARRAY(&c->arena, sf_scope_count(c->graph->pool), uint32_t);
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(c->graph, i);
        const sf_scope *layer = NULL;
        for (const sf_scope *s = node->scope; s->parent; s = s->parent)
            if (counted[s->id])
                layer = s;
        if (!layer || node->phase != SF_FORWARD)
            continue;
        if (!number[layer->id])
            number[layer->id] = ++c->nlayers;
        c->layer[node->id] = number[layer->id];
    }
}

/* Layers by the narrowest places */

static bool is_product(const sf_node *node)
{
    return sf_is(node, SF_OP_DOT_GENERAL) || sf_is(node, SF_OP_CONVOLUTION);
}

static bool flows_forward(const choosing *c, const sf_node *node)
{
    return node->phase == SF_FORWARD && !c->is_fixed[node->id];
}

/* By place in the top block: bytes that the forward pass hands over it. */
static double *find_widths(choosing *c)
{
    const sf_block *top = c->graph->top;
    double *widths = SF_ARRAY(&c->arena, top->nnodes + 1, double);
    uint32_t *place = SF_ARRAY(&c->arena, c->graph->nnodes, uint32_t);
    for (uint32_t i = 0; i < top->nnodes; i++)
        place[top->nodes[i]] = i;
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(c->graph, i);
        for (uint32_t r = 0; r < node->nresults && flows_forward(c, node); r++) {
            sf_value value = node->result + r;
            uint32_t last = i;
            for (uint32_t u = c->uses.first[value]; u < c->uses.first[value + 1]; u++) {
                uint32_t user = c->uses.at[u].node;
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

/* The least width between the first product and the last. */
static double find_least_width(const choosing *c, const double *widths)
{
    const sf_block *top = c->graph->top;
    double least = 0, since = 0;
    bool begun = false;
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(c->graph, i);
        if (!flows_forward(c, node))
            continue;
        if (is_product(node)) { /* what was seen lies between two */
            least = begun && since > 0 && (least == 0 || since < least) ? since : least;
            begun = true;
            since = 0;
        }
        if (begun && widths[i] > 0 && (since == 0 || widths[i] < since))
            since = widths[i];
    }
    return least;
}

static void find_narrow_layers(choosing *c)
{
    const sf_block *top = c->graph->top;
    double *widths = find_widths(c), least = find_least_width(c, widths);
    bool has_product = false;
    if (least <= 0)
        return;
    c->nlayers = 1;
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(c->graph, i);
        if (!flows_forward(c, node))
            continue;
        c->layer[node->id] = c->nlayers;
        has_product = has_product || is_product(node);
        if (has_product && widths[i] <= 1.01 * least) {
            c->nlayers++;
            has_product = false;
        }
    }
}

/* Marking */

/* A node of the forward pass in another layer reads it, or it is a result. */
static bool leaves_layer(const choosing *c, const sf_node *node)
{
    for (uint32_t r = 0; r < node->nresults; r++) {
        sf_value value = node->result + r;
        for (uint32_t u = c->uses.first[value]; u < c->uses.first[value + 1]; u++) {
            uint32_t user = c->uses.at[u].node;
            if (user == SF_NONE || (c->graph->nodes[user]->phase == SF_FORWARD &&
                                    c->layer[user] != c->layer[node->id]))
                return true;
        }
    }
    return false;
}

static void mark_layers(choosing *c)
{
    const sf_block *top = c->graph->top;
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(c->graph, i);
        c->plan->again[node->id] =
            c->layer[node->id] != NO_LAYER && can_be_again(c, node) && !leaves_layer(c, node);
    }
}

/* What stands between layers, such as the sums of a residual stream, belongs to the last of those that it reads. */
static void find_between(choosing *c)
{
    const sf_block *top = c->graph->top;
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(c->graph, i);
        uint32_t last = NO_LAYER;
        if (c->layer[node->id] != NO_LAYER || !flows_forward(c, node))
            continue;
        for (uint32_t o = 0; o < node->noperands; o++) {
            const sf_node *maker = sf_maker(c->graph, node->operands[o]);
            if (maker && c->layer[maker->id] > last)
                last = c->layer[maker->id];
        }
        if (last < c->nlayers) /* behind the last layer is the loss */
            c->layer[node->id] = last;
    }
}

/* Layers, `group` of them taken together. */
static void find_layers(choosing *c)
{
    const sf_block *top = c->graph->top;
    find_named_layers(c);
    if (c->nlayers < 2) {
        c->nlayers = 0;
        find_narrow_layers(c);
    }
    find_between(c);
    for (uint32_t i = 0; i < top->nnodes && c->group > 1; i++) {
        uint32_t *layer = &c->layer[top->nodes[i]];
        if (*layer != NO_LAYER)
            *layer = (*layer - 1) / c->group + 1;
    }
}

static sf_status mark_by_layer(choosing *c)
{
    find_layers(c);
    if (c->nlayers < 2)
        return sf_fail(c->diag, SF_EWRONG, SF_NOWHERE,
                       "recompute: no layers are seen in this step: neither scopes that are "
                       "counted nor places where its forward pass is narrow");
    mark_layers(c);
    return SF_OK;
}

static int64_t count_terms(const choosing *c, const sf_node *node)
{
    const sf_type *left = sf_type_of(c->graph, node->operands[0]);
    const sf_attr *dims = node->attrs[SF_DOT_LHS_CONTRACTING];
    int64_t terms = 1;
    for (int i = 0; dims && i < dims->count; i++)
        terms *= left->dims[dims->ints[i]];
    return terms;
}

static bool is_cheap(const choosing *c, const sf_node *node)
{
    switch (node->def->id) {
    case SF_OP_DOT_GENERAL:
        return count_terms(c, node) <= FEW_TERMS;
    case SF_OP_CONVOLUTION:
    case SF_OP_GATHER:
    case SF_OP_SCATTER:
    case SF_OP_SORT:
    case SF_OP_RNG_BIT_GENERATOR:
    case SF_OP_CUSTOM_CALL:
        return false;
    default:
        return true;
    }
}

static sf_status mark_cheap(choosing *c)
{
    const sf_block *top = c->graph->top;
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(c->graph, i);
        c->plan->again[node->id] = can_be_again(c, node) && is_cheap(c, node);
    }
    return SF_OK;
}

/* Within layers as by layer, what is cheap elsewhere. */
static sf_status mark_fully(choosing *c)
{
    const sf_block *top = c->graph->top;
    find_layers(c);
    if (c->nlayers < 2)
        return mark_cheap(c);
    mark_layers(c);
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(c->graph, i);
        if (c->layer[node->id] == NO_LAYER)
            c->plan->again[node->id] = can_be_again(c, node) && is_cheap(c, node);
    }
    return SF_OK;
}

static sf_status mark_scope(choosing *c, const char *pattern)
{
    const sf_block *top = c->graph->top;
    bool found = false;
    c->nlayers++;
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(c->graph, i);
        if (node->phase != SF_FORWARD || !sf_name_is_in(pattern, node->scope->path))
            continue;
        c->layer[node->id] = c->nlayers;
        found = true;
    }
    if (found)
        return SF_OK;
    return sf_fail(
        c->diag, SF_EUSAGE, SF_NOWHERE,
        "recompute: \"%s\" is none of none, layer, cheap and full, nor a scope of the step",
        pattern);
}

static sf_status mark_by_scopes(choosing *c, const char *how)
{
    for (const char *at = how; *at;) {
        size_t length = strcspn(at, ",");
        const char *pattern = sf_arena_string(&c->arena, at, length);
        SF_TRY(mark_scope(c, pattern));
        at += length + (at[length] == ',');
    }
    mark_layers(c);
    return SF_OK;
}

/* Whether the text is the word, or the word with a number of layers behind it. */
static bool is_word(const char *text, const char *word, uint32_t *group)
{
    size_t length = strlen(word);
    char *end;
    if (strncmp(text, word, length) != 0)
        return false;
    *group = 1;
    if (text[length] == '\0')
        return true;
    unsigned long number = text[length] == ':' ? strtoul(text + length + 1, &end, 10) : 0;
    *group = number > 0 && number < UINT32_MAX && *end == '\0' ? (uint32_t)number : 0;
    return *group > 0;
}

static void open_choosing(choosing *c)
{
    c->uses = sf_uses_of(c->graph, &c->arena);
    c->layer = SF_ARRAY(&c->arena, c->graph->nnodes, uint32_t);
    c->is_fixed = sf_find_fixed(c->graph, &c->arena);
}

sf_status sf_plan_recompute(const sf_graph *graph, sf_plan *plan, const char *how, sf_diag *diag)
{
    choosing c = {.graph = graph, .plan = plan, .diag = diag, .group = 1};
    plan->again = NULL;
    plan->recompute = "";
    if (!how || strcmp(how, "none") == 0)
        return SF_OK;
    plan->again = SF_ARRAY(&plan->arena, graph->nnodes, bool);
    plan->recompute = sf_arena_string(&plan->arena, how, strlen(how));
    open_choosing(&c);
    sf_status status = is_word(how, "layer", &c.group)  ? mark_by_layer(&c)
                       : is_word(how, "full", &c.group) ? mark_fully(&c)
                       : strcmp(how, "cheap") == 0      ? mark_cheap(&c)
                                                        : mark_by_scopes(&c, how);
    sf_arena_free(&c.arena);
    return status;
}

uint32_t sf_count_layers(const sf_graph *graph)
{
    choosing c = {.graph = graph, .group = 1};
    open_choosing(&c);
    find_layers(&c);
    sf_arena_free(&c.arena);
    return c.nlayers;
}

uint32_t sf_count_again(const sf_graph *graph, const sf_plan *plan)
{
    uint32_t count = 0;
    for (uint32_t n = 0; plan->again && n < graph->nnodes; n++)
        count += plan->again[n];
    return count;
}
