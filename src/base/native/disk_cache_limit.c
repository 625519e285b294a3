/* The content of the cache, and its removal. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/native/disk_cache.h"
#include "base/number.h"

enum {
    DEFAULT_MIB = 512,
    MOST_NAME = 256,
    SETTLED_SECONDS = 60,
    UNFINISHED_SECONDS = 60 * 60,
    STALE_SECONDS = 24 * 60 * 60
};

/* Folders of sf_workroom_open. */
static const char workroom[] = "compiling-";

typedef struct entry {
    char name[MOST_NAME];
    int64_t bytes;
    struct timespec used;
} entry;

/* Nothing here jumps (base/mem.h): the folder is open, and threads without a guard come here. Without memory, files are not seen. */
typedef struct entries {
    entry *at;
    size_t count, capacity;
} entries;

/* False where the environment says it, but no number of MiB. */
static bool read_limit(int64_t *mib)
{
    const char *said = getenv("SHEAF_CACHE_MIB");
    bool reads =
        !said || (sf_number_int(sf_str_of(said), mib) && *mib >= 0 && *mib <= INT64_MAX >> 20);
    if (!said || !reads)
        *mib = DEFAULT_MIB;
    return reads;
}

int64_t sf_cache_limit(void)
{
    int64_t mib;
    read_limit(&mib);
    return mib << 20;
}

sf_status sf_cache_check(sf_diag *diag)
{
    int64_t mib;
    if (read_limit(&mib))
        return SF_OK;
    sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "SHEAF_CACHE_MIB is '%s', which is no number of MiB",
            getenv("SHEAF_CACHE_MIB"));
    return sf_hint(diag, "0 is for no cache; without it, the limit is %d", DEFAULT_MIB);
}

/* Whether nobody is at work in a folder: who is has a lock on it, where the file system has locks. */
static bool is_left(int inner, int64_t age)
{
    if (age < SETTLED_SECONDS)
        return false;
    return flock(inner, LOCK_EX | LOCK_NB) == 0 || (errno != EWOULDBLOCK && age > STALE_SECONDS);
}

/* The folder of a compilation whose process was killed, and its content. */
static void remove_left(int folder, const char *name, int64_t age)
{
    if (strncmp(name, workroom, strlen(workroom)) != 0)
        return;
    int inner = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (inner < 0)
        return;
    DIR *files = is_left(inner, age) ? fdopendir(inner) : NULL;
    if (!files) {
        close(inner);
        return;
    }
    for (struct dirent *d = readdir(files); d; d = readdir(files))
        unlinkat(inner, d->d_name, 0);
    unlinkat(folder, name, AT_REMOVEDIR);
    closedir(files);
}

static bool make_room(entries *list)
{
    if (list->count < list->capacity)
        return true;
    size_t capacity = list->capacity ? 2 * list->capacity : 64;
    entry *larger = sf_alloc_kept(capacity * sizeof *larger);
    if (!larger)
        return false;
    if (list->count > 0)
        memcpy(larger, list->at, list->count * sizeof *larger);
    sf_free(list->at);
    list->at = larger;
    list->capacity = capacity;
    return true;
}

/* A file that is missing when its size is read was removed by another process. */
static void see_file(entries *list, int folder, const char *name)
{
    struct stat s;
    if (strlen(name) >= MOST_NAME || fstatat(folder, name, &s, AT_SYMLINK_NOFOLLOW) != 0)
        return;
    int64_t age = time(NULL) - s.st_mtime;
    bool unfinished = strncmp(name, SF_CACHE_UNFINISHED, strlen(SF_CACHE_UNFINISHED)) == 0;
    if (S_ISDIR(s.st_mode))
        remove_left(folder, name, age);
    if (S_ISREG(s.st_mode) && unfinished && age > UNFINISHED_SECONDS)
        unlinkat(folder, name, 0);
    if (!S_ISREG(s.st_mode) || unfinished || !make_room(list))
        return;
    entry *e = &list->at[list->count++];
    *e = (entry){.bytes = (int64_t)s.st_size, .used = s.st_mtim};
    memcpy(e->name, name, strlen(name) + 1);
}

/* The folder, for closedir, and all files in it, for sf_free; NULL: there is none. */
static DIR *list_files(entries *list)
{
    char path[SF_PATH_SIZE];
    *list = (entries){.count = 0};
    DIR *folder = sf_cache_folder(path, sizeof path) ? opendir(path) : NULL;
    for (struct dirent *d = folder ? readdir(folder) : NULL; d; d = readdir(folder))
        see_file(list, dirfd(folder), d->d_name);
    return folder;
}

static int older_first(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    if (x->used.tv_sec != y->used.tv_sec)
        return x->used.tv_sec < y->used.tv_sec ? -1 : 1;
    if (x->used.tv_nsec != y->used.tv_nsec)
        return x->used.tv_nsec < y->used.tv_nsec ? -1 : 1;
    return strcmp(x->name, y->name);
}

int64_t sf_cache_trim(int64_t limit)
{
    entries list;
    int64_t bytes = 0, removed = 0;
    DIR *folder = list_files(&list);
    if (!folder)
        return 0;
    for (size_t i = 0; i < list.count; i++)
        bytes += list.at[i].bytes;
    if (bytes > limit)
        qsort(list.at, list.count, sizeof *list.at, older_first);
    for (size_t i = 0; i < list.count && bytes > limit; i++) {
        removed += unlinkat(dirfd(folder), list.at[i].name, 0) == 0;
        bytes -= list.at[i].bytes;
    }
    closedir(folder);
    sf_free(list.at);
    return removed;
}

static bool ends_in(const char *name, const char *suffix)
{
    size_t length = strlen(name), end = strlen(suffix);
    return length >= end && strcmp(name + length - end, suffix) == 0;
}

void sf_cache_count(sf_cache_kind kinds[SF_CACHE_KINDS])
{
    static const sf_cache_kind known[SF_CACHE_KINDS] = {
        {".so", "loops that were compiled", 0, 0},
        {".cubin", "kernels for GPUs", 0, 0},
        {".choice", "ways to compute products on GPUs", 0, 0},
        {"", "other files", 0, 0},
    };
    entries list;
    DIR *folder = list_files(&list);
    memcpy(kinds, known, sizeof known);
    if (!folder)
        return;
    closedir(folder);
    for (size_t i = 0; i < list.count; i++) {
        int k = 0;
        while (!ends_in(list.at[i].name, kinds[k].suffix))
            k++;
        kinds[k].files++;
        kinds[k].bytes += list.at[i].bytes;
    }
    sf_free(list.at);
}
