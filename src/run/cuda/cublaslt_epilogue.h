/* Epilogues of cuBLASLt, which save a pass over memory: adding a row to all rows, the bias of a
 * layer. In the program that is a DOT with a loop (prog/program.h). The library rounds once, a
 * separate loop rounds the product first: if the library has no such epilogue, the loop is run. */
#ifndef SF_RUN_CUDA_CUBLASLT_EPILOGUE_H
#define SF_RUN_CUDA_CUBLASLT_EPILOGUE_H

#include "prog/program.h"

/* Of a target: whether the loop of `inst`, with rows and columns as the product has them, can be that. */
bool sf_cuda_follows(const sf_inst *product, const sf_inst *inst, const sf_loop *loop);

/* Of a product with a loop: which operand is the row that is added; -1: the loop is none of these, or there is none. */
int sf_cuda_bias(const sf_inst *inst);

#endif
