/* What the targets of the two text readers share: any text is read; one that is refused has a message;
 * one that is accepted is imported, and the graph must then keep every promise that needs no data: it
 * verifies, its ops factor and cost, and its text reads back as the same graph. */
#ifndef FUZZ_FRONT_H
#define FUZZ_FRONT_H

#include <math.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>

#include "base/mem.h"
#include "front/import.h"
#include "ir/opdef.h"
#include "ir/print_graph.h"
#include "op/node_builder.h"
#include "outcome.h"

typedef sf_status fuzz_reader(sf_str text, const char *file, sf_module *module, sf_diag *diag);

static sf_graph *fuzz_load(fuzz_reader *reader, sf_str text, sf_diag *diag)
{
    static const sf_import_options options = {.unroll = 8, .most_nodes = 20000};
    sf_pool *pool = sf_pool_new();
    sf_module *module = sf_module_new(pool);
    sf_graph *graph = NULL;
    sf_status status = reader(text, "fuzz", module, diag);
    if (status == SF_OK) {
        SF_ASSERT(module->entry && fuzz_failures(diag) == 0);
        status = sf_import(module, &options, diag, &graph);
    }
    fuzz_check_outcome(status, diag);
    SF_ASSERT((status == SF_OK) == (graph != NULL));
    sf_module_free(module);
    sf_pool_release(pool);
    return graph;
}

static void fuzz_check_ops(const sf_graph *graph)
{
    sf_arena arena = {0};
    for (size_t i = 0; i < graph->nnodes; i++) {
        const sf_node *node = graph->nodes[i];
        sf_mark mark = sf_arena_mark(&arena);
        const sf_type **types = SF_ARRAY(&arena, node->noperands + node->nresults, const sf_type *);
        sf_op op = sf_op_of(graph, node, types);
        sf_factoring factoring;
        sf_op_factors(&op, &arena, &factoring);
        SF_ASSERT(sf_op_flops(&op) >= 0 && sf_op_bytes(&op) >= 0);
        sf_arena_reset(&arena, mark);
    }
    sf_arena_free(&arena);
}

static void fuzz_check_text(const sf_graph *graph, sf_diag *diag)
{
    sf_buf text = {0};
    sf_print_stablehlo(graph, &text);
    sf_graph *recomputed = fuzz_load(sf_stablehlo_read, (sf_str){text.text, text.length}, diag);
    SF_ASSERT(recomputed && sf_graph_hash(recomputed) == sf_graph_hash(graph));
    sf_graph_free(recomputed);
    sf_buf_free(&text);
}

static int fuzz_front(fuzz_reader *reader, const uint8_t *data, size_t size)
{
    sf_diag *diag = sf_diag_new();
    sf_guard guard;
    sf_guard_enter(&guard);
    if (setjmp(guard.target) == 0) {
        char *text = sf_alloc(size + 1);
        if (size > 0)
            memcpy(text, data, size);
        sf_graph *graph = fuzz_load(reader, (sf_str){text, size}, diag);
        if (graph) {
            SF_ASSERT(sf_graph_verify(graph, diag) == SF_OK);
            fuzz_check_ops(graph);
            fuzz_check_text(graph, diag);
        }
        sf_graph_free(graph);
        sf_free(text);
        sf_guard_leave(&guard);
    }
    sf_diag_free(diag);
    return 0;
}

#endif
