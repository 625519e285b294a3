/* The cache: what was compiled, on disk between runs. It is in $XDG_CACHE_HOME/sheaf, or ~/.cache/sheaf,
 * and takes no more than $SHEAF_CACHE_MIB, or 512 MiB: what was not used for the longest time is removed, by whoever puts something
 * there. What is missing is made again. */
#ifndef SHEAF_CACHE_H
#define SHEAF_CACHE_H

#include <stdint.h>

#include "sheaf/output.h"
#include "sheaf/report.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Writes where it is, what is in it and how much it may take. `options` may be NULL. */
SF_API sf_status sf_cache_show(const sf_show_options *options, const sf_output *output,
                               sf_diag *diag);

/* Removes all of it, also what others are about to use, who make it again. Returns how many files there were. */
SF_API int64_t sf_cache_clear(void);

#ifdef __cplusplus
}
#endif

#endif
