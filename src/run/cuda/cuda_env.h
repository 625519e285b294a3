/* SHEAF_CUDA in the environment: an architecture for which kernels are compiled, such as sm_80; the
 * path of a library in place of a GPU (it has a slash); or both, "PATH,sm_80". */
#ifndef SF_RUN_CUDA_CUDA_ENV_H
#define SF_RUN_CUDA_CUDA_ENV_H

#include "base/diag.h"
#include "base/str.h"

/* The path of the library; of length 0 where none is requested. */
sf_str sf_cuda_device_library(void);

/* The architecture, or NULL: that of the device. */
const char *sf_cuda_asked_architecture(void);

/* SF_EUSAGE where it is none of these. */
sf_status sf_cuda_check_asked(sf_diag *diag);

/* SHEAF_CUDA_CHECK=1: kernels check each access to memory (run/text/kernel_check.h). */
bool sf_cuda_wants_checks(void);

#endif
