/* rng_bit_generator: a value of XLA, and shards that draw the numbers of the whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/mem.h"
#include "support/indexing.h"

static void draw(sf_pool *pool, const char *algorithm, uint64_t *state, int words,
                 const sf_type *output, sf_tensor *out)
{
    test_random random = {.key = 31};
    const sf_attr *attrs[] = {sf_attr_text(pool, sf_str_of(algorithm))};
    const sf_type *type = sf_type_get(pool, SF_U64, 1, (int64_t[]){words}), *results[2];
    const sf_type *declared[] = {type, output};
    sf_op op = {.def = sf_opdef_get(SF_OP_RNG_BIT_GENERATOR),
                .noperands = 1,
                .nresults = 2,
                .in = &type,
                .out = declared,
                .attrs = attrs,
                .pool = pool};
    assert_int_equal(sf_infer(&op, results, NULL), SF_OK);
    sf_tensor in = {.type = type, .data = state};
    assert_int_equal(sf_eval_op(&op, &in, out, NULL), SF_OK);
    test_split(&random, &op, &in, out);
}

static void test_known_value(void **state)
{
    (void)state;
    sf_pool *pool = sf_pool_new();
    uint64_t start[] = {3, 3};
    sf_tensor out[2] = {0};
    draw(pool, "THREE_FRY", start, 2, sf_type_scalar(pool, SF_U64), out);
    assert_int_equal(sf_get_i64(&out[0], 0), 3);
    assert_int_equal(sf_get_i64(&out[0], 1), 4);
    assert_int_equal(sf_get_i64(&out[1], 0), INT64_C(3349939604322698703));
    sf_free(out[0].data);
    sf_free(out[1].data);
    sf_pool_release(pool);
}

static void test_pieces(void **state)
{
    (void)state;
    static const sf_dtype dtypes[] = {SF_U8, SF_U16, SF_U32, SF_S32, SF_U64};
    static const char *const algorithms[] = {"THREE_FRY", "PHILOX", "DEFAULT"};
    for (int i = 0; i < 30; i++) {
        sf_pool *pool = sf_pool_new();
        uint64_t start[] = {5, UINT64_MAX - 3, 1};
        sf_tensor out[2] = {0};
        const int64_t dims[] = {3, i % 2 ? 5 : 4, 7};
        draw(pool, algorithms[i % 3], start, i % 3 && i % 2 ? 3 : 2,
             sf_type_get(pool, dtypes[i % 5], 3, dims), out);
        sf_free(out[0].data);
        sf_free(out[1].data);
        sf_pool_release(pool);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_value),
        cmocka_unit_test(test_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
