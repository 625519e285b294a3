/* What the cuda engine can do. */
#ifndef SF_RUN_CUDA_TARGET_H
#define SF_RUN_CUDA_TARGET_H

#include "prog/target.h"

/* The second where products of f32 are rounded to TF32. */
extern const sf_target sf_target_cuda, sf_target_cuda_tf32;

/* Bytes that the library of products works in. */
enum { SF_CUDA_WORKSPACE = 32 << 20 };

#endif
