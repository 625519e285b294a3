#include "run/cuda/device.h"

#include <stdlib.h>
#include <string.h>

/* SHEAF_CUDA, and whether it begins with "host". */
static const char *asked(bool *host)
{
    const char *value = getenv("SHEAF_CUDA");
    value = value ? value : "";
    *host = strcmp(value, "host") == 0 || strncmp(value, "host,", 5) == 0;
    return value;
}

const char *sf_device_architecture(void)
{
    bool host;
    const char *value = asked(&host);
    value = host ? value + 4 + (value[4] == ',') : value;
    return *value ? value : NULL;
}

sf_status sf_device_open(sf_diag *diag, sf_device **out)
{
    bool host;
    const char *value = asked(&host), *architecture = sf_device_architecture();
    if (architecture && strncmp(architecture, "sm_", 3) != 0)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE,
                       "SHEAF_CUDA is host, an architecture such as sm_80, or host,sm_80, not '%s'",
                       value);
    return host ? sf_device_open_host(diag, out) : sf_device_open_gpu(diag, out);
}

static bool asks_for_host(void)
{
    bool host;
    asked(&host);
    return host;
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
