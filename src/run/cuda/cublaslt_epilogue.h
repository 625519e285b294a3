/* What cuBLASLt does to a product on its way to memory, so that nothing has to read it there for that: adding a row to all rows, the
 * bias of a layer. In the program that is a DOT with a loop (prog/program.h). The library rounds once, a loop that follows rounds
 * the product first: where the library has no way, such a loop is run. */
#ifndef SF_RUN_CUDA_CUBLASLT_EPILOGUE_H
#define SF_RUN_CUDA_CUBLASLT_EPILOGUE_H

#include "prog/program.h"

/* Of a target: whether the loop of `inst`, with rows and columns as the product has them, can be that. */
bool sf_cuda_follows(const sf_inst *product, const sf_inst *inst, const sf_loop *loop);

/* Of a product with a loop: which operand is the row that is added; -1: the loop is none of these, or there is none. */
int sf_cuda_bias(const sf_inst *inst);

#endif
