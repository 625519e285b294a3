/* What SHEAF_CUDA in the environment asks for: "host", an architecture such as sm_80, or "host,sm_80". */
#ifndef SF_RUN_CUDA_CUDA_ENV_H
#define SF_RUN_CUDA_CUDA_ENV_H

#include <stdbool.h>

#include "base/diag.h"

/* Kernels are run by the host. */
bool sf_cuda_asks_for_host(void);

/* What kernels are compiled for, or NULL: what the device is. */
const char *sf_cuda_asked_architecture(void);

/* SF_EUSAGE where it is none of these. */
sf_status sf_cuda_check_asked(sf_diag *diag);

#endif
