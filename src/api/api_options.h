/* Options as callers hand them in: structs whose first field is their size.
 *
 * A size of 0 says that the caller was compiled with these headers. Any other is the size of the struct that it was
 * compiled with: a program that is older than the library has fewer fields, and those that it does not know are zero,
 * which is the default of every field. A program that is newer has more; they must be zero, because we would not do
 * what they ask for.
 *
 * For this to hold a new field goes to the end of its struct, past the padding that was there before.
 */
#ifndef SF_API_API_OPTIONS_H
#define SF_API_API_OPTIONS_H

#include "base/diag.h"

/* Copies the options of a caller, or zeros for NULL, to `ours`, a struct of `size` bytes. SF_EUSAGE for options that
 * are from a newer header and say what we do not know. */
sf_status sf_options_take(const void *theirs, void *ours, size_t size, sf_diag *diag);

/* SF_EUSAGE for the first number that is negative or none. Such options say "as usual" by 0. */
typedef struct sf_option_number {
    const char *name;
    double value;
} sf_option_number;
sf_status sf_options_check(int count, const sf_option_number *numbers, sf_diag *diag);

/* The same for a list of {name, value}. */
#define SF_CHECK_OPTIONS(diag, ...)                                                                \
    SF_TRY(sf_options_check(                                                                       \
        (int)(sizeof(sf_option_number[]){__VA_ARGS__} / sizeof(sf_option_number)),                 \
        (const sf_option_number[]){__VA_ARGS__}, diag))

#endif
