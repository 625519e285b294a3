/* while, case, optimization_barrier, and the known targets of custom_call. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "base/mem.h"
#include "op/eval.h"
#include "op/node_builder.h"
#include "op/slots.h"

typedef struct builder {
    sf_pool *pool;
    sf_graph *graph;
} builder;

static builder open_builder(void)
{
    builder b = {.pool = sf_pool_new()};
    b.graph = sf_graph_new(b.pool);
    return b;
}

static void close_builder(builder *b)
{
    sf_graph_free(b->graph);
    sf_pool_release(b->pool);
}

static sf_node *add(builder *b, sf_block *block, sf_node_spec spec)
{
    const sf_attr *none[8] = {0};
    sf_node *node = NULL;
    if (!spec.attrs)
        spec.attrs = none;
    assert_int_equal(sf_build(b->graph, block, &spec, NULL, &node), SF_OK);
    return node;
}

static sf_value constant(builder *b, sf_block *block, int32_t value)
{
    const sf_type *type = sf_type_scalar(b->pool, SF_S32);
    const sf_attr *attrs[] = {[SF_CONSTANT_VALUE] = sf_attr_dense(b->pool, type, true, &value)};
    return add(b, block,
               (sf_node_spec){.def = sf_opdef_get(SF_OP_CONSTANT),
                              .nresults = 1,
                              .types = &type,
                              .attrs = attrs})
        ->result;
}

static sf_value binary(builder *b, sf_block *block, sf_opcode code, sf_value x, sf_value y,
                       const sf_attr *const *attrs)
{
    return add(b, block,
               (sf_node_spec){.def = sf_opdef_get(code),
                              .noperands = 2,
                              .nresults = 1,
                              .operands = (sf_value[]){x, y},
                              .attrs = attrs})
        ->result;
}

/* while (i < limit) { i, a, b = i + 1, b, a + b }: the values change places in every iteration, and
 * the limit is a value of the enclosing block. */
static void test_while(void **state)
{
    (void)state;
    builder b = open_builder();
    const sf_type *scalar = sf_type_scalar(b.pool, SF_S32);
    sf_value limit = sf_block_argument(b.graph, b.graph->top, scalar);
    sf_block *regions[] = {sf_block_new(b.graph), sf_block_new(b.graph)};
    sf_value in[2][3];
    for (int r = 0; r < 2; r++)
        for (int i = 0; i < 3; i++)
            in[r][i] = sf_block_argument(b.graph, regions[r], scalar);
    const sf_attr *less[4] = {[SF_COMPARE_DIRECTION] = sf_attr_text(b.pool, sf_str_of("LT"))};
    sf_value goes_on = binary(&b, regions[0], SF_OP_COMPARE, in[0][0], limit, less);
    sf_block_return(b.graph, regions[0], 1, &goes_on);
    sf_value one = constant(&b, regions[1], 1);
    sf_value next[] = {binary(&b, regions[1], SF_OP_ADD, in[1][0], one, NULL), in[1][2],
                       binary(&b, regions[1], SF_OP_ADD, in[1][1], in[1][2], NULL)};
    sf_block_return(b.graph, regions[1], 3, next);
    sf_value start[] = {constant(&b, b.graph->top, 0), constant(&b, b.graph->top, 0),
                        constant(&b, b.graph->top, 1)};
    sf_node *loop = add(&b, b.graph->top,
                        (sf_node_spec){.def = sf_opdef_get(SF_OP_WHILE),
                                       .noperands = 3,
                                       .nresults = 3,
                                       .nregions = 2,
                                       .operands = start,
                                       .regions = regions});
    sf_block_return(b.graph, b.graph->top, 1, &(sf_value){loop->result + 1});
    static const int32_t fibonacci[] = {0, 1, 1, 2, 3, 5, 8, 13};
    for (int32_t n = 0; n < 8; n++) {
        sf_tensor argument = {.type = scalar, .data = &n}, result = {0};
        assert_int_equal(sf_eval_graph(b.graph, &argument, &result, 0, NULL), SF_OK);
        assert_int_equal(sf_get_i64(&result, 0), fibonacci[n]);
        sf_free(result.data);
    }
    /* A condition that gives a number is refused. */
    sf_block_return(b.graph, regions[0], 1, &in[0][0]);
    const sf_type *types[6], *out[3];
    sf_op op = sf_op_of(b.graph, loop, types);
    assert_int_equal(sf_infer(&op, out, NULL), SF_EINPUT);
    close_builder(&b);
}

static void test_case(void **state)
{
    (void)state;
    builder b = open_builder();
    const sf_type *scalar = sf_type_scalar(b.pool, SF_S32);
    sf_value index = sf_block_argument(b.graph, b.graph->top, scalar);
    sf_block *regions[3];
    for (int i = 0; i < 3; i++) {
        regions[i] = sf_block_new(b.graph);
        sf_value value = constant(&b, regions[i], 10 + i);
        sf_block_return(b.graph, regions[i], 1, &value);
    }
    sf_node *node = add(&b, b.graph->top,
                        (sf_node_spec){.def = sf_opdef_get(SF_OP_CASE),
                                       .noperands = 1,
                                       .nresults = 1,
                                       .nregions = 3,
                                       .operands = &index,
                                       .regions = regions});
    sf_block_return(b.graph, b.graph->top, 1, &node->result);
    static const int32_t given[] = {0, 1, 2, 3, -1}, expected[] = {10, 11, 12, 12, 12};
    for (int i = 0; i < 5; i++) {
        int32_t value = given[i];
        sf_tensor argument = {.type = scalar, .data = &value}, result = {0};
        assert_int_equal(sf_eval_graph(b.graph, &argument, &result, 0, NULL), SF_OK);
        assert_int_equal(sf_get_i64(&result, 0), expected[i]);
        sf_free(result.data);
    }
    close_builder(&b);
}

static sf_status call(const char *target, const sf_tensor *in, int nresults, sf_tensor *out,
                      sf_diag *diag)
{
    sf_pool *pool = sf_pool_new();
    const sf_attr *attrs[8] = {sf_attr_text(pool, sf_str_of(target))};
    const sf_type *types[] = {in[0].type, in[1].type}, *declared[] = {in[0].type};
    sf_op op = {.def = sf_opdef_get(SF_OP_CUSTOM_CALL),
                .noperands = nresults ? 1 : 2,
                .nresults = nresults,
                .in = types,
                .out = declared,
                .attrs = attrs,
                .pool = pool};
    const sf_type *result[1];
    sf_status status = sf_infer(&op, result, diag);
    if (status == SF_OK)
        status = sf_eval_op(&op, in, out, diag);
    sf_pool_release(pool);
    return status;
}

/* 1 + n ulp, by the name of the check: whether it holds. */
static void test_checks(void **state)
{
    (void)state;
    sf_pool *pool = sf_pool_new();
    const sf_type *type = sf_type_get(pool, SF_F32, 2, (int64_t[]){1, 2});
    const float up3 = 1 + 3 * 0x1p-23f, up4 = 1 + 4 * 0x1p-23f, tiny = 0x1p-149f;
    const struct {
        float actual, expected;
        bool equal, close, almost;
    } cases[] = {
        {1, 1, true, true, true},
        {up3, 1, false, true, true},
        {1, up4, false, false, true},
        {1.0005F, 1, false, false, true},
        {1.002F, 1, false, false, false},
        {0.0F, -0.0F, true, true, true},
        {tiny, -2 * tiny, false, true, false},
        {2 * tiny, -2 * tiny, false, false, false},
        {NAN, NAN, false, true, true},
        {NAN, 1, false, false, false},
        {INFINITY, INFINITY, true, true, true},
        {INFINITY, -INFINITY, false, false, false},
        {3.4028235e38F, INFINITY, false, false, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        float actual[] = {5, cases[i].actual}, expected[] = {5, cases[i].expected};
        sf_tensor in[] = {{.type = type, .data = actual}, {.type = type, .data = expected}};
        assert_int_equal(call("check.expect_eq", in, 0, NULL, NULL),
                         cases[i].equal ? SF_OK : SF_EMISMATCH);
        assert_int_equal(call("check.expect_close", in, 0, NULL, NULL),
                         cases[i].close ? SF_OK : SF_EMISMATCH);
        assert_int_equal(call("check.expect_almost_eq", in, 0, NULL, NULL),
                         cases[i].almost ? SF_OK : SF_EMISMATCH);
    }
    float actual[] = {5, 3.5F}, expected[] = {5, 3.25F};
    sf_tensor in[] = {{.type = type, .data = actual}, {.type = type, .data = expected}};
    sf_diag *diag = sf_diag_new();
    assert_int_equal(call("check.expect_close", in, 0, NULL, diag), SF_EMISMATCH);
    assert_non_null(strstr(sf_diag_text(diag, 0), "element [0, 1] is 3.5, expected 3.25"));
    sf_diag_free(diag);
    sf_pool_release(pool);
}

static void test_custom_calls(void **state)
{
    (void)state;
    sf_pool *pool = sf_pool_new();
    float data[] = {1, 2};
    sf_tensor in[2] = {{.type = sf_type_get(pool, SF_F32, 1, (int64_t[]){2}), .data = data}};
    in[1] = in[0];
    sf_tensor out = {.type = in[0].type};
    assert_int_equal(call("Sharding", in, 1, &out, NULL), SF_OK);
    assert_memory_equal(out.data, data, sizeof data);
    sf_free(out.data);
    out = (sf_tensor){.type = in[0].type};
    sf_diag *diag = sf_diag_new();
    assert_int_equal(call("my_kernel", in, 1, &out, diag), SF_EUNSUPPORTED);
    assert_non_null(strstr(sf_diag_text(diag, 0), "@my_kernel"));
    sf_free(out.data);
    out = (sf_tensor){.type = in[0].type};
    assert_int_equal(call("lapack_spotrf_ffi", in, 1, &out, diag), SF_EUNSUPPORTED);
    assert_non_null(strstr(sf_diag_text(diag, 1), "lower(lowering_platforms=(\"tpu\",))"));
    sf_free(out.data);
    sf_diag_free(diag);
    sf_pool_release(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_while),
        cmocka_unit_test(test_case),
        cmocka_unit_test(test_checks),
        cmocka_unit_test(test_custom_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
