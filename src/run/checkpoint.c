/* Writing checkpoints. */
#include "run/checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/number.h"
#include "file/safetensors.h"
#include "run/name.h"

static sf_status fail_system(const char *path, const char *what, sf_diag *diag)
{
    return sf_fail(diag, SF_EIO, (sf_loc){path, 0, 0}, "%s: %s", what, strerror(errno));
}

/* DIRECTORY/NAME; SF_EIO when that is too long. */
static sf_status join(const char *directory, const char *name, char out[SF_PATH_SIZE],
                      sf_diag *diag)
{
    int length = snprintf(out, SF_PATH_SIZE, "%s/%s", directory, name);
    if (length > 0 && length < SF_PATH_SIZE)
        return SF_OK;
    errno = ENAMETOOLONG;
    return fail_system(directory, "cannot write", diag);
}

int64_t sf_checkpoint_number(const char *name)
{
    static const char prefix[] = "step-", old[] = ".old";
    int64_t number;
    size_t length = strlen(name);
    if (strncmp(name, prefix, strlen(prefix)) != 0)
        return -1;
    if (length > strlen(old) && strcmp(name + length - strlen(old), old) == 0)
        length -= strlen(old);
    sf_str digits = {name + strlen(prefix), length - strlen(prefix)};
    return sf_number_int(digits, &number) && number >= 0 ? number : -1;
}

static bool synced(int fd)
{
    return fsync(fd) == 0 || errno == EINVAL || errno == ENOTSUP || errno == EROFS;
}

/* A rename lasts once the directory is on the disk. */
static sf_status sync_directory(const char *path, sf_diag *diag)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool good = fd >= 0 && synced(fd);
    int error = errno;
    if (fd >= 0)
        close(fd);
    errno = error;
    return good ? SF_OK : fail_system(path, "cannot sync", diag);
}

/* Removes a directory of files, none of them directories. What cannot be removed stays. */
static void remove_directory(const char *path)
{
    DIR *directory = opendir(path);
    if (!directory)
        return;
    for (struct dirent *entry; (entry = readdir(directory));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlinkat(dirfd(directory), entry->d_name, 0);
    closedir(directory);
    rmdir(path);
}

/* Takes a checkpoint out of sight in one move, then removes it. */
static void drop(const char *directory, const char *name)
{
    char path[SF_PATH_SIZE], gone[SF_PATH_SIZE], hidden[300];
    snprintf(hidden, sizeof hidden, ".%.250s.gone", name);
    if (join(directory, name, path, NULL) == SF_OK &&
        join(directory, hidden, gone, NULL) == SF_OK && rename(path, gone) == 0)
        remove_directory(gone);
}

/* Before the process id. */
static const char latest_beside[] = ".latest.tmp-";

/* Whether this is what a killed run leaves: .step-N.tmp-PID, .step-N.gone. */
static bool is_leftover(const char *name)
{
    const char *dot = strrchr(name, '.');
    char inner[64];
    if (name[0] != '.' || !dot || (strncmp(dot, ".tmp-", 5) != 0 && strcmp(dot, ".gone") != 0) ||
        dot == name || (size_t)(dot - name) >= sizeof inner)
        return false;
    memcpy(inner, name + 1, (size_t)(dot - name) - 1);
    inner[dot - name - 1] = 0;
    return sf_checkpoint_number(inner) >= 0;
}

static void clear_leftovers(const char *path)
{
    DIR *directory = opendir(path);
    if (!directory)
        return;
    for (struct dirent *entry; (entry = readdir(directory));) {
        char inside[SF_PATH_SIZE];
        if (strncmp(entry->d_name, latest_beside, strlen(latest_beside)) == 0)
            unlinkat(dirfd(directory), entry->d_name, 0);
        else if (is_leftover(entry->d_name) && join(path, entry->d_name, inside, NULL) == SF_OK)
            remove_directory(inside);
    }
    closedir(directory);
}

static sf_status make_directories(const char *path, sf_diag *diag)
{
    char part[SF_PATH_SIZE];
    size_t length = strlen(path);
    for (size_t i = 1; i <= length; i++) {
        if (path[i] != '/' && path[i] != 0)
            continue;
        memcpy(part, path, i);
        part[i] = 0;
        if (mkdir(part, 0777) != 0 && errno != EEXIST)
            return fail_system(part, "cannot make the directory", diag);
    }
    return SF_OK;
}

sf_status sf_checkpoints_open(const char *path, sf_diag *diag, sf_checkpoints *out)
{
    *out = (sf_checkpoints){.lock = -1};
    size_t length = strlen(path);
    errno = ENAMETOOLONG;
    if (length == 0 || length >= SF_PATH_SIZE - 300)
        return fail_system(path, "cannot write", diag);
    SF_TRY(make_directories(path, diag));
    memcpy(out->path, path, length + 1);
    while (length > 1 && out->path[length - 1] == '/')
        out->path[--length] = 0;
    out->lock = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (out->lock < 0)
        return fail_system(path, "cannot open the directory", diag);
    out->open = true;
    /* A file system without locks is no reason not to save. */
    if (flock(out->lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        sf_checkpoints_close(out);
        return sf_fail(diag, SF_EUSAGE, (sf_loc){path, 0, 0}, "another run is saving there");
    }
    clear_leftovers(out->path);
    return SF_OK;
}

void sf_checkpoints_close(sf_checkpoints *dir)
{
    if (dir->open)
        close(dir->lock);
    dir->open = false;
}

uint64_t sf_tensor_hash(const sf_tensor *tensor)
{
    enum { CHUNK = 4096 };
    const uint16_t probe = 1;
    bool little = *(const unsigned char *)&probe == 1;
    sf_dtype dtype = tensor->type->dtype;
    size_t size = sf_dtype_get(dtype)->bytes;
    uint64_t hash = sf_hash_mix(0, (uint64_t)tensor->type->count);
    unsigned char swapped[CHUNK * 8];
    for (int64_t at = 0; at < tensor->type->count; at += CHUNK) {
        int64_t rest = tensor->type->count - at, count = rest < CHUNK ? rest : CHUNK;
        const unsigned char *bytes = (const unsigned char *)tensor->data + (size_t)at * size;
        for (int64_t i = 0; !little && i < count; i++)
            for (size_t b = 0; b < size; b++)
                swapped[(size_t)i * size + b] = bytes[(size_t)(i + 1) * size - 1 - b];
        hash = sf_hash_bytes(hash, little ? bytes : swapped, (size_t)count * size);
    }
    return hash;
}

static void put_text(sf_json_writer *json, const char *key, const char *value)
{
    sf_json_key(json, key);
    sf_json_put_string(json, value);
}

static void put_int(sf_json_writer *json, const char *key, int64_t value)
{
    sf_json_key(json, key);
    sf_json_put_int(json, value);
}

/* 64 bits do not fit the numbers that readers of JSON have. */
static void put_hex(sf_json_writer *json, const char *key, uint64_t value)
{
    char text[20];
    snprintf(text, sizeof text, "%016" PRIx64, value);
    put_text(json, key, text);
}

static void put_tensor(sf_json_writer *json, const sf_named_tensor *named)
{
    const sf_type *type = named->tensor.type;
    sf_json_begin_object(json);
    sf_json_key(json, "name");
    sf_json_put_str(json, named->name);
    put_text(json, "dtype", sf_dtype_get(type->dtype)->safetensors);
    sf_json_key(json, "shape");
    sf_json_begin_row(json);
    for (int i = 0; i < type->rank; i++)
        sf_json_put_int(json, type->dims[i]);
    sf_json_end_array(json);
    put_text(json, "file", SF_CHECKPOINT_STATE);
    put_hex(json, "hash", sf_tensor_hash(&named->tensor));
    sf_json_end_object(json);
}

static void make_index(const sf_checkpoint_info *info, size_t count, const sf_named_tensor *tensors,
                       sf_buf *out)
{
    sf_json_writer json = {.buf = out, .indent = true};
    int64_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += sf_type_bytes(tensors[i].tensor.type);
    sf_json_begin_object(&json);
    put_text(&json, "format", "sheaf checkpoint");
    put_int(&json, "version", SF_CHECKPOINT_VERSION);
    put_int(&json, "step", info->step);
    put_hex(&json, "seed", info->seed);
    put_hex(&json, "graph", info->graph);
    put_text(&json, "data", info->data);
    put_int(&json, "position", info->step);
    put_int(&json, "bytes", bytes);
    sf_json_key(&json, "tensors");
    sf_json_begin_array(&json);
    for (size_t i = 0; i < count; i++)
        put_tensor(&json, &tensors[i]);
    sf_json_end_array(&json);
    sf_json_end_object(&json);
    sf_buf_putc(out, '\n');
}

static sf_status write_files(const char *directory, const sf_checkpoint_info *info, size_t count,
                             const sf_named_tensor *tensors, sf_diag *diag)
{
    char path[SF_PATH_SIZE];
    sf_buf text = {0};
    SF_TRY(join(directory, SF_CHECKPOINT_STATE, path, diag));
    SF_TRY(sf_safetensors_write(path, count, tensors, diag));
    SF_TRY(join(directory, SF_CHECKPOINT_INDEX, path, diag));
    make_index(info, count, tensors, &text);
    sf_status status = sf_file_write(path, text.text, text.length, diag);
    sf_buf_free(&text);
    return status;
}

/* Puts the finished directory in its place. One of the same step may be there, from a run that was
 * resumed further back: the two change places in one move where the system can do that. */
static sf_status put_in_place(const char *beside, const char *path, sf_diag *diag)
{
    char old[SF_PATH_SIZE + 8];
    if (rename(beside, path) == 0)
        return SF_OK;
    if (errno != EEXIST && errno != ENOTEMPTY)
        return fail_system(path, "cannot rename to it", diag);
#ifdef RENAME_EXCHANGE
    if (renameat2(AT_FDCWD, beside, AT_FDCWD, path, RENAME_EXCHANGE) == 0) {
        remove_directory(beside);
        return SF_OK;
    }
#endif
    snprintf(old, sizeof old, "%s.old", path);
    remove_directory(old);
    if (rename(path, old) != 0 || rename(beside, path) != 0)
        return fail_system(path, "cannot replace it", diag);
    remove_directory(old);
    return SF_OK;
}

struct entry {
    int64_t step;
    char name[32];
};

static int newest_first(const void *a, const void *b)
{
    int64_t x = ((const struct entry *)a)->step, y = ((const struct entry *)b)->step;
    return (y > x) - (y < x);
}

/* Later steps than this one's are of a run that went further and was resumed from an earlier point;
 * nobody said that they may go. */
static void drop_old(const sf_checkpoints *dir, int64_t step, int64_t keep)
{
    enum { MOST = 4096 };
    DIR *directory = opendir(dir->path);
    struct entry *entries = directory ? sf_alloc_try(MOST * sizeof *entries) : NULL;
    size_t count = 0;
    for (struct dirent *entry; entries && count < MOST && (entry = readdir(directory));) {
        int64_t number = sf_checkpoint_number(entry->d_name);
        if (number < 0 || number >= step || strlen(entry->d_name) >= sizeof entries->name)
            continue;
        entries[count].step = number;
        strcpy(entries[count++].name, entry->d_name);
    }
    if (directory)
        closedir(directory);
    if (entries)
        qsort(entries, count, sizeof *entries, newest_first);
    for (size_t i = (size_t)keep - 1; i < count; i++)
        drop(dir->path, entries[i].name);
    sf_free(entries);
}

/* Makes `latest` name this checkpoint, from one moment to the next. */
static sf_status point_latest(const sf_checkpoints *dir, const char *name, sf_diag *diag)
{
    char latest[SF_PATH_SIZE], beside[SF_PATH_SIZE], hidden[64], text[64];
    snprintf(hidden, sizeof hidden, "%s%jd", latest_beside, (intmax_t)getpid());
    SF_TRY(join(dir->path, hidden, beside, diag));
    SF_TRY(join(dir->path, SF_CHECKPOINT_LATEST, latest, diag));
    ssize_t length = snprintf(text, sizeof text, "%s\n", name);
    int fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    bool good = fd >= 0 && write(fd, text, (size_t)length) == length && synced(fd);
    good = (fd < 0 || close(fd) == 0) && good && rename(beside, latest) == 0;
    if (!good) {
        sf_status status = fail_system(latest, "cannot write", diag);
        unlink(beside);
        return status;
    }
    return sync_directory(dir->path, diag);
}

static sf_status save(sf_checkpoints *dir, const sf_checkpoint_info *info, size_t count,
                      const sf_named_tensor *tensors, sf_diag *diag)
{
    char name[32], hidden[64], path[SF_PATH_SIZE], beside[SF_PATH_SIZE];
    snprintf(name, sizeof name, "step-%06" PRId64, info->step);
    snprintf(hidden, sizeof hidden, ".%s.tmp-%jd", name, (intmax_t)getpid());
    SF_TRY(join(dir->path, name, path, diag));
    SF_TRY(join(dir->path, hidden, beside, diag));
    remove_directory(beside);
    if (mkdir(beside, 0777) != 0)
        return fail_system(beside, "cannot make the directory", diag);
    sf_status status = write_files(beside, info, count, tensors, diag);
    if (status == SF_OK)
        status = sync_directory(beside, diag);
    if (status == SF_OK)
        status = put_in_place(beside, path, diag);
    if (status != SF_OK) {
        remove_directory(beside);
        return status;
    }
    SF_TRY(sync_directory(dir->path, diag));
    return point_latest(dir, name, diag);
}

sf_status sf_checkpoints_save(sf_checkpoints *dir, const sf_graph *graph, const char *const *names,
                              const sf_tensor *arguments, const sf_checkpoint_info *info,
                              int64_t keep, sf_diag *diag)
{
    SF_ASSERT(dir->open);
    sf_arena scratch = {0};
    uint32_t count = graph->top->narguments;
    size_t kept = 0;
    sf_named_tensor *tensors = SF_ARRAY(&scratch, count, sf_named_tensor);
    for (uint32_t i = 0; i < count; i++)
        if (sf_argument_is_kept(&graph->arguments[i]))
            tensors[kept++] = (sf_named_tensor){sf_str_of(names[i]), arguments[i]};
    sf_status status = save(dir, info, kept, tensors, diag);
    if (status == SF_OK && keep > 0)
        drop_old(dir, info->step, keep);
    sf_arena_free(&scratch);
    return status;
}
