/* Products with sums of a factor beside them, where the host stands for a GPU: what its library would do. */
#include "base/mem.h"
#include "emulator/emulator.h"
#include "ir/dtype.h"

/* A matrix, row by row, in double. */
static double *read_matrix(sf_dtype dtype, const char *data, int64_t rows, int64_t columns,
                           int64_t row, int64_t column)
{
    double *all = sf_alloc((size_t)(rows * columns + 1) * sizeof *all);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            all[i * columns + j] = sf_load_f64(dtype, data, i * row + j * column);
    return all;
}

static void multiply(const sf_inst *inst, const double *a, const double *b, char *out)
{
    const sf_dot *d = inst->dot;
    double *sums = sf_alloc((size_t)d->n * sizeof *sums);
    for (int64_t i = 0; i < d->m; i++) {
        for (int64_t j = 0; j < d->n; j++)
            sums[j] = 0;
        for (int64_t k = 0; k < d->k; k++)
            for (int64_t j = 0; j < d->n; j++)
                sums[j] += a[i * d->k + k] * b[k * d->n + j];
        for (int64_t j = 0; j < d->n; j++)
            sf_store_f64(inst->out[0].dtype, out, i * d->c_row + j * d->c_column, sums[j]);
    }
    sf_free(sums);
}

void sf_host_product(const sf_inst *inst, int factor, char *const *parts)
{
    const sf_dot *d = inst->dot;
    double *a = read_matrix(inst->in[0].dtype, parts[0], d->m, d->k, d->a_row, d->a_column);
    double *b = read_matrix(inst->in[1].dtype, parts[1], d->k, d->n, d->b_row, d->b_column);
    multiply(inst, a, b, parts[2]);
    for (int64_t i = 0; i < (factor == 0 ? d->m : d->n); i++) {
        double sum = 0;
        for (int64_t k = 0; k < d->k; k++)
            sum += factor == 0 ? a[i * d->k + k] : b[k * d->n + i];
        sf_store_f64(inst->out[0].dtype, parts[3], i, sum);
    }
    sf_free(a);
    sf_free(b);
}
