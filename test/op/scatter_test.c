/* scatter against the formula of the specification, over random dimension numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/mem.h"
#include "support/indexing.h"

enum { ROUNDS = 3000, SLOTS = 9, BODY = 8 };

/* True when the window fits and this element of it is at `target`. */
static bool hits(const test_numbers *n, const int64_t *start, const int64_t *within,
                 const int64_t *target)
{
    for (int d = 0; d < n->operand->rank; d++)
        if (start[d] < 0 || start[d] > n->operand->dims[d] - n->sizes[d] ||
            start[d] + within[d] != target[d])
            return false;
    return true;
}

/* The expected value of element `target` of the result: all updates are tried, in any order; of
 * those that overwrite, the one with the last index vector counts. */
static int64_t expected(const test_numbers *n, sf_monoid monoid, int64_t operand,
                        const sf_tensor *indices, const sf_tensor *updates, const int64_t *target)
{
    int64_t at[SF_MAX_RANK] = {0}, start[SF_MAX_RANK], within[SF_MAX_RANK];
    int64_t value = operand, latest = -1;
    for (int64_t i = 0; i < updates->type->count; i++) {
        int64_t rank_of_vector = 0;
        for (int p = 0, w = 0; p < n->windowed->rank; p++) {
            if (w < n->noffset && n->offset[w] == p)
                w++;
            else
                rank_of_vector = rank_of_vector * n->windowed->dims[p] + at[p];
        }
        test_window(n, indices, at, start, within);
        int64_t update = (int64_t)sf_get_f64(updates, i);
        if (hits(n, start, within, target)) {
            if (monoid == SF_MONOID_ADD)
                value += update;
            else if (monoid == SF_MONOID_MAX)
                value = update > value ? update : value;
            else if (rank_of_vector > latest)
                value = update;
            latest = rank_of_vector > latest ? rank_of_vector : latest;
        }
        sf_next_index(n->windowed->rank, n->windowed->dims, at);
    }
    return value;
}

static void assert_scatter(const test_numbers *n, sf_monoid monoid, const sf_tensor *operand,
                           const sf_tensor *indices, const sf_tensor *updates, const sf_tensor *out)
{
    int64_t target[SF_MAX_RANK] = {0};
    for (int64_t i = 0; i < out->type->count; i++) {
        int64_t before = (int64_t)sf_get_f64(operand, i);
        int64_t want = expected(n, monoid, before, indices, updates, target);
        assert_int_equal((int64_t)sf_get_f64(out, i), want);
        sf_next_index(out->type->rank, out->type->dims, target);
    }
}

static void test_monoids(void **state)
{
    (void)state;
    static const sf_monoid monoids[] = {SF_MONOID_ADD, SF_MONOID_MAX, SF_MONOID_SECOND};
    static const sf_dtype dtypes[] = {SF_F32, SF_S32};
    test_random random = {.key = 2};
    for (int round = 0; round < ROUNDS; round++) {
        sf_pool *pool = sf_pool_new();
        sf_arena arena = {0};
        sf_monoid monoid = monoids[round % 3];
        test_numbers n = test_draw_numbers(&random, pool, dtypes[round / 3 % 2]);
        const sf_attr *attrs[SLOTS] = {0};
        test_number_attrs(&n, pool, attrs);
        attrs[BODY] = sf_attr_int(pool, monoid);
        const sf_type *types[] = {n.operand, n.indices, n.windowed}, *result = NULL;
        sf_op op = {.def = sf_opdef_get(SF_OP_SCATTER),
                    .noperands = 3,
                    .nresults = 1,
                    .in = types,
                    .attrs = attrs,
                    .pool = pool};
        assert_int_equal(op.def->nattrs, SLOTS);
        assert_int_equal(sf_infer(&op, &result, NULL), SF_OK);
        assert_ptr_equal(result, n.operand);
        op.out = &result;
        sf_tensor in[] = {test_draw_tensor(&random, &arena, n.operand, -99, 99),
                          test_draw_tensor(&random, &arena, n.indices, -1, 5),
                          test_draw_tensor(&random, &arena, n.windowed, -99, 99)};
        sf_tensor out = {0};
        assert_int_equal(sf_eval_op(&op, in, &out, NULL), SF_OK);
        assert_scatter(&n, monoid, &in[0], &in[1], &in[2], &out);
        test_split(&random, &op, in, &out);
        sf_free(out.data);
        sf_arena_free(&arena);
        sf_pool_release(pool);
    }
}

/* (f32 a, i32 b, f32 u, i32 v) -> (a + u, max(b, v)) */
static sf_block *two_bodies(sf_graph *graph)
{
    const sf_type *real = sf_type_scalar(graph->pool, SF_F32);
    const sf_type *integer = sf_type_scalar(graph->pool, SF_S32);
    const sf_type *types[] = {real, integer, real, integer};
    const sf_opcode codes[] = {SF_OP_ADD, SF_OP_MAXIMUM};
    sf_block *block = sf_block_new(graph);
    sf_value arguments[4], results[2];
    for (int i = 0; i < 4; i++)
        arguments[i] = sf_block_argument(graph, block, types[i]);
    for (int i = 0; i < 2; i++) {
        sf_node *node = NULL;
        sf_node_spec spec = {.def = sf_opdef_get(codes[i]),
                             .noperands = 2,
                             .nresults = 1,
                             .operands = (sf_value[]){arguments[i], arguments[2 + i]}};
        assert_int_equal(sf_build(graph, block, &spec, NULL, &node), SF_OK);
        results[i] = node->result;
    }
    sf_block_return(graph, block, 2, results);
    return block;
}

static void test_region_of_two(void **state)
{
    (void)state;
    test_random random = {.key = 3};
    for (int round = 0; round < ROUNDS / 10; round++) {
        sf_pool *pool = sf_pool_new();
        sf_graph *graph = sf_graph_new(pool);
        sf_arena arena = {0};
        sf_block *block = two_bodies(graph);
        test_numbers n = test_draw_numbers(&random, pool, SF_F32);
        const sf_attr *attrs[SLOTS] = {0};
        test_number_attrs(&n, pool, attrs);
        const sf_type *types[] = {n.operand, sf_type_with(pool, n.operand, SF_S32), n.indices,
                                  n.windowed, sf_type_with(pool, n.windowed, SF_S32)};
        const sf_type *results[2];
        sf_op op = {.def = sf_opdef_get(SF_OP_SCATTER),
                    .noperands = 5,
                    .nresults = 2,
                    .nregions = 1,
                    .in = types,
                    .attrs = attrs,
                    .regions = &block,
                    .graph = graph,
                    .pool = pool};
        assert_int_equal(sf_infer(&op, results, NULL), SF_OK);
        op.out = results;
        sf_tensor in[5], out[2] = {0};
        for (int i = 0; i < 5; i++)
            in[i] = test_draw_tensor(&random, &arena, types[i], i == 2 ? -1 : -99, i == 2 ? 5 : 99);
        assert_int_equal(sf_eval_op(&op, in, out, NULL), SF_OK);
        assert_scatter(&n, SF_MONOID_ADD, &in[0], &in[2], &in[3], &out[0]);
        assert_scatter(&n, SF_MONOID_MAX, &in[1], &in[2], &in[4], &out[1]);
        test_split(&random, &op, in, out);
        sf_free(out[0].data);
        sf_free(out[1].data);
        sf_arena_free(&arena);
        sf_graph_free(graph);
        sf_pool_release(pool);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_monoids),
        cmocka_unit_test(test_region_of_two),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
