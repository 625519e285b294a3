#include "report/summary.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/mem.h"
#include "op/flops.h"
#include "op/slots.h"

const char *sf_finding_name(sf_finding finding)
{
    static const char *const names[] = {"roles",  "state",  "loss",
                                        "phases", "scopes", "trip counts"};
    return names[finding];
}

const char *sf_finding_source(sf_finding finding, sf_source source)
{
    return finding == SF_FOUND_TRIPS && source == SF_FROM_USER ? "--assume-trip-count"
                                                               : sf_source_name(source);
}

struct walk {
    sf_summary *summary;
    sf_cost *costs; /* by node id */
    sf_cost by_op[SF_OP_COUNT];
    sf_arena scratch;
    const sf_type **types;
    size_t type_capacity;
};

static sf_cost cost_of_node(struct walk *walk, const sf_node *node, bool unknown_trips)
{
    size_t count = (size_t)node->noperands + node->nresults;
    if (count > walk->type_capacity) {
        walk->type_capacity = 2 * count;
        walk->types = SF_ARRAY(&walk->scratch, walk->type_capacity, const sf_type *);
    }
    sf_cost cost = {.nodes = 1, .unknown_trips = unknown_trips && !sf_is(node, SF_OP_CONSTANT)};
    /* The ops inside of a loop or a branch read and write its data. */
    if (sf_is_control(node))
        return cost;
    sf_op op = sf_op_of(walk->summary->graph, node, walk->types);
    cost.flops = sf_op_flops(&op);
    cost.bytes = sf_op_bytes(&op);
    return cost;
}

static sf_source source_of_trips(const sf_node *loop)
{
    return loop->attrs[SF_WHILE_TRIPS]  ? SF_FROM_TEXT
           : loop->attrs[SF_WHILE_SAID] ? SF_FROM_USER
                                        : SF_FROM_NOTHING;
}

/* The block runs `times` times, with `unknown_trips` an unknown number of times that. */
static void walk_block(struct walk *walk, const sf_block *block, bool unknown_trips, double times)
{
    sf_summary *summary = walk->summary;
    for (uint32_t i = 0; i < block->nnodes; i++) {
        const sf_node *node = summary->graph->nodes[block->nodes[i]];
        bool is_loop = sf_is(node, SF_OP_WHILE);
        bool inside = unknown_trips || (is_loop && sf_trips_of(node) < 0);
        sf_cost cost = cost_of_node(walk, node, inside);
        cost.flops *= times;
        cost.bytes *= times;
        walk->costs[node->id] = cost;
        sf_cost_add(&summary->total, &cost);
        sf_cost_add(&summary->phases[node->phase], &cost);
        sf_cost_add(&walk->by_op[node->def->id], &cost);
        if (!sf_is_control(node))
            continue;
        *(is_loop ? &summary->loops : &summary->branches) += 1;
        if (is_loop)
            summary->found[SF_FOUND_TRIPS][source_of_trips(node)]++;
        for (uint32_t r = 0; r < node->nregions; r++)
            walk_block(walk, node->regions[r], inside, times * sf_region_runs(node, r));
    }
}

static void add_costs(const struct walk *walk, const sf_node *node, sf_cost *to)
{
    sf_cost_add(to, &walk->costs[node->id]);
    for (uint32_t r = 0; r < node->nregions; r++)
        for (uint32_t i = 0; i < node->regions[r]->nnodes; i++)
            add_costs(walk, walk->summary->graph->nodes[node->regions[r]->nodes[i]], to);
}

static void sum_again(struct walk *walk)
{
    sf_summary *summary = walk->summary;
    const sf_graph *graph = summary->graph;
    bool *seen = SF_ARRAY(&walk->scratch, sf_scope_count(graph->pool), bool);
    size_t count = 0, capacity = 0;
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        const sf_scope *scope = node->scope;
        if (!node->recomputed)
            continue;
        add_costs(walk, node, &summary->recomputed);
        while (scope->depth > 1)
            scope = scope->parent;
        if (scope->parent && !seen[scope->id])
            SF_PUSH(&summary->arena, summary->recomputed_in, count, capacity, scope);
        seen[scope->id] = true;
    }
    summary->nrecomputed_in = (uint32_t)count;
}

static int by_cost(const void *left, const void *right)
{
    const sf_op_cost *a = left, *b = right;
    if (a->cost.flops != b->cost.flops)
        return a->cost.flops > b->cost.flops ? -1 : 1;
    if (a->cost.bytes != b->cost.bytes)
        return a->cost.bytes > b->cost.bytes ? -1 : 1;
    int order = strcmp(a->def->name, b->def->name);
    return order ? order : strcmp(a->def->dialect, b->def->dialect);
}

static void list_ops(struct walk *walk)
{
    sf_summary *summary = walk->summary;
    summary->ops = SF_ARRAY(&summary->arena, SF_OP_COUNT, sf_op_cost);
    for (int i = 0; i < SF_OP_COUNT; i++)
        if (walk->by_op[i].nodes)
            summary->ops[summary->nops++] =
                (sf_op_cost){sf_opdef_get((sf_opcode)i), walk->by_op[i]};
    qsort(summary->ops, summary->nops, sizeof *summary->ops, by_cost);
}

static void add_tensor(sf_role_total *total, const sf_type *type)
{
    total->count++;
    sf_add_limited(&total->elements, type->count);
    sf_add_limited(&total->bytes, sf_type_bytes(type));
}

struct sized {
    uint32_t index;
    int64_t bytes;
};

static int by_size(const void *left, const void *right)
{
    const struct sized *a = left, *b = right;
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

static void list_largest(struct walk *walk)
{
    sf_summary *summary = walk->summary;
    const sf_graph *graph = summary->graph;
    uint32_t count = graph->top->narguments;
    struct sized *sizes = SF_ARRAY(&walk->scratch, count, struct sized);
    for (uint32_t i = 0; i < count; i++)
        sizes[i] = (struct sized){i, sf_type_bytes(sf_argument_type(graph, i))};
    if (count)
        qsort(sizes, count, sizeof *sizes, by_size);
    summary->largest = SF_ARRAY(&summary->arena, count, uint32_t);
    for (uint32_t i = 0; i < count; i++)
        summary->largest[i] = sizes[i].index;
}

static void sum_tensors(sf_summary *summary)
{
    const sf_graph *graph = summary->graph;
    const sf_block *top = graph->top;
    summary->becomes = SF_ARRAY(&summary->arena, top->nresults, uint32_t);
    summary->loss = SF_NONE;
    for (uint32_t i = 0; i < top->nresults; i++) {
        add_tensor(&summary->results, sf_type_of(graph, top->results[i]));
        summary->becomes[i] = SF_NONE;
        if (graph->results[i].is_loss && summary->loss == SF_NONE)
            summary->loss = i;
    }
    for (uint32_t i = 0; i < top->narguments; i++) {
        const sf_argument *argument = &graph->arguments[i];
        const sf_type *type = sf_type_of(graph, top->arguments[i]);
        add_tensor(&summary->arguments, type);
        add_tensor(&summary->roles[argument->role], type);
        summary->roles[argument->role].from[argument->role_from]++;
        summary->found[SF_FOUND_ROLES][argument->role_from]++;
        if (argument->next == SF_NONE)
            continue;
        summary->links++;
        summary->found[SF_FOUND_STATE][argument->next_from]++;
        summary->becomes[argument->next] = i;
    }
}

void sf_summarize(const sf_graph *graph, const char *file, sf_summary *out)
{
    *out = (sf_summary){.graph = graph, .file = file, .hash = sf_graph_hash(graph)};
    struct walk walk = {.summary = out};
    walk.costs = SF_ARRAY(&walk.scratch, graph->nnodes, sf_cost);
    walk_block(&walk, graph->top, false, 1);
    sum_again(&walk);
    list_ops(&walk);
    list_largest(&walk);
    sum_tensors(out);
    sf_summarize_scopes(out, walk.costs);
    out->found[SF_FOUND_PHASES][SF_FROM_FLOW] = 1;
    out->found[SF_FOUND_LOSS]
              [out->loss == SF_NONE ? SF_FROM_NOTHING : graph->results[out->loss].loss_from] = 1;
    out->found[SF_FOUND_SCOPES][out->nscopes == 1       ? SF_FROM_NOTHING
                                : graph->scopes_guessed ? SF_FROM_NAME
                                                        : SF_FROM_TEXT] = 1;
    sf_arena_free(&walk.scratch);
}

void sf_summary_free(sf_summary *summary)
{
    sf_arena_free(&summary->arena);
}
