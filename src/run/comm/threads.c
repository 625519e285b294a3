/* Ranks as threads of one process.
 *
 * Members of a group meet: each brings its request, and once those are there who are needed, the work is
 * cut into shares, one per member. Share s of a reduction folds segment s of all inputs and writes it to
 * all outputs; it alone touches those elements, so shares need no barriers and may work in place.
 *
 *     kind                     share p                              needs
 *     all_reduce               segment p of all, to all             all
 *     reduce_scatter           block p of all, to p                 all
 *     all_gather               the input of p, to all               all
 *     all_to_all               block p of all, to p                 all
 *     broadcast                the input of the source, to p        the source and p
 *     permute                  the input of `from` of p, to p       that and p
 *
 * A share belongs to the rank of its member: its helper thread does it, or the rank itself while it waits.
 * Small shares are done on the spot by whoever came last. A request is done when all shares that touch
 * its memory are.
 *
 * One lock guards everything but the work on elements. When the world has failed no share is begun, those
 * under way stop at the next slice, and whoever waits first sees them stop: his memory is his again.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

#include "base/mem.h"
#include "run/comm/kind.h"

enum {
    MOST_RANKS = 1024,
    SMALL_BYTES = 16 << 10, /* of a transfer: done by whoever comes last */
    SLICE_BYTES = 32 << 10, /* between two looks at whether to go on */
    YIELDS = 16,            /* before a waiting rank sleeps */
    REASON = 1024,
    HELPER_STACK = 512 << 10,
};

typedef struct meeting meeting;

typedef struct share {
    struct share *next;
    meeting *meeting;
    int place;
    bool begun;
} share;

typedef struct request {
    sf_request base;
    meeting *meeting;
    atomic_int pending; /* shares that still touch its memory */
} request;

struct meeting {
    meeting *next, *prev; /* of the circle */
    struct circle *circle;
    uint64_t sequence;
    request **members; /* NULL: not come yet, or gone */
    bool *came;
    int arrived, released, running;
    share *shares;
};

/* A group, as all its members see it. */
typedef struct circle {
    struct circle *next;
    int count;
    bool is_pair;
    int *ranks;
    meeting *meetings;
} circle;

typedef struct end {
    sf_comm base;
    struct world *world;
    pthread_t helper;
    pthread_cond_t wake_owner, wake_helper;
    share *first, **last; /* shares that wait to be done */
    bool owner_sleeps, left, started;
} end;

typedef struct world {
    pthread_mutex_t lock;
    pthread_cond_t quiet; /* after a failure: a share has stopped */
    int size, living;
    end *ends;
    circle *circles;
    atomic_bool failed;
    bool stop;
    char reason[REASON];
} world;

static world *world_of(const sf_request *base)
{
    return ((end *)base->group->comm)->world;
}

/* Caller holds the lock. The first reason stays. */
static void fail_world(world *w, const char *reason)
{
    if (!atomic_load(&w->failed)) {
        snprintf(w->reason, sizeof w->reason, "%s", reason);
        atomic_store(&w->failed, true);
    }
    for (int r = 0; r < w->size; r++)
        pthread_cond_broadcast(&w->ends[r].wake_owner);
    pthread_cond_broadcast(&w->quiet);
}

/* The work on elements ------------------------------------------------------------------------ */

static const char *in_of(const meeting *m, int place, int part)
{
    return m->members[place]->base.transfer.parts[part].in;
}

static char *out_of(const meeting *m, int place, int part)
{
    return m->members[place]->base.transfer.parts[part].out;
}

static const sf_transfer_memory *memory_of(const share *s)
{
    return s->meeting->members[s->place]->base.transfer.memory;
}

/* Copies in slices; false when the world failed meanwhile, or the memory did. */
static bool copy_slices(const world *w, const share *s, char *out, const char *in, int64_t size)
{
    const sf_transfer_memory *memory = memory_of(s);
    if (out == in || size == 0)
        return true;
    if (memory)
        return memory->copy(memory->context, out, in, size);
    for (int64_t at = 0; at < size; at += SLICE_BYTES) {
        if (atomic_load_explicit(&w->failed, memory_order_relaxed))
            return false;
        int64_t some = size - at < SLICE_BYTES ? size - at : SLICE_BYTES;
        memcpy(out + at, in + at, (size_t)some);
    }
    return true;
}

/* Elements [first, last) of part `part`: the fold of all inputs, read `shift` elements further on. */
static bool reduce_slices(const world *w, const share *s, int part, int64_t shift, int64_t first,
                          int64_t last)
{
    const meeting *m = s->meeting;
    int members = m->circle->count;
    const request *mine = m->members[s->place];
    bool all = mine->base.transfer.kind == SF_ALL_REDUCE;
    const sf_transfer_memory *memory = memory_of(s);
    int64_t bytes = mine->base.bytes, run = memory ? last - first : SLICE_BYTES / bytes;
    const void *sources[MOST_RANKS];
    for (int64_t at = first; at < last; at += run) {
        if (atomic_load_explicit(&w->failed, memory_order_relaxed))
            return false;
        int64_t some = last - at < run ? last - at : run;
        for (int p = 0; p < members; p++)
            sources[p] = in_of(m, p, part) + (shift + at) * bytes;
        char *out = out_of(m, s->place, part) + at * bytes;
        if (!memory)
            sf_comm_fold(&mine->base.combine, sources, members, s->place, out, some);
        else if (!memory->fold(memory->context, sources, members, s->place, out, some))
            return false;
        for (int p = 0; all && p < members; p++)
            if (p != s->place &&
                !copy_slices(w, s, out_of(m, p, part) + at * bytes, out, some * bytes))
                return false;
    }
    return true;
}

static bool do_part(const world *w, const share *s, int part)
{
    const meeting *m = s->meeting;
    int members = m->circle->count, p = s->place;
    const sf_transfer *transfer = &m->members[p]->base.transfer;
    const sf_transfer_part *own = &transfer->parts[part];
    int64_t count = own->count, bytes = m->members[p]->base.bytes, size = count * bytes;
    int64_t stride = sf_comm_stride(own), step = stride * bytes, first;
    bool good = true;
    switch (transfer->kind) {
    case SF_ALL_REDUCE:
        first = sf_comm_segment_of(own, members, p);
        count = sf_comm_segment(count, members, p + 1) - sf_comm_segment(count, members, p);
        return reduce_slices(w, s, part, 0, first, first + count);
    case SF_REDUCE_SCATTER:
        return reduce_slices(w, s, part, p * stride, 0, count);
    case SF_ALL_GATHER:
        for (int q = 0; q < members && good; q++)
            good = copy_slices(w, s, out_of(m, q, part) + p * step, in_of(m, p, part), size);
        return good;
    case SF_ALL_TO_ALL:
        for (int q = 0; q < members && good; q++)
            good = copy_slices(w, s, out_of(m, p, part) + q * step, in_of(m, q, part) + p * step,
                               size);
        return good;
    case SF_BROADCAST:
    case SF_PERMUTE:
        return copy_slices(w, s, out_of(m, p, part), in_of(m, transfer->from, part), size);
    case SF_COLLECTIVE_COUNT:
        break;
    }
    return good;
}

static bool do_share(const world *w, const share *s)
{
    int nparts = s->meeting->members[s->place]->base.transfer.nparts;
    bool good = true;
    for (int i = 0; i < nparts && good; i++)
        good = do_part(w, s, i);
    return good;
}

/* Shares -------------------------------------------------------------------------------------- */

static void settle_request(request *r)
{
    if (atomic_fetch_sub_explicit(&r->pending, 1, memory_order_release) == 1)
        pthread_cond_broadcast(&((end *)r->base.group->comm)->wake_owner);
}

/* Those whose memory the share touched. */
static void finish_share(const share *s)
{
    meeting *m = s->meeting;
    const sf_transfer *transfer = &m->members[s->place]->base.transfer;
    if (transfer->kind == SF_BROADCAST || transfer->kind == SF_PERMUTE) {
        int from = transfer->from;
        if (from != s->place)
            settle_request(m->members[from]);
        settle_request(m->members[s->place]);
        return;
    }
    for (int p = 0; p < m->circle->count; p++)
        settle_request(m->members[p]);
}

/* Caller holds the lock; it is given up while elements are worked on. */
static void run_share(world *w, const share *s)
{
    if (atomic_load(&w->failed))
        return;
    meeting *m = s->meeting;
    m->running++;
    pthread_mutex_unlock(&w->lock);
    bool good = do_share(w, s);
    pthread_mutex_lock(&w->lock);
    m->running--;
    if (good)
        finish_share(s);
    else if (!atomic_load(&w->failed))
        fail_world(w, "memory of a rank cannot be copied");
    if (atomic_load(&w->failed))
        pthread_cond_broadcast(&w->quiet);
}

static const share *take_work_share(end *e)
{
    share *s = e->first;
    if (s) {
        e->first = s->next;
        if (!e->first)
            e->last = &e->first;
    }
    return s;
}

static void queue_share(world *w, share *s)
{
    end *e = &w->ends[s->meeting->circle->ranks[s->place]];
    s->next = NULL;
    *e->last = s;
    e->last = &s->next;
    pthread_cond_signal(e->owner_sleeps ? &e->wake_owner : &e->wake_helper);
}

static void *run_helper(void *argument)
{
    end *e = argument;
    world *w = e->world;
    pthread_mutex_lock(&w->lock);
    while (!w->stop && !e->left) {
        const share *s = take_work_share(e);
        if (s)
            run_share(w, s);
        else
            pthread_cond_wait(&e->wake_helper, &w->lock);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* Meetings ------------------------------------------------------------------------------------ */

static meeting *new_meeting(circle *c, uint64_t sequence)
{
    size_t count = (size_t)c->count;
    meeting *m = sf_alloc_kept(sizeof *m + count * (sizeof *m->members + sizeof *m->shares + 1));
    if (!m)
        return NULL;
    m->circle = c;
    m->sequence = sequence;
    m->members = (request **)(m + 1);
    m->shares = (share *)(void *)(m->members + count);
    m->came = (bool *)(m->shares + count);
    for (int p = 0; p < c->count; p++)
        m->shares[p] = (share){.meeting = m, .place = p};
    m->next = c->meetings;
    if (m->next)
        m->next->prev = m;
    c->meetings = m;
    return m;
}

static void free_meeting(meeting *m)
{
    if (m->prev)
        m->prev->next = m->next;
    else
        m->circle->meetings = m->next;
    if (m->next)
        m->next->prev = m->prev;
    sf_free(m);
}

static meeting *find_meeting(circle *c, uint64_t sequence)
{
    for (meeting *m = c->meetings; m; m = m->next)
        if (m->sequence == sequence)
            return m;
    return new_meeting(c, sequence);
}

/* The member is done with it, or never will be. */
static void release_request(request *r)
{
    meeting *m = r->meeting;
    m->members[r->base.group->place] = NULL;
    if (++m->released == m->circle->count)
        free_meeting(m);
}

/* How many shares touch the memory of a member. */
static int memory_touches(const request *r)
{
    const sf_transfer *transfer = &r->base.transfer;
    int place = r->base.group->place;
    if (transfer->kind == SF_PERMUTE)
        return (transfer->from >= 0) + (transfer->to >= 0 && transfer->to != place);
    if (transfer->kind == SF_BROADCAST && transfer->from != place)
        return 1;
    return r->base.group->count;
}

/* A share that has become ready goes to its rank, or, if small, is done at once. */
static void begin_share(world *w, share *s, bool small)
{
    if (s->begun)
        return;
    s->begun = true;
    if (small)
        run_share(w, s);
    else
        queue_share(w, s);
}

static bool is_small(const request *r)
{
    const sf_transfer *transfer = &r->base.transfer;
    int64_t size = 0;
    for (int i = 0; i < transfer->nparts && size <= SMALL_BYTES; i++)
        size += transfer->parts[i].count * r->base.bytes;
    return size * r->base.group->count <= SMALL_BYTES;
}

/* Begins every share that was waiting for the member at `place`. */
static void begin_shares(world *w, request *r)
{
    meeting *m = r->meeting;
    const sf_transfer *transfer = &r->base.transfer;
    int members = m->circle->count, place = r->base.group->place, from = transfer->from;
    bool small = is_small(r);
    if (transfer->kind == SF_PERMUTE) {
        int to = transfer->to;
        if (from >= 0 && m->members[from])
            begin_share(w, &m->shares[place], small);
        if (to >= 0 && m->members[to])
            begin_share(w, &m->shares[to], small);
    } else if (transfer->kind == SF_BROADCAST) {
        for (int p = 0; p < members; p++)
            if (m->members[p] && m->members[from] && (p == place || from == place))
                begin_share(w, &m->shares[p], small);
    } else if (m->arrived == members) {
        for (int p = 0; p < members; p++)
            begin_share(w, &m->shares[p], small);
    }
}

/* Whether the member agrees with those who came before; else says how not. */
static bool request_agrees(const request *r, char *text, size_t room)
{
    const meeting *m = r->meeting;
    const sf_transfer *mine = &r->base.transfer;
    sf_signature here = sf_comm_signature(&r->base);
    int place = r->base.group->place;
    for (int p = 0; p < m->circle->count; p++) {
        if (!m->members[p])
            continue;
        const sf_transfer *other = &m->members[p]->base.transfer;
        sf_signature there = sf_comm_signature(&m->members[p]->base);
        if (memcmp(&here, &there, sizeof here) != 0) {
            sf_comm_differ(&r->base, m->circle->ranks[p], &there, other->what, text, room);
            return false;
        }
        if (mine->kind == SF_PERMUTE && ((mine->from == p) != (other->to == place) ||
                                         (mine->to == p) != (other->from == place))) {
            char name[SF_COMM_TEXT];
            sf_comm_describe_request(&r->base, name);
            snprintf(text, room, "ranks %d and %d disagree on who sends to whom in %s",
                     m->circle->ranks[place], m->circle->ranks[p], name);
            return false;
        }
    }
    return true;
}

/* The interface ------------------------------------------------------------------------------- */

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
    char text[REASON];
    sf_status status = SF_OK;
    pthread_mutex_lock(&w->lock);
    if (atomic_load(&w->failed)) {
        status = report_world_failure(w, base, diag);
    } else if (!(r->meeting = find_meeting(base->group->own, base->sequence))) {
        status = sf_fail(diag, SF_ENOMEM, SF_NOWHERE, "no memory for a transfer");
    } else if (!request_agrees(r, text, sizeof text)) {
        fail_world(w, text);
        status = sf_fail(diag, SF_EPEER, SF_NOWHERE, "%s", text);
    } else {
        atomic_store(&r->pending, memory_touches(r));
        r->meeting->members[base->group->place] = r;
        r->meeting->came[base->group->place] = true;
        r->meeting->arrived++;
        begin_shares(w, r);
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

/* A place that the request waits for, and that has not come; -1: only for the work. */
static int missing_rank(const request *r)
{
    const meeting *m = r->meeting;
    const sf_transfer *transfer = &r->base.transfer;
    int place = r->base.group->place;
    for (int p = 0; p < m->circle->count; p++) {
        if (m->came[p])
            continue;
        bool needed = true;
        if (transfer->kind == SF_PERMUTE)
            needed = p == transfer->from || p == transfer->to;
        if (transfer->kind == SF_BROADCAST && transfer->from != place)
            needed = p == transfer->from;
        if (needed)
            return p;
    }
    return -1;
}

/* Gives up on the request: somebody has left, or the time is over. */
static sf_status give_up_request(world *w, const request *r, int place, bool left, sf_diag *diag)
{
    char name[SF_COMM_TEXT], text[REASON], told[REASON + 64];
    const sf_comm *comm = r->base.group->comm;
    int rank = r->base.group->ranks[place];
    sf_comm_describe_request(&r->base, name);
    if (left)
        snprintf(text, sizeof text, "rank %d has left, and is waited for in %s", rank, name);
    else
        snprintf(text, sizeof text, "waited %g s for rank %d in %s", comm->limit, rank, name);
    snprintf(told, sizeof told, "rank %d gave up: %s", comm->rank, text);
    fail_world(w, told);
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
        const share *s = take_work_share(e);
        if (s) {
            run_share(w, s);
            continue;
        }
        int place = missing_rank(r);
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
    release_request(r);
    pthread_mutex_unlock(&w->lock);
    return status;
}

static void threads_abort(sf_comm *comm, const char *why)
{
    world *w = ((end *)comm)->world;
    char text[REASON];
    snprintf(text, sizeof text, "rank %d gave up: %s", comm->rank, why);
    pthread_mutex_lock(&w->lock);
    fail_world(w, text);
    pthread_mutex_unlock(&w->lock);
}

static void free_world(world *w)
{
    for (circle *c = w->circles, *next; c; c = next) {
        next = c->next;
        while (c->meetings)
            free_meeting(c->meetings);
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
            char name[SF_COMM_TEXT], text[REASON];
            sf_comm_describe_request(base, name);
            snprintf(text, sizeof text, "rank %d has left in the middle of %s", e->base.rank, name);
            fail_world(w, text);
        }
        while (atomic_load(&w->failed) && r->meeting->running > 0)
            pthread_cond_wait(&w->quiet, &w->lock);
        release_request(r);
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
    if (size < 1 || size > MOST_RANKS)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "a world of %d ranks; 1 to %d are possible",
                       size, MOST_RANKS);
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
