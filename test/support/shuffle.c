#include "support/shuffle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/mem.h"
#include "front/import.h"
#include "ir/opdef.h"

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

sf_graph *test_shuffled(const char *name, const char *form, uint64_t seed)
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

void test_same_program(const char *what, const sf_program *x, const sf_program *y)
{
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
}
