/* Kernels of users, by the names that custom_call calls them by: one list for the process, which only grows. */
#ifndef SF_OP_USER_KERNEL_H
#define SF_OP_USER_KERNEL_H

#include "base/diag.h"
#include "sheaf/plugin.h"

/* SF_EUSAGE where another kernel has the name. */
sf_status sf_bound_add(const sf_user_kernel *kernel, sf_diag *diag);

/* NULL: there is none of that name. */
const sf_user_kernel *sf_bound_find(const char *name);

#endif
