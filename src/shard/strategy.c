#include "shard/strategy.h"

#include "op/op.h"

static int tensor_rank(const sf_op *op, int tensor)
{
    const sf_type *type = tensor < op->noperands ? op->in[tensor] : op->out[tensor - op->noperands];
    return type->rank;
}

static sf_share share_of_factor(const sf_op *op, const sf_factoring *factoring,
                                const sf_strategy *strategy, int tensor)
{
    sf_walk_cut cut = {strategy->factor, strategy->period};
    const sf_factor *factor = &factoring->factors[strategy->factor];
    if (sf_cut_to_dim(factoring, tensor, tensor_rank(op, tensor), cut, &cut))
        return (sf_share){.kind = SF_SPLIT, .dim = cut.at, .period = cut.period};
    if (factor->partial && factor->partial[tensor])
        return (sf_share){.kind = SF_PARTIAL, .monoid = SF_MONOID_ADD};
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
    sf_walk_cut cut = {share.dim, share.period};
    if (!sf_cut_to_factor(factoring, tensor, cut, parts, &cut))
        return false;
    *out = (sf_strategy){.kind = SF_RUN_FACTOR, .factor = cut.at, .period = cut.period};
    return true;
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
        if (sf_factor_can_cut(factor) && factor->size > 0 && factor->size % parts == 0)
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
