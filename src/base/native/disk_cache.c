#include "base/native/disk_cache.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

enum { OTHERS_WRITE = S_IWGRP | S_IWOTH };

/* A folder from which no stranger can take what is in it away, to put something else in its place. */
static bool holds_what_it_has(const char *folder)
{
    struct stat s;
    if (lstat(folder, &s) != 0 || !S_ISDIR(s.st_mode) || (s.st_uid != 0 && s.st_uid != geteuid()))
        return false;
    return !(s.st_mode & S_IWOTH) || (s.st_mode & S_ISVTX);
}

bool sf_folder_is_private(const char *path)
{
    struct stat s;
    char around[SF_PATH_SIZE];
    if (lstat(path, &s) != 0 || !S_ISDIR(s.st_mode) || s.st_uid != geteuid() ||
        (s.st_mode & OTHERS_WRITE) || snprintf(around, sizeof around, "%s", path) >= SF_PATH_SIZE)
        return false;
    for (char *slash = strrchr(around, '/'); slash && slash != around;
         slash = strrchr(around, '/')) {
        *slash = '\0';
        if (!holds_what_it_has(around))
            return false;
    }
    return holds_what_it_has("/");
}

bool sf_cache_folder(char *path, size_t size)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char folder[SF_PATH_SIZE], whole[SF_PATH_SIZE];
    bool said = cache && *cache == '/';
    if (!said && !(home && *home == '/'))
        return false;
    int length =
        snprintf(folder, sizeof folder, "%s%s", said ? cache : home, said ? "" : "/.cache");
    if (length < 0 || (size_t)length + sizeof "/sheaf" > sizeof folder)
        return false;
    mkdir(folder, 0700);
    strcat(folder, "/sheaf");
    mkdir(folder, 0700);
    if (!realpath(folder, whole) || snprintf(path, size, "%s", whole) >= (int)size)
        return false;
    return sf_folder_is_private(whole);
}

bool sf_cache_has(const char *path)
{
    struct stat s;
    if (lstat(path, &s) != 0 || !S_ISREG(s.st_mode) || s.st_uid != geteuid() ||
        (s.st_mode & OTHERS_WRITE))
        return false;
    utimensat(AT_FDCWD, path, NULL, AT_SYMLINK_NOFOLLOW);
    return true;
}
