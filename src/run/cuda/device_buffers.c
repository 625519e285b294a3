#include "run/cuda/device_buffers.h"

#include <string.h>

#include "base/mem.h"

sf_status sf_cuda_own_memory(cuda *c, int64_t bytes, sf_diag *diag, char **out)
{
    SF_TRY(table_of(c)->alloc(c->device, bytes, diag, out));
    SF_PUSH(&c->memory, c->owned, c->nowned, c->owned_capacity, *out);
    return SF_OK;
}

sf_status sf_cuda_own_space(cuda *c, sf_space_kind space, int64_t bytes, sf_diag *diag, char **out)
{
    if (space == SF_SPACE_DEVICE)
        return sf_cuda_own_memory(c, bytes, diag, out);
    SF_TRY(table_of(c)->pin(c->device, bytes, diag, out));
    memset(*out, 0, (size_t)bytes);
    SF_PUSH(&c->memory, c->kept, c->nkept, c->kept_capacity, *out);
    return SF_OK;
}

void sf_cuda_release_owned(cuda *c)
{
    for (size_t i = 0; i < c->nowned; i++)
        table_of(c)->release(c->device, c->owned[i]);
    for (size_t i = 0; i < c->nkept; i++)
        table_of(c)->unpin(c->device, c->kept[i]);
}
