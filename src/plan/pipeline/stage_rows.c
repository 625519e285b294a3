/* Stages of a step with stacks of layers: those of the same step with a tensor for each layer.
 *
 * There, the rules of plan/pipeline/stage.h determine the stage of each row, and gradients are
 * bound to the stage of their row and not to that of the first. An op on all rows at once is in the
 * stage of the first of them. */
#include "plan/pipeline/stage_builder.h"
#include "plan/pipeline/unstack_layers.h"

typedef struct by_rows {
    const sf_graph *graph;
    sf_stacks stacks;
    sf_unstacked rows;
    sf_arena scratch;
} by_rows;

static void split_by_row(by_rows *b)
{
    sf_row_split *splits = SF_ARRAY(&b->scratch, b->stacks.count, sf_row_split);
    for (uint32_t s = 0; s < b->stacks.count; s++) {
        uint32_t *of_row = SF_ARRAY(&b->scratch, b->stacks.rows[s], uint32_t);
        for (int64_t row = 0; row < b->stacks.rows[s]; row++)
            of_row[row] = (uint32_t)row;
        splits[s] = (sf_row_split){(uint32_t)b->stacks.rows[s], of_row};
    }
    sf_pool *pool = sf_pool_derive(b->graph->pool);
    sf_unstack(b->graph, &b->stacks, splits, pool, &b->rows);
    sf_pool_release(pool);
}

/* The stack that the node makes a part of, or SF_NONE. */
static uint32_t stack_of_node(const by_rows *b, const sf_node *node)
{
    for (uint32_t r = 0; r < node->nresults; r++)
        if (b->stacks.of_value[node->result + r] != SF_NONE)
            return b->stacks.of_value[node->result + r];
    return SF_NONE;
}

/* Of parts of stacks nothing is said: they go with who reads them. */
static uint32_t *forward_by_row(by_rows *b, const uint32_t *forward)
{
    const sf_graph *rows = b->rows.graph;
    uint32_t *out = SF_ARRAY(&b->scratch, rows->nnodes, uint32_t);
    for (uint32_t n = 0; n < rows->nnodes; n++) {
        uint32_t of = b->rows.nodes[n].index;
        out[n] = stack_of_node(b, b->graph->nodes[of]) == SF_NONE ? forward[of] : SF_NONE;
    }
    return out;
}

static void lower_to(uint32_t *stage, uint32_t other)
{
    *stage = other < *stage ? other : *stage;
}

/* By stack and row: the first stage of a parameter's row. The other tensors of the stack go with
 * that. */
static uint32_t **find_rows(const by_rows *b, const sf_stages *rows, sf_arena *arena)
{
    uint32_t **of_row = SF_ARRAY(arena, b->stacks.count, uint32_t *);
    for (uint32_t s = 0; s < b->stacks.count; s++) {
        of_row[s] = SF_ARRAY(arena, b->stacks.rows[s], uint32_t);
        for (int64_t row = 0; row < b->stacks.rows[s]; row++)
            of_row[s][row] = SF_NONE;
    }
    for (uint32_t i = 0; i < b->rows.graph->top->narguments; i++) {
        sf_unstacked_of of = b->rows.arguments[i];
        if (of.stack != SF_NONE && b->graph->arguments[of.index].role == SF_ROLE_PARAM)
            lower_to(&of_row[of.stack][of.part], rows->of_argument[i]);
    }
    return of_row;
}

/* Returns the first stage that has a row of each stack. */
static const uint32_t *take_arguments(by_rows *b, const sf_stages *rows, sf_arena *arena,
                                      sf_stages *out)
{
    const sf_block *top = b->graph->top;
    uint32_t **of_row = find_rows(b, rows, arena);
    uint32_t *first = SF_ARRAY(&b->scratch, b->stacks.count, uint32_t);
    for (uint32_t i = 0; i < b->rows.graph->top->narguments; i++)
        out->of_argument[b->rows.arguments[i].index] = rows->of_argument[i];
    for (uint32_t i = 0; i < top->narguments; i++) {
        uint32_t stack = b->stacks.of_value[top->arguments[i]];
        if (stack == SF_NONE)
            continue;
        out->of_row[i] = of_row[stack];
        out->of_argument[i] = SF_NONE;
        for (int64_t row = 0; row < b->stacks.rows[stack]; row++)
            lower_to(&out->of_argument[i], of_row[stack][row]);
        first[stack] = out->of_argument[i];
    }
    return first;
}

/* From the stages of rows to those of the step. */
static void take_stages(by_rows *b, const sf_stages *rows, sf_arena *arena, sf_stages *out)
{
    const sf_graph *graph = b->graph;
    *out = (sf_stages){.count = rows->count,
                       .of_node = SF_ARRAY(arena, graph->nnodes, uint32_t),
                       .anywhere = sf_find_anywhere(graph, arena),
                       .late = sf_find_late(graph, arena),
                       .of_argument = SF_ARRAY(arena, graph->top->narguments, uint32_t),
                       .of_row = SF_ARRAY(arena, graph->top->narguments, uint32_t *)};
    for (uint32_t n = 0; n < graph->nnodes; n++)
        out->of_node[n] = SF_NONE;
    for (uint32_t n = 0; n < b->rows.graph->nnodes; n++)
        lower_to(&out->of_node[b->rows.nodes[n].index], rows->of_node[n]);
    const uint32_t *first = take_arguments(b, rows, arena, out);
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        uint32_t stack = stack_of_node(b, node);
        if (stack != SF_NONE)
            out->of_node[node->id] = first[stack];
    }
    sf_stage_regions(graph, out->of_node);
}

sf_status sf_stages_complete(const sf_graph *graph, uint32_t count, const uint32_t *forward,
                             sf_arena *arena, sf_diag *diag, sf_stages *out)
{
    by_rows b = {.graph = graph};
    sf_stages rows;
    b.stacks = sf_find_stacks(graph, &b.scratch);
    if (b.stacks.count == 0) {
        sf_arena_free(&b.scratch);
        return sf_stages_complete_whole(graph, count, forward, arena, diag, out);
    }
    split_by_row(&b);
    sf_status status = sf_stages_complete_whole(b.rows.graph, count, forward_by_row(&b, forward),
                                                &b.scratch, diag, &rows);
    if (status == SF_OK)
        take_stages(&b, &rows, arena, out);
    sf_unstacked_free(&b.rows);
    sf_arena_free(&b.scratch);
    return status;
}
