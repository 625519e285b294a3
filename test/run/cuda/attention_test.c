/* The kernels of attention, run by the host, or by what SHEAF_CUDA says, at sizes that are and are not multiples of their tiles:
 * forward and backward against sums in double. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "op/attention.h"
#include "prog/attention/find_attention.h"
#include "run/cuda/cuda_target.h"
#include "sheaf/graph.h"
#include "support/emulate.h"
#include "support/nvrtc.h"
#include "support/run.h"
#include "support/sanitized.h"

typedef struct shape {
    int batch, queries, keys, heads, depth;
    bool causal, wide; /* wide: float */
} shape;

/* As in a text of JAX; the types of its dot_generals, by their dimensions. */
static void write_text(const shape *s, sf_buf *out)
{
    const char *e = s->wide ? "f32" : "bf16";
    char q[64], k[64], o[64], score[64], flags[64], row[64], mask[64], dk[64], dq[64];
    snprintf(q, sizeof q, "tensor<%dx%dx%dx%dx%s>", s->batch, s->queries, s->heads, s->depth, e);
    snprintf(k, sizeof k, "tensor<%dx%dx%dx%dx%s>", s->batch, s->keys, s->heads, s->depth, e);
    snprintf(o, sizeof o, "tensor<%dx%dx%dx%dx%s>", s->batch, s->heads, s->depth, s->queries, e);
    snprintf(dq, sizeof dq, "tensor<%dx%dx%dx%dx%s>", s->batch, s->heads, s->queries, s->depth, e);
    snprintf(dk, sizeof dk, "tensor<%dx%dx%dx%dx%s>", s->batch, s->heads, s->keys, s->depth, e);
    snprintf(score, sizeof score, "tensor<%dx%dx%dx%dx%s>", s->batch, s->heads, s->queries, s->keys,
             e);
    snprintf(flags, sizeof flags, "tensor<%dx%dx%dx%dxi1>", s->batch, s->heads, s->queries,
             s->keys);
    snprintf(mask, sizeof mask, "tensor<%dx%dx", s->queries, s->keys);
    snprintf(row, sizeof row, "tensor<%dx%dx%dx%s>", s->batch, s->heads, s->queries, e);
#define PUT(...) sf_buf_printf(out, __VA_ARGS__)
    PUT("func.func public @main(%%q: %s, %%k: %s, %%v: %s, %%do: %s) -> (%s, %s, %s, %s) {\n", q, k,
        k, o, o, dq, dk, dk);
    PUT("%%s = stablehlo.dot_general %%q, %%k, batching_dims = [0, 2] x [0, 2], contracting_dims = "
        "[3] x [3] : (%s, %s) -> %s\n",
        q, k, score);
    PUT("%%c = stablehlo.constant dense<0.25> : %s\n%%y = stablehlo.multiply %%s, %%c : %s\n",
        score, score);
    if (s->causal) {
        PUT("%%i = stablehlo.iota dim = 0 : %si32>\n%%j = stablehlo.iota dim = 1 : %si32>\n", mask,
            mask);
        PUT("%%m = stablehlo.compare GE, %%i, %%j : (%si32>, %si32>) -> %si1>\n", mask, mask, mask);
        PUT("%%n = stablehlo.broadcast_in_dim %%m, dims = [2, 3] : (%si1>) -> %s\n", mask, flags);
        PUT("%%low = stablehlo.constant dense<-1.0e9> : %s\n", score);
        PUT("%%x = stablehlo.select %%n, %%y, %%low : %s, %s\n", flags, score);
    }
    const char *x = s->causal ? "%x" : "%y";
    PUT("%%ninf = stablehlo.constant dense<%s> : tensor<%s>\n%%nil = stablehlo.constant dense<0.0> "
        ": tensor<%s>\n",
        s->wide ? "0xFF800000" : "0xFF80", e, e);
    PUT("%%t = stablehlo.reduce(%s init: %%ninf) applies stablehlo.maximum across dimensions = [3] "
        ": (%s, tensor<%s>) -> %s\n",
        x, score, e, row);
    PUT("%%ts = stablehlo.broadcast_in_dim %%t, dims = [0, 1, 2] : (%s) -> %s\n", row, score);
    PUT("%%l = stablehlo.subtract %s, %%ts : %s\n%%e = stablehlo.exponential %%l : %s\n", x, score,
        score);
    PUT("%%z = stablehlo.reduce(%%e init: %%nil) applies stablehlo.add across dimensions = [3] : "
        "(%s, tensor<%s>) -> %s\n",
        score, e, row);
    PUT("%%zs = stablehlo.broadcast_in_dim %%z, dims = [0, 1, 2] : (%s) -> %s\n", row, score);
    PUT("%%p = stablehlo.divide %%e, %%zs : %s\n", score);
    PUT("%%o = stablehlo.dot_general %%v, %%p, batching_dims = [0, 2] x [0, 1], contracting_dims = "
        "[1] x [3] : (%s, %s) -> %s\n",
        k, score, o);
    PUT("%%g = stablehlo.dot_general %%do, %%v, batching_dims = [0, 1] x [0, 2], contracting_dims "
        "= [2] x [3] : (%s, %s) -> %s\n",
        o, k, score);
    PUT("%%dv = stablehlo.dot_general %%p, %%do, batching_dims = [0, 1] x [0, 1], contracting_dims "
        "= [2] x [3] : (%s, %s) -> %s\n",
        score, o, dk);
    PUT("%%gp = stablehlo.multiply %%g, %%p : %s\n", score);
    PUT("%%r = stablehlo.reduce(%%gp init: %%nil) applies stablehlo.add across dimensions = [3] : "
        "(%s, tensor<%s>) -> %s\n",
        score, e, row);
    PUT("%%rs = stablehlo.broadcast_in_dim %%r, dims = [0, 1, 2] : (%s) -> %s\n", row, score);
    PUT("%%d = stablehlo.subtract %%g, %%rs : %s\n%%dp = stablehlo.multiply %%d, %%p : %s\n", score,
        score);
    PUT("%%ds = stablehlo.multiply %%dp, %%c : %s\n", score);
    PUT("%%dk = stablehlo.dot_general %%ds, %%q, batching_dims = [0, 1] x [0, 2], contracting_dims "
        "= [2] x [1] : (%s, %s) -> %s\n",
        score, q, dk);
    PUT("%%dq = stablehlo.dot_general %%ds, %%k, batching_dims = [0, 1] x [0, 2], contracting_dims "
        "= [3] x [1] : (%s, %s) -> %s\n",
        score, k, dq);
    PUT("return %%o, %%dq, %%dk, %%dv : %s, %s, %s, %s\n}\n", o, dq, dk, dk);
#undef PUT
}

static sf_graph *make_graph(const shape *s)
{
    sf_buf text = {0};
    sf_diag *diag = sf_diag_new();
    sf_graph *graph = NULL;
    sf_load_options options = {.size = sizeof options};
    write_text(s, &text);
    if (sf_load_text(text.text, text.length, "step", &options, diag, &graph) != SF_OK)
        fail_msg("%s", sf_diag_text(diag, 0));
    sf_regraph found = sf_find_attention(graph, &sf_target_cuda, s->wide, false);
    int gradients = 0;
    for (uint32_t i = 0; found.graph && i < found.graph->top->nnodes; i++)
        gradients += sf_top_node(found.graph, i)->def->id == SF_ATTENTION_GRADIENT;
    assert_int_equal(gradients, 1);
    sf_regraph_free(&found);
    sf_diag_free(diag);
    sf_buf_free(&text);
    return graph;
}

/* Numbers that bf16 has, so that all engines start from the same. */
static void fill(sf_tensor *tensor, uint32_t seed, double *values)
{
    for (int64_t i = 0; i < tensor->type->count; i++) {
        seed = seed * 1664525 + 1013904223;
        float x = (float)(seed >> 8) / 4194304.0F - 2;
        uint32_t bits;
        memcpy(&bits, &x, sizeof bits);
        bits &= 0xffff0000;
        memcpy(&x, &bits, sizeof bits);
        values[i] = (double)x;
        if (tensor->type->dtype == SF_F32)
            ((float *)tensor->data)[i] = x;
        else
            ((uint16_t *)tensor->data)[i] = (uint16_t)(bits >> 16);
    }
}

enum { Q, K, V, DOUT, NTENSORS };

/* One head: weights[i][j], then what is made of them, in the orders of the text. */
typedef struct wanted {
    double *out, *dq, *dk, *dv; /* [b, h, d, q], [b, h, q, d], [b, h, k, d] twice */
} wanted;

static void attend(const shape *s, int b, int h, double *const *in, const wanted *w)
{
    int n = s->queries, m = s->keys, d = s->depth;
    int64_t pair = (int64_t)b * s->heads + h;
    const double *dout = in[DOUT] + pair * d * n;
#define AT(tensor, rows, i, c) in[tensor][(((int64_t)b * (rows) + (i)) * s->heads + h) * d + (c)]
    double *p = sf_alloc((size_t)m * sizeof *p), *g = sf_alloc((size_t)m * sizeof *g);
    for (int i = 0; i < n; i++) {
        int seen = s->causal ? i + 1 : m;
        double sum = 0, mean = 0;
        for (int j = 0; j < seen; j++) {
            double score = 0;
            g[j] = 0;
            for (int c = 0; c < d; c++) {
                score += AT(Q, n, i, c) * AT(K, m, j, c);
                g[j] += dout[c * n + i] * AT(V, m, j, c);
            }
            p[j] = exp(score * 0.25 - 10);
            sum += p[j];
        }
        for (int j = 0; j < seen; j++) {
            p[j] /= sum;
            mean += p[j] * g[j];
        }
        for (int j = 0; j < seen; j++)
            for (int c = 0; c < d; c++) {
                double ds = p[j] * (g[j] - mean) * 0.25;
                w->out[(pair * d + c) * n + i] += p[j] * AT(V, m, j, c);
                w->dq[(pair * n + i) * d + c] += ds * AT(K, m, j, c);
                w->dk[(pair * m + j) * d + c] += ds * AT(Q, n, i, c);
                w->dv[(pair * m + j) * d + c] += p[j] * dout[c * n + i];
            }
    }
    sf_free(p);
    sf_free(g);
#undef AT
}

/* Up to what rounding of weights, of their gradients and of results brings, as a part of the largest. */
static void compare(const shape *s, const char *what, const sf_tensor *got, const double *expected)
{
    double most = 0, limit = s->wide ? 2e-3 : 2e-2;
    for (int64_t e = 0; e < got->type->count; e++)
        most = fmax(most, fabs(expected[e]));
    for (int64_t e = 0; e < got->type->count; e++)
        if (!(fabs(sf_get_f64(got, e) - expected[e]) <= limit * most))
            fail_msg("%dx%dx%dx%d, %s: element %d is %g, not %g", s->batch, s->queries, s->heads,
                     s->depth, what, (int)e, sf_get_f64(got, e), expected[e]);
}

static void check_shape(const shape *s)
{
    sf_graph *graph = make_graph(s);
    sf_runner_options options = {
        .engine = "cuda",
        .check = true,
        .with = {.threads = 1, .precision = s->wide ? SF_PRECISION_TF32 : SF_PRECISION_F32}};
    sf_diag *diag = sf_diag_new();
    sf_runner runner;
    if (sf_runner_open(graph, &options, diag, &runner) != SF_OK)
        fail_msg("%s", sf_diag_text(diag, 0));
    double *in[NTENSORS], *out[NTENSORS];
    for (uint32_t i = 0; i < NTENSORS; i++) {
        sf_tensor tensor = test_argument(runner.engine, i);
        in[i] = sf_alloc((size_t)tensor.type->count * sizeof *in[i]);
        fill(&tensor, i + 1, in[i]);
    }
    assert_int_equal(sf_engine_step(runner.engine, diag), SF_OK);
    for (uint32_t i = 0; i < NTENSORS; i++)
        out[i] = sf_alloc((size_t)test_result(runner.engine, i).type->count * sizeof *out[i]);
    wanted w = {out[0], out[1], out[2], out[3]};
    for (int pair = 0; pair < s->batch * s->heads; pair++)
        attend(s, pair / s->heads, pair % s->heads, in, &w);
    static const char *const names[] = {"out", "dq", "dk", "dv"};
    for (uint32_t i = 0; i < NTENSORS; i++) {
        sf_tensor got = test_result(runner.engine, i);
        compare(s, names[i], &got, out[i]);
        sf_free(in[i]);
        sf_free(out[i]);
    }
    sf_runner_close(&runner);
    sf_diag_free(diag);
    sf_graph_free(graph);
}

static const shape shapes[] = {
    {2, 200, 200, 2, 64, true, false}, {2, 64, 150, 2, 32, false, false},
    {2, 90, 90, 2, 16, true, false},   {2, 140, 140, 2, 48, true, true},
    {2, 40, 70, 2, 64, false, true},   {2, 70, 70, 2, 112, true, false},
    {1, 50, 50, 3, 32, true, false},   {2, 20, 30, 1, 16, false, false},
};

static void test_attention(void **state)
{
    (void)state;
    test_emulate_gpu();
    size_t first = test_short() ? 4 : 0, end = test_short() ? 7 : sizeof shapes / sizeof *shapes;
    /* Short are: one of each type, causal and not, over more than one tile. */
    for (size_t i = first; i < end; i++) {
        setenv("SHEAF_CUDA_CHECK", i % 2 ? "1" : "0", 1);
        check_shape(&shapes[i]);
    }
}

/* With a state, that of kernels that check. Short is: one of each width, for one architecture with groups of warps, and without
 * checks for one that has none. */
static void test_text(void **state)
{
    static const char *const architectures[] = {"sm_90a", "sm_90", "sm_80"};
    const sf_cuda_compiler *compiler = test_nvrtc();
    if (!compiler) {
        print_message("NVRTC is not here\n");
        skip();
    }
    sf_kernels kernels = {.needs = {.checks = *state != NULL}};
    size_t end = test_short() ? 6 : sizeof shapes / sizeof *shapes;
    for (size_t i = 0; i < end; i += 3) { /* one of each type */
        sf_graph *graph = make_graph(&shapes[i]);
        sf_lower_options options = {.target = &sf_target_cuda, .rounds = shapes[i].wide};
        sf_program *program = sf_lower_as_text(graph, &options);
        sf_write_program(&kernels, program, true);
        sf_program_free(program);
        sf_graph_free(graph);
    }
    size_t narchitectures = sizeof architectures / sizeof *architectures,
           step = !test_short() ? 1
                  : *state      ? narchitectures
                                : narchitectures - 1;
    for (size_t i = 0; i < narchitectures; i += step)
        test_nvrtc_compile(compiler, &kernels, 0, kernels.nkernels, architectures[i]);
    sf_kernels_free(&kernels);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_attention),
        cmocka_unit_test(test_text),
        {"test_text with checks", test_text, NULL, NULL, (void *)"checks"}};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
