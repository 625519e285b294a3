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

/* How the library does this DOT, with `biased` and a row that is added to all rows in place of its loop
 * (run/cuda/cublaslt_epilogue.h); NULL where it cannot: views that it has no layout for. */
sf_lt_plan *sf_lt_plan_new(const sf_lt *lt, const sf_inst *inst, bool biased);
void sf_lt_plan_free(sf_lt_plan *plan);

/* `parts`: the factors, the result, and the row. */
sf_status sf_lt_run(const sf_lt_plan *plan, char *const *parts, cu_stream stream, sf_diag *diag);

#endif
