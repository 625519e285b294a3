/* Where something was read from, so that who has it can find it again: in files that refer to other files.
 *
 * In the file that refers to it there is the way from that file, which stays when both are moved or copied together, and
 * the absolute path, which stays when the file alone is. What stands there now may be something else: the digest tells.
 */
#ifndef SF_BASE_REFERENCE_H
#define SF_BASE_REFERENCE_H

#include "base/json.h"

typedef struct sf_reference {
    const char *path; /* absolute, without links; NULL: it was no file */
    int64_t bytes;    /* of the text, decompressed */
    uint64_t digest;  /* of the text */
} sf_reference;

/* Of a text that was read from `path`; no file for NULL, "-" and what has no name. The path lives in the arena. */
sf_reference sf_reference_of(const char *path, sf_str text, sf_arena *arena);

/* Writes the value of a key of `file`: an object. `file` may be "-", which stands in the working directory. */
void sf_reference_put(const sf_reference *origin, const char *file, sf_json_writer *writer);

/* Finds what such a value, in `file`, is about: the file that is there, and the one with the digest if there are two of
 * them. Where there is none, the absolute path. Lives in the arena; NULL for a value that says nothing. */
const char *sf_reference_find(const sf_json *value, const char *file, sf_arena *arena);

/* `path`, as seen from the directory that `file` is in. */
const char *sf_path_beside(const char *file, const char *path, sf_arena *arena);

#endif
