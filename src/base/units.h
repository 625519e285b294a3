/* Numbers for people: three digits in a unit that fits, so that little is not 0 and much is not a row of digits. */
#ifndef SF_BASE_UNITS_H
#define SF_BASE_UNITS_H

#include <stdint.h>

/* A value, so that several can be arguments of one printf: sf_text_bytes(n).at */
typedef struct sf_text {
    char at[32];
} sf_text;

sf_text sf_text_count(int64_t value);           /* 12,345 */
sf_text sf_text_flops(double value);            /* 12.3 k, 1.50 G; counts of anything */
sf_text sf_text_bytes(double value);            /* 512 B, 12.1 KiB */
sf_text sf_text_seconds(double value);          /* 1.20 s, 12.3 ms, 850 us */
sf_text sf_text_share(double part, double all); /* 12.5%; "-" of nothing */

#endif
