#include "plan/recompute_policy.h"

#include <inttypes.h>
#include <string.h>

#include "base/units.h"
#include "ir/name.h"
#include "ir/opdef.h"
#include "ir/uses.h"
#include "op/flops.h"
#include "op/op.h"
#include "op/slots.h"
#include "plan/layer_parts.h"
#include "plan/pin.h"

/* Products of no more than so many terms are cheap: the heads of attention are shorter, hidden sizes longer. */
enum { FEW_TERMS = 256 };

typedef struct choosing {
    const sf_graph *graph;
    sf_plan *plan;
    sf_diag *diag;
    sf_arena arena;
    sf_uses uses;
    bool *is_fixed; /* by node: sf_find_fixed */
    sf_layers layers;
    sf_light light;
    uint32_t group; /* layers that are taken together */
    bool in_parts;  /* each is recomputed in parts */
} choosing;

/* A partial result would have to be reduced once more. Along an axis of one rank there is no
 * communication. */
static bool is_partial(const choosing *c, const sf_node *node)
{
    const sf_mesh *mesh = &c->plan->mesh;
    const sf_layout *layouts = &c->plan->nodes[node->id][node->noperands];
    for (uint32_t r = 0; r < node->nresults; r++)
        for (int a = 0; a < mesh->naxes; a++)
            if (layouts[r].axes[a].kind == SF_PARTIAL && mesh->axes[a].size > 1)
                return true;
    return false;
}

/* A loop takes long, and its backward pass mostly reads all its results: only the text may request
 * it. */
static bool can_be_recomputed(const choosing *c, const sf_node *node)
{
    return sf_can_recompute(c->graph, node) && !c->is_fixed[node->id] && !is_partial(c, node) &&
           (node->nregions == 0 || node->recomputed);
}

/* Marking */

/* A node of the forward pass in another of these layers, or parts of layers, reads it, and needs it; or it is a result. */
static bool leaves(const choosing *c, const sf_layers *layers, const sf_node *node)
{
    for (uint32_t r = 0; r < node->nresults; r++) {
        sf_value value = node->result + r;
        for (uint32_t u = c->uses.first[value]; u < c->uses.first[value + 1]; u++) {
            uint32_t user = c->uses.at[u].node;
            if (user == SF_NONE ||
                (c->graph->nodes[user]->phase == SF_FORWARD && !c->light.is_light[node->id] &&
                 layers->of[user] != layers->of[node->id]))
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
        c->plan->recomputed[node->id] = c->layers.of[node->id] != SF_NO_LAYER &&
                                        can_be_recomputed(c, node) && !leaves(c, &c->layers, node);
    }
}

/* Of a layer that is recomputed in parts, the outputs of a part stay until the backward pass has
 * gone through the layer; inner nodes are computed on the way to these, and once more when the
 * backward pass goes through their part. The last part, whose outputs are not marked, is not on the
 * way to others. */
static void mark_parts(choosing *c)
{
    const sf_block *top = c->graph->top;
    bool *recomputed = c->plan->recomputed;
    sf_layers parts = sf_find_layer_parts(c->graph, c->is_fixed, &c->light, &c->layers, &c->arena);
    bool *goes_on = SF_ARRAY(&c->arena, (size_t)parts.count + 1, bool);
    c->plan->recomputed_per_part = SF_ARRAY(&c->plan->arena, c->graph->nnodes, bool);
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(c->graph, i);
        bool is_left = parts.of[node->id] != SF_NO_LAYER && leaves(c, &parts, node);
        c->plan->recomputed_per_part[node->id] = recomputed[node->id] && !is_left;
        goes_on[parts.of[node->id]] =
            goes_on[parts.of[node->id]] || (recomputed[node->id] && is_left);
    }
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(c->graph, i);
        uint32_t part = parts.of[node->id];
        c->plan->recomputed_per_part[node->id] =
            c->plan->recomputed_per_part[node->id] && part != SF_NO_LAYER && goes_on[part];
    }
}

/* Whether a later phase reads the node, or a clone reads its results. */
static bool is_wanted(const choosing *c, const sf_node *node)
{
    bool is_wanted = false;
    for (uint32_t r = 0; r < node->nresults && !is_wanted; r++) {
        sf_value value = node->result + r;
        for (uint32_t u = c->uses.first[value]; u < c->uses.first[value + 1]; u++) {
            uint32_t user = c->uses.at[u].node;
            is_wanted = is_wanted ||
                        (user != SF_NONE &&
                         (c->graph->nodes[user]->phase != SF_FORWARD || c->plan->recomputed[user]));
        }
    }
    return is_wanted;
}

/* A node that no later phase needs has no clone: forward passes without a backward pass, and values
 * that only other layers read. Readers of a node come after it. */
static void drop_unwanted(choosing *c)
{
    const sf_block *top = c->graph->top;
    for (uint32_t i = top->nnodes; i-- > 0;) {
        const sf_node *node = sf_top_node(c->graph, i);
        if (c->plan->recomputed[node->id])
            c->plan->recomputed[node->id] = is_wanted(c, node);
        if (c->plan->recomputed_per_part)
            c->plan->recomputed_per_part[node->id] =
                c->plan->recomputed_per_part[node->id] && c->plan->recomputed[node->id];
    }
}

/* Nodes that the text recomputes. */
static sf_status mark_as_text(choosing *c)
{
    const sf_block *top = c->graph->top;
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(c->graph, i);
        c->plan->recomputed[node->id] = node->recomputed && can_be_recomputed(c, node);
    }
    return SF_OK;
}

static void find_layers(choosing *c)
{
    c->layers = sf_find_layers(c->graph, &c->uses, c->is_fixed, c->group, &c->arena);
}

/* Bytes that a loop of the forward pass hands to later phases. */
static int64_t bytes_kept_by(const choosing *c, const sf_node *loop)
{
    int64_t bytes = 0;
    for (uint32_t r = 0; r < loop->nresults; r++) {
        sf_value value = loop->result + r;
        bool is_late = false;
        for (uint32_t u = c->uses.first[value]; u < c->uses.first[value + 1]; u++) {
            uint32_t user = c->uses.at[u].node;
            is_late = is_late || (user != SF_NONE && c->graph->nodes[user]->phase != SF_FORWARD);
        }
        bytes += is_late ? sf_type_bytes(sf_type_of(c->graph, value)) : 0;
    }
    return bytes;
}

/* The loop that keeps the most; NULL where none keeps anything. */
static const sf_node *find_keeping_loop(const choosing *c, int64_t *bytes)
{
    const sf_node *most = NULL;
    *bytes = 0;
    for (uint32_t i = 0; i < c->graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(c->graph, i);
        if (!sf_is(node, SF_OP_WHILE) || node->phase != SF_FORWARD ||
            bytes_kept_by(c, node) <= *bytes)
            continue;
        most = node;
        *bytes = bytes_kept_by(c, node);
    }
    return most;
}

static sf_status hint_at_unrolling(const sf_node *loop, sf_diag *diag)
{
    if (sf_trips_of(loop) >= 1)
        return sf_hint(diag, "--unroll %.0f or more unrolls it", sf_trips_of(loop));
    return sf_hint(diag, "--unroll unrolls a loop whose trip count is known");
}

static sf_status mark_by_layer(choosing *c)
{
    find_layers(c);
    if (c->layers.count < 2) {
        int64_t bytes;
        const sf_node *loop = find_keeping_loop(c, &bytes);
        sf_fail(c->diag, SF_EMISMATCH, loop ? loop->loc : SF_NOWHERE,
                "recompute: no layers are seen in this step: neither scopes that are counted nor "
                "places where its forward pass is narrow%s",
                loop ? "; this loop, which stays, is not looked into" : "");
        return loop ? hint_at_unrolling(loop, c->diag) : SF_EMISMATCH;
    }
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
    return sf_is(node, SF_OP_DOT_GENERAL) ? count_terms(c, node) <= FEW_TERMS
                                          : sf_op_is_light(node);
}

static sf_status mark_cheap(choosing *c)
{
    const sf_block *top = c->graph->top;
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(c->graph, i);
        c->plan->recomputed[node->id] = can_be_recomputed(c, node) && is_cheap(c, node);
    }
    return SF_OK;
}

/* Inside layers as by layer, elsewhere as by cheap. */
static sf_status mark_fully(choosing *c)
{
    const sf_block *top = c->graph->top;
    find_layers(c);
    if (c->layers.count < 2)
        return mark_cheap(c);
    mark_layers(c);
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(c->graph, i);
        if (c->layers.of[node->id] == SF_NO_LAYER)
            c->plan->recomputed[node->id] = can_be_recomputed(c, node) && is_cheap(c, node);
    }
    if (c->in_parts)
        mark_parts(c);
    return SF_OK;
}

static sf_status mark_scope(choosing *c, const char *pattern)
{
    const sf_block *top = c->graph->top;
    bool found = false;
    c->layers.count++;
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(c->graph, i);
        if (node->phase != SF_FORWARD || !sf_name_is_in(pattern, node->scope->path))
            continue;
        c->layers.of[node->id] = c->layers.count;
        found = true;
    }
    if (found)
        return SF_OK;
    return sf_fail(
        c->diag, SF_EUSAGE, SF_NOWHERE,
        "--recompute \"%s\": it is one of none, text, layer, parts, cheap and full, or a "
        "scope of the step's forward pass, and the step has no such scope",
        pattern);
}

static sf_status mark_numbered(choosing *c, const sf_recompute_scope *scope)
{
    c->layers.count++;
    for (size_t n = 0; n < scope->nops; n++) {
        uint32_t id = scope->ops[n];
        if (id >= c->graph->nnodes || c->graph->nodes[id]->phase != SF_FORWARD)
            return sf_fail(c->diag, SF_EUSAGE, SF_NOWHERE,
                           "recompute: %" PRIu32 " does not number an op of the forward pass", id);
        c->layers.of[id] = c->layers.count;
    }
    return SF_OK;
}

static sf_status mark_by_scopes(choosing *c, const sf_recompute_spec *how)
{
    for (size_t s = 0; s < how->nscopes; s++)
        SF_TRY(how->scopes[s].pattern ? mark_scope(c, how->scopes[s].pattern)
                                      : mark_numbered(c, &how->scopes[s]));
    mark_layers(c);
    return SF_OK;
}

static void open_choosing(choosing *c)
{
    c->uses = sf_uses_of(c->graph, &c->arena);
    c->layers.of = SF_ARRAY(&c->arena, c->graph->nnodes, uint32_t);
    c->is_fixed = sf_find_fixed(c->graph, &c->arena);
    c->light = sf_find_light(c->graph, &c->uses, c->is_fixed, &c->arena);
}

static sf_status mark(choosing *c, const sf_recompute_spec *how)
{
    switch (how->kind) {
    case SF_RECOMPUTE_LAYER:
        return mark_by_layer(c);
    case SF_RECOMPUTE_FULL:
    case SF_RECOMPUTE_PARTS:
        return mark_fully(c);
    case SF_RECOMPUTE_CHEAP:
        return mark_cheap(c);
    case SF_RECOMPUTE_SCOPES:
        return mark_by_scopes(c, how);
    case SF_RECOMPUTE_UNSAID:
    case SF_RECOMPUTE_AUTO:
    case SF_RECOMPUTE_NONE:
    case SF_RECOMPUTE_TEXT:
        break;
    }
    return mark_as_text(c);
}

static const sf_recompute_spec as_text = {.kind = SF_RECOMPUTE_TEXT, .layers = 1};

sf_status sf_plan_spare(const sf_graph *graph, sf_plan *plan, const sf_recompute_spec *how,
                        sf_diag *diag)
{
    how = how->kind == SF_RECOMPUTE_UNSAID ? &as_text : how;
    choosing c = {.graph = graph,
                  .plan = plan,
                  .diag = diag,
                  .group = how->layers,
                  .in_parts = how->kind == SF_RECOMPUTE_PARTS};
    plan->recomputed = plan->recomputed_per_part = NULL;
    plan->recompute = "";
    if (how->kind == SF_RECOMPUTE_NONE ||
        (how->kind == SF_RECOMPUTE_TEXT && !sf_text_has_recompute(graph)))
        return SF_OK;
    plan->recomputed = SF_ARRAY(&plan->arena, graph->nnodes, bool);
    plan->recompute = sf_recompute_text(how, &plan->arena);
    open_choosing(&c);
    sf_status status = mark(&c, how);
    sf_arena_free(&c.arena);
    return status;
}

sf_status sf_plan_recompute(const sf_graph *graph, sf_plan *plan, const sf_recompute_spec *how,
                            sf_diag *diag)
{
    choosing c = {.graph = graph, .plan = plan};
    SF_TRY(sf_plan_spare(graph, plan, how, diag));
    if (!plan->recomputed)
        return SF_OK;
    c.uses = sf_uses_of(graph, &c.arena);
    drop_unwanted(&c);
    plan->recomputed_per_part =
        plan->recomputed_per_part && memchr(plan->recomputed_per_part, 1, graph->nnodes)
            ? plan->recomputed_per_part
            : NULL;
    sf_arena_free(&c.arena);
    return SF_OK;
}

const bool *sf_recomputed_by(const sf_graph *graph, const sf_recompute_spec *how, sf_arena *arena)
{
    sf_plan *plan = sf_plan_of(graph, &(sf_mesh){0}, 0);
    bool *out = NULL;
    if (sf_plan_recompute(graph, plan, how, NULL) == SF_OK && plan->recomputed)
        out = sf_arena_copy(arena, plan->recomputed, graph->nnodes * sizeof *out);
    sf_plan_free(plan);
    return out;
}

bool sf_text_has_recompute(const sf_graph *graph)
{
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        if (node->recomputed && sf_can_recompute(graph, node))
            return true;
    }
    return false;
}

sf_recomputed_step sf_recompute_as_text(const sf_graph *graph)
{
    sf_pool *pool = sf_pool_derive(graph->pool);
    sf_plan *plan = sf_plan_of(graph, &(sf_mesh){0}, 0);
    sf_plan_recompute(graph, plan, &as_text, NULL);
    sf_recomputed_step recomputed_step = sf_recompute_step(graph, plan, pool);
    sf_plan_free(plan);
    sf_pool_release(pool);
    return recomputed_step;
}

void sf_warn_kept_by_loops(const sf_graph *graph, const sf_plan *plan, sf_diag *diag)
{
    choosing c = {.graph = graph};
    int64_t bytes;
    if (!plan->recomputed || strcmp(plan->recompute, "text") == 0)
        return;
    c.uses = sf_uses_of(graph, &c.arena);
    const sf_node *loop = find_keeping_loop(&c, &bytes);
    if (loop) {
        sf_warn(diag, loop->loc,
                "recompute: this loop stays, and the %s of the whole step that it keeps for the "
                "backward pass are not recomputed",
                sf_text_bytes((double)bytes).at);
        hint_at_unrolling(loop, diag);
    }
    sf_arena_free(&c.arena);
}

uint32_t sf_count_layers(const sf_graph *graph)
{
    choosing c = {.graph = graph, .group = 1};
    open_choosing(&c);
    find_layers(&c);
    sf_arena_free(&c.arena);
    return c.layers.count;
}

uint32_t sf_count_recomputed(const sf_graph *graph, const sf_plan *plan)
{
    uint32_t count = 0;
    for (uint32_t n = 0; plan->recomputed && n < graph->nnodes; n++)
        count += plan->recomputed[n];
    return count;
}
