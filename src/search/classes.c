/* Classes of nodes that repeat, by what they compute alone, as names differ from text to text: colours are refined by those of the neighbours, as Weisfeiler and Lehman
 * do, but only for some rounds. What two nodes have around them farther away may differ, so the layers of
 * a deep network are alike but for the first and the last ones. */
#include <string.h>

#include "base/hash.h"
#include "op/op.h"
#include "search/axis/axis_space.h"

/* Enough to see from any op of an optimizer whose parameter it updates. */
enum { ROUNDS = 8 };

/* Tells a use inside of a region from all operands. */
enum { INSIDE = 1 << 20 };

/* The reader of what the step gives back and does not read again. */
enum { OUTPUT = 1 };

typedef struct colouring {
    const sf_graph *graph;
    sf_arena scratch;
    uint64_t *nodes, *arguments; /* colours, by id and by argument */
    uint64_t *values;            /* of whatever makes them */
    uint64_t *uses;              /* by value: the sum over those who read it */
    uint32_t *becomes;           /* by result: the argument, or SF_NONE */
} colouring;

static uint64_t hash_tensor_type(const sf_type *type)
{
    uint64_t hash = sf_hash_mix((uint64_t)type->rank, (uint64_t)type->dtype);
    for (int d = 0; d < type->rank; d++)
        hash = sf_hash_mix(hash, (uint64_t)type->dims[d]);
    return hash;
}

/* Which numbers a constant holds, and where a slice begins, changes nothing about how it splits; and both
 * may differ from layer to layer. */
static bool attributes_matter(const sf_node *node)
{
    return !sf_is(node, SF_OP_CONSTANT) && !sf_is(node, SF_OP_SLICE);
}

static sf_value class_tensor(const sf_node *node, uint32_t tensor)
{
    return tensor < node->noperands ? node->operands[tensor]
                                    : node->result + (tensor - node->noperands);
}

static uint64_t first_colour(const sf_graph *graph, const sf_node *node)
{
    uint64_t hash = sf_hash_mix((uint64_t)node->def->id, (uint64_t)node->phase);
    hash = sf_hash_mix(hash, node->noperands);
    for (uint32_t t = 0; t < node->noperands + node->nresults; t++)
        hash = sf_hash_mix(hash, hash_tensor_type(sf_type_of(graph, class_tensor(node, t))));
    for (int i = 0; i < node->def->nattrs && attributes_matter(node); i++)
        hash = sf_hash_mix(hash, node->attrs[i] ? node->attrs[i]->hash : 1);
    return hash;
}

static void begin_colours(colouring *c)
{
    const sf_graph *graph = c->graph;
    const sf_block *top = graph->top;
    c->nodes = SF_ARRAY(&c->scratch, graph->nnodes, uint64_t);
    c->arguments = SF_ARRAY(&c->scratch, top->narguments, uint64_t);
    c->values = SF_ARRAY(&c->scratch, graph->nvalues, uint64_t);
    c->uses = SF_ARRAY(&c->scratch, graph->nvalues, uint64_t);
    c->becomes = SF_ARRAY(&c->scratch, top->nresults, uint32_t);
    for (uint32_t r = 0; r < top->nresults; r++)
        c->becomes[r] = SF_NONE;
    for (uint32_t i = 0; i < top->narguments; i++) {
        const sf_argument *argument = &graph->arguments[i];
        c->arguments[i] = sf_hash_mix((uint64_t)argument->role,
                                      hash_tensor_type(sf_type_of(graph, top->arguments[i])));
        if (argument->next != SF_NONE)
            c->becomes[argument->next] = i;
    }
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = graph->nodes[top->nodes[i]];
        c->nodes[node->id] = first_colour(graph, node);
    }
}

/* The order of readers does not matter, so they are summed. */
static void note_use(colouring *c, sf_value value, uint64_t reader, uint32_t operand)
{
    c->uses[value] += sf_hash_mix(reader, operand);
}

static void note_block(colouring *c, const sf_block *block, uint64_t reader)
{
    for (uint32_t i = 0; i < block->nnodes; i++) {
        const sf_node *node = c->graph->nodes[block->nodes[i]];
        for (uint32_t o = 0; o < node->noperands; o++)
            note_use(c, node->operands[o], reader, INSIDE);
        for (uint32_t r = 0; r < node->nregions; r++)
            note_block(c, node->regions[r], reader);
    }
    for (uint32_t i = 0; i < block->nresults; i++)
        note_use(c, block->results[i], reader, INSIDE);
}

/* Hands every node's colour to the values that it reads and makes. */
static void hand_out(colouring *c)
{
    const sf_block *top = c->graph->top;
    memset(c->uses, 0, c->graph->nvalues * sizeof *c->uses);
    for (uint32_t i = 0; i < top->narguments; i++)
        c->values[top->arguments[i]] = c->arguments[i];
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = c->graph->nodes[top->nodes[i]];
        uint64_t colour = c->nodes[node->id];
        for (uint32_t o = 0; o < node->noperands; o++)
            note_use(c, node->operands[o], colour, o);
        for (uint32_t r = 0; r < node->nregions; r++)
            note_block(c, node->regions[r], colour);
        for (uint32_t r = 0; r < node->nresults; r++)
            c->values[node->result + r] = sf_hash_mix(colour, r);
    }
    for (uint32_t r = 0; r < top->nresults; r++)
        note_use(c, top->results[r],
                 c->becomes[r] == SF_NONE ? OUTPUT : c->arguments[c->becomes[r]], INSIDE + 1);
}

static void refine_colours(colouring *c)
{
    const sf_graph *graph = c->graph;
    const sf_block *top = graph->top;
    hand_out(c);
    for (uint32_t i = 0; i < top->narguments; i++) {
        uint32_t next = graph->arguments[i].next;
        c->arguments[i] = sf_hash_mix(c->arguments[i], c->uses[top->arguments[i]]);
        if (next != SF_NONE)
            c->arguments[i] = sf_hash_mix(c->arguments[i], c->values[top->results[next]]);
    }
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = graph->nodes[top->nodes[i]];
        uint64_t *colour = &c->nodes[node->id];
        for (uint32_t o = 0; o < node->noperands; o++)
            *colour = sf_hash_mix(*colour, c->values[node->operands[o]]);
        for (uint32_t r = 0; r < node->nresults; r++)
            *colour = sf_hash_mix(*colour, c->uses[node->result + r]);
    }
}

/* Whether any strategy of the one is one of the other: colours may be equal by chance. */
static bool are_alike(const sf_graph *graph, const sf_node *a, const sf_node *b)
{
    if (a->def != b->def || a->noperands != b->noperands || a->nresults != b->nresults ||
        a->nregions != b->nregions || a->phase != b->phase)
        return false;
    for (uint32_t t = 0; t < a->noperands + a->nresults; t++)
        if (sf_type_of(graph, class_tensor(a, t)) != sf_type_of(graph, class_tensor(b, t)))
            return false;
    for (int i = 0; i < a->def->nattrs && attributes_matter(a); i++)
        if (a->attrs[i] != b->attrs[i])
            return false;
    return true;
}

/* An open hash table from colours to the first who has them. */
typedef struct table {
    size_t size;
    uint32_t *firsts; /* plus one */
} table;

static table table_for(sf_arena *arena, size_t count)
{
    table t = {.size = 64};
    while (t.size < 2 * count)
        t.size *= 2;
    t.firsts = SF_ARRAY(arena, t.size, uint32_t);
    return t;
}

/* The first of that colour: `self` when there was none. */
static uint32_t first_of(table *t, const uint64_t *colours, uint32_t self)
{
    size_t at = (size_t)colours[self] & (t->size - 1);
    while (t->firsts[at] && colours[t->firsts[at] - 1] != colours[self])
        at = (at + 1) & (t->size - 1);
    if (!t->firsts[at])
        t->firsts[at] = self + 1;
    return t->firsts[at] - 1;
}

static void collect_classes(colouring *c, sf_arena *arena, sf_classes *out)
{
    const sf_graph *graph = c->graph;
    const sf_block *top = graph->top;
    out->nodes = SF_ARRAY(arena, graph->nnodes, uint32_t);
    out->arguments = SF_ARRAY(arena, top->narguments, uint32_t);
    table nodes = table_for(&c->scratch, graph->nnodes);
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = graph->nodes[top->nodes[i]];
        uint32_t first = first_of(&nodes, c->nodes, node->id);
        out->nodes[node->id] = are_alike(graph, node, graph->nodes[first]) ? first : node->id;
        out->nclasses += out->nodes[node->id] == node->id;
    }
    table arguments = table_for(&c->scratch, top->narguments);
    for (uint32_t i = 0; i < top->narguments; i++) {
        uint32_t first = first_of(&arguments, c->arguments, i);
        bool alike =
            sf_type_of(graph, top->arguments[i]) == sf_type_of(graph, top->arguments[first]);
        out->arguments[i] = alike ? first : i;
    }
}

sf_classes sf_classes_of(const sf_graph *graph, sf_arena *arena)
{
    colouring c = {.graph = graph};
    sf_classes out = {0};
    begin_colours(&c);
    for (int round = 0; round < ROUNDS; round++)
        refine_colours(&c);
    collect_classes(&c, arena, &out);
    sf_arena_free(&c.scratch);
    return out;
}
