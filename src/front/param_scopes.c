#include "front/param_scopes.h"

#include <ctype.h>
#include <string.h>

#include "base/hash.h"
#include "base/intern.h"
#include "base/str.h"
#include "ir/clone.h"
#include "ir/name.h"

/* What a value is made of, as far as modules go. */
typedef enum content { CONSTANT, WEIGHTS, FLOW } content;

typedef struct finder {
    sf_graph *graph;
    sf_arena arena;
    const sf_scope *root;
    const sf_scope **module; /* by argument, or NULL */
    content *contents;       /* by value */
    const sf_scope *
        *before; /* by value of the forward pass: where it comes from; of weights: their module */
    const sf_scope **after; /* by value of the forward pass: where it goes first */
    const sf_scope **at;    /* by top node; NULL: not known yet */
    uint32_t *first; /* by scope id: the place where the forward pass gets there, from 1 on */
    size_t nscopes;
} finder;

/* Modules of arguments */

typedef struct tail {
    const char *path;
    uint32_t argument;
} tail;

static bool is_tail(const void *item, const void *key)
{
    return strcmp(((const tail *)item)->path, key) == 0;
}

static bool is_counter(sf_str part)
{
    for (size_t i = 0; i < part.length; i++)
        if (!isdigit((unsigned char)part.at[i]))
            return false;
    return part.length > 0;
}

static sf_str next_part(const char **at)
{
    sf_str part = {*at, strcspn(*at, "/")};
    *at += part.length + ((*at)[part.length] == '/');
    return part;
}

/* "layers/0/attn/q/kernel/value" is in layers_0/attn/q: numbers belong to what they count, and the last part is the
 * tensor. */
static const sf_scope *module_of_path(finder *f, const char *path)
{
    sf_pool *pool = f->graph->pool;
    const sf_scope *chain = f->root;
    sf_buf name = {0};
    size_t length = strlen(path);
    if (length > 6 && strcmp(path + length - 6, "/value") == 0)
        length -= 6;
    for (const char *at = path; *at;) {
        sf_str part = next_part(&at);
        if (at >= path + length)
            break; /* the tensor */
        if (is_counter(part) && name.length > 0) {
            sf_buf_printf(&name, "_%.*s", (int)part.length, part.at);
            continue;
        }
        if (name.length > 0)
            chain = sf_scope_child(pool, chain, (sf_str){name.text, name.length});
        name.length = 0;
        sf_buf_add(&name, part.at, part.length);
    }
    if (name.length > 0)
        chain = sf_scope_child(pool, chain, (sf_str){name.text, name.length});
    sf_buf_free(&name);
    return chain;
}

/* How many characters all parameters' paths begin with alike, up to a slash. */
static size_t shared_length(const finder *f, const char **names)
{
    const char *first = NULL;
    size_t length = 0;
    for (uint32_t i = 0; i < f->graph->top->narguments; i++) {
        if (f->graph->arguments[i].role != SF_ROLE_PARAM)
            continue;
        if (!first) {
            const char *slash = strrchr(names[i], '/');
            first = names[i];
            length = slash ? (size_t)(slash - first) + 1 : 0;
        }
        size_t same = 0;
        while (same < length && names[i][same] == first[same])
            same++;
        while (same > 0 && first[same - 1] != '/')
            same--;
        length = same;
    }
    /* What is counted keeps its name: in layers/0 and layers/1 it is no prefix. */
    while (length > 0 && isdigit((unsigned char)first[length])) {
        length--;
        while (length > 0 && first[length - 1] != '/')
            length--;
    }
    return length;
}

/* Of parameters, and of their state, whose name ends like theirs. */
static bool find_modules(finder *f)
{
    const sf_block *top = f->graph->top;
    const char **names = sf_clean_names(f->graph, &f->arena);
    size_t shared = shared_length(f, names);
    sf_interner tails = {0};
    bool any = false;
    f->module = SF_ARRAY(&f->arena, top->narguments, const sf_scope *);
    for (uint32_t i = 0; i < top->narguments; i++) {
        if (f->graph->arguments[i].role != SF_ROLE_PARAM || strlen(names[i]) <= shared)
            continue;
        const char *path = names[i] + shared;
        sf_intern_slot *slot =
            sf_intern_find(&tails, &f->arena, sf_hash_bytes(0, path, strlen(path)), is_tail, path);
        tail *own = SF_NEW(&f->arena, tail);
        *own = (tail){path, i};
        slot->item = own;
        f->module[i] = module_of_path(f, path);
        any = any || f->module[i] != f->root;
    }
    for (uint32_t i = 0; i < top->narguments; i++)
        for (const char *at = names[i]; at && !f->module[i];) {
            const tail *same =
                sf_intern_look(&tails, sf_hash_bytes(0, at, strlen(at)), is_tail, at);
            if (same)
                f->module[i] = f->module[same->argument];
            at = strchr(at, '/');
            at = at ? at + 1 : NULL;
        }
    return any;
}

/* Nodes */

typedef struct reading {
    finder *f;
    const sf_scope *weights,
        *state;               /* what all of those that are read are in; NULL: none is read */
    const sf_scope *latest;   /* of values of the forward pass */
    const sf_scope *earliest; /* of values of the backward pass */
    bool flows;
} reading;

static uint32_t place_of(const finder *f, const sf_scope *scope)
{
    return scope && scope->id < f->nscopes ? f->first[scope->id] : 0;
}

static void join(const sf_scope **all, const sf_scope *one)
{
    *all = *all && one ? sf_scope_common(*all, one) : *all ? *all : one;
}

static void read_value(void *context, sf_value value)
{
    reading *r = context;
    const finder *f = r->f;
    const sf_value_info *info = &f->graph->values[value];
    const sf_node *maker = sf_maker(f->graph, value);
    if (!maker) {
        bool is_argument = info->index < f->graph->top->narguments &&
                           f->graph->top->arguments[info->index] == value;
        if (is_argument && sf_type_of(f->graph, value)->rank > 0)
            join(&r->state, f->module[info->index]);
        if (is_argument && f->contents[value] == WEIGHTS)
            join(&r->weights, f->module[info->index]);
        else if (is_argument)
            r->flows = true;
        return;
    }
    if (maker->phase == SF_UPDATE && sf_type_of(f->graph, value)->rank > 0)
        join(&r->state, f->at[maker->id]);
    if (f->contents[value] == WEIGHTS)
        join(&r->weights, f->before[value]);
    if (f->contents[value] != FLOW)
        return;
    r->flows = true;
    if (maker->phase == SF_FORWARD) {
        const sf_scope *scope = f->before[value];
        if (scope && place_of(f, scope) >= place_of(f, r->latest))
            r->latest = scope;
    } else if (maker->phase == SF_BACKWARD) {
        const sf_scope *scope = f->at[maker->id];
        if (scope && (!r->earliest || place_of(f, scope) < place_of(f, r->earliest)))
            r->earliest = scope;
    }
}

static reading read_node(finder *f, const sf_node *node)
{
    reading r = {.f = f};
    for (uint32_t i = 0; i < node->noperands; i++)
        read_value(&r, node->operands[i]);
    for (uint32_t i = 0; i < node->nregions; i++)
        sf_block_uses(f->graph, node->regions[i], read_value, &r);
    return r;
}

/* The forward pass from its begin: what reads weights is where these are. */
static void place_anchors(finder *f)
{
    uint32_t place = 0;
    for (uint32_t n = 0; n < f->graph->top->nnodes; n++) {
        const sf_node *node = sf_top_node(f->graph, n);
        reading r = read_node(f, node);
        content made = r.flows ? FLOW : r.weights ? WEIGHTS : CONSTANT;
        const sf_scope *scope = r.weights ? r.weights : r.latest;
        for (uint32_t i = 0; i < node->nresults; i++) {
            f->contents[node->result + i] = made;
            f->before[node->result + i] = scope;
        }
        if (node->phase != SF_FORWARD || !r.weights)
            continue;
        f->at[node->id] = r.weights;
        if (made == FLOW && f->first[r.weights->id] == 0)
            f->first[r.weights->id] = ++place;
    }
}

static void note_after(void *context, sf_value value)
{
    reading *r = context;
    finder *f = r->f;
    if (r->latest && (!f->after[value] || place_of(f, r->latest) < place_of(f, f->after[value])))
        f->after[value] = r->latest;
}

/* From its end: where values go first. */
static void find_after(finder *f)
{
    for (uint32_t n = f->graph->top->nnodes; n-- > 0;) {
        const sf_node *node = sf_top_node(f->graph, n);
        reading r = {.f = f, .latest = f->at[node->id]};
        if (node->phase != SF_FORWARD)
            continue;
        for (uint32_t i = 0; !f->at[node->id] && i < node->nresults; i++)
            if (f->after[node->result + i])
                r.latest = f->after[node->result + i];
        for (uint32_t i = 0; i < node->noperands; i++)
            note_after(&r, node->operands[i]);
        for (uint32_t i = 0; i < node->nregions; i++)
            sf_block_uses(f->graph, node->regions[i], note_after, &r);
    }
}

/* The scope one below `above` on the way to `scope`. */
static const sf_scope *child_towards(const sf_scope *above, const sf_scope *scope)
{
    while (scope->parent && scope->parent != above)
        scope = scope->parent;
    return scope;
}

static bool differ_in_count(const char *a, const char *b)
{
    size_t x = strlen(a), y = strlen(b);
    while (x > 0 && isdigit((unsigned char)a[x - 1]))
        x--;
    while (y > 0 && isdigit((unsigned char)b[y - 1]))
        y--;
    return a[x] && b[y] && x == y && memcmp(a, b, x) == 0;
}

static const sf_scope *between(const finder *f, const sf_scope *before, const sf_scope *after)
{
    if (!before || !after)
        return before  ? child_towards(f->root, before)
               : after ? child_towards(f->root, after)
                       : NULL;
    const sf_scope *both = sf_scope_common(before, after);
    if (both == before || both == after)
        return both == f->root ? child_towards(f->root, before) : both;
    const sf_scope *left = child_towards(both, before), *right = child_towards(both, after);
    return both == f->root || differ_in_count(left->name, right->name) ? left : both;
}

static void place_forward(finder *f)
{
    for (uint32_t n = 0; n < f->graph->top->nnodes; n++) {
        const sf_node *node = sf_top_node(f->graph, n);
        if (node->phase != SF_FORWARD || f->at[node->id] || node->nresults == 0 ||
            f->contents[node->result] == CONSTANT)
            continue;
        f->at[node->id] = between(f, f->before[node->result], f->after[node->result]);
    }
    /* The backward pass goes by where the values of the forward pass are. */
    for (uint32_t n = 0; n < f->graph->top->nnodes; n++) {
        const sf_node *node = sf_top_node(f->graph, n);
        for (uint32_t i = 0; node->phase == SF_FORWARD && i < node->nresults; i++)
            if (f->contents[node->result + i] == FLOW && f->at[node->id]) {
                f->before[node->result + i] = f->at[node->id];
                if (f->first[f->at[node->id]->id] == 0)
                    f->first[f->at[node->id]->id] = place_of(f, f->after[node->result + i]);
            }
    }
}

static void place_later(finder *f)
{
    const sf_scope **of_gradient = SF_ARRAY(&f->arena, f->graph->nnodes, const sf_scope *);
    for (uint32_t i = 0; i < f->graph->top->narguments; i++) {
        sf_value gradient = f->graph->arguments[i].gradient;
        const sf_node *maker = gradient == SF_NONE ? NULL : sf_maker(f->graph, gradient);
        /* With the product that a transposed gradient is of. */
        for (; maker && maker->phase != SF_FORWARD;
             maker = maker->noperands == 1 ? sf_maker(f->graph, maker->operands[0]) : NULL)
            of_gradient[maker->id] = f->module[i];
    }
    for (uint32_t n = 0; n < f->graph->top->nnodes; n++) {
        const sf_node *node = sf_top_node(f->graph, n);
        if (node->phase == SF_FORWARD)
            continue;
        reading r = read_node(f, node);
        if (node->phase == SF_UPDATE)
            f->at[node->id] = r.state;
        else
            f->at[node->id] = of_gradient[node->id] ? of_gradient[node->id]
                              : r.weights           ? r.weights
                              : r.latest            ? r.latest
                                                    : r.earliest;
    }
}

static void set_scope(sf_graph *graph, sf_node *node, const sf_scope *scope)
{
    node->scope = scope;
    for (uint32_t r = 0; r < node->nregions; r++)
        for (uint32_t i = 0; i < node->regions[r]->nnodes; i++)
            set_scope(graph, graph->nodes[node->regions[r]->nodes[i]], scope);
}

static bool has_any_scope(const sf_graph *graph)
{
    for (size_t i = 0; i < graph->nnodes; i++)
        if (graph->nodes[i]->scope && graph->nodes[i]->scope->parent &&
            strncmp(graph->nodes[i]->scope->path, "iteration_", 10) != 0)
            return true; /* iterations of loops have numbers, but are no modules */
    return false;
}

void sf_find_param_scopes(sf_graph *graph)
{
    finder f = {.graph = graph, .root = sf_scope_root(graph->pool)};
    const sf_block *top = graph->top;
    if (has_any_scope(graph))
        return;
    if (find_modules(&f)) {
        f.nscopes = sf_scope_count(graph->pool);
        f.contents = SF_ARRAY(&f.arena, graph->nvalues, content);
        f.before = SF_ARRAY(&f.arena, graph->nvalues, const sf_scope *);
        f.after = SF_ARRAY(&f.arena, graph->nvalues, const sf_scope *);
        f.at = SF_ARRAY(&f.arena, graph->nnodes, const sf_scope *);
        f.first = SF_ARRAY(&f.arena, f.nscopes, uint32_t);
        for (uint32_t i = 0; i < top->narguments; i++)
            f.contents[top->arguments[i]] =
                graph->arguments[i].role == SF_ROLE_PARAM && f.module[i] ? WEIGHTS : FLOW;
        place_anchors(&f);
        find_after(&f);
        place_forward(&f);
        place_later(&f);
        for (uint32_t n = 0; n < top->nnodes; n++) {
            sf_node *node = graph->nodes[top->nodes[n]];
            set_scope(graph, node, f.at[node->id] ? f.at[node->id] : f.root);
        }
        graph->scopes_guessed = true;
    }
    sf_arena_free(&f.arena);
}
