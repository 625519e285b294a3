/* Ranks over MPI: start, interface, and end. See comm_mpi.h.
 *
 * MPI is started once in a process, and by the engine's thread, unless the program has done so;
 * worlds may be made and freed one after another. When a world fails, the thread informs the
 * others, and from then on does not call MPI: buffers that MPI still refers to belong to the
 * caller. Such a process cannot end MPI in good order, so when it exits it gives the others a
 * moment to print their messages, and calls MPI_Abort.
 *
 * MPI_Init and MPI_Finalize wait for all processes without a limit. Here the usual limit applies; a
 * process whose MPI does not come back from them ends without it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "run/comm/message_schedule.h"

int sf_comm_mpi_size(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE"};
    const char *text = NULL;
    for (int i = 0; i < 3 && !text; i++)
        text = getenv(names[i]);
    if (!text && getenv("PMIX_RANK"))
        text = getenv("SLURM_STEP_NUM_TASKS");
    int size = text ? atoi(text) : 0;
    return size > 0 ? size : 0;
}

/* Over TCP Open MPI sends a request before a long message, and the reply waits in the stream after
 * the data that goes that way: two directions would alternate. Chunks up to this length are sent
 * without a request. Variables that the user set are kept. */
void sf_comm_mpi_prefer(void)
{
    static const char *const names[] = {"OMPI_MCA_btl_tcp_eager_limit",
                                        "OMPI_MCA_btl_tcp_rndv_eager_limit",
                                        "OMPI_MCA_btl_tcp_max_send_size"};
    char text[24];
    snprintf(text, sizeof text, "%d", SF_CHUNK_BYTES + 8192); /* and a header */
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        setenv(names[i], text, 0);
}

#if !SF_HAVE_MPI

sf_status sf_comm_mpi_new(const sf_comm_options *options, sf_diag *diag, sf_comm **out)
{
    (void)options, (void)out;
    sf_fail(diag, SF_EUNSUPPORTED, SF_NOWHERE, "this build cannot run over MPI");
    sf_hint(diag, "install an MPI with its headers (Debian: libopenmpi-dev openmpi-bin) and build "
                  "again, or run the ranks as threads of one process");
    return SF_EUNSUPPORTED;
}

#else

#include <signal.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "base/hash.h"
#include "run/comm/comm_mpi.h"

static sf_mpi_engine engine_memory = {.lock = PTHREAD_MUTEX_INITIALIZER,
                                      .turn = PTHREAD_MUTEX_INITIALIZER,
                                      .left = true,
                                      .status = SF_EPEER};

/* Seconds that the others have for their messages before MPI_Abort ends everybody. */
#define EXIT_GRACE 1

/* And seconds for MPI_Abort itself. */
#define ABORT_LIMIT 10

/* Beginning and end ---------------------------------------------------------------------------- */

static const char *find_hosts(sf_mpi_engine *engine)
{
    char name[MPI_MAX_PROCESSOR_NAME];
    int length = 0;
    if (MPI_Get_processor_name(name, &length) != MPI_SUCCESS)
        return "MPI does not know the host";
    uint64_t mine = sf_hash_bytes(0, name, (size_t)length);
    if (MPI_Allgather(&mine, 1, MPI_UINT64_T, engine->hosts, 1, MPI_UINT64_T, engine->world) !=
        MPI_SUCCESS)
        return "MPI_Allgather fails";
    return sf_line_read(engine);
}

static const char *start_mpi(sf_mpi_engine *engine)
{
    int running = 0, ended = 0, level = MPI_THREAD_SINGLE, found = 0;
    void *limit = NULL;
    MPI_Finalized(&ended);
    if (ended)
        return "MPI was ended in this process already";
    MPI_Initialized(&running);
    if (running) {
        MPI_Query_thread(&level);
        if (level < MPI_THREAD_SERIALIZED)
            return "MPI was started without threads: MPI_THREAD_SERIALIZED is needed";
    } else {
        sf_comm_mpi_prefer();
        if (MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level) != MPI_SUCCESS)
            return "MPI does not start";
        engine->owns_mpi = true;
        if (level < MPI_THREAD_FUNNELED)
            return "this MPI cannot be called in a process with threads";
    }
    engine->shared = level >= MPI_THREAD_SERIALIZED;
    if (MPI_Comm_dup(MPI_COMM_WORLD, &engine->world) != MPI_SUCCESS)
        return "MPI_Comm_dup fails";
    MPI_Comm_set_errhandler(engine->world, MPI_ERRORS_RETURN);
    MPI_Comm_rank(engine->world, &engine->rank);
    MPI_Comm_size(engine->world, &engine->size);
    MPI_Comm_get_attr(engine->world, MPI_TAG_UB, &limit, &found);
    engine->tag_limit = found ? *(int *)limit : 32767;
    engine->next_tag = sf_alloc_kept((size_t)engine->size * sizeof(int));
    engine->gone = sf_alloc_kept((size_t)engine->size * sizeof(uint32_t));
    engine->hosts = sf_alloc_kept((size_t)engine->size * sizeof(uint64_t));
    engine->last_in = &engine->inbox;
    if (engine->next_tag && engine->gone && engine->hosts)
        return find_hosts(engine);
    engine->status = SF_ENOMEM;
    return "no memory for MPI";
}

static void stop_mpi(sf_mpi_engine *engine)
{
    sf_engine_drop_letters(engine, UINT32_MAX);
    sf_free(engine->next_tag);
    sf_free(engine->gone);
    sf_free(engine->hosts);
    if (engine->owns_mpi) {
        MPI_Comm_free(&engine->world);
        MPI_Finalize();
    }
}

/* Of these, the caller holds the lock. */
static void raise_flag(sf_mpi_engine *engine, bool *flag)
{
    *flag = true;
    pthread_cond_broadcast(&engine->changed);
}

static void look_again(sf_mpi_engine *engine, const sf_patience *patience)
{
    struct timespec until = sf_patience_next(patience);
    pthread_cond_timedwait(&engine->changed, &engine->lock, &until);
}

static bool await_flag(sf_mpi_engine *engine, const bool *flag, double seconds)
{
    sf_patience patience = {.left = seconds, .looked = sf_now()};
    while (!*flag && !sf_patience_ends(&patience, sf_now()))
        look_again(engine, &patience);
    return *flag;
}

static void *run_engine(void *argument)
{
    sf_mpi_engine *engine = argument;
#ifdef PR_SET_TIMERSLACK
    prctl(PR_SET_TIMERSLACK, 1000); /* or a nap takes three times as long */
#endif
    const char *error = start_mpi(engine);
    pthread_mutex_lock(&engine->lock);
    if (error)
        sf_engine_end(engine, false, error);
    raise_flag(engine, &engine->ready);
    pthread_mutex_unlock(&engine->lock);
    if (!error) {
        sf_engine_serve(engine);
        if (!atomic_load(&engine->closed))
            stop_mpi(engine);
    }
    pthread_mutex_lock(&engine->lock);
    raise_flag(engine, &engine->stopped);
    pthread_mutex_unlock(&engine->lock);
    return NULL;
}

/* Caller holds the lock. The thread may be held up in MPI: that is not waited for. */
static void await_close(sf_mpi_engine *engine)
{
    sf_patience patience = sf_patience_new(4 * SF_MPI_TELL_LIMIT);
    while (!atomic_load(&engine->closed) && !sf_patience_ends(&patience, sf_now()))
        look_again(engine, &patience);
}

/* The others did not start, or do not end; the thread stays where it is in MPI. */
static void leave_alone(const sf_mpi_engine *engine)
{
    if (engine->ready)
        fprintf(stderr, "error: waited %g s for the other ranks to end (MPI_Finalize)\n",
                engine->limit);
    fflush(NULL);
    _exit(EXIT_FAILURE);
}

static void abort_mpi(void)
{
    fflush(NULL);
    sleep(EXIT_GRACE);
    signal(SIGALRM, SIG_DFL);
    alarm(ABORT_LIMIT);
    MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
}

static void at_exit(void)
{
    sf_mpi_engine *engine = &engine_memory;
    pthread_mutex_lock(&engine->lock);
    if (engine->comm && !atomic_load(&engine->ending)) {
        sf_engine_end(engine, true, "it ended before its work was done");
        await_close(engine);
    }
    bool failed = engine->size > 0 && atomic_load(&engine->ending);
    engine->quit = true;
    pthread_cond_signal(&engine->work);
    bool stopped =
        failed || await_flag(engine, &engine->stopped, engine->ready ? engine->limit : 0);
    pthread_mutex_unlock(&engine->lock);
    if (failed)
        abort_mpi();
    if (!stopped)
        leave_alone(engine);
    pthread_join(engine->thread, NULL);
}

/* The interface -------------------------------------------------------------------------------- */

static sf_status report_mpi_failure(const sf_mpi_engine *engine, const sf_request *base,
                                    sf_diag *diag)
{
    char name[SF_COMM_TEXT];
    sf_comm_describe_request(base, name);
    sf_fail(diag, engine->status, SF_NOWHERE, "%s; rank %d was in %s", engine->reason, engine->rank,
            name);
    if (engine->heard)
        sf_heard(diag);
    return engine->status;
}

static sf_status mpi_start(sf_request *base, sf_diag *diag)
{
    sf_mpi_engine *engine = &engine_memory;
    sf_flow *flow = (sf_flow *)base;
    sf_status status = SF_OK;
    pthread_mutex_lock(&engine->lock);
    if (atomic_load(&engine->ending)) {
        status = report_mpi_failure(engine, base, diag);
    } else {
        atomic_store(&flow->waits_for, base->group->comm->rank);
        flow->next = NULL;
        *engine->last_start = flow;
        engine->last_start = &flow->next;
        if (engine->sleeping && !(base->awaited && engine->shared))
            pthread_cond_signal(&engine->work);
    }
    pthread_mutex_unlock(&engine->lock);
    return status;
}

static bool mpi_done(const sf_request *base)
{
    return atomic_load(&((const sf_flow *)base)->done) || atomic_load(&engine_memory.closed);
}

/* The time is over: says for whom, and ends the world. */
static void give_up_flow(sf_mpi_engine *engine, sf_flow *flow)
{
    char name[SF_COMM_TEXT], text[SF_MPI_REASON];
    sf_comm_describe_request(&flow->base, name);
    snprintf(text, sizeof text, "waited %g s for rank %d in %s", flow->base.group->comm->limit,
             atomic_load(&flow->waits_for), name);
    engine->late = flow;
    sf_engine_end(engine, true, text);
}

static sf_status mpi_wait(sf_request *base, sf_diag *diag)
{
    sf_mpi_engine *engine = &engine_memory;
    sf_flow *flow = (sf_flow *)base;
    sf_patience patience = sf_patience_new(base->group->comm->limit);
    atomic_store(&engine->awaited, flow);
    sf_engine_drive(engine, flow, &patience);
    pthread_mutex_lock(&engine->lock);
    while (!mpi_done(base) && !atomic_load(&engine->ending) &&
           !sf_patience_ends(&patience, sf_now()))
        look_again(engine, &patience);
    if (!mpi_done(base)) {
        if (!atomic_load(&engine->ending))
            give_up_flow(engine, flow);
        await_close(engine);
    }
    sf_status status = SF_OK;
    if (!atomic_load(&flow->done))
        status = report_mpi_failure(engine, base, diag);
    atomic_store(&engine->awaited, NULL);
    pthread_mutex_unlock(&engine->lock);
    return status;
}

static void mpi_abort(sf_comm *comm, const char *why)
{
    (void)comm;
    sf_mpi_engine *engine = &engine_memory;
    pthread_mutex_lock(&engine->lock);
    sf_engine_end(engine, true, why);
    await_close(engine);
    pthread_mutex_unlock(&engine->lock);
}

static void mpi_free(sf_comm *comm)
{
    sf_mpi_engine *engine = &engine_memory;
    const sf_request *open = comm->requests;
    while (open && (open->local || mpi_done(open)))
        open = open->next;
    pthread_mutex_lock(&engine->lock);
    if (open) {
        char name[SF_COMM_TEXT], text[SF_MPI_REASON];
        sf_comm_describe_request(open, name);
        snprintf(text, sizeof text, "it has left in the middle of %s", name);
        sf_engine_end(engine, true, text);
    }
    engine->leaving = !atomic_load(&engine->ending);
    pthread_cond_signal(&engine->work);
    sf_patience patience = sf_patience_new(comm->limit);
    while (!engine->left && !atomic_load(&engine->ending) && !sf_patience_ends(&patience, sf_now()))
        look_again(engine, &patience);
    if (!engine->left) {
        sf_engine_end(engine, true, "the others did not come to the end");
        await_close(engine);
    }
    engine->comm = NULL;
    pthread_mutex_unlock(&engine->lock);
    sf_free(comm);
}

static const sf_comm_backend mpi_kind = {
    .name = "mpi",
    .request_bytes = sizeof(sf_flow),
    .start = mpi_start,
    .done = mpi_done,
    .wait = mpi_wait,
    .abort = mpi_abort,
    .free = mpi_free,
};

static bool start_mpi_engine(sf_mpi_engine *engine)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&engine->work, &attr);
    pthread_cond_init(&engine->changed, &attr);
    pthread_condattr_destroy(&attr);
    engine->last_start = &engine->starts;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool good = pthread_create(&engine->thread, NULL, run_engine, engine) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return good && atexit(at_exit) == 0;
}

static sf_status report_absence(const sf_mpi_engine *engine, sf_diag *diag)
{
    sf_fail(diag, SF_EPEER, SF_NOWHERE, "waited %g s for the other ranks to start (MPI_Init)",
            engine->limit);
    sf_hint(diag,
            "do all %d processes run, on hosts that reach each other, and are they all ranks?",
            sf_comm_mpi_size());
    return SF_EPEER;
}

/* Caller holds the lock. */
static sf_status open_mpi_world(sf_mpi_engine *engine, const sf_comm_options *options,
                                sf_diag *diag)
{
    if (engine->comm)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "this process is a rank of MPI already");
    if (!engine->started && !start_mpi_engine(engine))
        return sf_fail(diag, SF_EIO, SF_NOWHERE, "cannot start a thread for MPI");
    engine->started = true;
    engine->limit = options && options->limit > 0 ? options->limit : SF_COMM_LIMIT;
    if (!await_flag(engine, &engine->ready, engine->limit))
        return report_absence(engine, diag);
    if (atomic_load(&engine->ending))
        return sf_fail(diag, engine->status, SF_NOWHERE, "%s", engine->reason);
    engine->comm = sf_alloc_kept(sizeof *engine->comm);
    if (!engine->comm)
        return sf_fail(diag, SF_ENOMEM, SF_NOWHERE, "no memory for a communicator");
    *engine->comm = (sf_comm){
        .kind = &mpi_kind,
        .rank = engine->rank,
        .size = engine->size,
        .limit = engine->limit,
        .hosts = engine->hosts,
    };
    engine->epoch++;
    engine->left = false;
    pthread_cond_signal(&engine->work);
    return SF_OK;
}

sf_status sf_comm_mpi_new(const sf_comm_options *options, sf_diag *diag, sf_comm **out)
{
    sf_mpi_engine *engine = &engine_memory;
    pthread_mutex_lock(&engine->lock);
    sf_status status = open_mpi_world(engine, options, diag);
    *out = engine->comm;
    pthread_mutex_unlock(&engine->lock);
    return status;
}

#endif
