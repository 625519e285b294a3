#include "run/gemm/blas.h"

#if SF_HAVE_BLAS

#include <limits.h>
#include <pthread.h>
#include <stdio.h>

/* Declared here, as cblas.h of the libraries differ in where they are; int is their usual integer. */
enum { ROW_MAJOR = 101, STRAIGHT = 111, TRANSPOSED = 112 };
void cblas_sgemm(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                 const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);
void cblas_dgemm(int order, int transpose_a, int transpose_b, int m, int n, int k, double alpha,
                 const double *a, int lda, const double *b, int ldb, double beta, double *c,
                 int ldc);

/* Optional functions of the libraries; a missing one is NULL. */
#define MAYBE __attribute__((weak))
MAYBE void openblas_set_num_threads(int count);
MAYBE char *openblas_get_config(void);
MAYBE void bli_thread_set_num_threads(int64_t count);
MAYBE const char *bli_info_get_version_str(void);

static char name[64];

/* OpenBLAS keeps one number for the process, BLIS one for the process besides those of threads. */
static void set_up_library(void)
{
    if (openblas_set_num_threads)
        openblas_set_num_threads(1);
    if (bli_thread_set_num_threads)
        bli_thread_set_num_threads(1);
    char version[32] = "";
    if (openblas_get_config)
        sscanf(openblas_get_config(), "OpenBLAS %31s", version);
    else if (bli_info_get_version_str)
        snprintf(version, sizeof version, "%s", bli_info_get_version_str());
    snprintf(name, sizeof name, "%s%s%s",
             openblas_get_config        ? "OpenBLAS"
             : bli_info_get_version_str ? "BLIS"
                                        : "CBLAS",
             version[0] ? " " : "", version);
}

const char *sf_blas_name(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, set_up_library);
    return name;
}

/* A matrix whose rows, or columns, lie side by side and do not overlap. */
static bool blas_takes(const sf_matrix *x, int64_t rows, int64_t columns)
{
    if (x->column == 1)
        return x->row >= columns && x->row >= 1 && x->row <= INT_MAX;
    return x->row == 1 && x->column >= rows && x->column <= INT_MAX;
}

bool sf_blas_can(const sf_gemm *g)
{
    sf_dtype dtype = g->c.dtype;
    return (dtype == SF_F32 || dtype == SF_F64) && g->a.dtype == dtype && g->b.dtype == dtype &&
           g->m <= INT_MAX && g->n <= INT_MAX && g->k <= INT_MAX && g->k > 0 &&
           blas_takes(&g->a, g->m, g->k) && blas_takes(&g->b, g->k, g->n) && g->c.column == 1 &&
           blas_takes(&g->c, g->m, g->n);
}

void sf_blas_run(const sf_gemm *g, int64_t batch, int64_t i, int64_t m, int64_t j, int64_t n)
{
    sf_blas_name();
    int trans_a = g->a.column == 1 ? STRAIGHT : TRANSPOSED;
    int trans_b = g->b.column == 1 ? STRAIGHT : TRANSPOSED;
    int lda = (int)(g->a.column == 1 ? g->a.row : g->a.column);
    int ldb = (int)(g->b.column == 1 ? g->b.row : g->b.column);
    int ldc = (int)g->c.row, k = (int)g->k;
    int64_t a = batch * g->a.batch + i * g->a.row, b = batch * g->b.batch + j * g->b.column;
    int64_t c = batch * g->c.batch + i * g->c.row + j;
    if (g->c.dtype == SF_F64)
        cblas_dgemm(ROW_MAJOR, trans_a, trans_b, (int)m, (int)n, k, 1,
                    (const double *)g->a.data + a, lda, (const double *)g->b.data + b, ldb,
                    g->accumulate, (double *)g->c.data + c, ldc);
    else
        cblas_sgemm(ROW_MAJOR, trans_a, trans_b, (int)m, (int)n, k, 1, (const float *)g->a.data + a,
                    lda, (const float *)g->b.data + b, ldb, (float)g->accumulate,
                    (float *)g->c.data + c, ldc);
}

#else

bool sf_blas_can(const sf_gemm *gemm)
{
    (void)gemm;
    return false;
}

void sf_blas_run(const sf_gemm *gemm, int64_t batch, int64_t i, int64_t m, int64_t j, int64_t n)
{
    (void)gemm, (void)batch, (void)i, (void)m, (void)j, (void)n;
}

const char *sf_blas_name(void)
{
    return NULL;
}

#endif
