#include <string.h>

#include "base/mem.h"
#include "local/time/microbatch_builder.h"
#include "plan/propagate.h"

/* The share of a dimension from which the turns took a digit. */
static bool share_in_turn(const turning *t, sf_share turn, sf_share *share, int parts)
{
    int64_t unit = turn.period / t->turns;
    if (share->kind != SF_SPLIT || turn.kind != SF_SPLIT || turn.dim != share->dim ||
        share->period <= unit)
        return true;
    if (share->period / parts % turn.period != 0)
        return false;
    share->period /= t->turns;
    return true;
}

/* How a rank has what a turn has of a tensor; false where the two do not go together. */
bool turn_layout(const turning *t, const sf_layout *time, const sf_layout *space, sf_layout *out)
{
    const sf_mesh *mesh = &t->space->mesh;
    *out = *space;
    for (int a = 0; a < mesh->naxes; a++)
        if (!share_in_turn(t, time->axes[TURN_AXIS], &out->axes[a], mesh->axes[a].size))
            return false;
    return true;
}

void turn_settle(turning *t, const sf_node *node, const sf_layout *layouts)
{
    turn_settled s = {.node = node->id};
    s.layouts =
        sf_arena_copy(&t->arena, layouts, (node->noperands + node->nresults) * sizeof *layouts);
    SF_PUSH(&t->arena, t->settled, t->nsettled, t->settled_capacity, s);
}

void turn_note_origin(turning *t, size_t first, const sf_node *node)
{
    const sf_graph *graph = t->b->graph;
    while (t->nnode_of < graph->nnodes)
        SF_PUSH(&t->arena, t->node_of, t->nnode_of, t->node_of_capacity, SF_NONE);
    for (size_t n = first; n < graph->nnodes && node; n++)
        t->node_of[n] = node->id;
}

/* Whether `added` is the op of the node on pieces; one with regions takes the turn as well, as its last operand. */
static bool is_same_op(const sf_node *added, const sf_node *node)
{
    uint32_t more = added->noperands - node->noperands;
    return added->def == node->def && added->nresults == node->nresults &&
           (more == 0 || (more == 1 && added->nregions > 0));
}

/* How `added` is laid out, whose node is so in turns and on ranks; false where the two do not go together. */
static bool layouts_of_same(const turning *t, const sf_node *added, const sf_node *node,
                            const sf_layout *time, const sf_layout *space, sf_layout *out)
{
    uint32_t more = added->noperands - node->noperands;
    for (uint32_t i = 0; i < node->noperands + node->nresults; i++)
        if (!turn_layout(t, &time[i], &space[i], &out[i < node->noperands ? i : i + more]))
            return false;
    return true;
}

static sf_layout *new_layouts(turning *t, const sf_node *added)
{
    return SF_ARRAY(&t->arena, added->noperands + added->nresults, sf_layout);
}

static void settle_regions(turning *t, const sf_local *local, const sf_node *piece_of,
                           const sf_node *node, const sf_node *added);

/* The node that an op in a region stands for, of the region as a step: NULL where it is part of a move. */
static const sf_node *op_behind(const sf_inner *inner, const sf_node *piece)
{
    if (piece->nresults == 0)
        return NULL;
    const sf_piece *made = &inner->local->pieces[piece->result];
    const sf_node *node =
        made->whole == SF_NONE || made->moved ? NULL : sf_maker(inner->plan.graph, made->whole);
    return node && node->result == made->whole && is_same_op(piece, node) ? node : NULL;
}

/* What stands in a region of a node that was added, where it is known how that stands in the step. Regions are copied in
 * order: as a step, in which numbers are places in it, and back. */
static void settle_region(turning *t, const sf_inner *inner, const sf_block *block,
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
        turn_settle(t, added, layouts);
        settle_regions(t, inner->local, piece_of, node, added);
    }
}

/* In the regions of `added`, of which `local` has the plans, under the node of its own step: the last ones, where that was
 * added for several turns. */
static void settle_regions(turning *t, const sf_local *local, const sf_node *piece_of,
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

/* What was just added for a node of the step: where it is the same op, it is laid out like it, as is what stands in it. */
sf_status turn_settle_same(turning *t, const sf_node *node)
{
    if (node->nresults == 0)
        return SF_OK;
    sf_value value = t->b->versions[t->b->moves->made[node->result]].value;
    const sf_node *added = sf_maker(t->b->graph, value);
    if (!added || !is_same_op(added, node))
        return SF_OK;
    sf_layout *layouts = new_layouts(t, added);
    if (!layouts_of_same(t, added, node, t->time->nodes[node->id], t->space->nodes[node->id],
                         layouts)) {
        if (t->recipe || t->is_of_groups) /* both want the same digit: how it is laid out follows */
            return SF_OK;
        sf_fail(t->b->diag, SF_EWRONG, node->loc,
                "micro-batches: what a rank has of the batch does not split into %d equal parts",
                t->turns);
        return sf_hint(t->b->diag, "take fewer turns, or fewer ranks along the batch");
    }
    turn_settle(t, added, layouts);
    settle_regions(t, t->b->local, node, node, added);
    return SF_OK;
}

void turn_add_barrier(turning *t, const sf_node *node, uint32_t result)
{
    local_builder *b = t->b;
    uint32_t count, made = b->moves->made[node->result + result];
    const uint32_t *reads = turn_reads(t, node->id, &count);
    if (b->versions[made].value != SF_NONE)
        return;
    sf_value value = local_value(b, reads[result]);
    local_note_place(b, node, node->phase);
    value = emit_op(b, SF_OP_OPTIMIZATION_BARRIER, 1, &value, NULL, sf_type_of(b->graph, value));
    local_set(b, made, value);
    sf_layout layouts[2];
    if (turn_layout(t, &t->time->nodes[node->id][result], &t->space->nodes[node->id][result],
                    &layouts[0])) {
        layouts[1] = layouts[0];
        turn_settle(t, sf_maker(b->graph, value), layouts);
    }
}

/* Parts that are added stay parts when more is added to them. What is put together otherwise, a maximum, is reduced over
 * ranks first: no op takes it in parts. */
static sf_layout layout_to_join(const turning *t, sf_value value)
{
    sf_layout layout = *sf_plan_layout(t->space, t->step, value);
    for (int a = 0; a < t->space->mesh.naxes; a++)
        if (layout.axes[a].kind == SF_PARTIAL && layout.axes[a].monoid != SF_MONOID_ADD)
            layout.axes[a] = (sf_share){0};
    return layout;
}

/* How all who read a sum behind the loop want it, where that is in pieces; else as it is made. */
static sf_layout layout_of_sum(const turning *t, sf_value value)
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
    return sf_piece_bytes(type, &wanted, mesh) < sf_piece_bytes(type, &made, mesh) ? wanted : made;
}

/* How a value stands that leaves the loop, in each turn and behind it. Sums that are wanted in pieces are held so, and
 * reduced in each turn: who splits gradients has no room for whole ones. */
sf_layout turn_landing_layout(const turning *t, const turn_landing *l)
{
    const sf_moving *move = &t->b->moves->moves[l->move];
    sf_layout out =
        l->is_sum ? layout_of_sum(t, move->value) : *sf_plan_layout(t->space, t->step, move->value);
    sf_layout piece;
    if (l->is_sum || !turn_layout(t, t->b->moves->versions[move->from].layout, &out, &piece))
        return l->is_sum ? out : turn_still;
    const sf_type *type = sf_type_of(t->step, move->value);
    if (l->type->rank != type->rank + 1)
        return turn_still;
    for (int a = 0; a < t->space->mesh.naxes; a++)
        if (piece.axes[a].kind == SF_SPLIT)
            piece.axes[a].dim++;
    return piece;
}

/* What other groups hold is empty here. */
static void empty_others(const turning *t, const sf_graph *graph, sf_plan *plan)
{
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        if (t->held[t->arguments[i]])
            continue;
        plan->arguments[i] = turn_still;
        if (graph->arguments[i].next != SF_NONE)
            plan->results[graph->arguments[i].next] = turn_still;
    }
}

/* Arguments come, and results go, as those of the step do. */
static void carry_ends(const turning *t, const sf_graph *graph, sf_plan *plan)
{
    const sf_plan *time = t->time, *space = t->space;
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        uint32_t of = t->arguments ? t->arguments[i] : i;
        if (!turn_layout(t, &time->arguments[of], &space->arguments[of], &plan->arguments[i]))
            plan->arguments[i] = turn_still;
    }
    for (uint32_t i = 0; i < graph->top->nresults; i++) {
        uint32_t of = t->results ? t->results[i] : i;
        if (!turn_layout(t, &time->results[of], &space->results[of], &plan->results[i]))
            plan->results[i] = turn_still;
    }
    if (t->held)
        empty_others(t, graph, plan);
}

/* The plan for what was built: layouts that were settled, and what follows from them. */
static sf_status carry_plan(turning *t, sf_turned *out)
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
    SF_TRY(sf_plan_complete_around(graph, plan, fixed, t->b->diag));
    out->value_of = SF_ARRAY(&plan->arena, graph->nvalues, sf_value);
    for (sf_value v = 0; v < graph->nvalues; v++) {
        out->value_of[v] = v < t->b->npieces ? t->b->local->pieces[v].whole : SF_NONE;
        if (out->value_of[v] != SF_NONE)
            plan->pinned[v] = from->pinned[out->value_of[v]];
    }
    turn_note_origin(t, graph->nnodes, NULL);
    out->node_of = sf_arena_copy(&plan->arena, t->node_of, graph->nnodes * sizeof *out->node_of);
    return SF_OK;
}

void sf_turned_free(sf_turned *turned)
{
    sf_plan_free(turned->plan);
    sf_graph_free(turned->graph);
    *turned = (sf_turned){0};
}

sf_status turn_build(turning *t, sf_pool *pool, turn_building *build, void *context, sf_turned *out)
{
    *out = (sf_turned){0};
    sf_status status = turn_open(t);
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
        sf_turned_free(out);
    sf_plan_free(t->time);
    sf_arena_free(&t->arena);
    return status;
}
