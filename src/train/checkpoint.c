/* Writing checkpoints. */
#include "train/checkpoint.h"

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
#include "base/mem.h"
#include "base/number.h"
#include "file/safetensors.h"
#include "ir/name.h"
#include "run/comm/rank_agreement.h"
#include "train/checkpoint_index.h"

static sf_status fail_at_path(const char *path, const char *what, sf_diag *diag)
{
    return sf_fail(diag, sf_status_of_errno(), (sf_loc){path, 0, 0}, "%s: %s", what,
                   strerror(errno));
}

/* DIRECTORY/NAME; SF_EIO when that is too long. */
static sf_status join_path(const char *directory, const char *name, char out[SF_PATH_SIZE],
                           sf_diag *diag)
{
    int length = snprintf(out, SF_PATH_SIZE, "%s/%s", directory, name);
    if (length > 0 && length < SF_PATH_SIZE)
        return SF_OK;
    errno = ENAMETOOLONG;
    return fail_at_path(directory, "cannot write", diag);
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

static bool directory_synced(int fd)
{
    return fsync(fd) == 0 || errno == EINVAL || errno == ENOTSUP || errno == EROFS;
}

/* A rename lasts once the directory is on the disk. */
static sf_status sync_checkpoint_directory(const char *path, sf_diag *diag)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool good = fd >= 0 && directory_synced(fd);
    int error = errno;
    if (fd >= 0)
        close(fd);
    errno = error;
    return good ? SF_OK : fail_at_path(path, "cannot sync", diag);
}

/* Removes a directory of files, none of them directories. Files that cannot be removed stay. A link
 * is removed as a link: its target may belong to others. */
static void remove_directory(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *directory = fd < 0 ? NULL : fdopendir(fd);
    if (!directory) {
        struct stat found;
        if (fd >= 0)
            close(fd);
        else if (lstat(path, &found) == 0 && S_ISLNK(found.st_mode))
            unlink(path);
        return;
    }
    for (struct dirent *entry; (entry = readdir(directory));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlinkat(dirfd(directory), entry->d_name, 0);
    closedir(directory);
    rmdir(path);
}

/* Takes a checkpoint out of sight in one move, then removes it. */
static void drop_file(const char *directory, const char *name)
{
    char path[SF_PATH_SIZE], gone[SF_PATH_SIZE], hidden[300];
    snprintf(hidden, sizeof hidden, ".%.250s.gone", name);
    if (join_path(directory, name, path, NULL) == SF_OK &&
        join_path(directory, hidden, gone, NULL) == SF_OK && rename(path, gone) == 0)
        remove_directory(gone);
}

/* Before the number of the run. */
static const char latest_beside[] = ".latest.tmp-";

/* Whether this is a leftover of a killed run: .step-N.tmp-RUN, .step-N.gone. */
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
        else if (is_leftover(entry->d_name) &&
                 join_path(path, entry->d_name, inside, NULL) == SF_OK)
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
            return fail_at_path(part, "cannot make the directory", diag);
    }
    return SF_OK;
}

sf_status sf_checkpoints_join(const char *path, sf_diag *diag, sf_checkpoints *out)
{
    *out = (sf_checkpoints){.lock = -1, .run = (int64_t)getpid()};
    size_t length = strlen(path);
    errno = length == 0 ? ENOENT : ENAMETOOLONG;
    if (length == 0 || length >= SF_PATH_SIZE - 300)
        return fail_at_path(path, "cannot write", diag);
    memcpy(out->path, path, length + 1);
    while (length > 1 && out->path[length - 1] == '/')
        out->path[--length] = 0;
    out->open = true;
    return SF_OK;
}

sf_status sf_checkpoints_open(const char *path, sf_diag *diag, sf_checkpoints *out)
{
    SF_TRY(sf_checkpoints_join(path, diag, out));
    out->open = false;
    SF_TRY(make_directories(path, diag));
    out->lock = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (out->lock < 0)
        return fail_at_path(path, "cannot open the directory", diag);
    out->open = true;
    /* A file system without locks is no reason not to save. */
    if (flock(out->lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        sf_checkpoints_close(out);
        return sf_fail(diag, SF_EIO, (sf_loc){path, 0, 0}, "another run is saving there");
    }
    clear_leftovers(out->path);
    return SF_OK;
}

void sf_checkpoints_close(sf_checkpoints *dir)
{
    if (dir->open && dir->lock >= 0)
        close(dir->lock);
    dir->open = false;
}

/* Puts the finished directory in its place. One of the same step may be there, from a run that was
 * resumed further back: the two change places in one move where the system can do that. */
static sf_status rename_checkpoint(const char *beside, const char *path, sf_diag *diag)
{
    char old[SF_PATH_SIZE + 8];
    if (rename(beside, path) == 0)
        return SF_OK;
    if (errno == ENOTDIR) { /* there is a link */
        remove_directory(path);
        if (rename(beside, path) == 0)
            return SF_OK;
    }
    if (errno != EEXIST && errno != ENOTEMPTY)
        return fail_at_path(path, "cannot rename to it", diag);
#ifdef RENAME_EXCHANGE
    if (renameat2(AT_FDCWD, beside, AT_FDCWD, path, RENAME_EXCHANGE) == 0) {
        remove_directory(beside);
        return SF_OK;
    }
#endif
    snprintf(old, sizeof old, "%s.old", path);
    remove_directory(old);
    if (rename(path, old) != 0 || rename(beside, path) != 0)
        return fail_at_path(path, "cannot replace it", diag);
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
        drop_file(dir->path, entries[i].name);
    sf_free(entries);
}

/* Makes `latest` name this checkpoint, from one moment to the next. */
static sf_status point_latest(const sf_checkpoints *dir, const char *name, sf_diag *diag)
{
    char latest[SF_PATH_SIZE], beside[SF_PATH_SIZE], hidden[64], text[64];
    snprintf(hidden, sizeof hidden, "%s%" PRId64, latest_beside, dir->run);
    SF_TRY(join_path(dir->path, hidden, beside, diag));
    SF_TRY(join_path(dir->path, SF_CHECKPOINT_LATEST, latest, diag));
    ssize_t length = snprintf(text, sizeof text, "%s\n", name);
    unlink(beside);
    int fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    bool good = fd >= 0 && write(fd, text, (size_t)length) == length && directory_synced(fd);
    good = (fd < 0 || close(fd) == 0) && good && rename(beside, latest) == 0;
    if (!good) {
        sf_status status = fail_at_path(latest, "cannot write", diag);
        unlink(beside);
        return status;
    }
    return sync_checkpoint_directory(dir->path, diag);
}

/* The work of this rank. */
typedef struct writing {
    const sf_state *state;
    size_t count;
    uint32_t *arguments;
    sf_named_tensor *tensors; /* without data: that is lent when it is written */
    uint64_t *hashes;         /* by argument, of the written data */
    uint64_t digest;          /* of the file that has them */
} writing;

static writing own_pieces(const sf_state *state, sf_arena *scratch)
{
    const sf_rank_shards *shards = state->shards;
    const sf_graph *graph = shards->graph;
    uint32_t count = graph->top->narguments;
    writing w = {.state = state,
                 .arguments = SF_ARRAY(scratch, count, uint32_t),
                 .tensors = SF_ARRAY(scratch, count, sf_named_tensor),
                 .hashes = SF_ARRAY(scratch, count, uint64_t)};
    for (uint32_t i = 0; i < count; i++) {
        if (!sf_argument_is_kept(&graph->arguments[i]) || !sf_rank_shards_is_first(shards, i))
            continue;
        w.tensors[w.count] = (sf_named_tensor){sf_str_of(state->names[i]),
                                               {.type = sf_holder_type(&state->holder, i)}};
        w.arguments[w.count++] = i;
    }
    return w;
}

static sf_status lend_piece(void *context, size_t index, sf_diag *diag, void **data)
{
    const writing *w = context;
    uint32_t argument = w->arguments[index];
    sf_tensor shard;
    SF_TRY(sf_holder_lend(&w->state->holder, argument, false, diag, &shard));
    w->hashes[argument] = sf_tensor_hash(&shard);
    *data = shard.data;
    return SF_OK;
}

static sf_status return_piece(void *context, size_t index, sf_diag *diag)
{
    const writing *w = context;
    return sf_holder_give_back(&w->state->holder, w->arguments[index], diag);
}

static sf_status write_text(const char *directory, const char *name, const sf_buf *text,
                            sf_diag *diag)
{
    char path[SF_PATH_SIZE];
    SF_TRY(join_path(directory, name, path, diag));
    return sf_file_write(path, text->text, text->length, diag);
}

static sf_status write_pieces(const char *directory, writing *w, sf_diag *diag)
{
    char name[SF_SHARDS_NAME] = SF_CHECKPOINT_STATE, path[SF_PATH_SIZE];
    int ranks = sf_mesh_size(&w->state->shards->mesh), rank = w->state->shards->rank;
    sf_tensor_source source = {lend_piece, return_piece, w};
    if (ranks > 1)
        sf_checkpoint_shards_name(rank, ranks, ".safetensors", name);
    SF_TRY(join_path(directory, name, path, diag));
    SF_TRY(sf_safetensors_write_from(path, w->count, w->tensors, &source, diag));
    if (ranks == 1)
        return SF_OK;
    sf_buf text = {0};
    sf_checkpoint_shards_name(rank, ranks, ".json", name);
    sf_checkpoint_put_hashes(w->state, w->count, w->arguments, w->hashes, &text);
    w->digest = sf_text_hash((sf_str){text.text, text.length});
    sf_status status = write_text(directory, name, &text, diag);
    sf_buf_free(&text);
    return status;
}

static sf_status make_beside(const char *beside, sf_diag *diag)
{
    remove_directory(beside);
    return mkdir(beside, 0777) == 0 ? SF_OK
                                    : fail_at_path(beside, "cannot make the directory", diag);
}

/* The first rank's work once all shards are there. */
static sf_status write_index(const sf_checkpoints *dir, const writing *w, const uint64_t *shards,
                             const sf_checkpoint_info *info, const char *name, const char *beside,
                             sf_diag *diag)
{
    char path[SF_PATH_SIZE];
    sf_buf text = {0};
    sf_checkpoint_put_index(w->state, info, w->hashes, shards, &text);
    sf_status status = write_text(beside, SF_CHECKPOINT_INDEX, &text, diag);
    sf_buf_free(&text);
    SF_TRY(status);
    SF_TRY(sync_checkpoint_directory(beside, diag));
    SF_TRY(join_path(dir->path, name, path, diag));
    SF_TRY(rename_checkpoint(beside, path, diag));
    SF_TRY(sync_checkpoint_directory(dir->path, diag));
    return point_latest(dir, name, diag);
}

/* All ranks write beside; when all have, the first one puts it in place. */
static sf_status save_checkpoint(const sf_checkpoints *dir, const sf_state *state,
                                 const sf_checkpoint_info *info, sf_diag *diag)
{
    char name[32], hidden[64], beside[SF_PATH_SIZE];
    bool first = state->shards->rank == 0;
    snprintf(name, sizeof name, "step-%06" PRId64, info->step);
    snprintf(hidden, sizeof hidden, ".%s.tmp-%" PRId64, name, dir->run);
    SF_TRY(join_path(dir->path, hidden, beside, diag));
    sf_status status = first ? make_beside(beside, diag) : SF_OK;
    SF_TRY(sf_agree(state->comm, status, "making the directory of a checkpoint", diag));
    sf_arena scratch = {0};
    writing w = own_pieces(state, &scratch);
    status = write_pieces(beside, &w, diag);
    bool done; /* all of them */
    status = sf_agree_all(state->comm, status, "writing the shards of a checkpoint", diag, &done);
    uint64_t *shards = SF_ARRAY(&scratch, sf_mesh_size(&state->shards->mesh), uint64_t);
    if (status == SF_OK)
        status = sf_agree_list(state->comm, w.digest, "digests of shards", diag, shards);
    bool written = status == SF_OK;
    if (written && first)
        status = write_index(dir, &w, shards, info, name, beside, diag);
    if (status != SF_OK && done && first) /* else one may still write; the next run clears it */
        remove_directory(beside);
    sf_arena_free(&scratch);
    return written ? sf_agree(state->comm, status, "putting a checkpoint in place", diag) : status;
}

sf_status sf_checkpoints_save(sf_checkpoints *dir, const sf_state *state,
                              const sf_checkpoint_info *info, int64_t keep, sf_diag *diag)
{
    SF_ASSERT(dir->open);
    SF_TRY(save_checkpoint(dir, state, info, diag));
    if (keep > 0 && state->shards->rank == 0)
        drop_old(dir, info->step, keep);
    return SF_OK;
}
