/* References from files to other files, with which a reader can find them later.
 *
 * The referring file has the relative path, which stays valid when both are moved or copied
 * together, and the absolute path, which stays valid when it alone is. The file there may have
 * changed: the digest shows that. */
#ifndef SF_BASE_REFERENCE_H
#define SF_BASE_REFERENCE_H

#include "base/json.h"

typedef struct sf_reference {
    const char *path; /* absolute, without links; NULL: it was no file */
    int64_t bytes;    /* of the text, decompressed */
    uint64_t digest;  /* of the text */
} sf_reference;

/* Of a text that was read from `path`; no file for NULL, "-" and paths without a name. The path
 * lives in the arena. */
sf_reference sf_reference_of(const char *path, sf_str text, sf_arena *arena);

/* Writes the value of a key of `file`: an object. `file` may be "-", whose paths are relative to
 * the working directory. */
void sf_reference_put(const sf_reference *origin, const char *file, sf_json_writer *writer);

/* Finds the file of such a value, in `file`: the one that exists, and of two the one with the
 * digest. If there is none, the absolute path. Lives in the arena; NULL for a value without a
 * path. */
const char *sf_reference_find(const sf_json *value, const char *file, sf_arena *arena);

/* `path`, as seen from the directory that `file` is in. */
const char *sf_path_beside(const char *file, const char *path, sf_arena *arena);

#endif
