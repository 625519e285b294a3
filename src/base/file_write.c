/* Writing. A file is replaced by renaming a finished one over it, because a rename is the only change
 * to a file that a crash cannot cut in half. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

enum { MOST_LINKS = 40, MOST_NAMES = 10000 };

static sf_status fail_writer(sf_file_writer *writer, const char *what, sf_diag *diag)
{
    sf_loc loc = {writer->path, 0, 0};
    writer->status = sf_fail(diag, sf_status_of_errno(), loc, "%s: %s", what, strerror(errno));
    return writer->status;
}

/* The length of the directory part, with its slash; 0 when there is none. */
static size_t directory_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

/* Makes path + directory, followed by `name`, the new path; false when it is too long. */
static bool replace_name(const char *path, const char *name, char *out)
{
    size_t directory = name[0] == '/' ? 0 : directory_length(path);
    size_t length = strlen(name);
    if (directory + length >= SF_PATH_SIZE)
        return false;
    memmove(out, path, directory);
    memcpy(out + directory, name, length + 1);
    return true;
}

/* Follows symbolic links by hand: realpath would not follow one that points to nothing yet. */
static sf_status resolve_links(sf_file_writer *writer, sf_diag *diag)
{
    for (int i = 0; i < MOST_LINKS; i++) {
        char name[SF_PATH_SIZE];
        ssize_t length = readlink(writer->path, name, sizeof name - 1);
        if (length < 0)
            return SF_OK; /* no link, or no file; opening it reports errors */
        name[length] = 0;
        if (!replace_name(writer->path, name, writer->path))
            break;
    }
    errno = ELOOP;
    return fail_writer(writer, "cannot write", diag);
}

/* /dev/stdout may lead to a regular file, which must be neither renamed over nor truncated: it has
 * earlier output. */
static bool is_standard(const struct stat *info, int *fd)
{
    for (*fd = STDOUT_FILENO; *fd <= STDERR_FILENO; ++*fd) {
        struct stat open_info;
        if (fstat(*fd, &open_info) == 0 && open_info.st_dev == info->st_dev &&
            open_info.st_ino == info->st_ino)
            return true;
    }
    return false;
}

/* A file without a name of its own, or no regular file, cannot be renamed over. */
static bool is_direct(const char *path, const struct stat *info)
{
    return sf_str_starts(sf_str_of(path), "/dev/fd/") || sf_str_starts(sf_str_of(path), "/proc/") ||
           !S_ISREG(info->st_mode);
}

static sf_status open_directly(sf_file_writer *writer, sf_diag *diag)
{
    writer->fd = open(writer->path, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_TRUNC);
    if (writer->fd < 0)
        return fail_writer(writer, "cannot open", diag);
    writer->open = true;
    return SF_OK;
}

/* The name is short, whatever the file is called, and new by O_EXCL; the umask applies as usual. */
static sf_status open_beside(sf_file_writer *writer, const struct stat *old, sf_diag *diag)
{
    for (int i = 0; i < MOST_NAMES; i++) {
        char name[64];
        snprintf(name, sizeof name, ".sheaf-%jd-%d", (intmax_t)getpid(), i);
        if (!replace_name(writer->path, name, writer->beside)) {
            errno = ENAMETOOLONG;
            break;
        }
        writer->fd = open(writer->beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (writer->fd >= 0 || errno != EEXIST)
            break;
    }
    if (writer->fd < 0)
        return fail_writer(writer, "cannot write", diag);
    writer->open = true;
    if (old && fchmod(writer->fd, old->st_mode & 0777) != 0) {
        fail_writer(writer, "cannot write", diag);
        sf_file_writer_abort(writer);
        return SF_EIO;
    }
    return SF_OK;
}

sf_status sf_file_writer_open(sf_file_writer *writer, const char *path, sf_diag *diag)
{
    bool standard = strcmp(path, "-") == 0;
    *writer = (sf_file_writer){.fd = -1};
    if (strlen(path) >= SF_PATH_SIZE) {
        sf_loc loc = {path, 0, 0};
        return sf_fail(diag, SF_EIO, loc, "cannot write: %s", strerror(ENAMETOOLONG));
    }
    strcpy(writer->path, standard ? "<stdout>" : path);
    struct stat info;
    bool exists = !standard && stat(path, &info) == 0;
    if (standard || (exists && is_standard(&info, &writer->fd))) {
        writer->standard = writer->open = true;
        writer->fd = standard ? STDOUT_FILENO : writer->fd;
        return SF_OK;
    }
    writer->fd = -1;
    if (exists && S_ISDIR(info.st_mode)) {
        errno = EISDIR;
        return fail_writer(writer, "cannot write", diag);
    }
    if (exists && is_direct(path, &info))
        return open_directly(writer, diag);
    SF_TRY(resolve_links(writer, diag));
    return open_beside(writer, exists ? &info : NULL, diag);
}

bool sf_write_fully(int fd, const void *from, size_t size)
{
    for (const char *at = from; size > 0;) {
        ssize_t count = write(fd, at, size);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return false;
        at += count;
        size -= (size_t)count;
    }
    return true;
}

sf_status sf_file_writer_write(sf_file_writer *writer, const void *data, size_t size, sf_diag *diag)
{
    SF_ASSERT(writer->open);
    if (writer->status == SF_OK && !sf_write_fully(writer->fd, data, size))
        return fail_writer(writer, "cannot write", diag);
    return writer->status;
}

/* Some file systems have no sync; then there is nothing to wait for. */
static bool file_synced(int fd)
{
    return fsync(fd) == 0 || errno == EINVAL || errno == ENOTSUP;
}

/* The rename itself lasts once the directory is on the disk. A directory that may be written but not
 * read cannot be synced. */
static sf_status sync_directory(sf_file_writer *writer, sf_diag *diag)
{
    char directory[SF_PATH_SIZE];
    replace_name(writer->beside, ".", directory);
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return SF_OK;
    bool good = file_synced(fd);
    int error = errno;
    close(fd);
    errno = error;
    return good ? SF_OK : fail_writer(writer, "written, but may not last", diag);
}

static sf_status finish_writer(sf_file_writer *writer, sf_diag *diag)
{
    if (writer->standard)
        return SF_OK;
    if (writer->beside[0] && !file_synced(writer->fd))
        return fail_writer(writer, "cannot write", diag);
    int fd = writer->fd;
    writer->fd = -1;
    if (close(fd) != 0 && errno != EINTR)
        return fail_writer(writer, "cannot write", diag);
    if (!writer->beside[0])
        return SF_OK;
    if (rename(writer->beside, writer->path) != 0)
        return fail_writer(writer, "cannot replace", diag);
    sf_status status = sync_directory(writer, diag);
    writer->beside[0] = 0;
    return status;
}

sf_status sf_file_writer_commit(sf_file_writer *writer, sf_diag *diag)
{
    SF_ASSERT(writer->open);
    sf_status status = writer->status;
    if (status == SF_OK)
        status = finish_writer(writer, diag);
    sf_file_writer_abort(writer); /* a finished write is not undone */
    return status;
}

void sf_file_writer_abort(sf_file_writer *writer)
{
    if (!writer->open)
        return;
    writer->open = false;
    if (writer->fd >= 0 && !writer->standard)
        close(writer->fd);
    if (writer->beside[0])
        unlink(writer->beside);
}

sf_status sf_file_write(const char *path, const void *data, size_t size, sf_diag *diag)
{
    sf_file_writer writer;
    SF_TRY(sf_file_writer_open(&writer, path, diag));
    sf_file_writer_write(&writer, data, size, diag);
    return sf_file_writer_commit(&writer, diag);
}

/* Opening a file that is written directly would truncate it, or end it for its reader. */
sf_status sf_file_try(const char *path, sf_diag *diag)
{
    struct stat info;
    sf_file_writer writer;
    if (strcmp(path, "-") != 0 && stat(path, &info) == 0 && !S_ISDIR(info.st_mode) &&
        is_direct(path, &info)) {
        if (access(path, W_OK) == 0)
            return SF_OK;
        return sf_fail(diag, sf_status_of_errno(), (sf_loc){.file = path}, "cannot open: %s",
                       strerror(errno));
    }
    SF_TRY(sf_file_writer_open(&writer, path, diag));
    sf_file_writer_abort(&writer);
    return SF_OK;
}

bool sf_file_is_same(const char *a, const char *b)
{
    struct stat x, y;
    return strcmp(a, "-") != 0 && strcmp(b, "-") != 0 && stat(a, &x) == 0 && stat(b, &y) == 0 &&
           x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}
