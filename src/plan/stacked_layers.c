#include "plan/stacked_layers.h"

#include "base/units.h"
#include "ir/name.h"
#include "ir/uses.h"
#include "op/op.h"

static bool splits_rows(const sf_layout *layout)
{
    for (int a = 0; a < SF_MAX_AXES; a++)
        if (layout->axes[a].kind == SF_SPLIT && layout->axes[a].dim == 0)
            return true;
    return false;
}

/* By stack: its rows are whole, wherever it is made or read. */
static bool *find_whole(const sf_plan *plan, const sf_graph *graph, const sf_stacks *stacks,
                        sf_arena *arena)
{
    const sf_block *top = graph->top;
    bool *whole = SF_ARRAY(arena, stacks->count, bool);
    for (uint32_t s = 0; s < stacks->count; s++)
        whole[s] = true;
    for (uint32_t i = 0; i < top->narguments; i++) {
        uint32_t stack = stacks->of_value[top->arguments[i]];
        if (stack != SF_NONE && splits_rows(&plan->arguments[i]))
            whole[stack] = false;
    }
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        for (uint32_t t = 0; t < node->noperands + node->nresults; t++) {
            sf_value value =
                t < node->noperands ? node->operands[t] : node->result + (t - node->noperands);
            uint32_t stack = stacks->of_value[value];
            if (stack != SF_NONE && splits_rows(&plan->nodes[node->id][t]))
                whole[stack] = false;
        }
    }
    return whole;
}

/* Who has which row of an argument; NULL where one group has all, or several together have one. */
static const sf_row_partition *partition_argument(sf_plan *plan, const sf_graph *graph,
                                                  uint32_t argument)
{
    const sf_pipeline *pipeline = plan->pipeline;
    const uint32_t *of_row = pipeline->stages.of_row[argument];
    int64_t count = sf_argument_type(graph, argument)->dims[0];
    uint8_t *to = SF_ARRAY(&plan->arena, count, uint8_t);
    for (int64_t row = 0; row < count; row++) {
        uint64_t hosts = sf_pipe_hosts(&pipeline->schedule.pipe, of_row[row], 0);
        if (sf_is_several(hosts))
            return NULL;
        to[row] = (uint8_t)__builtin_ctzll(hosts);
    }
    const sf_row_partition *partition = sf_row_partition_new(count, to, &plan->arena);
    return sf_is_several(sf_row_partition_owners(partition)) ? partition : NULL;
}

void sf_plan_partition_stacks(sf_plan *plan, const sf_graph *graph)
{
    const sf_block *top = graph->top;
    sf_arena scratch = {0};
    sf_stacks stacks = sf_find_stacks(graph, &scratch);
    const bool *whole = find_whole(plan, graph, &stacks, &scratch);
    for (uint32_t i = 0; i < top->narguments; i++) {
        uint32_t stack = stacks.of_value[top->arguments[i]], next = graph->arguments[i].next;
        const sf_row_partition *partition =
            stack != SF_NONE && whole[stack] ? partition_argument(plan, graph, i) : NULL;
        sf_share share = {.on = partition ? sf_row_partition_owners(partition) : 0,
                          .partition = partition};
        if (!partition)
            continue;
        plan->arguments[i].axes[plan->pipeline->axis] = share;
        if (next != SF_NONE)
            plan->results[next].axes[plan->pipeline->axis] = share;
    }
    sf_arena_free(&scratch);
}

const sf_row_partition *sf_plan_row_partition_of(const sf_plan *plan, const sf_graph *graph,
                                                 const sf_stacks *stacks, uint32_t stack)
{
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        if (stacks->of_value[graph->top->arguments[i]] == stack)
            return plan->arguments[i].axes[plan->pipeline->axis].partition;
    return NULL;
}

/* Tensors that are not distributed */

typedef struct stacking {
    const sf_graph *graph;
    const sf_plan *plan;
    sf_arena arena;
    sf_uses uses;
    uint64_t *workers; /* by value: the groups whose forward pass works with it */
} stacking;

/* A reader of values of a tensor alone, and not of the batch, is a reader of the tensor. */
static void find_workers(stacking *s)
{
    const bool *moving = sf_find_moving(s->graph, &s->arena);
    s->workers = SF_ARRAY(&s->arena, s->graph->nvalues, uint64_t);
    for (uint32_t i = s->graph->top->nnodes; i-- > 0;) {
        const sf_node *node = sf_top_node(s->graph, i);
        uint64_t groups = 0;
        if (node->phase != SF_FORWARD)
            continue;
        if (moving[node->id])
            groups = sf_pipeline_groups(s->plan->pipeline, node->id);
        for (uint32_t r = 0; r < node->nresults && !moving[node->id]; r++)
            groups |= s->workers[node->result + r];
        for (uint32_t o = 0; o < node->noperands; o++)
            s->workers[node->operands[o]] |= groups;
    }
}

/* The groups that work with slices of the argument. */
static uint64_t find_slicers(const stacking *s, uint32_t argument)
{
    sf_value value = s->graph->top->arguments[argument];
    uint64_t groups = 0;
    for (uint32_t u = s->uses.first[value]; u < s->uses.first[value + 1]; u++) {
        uint32_t reader = s->uses.at[u].node;
        if (reader != SF_NONE && sf_is(s->graph->nodes[reader], SF_OP_SLICE))
            groups |= s->workers[s->graph->nodes[reader]->result];
    }
    return groups;
}

static void count_stacks(const stacking *s, sf_stacked *out)
{
    for (uint32_t i = 0; i < s->graph->top->narguments; i++) {
        if (s->graph->arguments[i].role != SF_ROLE_PARAM)
            continue;
        int64_t bytes = sf_type_bytes(sf_argument_type(s->graph, i));
        out->of += bytes;
        if (s->plan->arguments[i].axes[s->plan->pipeline->axis].partition ||
            (find_slicers(s, i) & ~sf_pipeline_holders(s->plan->pipeline, s->graph, i)) == 0)
            continue;
        out->first = out->count++ == 0 ? i : out->first;
        out->bytes += bytes;
    }
}

sf_stacked sf_find_stacked(const sf_graph *graph, const sf_plan *plan)
{
    stacking s = {.graph = graph, .plan = plan};
    sf_stacked out = {.first = SF_NONE};
    if (!plan->pipeline)
        return out;
    s.uses = sf_uses_of(graph, &s.arena);
    find_workers(&s);
    count_stacks(&s, &out);
    sf_arena_free(&s.arena);
    return out;
}

void sf_warn_stacked(const sf_graph *graph, const sf_plan *plan, sf_diag *diag)
{
    sf_stacked stacked = sf_find_stacked(graph, plan);
    if (stacked.bytes * 4 < stacked.of || stacked.count == 0)
        return;
    sf_buf name = {0};
    const char *first = sf_value_name(graph, graph->top->arguments[stacked.first], &name);
    sf_warn(diag, SF_NOWHERE,
            "%u parameters, %s of %s, %s among them, are stacks of layers of several stages: each "
            "is whole, with its optimizer state, on one pipeline rank, and is sent from there each "
            "step",
            stacked.count, sf_text_bytes((double)stacked.bytes).at,
            sf_text_bytes((double)stacked.of).at, first);
    sf_hint(diag, "in a step with a tensor for each layer, a list in place of a stack, each stage "
                  "holds its own");
    sf_buf_free(&name);
}
