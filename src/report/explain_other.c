/* Other layouts of a tensor: it is pinned to each, with those of its class, and the solver chooses
 * all others. */
#include <stdlib.h>
#include <string.h>

#include "report/report_explain.h"
#include "search/axis/axis.h"
#include "search/refine.h"

#define SOLVER_WORK INT64_C(100000000)

typedef struct trial {
    sf_explanation *e;
    const sf_classes *classes;
    const sf_axis_space *space;
    double exposed;         /* in the plan, of tensors that only the update waits for: in all, */
    uint8_t *value_exposed; /* and by value (search/axis/axis.h) */
    sf_value value;
    int axis;
    size_t count, capacity;
    sf_other_layout *found;
} trial;

/* Whether another value is the same tensor of another layer. */
static bool is_like(const trial *t, sf_value value)
{
    const sf_value_info *a = &t->e->graph->values[t->value], *b = &t->e->graph->values[value];
    if (a->node == SF_NONE || b->node == SF_NONE)
        return a->node == b->node &&
               t->classes->arguments[a->index] == t->classes->arguments[b->index];
    return a->index == b->index && t->classes->nodes[a->node] == t->classes->nodes[b->node];
}

static void fix_likes(const trial *t, sf_share share, sf_fixed *fixed)
{
    const sf_graph *graph = t->e->graph;
    memset(fixed->pin, -1, graph->nvalues * sizeof *fixed->pin);
    for (sf_value v = 0; v < graph->nvalues; v++) {
        uint32_t node = graph->values[v].node;
        if ((node == SF_NONE || t->e->plan->nodes[node]) && is_like(t, v)) {
            fixed->pin[v] = 0;
            fixed->shares[v] = share;
        }
    }
}

/* The periods depend on other axes. */
static bool is_share(sf_share share, sf_share wanted)
{
    return share.kind == wanted.kind && share.dim == wanted.dim;
}

/* Whether the value is as it was pinned, where it is made or where it is read. */
static bool came_true(const trial *t, const sf_plan *plan, sf_share share)
{
    const sf_graph *graph = t->e->graph;
    if (is_share(sf_plan_layout(plan, graph, t->value)->axes[t->axis], share))
        return true;
    if (graph->values[t->value].node == SF_NONE)
        return false;
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = graph->nodes[graph->top->nodes[i]];
        for (uint32_t o = 0; o < node->noperands; o++)
            if (node->operands[o] == t->value &&
                is_share(plan->nodes[node->id][o].axes[t->axis], share))
                return true;
    }
    return false;
}

static sf_status solve_with(const trial *t, sf_share share, sf_plan *plan, bool *feasible)
{
    sf_explanation *e = t->e;
    sf_mark mark = sf_arena_mark(&e->arena);
    sf_fixed fixed = {.pin = SF_ARRAY(&e->arena, e->graph->nvalues, int),
                      .shares = SF_ARRAY(&e->arena, e->graph->nvalues, sf_share)};
    fix_likes(t, share, &fixed);
    sf_axis_options options = {.axis = t->axis,
                               .exposed = t->exposed,
                               .value_exposed = t->value_exposed,
                               .memory = e->plan->predicted ? e->plan->predicted->limit : 0,
                               .folded = true,
                               .work = SOLVER_WORK,
                               .fixed = fixed};
    sf_axis_result result;
    sf_status status =
        sf_axis_solve(e->efforts, t->space, t->classes, e->costs, &options, plan, e->diag, &result);
    sf_arena_reset(&e->arena, mark);
    *feasible = status == SF_OK && result.feasible;
    return status;
}

static sf_status add_trial(trial *t, sf_share share)
{
    sf_explanation *e = t->e;
    sf_plan *plan = sf_plan_copy(e->plan, e->graph);
    sf_price price;
    bool feasible;
    sf_status status = solve_with(t, share, plan, &feasible);
    if (status == SF_OK && feasible && came_true(t, plan, share)) {
        status = sf_price_plan(e->graph, plan, e->target, e->costs, NULL, NULL, e->diag, &price);
        sf_layout layout = *sf_plan_layout(plan, e->graph, t->value);
        if (!is_share(layout.axes[t->axis], share))
            layout.axes[t->axis] = share; /* as it is read */
        sf_other_layout other = {t->value, sf_explain_layout(e, t->value, &layout), price.seconds,
                                 price.memory};
        if (status == SF_OK)
            SF_PUSH(&e->arena, t->found, t->count, t->capacity, other);
    }
    sf_plan_free(plan);
    return status;
}

/* The possible shares of the tensor along the axis: the choices of an argument, or the results of
 * its maker's strategies. Partial sums are among them. */
static sf_share_space shares_text(const trial *t)
{
    sf_explanation *e = t->e;
    const sf_value_info *info = &e->graph->values[t->value];
    if (info->node == SF_NONE)
        return t->space->arguments[info->index];
    const sf_node *node = e->graph->nodes[info->node];
    const sf_node_space *space = &t->space->nodes[info->node];
    sf_share_space shares = {0, SF_ARRAY(&e->arena, space->nstrategies, sf_share)};
    for (uint32_t k = 0; k < space->nstrategies; k++) {
        sf_share share = space->shares[k * space->ntensors + node->noperands + info->index];
        bool known = share.kind == SF_PARTIAL;
        for (uint32_t s = 0; s < shares.nshares; s++)
            known = known || sf_share_equal(shares.shares[s], share);
        if (!known)
            shares.shares[shares.nshares++] = share;
    }
    return shares;
}

static int by_time(const void *left, const void *right)
{
    const sf_other_layout *a = left, *b = right;
    if (a->seconds != b->seconds)
        return a->seconds < b->seconds ? -1 : 1;
    return strcmp(a->layout, b->layout);
}

static sf_status try_value(trial *t)
{
    sf_explanation *e = t->e;
    const sf_mesh *mesh = &e->plan->mesh;
    const sf_layout *layout = sf_plan_layout(e->plan, e->graph, t->value);
    size_t first = t->count;
    for (t->axis = 0; t->axis < mesh->naxes; t->axis++) {
        t->space = sf_axis_space_new(e->graph, mesh->axes[t->axis].size, &e->arena);
        sf_share_space shares = shares_text(t);
        for (uint32_t s = 0; s < shares.nshares; s++)
            if (!sf_share_equal(shares.shares[s], layout->axes[t->axis]))
                SF_TRY(add_trial(t, shares.shares[s]));
    }
    if (t->count > first + 1)
        qsort(t->found + first, t->count - first, sizeof *t->found, by_time);
    return SF_OK;
}

/* Arguments and gradients, then results of products, then all others but constants. */
static int rank_of(const sf_explanation *e, sf_value value)
{
    const sf_node *node = sf_maker(e->graph, value);
    if (!node || e->efforts->gradient[value])
        return 0;
    if (e->efforts->nodes[node->id].product)
        return 1;
    return node->noperands > 0 && e->efforts->stored[value] ? 2 : 3;
}

sf_status sf_explain_others(sf_explanation *e, size_t count, const sf_value *values,
                            size_t *nothers, sf_other_layout **out)
{
    static const int most[] = {4, 2, 1};
    sf_classes classes = sf_classes_of(e->graph, &e->arena);
    trial t = {.e = e,
               .classes = &classes,
               .value_exposed = SF_ARRAY(&e->arena, e->graph->nvalues, uint8_t)};
    sf_price price;
    *nothers = 0;
    *out = NULL;
    if (e->plan->pipeline)
        return SF_OK;
    e->efforts = sf_efforts_new(e->graph, e->target, &e->arena);
    SF_TRY(sf_estimate_slack(e->efforts, e->plan, e->costs, e->diag, t.value_exposed, &t.exposed,
                             &price));
    t.exposed = t.exposed < 0 ? 1 : t.exposed;
    for (int rank = 0; rank < 3 && (rank < 2 || t.count == 0); rank++) {
        int tried = 0;
        for (size_t i = 0; i < count && tried < most[rank]; i++) {
            if (rank_of(e, values[i]) != rank)
                continue;
            t.value = values[i];
            tried++;
            SF_TRY(try_value(&t));
        }
    }
    *nothers = t.count;
    *out = t.found;
    return SF_OK;
}
