/* Files mapped into memory, to be read.
 *
 * A mapping is an outside handle: the list of them belongs outside of the guard (see base/mem.h), and
 * its own memory outlives one.
 */
#ifndef SF_TRAIN_MAPPED_FILE_H
#define SF_TRAIN_MAPPED_FILE_H

#include "base/diag.h"
#include "base/str.h"

/* A zeroed one is empty. */
typedef struct sf_mappings {
    struct sf_mapping *newest;
} sf_mappings;

/* Maps a whole regular file; *out is valid until the list is closed. */
sf_status sf_mappings_add(sf_mappings *mappings, const char *path, sf_str *out, sf_diag *diag);

void sf_mappings_close(sf_mappings *mappings);

#endif
