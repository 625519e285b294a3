/* A kernel for bind.c: layer norm over the last dimension, of x, bias and scale, in the order in which the step has them. Rows are
 * independent, so ranks may have some of them. */
#include <math.h>
#include <string.h>

#include <sheaf/plugin.h>

static int run(int nin, const sf_kernel_tensor *const *in, int nout,
               const sf_kernel_tensor *const *out)
{
    const sf_tensor_type *type = in[0]->type;
    if (nin != 3 || nout != 1 || strcmp(type->dtype, "f32") != 0 || type->rank < 1)
        return 1;
    int64_t n = type->dims[type->rank - 1];
    const float *x = in[0]->data, *bias = in[1]->data, *scale = in[2]->data;
    float *y = out[0]->data;
    for (int64_t row = 0; row < type->count / n; row++, x += n, y += n) {
        float sum = 0, squares = 0;
        for (int64_t i = 0; i < n; i++) {
            sum += x[i];
            squares += x[i] * x[i];
        }
        float mean = sum / (float)n, variance = squares / (float)n - mean * mean;
        float shrink = 1 / sqrtf(fmaxf(variance, 0) + 1e-6f);
        for (int64_t i = 0; i < n; i++)
            y[i] = (x[i] - mean) * shrink * scale[i] + bias[i];
    }
    return 0;
}

SF_API const sf_user_kernel *sheaf_kernel(void)
{
    static const sf_user_kernel kernel = {sizeof kernel, SF_PLUGIN_VERSION, "norm", 2, run};
    return &kernel;
}
