#include "base/guard.h"

#include "base/mem.h"

sf_status sf_guarded(sf_status (*work)(void *context), void *context, sf_diag *diag)
{
    sf_guard guard;
    const int before = diag ? diag->count : 0;
    sf_guard_enter(&guard);
    if (setjmp(guard.target) != 0) {
        bool is_said = diag && diag->count > before && diag->newest == SF_ENOMEM;
        return is_said ? SF_ENOMEM : sf_fail(diag, SF_ENOMEM, SF_NOWHERE, "out of memory");
    }
    sf_status status = work(context);
    sf_guard_leave(&guard);
    return status;
}
