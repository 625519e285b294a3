#include "run/engine/program_constants.h"

#include <string.h>

sf_status sf_constants_check(const sf_program *p, sf_diag *diag)
{
    for (size_t i = 0; i < p->nbuffers; i++)
        if (p->buffers[i].home == SF_HOME_CONSTANT && !p->buffers[i].constant->data) {
            sf_fail(diag, SF_EINPUT, SF_NOWHERE,
                    "the elements of a constant were left out of the text");
            return sf_hint(diag, "print the step with its large constants");
        }
    for (size_t i = 0; i < p->ninsts; i++)
        for (uint32_t j = 0; j < sf_body_count(&p->insts[i]); j++)
            SF_TRY(sf_constants_check(p->insts[i].nest->bodies[j], diag));
    return SF_OK;
}

void sf_constant_expand(const sf_dense *dense, char *to, int64_t bytes)
{
    int64_t width = sf_dtype_get(dense->type->dtype)->bytes;
    for (int64_t i = 0; i < bytes / width; i++)
        memcpy(to + i * width, (const char *)dense->data + sf_dense_at(dense, i) * width,
               (size_t)width);
}
