#include "ir/factor.h"

#include "ir/opdef.h"

const char *sf_factor_role_name(sf_factor_role role)
{
    static const char *const names[] = {"map", "reduce", "window", "whole"};
    return names[role];
}

const char *sf_monoid_name(sf_monoid monoid)
{
    static const char *const names[] = {"none", "add", "mul", "min",   "max",
                                        "and",  "or",  "xor", "second"};
    return names[monoid];
}

int sf_factor_add(sf_factoring *factoring, int64_t size, sf_factor_role role, sf_monoid monoid)
{
    size_t count = (size_t)factoring->nfactors;
    sf_factor factor = {.size = size, .role = role, .monoid = monoid};
    SF_PUSH(factoring->arena, factoring->factors, count, factoring->capacity, factor);
    return factoring->nfactors++;
}

void sf_factor_walk(sf_factoring *factoring, int tensor, int dim, int factor)
{
    sf_walk *walk = &factoring->walks[tensor][dim];
    SF_ASSERT(walk->count < SF_MAX_CHAIN);
    walk->factors[walk->count++] = factor;
}

bool sf_factor_can_cut(const sf_factor *factor)
{
    return factor->role == SF_MAP ||
           (factor->role == SF_REDUCE && factor->monoid != SF_MONOID_NONE &&
            factor->monoid != SF_MONOID_SECOND);
}

/* The product of the factors that are minor to position `at` of the chain. */
static int64_t unit_in_chain(const sf_factoring *factoring, const sf_walk *walk, int at)
{
    int64_t unit = 1;
    for (int i = at + 1; i < walk->count; i++)
        unit *= factoring->factors[walk->factors[i]].size;
    return unit;
}

bool sf_cut_to_factor(const sf_factoring *factoring, int tensor, sf_walk_cut dim, int parts,
                      sf_walk_cut *out)
{
    const sf_walk *walk = &factoring->walks[tensor][dim.at];
    for (int i = 0; i < walk->count; i++) {
        const sf_factor *factor = &factoring->factors[walk->factors[i]];
        int64_t unit = unit_in_chain(factoring, walk, i);
        int64_t period = unit > 0 ? dim.period / unit : 0;
        bool inside = period > 0 && dim.period % unit == 0 && period % parts == 0 &&
                      factor->size % period == 0;
        if (!inside || !sf_factor_can_cut(factor))
            continue;
        *out = (sf_walk_cut){walk->factors[i], period};
        return true;
    }
    return false;
}

bool sf_cut_to_dim(const sf_factoring *factoring, int tensor, int rank, sf_walk_cut factor,
                   sf_walk_cut *out)
{
    for (int d = 0; d < rank; d++) {
        const sf_walk *walk = &factoring->walks[tensor][d];
        for (int i = 0; i < walk->count; i++)
            if (walk->factors[i] == factor.at) {
                *out = (sf_walk_cut){d, factor.period * unit_in_chain(factoring, walk, i)};
                return true;
            }
    }
    return false;
}

void sf_factor_whole(sf_factoring *factoring, int tensor, int dim, int64_t size)
{
    sf_factor_walk(factoring, tensor, dim,
                   sf_factor_add(factoring, size, SF_WHOLE, SF_MONOID_NONE));
}

static const sf_type *type_of_tensor(const sf_op *op, int tensor)
{
    return tensor < op->noperands ? op->in[tensor] : op->out[tensor - op->noperands];
}

void sf_op_factors(const sf_op *op, sf_arena *arena, sf_factoring *out)
{
    *out = (sf_factoring){.arena = arena, .ntensors = op->noperands + op->nresults};
    out->walks = SF_ARRAY(arena, out->ntensors, sf_walk *);
    for (int i = 0; i < out->ntensors; i++)
        out->walks[i] = SF_ARRAY(arena, type_of_tensor(op, i)->rank, sf_walk);
    op->def->factors(op, out);
}

/* The span of a dimension when the factor at place `at` of its chain is cut: the factors before it
 * repeat the shard, those after it make it wider. */
static sf_span cut_chain(const sf_factoring *factoring, const sf_walk *walk, int at, int64_t first,
                         int64_t end, int64_t whole)
{
    int64_t minor = unit_in_chain(factoring, walk, at);
    int64_t period = factoring->factors[walk->factors[at]].size * minor;
    return (sf_span){whole, period, first * minor, (end - first) * minor};
}

static int64_t clip_to(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

void sf_op_piece(const sf_op *op, const sf_factoring *factoring, int factor, int64_t first,
                 int64_t end, int tensor, sf_span *spans)
{
    const sf_type *type = type_of_tensor(op, tensor);
    for (int dim = 0; dim < type->rank; dim++) {
        const sf_walk *walk = &factoring->walks[tensor][dim];
        spans[dim] = sf_span_whole(type->dims[dim]);
        for (int i = 0; i < walk->count; i++) {
            if (walk->factors[i] != factor)
                continue;
            if (!walk->halo) {
                spans[dim] = cut_chain(factoring, walk, i, first, end, type->dims[dim]);
                continue;
            }
            int64_t need_first = 0, need_end = type->dims[dim];
            op->def->halo(op, factor, tensor, dim, first, end, &need_first, &need_end);
            need_first = clip_to(need_first, 0, type->dims[dim]);
            need_end = clip_to(need_end, need_first, type->dims[dim]);
            spans[dim] = sf_span_range(type->dims[dim], need_first, need_end - need_first);
        }
    }
}
