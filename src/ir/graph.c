#include "ir/graph.h"

#include <string.h>

#include "base/mem.h"
#include "ir/opdef.h"

const char *sf_phase_name(sf_phase phase)
{
    static const char *const names[] = {"forward", "backward", "update"};
    return names[phase];
}

const char *sf_role_name(sf_role role)
{
    static const char *const names[] = {"param", "opt_state", "batch", "key", "other"};
    return (unsigned)role < sizeof names / sizeof *names ? names[role] : "no role";
}

const char *sf_source_name(sf_source source)
{
    static const char *const names[] = {"nothing", "--state", "sidecar", "alias",
                                        "name",    "order",   "flow",    "text"};
    return names[source];
}

/* The graph goes with its guard; its pool may be that of one that stays. */
static void forget_graph(void *memory)
{
    sf_graph *graph = memory;
    graph->pool->references--;
}

sf_graph *sf_graph_new(sf_pool *pool)
{
    sf_graph *graph = sf_alloc(sizeof *graph);
    graph->pool = sf_pool_retain(pool);
    sf_mem_undo(graph, forget_graph);
    graph->name = "step";
    graph->top = sf_block_new(graph);
    return graph;
}

void sf_graph_free(sf_graph *graph)
{
    if (!graph)
        return;
    sf_pool_release(graph->pool);
    sf_free(graph->nodes);
    sf_free(graph->values);
    sf_arena_free(&graph->arena);
    sf_free(graph);
}

sf_block *sf_block_new(sf_graph *graph)
{
    return SF_NEW(&graph->arena, sf_block);
}

/* The two large arrays are outside of the arena, so that the old copies are freed. */
static void *grow_array(void *array, size_t count, size_t *capacity, size_t size)
{
    *capacity = *capacity ? *capacity * 2 : 256;
    void *larger = sf_alloc(*capacity * size);
    if (count)
        memcpy(larger, array, count * size);
    sf_free(array);
    return larger;
}

static sf_value append_value(sf_graph *graph, const sf_type *type, uint32_t node, uint32_t index)
{
    SF_ASSERT(graph->nvalues < SF_NONE);
    if (graph->nvalues == graph->value_capacity)
        graph->values = grow_array(graph->values, graph->nvalues, &graph->value_capacity,
                                   sizeof *graph->values);
    graph->values[graph->nvalues] = (sf_value_info){type, node, index};
    return (sf_value)graph->nvalues++;
}

sf_value sf_block_argument(sf_graph *graph, sf_block *block, const sf_type *type)
{
    sf_value value = append_value(graph, type, SF_NONE, block->narguments);
    size_t count = block->narguments;
    /* The capacity follows from the count: it doubles at powers of two from 8 on. */
    if (count == 0 || (count >= 8 && (count & (count - 1)) == 0)) {
        size_t capacity = count;
        block->arguments = sf_arena_grow(&graph->arena, block->arguments, count, &capacity,
                                         sizeof *block->arguments);
    }
    block->arguments[block->narguments++] = value;
    return value;
}

void sf_block_return(sf_graph *graph, sf_block *block, uint32_t count, const sf_value *values)
{
    block->results = sf_arena_copy(&graph->arena, values, count * sizeof *values);
    block->nresults = count;
}

sf_node *sf_graph_add(sf_graph *graph, sf_block *block, const sf_node_spec *spec)
{
    sf_arena *arena = &graph->arena;
    sf_node *node = SF_NEW(arena, sf_node);
    node->def = spec->def;
    node->id = (uint32_t)graph->nnodes;
    node->noperands = spec->noperands;
    node->nresults = spec->nresults;
    node->nregions = spec->nregions;
    node->operands = sf_arena_copy(arena, spec->operands, spec->noperands * sizeof *spec->operands);
    if (spec->def->nattrs)
        node->attrs =
            sf_arena_copy(arena, spec->attrs, (size_t)spec->def->nattrs * sizeof *spec->attrs);
    if (spec->nregions)
        node->regions = sf_arena_copy(arena, spec->regions, spec->nregions * sizeof *spec->regions);
    node->scope = spec->scope ? spec->scope : sf_scope_root(graph->pool);
    node->phase = spec->phase;
    node->loc = spec->loc;
    node->recomputed = spec->recomputed;
    node->result = (sf_value)graph->nvalues;
    for (uint32_t i = 0; i < spec->nresults; i++)
        append_value(graph, spec->types[i], node->id, i);
    if (graph->nnodes == graph->node_capacity)
        graph->nodes =
            grow_array(graph->nodes, graph->nnodes, &graph->node_capacity, sizeof *graph->nodes);
    graph->nodes[graph->nnodes++] = node;
    size_t count = block->nnodes;
    SF_PUSH(arena, block->nodes, count, block->capacity, node->id);
    block->nnodes = (uint32_t)count;
    return node;
}

int64_t sf_count_parameters(const sf_graph *graph)
{
    int64_t count = 0;
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        if (graph->arguments[i].role == SF_ROLE_PARAM)
            count += sf_argument_type(graph, i)->count;
    return count;
}

bool sf_scopes_have(const char *lines, const char *path)
{
    size_t length = strlen(path);
    for (const char *at = lines; at && *at; at += strcspn(at, "\n"), at += *at == '\n')
        if (strcspn(at, "\n") == length && memcmp(at, path, length) == 0)
            return true;
    return false;
}

const char *sf_kernel_choice_name(sf_kernel_choice kernels)
{
    static const char *const names[] = {"best", "none", "all"};
    return names[kernels];
}

bool sf_kernel_choice_read(sf_str word, sf_kernel_choice *out)
{
    for (int i = SF_KERNELS_BEST; i <= SF_KERNELS_ALL; i++)
        if (sf_str_is(word, sf_kernel_choice_name((sf_kernel_choice)i))) {
            *out = (sf_kernel_choice)i;
            return true;
        }
    return false;
}
