/* The guard of a public function: what runs out of memory below it comes back as a status. */
#ifndef SF_API_GUARD_H
#define SF_API_GUARD_H

#include "base/diag.h"
#include "base/threads.h"

/* Runs the work and returns its status. When memory runs out, what the work allocated is freed and
 * the status is SF_ENOMEM, with a message; what `context` points to is then as the work left it,
 * but pointers in it to memory that the work allocated are dead. */
sf_status sf_guarded(sf_status (*work)(void *context), void *context, sf_diag *diag);

/* The threads of an engine, which are opened outside of the guard because a jump cannot end them. For
 * sf_threads_free. */
sf_status sf_open_threads(int count, sf_diag *diag, sf_threads **out);

#endif
