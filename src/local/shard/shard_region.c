/* Loops and branches on shards: each region is a step of its own (plan/region_plan.h), of which the
 * rank computes its part. */
#include "plan/region_plan.h"

#include <string.h>

#include "base/mem.h"
#include "ir/clone.h"
#include "local/shard/shard_builder.h"
#include "op/node_builder.h"

/* Numbers of collectives go on inside. */
static void number_inner(local_builder *b, const sf_local *inner)
{
    for (size_t i = 0; i < inner->nsent; i++)
        SF_PUSH(&b->local->arena, b->local->sent, b->local->nsent, b->local->sent_capacity,
                ((sf_sent){.kind = inner->sent[i].kind}));
    b->collectives += (int64_t)inner->nsent;
}

static sf_block *copy_inner(local_builder *b, const sf_graph *graph)
{
    sf_value *map = sf_alloc(graph->nvalues * sizeof *map);
    sf_block *copy = sf_block_clone(graph, graph->top, b->graph, map);
    sf_free(map);
    return copy;
}

static sf_status add_region(local_builder *b, const local_node *n, uint32_t region, bool takes_turn,
                            sf_block **out)
{
    sf_local *local = b->local;
    sf_inner inner = {.node = n->node, .region = region, .first = b->collectives};
    SF_TRY(sf_plan_region(b->whole, b->mesh, b->plan->nodes, n->node, n->layouts, region,
                          b->graph->pool, b->diag, &inner.plan));
    sf_status status = local_new_within(inner.plan.graph, inner.plan.plan, b->rank, b->graph->pool,
                                        b->collectives, takes_turn, b->diag, &inner.local);
    if (status != SF_OK) {
        sf_region_plan_free(&inner.plan);
        return status;
    }
    SF_PUSH(&local->arena, local->inner, local->ninner, local->inner_capacity, inner);
    number_inner(b, inner.local);
    *out = copy_inner(b, inner.local->graph);
    return SF_OK;
}

sf_status local_control(local_builder *b, local_node *n)
{
    const sf_node *node = n->node;
    sf_block **regions = SF_ARRAY(&b->scratch, node->nregions, sf_block *);
    bool takes_turn = b->microbatch != SF_NONE;
    sf_value *operands = SF_ARRAY(&b->scratch, node->noperands + 1, sf_value);
    sf_node *added;
    for (uint32_t r = 0; r < node->nregions; r++)
        SF_TRY(add_region(b, n, r, takes_turn, &regions[r]));
    sf_node_spec spec = sf_spec_like(node);
    memcpy(operands, n->in, node->noperands * sizeof *operands);
    operands[node->noperands] = b->microbatch; /* after all operands of the node */
    spec.operands = operands;
    spec.noperands = node->noperands + takes_turn;
    spec.types = n->types + node->noperands;
    spec.attrs = node->attrs;
    spec.regions = regions;
    SF_TRY(sf_build(b->graph, b->block, &spec, b->diag, &added));
    for (uint32_t i = 0; i < node->nresults; i++)
        n->out[i] = added->result + i;
    return SF_OK;
}
