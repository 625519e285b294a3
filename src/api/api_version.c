#include "base/file.h"
#include "run/cuda/cuda_device.h"
#include "sheaf/sheaf.h"

const char *sf_version(void)
{
    return SF_VERSION;
}

bool sf_has_gpu(void)
{
    return sf_device_has_gpu();
}

void sf_limit_input(int64_t bytes)
{
    sf_file_set_limit(bytes);
}
