/* The bits of floats: what only moves numbers leaves the bits of every NaN as they are, and the total order tells all
 * bits apart. On all engines, for all float types, over a table of special values.
 *
 * The judge of moves is the same text with integers of the same width in the place of the floats; the judge of orders
 * are integers whose order is that of the bits as sign and magnitude. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "op/op.h"
#include "sheaf/sheaf.h"
#include "support/run.h"

enum { ROWS = 3, MOST = 256, TEXT = 4000 };

typedef struct specials {
    sf_dtype dtype;
    int count;
    uint64_t bits[MOST];
} specials;

/* All bits of narrow types; of others, what stands at the edges, and NaNs with all kinds of payloads. */
static specials specials_of(sf_dtype dtype)
{
    const sf_dtype_info *info = sf_dtype_get(dtype);
    specials s = {.dtype = dtype};
    if (info->bits <= 8) {
        for (; s.count < 1 << info->bits; s.count++)
            s.bits[s.count] = (uint64_t)s.count;
        return s;
    }
    uint64_t ones = (UINT64_C(1) << info->mantissa) - 1, quiet = UINT64_C(1)
                                                                 << (info->mantissa - 1);
    uint64_t infinity = ((UINT64_C(1) << info->exponent) - 1) << info->mantissa;
    uint64_t middle = ((UINT64_C(1) << (info->exponent - 1)) - 1) << info->mantissa;
    const uint64_t some[] = {
        0,
        1,
        ones,
        ones + 1,
        middle,
        middle + 1,
        quiet,
        infinity,
        infinity - 1,
        infinity + 1,
        infinity + quiet,
        infinity + quiet + 1,
        infinity + ones,
        infinity + quiet - 1,
        infinity + 2,
        infinity + quiet / 2,
        infinity + quiet + quiet / 2,
    };
    for (size_t i = 0; i < 2 * sizeof some / sizeof *some; i++)
        s.bits[s.count++] = some[i / 2] | (uint64_t)(i % 2) << (info->bits - 1);
    return s;
}

/* Row r begins at value 7 r, so that rows differ. */
static uint64_t special_at(const specials *s, int64_t index)
{
    return s->bits[(index % s->count + 7 * (index / s->count)) % s->count];
}

/* $T is the element type, $N the number of values, $M one less, $I the initial value of a pad. */
static const struct {
    const char *name, *body, *result;
} moves[] = {
    {"identity", "%r = stablehlo.optimization_barrier %a : tensor<3x$Nx$T>", "tensor<3x$Nx$T>"},
    {"transpose",
     "%r = stablehlo.transpose %a, dims = [1, 0] : (tensor<3x$Nx$T>) -> tensor<$Nx3x$T>",
     "tensor<$Nx3x$T>"},
    {"slice", "%r = stablehlo.slice %a [0:3, 1:$N] : (tensor<3x$Nx$T>) -> tensor<3x$Mx$T>",
     "tensor<3x$Mx$T>"},
    {"strided slice",
     "%r = stablehlo.slice %a [0:3:2, 0:$N] : (tensor<3x$Nx$T>) -> tensor<2x$Nx$T>",
     "tensor<2x$Nx$T>"},
    {"reverse", "%r = stablehlo.reverse %a, dims = [0, 1] : tensor<3x$Nx$T>", "tensor<3x$Nx$T>"},
    {"reshape", "%r = stablehlo.reshape %a : (tensor<3x$Nx$T>) -> tensor<$Nx3x$T>",
     "tensor<$Nx3x$T>"},
    {"concatenate",
     "%b = stablehlo.reverse %a, dims = [1] : tensor<3x$Nx$T>\n"
     "%r = stablehlo.concatenate %a, %b, dim = 0 : (tensor<3x$Nx$T>, tensor<3x$Nx$T>) -> "
     "tensor<6x$Nx$T>",
     "tensor<6x$Nx$T>"},
    {"broadcast",
     "%r = stablehlo.broadcast_in_dim %a, dims = [0, 2] : (tensor<3x$Nx$T>) -> tensor<3x2x$Nx$T>",
     "tensor<3x2x$Nx$T>"},
    {"pad",
     "%s = stablehlo.slice %a [1:2, 1:2] : (tensor<3x$Nx$T>) -> tensor<1x1x$T>\n"
     "%z = stablehlo.reshape %s : (tensor<1x1x$T>) -> tensor<$T>\n"
     "%r = stablehlo.pad %a, %z, low = [1, 0], high = [1, 0], interior = [0, 0] : "
     "(tensor<3x$Nx$T>, "
     "tensor<$T>) -> tensor<5x$Nx$T>",
     "tensor<5x$Nx$T>"},
    {"select",
     "%b = stablehlo.reverse %a, dims = [1] : tensor<3x$Nx$T>\n"
     "%r = stablehlo.select %p, %a, %b : tensor<3x$Nxi1>, tensor<3x$Nx$T>",
     "tensor<3x$Nx$T>"},
    {"select of views",
     "%b = stablehlo.transpose %a, dims = [1, 0] : (tensor<3x$Nx$T>) -> tensor<$Nx3x$T>\n"
     "%c = stablehlo.reshape %b : (tensor<$Nx3x$T>) -> tensor<3x$Nx$T>\n"
     "%d = stablehlo.select %p, %c, %a : tensor<3x$Nxi1>, tensor<3x$Nx$T>\n"
     "%q = stablehlo.not %p : tensor<3x$Nxi1>\n"
     "%r = stablehlo.select %q, %c, %d : tensor<3x$Nxi1>, tensor<3x$Nx$T>",
     "tensor<3x$Nx$T>"},
    {"dynamic slice",
     "%i = stablehlo.constant dense<1> : tensor<i32>\n"
     "%j = stablehlo.add %i, %k : tensor<i32>\n"
     "%r = stablehlo.dynamic_slice %a, %j, %k, sizes = [2, $M] : (tensor<3x$Nx$T>, tensor<i32>, "
     "tensor<i32>) -> tensor<2x$Mx$T>",
     "tensor<2x$Mx$T>"},
    {"dynamic update",
     "%s = stablehlo.slice %a [0:2, 1:$N] : (tensor<3x$Nx$T>) -> tensor<2x$Mx$T>\n"
     "%r = stablehlo.dynamic_update_slice %a, %s, %k, %k : (tensor<3x$Nx$T>, tensor<2x$Mx$T>, "
     "tensor<i32>, tensor<i32>) -> tensor<3x$Nx$T>",
     "tensor<3x$Nx$T>"},
    {"gather",
     "%i = stablehlo.constant dense<[[2], [0], [1], [2]]> : tensor<4x1xi32>\n"
     "%r = \"stablehlo.gather\"(%a, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], "
     "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = "
     "array<i64: 1, $N>}> : (tensor<3x$Nx$T>, tensor<4x1xi32>) -> tensor<4x$Nx$T>",
     "tensor<4x$Nx$T>"},
    {"scatter",
     "%i = stablehlo.constant dense<[[2], [0]]> : tensor<2x1xi32>\n"
     "%s = stablehlo.slice %a [0:2, 0:$N] : (tensor<3x$Nx$T>) -> tensor<2x$Nx$T>\n"
     "%r = \"stablehlo.scatter\"(%a, %i, %s) <{scatter_dimension_numbers = "
     "#stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], "
     "scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({\n"
     "^bb0(%x: tensor<$T>, %y: tensor<$T>):\n  stablehlo.return %y : tensor<$T>\n})"
     " : (tensor<3x$Nx$T>, tensor<2x1xi32>, tensor<2x$Nx$T>) -> tensor<3x$Nx$T>",
     "tensor<3x$Nx$T>"},
    {"case",
     "%r = \"stablehlo.case\"(%k) ({\n  %b = stablehlo.reverse %a, dims = [1] : tensor<3x$Nx$T>\n"
     "  stablehlo.return %b : tensor<3x$Nx$T>\n}, {\n  stablehlo.return %a : tensor<3x$Nx$T>\n})"
     " : (tensor<i32>) -> tensor<3x$Nx$T>",
     "tensor<3x$Nx$T>"},
    {"sort by another",
     "%o = stablehlo.iota dim = 1 : tensor<3x$Nxi32>\n"
     "%r:2 = \"stablehlo.sort\"(%o, %a) <{dimension = 1 : i64, is_stable = true}> ({\n"
     "^bb0(%x: tensor<i32>, %y: tensor<i32>, %u: tensor<$T>, %v: tensor<$T>):\n"
     "  %c = stablehlo.compare GT, %x, %y, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
     "  stablehlo.return %c : tensor<i1>\n})"
     " : (tensor<3x$Nxi32>, tensor<3x$Nx$T>) -> (tensor<3x$Nxi32>, tensor<3x$Nx$T>)",
     "%r#1 tensor<3x$Nx$T>"},
};

enum { MOVES = sizeof moves / sizeof *moves };

static void put_template(sf_buf *out, const char *text, const char *type, int count)
{
    for (; *text; text++) {
        if (*text != '$') {
            sf_buf_putc(out, *text);
            continue;
        }
        text++;
        if (*text == 'T')
            sf_buf_puts(out, type);
        else
            sf_buf_printf(out, "%d", *text == 'N' ? count : count - 1);
    }
}

/* A function of %a, the predicate %p and the number %k, which is 0. */
static sf_graph *make_graph(const char *body, const char *result, const char *type, int count)
{
    sf_buf text = {0};
    bool is_named = *result == '%';
    const char *of = is_named ? strchr(result, ' ') + 1 : result;
    put_template(&text, "func.func public @main(%a: tensor<3x$Nx$T>, %p: tensor<3x$Nxi1>, ", type,
                 count);
    put_template(&text, "%k: tensor<i32>) -> ", type, count);
    put_template(&text, of, type, count);
    sf_buf_puts(&text, " {\n");
    put_template(&text, body, type, count);
    sf_buf_printf(&text, "\nreturn %.*s : ", is_named ? (int)(of - result - 1) : 2,
                  is_named ? result : "%r");
    put_template(&text, of, type, count);
    sf_buf_puts(&text, "\n}\n");
    sf_diag *diag = sf_diag_new();
    sf_graph *graph;
    if (sf_load_text(text.text, text.length, "t", NULL, diag, &graph) != SF_OK)
        fail_msg("%s\n%s", text.text, sf_diag_text(diag, 0));
    sf_diag_free(diag);
    sf_buf_free(&text);
    return graph;
}

/* Runs it on the values, stored as they are, and copies result 0. */
static int64_t run_graph(const sf_graph *graph, const char *engine, int threads,
                         const uint64_t *values, uint64_t *out)
{
    sf_runner runner = test_open_engine(graph, engine, threads, NULL);
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        sf_tensor to = test_argument(runner.engine, i);
        for (int64_t k = 0; k < to.type->count; k++)
            sf_store_bits(to.type->dtype, to.data, k, i == 0 ? values[k] : i == 1 ? k % 3 == 0 : 0);
    }
    assert_int_equal(sf_engine_step(runner.engine, NULL), SF_OK);
    sf_tensor from = test_result(runner.engine, 0);
    int64_t count = from.type->count;
    for (int64_t k = 0; k < count; k++)
        out[k] = sf_load_bits(from.type->dtype, from.data, k);
    sf_runner_close(&runner);
    return count;
}

static const char *const engines[] = {"oracle", "cpu", "cpu"};

static void check_same(const char *what, sf_dtype dtype, int engine, const uint64_t *found,
                       const uint64_t *expected, int64_t count)
{
    for (int64_t k = 0; k < count; k++)
        if (found[k] != expected[k])
            fail_msg("%s of %s on %s, %d threads: element %lld is %llx, not %llx", what,
                     sf_dtype_get(dtype)->name, engines[engine], engine, (long long)k,
                     (unsigned long long)found[k], (unsigned long long)expected[k]);
}

static uint64_t values[ROWS * MOST], found[MOST * MOST], expected[MOST * MOST];

static void test_moves_keep_bits(void **state)
{
    (void)state;
    for (int dtype = 0; dtype < SF_DTYPE_COUNT; dtype++) {
        const sf_dtype_info *info = sf_dtype_get((sf_dtype)dtype);
        if (info->class != SF_FLOAT || info->bits < 8)
            continue;
        specials s = specials_of((sf_dtype)dtype);
        char integer[8];
        snprintf(integer, sizeof integer, "ui%d", info->bits);
        for (int64_t i = 0; i < ROWS * s.count; i++)
            values[i] = special_at(&s, i);
        for (int m = 0; m < MOVES; m++) {
            sf_graph *judge = make_graph(moves[m].body, moves[m].result, integer, s.count);
            sf_graph *graph = make_graph(moves[m].body, moves[m].result, info->name, s.count);
            int64_t count = run_graph(judge, "oracle", 1, values, expected);
            for (int e = 0; e < 3; e++) {
                assert_int_equal(run_graph(graph, engines[e], e, values, found), count);
                check_same(moves[m].name, (sf_dtype)dtype, e, found, expected, count);
            }
            sf_graph_free(judge);
            sf_graph_free(graph);
        }
    }
}

/* The place in the total order: sign and magnitude. Types without a negative zero have their only NaN there, above all;
 * the type without a sign is as it stands. */
static int64_t place_of(sf_dtype dtype, uint64_t bits)
{
    const sf_dtype_info *info = sf_dtype_get(dtype);
    bool has_sign = info->bits == info->exponent + info->mantissa + 1;
    uint64_t sign = UINT64_C(1) << (info->bits - 1), magnitude = bits & (sign - 1);
    bool one_zero = strstr(info->name, "FNUZ") != NULL;
    if (!has_sign)
        return (int64_t)bits;
    if (one_zero && bits == sign)
        return INT64_MAX;
    return bits & sign ? -(int64_t)magnitude - 1 : (int64_t)magnitude;
}

static void test_compare(void **state)
{
    (void)state;
    static const char *const directions[] = {"EQ", "NE", "GE", "GT", "LE", "LT"};
    for (int dtype = 0; dtype < SF_DTYPE_COUNT; dtype++) {
        if (!sf_is_float((sf_dtype)dtype))
            continue;
        specials s = specials_of((sf_dtype)dtype);
        for (int64_t i = 0; i < ROWS * s.count; i++)
            values[i] = special_at(&s, i);
        for (int d = 0; d < 6; d++) {
            char body[TEXT];
            snprintf(
                body, sizeof body,
                "%%s = stablehlo.slice %%a [0:1, 0:$N] : (tensor<3x$Nx$T>) -> tensor<1x$Nx$T>\n"
                "%%v = stablehlo.reshape %%s : (tensor<1x$Nx$T>) -> tensor<$Nx$T>\n"
                "%%b = stablehlo.broadcast_in_dim %%v, dims = [0] : (tensor<$Nx$T>) -> "
                "tensor<$Nx$Nx$T>\n"
                "%%c = stablehlo.broadcast_in_dim %%v, dims = [1] : (tensor<$Nx$T>) -> "
                "tensor<$Nx$Nx$T>\n"
                "%%r = stablehlo.compare %s, %%b, %%c, TOTALORDER : (tensor<$Nx$Nx$T>, "
                "tensor<$Nx$Nx$T>) -> tensor<$Nx$Nxi1>",
                directions[d]);
            for (int64_t i = 0; i < s.count * s.count; i++) {
                int64_t x = place_of(s.dtype, values[i / s.count]);
                int64_t y = place_of(s.dtype, values[i % s.count]);
                bool answers[] = {x == y, x != y, x >= y, x > y, x <= y, x < y};
                expected[i] = answers[d];
            }
            sf_graph *graph =
                make_graph(body, "tensor<$Nx$Nxi1>", sf_dtype_get(s.dtype)->name, s.count);
            for (int e = 0; e < 3; e++) {
                assert_int_equal(run_graph(graph, engines[e], e, values, found), s.count * s.count);
                check_same(directions[d], s.dtype, e, found, expected, s.count * s.count);
            }
            sf_graph_free(graph);
        }
    }
}

/* Each row in order by insertion. */
static void sort_expected(const specials *s, bool descending)
{
    memcpy(expected, values, (size_t)(ROWS * s->count) * sizeof *values);
    for (int64_t i = 0; i < ROWS * s->count; i++) {
        int64_t at = i, first = i / s->count * s->count;
        uint64_t bits = expected[i];
        for (; at > first; at--) {
            int64_t x = place_of(s->dtype, bits), y = place_of(s->dtype, expected[at - 1]);
            if (descending ? x <= y : x >= y)
                break;
            expected[at] = expected[at - 1];
        }
        expected[at] = bits;
    }
}

static void test_sort(void **state)
{
    (void)state;
    static const struct {
        const char *name, *body, *result;
        bool descending;
    } sorts[] = {
        {"sort LT",
         "%r = \"stablehlo.sort\"(%a) <{dimension = 1 : i64, is_stable = true}> ({\n"
         "^bb0(%x: tensor<$T>, %y: tensor<$T>):\n"
         "  %c = stablehlo.compare LT, %x, %y, TOTALORDER : (tensor<$T>, tensor<$T>) -> "
         "tensor<i1>\n"
         "  stablehlo.return %c : tensor<i1>\n}) : (tensor<3x$Nx$T>) -> tensor<3x$Nx$T>",
         "tensor<3x$Nx$T>", false},
        {"sort GT",
         "%r = \"stablehlo.sort\"(%a) <{dimension = 1 : i64, is_stable = true}> ({\n"
         "^bb0(%x: tensor<$T>, %y: tensor<$T>):\n"
         "  %c = stablehlo.compare GT, %x, %y, TOTALORDER : (tensor<$T>, tensor<$T>) -> "
         "tensor<i1>\n"
         "  stablehlo.return %c : tensor<i1>\n}) : (tensor<3x$Nx$T>) -> tensor<3x$Nx$T>",
         "tensor<3x$Nx$T>", true},
        {"top_k",
         "%r:2 = chlo.top_k(%a, k = $N) : tensor<3x$Nx$T> -> (tensor<3x$Nx$T>, tensor<3x$Nxi32>)",
         "%r#0 tensor<3x$Nx$T>", true},
    };
    for (int dtype = 0; dtype < SF_DTYPE_COUNT; dtype++) {
        if (!sf_is_float((sf_dtype)dtype))
            continue;
        specials s = specials_of((sf_dtype)dtype);
        for (int64_t i = 0; i < ROWS * s.count; i++)
            values[i] = special_at(&s, i);
        for (size_t k = 0; k < sizeof sorts / sizeof *sorts; k++) {
            sf_graph *graph =
                make_graph(sorts[k].body, sorts[k].result, sf_dtype_get(s.dtype)->name, s.count);
            sort_expected(&s, sorts[k].descending);
            for (int e = 0; e < 3; e++) {
                assert_int_equal(run_graph(graph, engines[e], e, values, found), ROWS * s.count);
                check_same(sorts[k].name, s.dtype, e, found, expected, ROWS * s.count);
            }
            sf_graph_free(graph);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_moves_keep_bits),
        cmocka_unit_test(test_compare),
        cmocka_unit_test(test_sort),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
