/* Which scopes are layers: those that are counted and go on from each other, the outermost that have several products. */
#include "plan/layers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "plan/recompute_policy.h"
#include "support/plans.h"

/* Blocks of so many products with a weight each, in a scope each. A block follows the one before
 * it; or, `beside`, with those of its outer scope, the one before that, and their results are added
 * up. */
typedef struct text {
    sf_buf out;
    int values;
} text;

static int add_block(text *t, int from, int products, const char *scope)
{
    for (int i = 0; i < products; i++) {
        int dot = t->values++, tanh = t->values++;
        sf_buf_printf(&t->out,
                      "  %%v%d = stablehlo.dot_general %%v%d, %%w, contracting_dims = [1] x [0] : "
                      "(tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32> "
                      "loc(\"jit(step)/jit(main)/%s/dot_general\")\n"
                      "  %%v%d = stablehlo.tanh %%v%d : tensor<4x8xf32> "
                      "loc(\"jit(step)/jit(main)/%s/tanh\")\n",
                      dot, from, scope, tanh, dot, scope);
        from = tanh;
    }
    return from;
}

static int add_sum(text *t, int a, int b)
{
    sf_buf_printf(&t->out, "  %%v%d = stablehlo.add %%v%d, %%v%d : tensor<4x8xf32>\n", t->values, a,
                  b);
    return t->values++;
}

static size_t outer_length(const char *scope)
{
    return strcspn(scope, "/");
}

static bool is_same_outer(const char *a, const char *b)
{
    return outer_length(a) == outer_length(b) && strncmp(a, b, outer_length(a)) == 0;
}

/* The value that all of it makes. */
static int add_blocks(text *t, const char *const *scopes, int products, bool beside)
{
    int first = 0, last = 0;
    for (int i = 0; scopes[i]; i++) {
        bool goes_on = beside && i > 0 && is_same_outer(scopes[i - 1], scopes[i]);
        first = goes_on ? first : last;
        int made = add_block(t, beside ? first : last, products, scopes[i]);
        last = goes_on ? add_sum(t, last, made) : made;
    }
    return last;
}

static sf_graph *step_of(const char *const *scopes, int products, bool beside)
{
    text t = {.values = 1};
    sf_buf_puts(&t.out, "func.func @main(%w: tensor<8x8xf32>, %v0: tensor<4x8xf32>) -> "
                        "(tensor<8x8xf32>, tensor<f32>) {\n"
                        "  %zero = stablehlo.constant dense<0.0> : tensor<f32>\n");
    int last = add_blocks(&t, scopes, products, beside);
    sf_buf_printf(&t.out,
                  "  %%square = stablehlo.multiply %%v%d, %%v%d : tensor<4x8xf32>\n"
                  "  %%loss = stablehlo.reduce(%%square init: %%zero) applies stablehlo.add across "
                  "dimensions = [0, 1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<f32>\n"
                  "  %%g = stablehlo.dot_general %%v0, %%v%d, contracting_dims = [0] x [0] : "
                  "(tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>\n"
                  "  %%new = stablehlo.subtract %%w, %%g : tensor<8x8xf32>\n"
                  "  return %%new, %%loss : tensor<8x8xf32>, tensor<f32>\n}\n",
                  last, last, last);
    sf_graph *graph = test_step_text(t.out.text);
    sf_buf_free(&t.out);
    return graph;
}

static void test_which_scopes_are_layers(void **state)
{
    (void)state;
    static const struct {
        const char *scopes[8];
        int products;
        bool beside;
        uint32_t layers;
    } table[] = {
        {{"layer_0", "layer_1", "layer_2", NULL}, 2, false, 3},
        {{"layer_0/attn", "layer_0/mlp", "layer_1/attn", "layer_1/mlp", NULL}, 2, false, 2},
        {{"stage_0/layer_0", "stage_0/layer_1", "stage_1/layer_0", "stage_1/layer_1",
          "stage_1/layer_2", NULL},
         2,
         false,
         5},
        /* too little in each */
        {{"layer_0/dense_0", "layer_0/dense_1", "layer_1/dense_0", "layer_1/dense_1", NULL},
         1,
         false,
         2},
        /* beside each other */
        {{"layer_0/expert_0", "layer_0/expert_1", "layer_0/expert_2", "layer_1/expert_0",
          "layer_1/expert_1", "layer_1/expert_2", NULL},
         2,
         true,
         2},
        /* little of all */
        {{"stage_0/mlp", "stage_0/attn", "stage_0/layer_0", "stage_0/layer_1", "stage_0/last",
          "stage_1", NULL},
         2,
         false,
         2},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        sf_graph *graph = step_of(table[i].scopes, table[i].products, table[i].beside);
        uint32_t count = sf_count_layers(graph);
        if (count != table[i].layers)
            fail_msg("%s ...: %u layers, not %u", table[i].scopes[0], count, table[i].layers);
        sf_graph_free(graph);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_which_scopes_are_layers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
