#include "run/cuda/cuda_device.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/machine.h"
#include "run/cuda/cuda_env.h"

static bool is_emulated(void)
{
    return sf_cuda_device_library().length > 0;
}

/* The library stays loaded: so do the kernels that it compiled. */
static sf_status open_emulated(int which, sf_diag *diag, sf_device **out)
{
    sf_device_opening *opening = NULL;
    sf_str library = sf_cuda_device_library();
    char path[4096];
    snprintf(path, sizeof path, "%.*s", (int)library.length, library.at);
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle)
        *(void **)&opening = dlsym(handle, SF_DEVICE_OPENING);
    if (!opening)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "SHEAF_CUDA: %s", dlerror());
    return opening(which, diag, out);
}

sf_status sf_device_open(int which, sf_diag *diag, sf_device **out)
{
    SF_TRY(sf_cuda_check_asked(diag));
    return is_emulated() ? open_emulated(which, diag, out) : sf_device_open_gpu(which, diag, out);
}

const char *sf_device_name(void)
{
    return is_emulated() ? "kernels of a GPU, run by the host" : "a GPU";
}

bool sf_device_multiplies_fp8(void)
{
    enum { FIRST = 89 };
    const char *architecture = sf_cuda_asked_architecture();
    if (architecture)
        return strncmp(architecture, "sm_", 3) == 0 && atoi(architecture + 3) >= FIRST;
    return is_emulated() || sf_gpu_version() >= FIRST;
}

sf_status sf_device_memory(sf_diag *diag, int64_t *out)
{
    sf_device *device;
    SF_TRY(sf_device_open(0, diag, &device));
    *out = device->memory;
    device->table->close(device);
    return SF_OK;
}

/* The fastest of several: a copy has nothing to wait for. */
static sf_status time_copies(sf_device *d, char *there, char *here, int64_t bytes, sf_diag *diag,
                             double *out)
{
    enum { TIMES = 5 };
    *out = HUGE_VAL;
    for (int i = 0; i < TIMES; i++) {
        double began = sf_now();
        SF_TRY(d->table->move(d, SF_LANE_TO_HOST, here, there, bytes, diag));
        SF_TRY(d->table->wait_on(d, SF_LANE_TO_HOST, diag));
        *out = fmin(*out, sf_now() - began);
    }
    return SF_OK;
}

sf_status sf_device_copy_seconds(int64_t bytes, sf_diag *diag, double *out)
{
    sf_device *device;
    char *there = NULL, *here = NULL;
    SF_TRY(sf_device_open(0, diag, &device));
    sf_status status = device->table->alloc(device, bytes, diag, &there);
    if (status == SF_OK)
        status = device->table->pin(device, bytes, diag, &here);
    if (status == SF_OK)
        status = time_copies(device, there, here, bytes, diag, out);
    if (there)
        device->table->release(device, there);
    if (here)
        device->table->unpin(device, here);
    device->table->close(device);
    return status;
}

bool sf_device_has_gpu(void)
{
    bool has = sf_gpu_find(NULL) == SF_OK;
    return has;
}

bool sf_device_is_there(void)
{
    return is_emulated() || sf_device_has_gpu();
}
