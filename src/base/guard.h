/* The guard of a public function, or of a job on a thread: running out of memory in it becomes a
 * status. */
#ifndef SF_BASE_GUARD_H
#define SF_BASE_GUARD_H

#include "base/diag.h"

/* Runs the work and returns its status. When memory runs out, the work's allocations are freed and
 * the status is SF_ENOMEM, with a message, unless the work has already reported it; *context is
 * then as the work left it, but pointers in it to memory that the work allocated are dead. */
sf_status sf_guarded(sf_status (*work)(void *context), void *context, sf_diag *diag);

#endif
