/* sort and top_k against the oracle, to the bit: every way of writing an order, with ties, zeros of both
 * signs and NaNs of both signs, along any dimension, in one thread and several. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "run/fast/fast.h"
#include "run/fast/fast_kernels.h"
#include "sheaf/sheaf.h"
#include "support/indexing.h"
#include "support/sanitized.h"

enum { MAX_THREADS = 3, MAX_OPERANDS = 3 };

static sf_threads *pools[MAX_THREADS];

static int open_pools(void **state)
{
    (void)state;
    for (int i = 0; i < MAX_THREADS; i++) {
        pools[i] = sf_threads_new(i + 1);
        sf_threads_set_grain(pools[i], 1);
    }
    return 0;
}

static int close_pools(void **state)
{
    (void)state;
    for (int i = 0; i < MAX_THREADS; i++)
        sf_threads_free(pools[i]);
    return 0;
}

static void check_run(const sf_op *op, const sf_tensor *in)
{
    sf_tensor want[MAX_OPERANDS] = {{0}}, got[MAX_OPERANDS];
    int64_t variant;
    const sf_fast *kernel = sf_fast_find(op, &variant);
    assert_non_null(kernel);
    assert_int_equal(sf_eval_op(op, in, want, NULL), SF_OK);
    for (int p = 0; p < MAX_THREADS; p++) {
        size_t room = (size_t)sf_fast_scratch(kernel, op, variant, p + 1);
        char *scratch = sf_alloc(room + 64);
        memset(scratch, 0x5a, room + 64);
        for (int r = 0; r < op->nresults; r++)
            got[r] = (sf_tensor){.type = op->out[r],
                                 .data = sf_alloc((size_t)sf_type_bytes(op->out[r]))};
        sf_fast_run(kernel, op, variant, in, got, scratch, pools[p]);
        for (int r = 0; r < op->nresults; r++) {
            if (op->out[r]->count > 0)
                assert_memory_equal(got[r].data, want[r].data, (size_t)sf_type_bytes(op->out[r]));
            sf_free(got[r].data);
        }
        for (int i = 0; i < 64; i++)
            assert_int_equal(scratch[room + (size_t)i], 0x5a);
        sf_free(scratch);
    }
    for (int r = 0; r < op->nresults; r++)
        sf_free(want[r].data);
}

/* Few different values, so that many are equal; of floats also the odd ones. */
static void fill(test_random *random, sf_tensor *tensor, bool odd)
{
    static const double special[] = {0, -0.0, (double)INFINITY, -(double)INFINITY, (double)NAN};
    sf_dtype dtype = tensor->type->dtype;
    int64_t range = test_draw(random, 0, 1) ? 3 : 100000;
    for (int64_t i = 0; i < tensor->type->count; i++) {
        int64_t value = test_draw(random, -range, range);
        if (!sf_is_float(dtype)) {
            sf_store_i64(dtype, tensor->data, i, value);
            continue;
        }
        bool is_special = odd && test_draw(random, 0, 3) == 0;
        double x = is_special ? special[test_draw(random, 0, 4)] : (double)value / 4;
        sf_store_f64(dtype, tensor->data, i, x);
        if (isnan(x) && test_draw(random, 0, 1)) /* a negative NaN with bits of its own */
            sf_store_bits(dtype, tensor->data, i,
                          sf_load_bits(dtype, tensor->data, i) |
                              UINT64_C(1) << (sf_dtype_get(dtype)->bits - 1) | 1);
    }
}

/* Replaces "$A" by the type of the first operand, "$B" by that of the second. */
static void expand(const char *body, const char *a, const char *b, sf_buf *out)
{
    for (const char *at = body; *at; at++)
        if (*at == '$')
            sf_buf_puts(out, *++at == 'A' ? a : b);
        else
            sf_buf_putc(out, *at);
}

/* Sorts operands of the types a, b, a by a comparator of %l0, %r0, %l1, %r1, ... */
static void run_sort(test_random *random, const char *body, const char *a, const char *b,
                     const int64_t *dims, int dim, bool known)
{
    sf_buf text = {0};
    char shape[64], comparator[8192];
    snprintf(shape, sizeof shape, "%dx%dx%dx", (int)dims[0], (int)dims[1], (int)dims[2]);
    snprintf(comparator, sizeof comparator,
             "func.func @main(%%a: tensor<%s$A>, %%b: tensor<%s$B>, %%c: tensor<%s$A>, %%k: "
             "tensor<$A>) -> (tensor<%s$A>, tensor<%s$B>, tensor<%s$A>) {\n"
             "%%r:3 = \"stablehlo.sort\"(%%a, %%b, %%c) <{dimension = %d : i64, is_stable = true}> "
             "({\n^bb0(%%l0: tensor<$A>, %%r0: tensor<$A>, %%l1: tensor<$B>, %%r1: tensor<$B>, "
             "%%l2: tensor<$A>, %%r2: tensor<$A>):\n%s\nstablehlo.return %%z : tensor<i1>\n"
             "}) : (tensor<%s$A>, tensor<%s$B>, tensor<%s$A>) -> (tensor<%s$A>, tensor<%s$B>, "
             "tensor<%s$A>)\nreturn %%r#0, %%r#1, %%r#2 : tensor<%s$A>, tensor<%s$B>, "
             "tensor<%s$A>\n}\n",
             shape, shape, shape, shape, shape, shape, dim, body, shape, shape, shape, shape, shape,
             shape, shape, shape, shape);
    expand(comparator, a, b, &text);
    sf_diag *diag = sf_diag_new();
    sf_graph *graph = NULL;
    if (sf_load_text(text.text, strlen(text.text), "sort", NULL, diag, &graph) != SF_OK) {
        print_error("%s\n%s\n", sf_diag_text(diag, 0), text.text);
        fail();
    }
    const sf_node *node = NULL;
    for (uint32_t i = 0; i < graph->top->nnodes; i++)
        if (sf_is(graph->nodes[graph->top->nodes[i]], SF_OP_SORT))
            node = graph->nodes[graph->top->nodes[i]];
    const sf_type *types[2 * MAX_OPERANDS];
    sf_op op = sf_op_of(graph, node, types);
    int64_t variant;
    if ((sf_fast_find(&op, &variant) != NULL) != known) {
        print_error("%s\n%s known\n", text.text, known ? "must be" : "must not be");
        fail();
    }
    sf_arena arena = {0};
    sf_tensor in[MAX_OPERANDS];
    for (int i = 0; i < MAX_OPERANDS; i++) {
        in[i] = test_draw_tensor(random, &arena, op.in[i], 0, 1);
        fill(random, &in[i], test_draw(random, 0, 2) > 0);
    }
    if (known)
        check_run(&op, in);
    sf_arena_free(&arena);
    sf_graph_free(graph);
    sf_diag_free(diag);
    sf_buf_free(&text);
}

/* clang-format off */
#define COMPARE(out, direction, a, b, type, kind)                                                  \
    "%" out " = stablehlo.compare " direction ", %" a ", %" b ", " kind                            \
    " : (tensor<" type ">, tensor<" type ">) -> tensor<i1>\n"

/* As JAX writes it: %cX is %X with one zero and one NaN. */
#define CANONICAL(x, type)                                                                         \
    "%z" x " = stablehlo.constant dense<0.0> : tensor<" type ">\n"                                 \
    "%n" x " = stablehlo.constant dense<NAN> : tensor<" type ">\n"                                 \
    COMPARE("e" x, "EQ", x, "z" x, type, "FLOAT")                                                  \
    "%s" x " = stablehlo.select %e" x ", %z" x ", %" x " : tensor<i1>, tensor<" type ">\n"         \
    COMPARE("u" x, "NE", x, x, type, "FLOAT")                                                      \
    "%c" x " = stablehlo.select %u" x ", %n" x ", %s" x " : tensor<i1>, tensor<" type ">\n"
#define CANONICALS CANONICAL("l0", "$A") CANONICAL("r0", "$A")
#define LED_BY                                                                                     \
    "%both = stablehlo.and %eq, %rest : tensor<i1>\n%z = stablehlo.or %lt, %both : tensor<i1>"
/* clang-format on */

typedef struct comparator {
    bool of_floats, known;
    const char *body;
} comparator;

/* clang-format off */
static const comparator comparators[] = {
    {true, true, CANONICALS COMPARE("z", "LT", "cl0", "cr0", "$A", "TOTALORDER")},
    {true, true, CANONICALS COMPARE("z", "GT", "cl0", "cr0", "$A", "TOTALORDER")},
    {true, true, COMPARE("z", "LT", "l0", "r0", "$A", "TOTALORDER")},
    {true, true, COMPARE("z", "LT", "r2", "l2", "$A", "TOTALORDER")},
    {true, true, COMPARE("z", "LT", "l0", "r0", "$A", "FLOAT")},
    {true, true, COMPARE("z", "GT", "l2", "r2", "$A", "FLOAT")},
    {true, true, CANONICALS COMPARE("lt", "LT", "cl0", "cr0", "$A", "TOTALORDER")
                 COMPARE("eq", "EQ", "cl0", "cr0", "$A", "FLOAT")
                 COMPARE("rest", "GT", "l1", "r1", "$B", "SIGNED") LED_BY},
    {true, true, COMPARE("lt", "GT", "l0", "r0", "$A", "TOTALORDER")
                 COMPARE("eq", "EQ", "r0", "l0", "$A", "TOTALORDER")
                 COMPARE("rest", "LT", "l2", "r2", "$A", "FLOAT")
                 "%z = stablehlo.select %eq, %rest, %lt : tensor<i1>, tensor<i1>"},
    {true, true, COMPARE("lt", "LT", "l0", "r0", "$A", "FLOAT")
                 COMPARE("eq", "EQ", "l0", "r0", "$A", "FLOAT")
                 COMPARE("rest", "LT", "l1", "r1", "$B", "SIGNED") LED_BY},
    {false, true, COMPARE("z", "LT", "l1", "r1", "$B", "SIGNED")},
    {false, true, COMPARE("z", "GT", "l0", "r0", "$A", "SIGNED")},
    {false, true, COMPARE("lt", "LT", "l1", "r1", "$B", "SIGNED")
                  COMPARE("eq", "EQ", "l1", "r1", "$B", "SIGNED")
                  COMPARE("rest", "GT", "l0", "r0", "$A", "SIGNED") LED_BY},
    /* no order of keys, or none that is known */
    {true, false, COMPARE("z", "LE", "l0", "r0", "$A", "FLOAT")},
    {true, false, COMPARE("z", "LT", "l0", "r2", "$A", "FLOAT")},
    {true, false, COMPARE("z", "LT", "l0", "k", "$A", "FLOAT")},
    {true, false, CANONICAL("l0", "$A") COMPARE("z", "LT", "cl0", "r0", "$A", "TOTALORDER")},
    {true, false, "%p = stablehlo.multiply %l0, %k : tensor<$A>\n"
                  COMPARE("z", "LT", "p", "r0", "$A", "FLOAT")},
    {true, false, COMPARE("lt", "LT", "l0", "r0", "$A", "TOTALORDER")
                  COMPARE("eq", "EQ", "l0", "r0", "$A", "FLOAT")
                  COMPARE("rest", "LT", "l1", "r1", "$B", "SIGNED") LED_BY},
    {true, false, COMPARE("lt", "LT", "l0", "r0", "$A", "FLOAT")
                  COMPARE("eq", "EQ", "l2", "r2", "$A", "FLOAT")
                  COMPARE("rest", "LT", "l1", "r1", "$B", "SIGNED") LED_BY},
};
/* clang-format on */

/* The NaN of the type, in the comparator's text. */
static void name_nan(const char *type, const char *body, char *out, size_t room)
{
    const char *nan = strcmp(type, "f64") == 0   ? "0x7FF8000000000000"
                      : strcmp(type, "f32") == 0 ? "0x7FC00000"
                      : strcmp(type, "f16") == 0 ? "0x7E00"
                                                 : "0x7FC0";
    out[0] = 0;
    for (const char *at; (at = strstr(body, "NAN")); body = at + 3)
        snprintf(out + strlen(out), room - strlen(out), "%.*s%s", (int)(at - body), body, nan);
    snprintf(out + strlen(out), room - strlen(out), "%s", body);
}

static void test_sort(void **state)
{
    (void)state;
    static const char *const floats[] = {"f32", "bf16", "f16", "f64"};
    static const char *const integers[] = {"i32", "i8", "i64", "i16"};
    test_random random = {.key = 31};
    for (size_t i = 0; i < sizeof comparators / sizeof *comparators; i++)
        for (int round = 0; round < test_rounds(24); round++) {
            const comparator *c = &comparators[i];
            const char *a = c->of_floats ? floats[round % 4] : integers[round % 4];
            int dim = (int)test_draw(&random, 0, 2);
            int64_t dims[3];
            char body[4096];
            for (int d = 0; d < 3; d++)
                dims[d] = test_draw(&random, 1, 4);
            dims[dim] = test_draw(&random, 0, round % 3 ? 40 : 300);
            name_nan(a, c->body, body, sizeof body);
            run_sort(&random, body, a, integers[round % 3], dims, dim, c->known);
        }
}

static void test_top_k(void **state)
{
    (void)state;
    static const sf_dtype dtypes[] = {SF_F32, SF_BF16, SF_F64, SF_F16, SF_S32,
                                      SF_U8,  SF_U64,  SF_S64, SF_PRED};
    test_random random = {.key = 32};
    for (int round = 0; round < test_rounds(300); round++) {
        sf_pool *pool = sf_pool_new();
        sf_arena arena = {0};
        int64_t size = test_draw(&random, 1, round % 4 ? 60 : 700);
        int64_t k = test_draw(&random, 0, size < 6 || round % 2 ? size : 6);
        const sf_type *type =
            sf_type_get(pool, dtypes[round % 9], 2, (int64_t[]){test_draw(&random, 0, 6), size});
        const sf_attr *attrs[] = {sf_attr_int(pool, k)};
        const sf_type *results[2];
        sf_op op = {.def = sf_opdef_get(SF_OP_TOP_K),
                    .noperands = 1,
                    .nresults = 2,
                    .in = &type,
                    .attrs = attrs,
                    .pool = pool};
        assert_int_equal(sf_infer(&op, results, NULL), SF_OK);
        op.out = results;
        sf_tensor in = test_draw_tensor(&random, &arena, type, 0, 1);
        fill(&random, &in, round % 3 > 0);
        check_run(&op, &in);
        sf_arena_free(&arena);
        sf_pool_release(pool);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sort),
        cmocka_unit_test(test_top_k),
    };
    return cmocka_run_group_tests(tests, open_pools, close_pools);
}
