/* Where what was compiled is kept between runs: $XDG_CACHE_HOME/sheaf, or ~/.cache/sheaf.
 *
 * What is found there is run, so it is used only where nobody else can put anything: the folder is the user's own and
 * no other may write to it, and the folders around it cannot be taken apart by others.
 *
 * It takes no more than $SHEAF_CACHE_MIB, or 512 MiB: who puts a file there has those removed that were not used for the longest
 * time. Several processes may do so at once, and each may remove what another is about to read: that is then as if it had never been
 * there, and is made again. What a process has opened or loaded stays with it.
 */
#ifndef SF_BASE_NATIVE_DISK_CACHE_H
#define SF_BASE_NATIVE_DISK_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The folder, made where it is missing; false where there is none, or others may write there. */
bool sf_cache_folder(char *path, size_t size);

/* Whether a folder, without links in its name, is the user's own, and nobody else can change what is in it. */
bool sf_folder_is_private(const char *path);

/* Whether a file of the folder is there, is the user's own, and could not be written by others. It then counts as used now. */
bool sf_cache_has(const char *path);

/* Bytes that files of the folder may take together. */
int64_t sf_cache_limit(void);

/* Removes the files that were not used for the longest time, until the others take `limit` bytes at most, and what compilations
 * that were broken off have left. Who puts a file into the folder calls it with sf_cache_limit(); 0 removes all. Returns
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
