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
    sf_factor factor = {size, role, monoid};
    SF_PUSH(factoring->arena, factoring->factors, count, factoring->capacity, factor);
    return factoring->nfactors++;
}

void sf_factor_walk(sf_factoring *factoring, int tensor, int dim, int factor)
{
    sf_walk *walk = &factoring->walks[tensor][dim];
    SF_ASSERT(walk->count < SF_MAX_CHAIN);
    walk->factors[walk->count++] = factor;
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
 * repeat the piece, those after it make it wider. */
static sf_span cut_chain(const sf_factoring *factoring, const sf_walk *walk, int at, int64_t first,
                         int64_t end, int64_t whole)
{
    int64_t minor = 1;
    for (int i = at + 1; i < walk->count; i++)
        minor *= factoring->factors[walk->factors[i]].size;
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
