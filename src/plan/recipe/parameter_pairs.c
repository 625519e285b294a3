#include "plan/recipe/parameter_pairs.h"

#include <string.h>

#include "ir/uses.h"
#include "op/op.h"
#include "shard/strategy.h"

typedef struct finder {
    const sf_graph *graph;
    int parts;
    sf_arena *arena;
    sf_uses uses;
    int *dims;          /* by argument: the answer */
    uint32_t *argument; /* by value: the parameter that it is but for form, or SF_NONE */

    /* The current trial. */
    uint32_t trial;
    uint32_t *seen; /* by value: the trial that reached it */
    sf_share *shares;
    sf_value *queue;
    size_t head, count, capacity;
    uint32_t *rows; /* parameters met by rows, with their dimensions */
    int *row_dims;
    size_t nrows, row_capacity, row_dim_capacity;
} finder;

/* An op with its factors, in the arena. */
typedef struct applied {
    sf_op op;
    sf_factoring factoring;
} applied;

static applied apply_factors(const finder *f, const sf_node *node)
{
    applied a = {0};
    const sf_type **types = SF_ARRAY(f->arena, node->noperands + node->nresults, const sf_type *);
    a.op = sf_op_of(f->graph, node, types);
    sf_op_factors(&a.op, f->arena, &a.factoring);
    return a;
}

static const sf_node *node_at(const finder *f, uint32_t at)
{
    return f->graph->nodes[f->graph->top->nodes[at]];
}

/* Takes a layer's share of a stacked parameter. */
static bool takes_layer(const sf_node *node)
{
    return sf_is(node, SF_OP_SLICE) || sf_is(node, SF_OP_DYNAMIC_SLICE);
}

/* A parameter stays one through ops of one operand that keep its elements, or take a layer's share. */
static void find_parameters(finder *f)
{
    const sf_graph *graph = f->graph;
    f->argument = SF_ARRAY(f->arena, graph->nvalues, uint32_t);
    memset(f->argument, 0xff, graph->nvalues * sizeof *f->argument);
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        if (graph->arguments[i].role == SF_ROLE_PARAM)
            f->argument[graph->top->arguments[i]] = i;
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = node_at(f, i);
        bool is_form =
            node->noperands == 1 && node->nresults == 1 && node->nregions == 0 &&
            sf_type_of(graph, node->result)->count == sf_type_of(graph, node->operands[0])->count;
        if (is_form || takes_layer(node))
            f->argument[node->result] = f->argument[node->operands[0]];
    }
}

static void reach_value(finder *f, sf_value value, sf_share share)
{
    if (f->seen[value] == f->trial)
        return;
    f->seen[value] = f->trial;
    f->shares[value] = share;
    SF_PUSH(f->arena, f->queue, f->count, f->capacity, value);
}

/* The dimension of the parameter itself that a split of `value`, one of its forms, is of; -1 when it is
 * not one contiguous split. */
static int parameter_dim(const finder *f, sf_value value, sf_share share)
{
    const sf_node *node;
    while ((node = sf_maker(f->graph, value)) != NULL) {
        applied a = apply_factors(f, node);
        sf_strategy strategy;
        if (!sf_strategy_of_split(&a.factoring, (int)node->noperands, share, f->parts, &strategy))
            return -1;
        share = sf_strategy_share(&a.op, &a.factoring, &strategy, 0);
        value = node->operands[0];
    }
    const sf_type *type = sf_type_of(f->graph, value);
    return share.kind == SF_SPLIT && share.period == type->dims[share.dim] ? share.dim : -1;
}

/* Notes the parameter among the operands as split by rows; false when there is none. */
static bool meet_rows(finder *f, const sf_node *node, const applied *a, const sf_strategy *strategy)
{
    for (uint32_t o = 0; o < node->noperands; o++) {
        uint32_t argument = f->argument[node->operands[o]];
        sf_share share = sf_strategy_share(&a->op, &a->factoring, strategy, (int)o);
        int dim = argument != SF_NONE && share.kind == SF_SPLIT
                      ? parameter_dim(f, node->operands[o], share)
                      : -1;
        if (dim < 0)
            continue;
        size_t at = f->nrows;
        SF_PUSH(f->arena, f->row_dims, at, f->row_dim_capacity, dim);
        SF_PUSH(f->arena, f->rows, f->nrows, f->row_capacity, argument);
        return true;
    }
    return false;
}

static bool flow_through(finder *f, const sf_node *node, sf_value value)
{
    for (uint32_t o = 0; o < node->noperands; o++)
        if (node->operands[o] == value)
            reach_value(f, node->result + o, f->shares[value]);
    return true;
}

/* Lets the split of `value` flow into the node; false when it cannot. */
static bool flow_into(finder *f, const sf_node *node, sf_value value)
{
    if (sf_is_transparent(node))
        return flow_through(f, node, value);
    applied a = apply_factors(f, node);
    for (uint32_t o = 0; o < node->noperands; o++) {
        sf_strategy strategy;
        if (node->operands[o] != value)
            continue;
        if (!sf_strategy_of_split(&a.factoring, (int)o, f->shares[value], f->parts, &strategy))
            return false;
        if (a.factoring.factors[strategy.factor].role == SF_REDUCE)
            return sf_is_product(node->def) && meet_rows(f, node, &a, &strategy);
        for (uint32_t r = 0; r < node->nresults; r++) {
            sf_share share =
                sf_strategy_share(&a.op, &a.factoring, &strategy, (int)(node->noperands + r));
            const sf_type *type = sf_type_of(f->graph, node->result + r);
            if (share.kind != SF_SPLIT || type->dims[share.dim] % f->parts != 0)
                return false;
            reach_value(f, node->result + r, share);
        }
    }
    return true;
}

static bool is_forward(const finder *f, const sf_value_use *use)
{
    return use->operand != SF_NONE && f->graph->nodes[use->node]->phase == SF_FORWARD;
}

/* Whether a split of the value ends in rows of parameters, everywhere it goes. */
static bool ends_in_rows(finder *f, sf_value value, sf_share share)
{
    f->trial++;
    f->head = f->count = 0;
    f->nrows = 0;
    reach_value(f, value, share);
    while (f->head < f->count) {
        sf_value at = f->queue[f->head++];
        for (uint32_t u = f->uses.first[at]; u < f->uses.first[at + 1]; u++)
            if (is_forward(f, &f->uses.at[u]) &&
                !flow_into(f, f->graph->nodes[f->uses.at[u].node], at))
                return false;
    }
    return f->nrows > 0;
}

static void settle_argument(finder *f, uint32_t argument, int dim)
{
    if (f->dims[argument] < 0)
        f->dims[argument] = dim;
}

/* Tries the columns of a parameter: a factor that it shares with the result and nothing else. */
static void try_columns(finder *f, const sf_node *node, uint32_t operand)
{
    applied a = apply_factors(f, node);
    int rank = a.op.in[operand]->rank;
    for (int d = 0; d < rank; d++) {
        const sf_walk *walk = &a.factoring.walks[operand][d];
        int factor = walk->count == 1 ? walk->factors[0] : -1;
        if (factor < 0 || a.factoring.factors[factor].role != SF_MAP ||
            a.op.in[operand]->dims[d] % f->parts != 0)
            continue;
        sf_strategy strategy = {
            .kind = SF_RUN_FACTOR, .factor = factor, .period = a.op.in[operand]->dims[d]};
        sf_share other = sf_strategy_share(&a.op, &a.factoring, &strategy, 1 - (int)operand);
        sf_share result = sf_strategy_share(&a.op, &a.factoring, &strategy, 2);
        sf_share own = sf_strategy_share(&a.op, &a.factoring, &strategy, (int)operand);
        int dim = parameter_dim(f, node->operands[operand], own);
        if (other.kind != SF_REPLICATED || result.kind != SF_SPLIT || dim < 0 ||
            !ends_in_rows(f, node->result, result))
            continue;
        settle_argument(f, f->argument[node->operands[operand]], dim);
        for (size_t i = 0; i < f->nrows; i++)
            settle_argument(f, f->rows[i], f->row_dims[i]);
        return;
    }
}

static finder finder_new(const sf_graph *graph, int parts, sf_arena *arena)
{
    finder f = {.graph = graph, .parts = parts, .arena = arena};
    f.dims = SF_ARRAY(arena, graph->top->narguments, int);
    memset(f.dims, -1, graph->top->narguments * sizeof *f.dims);
    find_parameters(&f);
    return f;
}

typedef void try_product(finder *f, const sf_node *node, uint32_t operand);

static void each_product(finder *f, try_product *try)
{
    for (uint32_t i = 0; i < f->graph->top->nnodes; i++) {
        const sf_node *node = node_at(f, i);
        for (uint32_t o = 0; o < 2 && sf_is_product(node->def) && node->phase == SF_FORWARD; o++) {
            uint32_t argument = f->argument[node->operands[o]];
            if (argument != SF_NONE && f->dims[argument] < 0)
                try(f, node, o);
        }
    }
}

int *sf_pair_dims(const sf_graph *graph, int parts, sf_arena *arena)
{
    finder f = finder_new(graph, parts, arena);
    f.uses = sf_uses_of(graph, arena);
    f.seen = SF_ARRAY(arena, graph->nvalues, uint32_t);
    f.shares = SF_ARRAY(arena, graph->nvalues, sf_share);
    each_product(&f, try_columns);
    return f.dims;
}

/* A batch dimension: a factor of both operands and the result. */
static void try_experts(finder *f, const sf_node *node, uint32_t operand)
{
    applied a = apply_factors(f, node);
    for (int d = 0; d < a.op.in[operand]->rank && sf_is(node, SF_OP_DOT_GENERAL); d++) {
        sf_strategy strategy;
        sf_share share = {.kind = SF_SPLIT, .dim = d, .period = a.op.in[operand]->dims[d]};
        if (share.period == 0 ||
            !sf_strategy_of_split(&a.factoring, (int)operand, share, f->parts, &strategy))
            continue;
        sf_share other = sf_strategy_share(&a.op, &a.factoring, &strategy, 1 - (int)operand);
        sf_share result = sf_strategy_share(&a.op, &a.factoring, &strategy, 2);
        int dim = parameter_dim(f, node->operands[operand], share);
        if (other.kind == SF_SPLIT && result.kind == SF_SPLIT && dim >= 0)
            settle_argument(f, f->argument[node->operands[operand]], dim);
    }
}

int *sf_expert_dims(const sf_graph *graph, int parts, sf_arena *arena)
{
    finder f = finder_new(graph, parts, arena);
    each_product(&f, try_experts);
    return f.dims;
}
