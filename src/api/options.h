/* Options as callers hand them in: structs whose first field is their size.
 *
 * A size of 0 says that the caller was compiled with these headers. Any other is the size of the struct that it was
 * compiled with: a program that is older than the library has fewer fields, and those that it does not know are zero,
 * which is the default of every field. A program that is newer has more; they must be zero, because we would not do
 * what they ask for.
 *
 * For this to hold a new field goes to the end of its struct, past the padding that was there before.
 */
#ifndef SF_API_OPTIONS_H
#define SF_API_OPTIONS_H

#include "base/diag.h"

/* Copies the options of a caller, or zeros for NULL, to `ours`, a struct of `size` bytes. SF_EUSAGE for options that
 * are from a newer header and say what we do not know. */
sf_status sf_options_take(const void *theirs, void *ours, size_t size, sf_diag *diag);

#endif
