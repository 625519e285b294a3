#include "plan/recipe/batch_dimension.h"

#include <limits.h>

#include "op/op.h"
#include "shard/strategy.h"

/* A split is followed through at most so many nodes; obstacles come early. */
enum { MOST_FOLLOWED = 512, MOST_PERIODS = 16 };

typedef struct reach {
    int products;  /* that run split, or sums along the dimension */
    int obstacles; /* that do not */
} reach;

typedef struct split_value {
    sf_value value;
    sf_share share;
} split_value;

typedef struct follower {
    const sf_graph *graph;
    const sf_uses *uses;
    int parts;
    sf_arena arena;
    size_t head, count, capacity;
    split_value *queue;
    size_t nseen, seen_capacity;
    uint32_t *seen; /* nodes */
    int nperiods;   /* of the dimension that is followed, which reshapes cut it into */
    int64_t periods[MOST_PERIODS];
} follower;

static void follow_value(follower *f, sf_value value, sf_share share)
{
    SF_PUSH(&f->arena, f->queue, f->count, f->capacity, ((split_value){value, share}));
}

static bool see_node(follower *f, uint32_t node)
{
    for (size_t i = 0; i < f->nseen; i++)
        if (f->seen[i] == node)
            return false;
    SF_PUSH(&f->arena, f->seen, f->nseen, f->seen_capacity, node);
    return true;
}

static bool is_sum(const sf_factoring *factoring, const sf_strategy *strategy)
{
    return strategy->kind == SF_RUN_FACTOR &&
           factoring->factors[strategy->factor].role == SF_REDUCE;
}

/* The node runs split, or it is an obstacle. */
static void follow_node(follower *f, const sf_node *node, int operand, sf_share share, reach *out)
{
    sf_factoring factoring;
    sf_strategy strategy;
    const sf_type **types = SF_ARRAY(&f->arena, node->noperands + node->nresults, const sf_type *);
    sf_op op = sf_op_of(f->graph, node, types);
    if (sf_is_transparent(node)) {
        follow_value(f, node->result + (uint32_t)operand, share);
        return;
    }
    sf_op_factors(&op, &f->arena, &factoring);
    if (!sf_strategy_of_split(&factoring, operand, share, f->parts, &strategy)) {
        out->obstacles++;
        return;
    }
    if (sf_is_product(node->def) || is_sum(&factoring, &strategy)) {
        out->products++;
        return;
    }
    for (uint32_t r = 0; r < node->nresults; r++) {
        sf_share result = sf_strategy_share(&op, &factoring, &strategy, (int)(node->noperands + r));
        if (result.kind == SF_SPLIT)
            follow_value(f, node->result + r, result);
    }
}

static reach follow_split(follower *f, sf_value value, sf_share share)
{
    reach out = {0};
    f->head = f->count = f->nseen = 0;
    follow_value(f, value, share);
    while (f->head < f->count && f->nseen < MOST_FOLLOWED) {
        split_value v = f->queue[f->head++];
        for (uint32_t i = f->uses->first[v.value]; i < f->uses->first[v.value + 1]; i++) {
            sf_value_use use = f->uses->at[i];
            if (use.node == SF_NONE || !see_node(f, use.node))
                continue;
            if (use.operand == SF_NONE)
                out.obstacles++;
            else
                follow_node(f, f->graph->nodes[use.node], (int)use.operand, v.share, &out);
        }
    }
    return out;
}

static void add_period(follower *f, int64_t period)
{
    for (int i = 0; i < f->nperiods; i++)
        if (f->periods[i] == period)
            return;
    if (f->nperiods < MOST_PERIODS)
        f->periods[f->nperiods++] = period;
}

/* Where the node cuts the dimension into several factors, each but the first begins a period. Else the dimension is
 * followed on. */
static void find_periods_of(follower *f, const sf_node *node, uint32_t operand, int dim)
{
    sf_factoring factoring;
    const sf_type **types = SF_ARRAY(&f->arena, node->noperands + node->nresults, const sf_type *);
    sf_op op = sf_op_of(f->graph, node, types);
    sf_op_factors(&op, &f->arena, &factoring);
    const sf_walk *walk = &factoring.walks[operand][dim];
    int64_t period = 1;
    for (int i = walk->count - 1; i > 0; i--) {
        period *= factoring.factors[walk->factors[i]].size;
        add_period(f, period);
    }
    if (walk->count != 1 || factoring.factors[walk->factors[0]].role != SF_MAP)
        return;
    for (uint32_t r = 0; r < node->nresults; r++) {
        const sf_type *type = sf_type_of(f->graph, node->result + r);
        for (int d = 0; d < type->rank; d++) {
            const sf_walk *other = &factoring.walks[node->noperands + r][d];
            if (other->count == 1 && other->factors[0] == walk->factors[0])
                follow_value(f, node->result + r, (sf_share){.kind = SF_SPLIT, .dim = d});
        }
    }
}

static void find_periods(follower *f, sf_value value, int dim)
{
    f->head = f->count = f->nseen = 0;
    follow_value(f, value, (sf_share){.kind = SF_SPLIT, .dim = dim});
    while (f->head < f->count && f->nseen < MOST_FOLLOWED) {
        split_value v = f->queue[f->head++];
        for (uint32_t i = f->uses->first[v.value]; i < f->uses->first[v.value + 1]; i++) {
            sf_value_use use = f->uses->at[i];
            if (use.node != SF_NONE && use.operand != SF_NONE && see_node(f, use.node))
                find_periods_of(f, f->graph->nodes[use.node], use.operand, v.share.dim);
        }
    }
}

/* The best so far. */
typedef struct choice {
    sf_share share;
    reach reach;
    bool made;
} choice;

static void try_share(follower *f, sf_value value, int dim, int64_t period, choice *best)
{
    sf_share share = {.kind = SF_SPLIT, .dim = dim, .period = period};
    if ((best->made && best->reach.obstacles == 0) || period < 1 || period % f->parts != 0)
        return;
    reach r = follow_split(f, value, share);
    bool better = r.obstacles == 0 || r.products > best->reach.products;
    if (!best->made || better)
        *best = (choice){share, r, true};
}

static int64_t smallest_divisor(int64_t number)
{
    for (int64_t n = 2; n * n <= number; n++)
        if (number % n == 0)
            return n;
    return number;
}

/* Whether the dimension counts micro-batches: however it is split, no op runs split. */
static bool counts_turns(follower *f, sf_value value, int dim, int64_t size)
{
    int parts = f->parts;
    if (f->nperiods > 0 || size < 2 || size > INT_MAX)
        return false;
    f->parts = (int)smallest_divisor(size);
    reach r = follow_split(f, value, (sf_share){.kind = SF_SPLIT, .dim = dim, .period = size});
    f->parts = parts;
    return r.products == 0 && r.obstacles > 0;
}

sf_share sf_batch_share(const sf_graph *graph, const sf_uses *uses, uint32_t argument, int dim,
                        int parts)
{
    follower f = {.graph = graph, .uses = uses, .parts = parts};
    sf_value value = graph->top->arguments[argument];
    const sf_type *type = sf_argument_type(graph, argument);
    choice best = {0};
    try_share(&f, value, dim, type->dims[dim], &best);
    if (!best.made || best.reach.obstacles > 0) {
        find_periods(&f, value, dim);
        for (int i = f.nperiods; i-- > 0;) /* the longest first */
            try_share(&f, value, dim, f.periods[i], &best);
    }
    if (best.reach.products == 0 && dim + 1 < type->rank &&
        counts_turns(&f, value, dim, type->dims[dim]))
        try_share(&f, value, dim + 1, type->dims[dim + 1], &best);
    sf_arena_free(&f.arena);
    return best.share;
}
