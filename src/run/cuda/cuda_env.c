#include "run/cuda/cuda_env.h"

#include <stdlib.h>
#include <string.h>

static const char *setting(void)
{
    const char *value = getenv("SHEAF_CUDA");
    return value ? value : "";
}

sf_str sf_cuda_device_library(void)
{
    sf_str path = {setting(), strcspn(setting(), ",")};
    return memchr(path.at, '/', path.length) ? path : (sf_str){path.at, 0};
}

const char *sf_cuda_asked_architecture(void)
{
    const char *value = setting() + sf_cuda_device_library().length;
    value += *value == ',';
    return *value ? value : NULL;
}

sf_status sf_cuda_check_asked(sf_diag *diag)
{
    const char *architecture = sf_cuda_asked_architecture();
    if (!architecture || strncmp(architecture, "sm_", 3) == 0)
        return SF_OK;
    return sf_fail(
        diag, SF_EUSAGE, SF_NOWHERE,
        "SHEAF_CUDA is an architecture such as sm_80, the path of a library that stands for a "
        "GPU, or PATH,sm_80, not '%s'",
        setting());
}

bool sf_cuda_wants_checks(void)
{
    const char *value = getenv("SHEAF_CUDA_CHECK");
    return value && *value && strcmp(value, "0") != 0;
}
