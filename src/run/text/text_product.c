#include "run/text/text_product.h"

#include <inttypes.h>

#include "run/text/padded_product.h"
#include "run/text/text_conv.h"

enum { THREADS = 256 };

#define PUT(...) sf_buf_printf(&w->body, __VA_ARGS__)

/* An operand as a word of the type of the result. */
static void put_factor(sf_buf *out, sf_dtype dtype, sf_dtype to, int param, const char *at)
{
    bool real = sf_is_float(to) && !sf_is_inexact(dtype),
         complex = sf_is_complex(to) && !sf_is_complex(dtype);
    sf_buf_printf(out, "%s%sWLOAD(%s, p%d, %s)%s", complex ? "cplx_of(" : "",
                  real || (complex && !sf_is_float(dtype)) ? "(f64)" : "", sf_type_name(dtype),
                  param, at, complex ? ", 0)" : "");
}

void sf_put_product(sf_buf *out, sf_dtype a, sf_dtype b, sf_dtype to, const char *at_a,
                    const char *at_b)
{
    const char *word = sf_word_type(to);
    sf_buf_printf(out, "%s left = ", word);
    put_factor(out, a, to, 0, at_a);
    sf_buf_printf(out, ", right = ");
    put_factor(out, b, to, 1, at_b);
    if (sf_is_complex(to))
        sf_buf_puts(out, ";\nsum = z_add(sum, z_multiply(left, right));\n");
    else if (sf_is_float(to))
        sf_buf_puts(out, ";\nsum += left * right;\n");
    else
        sf_buf_puts(out, ";\nsum = add_s64(sum, mul_s64(left, right));\n");
}

/* Declares NAME0, ...: `at` as an index of these sizes, the last of which runs fastest. */
static void put_indices(sf_writer *w, const char *name, const char *from, int rank,
                        const int64_t *dims)
{
    PUT("s64 %srest = %s; (void)%srest;\n", name, from, name);
    for (int d = rank - 1; d >= 0; d--)
        PUT("s64 %s%d = %srest %% %" PRId64 "; %srest /= %" PRId64 ";\n", name, d, name, dims[d],
            name, dims[d]);
}

static void put_sum_start(sf_writer *w, sf_dtype to)
{
    PUT("%s sum = %s;\n", sf_word_type(to), sf_is_complex(to) ? "cplx_of(0, 0)" : "0");
}

static void begin(sf_writer *w, int64_t count)
{
    PUT("{\nfor (s64 at = BLOCK * THREADS + THREAD; at < %" PRId64 "; at += BLOCKS * THREADS) {\n",
        count);
}

static void add_three(sf_writer *w)
{
    sf_write_param(w, (sf_param){.kind = SF_PARAM_IN, .index = 0});
    sf_write_param(w, (sf_param){.kind = SF_PARAM_IN, .index = 1});
    sf_write_param(w, (sf_param){.kind = SF_PARAM_OUT, .index = 0});
}

static void write_dot(sf_writer *w, const sf_inst *inst)
{
    const sf_dot *dot = inst->dot;
    int64_t dims[SF_MAX_RANK + 2], count = dot->m * dot->n;
    for (int i = 0; i < dot->nbatch; i++) {
        dims[i] = dot->batch[i];
        count *= dims[i];
    }
    int row = dot->nbatch, column = dot->nbatch + 1;
    dims[row] = dot->m;
    dims[column] = dot->n;
    add_three(w);
    begin(w, count);
    put_indices(w, "i", "at", dot->nbatch + 2, dims);
    PUT("s64 a = i%d * (%" PRId64 "ll), b = i%d * (%" PRId64 "ll), c = i%d * (%" PRId64
        "ll) + i%d * (%" PRId64 "ll);\n",
        row, dot->a_row, column, dot->b_column, row, dot->c_row, column, dot->c_column);
    for (int i = 0; i < dot->nbatch; i++)
        PUT("a += i%d * (%" PRId64 "ll); b += i%d * (%" PRId64 "ll); c += i%d * (%" PRId64 "ll);\n",
            i, dot->a_batch[i], i, dot->b_batch[i], i, dot->c_batch[i]);
    sf_dtype to = inst->out[0].dtype;
    put_sum_start(w, to);
    PUT("for (s64 k = 0; k < %" PRId64 "; k++) {\n", dot->k);
    char at_a[64], at_b[64];
    snprintf(at_a, sizeof at_a, "a + k * (%" PRId64 "ll)", dot->a_column);
    snprintf(at_b, sizeof at_b, "b + k * (%" PRId64 "ll)", dot->b_row);
    sf_put_product(&w->body, inst->in[0].dtype, inst->in[1].dtype, to, at_a, at_b);
    PUT("}\nWSTORE(%s, p2, c, sum);\n}\n}\n", sf_type_name(to));
    sf_write_launch(w, sf_blocks_for(count, THREADS), THREADS, true);
}

void sf_write_conv(sf_writer *w, const sf_conv *g)
{
    int64_t dims[SF_MAX_RANK + 2] = {g->batch, g->features}, count = g->batch * g->features,
                               taps = 1;
    int64_t windows[SF_MAX_RANK];
    for (int d = 0; d < g->spatial; d++) {
        dims[2 + d] = g->space[d].out;
        count *= dims[2 + d];
        windows[d] = g->space[d].window;
        taps *= windows[d];
    }
    add_three(w);
    begin(w, count);
    put_indices(w, "i", "at", g->spatial + 2, dims);
    int64_t groups = g->feature_groups > 1 ? g->feature_groups : g->batch_groups;
    PUT("s64 group = i1 / %" PRId64 ";\n(void)group;\n",
        g->features / groups ? g->features / groups : 1);
    PUT("s64 c = i0 * (%" PRId64 "ll) + i1 * (%" PRId64 "ll);\n", g->out_batch, g->out_feature);
    PUT("s64 a = i0 * (%" PRId64 "ll), b = i1 * (%" PRId64 "ll);\n", g->lhs_batch, g->rhs_output);
    if (g->feature_groups > 1)
        PUT("a += group * (%" PRId64 "ll);\n", g->channels * g->lhs_feature);
    if (g->batch_groups > 1)
        PUT("a += group * (%" PRId64 "ll);\n", g->batch * g->lhs_batch);
    for (int d = 0; d < g->spatial; d++)
        PUT("c += i%d * (%" PRId64 "ll);\n", 2 + d, g->space[d].out_stride);
    put_sum_start(w, g->out_dtype);
    PUT("for (s64 n = 0; n < %" PRId64 "; n++) {\n", taps);
    put_indices(w, "w", "n", g->spatial, windows);
    PUT("s64 a_at = a, b_at = b;\nint inside = 1;\n");
    for (int d = 0; d < g->spatial; d++) {
        const sf_conv_dim *s = &g->space[d];
        PUT("s64 x%d = i%d * %" PRId64 " + w%d * %" PRId64 " - (%" PRId64
            "ll); inside = inside && x%d >= 0 && "
            "x%d %% %" PRId64 " == 0; x%d /= %" PRId64 "; inside = inside && x%d < %" PRId64 ";\n",
            d, 2 + d, s->stride, d, s->dilation, s->low, d, d, s->base, d, s->base, d, s->lhs);
        PUT("a_at += x%d * (%" PRId64 "ll); b_at += (", d, s->lhs_stride);
        if (s->reversed)
            PUT("%" PRId64 " - w%d", s->window - 1, d);
        else
            PUT("w%d", d);
        PUT(") * (%" PRId64 "ll);\n", s->rhs_stride);
    }
    PUT("if (!inside) continue;\nfor (s64 k = 0; k < %" PRId64 "; k++) {\n", g->channels);
    char at_a[64], at_b[64];
    snprintf(at_a, sizeof at_a, "a_at + k * (%" PRId64 "ll)", g->lhs_feature);
    snprintf(at_b, sizeof at_b, "b_at + k * (%" PRId64 "ll)", g->rhs_input);
    sf_put_product(&w->body, g->lhs_dtype, g->rhs_dtype, g->out_dtype, at_a, at_b);
    PUT("}\n}\nWSTORE(%s, p2, c, sum);\n}\n}\n", sf_type_name(g->out_dtype));
    sf_write_launch(w, sf_blocks_for(count, THREADS), THREADS, true);
}

void sf_write_product(sf_writer *w, const sf_inst *inst)
{
    if (inst->kind == SF_INST_DOT)
        write_dot(w, inst);
    else
        sf_write_conv(w, inst->conv);
}

void sf_write_library(sf_writer *w, const sf_inst *inst)
{
    sf_convolve convolve;
    sf_padded padded;
    w->code->product[0] = (sf_param){.kind = SF_PARAM_IN, .index = 0};
    w->code->product[1] = (sf_param){.kind = SF_PARAM_IN, .index = 1};
    w->code->product[2] = (sf_param){.kind = SF_PARAM_OUT, .index = 0};
    if (inst->kind == SF_INST_CONV && sf_convolve_of(inst->conv, &convolve) && !convolve.is_product)
        sf_write_convolve(w, &convolve);
    else if (inst->kind == SF_INST_DOT && sf_pad_product(inst, &padded))
        sf_write_padded(w, &padded);
}
