#include "base/native/disk_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/mem.h"

enum { OTHERS_WRITE = S_IWGRP | S_IWOTH };

/* A folder from which no other user can rename entries away, to replace them. */
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

/* Ours, and no link that may lead to another's folder, or to one of ours that holds something else. */
static bool make_own(const char *folder)
{
    struct stat s;
    mkdir(folder, 0700);
    if (lstat(folder, &s) != 0 || !S_ISDIR(s.st_mode) || s.st_uid != geteuid() ||
        (s.st_mode & OTHERS_WRITE))
        return false;
    if (s.st_mode & (S_IRWXG | S_IRWXO))
        chmod(folder, 0700);
    return true;
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
    if (!make_own(folder) || !realpath(folder, whole) ||
        snprintf(path, size, "%s", whole) >= (int)size)
        return false;
    return sf_folder_is_private(whole);
}

bool sf_cache_path(const char *name, char *path, size_t size)
{
    char folder[SF_PATH_SIZE];
    return sf_cache_folder(folder, sizeof folder) &&
           snprintf(path, size, "%s/%s", folder, name) < (int)size;
}

int sf_workroom_open(const char *in, char *path, size_t size)
{
    char whole[SF_PATH_SIZE];
    if (!realpath(in, whole) || snprintf(path, size, "%s/compiling-XXXXXX", whole) >= (int)size ||
        !mkdtemp(path))
        return -1;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && sf_folder_is_private(path)) {
        flock(fd, LOCK_EX | LOCK_NB);
        return fd;
    }
    if (fd >= 0)
        close(fd);
    rmdir(path);
    return -1;
}

/* The seal after the bytes of a file. */
typedef struct seal {
    char magic[8];
    uint64_t size, digest[2];
} seal;

static seal seal_of(const char *path, const void *bytes, size_t size)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    seal s = {.magic = "sheaf\r\n\x1a", .size = size};
    for (uint64_t i = 0; i < 2; i++)
        s.digest[i] = sf_hash_bytes(sf_hash_bytes(i + 1, name, strlen(name)), bytes, size);
    return s;
}

static bool read_sealed(int fd, const char *path, void **bytes, size_t *size)
{
    struct stat s;
    if (fstat(fd, &s) != 0 || !S_ISREG(s.st_mode) || s.st_uid != geteuid() ||
        (s.st_mode & OTHERS_WRITE) || s.st_size < (off_t)sizeof(seal))
        return false;
    size_t whole = (size_t)s.st_size;
    char *at = sf_alloc_kept(whole);
    seal found, right;
    size_t got;
    if (at && sf_read_fully(fd, at, whole, &got) && got == whole) {
        *size = whole - sizeof found;
        memcpy(&found, at + *size, sizeof found);
        right = seal_of(path, at, *size);
        if (memcmp(&found, &right, sizeof found) == 0) {
            *bytes = at;
            return true;
        }
    }
    sf_free(at);
    return false;
}

/* What is no whole file is in the way of one. A folder with something in it becomes a leftover of a
 * killed process. */
static void clear_away(const char *path)
{
    char folder[SF_PATH_SIZE], other[SF_PATH_SIZE + 32];
    const char *slash = strrchr(path, '/');
    if (unlink(path) == 0 || rmdir(path) == 0 || !slash || (size_t)(slash - path) >= sizeof folder)
        return;
    snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
    snprintf(other, sizeof other, "%s/compiling-XXXXXX", folder);
    if (mkdtemp(other) && rename(path, other) != 0)
        rmdir(other);
}

bool sf_cache_read(const char *path, void **bytes, size_t *size)
{
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    bool there = fd >= 0 || errno == ELOOP;
    bool whole = fd >= 0 && read_sealed(fd, path, bytes, size);
    if (fd >= 0)
        close(fd);
    if (whole)
        utimensat(AT_FDCWD, path, NULL, AT_SYMLINK_NOFOLLOW);
    else if (there)
        clear_away(path);
    return whole;
}

static void sync_folder(const char *folder)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    fsync(fd);
    close(fd);
}

/* Some file systems have no sync; then there is nothing to wait for. */
static bool write_sealed(int fd, const char *path, const void *bytes, size_t size)
{
    seal s = seal_of(path, bytes, size);
    return sf_write_fully(fd, bytes, size) && sf_write_fully(fd, &s, sizeof s) &&
           (fsync(fd) == 0 || errno == EINVAL || errno == ENOTSUP);
}

bool sf_cache_write(const char *path, const void *bytes, size_t size, bool first)
{
    char folder[SF_PATH_SIZE], other[SF_PATH_SIZE + 16];
    const char *slash = strrchr(path, '/');
    if (!slash || (size_t)(slash - path) >= sizeof folder)
        return false;
    snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
    snprintf(other, sizeof other, "%s/" SF_CACHE_UNFINISHED "XXXXXX", folder);
    int fd = mkostemp(other, O_CLOEXEC);
    if (fd < 0)
        return false;
    bool written = write_sealed(fd, path, bytes, size);
    written = close(fd) == 0 && written;
    bool put = written && (first ? link(other, path) : rename(other, path)) == 0;
    if (!put || first)
        unlink(other);
    if (put) {
        sync_folder(folder);
        sf_cache_trim(sf_cache_limit());
    }
    return put;
}
