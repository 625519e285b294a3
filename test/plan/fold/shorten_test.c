/* A shortened step is the step that would have been written with fewer layers: it has the hash of that one. Steps are nets of
 * fully connected layers with gradients and an update, of several shapes: one stack, two stacks, layers of two kinds that
 * alternate, a norm of all gradients that adds layers up in another order, random depths. */
#include "plan/fold/shorten.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "ir/opdef.h"
#include "sheaf/sheaf.h"
#include "support/plans.h"

enum { MOST_LAYERS = 64 };

/* Widths of the two stacks, and how many kinds of layers the first one alternates between. */
typedef struct net {
    int first, second; /* layers of width 8, then of width 4 */
    int kinds;
    bool norm; /* updates are scaled by a sum over all gradients, */
    int order; /* added up in this order: layers 0, order, 2 order, ... modulo the number of layers, a prime to it */
} net;

typedef struct writer {
    sf_buf out;
    int widths[MOST_LAYERS], kinds[MOST_LAYERS], count;
} writer;

static int width_behind(const writer *w, int layer)
{
    return layer + 1 < w->count ? w->widths[layer + 1] : w->widths[layer];
}

/* Forward: h(i+1) = f(h(i) w(i)), f by kind; backward: d(i) = g(i+1) f'(...), gradient w'(i) = h(i)^T d(i), g(i) = d(i) w(i)^T. */
static void write_forward(writer *w, int i)
{
    int in = w->widths[i], out = width_behind(w, i);
    sf_buf_printf(&w->out,
                  "  %%z%d = stablehlo.dot_general %%h%d, %%w%d, contracting_dims = [1] x [0] : "
                  "(tensor<2x%dxf32>, tensor<%dx%dxf32>) -> tensor<2x%dxf32>\n"
                  "  %%h%d = stablehlo.%s %%z%d : tensor<2x%dxf32>\n",
                  i, i, i, in, in, out, out, i + 1, w->kinds[i] ? "exponential" : "tanh", i, out);
}

static void write_backward(writer *w, int i)
{
    int in = w->widths[i], out = width_behind(w, i);
    sf_buf_printf(&w->out,
                  "  %%d%d = stablehlo.multiply %%g%d, %%h%d : tensor<2x%dxf32>\n"
                  "  %%dw%d = stablehlo.dot_general %%h%d, %%d%d, contracting_dims = [0] x [0] : "
                  "(tensor<2x%dxf32>, tensor<2x%dxf32>) -> tensor<%dx%dxf32>\n"
                  "  %%g%d = stablehlo.dot_general %%d%d, %%w%d, contracting_dims = [1] x [1] : "
                  "(tensor<2x%dxf32>, tensor<%dx%dxf32>) -> tensor<2x%dxf32>\n",
                  i, i + 1, i + 1, out, i, i, i, in, out, in, out, i, i, i, out, in, out, in);
}

static void write_norm(writer *w, int order)
{
    for (int n = 0; n < w->count; n++) {
        int i = n * order % w->count, in = w->widths[i], out = width_behind(w, i);
        sf_buf_printf(
            &w->out,
            "  %%sq%d = stablehlo.multiply %%dw%d, %%dw%d : tensor<%dx%dxf32>\n"
            "  %%n%d = stablehlo.reduce(%%sq%d init: %%zero) applies stablehlo.add across "
            "dimensions = [0, 1] : (tensor<%dx%dxf32>, tensor<f32>) -> tensor<f32>\n"
            "  %%s%d = stablehlo.add %%%s%d, %%n%d : tensor<f32>\n",
            n, i, i, in, out, n, n, in, out, n, n ? "s" : "zero", n ? n - 1 : 0, n);
    }
}

static void write_update(writer *w, int i, bool norm)
{
    int in = w->widths[i], out = width_behind(w, i);
    if (norm)
        sf_buf_printf(&w->out,
                      "  %%b%d = stablehlo.broadcast_in_dim %%s%d, dims = [] : (tensor<f32>) -> "
                      "tensor<%dx%dxf32>\n"
                      "  %%c%d = stablehlo.divide %%dw%d, %%b%d : tensor<%dx%dxf32>\n",
                      i, w->count - 1, in, out, i, i, i, in, out);
    sf_buf_printf(&w->out, "  %%new%d = stablehlo.subtract %%w%d, %%%s%d : tensor<%dx%dxf32>\n", i,
                  i, norm ? "c" : "dw", i, in, out);
}

static sf_graph *write_step(const net *of)
{
    writer w = {.count = of->first + of->second};
    for (int i = 0; i < w.count; i++) {
        w.widths[i] = i < of->first ? 8 : 4;
        w.kinds[i] = i < of->first ? i % of->kinds : 0;
    }
    sf_buf_puts(&w.out, "func.func @main(");
    for (int i = 0; i < w.count; i++)
        sf_buf_printf(&w.out, "%%w%d: tensor<%dx%dxf32> {tf.aliasing_output = %d : i32}, ", i,
                      w.widths[i], width_behind(&w, i), i);
    sf_buf_printf(&w.out, "%%h0: tensor<2x%dxf32>) -> (", w.widths[0]);
    for (int i = 0; i < w.count; i++)
        sf_buf_printf(&w.out, "tensor<%dx%dxf32>, ", w.widths[i], width_behind(&w, i));
    sf_buf_puts(&w.out, "tensor<f32>) {\n  %zero = stablehlo.constant dense<0.0> : tensor<f32>\n"
                        "  %zero0 = stablehlo.constant dense<1.0> : tensor<f32>\n");
    for (int i = 0; i < w.count; i++)
        write_forward(&w, i);
    int last = width_behind(&w, w.count - 1);
    sf_buf_printf(&w.out,
                  "  %%loss = stablehlo.reduce(%%h%d init: %%zero) applies stablehlo.add across "
                  "dimensions = [0, 1] : (tensor<2x%dxf32>, tensor<f32>) -> tensor<f32>\n"
                  "  %%g%d = stablehlo.constant dense<1.0> : tensor<2x%dxf32>\n",
                  w.count, last, w.count, last);
    for (int i = w.count; i-- > 0;)
        write_backward(&w, i);
    if (of->norm)
        write_norm(&w, of->order);
    for (int i = 0; i < w.count; i++)
        write_update(&w, i, of->norm);
    sf_buf_puts(&w.out, "  return ");
    for (int i = 0; i < w.count; i++)
        sf_buf_printf(&w.out, "%%new%d, ", i);
    sf_buf_puts(&w.out, "%loss : ");
    for (int i = 0; i < w.count; i++)
        sf_buf_printf(&w.out, "tensor<%dx%dxf32>, ", w.widths[i], width_behind(&w, i));
    sf_buf_puts(&w.out, "tensor<f32>\n}\n");
    sf_graph *graph = test_step_text(w.out.text);
    sf_buf_free(&w.out);
    return graph;
}

/* The sum of a norm that goes in another order is no chain that can be cut exactly: sizes are right, sums may be of another
 * order. */
static void check_shortened(const net *deep_net, const net *shallow_net, bool same_hash)
{
    sf_arena arena = {0};
    sf_graph *deep = write_step(deep_net), *shallow = write_step(shallow_net);
    sf_repeats repeats = sf_find_repeats(deep, &arena);
    uint32_t keep[MOST_LAYERS];
    int fewer[] = {(deep_net->first - shallow_net->first) / deep_net->kinds,
                   deep_net->second - shallow_net->second};
    assert_true(repeats.count >= (deep_net->second ? 2 : 1)); /* the largest first */
    for (uint32_t s = 0; s < repeats.count; s++)
        keep[s] = repeats.stacks[s].layers - (s < 2 ? (uint32_t)fewer[s] : 0);
    sf_short_step out;
    if (!sf_shorten_step(deep, &repeats, keep, &arena, &out))
        fail_msg("order %d", deep_net->order);
    assert_int_equal(out.graph->top->narguments, shallow->top->narguments);
    assert_int_equal(out.graph->top->nnodes, shallow->top->nnodes);
    if (same_hash)
        assert_true(sf_graph_hash(out.graph) == sf_graph_hash(shallow));
    sf_graph_free(out.graph);
    sf_graph_free(deep);
    sf_graph_free(shallow);
    sf_arena_free(&arena);
}

static void test_one_stack(void **state)
{
    (void)state;
    for (int deep = 5; deep <= 24; deep += 3)
        for (int kept = 4; kept < deep; kept += 2)
            check_shortened(&(net){.first = deep, .kinds = 1}, &(net){.first = kept, .kinds = 1},
                            true);
}

static void test_two_stacks(void **state)
{
    (void)state;
    for (int deep = 8; deep <= 20; deep += 4)
        check_shortened(&(net){.first = deep, .second = 6, .kinds = 1},
                        &(net){.first = deep - 2, .second = 5, .kinds = 1}, true);
}

static void test_kinds_alternate(void **state)
{
    (void)state;
    for (int kinds = 2; kinds <= 3; kinds++)
        check_shortened(&(net){.first = 8 * kinds, .kinds = kinds},
                        &(net){.first = 5 * kinds, .kinds = kinds}, true);
}

static void test_norm(void **state)
{
    (void)state;
    check_shortened(&(net){.first = 16, .kinds = 1, .norm = true, .order = 1},
                    &(net){.first = 6, .kinds = 1, .norm = true, .order = 1}, true);
    for (int order = 3; order <= 13; order += 2)
        check_shortened(&(net){.first = 16, .kinds = 1, .norm = true, .order = order},
                        &(net){.first = 6, .kinds = 1, .norm = true, .order = 1}, false);
}

static void test_nothing_repeats(void **state)
{
    (void)state;
    sf_arena arena = {0};
    sf_graph *graph = write_step(&(net){.first = 2, .kinds = 1});
    assert_int_equal(sf_find_repeats(graph, &arena).count, 0);
    sf_graph_free(graph);
    sf_arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_stack),       cmocka_unit_test(test_two_stacks),
        cmocka_unit_test(test_kinds_alternate), cmocka_unit_test(test_norm),
        cmocka_unit_test(test_nothing_repeats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
