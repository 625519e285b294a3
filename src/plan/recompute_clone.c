#include "plan/recompute_clone.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "ir/clone.h"
#include "ir/name.h"
#include "ir/opdef.h"
#include "op/op.h"

bool sf_can_recompute(const sf_graph *graph, const sf_node *node)
{
    return node->phase == SF_FORWARD && node->noperands > 0 &&
           !sf_is(node, SF_OP_OPTIMIZATION_BARRIER) && !sf_node_has_effect(graph, node);
}

/* A kept value, passed to clones in one layout. */
typedef struct handed {
    sf_layout layout;
    sf_value value;
    struct handed *next;
} handed;

typedef struct cloning {
    const sf_graph *from;
    const sf_plan *plan;
    const bool *recomputed; /* by node of the step: it has a clone, */
    const bool
        *recomputed_per_part; /* and where that is wanted on the way to others, one more; or NULL */
    sf_graph *to;
    sf_plan *out;        /* once all nodes are there */
    sf_arena arena;      /* of the following */
    sf_value *map;       /* by value of the step: itself */
    sf_value *clones;    /* by value of the step: its clone, or SF_NONE; */
    sf_value *passing;   /* and that on the way to others, of nodes that are `twice` */
    handed **kept;       /* by value of the step; */
    handed **inner;      /* and for clones of nodes that are recomputed per part */
    uint32_t *place;     /* by node of the step: its place in the top block */
    uint32_t *node_of;   /* as in sf_recomputed_step */
    sf_layout **layouts; /* by node of `to` */
    size_t count, node_capacity, layout_capacity;
    uint32_t
        *wanted; /* clones to make: twice the place of the node, plus one for intermediate clones */
    size_t nwanted, wanted_capacity;
    sf_phase phase; /* of who wants them */
} cloning;

static void note_node(cloning *t, const sf_node *added, uint32_t origin, sf_layout *layouts)
{
    size_t count = t->count;
    SF_ASSERT(added->id >= count);
    while (t->count <= added->id) { /* those in regions come first */
        count = t->count;
        SF_PUSH(&t->arena, t->node_of, count, t->node_capacity, SF_NONE);
        SF_PUSH(&t->arena, t->layouts, t->count, t->layout_capacity, NULL);
    }
    t->node_of[added->id] = origin;
    t->layouts[added->id] = layouts;
}

static bool is_recomputed(const cloning *t, sf_value value)
{
    const sf_node *maker = sf_maker(t->from, value);
    return maker && t->recomputed[maker->id];
}

static bool is_twice(const cloning *t, const sf_node *node)
{
    return t->recomputed_per_part && t->recomputed_per_part[node->id] && t->recomputed[node->id];
}

/* Clones */

/* The value that clones read, after a barrier: a kept value, or a clone. */
static sf_value hand_over(cloning *t, handed **list, sf_value value, sf_value there,
                          const sf_layout *layout)
{
    for (const handed *h = list[value]; h; h = h->next)
        if (sf_layout_equal(&h->layout, layout))
            return h->value;
    const sf_node *maker = sf_maker(t->from, value);
    if (maker && maker->noperands == 0)
        return there; /* a constant */
    const sf_type *type = sf_type_of(t->from, value);
    sf_node_spec spec = {.def = sf_opdef_get(SF_OP_OPTIMIZATION_BARRIER),
                         .noperands = 1,
                         .operands = &there,
                         .nresults = 1,
                         .types = &type,
                         .scope = maker ? maker->scope : NULL,
                         .phase = t->phase,
                         .loc = maker ? maker->loc : SF_NOWHERE};
    const sf_node *barrier = sf_graph_add(t->to, t->to->top, &spec);
    sf_layout *layouts = SF_ARRAY(&t->arena, 2, sf_layout);
    layouts[0] = layouts[1] = *layout;
    note_node(t, barrier, SF_NONE, layouts);
    handed *h = SF_NEW(&t->arena, handed);
    *h = (handed){*layout, barrier->result, list[value]};
    list[value] = h;
    return h->value;
}

static const sf_node *add_like(cloning *t, const sf_node *node, const sf_value *operands,
                               sf_block *const *regions, sf_phase phase)
{
    const sf_type **types = SF_ARRAY(&t->arena, node->nresults, const sf_type *);
    for (uint32_t r = 0; r < node->nresults; r++)
        types[r] = sf_type_of(t->from, node->result + r);
    sf_node_spec spec = sf_spec_like(node);
    spec.operands = operands;
    spec.types = types;
    spec.attrs = node->attrs;
    spec.regions = regions;
    spec.phase = phase;
    const sf_node *added = sf_graph_add(t->to, t->to->top, &spec);
    note_node(t, added, node->id, t->plan->nodes[node->id]);
    return added;
}

static sf_block **clone_regions(cloning *t, const sf_node *node)
{
    sf_block **regions = SF_ARRAY(&t->arena, node->nregions, sf_block *);
    for (uint32_t r = 0; r < node->nregions; r++)
        regions[r] = sf_block_clone(t->from, node->regions[r], t->to, t->map);
    return regions;
}

/* Clones of this value for later phases, or for other parts: where they are noted. NULL: it is
 * kept. */
static sf_value *clone_of(const cloning *t, sf_value value, bool passes)
{
    const sf_node *maker = sf_maker(t->from, value);
    if (!maker || !t->recomputed[maker->id])
        return NULL;
    return passes && is_twice(t, maker) ? &t->passing[value] : &t->clones[value];
}

/* Whether the clone reads intermediate clones of nodes that are recomputed per part: only clones of
 * their own part are made from kept values. */
static bool reads_passing(const cloning *t, const sf_node *node, bool passes)
{
    return passes || !is_twice(t, node);
}

static void add_clone(cloning *t, const sf_node *node, bool passes)
{
    sf_value *operands = SF_ARRAY(&t->arena, node->noperands, sf_value);
    bool by_passing = reads_passing(t, node, passes);
    for (uint32_t o = 0; o < node->noperands; o++) {
        sf_value value = node->operands[o];
        const sf_node *maker = sf_maker(t->from, value);
        const sf_value *clone = clone_of(t, value, by_passing);
        bool is_own = clone && (by_passing || is_twice(t, maker));
        operands[o] = is_own
                          ? *clone
                          : hand_over(t, by_passing ? t->kept : t->inner, value,
                                      clone ? *clone : t->map[value], &t->plan->nodes[node->id][o]);
    }
    const sf_node *added = add_like(t, node, operands, clone_regions(t, node), t->phase);
    for (uint32_t r = 0; r < node->nresults; r++)
        *clone_of(t, node->result + r, passes) = added->result + r;
}

static void want_clone(cloning *t, sf_value value, bool passes)
{
    enum { WANTED = SF_NONE - 1 };
    const sf_value *clone = clone_of(t, value, passes);
    if (!clone || *clone != SF_NONE)
        return;
    const sf_node *maker = sf_maker(t->from, value);
    for (uint32_t r = 0; r < maker->nresults; r++)
        *clone_of(t, maker->result + r, passes) = WANTED;
    SF_PUSH(&t->arena, t->wanted, t->nwanted, t->wanted_capacity,
            2 * t->place[maker->id] + (passes && is_twice(t, maker)));
}

static int earlier_place(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* All that the node reads of the forward pass is there a second time. */
static void make_clones(cloning *t, const sf_node *node)
{
    t->nwanted = 0;
    t->phase = node->phase;
    for (uint32_t o = 0; o < node->noperands; o++)
        want_clone(t, node->operands[o], false);
    for (size_t i = 0; i < t->nwanted; i++) {
        const sf_node *wanted = sf_top_node(t->from, t->wanted[i] / 2);
        bool by_passing = reads_passing(t, wanted, t->wanted[i] % 2);
        for (uint32_t o = 0; o < wanted->noperands; o++)
            want_clone(t, wanted->operands[o], by_passing);
    }
    if (t->nwanted > 0)
        qsort(t->wanted, t->nwanted, sizeof *t->wanted, earlier_place);
    for (size_t i = 0; i < t->nwanted; i++)
        add_clone(t, sf_top_node(t->from, t->wanted[i] / 2), t->wanted[i] % 2);
}

/* The step */

static void copy_node(cloning *t, const sf_node *node)
{
    bool is_late = node->phase != SF_FORWARD;
    sf_value *operands = SF_ARRAY(&t->arena, node->noperands, sf_value);
    if (is_late)
        make_clones(t, node);
    for (uint32_t o = 0; o < node->noperands; o++) {
        sf_value value = node->operands[o];
        operands[o] = is_late && is_recomputed(t, value) ? t->clones[value] : t->map[value];
    }
    const sf_node *added = add_like(t, node, operands, clone_regions(t, node), node->phase);
    for (uint32_t r = 0; r < node->nresults; r++)
        t->map[node->result + r] = added->result + r;
}

static void copy_ends(cloning *t)
{
    const sf_block *top = t->from->top;
    sf_value *results = SF_ARRAY(&t->arena, top->nresults, sf_value);
    for (uint32_t i = 0; i < top->nresults; i++)
        results[i] = t->map[top->results[i]];
    sf_block_return(t->to, t->to->top, top->nresults, results);
    sf_graph_clone_head(t->from, t->to);
    for (uint32_t i = 0; t->to->arguments && i < top->narguments; i++)
        if (t->to->arguments[i].gradient != SF_NONE)
            t->to->arguments[i].gradient = t->map[t->to->arguments[i].gradient];
}

static sf_plan *carry_plan(const cloning *t)
{
    const sf_plan *plan = t->plan;
    const sf_block *top = t->from->top, *new_top = t->to->top;
    sf_plan *out = sf_plan_of(t->to, &plan->mesh, plan->graph);
    if (top->narguments)
        memcpy(out->arguments, plan->arguments, top->narguments * sizeof *out->arguments);
    if (top->nresults)
        memcpy(out->results, plan->results, top->nresults * sizeof *out->results);
    for (uint32_t i = 0; i < new_top->nnodes; i++) {
        const sf_node *node = sf_top_node(t->to, i);
        uint32_t count = node->noperands + node->nresults;
        if (count > 0)
            memcpy(out->nodes[node->id], t->layouts[node->id], count * sizeof(sf_layout));
    }
    for (sf_value v = 0; v < t->from->nvalues; v++)
        if (t->map[v] != SF_NONE)
            out->pinned[t->map[v]] = plan->pinned[v];
    sf_plan_copy_microbatches(plan, out);
    return out;
}

/* A value that another stage of a pipeline reads is kept where it was received: its reader does not
 * have it sent once more. */
static const bool *find_again(const sf_graph *graph, const sf_plan *plan, sf_arena *arena)
{
    bool *recomputed = sf_arena_copy(arena, plan->recomputed, graph->nnodes * sizeof *recomputed);
    const sf_stages *stages = plan->pipeline ? &plan->pipeline->stages : NULL;
    for (uint32_t i = 0; stages && i < graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        for (uint32_t o = 0; o < node->noperands && !stages->anywhere[node->id]; o++) {
            const sf_node *maker = sf_maker(graph, node->operands[o]);
            if (maker && stages->of_node[maker->id] != stages->of_node[node->id])
                recomputed[maker->id] = recomputed[maker->id] && stages->anywhere[maker->id];
        }
    }
    return recomputed;
}

sf_recomputed_step sf_recompute_step(const sf_graph *graph, const sf_plan *plan, sf_pool *pool)
{
    const sf_block *top = graph->top;
    cloning t = {.from = graph,
                 .plan = plan,
                 .recomputed_per_part = plan->recomputed_per_part,
                 .to = sf_graph_new(pool)};
    t.recomputed = find_again(graph, plan, &t.arena);
    t.map = SF_ARRAY(&t.arena, graph->nvalues, sf_value);
    t.clones = SF_ARRAY(&t.arena, graph->nvalues, sf_value);
    t.passing = SF_ARRAY(&t.arena, graph->nvalues, sf_value);
    t.kept = SF_ARRAY(&t.arena, graph->nvalues, handed *);
    t.inner = SF_ARRAY(&t.arena, graph->nvalues, handed *);
    t.place = SF_ARRAY(&t.arena, graph->nnodes, uint32_t);
    for (sf_value v = 0; v < graph->nvalues; v++)
        t.map[v] = t.clones[v] = t.passing[v] = SF_NONE;
    for (uint32_t i = 0; i < top->narguments; i++)
        t.map[top->arguments[i]] =
            sf_block_argument(t.to, t.to->top, sf_type_of(graph, top->arguments[i]));
    for (uint32_t i = 0; i < top->nnodes; i++) {
        t.place[top->nodes[i]] = i;
        copy_node(&t, graph->nodes[top->nodes[i]]);
    }
    copy_ends(&t);
    sf_recomputed_step out = {.graph = t.to, .plan = carry_plan(&t)};
    out.node_of = sf_arena_copy(&out.plan->arena, t.node_of, t.count * sizeof *t.node_of);
    sf_arena_free(&t.arena);
    return out;
}

void sf_recomputed_step_free(sf_recomputed_step *recomputed_step)
{
    sf_plan_free(recomputed_step->plan);
    sf_graph_free(recomputed_step->graph);
    *recomputed_step = (sf_recomputed_step){0};
}

/* Checking */

sf_value sf_recomputed_of(const sf_graph *graph, const sf_recomputed_step *t, sf_value value)
{
    const sf_node *maker = sf_maker(t->graph, value);
    while (maker && t->node_of[maker->id] == SF_NONE && maker->noperands == 1) {
        value = maker->operands[0];
        maker = sf_maker(t->graph, value);
    }
    if (!maker)
        return graph->top->arguments[t->graph->values[value].index];
    uint32_t origin = t->node_of[maker->id];
    return origin == SF_NONE ? SF_NONE : graph->nodes[origin]->result + (value - maker->result);
}

typedef struct checking {
    const sf_graph *graph;
    const sf_recomputed_step *t;
    sf_value *inner; /* by value of the twinned graph, inside of regions: that of the step */
} checking;

static sf_value what_is(const checking *c, sf_value value)
{
    return c->inner[value] != SF_NONE ? c->inner[value] : sf_recomputed_of(c->graph, c->t, value);
}

static bool are_same_values(const checking *c, uint32_t count, const sf_value *ours,
                            const sf_value *theirs)
{
    for (uint32_t i = 0; i < count; i++)
        if (what_is(c, ours[i]) != theirs[i])
            return false;
    return true;
}

static bool is_same_type(const checking *c, sf_value ours, sf_value theirs)
{
    return sf_type_of(c->t->graph, ours) == sf_type_of(c->graph, theirs);
}

static bool is_same_region(checking *c, const sf_block *ours, const sf_block *theirs);

static bool is_same_op(checking *c, const sf_node *ours, const sf_node *theirs)
{
    if (ours->def != theirs->def || ours->noperands != theirs->noperands ||
        ours->nresults != theirs->nresults || ours->nregions != theirs->nregions ||
        !are_same_values(c, ours->noperands, ours->operands, theirs->operands))
        return false;
    for (int i = 0; i < ours->def->nattrs; i++)
        if (ours->attrs[i] != theirs->attrs[i])
            return false;
    for (uint32_t r = 0; r < ours->nresults; r++)
        if (!is_same_type(c, ours->result + r, theirs->result + r))
            return false;
    for (uint32_t r = 0; r < ours->nregions; r++)
        if (!is_same_region(c, ours->regions[r], theirs->regions[r]))
            return false;
    return true;
}

/* Node by node, in the order of both. */
static bool is_same_region(checking *c, const sf_block *ours, const sf_block *theirs)
{
    if (ours->narguments != theirs->narguments || ours->nnodes != theirs->nnodes ||
        ours->nresults != theirs->nresults)
        return false;
    for (uint32_t i = 0; i < ours->narguments; i++) {
        if (!is_same_type(c, ours->arguments[i], theirs->arguments[i]))
            return false;
        c->inner[ours->arguments[i]] = theirs->arguments[i];
    }
    for (uint32_t i = 0; i < ours->nnodes; i++) {
        const sf_node *a = c->t->graph->nodes[ours->nodes[i]];
        const sf_node *b = c->graph->nodes[theirs->nodes[i]];
        if (!is_same_op(c, a, b))
            return false;
        for (uint32_t r = 0; r < a->nresults; r++)
            c->inner[a->result + r] = b->result + r;
    }
    return are_same_values(c, ours->nresults, ours->results, theirs->results);
}

static bool is_of_step(checking *c, const sf_node *node)
{
    uint32_t origin = c->t->node_of[node->id];
    return origin == SF_NONE ? sf_is(node, SF_OP_OPTIMIZATION_BARRIER)
                             : is_same_op(c, node, c->graph->nodes[origin]);
}

static sf_status check_nodes(checking *c, sf_diag *diag)
{
    const sf_block *top = c->t->graph->top;
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(c->t->graph, i);
        if (!is_of_step(c, node))
            return sf_fail(diag, SF_EMISMATCH, node->loc,
                           "recompute: %s in %s is not what the step has", node->def->name,
                           node->scope->path);
    }
    if (top->nresults != c->graph->top->nresults)
        return sf_fail(diag, SF_EMISMATCH, SF_NOWHERE, "recompute: %u results, and the step has %u",
                       top->nresults, c->graph->top->nresults);
    for (uint32_t i = 0; i < top->nresults; i++)
        if (what_is(c, top->results[i]) != c->graph->top->results[i])
            return sf_fail(diag, SF_EMISMATCH, SF_NOWHERE,
                           "recompute: result %u is not that of the step", i);
    return SF_OK;
}

sf_status sf_check_recomputed(const sf_graph *graph, const sf_recomputed_step *t, sf_diag *diag)
{
    checking c = {.graph = graph, .t = t};
    c.inner = sf_alloc(t->graph->nvalues * sizeof *c.inner);
    for (sf_value v = 0; v < t->graph->nvalues; v++)
        c.inner[v] = SF_NONE;
    sf_status status = check_nodes(&c, diag);
    sf_free(c.inner);
    return status;
}
