/* The order of a text does not matter: shuffled, with operands of commutative ops exchanged, or as HLO, a step
 * becomes the same graph, node by node, and the same program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "ir/opdef.h"
#include "support/plans.h"
#include "support/run.h"
#include "support/shuffle.h"

enum { SHUFFLES = 6 };

static bool same_attrs(const sf_node *a, const sf_node *b)
{
    for (int i = 0; i < a->def->nattrs; i++)
        if (!a->attrs[i] != !b->attrs[i] || (a->attrs[i] && a->attrs[i]->hash != b->attrs[i]->hash))
            return false;
    return true;
}

static bool same_node(const sf_node *a, const sf_node *b)
{
    return a->def == b->def && a->noperands == b->noperands && a->nresults == b->nresults &&
           a->result == b->result && a->nregions == b->nregions && a->phase == b->phase &&
           a->recomputed == b->recomputed &&
           memcmp(a->operands, b->operands, a->noperands * sizeof *a->operands) == 0 &&
           same_attrs(a, b);
}

static void check_same(const char *what, const sf_graph *a, const sf_graph *b)
{
    if (sf_graph_hash(a) != sf_graph_hash(b))
        fail_msg("%s: another hash", what);
    if (a->nnodes != b->nnodes || a->nvalues != b->nvalues)
        fail_msg("%s: %zu nodes and %zu", what, a->nnodes, b->nnodes);
    for (size_t i = 0; i < a->nnodes; i++)
        if (!same_node(a->nodes[i], b->nodes[i]))
            fail_msg("%s: node %zu is %s and %s, %s and %s", what, i, a->nodes[i]->def->name,
                     b->nodes[i]->def->name, sf_phase_name(a->nodes[i]->phase),
                     sf_phase_name(b->nodes[i]->phase));
    for (uint32_t i = 0; i < a->top->narguments; i++) {
        const sf_argument *x = &a->arguments[i], *y = &b->arguments[i];
        if (x->next != y->next || x->role != y->role || x->gradient != y->gradient)
            fail_msg("%s: argument %u differs", what, i);
    }
    assert_memory_equal(a->top->results, b->top->results,
                        a->top->nresults * sizeof *a->top->results);
}

static void check_programs(const char *what, const sf_graph *a, const sf_graph *b)
{
    sf_program *x = test_lower(a), *y = test_lower(b);
    test_same_program(what, x, y);
    sf_program_free(x);
    sf_program_free(y);
}

static void test_any_text(void **state)
{
    (void)state;
    for (int i = 0; test_steps[i]; i++) {
        sf_graph *plain = test_step(test_steps[i]);
        for (int k = 0; k <= SHUFFLES; k++) {
            const char *form = k % 2 ? "stablehlo.mlir" : "hlo";
            char what[100];
            snprintf(what, sizeof what, "%s, %s, shuffle %d", test_steps[i], form, k);
            sf_graph *other = test_shuffled(test_steps[i], form, (uint64_t)k);
            check_same(what, plain, other);
            check_programs(what, plain, other);
            sf_graph_free(other);
        }
        sf_graph_free(plain);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
