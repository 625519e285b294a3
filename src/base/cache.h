/* Where what was compiled is kept between runs: $XDG_CACHE_HOME/sheaf, or ~/.cache/sheaf.
 *
 * What is found there is run, so it is used only where nobody else can put anything: the folder is the user's own and
 * no other may write to it, and the folders around it cannot be taken apart by others. */
#ifndef SF_BASE_CACHE_H
#define SF_BASE_CACHE_H

#include <stdbool.h>
#include <stddef.h>

/* The folder, made where it is missing; false where there is none, or others may write there. */
bool sf_cache_folder(char *path, size_t size);

/* Whether a folder, without links in its name, is the user's own, and nobody else can change what is in it. */
bool sf_folder_is_private(const char *path);

/* Whether a file of the folder is there, is the user's own, and could not be written by others. */
bool sf_cache_has(const char *path);

#endif
