#include "api/probe/probe_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { TYPE = 80 };

int sf_text_argument(sf_step_text *text, const char *type)
{
    int number = text->narguments++;
    sf_buf_printf(&text->arguments, "%s%%a%d: tensor<%s>", number ? ", " : "", number, type);
    return number;
}

void sf_text_result(sf_step_text *text, const char *value, const char *type)
{
    const char *before = text->nresults++ ? ", " : "";
    sf_buf_printf(&text->results, "%s%s", before, value);
    sf_buf_printf(&text->types, "%stensor<%s>", before, type);
}

sf_buf sf_text_finish(sf_step_text *text)
{
    sf_buf out = {0};
    sf_buf_printf(&out, "func.func public @main(%s) -> (%s) {\n%sreturn %s : %s\n}\n",
                  text->arguments.text, text->types.text, text->body.text, text->results.text,
                  text->types.text);
    sf_buf_free(&text->arguments);
    sf_buf_free(&text->body);
    sf_buf_free(&text->results);
    sf_buf_free(&text->types);
    return out;
}

static void result_number(sf_step_text *text, int number, const char *type)
{
    char value[32];
    snprintf(value, sizeof value, "%%v%d", number);
    sf_text_result(text, value, type);
}

static void write_type2(char *out, int64_t rows, int64_t columns, const char *type)
{
    snprintf(out, TYPE, "%" PRId64 "x%" PRId64 "x%s", rows, columns, type);
}

sf_buf sf_text_products(const char *type, int64_t m, int64_t n, int64_t k, int copies)
{
    sf_step_text text = {0};
    char left[TYPE], right[TYPE], result[TYPE];
    write_type2(left, m, k, type);
    write_type2(right, k, n, type);
    write_type2(result, m, n, type);
    for (int i = 0; i < copies; i++) {
        int a = sf_text_argument(&text, left), b = sf_text_argument(&text, right);
        sf_buf_printf(&text.body,
                      "%%v%d = stablehlo.dot_general %%a%d, %%a%d, contracting_dims = [1] x [0] : "
                      "(tensor<%s>, tensor<%s>) -> tensor<%s>\n",
                      i, a, b, left, right, result);
        result_number(&text, i, result);
    }
    return sf_text_finish(&text);
}

sf_buf sf_text_sums(int64_t count, int copies)
{
    enum { APART = 64 };
    sf_step_text text = {0};
    for (int i = 0; i < copies; i++) {
        char type[TYPE];
        snprintf(type, sizeof type, "%" PRId64 "xf32", count + (int64_t)i * APART);
        int a = sf_text_argument(&text, type), b = sf_text_argument(&text, type);
        sf_buf_printf(&text.body, "%%v%d = stablehlo.add %%a%d, %%a%d : tensor<%s>\n", i, a, b,
                      type);
        result_number(&text, i, type);
    }
    return sf_text_finish(&text);
}

sf_buf sf_text_repeats(int64_t rows, int64_t columns, int copies)
{
    sf_step_text text = {0};
    for (int i = 0; i < copies; i++) {
        char type[TYPE], of_rows[TYPE], of_columns[TYPE];
        write_type2(type, rows + i, columns, "f32"); /* lengths differ, as those of sums do */
        snprintf(of_rows, sizeof of_rows, "%" PRId64 "xf32", rows + i);
        snprintf(of_columns, sizeof of_columns, "%" PRId64 "xf32", columns);
        int a = sf_text_argument(&text, type), b = sf_text_argument(&text, type);
        int c = sf_text_argument(&text, of_rows), d = sf_text_argument(&text, of_columns);
        sf_buf_printf(&text.body,
                      "%%c%d = stablehlo.broadcast_in_dim %%a%d, dims = [0] : (tensor<%s>) -> "
                      "tensor<%s>\n%%d%d = stablehlo.broadcast_in_dim %%a%d, dims = [1] : "
                      "(tensor<%s>) -> tensor<%s>\n",
                      i, c, of_rows, type, i, d, of_columns, type);
        sf_buf_printf(&text.body,
                      "%%s%d = stablehlo.subtract %%a%d, %%c%d : tensor<%s>\n"
                      "%%t%d = stablehlo.multiply %%s%d, %%d%d : tensor<%s>\n"
                      "%%v%d = stablehlo.add %%t%d, %%a%d : tensor<%s>\n",
                      i, a, i, type, i, i, i, type, i, i, b, type);
        result_number(&text, i, type);
    }
    return sf_text_finish(&text);
}

static bool takes_two(const char *op)
{
    return strcmp(op, "multiply") == 0 || strcmp(op, "add") == 0 || strcmp(op, "divide") == 0;
}

sf_buf sf_text_chain(int64_t count, const char *one, const char *other, int times)
{
    sf_step_text text = {0};
    char type[TYPE], last[32] = "%a0";
    snprintf(type, sizeof type, "%" PRId64 "xf32", count);
    sf_text_argument(&text, type);
    sf_buf_printf(&text.body, "%%c = stablehlo.constant dense<0.99> : tensor<%s>\n", type);
    for (int i = 0; i < 2 * times; i++) {
        const char *op = i % 2 ? other : one;
        sf_buf_printf(&text.body, "%%v%d = stablehlo.%s %s%s : tensor<%s>\n", i, op, last,
                      takes_two(op) ? ", %c" : "", type);
        snprintf(last, sizeof last, "%%v%d", i);
    }
    sf_text_result(&text, last, type);
    return sf_text_finish(&text);
}

sf_buf sf_text_folds(int64_t rows, int64_t columns)
{
    static const char *const ops[SF_TEXT_FOLDS] = {"add", "maximum", "minimum", "add"};
    sf_step_text text = {0};
    char type[TYPE], result[TYPE];
    write_type2(type, rows, columns, "f32");
    snprintf(result, sizeof result, "%" PRId64 "xf32", rows);
    sf_text_argument(&text, type);
    sf_buf_printf(&text.body,
                  "%%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
                  "%%s = stablehlo.multiply %%a0, %%a0 : tensor<%s>\n",
                  type);
    for (int i = 0; i < SF_TEXT_FOLDS; i++) {
        sf_buf_printf(&text.body,
                      "%%v%d = stablehlo.reduce(%s init: %%z) applies stablehlo.%s across "
                      "dimensions = [1] : (tensor<%s>, tensor<f32>) -> tensor<%s>\n",
                      i, i == 0 ? "%a0" : "%s", ops[i], type, result);
        result_number(&text, i, result);
    }
    return sf_text_finish(&text);
}

sf_buf sf_text_transpose(int64_t side)
{
    sf_step_text text = {0};
    char type[TYPE];
    write_type2(type, side, side, "f32");
    sf_text_argument(&text, type);
    sf_buf_printf(&text.body,
                  "%%v0 = stablehlo.transpose %%a0, dims = [1, 0] : (tensor<%s>) -> tensor<%s>\n",
                  type, type);
    result_number(&text, 0, type);
    return sf_text_finish(&text);
}

sf_buf sf_text_border(int64_t side)
{
    sf_step_text text = {0};
    char type[TYPE], result[TYPE];
    write_type2(type, side, side, "f32");
    write_type2(result, side + 2, side + 2, "f32");
    sf_text_argument(&text, type);
    sf_buf_printf(
        &text.body,
        "%%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
        "%%v0 = stablehlo.pad %%a0, %%z, low = [1, 1], high = [1, 1], interior = [0, 0] : "
        "(tensor<%s>, tensor<f32>) -> tensor<%s>\n",
        type, result);
    result_number(&text, 0, result);
    return sf_text_finish(&text);
}

static void write_type4(char *out, int64_t a, int64_t b, int64_t c, int64_t d, const char *type)
{
    snprintf(out, TYPE, "%" PRId64 "x%" PRId64 "x%" PRId64 "x%" PRId64 "x%s", a, b, c, d, type);
}

/* The gradient of a kernel has images as its channels, and their gradients for a window. */
sf_buf sf_text_convolutions(const char *type, const sf_text_images *images, sf_text_kind kind,
                            int copies)
{
    static const char *const windows[] = {
        "pad = [[1, 1], [1, 1]]", "stride = [2, 2], pad = [[0, 1], [0, 1]]",
        "pad = [[1, 2], [1, 2]], lhs_dilate = [2, 2]", "pad = [[1, 1], [1, 1]]",
        "pad = [[0, 1], [0, 1]], rhs_dilate = [2, 2]"};
    enum { WINDOW = 3 };
    sf_step_text text = {0};
    char in[TYPE], kernel[TYPE], out[TYPE];
    bool gradient = kind == SF_TEXT_GRADIENT || kind == SF_TEXT_STRIDED;
    int64_t wide = kind == SF_TEXT_TRANSPOSED ? 2 * images->side : images->side;
    bool halves = kind == SF_TEXT_STRIDED || kind == SF_TEXT_SKIPPING;
    int64_t small = halves ? images->side / 2 : wide;
    write_type4(in, images->count, images->side, images->side, images->channels, type);
    write_type4(kernel, WINDOW, WINDOW, images->channels, images->features, type);
    write_type4(out, images->count, small, small, images->features, type);
    const char *right = gradient ? out : kernel, *result = gradient ? kernel : out;
    for (int i = 0; i < copies; i++) {
        int a = sf_text_argument(&text, in), b = sf_text_argument(&text, right);
        sf_buf_printf(&text.body,
                      "%%v%d = stablehlo.convolution(%%a%d, %%a%d) dim_numbers = %s, window = {%s} "
                      "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<%s>, "
                      "tensor<%s>) -> tensor<%s>\n",
                      i, a, b,
                      gradient ? "[f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f]"
                               : "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]",
                      windows[kind], in, right, result);
        result_number(&text, i, result);
    }
    return sf_text_finish(&text);
}

sf_buf sf_text_transposed(int64_t images, int64_t pixels, int64_t channels)
{
    sf_step_text text = {0};
    char type[TYPE], result[TYPE];
    snprintf(type, sizeof type, "%" PRId64 "x%" PRId64 "x%" PRId64 "xf32", images, pixels,
             channels);
    write_type2(result, images, channels, "f32");
    sf_text_argument(&text, type);
    sf_buf_printf(&text.body,
                  "%%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
                  "%%v0 = stablehlo.reduce(%%a0 init: %%z) applies stablehlo.add across dimensions "
                  "= [1] : (tensor<%s>, tensor<f32>) -> tensor<%s>\n",
                  type, result);
    result_number(&text, 0, result);
    return sf_text_finish(&text);
}

sf_buf sf_text_windows(int64_t images, int64_t side, int64_t channels)
{
    sf_step_text text = {0};
    char type[TYPE];
    write_type4(type, images, side, side, channels, "f32");
    sf_text_argument(&text, type);
    sf_buf_printf(
        &text.body,
        "%%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
        "%%v0 = \"stablehlo.reduce_window\"(%%a0, %%z) <{padding = dense<[[0, 0], [1, 1], "
        "[1, 1], [0, 0]]> : tensor<4x2xi64>, window_dimensions = array<i64: 1, 3, 3, "
        "1>, window_strides = array<i64: 1, 1, 1, 1>}> ({\n"
        "^bb0(%%x: tensor<f32>, %%y: tensor<f32>):\n"
        "%%m = stablehlo.maximum %%x, %%y : tensor<f32>\n"
        "stablehlo.return %%m : tensor<f32>\n}) : (tensor<%s>, tensor<f32>) -> "
        "tensor<%s>\n",
        type, type);
    result_number(&text, 0, type);
    return sf_text_finish(&text);
}
