#include "op/user_kernel.h"

#include <stdatomic.h>
#include <string.h>

#include "base/boundary.h"

/* Written to its place first, then counted: readers need no lock. */
enum { MOST_KERNELS = 1000 };
static const sf_user_kernel *kernels[MOST_KERNELS];
static atomic_int count;
static atomic_flag adding = ATOMIC_FLAG_INIT;

const sf_user_kernel *sf_bound_find(const char *name)
{
    for (int i = 0; i < atomic_load(&count); i++)
        if (strcmp(kernels[i]->name, name) == 0)
            return kernels[i];
    return NULL;
}

static sf_status add(const sf_user_kernel *kernel, sf_diag *diag)
{
    const sf_user_kernel *known = sf_bound_find(kernel->name);
    if (known == kernel)
        return SF_OK;
    if (known)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "another kernel is called \"%s\"",
                       kernel->name);
    if (atomic_load(&count) == MOST_KERNELS)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "there are more than %d kernels", MOST_KERNELS);
    kernels[atomic_load(&count)] = kernel;
    atomic_fetch_add(&count, 1);
    return SF_OK;
}

sf_status sf_bound_add(const sf_user_kernel *kernel, sf_diag *diag)
{
    SF_TRY(SF_CHECK_SIZE(sf_user_kernel, kernel, diag));
    if (kernel->size < sizeof *kernel || kernel->version != SF_PLUGIN_VERSION || !kernel->name ||
        !kernel->run)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE,
                       "a kernel is of version %d, and has a name and a function",
                       SF_PLUGIN_VERSION);
    while (atomic_flag_test_and_set(&adding))
        ; /* rarely, and shortly */
    sf_status status = add(kernel, diag);
    atomic_flag_clear(&adding);
    return status;
}
