/* Products by cuBLASLt. */
#ifndef SF_RUN_CUDA_CUBLASLT_H
#define SF_RUN_CUDA_CUBLASLT_H

#include "prog/program.h"
#include "run/cuda/cuda_libraries.h"

/* A handle, and memory to work in; both borrowed by plans. */
typedef struct sf_lt {
    const sf_cuda_products *library;
    const sf_cuda_driver *driver;
    uint64_t machine; /* says which GPU and which version of the library it is */
    void *handle;
    void *workspace;
    size_t workspace_bytes;
    bool tf32;
} sf_lt;

typedef struct sf_lt_plan sf_lt_plan;

/* What a product does beside itself. */
typedef enum sf_lt_more {
    SF_LT_ALONE,
    SF_LT_BIAS,  /* adds a row to all rows, in place of its loop (run/cuda/cublaslt_epilogue.h) */
    SF_LT_SUM_A, /* sums a factor over what it sums over (run/cuda/bias_gradient.h) */
    SF_LT_SUM_B,
} sf_lt_more;

/* How the library does this DOT; NULL where it cannot: views that it has no layout for. */
sf_lt_plan *sf_lt_plan_new(const sf_lt *lt, const sf_inst *inst, sf_lt_more more);
void sf_lt_plan_free(sf_lt_plan *plan);

/* `parts`: the factors, the result, and the row or the sums. */
sf_status sf_lt_run(const sf_lt_plan *plan, char *const *parts, cu_stream stream, sf_diag *diag);

#endif
