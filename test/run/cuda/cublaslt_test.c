/* How products are handed to cuBLASLt: a library that does as that one is documented to, on the host, is given them, and sums in double are
 * the judge. It refuses what the real one refuses: fp8 that is not turned or whose sizes are no multiples of 16. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "run/cuda/cublaslt.h"
#include "run/cuda/cublaslt_epilogue.h"
#include "run/cuda/cuda_target.h"
#include "run/runner.h"
#include "sheaf/sheaf.h"

/* The library: matrices are column by column */

typedef struct fake_layout {
    sf_dtype dtype;
    int64_t rows, columns, leading, batches, stride;
} fake_layout;

typedef struct fake_product {
    int32_t transposed[2], epilogue;
    const char *bias;
} fake_product;

static bool has_epilogues = true;

static sf_dtype fake_type(int number)
{
    switch (number) {
    case 0:
        return SF_F32;
    case 2:
        return SF_F16;
    case 14:
        return SF_BF16;
    case 28:
        return SF_F8E4M3FN;
    case 29:
        return SF_F8E5M2;
    default:
        fail_msg("type %d", number);
        return SF_F32;
    }
}

static int product_create(void **out, int compute, int scale)
{
    assert_int_equal(compute, 68);
    assert_int_equal(scale, 0);
    *out = sf_alloc(sizeof(fake_product));
    return 0;
}

static int product_set(void *product, int what, const void *value, size_t size)
{
    fake_product *p = product;
    if (what == 3 || what == 4)
        memcpy(&p->transposed[what - 3], value, size);
    else if (what == 7)
        memcpy(&p->epilogue, value, size);
    else if (what == 8)
        memcpy((void *)&p->bias, value, size);
    else
        return 1;
    return 0;
}

static int layout_create(void **out, int type, uint64_t rows, uint64_t columns, int64_t leading)
{
    fake_layout *l = *out = sf_alloc(sizeof *l);
    *l = (fake_layout){fake_type(type), (int64_t)rows, (int64_t)columns, leading, 1, 0};
    assert_true(leading >= l->rows);
    return 0;
}

static int layout_set(void *layout, int what, const void *value, size_t size)
{
    fake_layout *l = layout;
    int32_t count;
    if (what == 5) {
        memcpy(&count, value, size);
        l->batches = count;
    } else if (what == 6)
        memcpy(&l->stride, value, size);
    else
        return 1;
    return 0;
}

static int destroy(void *what)
{
    sf_free(what);
    return 0;
}

static int preference_create(void **out)
{
    *out = sf_alloc(1);
    return 0;
}

static int preference_set(void *preference, int what, const void *value, size_t size)
{
    (void)preference, (void)what, (void)value, (void)size;
    return 0;
}

static int choose(void *handle, void *product, void *a, void *b, void *c, void *d, void *preference,
                  int most, lt_heuristic *out, int *count)
{
    const fake_product *p = product;
    const fake_layout *x = a, *y = b, *z = d;
    (void)handle, (void)c, (void)preference, (void)most, (void)out;
    bool is_narrow = sf_dtype_get(x->dtype)->bits == 8;
    bool is_transposed = p->transposed[0] && !p->transposed[1];
    bool is_even = x->rows % 16 == 0 && z->rows % 16 == 0 && z->columns % 16 == 0;
    bool are_both = x->dtype == SF_F8E5M2 && y->dtype == SF_F8E5M2;
    bool is_refused = (is_narrow && (!is_transposed || !is_even || are_both)) ||
                      (p->epilogue && (!has_epilogues || (uintptr_t)p->bias % 16 != 0));
    *count = is_refused ? 0 : 1;
    return is_refused ? 15 : 0;
}

static double fake_at(const fake_layout *l, const void *data, int64_t batch, int64_t i, int64_t j)
{
    return sf_load_f64(l->dtype, data, batch * l->stride + j * l->leading + i);
}

/* One number for each row of the first factor, or each column of the second, with the type of the product. */
static void sum_factor(const fake_product *p, const fake_layout *l, const void *data,
                       sf_dtype dtype)
{
    bool is_first = p->epilogue == 256;
    if (!is_first && p->epilogue != 512)
        return;
    bool by_row = is_first != (p->transposed[!is_first] != 0);
    for (int64_t i = 0; i < (by_row ? l->rows : l->columns); i++) {
        double sum = 0;
        for (int64_t k = 0; k < (by_row ? l->columns : l->rows); k++)
            sum += by_row ? fake_at(l, data, 0, i, k) : fake_at(l, data, 0, k, i);
        sf_store_f64(dtype, (char *)p->bias, i, sum);
    }
}

static int multiply(void *handle, void *product, const void *alpha, const void *a, void *la,
                    const void *b, void *lb, const void *beta, const void *c, void *lc, void *d,
                    void *ld, const lt_algorithm *algorithm, void *workspace, size_t bytes,
                    cu_stream stream)
{
    const fake_product *p = product;
    const fake_layout *x = la, *y = lb, *z = ld;
    (void)handle, (void)alpha, (void)beta, (void)c, (void)lc, (void)algorithm, (void)workspace;
    (void)bytes, (void)stream;
    int64_t depth = p->transposed[0] ? x->rows : x->columns;
    assert_int_equal(depth, p->transposed[1] ? y->columns : y->rows);
    for (int64_t n = 0; n < z->batches; n++)
        for (int64_t i = 0; i < z->rows; i++)
            for (int64_t j = 0; j < z->columns; j++) {
                double sum = p->epilogue == 4 ? sf_load_f64(z->dtype, p->bias, i) : 0;
                for (int64_t k = 0; k < depth; k++)
                    sum += (p->transposed[0] ? fake_at(x, a, n, k, i) : fake_at(x, a, n, i, k)) *
                           (p->transposed[1] ? fake_at(y, b, n, j, k) : fake_at(y, b, n, k, j));
                sf_store_f64(z->dtype, d, n * z->stride + j * z->leading + i, sum);
            }
    sum_factor(p, p->epilogue == 256 ? x : y, p->epilogue == 256 ? a : b, z->dtype);
    return 0;
}

static const sf_cuda_products library = {
    .product_create = product_create,
    .product_set = product_set,
    .product_destroy = destroy,
    .layout_create = layout_create,
    .layout_set = layout_set,
    .layout_destroy = destroy,
    .preference_create = preference_create,
    .preference_set = preference_set,
    .preference_destroy = destroy,
    .choose = choose,
    .multiply = multiply,
};

/* Texts */

typedef struct trial {
    const char *text;
    int whole, alone; /* products with and without a row that is added */
} trial;

#define STEP(arguments, results, body)                                                             \
    "func.func @main(" arguments ") -> " results " {\n" body "}\n"
#define DOT(name, a, b, sums, types)                                                               \
    name " = stablehlo.dot_general " a ", " b ", contracting_dims = " sums " : " types "\n"
#define SPREAD(name, from, types)                                                                  \
    name " = stablehlo.broadcast_in_dim " from ", dims = [1] : " types "\n"

static const trial trials[] = {
    {STEP(
         "%a: tensor<6x5xf32>, %b: tensor<5x8xf32>, %c: tensor<8xf32>", "tensor<6x8xf32>",
         DOT("%0", "%a", "%b", "[1] x [0]", "(tensor<6x5xf32>, tensor<5x8xf32>) -> tensor<6x8xf32>")
             SPREAD("%1", "%c", "(tensor<8xf32>) -> tensor<6x8xf32>") "%2 = stablehlo.add %1, %0 : "
                                                                      "tensor<6x8xf32>\nreturn %2 "
                                                                      ": tensor<6x8xf32>\n"),
     1, 0},
    /* what is rounded between product and sum may be left out */
    {STEP("%a: tensor<5x16xbf16>, %b: tensor<8x5xbf16>, %c: tensor<8xbf16>", "tensor<16x8xbf16>",
          DOT("%0", "%a", "%b", "[0] x [1]",
              "(tensor<5x16xbf16>, tensor<8x5xbf16>) -> tensor<16x8xbf16>")
              SPREAD("%1", "%c",
                     "(tensor<8xbf16>) -> tensor<16x8xbf16>") "%2 = stablehlo.add %0, %1 : "
                                                              "tensor<16x8xbf16>\nreturn %2 : "
                                                              "tensor<16x8xbf16>\n"),
     1, 0},
    /* a number for each row is none for each column; others read the product; something else is done to it; a full matrix */
    {STEP("%a: tensor<8x5xf32>, %b: tensor<5x8xf32>, %c: tensor<8xf32>", "tensor<8x8xf32>",
          DOT("%0", "%a", "%b", "[1] x [0]",
              "(tensor<8x5xf32>, tensor<5x8xf32>) -> tensor<8x8xf32>") "%1 = "
                                                                       "stablehlo.broadcast_in_dim "
                                                                       "%c, dims = [0] : "
                                                                       "(tensor<8xf32>) -> "
                                                                       "tensor<8x8xf32>\n"
                                                                       "%2 = stablehlo.add %0, %1 "
                                                                       ": tensor<8x8xf32>\nreturn "
                                                                       "%2 : tensor<8x8xf32>\n"),
     0, 1},
    {STEP(
         "%a: tensor<6x5xf32>, %b: tensor<5x8xf32>, %c: tensor<8xf32>",
         "(tensor<6x8xf32>, tensor<6x8xf32>)",
         DOT("%0", "%a", "%b", "[1] x [0]", "(tensor<6x5xf32>, tensor<5x8xf32>) -> tensor<6x8xf32>")
             SPREAD("%1", "%c",
                    "(tensor<8xf32>) -> tensor<6x8xf32>") "%2 = stablehlo.add %0, %1 : "
                                                          "tensor<6x8xf32>\n"
                                                          "return %2, %0 : tensor<6x8xf32>, "
                                                          "tensor<6x8xf32>\n"),
     0, 1},
    {STEP(
         "%a: tensor<6x5xf32>, %b: tensor<5x8xf32>, %c: tensor<8xf32>", "tensor<6x8xf32>",
         DOT("%0", "%a", "%b", "[1] x [0]", "(tensor<6x5xf32>, tensor<5x8xf32>) -> tensor<6x8xf32>")
             SPREAD("%1", "%c",
                    "(tensor<8xf32>) -> tensor<6x8xf32>") "%2 = stablehlo.subtract %0, %1 : "
                                                          "tensor<6x8xf32>\nreturn %2 : "
                                                          "tensor<6x8xf32>\n"),
     0, 1},
    {STEP("%a: tensor<6x5xf32>, %b: tensor<5x8xf32>, %c: tensor<6x8xf32>", "tensor<6x8xf32>",
          DOT("%0", "%a", "%b", "[1] x [0]",
              "(tensor<6x5xf32>, tensor<5x8xf32>) -> tensor<6x8xf32>") "%2 = stablehlo.add %0, %c "
                                                                       ": tensor<6x8xf32>\nreturn "
                                                                       "%2 : tensor<6x8xf32>\n"),
     0, 1},
    /* batches; fp8 in all orders, of which those that the library has none of are turned */
    {STEP("%a: tensor<3x6x5xf16>, %b: tensor<3x5x8xf16>", "tensor<3x6x8xf32>",
          "%0 = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x "
          "[1] : (tensor<3x6x5xf16>, tensor<3x5x8xf16>) -> tensor<3x6x8xf32>\n"
          "return %0 : tensor<3x6x8xf32>\n"),
     0, 1},
    {STEP(
         "%a: tensor<32x16xf8E4M3FN>, %b: tensor<16x48xf8E4M3FN>", "tensor<32x48xf32>",
         DOT("%0", "%a", "%b", "[1] x [0]",
             "(tensor<32x16xf8E4M3FN>, tensor<16x48xf8E4M3FN>) -> tensor<32x48xf32>") "return %0 : "
                                                                                      "tensor<"
                                                                                      "32x48xf32>"
                                                                                      "\n"),
     0, 1},
    {STEP("%a: tensor<16x32xf8E5M2>, %b: tensor<16x48xf8E4M3FN>", "tensor<32x48xbf16>",
          DOT("%0", "%a", "%b", "[0] x [0]",
              "(tensor<16x32xf8E5M2>, tensor<16x48xf8E4M3FN>) -> tensor<32x48xbf16>") "return %0 : "
                                                                                      "tensor<"
                                                                                      "32x48xbf16>"
                                                                                      "\n"),
     0, 1},
};

static void fill(sf_dtype dtype, char *data, int64_t count, uint32_t seed)
{
    for (int64_t i = 0; i < count; i++) {
        seed = seed * 1664525 + 1013904223;
        sf_store_f64(dtype, data, i, (double)(seed >> 24) / 64 - 2);
    }
}

static double view_at(const sf_view *view, const char *data, int64_t at)
{
    return sf_load_f64(view->dtype, data, at);
}

/* Memory of its own for each view of the product, as far as its strides reach. */
static void check_product(const sf_lt *lt, const sf_inst *inst, bool whole)
{
    enum { ROOM = 1 << 14 };
    const sf_dot *dot = inst->dot;
    _Alignas(16) static char memory[4][ROOM];
    int bias = sf_cuda_bias(inst);
    for (int i = 0; i < 2; i++)
        fill(inst->in[i].dtype, memory[i], ROOM / 8, (uint32_t)i + 3);
    fill(inst->out[0].dtype, memory[3], ROOM / 8, 11);
    char *const parts[] = {memory[0], memory[1], memory[2], memory[3]};
    sf_lt_plan *plan = sf_lt_plan_new(lt, inst, whole ? SF_LT_BIAS : SF_LT_ALONE);
    assert_non_null(plan);
    assert_int_equal(whole, bias >= 0);
    assert_int_equal(sf_lt_run(plan, parts, NULL, NULL), SF_OK);
    int64_t batches = dot->nbatch ? dot->batch[0] : 1;
    for (int64_t n = 0; n < batches; n++)
        for (int64_t i = 0; i < dot->m; i++)
            for (int64_t j = 0; j < dot->n; j++) {
                double sum = whole ? view_at(&inst->out[0], memory[3], j) : 0, most = 1;
                for (int64_t k = 0; k < dot->k; k++) {
                    double x = view_at(&inst->in[0], memory[0],
                                       n * dot->a_batch[0] + i * dot->a_row + k * dot->a_column);
                    double y = view_at(&inst->in[1], memory[1],
                                       n * dot->b_batch[0] + k * dot->b_row + j * dot->b_column);
                    sum += x * y;
                    most += fabs(x * y);
                }
                double got = view_at(&inst->out[0], memory[2],
                                     n * dot->c_batch[0] + i * dot->c_row + j * dot->c_column);
                assert_true(fabs(got - sum) <= most * 0x1p-8);
            }
    sf_lt_plan_free(plan);
}

static sf_program *lower(const char *text)
{
    sf_diag *diag = sf_diag_new();
    sf_graph *graph = NULL;
    sf_lower_options options = {.target = &sf_target_cuda};
    if (sf_load_text(text, strlen(text), "step", NULL, diag, &graph) != SF_OK)
        fail_msg("%s", sf_diag_text(diag, 0));
    sf_program *program = sf_lower_as_text(graph, &options);
    sf_graph_free(graph);
    sf_diag_free(diag);
    return program;
}

static void test_products(void **state)
{
    (void)state;
    sf_lt lt = {.library = &library};
    for (size_t t = 0; t < sizeof trials / sizeof *trials; t++) {
        sf_program *program = lower(trials[t].text);
        int whole = 0, alone = 0;
        for (size_t i = 0; i < program->ninsts; i++) {
            const sf_inst *inst = &program->insts[i];
            if (inst->kind != SF_INST_DOT)
                continue;
            check_product(&lt, inst, inst->loop != NULL);
            *(inst->loop ? &whole : &alone) += 1;
        }
        assert_int_equal(whole, trials[t].whole);
        assert_int_equal(alone, trials[t].alone);
        sf_program_free(program);
    }
}

/* Where there is no way with a row that is added, there is one without, and the loop follows. */
static void test_refused(void **state)
{
    (void)state;
    sf_lt lt = {.library = &library};
    sf_program *program = lower(trials[0].text);
    const sf_inst *inst = &program->insts[0];
    assert_true(sf_cuda_bias(inst) >= 0);
    has_epilogues = false;
    assert_null(sf_lt_plan_new(&lt, inst, SF_LT_BIAS));
    sf_lt_plan *plan = sf_lt_plan_new(&lt, inst, SF_LT_ALONE);
    assert_non_null(plan);
    sf_lt_plan_free(plan);
    has_epilogues = true;
    sf_program_free(program);
}

/* By the kernels that follow where there is no library, as the oracle does. */
static void test_loops(void **state)
{
    (void)state;
    setenv("SHEAF_CUDA", "host", 0);
    static const char *const engines[] = {"oracle", "cuda"};
    for (size_t t = 0; t < 2; t++) {
        double results[2][128];
        sf_diag *diag = sf_diag_new();
        sf_graph *graph = NULL;
        assert_int_equal(
            sf_load_text(trials[t].text, strlen(trials[t].text), "step", NULL, diag, &graph),
            SF_OK);
        for (int e = 0; e < 2; e++) {
            sf_runner_options options = {
                .engine = engines[e], .check = true, .with = {.threads = 1}};
            sf_runner runner;
            if (sf_runner_open(graph, &options, diag, &runner) != SF_OK)
                fail_msg("%s", sf_diag_text(diag, 0));
            char data[1024];
            for (uint32_t i = 0; i < 3; i++) {
                const sf_type *type = sf_type_of(graph, graph->top->arguments[i]);
                fill(type->dtype, data, type->count, i + 5);
                assert_int_equal(sf_engine_write(runner.engine, i, data, diag), SF_OK);
            }
            assert_int_equal(sf_engine_step(runner.engine, diag), SF_OK);
            sf_tensor result;
            assert_int_equal(sf_engine_see(runner.engine, 0, diag, &result), SF_OK);
            for (int64_t i = 0; i < result.type->count; i++)
                results[e][i] = sf_get_f64(&result, i);
            for (int64_t i = 0; e == 1 && i < result.type->count; i++)
                assert_true(fabs(results[1][i] - results[0][i]) <= 0x1p-18 * 64);
            sf_runner_close(&runner);
        }
        sf_graph_free(graph);
        sf_diag_free(diag);
    }
}

/* Of either factor, summed over what the product sums over, in all orders of all three matrices. */
static void test_sums(void **state)
{
    (void)state;
    enum { M = 6, N = 8, K = 5, ROOM = 256 };
    _Alignas(16) static char memory[4][ROOM];
    sf_lt lt = {.library = &library};
    for (int t = 0; t < 16; t++) {
        bool a = t & 1, b = t & 2, c = t & 4;
        int factor = t >> 3;
        sf_dot dot = {.m = M,
                      .n = N,
                      .k = K,
                      .a_row = a ? 1 : K,
                      .a_column = a ? M : 1,
                      .b_row = b ? 1 : N,
                      .b_column = b ? K : 1,
                      .c_row = c ? 1 : N,
                      .c_column = c ? M : 1};
        sf_view views[3];
        for (int i = 0; i < 3; i++) {
            int64_t count = i == 0 ? M * K : i == 1 ? K * N : M * N;
            views[i] = (sf_view){.dtype = SF_F32, .rank = 1, .dims = {count}, .strides = {1}};
            fill(SF_F32, memory[i], count, (uint32_t)i + 7);
        }
        sf_inst inst = {
            .kind = SF_INST_DOT, .dot = &dot, .nin = 2, .nout = 1, .in = views, .out = &views[2]};
        char *const parts[] = {memory[0], memory[1], memory[2], memory[3]};
        sf_lt_plan *plan = sf_lt_plan_new(&lt, &inst, factor == 0 ? SF_LT_SUM_A : SF_LT_SUM_B);
        assert_non_null(plan);
        assert_int_equal(sf_lt_run(plan, parts, NULL, NULL), SF_OK);
        for (int64_t i = 0; i < (factor == 0 ? M : N); i++) {
            double sum = 0;
            for (int64_t k = 0; k < K; k++)
                sum += factor == 0
                           ? view_at(&views[0], memory[0], i * dot.a_row + k * dot.a_column)
                           : view_at(&views[1], memory[1], k * dot.b_row + i * dot.b_column);
            assert_true(fabs(sf_load_f64(SF_F32, memory[3], i) - sum) <= 1e-5);
        }
        sf_lt_plan_free(plan);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_loops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
