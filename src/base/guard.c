#include "base/guard.h"

#include "base/mem.h"

sf_status sf_guarded(sf_status (*work)(void *context), void *context, sf_diag *diag)
{
    sf_guard guard;
    sf_guard_enter(&guard);
    if (setjmp(guard.target) != 0)
        return sf_fail(diag, SF_ENOMEM, SF_NOWHERE, "out of memory");
    sf_status status = work(context);
    sf_guard_leave(&guard);
    return status;
}
