/* The cache of compiled code, on disk between runs. It is in $XDG_CACHE_HOME/sheaf, or
 * ~/.cache/sheaf, and takes at most $SHEAF_CACHE_MIB (default 512 MiB). Each write removes the
 * least recently used files above that limit. A missing file is compiled and written once more. */
#ifndef SHEAF_CACHE_H
#define SHEAF_CACHE_H

#include <stdint.h>

#include "sheaf/output.h"
#include "sheaf/report.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Writes the path of the cache, its files and its size limit. `options` may be NULL. */
SF_API sf_status sf_cache_show(const sf_show_options *options, const sf_output *output,
                               sf_diag *diag);

/* Removes all files, including files that other processes are about to use; these compile them once
 * more. Returns the number of files. */
SF_API int64_t sf_cache_clear(void);

#ifdef __cplusplus
}
#endif

#endif
