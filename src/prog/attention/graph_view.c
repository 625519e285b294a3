#include "prog/attention/graph_view.h"

#include <string.h>

#include "base/hash.h"
#include "base/intern.h"

typedef struct looking {
    sf_scene *scene;
    sf_interner seen;
    sf_arena scratch;
} looking;

typedef struct sought {
    const sf_scene *scene;
    const sf_node *node;
} sought;

static bool is_sought(const void *item, const void *key)
{
    const sf_node *a = item;
    const sought *s = key;
    const sf_node *b = s->node;
    const sf_graph *graph = s->scene->graph;
    if (a->def != b->def || a->noperands != b->noperands ||
        sf_type_of(graph, a->result) != sf_type_of(graph, b->result))
        return false;
    for (uint32_t i = 0; i < a->noperands; i++)
        if (!scene_same(s->scene, a->operands[i], b->operands[i]))
            return false;
    return a->def->nattrs == 0 ||
           memcmp(a->attrs, b->attrs, (size_t)a->def->nattrs * sizeof *a->attrs) == 0;
}

/* The first node that computes the same. */
static const sf_node *find_first(looking *l, const sf_node *node)
{
    const sf_scene *s = l->scene;
    uint64_t hash = sf_hash_mix((uint64_t)node->def->id, node->noperands);
    for (uint32_t i = 0; i < node->noperands; i++)
        hash = sf_hash_mix(hash, s->same[node->operands[i]]);
    for (int i = 0; i < node->def->nattrs; i++)
        hash = sf_hash_mix(hash, node->attrs[i] ? node->attrs[i]->hash : 0);
    sf_intern_slot *slot =
        sf_intern_find(&l->seen, &l->scratch, hash, is_sought, &(sought){s, node});
    if (!slot->item)
        slot->item = node;
    return slot->item;
}

static void is_without_making(sf_scene *s, sf_value value, sf_value source)
{
    s->source[value] = source;
    s->same[value] = s->same[source];
}

static void see_block(looking *l, const sf_block *block);

static void see_regions(looking *l, const sf_node *node)
{
    for (uint32_t r = 0; r < node->nregions; r++) {
        const sf_block *region = node->regions[r];
        for (uint32_t o = sf_own_operands(node); o < node->noperands; o++)
            is_without_making(l->scene, region->arguments[o - sf_first_entering(node)],
                              node->operands[o]);
        see_block(l, region);
    }
}

static void see_block(looking *l, const sf_block *block)
{
    sf_scene *s = l->scene;
    uint32_t number = s->nblocks++;
    for (uint32_t i = 0; i < block->nnodes; i++) {
        const sf_node *node = s->graph->nodes[block->nodes[i]];
        s->block_of[node->id] = number;
        if (sf_is(node, SF_OP_OPTIMIZATION_BARRIER))
            for (uint32_t o = 0; o < node->noperands; o++)
                is_without_making(s, node->result + o, node->operands[o]);
        else if (node->def->control != SF_CONTROL_NONE)
            see_regions(l, node);
        else if (node->nregions == 0 && node->nresults == 1 && !sf_node_has_effect(s->graph, node))
            s->same[node->result] = find_first(l, node)->result;
    }
}

sf_scene scene_of(const sf_graph *graph, sf_arena *arena)
{
    sf_scene s = {.graph = graph,
                  .source = SF_ARRAY(arena, graph->nvalues, sf_value),
                  .same = SF_ARRAY(arena, graph->nvalues, sf_value),
                  .block_of = SF_ARRAY(arena, graph->nnodes, uint32_t)};
    looking l = {.scene = &s};
    for (sf_value v = 0; v < graph->nvalues; v++) {
        s.source[v] = SF_NONE;
        s.same[v] = v;
    }
    see_block(&l, graph->top);
    sf_arena_free(&l.scratch);
    return s;
}

const sf_node *scene_maker(const sf_scene *scene, sf_value value)
{
    while (scene->source[value] != SF_NONE)
        value = scene->source[value];
    return sf_maker(scene->graph, value);
}
