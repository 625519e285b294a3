#include "local/time/stage_groups.h"

#include <string.h>

#include "ir/name.h"
#include "local/time/microbatch_builder.h"
#include "plan/pipeline/stage_flow.h"

/* A node of another set, and its replacement. */
typedef struct carried {
    uint32_t from, to;
} carried;

typedef struct grouping {
    microbatching *t;
    const sf_plan *plan; /* with all that it says of the axis */
    const sf_pipeline *pipeline;
    uint64_t set;
    uint32_t group;
    sf_arena *arena; /* of the stages */
    sf_stages *out;
    size_t count, capacity[3]; /* of the arrays of `out` */
    carried *others;
    size_t nothers, other_capacity;
} grouping;

static bool is_anywhere(const grouping *g, const sf_node *node)
{
    return g->pipeline->stages.anywhere[node->id];
}

static bool is_inside(const grouping *g, const sf_node *node)
{
    return !is_anywhere(g, node) && sf_pipeline_groups(g->pipeline, node->id) == g->set;
}

/* Whether the share is one over the groups of this set. */
static bool is_of_set(const grouping *g, sf_share share)
{
    bool all = g->set == sf_all_groups(g->pipeline->schedule.pipe.ngroups);
    return share.kind != SF_REPLICATED && share.on == (all ? 0 : g->set);
}

/* The plan along the axis */

static sf_layout layout_in_set(const grouping *g, const sf_layout *layout)
{
    sf_layout out = {0};
    sf_share share = layout->axes[g->pipeline->axis];
    if (is_of_set(g, share)) {
        out.axes[MICROBATCH_AXIS] = share;
        out.axes[MICROBATCH_AXIS].on = 0;
    }
    return out;
}

static sf_plan *plan_in_set(const grouping *g)
{
    const sf_graph *step = g->t->step;
    const sf_block *top = step->top;
    sf_mesh mesh = {1, {{SF_PIPE_AXIS, g->t->microbatches}}};
    sf_plan *out = sf_plan_of(step, &mesh, g->plan->graph);
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(step, i);
        for (uint32_t t = 0; t < node->noperands + node->nresults; t++)
            out->nodes[node->id][t] = layout_in_set(g, &g->plan->nodes[node->id][t]);
    }
    for (uint32_t i = 0; i < top->narguments; i++) {
        if (sf_pipeline_holders(g->pipeline, step, i) != g->set)
            continue;
        out->arguments[i] = layout_in_set(g, &g->plan->arguments[i]);
        if (step->arguments[i].next != SF_NONE)
            out->results[step->arguments[i].next] = out->arguments[i];
    }
    return out;
}

/* Stages of new nodes */

static void set_stage(grouping *g, uint32_t node, uint32_t stage, bool anywhere, bool late)
{
    while (g->count <= node) {
        size_t count = g->count, same = g->count;
        SF_PUSH(g->arena, g->out->of_node, count, g->capacity[0], 0);
        SF_PUSH(g->arena, g->out->anywhere, same, g->capacity[1], false);
        SF_PUSH(g->arena, g->out->late, g->count, g->capacity[2], false);
    }
    g->out->of_node[node] = stage;
    g->out->anywhere[node] = anywhere;
    g->out->late[node] = late;
}

static sf_status fail_outside(const grouping *g, sf_value value)
{
    const sf_node *maker = sf_maker(g->t->step, value);
    sf_buf name = {0};
    sf_status status = sf_fail(g->t->b->diag, SF_EINPUT, maker ? maker->loc : SF_NOWHERE,
                               "plan: %s is split over pipeline ranks that do not make it together",
                               sf_value_name(g->t->step, value, &name));
    sf_buf_free(&name);
    return status;
}

/* The first node of the set that reads a value, or a value that every reader makes from it; NULL:
 * none does. */
static const sf_node *first_reader(const grouping *g, sf_value value)
{
    const sf_graph *step = g->t->step;
    bool *follows = SF_ARRAY(&g->t->arena, step->nvalues, bool);
    follows[value] = true;
    for (uint32_t i = 0; i < step->top->nnodes; i++) {
        const sf_node *node = sf_top_node(step, i);
        bool reads = false;
        for (uint32_t o = 0; o < node->noperands; o++)
            reads = reads || follows[node->operands[o]];
        if (reads && is_inside(g, node))
            return node;
        for (uint32_t r = 0; r < node->nresults && reads && is_anywhere(g, node); r++)
            follows[node->result + r] = true;
    }
    return NULL;
}

/* The node to which the collective of a value belongs: its maker or, if every reader makes it, its
 * first reader. */
static const sf_node *who_brings(const grouping *g, sf_value source)
{
    const sf_node *maker = sf_maker(g->t->step, source);
    const sf_node *node = maker && is_anywhere(g, maker) ? first_reader(g, source) : maker;
    return node && is_inside(g, node) ? node : NULL;
}

/* A collective belongs to the maker of the value; if others read it, in the pass in which it was
 * made. */
static sf_status place_collective(grouping *g, const sf_resharding *reshard, sf_node *node)
{
    const sf_graph *step = g->t->step;
    sf_value source = sf_source_of(step, reshard->value);
    const sf_node *brings = who_brings(g, source);
    const sf_node *reader = reshard->wanted == SF_NONE ? NULL : step->nodes[reshard->wanted];
    bool is_argument = !sf_maker(step, source);
    uint32_t argument = step->values[source].index;
    if (is_argument ? sf_pipeline_holders(g->pipeline, step, argument) != g->set : !brings)
        return fail_outside(g, reshard->value);
    if (!reader || !is_inside(g, reader))
        node->phase = brings ? brings->phase : SF_FORWARD;
    uint32_t stage = is_argument ? g->pipeline->stages.of_argument[argument]
                                 : g->pipeline->stages.of_node[brings->id];
    set_stage(g, node->id, stage, false, false);
    return SF_OK;
}

static sf_status add_group_reshard(grouping *g, uint32_t index)
{
    local_builder *b = g->t->b;
    const sf_resharding *reshard = &b->reshards->reshards[index];
    uint32_t first = (uint32_t)b->graph->nnodes;
    local_make_reshard(b, index);
    local_value(b, reshard->to); /* in shape, before who reads it comes */
    for (uint32_t n = first; n < b->graph->nnodes; n++) {
        if (sf_is_collective(b->graph->nodes[n]))
            SF_TRY(place_collective(g, reshard, b->graph->nodes[n]));
        else
            set_stage(g, n, 0, true, false);
    }
    return SF_OK;
}

static bool is_of_other_set(const grouping *g, const sf_node *node)
{
    for (uint32_t t = 0; t < node->noperands + node->nresults; t++) {
        sf_share share = g->plan->nodes[node->id][t].axes[g->pipeline->axis];
        if (share.kind != SF_REPLICATED && !is_of_set(g, share))
            return true;
    }
    return false;
}

/* Only pipeline ranks that run a stage together may have it in shards; a value that every reader
 * makes may be, if they alone read it. */
static sf_status check_inside(const grouping *g, const sf_node *node)
{
    const sf_layout *layouts = g->t->time->nodes[node->id];
    for (uint32_t t = 0; t < node->noperands + node->nresults; t++)
        if (is_microbatched_layout(&layouts[t]) && !is_inside(g, node) && !is_anywhere(g, node))
            return fail_outside(g, node->nresults > 0 ? node->result : node->operands[0]);
    return SF_OK;
}

static sf_status add_group_node(grouping *g, const sf_node *node)
{
    local_builder *b = g->t->b;
    const sf_stages *stages = &g->pipeline->stages;
    uint32_t first = (uint32_t)b->graph->nnodes;
    SF_TRY(check_inside(g, node));
    SF_TRY(local_add_node(b, node));
    SF_TRY(microbatch_settle_same(g->t, node));
    for (uint32_t n = first; n < b->graph->nnodes; n++)
        set_stage(g, n, stages->of_node[node->id], is_anywhere(g, node), stages->late[node->id]);
    carried other = {node->id, (uint32_t)b->graph->nnodes - 1};
    if (is_of_other_set(g, node))
        SF_PUSH(g->arena, g->others, g->nothers, g->other_capacity, other);
    return SF_OK;
}

/* The step */

static sf_status build_grouped(void *context)
{
    grouping *g = context;
    local_builder *b = g->t->b;
    const sf_block *top = g->t->step->top;
    local_between between = {g->pipeline->axis, g->set};
    bool takes_part = g->set >> g->group & 1;
    b->between = &between;
    b->rank = takes_part ? sf_share_place((sf_share){.on = g->set}, (int)g->group) : 0;
    SF_TRY(local_prepare(b));
    local_add_arguments(b);
    for (size_t i = 0; i < b->reshards->nsteps; i++) {
        uint32_t index = b->reshards->steps[i].index;
        if (b->reshards->steps[i].is_reshard)
            SF_TRY(add_group_reshard(g, index));
        else
            SF_TRY(add_group_node(g, g->t->step->nodes[index]));
    }
    local_add_results(b);
    g->out->count = g->pipeline->stages.count;
    g->out->of_argument = sf_arena_copy(g->arena, g->pipeline->stages.of_argument,
                                        top->narguments * sizeof *g->out->of_argument);
    g->out->of_row = g->pipeline->stages.of_row;
    b->between = NULL;
    return SF_OK;
}

/* Splits of other sets stay as they were. */
static void carry_others(const grouping *g, sf_microbatched *out)
{
    const sf_block *top = g->t->step->top;
    int axis = g->pipeline->axis;
    for (size_t i = 0; i < g->nothers; i++) {
        const sf_node *node = g->t->step->nodes[g->others[i].from];
        for (uint32_t t = 0; t < node->noperands + node->nresults; t++)
            out->plan->nodes[g->others[i].to][t].axes[axis] =
                g->plan->nodes[node->id][t].axes[axis];
    }
    for (uint32_t i = 0; i < top->narguments; i++) {
        sf_share share = g->plan->arguments[i].axes[axis];
        if (is_of_set(g, share))
            share = (sf_share){.on = share.on};
        out->plan->arguments[i].axes[axis] = share;
        if (g->t->step->arguments[i].next != SF_NONE)
            out->plan->results[g->t->step->arguments[i].next].axes[axis] = share;
    }
}

/* The plan without its splits along the axis. */
static sf_plan *plan_beside(const sf_plan *plan, const sf_graph *graph, int axis)
{
    sf_plan *out = sf_plan_copy(plan, graph);
    sf_plan_forget_axis(out, graph, axis);
    memcpy(out->pinned, plan->pinned, graph->nvalues * sizeof *out->pinned);
    return out;
}

sf_status sf_groups_new(const sf_graph *graph, const sf_plan *plan, const sf_pipeline *pipeline,
                        uint64_t set, uint32_t group, sf_pool *pool, sf_arena *arena, sf_diag *diag,
                        sf_microbatched *out, sf_stages *stages)
{
    local_builder b = {.diag = diag};
    sf_plan *beside = plan_beside(plan, graph, pipeline->axis);
    microbatching t = {
        .b = &b, .step = graph, .space = beside, .microbatches = __builtin_popcountll(set)};
    grouping g = {.t = &t,
                  .plan = plan,
                  .pipeline = pipeline,
                  .set = set,
                  .group = group,
                  .arena = arena,
                  .out = stages};
    *stages = (sf_stages){0};
    t.time = plan_in_set(&g);
    t.is_of_groups = true;
    sf_status status = microbatch_build(&t, pool, build_grouped, &g, out);
    if (status == SF_OK)
        carry_others(&g, out);
    sf_plan_free(beside);
    return status;
}
