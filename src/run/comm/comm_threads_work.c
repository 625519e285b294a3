#include <string.h>

#include "run/comm/comm_threads.h"

enum { SLICE_BYTES = 32 << 10 }; /* between two looks at whether to go on */

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
    bool all = sf_collective_get(mine->base.transfer.kind)->gathers;
    const sf_transfer_memory *memory = memory_of(s);
    int64_t bytes = mine->base.bytes, run = memory ? last - first : SLICE_BYTES / bytes;
    const void *sources[SF_THREADS_MOST];
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

void sf_threads_fail(world *w, const char *reason)
{
    if (!atomic_load(&w->failed)) {
        snprintf(w->reason, sizeof w->reason, "%s", reason);
        atomic_store(&w->failed, true);
    }
    for (int r = 0; r < w->size; r++)
        pthread_cond_broadcast(&w->ends[r].wake_owner);
    pthread_cond_broadcast(&w->quiet);
}

static void settle_request(request *r)
{
    r->base.ended = sf_now();
    if (atomic_fetch_sub_explicit(&r->pending, 1, memory_order_release) == 1)
        pthread_cond_broadcast(&((end *)r->base.group->comm)->wake_owner);
}

/* Those whose memory the share touched. */
static void finish_share(const share *s)
{
    meeting *m = s->meeting;
    const sf_transfer *transfer = &m->members[s->place]->base.transfer;
    sf_route route = sf_collective_get(transfer->kind)->route;
    if (route == SF_ROUTE_CHAIN || route == SF_ROUTE_PEER) {
        int from = transfer->from;
        if (from != s->place)
            settle_request(m->members[from]);
        settle_request(m->members[s->place]);
        return;
    }
    for (int p = 0; p < m->circle->count; p++)
        settle_request(m->members[p]);
}

void sf_threads_work(world *w, const share *s)
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
        sf_threads_fail(w, "memory of a rank cannot be copied");
    if (atomic_load(&w->failed))
        pthread_cond_broadcast(&w->quiet);
}

const share *sf_threads_take(end *e)
{
    share *s = e->first;
    if (s) {
        e->first = s->next;
        if (!e->first)
            e->last = &e->first;
    }
    return s;
}

void sf_threads_queue(world *w, share *s)
{
    end *e = &w->ends[s->meeting->circle->ranks[s->place]];
    s->next = NULL;
    *e->last = s;
    e->last = &s->next;
    pthread_cond_signal(e->owner_sleeps ? &e->wake_owner : &e->wake_helper);
}
