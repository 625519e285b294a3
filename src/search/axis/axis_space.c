#include "search/axis/axis_space.h"

#include "base/hash.h"
#include "op/op.h"

/* An op on certain types, and what is known of how it splits: shared by the nodes that do the same. */
typedef struct applied {
    sf_op op;
    sf_factoring factoring;
    sf_node_space space;
    size_t capacity; /* of the strategies */
    uint64_t hash;
    struct applied *next; /* with the same hash slot */
} applied;

typedef struct usage {
    uint32_t node, operand;
} usage;

/* A share that reached a value. */
typedef struct reached {
    sf_share share;
    struct reached *next;
} reached;

typedef struct visit {
    sf_value value;
    sf_share share;
} visit;

typedef struct spreading {
    const sf_graph *graph;
    sf_arena *arena; /* of the space */
    sf_arena scratch;
    int parts;
    applied **ops; /* by node id */
    applied **slots;
    size_t nslots;
    usage *uses; /* of value v: first_use[v] .. first_use[v + 1] */
    uint32_t *first_use;
    reached **shares; /* by value */
    visit *queue;
    size_t head, count, capacity;
} spreading;

/* Ops */

static uint64_t hash_op(const sf_op *op)
{
    uint64_t hash = sf_hash_mix((uint64_t)op->def->id, (uint64_t)op->noperands);
    for (int i = 0; i < op->noperands; i++)
        hash = sf_hash_mix(hash, (uint64_t)(uintptr_t)op->in[i]);
    for (int i = 0; i < op->nresults; i++)
        hash = sf_hash_mix(hash, (uint64_t)(uintptr_t)op->out[i]);
    for (int i = 0; i < op->def->nattrs; i++)
        hash = sf_hash_mix(hash, op->attrs[i] ? op->attrs[i]->hash : 1);
    return hash;
}

static bool is_same_op(const sf_op *a, const sf_op *b)
{
    if (a->def != b->def || a->noperands != b->noperands || a->nresults != b->nresults ||
        a->nregions > 0 || b->nregions > 0)
        return false;
    for (int i = 0; i < a->noperands; i++)
        if (a->in[i] != b->in[i])
            return false;
    for (int i = 0; i < a->nresults; i++)
        if (a->out[i] != b->out[i])
            return false;
    for (int i = 0; i < a->def->nattrs; i++)
        if (a->attrs[i] != b->attrs[i])
            return false;
    return true;
}

static bool is_same_strategy(sf_strategy a, sf_strategy b)
{
    return a.kind == b.kind && a.factor == b.factor && a.period == b.period && a.mask == b.mask;
}

/* Adds a candidate unless it is there. */
static void record_strategy(spreading *s, applied *a, sf_strategy strategy)
{
    sf_node_space *space = &a->space;
    for (uint32_t i = 0; i < space->nstrategies; i++)
        if (is_same_strategy(space->strategies[i], strategy))
            return;
    if (space->nstrategies == SF_MOST_STRATEGIES)
        return;
    size_t count = space->nstrategies;
    SF_PUSH(s->arena, space->strategies, count, a->capacity, strategy);
    space->nstrategies = (uint32_t)count;
}

/* To run whole, and to pass partial sums on; a product in every way. */
static void record_first(spreading *s, applied *a)
{
    sf_strategy *all;
    int count = sf_strategies(&a->op, &a->factoring, s->parts, &s->scratch, &all);
    for (int i = 0; i < count; i++)
        if (all[i].kind != SF_RUN_FACTOR || sf_is_product(a->op.def))
            record_strategy(s, a, all[i]);
}

/* The op of a node; its types stay in scratch until the space is made. */
static applied *apply_op(spreading *s, const sf_node *node)
{
    sf_mark mark = sf_arena_mark(&s->scratch);
    const sf_type **types =
        SF_ARRAY(&s->scratch, node->noperands + node->nresults, const sf_type *);
    sf_op op = sf_op_of(s->graph, node, types);
    uint64_t hash = hash_op(&op);
    applied **slot = &s->slots[hash & (s->nslots - 1)];
    for (applied *a = *slot; a; a = a->next)
        if (a->hash == hash && is_same_op(&a->op, &op)) {
            sf_arena_reset(&s->scratch, mark);
            return a;
        }
    applied *a = SF_NEW(&s->scratch, applied);
    *a = (applied){.op = op, .hash = hash, .next = *slot};
    a->space.ntensors = node->noperands + node->nresults;
    *slot = a;
    sf_op_factors(&a->op, &s->scratch, &a->factoring);
    if (sf_is_transparent(node))
        record_strategy(s, a, (sf_strategy){.kind = SF_RUN_WHOLE});
    else
        record_first(s, a);
    return a;
}

static void apply_top_ops(spreading *s)
{
    s->ops = SF_ARRAY(&s->scratch, s->graph->nnodes, applied *);
    s->nslots = 1024;
    s->slots = SF_ARRAY(&s->scratch, s->nslots, applied *);
    for (uint32_t i = 0; i < s->graph->top->nnodes; i++)
        s->ops[sf_top_node(s->graph, i)->id] = apply_op(s, sf_top_node(s->graph, i));
}

/* Uses inside of regions want whole values: nothing spreads there. */
static void find_readers_of(spreading *s)
{
    const sf_graph *graph = s->graph;
    s->first_use = SF_ARRAY(&s->scratch, graph->nvalues + 2, uint32_t);
    for (uint32_t i = 0; i < graph->top->nnodes; i++)
        for (uint32_t o = 0; o < sf_top_node(s->graph, i)->noperands; o++)
            s->first_use[sf_top_node(s->graph, i)->operands[o] + 2]++;
    for (size_t v = 2; v < graph->nvalues + 2; v++)
        s->first_use[v] += s->first_use[v - 1];
    s->uses = SF_ARRAY(&s->scratch, s->first_use[graph->nvalues + 1], usage);
    for (uint32_t i = 0; i < graph->top->nnodes; i++)
        for (uint32_t o = 0; o < sf_top_node(s->graph, i)->noperands; o++) {
            const sf_node *node = sf_top_node(s->graph, i);
            s->uses[s->first_use[node->operands[o] + 1]++] = (usage){node->id, o};
        }
}

/* Spreading */

static void reach_tensor(spreading *s, sf_value value, sf_share share)
{
    if (share.kind != SF_SPLIT)
        return;
    for (const reached *r = s->shares[value]; r; r = r->next)
        if (sf_share_equal(r->share, share))
            return;
    reached *r = SF_NEW(&s->scratch, reached);
    *r = (reached){share, s->shares[value]};
    s->shares[value] = r;
    SF_PUSH(&s->scratch, s->queue, s->count, s->capacity, ((visit){value, share}));
}

static void reach_tensors(spreading *s, const sf_node *node, const sf_strategy *strategy)
{
    const applied *a = s->ops[node->id];
    for (uint32_t t = 0; t < node->noperands + node->nresults; t++)
        reach_tensor(s,
                     t < node->noperands ? node->operands[t] : node->result + (t - node->noperands),
                     sf_strategy_share(&a->op, &a->factoring, strategy, (int)t));
}

static void propagate_to_reader(spreading *s, const sf_node *node, uint32_t tensor, sf_share share)
{
    applied *a = s->ops[node->id];
    sf_strategy strategy;
    if (sf_is_transparent(node)) {
        uint32_t i = tensor % node->noperands;
        reach_tensor(s, node->operands[i], share);
        reach_tensor(s, node->result + i, share);
    } else if (sf_strategy_of_split(&a->factoring, (int)tensor, share, s->parts, &strategy)) {
        record_strategy(s, a, strategy);
        reach_tensors(s, node, &strategy);
    }
}

static void spread_shares(spreading *s)
{
    while (s->head < s->count) {
        visit at = s->queue[s->head++];
        const sf_node *maker = sf_maker(s->graph, at.value);
        if (maker)
            propagate_to_reader(s, maker, maker->noperands + (at.value - maker->result), at.share);
        for (uint32_t u = s->first_use[at.value]; u < s->first_use[at.value + 1]; u++)
            propagate_to_reader(s, s->graph->nodes[s->uses[u].node], s->uses[u].operand, at.share);
    }
}

static void sow_splits(spreading *s)
{
    const sf_block *top = s->graph->top;
    s->shares = SF_ARRAY(&s->scratch, s->graph->nvalues, reached *);
    for (uint32_t i = 0; i < top->narguments; i++) {
        const sf_type *type = sf_type_of(s->graph, top->arguments[i]);
        for (int d = 0; d < type->rank; d++)
            if (type->dims[d] > 0 && type->dims[d] % s->parts == 0)
                reach_tensor(s, top->arguments[i],
                             (sf_share){.kind = SF_SPLIT, .dim = d, .period = type->dims[d]});
    }
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const applied *a = s->ops[sf_top_node(s->graph, i)->id];
        for (uint32_t k = 0; sf_is_product(a->op.def) && k < a->space.nstrategies; k++)
            reach_tensors(s, sf_top_node(s->graph, i), &a->space.strategies[k]);
    }
}

/* What comes out */

static sf_node_space space_of_node(spreading *s, applied *a)
{
    sf_node_space *space = &a->space;
    if (!space->shares) {
        space->shares = SF_ARRAY(s->arena, space->nstrategies * space->ntensors + 1, sf_share);
        for (uint32_t k = 0; k < space->nstrategies; k++)
            for (uint32_t t = 0; t < space->ntensors; t++)
                space->shares[k * space->ntensors + t] =
                    sf_strategy_share(&a->op, &a->factoring, &space->strategies[k], (int)t);
    }
    return *space;
}

static sf_share_space shares_of_axis(spreading *s, sf_value value)
{
    sf_share_space out = {.nshares = 1};
    for (const reached *r = s->shares[value]; r; r = r->next)
        out.nshares++;
    out.shares = SF_ARRAY(s->arena, out.nshares, sf_share);
    uint32_t at = out.nshares;
    for (const reached *r = s->shares[value]; r; r = r->next)
        out.shares[--at] = r->share;
    return out;
}

sf_axis_space *sf_axis_space_new(const sf_graph *graph, int parts, sf_arena *arena)
{
    spreading s = {.graph = graph, .arena = arena, .parts = parts};
    sf_axis_space *out = SF_NEW(arena, sf_axis_space);
    out->parts = parts;
    out->nodes = SF_ARRAY(arena, graph->nnodes, sf_node_space);
    out->arguments = SF_ARRAY(arena, graph->top->narguments, sf_share_space);
    apply_top_ops(&s);
    find_readers_of(&s);
    sow_splits(&s);
    spread_shares(&s);
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        uint32_t id = sf_top_node(s.graph, i)->id;
        out->nodes[id] = space_of_node(&s, s.ops[id]);
    }
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        out->arguments[i] = shares_of_axis(&s, graph->top->arguments[i]);
    sf_arena_free(&s.scratch);
    return out;
}
