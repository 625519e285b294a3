#include "plan/pipeline/stage_cut.h"

#include <stdlib.h>

#include "ir/name.h"
#include "ir/uses.h"
#include "op/flops.h"
#include "op/op.h"
#include "plan/pipeline/layer_stack.h"
#include "plan/pipeline/stage_flow.h"
#include "solve/cut/cut.h"

/* A node that takes up more of a stage's share of the time than this, and cannot be cut, is worth a warning. */
#define LARGE_SHARE 1.05

typedef struct cutting {
    const sf_graph *graph;
    const sf_stage_request *request;
    sf_arena *arena;
    sf_uses uses;
    const bool *anywhere, *moving; /* by node */
    sf_stacks stacks;              /* their rows are weights like others, each by itself */
    uint32_t *unit_of;             /* by node; SF_NO_MAKER: none */
    uint32_t *node_of;             /* by unit */
    uint32_t nunits, nvalues, nreads;
    double *time, *fixed, *kept;       /* by unit */
    double *bytes;                     /* by value of the problem */
    uint32_t *maker, *first, *readers; /* the same */
    uint32_t ngroups, ngrouped, *group_first, *grouped;
} cutting;

/* Units */

static bool has_stage(const cutting *c, uint32_t node)
{
    return c->graph->nodes[node]->phase == SF_FORWARD && !c->anywhere[node] &&
           !(c->request->beside && c->request->beside[node]);
}

/* The one forward node that reads the node's results; SF_NONE if there is none, or more. */
static uint32_t find_only_reader(const cutting *c, const sf_node *node)
{
    uint32_t only = SF_NONE;
    for (uint32_t r = 0; r < node->nresults; r++)
        for (uint32_t u = c->uses.first[node->result + r]; u < c->uses.first[node->result + r + 1];
             u++) {
            uint32_t reader = c->uses.at[u].node;
            if (reader == SF_NONE || !has_stage(c, reader) || reader == only)
                continue;
            if (only != SF_NONE)
                return SF_NONE;
            only = reader;
        }
    return only;
}

/* The stack that the node takes rows of, or SF_NONE. */
static uint32_t stack_of_slice(const cutting *c, const sf_node *node)
{
    return sf_is(node, SF_OP_SLICE) && c->stacks.of_value[node->result] == SF_NONE
               ? c->stacks.of_value[node->operands[0]]
               : SF_NONE;
}

/* Whether the node makes something of weights alone that has no fewer elements than they have: a weight in another order or
 * type, say; or takes one from a stack. */
static bool prepares_weights(const cutting *c, const sf_node *node)
{
    if (stack_of_slice(c, node) != SF_NONE)
        return true;
    int64_t reads = 0, makes = 0;
    for (uint32_t o = 0; o < node->noperands; o++)
        reads += sf_type_of(c->graph, node->operands[o])->count;
    for (uint32_t r = 0; r < node->nresults; r++)
        makes += sf_type_of(c->graph, node->result + r)->count;
    return !c->moving[node->id] && makes >= reads;
}

/* Forward nodes that have a stage. Nodes that prepare a weight for one of them are part of it:
 * weights should not be sent. */
static void find_units(cutting *c)
{
    const sf_block *top = c->graph->top;
    uint32_t *leader = SF_ARRAY(c->arena, c->graph->nnodes, uint32_t);
    c->unit_of = SF_ARRAY(c->arena, c->graph->nnodes, uint32_t);
    c->node_of = SF_ARRAY(c->arena, top->nnodes, uint32_t);
    for (uint32_t i = top->nnodes; i-- > 0;) {
        const sf_node *node = sf_top_node(c->graph, i);
        uint32_t reader = has_stage(c, node->id) && prepares_weights(c, node)
                              ? find_only_reader(c, node)
                              : SF_NONE;
        leader[node->id] = reader == SF_NONE ? node->id : leader[reader];
        c->unit_of[node->id] = SF_NO_MAKER;
    }
    for (uint32_t i = 0; i < top->nnodes; i++)
        if (has_stage(c, top->nodes[i]) && leader[top->nodes[i]] == top->nodes[i]) {
            c->unit_of[top->nodes[i]] = c->nunits;
            c->node_of[c->nunits++] = top->nodes[i];
        }
    for (uint32_t i = 0; i < top->nnodes; i++)
        if (has_stage(c, top->nodes[i]))
            c->unit_of[top->nodes[i]] = c->unit_of[leader[top->nodes[i]]];
}

/* The first node in order that reads the node's results; SF_NONE: none. */
static uint32_t find_reader(const cutting *c, const sf_node *node)
{
    for (uint32_t r = 0; r < node->nresults; r++)
        for (uint32_t u = c->uses.first[node->result + r]; u < c->uses.first[node->result + r + 1];
             u++)
            if (c->uses.at[u].node != SF_NONE)
                return c->uses.at[u].node;
    return SF_NONE;
}

/* The time of a node that every reader computes counts at its first reader. */
static void find_loads(cutting *c)
{
    const sf_block *top = c->graph->top;
    const sf_stage_request *request = c->request;
    double *carried = SF_ARRAY(c->arena, c->graph->nnodes, double);
    c->time = SF_ARRAY(c->arena, c->nunits, double);
    c->fixed = SF_ARRAY(c->arena, c->nunits, double);
    c->kept = SF_ARRAY(c->arena, c->nunits, double);
    for (uint32_t i = top->nnodes; i-- > 0;) {
        const sf_node *node = sf_top_node(c->graph, i);
        if (node->phase == SF_FORWARD && c->unit_of[node->id] == SF_NO_MAKER)
            carried[node->id] = request->time[node->id];
    }
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(c->graph, i);
        uint32_t unit = c->unit_of[node->id], reader = find_reader(c, node);
        if (unit == SF_NO_MAKER && reader != SF_NONE)
            carried[reader] += carried[node->id];
        if (unit == SF_NO_MAKER)
            continue;
        c->time[unit] += request->time[node->id] + carried[node->id];
        c->kept[unit] += request->kept ? request->kept[node->id] : 0;
    }
}

/* Values */

static bool is_trained(const sf_argument *argument)
{
    return argument->role == SF_ROLE_PARAM && argument->next != SF_NONE;
}

/* By node: whether it is made of a parameter that is trained, and so has a gradient. */
static bool *find_trained(const cutting *c)
{
    const sf_block *top = c->graph->top;
    bool *trained = SF_ARRAY(c->arena, c->graph->nnodes, bool);
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(c->graph, i);
        for (uint32_t o = 0; o < node->noperands; o++) {
            const sf_value_info *info = &c->graph->values[node->operands[o]];
            trained[node->id] |= info->node == SF_NONE
                                     ? is_trained(&c->graph->arguments[info->index])
                                     : trained[info->node];
        }
    }
    return trained;
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Lists the units that read the value, in order; how many. */
static uint32_t list_readers(cutting *c, sf_value value)
{
    uint32_t begin = c->nreads, kept = c->nreads;
    for (uint32_t u = c->uses.first[value]; u < c->uses.first[value + 1]; u++) {
        uint32_t node = c->uses.at[u].node;
        if (node != SF_NONE && c->unit_of[node] != SF_NO_MAKER)
            c->readers[c->nreads++] = c->unit_of[node];
    }
    if (c->nreads > begin)
        qsort(c->readers + begin, c->nreads - begin, sizeof *c->readers, by_number);
    for (uint32_t k = begin; k < c->nreads; k++)
        if (kept == begin || c->readers[kept - 1] != c->readers[k])
            c->readers[kept++] = c->readers[k];
    c->nreads = kept;
    return c->nreads - begin;
}

/* A value with its readers, which were listed last. */
static void add_value(cutting *c, uint32_t maker, sf_value value, double weight)
{
    c->maker[c->nvalues] = maker;
    c->bytes[c->nvalues] = weight * (double)sf_type_bytes(sf_type_of(c->graph, value));
    c->first[++c->nvalues] = c->nreads;
}

/* The memory of a stack is where its rows are read. */
static void spread_stacks(cutting *c)
{
    const sf_block *top = c->graph->top;
    double *fixed = SF_ARRAY(c->arena, c->stacks.count, double);
    double *taken = SF_ARRAY(c->arena, c->stacks.count, double);
    for (uint32_t i = 0; i < top->narguments; i++)
        if (c->stacks.of_value[top->arguments[i]] != SF_NONE &&
            c->graph->arguments[i].role == SF_ROLE_PARAM)
            fixed[c->stacks.of_value[top->arguments[i]]] += c->request->fixed[i];
    for (int second = 0; second < 2; second++)
        for (uint32_t i = 0; i < top->nnodes; i++) {
            const sf_node *node = sf_top_node(c->graph, i);
            uint32_t stack = stack_of_slice(c, node), unit = c->unit_of[node->id];
            if (stack == SF_NONE || unit == SF_NO_MAKER)
                continue;
            double rows = (double)sf_type_of(c->graph, node->result)->dims[0];
            if (second)
                c->fixed[unit] += fixed[stack] * rows / taken[stack];
            else
                taken[stack] += rows;
        }
}

static void find_arguments(cutting *c, double microbatches)
{
    if (c->request->fixed)
        spread_stacks(c);
    for (uint32_t i = 0; i < c->graph->top->narguments; i++) {
        const sf_argument *argument = &c->graph->arguments[i];
        sf_value value = c->graph->top->arguments[i];
        uint32_t begin = c->nreads;
        if (sf_is_handed_in(argument) || c->stacks.of_value[value] != SF_NONE ||
            list_readers(c, value) == 0)
            continue;
        if (c->request->fixed)
            c->fixed[c->readers[begin]] += c->request->fixed[i];
        add_value(c, SF_NO_MAKER, value, (is_trained(argument) ? 2 : 1) / microbatches);
    }
}

static void find_values(cutting *c)
{
    double microbatches = c->request->microbatches > 0 ? c->request->microbatches : 1;
    const bool *trained = find_trained(c);
    size_t most = c->graph->nvalues, reads = c->uses.first[most];
    c->bytes = SF_ARRAY(c->arena, most, double);
    c->maker = SF_ARRAY(c->arena, most, uint32_t);
    c->first = SF_ARRAY(c->arena, most + 1, uint32_t);
    c->readers = SF_ARRAY(c->arena, reads, uint32_t);
    find_arguments(c, microbatches);
    for (uint32_t unit = 0; unit < c->nunits; unit++) {
        const sf_node *node = c->graph->nodes[c->node_of[unit]];
        for (uint32_t r = 0; r < node->nresults; r++) {
            sf_value value = node->result + r;
            if (c->stacks.of_value[value] != SF_NONE || list_readers(c, value) == 0)
                continue;
            bool has_gradient =
                trained[node->id] && sf_is_float(sf_type_of(c->graph, value)->dtype);
            add_value(c, unit, value,
                      (has_gradient ? 2 : 1) / (c->moving[node->id] ? 1 : microbatches));
        }
    }
}

/* Layers that the text recomputes. The backward pass of such a layer begins with all of its forward
 * pass, so it is in one stage: a group is the readers of one barrier's results, unless other
 * barriers have the same operands, too. */

static void add_group(cutting *c, const sf_node *barrier, const uint32_t *nbarriers)
{
    uint32_t begin = c->ngrouped;
    for (uint32_t o = 0; o < barrier->noperands; o++) {
        sf_value value = barrier->operands[o];
        const sf_node *maker = sf_maker(c->graph, value);
        if ((maker && maker->phase != SF_FORWARD) || nbarriers[value] > 1)
            continue;
        for (uint32_t u = c->uses.first[value]; u < c->uses.first[value + 1]; u++) {
            uint32_t node = c->uses.at[u].node;
            if (node != SF_NONE && c->unit_of[node] != SF_NO_MAKER)
                c->grouped[c->ngrouped++] = c->unit_of[node];
        }
    }
    if (c->ngrouped > begin)
        c->group_first[++c->ngroups] = c->ngrouped;
}

static void find_groups(cutting *c)
{
    const sf_block *top = c->graph->top;
    uint32_t *nbarriers = SF_ARRAY(c->arena, c->graph->nvalues, uint32_t);
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(c->graph, i);
        for (uint32_t o = 0; o < node->noperands && sf_hands_on(node); o++)
            nbarriers[node->operands[o]]++;
    }
    c->group_first = SF_ARRAY(c->arena, top->nnodes + 1, uint32_t);
    c->grouped = SF_ARRAY(c->arena, c->uses.first[c->graph->nvalues], uint32_t);
    for (uint32_t i = 0; i < top->nnodes; i++)
        if (sf_hands_on(sf_top_node(c->graph, i)))
            add_group(c, sf_top_node(c->graph, i), nbarriers);
}

/* The result */

static void warn_loop(const cutting *c, double share, sf_diag *diag)
{
    uint32_t longest = 0;
    for (uint32_t u = 1; u < c->nunits; u++)
        longest = c->time[u] > c->time[longest] ? u : longest;
    const sf_node *node = c->graph->nodes[c->node_of[longest]];
    if (!sf_is_control(node) || c->time[longest] < LARGE_SHARE * share)
        return;
    sf_warn(diag, node->loc,
            "stages: this loop or branch stays as one node, which cannot be cut, and takes %.1f "
            "times as long as a stage should",
            c->time[longest] / share);
    sf_hint(diag, "unroll it, with --unroll, if its trip count is known");
}

static double find_share(const cutting *c)
{
    double time = 0, speed = 0;
    for (uint32_t u = 0; u < c->nunits; u++)
        time += c->time[u];
    for (uint32_t s = 0; s < c->request->count; s++)
        speed += c->request->speed ? c->request->speed[s] : 1;
    return time / speed;
}

static void put_out(const cutting *c, const sf_cut *cut, sf_stage_cut *out)
{
    *out = (sf_stage_cut){.forward = SF_ARRAY(c->arena, c->graph->nnodes, uint32_t),
                          .slowest = cut->slowest,
                          .bytes = cut->bytes,
                          .least_slowest = cut->least_slowest,
                          .is_exact = cut->is_exact};
    for (uint32_t n = 0; n < c->graph->nnodes; n++)
        out->forward[n] = SF_NONE;
    for (uint32_t i = 0; i < c->graph->top->nnodes; i++) {
        uint32_t node = c->graph->top->nodes[i];
        if (c->unit_of[node] != SF_NO_MAKER)
            out->forward[node] = cut->stage[c->unit_of[node]];
    }
}

sf_status sf_cut_step(const sf_graph *graph, const sf_stage_request *request, sf_arena *arena,
                      sf_diag *diag, sf_stage_cut *out)
{
    cutting c = {.graph = graph, .request = request, .arena = arena};
    if (request->count == 0)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "stages: a pipeline has one stage at least");
    c.uses = sf_uses_of(graph, arena);
    c.anywhere = sf_find_anywhere(graph, arena);
    c.moving = sf_find_moving(graph, arena);
    c.stacks = sf_find_stacks(graph, arena);
    find_units(&c);
    if (c.nunits < request->count)
        return sf_fail(diag, SF_EMISMATCH, SF_NOWHERE,
                       "stages: the forward pass has %u nodes that can be cut, too few for %u "
                       "stages",
                       c.nunits, request->count);
    find_loads(&c);
    find_values(&c);
    find_groups(&c);
    sf_cut_problem problem = {.nunits = c.nunits,
                              .time = c.time,
                              .fixed = c.fixed,
                              .kept = c.kept,
                              .nvalues = c.nvalues,
                              .bytes = c.bytes,
                              .maker = c.maker,
                              .first = c.first,
                              .reader = c.readers,
                              .ngroups = c.ngroups,
                              .group_first = c.group_first,
                              .grouped = c.grouped,
                              .count = request->count,
                              .speed = request->speed,
                              .room = request->room,
                              .in_flight = request->in_flight,
                              .tolerance = request->tolerance};
    sf_cut cut;
    bool found = sf_cut_solve(&problem, arena, &cut);
    problem.ngroups = 0; /* rather a layer in two stages than none */
    if (!found && !sf_cut_solve(&problem, arena, &cut))
        return sf_fail(diag, SF_EMISMATCH, SF_NOWHERE,
                       "stages: however the step is cut, one of its %u stages lacks memory",
                       request->count);
    warn_loop(&c, find_share(&c), diag);
    put_out(&c, &cut, out);
    return SF_OK;
}
