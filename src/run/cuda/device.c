#include "run/cuda/device.h"

#include <stdlib.h>
#include <string.h>

sf_status sf_device_open(sf_diag *diag, sf_device **out)
{
    const char *asked = getenv("SHEAF_CUDA");
    if (asked && *asked && strcmp(asked, "host") != 0)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "SHEAF_CUDA is host or nothing, not '%s'",
                       asked);
    return asked && *asked ? sf_device_open_host(diag, out) : sf_device_open_gpu(diag, out);
}

static bool asks_for_host(void)
{
    const char *asked = getenv("SHEAF_CUDA");
    return asked && *asked;
}

const char *sf_device_name(void)
{
    return asks_for_host() ? "kernels of a GPU, run by the host" : "a GPU";
}

sf_status sf_device_memory(sf_diag *diag, int64_t *out)
{
    sf_device *device;
    SF_TRY(sf_device_open(diag, &device));
    *out = device->memory;
    device->table->close(device);
    return SF_OK;
}

bool sf_device_has_gpu(void)
{
    sf_diag *unheard = sf_diag_new();
    bool has = sf_gpu_find(unheard) == SF_OK;
    sf_diag_free(unheard);
    return has;
}

bool sf_device_is_there(void)
{
    return asks_for_host() || sf_device_has_gpu();
}
