/* dot_general and reduce against their definitions, over random dimension numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/mem.h"
#include "support/indexing.h"

enum { ROUNDS = 1500, MAX_DIMS = 4, SLOTS = 8 };
enum { BATCH, SUM, FREE_LEFT, FREE_RIGHT };

static void draw_order(test_random *random, int count, int64_t *order)
{
    for (int i = 0; i < count; i++) {
        int64_t j = test_draw(random, 0, i);
        order[i] = order[j];
        order[j] = i;
    }
}

/* Loops of a product: each has a size, a kind and its dimension in either operand. */
typedef struct loops {
    int count;
    int kind[2 * MAX_DIMS];
    int64_t size[2 * MAX_DIMS], left[2 * MAX_DIMS], right[2 * MAX_DIMS];
    int nleft, nright;
} loops;

static loops draw_loops(test_random *random)
{
    loops l = {.count = (int)test_draw(random, 0, 5)};
    int64_t left[MAX_DIMS * 2], right[MAX_DIMS * 2];
    for (int i = 0; i < l.count; i++) {
        l.kind[i] = (int)test_draw(random, BATCH, FREE_RIGHT);
        l.size[i] = test_draw(random, 0, 14) ? test_draw(random, 1, 4) : 0;
        l.nleft += l.kind[i] != FREE_RIGHT;
        l.nright += l.kind[i] != FREE_LEFT;
    }
    draw_order(random, l.nleft, left);
    draw_order(random, l.nright, right);
    for (int i = 0, a = 0, b = 0; i < l.count; i++) {
        l.left[i] = l.kind[i] != FREE_RIGHT ? left[a++] : -1;
        l.right[i] = l.kind[i] != FREE_LEFT ? right[b++] : -1;
    }
    return l;
}

static const sf_type *operand_type(sf_pool *pool, sf_dtype dtype, const loops *l, bool is_left)
{
    int64_t dims[2 * MAX_DIMS];
    for (int i = 0; i < l->count; i++) {
        int64_t dim = is_left ? l->left[i] : l->right[i];
        if (dim >= 0)
            dims[dim] = l->size[i];
    }
    return sf_type_get(pool, dtype, is_left ? l->nleft : l->nright, dims);
}

static const sf_attr *list_of(sf_pool *pool, const loops *l, int kind, const int64_t *dims)
{
    int64_t list[2 * MAX_DIMS];
    int count = 0;
    for (int i = 0; i < l->count; i++)
        if (l->kind[i] == kind)
            list[count++] = dims[i];
    return sf_attr_ints(pool, count, list);
}

/* The loop that dimension `dim` of the result runs over: batch loops, then those of the left operand
 * and of the right one, in the order of their dimensions. */
static int result_loop(const loops *l, int dim)
{
    for (int i = 0; i < l->count; i++)
        if (l->kind[i] == BATCH && dim-- == 0)
            return i;
    for (int64_t side = 0; side < 2; side++)
        for (int64_t at = 0; at < 2 * MAX_DIMS; at++)
            for (int i = 0; i < l->count; i++) {
                bool is_here = side == 0 ? l->kind[i] == FREE_LEFT && l->left[i] == at
                                         : l->kind[i] == FREE_RIGHT && l->right[i] == at;
                if (is_here && dim-- == 0)
                    return i;
            }
    return -1;
}

static void assert_product(sf_arena *arena, const loops *l, const sf_tensor *in,
                           const sf_tensor *out)
{
    double *expected = SF_ARRAY(arena, out->type->count, double);
    int64_t at[2 * MAX_DIMS] = {0}, left[2 * MAX_DIMS], right[2 * MAX_DIMS], to[2 * MAX_DIMS];
    int64_t total = 1;
    for (int i = 0; i < l->count; i++)
        total *= l->size[i];
    for (int64_t n = 0; n < total; n++) {
        for (int i = 0; i < l->count; i++) {
            if (l->left[i] >= 0)
                left[l->left[i]] = at[i];
            if (l->right[i] >= 0)
                right[l->right[i]] = at[i];
        }
        for (int d = 0; d < out->type->rank; d++)
            to[d] = at[result_loop(l, d)];
        double a = sf_get_f64(&in[0], sf_flat_index(l->nleft, in[0].type->dims, left));
        double b = sf_get_f64(&in[1], sf_flat_index(l->nright, in[1].type->dims, right));
        expected[sf_flat_index(out->type->rank, out->type->dims, to)] += a * b;
        sf_next_index(l->count, l->size, at);
    }
    for (int64_t i = 0; i < out->type->count; i++)
        assert_true(sf_get_f64(out, i) == expected[i]);
}

static void test_dot(void **state)
{
    (void)state;
    static const sf_dtype dtypes[] = {SF_F32, SF_S32, SF_F64, SF_S16};
    test_random random = {.key = 11};
    for (int round = 0; round < ROUNDS; round++) {
        sf_pool *pool = sf_pool_new();
        sf_arena arena = {0};
        sf_dtype dtype = dtypes[round % 4];
        loops l = draw_loops(&random);
        const sf_attr *attrs[SLOTS] = {
            list_of(pool, &l, BATCH, l.left), list_of(pool, &l, BATCH, l.right),
            list_of(pool, &l, SUM, l.left), list_of(pool, &l, SUM, l.right)};
        const sf_type *types[] = {operand_type(pool, dtype, &l, true),
                                  operand_type(pool, dtype, &l, false)};
        const sf_type *result = NULL;
        sf_op op = {.def = sf_opdef_get(SF_OP_DOT_GENERAL),
                    .noperands = 2,
                    .nresults = 1,
                    .in = types,
                    .attrs = attrs,
                    .pool = pool};
        assert_int_equal(sf_infer(&op, &result, NULL), SF_OK);
        op.out = &result;
        sf_tensor in[] = {test_draw_tensor(&random, &arena, types[0], -9, 9),
                          test_draw_tensor(&random, &arena, types[1], -9, 9)};
        sf_tensor out = {0};
        assert_int_equal(sf_eval_op(&op, in, &out, NULL), SF_OK);
        assert_product(&arena, &l, in, &out);
        test_split(&random, &op, in, &out);
        sf_free(out.data);
        sf_arena_free(&arena);
        sf_pool_release(pool);
    }
}

static void assert_sums(sf_arena *arena, const int64_t *keeps, const sf_tensor *in,
                        const sf_tensor *out)
{
    double *expected = SF_ARRAY(arena, out->type->count, double);
    const sf_type *type = in[0].type;
    int64_t at[SF_MAX_RANK] = {0}, to[SF_MAX_RANK];
    for (int64_t i = 0; i < out->type->count; i++)
        expected[i] = sf_get_f64(&in[1], 0);
    for (int64_t n = 0; n < type->count; n++) {
        int rank = 0;
        for (int d = 0; d < type->rank; d++)
            if (keeps[d])
                to[rank++] = at[d];
        expected[sf_flat_index(rank, out->type->dims, to)] += sf_get_f64(&in[0], n);
        sf_next_index(type->rank, type->dims, at);
    }
    for (int64_t i = 0; i < out->type->count; i++)
        assert_true(sf_get_f64(out, i) == expected[i]);
}

static void test_reduce(void **state)
{
    (void)state;
    test_random random = {.key = 12};
    for (int round = 0; round < ROUNDS; round++) {
        sf_pool *pool = sf_pool_new();
        sf_arena arena = {0};
        sf_dtype dtype = round % 2 ? SF_F32 : SF_S32;
        int rank = (int)test_draw(&random, 0, MAX_DIMS), count = 0;
        int64_t dims[MAX_DIMS], keeps[MAX_DIMS], reduced[MAX_DIMS];
        for (int d = 0; d < rank; d++) {
            dims[d] = test_draw(&random, 0, 9) ? test_draw(&random, 1, 4) : 0;
            keeps[d] = test_draw(&random, 0, 1);
            if (!keeps[d])
                reduced[count++] = d;
        }
        const sf_attr *attrs[SLOTS] = {sf_attr_ints(pool, count, reduced),
                                       sf_attr_int(pool, SF_MONOID_ADD)};
        const sf_type *types[] = {sf_type_get(pool, dtype, rank, dims),
                                  sf_type_scalar(pool, dtype)};
        const sf_type *result = NULL;
        sf_op op = {.def = sf_opdef_get(SF_OP_REDUCE),
                    .noperands = 2,
                    .nresults = 1,
                    .in = types,
                    .attrs = attrs,
                    .pool = pool};
        assert_int_equal(sf_infer(&op, &result, NULL), SF_OK);
        op.out = &result;
        sf_tensor in[] = {test_draw_tensor(&random, &arena, types[0], -9, 9),
                          test_draw_tensor(&random, &arena, types[1], -9, 9)};
        sf_tensor out = {0};
        assert_int_equal(sf_eval_op(&op, in, &out, NULL), SF_OK);
        assert_sums(&arena, keeps, in, &out);
        /* An empty dimension cannot be split: each of two empty shards would count the initial
         * value. */
        if (types[0]->count > 0)
            test_split(&random, &op, in, &out);
        sf_free(out.data);
        sf_arena_free(&arena);
        sf_pool_release(pool);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dot),
        cmocka_unit_test(test_reduce),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
