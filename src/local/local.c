#include "local/build.h"

#include <string.h>

#include "base/mem.h"

/* The walk */

static sf_status check_argument(local_builder *b, uint32_t i)
{
    const sf_graph *whole = b->whole;
    const sf_type *type = sf_type_of(whole, whole->top->arguments[i]);
    const sf_layout *layout = &b->plan->arguments[i];
    const sf_argument *argument = &whole->arguments[i];
    char why[SF_WHY_TEXT];
    if (!sf_layout_fits(layout, b->mesh, type->rank, type->dims, why))
        return sf_fail(b->diag, SF_EINPUT, SF_NOWHERE, "plan: argument %s: %s", argument->name,
                       why);
    if (argument->next != SF_NONE && !sf_layout_equal(layout, &b->plan->results[argument->next]))
        return sf_fail(b->diag, SF_EINPUT, SF_NOWHERE,
                       "plan: argument %s has another layout than the result that it comes from",
                       argument->name);
    return SF_OK;
}

static sf_status begin(local_builder *b)
{
    const sf_graph *whole = b->whole;
    const sf_block *top = whole->top;
    sf_graph *graph = b->graph;
    graph->name = whole->name;
    graph->has_scopes = whole->has_scopes;
    graph->arguments =
        sf_arena_copy(&graph->arena, whole->arguments, top->narguments * sizeof *graph->arguments);
    graph->results =
        sf_arena_copy(&graph->arena, whole->results, top->nresults * sizeof *graph->results);
    for (uint32_t i = 0; i < top->narguments; i++) {
        SF_TRY(check_argument(b, i));
        const sf_layout *layout = &b->plan->arguments[i];
        const sf_type *type = local_type(b, sf_type_of(whole, top->arguments[i]), layout);
        local_add(b, top->arguments[i], layout, ANY_PHASE,
                  sf_block_argument(graph, graph->top, type));
        graph->arguments[i].gradient = SF_NONE;
    }
    return SF_OK;
}

static void place(local_builder *b, const sf_scope *scope, sf_phase phase, sf_loc loc)
{
    b->scope = scope;
    b->phase = phase;
    b->loc = loc;
}

static sf_status walk_node(local_builder *b, const sf_node *node)
{
    sf_mark mark = sf_arena_mark(&b->scratch);
    uint32_t count = node->noperands + node->nresults;
    local_node n = {.node = node, .layouts = b->plan->nodes[node->id]};
    const sf_type **types = SF_ARRAY(&b->scratch, count, const sf_type *);
    n.op = sf_op_of(b->whole, node, types);
    n.op.pool = b->graph->pool; /* that of the step is only read: other ranks read it too */
    SF_TRY(local_find_shape(b, &n));
    n.in = SF_ARRAY(&b->scratch, node->noperands, sf_value);
    n.out = SF_ARRAY(&b->scratch, node->nresults, sf_value);
    n.types = sf_arena_copy(&b->scratch, n.shape->types, count * sizeof *n.types);
    for (uint32_t i = 0; i < node->noperands; i++) {
        place(b, node->scope, node->phase, node->loc);
        SF_TRY(local_value(b, node->operands[i], &n.layouts[i], &n.in[i]));
    }
    SF_TRY(local_op(b, &n));
    for (uint32_t i = 0; i < node->nresults; i++)
        local_add(b, node->result + i, &n.layouts[node->noperands + i], ANY_PHASE, n.out[i]);
    sf_arena_reset(&b->scratch, mark);
    return SF_OK;
}

/* Results are moved in the phase in which they were made, new state in the update. */
static sf_status finish(local_builder *b)
{
    const sf_block *top = b->whole->top;
    sf_value *results = SF_ARRAY(&b->scratch, top->nresults, sf_value);
    b->first_for_results = (uint32_t)b->graph->nnodes;
    for (uint32_t i = 0; i < top->nresults; i++) {
        const sf_node *maker = sf_maker(b->whole, top->results[i]);
        const sf_type *type = sf_type_of(b->whole, top->results[i]);
        char why[SF_WHY_TEXT];
        if (!sf_layout_fits(&b->plan->results[i], b->mesh, type->rank, type->dims, why))
            return sf_fail(b->diag, SF_EINPUT, SF_NOWHERE, "plan: result %u: %s", i, why);
        place(b, maker ? maker->scope : NULL, maker ? maker->phase : SF_UPDATE,
              maker ? maker->loc : SF_NOWHERE);
        SF_TRY(local_value(b, top->results[i], &b->plan->results[i], &results[i]));
    }
    sf_block_return(b->graph, b->graph->top, top->nresults, results);
    /* Values that stand inside of moves, up to the last. */
    if (b->graph->nvalues > 0 && b->npieces < b->graph->nvalues)
        local_record(b, (sf_value)b->graph->nvalues - 1, SF_NONE, &(sf_layout){0});
    local_early(b);
    return SF_OK;
}

static sf_status build(local_builder *b)
{
    const sf_block *top = b->whole->top;
    SF_TRY(begin(b));
    for (uint32_t i = 0; i < top->nnodes; i++)
        SF_TRY(walk_node(b, b->whole->nodes[top->nodes[i]]));
    return finish(b);
}

sf_status sf_local_new(const sf_graph *whole, const sf_plan *plan, int rank, sf_diag *diag,
                       sf_local **out)
{
    sf_local *local = sf_alloc(sizeof *local);
    *local = (sf_local){.whole = whole, .plan = plan, .rank = rank};
    sf_pool *pool = sf_pool_derive(whole->pool);
    local->graph = sf_graph_new(pool);
    sf_pool_release(pool);
    local_builder b = {.local = local,
                       .whole = whole,
                       .plan = plan,
                       .mesh = &plan->mesh,
                       .rank = rank,
                       .diag = diag,
                       .graph = local->graph,
                       .block = local->graph->top};
    b.ways = (sf_ways){.mesh = &plan->mesh, .arena = &b.arena};
    b.versions = SF_ARRAY(&b.arena, whole->nvalues, local_version *);
    b.inner = SF_ARRAY(&b.arena, whole->nvalues, sf_value);
    sf_status status = build(&b);
    sf_arena_free(&b.arena);
    sf_arena_free(&b.scratch);
    if (status != SF_OK) {
        sf_local_free(local);
        return status;
    }
    *out = local;
    return SF_OK;
}

void sf_local_free(sf_local *local)
{
    if (!local)
        return;
    sf_graph_free(local->graph);
    sf_arena_free(&local->arena);
    sf_free(local);
}
