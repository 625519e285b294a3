/* Runs a product or a convolution, with its epilogue if it has one. */
#ifndef SF_RUN_CPU_RUN_PRODUCT_H
#define SF_RUN_CPU_RUN_PRODUCT_H

#include "run/cpu/run_loop.h"

/* Bytes that a DOT or CONV works in, without those of its loop: a multiple of 64. */
int64_t sf_product_scratch(const sf_inst *inst, int threads);

/* `scratch`: sf_product_scratch bytes and, after them, sf_loop_scratch bytes for the loop; 64-byte
 * aligned. */
void sf_product_run(const sf_inst *inst, const struct sf_native *native, const sf_pointers *at,
                    char *scratch, sf_threads *threads);

#endif
