/* The pool. A job is announced by one atomic word that holds its number and how many parts it has; its other fields are
 * written before that.
 *
 * Part p belongs to thread p, if it comes in time. Whoever wants to do a part first claims it, by the number of the job,
 * and only who has claimed one looks at the job; when the caller is through with his own part, he claims those that
 * nobody has begun. So a thread that sleeps, or whose processor other programs have, holds nobody up: at worst the
 * caller does everything, as if he were alone. A job ends when all its parts are done, so all are claimed by then, and a
 * thread that comes late finds nothing to claim.
 */
#include "base/thread_pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>

#include "base/mem.h"

/* Iterations of the waiting loop, tens of microseconds: longer than the gap between two kernels,
 * and negligible on an idle machine. */
enum { SPINS = 4000, MOST_THREADS = 4096, PARTS_BITS = 16, SIMPLE_GRAIN = 1 << 13 };

typedef struct worker {
    _Alignas(64) sf_threads
        *pool; /* each in a line of its own: claims are written while others look at theirs */
    pthread_t thread;
    int index;
    _Atomic uint64_t claimed; /* the last job whose part of this index was begun */
} worker;

struct sf_threads {
    int count, spins;
    bool alone;      /* the caller does everything */
    int64_t simple;  /* see sf_threads_grain */
    worker *workers; /* [count]; the first is the caller and has no thread */
    sf_lanes *lanes; /* or NULL */

    _Atomic uint64_t job; /* number << PARTS_BITS | parts; parts 0: end */
    sf_work *work;
    void *context;
    int64_t units, grain, total;
    _Atomic int pending; /* parts that are not done, the caller's own not counted */

    pthread_mutex_t mutex;
    pthread_cond_t wake, done;
    _Atomic int sleepers;  /* workers that wait for `wake`, or are about to */
    _Atomic bool sleeping; /* the caller waits for `done`, or is about to */
};

static void pause_thread(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

int sf_threads_usable(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1;
    return CPU_COUNT(&set) > 0 ? CPU_COUNT(&set) : 1;
}

static int parts_of_work(uint64_t job)
{
    return (int)(job & ((1u << PARTS_BITS) - 1));
}

static void run_work_part(sf_threads *pool, int part, int parts)
{
    int64_t each = pool->units / parts, more = pool->units % parts;
    int64_t first = each * part + (part < more ? part : more);
    int64_t end = first + each + (part < more);
    pool->work(pool->context, part, first * pool->grain,
               end == pool->units ? pool->total : end * pool->grain);
}

/* Waits for a job other than `seen`. The order of "I sleep" and a second look at the word here, and
 * of the word and a look for sleepers in announce(), is what keeps a wake-up from being lost. A
 * thread that writes before it reads does so by an exchange or an addition. A sequentially
 * consistent store would be enough by the language, but emulators of weakly ordered processors are
 * known to let the read pass it. */
static uint64_t next_job(sf_threads *pool, uint64_t seen)
{
    uint64_t job;
    for (int i = 0; i < pool->spins; i++) {
        job = atomic_load_explicit(&pool->job, memory_order_acquire);
        if (job != seen)
            return job;
        pause_thread();
    }
    pthread_mutex_lock(&pool->mutex);
    atomic_fetch_add(&pool->sleepers, 1);
    while ((job = atomic_load(&pool->job)) == seen)
        pthread_cond_wait(&pool->wake, &pool->mutex);
    atomic_fetch_sub(&pool->sleepers, 1);
    pthread_mutex_unlock(&pool->mutex);
    return job;
}

/* Numbers grow, so a part that is claimed for this job or a later one is not available. */
static bool claim_part(worker *owner, uint64_t job)
{
    uint64_t number = job >> PARTS_BITS, last = atomic_load(&owner->claimed);
    return last < number && atomic_compare_exchange_strong(&owner->claimed, &last, number);
}

static void *work_until_end(void *argument)
{
    worker *self = argument;
    sf_threads *pool = self->pool;
    for (uint64_t job = 0;;) {
        job = next_job(pool, job);
        int parts = parts_of_work(job);
        if (parts == 0)
            return NULL;
        if (self->index >= parts || !claim_part(self, job))
            continue;
        run_work_part(pool, self->index, parts);
        if (atomic_fetch_sub(&pool->pending, 1) == 1 && atomic_load(&pool->sleeping)) {
            pthread_mutex_lock(&pool->mutex);
            pthread_cond_signal(&pool->done);
            pthread_mutex_unlock(&pool->mutex);
        }
    }
}

static uint64_t announce_work(sf_threads *pool, int parts)
{
    uint64_t number = atomic_load_explicit(&pool->job, memory_order_relaxed) >> PARTS_BITS;
    uint64_t job = (number + 1) << PARTS_BITS | (unsigned)parts;
    atomic_exchange(&pool->job, job);
    if (atomic_load(&pool->sleepers) > 0) {
        pthread_mutex_lock(&pool->mutex);
        pthread_cond_broadcast(&pool->wake);
        pthread_mutex_unlock(&pool->mutex);
    }
    return job;
}

/* Does the parts that no thread has begun. */
static void do_parts_left(sf_threads *pool, uint64_t job, int parts)
{
    for (int p = 1; p < parts; p++)
        if (claim_part(&pool->workers[p], job)) {
            run_work_part(pool, p, parts);
            atomic_fetch_sub(&pool->pending, 1);
        }
}

static void wait_for_others(sf_threads *pool)
{
    for (int i = 0; i < pool->spins; i++) {
        if (atomic_load_explicit(&pool->pending, memory_order_acquire) == 0)
            return;
        pause_thread();
    }
    pthread_mutex_lock(&pool->mutex);
    atomic_exchange(&pool->sleeping, true);
    while (atomic_load(&pool->pending) != 0)
        pthread_cond_wait(&pool->done, &pool->mutex);
    atomic_store(&pool->sleeping, false);
    pthread_mutex_unlock(&pool->mutex);
}

void sf_threads_run(sf_threads *threads, int64_t total, int64_t grain, sf_work *work, void *context)
{
    if (total <= 0)
        return;
    grain = grain < 1 ? 1 : grain;
    int64_t units = (total - 1) / grain + 1;
    int count = sf_threads_count(threads), parts = units < count ? (int)units : count;
    if (parts == 1) {
        work(context, 0, 0, total);
        return;
    }
    threads->work = work;
    threads->context = context;
    threads->units = units;
    threads->grain = grain;
    threads->total = total;
    if (threads->alone) {
        for (int p = 0; p < parts; p++)
            run_work_part(threads, p, parts);
        return;
    }
    atomic_store_explicit(&threads->pending, parts - 1, memory_order_relaxed);
    uint64_t job = announce_work(threads, parts);
    run_work_part(threads, 0, parts);
    do_parts_left(threads, job, parts);
    wait_for_others(threads);
}

sf_lanes *sf_threads_lanes(sf_threads *threads)
{
    if (!threads->lanes)
        threads->lanes = sf_lanes_new();
    return threads->lanes;
}

void sf_threads_set_alone(sf_threads *threads, bool alone)
{
    threads->alone = alone;
}

/* Ends the first `started` workers and frees the pool. */
static void end_threads(sf_threads *pool, int started)
{
    sf_lanes_free(pool->lanes);
    if (started > 0)
        announce_work(pool, 0);
    for (int i = 1; i <= started; i++)
        pthread_join(pool->workers[i].thread, NULL);
    pthread_cond_destroy(&pool->wake);
    pthread_cond_destroy(&pool->done);
    pthread_mutex_destroy(&pool->mutex);
    sf_free(pool->workers);
    sf_free(pool);
}

/* Signals are for the threads of the program that uses the library, not for ours. */
static int start_threads(sf_threads *pool)
{
    sigset_t all, before;
    int started = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (int i = 1; i < pool->count; i++, started++) {
        worker *w = &pool->workers[i];
        w->pool = pool;
        w->index = i;
        if (pthread_create(&w->thread, NULL, work_until_end, w) != 0)
            break;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

sf_threads *sf_threads_new(int count)
{
    int processors = sf_threads_usable();
    if (count <= 0)
        count = processors;
    if (count > MOST_THREADS)
        return NULL;
    /* Kept: a guard that is left by a failure must not free memory that the threads read. */
    sf_threads *pool = sf_alloc_kept(sizeof *pool);
    worker *workers = sf_alloc_kept((size_t)count * sizeof *workers);
    if (!pool || !workers) {
        sf_free(pool);
        sf_free(workers);
        return NULL;
    }
    pool->count = count;
    pool->simple = SIMPLE_GRAIN;
    pool->workers = workers;
    /* Where threads share a processor, one that spins keeps another from working. */
    pool->spins = count <= processors ? SPINS : 0;
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->wake, NULL);
    pthread_cond_init(&pool->done, NULL);
    int started = start_threads(pool);
    if (started != count - 1) {
        end_threads(pool, started);
        return NULL;
    }
    return pool;
}

void sf_threads_free(sf_threads *threads)
{
    if (threads)
        end_threads(threads, threads->count - 1);
}

int sf_threads_count(const sf_threads *threads)
{
    return threads ? threads->count : 1;
}

int64_t sf_threads_grain(const sf_threads *threads)
{
    return threads->simple;
}

void sf_threads_set_grain(sf_threads *threads, int64_t grain)
{
    threads->simple = grain;
}

sf_status sf_threads_open(int count, sf_diag *diag, sf_threads **out)
{
    *out = NULL;
    if (count < 0)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "a number of threads is not negative");
    *out = sf_threads_new(count);
    if (!*out)
        return sf_fail(diag, SF_ENOMEM, SF_NOWHERE, "the threads cannot be started");
    return SF_OK;
}
