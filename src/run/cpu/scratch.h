/* Scratch memory of the CPU engine: memory of its kernels beside that of the program. The engine
 * reserves this much, and predictions count it (prog/target.h). */
#ifndef SF_RUN_CPU_SCRATCH_H
#define SF_RUN_CPU_SCRATCH_H

#include "op/eval.h"
#include "prog/program.h"

typedef struct sf_cpu_scratch {
    int64_t kernels;   /* shared by all instructions, which run one after the other */
    sf_eval_need need; /* of the instructions that use the kernels of the op table */
} sf_cpu_scratch;

/* With bodies. */
sf_cpu_scratch sf_cpu_scratch_of(const sf_program *program, int threads);

/* The sum of it. */
int64_t sf_cpu_scratch_bytes(const sf_program *program, int threads);

/* The result of a CALL is written over this operand, which the kernels of the op table read to the end. */
bool sf_stands_in_place(const sf_inst *inst, uint32_t operand);

#endif
