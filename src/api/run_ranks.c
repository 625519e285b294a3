#include "api/run_ranks.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/listen.h"
#include "base/machine.h"
#include "base/mem.h"
#include "base/thread_pool.h"
#include "run/comm/comm_backend.h"
#include "run/comm/rank_agreement.h"
#include "sheaf/plan.h"

/* Seconds, besides the limit, that ranks have for coming back when one has failed: they learn of it in
 * their next transfer. */
#define GRACE 5

/* Where ranks that are threads come back to. */
typedef struct gathering {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int away;
    double failed;  /* when the first of them came back with a failure; 0: none has */
    sf_relay relay; /* of the ranks' events for the listener */
} gathering;

typedef struct rank {
    const sf_world *world;
    sf_comm *comm;
    sf_diag *diag;
    gathering *gathering;
    pthread_t thread;
    bool started, back; /* it came back, with this: */
    sf_status status;
} rank;

static sf_status run_rank(const rank *r)
{
    const sf_world *world = r->world;
    sf_status status = world->work(world->context, r->comm, r->diag);
    if (status != SF_OK && !(world->settled && atomic_load(world->settled)))
        sf_comm_abort(r->comm, sf_diag_reason(r->diag, status));
    return status;
}

static void *run_thread(void *context)
{
    rank *r = context;
    gathering *g = r->gathering;
    sf_relay_enter(&g->relay);
    sf_status status = run_rank(r);
    pthread_mutex_lock(&g->lock);
    r->status = status;
    r->back = true;
    g->away--;
    if (status != SF_OK && !(g->failed > 0))
        g->failed = sf_now();
    pthread_cond_signal(&g->changed);
    pthread_mutex_unlock(&g->lock);
    return NULL;
}

/* Whether the rank failed only because another one said that it did. */
static bool is_hearsay(const rank *r)
{
    int first = 0; /* that is no warning */
    if (r->status != SF_EPEER)
        return false; /* a rank that did not start has no diagnostics */
    while (first < r->diag->count && first < SF_DIAG_KEPT - 1 &&
           r->diag->messages[first].status == SF_OK)
        first++;
    return r->diag->messages[first].heard;
}

/* The messages of a rank: its number before each of them. */
static void repeat(const rank *r, sf_diag *diag)
{
    for (int i = 0; r->diag && i < r->diag->count && i < SF_DIAG_KEPT; i++) {
        const sf_message *message = &r->diag->messages[i];
        sf_fail(diag, message->status, message->loc, "rank %d: %s", sf_comm_rank(r->comm),
                message->text ? message->text : sf_status_name(message->status));
        if (message->hint)
            sf_hint(diag, "%s", message->hint);
    }
}

/* A rank that only lost others has nothing to say where another one failed by itself. */
static sf_status collect(const rank *ranks, int count, sf_diag *diag)
{
    sf_status status = SF_OK;
    bool own = false;
    for (int i = 0; i < count; i++)
        own = own || (ranks[i].status != SF_OK && ranks[i].status != SF_EPEER);
    for (int i = 0; i < count; i++) {
        if (ranks[i].status == SF_OK) {
            repeat(&ranks[i], diag); /* warnings of the rank */
            continue;
        }
        if (status == SF_OK || status == SF_EPEER)
            status = ranks[i].status;
        if (!is_hearsay(&ranks[i]) && !(own && ranks[i].status == SF_EPEER))
            repeat(&ranks[i], diag);
    }
    return status;
}

static void start_ranks(const sf_world *world, rank *ranks, sf_comm **comms, gathering *g,
                        sf_diag *diag)
{
    for (int i = 0; i < world->ranks; i++) {
        ranks[i] = (rank){.world = world, .comm = comms[i], .diag = sf_diag_new(), .gathering = g};
        g->away++;
        ranks[i].started =
            ranks[i].diag && pthread_create(&ranks[i].thread, NULL, run_thread, &ranks[i]) == 0;
        if (ranks[i].started)
            continue;
        ranks[i].status = sf_fail(diag, SF_ENOMEM, SF_NOWHERE, "rank %d cannot be started", i);
        ranks[i].back = true;
        g->away--;
        g->failed = sf_now();
        sf_comm_abort(comms[i], "it could not be started");
    }
}

/* Serves the listener on this thread. True when all are back, false when one has failed and others do not learn of it. */
static bool await_ranks(gathering *g, double limit)
{
    while (g->away > 0 && !(g->failed > 0)) {
        pthread_cond_wait(&g->changed, &g->lock);
        sf_relay_serve(&g->relay);
    }
    sf_patience patience = sf_patience_new((limit > 0 ? limit : SF_COMM_LIMIT) + GRACE);
    while (g->away > 0 && !sf_patience_ends(&patience, sf_now())) {
        struct timespec until = sf_patience_next(&patience);
        pthread_cond_timedwait(&g->changed, &g->lock, &until);
        sf_relay_serve(&g->relay);
    }
    return g->away == 0;
}

/* A thread cannot be ended from outside, nor can its memory be freed: the process ends. */
static _Noreturn void leave(const rank *ranks, int count, const gathering *g, sf_diag *diag)
{
    /* Standard output is not flushed, and the wait for standard error is limited: a reader who has
     * stopped may be the reason that the rank hangs. */
    signal(SIGALRM, SIG_DFL);
    alarm(GRACE);
    for (int i = 0; i < count; i++)
        if (!ranks[i].back)
            sf_fail(diag, SF_EPEER, SF_NOWHERE,
                    "rank %d does not come back, %.0f s after another one has failed", i,
                    sf_now() - g->failed);
    for (int i = 0; i < sf_diag_count(diag) && i < SF_DIAG_KEPT; i++)
        fprintf(stderr, "%s\n", sf_diag_text(diag, i));
    _exit(EXIT_FAILURE);
}

static sf_status gather_ranks(const sf_world *world, rank *ranks, sf_comm **comms, gathering *g,
                              sf_diag *diag)
{
    pthread_mutex_lock(&g->lock);
    start_ranks(world, ranks, comms, g, diag);
    bool all = await_ranks(g, world->limit);
    sf_status status = collect(ranks, world->ranks, diag);
    if (!all)
        leave(ranks, world->ranks, g, diag);
    pthread_mutex_unlock(&g->lock);
    for (int i = 0; i < world->ranks; i++)
        if (ranks[i].started)
            pthread_join(ranks[i].thread, NULL);
    return status;
}

static sf_status run_threads(const sf_world *world, const sf_ends *ends, sf_diag *diag)
{
    gathering g = {.lock = PTHREAD_MUTEX_INITIALIZER};
    pthread_condattr_t attr;
    rank *ranks = sf_alloc_try((size_t)ends->count * sizeof *ranks);
    if (!ranks)
        return sf_fail(diag, SF_ENOMEM, SF_NOWHERE, "out of memory");
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&g.changed, &attr);
    pthread_condattr_destroy(&attr);
    sf_relay_open(&g.relay, &g.lock, &g.changed);
    sf_status status = gather_ranks(world, ranks, ends->comms, &g, diag);
    sf_relay_close(&g.relay);
    pthread_cond_destroy(&g.changed);
    for (int i = 0; i < ends->count; i++)
        sf_diag_free(ranks[i].diag);
    sf_free(ranks);
    return status;
}

static sf_status run_process(const sf_world *world, sf_comm *comm, sf_diag *diag)
{
    rank r = {.world = world, .comm = comm, .diag = sf_diag_new()};
    if (!r.diag)
        return sf_fail(diag, SF_ENOMEM, SF_NOWHERE, "out of memory");
    r.status = run_rank(&r);
    sf_status status = collect(&r, 1, diag);
    sf_diag_free(r.diag);
    return status;
}

sf_status sf_world_run_on(const sf_world *world, const sf_ends *ends, sf_diag *diag)
{
    if (sf_comm_mpi_size() > 0)
        return run_process(world, ends->comms[0], diag);
    return run_threads(world, ends, diag);
}

/* All processes find the same; the first one says it. */
static sf_status check_size(int ranks, const sf_comm *comm, sf_diag *diag)
{
    if (sf_comm_size(comm) == ranks)
        return SF_OK;
    if (sf_comm_rank(comm) == 0)
        sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "the plan is for %d ranks, and mpirun started %d",
                ranks, sf_comm_size(comm));
    return SF_EUSAGE;
}

static sf_status open_process(int ranks, const sf_comm_options *options, sf_diag *diag,
                              sf_ends *out)
{
    SF_TRY(sf_comm_mpi_new(options, diag, out->comms));
    out->count = 1;
    return check_size(ranks, out->comms[0], diag);
}

static sf_status open_threads(int ranks, const sf_comm_options *options, sf_diag *diag,
                              sf_ends *out)
{
    SF_TRY(sf_comm_threads_new(ranks, options, diag, out->comms));
    out->count = ranks;
    return SF_OK;
}

sf_status sf_ends_open(int ranks, double limit, sf_diag *diag, sf_ends *out)
{
    sf_comm_options options = {.limit = limit};
    *out = (sf_ends){.comms = sf_alloc_try((size_t)ranks * sizeof(sf_comm *))};
    if (!out->comms)
        return sf_fail(diag, SF_ENOMEM, SF_NOWHERE, "out of memory");
    sf_status status = sf_comm_mpi_size() > 0 ? open_process(ranks, &options, diag, out)
                                              : open_threads(ranks, &options, diag, out);
    if (status != SF_OK)
        sf_ends_close(out);
    return status;
}

void sf_ends_close(sf_ends *ends)
{
    for (int i = 0; i < ends->count; i++)
        sf_comm_free(ends->comms[i]);
    sf_free(ends->comms);
    *ends = (sf_ends){0};
}

sf_status sf_world_run(const sf_world *world, sf_diag *diag)
{
    sf_ends ends;
    SF_TRY(sf_ends_open(world->ranks, world->limit, diag, &ends));
    sf_status status = sf_world_run_on(world, &ends, diag);
    sf_ends_close(&ends);
    return status;
}

int sf_ranks_started(void)
{
    return sf_comm_mpi_size();
}

/* How many of the processes that mpirun started are on this host, 1 where that is not known. */
static int ranks_here(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS",
                                        "MV2_COMM_WORLD_LOCAL_SIZE"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *text = getenv(names[i]);
        int count = text ? atoi(text) : 0;
        if (count > 0)
            return count;
    }
    return 1;
}

struct vote {
    sf_status mine;
    sf_diag said; /* so far */
};

static sf_status vote(void *context, sf_comm *comm, sf_diag *diag)
{
    struct vote *own = context;
    *diag = own->said;
    own->said = (sf_diag){0};
    return sf_agree(comm, own->mine, "reading the files", diag);
}

sf_status sf_ranks_agree(sf_status mine, double limit, sf_diag *diag)
{
    int ranks = sf_comm_mpi_size();
    if (ranks < 2)
        return mine;
    sf_diag none = {0};
    diag = diag ? diag : &none;
    struct vote own = {mine, *diag};
    atomic_bool settled = true;
    *diag = (sf_diag){0};
    sf_world world = {
        .ranks = ranks, .limit = limit, .work = vote, .context = &own, .settled = &settled};
    sf_status status = sf_world_run(&world, diag);
    sf_diag_clear(&own.said);
    sf_diag_clear(&none);
    return status;
}

int64_t sf_rank_memory(int64_t memory, int ranks)
{
    int64_t all = memory > 0 ? 0 : sf_machine_memory();
    int here = sf_comm_mpi_size() > 0 ? ranks_here() : ranks;
    return memory > 0 || all == 0 ? memory : all / here;
}

int sf_rank_threads(int threads, const sf_comm *comm)
{
    int usable = threads > 0 ? threads : sf_threads_usable(), ranks = 1;
    if (comm && sf_comm_is_one_process(comm))
        ranks = sf_comm_size(comm);
    else if (comm && threads == 0 && usable == sysconf(_SC_NPROCESSORS_ONLN))
        ranks = ranks_here();
    return usable / ranks > 1 ? usable / ranks : 1;
}

bool sf_ranks_share(int threads, const sf_comm *comm)
{
    int ranks = sf_comm_is_one_process(comm) ? sf_comm_size(comm) : ranks_here();
    return (int64_t)ranks * threads > sysconf(_SC_NPROCESSORS_ONLN);
}
