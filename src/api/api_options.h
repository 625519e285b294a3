/* Numbers in options. */
#ifndef SF_API_API_OPTIONS_H
#define SF_API_API_OPTIONS_H

#include "base/boundary.h"

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
