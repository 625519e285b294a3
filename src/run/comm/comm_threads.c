#include "run/comm/comm_threads.h"

#include <sched.h>
#include <signal.h>
#include <string.h>

#include "base/mem.h"

enum {
    YIELDS = 16, /* before a waiting rank sleeps */
    HELPER_STACK = 512 << 10,
};

static world *world_of(const sf_request *base)
{
    return ((end *)base->group->comm)->world;
}

static sf_status threads_join(sf_group *group, sf_diag *diag)
{
    world *w = ((end *)group->comm)->world;
    size_t size = (size_t)group->count * sizeof *group->ranks;
    pthread_mutex_lock(&w->lock);
    circle *c = w->circles;
    while (c && (c->count != group->count || c->is_pair != group->is_pair ||
                 memcmp(c->ranks, group->ranks, size) != 0))
        c = c->next;
    if (!c && (c = sf_alloc_kept(sizeof *c + size))) {
        *c = (circle){.next = w->circles,
                      .count = group->count,
                      .is_pair = group->is_pair,
                      .ranks = (int *)(c + 1)};
        memcpy(c->ranks, group->ranks, size);
        w->circles = c;
    }
    pthread_mutex_unlock(&w->lock);
    group->own = c;
    if (!c)
        return sf_fail(diag, SF_ENOMEM, SF_NOWHERE, "no memory for a group of ranks");
    return SF_OK;
}

static sf_status report_world_failure(const world *w, const sf_request *base, sf_diag *diag)
{
    char name[SF_COMM_TEXT];
    sf_comm_describe_request(base, name);
    sf_fail(diag, SF_EPEER, SF_NOWHERE, "%s; rank %d was in %s", w->reason, base->group->comm->rank,
            name);
    sf_heard(diag);
    return SF_EPEER;
}

static sf_status threads_start(sf_request *base, sf_diag *diag)
{
    world *w = world_of(base);
    request *r = (request *)base;
    char text[SF_THREADS_REASON];
    sf_status status = SF_OK;
    pthread_mutex_lock(&w->lock);
    if (atomic_load(&w->failed)) {
        status = report_world_failure(w, base, diag);
    } else if (!(r->meeting = sf_meeting_find(base->group->own, base->sequence))) {
        status = sf_fail(diag, SF_ENOMEM, SF_NOWHERE, "no memory for a transfer");
    } else if (!sf_meeting_agrees(r, text, sizeof text)) {
        sf_threads_fail(w, text);
        status = sf_fail(diag, SF_EPEER, SF_NOWHERE, "%s", text);
    } else {
        sf_meeting_come(w, r);
    }
    pthread_mutex_unlock(&w->lock);
    return status;
}

static bool threads_done(const sf_request *base)
{
    const request *r = (const request *)base;
    return atomic_load_explicit(&r->pending, memory_order_acquire) == 0 ||
           atomic_load(&world_of(base)->failed);
}

/* Gives up on the request: somebody has left, or the time is over. */
static sf_status give_up_request(world *w, const request *r, int place, bool left, sf_diag *diag)
{
    char name[SF_COMM_TEXT], text[SF_THREADS_REASON], told[SF_THREADS_REASON + 64];
    const sf_comm *comm = r->base.group->comm;
    int rank = r->base.group->ranks[place];
    sf_comm_describe_request(&r->base, name);
    if (left)
        snprintf(text, sizeof text, "rank %d has left, and is waited for in %s", rank, name);
    else
        snprintf(text, sizeof text, "waited %g s for rank %d in %s", comm->limit, rank, name);
    snprintf(told, sizeof told, "rank %d gave up: %s", comm->rank, text);
    sf_threads_fail(w, told);
    return sf_fail(diag, SF_EPEER, SF_NOWHERE, "%s", text);
}

/* Most waits are short: a few chances for others to run before going to sleep. */
static void yield_a_little(const request *r)
{
    for (int i = 0; i < YIELDS && !threads_done(&r->base); i++)
        sched_yield();
}

static sf_status wait_locked(world *w, end *e, request *r, sf_diag *diag)
{
    sf_patience patience = sf_patience_new(e->base.limit);
    while (atomic_load_explicit(&r->pending, memory_order_acquire) > 0) {
        if (atomic_load(&w->failed))
            return report_world_failure(w, &r->base, diag);
        const share *s = sf_threads_take(e);
        if (s) {
            sf_threads_work(w, s);
            continue;
        }
        int place = sf_meeting_misses(r);
        bool left = place >= 0 && w->ends[r->base.group->ranks[place]].left;
        bool late = sf_patience_ends(&patience, sf_now());
        if (left || (place >= 0 && late))
            return give_up_request(w, r, place, left, diag);
        e->owner_sleeps = true;
        struct timespec until = sf_patience_next(&patience);
        if (place < 0)
            pthread_cond_wait(&e->wake_owner, &w->lock);
        else
            pthread_cond_timedwait(&e->wake_owner, &w->lock, &until);
        e->owner_sleeps = false;
    }
    return SF_OK;
}

static sf_status threads_wait(sf_request *base, sf_diag *diag)
{
    request *r = (request *)base;
    end *e = (end *)base->group->comm;
    world *w = e->world;
    yield_a_little(r);
    pthread_mutex_lock(&w->lock);
    sf_status status = wait_locked(w, e, r, diag);
    while (status != SF_OK && r->meeting->running > 0)
        pthread_cond_wait(&w->quiet, &w->lock);
    if (e->first) /* whoever put it there may have counted on this thread */
        pthread_cond_signal(&e->wake_helper);
    sf_meeting_leave(r);
    pthread_mutex_unlock(&w->lock);
    return status;
}

static void threads_abort(sf_comm *comm, const char *why)
{
    world *w = ((end *)comm)->world;
    char text[SF_THREADS_REASON];
    snprintf(text, sizeof text, "rank %d gave up: %s", comm->rank, why);
    pthread_mutex_lock(&w->lock);
    sf_threads_fail(w, text);
    pthread_mutex_unlock(&w->lock);
}

static void free_world(world *w)
{
    for (circle *c = w->circles, *next; c; c = next) {
        next = c->next;
        while (c->meetings)
            sf_meeting_free(c->meetings);
        sf_free(c);
    }
    for (int r = 0; r < w->size; r++) {
        pthread_cond_destroy(&w->ends[r].wake_owner);
        pthread_cond_destroy(&w->ends[r].wake_helper);
    }
    pthread_cond_destroy(&w->quiet);
    pthread_mutex_destroy(&w->lock);
    sf_free(w->ends);
    sf_free(w);
}

/* Requests that nobody waited for: done ones are let go, others are a failure of the world. */
static void leave_requests(world *w, end *e)
{
    for (sf_request *base = e->base.requests; base; base = base->next) {
        request *r = (request *)base;
        if (base->local)
            continue;
        if (atomic_load_explicit(&r->pending, memory_order_acquire) > 0) {
            char name[SF_COMM_TEXT], text[SF_THREADS_REASON];
            sf_comm_describe_request(base, name);
            snprintf(text, sizeof text, "rank %d has left in the middle of %s", e->base.rank, name);
            sf_threads_fail(w, text);
        }
        while (atomic_load(&w->failed) && r->meeting->running > 0)
            pthread_cond_wait(&w->quiet, &w->lock);
        sf_meeting_leave(r);
    }
}

static void threads_free(sf_comm *comm)
{
    end *e = (end *)comm;
    world *w = e->world;
    pthread_mutex_lock(&w->lock);
    leave_requests(w, e);
    e->left = true;
    pthread_cond_signal(&e->wake_helper);
    for (int r = 0; r < w->size; r++)
        pthread_cond_broadcast(&w->ends[r].wake_owner);
    pthread_mutex_unlock(&w->lock);
    pthread_join(e->helper, NULL);
    pthread_mutex_lock(&w->lock);
    bool last = --w->living == 0;
    pthread_mutex_unlock(&w->lock);
    if (last)
        free_world(w);
}

static const sf_comm_backend threads_kind = {
    .name = "threads",
    .is_one_process = true,
    .request_bytes = sizeof(request),
    .join = threads_join,
    .start = threads_start,
    .done = threads_done,
    .wait = threads_wait,
    .abort = threads_abort,
    .free = threads_free,
};

static void *run_helper(void *argument)
{
    end *e = argument;
    world *w = e->world;
    pthread_mutex_lock(&w->lock);
    while (!w->stop && !e->left) {
        const share *s = sf_threads_take(e);
        if (s)
            sf_threads_work(w, s);
        else
            pthread_cond_wait(&e->wake_helper, &w->lock);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* Signals are for the threads of the program. */
static bool start_helpers(world *w)
{
    sigset_t all, before;
    pthread_attr_t attr;
    bool good = true;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, HELPER_STACK);
    for (int r = 0; r < w->size && good; r++)
        w->ends[r].started = good =
            pthread_create(&w->ends[r].helper, &attr, run_helper, &w->ends[r]) == 0;
    pthread_attr_destroy(&attr);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return good;
}

static void stop_helpers(world *w)
{
    pthread_mutex_lock(&w->lock);
    w->stop = true;
    for (int r = 0; r < w->size; r++)
        pthread_cond_signal(&w->ends[r].wake_helper);
    pthread_mutex_unlock(&w->lock);
    for (int r = 0; r < w->size; r++)
        if (w->ends[r].started)
            pthread_join(w->ends[r].helper, NULL);
}

static world *new_world(int size, double limit)
{
    world *w = sf_alloc_kept(sizeof *w);
    end *ends = w ? sf_alloc_kept((size_t)size * sizeof *ends) : NULL;
    if (!ends)
        return sf_free(w), NULL;
    *w = (world){.size = size, .living = size, .ends = ends};
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->quiet, &attr);
    for (int r = 0; r < size; r++) {
        end *e = &ends[r];
        e->base = (sf_comm){.kind = &threads_kind, .rank = r, .size = size, .limit = limit};
        e->world = w;
        e->last = &e->first;
        pthread_cond_init(&e->wake_owner, &attr);
        pthread_cond_init(&e->wake_helper, &attr);
    }
    pthread_condattr_destroy(&attr);
    return w;
}

sf_status sf_comm_threads_new(int size, const sf_comm_options *options, sf_diag *diag,
                              sf_comm **out)
{
    double limit = options && options->limit > 0 ? options->limit : SF_COMM_LIMIT;
    if (size < 1 || size > SF_THREADS_MOST)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "a world of %d ranks; 1 to %d are possible",
                       size, SF_THREADS_MOST);
    world *w = new_world(size, limit);
    if (!w)
        return sf_fail(diag, SF_ENOMEM, SF_NOWHERE, "no memory for a world of %d ranks", size);
    if (!start_helpers(w)) {
        stop_helpers(w);
        free_world(w);
        return sf_fail(diag, SF_EIO, SF_NOWHERE, "cannot start a thread for each of %d ranks",
                       size);
    }
    for (int r = 0; r < size; r++)
        out[r] = &w->ends[r].base;
    return SF_OK;
}
