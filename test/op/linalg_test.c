/* cholesky and triangular_solve: the answers are put back into the equations. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/mem.h"
#include "support/indexing.h"

enum { BATCH = 3, N = 4, M = 2 };

static const char *const transposes[] = {"NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"};

static sf_op solve_op(const sf_type *const *types, const sf_attr *const *attrs, sf_pool *pool)
{
    return (sf_op){.def = sf_opdef_get(SF_OP_TRIANGULAR_SOLVE),
                   .noperands = 2,
                   .nresults = 1,
                   .in = types,
                   .attrs = attrs,
                   .pool = pool};
}

/* Element (i, j) of the triangle that counts, of matrix `batch`. */
static double triangle(const double *a, int batch, int i, int j, bool lower, bool unit)
{
    if (i == j && unit)
        return 1;
    return (lower ? j <= i : j >= i) ? a[(batch * N + i) * N + j] : 0;
}

static void assert_solved(const double *a, const double *b, const double *x, bool left, bool lower,
                          bool unit, bool transposed)
{
    int rows = left ? N : M, columns = left ? M : N;
    for (int n = 0; n < BATCH * rows * columns; n++) {
        int batch = n / (rows * columns), r = n / columns % rows, c = n % columns;
        double sum = 0;
        for (int k = 0; k < N; k++) {
            int i = left ? r : k, j = left ? k : c;
            double t = triangle(a, batch, transposed ? j : i, transposed ? i : j, lower, unit);
            sum += t * x[batch * rows * columns + (left ? k * columns + c : r * columns + k)];
        }
        assert_true(fabs(sum - b[n]) < 1e-9);
    }
}

static void test_triangular_solve(void **state)
{
    (void)state;
    test_random random = {.key = 21};
    sf_pool *pool = sf_pool_new();
    for (int kind = 0; kind < 24; kind++) {
        bool left = kind & 1, lower = kind & 2, unit = kind & 4;
        sf_arena arena = {0};
        const sf_attr *attrs[] = {sf_attr_int(pool, left), sf_attr_int(pool, lower),
                                  sf_attr_int(pool, unit),
                                  sf_attr_text(pool, sf_str_of(transposes[kind / 8]))};
        const sf_type *types[] = {
            sf_type_get(pool, SF_F64, 3, (int64_t[]){BATCH, N, N}),
            sf_type_get(pool, SF_F64, 3, (int64_t[]){BATCH, left ? N : M, left ? M : N})};
        const sf_type *result = NULL;
        sf_op op = solve_op(types, attrs, pool);
        assert_int_equal(sf_infer(&op, &result, NULL), SF_OK);
        op.out = &result;
        sf_tensor in[] = {test_draw_tensor(&random, &arena, types[0], 1, 9),
                          test_draw_tensor(&random, &arena, types[1], -9, 9)};
        sf_tensor out = {0};
        assert_int_equal(sf_eval_op(&op, in, &out, NULL), SF_OK);
        assert_solved(in[0].data, in[1].data, out.data, left, lower, unit, kind / 8 > 0);
        test_split(&random, &op, in, &out);
        sf_free(out.data);
        sf_arena_free(&arena);
    }
    sf_pool_release(pool);
}

static void test_cholesky(void **state)
{
    (void)state;
    test_random random = {.key = 22};
    sf_pool *pool = sf_pool_new();
    for (int lower = 0; lower < 2; lower++) {
        sf_arena arena = {0};
        const sf_attr *attrs[] = {sf_attr_int(pool, lower)};
        const sf_type *type = sf_type_get(pool, SF_F64, 3, (int64_t[]){BATCH, N, N}), *result;
        sf_op op = {.def = sf_opdef_get(SF_OP_CHOLESKY),
                    .noperands = 1,
                    .nresults = 1,
                    .in = &type,
                    .attrs = attrs,
                    .pool = pool};
        assert_int_equal(sf_infer(&op, &result, NULL), SF_OK);
        op.out = &result;
        sf_tensor in = test_draw_tensor(&random, &arena, type, -2, 2), out = {0};
        double *a = in.data; /* made dominant; the triangle that does not count stays as it is */
        for (int i = 0; i < BATCH * N; i++)
            a[i * N + i % N] = 20;
        assert_int_equal(sf_eval_op(&op, &in, &out, NULL), SF_OK);
        const double *l = out.data;
        for (int n = 0; n < BATCH * N * N; n++) {
            int batch = n / N / N, i = n / N % N, j = n % N;
            if (lower ? j > i : j < i) {
                assert_true(l[n] == 0);
                continue;
            }
            double sum = 0;
            for (int k = 0; k < N; k++)
                sum += lower ? l[(batch * N + i) * N + k] * l[(batch * N + j) * N + k]
                             : l[(batch * N + k) * N + i] * l[(batch * N + k) * N + j];
            assert_true(fabs(sum - a[n]) < 1e-9);
        }
        test_split(&random, &op, &in, &out);
        sf_free(out.data);
        sf_arena_free(&arena);
    }
    sf_pool_release(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_triangular_solve),
        cmocka_unit_test(test_cholesky),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
