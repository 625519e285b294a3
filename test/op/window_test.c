/* reduce_window and select_and_scatter against their definitions: the operand is dilated and padded
 * element by element, then every window is walked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/mem.h"
#include "support/indexing.h"

enum { ROUNDS = 1500, MAX_DIMS = 3, SLOTS = 8 };

typedef struct config {
    int rank;
    int64_t dims[MAX_DIMS], sizes[MAX_DIMS], strides[MAX_DIMS], padding[2 * MAX_DIMS];
    int64_t base[MAX_DIMS], dilation[MAX_DIMS];
    int64_t counts[MAX_DIMS]; /* of windows */
} config;

static int64_t spread_size(int64_t size, int64_t apart)
{
    return size == 0 ? 0 : (size - 1) * apart + 1;
}

static config draw_config(test_random *random, bool dilated)
{
    config c = {.rank = (int)test_draw(random, 0, MAX_DIMS)};
    for (int d = 0; d < c.rank; d++) {
        bool simple = test_draw(random, 0, 3) == 0;
        c.dims[d] = test_draw(random, 0, 11) ? test_draw(random, 1, 7) : 0;
        c.sizes[d] = simple ? 1 : test_draw(random, 1, 4);
        c.strides[d] = simple ? 1 : test_draw(random, 1, 3);
        c.base[d] = simple || !dilated ? 1 : test_draw(random, 1, 4);
        c.dilation[d] = simple || !dilated ? 1 : test_draw(random, 1, 4);
        c.padding[2 * d] = simple ? 0 : test_draw(random, -2, 4);
        c.padding[2 * d + 1] = simple ? 0 : test_draw(random, -2, 4);
        int64_t padded =
            c.padding[2 * d] + spread_size(c.dims[d], c.base[d]) + c.padding[2 * d + 1];
        int64_t reach = spread_size(c.sizes[d], c.dilation[d]);
        c.counts[d] = padded <= 0 || padded < reach ? 0 : (padded - reach) / c.strides[d] + 1;
    }
    return c;
}

/* The flat index of element `w` of window `at`, or -1 for padding: searched among all elements. */
static int64_t seen(const config *c, const int64_t *at, const int64_t *w)
{
    int64_t flat = 0;
    for (int d = 0; d < c->rank; d++) {
        int64_t place = at[d] * c->strides[d] + w[d] * c->dilation[d], found = -1;
        for (int64_t i = 0; i < c->dims[d]; i++)
            if (c->padding[2 * d] + i * c->base[d] == place)
                found = i;
        if (found < 0)
            return -1;
        flat = flat * c->dims[d] + found;
    }
    return flat;
}

static void set(sf_opcode code, const sf_attr **attrs, const char *name, const sf_attr *attr)
{
    int slot = sf_attr_slot(sf_opdef_get(code), sf_str_of(name));
    assert_true(slot >= 0);
    attrs[slot] = attr;
}

static void set_windows(sf_opcode code, sf_pool *pool, const config *c, const sf_attr **attrs)
{
    set(code, attrs, "window_dimensions", sf_attr_ints(pool, c->rank, c->sizes));
    set(code, attrs, "window_strides", sf_attr_ints(pool, c->rank, c->strides));
    set(code, attrs, "padding", sf_attr_ints(pool, 2 * c->rank, c->padding));
    if (code == SF_OP_REDUCE_WINDOW) {
        set(code, attrs, "base_dilations", sf_attr_ints(pool, c->rank, c->base));
        set(code, attrs, "window_dilations", sf_attr_ints(pool, c->rank, c->dilation));
    }
}

/* A block of 2N scalars that applies op i to arguments i and N + i. */
static sf_block *new_body(sf_graph *graph, int count, const sf_opcode *ops, sf_dtype dtype,
                          const sf_attr *const *attrs)
{
    sf_block *block = sf_block_new(graph);
    sf_value arguments[8], results[4];
    for (int i = 0; i < 2 * count; i++)
        arguments[i] = sf_block_argument(graph, block, sf_type_scalar(graph->pool, dtype));
    for (int i = 0; i < count; i++) {
        const sf_attr *none[4] = {0};
        sf_node_spec spec = {.def = sf_opdef_get(ops[i]),
                             .noperands = 2,
                             .nresults = 1,
                             .operands = (sf_value[]){arguments[i], arguments[count + i]},
                             .attrs = attrs ? attrs : none};
        sf_node *node = NULL;
        assert_int_equal(sf_build(graph, block, &spec, NULL, &node), SF_OK);
        results[i] = node->result;
    }
    sf_block_return(graph, block, (uint32_t)count, results);
    return block;
}

static double fold(sf_monoid monoid, double a, double b)
{
    switch ((int)monoid) {
    case SF_MONOID_ADD:
        return a + b;
    case SF_MONOID_MUL:
        return a * b;
    case SF_MONOID_MIN:
        return a < b ? a : b;
    case SF_MONOID_MAX:
        return a > b ? a : b;
    case SF_MONOID_XOR:
        return (double)((int64_t)a ^ (int64_t)b);
    default:
        fail();
        return 0;
    }
}

static void assert_reduced(const config *c, sf_monoid monoid, const sf_tensor *operand, double init,
                           const sf_tensor *out)
{
    int64_t at[SF_MAX_RANK] = {0};
    for (int64_t n = 0; n < out->type->count; n++) {
        int64_t w[SF_MAX_RANK] = {0};
        double value = init;
        do {
            int64_t from = seen(c, at, w);
            value = fold(monoid, value, from < 0 ? init : sf_get_f64(operand, from));
        } while (sf_next_index(c->rank, c->sizes, w));
        if (!sf_is_float(out->type->dtype))
            assert_int_equal(sf_get_i64(out, n), sf_wrap(out->type->dtype, (int64_t)value));
        else
            assert_true(sf_get_f64(out, n) == sf_round(out->type->dtype, value));
        sf_next_index(c->rank, c->counts, at);
    }
}

static void test_reduce_window(void **state)
{
    (void)state;
    static const struct {
        sf_monoid monoid;
        sf_dtype dtype;
        int64_t low, high;
    } kinds[] = {
        {SF_MONOID_ADD, SF_F32, -9, 9}, {SF_MONOID_ADD, SF_S8, -99, 99},
        {SF_MONOID_MUL, SF_F64, 1, 2},  {SF_MONOID_MUL, SF_S32, -1, 1},
        {SF_MONOID_MIN, SF_F32, -9, 9}, {SF_MONOID_MAX, SF_S64, -9, 9},
        {SF_MONOID_MAX, SF_U8, 0, 255}, {SF_MONOID_XOR, SF_U16, 0, 999},
    };
    enum { NKINDS = sizeof kinds / sizeof *kinds };
    test_random random = {.key = 3};
    for (int round = 0; round < ROUNDS; round++) {
        sf_pool *pool = sf_pool_new();
        sf_arena arena = {0};
        sf_monoid monoid = kinds[round % NKINDS].monoid;
        sf_dtype dtype = kinds[round % NKINDS].dtype;
        config c = draw_config(&random, true);
        const sf_attr *attrs[SLOTS] = {0};
        set_windows(SF_OP_REDUCE_WINDOW, pool, &c, attrs);
        set(SF_OP_REDUCE_WINDOW, attrs, "body", sf_attr_int(pool, monoid));
        const sf_type *types[] = {sf_type_get(pool, dtype, c.rank, c.dims),
                                  sf_type_scalar(pool, dtype)};
        const sf_type *result = NULL;
        sf_op op = {.def = sf_opdef_get(SF_OP_REDUCE_WINDOW),
                    .noperands = 2,
                    .nresults = 1,
                    .in = types,
                    .attrs = attrs,
                    .pool = pool};
        assert_int_equal(sf_infer(&op, &result, NULL), SF_OK);
        assert_ptr_equal(result, sf_type_get(pool, dtype, c.rank, c.counts));
        op.out = &result;
        int64_t low = kinds[round % NKINDS].low, high = kinds[round % NKINDS].high;
        sf_tensor in[] = {test_draw_tensor(&random, &arena, types[0], low, high),
                          test_draw_tensor(&random, &arena, types[1], low, high)};
        sf_tensor out = {0};
        assert_int_equal(sf_eval_op(&op, in, &out, NULL), SF_OK);
        assert_reduced(&c, monoid, &in[0], sf_get_f64(&in[1], 0), &out);
        test_split(&random, &op, in, &out);
        sf_free(out.data);
        sf_arena_free(&arena);
        sf_pool_release(pool);
    }
}

/* Two operands and a body that stays a region: one sum and one maximum. */
static void test_reduce_window_region(void **state)
{
    (void)state;
    static const sf_opcode ops[] = {SF_OP_ADD, SF_OP_MAXIMUM};
    test_random random = {.key = 4};
    for (int round = 0; round < ROUNDS / 10; round++) {
        sf_pool *pool = sf_pool_new();
        sf_arena arena = {0};
        sf_graph *graph = sf_graph_new(pool);
        config c = draw_config(&random, true);
        const sf_attr *attrs[SLOTS] = {0};
        set_windows(SF_OP_REDUCE_WINDOW, pool, &c, attrs);
        const sf_type *type = sf_type_get(pool, SF_F32, c.rank, c.dims);
        const sf_type *scalar = sf_type_scalar(pool, SF_F32);
        const sf_type *types[] = {type, type, scalar, scalar}, *results[2];
        sf_block *body = new_body(graph, 2, ops, SF_F32, NULL);
        sf_op op = {.def = sf_opdef_get(SF_OP_REDUCE_WINDOW),
                    .noperands = 4,
                    .nresults = 2,
                    .nregions = 1,
                    .in = types,
                    .attrs = attrs,
                    .regions = &body,
                    .graph = graph,
                    .pool = pool};
        assert_int_equal(sf_infer(&op, results, NULL), SF_OK);
        op.out = results;
        sf_tensor in[4], out[2] = {0};
        for (int i = 0; i < 4; i++)
            in[i] = test_draw_tensor(&random, &arena, types[i], -9, 9);
        assert_int_equal(sf_eval_op(&op, in, out, NULL), SF_OK);
        assert_reduced(&c, SF_MONOID_ADD, &in[0], sf_get_f64(&in[2], 0), &out[0]);
        assert_reduced(&c, SF_MONOID_MAX, &in[1], sf_get_f64(&in[3], 0), &out[1]);
        test_split(&random, &op, in, out);
        sf_free(out[0].data);
        sf_free(out[1].data);
        sf_arena_free(&arena);
        sf_graph_free(graph);
        sf_pool_release(pool);
    }
}

static bool stays(const char *direction, double selected, double next)
{
    bool greater = direction[0] == 'G', equal = direction[1] == 'E';
    return greater ? selected > next || (equal && selected == next)
                   : selected < next || (equal && selected == next);
}

static void assert_scattered(sf_arena *arena, const config *c, const char *direction,
                             sf_monoid monoid, const sf_tensor *in, const sf_tensor *out)
{
    double *expected = SF_ARRAY(arena, out->type->count, double);
    int64_t at[SF_MAX_RANK] = {0};
    for (int64_t i = 0; i < out->type->count; i++)
        expected[i] = sf_get_f64(&in[2], 0);
    for (int64_t n = 0; n < in[1].type->count; n++) {
        int64_t w[SF_MAX_RANK] = {0}, chosen = -1;
        do {
            int64_t from = seen(c, at, w);
            if (from >= 0 && (chosen < 0 || !stays(direction, sf_get_f64(&in[0], chosen),
                                                   sf_get_f64(&in[0], from))))
                chosen = from;
        } while (sf_next_index(c->rank, c->sizes, w));
        if (chosen >= 0)
            expected[chosen] = fold(monoid, expected[chosen], sf_get_f64(&in[1], n));
        sf_next_index(c->rank, c->counts, at);
    }
    for (int64_t i = 0; i < out->type->count; i++)
        assert_true(sf_get_f64(out, i) == expected[i]);
}

static void test_select_and_scatter(void **state)
{
    (void)state;
    static const char *const directions[] = {"GE", "GT", "LE", "LT"};
    test_random random = {.key = 5};
    for (int round = 0; round < ROUNDS; round++) {
        sf_pool *pool = sf_pool_new();
        sf_arena arena = {0};
        sf_graph *graph = sf_graph_new(pool);
        sf_dtype dtype = round % 3 ? SF_F32 : SF_S16;
        config c = draw_config(&random, false);
        const char *direction = directions[test_draw(&random, 0, 3)];
        const sf_attr *compare[4] = {[0] = sf_attr_text(pool, sf_str_of(direction))};
        bool adds = test_draw(&random, 0, 1), is_known = round % 10 != 0;
        sf_monoid monoid = adds ? SF_MONOID_ADD : SF_MONOID_MAX;
        const sf_attr *attrs[SLOTS] = {0};
        set_windows(SF_OP_SELECT_AND_SCATTER, pool, &c, attrs);
        sf_block *bodies[2] = {
            new_body(graph, 1, (sf_opcode[]){SF_OP_COMPARE}, dtype, compare),
            new_body(graph, 1, (sf_opcode[]){adds ? SF_OP_ADD : SF_OP_MAXIMUM}, dtype, NULL)};
        if (is_known) {
            set(SF_OP_SELECT_AND_SCATTER, attrs, "select", compare[0]);
            set(SF_OP_SELECT_AND_SCATTER, attrs, "body", sf_attr_int(pool, monoid));
        }
        const sf_type *types[] = {sf_type_get(pool, dtype, c.rank, c.dims),
                                  sf_type_get(pool, dtype, c.rank, c.counts),
                                  sf_type_scalar(pool, dtype)};
        const sf_type *result = NULL;
        sf_op op = {.def = sf_opdef_get(SF_OP_SELECT_AND_SCATTER),
                    .noperands = 3,
                    .nresults = 1,
                    .nregions = is_known ? 0 : 2,
                    .in = types,
                    .attrs = attrs,
                    .regions = bodies,
                    .graph = graph,
                    .pool = pool};
        assert_int_equal(sf_infer(&op, &result, NULL), SF_OK);
        op.out = &result;
        sf_tensor in[3], out = {0};
        for (int i = 0; i < 3; i++)
            in[i] = test_draw_tensor(&random, &arena, types[i], i ? -9 : -2, i ? 9 : 2);
        assert_int_equal(sf_eval_op(&op, in, &out, NULL), SF_OK);
        assert_scattered(&arena, &c, direction, monoid, in, &out);
        test_split(&random, &op, in, &out);
        sf_free(out.data);
        sf_arena_free(&arena);
        sf_graph_free(graph);
        sf_pool_release(pool);
    }
}

static void test_refuses(void **state)
{
    (void)state;
    sf_pool *pool = sf_pool_new();
    const sf_type *types[] = {sf_type_get(pool, SF_F32, 1, (int64_t[]){8}),
                              sf_type_scalar(pool, SF_F32)};
    const struct {
        const char *name;
        const sf_attr *attr;
    } bad[] = {
        {"window_dimensions", NULL},
        {"window_dimensions", sf_attr_ints(pool, 1, (int64_t[]){0})},
        {"window_dimensions", sf_attr_ints(pool, 1, (int64_t[]){INT64_MAX})},
        {"window_dimensions", sf_attr_ints(pool, 2, (int64_t[]){1, 1})},
        {"window_strides", sf_attr_ints(pool, 1, (int64_t[]){0})},
        {"base_dilations", sf_attr_ints(pool, 1, (int64_t[]){0})},
        {"base_dilations", sf_attr_ints(pool, 1, (int64_t[]){INT64_MAX})},
        {"window_dilations", sf_attr_ints(pool, 1, (int64_t[]){INT64_MAX})},
        {"padding", sf_attr_ints(pool, 1, (int64_t[]){1})},
        {"padding", sf_attr_ints(pool, 2, (int64_t[]){INT64_MIN, 1})},
        {"padding", sf_attr_ints(pool, 2, (int64_t[]){INT64_MAX, INT64_MAX})},
        {"body", NULL},
        {"body", sf_attr_int(pool, SF_MONOID_AND)},
        {"body", sf_attr_int(pool, SF_MONOID_SECOND)},
        {"body", sf_attr_int(pool, 1000)},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const sf_attr *attrs[SLOTS] = {0};
        const sf_type *result = NULL;
        config c = {.rank = 1, .sizes = {3}, .strides = {1}, .base = {1}, .dilation = {1}};
        set_windows(SF_OP_REDUCE_WINDOW, pool, &c, attrs);
        set(SF_OP_REDUCE_WINDOW, attrs, "body", sf_attr_int(pool, SF_MONOID_ADD));
        sf_op op = {.def = sf_opdef_get(SF_OP_REDUCE_WINDOW),
                    .noperands = 2,
                    .nresults = 1,
                    .in = types,
                    .attrs = attrs,
                    .pool = pool};
        assert_int_equal(sf_infer(&op, &result, NULL), SF_OK);
        set(SF_OP_REDUCE_WINDOW, attrs, bad[i].name, bad[i].attr);
        assert_int_equal(sf_infer(&op, &result, NULL), SF_EINPUT);
    }
    sf_pool_release(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reduce_window),
        cmocka_unit_test(test_reduce_window_region),
        cmocka_unit_test(test_select_and_scatter),
        cmocka_unit_test(test_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
