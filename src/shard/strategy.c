#include "shard/strategy.h"

#include "op/op.h"

static int tensor_rank(const sf_op *op, int tensor)
{
    const sf_type *type = tensor < op->noperands ? op->in[tensor] : op->out[tensor - op->noperands];
    return type->rank;
}

/* The product of the factors that are minor to position `at` of the chain. */
static int64_t unit_of(const sf_factoring *factoring, const sf_walk *walk, int at)
{
    int64_t unit = 1;
    for (int i = at + 1; i < walk->count; i++)
        unit *= factoring->factors[walk->factors[i]].size;
    return unit;
}

static bool can_cut(const sf_factor *factor)
{
    return factor->role == SF_MAP ||
           (factor->role == SF_REDUCE && factor->monoid != SF_MONOID_NONE &&
            factor->monoid != SF_MONOID_SECOND);
}

static sf_share share_of_factor(const sf_op *op, const sf_factoring *factoring,
                                const sf_strategy *strategy, int tensor)
{
    int rank = tensor_rank(op, tensor);
    for (int d = 0; d < rank; d++) {
        const sf_walk *walk = &factoring->walks[tensor][d];
        for (int i = 0; i < walk->count; i++)
            if (walk->factors[i] == strategy->factor)
                return (sf_share){.kind = SF_SPLIT,
                                  .dim = d,
                                  .period = strategy->period * unit_of(factoring, walk, i)};
    }
    const sf_factor *factor = &factoring->factors[strategy->factor];
    if (tensor >= op->noperands && factor->role == SF_REDUCE)
        return (sf_share){.kind = SF_PARTIAL, .monoid = factor->monoid};
    return (sf_share){0};
}

sf_share sf_strategy_share(const sf_op *op, const sf_factoring *factoring,
                           const sf_strategy *strategy, int tensor)
{
    if (strategy->kind == SF_RUN_FACTOR)
        return share_of_factor(op, factoring, strategy, tensor);
    bool partial = strategy->kind == SF_RUN_LINEAR &&
                   (tensor >= op->noperands || (strategy->mask >> tensor & 1) != 0);
    return partial ? (sf_share){.kind = SF_PARTIAL, .monoid = SF_MONOID_ADD} : (sf_share){0};
}

bool sf_strategy_of_split(const sf_factoring *factoring, int tensor, sf_share share, int parts,
                          sf_strategy *out)
{
    const sf_walk *walk = &factoring->walks[tensor][share.dim];
    for (int i = 0; i < walk->count; i++) {
        const sf_factor *factor = &factoring->factors[walk->factors[i]];
        int64_t unit = unit_of(factoring, walk, i);
        int64_t period = unit > 0 ? share.period / unit : 0;
        bool inside = period > 0 && share.period % unit == 0 && period % parts == 0 &&
                      factor->size % period == 0;
        if (!inside || !can_cut(factor))
            continue;
        *out = (sf_strategy){.kind = SF_RUN_FACTOR, .factor = walk->factors[i], .period = period};
        return true;
    }
    return false;
}

int sf_strategies(const sf_op *op, const sf_factoring *factoring, int parts, sf_arena *arena,
                  sf_strategy **out)
{
    sf_strategy *list =
        sf_arena_alloc(arena, ((size_t)factoring->nfactors + 1 + SF_MAX_LINEAR) * sizeof *list);
    int count = 0;
    list[count++] = (sf_strategy){.kind = SF_RUN_WHOLE};
    for (int f = 0; f < factoring->nfactors; f++) {
        const sf_factor *factor = &factoring->factors[f];
        if (can_cut(factor) && factor->size > 0 && factor->size % parts == 0)
            list[count++] =
                (sf_strategy){.kind = SF_RUN_FACTOR, .factor = f, .period = factor->size};
    }
    uint32_t masks[SF_MAX_LINEAR];
    int nmasks = op->def->linear ? op->def->linear(op, masks) : 0;
    for (int i = 0; i < nmasks; i++)
        list[count++] = (sf_strategy){.kind = SF_RUN_LINEAR, .mask = masks[i]};
    *out = list;
    return count;
}
