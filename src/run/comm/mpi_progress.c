/* The engine's thread: letters, flows, idling, and how a world ends. See comm_mpi.h. */
#if SF_HAVE_MPI

#include <sched.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "run/comm/comm_mpi.h"

/* Seconds. */
#define BUSY_FOR 200e-6 /* a rank that waits polls without pause */
#define KEEN_FOR 30e-6  /* the thread does, which takes time from the program */
#define LONG_LOOK 20e-6
#define NAP 20e-6        /* between two looks while something is under way, at first */
#define MOST_NAP 200e-6  /* and when nothing has moved for longer than a few of these */
#define MOST_IDLE 50e-3  /* between two looks while nothing is */
#define ANSWER_LIMIT 0.5 /* for asking another rank what it waits for */

/* Letters -------------------------------------------------------------------------------------- */

static void post_to_all(sf_mpi_engine *engine, sf_letter_kind kind, const char *text)
{
    size_t size = strlen(text) + 1;
    for (int r = 0; r < engine->size; r++) {
        if (r == engine->rank)
            continue;
        sf_letter *letter = sf_engine_new_letter(engine, kind, r, (int64_t)size);
        if (!letter)
            return;
        memcpy(letter->payload, text, size);
        sf_engine_post(engine, letter);
    }
}

static bool empty_outbox(sf_mpi_engine *engine)
{
    bool moved = false;
    for (sf_letter **at = &engine->outbox; *at;) {
        sf_letter *letter = *at;
        int flag = 0;
        int code = MPI_Test(&letter->request, &flag, MPI_STATUS_IGNORE);
        if (!sf_engine_check(engine, code, "writing to", letter->peer))
            return moved;
        if (flag) {
            *at = letter->next;
            sf_free(letter);
            moved = true;
        } else {
            at = &letter->next;
        }
    }
    return moved;
}

static sf_flow *find_flow(const sf_mpi_engine *engine, const sf_letter_head *head)
{
    for (sf_flow *flow = engine->flows; flow; flow = flow->next)
        if (flow->base.group->key == head->key && flow->base.sequence == head->sequence)
            return flow;
    return NULL;
}

static void store_letter(sf_mpi_engine *engine, sf_letter *letter)
{
    letter->next = NULL;
    *engine->last_in = letter;
    engine->last_in = &letter->next;
}

/* While this rank searches for the rank to blame, another's reason is as good, and it is available
 * already. */
static void hear_abort(sf_mpi_engine *engine, const sf_letter *letter)
{
    char text[SF_MPI_REASON + 64];
    snprintf(text, sizeof text, "rank %d gave up: %s", letter->peer, letter->payload);
    pthread_mutex_lock(&engine->lock);
    if (engine->asking || !atomic_load(&engine->ending))
        engine->heard = true;
    if (engine->asking) {
        engine->tell = false;
        snprintf(engine->reason, sizeof engine->reason, "%.*s", SF_MPI_REASON - 1, text);
    }
    sf_engine_end(engine, false, text);
    pthread_mutex_unlock(&engine->lock);
}

/* If the transfer has not begun here, as of neighbours in a pipeline, its cause is what this rank
 * waits for. */
static int rank_waited_for(sf_mpi_engine *engine, const sf_letter_head *head)
{
    const sf_flow *flow = find_flow(engine, head);
    if (flow)
        return atomic_load(&flow->waits_for);
    pthread_mutex_lock(&engine->lock);
    const sf_flow *awaited = atomic_load(&engine->awaited);
    int rank = awaited ? atomic_load(&awaited->waits_for) : -1;
    pthread_mutex_unlock(&engine->lock);
    return rank;
}

static void answer_letter(sf_mpi_engine *engine, const sf_letter *letter)
{
    sf_letter *answer = sf_engine_new_letter(engine, SF_LETTER_ANSWER, letter->peer, 0);
    if (!answer)
        return;
    answer->head.tag = rank_waited_for(engine, &letter->head);
    sf_engine_post(engine, answer);
}

static void open_letter(sf_mpi_engine *engine, sf_letter *letter)
{
    const sf_letter_head *head = &letter->head;
    if (head->kind == SF_LETTER_LEAVE) {
        engine->gone[letter->peer] = head->epoch;
    } else if (head->kind == SF_LETTER_ABORT) {
        hear_abort(engine, letter);
    } else if (head->kind == SF_LETTER_ASK) {
        answer_letter(engine, letter);
    } else if (head->kind == SF_LETTER_ANSWER) {
        engine->answered = true;
        engine->answer = head->tag;
    } else {
        sf_flow *flow = head->epoch == engine->epoch ? find_flow(engine, head) : NULL;
        if (flow)
            sf_flow_hear(engine, flow, letter);
        else
            store_letter(engine, letter);
        return;
    }
    sf_free(letter);
}

/* One letter at a time; it is not waited for, since its sender may be dead. */
static bool read_letters(sf_mpi_engine *engine)
{
    int flag = 0;
    if (!engine->coming) {
        MPI_Status status;
        int size,
            code = MPI_Iprobe(MPI_ANY_SOURCE, SF_MPI_LETTER_TAG, engine->world, &flag, &status);
        if (!sf_engine_check(engine, code, "listening to", -1) || !flag)
            return false;
        MPI_Get_count(&status, MPI_BYTE, &size);
        sf_letter *letter =
            sf_engine_allocate_letter(engine, size - (int64_t)sizeof(sf_letter_head));
        if (!letter)
            return false;
        letter->peer = status.MPI_SOURCE;
        letter->size = size;
        code = MPI_Irecv(&letter->head, size, MPI_BYTE, letter->peer, SF_MPI_LETTER_TAG,
                         engine->world, &letter->request);
        engine->coming = letter;
        if (!sf_engine_check(engine, code, "reading from", letter->peer))
            return false;
    }
    int code = MPI_Test(&engine->coming->request, &flag, MPI_STATUS_IGNORE);
    if (!sf_engine_check(engine, code, "reading from", engine->coming->peer) || !flag)
        return false;
    sf_letter *letter = engine->coming;
    engine->coming = NULL;
    open_letter(engine, letter);
    return true;
}

/* The thread ----------------------------------------------------------------------------------- */

static void find_last_in(sf_mpi_engine *engine)
{
    engine->last_in = &engine->inbox;
    while (*engine->last_in)
        engine->last_in = &(*engine->last_in)->next;
}

void sf_engine_drop_letters(sf_mpi_engine *engine, uint32_t epoch)
{
    for (sf_letter **at = &engine->inbox; *at;) {
        sf_letter *letter = *at;
        if (letter->head.epoch <= epoch) {
            *at = letter->next;
            sf_free(letter);
        } else {
            at = &letter->next;
        }
    }
    find_last_in(engine);
}

static void begin_flow(sf_mpi_engine *engine, sf_flow *flow)
{
    if (!sf_flow_begin(engine, flow))
        return;
    flow->next = NULL;
    sf_flow **last = &engine->flows;
    while (*last)
        last = &(*last)->next;
    *last = flow;
    for (sf_letter **at = &engine->inbox; *at;) {
        sf_letter *letter = *at;
        if (letter->head.epoch == engine->epoch && find_flow(engine, &letter->head) == flow) {
            *at = letter->next;
            sf_flow_hear(engine, flow, letter);
        } else {
            at = &letter->next;
        }
    }
    find_last_in(engine);
}

static bool take_starts(sf_mpi_engine *engine)
{
    pthread_mutex_lock(&engine->lock);
    sf_flow *starts = engine->starts;
    engine->starts = NULL;
    engine->last_start = &engine->starts;
    pthread_mutex_unlock(&engine->lock);
    for (sf_flow *flow = starts, *next; flow; flow = next) {
        next = flow->next;
        begin_flow(engine, flow);
    }
    return starts != NULL;
}

static bool advance_flows(sf_mpi_engine *engine)
{
    bool moved = false;
    memset(engine->taken, 0, sizeof engine->taken);
    for (sf_flow **at = &engine->flows; *at && !atomic_load(&engine->ending);) {
        sf_flow *flow = *at;
        moved |= sf_flow_advance(engine, flow);
        if (!sf_flow_is_over(flow) || atomic_load(&engine->ending)) {
            at = &flow->next;
            continue;
        }
        *at = flow->next;
        sf_flow_end(engine, flow);
        moved = true;
        /* Whoever waits may free it as soon as the lock is open. */
        pthread_mutex_lock(&engine->lock);
        flow->base.ended = sf_now();
        atomic_store(&flow->done, true);
        pthread_cond_broadcast(&engine->changed);
        pthread_mutex_unlock(&engine->lock);
    }
    return moved;
}

static void nap_for(double seconds)
{
    struct timespec t = {.tv_nsec = (long)(seconds * 1e9)};
    nanosleep(&t, NULL);
}

/* For whom `rank` waits in the transfer; -1: it is not waiting, or does not answer. */
static int ask_rank(sf_mpi_engine *engine, const sf_flow *flow, int rank)
{
    sf_letter *letter = sf_engine_new_letter(engine, SF_LETTER_ASK, rank, 0);
    if (!letter)
        return -1;
    letter->head.key = flow->base.group->key;
    letter->head.sequence = flow->base.sequence;
    sf_engine_post(engine, letter);
    double deadline = sf_now() + ANSWER_LIMIT;
    engine->answered = false;
    while (!engine->answered && engine->tell && sf_now() < deadline)
        if (!read_letters(engine) && !empty_outbox(engine))
            nap_for(NAP);
    return engine->answered ? engine->answer : -1;
}

/* In a ring everybody waits for the one before, in a pipeline for neighbours: follows them to the one who started it all. */
static void find_culprit(sf_mpi_engine *engine)
{
    const sf_flow *flow = engine->late;
    int rank = atomic_load(&flow->waits_for), next = rank;
    engine->asking = true;
    for (int i = 0; i < engine->size && next >= 0 && next != engine->rank; i++) {
        rank = next;
        next = ask_rank(engine, flow, rank);
        if (next == rank)
            break;
    }
    engine->asking = false;
    if (!engine->tell)
        return;
    char name[SF_COMM_TEXT];
    sf_comm_describe_request(&flow->base, name);
    pthread_mutex_lock(&engine->lock);
    snprintf(engine->reason, sizeof engine->reason, "waited %g s for rank %d in %s",
             flow->base.group->comm->limit, rank, name);
    pthread_mutex_unlock(&engine->lock);
}

/* The others learn of it, if they do not know, and that is the last of MPI. */
static void close_world(sf_mpi_engine *engine)
{
    if (engine->late)
        find_culprit(engine);
    double deadline = sf_now() + SF_MPI_TELL_LIMIT;
    if (engine->tell)
        post_to_all(engine, SF_LETTER_ABORT, engine->reason);
    while (engine->outbox && sf_now() < deadline) {
        empty_outbox(engine);
        sched_yield();
    }
    for (sf_flow *flow = engine->flows; flow; flow = flow->next)
        for (int64_t i = flow->receive_done; i < flow->received; i++)
            if (flow->receives[i % SF_RING_QUEUE] != MPI_REQUEST_NULL)
                MPI_Cancel(&flow->receives[i % SF_RING_QUEUE]);
    pthread_mutex_lock(&engine->lock);
    atomic_store(&engine->closed, true);
    pthread_cond_broadcast(&engine->changed);
    pthread_mutex_unlock(&engine->lock);
}

static bool all_gone(const sf_mpi_engine *engine)
{
    for (int r = 0; r < engine->size; r++)
        if (r != engine->rank && engine->gone[r] < engine->epoch)
            return false;
    return true;
}

static bool is_busy(const sf_mpi_engine *engine)
{
    return engine->flows || engine->outbox || engine->coming;
}

/* No progress since `still`. If transfers are in flight: polls for a while, then naps, so that the
 * program, and other ranks, have the processor. If none is: sleeps until it is woken, but polls now
 * and then, because some MPIs only send while they are called. */
static void rest_engine(sf_mpi_engine *engine, bool busy, double still, double now)
{
    double quiet = now - still;
    if (quiet < KEEN_FOR) {
        sched_yield();
    } else if (busy) {
        double some = quiet / 4 < NAP ? NAP : quiet / 4;
        nap_for(some < MOST_NAP ? some : MOST_NAP);
    } else {
        pthread_mutex_lock(&engine->lock);
        struct timespec until = sf_comm_timespec(now + (quiet < MOST_IDLE ? quiet : MOST_IDLE));
        engine->sleeping = true;
        if (!engine->starts && !engine->handed && !engine->leaving && !engine->quit &&
            !atomic_load(&engine->ending))
            pthread_cond_timedwait(&engine->work, &engine->lock, &until);
        engine->sleeping = engine->handed = false;
        pthread_mutex_unlock(&engine->lock);
    }
}

static void drop_slots(sf_mpi_engine *engine)
{
    while (engine->slots) {
        sf_slots *next = engine->slots->next;
        sf_free(engine->slots->memory);
        sf_free(engine->slots);
        engine->slots = next;
    }
}

/* Says good-bye once, and is through when everybody has. */
static bool leave_world(sf_mpi_engine *engine)
{
    pthread_mutex_lock(&engine->lock);
    bool leaving = engine->leaving;
    pthread_mutex_unlock(&engine->lock);
    if (!leaving)
        return false;
    if (!engine->told)
        post_to_all(engine, SF_LETTER_LEAVE, "");
    engine->told = true;
    if (!all_gone(engine) || engine->outbox)
        return false;
    engine->told = false;
    sf_engine_drop_letters(engine, engine->epoch);
    drop_slots(engine);
    pthread_mutex_lock(&engine->lock);
    engine->leaving = false;
    engine->left = true;
    pthread_cond_broadcast(&engine->changed);
    pthread_mutex_unlock(&engine->lock);
    return true;
}

/* Between two worlds MPI is the program's, and while a rank waits it calls MPI. False when the
 * process ends. */
static bool await_world(sf_mpi_engine *engine)
{
    pthread_mutex_lock(&engine->lock);
    engine->sleeping = true;
    while (!engine->quit && !atomic_load(&engine->ending) &&
           (engine->left || atomic_load(&engine->drivers) > 0)) {
        struct timespec until = sf_comm_timespec(sf_now() + MOST_IDLE);
        if (engine->left)
            pthread_cond_wait(&engine->work, &engine->lock);
        else
            pthread_cond_timedwait(&engine->work, &engine->lock, &until);
    }
    engine->sleeping = false;
    bool quit = engine->quit;
    pthread_mutex_unlock(&engine->lock);
    return !quit;
}

/* When a thread looked last: by the clock, and by the time that it has had a processor. */
typedef struct glance {
    double now, used;
} glance;

static glance glance_new(void)
{
    return (glance){sf_now(), sf_thread_time()};
}

/* Polls everything once; the caller holds `turn`. True if there was progress: a poll that took
 * long moved bytes, even if no request completed. Time in which others had the processor does
 * not count. */
static bool look_once(sf_mpi_engine *engine, glance *last)
{
    bool moved = take_starts(engine);
    moved |= read_letters(engine);
    moved |= advance_flows(engine);
    moved |= empty_outbox(engine);
    moved |= leave_world(engine);
    glance now = glance_new();
    moved |= now.used - last->used > LONG_LOOK;
    *last = now;
    return moved;
}

void sf_engine_serve(sf_mpi_engine *engine)
{
    glance last = glance_new();
    double still = last.now;
    while (await_world(engine)) {
        pthread_mutex_lock(&engine->turn);
        bool moved = look_once(engine, &last), ending = atomic_load(&engine->ending);
        bool busy = is_busy(engine);
        if (ending)
            close_world(engine);
        pthread_mutex_unlock(&engine->turn);
        if (ending)
            break;
        if (moved)
            still = last.now;
        else
            rest_engine(engine, busy, still, last.now);
    }
    pthread_mutex_lock(&engine->lock);
    while (!engine->quit)
        pthread_cond_wait(&engine->work, &engine->lock);
    pthread_mutex_unlock(&engine->lock);
}

void sf_engine_drive(sf_mpi_engine *engine, const sf_flow *flow, sf_patience *patience)
{
    if (!engine->shared)
        return;
    atomic_fetch_add(&engine->drivers, 1);
    pthread_mutex_lock(&engine->turn);
    glance last = glance_new();
    double still = last.now;
    while (!atomic_load(&flow->done) && !atomic_load(&engine->ending) &&
           last.now - still < BUSY_FOR && !sf_patience_ends(patience, last.now)) {
        if (look_once(engine, &last))
            still = last.now;
        else
            sched_yield();
    }
    bool more = is_busy(engine);
    pthread_mutex_unlock(&engine->turn);
    atomic_fetch_sub(&engine->drivers, 1);
    pthread_mutex_lock(&engine->lock);
    engine->handed = more;
    if (engine->sleeping && (more || engine->starts))
        pthread_cond_signal(&engine->work);
    pthread_mutex_unlock(&engine->lock);
}

#endif
