#include "plan/again.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "ir/clone.h"
#include "ir/name.h"
#include "ir/opdef.h"
#include "op/op.h"

bool sf_can_run_again(const sf_graph *graph, const sf_node *node)
{
    return node->phase == SF_FORWARD && node->noperands > 0 && node->nregions == 0 &&
           !sf_is(node, SF_OP_OPTIMIZATION_BARRIER) && !sf_node_has_effect(graph, node);
}

/* A kept value, handed to twins in one layout. */
typedef struct handed {
    sf_layout layout;
    sf_value value;
    struct handed *next;
} handed;

typedef struct twinning {
    const sf_graph *from;
    const sf_plan *plan;
    sf_graph *to;
    sf_plan *out;        /* once all nodes are there */
    sf_arena arena;      /* of what follows */
    sf_value *map;       /* by value of the step: itself */
    sf_value *twins;     /* by value of the step: its twin, or SF_NONE */
    handed **kept;       /* by value of the step */
    uint32_t *place;     /* by node of the step: where it stands in the top block */
    uint32_t *node_of;   /* as in sf_twinned */
    sf_layout **layouts; /* by node of `to` */
    size_t count, node_capacity, layout_capacity;
    uint32_t *wanted; /* nodes of the step whose twins are to be made */
    size_t nwanted, wanted_capacity;
    sf_phase phase; /* of who wants them */
} twinning;

static void note_node(twinning *t, const sf_node *added, uint32_t origin, sf_layout *layouts)
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

static bool is_again(const twinning *t, sf_value value)
{
    const sf_node *maker = sf_maker(t->from, value);
    return maker && t->plan->again[maker->id];
}

/* Twins */

static sf_value hand_kept(twinning *t, sf_value value, const sf_layout *layout)
{
    for (const handed *h = t->kept[value]; h; h = h->next)
        if (sf_layout_equal(&h->layout, layout))
            return h->value;
    const sf_node *maker = sf_maker(t->from, value);
    if (maker && maker->noperands == 0)
        return t->map[value]; /* a constant */
    const sf_type *type = sf_type_of(t->from, value);
    sf_node_spec spec = {.def = sf_opdef_get(SF_OP_OPTIMIZATION_BARRIER),
                         .noperands = 1,
                         .operands = &t->map[value],
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
    *h = (handed){*layout, barrier->result, t->kept[value]};
    t->kept[value] = h;
    return h->value;
}

static const sf_node *add_like(twinning *t, const sf_node *node, const sf_value *operands,
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

static void add_twin(twinning *t, const sf_node *node)
{
    sf_value *operands = SF_ARRAY(&t->arena, node->noperands, sf_value);
    for (uint32_t o = 0; o < node->noperands; o++) {
        sf_value value = node->operands[o];
        operands[o] = is_again(t, value) ? t->twins[value]
                                         : hand_kept(t, value, &t->plan->nodes[node->id][o]);
    }
    const sf_node *added = add_like(t, node, operands, NULL, t->phase);
    for (uint32_t r = 0; r < node->nresults; r++)
        t->twins[node->result + r] = added->result + r;
}

static void want_twin(twinning *t, sf_value value)
{
    enum { WANTED = SF_NONE - 1 };
    if (!is_again(t, value) || t->twins[value] != SF_NONE)
        return;
    const sf_node *maker = sf_maker(t->from, value);
    for (uint32_t r = 0; r < maker->nresults; r++)
        t->twins[maker->result + r] = WANTED;
    SF_PUSH(&t->arena, t->wanted, t->nwanted, t->wanted_capacity, t->place[maker->id]);
}

static int earlier_place(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* All that the node reads of the forward pass is there a second time. */
static void make_twins(twinning *t, const sf_node *node)
{
    t->nwanted = 0;
    t->phase = node->phase;
    for (uint32_t o = 0; o < node->noperands; o++)
        want_twin(t, node->operands[o]);
    for (size_t i = 0; i < t->nwanted; i++) {
        const sf_node *wanted = sf_top_node(t->from, t->wanted[i]);
        for (uint32_t o = 0; o < wanted->noperands; o++)
            want_twin(t, wanted->operands[o]);
    }
    if (t->nwanted > 0)
        qsort(t->wanted, t->nwanted, sizeof *t->wanted, earlier_place);
    for (size_t i = 0; i < t->nwanted; i++)
        add_twin(t, sf_top_node(t->from, t->wanted[i]));
}

/* The step */

static void copy_node(twinning *t, const sf_node *node)
{
    bool is_late = node->phase != SF_FORWARD;
    sf_value *operands = SF_ARRAY(&t->arena, node->noperands, sf_value);
    sf_block **regions = SF_ARRAY(&t->arena, node->nregions, sf_block *);
    if (is_late)
        make_twins(t, node);
    for (uint32_t o = 0; o < node->noperands; o++) {
        sf_value value = node->operands[o];
        operands[o] = is_late && is_again(t, value) ? t->twins[value] : t->map[value];
    }
    for (uint32_t r = 0; r < node->nregions; r++)
        regions[r] = sf_block_clone(t->from, node->regions[r], t->to, t->map);
    const sf_node *added = add_like(t, node, operands, regions, node->phase);
    for (uint32_t r = 0; r < node->nresults; r++)
        t->map[node->result + r] = added->result + r;
}

static void copy_ends(twinning *t)
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

static sf_plan *carry_plan(const twinning *t)
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
    sf_plan_copy_turns(plan, out);
    return out;
}

sf_twinned sf_twin_step(const sf_graph *graph, const sf_plan *plan, sf_pool *pool)
{
    const sf_block *top = graph->top;
    twinning t = {.from = graph, .plan = plan, .to = sf_graph_new(pool)};
    t.map = SF_ARRAY(&t.arena, graph->nvalues, sf_value);
    t.twins = SF_ARRAY(&t.arena, graph->nvalues, sf_value);
    t.kept = SF_ARRAY(&t.arena, graph->nvalues, handed *);
    t.place = SF_ARRAY(&t.arena, graph->nnodes, uint32_t);
    for (sf_value v = 0; v < graph->nvalues; v++)
        t.map[v] = t.twins[v] = SF_NONE;
    for (uint32_t i = 0; i < top->narguments; i++)
        t.map[top->arguments[i]] =
            sf_block_argument(t.to, t.to->top, sf_type_of(graph, top->arguments[i]));
    for (uint32_t i = 0; i < top->nnodes; i++) {
        t.place[top->nodes[i]] = i;
        copy_node(&t, graph->nodes[top->nodes[i]]);
    }
    copy_ends(&t);
    sf_twinned out = {.graph = t.to, .plan = carry_plan(&t)};
    out.node_of = sf_arena_copy(&out.plan->arena, t.node_of, t.count * sizeof *t.node_of);
    sf_arena_free(&t.arena);
    return out;
}

void sf_twinned_free(sf_twinned *twinned)
{
    sf_plan_free(twinned->plan);
    sf_graph_free(twinned->graph);
    *twinned = (sf_twinned){0};
}

/* Checking */

sf_value sf_twin_of_what(const sf_graph *graph, const sf_twinned *t, sf_value value)
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

static bool is_like_origin(const sf_graph *graph, const sf_twinned *t, const sf_node *node)
{
    const sf_node *origin = graph->nodes[t->node_of[node->id]];
    if (node->def != origin->def || node->noperands != origin->noperands ||
        node->nresults != origin->nresults || node->nregions != origin->nregions)
        return false;
    for (uint32_t o = 0; o < node->noperands; o++)
        if (sf_twin_of_what(graph, t, node->operands[o]) != origin->operands[o])
            return false;
    return node->def->nattrs == 0 ||
           memcmp(node->attrs, origin->attrs, (size_t)node->def->nattrs * sizeof *node->attrs) == 0;
}

sf_status sf_check_twins(const sf_graph *graph, const sf_twinned *t, sf_diag *diag)
{
    const sf_block *top = t->graph->top;
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(t->graph, i);
        if (t->node_of[node->id] == SF_NONE ? sf_is(node, SF_OP_OPTIMIZATION_BARRIER)
                                            : is_like_origin(graph, t, node))
            continue;
        return sf_fail(diag, SF_EWRONG, node->loc, "recompute: %s in %s is not what the step has",
                       node->def->name, node->scope->path);
    }
    for (uint32_t i = 0; i < top->nresults; i++)
        if (sf_twin_of_what(graph, t, top->results[i]) != graph->top->results[i])
            return sf_fail(diag, SF_EWRONG, SF_NOWHERE,
                           "recompute: result %u is not that of the step", i);
    return SF_OK;
}
