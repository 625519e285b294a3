/* Memory that an engine has until it is closed: of its device, and of the host. */
#ifndef SF_RUN_CUDA_DEVICE_BUFFERS_H
#define SF_RUN_CUDA_DEVICE_BUFFERS_H

#include "run/cuda/cuda.h"

sf_status sf_cuda_own_memory(cuda *c, int64_t bytes, sf_diag *diag, char **out);

/* Of either space; that of the host is zeroed. */
sf_status sf_cuda_own_space(cuda *c, sf_space_kind space, int64_t bytes, sf_diag *diag, char **out);

void sf_cuda_release_owned(cuda *c);

#endif
