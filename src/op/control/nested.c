#include "op/control/nested.h"

#include <string.h>

#include "op/op.h"
#include "op/util.h"

/* The share of a value under the current seed. */
typedef struct nested_value {
    uint32_t cut_by, partial_by; /* the seed that cut it, that made it a partial sum */
    sf_walk_cut cut;
    bool
        is_constant; /* it depends on no input: whoever reads it takes any part, so it carries no cut from one reader to another */
    uint32_t nuses;
    uint32_t maker;      /* nested_node, or SF_NONE */
    uint32_t first_use;  /* of nested_use, or SF_NONE */
    uint32_t first_bond; /* of nested_bond, or SF_NONE */
} nested_value;

typedef struct nested_use {
    uint32_t node, operand, next;
} nested_use;

typedef struct nested_node {
    const sf_node *node;
    sf_op op;
    sf_factoring factoring;
    uint32_t cut_by; /* the seed whose cut it runs by */
    sf_walk_cut factor;
} nested_node;

/* Values of regions that correspond to one tensor outside: inputs and outputs, iteration by
 * iteration. */
typedef struct nested_tie {
    int operand, result; /* of the op, or -1 */
    uint32_t first;      /* of nested_bond */
    bool carried;        /* from the body's result to the arguments */
} nested_tie;

typedef struct nested_bond {
    sf_value value;
    uint32_t tie, next_of_tie, next_of_value;
    bool is_result; /* of a region */
} nested_bond;

typedef struct nesting {
    const sf_op *op;
    sf_factoring *out;
    sf_arena arena;
    sf_value first_value; /* of the regions; `values` counts from here */
    size_t nvalues;
    nested_value *values;
    nested_use *uses;
    size_t nuses, use_capacity;
    nested_node *nodes;
    size_t nnodes, node_capacity;
    nested_tie *ties;
    size_t nties, tie_capacity;
    nested_bond *bonds;
    size_t nbonds, bond_capacity;

    uint32_t seed;
    int64_t size;   /* of the factor: every dimension of it can be cut */
    bool is_undone; /* the cut is not to be had everywhere, */
    bool may_undo;  /* which is no reason to stop */
    sf_value *queue;
    size_t head, count, capacity;
} nesting;

/* The regions */

static nested_value *value_at(const nesting *n, sf_value value)
{
    return &n->values[value - n->first_value];
}

/* Values of a region need not have ids in a row, but are seldom far apart. */
typedef struct id_range {
    sf_value first, last;
} id_range;

static void widen_range(id_range *range, sf_value value)
{
    range->first = value < range->first ? value : range->first;
    range->last = value > range->last ? value : range->last;
}

static id_range values_of_regions(const sf_op *op)
{
    id_range range = {SF_NONE, 0};
    for (int r = 0; r < op->nregions; r++) {
        const sf_block *block = op->regions[r];
        for (uint32_t i = 0; i < block->narguments; i++)
            widen_range(&range, block->arguments[i]);
        for (uint32_t i = 0; i < block->nnodes; i++) {
            const sf_node *node = op->graph->nodes[block->nodes[i]];
            for (uint32_t k = 0; k < node->nresults; k++)
                widen_range(&range, node->result + k);
        }
    }
    return range;
}

static bool is_nested_value(const nesting *n, sf_value value)
{
    return value >= n->first_value && value - n->first_value < n->nvalues;
}

static void add_nested_use(nesting *n, sf_value value, uint32_t node, uint32_t operand)
{
    nested_value *v = value_at(n, value);
    uint32_t at = (uint32_t)n->nuses;
    SF_PUSH(&n->arena, n->uses, n->nuses, n->use_capacity,
            ((nested_use){node, operand, v->first_use}));
    v->first_use = at;
    v->nuses++;
}

static void add_nested_node(nesting *n, const sf_node *node)
{
    uint32_t at = (uint32_t)n->nnodes;
    SF_PUSH(&n->arena, n->nodes, n->nnodes, n->node_capacity, ((nested_node){.node = node}));
    nested_node *added = &n->nodes[at];
    const sf_type **types = SF_ARRAY(&n->arena, node->noperands + node->nresults, const sf_type *);
    added->op = sf_op_of(n->op->graph, node, types);
    sf_op_factors(&added->op, &n->arena, &added->factoring);
    for (uint32_t o = 0; o < node->noperands; o++)
        if (is_nested_value(n, node->operands[o]))
            add_nested_use(n, node->operands[o], at, o);
    bool is_constant = n->op->def->control != SF_CONTROL_LOOP && node->nregions == 0;
    for (uint32_t o = 0; o < node->noperands; o++)
        is_constant = is_constant && is_nested_value(n, node->operands[o]) &&
                      value_at(n, node->operands[o])->is_constant;
    for (uint32_t r = 0; r < node->nresults; r++) {
        value_at(n, node->result + r)->maker = at;
        value_at(n, node->result + r)->is_constant = is_constant;
    }
}

static void add_bond(nesting *n, uint32_t tie, sf_value value, bool is_result)
{
    if (!is_nested_value(n, value))
        return;
    uint32_t at = (uint32_t)n->nbonds;
    nested_value *v = value_at(n, value);
    SF_PUSH(&n->arena, n->bonds, n->nbonds, n->bond_capacity,
            ((nested_bond){value, tie, n->ties[tie].first, v->first_bond, is_result}));
    n->ties[tie].first = at;
    v->first_bond = at;
    v->nuses += is_result;
}

static uint32_t add_tie(nesting *n, int operand, int result)
{
    uint32_t at = (uint32_t)n->nties;
    SF_PUSH(&n->arena, n->ties, n->nties, n->tie_capacity,
            ((nested_tie){.operand = operand, .result = result, .first = SF_NONE}));
    return at;
}

static void tie_arguments(nesting *n, uint32_t tie, int argument)
{
    for (int r = 0; r < n->op->nregions; r++)
        add_bond(n, tie, n->op->regions[r]->arguments[argument], false);
}

static void tie_loop(nesting *n)
{
    const sf_op *op = n->op;
    for (int i = 0; i < op->noperands; i++) {
        bool carried = i < op->nresults;
        uint32_t tie = add_tie(n, i, carried ? i : -1);
        n->ties[tie].carried = carried;
        tie_arguments(n, tie, i);
        if (carried)
            add_bond(n, tie, op->regions[1]->results[i], true);
    }
}

static void tie_branches(nesting *n)
{
    const sf_op *op = n->op;
    for (int i = 1; i < op->noperands; i++)
        tie_arguments(n, add_tie(n, i, -1), i - 1);
    for (int i = 0; i < op->nresults; i++) {
        uint32_t tie = add_tie(n, -1, i);
        for (int r = 0; r < op->nregions; r++)
            add_bond(n, tie, op->regions[r]->results[i], true);
    }
}

static void look_into_regions(nesting *n)
{
    id_range range = values_of_regions(n->op);
    n->first_value = range.first;
    n->nvalues = range.first <= range.last ? range.last - range.first + 1 : 0;
    n->values = SF_ARRAY(&n->arena, n->nvalues, nested_value);
    for (size_t v = 0; v < n->nvalues; v++)
        n->values[v].maker = n->values[v].first_use = n->values[v].first_bond = SF_NONE;
    for (int r = 0; r < n->op->nregions; r++)
        for (uint32_t i = 0; i < n->op->regions[r]->nnodes; i++)
            add_nested_node(n, n->op->graph->nodes[n->op->regions[r]->nodes[i]]);
    if (n->op->def->control == SF_CONTROL_LOOP)
        tie_loop(n);
    else
        tie_branches(n);
}

/* Cuts */

static bool is_same_cut(sf_walk_cut a, sf_walk_cut b)
{
    return a.at == b.at && a.period == b.period;
}

static int64_t greatest_divisor(int64_t a, int64_t b)
{
    while (b > 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static void cut_value(nesting *n, sf_value value, sf_walk_cut cut)
{
    if (!is_nested_value(n, value))
        return;
    nested_value *v = value_at(n, value);
    if (v->is_constant)
        return;
    if (v->cut_by == n->seed) {
        n->is_undone = n->is_undone || !is_same_cut(v->cut, cut);
        return;
    }
    v->cut_by = n->seed;
    v->cut = cut;
    SF_PUSH(&n->arena, n->queue, n->count, n->capacity, value);
}

static int nested_rank(const nested_node *node, int tensor)
{
    return tensor < node->op.noperands ? node->op.in[tensor]->rank
                                       : node->op.out[tensor - node->op.noperands]->rank;
}

static sf_value nested_tensor(const nested_node *node, int tensor)
{
    return tensor < node->op.noperands
               ? node->node->operands[tensor]
               : node->node->result + (sf_value)(tensor - node->op.noperands);
}

static void make_partial(nesting *n, sf_value value)
{
    value_at(n, value)->partial_by = n->seed;
}

/* The node runs by the factor; its other tensors are cut with it. */
static void run_by(nesting *n, nested_node *node, sf_walk_cut factor)
{
    const sf_factor *f = &node->factoring.factors[factor.at];
    node->cut_by = n->seed;
    node->factor = factor;
    n->size = greatest_divisor(n->size, factor.period);
    for (int t = 0; t < node->op.noperands + node->op.nresults; t++) {
        sf_walk_cut cut;
        bool is_result = t >= node->op.noperands;
        if (sf_cut_to_dim(&node->factoring, t, nested_rank(node, t), factor, &cut))
            cut_value(n, nested_tensor(node, t), cut);
        else if (is_result && ((f->role == SF_REDUCE && f->monoid == SF_MONOID_ADD) ||
                               (f->partial && f->partial[t])))
            make_partial(n, nested_tensor(node, t));
    }
}

/* A barrier passes cuts on, each for itself. */
static bool pass_cut_on(nesting *n, const nested_node *node, int tensor, sf_walk_cut cut)
{
    if (!sf_is(node->node, SF_OP_OPTIMIZATION_BARRIER))
        return false;
    cut_value(n, nested_tensor(node, tensor % node->op.noperands), cut);
    cut_value(n, nested_tensor(node, tensor % node->op.noperands + node->op.noperands), cut);
    return true;
}

/* A reader that cannot have its operand cut needs it whole; a maker that cannot make it cut makes
 * all of it, of which each rank takes its shard. */
static void bring_cut(nesting *n, uint32_t index, int tensor, sf_walk_cut cut)
{
    nested_node *node = &n->nodes[index];
    bool reads = tensor < node->op.noperands;
    sf_walk_cut factor, own;
    if (pass_cut_on(n, node, tensor, cut))
        return;
    if (node->cut_by == n->seed) {
        bool as_is = sf_cut_to_dim(&node->factoring, tensor, nested_rank(node, tensor),
                                   node->factor, &own) &&
                     is_same_cut(own, cut);
        n->is_undone = n->is_undone || (reads && !as_is);
    } else if (node->op.noperands > 0 &&
               sf_cut_to_factor(&node->factoring, tensor, cut, 1, &factor)) {
        run_by(n, node, factor);
    } else {
        n->is_undone = n->is_undone || reads;
    }
}

static void spread_cuts(nesting *n)
{
    while (n->head < n->count && (n->may_undo || !n->is_undone)) {
        sf_value value = n->queue[n->head++];
        const nested_value *v = value_at(n, value);
        sf_walk_cut cut = v->cut;
        for (uint32_t b = v->first_bond; b != SF_NONE; b = n->bonds[b].next_of_value)
            for (uint32_t m = n->ties[n->bonds[b].tie].first; m != SF_NONE;
                 m = n->bonds[m].next_of_tie)
                cut_value(n, n->bonds[m].value, cut);
        if (v->maker != SF_NONE)
            bring_cut(n, v->maker,
                      n->nodes[v->maker].op.noperands +
                          (int)(value - n->nodes[v->maker].node->result),
                      cut);
        for (uint32_t u = v->first_use; u != SF_NONE; u = n->uses[u].next)
            bring_cut(n, n->uses[u].node, (int)n->uses[u].operand, cut);
    }
}

/* Partial sums */

static bool is_partial_value(const nesting *n, sf_value value)
{
    return is_nested_value(n, value) && value_at(n, value)->partial_by == n->seed;
}

/* Whether the node's result is a partial sum, since its partial operands are a set in which it is
 * linear. */
static bool passes_sums(const nesting *n, const nested_node *node)
{
    uint32_t partial = 0, masks[SF_MAX_LINEAR];
    if (node->cut_by == n->seed || node->op.noperands > 32 || !node->op.def->linear)
        return false;
    for (int o = 0; o < node->op.noperands; o++)
        if (is_partial_value(n, node->node->operands[o]))
            partial |= 1u << o;
    int count = partial ? node->op.def->linear(&node->op, masks) : 0;
    for (int i = 0; i < count; i++)
        if (masks[i] == partial)
            return true;
    return false;
}

/* Sums that are passed on have one reader. */
static bool has_one_use(const nesting *n, const nested_node *node)
{
    for (int o = 0; o < node->op.noperands; o++)
        if (is_partial_value(n, node->node->operands[o]) &&
            value_at(n, node->node->operands[o])->nuses != 1)
            return false;
    return true;
}

static void pass_sums_on(nesting *n)
{
    for (size_t i = 0; i < n->nnodes; i++) {
        const nested_node *node = &n->nodes[i];
        if (node->cut_by == n->seed)
            continue;
        bool partial = has_one_use(n, node) && passes_sums(n, node);
        for (uint32_t r = 0; r < node->node->nresults; r++)
            value_at(n, node->node->result + r)->partial_by = partial ? n->seed : 0;
    }
}

/* A loop-carried value is a partial sum if it stays one; a branch gives one if all do. */
static bool is_partial_tie(const nesting *n, const nested_tie *tie)
{
    bool any = false;
    for (uint32_t b = tie->first; b != SF_NONE; b = n->bonds[b].next_of_tie) {
        const nested_bond *bond = &n->bonds[b];
        if (value_at(n, bond->value)->cut_by == n->seed)
            return false;
        if (!bond->is_result)
            continue;
        if (!is_partial_value(n, bond->value) || value_at(n, bond->value)->nuses != 1)
            return false;
        any = true;
    }
    return any;
}

static void set_arguments_partial(nesting *n, const nested_tie *tie, bool partial)
{
    for (uint32_t b = tie->first; b != SF_NONE; b = n->bonds[b].next_of_tie)
        if (!n->bonds[b].is_result)
            value_at(n, n->bonds[b].value)->partial_by = partial ? n->seed : 0;
}

/* All that is carried and not cut may be; then those that do not stay so are no more, until all do. */
static void find_carried_sums(nesting *n, bool *partial)
{
    bool changed = true;
    for (size_t t = 0; t < n->nties; t++) {
        const nested_tie *tie = &n->ties[t];
        partial[t] = tie->carried;
        for (uint32_t b = tie->first; b != SF_NONE; b = n->bonds[b].next_of_tie)
            partial[t] = partial[t] && value_at(n, n->bonds[b].value)->cut_by != n->seed;
        if (tie->carried)
            set_arguments_partial(n, tie, partial[t]);
    }
    while (changed) {
        changed = false;
        pass_sums_on(n);
        for (size_t t = 0; t < n->nties; t++)
            if (partial[t] && !is_partial_tie(n, &n->ties[t])) {
                partial[t] = false;
                set_arguments_partial(n, &n->ties[t], false);
                changed = true;
            }
    }
    for (size_t t = 0; t < n->nties; t++)
        if (!n->ties[t].carried && n->ties[t].result >= 0)
            partial[t] = is_partial_tie(n, &n->ties[t]);
}

/* Results */

static bool cut_of_tie(const nesting *n, const nested_tie *tie, sf_walk_cut *out)
{
    for (uint32_t b = tie->first; b != SF_NONE; b = n->bonds[b].next_of_tie)
        if (value_at(n, n->bonds[b].value)->cut_by == n->seed) {
            *out = value_at(n, n->bonds[b].value)->cut;
            return true;
        }
    return false;
}

static int64_t dim_of_tensor(const sf_op *op, int tensor, int dim)
{
    return tensor < op->noperands ? op->in[tensor]->dims[dim]
                                  : op->out[tensor - op->noperands]->dims[dim];
}

/* One factor for each dimension, between two that cannot be split. */
static void walk_tensor(nesting *n, int tensor, sf_walk_cut cut, int factor)
{
    int64_t major = dim_of_tensor(n->op, tensor, cut.at) / cut.period, minor = cut.period / n->size;
    if (major > 1)
        sf_factor_whole(n->out, tensor, cut.at, major);
    sf_factor_walk(n->out, tensor, cut.at, factor);
    if (minor > 1)
        sf_factor_whole(n->out, tensor, cut.at, minor);
}

static bool is_free_dim(const nesting *n, int tensor, int dim)
{
    return tensor < 0 || n->out->walks[tensor][dim].count == 0;
}

static bool can_walk(const nesting *n, const nested_tie *tie, sf_walk_cut cut)
{
    return is_free_dim(n, tie->operand, cut.at) &&
           (tie->result < 0 || is_free_dim(n, n->op->noperands + tie->result, cut.at));
}

static void record_factor(nesting *n)
{
    int ntensors = n->op->noperands + n->op->nresults;
    bool *partial_ties = SF_ARRAY(&n->arena, n->nties, bool);
    bool *partial = SF_ARRAY(n->out->arena, ntensors, bool), any = false;
    sf_walk_cut cut;
    for (size_t t = 0; t < n->nties; t++)
        if (cut_of_tie(n, &n->ties[t], &cut) && !can_walk(n, &n->ties[t], cut))
            return;
    find_carried_sums(n, partial_ties);
    int factor = sf_factor_add(n->out, n->size, SF_MAP, SF_MONOID_NONE);
    for (size_t t = 0; t < n->nties; t++) {
        const nested_tie *tie = &n->ties[t];
        bool is_cut = cut_of_tie(n, tie, &cut);
        any = any || partial_ties[t];
        for (int side = 0; side < 2; side++) {
            int tensor = side == 0 ? tie->operand : tie->result;
            if (tensor < 0)
                continue;
            tensor += side * n->op->noperands;
            if (is_cut)
                walk_tensor(n, tensor, cut, factor);
            partial[tensor] = partial_ties[t];
        }
    }
    if (any)
        n->out->factors[factor].partial = partial;
}

/* It changes between iterations: the data that flows through the loop. */
static bool is_changed(const nesting *n, const nested_tie *tie)
{
    return tie->carried &&
           n->op->regions[1]->results[tie->operand] != n->op->regions[1]->arguments[tie->operand];
}

static void try_seed(nesting *n, const nested_tie *tie, int dim)
{
    int tensor = tie->operand >= 0 ? tie->operand : n->op->noperands + tie->result;
    int64_t size = dim_of_tensor(n->op, tensor, dim);
    if (size < 2 || !is_free_dim(n, tensor, dim) || tie->first == SF_NONE)
        return;
    n->seed++;
    n->size = size;
    n->is_undone = false;
    n->head = n->count = 0;
    for (uint32_t b = tie->first; b != SF_NONE; b = n->bonds[b].next_of_tie)
        cut_value(n, n->bonds[b].value, (sf_walk_cut){dim, size});
    spread_cuts(n);
    if (n->count > 0 && (n->may_undo || !n->is_undone) && n->size > 1)
        record_factor(n);
}

static void give_up_rest(nesting *n)
{
    for (int t = 0; t < n->op->noperands + n->op->nresults; t++) {
        const sf_type *type =
            t < n->op->noperands ? n->op->in[t] : n->op->out[t - n->op->noperands];
        for (int d = 0; d < type->rank; d++)
            if (is_free_dim(n, t, d))
                sf_factor_whole(n->out, t, d, type->dims[d]);
    }
}

static void try_seeds(nesting *n, bool may_undo)
{
    n->may_undo = may_undo;
    for (size_t t = 0; t < n->nties; t++) {
        const nested_tie *tie = &n->ties[t];
        int rank =
            tie->operand >= 0 ? n->op->in[tie->operand]->rank : n->op->out[tie->result]->rank;
        for (int d = 0; d < rank && (!may_undo || is_changed(n, tie)); d++)
            try_seed(n, tie, d);
    }
}

void sf_factors_nested(const sf_op *op, sf_factoring *out)
{
    nesting n = {.op = op, .out = out};
    look_into_regions(&n);
    try_seeds(&n, false);
    try_seeds(&n, true);
    give_up_rest(&n);
    sf_arena_free(&n.arena);
}
