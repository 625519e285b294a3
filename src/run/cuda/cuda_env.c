#include "run/cuda/cuda_env.h"

#include <stdlib.h>
#include <string.h>

static const char *setting(void)
{
    const char *value = getenv("SHEAF_CUDA");
    return value ? value : "";
}

bool sf_cuda_asks_for_host(void)
{
    const char *value = setting();
    return strcmp(value, "host") == 0 || strncmp(value, "host,", 5) == 0;
}

const char *sf_cuda_asked_architecture(void)
{
    const char *value = setting();
    value = sf_cuda_asks_for_host() ? value + 4 + (value[4] == ',') : value;
    return *value ? value : NULL;
}

sf_status sf_cuda_check_asked(sf_diag *diag)
{
    const char *architecture = sf_cuda_asked_architecture();
    if (!architecture || strncmp(architecture, "sm_", 3) == 0)
        return SF_OK;
    return sf_fail(diag, SF_EUSAGE, SF_NOWHERE,
                   "SHEAF_CUDA is host, an architecture such as sm_80, or host,sm_80, not '%s'",
                   setting());
}
