/* The order of a text does not matter: shuffled, with operands of commutative ops exchanged, or as HLO, a step
 * becomes the same graph, node by node, and the same program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/rng.h"
#include "front/import.h"
#include "ir/opdef.h"
#include "support/plans.h"
#include "support/run.h"

enum { SHUFFLES = 6 };

/* Numbers from a seed. */
static uint32_t draw(uint64_t *state, uint32_t below)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33) % below;
}

/* Of nodes that can stand next, any does: those with effects stay in order. */
typedef struct shuffle {
    sf_graph *graph;
    uint64_t state;
    bool *ready; /* by value: made, or of another block */
} shuffle;

static bool can_stand(const shuffle *s, const sf_node *node)
{
    for (uint32_t i = 0; i < node->noperands; i++)
        if (!s->ready[node->operands[i]])
            return false;
    for (uint32_t r = 0; r < node->nregions; r++) {
        const sf_block *block = node->regions[r];
        for (uint32_t i = 0; i < block->nnodes; i++)
            if (!can_stand(s, s->graph->nodes[block->nodes[i]]))
                return false;
        for (uint32_t i = 0; i < block->nresults; i++)
            if (!s->ready[block->results[i]])
                return false;
    }
    return true;
}

static void set_ready(const shuffle *s, const sf_node *node, bool ready)
{
    for (uint32_t r = 0; r < node->nresults; r++)
        s->ready[node->result + r] = ready;
}

static void shuffle_block(shuffle *s, sf_block *block)
{
    uint32_t *left = sf_alloc((block->nnodes + 1) * sizeof *left), count = block->nnodes;
    memcpy(left, block->nodes, count * sizeof *left);
    for (uint32_t i = 0; i < count; i++) {
        sf_node *node = s->graph->nodes[left[i]];
        set_ready(s, node, false);
        if (node->def->commutative && draw(&s->state, 2)) {
            sf_value first = node->operands[0];
            node->operands[0] = node->operands[1];
            node->operands[1] = first;
        }
        for (uint32_t r = 0; r < node->nregions; r++)
            shuffle_block(s, node->regions[r]);
    }
    for (uint32_t placed = 0; placed < count; placed++) {
        uint32_t at = draw(&s->state, count - placed);
        while (!can_stand(s, s->graph->nodes[left[at]]))
            at = (at + 1) % (count - placed);
        set_ready(s, s->graph->nodes[left[at]], true);
        block->nodes[placed] = left[at];
        memmove(&left[at], &left[at + 1], (count - placed - at - 1) * sizeof *left);
    }
    sf_free(left);
}

/* The step of a text, shuffled by a seed; 0: as it is. */
static sf_graph *load_shuffled(const char *name, const char *form, uint64_t seed)
{
    char path[200], sidecar[200];
    sf_arena arena = {0};
    sf_str text, roles;
    snprintf(path, sizeof path, "test/data/micro/%s.%s.xz", name, form);
    snprintf(sidecar, sizeof sidecar, "test/data/micro/%s.json", name);
    assert_int_equal(sf_file_read(path, &arena, 0, &text, NULL), SF_OK);
    assert_int_equal(sf_file_read(sidecar, &arena, 0, &roles, NULL), SF_OK);
    sf_pool *pool = sf_pool_new();
    sf_module *module = sf_module_new(pool);
    bool is_hlo = strcmp(form, "hlo") == 0;
    assert_int_equal((is_hlo ? sf_hlo_read : sf_stablehlo_read)(text, path, module, NULL), SF_OK);
    shuffle s = {.graph = module->graph, .state = seed};
    s.ready = sf_alloc(module->graph->nvalues);
    memset(s.ready, true, module->graph->nvalues);
    for (size_t i = 0; i < module->nfuncs && seed; i++)
        shuffle_block(&s, module->funcs[i]->block);
    sf_import_options options = {.unroll = SF_UNROLL_DEFAULT,
                                 .most_nodes = SF_MOST_NODES_DEFAULT,
                                 .sidecar = roles.at,
                                 .sidecar_file = sidecar};
    sf_graph *graph;
    assert_int_equal(sf_import(module, &options, NULL, &graph), SF_OK);
    sf_free(s.ready);
    sf_module_free(module);
    sf_pool_release(pool);
    sf_arena_free(&arena);
    return graph;
}

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

/* Without scopes: HLO may tell others. */
static void check_programs(const char *what, const sf_graph *a, const sf_graph *b)
{
    sf_program *x = test_lower(a), *y = test_lower(b);
    sf_buf first = {0}, second = {0};
    sf_program_print(x, &first);
    sf_program_print(y, &second);
    const char *p = first.text, *q = second.text;
    for (; *p && *q; p++, q++) {
        if (strncmp(p, "  ", 2) == 0 && p[2] != ' ' && strncmp(q, "  ", 2) == 0) {
            p += strcspn(p, "\n");
            q += strcspn(q, "\n");
        }
        if (*p != *q)
            fail_msg("%s: other programs: %.100s and %.100s", what, p, q);
    }
    sf_buf_free(&first);
    sf_buf_free(&second);
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
            sf_graph *other = load_shuffled(test_steps[i], form, (uint64_t)k);
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
