#include "plan/fold/shorten.h"

#include <string.h>

#include "base/mem.h"
#include "ir/canon.h"
#include "ir/clone.h"
#include "op/op.h"

typedef struct gap {
    uint32_t first, count; /* layers first .. first + count - 1 are removed */
} gap;

typedef enum progress { NOT_YET, UNDER_WAY, DONE } progress;

typedef struct shortener {
    const sf_graph *from;
    const sf_repeats *repeats;
    gap *gaps; /* by stack */
    sf_graph *to;
    sf_value *map;      /* by value of `from`: its copy, or SF_NONE */
    progress *progress; /* by node */
    sf_item *item_of;   /* by node of `to` */
    sf_arena scratch;
} shortener;

/* Whether chains of that item lose items: those that reach over the gap. */
static const gap *gap_of(const shortener *s, sf_item item)
{
    if (item == SF_NONE || s->repeats->stack[item] == SF_NONE)
        return NULL;
    const gap *g = &s->gaps[s->repeats->stack[item]];
    return g->count > 0 && s->repeats->length[item] > g->first + g->count ? g : NULL;
}

static bool is_removed(const shortener *s, sf_item item)
{
    const gap *g = gap_of(s, item);
    return g && s->repeats->place[item] >= g->first &&
           s->repeats->place[item] < g->first + g->count;
}

/* The item at that place of the chain. */
static sf_item in_chain(const shortener *s, sf_item item, uint32_t place)
{
    while (s->repeats->place[item] < place)
        item = s->repeats->next[item];
    while (s->repeats->place[item] > place)
        item = s->repeats->before[item];
    return item;
}

static sf_value value_of(const shortener *s, sf_item item, uint32_t result)
{
    return item < s->from->nnodes ? s->from->nodes[item]->result + result
                                  : s->from->top->arguments[item - s->from->nnodes];
}

/* The replacement of a removed value. In the order in which they are tried: */
enum {
    /* the operand to which the removed item adds, if it is part of a sum over layers, in any
     * order */
    PASSED,
    SHIFTED, /* the counterpart, as many layers from the reader as in a step of fewer layers */
    FIRST_KEPT,
    LAST_KEPT,
    WAYS
};

/* An operand of the removed item that is in its chain: s += x, layer by layer, in whatever order. */
static sf_value passed(const shortener *s, sf_item item)
{
    const sf_node *node = item < s->from->nnodes ? s->from->nodes[item] : NULL;
    for (uint32_t o = 0; node && o < node->noperands; o++) {
        sf_item maker = sf_item_of(s->from, s->repeats, node->operands[o]);
        if (maker == SF_NONE || s->repeats->stack[maker] != s->repeats->stack[item] ||
            s->repeats->length[maker] != s->repeats->length[item])
            continue;
        if (in_chain(s, maker, s->repeats->place[item]) == item)
            return node->operands[o];
    }
    return SF_NONE;
}

static sf_value replacement(const shortener *s, sf_item reader, sf_value value, int way)
{
    sf_item item = sf_item_of(s->from, s->repeats, value);
    const gap *g = gap_of(s, item);
    uint32_t place = s->repeats->place[item], end = g->first + g->count, to;
    bool same = reader != SF_NONE && s->repeats->stack[reader] == s->repeats->stack[item];
    switch (way) {
    case SHIFTED:
        if (!same)
            return SF_NONE;
        if (s->repeats->place[reader] < g->first)
            to = place + g->count;
        else if (place >= g->count)
            to = place - g->count;
        else
            return SF_NONE;
        break;
    case PASSED:
        return passed(s, item);
    case FIRST_KEPT:
        to = end;
        break;
    default:
        to = g->first - 1;
        break;
    }
    if (to >= s->repeats->length[item])
        return SF_NONE;
    return value_of(s, in_chain(s, item, to), s->from->values[value].index);
}

static bool emit(shortener *s, const sf_node *node);

/* The kept value of `from` that replaces `value` where the reader reads it, and is in the copy
 * then; SF_NONE if there is none. */
static sf_value resolve(shortener *s, sf_item reader, sf_value value)
{
    sf_item item = sf_item_of(s->from, s->repeats, value);
    if (item == SF_NONE)
        return SF_NONE;
    if (!is_removed(s, item)) {
        if (item >= s->from->nnodes)
            return value;
        if (s->progress[item] == UNDER_WAY || !emit(s, s->from->nodes[item]))
            return SF_NONE;
        return value;
    }
    for (int way = 0; way < WAYS; way++) {
        sf_value other = replacement(s, reader, value, way);
        if (other == SF_NONE || sf_type_of(s->from, other) != sf_type_of(s->from, value))
            continue;
        sf_value found = resolve(s, reader, other);
        if (found != SF_NONE)
            return found;
    }
    return SF_NONE;
}

/* Values of the top block that the node reads, in its regions as well. */
typedef struct reading {
    shortener *s;
    sf_value *values;
    size_t count, capacity;
} reading;

static void note_read(void *context, sf_value value)
{
    reading *r = context;
    if (sf_item_of(r->s->from, r->s->repeats, value) == SF_NONE)
        return;
    for (size_t i = 0; i < r->count; i++)
        if (r->values[i] == value)
            return;
    SF_PUSH(&r->s->scratch, r->values, r->count, r->capacity, value);
}

static bool emit(shortener *s, const sf_node *node)
{
    if (s->progress[node->id] != NOT_YET)
        return s->progress[node->id] == DONE;
    s->progress[node->id] = UNDER_WAY;
    reading r = {.s = s};
    for (uint32_t o = 0; o < node->noperands; o++)
        note_read(&r, node->operands[o]);
    for (uint32_t i = 0; i < node->nregions; i++)
        sf_block_uses(s->from, node->regions[i], note_read, &r);
    sf_value *found = SF_ARRAY(&s->scratch, r.count, sf_value);
    sf_value *old = SF_ARRAY(&s->scratch, r.count, sf_value);
    bool good = true;
    for (size_t i = 0; good && i < r.count; i++) {
        found[i] = resolve(s, node->id, r.values[i]);
        good = found[i] != SF_NONE;
    }
    if (!good) {
        s->progress[node->id] = NOT_YET;
        return false;
    }
    for (size_t i = 0; i < r.count; i++) {
        old[i] = s->map[r.values[i]];
        found[i] = s->map[found[i]];
    }
    for (size_t i = 0; i < r.count; i++)
        s->map[r.values[i]] = found[i];
    sf_node_clone(s->from, node, s->to, s->to->top, s->map);
    for (size_t i = 0; i < r.count; i++)
        s->map[r.values[i]] = old[i];
    s->progress[node->id] = DONE;
    return true;
}

static void copy_arguments(shortener *s, sf_short_step *out, sf_arena *arena)
{
    const sf_block *top = s->from->top;
    out->argument_of = SF_ARRAY(arena, top->narguments, uint32_t);
    for (uint32_t i = 0; i < top->narguments; i++) {
        if (is_removed(s, (sf_item)(s->from->nnodes + i)))
            continue;
        out->argument_of[s->to->top->narguments] = i;
        s->map[top->arguments[i]] =
            sf_block_argument(s->to, s->to->top, sf_argument_type(s->from, i));
    }
}

/* Results that become removed arguments go with these. */
static bool copy_results(shortener *s, sf_short_step *out, sf_arena *arena)
{
    const sf_graph *from = s->from;
    const sf_block *top = from->top;
    bool *gone = SF_ARRAY(&s->scratch, top->nresults, bool);
    sf_value *results = SF_ARRAY(&s->scratch, top->nresults, sf_value);
    uint32_t count = 0;
    out->result_of = SF_ARRAY(arena, top->nresults, uint32_t);
    for (uint32_t i = 0; i < top->narguments; i++)
        if (from->arguments[i].next != SF_NONE && is_removed(s, (sf_item)(from->nnodes + i)))
            gone[from->arguments[i].next] = true;
    for (uint32_t i = 0; i < top->nresults; i++) {
        if (gone[i])
            continue;
        sf_value value = resolve(s, SF_NONE, top->results[i]);
        if (value == SF_NONE)
            return false;
        out->result_of[count] = i;
        results[count++] = s->map[value];
    }
    sf_block_return(s->to, s->to->top, count, results);
    return true;
}

static void copy_head(shortener *s, const sf_short_step *out)
{
    const sf_graph *from = s->from;
    sf_graph *to = s->to;
    uint32_t *result = SF_ARRAY(&s->scratch, from->top->nresults, uint32_t);
    sf_graph_clone_head(from, to);
    to->results = SF_ARRAY(&to->arena, to->top->nresults, sf_result);
    to->arguments = SF_ARRAY(&to->arena, to->top->narguments, sf_argument);
    for (uint32_t i = 0; i < to->top->nresults; i++) {
        to->results[i] = from->results[out->result_of[i]];
        result[out->result_of[i]] = i;
    }
    for (uint32_t i = 0; i < to->top->narguments; i++) {
        sf_argument *argument = &to->arguments[i];
        *argument = from->arguments[out->argument_of[i]];
        if (argument->next != SF_NONE)
            argument->next = result[argument->next];
        if (argument->gradient != SF_NONE)
            argument->gradient = s->map[argument->gradient];
    }
}

/* Nodes were copied as results asked for them, updates first. In the order of the long step few values are made before they
 * are needed, so the order of the copies decides fusion, memory and what collectives are concurrent with. */
static void order_as_before(shortener *s, sf_short_step *out, sf_arena *arena)
{
    const sf_block *top = s->from->top;
    sf_item *items = SF_ARRAY(&s->scratch, s->to->nnodes, sf_item);
    sf_value *roots = SF_ARRAY(&s->scratch, top->nnodes, sf_value);
    size_t nroots = 0;
    for (uint32_t i = 0; i < s->to->nnodes; i++)
        items[i] = SF_NONE;
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(s->from, i);
        if (s->progress[node->id] != DONE || node->nresults == 0)
            continue;
        roots[nroots] = s->map[node->result];
        items[s->to->values[roots[nroots++]].node] = node->id;
    }
    sf_graph_arrange(s->to, nroots, roots);
    sf_graph *ordered = sf_graph_clone(s->to);
    out->item_of = SF_ARRAY(arena, ordered->nnodes, sf_item);
    for (uint32_t i = 0; i < ordered->nnodes; i++)
        out->item_of[i] = SF_NONE;
    for (uint32_t i = 0; i < ordered->top->nnodes; i++)
        out->item_of[ordered->top->nodes[i]] = items[s->to->top->nodes[i]];
    sf_graph_free(s->to);
    s->to = ordered;
}

static bool shorten(shortener *s, sf_short_step *out, sf_arena *arena)
{
    const sf_block *top = s->from->top;
    copy_arguments(s, out, arena);
    if (!copy_results(s, out, arena))
        return false;
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(s->from, i);
        if (sf_node_has_effect(s->from, node) && !is_removed(s, node->id) && !emit(s, node))
            return false;
    }
    copy_head(s, out);
    order_as_before(s, out, arena);
    return true;
}

bool sf_shorten_step(const sf_graph *graph, const sf_repeats *repeats, const uint32_t *keep,
                     sf_arena *arena, sf_short_step *out)
{
    shortener s = {.from = graph, .repeats = repeats};
    *out = (sf_short_step){0};
    s.gaps = SF_ARRAY(&s.scratch, repeats->count, gap);
    for (uint32_t i = 0; i < repeats->count; i++) {
        uint32_t kept = keep[i] < SF_FEWEST_KEPT ? SF_FEWEST_KEPT : keep[i];
        if (repeats->stacks[i].layers > kept)
            s.gaps[i] = (gap){1, repeats->stacks[i].layers - kept};
    }
    s.to = sf_graph_new(graph->pool);
    s.progress = SF_ARRAY(&s.scratch, graph->nnodes, progress);
    s.map = SF_ARRAY(&s.scratch, graph->nvalues, sf_value);
    memset(s.map, 0xff, graph->nvalues * sizeof *s.map);
    bool good = shorten(&s, out, arena);
    if (good)
        out->graph = s.to;
    else
        sf_graph_free(s.to);
    sf_arena_free(&s.scratch);
    return good;
}
