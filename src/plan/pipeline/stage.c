#include "plan/pipeline/stage.h"

#include "ir/name.h"
#include "op/flops.h"
#include "op/op.h"
#include "plan/pipeline/stage_builder.h"

/* The forward pass */

static bool is_forward(const sf_staging *s, const sf_node *node)
{
    return node->phase == SF_FORWARD && !s->anywhere[node->id];
}

static sf_status fail_order(const sf_staging *s, const sf_node *node, sf_value read, sf_diag *diag)
{
    sf_buf name = {0}, from = {0};
    sf_status status =
        sf_fail(diag, SF_EUSAGE, node->loc,
                "stages: %s is said to be in stage %u, but reads %s of stage %u",
                sf_value_name(s->graph, node->result, &name), s->stage[node->id],
                sf_value_name(s->graph, read, &from), s->stage[s->graph->values[read].node]);
    sf_buf_free(&name);
    sf_buf_free(&from);
    return status;
}

/* The last stage of the node's operands, and that operand; SF_NONE if none is known. */
static uint32_t find_earliest(const sf_staging *s, const sf_node *node, sf_value *read)
{
    uint32_t last = SF_NONE;
    for (uint32_t o = 0; o < node->noperands; o++) {
        const sf_node *maker = sf_staged_maker(s, sf_read_of(s, node, o));
        uint32_t stage = maker ? s->stage[maker->id] : SF_NONE;
        if (stage == SF_NONE || (last != SF_NONE && stage <= last))
            continue;
        last = stage;
        *read = sf_read_of(s, node, o);
    }
    return last;
}

/* The first stage whose forward pass reads the node's results. */
static uint32_t find_first_reader(const sf_staging *s, sf_value value)
{
    uint32_t first = SF_NONE;
    for (uint32_t u = s->flow.uses.first[value]; u < s->flow.uses.first[value + 1]; u++) {
        uint32_t reader = s->flow.uses.at[u].node;
        if (reader != SF_NONE && is_forward(s, s->graph->nodes[reader]) && s->stage[reader] < first)
            first = s->stage[reader];
    }
    return first;
}

static sf_status stage_forward(sf_staging *s, const uint32_t *said, sf_diag *diag)
{
    const sf_block *top = s->graph->top;
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(s->graph, i);
        if (!is_forward(s, node))
            continue;
        sf_value read = 0;
        uint32_t earliest = find_earliest(s, node, &read);
        if (said[node->id] != SF_NONE && said[node->id] >= s->count)
            return sf_fail(diag, SF_EUSAGE, node->loc, "stages: there is no stage %u of %u",
                           said[node->id], s->count);
        s->stage[node->id] = said[node->id] == SF_NONE ? earliest : said[node->id];
        if (earliest != SF_NONE && s->stage[node->id] < earliest)
            return fail_order(s, node, read, diag);
    }
    for (uint32_t i = top->nnodes; i-- > 0;) {
        const sf_node *node = sf_top_node(s->graph, i);
        if (!is_forward(s, node) || s->stage[node->id] != SF_NONE)
            continue;
        uint32_t first = SF_NONE;
        for (uint32_t r = 0; r < node->nresults; r++) {
            uint32_t stage = find_first_reader(s, node->result + r);
            first = stage < first ? stage : first;
        }
        s->stage[node->id] = first == SF_NONE ? 0 : first;
    }
    return SF_OK;
}

static void own_forward(sf_staging *s)
{
    const sf_block *top = s->graph->top;
    for (uint32_t i = 0; i < top->narguments; i++)
        s->owner[i] = sf_is_handed_in(&s->graph->arguments[i])
                          ? SF_NONE
                          : find_first_reader(s, top->arguments[i]);
}

static bool narrows(const sf_staging *s, const sf_node *node)
{
    return sf_is(node, SF_OP_CONVERT) && sf_type_bytes(sf_type_of(s->graph, node->result)) <
                                             sf_type_bytes(sf_type_of(s->graph, node->operands[0]));
}

/* Whether the stage reads the parameter for something else than to convert it to fewer bits. */
static bool reads_whole(const sf_staging *s, sf_value parameter, uint32_t stage)
{
    for (uint32_t u = s->flow.uses.first[parameter]; u < s->flow.uses.first[parameter + 1]; u++) {
        const sf_node *node =
            s->flow.uses.at[u].node == SF_NONE ? NULL : s->graph->nodes[s->flow.uses.at[u].node];
        if (node && s->stage[node->id] == stage && is_forward(s, node) && !narrows(s, node))
            return true;
    }
    return false;
}

/* A parameter of an earlier stage is sent in the type in which it is read. */
static void narrow_forward(sf_staging *s)
{
    for (uint32_t i = 0; i < s->graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(s->graph, i);
        if (!is_forward(s, node) || !narrows(s, node))
            continue;
        sf_value parameter = sf_read_of(s, node, 0);
        const sf_value_info *info = &s->graph->values[parameter];
        if (info->node == SF_NONE && s->owner[info->index] != SF_NONE &&
            !reads_whole(s, parameter, s->stage[node->id]))
            s->stage[node->id] = s->owner[info->index];
    }
}

typedef struct hand_list {
    size_t count, capacity;
} hand_list;

/* Adds a stage to those of the value that is listed. */
static void add_hand(sf_staging *s, hand_list *list, sf_value value, uint32_t stage)
{
    for (uint32_t k = s->hand.first[value]; k < list->count; k++)
        if (s->hand.at[k] == stage)
            return;
    SF_PUSH(s->arena, s->hand.at, list->count, list->capacity, stage);
}

/* Stages that have the results of a cheap node count as having its operands. */
static void add_hands_of(sf_staging *s, hand_list *list, sf_value value, const sf_node *node)
{
    for (uint32_t r = 0; r < node->nresults; r++)
        for (uint32_t k = s->hand.first[node->result + r]; k < s->hand.end[node->result + r]; k++)
            add_hand(s, list, value, s->hand.at[k]);
}

static void find_hand(sf_staging *s, hand_list *list, const bool *moving, sf_value value)
{
    const sf_node *maker = sf_staged_maker(s, value);
    s->hand.first[value] = (uint32_t)list->count;
    if (maker && maker->phase == SF_FORWARD)
        add_hand(s, list, value, s->stage[maker->id]);
    for (uint32_t u = s->flow.uses.first[value]; u < s->flow.uses.first[value + 1]; u++) {
        uint32_t reader = s->flow.uses.at[u].node;
        if (reader == SF_NONE || !is_forward(s, s->graph->nodes[reader]))
            continue;
        add_hand(s, list, value, s->stage[reader]);
        if (!moving[reader])
            add_hands_of(s, list, value, s->graph->nodes[reader]);
    }
    s->hand.end[value] = (uint32_t)list->count;
}

/* From the last node to the first, so that readers come before their operands. */
static void find_at_hand(sf_staging *s)
{
    const sf_block *top = s->graph->top;
    const bool *moving = sf_find_moving(s->graph, s->arena);
    hand_list list = {0};
    s->hand.first = SF_ARRAY(s->arena, s->graph->nvalues, uint32_t);
    s->hand.end = SF_ARRAY(s->arena, s->graph->nvalues, uint32_t);
    for (uint32_t i = top->nnodes; i-- > 0;) {
        const sf_node *node = sf_top_node(s->graph, i);
        for (uint32_t r = 0; r < node->nresults && is_forward(s, node); r++)
            find_hand(s, &list, moving, node->result + r);
    }
    for (uint32_t i = 0; i < top->narguments; i++)
        if (!sf_is_handed_in(&s->graph->arguments[i]))
            find_hand(s, &list, moving, top->arguments[i]);
}

/* Remaining nodes */

/* The stage of the first in order that reads it. */
static uint32_t find_first_use(const sf_staging *s, sf_value value)
{
    for (uint32_t u = s->flow.uses.first[value]; u < s->flow.uses.first[value + 1]; u++)
        if (s->flow.uses.at[u].node != SF_NONE)
            return s->stage[s->flow.uses.at[u].node];
    return SF_NONE;
}

static void stage_anywhere(sf_staging *s)
{
    const sf_block *top = s->graph->top;
    for (uint32_t i = top->nnodes; i-- > 0;) {
        const sf_node *node = sf_top_node(s->graph, i);
        if (!s->anywhere[node->id])
            continue;
        for (uint32_t r = 0; r < node->nresults && s->stage[node->id] == SF_NONE; r++)
            s->stage[node->id] = find_first_use(s, s->flow.source[node->result + r]);
        if (s->stage[node->id] == SF_NONE)
            s->stage[node->id] = 0;
    }
    for (uint32_t i = 0; i < top->narguments; i++) {
        if (s->owner[i] == SF_NONE)
            s->owner[i] = find_first_use(s, top->arguments[i]);
        if (s->owner[i] == SF_NONE)
            s->owner[i] = 0;
    }
}

static void stage_region(const sf_graph *graph, uint32_t *stages, const sf_block *block,
                         uint32_t stage)
{
    for (uint32_t i = 0; i < block->nnodes; i++) {
        const sf_node *node = graph->nodes[block->nodes[i]];
        stages[node->id] = stage;
        for (uint32_t r = 0; r < node->nregions; r++)
            stage_region(graph, stages, node->regions[r], stage);
    }
}

void sf_stage_regions(const sf_graph *graph, uint32_t *stages)
{
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        for (uint32_t r = 0; r < node->nregions; r++)
            stage_region(graph, stages, node->regions[r], stages[node->id]);
    }
}

sf_status sf_stages_complete_whole(const sf_graph *graph, uint32_t count, const uint32_t *forward,
                                   sf_arena *arena, sf_diag *diag, sf_stages *out)
{
    sf_staging s = {.graph = graph, .arena = arena, .count = count};
    if (count == 0)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "stages: a pipeline has one stage at least");
    s.flow = sf_flow_of(graph, arena);
    s.anywhere = sf_find_anywhere(graph, arena);
    s.stage = SF_ARRAY(arena, graph->nnodes, uint32_t);
    s.owner = SF_ARRAY(arena, graph->top->narguments, uint32_t);
    s.tally = SF_ARRAY(arena, count, int64_t);
    for (uint32_t n = 0; n < graph->nnodes; n++)
        s.stage[n] = SF_NONE;
    SF_TRY(stage_forward(&s, forward, diag));
    own_forward(&s);
    narrow_forward(&s);
    find_at_hand(&s);
    sf_stage_backward(&s);
    sf_stage_updates(&s);
    stage_anywhere(&s);
    sf_stage_regions(graph, s.stage);
    *out = (sf_stages){.count = count,
                       .of_node = s.stage,
                       .anywhere = s.anywhere,
                       .late = sf_find_late(graph, arena),
                       .of_argument = s.owner,
                       .of_row = SF_ARRAY(arena, graph->top->narguments, uint32_t *)};
    return SF_OK;
}
