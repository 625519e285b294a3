/* The cache between runs: compiled loops, kernels and choices, in $XDG_CACHE_HOME/sheaf, or
 * ~/.cache/sheaf.
 *
 * Its files are executed, so it is used only if no other user can write there: the folder is the
 * user's own, no link, no other may write to it, and others cannot rename the folders around it.
 * Others cannot read it either.
 *
 * A file ends in a digest of its name and its bytes, which is checked before its bytes are used:
 * files that a crash, a full disk or a failing one damaged are removed, and made once more. A file
 * is renamed into place when it is whole and on the disk.
 *
 * It takes at most $SHEAF_CACHE_MIB, or 512 MiB: each write removes the least recently used files.
 * Several processes may do so at the same time, and each may remove files that another is about to
 * read: that is then a miss. Files that a process has opened or loaded stay valid.
 *
 * No function jumps (base/mem.h), and each may fail: a cache that cannot be read or written is no
 * cache. */
#ifndef SF_BASE_NATIVE_DISK_CACHE_H
#define SF_BASE_NATIVE_DISK_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"

/* The folder, made where it is missing; false where there is none, or others may write there. */
bool sf_cache_folder(char *path, size_t size);

/* Whether a folder, without links in its name, is the user's own, and no other user can change its
 * content. */
bool sf_folder_is_private(const char *path);

/* The path of a file of the folder, by its name. */
bool sf_cache_path(const char *name, char *path, size_t size);

/* All of a file that is there, is the user's own, could not be written by others and is whole. It then counts as used now.
 * `*bytes` is for sf_free. */
bool sf_cache_read(const char *path, void **bytes, size_t *size);

/* Makes it the file, and trims the cache. With `first`, one that another process has put there stays, and the answer is false. */
bool sf_cache_write(const char *path, const void *bytes, size_t size, bool first);

/* Bytes that files of the folder may take together; the default where SHEAF_CACHE_MIB is no number of MiB, which
 * sf_cache_check refuses: SF_EUSAGE. */
int64_t sf_cache_limit(void);
sf_status sf_cache_check(sf_diag *diag);

/* A folder in another in which one process works, "compiling-XXXXXX": while the process lives, none
 * takes it for a leftover. `sf_workroom_open` returns a file descriptor to close when the folder is
 * gone; -1: none can be made, or others may write to it. */
int sf_workroom_open(const char *in, char *path, size_t size);

/* How names of files begin that are not finished. */
#define SF_CACHE_UNFINISHED ".new-"

/* Removes the least recently used files, until the others take `limit` bytes at most, and leftovers
 * of killed processes. After each write, it is called with sf_cache_limit(); 0 removes all. Returns
 * how many files are gone. */
int64_t sf_cache_trim(int64_t limit);

/* Files of the folder by the ends of their names, and how many bytes they take. */
typedef struct sf_cache_kind {
    const char *suffix, *what;
    int64_t files, bytes;
} sf_cache_kind;

enum { SF_CACHE_KINDS = 4 }; /* the last are all others */
void sf_cache_count(sf_cache_kind kinds[SF_CACHE_KINDS]);

#endif
