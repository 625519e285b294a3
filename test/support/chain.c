#include "support/chain.h"

#include <stdio.h>

#include "base/str.h"
#include "support/plans.h"

typedef struct chain {
    int layers, weights;     /* the last layer may have the first weights */
    bool reports;            /* what the last layer makes, and the largest of it */
    bool balances, shares;   /* sums over the batch that turns need, of layers or of the last one */
    char rows[32], cols[32]; /* types of what layers make, and of weights */
    char row[32];            /* of what a layer makes of an example */
    int loss;                /* the number of the last that was added up */
    sf_buf text;
} chain;

static int weights_of(const chain *c, int layer)
{
    return layer < c->weights ? layer : 0;
}

/* What a layer reads. */
static const char *input_of(int layer, char out[16])
{
    snprintf(out, 16, layer > 0 ? "h%d" : "x", layer - 1);
    return out;
}

static void put_head(chain *c)
{
    sf_buf_printf(&c->text, "func.func @main(");
    for (int w = 0; w < c->weights; w++)
        sf_buf_printf(&c->text, "%%w%d: %s, ", w, c->cols);
    sf_buf_printf(&c->text, "%%x: %s) -> (", c->rows);
    for (int w = 0; w < c->weights; w++)
        sf_buf_printf(&c->text, "%s, ", c->cols);
    if (c->reports)
        sf_buf_printf(&c->text, "%s, tensor<f32>, ", c->rows);
    sf_buf_printf(&c->text,
                  "tensor<f32>) {\n  %%zero = stablehlo.constant dense<0.0> : tensor<f32>\n");
}

static bool is_balanced(const chain *c, int layer)
{
    return c->balances && layer % 2 == 0;
}

/* What the features of a layer add up to over the batch, and their squares in the loss. */
static void put_loads(chain *c, int layer, int *last)
{
    if (!is_balanced(c, layer))
        return;
    sf_buf_printf(&c->text,
                  "  %%m%d = stablehlo.reduce(%%h%d init: %%zero) applies stablehlo.add across "
                  "dimensions = [0] : (%s, tensor<f32>) -> %s\n"
                  "  %%mm%d = stablehlo.multiply %%m%d, %%m%d : %s\n"
                  "  %%ms%d = stablehlo.reduce(%%mm%d init: %%zero) applies stablehlo.add across "
                  "dimensions = [0] : (%s, tensor<f32>) -> tensor<f32>\n"
                  "  %%l%d = stablehlo.add %%l%d, %%ms%d : tensor<f32>\n",
                  layer, layer, c->rows, c->row, layer, layer, layer, c->row, layer, layer, c->row,
                  *last + 1, *last, layer);
    ++*last;
}

/* The last layer by what it adds up to over the batch. */
static void put_shares(chain *c)
{
    if (!c->shares)
        return;
    sf_buf_printf(&c->text,
                  "  %%n = stablehlo.reduce(%%h%d init: %%zero) applies stablehlo.add across "
                  "dimensions = [0, 1] : (%s, tensor<f32>) -> tensor<f32>\n"
                  "  %%a = stablehlo.broadcast_in_dim %%n, dims = [] : (tensor<f32>) -> %s\n"
                  "  %%share = stablehlo.divide %%h%d, %%a : %s\n",
                  c->layers - 1, c->rows, c->rows, c->layers - 1, c->rows);
}

static void put_forward(chain *c)
{
    char in[16], last[16];
    int loss = 0;
    for (int l = 0; l < c->layers; l++)
        sf_buf_printf(&c->text,
                      "  %%p%d = stablehlo.dot_general %%%s, %%w%d, contracting_dims = [1] x [0] : "
                      "(%s, %s) -> %s\n"
                      "  %%h%d = stablehlo.tanh %%p%d : %s\n",
                      l, input_of(l, in), weights_of(c, l), c->rows, c->cols, c->rows, l, l,
                      c->rows);
    snprintf(last, sizeof last, c->shares ? "share" : "h%d", c->layers - 1);
    put_shares(c);
    sf_buf_printf(&c->text,
                  "  %%q = stablehlo.multiply %%h%d, %%%s : %s\n"
                  "  %%l0 = stablehlo.reduce(%%q init: %%zero) applies stablehlo.add across "
                  "dimensions = [0, 1] : (%s, tensor<f32>) -> tensor<f32>\n",
                  c->layers - 1, last, c->rows, c->rows);
    for (int l = 0; l < c->layers; l++)
        put_loads(c, l, &loss);
    c->loss = loss;
    if (c->reports)
        sf_buf_printf(&c->text,
                      "  %%top = stablehlo.reduce(%%h%d init: %%zero) applies stablehlo.maximum "
                      "across dimensions = [0, 1] : (%s, tensor<f32>) -> tensor<f32>\n",
                      c->layers - 1, c->rows);
}

/* Behind the gradient of the last layer that has them. */
static void put_update(chain *c, int layer)
{
    bool tied = c->weights < c->layers && layer == 0;
    if (tied)
        sf_buf_printf(&c->text, "  %%g = stablehlo.add %%g0, %%g%d : %s\n", c->layers - 1, c->cols);
    if (layer < c->weights) {
        char gradient[16] = "g";
        if (!tied)
            snprintf(gradient, sizeof gradient, "g%d", layer);
        sf_buf_printf(&c->text, "  %%n%d = stablehlo.subtract %%w%d, %%%s : %s\n", layer, layer,
                      gradient, c->cols);
    }
}

/* The cotangent of what a layer makes; `out` is its name. */
static void put_cotangent(chain *c, int layer, char out[16])
{
    bool is_last = layer == c->layers - 1;
    snprintf(out, 16, is_last && c->shares ? "share" : is_last ? "h%d" : "c%d", layer);
    if (!is_balanced(c, layer))
        return;
    sf_buf_printf(&c->text,
                  "  %%mb%d = stablehlo.broadcast_in_dim %%m%d, dims = [1] : (%s) -> %s\n"
                  "  %%b%d = stablehlo.add %%%s, %%mb%d : %s\n",
                  layer, layer, c->row, c->rows, layer, out, layer, c->rows);
    snprintf(out, 16, "b%d", layer);
}

static void put_backward(chain *c)
{
    char in[16], of[16];
    for (int l = c->layers - 1; l >= 0; l--) {
        put_cotangent(c, l, of);
        sf_buf_printf(&c->text,
                      "  %%s%d = stablehlo.multiply %%h%d, %%h%d : %s\n"
                      "  %%d%d = stablehlo.multiply %%%s, %%s%d : %s\n"
                      "  %%g%d = stablehlo.dot_general %%%s, %%d%d, contracting_dims = [0] x [0] : "
                      "(%s, %s) -> %s\n",
                      l, l, l, c->rows, l, of, l, c->rows, l, input_of(l, in), l, c->rows, c->rows,
                      c->cols);
        put_update(c, l);
        if (l > 0)
            sf_buf_printf(&c->text,
                          "  %%c%d = stablehlo.dot_general %%d%d, %%w%d, contracting_dims = [1] x "
                          "[1] : (%s, %s) -> %s\n",
                          l - 1, l, weights_of(c, l), c->rows, c->cols, c->rows);
    }
}

static void put_results(chain *c)
{
    sf_buf_printf(&c->text, "  return ");
    for (int w = 0; w < c->weights; w++)
        sf_buf_printf(&c->text, "%%n%d, ", w);
    if (c->reports)
        sf_buf_printf(&c->text, "%%h%d, %%top, ", c->layers - 1);
    sf_buf_printf(&c->text, "%%l%d : ", c->loss);
    for (int w = 0; w < c->weights; w++)
        sf_buf_printf(&c->text, "%s, ", c->cols);
    if (c->reports)
        sf_buf_printf(&c->text, "%s, tensor<f32>, ", c->rows);
    sf_buf_printf(&c->text, "tensor<f32>\n}\n");
}

static sf_graph *make_chain(chain c, int batch, int width)
{
    snprintf(c.rows, sizeof c.rows, "tensor<%dx%dxf32>", batch, width);
    snprintf(c.cols, sizeof c.cols, "tensor<%dx%dxf32>", width, width);
    snprintf(c.row, sizeof c.row, "tensor<%dxf32>", width);
    put_head(&c);
    put_forward(&c);
    put_backward(&c);
    put_results(&c);
    sf_graph *graph = test_step_text(c.text.text);
    sf_buf_free(&c.text);
    return graph;
}

sf_graph *test_chain(int layers, int batch, int width, bool tied)
{
    return make_chain((chain){.layers = layers, .weights = tied ? layers - 1 : layers}, batch,
                      width);
}

sf_graph *test_chain_reporting(int layers, int batch, int width)
{
    return make_chain((chain){.layers = layers, .weights = layers, .reports = true}, batch, width);
}

sf_graph *test_chain_needing_all(int layers, int batch, int width, bool balances)
{
    return make_chain(
        (chain){.layers = layers, .weights = layers, .balances = balances, .shares = !balances},
        batch, width);
}
