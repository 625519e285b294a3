/* Outer values that loops and branches read become operands, at any depth; printed text reads back
 * as the same step; and the splits of such ops follow from their bodies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "ir/clone.h"
#include "ir/opdef.h"
#include "ir/print_graph.h"
#include "op/control/scanned.h"
#include "op/eval.h"
#include "op/node_builder.h"
#include "op/op.h"
#include "sheaf/graph.h"

/* A loop in a loop, and a branch in that; each sees values of all blocks around it. */
static const char NESTED[] =
    "func.func @main(%n: tensor<i32>, %x: tensor<4x2xf32>, %w: tensor<2xf32>) -> tensor<4x2xf32> "
    "{\n"
    "  %zero = stablehlo.constant dense<0> : tensor<i32>\n"
    "  %one = stablehlo.constant dense<1> : tensor<i32>\n"
    "  %half = stablehlo.constant dense<0.5> : tensor<4x2xf32>\n"
    "  %wide = stablehlo.broadcast_in_dim %w, dims = [1] : (tensor<2xf32>) -> tensor<4x2xf32>\n"
    "  %r:2 = stablehlo.while(%i = %zero, %y = %x) : tensor<i32>, tensor<4x2xf32>\n"
    "    cond {\n"
    "      %c = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
    "      stablehlo.return %c : tensor<i1>\n"
    "    } do {\n"
    "      %s:2 = stablehlo.while(%j = %zero, %z = %y) : tensor<i32>, tensor<4x2xf32>\n"
    "        cond {\n"
    "          %d = stablehlo.compare LT, %j, %i, SIGNED : (tensor<i32>, tensor<i32>) -> "
    "tensor<i1>\n"
    "          stablehlo.return %d : tensor<i1>\n"
    "        } do {\n"
    "          %k = stablehlo.add %j, %one : tensor<i32>\n"
    "          %b = \"stablehlo.case\"(%j) ({\n"
    "            %p = stablehlo.add %z, %wide : tensor<4x2xf32>\n"
    "            stablehlo.return %p : tensor<4x2xf32>\n"
    "          }, {\n"
    "            %q = stablehlo.multiply %y, %half : tensor<4x2xf32>\n"
    "            stablehlo.return %q : tensor<4x2xf32>\n"
    "          }) : (tensor<i32>) -> tensor<4x2xf32>\n"
    "          stablehlo.return %k, %b : tensor<i32>, tensor<4x2xf32>\n"
    "        }\n"
    "      %m = stablehlo.add %i, %one : tensor<i32>\n"
    "      stablehlo.return %m, %s#1 : tensor<i32>, tensor<4x2xf32>\n"
    "    }\n"
    "  return %r#1 : tensor<4x2xf32>\n"
    "}\n";

static sf_graph *load_rolled(const char *text)
{
    sf_load_options options = {.size = sizeof options, .unroll = -1};
    sf_graph *graph;
    assert_int_equal(sf_load_text(text, strlen(text), "test", &options, NULL, &graph), SF_OK);
    return graph;
}

/* Values that the block, with all that is nested in it, makes; then whether it uses others. */
typedef struct seen {
    bool made[256];
    bool is_open;
} seen;

static void note_made(const sf_graph *graph, const sf_block *block, seen *s)
{
    for (uint32_t i = 0; i < block->narguments; i++)
        s->made[block->arguments[i]] = true;
    for (uint32_t i = 0; i < block->nnodes; i++) {
        const sf_node *node = graph->nodes[block->nodes[i]];
        for (uint32_t r = 0; r < node->nresults; r++)
            s->made[node->result + r] = true;
        for (uint32_t r = 0; r < node->nregions; r++)
            note_made(graph, node->regions[r], s);
    }
}

static void note_use(void *context, sf_value value)
{
    seen *s = context;
    s->is_open = s->is_open || !s->made[value];
}

static int count_closed(const sf_graph *graph, const sf_block *block)
{
    int count = 0;
    for (uint32_t i = 0; i < block->nnodes; i++) {
        const sf_node *node = graph->nodes[block->nodes[i]];
        for (uint32_t r = 0; r < node->nregions; r++) {
            seen s = {0};
            note_made(graph, node->regions[r], &s);
            sf_block_uses(graph, node->regions[r], note_use, &s);
            assert_false(s.is_open);
            count += 1 + count_closed(graph, node->regions[r]);
        }
    }
    return count;
}

static void run_nested(const sf_graph *graph, int32_t n, float out[8])
{
    float x[8], w[2] = {3, -1};
    for (int i = 0; i < 8; i++)
        x[i] = (float)i;
    sf_tensor in[] = {{.type = sf_argument_type(graph, 0), .data = (void *)&n},
                      {.type = sf_argument_type(graph, 1), .data = (void *)x},
                      {.type = sf_argument_type(graph, 2), .data = (void *)w}};
    sf_tensor result = {0};
    sf_eval_setup setup = {0};
    int64_t peak;
    assert_int_equal(sf_eval_measured(graph, in, &result, &setup, &peak, NULL), SF_OK);
    memcpy(out, result.data, 8 * sizeof *out);
    sf_free(result.data);
}

/* The same in C. */
static void run_by_hand(int32_t n, float y[8])
{
    static const float w[2] = {3, -1};
    for (int i = 0; i < 8; i++)
        y[i] = (float)i;
    for (int32_t i = 0; i < n; i++) {
        float z[8];
        memcpy(z, y, sizeof z);
        for (int32_t j = 0; j < i; j++)
            for (int e = 0; e < 8; e++)
                z[e] = j == 0 ? z[e] + w[e % 2] : y[e] * 0.5f;
        memcpy(y, z, sizeof z);
    }
}

static void test_nested(void **state)
{
    (void)state;
    sf_graph *graph = load_rolled(NESTED);
    assert_int_equal(sf_graph_verify(graph, NULL), SF_OK);
    assert_int_equal(count_closed(graph, graph->top), 6);
    for (int32_t n = 0; n < 5; n++) {
        float got[8], want[8];
        run_nested(graph, n, got);
        run_by_hand(n, want);
        assert_memory_equal(got, want, sizeof got);
    }
    sf_graph_free(graph);
}

static void test_written_and_read(void **state)
{
    (void)state;
    sf_graph *graph = load_rolled(NESTED);
    sf_buf text = {0};
    sf_print_stablehlo(graph, &text);
    sf_graph *recomputed = load_rolled(text.text);
    assert_true(sf_graph_hash(graph) == sf_graph_hash(recomputed));
    sf_buf_free(&text);
    sf_graph_free(graph);
    sf_graph_free(recomputed);
}

/* The rows of x go through all three of them, and so do the columns, with w; nothing else can be cut. */
static void test_factors(void **state)
{
    (void)state;
    sf_graph *graph = load_rolled(NESTED);
    sf_arena arena = {0};
    const sf_node *loop = NULL;
    for (uint32_t i = 0; i < graph->top->nnodes; i++)
        if (sf_is(sf_top_node(graph, i), SF_OP_WHILE))
            loop = sf_top_node(graph, i);
    assert_non_null(loop);
    const sf_type *types[32];
    sf_op op = sf_op_of(graph, loop, types);
    sf_factoring factoring;
    sf_op_factors(&op, &arena, &factoring);
    int cut[2] = {-1, -1};
    for (int d = 0; d < 2; d++) {
        const sf_walk *walk = &factoring.walks[op.noperands + 1][d];
        assert_int_equal(walk->count, 1);
        cut[d] = walk->factors[0];
        assert_int_equal(factoring.factors[cut[d]].role, SF_MAP);
        assert_true(factoring.factors[cut[d]].size == (d ? 2 : 4));
        assert_int_equal(factoring.walks[1][d].factors[0], cut[d]);
    }
    assert_int_not_equal(cut[0], cut[1]);
    for (int o = 2; o < op.noperands; o++)
        for (int d = 0; d < op.in[o]->rank; d++)
            assert_int_equal(factoring.walks[o][d].factors[0],
                             op.in[o]->rank == 2 ? cut[d] : cut[1]);
    sf_arena_free(&arena);
    sf_graph_free(graph);
}

/* A scan: rows of xs are taken, rows of ys are put, sums are added up over the columns that a factor may cut. */
static const char SCAN[] =
    "func.func @main(%xs: tensor<9x4x6xf32>) -> (tensor<9x4x6xf32>, tensor<4xf32>) {\n"
    "  %zero = stablehlo.constant dense<0> : tensor<i32>\n"
    "  %one = stablehlo.constant dense<1> : tensor<i32>\n"
    "  %nine = stablehlo.constant dense<9> : tensor<i32>\n"
    "  %f = stablehlo.constant dense<0.0> : tensor<f32>\n"
    "  %empty = stablehlo.constant dense<0.0> : tensor<9x4x6xf32>\n"
    "  %none = stablehlo.constant dense<0.0> : tensor<4xf32>\n"
    "  %r:4 = stablehlo.while(%i = %zero, %in = %xs, %ys = %empty, %sum = %none) : tensor<i32>, "
    "tensor<9x4x6xf32>, tensor<9x4x6xf32>, tensor<4xf32>\n"
    "    cond {\n"
    "      %c = stablehlo.compare LT, %i, %nine, SIGNED : (tensor<i32>, tensor<i32>) -> "
    "tensor<i1>\n"
    "      stablehlo.return %c : tensor<i1>\n"
    "    } do {\n"
    "      %j = stablehlo.add %i, %one : tensor<i32>\n"
    "      %a = stablehlo.dynamic_slice %in, %i, %zero, %zero, sizes = [1, 4, 6] : "
    "(tensor<9x4x6xf32>, "
    "tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x4x6xf32>\n"
    "      %b = stablehlo.exponential %a : tensor<1x4x6xf32>\n"
    "      %y = stablehlo.dynamic_update_slice %ys, %b, %i, %zero, %zero : (tensor<9x4x6xf32>, "
    "tensor<1x4x6xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<9x4x6xf32>\n"
    "      %d = stablehlo.reduce(%b init: %f) applies stablehlo.add across dimensions = [0, 2] : "
    "(tensor<1x4x6xf32>, tensor<f32>) -> tensor<4xf32>\n"
    "      %e = stablehlo.add %sum, %d : tensor<4xf32>\n"
    "      stablehlo.return %j, %in, %y, %e : tensor<i32>, tensor<9x4x6xf32>, tensor<9x4x6xf32>, "
    "tensor<4xf32>\n"
    "    }\n"
    "  return %r#2, %r#3 : tensor<9x4x6xf32>, tensor<4xf32>\n"
    "}\n";

static void test_scan(void **state)
{
    (void)state;
    sf_graph *graph = load_rolled(SCAN);
    const sf_node *loop = NULL;
    for (uint32_t i = 0; i < graph->top->nnodes; i++)
        if (sf_is(sf_top_node(graph, i), SF_OP_WHILE))
            loop = sf_top_node(graph, i);
    assert_non_null(loop);
    sf_arena arena = {0};
    const sf_type *types[32];
    sf_op op = sf_op_of(graph, loop, types);
    sf_factoring factoring;
    sf_op_factors(&op, &arena, &factoring);
    int scanned = 0, sums = 0;
    for (uint32_t o = 0; o < loop->noperands; o++) {
        if (op.in[o]->rank == 3) {
            /* Rows are taken one by one, so xs cannot be cut there; columns and the other dimension
             * can. */
            assert_true(sf_is_scanned(graph, loop, o, 1) && sf_is_scanned(graph, loop, o, 2));
            assert_false(sf_is_scanned(graph, loop, o, 0));
            for (int d = 1; d < 3; d++)
                assert_int_equal(factoring.factors[factoring.walks[o][d].factors[0]].role, SF_MAP);
            scanned++;
        }
        if (op.in[o]->rank != 1)
            continue;
        assert_false(sf_is_scanned(graph, loop, o, 0));
        for (int k = 0; k < factoring.nfactors; k++)
            if (factoring.factors[k].partial && factoring.factors[k].partial[o]) {
                assert_true(factoring.factors[k].size == 6);
                assert_true(factoring.factors[k].partial[loop->noperands + o]);
                sums++;
            }
    }
    assert_int_equal(scanned, 2);
    assert_int_equal(sums, 1);
    sf_arena_free(&arena);
    sf_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nested),
        cmocka_unit_test(test_written_and_read),
        cmocka_unit_test(test_factors),
        cmocka_unit_test(test_scan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
