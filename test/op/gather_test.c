/* gather against the formula of the specification, over random dimension numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/mem.h"
#include "support/indexing.h"

enum { ROUNDS = 4000, SLOTS = 8 };

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

static void assert_gather(const test_numbers *n, const sf_tensor *in, const sf_tensor *out)
{
    int64_t at[SF_MAX_RANK] = {0}, start[SF_MAX_RANK], within[SF_MAX_RANK];
    for (int64_t i = 0; i < out->type->count; i++) {
        test_window(n, &in[1], at, start, within);
        for (int d = 0; d < n->operand->rank; d++) {
            bool batched = false;
            for (int k = 0; k < n->nbatching; k++)
                batched |= n->operand_batching[k] == d;
            if (!batched)
                start[d] = clamp(start[d], 0, n->operand->dims[d] - n->sizes[d]);
            start[d] += within[d];
        }
        int64_t from = sf_flat_index(n->operand->rank, n->operand->dims, start);
        assert_true(sf_get_f64(out, i) == sf_get_f64(&in[0], from));
        sf_next_index(out->type->rank, out->type->dims, at);
    }
}

static void test_random_numbers(void **state)
{
    (void)state;
    static const sf_dtype dtypes[] = {SF_F32, SF_S32, SF_PRED, SF_BF16, SF_F64};
    test_random random = {.key = 1};
    for (int round = 0; round < ROUNDS; round++) {
        sf_pool *pool = sf_pool_new();
        sf_arena arena = {0};
        test_numbers n = test_draw_numbers(&random, pool, dtypes[round % 5]);
        const sf_attr *attrs[SLOTS] = {0};
        test_number_attrs(&n, pool, attrs);
        attrs[6] = sf_attr_ints(pool, n.operand->rank, n.sizes);
        const sf_type *types[] = {n.operand, n.indices}, *result = NULL;
        sf_op op = {.def = sf_opdef_get(SF_OP_GATHER),
                    .noperands = 2,
                    .nresults = 1,
                    .in = types,
                    .attrs = attrs,
                    .pool = pool};
        assert_int_equal(op.def->nattrs, SLOTS);
        assert_int_equal(sf_infer(&op, &result, NULL), SF_OK);
        assert_ptr_equal(result, n.windowed);
        op.out = &result;
        sf_tensor in[] = {test_draw_tensor(&random, &arena, n.operand, -9, 9),
                          test_draw_tensor(&random, &arena, n.indices, -2, 7)};
        sf_tensor out = {0};
        assert_int_equal(sf_eval_op(&op, in, &out, NULL), SF_OK);
        assert_gather(&n, in, &out);
        test_split(&random, &op, in, &out);
        sf_free(out.data);
        sf_arena_free(&arena);
        sf_pool_release(pool);
    }
}

/* One broken list at a time: each must be refused, and nothing may be read out of bounds. */
static void test_refuses(void **state)
{
    (void)state;
    sf_pool *pool = sf_pool_new();
    const sf_type *types[] = {sf_type_get(pool, SF_F32, 2, (int64_t[]){5, 3}),
                              sf_type_get(pool, SF_S32, 2, (int64_t[]){4, 1})};
    const sf_attr *good[SLOTS] = {
        sf_attr_ints(pool, 1, (int64_t[]){1}),
        sf_attr_ints(pool, 1, (int64_t[]){0}),
        NULL,
        NULL,
        sf_attr_ints(pool, 1, (int64_t[]){0}),
        sf_attr_int(pool, 1),
        sf_attr_ints(pool, 2, (int64_t[]){1, 3}),
        NULL,
    };
    const struct {
        int slot;
        const sf_attr *attr;
    } bad[] = {
        {0, NULL},
        {0, sf_attr_ints(pool, 1, (int64_t[]){2})},
        {0, sf_attr_ints(pool, 2, (int64_t[]){1, 0})},
        {1, sf_attr_ints(pool, 1, (int64_t[]){-1})},
        {1, sf_attr_ints(pool, 1, (int64_t[]){2})},
        {1, sf_attr_ints(pool, 2, (int64_t[]){0, 0})},
        {2, sf_attr_ints(pool, 1, (int64_t[]){0})},
        {3, sf_attr_ints(pool, 1, (int64_t[]){0})},
        {4, NULL},
        {4, sf_attr_ints(pool, 1, (int64_t[]){2})},
        {5, NULL},
        {5, sf_attr_int(pool, -1)},
        {5, sf_attr_int(pool, 3)},
        {6, NULL},
        {6, sf_attr_ints(pool, 2, (int64_t[]){2, 3})},
        {6, sf_attr_ints(pool, 2, (int64_t[]){1, 4})},
        {6, sf_attr_ints(pool, 2, (int64_t[]){1, -1})},
        {6, sf_attr_ints(pool, 1, (int64_t[]){1})},
    };
    const sf_attr *attrs[SLOTS];
    const sf_type *result = NULL;
    sf_op op = {.def = sf_opdef_get(SF_OP_GATHER),
                .noperands = 2,
                .nresults = 1,
                .in = types,
                .attrs = attrs,
                .pool = pool};
    for (size_t i = 0; i <= sizeof bad / sizeof *bad; i++) {
        for (int slot = 0; slot < SLOTS; slot++)
            attrs[slot] = good[slot];
        bool broken = i < sizeof bad / sizeof *bad;
        if (broken)
            attrs[bad[i].slot] = bad[i].attr;
        assert_int_equal(sf_infer(&op, &result, NULL), broken ? SF_EINPUT : SF_OK);
    }
    sf_pool_release(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_numbers),
        cmocka_unit_test(test_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
