#include "match/match.h"

#include <math.h>
#include <string.h>

#include "op/slots.h"

/* Steps that a search may take, for each node of the graph and in all. */
static const int64_t MOST_STEPS = 20000000;

/* A condition to satisfy: a node of the sketch matches a value. */
typedef struct goal {
    int node;
    sf_value value;
} goal;

typedef struct search {
    const sf_matching *in;
    sf_value *values; /* by node of the sketch; SF_NONE: not bound */
    bool *taken;      /* by node of the graph: it is in this match or another */
    int64_t steps;
    goal goals[SF_SKETCH_NODES * 8];
    int ngoals;
} search;

static bool is_number(const sf_graph *graph, sf_value value, double number)
{
    const sf_node *maker = sf_maker(graph, value);
    if (maker && sf_is(maker, SF_OP_BROADCAST_IN_DIM))
        maker = sf_maker(graph, maker->operands[0]);
    if (!maker || !sf_is(maker, SF_OP_CONSTANT) || !maker->attrs[SF_CONSTANT_VALUE])
        return false;
    const sf_dense *dense = &maker->attrs[SF_CONSTANT_VALUE]->dense;
    if (!dense->data || (!dense->splat && dense->type->rank > 0) ||
        sf_is_complex(dense->type->dtype))
        return false;
    double held = sf_load_f64(dense->type->dtype, dense->data, 0);
    return held == number || held == sf_round(dense->type->dtype, number) ||
           fabs(held - number) <= 1e-6 * fabs(number);
}

static bool attr_is(const sf_attr *attr, const sf_sketched_attr *said)
{
    int count = attr && attr->kind == SF_ATTR_INTS ? attr->count : 0;
    switch (said->kind) {
    case SF_ATTR_INT:
        return (attr ? attr->integer : 0) == said->integer;
    case SF_ATTR_INTS:
        return count == said->count &&
               (count == 0 ||
                memcmp(attr->ints, said->ints, (size_t)count * sizeof *said->ints) == 0);
    case SF_ATTR_TEXT:
        return attr && strcmp(attr->text, said->text) == 0;
    case SF_ATTR_DENSE:
        break;
    }
    return false;
}

static bool type_fits(const sf_type *type, const sf_sketch_node *wanted)
{
    if (wanted->has_dtype && type->dtype != wanted->dtype)
        return false;
    return wanted->rank < 0 ||
           (wanted->rank == type->rank &&
            memcmp(type->dims, wanted->dims, (size_t)type->rank * sizeof *type->dims) == 0);
}

/* The node could be this op, whatever its operands are. */
static bool op_fits(const search *s, const sf_node *node, const sf_sketch_node *wanted)
{
    if (node->def != wanted->def || (int)node->noperands != wanted->noperands ||
        node->nresults != 1 || node->nregions > 0 || s->taken[node->id] ||
        !type_fits(sf_type_of(s->in->graph, node->result), wanted))
        return false;
    for (int i = 0; i < wanted->nattrs; i++)
        if (!attr_is(node->attrs[wanted->attrs[i].slot], &wanted->attrs[i]))
            return false;
    return !s->in->may || s->in->may(s->in->context, node);
}

static bool solve(search *s, int at);

/* Goes on with the operands, in this order or the other. */
static bool solve_operands(search *s, const sf_node *node, const sf_sketch_node *wanted, int at,
                           bool swapped)
{
    int before = s->ngoals;
    for (int i = 0; i < wanted->noperands; i++)
        s->goals[s->ngoals++] =
            (goal){wanted->operands[i], node->operands[swapped ? wanted->noperands - 1 - i : i]};
    bool found = solve(s, at + 1);
    if (!found)
        s->ngoals = before;
    return found;
}

static bool solve_op(search *s, const sf_sketch_node *wanted, goal now, int at)
{
    const sf_node *maker = sf_maker(s->in->graph, now.value);
    if (!maker || !op_fits(s, maker, wanted) ||
        s->ngoals + wanted->noperands > (int)(sizeof s->goals / sizeof *s->goals))
        return false;
    bool swaps = maker->def->commutative && wanted->noperands == 2 &&
                 wanted->operands[0] != wanted->operands[1];
    s->taken[maker->id] = true;
    s->values[now.node] = now.value;
    if (solve_operands(s, maker, wanted, at, false) ||
        (swaps && solve_operands(s, maker, wanted, at, true)))
        return true;
    s->taken[maker->id] = false;
    s->values[now.node] = SF_NONE;
    return false;
}

/* A result that nothing so far has led to: any node that it could be. */
static bool solve_next_result(search *s, int at)
{
    const sf_sketch *sketch = s->in->sketch;
    const sf_block *top = s->in->graph->top;
    int next = 0;
    while (next < sketch->nresults && s->values[sketch->results[next]] != SF_NONE)
        next++;
    if (next == sketch->nresults)
        return true;
    const sf_sketch_node *wanted = &sketch->nodes[sketch->results[next]];
    if (wanted->kind != SF_SKETCH_OP || s->ngoals == (int)(sizeof s->goals / sizeof *s->goals))
        return false;
    for (uint32_t i = 0; i < top->nnodes && s->steps < MOST_STEPS; i++) {
        const sf_node *node = s->in->graph->nodes[top->nodes[i]];
        s->steps++;
        if (node->def != wanted->def)
            continue;
        s->goals[s->ngoals++] = (goal){sketch->results[next], node->result};
        if (solve(s, at))
            return true;
        s->ngoals--;
    }
    return false;
}

/* Whether all goals from `at` on, and all results, can be met. */
static bool solve(search *s, int at)
{
    if (at == s->ngoals)
        return solve_next_result(s, at);
    if (++s->steps > MOST_STEPS)
        return false;
    goal now = s->goals[at];
    const sf_sketch_node *wanted = &s->in->sketch->nodes[now.node];
    if (s->values[now.node] != SF_NONE)
        return s->values[now.node] == now.value && solve(s, at + 1);
    if (wanted->kind == SF_SKETCH_OP)
        return solve_op(s, wanted, now, at);
    if (wanted->kind == SF_SKETCH_NUMBER && !is_number(s->in->graph, now.value, wanted->number))
        return false;
    s->values[now.node] = now.value;
    if (solve(s, at + 1))
        return true;
    s->values[now.node] = SF_NONE;
    return false;
}

static void clear(search *s)
{
    for (int n = 0; n < s->in->sketch->count; n++)
        s->values[n] = SF_NONE;
    s->ngoals = 0;
}

sf_status sf_match_all(const sf_matching *matching, sf_arena *arena, sf_diag *diag, size_t *count,
                       sf_match **out)
{
    const sf_graph *graph = matching->graph;
    const sf_sketch *sketch = matching->sketch;
    search *s = SF_NEW(arena, search);
    size_t capacity = 0;
    *s = (search){.in = matching,
                  .values = SF_ARRAY(arena, sketch->count, sf_value),
                  .taken = SF_ARRAY(arena, graph->nnodes, bool)};
    *count = 0;
    *out = NULL;
    for (uint32_t i = 0; i < graph->top->nnodes && s->steps < MOST_STEPS; i++) {
        const sf_node *node = sf_top_node(graph, i);
        if (node->def != sketch->nodes[sketch->results[0]].def)
            continue;
        clear(s);
        s->goals[s->ngoals++] = (goal){sketch->results[0], node->result};
        if (!solve(s, 0))
            continue;
        sf_match found = {
            .values = sf_arena_copy(arena, s->values, (size_t)sketch->count * sizeof *s->values)};
        SF_PUSH(arena, *out, *count, capacity, found);
    }
    if (s->steps < MOST_STEPS)
        return SF_OK;
    return sf_fail(diag, SF_EMISMATCH, SF_NOWHERE,
                   "looking for this takes too long: it is too much alike itself");
}
