#include "front/phase.h"

#include <stdlib.h>

#include "ir/opdef.h"
#include "ir/uses.h"
#include "op/op.h"
#include "op/util.h"

/* A walk for the gradient of one parameter ends after so many nodes: then there is none to be found. */
enum { MOST_VISITED = 4096 };

typedef struct flow {
    sf_graph *graph;
    sf_arena *arena;
    sf_uses uses;
    bool *forward;   /* by value: the loss needs it */
    bool *backward;  /* by value: gradients need it */
    bool *stateful;  /* by value: made from optimizer state, outside of the forward pass */
    uint32_t *level; /* by node: the length of the longest path to it */
    uint32_t *seen;  /* by value: the last walk that came by, plus one */
    sf_value *stack;
    size_t depth, capacity;
    sf_value *found; /* the values at which the walk ended */
    size_t nfound, found_capacity;
    sf_value *roots; /* of the backward pass */
    size_t nroots, root_capacity;
} flow;

/* Dependencies of nodes */

typedef void visit_need(flow *f, bool *marks, sf_value value);

static void visit_needs(flow *f, const sf_node *node, bool *marks, visit_need *visit)
{
    for (uint32_t i = 0; i < node->noperands; i++)
        visit(f, marks, node->operands[i]);
    for (uint32_t r = 0; r < node->nregions; r++) {
        const sf_block *block = node->regions[r];
        for (uint32_t i = 0; i < block->nnodes; i++)
            visit_needs(f, f->graph->nodes[block->nodes[i]], marks, visit);
        for (uint32_t i = 0; i < block->nresults; i++)
            visit(f, marks, block->results[i]);
    }
}

static void mark_need(flow *f, bool *marks, sf_value value)
{
    (void)f;
    marks[value] = true;
}

static bool makes_marked(const sf_node *node, const bool *marks)
{
    for (uint32_t r = 0; r < node->nresults; r++)
        if (marks[node->result + r])
            return true;
    return false;
}

/* From marked values back to all that they need. */
static void mark_needs(flow *f, bool *marks)
{
    const sf_block *top = f->graph->top;
    for (uint32_t i = top->nnodes; i-- > 0;) {
        const sf_node *node = f->graph->nodes[top->nodes[i]];
        if (!makes_marked(node, marks))
            continue;
        visit_needs(f, node, marks, mark_need);
        for (uint32_t r = 0; r < node->nresults; r++)
            marks[node->result + r] = true;
    }
}

static void find_forward(flow *f)
{
    const sf_block *top = f->graph->top;
    for (uint32_t i = 0; i < top->nresults; i++)
        if (f->graph->results[i].is_loss)
            f->forward[top->results[i]] = true;
    mark_needs(f, f->forward);
}

static bool is_branch(const sf_node *node)
{
    return node->def->control == SF_CONTROL_BRANCH;
}

static void note_stateful(flow *f, bool *any, sf_value value)
{
    *any = *any || f->stateful[value];
}

/* After all nodes of a block, with those inside of branches. */
static void pass_stateful(flow *f, const sf_block *block)
{
    for (uint32_t i = 0; i < block->nnodes; i++) {
        const sf_node *node = f->graph->nodes[block->nodes[i]];
        bool any = false;
        for (uint32_t r = 0; r < node->nregions && is_branch(node); r++)
            pass_stateful(f, node->regions[r]);
        visit_needs(f, node, &any, note_stateful);
        for (uint32_t r = 0; r < node->nresults; r++)
            f->stateful[node->result + r] = any && !f->forward[node->result + r];
    }
}

/* Numbers, such as a count of steps or the scale of a loss, are no state of a parameter; nor are
 * operands of the loss, such as weights that are not trained: gradients are made from them. */
static void find_stateful(flow *f)
{
    const sf_block *top = f->graph->top;
    for (uint32_t i = 0; i < top->narguments; i++) {
        sf_value value = top->arguments[i];
        f->stateful[value] = f->graph->arguments[i].role == SF_ROLE_STATE && !f->forward[value] &&
                             sf_type_of(f->graph, value)->count > 1;
    }
    pass_stateful(f, top);
}

static void note_level(flow *f, bool *marks, sf_value value)
{
    (void)marks;
    uint32_t maker = f->graph->values[value].node;
    if (maker != SF_NONE && f->level[maker] > f->level[f->graph->nnodes])
        f->level[f->graph->nnodes] = f->level[maker];
}

/* Of the top block: nodes of regions stay at 0. The last place of `level` is scratch. */
static void find_levels(flow *f)
{
    const sf_block *top = f->graph->top;
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = f->graph->nodes[top->nodes[i]];
        f->level[f->graph->nnodes] = 0;
        visit_needs(f, node, NULL, note_level);
        f->level[node->id] = f->level[f->graph->nnodes] + 1;
    }
}

/* Gradients */

static bool is_elementwise(const sf_node *node)
{
    return node->def->factors == sf_factors_pointwise && node->nresults == 1;
}

static bool is_listed(const sf_value *list, size_t count, sf_value value)
{
    for (size_t i = 0; i < count; i++)
        if (list[i] == value)
            return true;
    return false;
}

static void visit_value(flow *f, sf_value value, const sf_type *type, uint32_t stamp)
{
    const sf_node *node = sf_maker(f->graph, value);
    if (!node || f->seen[value] == stamp || f->forward[value])
        return;
    f->seen[value] = stamp;
    bool fits = sf_same_shape(sf_type_of(f->graph, value), type);
    if (f->stateful[value] || (fits && is_elementwise(node)))
        SF_PUSH(f->arena, f->stack, f->depth, f->capacity, value);
    else if (fits && node->noperands > 0 && f->level[node->id] > 0 &&
             !sf_is(node, SF_OP_BROADCAST_IN_DIM))
        SF_PUSH(f->arena, f->found, f->nfound, f->found_capacity, value);
}

/* Sums of gradients and conversions of them, as long as their terms have no other reader. */
static sf_value last_sum(const flow *f, sf_value value)
{
    for (;;) {
        if (sf_uses_count(&f->uses, value) != 1)
            return value;
        sf_value_use use = f->uses.at[f->uses.first[value]];
        const sf_node *reader = use.node == SF_NONE ? NULL : f->graph->nodes[use.node];
        if (!reader || !(sf_is(reader, SF_OP_ADD) || sf_is(reader, SF_OP_CONVERT)) ||
            f->stateful[reader->result])
            return value;
        for (uint32_t i = 0; i < reader->noperands; i++) {
            const sf_node *maker = sf_maker(f->graph, reader->operands[i]);
            if (!maker || maker->noperands == 0 || f->forward[reader->operands[i]])
                return value; /* of an argument, or a number */
        }
        value = reader->result;
    }
}

/* Operands of a value: of a branch, those of each branch's result, as when an update is skipped. */
static void visit_made_of(flow *f, sf_value value, const sf_type *type, uint32_t stamp)
{
    const sf_node *node = sf_maker(f->graph, value);
    for (uint32_t r = 0; r < node->nregions && is_branch(node); r++)
        visit_value(f, node->regions[r]->results[value - node->result], type, stamp);
    for (uint32_t i = 0; i < node->noperands && !is_branch(node); i++)
        visit_value(f, node->operands[i], type, stamp);
}

/* Walks back from the new parameter. */
static void find_gradient(flow *f, uint32_t argument)
{
    const sf_block *top = f->graph->top;
    const sf_type *type = sf_type_of(f->graph, top->arguments[argument]);
    size_t visited = 0, kept = 0;
    f->depth = f->nfound = 0;
    visit_value(f, top->results[f->graph->arguments[argument].next], type, argument + 1);
    while (f->depth > 0 && visited++ < MOST_VISITED)
        visit_made_of(f, f->stack[--f->depth], type, argument + 1);
    if (f->depth > 0)
        return;
    for (size_t i = 0; i < f->nfound; i++) {
        sf_value sum = last_sum(f, f->found[i]);
        if (!is_listed(f->found, kept, sum))
            f->found[kept++] = sum;
    }
    for (size_t i = 0; i < kept; i++)
        SF_PUSH(f->arena, f->roots, f->nroots, f->root_capacity, f->found[i]);
    if (kept == 1)
        f->graph->arguments[argument].gradient = f->found[0];
}

static bool has_state(const sf_graph *graph)
{
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        if (graph->arguments[i].next != SF_NONE)
            return true;
    return false;
}

static bool has_loss(const sf_graph *graph)
{
    for (uint32_t i = 0; i < graph->top->nresults; i++)
        if (graph->results[i].is_loss)
            return true;
    return false;
}

/* A function without state that has a loss gives gradients as they are. */
static void find_gradients(flow *f)
{
    const sf_block *top = f->graph->top;
    bool updates = has_state(f->graph);
    for (uint32_t i = 0; i < top->narguments; i++) {
        sf_argument *argument = &f->graph->arguments[i];
        argument->gradient = SF_NONE;
        if (argument->role == SF_ROLE_PARAM && argument->next != SF_NONE)
            find_gradient(f, i);
    }
    for (uint32_t i = 0; i < top->nresults && !updates; i++)
        if (!f->forward[top->results[i]] && sf_maker(f->graph, top->results[i]))
            SF_PUSH(f->arena, f->roots, f->nroots, f->root_capacity, top->results[i]);
    for (size_t i = 0; i < f->nroots; i++)
        f->backward[f->roots[i]] = true;
    mark_needs(f, f->backward);
}

/* Phases */

static void set_phase(sf_graph *graph, sf_node *node, sf_phase phase)
{
    node->phase = phase;
    for (uint32_t r = 0; r < node->nregions; r++)
        for (uint32_t i = 0; i < node->regions[r]->nnodes; i++)
            set_phase(graph, graph->nodes[node->regions[r]->nodes[i]], phase);
}

static void note_late(flow *f, bool *late, sf_value value)
{
    const sf_node *maker = sf_maker(f->graph, value);
    *late = *late || f->stateful[value] || (maker && maker->phase != SF_FORWARD);
}

/* Results that are not state are reports: nodes that only they need are forward, if they follow
 * from that. */
static void set_phases(flow *f)
{
    const sf_block *top = f->graph->top;
    bool *kept = SF_ARRAY(f->arena, f->graph->nvalues, bool); /* new state needs it */
    bool updates = has_state(f->graph), trains = updates || has_loss(f->graph);
    for (uint32_t i = 0; i < top->narguments; i++)
        if (f->graph->arguments[i].next != SF_NONE)
            kept[top->results[f->graph->arguments[i].next]] = true;
    mark_needs(f, kept);
    for (uint32_t i = 0; i < top->nnodes; i++) {
        sf_node *node = f->graph->nodes[top->nodes[i]];
        bool late = false;
        visit_needs(f, node, &late, note_late);
        sf_phase rest = !makes_marked(node, kept) && !late ? SF_FORWARD : SF_UPDATE;
        if (!trains || makes_marked(node, f->forward))
            set_phase(f->graph, node, SF_FORWARD);
        else if (makes_marked(node, f->backward))
            set_phase(f->graph, node, SF_BACKWARD);
        else
            set_phase(f->graph, node, rest);
    }
}

/* Roots */

typedef struct rooted {
    uint32_t level;
    size_t place;
    sf_value value;
} rooted;

static int earlier_phase_first(const void *a, const void *b)
{
    const rooted *x = a, *y = b;
    if (x->level != y->level)
        return x->level < y->level ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

static size_t list_roots(const flow *f, sf_value *out)
{
    const sf_block *top = f->graph->top;
    rooted *list = SF_ARRAY(f->arena, f->nroots, rooted);
    size_t count = 0;
    for (uint32_t i = 0; i < top->nresults; i++)
        if (f->graph->results[i].is_loss)
            out[count++] = top->results[i];
    for (uint32_t i = 0; i < top->nresults; i++) {
        const sf_node *maker = sf_maker(f->graph, top->results[i]);
        if (maker && maker->phase == SF_FORWARD)
            out[count++] = top->results[i];
    }
    for (size_t i = 0; i < f->nroots; i++)
        list[i] = (rooted){f->level[f->graph->values[f->roots[i]].node], i, f->roots[i]};
    if (f->nroots > 0)
        qsort(list, f->nroots, sizeof *list, earlier_phase_first);
    for (size_t i = 0; i < f->nroots; i++)
        out[count++] = list[i].value;
    return count;
}

size_t sf_find_phases(sf_graph *graph, sf_arena *arena, sf_value **roots)
{
    flow f = {.graph = graph, .arena = arena, .uses = sf_uses_of(graph, arena)};
    f.forward = SF_ARRAY(arena, graph->nvalues, bool);
    f.backward = SF_ARRAY(arena, graph->nvalues, bool);
    f.stateful = SF_ARRAY(arena, graph->nvalues, bool);
    f.level = SF_ARRAY(arena, graph->nnodes + 1, uint32_t);
    f.seen = SF_ARRAY(arena, graph->nvalues, uint32_t);
    find_forward(&f);
    find_stateful(&f);
    find_levels(&f);
    find_gradients(&f);
    set_phases(&f);
    *roots = SF_ARRAY(arena, 2 * graph->top->nresults + f.nroots, sf_value);
    return list_roots(&f, *roots);
}
