/* What the cuda engine can do. */
#ifndef SF_RUN_CUDA_TARGET_H
#define SF_RUN_CUDA_TARGET_H

#include "prog/target.h"

extern const sf_target sf_target_cuda;

#endif
