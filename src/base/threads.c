/* The pool. A job is announced by one atomic word that holds its number and how many parts it has; its other
 * fields are written before that.
 *
 * Part p belongs to thread p, if it comes in time. Whoever wants to do a part first claims it, by the number of the job,
 * and only who has claimed one looks at the job; when the caller is through with his own part, he claims those that
 * nobody has begun. So a thread that has no processor, because other programs have it, holds nobody up: at worst the
 * caller does everything, as if he were alone. A job ends when all its parts are done, so all are claimed by then, and
 * a thread that comes late finds nothing to claim.
 *
 * Threads that sleep are woken where it pays. That takes tens of microseconds until they are there, so the time that a
 * part takes is kept for each kind of job, and one that is short is done alone, unless much of that is missed in little
 * time. Where those who were woken come too late again and again, they are woken for more and more only, and where jobs
 * are slower together than alone, most are done alone. None of this changes a result: parts are the same.
 */
#include "base/threads.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/hash.h"
#include "base/machine.h"
#include "base/mem.h"

/* Turns of the waiting loop, tens of microseconds: longer than the gap between two kernels, shorter
 * than anyone would notice on an idle machine. */
enum { SPINS = 4000, MOST_THREADS = 4096, PARTS_BITS = 16, SIMPLE_GRAIN = 1 << 13, KINDS = 256 };

/* Who spun for so long, in seconds, had no processor for most of that, and does not spin the next so many times. */
#define CROWDED 1e-3
enum { TIRED = 256 };

/* Seconds of work, saved by another thread, that waking it is worth: at first, and at most. */
#define WORTH_WAKING 50e-6
#define MOST_WORTH 1e-3

/* Seconds that threads have saved, or lost: it takes so long to be through with a part in the middle of which others got
 * the processor. Who has lost more than he had works alone until that has come in again, a share of the time; so what can
 * be lost is this share. What is kept has a limit on both sides: no more is lost when it begins, nor is it remembered for
 * longer. */
#define MOST_CREDIT 2e-3
#define MOST_DEBT 100e-3
#define ALONE_EARNS 0.05

typedef struct worker {
    _Alignas(64) sf_threads *pool;
    pthread_t thread;
    int index, tired;
    _Atomic uint64_t claimed; /* the last job whose part of this index was begun */
} worker;

/* What is known of jobs of one kind. */
typedef struct job_kind {
    uint64_t key;
    double seconds; /* of a part */
} job_kind;

struct sf_threads {
    int count, spins;
    int64_t simple;  /* see sf_threads_grain */
    worker *workers; /* [count]; the first is the caller and has no thread */

    _Atomic uint64_t job; /* number << PARTS_BITS | parts; parts 0: end */
    sf_work *work;
    void *context;
    int64_t units, grain, total;
    _Atomic int pending; /* threads that still work, the caller not counted */

    pthread_mutex_t mutex;
    pthread_cond_t wake, done;
    _Atomic int sleepers;  /* workers that wait for `wake`, or are about to */
    _Atomic bool sleeping; /* the caller waits for `done`, or is about to */

    /* The caller's: whether to wake. */
    job_kind kinds[KINDS];
    double missed; /* seconds that threads who slept would have saved, less those in between */
    double worth;  /* how much of that a wake-up is for */
    double ended;  /* when the last job was over */
    double credit; /* what was saved or, below zero, lost */
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

/* Turns up to the most, until `left` says so. False when it is to sleep. */
static bool spin(worker *self, bool (*left)(const sf_threads *pool, uint64_t seen), uint64_t seen)
{
    const sf_threads *pool = self->pool;
    if (left(pool, seen))
        return true;
    if (self->tired > 0 || pool->spins == 0) {
        self->tired -= self->tired > 0;
        return false;
    }
    double began = sf_now();
    for (int i = 0; i < pool->spins; i++) {
        if (left(pool, seen))
            return true;
        pause_thread();
    }
    if (sf_now() - began > CROWDED)
        self->tired = TIRED;
    return false;
}

static bool is_new_job(const sf_threads *pool, uint64_t seen)
{
    return atomic_load_explicit(&pool->job, memory_order_acquire) != seen;
}

static bool are_others_done(const sf_threads *pool, uint64_t seen)
{
    (void)seen;
    return atomic_load_explicit(&pool->pending, memory_order_acquire) == 0;
}

/* Waits for a job other than `seen`. The order of "I sleep" and a second look at the word here, and
 * of the word and a look for sleepers in announce(), is what keeps a wake-up from being lost. Whoever
 * writes before he looks does so by an exchange or an addition. A sequentially consistent store would
 * do by the language, but emulators of weakly ordered processors are known to let the look pass it. */
static uint64_t next_job(worker *self, uint64_t seen)
{
    sf_threads *pool = self->pool;
    if (spin(self, is_new_job, seen))
        return atomic_load_explicit(&pool->job, memory_order_acquire);
    uint64_t job;
    pthread_mutex_lock(&pool->mutex);
    atomic_fetch_add(&pool->sleepers, 1);
    while ((job = atomic_load(&pool->job)) == seen)
        pthread_cond_wait(&pool->wake, &pool->mutex);
    atomic_fetch_sub(&pool->sleepers, 1);
    pthread_mutex_unlock(&pool->mutex);
    return job;
}

/* Numbers grow, so what is claimed for this job or a later one is not to be had. */
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
        job = next_job(self, job);
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

static uint64_t announce_work(sf_threads *pool, int parts, bool wake)
{
    uint64_t number = atomic_load_explicit(&pool->job, memory_order_relaxed) >> PARTS_BITS;
    uint64_t job = (number + 1) << PARTS_BITS | (unsigned)parts;
    atomic_exchange(&pool->job, job);
    if (wake && atomic_load(&pool->sleepers) > 0) {
        pthread_mutex_lock(&pool->mutex);
        pthread_cond_broadcast(&pool->wake);
        pthread_mutex_unlock(&pool->mutex);
    }
    return job;
}

static void wait_for_others(sf_threads *pool)
{
    if (spin(&pool->workers[0], are_others_done, 0))
        return;
    pthread_mutex_lock(&pool->mutex);
    atomic_exchange(&pool->sleeping, true);
    while (atomic_load(&pool->pending) != 0)
        pthread_cond_wait(&pool->done, &pool->mutex);
    atomic_store(&pool->sleeping, false);
    pthread_mutex_unlock(&pool->mutex);
}

/* Does what nobody has begun; how many parts that were. */
static int take_parts_left(sf_threads *pool, uint64_t job, int parts)
{
    int taken = 0;
    for (int p = 1; p < parts; p++)
        if (claim_part(&pool->workers[p], job)) {
            run_work_part(pool, p, parts);
            atomic_fetch_sub(&pool->pending, 1);
            taken++;
        }
    return taken;
}

static job_kind *kind_of_job(sf_threads *pool, sf_work *work, int64_t total, int64_t grain)
{
    uint64_t key = sf_hash_mix(sf_hash_mix((uintptr_t)work, (uint64_t)total), (uint64_t)grain);
    job_kind *kind = &pool->kinds[key % KINDS];
    if (kind->key != key)
        *kind = (job_kind){.key = key};
    return kind;
}

/* One part that took long because others had the processor says little: the time grows slowly. */
static void learn_time(job_kind *kind, double seconds)
{
    double known = kind->seconds > 0 ? kind->seconds : seconds;
    double some = seconds < 2 * known ? seconds : 2 * known;
    kind->seconds = known + (some - known) / 4;
}

/* Whether those who sleep are to be woken for a job. */
static bool is_worth_waking(sf_threads *pool, const job_kind *kind, double now)
{
    pool->missed -= now - pool->ended;
    if (pool->missed < 0)
        pool->missed = 0;
    bool worth = !(kind->seconds > 0) || pool->missed + kind->seconds >= pool->worth;
    pool->missed = worth ? 0 : pool->missed + kind->seconds;
    return worth;
}

static void earn(sf_threads *pool, double seconds)
{
    double credit = pool->credit + seconds;
    pool->credit = credit > MOST_CREDIT ? MOST_CREDIT : credit < -MOST_DEBT ? -MOST_DEBT : credit;
}

/* Those who were woken came, or came too late and the caller had `taken` over their parts. */
static void learn_worth(sf_threads *pool, int parts, int taken)
{
    if (taken == 0)
        pool->worth = WORTH_WAKING;
    else if (taken == parts - 1)
        pool->worth = pool->worth < MOST_WORTH ? 2 * pool->worth : MOST_WORTH;
}

static void run_together(sf_threads *pool, int parts, job_kind *kind)
{
    double began = sf_now();
    bool wake = atomic_load(&pool->sleepers) > 0 && is_worth_waking(pool, kind, began);
    atomic_store_explicit(&pool->pending, parts - 1, memory_order_relaxed);
    uint64_t job = announce_work(pool, parts, wake);
    run_work_part(pool, 0, parts);
    learn_time(kind, sf_now() - began);
    int taken = take_parts_left(pool, job, parts);
    if (taken < parts - 1)
        wait_for_others(pool);
    pool->ended = sf_now();
    if (taken < parts - 1)
        earn(pool, parts * kind->seconds - (pool->ended - began));
    if (wake)
        learn_worth(pool, parts, taken);
}

static void run_alone(sf_threads *pool, int parts)
{
    double began = sf_now();
    for (int p = 0; p < parts; p++)
        run_work_part(pool, p, parts);
    pool->ended = sf_now();
    earn(pool, (pool->ended - began) * ALONE_EARNS);
}

void sf_threads_run(sf_threads *threads, int64_t total, int64_t grain, sf_work *work, void *context)
{
    if (total <= 0)
        return;
    grain = grain < 1 ? 1 : grain;
    int64_t units = (total - 1) / grain + 1;
    int parts = units < threads->count ? (int)units : threads->count;
    if (parts == 1) {
        work(context, 0, 0, total);
        return;
    }
    threads->work = work;
    threads->context = context;
    threads->units = units;
    threads->grain = grain;
    threads->total = total;
    if (threads->credit < 0)
        run_alone(threads, parts);
    else
        run_together(threads, parts, kind_of_job(threads, work, total, grain));
}

/* Ends the first `started` workers and frees the pool. */
static void end_threads(sf_threads *pool, int started)
{
    if (started > 0)
        announce_work(pool, 0, true);
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
    /* Kept: a guard that is left by a failure must not free what the threads look at. */
    sf_threads *pool = sf_alloc_kept(sizeof *pool);
    worker *workers = sf_alloc_kept((size_t)count * sizeof *workers);
    if (!pool || !workers) {
        sf_free(pool);
        sf_free(workers);
        return NULL;
    }
    pool->count = count;
    pool->simple = SIMPLE_GRAIN;
    pool->worth = WORTH_WAKING;
    pool->workers = workers;
    workers[0] = (worker){.pool = pool};
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
    return threads->count;
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
