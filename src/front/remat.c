#include "front/remat.h"

#include <string.h>

#include "base/mem.h"
#include "front/normal.h"
#include "ir/canon.h"
#include "ir/clone.h"
#include "ir/opdef.h"

/* Facts about merged values, by the value that replaces them. */
typedef struct folded {
    const sf_node *first; /* by scope, of those of the forward pass that compute it; or NULL */
    bool late;            /* a later phase computes it */
    bool kept;            /* the text keeps it for later phases */
} folded;

typedef struct folding {
    sf_graph *from, *to; /* the same where there are no barriers to take out */
    sf_arena arena;
    sf_value *map;    /* by value of `from`: in `to` */
    sf_value *before; /* by value of `from`: its value before barriers */
    bool *read_late;  /* by value of `from`: later phases read it, or the step returns it */
    sf_value *same;   /* by value of `to`: the merged value */
    folded *values;   /* by value of `to` */
} folding;

static bool is_late_barrier(const sf_node *node)
{
    return sf_is(node, SF_OP_OPTIMIZATION_BARRIER) && node->phase != SF_FORWARD;
}

static bool has_late_barrier(const sf_graph *graph)
{
    for (uint32_t i = 0; i < graph->top->nnodes; i++)
        if (is_late_barrier(sf_top_node(graph, i)))
            return true;
    return false;
}

/* Readers */

static void find_before(folding *f)
{
    const sf_block *top = f->from->top;
    f->before = SF_ARRAY(&f->arena, f->from->nvalues, sf_value);
    for (sf_value v = 0; v < f->from->nvalues; v++)
        f->before[v] = v;
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(f->from, i);
        for (uint32_t r = 0; r < node->nresults && is_late_barrier(node); r++)
            f->before[node->result + r] = f->before[node->operands[r]];
    }
}

static void note_late_use(void *context, sf_value value)
{
    folding *f = context;
    f->read_late[f->before[value]] = true;
}

static void find_late_uses(folding *f)
{
    const sf_block *top = f->from->top;
    f->read_late = SF_ARRAY(&f->arena, f->from->nvalues, bool);
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(f->from, i);
        if (node->phase == SF_FORWARD || is_late_barrier(node))
            continue;
        for (uint32_t o = 0; o < node->noperands; o++)
            note_late_use(f, node->operands[o]);
        for (uint32_t r = 0; r < node->nregions; r++)
            sf_block_uses(f->from, node->regions[r], note_late_use, f);
    }
    for (uint32_t i = 0; i < top->nresults; i++)
        note_late_use(f, top->results[i]);
}

/* Without barriers */

static void emit_again(folding *f, sf_emitter *emitter, const sf_node *node)
{
    sf_mark mark = sf_arena_mark(&f->arena);
    sf_value *operands = SF_ARRAY(&f->arena, node->noperands, sf_value);
    sf_block **regions = SF_ARRAY(&f->arena, node->nregions, sf_block *);
    const sf_type **types = SF_ARRAY(&f->arena, node->nresults, const sf_type *);
    for (uint32_t o = 0; o < node->noperands; o++)
        operands[o] = f->map[node->operands[o]];
    for (uint32_t r = 0; r < node->nregions; r++)
        regions[r] = sf_block_clone(f->from, node->regions[r], f->to, f->map);
    for (uint32_t r = 0; r < node->nresults; r++)
        types[r] = sf_type_of(f->from, node->result + r);
    sf_node_spec spec = sf_spec_like(node);
    spec.operands = operands;
    spec.types = types;
    spec.attrs = node->attrs;
    spec.regions = regions;
    emitter->scope = node->scope;
    emitter->phase = node->phase;
    emitter->loc = node->loc;
    sf_emit(emitter, &spec, &f->map[node->result]);
    sf_arena_reset(&f->arena, mark);
}

/* Each node once more, in normal form, which barriers may have been in the way of. */
static void take_out_barriers(folding *f)
{
    const sf_block *top = f->from->top;
    f->to = sf_graph_new(f->from->pool);
    sf_emitter emitter = {.graph = f->to, .block = f->to->top, .slice_length = -1};
    for (uint32_t i = 0; i < top->narguments; i++)
        f->map[top->arguments[i]] =
            sf_block_argument(f->to, f->to->top, sf_type_of(f->from, top->arguments[i]));
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(f->from, i);
        if (!is_late_barrier(node))
            emit_again(f, &emitter, node);
        else
            for (uint32_t r = 0; r < node->nresults; r++)
                f->map[node->result + r] = f->map[node->operands[r]];
    }
    sf_value *results = SF_ARRAY(&f->arena, top->nresults, sf_value);
    for (uint32_t i = 0; i < top->nresults; i++)
        results[i] = f->map[top->results[i]];
    sf_block_return(f->to, f->to->top, top->nresults, results);
    sf_graph_clone_head(f->from, f->to);
}

/* Notes */

/* A node that normal form made another op of, or nothing, does not compute the value: it reads it. */
static bool is_computed_by(const folding *f, sf_value value, const sf_node *node)
{
    const sf_node *maker = sf_maker(f->to, value);
    return maker && node->def == maker->def;
}

static void note_node(folding *f, const sf_node *node)
{
    for (uint32_t r = 0; r < node->nresults; r++) {
        sf_value value = node->result + r, stands = f->same[f->map[value]];
        folded *it = &f->values[stands];
        bool is_forward = node->phase == SF_FORWARD;
        bool computes = is_computed_by(f, stands, node);
        it->late = it->late || (computes && !is_forward);
        it->kept = it->kept || (is_forward ? f->read_late[value] : !computes);
        if (computes && is_forward &&
            (!it->first || strcmp(node->scope->path, it->first->scope->path) < 0))
            it->first = node;
    }
}

/* It computes nothing: it renames its operand, or a part of it. */
static bool is_name(const sf_node *node)
{
    switch (node->def->id) {
    case SF_OP_RESHAPE:
    case SF_OP_TRANSPOSE:
    case SF_OP_SLICE:
    case SF_OP_BROADCAST_IN_DIM:
        return true;
    default:
        return false;
    }
}

static bool reads_noted(const sf_graph *graph, const sf_node *node)
{
    for (uint32_t o = 0; o < node->noperands; o++) {
        const sf_node *maker = sf_maker(graph, node->operands[o]);
        if (maker && maker->recomputed)
            return true;
    }
    return false;
}

static bool follows_from_constants(const sf_node *node, bool *constant)
{
    bool all = node->nregions == 0;
    for (uint32_t o = 0; o < node->noperands; o++)
        all = all && constant[node->operands[o]];
    for (uint32_t r = 0; r < node->nresults; r++)
        constant[node->result + r] = all;
    return all;
}

static bool is_twice(const folding *f, const sf_node *node)
{
    bool twice = false;
    for (uint32_t r = 0; r < node->nresults; r++) {
        const folded *it = &f->values[node->result + r];
        if (it->kept)
            return false;
        twice = twice || (it->first && it->late);
    }
    return twice;
}

static void set_notes(folding *f)
{
    const sf_block *top = f->to->top;
    bool *constant = SF_ARRAY(&f->arena, f->to->nvalues, bool);
    for (uint32_t i = 0; i < top->nnodes; i++) {
        sf_node *node = sf_top_node(f->to, i);
        const folded *it = node->nresults > 0 ? &f->values[node->result] : NULL;
        if (it && it->first && it->late)
            node->scope = it->first->scope; /* and no trace of its second place */
        node->recomputed = !follows_from_constants(node, constant) && is_twice(f, node) &&
                           (!is_name(node) || reads_noted(f->to, node));
    }
}

bool sf_fold_again(sf_graph **graph, bool loops)
{
    folding f = {.from = *graph, .to = *graph};
    bool barriers = has_late_barrier(f.from);
    if (!barriers && !loops)
        return false;
    find_before(&f);
    find_late_uses(&f);
    f.map = SF_ARRAY(&f.arena, f.from->nvalues, sf_value);
    for (sf_value v = 0; v < f.from->nvalues; v++)
        f.map[v] = v;
    if (barriers)
        take_out_barriers(&f);
    f.same = SF_ARRAY(&f.arena, f.to->nvalues, sf_value);
    f.values = SF_ARRAY(&f.arena, f.to->nvalues, folded);
    uint32_t count = f.from->top->nnodes;
    uint32_t *nodes = sf_arena_copy(&f.arena, f.from->top->nodes, count * sizeof *nodes);
    sf_graph_merge(f.to, NULL, f.same);
    for (uint32_t i = 0; i < count; i++)
        if (!is_late_barrier(f.from->nodes[nodes[i]]))
            note_node(&f, f.from->nodes[nodes[i]]);
    set_notes(&f);
    sf_graph_prune(f.to);
    if (barriers)
        sf_graph_free(f.from);
    *graph = f.to;
    sf_arena_free(&f.arena);
    return true;
}

static void note_want(void *context, sf_value value)
{
    ((bool *)context)[value] = true;
}

static void want_operands(const sf_graph *graph, const sf_node *node, bool *wanted)
{
    for (uint32_t o = 0; o < node->noperands; o++)
        wanted[node->operands[o]] = true;
    for (uint32_t r = 0; r < node->nregions; r++)
        sf_block_uses(graph, node->regions[r], note_want, wanted);
}

void sf_settle_again(sf_graph *graph)
{
    bool *wanted = sf_alloc(graph->nvalues * sizeof *wanted);
    for (uint32_t i = graph->top->nnodes; i-- > 0;) {
        sf_node *node = sf_top_node(graph, i);
        bool is_wanted = false;
        for (uint32_t r = 0; r < node->nresults; r++)
            is_wanted = is_wanted || wanted[node->result + r];
        node->recomputed = node->recomputed && is_wanted && node->phase == SF_FORWARD;
        if (node->recomputed || node->phase != SF_FORWARD)
            want_operands(graph, node, wanted);
    }
    sf_free(wanted);
}
