/* The fast kernels against the oracle: random shapes and attributes, all types they take, one thread
 * and several, with the grain so small that several really work. */
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

enum { MAX_THREADS = 3, MAX_OPERANDS = 6, MAX_RESULTS = 16, ROUNDS = 600 };

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

static bool same(const sf_tensor *a, const sf_tensor *b, int64_t i)
{
    sf_dtype dtype = a->type->dtype;
    if (!sf_is_float(dtype))
        return sf_get_i64(a, i) == sf_get_i64(b, i);
    double x = sf_get_f64(a, i), y = sf_get_f64(b, i);
    if (isnan(x) || isnan(y) || isinf(x) || isinf(y))
        return x == y || (isnan(x) && isnan(y));
    double error = dtype == SF_F64 ? 1e-13 : sf_dtype_get(dtype)->bits == 32 ? 1e-5 : 1e-2;
    return fabs(x - y) <= error * (fabs(y) + 1);
}

static bool is_fast(const sf_op *op)
{
    int64_t variant;
    return sf_fast_find(op, &variant) != NULL;
}

/* Runs the op with the oracle and with every pool, and compares. */
static void check_run(const sf_op *op, const sf_tensor *in)
{
    sf_tensor want[MAX_RESULTS] = {{0}};
    int64_t variant;
    const sf_fast *kernel = sf_fast_find(op, &variant);
    assert_non_null(kernel);
    assert_int_equal(sf_eval_op(op, in, want, NULL), SF_OK);
    for (int p = 0; p < MAX_THREADS; p++) {
        void *scratch = sf_alloc((size_t)sf_fast_scratch(kernel, op, variant, p + 1));
        sf_tensor got[MAX_RESULTS];
        for (int r = 0; r < op->nresults; r++) {
            size_t bytes = (size_t)sf_type_bytes(op->out[r]);
            got[r] = (sf_tensor){.type = op->out[r], .data = sf_alloc(bytes)};
            if (bytes > 0)
                memset(got[r].data, 0x5a, bytes);
        }
        sf_fast_run(kernel, op, variant, in, got, scratch, pools[p]);
        for (int r = 0; r < op->nresults; r++) {
            for (int64_t i = 0; i < op->out[r]->count; i++)
                if (!same(&got[r], &want[r], i)) {
                    char text[SF_TYPE_TEXT];
                    print_error("%s %s with %d threads: result %d element %d is %g, expected %g\n",
                                op->def->name, sf_type_text(op->out[r], text), p + 1, r, (int)i,
                                sf_get_f64(&got[r], i), sf_get_f64(&want[r], i));
                    fail();
                }
            sf_free(got[r].data);
        }
        sf_free(scratch);
    }
    for (int r = 0; r < op->nresults; r++)
        sf_free(want[r].data);
}

/* One op being put together. */
typedef struct sample {
    sf_pool *pool;
    sf_arena arena;
    sf_op op;
    const sf_type *types[MAX_OPERANDS], *results[2];
    const sf_attr *attrs[16];
    sf_tensor in[MAX_OPERANDS];
} sample;

static void begin(sample *s, sf_opcode code)
{
    *s = (sample){.pool = sf_pool_new()};
    s->op = (sf_op){.def = sf_opdef_get(code), .nresults = 1, .pool = s->pool};
    s->op.in = s->types;
    s->op.attrs = s->attrs;
}

static void end(sample *s)
{
    sf_arena_free(&s->arena);
    sf_pool_release(s->pool);
}

static void set(sample *s, const char *name, const sf_attr *attr)
{
    int slot = sf_attr_slot(s->op.def, sf_str_of(name));
    assert_true(slot >= 0);
    s->attrs[slot] = attr;
}

static sf_tensor *operand(sample *s, test_random *random, const sf_type *type, int64_t low,
                          int64_t high)
{
    int at = s->op.noperands++;
    s->types[at] = type;
    s->in[at] = test_draw_tensor(random, &s->arena, type, low, high);
    return &s->in[at];
}

/* False when inference refuses. */
static bool infer(sample *s)
{
    const sf_type *declared[2] = {s->results[0], s->results[1]};
    s->op.out = declared[0] ? declared : NULL;
    sf_status status = sf_infer(&s->op, s->results, NULL);
    s->op.out = s->results;
    return status == SF_OK;
}

static const sf_type *draw_type(test_random *random, sf_pool *pool, sf_dtype dtype, int rank,
                                int64_t low, int64_t high)
{
    int64_t dims[SF_MAX_RANK];
    for (int d = 0; d < rank; d++)
        dims[d] = test_draw(random, low, high);
    return sf_type_get(pool, dtype, rank, dims);
}

static const sf_attr *draw_ints(test_random *random, sf_pool *pool, int count, int64_t low,
                                int64_t high)
{
    int64_t values[2 * SF_MAX_RANK];
    for (int i = 0; i < count; i++)
        values[i] = test_draw(random, low, high);
    return sf_attr_ints(pool, count, values);
}

static const sf_dtype dtypes[] = {SF_F32, SF_BF16, SF_F16, SF_F64, SF_S32, SF_U32,
                                  SF_S64, SF_U64,  SF_S8,  SF_U8,  SF_PRED};
enum { NDTYPES = sizeof dtypes / sizeof *dtypes };

static sf_dtype draw_dtype(test_random *random)
{
    return dtypes[test_draw(random, 0, NDTYPES - 1)];
}

/* A monoid that the type has; products stay small. */
static sf_monoid draw_monoid(test_random *random, sf_dtype dtype)
{
    static const sf_monoid all[] = {SF_MONOID_ADD, SF_MONOID_MAX, SF_MONOID_MIN, SF_MONOID_MUL,
                                    SF_MONOID_AND, SF_MONOID_OR,  SF_MONOID_XOR};
    return all[test_draw(random, 0, sf_is_float(dtype) ? 3 : 6)];
}

/* Now and then a NaN, an infinity and a negative zero. */
static void spice(test_random *random, sf_tensor *tensor)
{
    static const double odd[] = {(double)NAN, (double)INFINITY, -(double)INFINITY, -0.0};
    if (!sf_is_float(tensor->type->dtype) || tensor->type->count == 0 || test_draw(random, 0, 3))
        return;
    for (int i = 0; i < 2; i++)
        sf_store_f64(tensor->type->dtype, tensor->data,
                     test_draw(random, 0, tensor->type->count - 1), odd[test_draw(random, 0, 3)]);
}

static void test_gather(void **state)
{
    (void)state;
    test_random random = {.key = 1};
    for (int round = 0; round < ROUNDS; round++) {
        sample s;
        begin(&s, SF_OP_GATHER);
        test_numbers n = test_draw_numbers(&random, s.pool, draw_dtype(&random));
        test_number_attrs(&n, s.pool, s.attrs);
        set(&s, "slice_sizes", sf_attr_ints(s.pool, n.operand->rank, n.sizes));
        operand(&s, &random, n.operand, -9, 9);
        operand(&s, &random, n.indices, -2, 7);
        assert_true(infer(&s));
        if (is_fast(&s.op))
            check_run(&s.op, s.in);
        end(&s);
    }
}

static void test_scatter(void **state)
{
    (void)state;
    test_random random = {.key = 2};
    for (int round = 0; round < 2 * ROUNDS; round++) {
        sample s;
        begin(&s, SF_OP_SCATTER);
        sf_dtype dtype = draw_dtype(&random);
        test_numbers n = test_draw_numbers(&random, s.pool, dtype);
        test_number_attrs(&n, s.pool, s.attrs);
        sf_monoid monoid = round % 3 ? draw_monoid(&random, dtype) : SF_MONOID_SECOND;
        set(&s, "body", sf_attr_int(s.pool, monoid));
        operand(&s, &random, n.operand, -2, 2);
        operand(&s, &random, n.indices, -1, 6);
        spice(&random, operand(&s, &random, n.windowed, -2, 2));
        assert_true(infer(&s));
        check_run(&s.op, s.in);
        end(&s);
    }
}

/* Rows long enough for registers, as in the gradient of an embedding. */
static void test_scatter_rows(void **state)
{
    (void)state;
    test_random random = {.key = 3};
    for (int round = 0; round < 60; round++) {
        sample s;
        begin(&s, SF_OP_SCATTER);
        sf_dtype dtype = draw_dtype(&random);
        int64_t rows = test_draw(&random, 1, 9), size = test_draw(&random, 1, 1500);
        int64_t points = test_draw(&random, 0, 20);
        set(&s, "update_window_dims", sf_attr_ints(s.pool, 1, (int64_t[]){1}));
        set(&s, "inserted_window_dims", sf_attr_ints(s.pool, 1, (int64_t[]){0}));
        set(&s, "scatter_dims_to_operand_dims", sf_attr_ints(s.pool, 1, (int64_t[]){0}));
        set(&s, "index_vector_dim", sf_attr_int(s.pool, 1));
        set(&s, "body", sf_attr_int(s.pool, draw_monoid(&random, dtype)));
        operand(&s, &random, sf_type_get(s.pool, dtype, 2, (int64_t[]){rows, size}), -2, 2);
        operand(&s, &random, sf_type_get(s.pool, SF_S32, 2, (int64_t[]){points, 1}), -1, rows);
        operand(&s, &random, sf_type_get(s.pool, dtype, 2, (int64_t[]){points, size}), -1, 1);
        assert_true(infer(&s));
        check_run(&s.op, s.in);
        end(&s);
    }
}

static const char *const value_types[] = {"f32", "f16", "i32"};

/* What the format says of each of `count` values: # is its number, $ its type. */
static void list(sf_buf *text, int count, const char *format)
{
    for (int i = 0; i < count; i++) {
        sf_buf_puts(text, i ? ", " : "");
        for (const char *at = format; *at; at++)
            if (*at == '#')
                sf_buf_printf(text, "%d", i);
            else if (*at == '$')
                sf_buf_puts(text, value_types[i % 3]);
            else
                sf_buf_putc(text, *at);
    }
}

/* A scatter of `count` operands, each combined in its own way. */
static void write_scatter(sf_buf *text, int count)
{
    static const char *const ways[] = {"add", "maximum", "minimum"};
    sf_buf_puts(text, "func.func @main(");
    list(text, count, "%x#: tensor<5x4x$>");
    sf_buf_puts(text, ", %i: tensor<7x1xi32>, ");
    list(text, count, "%u#: tensor<7x4x$>");
    sf_buf_puts(text, ") -> (");
    list(text, count, "tensor<5x4x$>");
    sf_buf_printf(text, ") {\n%%r:%d = \"stablehlo.scatter\"(", count);
    list(text, count, "%x#");
    sf_buf_puts(text, ", %i, ");
    list(text, count, "%u#");
    sf_buf_puts(text,
                ") <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], "
                "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], "
                "index_vector_dim = 1>}> ({\n^bb0(");
    list(text, count, "%p#: tensor<$>");
    sf_buf_puts(text, ", ");
    list(text, count, "%q#: tensor<$>");
    sf_buf_puts(text, "):\n");
    for (int i = 0; i < count; i++)
        sf_buf_printf(text, "%%s%d = stablehlo.%s %%p%d, %%q%d : tensor<%s>\n", i, ways[i % 4 % 3],
                      i, i, value_types[i % 3]);
    sf_buf_puts(text, "stablehlo.return ");
    for (int i = 0; i < count; i++) /* the fourth of four overwrites */
        sf_buf_printf(text, "%s%%%c%d", i ? ", " : "", i % 4 == 3 ? 'q' : 's', i);
    sf_buf_puts(text, " : ");
    list(text, count, "tensor<$>");
    sf_buf_puts(text, "\n}) : (");
    list(text, count, "tensor<5x4x$>");
    sf_buf_puts(text, ", tensor<7x1xi32>, ");
    list(text, count, "tensor<7x4x$>");
    sf_buf_puts(text, ") -> (");
    list(text, count, "tensor<5x4x$>");
    sf_buf_puts(text, ")\nreturn ");
    for (int i = 0; i < count; i++)
        sf_buf_printf(text, "%s%%r#%d", i ? ", " : "", i);
    sf_buf_puts(text, " : ");
    list(text, count, "tensor<5x4x$>");
    sf_buf_puts(text, "\n}\n");
}

/* Several operands, up to more than a variant has room for. */
static void test_scatter_several(void **state)
{
    (void)state;
    test_random random = {.key = 13};
    for (int count = 1; count <= MAX_RESULTS; count++) {
        sf_buf text = {0};
        write_scatter(&text, count);
        sf_diag *diag = sf_diag_new();
        sf_graph *graph = NULL;
        if (sf_load_text(text.text, strlen(text.text), "scatter", NULL, diag, &graph) != SF_OK) {
            print_error("%s\n%s\n", sf_diag_text(diag, 0), text.text);
            fail();
        }
        const sf_type *types[3 * MAX_RESULTS + 1];
        const sf_node *node = NULL;
        for (uint32_t i = 0; i < graph->top->nnodes; i++)
            if (sf_is(graph->nodes[graph->top->nodes[i]], SF_OP_SCATTER))
                node = graph->nodes[graph->top->nodes[i]];
        sf_op op = sf_op_of(graph, node, types);
        sf_arena arena = {0};
        sf_tensor in[2 * MAX_RESULTS + 1];
        for (int i = 0; i < op.noperands; i++)
            in[i] = test_draw_tensor(&random, &arena, op.in[i], -2, 5);
        if (count < MAX_RESULTS)
            check_run(&op, in);
        else
            assert_false(is_fast(&op));
        sf_arena_free(&arena);
        sf_graph_free(graph);
        sf_diag_free(diag);
        sf_buf_free(&text);
    }
}

static void test_sliding(void **state)
{
    (void)state;
    test_random random = {.key = 4};
    int done = 0;
    for (int round = 0; round < 4 * ROUNDS; round++) {
        sample s;
        begin(&s, SF_OP_REDUCE_WINDOW);
        sf_dtype dtype = draw_dtype(&random);
        int rank = (int)test_draw(&random, 0, 4);
        const sf_type *type =
            draw_type(&random, s.pool, dtype, rank, 1, round % 9 || rank > 2 ? 5 : 40);
        sf_monoid monoid = draw_monoid(&random, dtype);
        set(&s, "window_dimensions", draw_ints(&random, s.pool, rank, 1, round % 2 ? 3 : 1));
        set(&s, "window_strides", draw_ints(&random, s.pool, rank, 1, 2));
        set(&s, "base_dilations", draw_ints(&random, s.pool, rank, 1, round % 3 ? 1 : 2));
        set(&s, "window_dilations", draw_ints(&random, s.pool, rank, 1, round % 5 ? 1 : 2));
        set(&s, "padding", draw_ints(&random, s.pool, 2 * rank, -1, 2));
        set(&s, "body", sf_attr_int(s.pool, monoid));
        spice(&random, operand(&s, &random, type, -2, 2));
        operand(&s, &random, sf_type_scalar(s.pool, dtype),
                round % 4 ? monoid == SF_MONOID_MUL : -1, round % 4 ? monoid == SF_MONOID_MUL : 2);
        if (infer(&s) && is_fast(&s.op)) {
            check_run(&s.op, s.in);
            done++;
        }
        end(&s);
    }
    assert_true(done > ROUNDS);
}

static void test_cumulative(void **state)
{
    (void)state;
    test_random random = {.key = 5};
    for (int round = 0; round < 200; round++) {
        sample s;
        begin(&s, SF_OP_REDUCE_WINDOW);
        sf_dtype dtype = draw_dtype(&random);
        sf_monoid monoid = draw_monoid(&random, dtype);
        int dim = (int)test_draw(&random, 0, 2);
        int64_t dims[3], size[3] = {1, 1, 1}, padding[6] = {0};
        for (int d = 0; d < 3; d++)
            dims[d] = test_draw(&random, 1, round % 4 ? 9 : 30);
        if (round % 10 == 0) {
            dims[dim] = 2100;
            dims[(dim + 1) % 3] = dims[(dim + 2) % 3] = 2;
        }
        if (round % 10 == 1)
            dims[2] = 150;
        size[dim] = dims[dim];
        padding[2 * dim + round % 2] = dims[dim] - 1;
        set(&s, "window_dimensions", sf_attr_ints(s.pool, 3, size));
        set(&s, "padding", sf_attr_ints(s.pool, 6, padding));
        set(&s, "body", sf_attr_int(s.pool, monoid));
        operand(&s, &random, sf_type_get(s.pool, dtype, 3, dims), -1, 1);
        operand(&s, &random, sf_type_scalar(s.pool, dtype), monoid == SF_MONOID_MUL,
                monoid == SF_MONOID_MUL);
        assert_true(infer(&s));
        check_run(&s.op, s.in);
        end(&s);
    }
}

static void test_select_and_scatter(void **state)
{
    (void)state;
    static const char *const orders[] = {"GE", "GT", "LE", "LT"};
    test_random random = {.key = 6};
    int done = 0;
    for (int round = 0; round < 3 * ROUNDS; round++) {
        sample s;
        begin(&s, SF_OP_SELECT_AND_SCATTER);
        sf_dtype dtype = draw_dtype(&random);
        int rank = (int)test_draw(&random, 1, 4);
        int64_t dims[4], sizes[4], strides[4], padding[8], counts[4];
        bool any = true;
        for (int d = 0; d < rank; d++) {
            bool trivial = test_draw(&random, 0, 1);
            dims[d] = test_draw(&random, 1, d == rank - 1 && round % 7 == 0 ? 300 : 6);
            sizes[d] = trivial ? 1 : test_draw(&random, 1, 3);
            strides[d] = trivial ? 1 : test_draw(&random, 1, 3);
            padding[2 * d] = trivial ? 0 : test_draw(&random, -1, 2);
            padding[2 * d + 1] = trivial ? 0 : test_draw(&random, -1, 2);
            int64_t padded = dims[d] + padding[2 * d] + padding[2 * d + 1];
            counts[d] = padded < sizes[d] ? 0 : (padded - sizes[d]) / strides[d] + 1;
            any = any && padded > 0;
        }
        set(&s, "window_dimensions", sf_attr_ints(s.pool, rank, sizes));
        set(&s, "window_strides", sf_attr_ints(s.pool, rank, strides));
        set(&s, "padding", sf_attr_ints(s.pool, 2 * rank, padding));
        set(&s, "select", sf_attr_text(s.pool, sf_str_of(orders[round % 4])));
        set(&s, "body", sf_attr_int(s.pool, SF_MONOID_ADD));
        spice(&random, operand(&s, &random, sf_type_get(s.pool, dtype, rank, dims), -3, 3));
        operand(&s, &random, sf_type_get(s.pool, dtype, rank, counts), -2, 2);
        operand(&s, &random, sf_type_scalar(s.pool, dtype), 0, 1);
        if (any && infer(&s) && is_fast(&s.op)) {
            check_run(&s.op, s.in);
            done++;
        }
        end(&s);
    }
    assert_true(done > ROUNDS);
}

static void test_reduce(void **state)
{
    (void)state;
    test_random random = {.key = 7};
    for (int round = 0; round < 2 * ROUNDS; round++) {
        sample s;
        begin(&s, SF_OP_REDUCE);
        sf_dtype dtype = draw_dtype(&random);
        int rank = (int)test_draw(&random, 0, 4), count = 0;
        const sf_type *type =
            draw_type(&random, s.pool, dtype, rank, 1, rank < 3 && round % 8 == 0 ? 60 : 4);
        int64_t gone[4];
        for (int d = 0; d < rank; d++)
            if (test_draw(&random, 0, 1))
                gone[count++] = d;
        set(&s, "dimensions", sf_attr_ints(s.pool, count, gone));
        set(&s, "body", sf_attr_int(s.pool, draw_monoid(&random, dtype)));
        spice(&random, operand(&s, &random, type, -1, 1));
        operand(&s, &random, sf_type_scalar(s.pool, dtype), -1, 2);
        assert_true(infer(&s));
        check_run(&s.op, s.in);
        end(&s);
    }
}

/* Loads a step with one variadic reduce and runs that. */
static bool run_pairs(test_random *random, const char *body, const char *value, const char *index,
                      const char *dims, const char *results, bool must)
{
    char text[4096];
    snprintf(text, sizeof text,
             "func.func @main(%%a: tensor<3x5x4x%s>, %%b: tensor<3x5x4x%s>, %%c: tensor<%s>, "
             "%%d: tensor<%s>) -> (tensor<%s%s>, tensor<%s%s>) {\n"
             "%%r:2 = stablehlo.reduce(%%a init: %%c), (%%b init: %%d) across dimensions = [%s] : "
             "(tensor<3x5x4x%s>, tensor<3x5x4x%s>, tensor<%s>, tensor<%s>) -> (tensor<%s%s>, "
             "tensor<%s%s>)\n reducer(%%x: tensor<%s>, %%y: tensor<%s>) (%%i: tensor<%s>, %%j: "
             "tensor<%s>) {\n%s}\nreturn %%r#0, %%r#1 : tensor<%s%s>, tensor<%s%s>\n}\n",
             value, index, value, index, results, value, results, index, dims, value, index, value,
             index, results, value, results, index, value, value, index, index, body, results,
             value, results, index);
    char *at;
    while ((at = strstr(text, "VAL")))
        memcpy(at, value, 3);
    while ((at = strstr(text, "IDX")))
        memcpy(at, index, 3);
    sf_diag *diag = sf_diag_new();
    sf_graph *graph = NULL;
    if (sf_load_text(text, strlen(text), "pairs", NULL, diag, &graph) != SF_OK) {
        print_error("%s\n%s\n", sf_diag_text(diag, 0), text);
        fail();
    }
    const sf_type *types[6];
    sf_node *node = NULL;
    for (uint32_t i = 0; i < graph->top->nnodes; i++)
        if (sf_is(graph->nodes[graph->top->nodes[i]], SF_OP_REDUCE))
            node = graph->nodes[graph->top->nodes[i]];
    sf_op op = sf_op_of(graph, node, types);
    bool can = is_fast(&op);
    if (must)
        assert_true(can);
    sf_arena arena = {0};
    sf_tensor in[4];
    for (int i = 0; i < 4; i++) {
        in[i] = test_draw_tensor(random, &arena, op.in[i], -2, 2);
        if (i == 0)
            spice(random, &in[0]);
    }
    if (can)
        check_run(&op, in);
    sf_arena_free(&arena);
    sf_graph_free(graph);
    sf_diag_free(diag);
    return can;
}

static void test_pairs(void **state)
{
    (void)state;
    static const char *const values[] = {"f32", "f64", "f16", "i32", "i64"};
    static const char *const floats =
        "%0 = stablehlo.compare WAY, %x, %y : (tensor<VAL>, tensor<VAL>) -> tensor<i1>\n"
        "%1 = stablehlo.compare NE, %x, %x : (tensor<VAL>, tensor<VAL>) -> tensor<i1>\n"
        "%2 = stablehlo.or %0, %1 : tensor<i1>\n"
        "%3 = stablehlo.compare EQ, %x, %y : (tensor<VAL>, tensor<VAL>) -> tensor<i1>\n"
        "%4 = stablehlo.compare LT, %i, %j : (tensor<IDX>, tensor<IDX>) -> tensor<i1>\n"
        "%5 = stablehlo.and %3, %4 : tensor<i1>\n"
        "%6 = stablehlo.or %2, %5 : tensor<i1>\n"
        "%7 = stablehlo.select %2, %x, %y : tensor<i1>, tensor<VAL>\n"
        "%8 = stablehlo.select %6, %i, %j : tensor<i1>, tensor<IDX>\n"
        "stablehlo.return %7, %8 : tensor<VAL>, tensor<IDX>\n";
    static const char *const ways[] = {"GT ", "LT ", "GE ", "LE "};
    static const char *const dims[][2] = {
        {"0", "5x4x"}, {"2", "3x5x"}, {"0, 2", "5x"}, {"1, 2", "3x"}, {"0, 1, 2", ""}};
    test_random random = {.key = 8};
    for (int round = 0; round < 300; round++) {
        char body[2048];
        snprintf(body, sizeof body, "%s", floats);
        memcpy(strstr(body, "WAY"), ways[round % 4], 3);
        run_pairs(&random, body, values[round % 5], round % 3 ? "i32" : "i64", dims[round % 5][0],
                  dims[round % 5][1], true);
    }
}

/* Bodies that do more than pick, or that the table cannot know. */
static void test_pairs_refused(void **state)
{
    (void)state;
    static const char *const bodies[] = {
        "%0 = stablehlo.add %x, %y : tensor<VAL>\n%1 = stablehlo.add %i, %j : tensor<IDX>\n"
        "stablehlo.return %0, %1 : tensor<VAL>, tensor<IDX>\n",
        "%0 = stablehlo.compare GT, %x, %y, TOTALORDER : (tensor<VAL>, tensor<VAL>) -> tensor<i1>\n"
        "%1 = stablehlo.select %0, %x, %y : tensor<i1>, tensor<VAL>\n"
        "%2 = stablehlo.select %0, %i, %j : tensor<i1>, tensor<IDX>\n"
        "stablehlo.return %1, %2 : tensor<VAL>, tensor<IDX>\n",
        "%k = stablehlo.constant dense<1.0> : tensor<VAL>\n"
        "%0 = stablehlo.compare GT, %x, %k : (tensor<VAL>, tensor<VAL>) -> tensor<i1>\n"
        "%1 = stablehlo.select %0, %x, %y : tensor<i1>, tensor<VAL>\n"
        "%2 = stablehlo.select %0, %i, %j : tensor<i1>, tensor<IDX>\n"
        "stablehlo.return %1, %2 : tensor<VAL>, tensor<IDX>\n",
    };
    test_random random = {.key = 9};
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
        assert_false(run_pairs(&random, bodies[i], "f32", "i32", "2", "3x5x", false));
}

static void test_boxes(void **state)
{
    (void)state;
    test_random random = {.key = 10};
    for (int round = 0; round < 4 * ROUNDS; round++) {
        static const sf_opcode codes[] = {
            SF_OP_PAD,     SF_OP_CONCATENATE, SF_OP_DYNAMIC_SLICE, SF_OP_DYNAMIC_UPDATE_SLICE,
            SF_OP_REVERSE, SF_OP_SLICE,       SF_OP_TRANSPOSE,     SF_OP_BROADCAST_IN_DIM,
            SF_OP_IOTA,    SF_OP_RESHAPE};
        sf_opcode code = codes[round % 10];
        sample s;
        begin(&s, code);
        sf_dtype dtype = draw_dtype(&random);
        int rank = (int)test_draw(&random, 1, 4);
        const sf_type *type = draw_type(&random, s.pool, dtype, rank, round % 7 ? 1 : 0, 6);
        int64_t dims[SF_MAX_RANK], starts[SF_MAX_RANK], at = test_draw(&random, 0, rank - 1);
        memcpy(dims, type->dims, (size_t)rank * sizeof *dims);
        if (code != SF_OP_IOTA)
            operand(&s, &random, type, -5, 5);
        switch ((int)code) {
        case SF_OP_PAD:
            operand(&s, &random, sf_type_scalar(s.pool, dtype), -3, 3);
            set(&s, "edge_padding_low", draw_ints(&random, s.pool, rank, -2, 2));
            set(&s, "edge_padding_high", draw_ints(&random, s.pool, rank, -2, 2));
            set(&s, "interior_padding", draw_ints(&random, s.pool, rank, 0, 2));
            break;
        case SF_OP_CONCATENATE:
            for (int i = 0; i < 2; i++) {
                dims[at] = test_draw(&random, 0, 4);
                operand(&s, &random, sf_type_get(s.pool, dtype, rank, dims), -5, 5);
            }
            set(&s, "dimension", sf_attr_int(s.pool, at));
            break;
        case SF_OP_DYNAMIC_SLICE:
        case SF_OP_DYNAMIC_UPDATE_SLICE:
            for (int d = 0; d < rank; d++)
                dims[d] = test_draw(&random, 0, type->dims[d]);
            if (code == SF_OP_DYNAMIC_SLICE)
                set(&s, "slice_sizes", sf_attr_ints(s.pool, rank, dims));
            else
                operand(&s, &random, sf_type_get(s.pool, dtype, rank, dims), -5, 5);
            for (int d = 0; d < rank; d++)
                operand(&s, &random, sf_type_scalar(s.pool, SF_S32), -2, 7);
            break;
        case SF_OP_REVERSE:
            set(&s, "dimensions", sf_attr_ints(s.pool, rank > 1 ? 2 : 1, (int64_t[]){0, 1}));
            break;
        case SF_OP_SLICE:
            for (int d = 0; d < rank; d++) {
                starts[d] = test_draw(&random, 0, dims[d]);
                dims[d] = test_draw(&random, starts[d], dims[d]);
            }
            set(&s, "start_indices", sf_attr_ints(s.pool, rank, starts));
            set(&s, "limit_indices", sf_attr_ints(s.pool, rank, dims));
            set(&s, "strides", draw_ints(&random, s.pool, rank, 1, 3));
            break;
        case SF_OP_TRANSPOSE:
            for (int d = 0; d < rank; d++)
                starts[d] = (d + at) % rank;
            set(&s, "permutation", sf_attr_ints(s.pool, rank, starts));
            break;
        case SF_OP_BROADCAST_IN_DIM:
            for (int d = 0; d < rank; d++) {
                starts[d] = (d + 1) % rank + (at & 1);
                dims[starts[d]] = type->dims[d] == 1 ? test_draw(&random, 1, 3) : type->dims[d];
            }
            if (at & 1)
                dims[0] = 3;
            set(&s, "broadcast_dimensions", sf_attr_ints(s.pool, rank, starts));
            s.results[0] = sf_type_get(s.pool, dtype, rank + (at & 1), dims);
            break;
        case SF_OP_IOTA:
            set(&s, "iota_dimension", sf_attr_int(s.pool, at));
            s.results[0] = type;
            break;
        case SF_OP_RESHAPE:
            s.results[0] = sf_type_get(s.pool, dtype, 1, &type->count);
            break;
        }
        if (infer(&s))
            check_run(&s.op, s.in);
        else
            assert_true(code == SF_OP_PAD || code == SF_OP_IOTA);
        end(&s);
    }
}

static void test_random_bits(void **state)
{
    (void)state;
    test_random random = {.key = 11};
    static const sf_dtype kinds[] = {SF_U32, SF_U64, SF_U8, SF_S32};
    for (int round = 0; round < 100; round++) {
        sample s;
        begin(&s, SF_OP_RNG_BIT_GENERATOR);
        s.op.nresults = 2;
        bool threefry = round % 2;
        set(&s, "rng_algorithm",
            sf_attr_text(s.pool, sf_str_of(threefry ? "THREE_FRY" : "PHILOX")));
        operand(&s, &random, sf_type_get(s.pool, SF_U64, 1, (int64_t[]){threefry ? 2 : 3}), 0, 99);
        s.results[0] = s.types[0];
        s.results[1] =
            draw_type(&random, s.pool, kinds[test_draw(&random, 0, 3)], round % 4, 0, 12);
        assert_true(infer(&s));
        check_run(&s.op, s.in);
        end(&s);
    }
}

static void test_bits(void **state)
{
    (void)state;
    test_random random = {.key = 12};
    static const sf_dtype pairs[][2] = {
        {SF_F32, SF_U32}, {SF_S32, SF_F32}, {SF_BF16, SF_U16}, {SF_F64, SF_S64}, {SF_S8, SF_U8}};
    for (int i = 0; i < 5; i++) {
        sample s;
        begin(&s, SF_OP_BITCAST_CONVERT);
        const sf_type *type = draw_type(&random, s.pool, pairs[i][0], 2, 1, 9);
        operand(&s, &random, type, -5, 5);
        s.results[0] = sf_type_with(s.pool, type, pairs[i][1]);
        assert_true(infer(&s));
        check_run(&s.op, s.in);
        end(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gather),
        cmocka_unit_test(test_scatter),
        cmocka_unit_test(test_scatter_rows),
        cmocka_unit_test(test_scatter_several),
        cmocka_unit_test(test_sliding),
        cmocka_unit_test(test_cumulative),
        cmocka_unit_test(test_select_and_scatter),
        cmocka_unit_test(test_reduce),
        cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_pairs_refused),
        cmocka_unit_test(test_boxes),
        cmocka_unit_test(test_random_bits),
        cmocka_unit_test(test_bits),
    };
    return cmocka_run_group_tests(tests, open_pools, close_pools);
}
