/* Reading.
 *
 *   plain file       fd ──────────────────────> arena
 *   pipe             fd ──────────> blocks ───> arena
 *   gzip, xz         fd ─> inflate > blocks ───> arena
 *
 * Content of unknown length is read into blocks of growing size; they are copied once, when the
 * length is known and the file is closed, and each is freed as it is copied: no byte is in memory
 * twice. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef SF_HAVE_ZLIB
#include <zlib.h>
#endif
#ifdef SF_HAVE_LZMA
#include <lzma.h>
#endif

#include "base/machine.h"
#include "base/mem.h"

enum { INPUT_BYTES = 1 << 16, FIRST_PIECE = 1 << 16, LARGEST_PIECE = 1 << 26, MAGIC_BYTES = 6 };

/* Texts compress ten to forty times, tables of similar numbers up to 400 times, and no known one
 * needs a tenth of this. Data with a larger ratio, past the first bytes, is malicious: zeros give
 * 1030 with the weakest compressor. */
enum { TEXT_BYTES = 1 << 30, MOST_RATIO = 900, MODEST_BYTES = 1 << 26 };

static _Atomic int64_t said_limit; /* 0: nothing was said */

struct piece {
    struct piece *next;
    size_t length, capacity;
    char data[];
};

struct source {
    int fd;
    sf_loc loc;
    sf_diag *diag;
    size_t limit;  /* SIZE_MAX - 1 at most */
    bool careful;  /* the user set no limit */
    size_t packed; /* compressed bytes read */
    size_t total;  /* bytes in the blocks */
    struct piece *first, *last;
    bool is_packed;
    size_t head_length; /* bytes in `input` that were read to look for a magic number */
    unsigned char input[INPUT_BYTES];
};

static sf_status fail_source(const struct source *source, const char *what)
{
    return sf_fail(source->diag, sf_status_of_errno(), source->loc, "%s: %s", what,
                   strerror(errno));
}

static sf_status fail_source_memory(const struct source *source)
{
    sf_fail(source->diag, SF_ENOMEM, source->loc, "no memory left to read it");
    return SF_ENOMEM;
}

static sf_status fail_limit(const struct source *source)
{
    sf_fail(source->diag, SF_ENOMEM, source->loc, "larger than the limit of %zu byte%s",
            source->limit, sf_plural(source->limit));
    sf_hint(source->diag, "--max-input SIZE raises it");
    return SF_ENOMEM;
}

static sf_status fail_ratio(const struct source *source)
{
    sf_fail(source->diag, SF_ENOMEM, source->loc,
            "unpacks to more than %d times its size: %zu MiB came of %zu KiB", MOST_RATIO,
            source->total >> 20, source->packed >> 10);
    sf_hint(source->diag, "if it is meant to, say with --max-input how much may come of it");
    return SF_ENOMEM;
}

void sf_file_set_limit(int64_t bytes)
{
    atomic_store(&said_limit, bytes > 0 ? bytes : 0);
}

/* The limit of a source, from the caller's. */
static void set_limits(struct source *source, size_t limit)
{
    int64_t said = atomic_load(&said_limit), memory = said > 0 ? 0 : sf_machine_memory();
    size_t most = said > 0 ? (size_t)said : memory > 0 ? (size_t)memory : SIZE_MAX;
    source->careful = said == 0;
    if (limit == 0 && said == 0)
        limit = most / 2 < TEXT_BYTES ? most / 2 : TEXT_BYTES;
    else if (limit == 0 || limit == SF_FILE_MEMORY)
        limit = most;
    source->limit = limit < SIZE_MAX ? limit : SIZE_MAX - 1;
}

bool sf_read_fully(int fd, void *to, size_t size, size_t *got)
{
    *got = 0;
    while (*got < size) {
        ssize_t count = read(fd, (char *)to + *got, size - *got);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return false;
        if (count == 0)
            break;
        *got += (size_t)count;
    }
    return true;
}

static sf_status read_full(struct source *source, void *to, size_t size, size_t *got)
{
    return sf_read_fully(source->fd, to, size, got) ? SF_OK : fail_source(source, "cannot read");
}

/* Memory for at least one byte more at the end of the last block, but one past the limit at
 * most. */
static sf_status make_room_for_text(struct source *source, char **room, size_t *size)
{
    struct piece *last = source->last;
    if (!last || last->length == last->capacity) {
        size_t capacity = last ? last->capacity * 2 : FIRST_PIECE;
        if (capacity > LARGEST_PIECE)
            capacity = LARGEST_PIECE;
        struct piece *piece = sf_alloc_try(sizeof *piece + capacity);
        if (!piece)
            return fail_source_memory(source);
        piece->capacity = capacity;
        if (last)
            last->next = piece;
        else
            source->first = piece;
        source->last = last = piece;
    }
    size_t left = source->limit + 1 - source->total;
    *room = last->data + last->length;
    *size = last->capacity - last->length;
    if (*size > left)
        *size = left;
    return SF_OK;
}

static sf_status take_room(struct source *source, size_t used)
{
    source->last->length += used;
    source->total += used;
    if (source->total > source->limit)
        return fail_limit(source);
    bool too_dense = source->careful && source->packed > 0 && source->total > MODEST_BYTES &&
                     source->total / MOST_RATIO > source->packed;
    return too_dense ? fail_ratio(source) : SF_OK;
}

static sf_status read_pieces(struct source *source)
{
    size_t used = 0;
    while (used < source->head_length) {
        char *room;
        size_t size;
        SF_TRY(make_room_for_text(source, &room, &size));
        if (size > source->head_length - used)
            size = source->head_length - used;
        memcpy(room, source->input + used, size);
        used += size;
        SF_TRY(take_room(source, size));
    }
    for (;;) {
        char *room;
        size_t size, got;
        SF_TRY(make_room_for_text(source, &room, &size));
        SF_TRY(read_full(source, room, size, &got));
        if (got == 0)
            return SF_OK;
        SF_TRY(take_room(source, got));
    }
}

#if !defined(SF_HAVE_ZLIB) || !defined(SF_HAVE_LZMA)
static sf_status fail_missing_file(const struct source *source, const char *format,
                                   const char *library)
{
    sf_fail(source->diag, SF_EUNSUPPORTED, source->loc,
            "compressed with %s, which this build cannot read", format);
    sf_hint(source->diag, "decompress it first, or rebuild with %s", library);
    return SF_EUNSUPPORTED;
}
#endif

#if defined(SF_HAVE_ZLIB) || defined(SF_HAVE_LZMA)
/* The next bytes of compressed input: those that were read already, then from the file. */
static sf_status refill_source(struct source *source, size_t *got)
{
    if (source->head_length > 0) {
        *got = source->head_length;
        source->head_length = 0;
        source->packed += *got;
        return SF_OK;
    }
    SF_TRY(read_full(source, source->input, INPUT_BYTES, got));
    source->packed += *got;
    return SF_OK;
}

static sf_status fail_stream(const struct source *source, const char *format, const char *why)
{
    return sf_fail(source->diag, SF_EINPUT, source->loc, "the %s data is %s", format, why);
}
#endif

#ifdef SF_HAVE_ZLIB
static void *zlib_alloc(void *unused, unsigned count, unsigned size)
{
    (void)unused;
    return sf_alloc_try((size_t)count * size);
}

static void zlib_free(void *unused, void *memory)
{
    (void)unused;
    sf_free(memory);
}

static sf_status inflate_members(struct source *source, z_stream *stream)
{
    bool member_ended = false;
    for (;;) {
        if (stream->avail_in == 0) {
            size_t got;
            SF_TRY(refill_source(source, &got));
            if (got == 0)
                return member_ended ? SF_OK : fail_stream(source, "gzip", "cut off");
            stream->next_in = source->input;
            stream->avail_in = (unsigned)got;
        }
        if (member_ended && inflateReset(stream) != Z_OK)
            return fail_stream(source, "gzip", "corrupt");
        char *room;
        size_t size;
        SF_TRY(make_room_for_text(source, &room, &size));
        stream->next_out = (unsigned char *)room;
        stream->avail_out = (unsigned)size;
        int result = inflate(stream, Z_NO_FLUSH);
        SF_TRY(take_room(source, size - stream->avail_out));
        if (result == Z_MEM_ERROR)
            return fail_source_memory(source);
        if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
            return fail_stream(source, "gzip", "corrupt");
        member_ended = result == Z_STREAM_END;
    }
}

static sf_status read_gzip(struct source *source)
{
    z_stream stream = {.zalloc = zlib_alloc, .zfree = zlib_free};
    if (inflateInit2(&stream, 15 + 16) != Z_OK) /* the largest window; gzip only */
        return fail_source_memory(source);
    sf_status status = inflate_members(source, &stream);
    inflateEnd(&stream);
    return status;
}
#else
static sf_status read_gzip(struct source *source)
{
    return fail_missing_file(source, "gzip", "zlib");
}
#endif

#ifdef SF_HAVE_LZMA
/* xz -9 needs 65 MiB; a file that needs more than this is malicious. */
#define XZ_MEMORY (UINT64_C(1) << 30)

static void *xz_alloc(void *unused, size_t count, size_t size)
{
    (void)unused;
    size_t bytes;
    return __builtin_mul_overflow(count, size, &bytes) ? NULL : sf_alloc_try(bytes);
}

static void xz_free(void *unused, void *memory)
{
    (void)unused;
    sf_free(memory);
}

static sf_status xz_error(const struct source *source, lzma_ret result)
{
    if (result == LZMA_MEM_ERROR)
        return fail_source_memory(source);
    if (result == LZMA_MEMLIMIT_ERROR)
        return sf_fail(source->diag, SF_ENOMEM, source->loc,
                       "the xz data needs more than 1 GiB of memory to decompress");
    if (result == LZMA_OPTIONS_ERROR || result == LZMA_UNSUPPORTED_CHECK)
        return sf_fail(source->diag, SF_EUNSUPPORTED, source->loc,
                       "the xz data uses a filter or a check that liblzma does not know");
    if (result == LZMA_BUF_ERROR)
        return fail_stream(source, "xz", "cut off");
    return fail_stream(source, "xz", "corrupt");
}

static sf_status decode_xz(struct source *source, lzma_stream *stream)
{
    lzma_action action = LZMA_RUN;
    for (;;) {
        if (stream->avail_in == 0 && action == LZMA_RUN) {
            SF_TRY(refill_source(source, &stream->avail_in));
            stream->next_in = source->input;
            if (stream->avail_in == 0)
                action = LZMA_FINISH;
        }
        char *room;
        size_t size;
        SF_TRY(make_room_for_text(source, &room, &size));
        stream->next_out = (unsigned char *)room;
        stream->avail_out = size;
        lzma_ret result = lzma_code(stream, action);
        SF_TRY(take_room(source, size - stream->avail_out));
        if (result == LZMA_STREAM_END)
            return SF_OK;
        if (result != LZMA_OK)
            return xz_error(source, result);
    }
}

static sf_status read_xz(struct source *source)
{
    lzma_allocator allocator = {.alloc = xz_alloc, .free = xz_free};
    lzma_stream stream = LZMA_STREAM_INIT;
    stream.allocator = &allocator;
    lzma_ret begun =
        lzma_stream_decoder(&stream, XZ_MEMORY, LZMA_CONCATENATED | LZMA_TELL_UNSUPPORTED_CHECK);
    sf_status status = begun == LZMA_OK ? decode_xz(source, &stream) : xz_error(source, begun);
    lzma_end(&stream);
    return status;
}
#else
static sf_status read_xz(struct source *source)
{
    return fail_missing_file(source, "xz", "liblzma");
}
#endif

/* A file of known size goes straight into the arena. *out stays empty when there is more (a file
 * that grows, or one of /proc, whose size is 0): the head then has all bytes read so far. */
static sf_status read_plain(struct source *source, size_t size, sf_arena *arena, sf_str *out)
{
    if (size > source->limit)
        return fail_limit(source);
    char *text = sf_arena_alloc_try(arena, size + 1);
    if (!text)
        return fail_source_memory(source);
    size_t head = source->head_length, got;
    memcpy(text, source->input, head);
    SF_TRY(read_full(source, text + head, size + 1 - head, &got));
    if (head + got <= size) {
        text[head + got] = 0;
        *out = (sf_str){text, head + got};
        return SF_OK;
    }
    if (lseek(source->fd, (off_t)head, SEEK_SET) < 0)
        return fail_source(source, "cannot read");
    return read_pieces(source);
}

static bool is_gzip(const void *data, size_t length)
{
    return length >= 2 && memcmp(data, "\x1f\x8b", 2) == 0;
}

static bool is_xz(const void *data, size_t length)
{
    return length >= 6 && memcmp(data,
                                 "\xfd"
                                 "7zXZ\0",
                                 6) == 0;
}

static sf_status read_any(struct source *source, sf_arena *arena, sf_str *out)
{
    struct stat info;
    if (fstat(source->fd, &info) != 0)
        return fail_source(source, "cannot read");
    if (S_ISDIR(info.st_mode))
        return sf_fail(source->diag, SF_EIO, source->loc, "is a directory");
    bool is_device = S_ISCHR(info.st_mode) || S_ISBLK(info.st_mode);
    if (is_device && source->careful && source->limit > MODEST_BYTES)
        source->limit = MODEST_BYTES; /* /dev/zero never ends, and nobody types as much */
    SF_TRY(read_full(source, source->input, MAGIC_BYTES, &source->head_length));
    source->is_packed =
        is_gzip(source->input, source->head_length) || is_xz(source->input, source->head_length);
    if (is_gzip(source->input, source->head_length))
        return read_gzip(source);
    if (is_xz(source->input, source->head_length))
        return read_xz(source);
    /* Standard input may be a file that someone has read a part of: its size says nothing then. */
    if (S_ISREG(info.st_mode) && source->fd != STDIN_FILENO &&
        (uint64_t)info.st_size >= source->head_length && (uint64_t)info.st_size < SIZE_MAX / 2)
        return read_plain(source, (size_t)info.st_size, arena, out);
    return read_pieces(source);
}

static void free_first_piece(struct source *source)
{
    struct piece *next = source->first->next;
    sf_free(source->first);
    source->first = next;
}

/* The arena's memory is not touched before it is written to, so there is never more in memory than
 * the content and a block. */
static sf_str join_pieces(struct source *source, sf_arena *arena)
{
    char *text = sf_arena_alloc(arena, source->total + 1);
    size_t used = 0;
    for (; source->first; free_first_piece(source)) {
        memcpy(text + used, source->first->data, source->first->length);
        used += source->first->length;
    }
    return (sf_str){text, used};
}

sf_status sf_file_read(const char *path, sf_arena *arena, size_t limit, sf_str *out, sf_diag *diag)
{
    bool standard = strcmp(path, "-") == 0;
    sf_loc loc = {standard ? "<stdin>" : path, 0, 0};
    struct source *source = sf_alloc(sizeof *source);
    source->fd = STDIN_FILENO;
    source->loc = loc;
    source->diag = diag;
    set_limits(source, limit);
    sf_mark mark = sf_arena_mark(arena);
    sf_str text = {0};
    sf_status status;
    if (!standard)
        source->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (source->fd < 0)
        status = fail_source(source, "cannot open");
    else
        status = read_any(source, arena, &text);
    if (source->fd >= 0 && !standard)
        close(source->fd);
    if (status != SF_OK || !text.at)
        sf_arena_reset(arena, mark);
    if (status == SF_OK && !text.at)
        text = join_pieces(source, arena);
    if (status == SF_OK && source->is_packed &&
        (is_gzip(text.at, text.length) || is_xz(text.at, text.length))) {
        status = sf_fail(diag, SF_EINPUT, loc, "is packed twice, with gzip or xz: unpack it once");
        sf_arena_reset(arena, mark);
    }
    if (status == SF_OK)
        *out = text;
    while (source->first)
        free_first_piece(source);
    sf_free(source);
    return status;
}
