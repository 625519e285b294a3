/* Checks an assignment to stages against its rules, edge by edge, and counts the bytes between
 * stages. */
#include "support/stage_check.h"

#include "ir/name.h"
#include "plan/pipeline/stage_flow.h"

typedef struct checking {
    const sf_graph *graph;
    const sf_stages *stages;
    sf_diag *diag;
    sf_flow flow;
    const bool *moving; /* by node */
    uint32_t *seen
        [2]; /* by stage: the value that was last found there, plus one; forward, and after it */
    test_census census;
} checking;

enum { AT_FORWARD, AT_LATER };

static sf_status fail_edge(const checking *c, const sf_node *node, sf_value read, uint32_t from,
                           const char *why)
{
    sf_buf name = {0}, source = {0};
    sf_status status =
        sf_fail(c->diag, SF_EMISMATCH, node->loc, "stages: %s in stage %u reads %s of stage %u: %s",
                sf_value_name(c->graph, node->result, &name), c->stages->of_node[node->id],
                sf_value_name(c->graph, read, &source), from, why);
    sf_buf_free(&name);
    sf_buf_free(&source);
    return status;
}

/* Where the value comes from; SF_NONE where any stage has it. */
static uint32_t find_source(const checking *c, sf_value value)
{
    const sf_value_info *info = &c->graph->values[value];
    if (info->node == SF_NONE)
        return sf_is_handed_in(&c->graph->arguments[info->index])
                   ? SF_NONE
                   : c->stages->of_argument[info->index];
    return c->stages->anywhere[info->node] ? SF_NONE : c->stages->of_node[info->node];
}

static sf_status check_read(const checking *c, const sf_node *node, sf_value read)
{
    const sf_node *maker = sf_maker(c->graph, read);
    uint32_t from = find_source(c, read), to = c->stages->of_node[node->id];
    if (c->stages->anywhere[node->id] && from != SF_NONE)
        return fail_edge(c, node, read, from, "what is made anywhere needs nothing of a stage");
    if (from == SF_NONE || c->stages->anywhere[node->id])
        return SF_OK;
    if (node->phase == SF_FORWARD && from > to)
        return fail_edge(c, node, read, from, "the forward pass does not go back");
    if (node->phase == SF_BACKWARD && maker && maker->phase == SF_BACKWARD && from < to)
        return fail_edge(c, node, read, from, "the backward pass does not go forward");
    return SF_OK;
}

/* Marks the stage as one that has the value; whether it had it not. */
static bool mark(checking *c, int when, uint32_t stage, sf_value value)
{
    bool is_new = c->seen[when][stage] != value + 1;
    c->seen[when][stage] = value + 1;
    return is_new;
}

/* Whether it is sent in every micro-batch. */
static bool is_moving(const checking *c, sf_value value)
{
    const sf_node *maker = sf_maker(c->graph, value);
    return maker && c->moving[maker->id];
}

static void count_forward_use(checking *c, sf_value value, uint32_t from, uint32_t to)
{
    bool reshards = is_moving(c, value);
    int64_t bytes = sf_type_bytes(sf_type_of(c->graph, value));
    if (!mark(c, AT_FORWARD, to, value) || from == to)
        return;
    c->census.skips += reshards && to > from + 1;
    *(reshards ? &c->census.forward_bytes : &c->census.step_bytes) += bytes;
}

static void count_later_use(checking *c, sf_value value, const sf_node *reader)
{
    const sf_node *maker = sf_maker(c->graph, value);
    uint32_t from = find_source(c, value), to = c->stages->of_node[reader->id];
    int64_t bytes = sf_type_bytes(sf_type_of(c->graph, value));
    bool had = c->seen[AT_FORWARD][to] == value + 1;
    if (from == to || had || !mark(c, AT_LATER, to, value))
        return;
    if (sf_makes_once(c->stages, reader) || !is_moving(c, value))
        c->census.step_bytes += bytes;
    else if (maker->phase == SF_BACKWARD)
        c->census.backward_bytes += bytes;
    else {
        c->census.kept_elsewhere++;
        c->census.kept_bytes += bytes;
    }
}

static void count_value(checking *c, sf_value value)
{
    uint32_t from = find_source(c, value), readers = 0;
    if (from == SF_NONE)
        return;
    if (sf_maker(c->graph, value) && sf_maker(c->graph, value)->phase == SF_FORWARD)
        mark(c, AT_FORWARD, from, value);
    for (int later = 0; later < 2; later++)
        for (uint32_t u = c->flow.uses.first[value]; u < c->flow.uses.first[value + 1]; u++) {
            uint32_t reader = c->flow.uses.at[u].node;
            if (reader == SF_NONE || (c->graph->nodes[reader]->phase != SF_FORWARD) != later)
                continue;
            uint32_t to = c->stages->of_node[reader];
            if (later)
                count_later_use(c, value, c->graph->nodes[reader]);
            else
                count_forward_use(c, value, from, to);
            readers += !later && to != from;
        }
    const sf_value_info *info = &c->graph->values[value];
    if (info->node != SF_NONE)
        c->census.crossings += readers > 0;
    else
        c->census.tied += readers > 0 && c->graph->arguments[info->index].role == SF_ROLE_PARAM;
}

/* Computes new state of one argument and nothing else, in an update. */
static bool makes_it_alone(const checking *c, const sf_node *maker, uint32_t next)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < c->graph->top->narguments; i++) {
        uint32_t other = c->graph->arguments[i].next;
        count += other != SF_NONE && c->graph->top->results[other] == c->graph->top->results[next];
    }
    return maker->phase == SF_UPDATE && maker->nresults == 1 && count == 1;
}

static sf_status check_argument(checking *c, uint32_t index)
{
    const sf_argument *argument = &c->graph->arguments[index];
    uint32_t owner = c->stages->of_argument[index];
    const sf_node *maker =
        argument->gradient == SF_NONE ? NULL : sf_maker(c->graph, argument->gradient);
    if (maker && !c->stages->anywhere[maker->id]) {
        uint32_t stage = c->stages->of_node[maker->id];
        if (stage < owner)
            return fail_edge(c, maker, c->graph->top->arguments[index], owner,
                             "the gradient of a parameter comes from a stage in front of it");
        c->census.gradients_elsewhere += stage != owner;
    }
    if (argument->next == SF_NONE || sf_is_handed_in(argument))
        return SF_OK;
    maker = sf_maker(c->graph, c->graph->top->results[argument->next]);
    if (!maker || c->stages->anywhere[maker->id] || c->stages->of_node[maker->id] == owner)
        return SF_OK;
    if (makes_it_alone(c, maker, argument->next))
        return fail_edge(c, maker, c->graph->top->arguments[index], owner,
                         "it makes the new state of what is in another stage");
    c->census.updates_elsewhere++;
    return SF_OK;
}

static sf_status check_all(checking *c)
{
    const sf_block *top = c->graph->top;
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(c->graph, i);
        if (c->stages->of_node[node->id] >= c->stages->count)
            return sf_fail(c->diag, SF_EMISMATCH, node->loc, "stages: there is no stage %u of %u",
                           c->stages->of_node[node->id], c->stages->count);
    }
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(c->graph, i);
        for (uint32_t o = 0; o < node->noperands && !sf_hands_on(node); o++)
            SF_TRY(check_read(c, node, c->flow.source[node->operands[o]]));
    }
    for (uint32_t i = 0; i < top->narguments; i++)
        SF_TRY(check_argument(c, i));
    for (uint32_t i = 0; i < top->narguments; i++)
        count_value(c, top->arguments[i]);
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(c->graph, i);
        for (uint32_t r = 0; r < node->nresults && !sf_hands_on(node); r++)
            count_value(c, node->result + r);
    }
    return SF_OK;
}

sf_status test_check_stages(const sf_graph *graph, const sf_stages *stages, sf_diag *diag,
                            test_census *out)
{
    sf_arena arena = {0};
    checking c = {.graph = graph, .stages = stages, .diag = diag};
    c.flow = sf_flow_of(graph, &arena);
    c.moving = sf_find_moving(graph, &arena);
    for (int when = 0; when < 2; when++)
        c.seen[when] = SF_ARRAY(&arena, stages->count, uint32_t);
    sf_status status = check_all(&c);
    sf_arena_free(&arena);
    if (out)
        *out = c.census;
    return status;
}
