#include "local/shard/shard_builder.h"

#include <string.h>

#include "base/mem.h"
#include "ir/clone.h"

static sf_status check_argument_layout(local_builder *b, uint32_t i)
{
    const sf_graph *whole = b->whole;
    const sf_type *type = sf_argument_type(whole, i);
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

static sf_status check_result(local_builder *b, uint32_t i)
{
    const sf_type *type = sf_result_type(b->whole, i);
    char why[SF_WHY_TEXT];
    return sf_layout_fits(&b->plan->results[i], b->mesh, type->rank, type->dims, why)
               ? SF_OK
               : sf_fail(b->diag, SF_EINPUT, SF_NOWHERE, "plan: result %u: %s", i, why);
}

/* The node with its common part; all but its values. */
static sf_status look_at_node(local_builder *b, const sf_node *node, local_node *out)
{
    uint32_t count = node->noperands + node->nresults;
    *out = (local_node){.node = node, .layouts = b->plan->nodes[node->id]};
    out->op = sf_op_of(b->whole, node, SF_ARRAY(&b->scratch, count, const sf_type *));
    out->op.pool = b->graph->pool; /* that of the step is only read: other ranks read it too */
    return local_find_shape(b, out);
}

/* All layouts, before anything is moved: a plan may say anything. */
static sf_status check_plan_shape(local_builder *b)
{
    const sf_block *top = b->whole->top;
    for (uint32_t i = 0; i < top->narguments; i++)
        SF_TRY(check_argument_layout(b, i));
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = b->whole->nodes[top->nodes[i]];
        sf_mark mark = sf_arena_mark(&b->scratch);
        local_node n;
        SF_TRY(look_at_node(b, node, &n));
        b->node_shapes[node->id] = n.shape;
        sf_arena_reset(&b->scratch, mark);
    }
    for (uint32_t i = 0; i < top->nresults; i++)
        SF_TRY(check_result(b, i));
    return SF_OK;
}

void local_add_arguments(local_builder *b)
{
    const sf_graph *whole = b->whole;
    const sf_block *top = whole->top;
    sf_graph *graph = b->graph;
    sf_graph_clone_head(whole, graph);
    sf_plan_apply_loops(b->plan, graph);
    for (uint32_t i = 0; i < top->narguments; i++) {
        const sf_type *type =
            local_type(b, sf_type_of(whole, top->arguments[i]), &b->plan->arguments[i]);
        local_set(b, b->reshards->made[top->arguments[i]],
                  sf_block_argument(graph, graph->top, type));
        graph->arguments[i].gradient = SF_NONE;
    }
}

sf_status local_add_node(local_builder *b, const sf_node *node)
{
    sf_mark mark = sf_arena_mark(&b->scratch);
    uint32_t count = node->noperands + node->nresults;
    local_node n = {
        .node = node, .layouts = b->plan->nodes[node->id], .shape = b->node_shapes[node->id]};
    n.op = sf_op_of(b->whole, node, SF_ARRAY(&b->scratch, count, const sf_type *));
    n.op.pool = b->graph->pool;
    n.in = SF_ARRAY(&b->scratch, node->noperands, sf_value);
    n.out = SF_ARRAY(&b->scratch, node->nresults, sf_value);
    n.types = sf_arena_copy(&b->scratch, n.shape->types, count * sizeof *n.types);
    for (uint32_t i = 0; i < node->noperands; i++)
        n.in[i] = local_value(b, b->reshards->reads[b->reshards->first_read[node->id] + i]);
    b->scope = node->scope;
    b->phase = node->phase;
    b->loc = node->loc;
    SF_TRY(local_op(b, &n));
    for (uint32_t i = 0; i < node->nresults; i++)
        local_set(b, b->reshards->made[node->result + i], n.out[i]);
    sf_arena_reset(&b->scratch, mark);
    return SF_OK;
}

void local_add_results(local_builder *b)
{
    const sf_block *top = b->whole->top;
    sf_value *results = SF_ARRAY(&b->scratch, top->nresults, sf_value);
    for (uint32_t i = 0; i < top->nresults; i++)
        results[i] = local_value(b, b->reshards->results[i]);
    sf_block_return(b->graph, b->graph->top, top->nresults, results);
    /* Values inside reshards, up to the last. */
    if (b->graph->nvalues > 0 && b->npieces < b->graph->nvalues)
        local_record(b, (sf_value)b->graph->nvalues - 1, SF_NONE, &(sf_layout){0});
}

sf_status local_prepare(local_builder *b)
{
    sf_reshards *reshards;
    b->node_shapes = SF_ARRAY(&b->arena, b->whole->nnodes, local_shape *);
    SF_TRY(check_plan_shape(b));
    SF_TRY(sf_reshards_of(b->whole, b->plan, &b->arena, b->diag, &reshards));
    b->reshards = reshards;
    b->versions = SF_ARRAY(&b->arena, reshards->nversions, local_version);
    b->buckets = SF_ARRAY(&b->arena, reshards->nbuckets, local_bucket);
    for (size_t v = 0; v < reshards->nversions; v++)
        b->versions[v] = (local_version){SF_NONE, SF_NONE};
    return SF_OK;
}

static sf_status build_local(local_builder *b, bool takes_turn)
{
    SF_TRY(local_prepare(b));
    local_add_arguments(b);
    if (takes_turn)
        b->microbatch =
            sf_block_argument(b->graph, b->block, sf_type_scalar(b->graph->pool, SF_S32));
    for (size_t i = 0; i < b->reshards->nsteps; i++) {
        if (b->reshards->steps[i].is_reshard)
            local_make_reshard(b, b->reshards->steps[i].index);
        else
            SF_TRY(local_add_node(b, b->whole->nodes[b->reshards->steps[i].index]));
    }
    local_add_results(b);
    return SF_OK;
}

void local_open(local_builder *b, sf_local *local, const sf_graph *whole, const sf_plan *plan,
                int rank, sf_pool *pool, int64_t first)
{
    *local = (sf_local){.step = whole, .whole = whole, .plan = plan, .rank = rank};
    local->graph = sf_graph_new(pool);
    b->local = local;
    b->whole = whole;
    b->plan = plan;
    b->mesh = &plan->mesh;
    b->rank = rank;
    b->microbatch = SF_NONE;
    b->collectives = first;
    b->graph = local->graph;
    b->block = local->graph->top;
    b->ways = (sf_ways){.mesh = &plan->mesh, .arena = &b->arena};
    b->inner = SF_ARRAY(&b->arena, whole->nvalues, sf_value);
    b->piece_capacity = whole->nvalues + whole->nvalues / 8 + 16;
    local->pieces = SF_ARRAY(&local->arena, b->piece_capacity, sf_local_shard);
}

void local_close(local_builder *b)
{
    sf_arena_free(&b->arena);
    sf_arena_free(&b->scratch);
}

sf_status local_new_within(const sf_graph *whole, const sf_plan *plan, int rank, sf_pool *pool,
                           int64_t first, bool takes_turn, sf_diag *diag, sf_local **out)
{
    sf_local *local = sf_alloc(sizeof *local);
    local_builder b = {.diag = diag};
    local_open(&b, local, whole, plan, rank, pool, first);
    sf_status status = build_local(&b, takes_turn);
    local_close(&b);
    if (status != SF_OK) {
        local_free(local);
        return status;
    }
    *out = local;
    return SF_OK;
}

/* A region's step is a copy of its block, in the order of that. */
sf_value sf_inner_value(const sf_local *local, const sf_inner *inner, sf_value value)
{
    const sf_graph *graph = inner->plan.graph;
    const sf_block *block = inner->node->regions[inner->region];
    const sf_value_info *info = &graph->values[value];
    if (info->node == SF_NONE)
        return info->index < block->narguments ? block->arguments[info->index] : SF_NONE;
    uint32_t low = 0, high = block->nnodes; /* nodes of a copy are numbered in its order */
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (graph->top->nodes[middle] < info->node)
            low = middle + 1;
        else
            high = middle;
    }
    bool is_there = low < block->nnodes && graph->top->nodes[low] == info->node;
    return is_there ? local->whole->nodes[block->nodes[low]]->result + info->index : SF_NONE;
}

void local_free(sf_local *local)
{
    for (size_t i = 0; i < local->ninner; i++) {
        local_free(local->inner[i].local);
        sf_region_plan_free(&local->inner[i].plan);
    }
    sf_graph_free(local->graph);
    sf_arena_free(&local->arena);
    sf_free(local);
}
