/* Sessions: the training runs of all ranks of this process, and their common work. */
#include "sheaf/session.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "api/api_options.h"
#include "api/query.h"
#include "api/run_ranks.h"
#include "base/guard.h"
#include "base/listen.h"
#include "base/mem.h"
#include "run/comm/rank_agreement.h"
#include "train/training_run.h"

/* A rank. */
typedef struct member {
    sf_train_run training_run;
    sf_threads *pool;
    bool open; /* the training run is */
} member;

struct sf_session {
    const sf_graph *graph;
    sf_session_options options;
    sf_ends ends; /* of a plan */
    int nmembers;
    member *members;
    bool has_results; /* the last step went well */
    bool failed;
    atomic_bool busy; /* in a call: its listener, or another thread, makes none */
};

/* The work of members, each by itself or together. */
typedef struct task task;
typedef sf_status task_work(task *t, member *m, sf_diag *diag);

struct task {
    sf_session *session;
    task_work *work;
    atomic_bool settled; /* it failed, and all ranks know */
    uint32_t index;      /* of an argument or a result */
    const void *from;
    void *to;
    size_t bytes; /* of the transferred data */
    const char *path;
    uint64_t seed;
    int64_t steps, keep;
};

/* One member's part of a task, guarded. */
struct part {
    task *task;
    member *member;
    sf_diag *diag;
};

static sf_status work_part(void *context)
{
    struct part *part = context;
    return part->task->work(part->task, part->member, part->diag);
}

static sf_status guard_part(task *t, member *m, sf_diag *diag)
{
    struct part part = {t, m, diag};
    sf_status status = sf_guarded(work_part, &part, diag);
    sf_mappings_close(&m->training_run.mappings);
    return status;
}

static member *member_of(const sf_session *session, const sf_comm *comm)
{
    return &session->members[session->nmembers > 1 ? sf_comm_rank(comm) : 0];
}

static sf_status work_rank(void *context, sf_comm *comm, sf_diag *diag)
{
    task *t = context;
    return guard_part(t, member_of(t->session, comm), diag);
}

/* After SF_OK, the call ends with leave_session. */
static sf_status enter_session(sf_session *session, sf_diag *diag)
{
    if (atomic_exchange(&session->busy, true))
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE,
                       "the session is in another call: its listener, and other threads, make none "
                       "before that returns");
    if (!session->failed)
        return SF_OK;
    atomic_store(&session->busy, false);
    return sf_fail(diag, SF_EUSAGE, SF_NOWHERE,
                   "the session has failed before, and can only be closed");
}

static sf_status leave_session(sf_session *session, sf_status status)
{
    atomic_store(&session->busy, false);
    return status;
}

/* All members, at the same time: they wait for each other. */
static sf_status run_together(sf_session *session, task *t, sf_diag *diag)
{
    sf_world world = {.ranks = session->nmembers,
                      .limit = session->options.limit,
                      .work = work_rank,
                      .context = t,
                      .settled = &t->settled};
    SF_TRY(enter_session(session, diag));
    t->session = session;
    bool split = session->ends.count > 0;
    sf_status status = split ? sf_world_run_on(&world, &session->ends, diag)
                             : guard_part(t, &session->members[0], diag);
    if (status != SF_OK && split && !atomic_load(&t->settled))
        session->failed = true;
    return leave_session(session, status);
}

/* One member after the other, on the thread of the caller; those of other processes may be waited for. */
static sf_status run_singly(sf_session *session, task *t, sf_diag *diag)
{
    sf_status status = SF_OK;
    SF_TRY(enter_session(session, diag));
    t->session = session;
    for (int i = 0; i < session->nmembers && status == SF_OK; i++)
        status = guard_part(t, &session->members[i], diag);
    if (status != SF_OK && session->ends.count > 0) {
        session->failed = true;
        sf_comm_abort(session->ends.comms[0], sf_status_name(status));
    }
    return leave_session(session, status);
}

/* A status that all ranks share, unless it is SF_EPEER. */
static sf_status settle_task(task *t, sf_status status)
{
    if (status != SF_OK && status != SF_EPEER)
        atomic_store(&t->settled, true);
    return status;
}

static sf_status agree_on_task(task *t, const member *m, sf_status mine, const char *what,
                               sf_diag *diag)
{
    return settle_task(t, sf_agree(m->training_run.rank_state.options.comm, mine, what, diag));
}

/* Opening ----------------------------------------------------------------------------------------- */

/* Failures without a jump are closed here, while their memory is there. */
static sf_status open_training_run(task *t, member *m, sf_diag *diag)
{
    const sf_session_options *options = &t->session->options;
    sf_comm *comm = m->training_run.rank_state.options.comm;
    sf_rank_state_options rank_state = {.graph = t->session->graph,
                                        .plan = options->plan,
                                        .comm = comm,
                                        .engine = options->engine,
                                        .pool = m->pool,
                                        .memory = options->memory,
                                        .check = options->check};
    sf_status status = sf_train_run_open(&rank_state, diag, &m->training_run);
    m->open = status == SF_OK;
    if (status != SF_OK)
        sf_train_run_close(&m->training_run);
    return settle_task(t, sf_agree(comm, status, "opening a session", diag));
}

static sf_status start_members(sf_session *session, sf_diag *diag)
{
    session->nmembers = session->ends.count > 0 ? session->ends.count : 1;
    session->members = sf_alloc_try((size_t)session->nmembers * sizeof *session->members);
    if (!session->members)
        return sf_fail(diag, SF_ENOMEM, SF_NOWHERE, "out of memory");
    for (int i = 0; i < session->nmembers; i++) {
        member *m = &session->members[i];
        sf_comm *comm = session->ends.count > 0 ? session->ends.comms[i] : NULL;
        m->training_run.rank_state.options.comm = comm;
        SF_TRY(sf_threads_open(sf_rank_threads(session->options.threads, comm), diag, &m->pool));
    }
    return SF_OK;
}

static sf_status open_session(sf_session *session, sf_diag *diag)
{
    sf_session_options *options = &session->options;
    task t = {.work = open_training_run};
    SF_CHECK_OPTIONS(diag, {"threads", options->threads}, {"memory", (double)options->memory},
                     {"limit", options->limit});
    if (options->plan) {
        int ranks = sf_plan_ranks(options->plan);
        options->memory = sf_rank_memory(options->memory, ranks);
        SF_TRY(sf_ends_open(ranks, options->limit, diag, &session->ends));
    }
    SF_TRY(start_members(session, diag));
    return run_together(session, &t, diag);
}

sf_status sf_session_open(const sf_graph *graph, const sf_session_options *options, sf_diag *diag,
                          sf_session **out)
{
    SF_CLEAR(out);
    SF_NEED(diag, graph, out);
    sf_session_options own;
    SF_TRY(SF_TAKE(sf_session_options, options, &own, diag));
    sf_session *session = sf_alloc_try(sizeof *session);
    if (!session)
        return sf_fail(diag, SF_ENOMEM, SF_NOWHERE, "out of memory");
    session->graph = graph;
    session->options = own;
    sf_status status = open_session(session, diag);
    if (status == SF_OK)
        *out = session;
    else
        sf_session_close(session);
    return status;
}

void sf_session_close(sf_session *session)
{
    if (!session || atomic_load(&session->busy))
        return;
    for (int i = 0; session->members && i < session->nmembers; i++) {
        member *m = &session->members[i];
        sf_train_run_end(&m->training_run);
        if (m->open)
            sf_train_run_close(&m->training_run);
        sf_threads_free(m->pool);
    }
    sf_free(session->members);
    sf_ends_close(&session->ends);
    sf_free(session);
}

/* Tensors ----------------------------------------------------------------------------------------- */

static sf_status write_argument(task *t, member *m, sf_diag *diag)
{
    return sf_rank_state_write(&m->training_run.rank_state, t->index, t->from, diag);
}

static sf_status read_argument(task *t, member *m, sf_diag *diag)
{
    return sf_rank_state_read(&m->training_run.rank_state, t->index, t->to, diag);
}

static sf_status read_result(task *t, member *m, sf_diag *diag)
{
    return sf_rank_state_read_result(&m->training_run.rank_state, t->index, t->to, diag);
}

/* The data to write or read: an argument, or a result of the last step. */
typedef struct subject {
    bool is_result;
    int index;
    const sf_type *type; /* of the whole; NULL: there is none */
    const char *name;
} subject;

static subject argument_of(const sf_session *session, int index)
{
    const sf_graph *graph = session->graph;
    if (index < 0 || index >= sf_graph_arguments(graph))
        return (subject){.index = index};
    return (subject){false, index, sf_argument_type(graph, (uint32_t)index),
                     graph->arguments[index].name};
}

static subject result_of(const sf_session *session, int index)
{
    const sf_graph *graph = session->graph;
    if (index < 0 || index >= sf_graph_results(graph))
        return (subject){.is_result = true, .index = index};
    return (subject){true, index, sf_result_type(graph, (uint32_t)index),
                     graph->results[index].name};
}

static sf_status check_subject(const sf_session *session, const subject *about, sf_diag *diag)
{
    const sf_graph *graph = session->graph;
    if (!about->type)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "there is no %s %d; the step has %d",
                       about->is_result ? "result" : "argument", about->index,
                       about->is_result ? sf_graph_results(graph) : sf_graph_arguments(graph));
    if (about->is_result && !session->has_results)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "there are no results before a step was made");
    return SF_OK;
}

/* A tensor as a whole: all ranks give, or get, their part of it. */
static sf_status move_whole(sf_session *session, subject about, task *t, sf_diag *diag)
{
    char text[SF_TYPE_TEXT];
    SF_TRY(check_subject(session, &about, diag));
    if ((int64_t)t->bytes != sf_type_bytes(about.type))
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE,
                       "%s %d, '%s', is %s, %" PRId64 " bytes, and %zu were given",
                       about.is_result ? "result" : "argument", about.index, about.name,
                       sf_type_text(about.type, text), sf_type_bytes(about.type), t->bytes);
    t->index = (uint32_t)about.index;
    return run_singly(session, t, diag);
}

sf_status sf_session_write(sf_session *session, int argument, const void *data, size_t bytes,
                           sf_diag *diag)
{
    SF_NEED(diag, session);
    if (bytes > 0)
        SF_NEED(diag, data);
    task t = {.work = write_argument, .from = data, .bytes = bytes};
    return move_whole(session, argument_of(session, argument), &t, diag);
}

sf_status sf_session_read(sf_session *session, int argument, void *data, size_t bytes,
                          sf_diag *diag)
{
    SF_NEED(diag, session);
    if (bytes > 0)
        SF_NEED(diag, data);
    task t = {.work = read_argument, .to = data, .bytes = bytes};
    return move_whole(session, argument_of(session, argument), &t, diag);
}

sf_status sf_session_read_result(sf_session *session, int result, void *data, size_t bytes,
                                 sf_diag *diag)
{
    SF_NEED(diag, session);
    if (bytes > 0)
        SF_NEED(diag, data);
    task t = {.work = read_result, .to = data, .bytes = bytes};
    return move_whole(session, result_of(session, result), &t, diag);
}

sf_status sf_session_write_named(sf_session *session, const char *name, const void *data,
                                 size_t bytes, sf_diag *diag)
{
    SF_NEED(diag, session, name);
    int argument;
    SF_TRY(sf_find_named_argument(session->graph, name, diag, &argument));
    return sf_session_write(session, argument, data, bytes, diag);
}

sf_status sf_session_read_named(sf_session *session, const char *name, void *data, size_t bytes,
                                sf_diag *diag)
{
    SF_NEED(diag, session, name);
    int argument;
    SF_TRY(sf_find_named_argument(session->graph, name, diag, &argument));
    return sf_session_read(session, argument, data, bytes, diag);
}

sf_status sf_session_read_result_named(sf_session *session, const char *name, void *data,
                                       size_t bytes, sf_diag *diag)
{
    SF_NEED(diag, session, name);
    int result;
    SF_TRY(sf_find_named_result(session->graph, name, diag, &result));
    return sf_session_read_result(session, result, data, bytes, diag);
}

/* Shards ----------------------------------------------------------------------------------------- */

int sf_session_rank(const sf_session *session, int index)
{
    SF_NEED_OR(-1, session);
    if (index < 0 || index >= session->nmembers)
        return -1;
    return session->members[index].training_run.rank_state.shards.rank;
}

static member *member_of_rank(const sf_session *session, int rank)
{
    for (int i = 0; i < session->nmembers; i++)
        if (sf_session_rank(session, i) == rank)
            return &session->members[i];
    return NULL;
}

/* -1 where the rank is not of this process, or there is no such tensor. */
static int64_t shard_bytes(const sf_session *session, subject about, int rank)
{
    const sf_plan *plan = session->options.plan;
    const sf_graph *graph = session->graph;
    sf_box box = {.size = sizeof box};
    if (!about.type || !member_of_rank(session, rank))
        return -1;
    if (!plan)
        return sf_type_bytes(about.type);
    int64_t boxes = about.is_result ? sf_plan_result_boxes(plan, graph, about.index, rank)
                                    : sf_plan_boxes(plan, graph, about.index, rank);
    bool any =
        boxes > 0 && (about.is_result ? sf_plan_result_box(plan, graph, about.index, rank, 0, &box)
                                      : sf_plan_box(plan, graph, about.index, rank, 0, &box));
    int64_t bytes = any ? boxes * sf_dtype_get(about.type->dtype)->bytes : 0;
    for (int d = 0; any && d < box.rank; d++)
        bytes *= box.extent[d];
    return bytes;
}

int64_t sf_session_shard_bytes(const sf_session *session, int argument, int rank)
{
    SF_NEED_OR(-1, session);
    return shard_bytes(session, argument_of(session, argument), rank);
}

int64_t sf_session_result_shard_bytes(const sf_session *session, int result, int rank)
{
    SF_NEED_OR(-1, session);
    return shard_bytes(session, result_of(session, result), rank);
}

static sf_status write_shard(task *t, member *m, sf_diag *diag)
{
    return sf_rank_state_write_shard(&m->training_run.rank_state, t->index, t->from, t->bytes,
                                     diag);
}

static sf_status read_shard(task *t, member *m, sf_diag *diag)
{
    return sf_rank_state_read_shard(&m->training_run.rank_state, t->index, t->to, t->bytes, diag);
}

static sf_status read_result_shard(task *t, member *m, sf_diag *diag)
{
    return sf_rank_state_read_result_shard(&m->training_run.rank_state, t->index, t->to, t->bytes,
                                           diag);
}

/* No other rank takes part. */
static sf_status move_shard(sf_session *session, subject about, int rank, task *t, sf_diag *diag)
{
    SF_TRY(check_subject(session, &about, diag));
    if (!member_of_rank(session, rank))
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "rank %d is not one of this process", rank);
    int64_t bytes = shard_bytes(session, about, rank);
    if ((int64_t)t->bytes != bytes)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE,
                       "rank %d has %" PRId64 " bytes of %s %d, '%s', and %zu were given", rank,
                       bytes, about.is_result ? "result" : "argument", about.index, about.name,
                       t->bytes);
    SF_TRY(enter_session(session, diag));
    t->session = session;
    t->index = (uint32_t)about.index;
    sf_status status = bytes > 0 ? guard_part(t, member_of_rank(session, rank), diag) : SF_OK;
    return leave_session(session, status);
}

sf_status sf_session_write_shard(sf_session *session, int argument, int rank, const void *data,
                                 size_t bytes, sf_diag *diag)
{
    SF_NEED(diag, session);
    if (bytes > 0)
        SF_NEED(diag, data);
    task t = {.work = write_shard, .from = data, .bytes = bytes};
    return move_shard(session, argument_of(session, argument), rank, &t, diag);
}

sf_status sf_session_read_shard(sf_session *session, int argument, int rank, void *data,
                                size_t bytes, sf_diag *diag)
{
    SF_NEED(diag, session);
    if (bytes > 0)
        SF_NEED(diag, data);
    task t = {.work = read_shard, .to = data, .bytes = bytes};
    return move_shard(session, argument_of(session, argument), rank, &t, diag);
}

sf_status sf_session_read_result_shard(sf_session *session, int result, int rank, void *data,
                                       size_t bytes, sf_diag *diag)
{
    SF_NEED(diag, session);
    if (bytes > 0)
        SF_NEED(diag, data);
    task t = {.work = read_result_shard, .to = data, .bytes = bytes};
    return move_shard(session, result_of(session, result), rank, &t, diag);
}

/* Steps ------------------------------------------------------------------------------------------- */

static bool tell_step(const task *t, const member *m, int64_t made)
{
    const sf_session_options *options = &t->session->options;
    sf_event event = {.size = sizeof event,
                      .kind = SF_EVENT_STEP,
                      .rank = m->training_run.rank_state.shards.rank,
                      .step = made,
                      .steps = t->steps,
                      .loss = m->training_run.last};
    sf_audience audience = {options->listener, options->context, options->interrupt};
    return !sf_comm_leads(m->training_run.rank_state.options.comm) || sf_tell(&audience, &event);
}

static sf_status run_steps(task *t, member *m, sf_diag *diag)
{
    sf_comm *comm = m->training_run.rank_state.options.comm;
    bool stop = false;
    for (int64_t made = 0; made < t->steps && !stop;) {
        SF_TRY(sf_train_run_step(&m->training_run, diag));
        stop = !tell_step(t, m, ++made);
        SF_TRY(settle_task(t, sf_agree_any(comm, SF_OK, "whether to stop", diag, &stop)));
    }
    return SF_OK;
}

/* A step that ran out of memory may have been left anywhere. */
sf_status sf_session_run(sf_session *session, int64_t steps, sf_diag *diag, double *loss)
{
    SF_NEED(diag, session);
    task t = {.work = run_steps, .steps = steps};
    if (steps < 0)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "a number of steps is not negative");
    sf_status status = run_together(session, &t, diag);
    session->failed = session->failed || status == SF_ENOMEM;
    if (steps > 0)
        session->has_results = status == SF_OK;
    if (status == SF_OK && loss)
        *loss = session->members[0].training_run.last;
    return status;
}

int64_t sf_session_steps(const sf_session *session)
{
    SF_NEED_OR(0, session);
    return session->members[0].training_run.info.step;
}

/* State ------------------------------------------------------------------------------------------- */

static sf_status init_state(task *t, member *m, sf_diag *diag)
{
    return agree_on_task(t, m, sf_train_run_init(&m->training_run, t->path, t->seed, diag),
                         "making the initial state", diag);
}

sf_status sf_session_init(sf_session *session, const char *init, uint64_t seed, sf_diag *diag)
{
    SF_NEED(diag, session);
    task t = {.work = init_state, .path = init, .seed = seed};
    return run_together(session, &t, diag);
}

/* The directory that is open has no slash at its end. */
static bool is_entered(const sf_train_run *training_run, const char *directory)
{
    const char *path = training_run->checkpoints.path;
    size_t length = strlen(path);
    return training_run->checkpoints.open && strncmp(path, directory, length) == 0 &&
           strspn(directory + length, "/") == strlen(directory + length);
}

static sf_status save_state(task *t, member *m, sf_diag *diag)
{
    if (!is_entered(&m->training_run, t->path))
        SF_TRY(settle_task(t, sf_train_run_enter(&m->training_run, t->path, diag)));
    return settle_task(t, sf_train_run_save(&m->training_run, t->keep, diag));
}

sf_status sf_session_save(sf_session *session, const char *directory, int64_t keep, sf_diag *diag)
{
    SF_NEED(diag, session, directory);
    task t = {.work = save_state, .path = directory, .keep = keep};
    return run_together(session, &t, diag);
}

static sf_status load_state(task *t, member *m, sf_diag *diag)
{
    char found[SF_PATH_SIZE];
    sf_status status = sf_train_run_find(t->path, found, diag);
    if (status == SF_OK)
        status = sf_train_run_load(&m->training_run, found, diag);
    return agree_on_task(t, m, status, "loading a checkpoint", diag);
}

sf_status sf_session_load(sf_session *session, const char *path, sf_diag *diag)
{
    SF_NEED(diag, session, path);
    task t = {.work = load_state, .path = path};
    return run_together(session, &t, diag);
}
