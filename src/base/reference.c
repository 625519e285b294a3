#include "base/reference.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/mem.h"

sf_reference sf_reference_of(const char *path, sf_str text, sf_arena *arena)
{
    char resolved[PATH_MAX];
    sf_reference origin = {.bytes = (int64_t)text.length,
                           .digest = sf_hash_bytes(0, text.at, text.length)};
    if (path && strcmp(path, "-") != 0 && realpath(path, resolved))
        origin.path = sf_arena_string(arena, resolved, strlen(resolved));
    return origin;
}

static size_t directory_length(const char *file)
{
    const char *slash = strrchr(file, '/');
    return slash ? (size_t)(slash - file) + 1 : 0;
}

const char *sf_path_beside(const char *file, const char *path, sf_arena *arena)
{
    size_t directory = *path == '/' ? 0 : directory_length(file), length = strlen(path);
    char *joined = sf_arena_alloc(arena, directory + length + 1);
    memcpy(joined, file, directory);
    memcpy(joined + directory, path, length + 1);
    return joined;
}

/* The directory that `file`, which need not be there yet, is in; without links and with a slash at its end. */
static bool find_directory(const char *file, char out[PATH_MAX + 1])
{
    char directory[PATH_MAX] = ".";
    size_t length = strcmp(file, "-") == 0 ? 0 : directory_length(file);
    if (length >= sizeof directory)
        return false;
    if (length > 0) {
        memcpy(directory, file, length);
        directory[length] = 0;
    }
    if (!realpath(directory, out))
        return false;
    if (strcmp(out, "/") != 0)
        strcat(out, "/");
    return true;
}

/* From a directory, which ends with a slash, to a file; both are absolute. */
static void put_way(const char *directory, const char *path, sf_buf *out)
{
    size_t shared = 0;
    for (size_t i = 0; directory[i] && directory[i] == path[i]; i++)
        if (directory[i] == '/')
            shared = i + 1;
    for (const char *at = directory + shared; *at; at++)
        if (*at == '/')
            sf_buf_puts(out, "../");
    sf_buf_puts(out, path + shared);
}

void sf_reference_put(const sf_reference *origin, const char *file, sf_json_writer *writer)
{
    char directory[PATH_MAX + 1];
    sf_buf way = {0};
    sf_json_begin_object(writer);
    if (find_directory(file, directory)) {
        put_way(directory, origin->path, &way);
        sf_json_add_path(writer, "path", way.text);
        sf_buf_free(&way);
    }
    sf_json_add_path(writer, "absolute", origin->path);
    sf_json_add_int(writer, "bytes", origin->bytes);
    sf_json_add_hex(writer, "digest", origin->digest);
    sf_json_end_object(writer);
}

/* Whether the file has its recorded content. */
static bool is_still(const sf_json *value, const char *path)
{
    sf_arena arena = {0};
    sf_str text, digest;
    sf_buf found = {0};
    bool same = false;
    if (sf_json_string(sf_json_get(value, "digest"), &digest) &&
        sf_file_read(path, &arena, 0, &text, NULL) == SF_OK) {
        sf_json_writer writer = {.buf = &found};
        sf_json_put_hex(&writer, sf_reference_of(NULL, text, &arena).digest);
        same = found.length == digest.length + 2 &&
               memcmp(found.text + 1, digest.at, digest.length) == 0;
    }
    sf_buf_free(&found);
    sf_arena_free(&arena);
    return same;
}

const char *sf_reference_find(const sf_json *value, const char *file, sf_arena *arena)
{
    const char *there = sf_json_path(value, "absolute", arena);
    const char *path = sf_json_path(value, "path", arena);
    if (!there || !path)
        return there;
    const char *near = sf_path_beside(file, path, arena);
    if (access(near, R_OK) != 0)
        return there;
    bool two = access(there, R_OK) == 0 && !sf_file_is_same(near, there);
    return two && !is_still(value, near) && is_still(value, there) ? there : near;
}
