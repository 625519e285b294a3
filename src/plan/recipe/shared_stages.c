#include "plan/recipe/shared_stages.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ir/name.h"
#include "ir/uses.h"
#include "op/op.h"
#include "plan/propagate.h"
#include "plan/recipe/batch_dimension.h"
#include "plan/recipe/batch_rows.h"
#include "plan/recipe/parameter_pairs.h"
#include "shard/strategy.h"

typedef struct splitting {
    const sf_graph *graph;
    sf_plan *plan;
    const sf_pipeline *pipeline;
    sf_diag *diag;
    sf_arena arena;
    sf_uses uses;
    const char **names; /* by argument */
    uint64_t set;
    bool *inside; /* by node: its stage is on the set, or only such read it */
    sf_plan *own; /* the step as the set has it */
    size_t pin_capacity;
} splitting;

static bool is_held(const splitting *s, uint32_t argument)
{
    return sf_pipeline_holders(s->pipeline, s->graph, argument) == s->set;
}

static bool hands_on(const splitting *s, const sf_node *node)
{
    return s->pipeline->stages.anywhere[node->id] && sf_is_transparent(node);
}

/* Whether all readers of the value, through barriers, are inside. */
static bool is_read_inside(const splitting *s, sf_value value)
{
    for (uint32_t u = s->uses.first[value]; u < s->uses.first[value + 1]; u++) {
        sf_value_use use = s->uses.at[u];
        if (use.node == SF_NONE)
            return false;
        const sf_node *reader = s->graph->nodes[use.node];
        bool inside = hands_on(s, reader) ? is_read_inside(s, reader->result + use.operand)
                                          : s->inside[use.node];
        if (!inside)
            return false;
    }
    return true;
}

static void find_inside(splitting *s)
{
    const sf_block *top = s->graph->top;
    for (uint32_t i = top->nnodes; i-- > 0;) {
        const sf_node *node = sf_top_node(s->graph, i);
        bool inside = !s->pipeline->stages.anywhere[node->id] &&
                      sf_pipeline_groups(s->pipeline, node->id) == s->set;
        if (s->pipeline->stages.anywhere[node->id] && !sf_is_transparent(node)) {
            inside = true;
            for (uint32_t r = 0; r < node->nresults; r++)
                inside = inside && is_read_inside(s, node->result + r);
        }
        s->inside[node->id] = inside;
    }
}

/* Splits */

static void pin(splitting *s, uint32_t argument, const char *share, int axis)
{
    sf_buf text = {0};
    sf_pin new;
    size_t count = (size_t)s->own->npins;
    sf_buf_printf(&text, "/%s=%s@%s", s->names[argument], share, s->own->mesh.axes[axis].name);
    if (sf_pin_parse(text.text, &s->own->mesh, &s->own->arena, NULL, &new) == SF_OK)
        SF_PUSH(&s->own->arena, s->own->pins, count, s->pin_capacity, new);
    s->own->npins = (int)count;
    sf_buf_free(&text);
}

static int64_t held_bytes(const splitting *s, uint32_t argument)
{
    bool counts = s->graph->arguments[argument].role == SF_ROLE_PARAM && is_held(s, argument);
    return counts ? sf_type_bytes(sf_argument_type(s->graph, argument)) : 0;
}

static int64_t largest_held(const splitting *s)
{
    int64_t most = 1;
    for (uint32_t i = 0; i < s->graph->top->narguments; i++)
        most = held_bytes(s, i) > most ? held_bytes(s, i) : most;
    return most;
}

/* The largest dimension, where it splits. */
static int largest_dim(const sf_type *type, int64_t parts)
{
    int best = -1;
    for (int d = 0; d < type->rank; d++)
        if (best < 0 || type->dims[d] > type->dims[best])
            best = d;
    return best >= 0 && type->dims[best] > 0 && type->dims[best] % parts == 0 ? best : -1;
}

static bool splits_batch(const splitting *s, int axis)
{
    for (uint32_t i = 0; i < s->graph->top->narguments; i++)
        if (sf_is_handed_in(&s->graph->arguments[i]) &&
            s->plan->arguments[i].axes[axis].kind == SF_SPLIT)
            return true;
    return false;
}

/* By the dimension over the set, and over the other axes. */
static void pin_heavy(splitting *s, uint32_t argument)
{
    const sf_mesh *mesh = &s->own->mesh;
    const sf_type *type = sf_argument_type(s->graph, argument);
    int64_t parts = mesh->axes[s->pipeline->axis].size;
    int dim = largest_dim(type, parts);
    char share[32];
    if (dim < 0)
        return;
    snprintf(share, sizeof share, "S(%d)", dim);
    pin(s, argument, share, s->pipeline->axis);
    for (int a = 0; a < mesh->naxes; a++) {
        bool may = a != s->pipeline->axis && !splits_batch(s, a) &&
                   s->plan->arguments[argument].axes[a].kind == SF_REPLICATED;
        if (!may || type->dims[dim] % (parts * mesh->axes[a].size) != 0)
            continue;
        parts *= mesh->axes[a].size;
        pin(s, argument, share, a);
    }
}

static bool pin_parameters(splitting *s)
{
    int axis = s->pipeline->axis, before = s->own->npins;
    const int *pairs = sf_pair_dims(s->graph, s->own->mesh.axes[axis].size, &s->arena);
    int64_t most = largest_held(s);
    for (uint32_t i = 0; i < s->graph->top->narguments; i++) {
        int64_t bytes = held_bytes(s, i);
        char share[32];
        snprintf(share, sizeof share, "S(%d)", pairs[i]);
        if (bytes > 0 && pairs[i] >= 0)
            pin(s, i, share, axis);
        else if (2 * bytes >= most && sf_argument_type(s->graph, i)->rank > 1)
            pin_heavy(s, i);
    }
    return s->own->npins > before;
}

static void pin_batch(splitting *s)
{
    int axis = s->pipeline->axis, parts = s->own->mesh.axes[axis].size;
    for (uint32_t i = 0; i < s->graph->top->narguments; i++) {
        if (!sf_has_rows(s->graph, i))
            continue;
        sf_share share = sf_batch_share(s->graph, &s->uses, i, 0, parts);
        int64_t unit = sf_layout_period(&s->plan->arguments[i], &s->plan->mesh, s->plan->mesh.naxes,
                                        share.dim, share.period);
        char text[64];
        if (share.kind != SF_SPLIT || unit % ((int64_t)parts * s->plan->micro_batches) != 0)
            continue;
        snprintf(text, sizeof text, "S(%d,%" PRId64 ")", share.dim, unit);
        pin(s, i, text, axis);
    }
}

/* Taking over */

static void take_layout(const splitting *s, const sf_layout *from, sf_layout *to)
{
    bool all = s->set == sf_all_groups(s->pipeline->schedule.pipe.ngroups);
    sf_share *share = &to->axes[s->pipeline->axis];
    *to = *from;
    if (share->kind != SF_REPLICATED)
        share->on = all ? 0 : s->set;
}

static void take_node(splitting *s, const sf_node *node)
{
    uint32_t n = node->noperands;
    for (uint32_t t = 0; t < n + node->nresults; t++) {
        bool takes =
            hands_on(s, node) ? is_read_inside(s, node->result + t % n) : s->inside[node->id];
        if (takes)
            take_layout(s, &s->own->nodes[node->id][t], &s->plan->nodes[node->id][t]);
    }
}

static void take_argument(splitting *s, uint32_t argument)
{
    uint32_t next = s->graph->arguments[argument].next;
    bool all = s->set == sf_all_groups(s->pipeline->schedule.pipe.ngroups);
    take_layout(s, &s->own->arguments[argument], &s->plan->arguments[argument]);
    s->plan->arguments[argument].axes[s->pipeline->axis].on = all ? 0 : s->set;
    if (next != SF_NONE)
        s->plan->results[next] = s->plan->arguments[argument];
}

static sf_status split_set(splitting *s)
{
    const sf_block *top = s->graph->top;
    sf_mesh mesh = s->plan->mesh;
    mesh.axes[s->pipeline->axis].size = __builtin_popcountll(s->set);
    s->own = sf_plan_of(s->graph, &mesh, s->plan->graph);
    s->pin_capacity = 0;
    for (int p = 0; p < s->plan->npins; p++) {
        size_t count = (size_t)s->own->npins;
        SF_PUSH(&s->own->arena, s->own->pins, count, s->pin_capacity, s->plan->pins[p]);
        s->own->npins = (int)count;
    }
    s->own->nrules = s->plan->nrules;
    if (!pin_parameters(s))
        pin_batch(s);
    SF_TRY(sf_plan_propagate(s->graph, s->own, s->diag));
    find_inside(s);
    for (uint32_t i = 0; i < top->nnodes; i++)
        take_node(s, sf_top_node(s->graph, i));
    for (uint32_t i = 0; i < top->narguments; i++)
        if (is_held(s, i))
            take_argument(s, i);
    return SF_OK;
}

sf_status sf_plan_split_sets(const sf_graph *graph, sf_plan *plan, sf_diag *diag)
{
    splitting s = {.graph = graph, .plan = plan, .pipeline = plan->pipeline, .diag = diag};
    uint64_t *sets = SF_ARRAY(&s.arena, plan->pipeline->schedule.pipe.nstages, uint64_t);
    uint32_t count = sf_pipeline_sets(plan->pipeline, sets);
    sf_status status = SF_OK;
    if (count > 0) {
        s.uses = sf_uses_of(graph, &s.arena);
        s.names = sf_clean_names(graph, &s.arena);
        s.inside = SF_ARRAY(&s.arena, graph->nnodes, bool);
    }
    for (uint32_t i = 0; i < count && status == SF_OK; i++) {
        s.set = sets[i];
        status = split_set(&s);
        sf_plan_free(s.own);
        s.own = NULL;
    }
    sf_arena_free(&s.arena);
    return status;
}
