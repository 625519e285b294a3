/* A convolution over a dilated input, as the gradient of one with strides is, multiplies mostly by
 * zeros. Of the windows that start at x = phase + base * n, each has an element only at w = w0, w0
 * + base, ...; so all windows of one phase are a small convolution without zeros between. */
#include "run/conv/conv_as_gemm.h"

static bool is_cut(const sf_conv_dim *dim)
{
    return dim->base > 1 && dim->stride == 1 && dim->dilation == 1 && dim->out > 0;
}

static int64_t phase_count(const sf_conv_dim *dim)
{
    return !is_cut(dim) ? 1 : dim->base < dim->out ? dim->base : dim->out;
}

static int64_t positive_rest(int64_t a, int64_t b)
{
    return (a % b + b) % b;
}

/* Makes a dimension that of one phase; gives the offsets of its first elements. */
static void cut_phase(sf_conv_dim *dim, int64_t phase, int64_t *rhs, int64_t *out)
{
    int64_t base = dim->base, w0 = positive_rest(dim->low - phase, base);
    int64_t count = dim->window > w0 ? (dim->window - 1 - w0) / base + 1 : 0;
    int64_t first = dim->reversed ? dim->window - 1 - w0 - base * (count - 1) : w0;
    *rhs += count ? first * dim->rhs_stride : 0;
    *out += phase * dim->out_stride;
    dim->low = (dim->low - phase - w0) / base;
    dim->out = (dim->out - 1 - phase) / base + 1;
    dim->window = count;
    dim->base = 1;
    dim->rhs_stride *= base;
    dim->out_stride *= base;
}

bool sf_conv_phase(const sf_conv_job *whole, int64_t number, sf_conv_job *out)
{
    int64_t rhs = 0, result = 0;
    *out = *whole;
    for (int d = 0; d < whole->g.spatial; d++) {
        int64_t count = phase_count(&whole->g.space[d]);
        if (is_cut(&whole->g.space[d]))
            cut_phase(&out->g.space[d], number % count, &rhs, &result);
        number /= count;
    }
    /* A question about scratch may come without data. */
    if (whole->rhs)
        out->rhs = (const char *)whole->rhs + rhs * sf_dtype_get(whole->g.rhs_dtype)->bytes;
    if (whole->out)
        out->out = (char *)whole->out + result * sf_dtype_get(whole->g.out_dtype)->bytes;
    return number == 0;
}
