#include "front/dense_groups.h"

#include <inttypes.h>

#include "op/op.h"
#include "op/util.h"

/* What a mask is made of. */
typedef struct mask {
    const sf_graph *graph;
    int steps;      /* that are left to look */
    bool positions; /* it has an iota, */
    int64_t groups; /* and sums of the sizes of so many groups */
} mask;

static void look_at(mask *m, sf_value value)
{
    const sf_node *node = sf_maker(m->graph, value);
    const sf_type *type = sf_type_of(m->graph, value);
    if (!node || m->steps-- <= 0)
        return;
    m->positions = m->positions || sf_is(node, SF_OP_IOTA);
    if (sf_is(node, SF_OP_REDUCE_WINDOW) && type->rank == 1 && !sf_is_inexact(type->dtype)) {
        m->groups = type->dims[0];
        return;
    }
    for (uint32_t i = 0; i < node->noperands; i++)
        look_at(m, node->operands[i]);
}

static bool has_size(const sf_type *type, int64_t size)
{
    for (int i = 0; i < type->rank; i++)
        if (type->dims[i] == size)
            return true;
    return false;
}

/* The number of groups that the rows of a product's operand are masked by; 0: they are not. */
static int64_t groups_of(const sf_graph *graph, sf_value operand)
{
    enum { FORMS = 4, STEPS = 64 };
    const sf_node *node = sf_maker(graph, operand);
    for (int i = 0; node && i < FORMS && node->noperands == 1; i++)
        node = sf_maker(graph, node->operands[0]);
    if (!node || !sf_is(node, SF_OP_SELECT))
        return 0;
    mask m = {.graph = graph, .steps = STEPS};
    look_at(&m, node->operands[0]);
    bool fits = m.positions && m.groups > 1 && has_size(sf_type_of(graph, node->result), m.groups);
    return fits ? m.groups : 0;
}

void sf_warn_dense_groups(const sf_graph *graph, sf_diag *diag)
{
    const sf_node *first = NULL;
    int64_t most = 0;
    int count = 0;
    for (uint32_t n = 0; n < graph->top->nnodes; n++) {
        const sf_node *node = sf_top_node(graph, n);
        int64_t groups = 0;
        for (uint32_t i = 0; sf_is(node, SF_OP_DOT_GENERAL) && groups == 0 && i < 2; i++)
            groups = groups_of(graph, node->operands[i]);
        count += groups > 0;
        if (groups > most) {
            most = groups;
            first = node;
        }
    }
    if (count == 0)
        return;
    sf_warn(diag, first->loc,
            "%d product%s multiply every row with the matrices of all %" PRId64
            " groups, of which each row needs one: they cost %" PRId64
            " times too much. This is how JAX writes ragged_dot for CPUs",
            count, sf_plural((uint64_t)count), most, most);
    sf_hint(diag,
            "give every group a fixed capacity of rows, so that all groups are one batched product "
            "(docs/guides/experts.md); ragged_dot as an op of its own is not read");
}
