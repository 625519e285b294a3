/* Values that a loop recomputes instead of loading them. */
#include "prog/lower/lowering.h"

/* An operand of so small a share of the bytes read, a bias or one number per row, is ignored. */
enum { SMALL_SHARE = 16 };

/* Bytes in memory for it: a broadcast takes no more than its operand. */
static int64_t standing_bytes(const lowering *l, sf_value value)
{
    const sf_node *node;
    while ((node = maker_of(l, value)) && sf_is(node, SF_OP_BROADCAST_IN_DIM))
        value = behind_reshapes(l, node->operands[0]);
    return sf_type_bytes(sf_type_of(l->graph, value));
}

static bool add_leaf(recomputed *a, sf_value value)
{
    uint32_t time = time_of(a->l, value);
    if (time == ALWAYS)
        return true;
    for (int i = 0; i < a->nleaves; i++)
        if (a->leaves[i] == value)
            return true;
    if (time >= a->inst || a->nleaves == (int)(sizeof a->leaves / sizeof *a->leaves))
        return false;
    a->leaves[a->nleaves++] = value;
    for (size_t i = 0; i < a->nread; i++)
        if (a->read[i] == value)
            return true;
    a->bytes += standing_bytes(a->l, value);
    return true;
}

static bool can_compute(recomputed *a, sf_value value)
{
    lowering *l = a->l;
    sf_value base = behind_reshapes(l, value);
    const lowered *low = &l->values[base];
    if (low->has_view || (low->cluster == NO_CLUSTER && low->level != LEVEL_DEFERRED))
        return time_of(l, base) != NEEDS_COPY && add_leaf(a, base);
    sf_vop op;
    const sf_node *node = sf_maker(l->graph, base);
    for (int i = 0; i < a->ops; i++)
        if (a->made[i] == base)
            return true;
    if (low->level != LEVEL_FULL || !vop_of(l->graph, node, &op) ||
        a->ops == l->target->most_recomputed ||
        !has_squeezed_shape(sf_type_of(l->graph, base), a->rank, a->dims))
        return false;
    a->made[a->ops++] = base;
    a->functions += sf_vop_is_function(op);
    for (uint32_t i = 0; i < node->noperands; i++)
        if (!can_compute(a, node->operands[i]))
            return false;
    bool asked = l->graph->kernels == SF_KERNELS_ALL;
    return a->functions <= (asked ? l->target->asked_functions : l->target->most_functions);
}

bool recomputes(recomputed *a, sf_value value)
{
    lowering *l = a->l;
    sf_value base = behind_reshapes(l, value);
    const lowered *low = &l->values[base];
    return low->cluster != NO_CLUSTER && low->level == LEVEL_FULL && !low->has_view &&
           can_compute(a, base) && a->ops > 0 &&
           a->bytes - a->bytes / SMALL_SHARE <= sf_type_bytes(sf_type_of(l->graph, base));
}

/* A value of several readers of which the given one, a few ops after it, reads little else: a loop
 * that stores it need not store values that others compute from it. SF_NONE if there is none. */
static sf_value source_of(recomputed *a, sf_value value)
{
    enum { FEW = 3 };
    lowering *l = a->l;
    for (int ops = 0; ops < FEW; ops++) {
        sf_value base = behind_reshapes(l, value), source = SF_NONE;
        const lowered *low = &l->values[base];
        const sf_node *node = maker_of(l, base);
        if (low->cluster == NO_CLUSTER || low->level != LEVEL_FULL || low->has_view)
            return SF_NONE;
        for (uint32_t i = 0; i < node->noperands; i++) {
            sf_value operand = behind_reshapes(l, node->operands[i]);
            int64_t bytes = standing_bytes(l, operand);
            if (bytes <= sf_type_bytes(sf_type_of(l->graph, base)) / SMALL_SHARE)
                continue;
            if (source != SF_NONE && source != operand)
                return SF_NONE;
            source = operand;
        }
        if (source == SF_NONE ||
            sf_type_bytes(sf_type_of(l->graph, source)) > sf_type_bytes(sf_type_of(l->graph, base)))
            return SF_NONE;
        if (l->values[source].cluster == low->cluster && l->values[source].level == LEVEL_FULL &&
            !l->values[source].has_view && l->readers[source] == SEVERAL)
            return source;
        value = source;
    }
    return SF_NONE;
}

void reach_operand(recomputed *a, sf_value operand)
{
    recomputed fresh = *a;
    bool can = recomputes(a, operand);
    if (!can && a->l->target->few_passes) {
        sf_value source = source_of(a, operand);
        if (source != SF_NONE)
            view_of(a->l, source);
        *a = fresh;
        can = source != SF_NONE && recomputes(a, operand);
    }
    if (!can) {
        view_of(a->l, operand);
        return;
    }
    for (int i = 0; i < a->nleaves; i++)
        view_of(a->l, a->leaves[i]);
}
