/* Finding a map from layers to layers: a seed, two products of one kind of which the later depends on the earlier, is paired, and pairs
 * grow along operands, along readers that are the only ones of their kind, and from an argument to the result that becomes
 * it. Growth ends where counterparts differ. Of several seeds the one whose map covers most wins. */
#include "plan/fold/repeats.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "ir/uses.h"
#include "op/op.h"

enum {
    MOST_READERS = 64, /* of a value whose readers are compared: constants have thousands */
    MOST_STRIDES = 8,  /* layers of so many kinds may alternate */
    FEWEST_LAYERS = 3,
    DEPTH = 4, /* of an operand's predecessors, if operands may be in either order */
};

typedef struct finder {
    const sf_graph *graph;
    sf_uses uses;
    sf_arena scratch;
    uint64_t *kind; /* by item: equal where op, types and attributes are */
    uint64_t *deep; /* by item: equal where all that leads to it in a few steps is, too */
    sf_repeats *found;
    sf_item *queue; /* pairs that have been made and not been followed: the earlier items */
    size_t queued, followed;
    struct later {
        sf_item a, b;
    } * later; /* pairs to try when nothing else is left to follow */
    size_t nlater, later_capacity, tried;
} finder;

sf_item sf_item_of(const sf_graph *graph, const sf_repeats *repeats, sf_value value)
{
    const sf_value_info *info = &graph->values[value];
    if (info->node != SF_NONE)
        return repeats->is_item[info->node] ? info->node : SF_NONE;
    bool is_argument =
        info->index < graph->top->narguments && graph->top->arguments[info->index] == value;
    return is_argument ? (sf_item)(graph->nnodes + info->index) : SF_NONE;
}

static const sf_node *node_of(const finder *f, sf_item item)
{
    return item < f->graph->nnodes ? f->graph->nodes[item] : NULL;
}

/* Kinds -------------------------------------------------------------------------------------------- */

static uint64_t mix_type(uint64_t hash, const sf_type *type)
{
    hash = sf_hash_mix(hash, (uint64_t)type->dtype);
    for (int d = 0; d < type->rank; d++)
        hash = sf_hash_mix(hash, (uint64_t)type->dims[d]);
    return sf_hash_mix(hash, (uint64_t)type->rank);
}

static uint64_t mix_region(const sf_graph *graph, uint64_t hash, const sf_block *block)
{
    for (uint32_t i = 0; i < block->nnodes; i++) {
        const sf_node *node = graph->nodes[block->nodes[i]];
        hash = sf_hash_mix(hash, (uint64_t)node->def->id);
        for (uint32_t r = 0; r < node->nresults; r++)
            hash = mix_type(hash, sf_type_of(graph, node->result + r));
        for (uint32_t r = 0; r < node->nregions; r++)
            hash = mix_region(graph, hash, node->regions[r]);
    }
    return hash;
}

/* The numbers in a constant and the place of a slice may differ from layer to layer. */
static bool attributes_count(const sf_node *node)
{
    return !sf_is(node, SF_OP_CONSTANT) && !sf_is(node, SF_OP_SLICE);
}

static uint64_t kind_of_node(const sf_graph *graph, const sf_node *node)
{
    uint64_t hash = sf_hash_mix((uint64_t)node->def->id, (uint64_t)node->phase);
    for (uint32_t o = 0; o < node->noperands; o++)
        hash = mix_type(hash, sf_type_of(graph, node->operands[o]));
    for (uint32_t r = 0; r < node->nresults; r++)
        hash = mix_type(hash, sf_type_of(graph, node->result + r));
    for (int a = 0; a < node->def->nattrs && attributes_count(node); a++)
        hash = sf_hash_mix(hash, node->attrs[a] ? node->attrs[a]->hash : 1);
    for (uint32_t r = 0; r < node->nregions; r++)
        hash = mix_region(graph, hash, node->regions[r]);
    return hash;
}

static void find_kinds(finder *f)
{
    const sf_graph *graph = f->graph;
    f->kind = SF_ARRAY(&f->scratch, f->found->nitems, uint64_t);
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        f->kind[node->id] = kind_of_node(graph, node);
        f->found->is_item[node->id] = true;
    }
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        f->kind[graph->nnodes + i] = mix_type(sf_hash_mix(3, (uint64_t)graph->arguments[i].role),
                                              sf_argument_type(graph, i));
        f->found->is_item[graph->nnodes + i] = true;
    }
}

static uint64_t mix_operands(const finder *f, uint64_t hash, const sf_node *node)
{
    uint64_t sum = 0;
    for (uint32_t o = 0; o < node->noperands; o++) {
        sf_item maker = sf_item_of(f->graph, f->found, node->operands[o]);
        uint64_t of = maker == SF_NONE ? 1 : f->deep[maker];
        sum += node->def->commutative ? of : sf_hash_mix(of, o);
    }
    return sf_hash_mix(hash, sum);
}

/* From the last node on, so that each reads its operands' kinds of the previous round. */
static void find_deep_kinds(finder *f)
{
    f->deep = SF_ARRAY(&f->scratch, f->found->nitems, uint64_t);
    memcpy(f->deep, f->kind, f->found->nitems * sizeof *f->deep);
    for (int round = 0; round < DEPTH; round++)
        for (uint32_t i = f->graph->top->nnodes; i-- > 0;) {
            const sf_node *node = sf_top_node(f->graph, i);
            f->deep[node->id] = mix_operands(f, f->kind[node->id], node);
        }
}

/* Growth ------------------------------------------------------------------------------------------- */

static bool leads_to(const sf_repeats *found, sf_item from, sf_item to)
{
    for (sf_item at = from; at != SF_NONE; at = found->next[at])
        if (at == to)
            return true;
    return false;
}

static void pair(finder *f, sf_item a, sf_item b)
{
    sf_repeats *found = f->found;
    if (a == SF_NONE || b == SF_NONE || a == b || f->kind[a] != f->kind[b] ||
        found->stack[a] != SF_NONE || found->stack[b] != SF_NONE || found->next[a] != SF_NONE ||
        found->before[b] != SF_NONE || leads_to(found, b, a))
        return;
    found->next[a] = b;
    found->before[b] = a;
    f->queue[f->queued++] = a;
}

static void pair_later(finder *f, sf_item a, sf_item b)
{
    SF_PUSH(&f->scratch, f->later, f->nlater, f->later_capacity, ((struct later){a, b}));
}

static void pair_values(finder *f, sf_value a, sf_value b)
{
    if (f->graph->values[a].index == f->graph->values[b].index ||
        f->graph->values[a].node == SF_NONE)
        pair(f, sf_item_of(f->graph, f->found, a), sf_item_of(f->graph, f->found, b));
}

static bool are_alike(const finder *f, sf_value a, sf_value b)
{
    sf_item x = sf_item_of(f->graph, f->found, a), y = sf_item_of(f->graph, f->found, b);
    return x != SF_NONE && y != SF_NONE && f->deep[x] == f->deep[y];
}

/* Whether the node adds to an accumulation of the same kind: s += x. Such sums need not follow the
 * order of layers (a norm over parameters follows that of names), so pairs grow from sum to sum
 * only when no others are left. */
static bool adds_to(const finder *f, const sf_node *node, sf_value value)
{
    sf_item maker = sf_item_of(f->graph, f->found, value);
    return node->def->commutative && maker != SF_NONE && f->kind[maker] == f->kind[node->id];
}

/* Operands of a commutative op come in either order. Where it is not clear which belong together, they are left. */
static void pair_operands(finder *f, const sf_node *a, const sf_node *b)
{
    if (!a->def->commutative || a->noperands != 2) {
        for (uint32_t o = 0; o < a->noperands; o++)
            pair_values(f, a->operands[o], b->operands[o]);
        return;
    }
    bool straight = are_alike(f, a->operands[0], b->operands[0]) ||
                    are_alike(f, a->operands[1], b->operands[1]);
    bool crossed = are_alike(f, a->operands[0], b->operands[1]) ||
                   are_alike(f, a->operands[1], b->operands[0]);
    bool twice = a->operands[0] == a->operands[1];
    for (uint32_t o = 0; o < 2 && (straight != crossed || twice); o++)
        if (adds_to(f, a, a->operands[o]))
            pair_later(f, sf_item_of(f->graph, f->found, a->operands[o]),
                       sf_item_of(f->graph, f->found, b->operands[straight ? o : 1 - o]));
        else
            pair_values(f, a->operands[o], b->operands[straight ? o : 1 - o]);
}

static void pair_regions(finder *f, const sf_block *a, const sf_block *b)
{
    const sf_graph *graph = f->graph;
    for (uint32_t i = 0; i < a->nnodes && i < b->nnodes; i++) {
        const sf_node *x = graph->nodes[a->nodes[i]], *y = graph->nodes[b->nodes[i]];
        for (uint32_t o = 0; o < x->noperands && o < y->noperands; o++)
            pair_values(f, x->operands[o], y->operands[o]);
        for (uint32_t r = 0; r < x->nregions && r < y->nregions; r++)
            pair_regions(f, x->regions[r], y->regions[r]);
    }
}

/* Which operand it is, where that makes a difference. */
static uint32_t slot_of(const finder *f, const sf_value_use *use)
{
    return f->graph->nodes[use->node]->def->commutative ? 0 : use->operand;
}

/* The only reader that is of the kind and reads the value there; SF_NONE where there are several or none. */
static uint32_t only_reader(const finder *f, sf_value value, uint64_t kind, uint32_t operand)
{
    uint32_t only = SF_NONE;
    for (uint32_t u = f->uses.first[value]; u < f->uses.first[value + 1]; u++) {
        const sf_value_use *use = &f->uses.at[u];
        if (use->node == SF_NONE || f->kind[use->node] != kind || slot_of(f, use) != operand)
            continue;
        if (only != SF_NONE && only != use->node)
            return SF_NONE;
        only = use->node;
    }
    return only;
}

static void pair_readers(finder *f, sf_value a, sf_value b)
{
    if (sf_uses_count(&f->uses, a) > MOST_READERS || sf_uses_count(&f->uses, b) > MOST_READERS)
        return;
    for (uint32_t u = f->uses.first[a]; u < f->uses.first[a + 1]; u++) {
        const sf_value_use *use = &f->uses.at[u];
        if (use->node == SF_NONE)
            continue;
        uint64_t kind = f->kind[use->node];
        uint32_t slot = slot_of(f, use);
        if (only_reader(f, a, kind, slot) != use->node)
            continue;
        if (adds_to(f, f->graph->nodes[use->node], a))
            pair_later(f, use->node, only_reader(f, b, kind, slot));
        else
            pair(f, use->node, only_reader(f, b, kind, slot));
    }
}

static void follow_arguments(finder *f, uint32_t a, uint32_t b)
{
    const sf_graph *graph = f->graph;
    const sf_argument *x = &graph->arguments[a], *y = &graph->arguments[b];
    if (x->next != SF_NONE && y->next != SF_NONE)
        pair_values(f, graph->top->results[x->next], graph->top->results[y->next]);
    pair_readers(f, graph->top->arguments[a], graph->top->arguments[b]);
}

static void follow(finder *f, sf_item a, sf_item b)
{
    const sf_node *x = node_of(f, a), *y = node_of(f, b);
    if (!x) {
        follow_arguments(f, (uint32_t)(a - f->graph->nnodes), (uint32_t)(b - f->graph->nnodes));
        return;
    }
    pair_operands(f, x, y);
    for (uint32_t r = 0; r < x->nregions; r++)
        pair_regions(f, x->regions[r], y->regions[r]);
    for (uint32_t r = 0; r < x->nresults; r++)
        pair_readers(f, x->result + r, y->result + r);
}

/* How many pairs the seed grows to. */
static size_t grow(finder *f, sf_item a, sf_item b)
{
    f->queued = f->followed = f->nlater = f->tried = 0;
    pair(f, a, b);
    do {
        while (f->followed < f->queued) {
            sf_item at = f->queue[f->followed++];
            follow(f, at, f->found->next[at]);
        }
        while (f->tried < f->nlater && f->followed == f->queued) {
            struct later *next = &f->later[f->tried++];
            pair(f, next->a, next->b);
        }
    } while (f->followed < f->queued);
    return f->queued;
}

static void undo(finder *f)
{
    for (size_t i = 0; i < f->queued; i++) {
        sf_item a = f->queue[i];
        f->found->before[f->found->next[a]] = SF_NONE;
        f->found->next[a] = SF_NONE;
    }
}

/* Seeds -------------------------------------------------------------------------------------------- */

/* Whether node b depends on node a, which comes before it. */
static bool depends(finder *f, uint32_t a, uint32_t b, const uint32_t *order)
{
    sf_mark mark = sf_arena_mark(&f->scratch);
    bool *seen = SF_ARRAY(&f->scratch, f->graph->nnodes, bool), yes = false;
    uint32_t *stack = SF_ARRAY(&f->scratch, f->graph->nnodes, uint32_t), depth = 0;
    stack[depth++] = b;
    while (depth > 0 && !yes) {
        const sf_node *node = f->graph->nodes[stack[--depth]];
        for (uint32_t o = 0; o < node->noperands && !yes; o++) {
            uint32_t maker = f->graph->values[node->operands[o]].node;
            yes = maker == a;
            if (maker != SF_NONE && order[maker] > order[a] && !seen[maker]) {
                seen[maker] = true;
                stack[depth++] = maker;
            }
        }
    }
    sf_arena_reset(&f->scratch, mark);
    return yes;
}

/* A product of the forward pass that is in no chain. */
typedef struct seed {
    uint64_t kind;
    uint32_t place, node; /* in the top block; and its id */
} seed;

static int compare_seeds(const void *a, const void *b)
{
    const seed *x = a, *y = b;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

static size_t list_seeds(const finder *f, seed *out)
{
    size_t count = 0;
    for (uint32_t i = 0; i < f->graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(f->graph, i);
        if (sf_is_product(node->def) && node->phase == SF_FORWARD &&
            f->found->stack[node->id] == SF_NONE)
            out[count++] = (seed){f->kind[node->id], i, node->id};
    }
    qsort(out, count, sizeof *out, compare_seeds);
    return count;
}

typedef struct best_seed {
    uint32_t a, b;
    size_t pairs;
} best_seed;

/* Tries pairs in the middle of products of one kind, of each stride. */
static void try_kind(finder *f, const seed *of, size_t count, const uint32_t *order,
                     best_seed *best)
{
    for (size_t stride = 1; stride <= MOST_STRIDES && count >= FEWEST_LAYERS * stride; stride++) {
        size_t middle = (count - stride) / 2;
        uint32_t a = of[middle].node, b = of[middle + stride].node;
        if (!depends(f, a, b, order))
            continue;
        size_t pairs = grow(f, a, b);
        undo(f);
        if (pairs > best->pairs)
            *best = (best_seed){a, b, pairs};
    }
}

static best_seed find_seed(finder *f, const uint32_t *order, seed *seeds)
{
    best_seed best = {.pairs = 0};
    size_t count = list_seeds(f, seeds), end;
    /* A map of most of the step is not improved upon. */
    for (size_t at = 0; at < count && best.pairs < f->graph->top->nnodes / 2; at = end) {
        for (end = at + 1; end < count && seeds[end].kind == seeds[at].kind;)
            end++;
        if (end - at >= FEWEST_LAYERS)
            try_kind(f, seeds + at, end - at, order, &best);
    }
    return best;
}

/* Stacks ------------------------------------------------------------------------------------------- */

/* Numbers the chains of the pairs in the queue, and returns how many layers most of their items are
 * of. */
static uint32_t number_chains(finder *f, uint32_t stack, uint32_t *items)
{
    sf_repeats *found = f->found;
    uint32_t *of_length = SF_ARRAY(&f->scratch, f->queued + 2, uint32_t), most = 0, of_most = 0;
    *items = 0;
    for (size_t i = 0; i < f->queued; i++) {
        sf_item first = f->queue[i];
        if (found->before[first] != SF_NONE)
            continue;
        uint32_t length = 0;
        for (sf_item at = first; at != SF_NONE; at = found->next[at]) {
            found->stack[at] = stack;
            found->place[at] = length++;
        }
        for (sf_item at = first; at != SF_NONE; at = found->next[at])
            found->length[at] = length;
        of_length[length] += length;
        *items += length;
        if (of_length[length] > of_most || (of_length[length] == of_most && length > most))
            most = length;
        of_most = of_length[most];
    }
    return most;
}

static void find_stacks(finder *f, sf_arena *arena)
{
    size_t capacity = 0;
    sf_repeats *found = f->found;
    uint32_t *order = SF_ARRAY(&f->scratch, f->graph->nnodes, uint32_t);
    for (uint32_t i = 0; i < f->graph->top->nnodes; i++)
        order[f->graph->top->nodes[i]] = i;
    f->queue = SF_ARRAY(&f->scratch, found->nitems, sf_item);
    seed *seeds = SF_ARRAY(&f->scratch, f->graph->top->nnodes, seed);
    for (;;) {
        best_seed best = find_seed(f, order, seeds);
        if (best.pairs == 0)
            return;
        grow(f, best.a, best.b);
        sf_stack stack = {0};
        stack.layers = number_chains(f, found->count, &stack.items);
        SF_PUSH(arena, found->stacks, found->count, capacity, stack);
    }
}

sf_repeats sf_find_repeats(const sf_graph *graph, sf_arena *arena)
{
    sf_repeats found = {.nitems = graph->nnodes + graph->top->narguments};
    finder f = {.graph = graph, .found = &found};
    found.is_item = SF_ARRAY(arena, found.nitems, bool);
    found.stack = SF_ARRAY(arena, found.nitems, uint32_t);
    found.next = SF_ARRAY(arena, found.nitems, sf_item);
    found.before = SF_ARRAY(arena, found.nitems, sf_item);
    found.place = SF_ARRAY(arena, found.nitems, uint32_t);
    found.length = SF_ARRAY(arena, found.nitems, uint32_t);
    for (size_t i = 0; i < found.nitems; i++)
        found.stack[i] = found.next[i] = found.before[i] = SF_NONE;
    f.uses = sf_uses_of(graph, &f.scratch);
    find_kinds(&f);
    find_deep_kinds(&f);
    find_stacks(&f, arena);
    sf_arena_free(&f.scratch);
    return found;
}
