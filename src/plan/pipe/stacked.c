#include "plan/pipe/stacked.h"

#include "base/units.h"
#include "ir/name.h"
#include "ir/uses.h"
#include "op/op.h"

typedef struct stacking {
    const sf_graph *graph;
    const sf_pipeline *pipeline;
    sf_arena arena;
    sf_uses uses;
    uint64_t *workers; /* by value: the groups whose forward pass works with it */
} stacking;

/* Who works with what is made of a value alone, and not of the batch, works with the value. */
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
            groups = sf_pipeline_groups(s->pipeline, node->id);
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
        if ((find_slicers(s, i) & ~sf_pipeline_holders(s->pipeline, s->graph, i)) == 0)
            continue;
        out->first = out->count++ == 0 ? i : out->first;
        out->bytes += bytes;
    }
}

sf_stacked sf_find_stacked(const sf_graph *graph, const sf_pipeline *pipeline)
{
    stacking s = {.graph = graph, .pipeline = pipeline};
    sf_stacked out = {.first = SF_NONE};
    if (!pipeline)
        return out;
    s.uses = sf_uses_of(graph, &s.arena);
    find_workers(&s);
    count_stacks(&s, &out);
    sf_arena_free(&s.arena);
    return out;
}

void sf_warn_stacked(const sf_graph *graph, const sf_pipeline *pipeline, sf_diag *diag)
{
    sf_stacked stacked = sf_find_stacked(graph, pipeline);
    if (stacked.bytes * 4 < stacked.of || stacked.count == 0)
        return;
    sf_buf name = {0};
    const char *first = sf_value_name(graph, graph->top->arguments[stacked.first], &name);
    sf_warn(
        diag, SF_NOWHERE,
        "%u parameters, %s of %s, %s among them, are stacks of layers of several stages: each "
        "stands whole, with its optimizer state, in one group, and is sent from there each step",
        stacked.count, sf_text_bytes((double)stacked.bytes).at,
        sf_text_bytes((double)stacked.of).at, first);
    sf_hint(diag, "in a step with a tensor for each layer, a list in place of a stack, each stage "
                  "holds its own");
    sf_buf_free(&name);
}
