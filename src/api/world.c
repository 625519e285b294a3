#include "api/world.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/threads.h"
#include "run/agree.h"
#include "sheaf/plan.h"

typedef struct rank {
    const sf_world *world;
    sf_comm *comm;
    sf_diag *diag;
    sf_status status;
    pthread_t thread;
    bool started;
} rank;

static void *run_rank(void *context)
{
    rank *r = context;
    const sf_world *world = r->world;
    r->status = world->work(world->context, r->comm, r->diag);
    if (r->status != SF_OK && !(world->settled && atomic_load(world->settled))) {
        const char *text = sf_diag_text(r->diag, 0);
        sf_comm_abort(r->comm, text ? text : sf_status_name(r->status));
    }
    return NULL;
}

/* Whether the rank failed only because another one said that it did. */
static bool is_hearsay(const rank *r)
{
    const char *text = r->diag->messages[0].text;
    int said = 0, teller;
    return r->status == SF_EPEER && text &&
           sscanf(text, "rank %d gave up: %n", &teller, &said) == 1 && said > 0;
}

/* What a rank has to say: its number before each of its messages. */
static void repeat(const rank *r, sf_diag *diag)
{
    int kept = r->diag->count < SF_DIAG_KEPT ? r->diag->count : SF_DIAG_KEPT;
    for (int i = 0; i < kept; i++) {
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
        if (ranks[i].status == SF_OK)
            continue;
        if (status == SF_OK || status == SF_EPEER)
            status = ranks[i].status;
        if (!is_hearsay(&ranks[i]) && !(own && ranks[i].status == SF_EPEER))
            repeat(&ranks[i], diag);
    }
    return status;
}

static sf_status run_threads(const sf_world *world, rank *ranks, sf_comm **comms, sf_diag *diag)
{
    sf_comm_options options = {.limit = world->limit};
    sf_status status = SF_OK;
    SF_TRY(sf_comm_threads_new(world->ranks, &options, diag, comms));
    for (int i = 0; i < world->ranks; i++) {
        ranks[i] = (rank){.world = world, .comm = comms[i], .diag = sf_diag_new()};
        ranks[i].started =
            ranks[i].diag && pthread_create(&ranks[i].thread, NULL, run_rank, &ranks[i]) == 0;
        if (!ranks[i].started) {
            status = sf_fail(diag, SF_ENOMEM, SF_NOWHERE, "rank %d cannot be started", i);
            sf_comm_abort(comms[i], "it could not be started");
        }
    }
    for (int i = 0; i < world->ranks; i++)
        if (ranks[i].started)
            pthread_join(ranks[i].thread, NULL);
    if (status == SF_OK)
        status = collect(ranks, world->ranks, diag);
    for (int i = 0; i < world->ranks; i++) {
        sf_diag_free(ranks[i].diag);
        sf_comm_free(comms[i]);
    }
    return status;
}

/* All processes find the same; the first one says it. */
static sf_status check_size(const sf_world *world, const sf_comm *comm, sf_diag *diag)
{
    if (sf_comm_size(comm) == world->ranks)
        return SF_OK;
    if (sf_comm_rank(comm) == 0)
        sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "the plan is for %d ranks, and mpirun started %d",
                world->ranks, sf_comm_size(comm));
    return SF_EUSAGE;
}

static sf_status run_process(const sf_world *world, sf_diag *diag)
{
    sf_comm_options options = {.limit = world->limit};
    rank r = {.world = world, .diag = sf_diag_new()};
    if (!r.diag)
        return sf_fail(diag, SF_ENOMEM, SF_NOWHERE, "out of memory");
    sf_status status = sf_comm_mpi_new(&options, diag, &r.comm);
    if (status == SF_OK) {
        status = check_size(world, r.comm, diag);
        if (status == SF_OK) {
            run_rank(&r);
            status = collect(&r, 1, diag);
        }
        sf_comm_free(r.comm);
    }
    sf_diag_free(r.diag);
    return status;
}

sf_status sf_world_run(const sf_world *world, sf_diag *diag)
{
    if (sf_comm_mpi_size() > 0)
        return run_process(world, diag);
    rank *ranks = sf_alloc_try((size_t)world->ranks * sizeof *ranks);
    sf_comm **comms = sf_alloc_try((size_t)world->ranks * sizeof(sf_comm *));
    sf_status status = ranks && comms ? run_threads(world, ranks, comms, diag)
                                      : sf_fail(diag, SF_ENOMEM, SF_NOWHERE, "out of memory");
    sf_free(ranks);
    sf_free(comms);
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
    struct vote own = {mine, *diag};
    atomic_bool settled = true;
    *diag = (sf_diag){0};
    sf_world world = {
        .ranks = ranks, .limit = limit, .work = vote, .context = &own, .settled = &settled};
    sf_status status = sf_world_run(&world, diag);
    sf_diag_clear(&own.said);
    return status;
}

int sf_rank_threads(int threads, const sf_comm *comm)
{
    int usable = threads > 0 ? threads : sf_threads_usable(), ranks = 1;
    if (comm && sf_comm_mpi_size() == 0)
        ranks = sf_comm_size(comm);
    else if (comm && threads == 0 && usable == sysconf(_SC_NPROCESSORS_ONLN))
        ranks = ranks_here();
    return usable / ranks > 1 ? usable / ranks : 1;
}
