/* Files: read whole, decompressed; written whole or not at all.
 *
 * Nothing here jumps (see mem.h) while it holds a file or a decompressor.
 */
#ifndef SF_BASE_FILE_H
#define SF_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/str.h"

/* Reads all of a file, a pipe or a device into the arena, with a zero byte after the end; "-" is
 * standard input. gzip (of several members too) and xz (concatenated too) are known by their first
 * bytes, whatever the name, and decompressed. More than `limit` bytes after decompression are
 * refused. 0 is the limit of texts: 1 GiB, or half of the memory that is left, if that is less.
 * SF_FILE_MEMORY is that of tensors: all that is left. sf_file_set_limit replaces both. By default,
 * a device gives 64 MiB at most, and a file that unpacks to more than that and to more than 900
 * times its size is refused.
 *
 * SF_EIO when the system cannot read it, SF_EINPUT when the compressed data is cut off or corrupt,
 * SF_ENOMEM past the limit or without memory, SF_EUNSUPPORTED for a compression that this build
 * lacks. On failure *out and the arena are as before. */
sf_status sf_file_read(const char *path, sf_arena *arena, size_t limit, sf_str *out, sf_diag *diag);
#define SF_FILE_MEMORY SIZE_MAX

/* Reads `size` bytes, fewer at the end only, or writes all of them, through interrupts; false: errno says why not. */
bool sf_read_fully(int fd, void *to, size_t size, size_t *got);
bool sf_write_fully(int fd, const void *from, size_t size);

/* Of the whole process, and for any thread to call; 0: as if nothing was said. */
void sf_file_set_limit(int64_t bytes);

/* Replaces the file by `size` bytes of data. The new content is written beside it, synced and
 * renamed over it, so at any time, also after a crash, the file is wholly the old one or wholly the
 * new one; on failure it is the old one and no temporary file is left. A symbolic link is followed,
 * the mode of the old file is kept. "-" is standard output; that and other files than regular ones
 * (a device, a pipe) are written directly. */
sf_status sf_file_write(const char *path, const void *data, size_t size, sf_diag *diag);

/* Whether sf_file_write could begin: with the failure that it would have. Changes nothing, and
 * leaves no file. */
sf_status sf_file_try(const char *path, sf_diag *diag);

/* Whether both names are of one file that exists. "-" is none. */
bool sf_file_is_same(const char *a, const char *b);

enum { SF_PATH_SIZE = 4096 };

/* The same in several writes. Holds no memory, but a file: the caller must commit or abort it,
 * after a jump too, so it belongs outside of the guard. A zeroed one is closed.
 *
 *     sf_file_writer writer;
 *     SF_TRY(sf_file_writer_open(&writer, path, diag));
 *     sf_file_writer_write(&writer, a, sizeof a, diag); // an error sticks: commit returns it
 *     sf_file_writer_write(&writer, b, sizeof b, diag);
 *     return sf_file_writer_commit(&writer, diag); */
typedef struct sf_file_writer {
    bool open;
    bool standard; /* `fd` is our standard output or error: not ours to close */
    int fd;
    sf_status status;          /* the first failure */
    char path[SF_PATH_SIZE];   /* for messages, and the file to replace: links are resolved */
    char beside[SF_PATH_SIZE]; /* the temporary file; empty when written directly */
} sf_file_writer;

sf_status sf_file_writer_open(sf_file_writer *writer, const char *path, sf_diag *diag);
sf_status sf_file_writer_write(sf_file_writer *writer, const void *data, size_t size,
                               sf_diag *diag);

/* Replaces the file by the written data, unless a write failed; closes the writer in any case. */
sf_status sf_file_writer_commit(sf_file_writer *writer, sf_diag *diag);

/* Leaves the old file as it was and closes the writer; nothing to do when it is closed. */
void sf_file_writer_abort(sf_file_writer *writer);

#endif
