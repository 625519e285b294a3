#include "run/cuda/algorithm_choice.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/machine.h"
#include "base/mem.h"
#include "base/native/disk_cache.h"

enum { RUNS = 3 };

/* Trials of one process end here; later products take the library's proposal, and keep it. */
static const double most_seconds = 5;

/* A choice, in this process and on disk. */
typedef struct known {
    uint64_t key;
    int64_t way;
} known;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static known *table;
static size_t count, capacity;
static double spent;

static const known *find_known(uint64_t key)
{
    for (size_t i = 0; i < count; i++)
        if (table[i].key == key)
            return &table[i];
    return NULL;
}

static void add_known(const known *k)
{
    if (count == capacity) {
        capacity = capacity ? 2 * capacity : 64;
        known *larger = sf_alloc_kept(capacity * sizeof *larger);
        if (!larger)
            return;
        if (count > 0)
            memcpy(larger, table, count * sizeof *table);
        sf_free(table);
        table = larger;
    }
    table[count++] = *k;
}

static bool choice_path(uint64_t key, char *path, size_t size)
{
    char name[64];
    snprintf(name, sizeof name, "%016" PRIx64 ".choice", key);
    return sf_cache_path(name, path, size);
}

static bool read_choice(const char *path, int ways, known *out)
{
    known found = {0};
    void *bytes;
    size_t size;
    if (!sf_cache_read(path, &bytes, &size))
        return false;
    if (size == sizeof found)
        memcpy(&found, bytes, size);
    sf_free(bytes);
    bool is_good =
        size == sizeof found && found.key == out->key && found.way >= 0 && found.way < ways;
    if (is_good)
        *out = found;
    return is_good;
}

/* Whoever is first says it: what is there then is read back. */
static bool write_choice(const char *path, int ways, known *k)
{
    return sf_cache_write(path, k, sizeof *k, true) || read_choice(path, ways, k);
}

/* Seconds of one run of a way; negative if it fails. The first run loads its code. */
static double time_way(const sf_trial *t, int way, void *const *marks)
{
    const sf_cuda_driver *d = t->driver;
    float milliseconds = -1;
    if (t->run(t->context, way) != 0 || d->stream_wait(t->stream) != 0)
        return -1;
    int status = d->event_record(marks[0], t->stream);
    for (int i = 0; i < RUNS && status == 0; i++)
        status = t->run(t->context, way);
    if (status != 0 || d->event_record(marks[1], t->stream) != 0 ||
        d->stream_wait(t->stream) != 0 || d->event_elapsed(&milliseconds, marks[0], marks[1]) != 0)
        return -1;
    return (double)milliseconds / 1e3 / RUNS;
}

static int fastest(const sf_choice *choice, const sf_trial *t)
{
    void *marks[2] = {NULL, NULL};
    double begin = sf_now(), best_time = -1;
    int best = 0;
    if (t->driver->event_create(&marks[0], 0) == 0 && t->driver->event_create(&marks[1], 0) == 0)
        for (int i = 0; i < choice->count && spent + sf_now() - begin < most_seconds; i++) {
            double seconds = time_way(t, i, marks);
            /* Ways of which one is hardly faster are the same: the library's order is kept. */
            if (seconds > 0 && (best_time < 0 || seconds < best_time * 0.98)) {
                best = i;
                best_time = seconds;
            }
        }
    for (int i = 0; i < 2; i++)
        if (marks[i])
            t->driver->event_destroy(marks[i]);
    spent += sf_now() - begin;
    return best;
}

static int way_of(const sf_choice *choice, const sf_trial *trial)
{
    char path[SF_PATH_SIZE + 32];
    known k = {.key = choice->key};
    const known *found = find_known(k.key);
    if (found)
        return (int)found->way;
    bool has_path = choice_path(k.key, path, sizeof path);
    if (has_path && !read_choice(path, choice->count, &k)) {
        k.way = fastest(choice, trial);
        if (!write_choice(path, choice->count, &k))
            k.way = 0;
    }
    add_known(&k);
    return (int)k.way;
}

void sf_choose(sf_choice *choice, const sf_trial *trial)
{
    if (choice->is_made)
        return;
    pthread_mutex_lock(&lock);
    if (choice->count > 1)
        choice->way = way_of(choice, trial);
    pthread_mutex_unlock(&lock);
    choice->is_made = true;
}

uint64_t sf_choice_machine(const sf_cuda_driver *driver, int ordinal,
                           int (*property)(int which, int *value))
{
    char name[128] = "";
    int version[3] = {0};
    driver->device_name(name, sizeof name, ordinal);
    for (int i = 0; i < 3; i++)
        property(i, &version[i]);
    return sf_hash_bytes(sf_hash_bytes(0, name, strlen(name)), version, sizeof version);
}
