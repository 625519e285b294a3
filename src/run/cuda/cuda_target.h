/* The target of the cuda engine. */
#ifndef SF_RUN_CUDA_CUDA_TARGET_H
#define SF_RUN_CUDA_CUDA_TARGET_H

#include "prog/program.h"
#include "prog/target.h"

/* The second where products of f32 are rounded to TF32. */
extern const sf_target sf_target_cuda, sf_target_cuda_tf32;

/* Of a runtime that has no kernel for attention. */
extern const sf_target sf_target_cuda_plain, sf_target_cuda_tf32_plain;

/* Bytes that libraries work in for the instructions of a program, one after the other. */
int64_t sf_cuda_workspace(const sf_program *program);

#endif
