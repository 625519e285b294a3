#include <string.h>

#include "base/mem.h"
#include "local/time/microbatch_builder.h"
#include "plan/propagate.h"

/* The share of a dimension from which micro-batches took a digit. */
static bool share_in_turn(const microbatching *t, sf_share microbatch, sf_share *share, int parts)
{
    int64_t unit = microbatch.period / t->microbatches;
    if (share->kind != SF_SPLIT || microbatch.kind != SF_SPLIT || microbatch.dim != share->dim ||
        share->period <= unit)
        return true;
    if (share->period / parts % microbatch.period != 0)
        return false;
    share->period /= t->microbatches;
    return true;
}

/* The layout on ranks of a micro-batch's part of a tensor; false if the two are incompatible. */
bool microbatch_layout(const microbatching *t, const sf_layout *time, const sf_layout *space,
                       sf_layout *out)
{
    const sf_mesh *mesh = &t->space->mesh;
    *out = *space;
    for (int a = 0; a < mesh->naxes; a++)
        if (!share_in_turn(t, time->axes[MICROBATCH_AXIS], &out->axes[a], mesh->axes[a].size))
            return false;
    return true;
}

void microbatch_settle(microbatching *t, const sf_node *node, const sf_layout *layouts)
{
    microbatch_settled s = {.node = node->id};
    s.layouts =
        sf_arena_copy(&t->arena, layouts, (node->noperands + node->nresults) * sizeof *layouts);
    SF_PUSH(&t->arena, t->settled, t->nsettled, t->settled_capacity, s);
}

void microbatch_note_origin(microbatching *t, size_t first, const sf_node *node)
{
    const sf_graph *graph = t->b->graph;
    while (t->nnode_of < graph->nnodes)
        SF_PUSH(&t->arena, t->node_of, t->nnode_of, t->node_of_capacity, SF_NONE);
    for (size_t n = first; n < graph->nnodes && node; n++)
        t->node_of[n] = node->id;
}

/* Whether `added` is the op of the node on shards; one with regions takes the micro-batch's number
 * as well, as its last operand. */
static bool is_same_op(const sf_node *added, const sf_node *node)
{
    uint32_t more = added->noperands - node->noperands;
    return added->def == node->def && added->nresults == node->nresults &&
           (more == 0 || (more == 1 && added->nregions > 0));
}

/* The layouts of `added`, whose node has these in time and on ranks; false if the two are
 * incompatible. */
static bool layouts_of_same(const microbatching *t, const sf_node *added, const sf_node *node,
                            const sf_layout *time, const sf_layout *space, sf_layout *out)
{
    uint32_t more = added->noperands - node->noperands;
    for (uint32_t i = 0; i < node->noperands + node->nresults; i++)
        if (!microbatch_layout(t, &time[i], &space[i], &out[i < node->noperands ? i : i + more]))
            return false;
    return true;
}

static sf_layout *new_layouts(microbatching *t, const sf_node *added)
{
    return SF_ARRAY(&t->arena, added->noperands + added->nresults, sf_layout);
}

static void settle_regions(microbatching *t, const sf_local *local, const sf_node *piece_of,
                           const sf_node *node, const sf_node *added);

/* The node of the region's step from which an op in a region was made: NULL for a part of a
 * reshard. */
static const sf_node *op_behind(const sf_inner *inner, const sf_node *shard)
{
    if (shard->nresults == 0)
        return NULL;
    const sf_local_shard *made = &inner->local->pieces[shard->result];
    const sf_node *node =
        made->whole == SF_NONE || made->moved ? NULL : sf_maker(inner->plan.graph, made->whole);
    return node && node->result == made->whole && is_same_op(shard, node) ? node : NULL;
}

/* Nodes in a region of an added node, whose layouts in the step are known. Regions are copied in
 * order: as a step, in which numbers are places in it, and back. */
static void settle_region(microbatching *t, const sf_inner *inner, const sf_block *block,
                          const sf_block *copy)
{
    const sf_graph *region = inner->plan.graph;
    uint32_t *place = SF_ARRAY(&t->arena, region->nnodes, uint32_t);
    for (uint32_t i = 0; i < region->top->nnodes; i++)
        place[region->top->nodes[i]] = i;
    for (uint32_t i = 0; i < copy->nnodes; i++) {
        const sf_node *piece_of = op_behind(inner, sf_top_node(inner->local->graph, i));
        if (!piece_of)
            continue;
        const sf_node *node = t->step->nodes[block->nodes[place[piece_of->id]]];
        const sf_node *added = t->b->graph->nodes[copy->nodes[i]];
        const sf_layout *space = t->space->nodes[node->id];
        sf_layout *layouts = new_layouts(t, added);
        if (!space ||
            !layouts_of_same(t, added, node, inner->plan.plan->nodes[piece_of->id], space, layouts))
            continue;
        microbatch_settle(t, added, layouts);
        settle_regions(t, inner->local, piece_of, node, added);
    }
}

/* In the regions of `added`, of which `local` has the plans, under the node of its own step: the
 * last ones, if that was added for several micro-batches. */
static void settle_regions(microbatching *t, const sf_local *local, const sf_node *piece_of,
                           const sf_node *node, const sf_node *added)
{
    uint32_t left = added->nregions;
    for (size_t i = local->ninner; i-- > 0 && left > 0;) {
        const sf_inner *inner = &local->inner[i];
        if (inner->node != piece_of)
            continue;
        settle_region(t, inner, node->regions[inner->region], added->regions[inner->region]);
        left--;
    }
}

/* After a node of the step was added: if it is the same op, it gets the same layouts, and so do the
 * nodes in its regions. */
sf_status microbatch_settle_same(microbatching *t, const sf_node *node)
{
    if (node->nresults == 0)
        return SF_OK;
    sf_value value = t->b->versions[t->b->reshards->made[node->result]].value;
    const sf_node *added = sf_maker(t->b->graph, value);
    if (!added || !is_same_op(added, node))
        return SF_OK;
    sf_layout *layouts = new_layouts(t, added);
    if (!layouts_of_same(t, added, node, t->time->nodes[node->id], t->space->nodes[node->id],
                         layouts)) {
        if (t->recipe || t->is_of_groups) /* both want the same digit: how it is laid out follows */
            return SF_OK;
        sf_fail(t->b->diag, SF_EMISMATCH, node->loc,
                "micro-batches: what a rank has of the batch does not split into %d equal parts",
                t->microbatches);
        return sf_hint(t->b->diag, "use fewer micro-batches, or fewer ranks along the batch");
    }
    microbatch_settle(t, added, layouts);
    settle_regions(t, t->b->local, node, node, added);
    return SF_OK;
}

void microbatch_add_barrier(microbatching *t, const sf_node *node, uint32_t result)
{
    local_builder *b = t->b;
    uint32_t count, made = b->reshards->made[node->result + result];
    const uint32_t *reads = microbatch_reads(t, node->id, &count);
    if (b->versions[made].value != SF_NONE)
        return;
    sf_value value = local_value(b, reads[result]);
    local_note_place(b, node, node->phase);
    value = emit_op(b, SF_OP_OPTIMIZATION_BARRIER, 1, &value, NULL, sf_type_of(b->graph, value));
    local_set(b, made, value);
    sf_layout layouts[2];
    if (microbatch_layout(t, &t->time->nodes[node->id][result], &t->space->nodes[node->id][result],
                          &layouts[0])) {
        layouts[1] = layouts[0];
        microbatch_settle(t, sf_maker(b->graph, value), layouts);
    }
}

/* Partial sums stay partial when more is added to them. Other folds, as a maximum, are reduced over
 * ranks first: no op takes them in parts. */
static sf_layout layout_to_join(const microbatching *t, sf_value value)
{
    sf_layout layout = *sf_plan_layout(t->space, t->step, value);
    for (int a = 0; a < t->space->mesh.naxes; a++)
        if (layout.axes[a].kind == SF_PARTIAL && layout.axes[a].monoid != SF_MONOID_ADD)
            layout.axes[a] = (sf_share){0};
    return layout;
}

/* The layout in which all readers after the loop want a sum, if that is sharded; else the layout in
 * which it is made. */
static sf_layout layout_of_sum(const microbatching *t, sf_value value)
{
    sf_layout made = layout_to_join(t, value), wanted = made;
    uint32_t readers = 0;
    for (uint32_t u = t->uses.first[value]; u < t->uses.first[value + 1]; u++) {
        sf_value_use use = t->uses.at[u];
        if (use.node == SF_NONE || use.operand == SF_NONE)
            return made;
        const sf_layout *want = &t->space->nodes[use.node][use.operand];
        if (sf_layout_is_partial(want) || (readers++ > 0 && !sf_layout_equal(want, &wanted)))
            return made;
        wanted = *want;
    }
    const sf_type *type = sf_type_of(t->step, value);
    const sf_mesh *mesh = &t->space->mesh;
    return sf_shard_bytes(type, &wanted, mesh) < sf_shard_bytes(type, &made, mesh) ? wanted : made;
}

/* The layout of a loop output, in each micro-batch and after the loop. Sums that are wanted in
 * shards are kept so, and reduced in each micro-batch: a rank that shards gradients has no memory
 * for whole ones. */
sf_layout loop_output_layout(const microbatching *t, const loop_output *l)
{
    const sf_resharding *reshard = &t->b->reshards->reshards[l->reshard];
    sf_layout out = l->is_sum ? layout_of_sum(t, reshard->value)
                              : *sf_plan_layout(t->space, t->step, reshard->value);
    sf_layout shard;
    if (l->is_sum ||
        !microbatch_layout(t, t->b->reshards->versions[reshard->from].layout, &out, &shard))
        return l->is_sum ? out : microbatch_invariant;
    const sf_type *type = sf_type_of(t->step, reshard->value);
    if (l->type->rank != type->rank + 1)
        return microbatch_invariant;
    for (int a = 0; a < t->space->mesh.naxes; a++)
        if (shard.axes[a].kind == SF_SPLIT)
            shard.axes[a].dim++;
    return shard;
}

/* State of other pipeline ranks is empty here. */
static void empty_others(const microbatching *t, const sf_graph *graph, sf_plan *plan)
{
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        if (t->held[t->arguments[i]])
            continue;
        plan->arguments[i] = microbatch_invariant;
        if (graph->arguments[i].next != SF_NONE)
            plan->results[graph->arguments[i].next] = microbatch_invariant;
    }
}

/* Arguments come, and results go, as those of the step do. */
static void carry_ends(const microbatching *t, const sf_graph *graph, sf_plan *plan)
{
    const sf_plan *time = t->time, *space = t->space;
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        uint32_t of = t->arguments ? t->arguments[i] : i;
        if (!microbatch_layout(t, &time->arguments[of], &space->arguments[of], &plan->arguments[i]))
            plan->arguments[i] = microbatch_invariant;
    }
    for (uint32_t i = 0; i < graph->top->nresults; i++) {
        uint32_t of = t->results ? t->results[i] : i;
        if (!microbatch_layout(t, &time->results[of], &space->results[of], &plan->results[i]))
            plan->results[i] = microbatch_invariant;
    }
    if (t->held)
        empty_others(t, graph, plan);
}

/* The plan for the new step: layouts that were settled, and those that follow from them. */
static sf_status carry_plan(microbatching *t, sf_microbatched *out)
{
    const sf_plan *from = t->space;
    const sf_graph *graph = out->graph = t->b->local->graph;
    t->b->local->graph = NULL;
    sf_plan *plan = out->plan = sf_plan_of(graph, &from->mesh, from->graph);
    sf_plan_copy_loops(from, plan);
    bool *fixed = SF_ARRAY(&t->arena, graph->nnodes, bool);
    carry_ends(t, graph, plan);
    for (size_t i = 0; i < t->nsettled; i++) {
        const sf_node *node = graph->nodes[t->settled[i].node];
        plan->nodes[node->id] =
            sf_arena_copy(&plan->arena, t->settled[i].layouts,
                          (node->noperands + node->nresults) * sizeof(sf_layout));
        fixed[node->id] = true;
    }
    SF_TRY(sf_plan_propagate_around(graph, plan, fixed, t->b->diag));
    out->value_of = SF_ARRAY(&plan->arena, graph->nvalues, sf_value);
    for (sf_value v = 0; v < graph->nvalues; v++) {
        out->value_of[v] = v < t->b->npieces ? t->b->local->pieces[v].whole : SF_NONE;
        if (out->value_of[v] != SF_NONE)
            plan->pinned[v] = from->pinned[out->value_of[v]];
    }
    microbatch_note_origin(t, graph->nnodes, NULL);
    out->node_of = sf_arena_copy(&plan->arena, t->node_of, graph->nnodes * sizeof *out->node_of);
    return SF_OK;
}

void sf_microbatched_free(sf_microbatched *microbatched)
{
    sf_plan_free(microbatched->plan);
    sf_graph_free(microbatched->graph);
    *microbatched = (sf_microbatched){0};
}

sf_status microbatch_build(microbatching *t, sf_pool *pool, microbatch_build_fn *build,
                           void *context, sf_microbatched *out)
{
    *out = (sf_microbatched){0};
    sf_status status = microbatch_open(t);
    if (status == SF_OK) {
        sf_local *local = sf_alloc(sizeof *local);
        local_open(t->b, local, t->step, t->time, 0, pool, 0);
        status = build(context);
        if (status == SF_OK)
            status = carry_plan(t, out);
        local_close(t->b);
        local_free(local);
    }
    if (status != SF_OK)
        sf_microbatched_free(out);
    sf_plan_free(t->time);
    sf_arena_free(&t->arena);
    return status;
}
