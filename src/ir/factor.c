#include "ir/factor.h"

#include "ir/opdef.h"

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
