#include "plan/recipe/batch_rows.h"

#include "base/arena.h"
#include "op/op.h"
#include "shard/strategy.h"

/* The first dimension of an argument, followed through the step: how it lies in each value, if it does. */
typedef struct spread {
    sf_share *shares; /* by value */
    int parts;
} spread;

static const sf_type *batch_type(const sf_graph *graph, uint32_t argument)
{
    const sf_type *type = sf_argument_type(graph, argument);
    return graph->arguments[argument].role == SF_ROLE_BATCH && type->rank > 0 ? type : NULL;
}

static int smallest_divisor(int64_t number)
{
    for (int n = 2; n < 1024 && (int64_t)n * n <= number; n++)
        if (number % n == 0)
            return n;
    return number < 2 || number > INT32_MAX ? 1 : (int)number;
}

static spread propagate_from(const sf_graph *graph, uint32_t argument, sf_arena *arena)
{
    int64_t size = sf_argument_type(graph, argument)->dims[0];
    spread s = {SF_ARRAY(arena, graph->nvalues, sf_share), smallest_divisor(size)};
    s.shares[graph->top->arguments[argument]] = (sf_share){.kind = SF_SPLIT, .period = size};
    return s;
}

/* How many tensors of the batch have as many rows. */
static int count_alike(const sf_graph *graph, int64_t rows)
{
    int count = 0;
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        const sf_type *type = batch_type(graph, i);
        count += type && type->dims[0] == rows;
    }
    return count;
}

static bool speaks_more(const sf_graph *graph, const sf_type *type, const sf_type *other)
{
    int alike = count_alike(graph, type->dims[0]), others = count_alike(graph, other->dims[0]);
    if (alike != others)
        return alike > others;
    return type->rank != other->rank ? type->rank > other->rank : type->count > other->count;
}

/* The argument that determines the rows of the batch: of the most that are alike, the one of most
 * dimensions. */
static uint32_t find_speaker(const sf_graph *graph)
{
    uint32_t best = SF_NONE;
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        const sf_type *type = batch_type(graph, i);
        if (type && (best == SF_NONE || speaks_more(graph, type, batch_type(graph, best))))
            best = i;
    }
    return best;
}

/* The strategy of a node that splits the first operand that has the dimension; false if none
 * does. */
static bool goes_along(const sf_node *node, const sf_factoring *factoring, const spread *s,
                       sf_strategy *out)
{
    for (uint32_t o = 0; o < node->noperands; o++) {
        sf_share share = s->shares[node->operands[o]];
        if (share.kind == SF_SPLIT && sf_strategy_of_split(factoring, (int)o, share, s->parts, out))
            return true;
    }
    return false;
}

static void propagate_over(const sf_op *op, const sf_node *node, const sf_factoring *factoring,
                           const sf_strategy *strategy, spread *s)
{
    for (uint32_t r = 0; r < node->nresults; r++) {
        sf_share share = sf_strategy_share(op, factoring, strategy, (int)(node->noperands + r));
        if (share.kind == SF_SPLIT)
            s->shares[node->result + r] = share;
    }
}

static bool reads(const sf_node *node, const spread *s)
{
    for (uint32_t o = 0; o < node->noperands; o++)
        if (s->shares[node->operands[o]].kind == SF_SPLIT)
            return true;
    return false;
}

/* Whether the two dimensions are one loop of the first node that reads both. */
static bool meet_as_one(const sf_graph *graph, spread *a, spread *b, sf_arena *arena)
{
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        sf_factoring factoring;
        sf_strategy of_a, of_b;
        if (!reads(node, a) && !reads(node, b))
            continue;
        const sf_type **types = SF_ARRAY(arena, node->noperands + node->nresults, const sf_type *);
        sf_op op = sf_op_of(graph, node, types);
        sf_op_factors(&op, arena, &factoring);
        bool has_a = goes_along(node, &factoring, a, &of_a);
        bool has_b = goes_along(node, &factoring, b, &of_b);
        if (has_a && has_b)
            return of_a.factor == of_b.factor;
        if (has_a)
            propagate_over(&op, node, &factoring, &of_a, a);
        if (has_b)
            propagate_over(&op, node, &factoring, &of_b, b);
    }
    return true;
}

bool sf_has_rows(const sf_graph *graph, uint32_t argument)
{
    const sf_type *type = batch_type(graph, argument);
    if (!type)
        return false;
    uint32_t speaker = find_speaker(graph);
    if (type->dims[0] == batch_type(graph, speaker)->dims[0])
        return true;
    if (type->dims[0] == 1)
        return false;
    sf_arena arena = {0};
    spread a = propagate_from(graph, argument, &arena), b = propagate_from(graph, speaker, &arena);
    bool one = meet_as_one(graph, &a, &b, &arena);
    sf_arena_free(&arena);
    return one;
}
