#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "run/comm/comm_threads.h"

enum { SMALL_BYTES = 16 << 10 }; /* of a transfer: done by whoever comes last */

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

void sf_meeting_free(meeting *m)
{
    if (m->prev)
        m->prev->next = m->next;
    else
        m->circle->meetings = m->next;
    if (m->next)
        m->next->prev = m->prev;
    sf_free(m);
}

meeting *sf_meeting_find(circle *c, uint64_t sequence)
{
    for (meeting *m = c->meetings; m; m = m->next)
        if (m->sequence == sequence)
            return m;
    return new_meeting(c, sequence);
}

void sf_meeting_leave(request *r)
{
    meeting *m = r->meeting;
    m->members[r->base.group->place] = NULL;
    if (++m->released == m->circle->count)
        sf_meeting_free(m);
}

/* How many shares touch the memory of a member. */
static int memory_touches(const request *r)
{
    const sf_transfer *transfer = &r->base.transfer;
    int place = r->base.group->place;
    sf_route route = sf_collective_get(transfer->kind)->route;
    if (route == SF_ROUTE_PEER)
        return (transfer->from >= 0) + (transfer->to >= 0 && transfer->to != place);
    if (route == SF_ROUTE_CHAIN && transfer->from != place)
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
        sf_threads_work(w, s);
    else
        sf_threads_queue(w, s);
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
    sf_route route = sf_collective_get(transfer->kind)->route;
    if (route == SF_ROUTE_PEER) {
        int to = transfer->to;
        if (from >= 0 && m->members[from])
            begin_share(w, &m->shares[place], small);
        if (to >= 0 && m->members[to])
            begin_share(w, &m->shares[to], small);
    } else if (route == SF_ROUTE_CHAIN) {
        for (int p = 0; p < members; p++)
            if (m->members[p] && m->members[from] && (p == place || from == place))
                begin_share(w, &m->shares[p], small);
    } else if (m->arrived == members) {
        for (int p = 0; p < members; p++)
            begin_share(w, &m->shares[p], small);
    }
}

void sf_meeting_come(world *w, request *r)
{
    meeting *m = r->meeting;
    int place = r->base.group->place;
    atomic_store(&r->pending, memory_touches(r));
    m->members[place] = r;
    m->came[place] = true;
    m->arrived++;
    begin_shares(w, r);
}

bool sf_meeting_agrees(const request *r, char *text, size_t room)
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
        if (sf_collective_get(mine->kind)->route == SF_ROUTE_PEER &&
            ((mine->from == p) != (other->to == place) ||
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

int sf_meeting_misses(const request *r)
{
    const meeting *m = r->meeting;
    const sf_transfer *transfer = &r->base.transfer;
    int place = r->base.group->place;
    sf_route route = sf_collective_get(transfer->kind)->route;
    for (int p = 0; p < m->circle->count; p++) {
        if (m->came[p])
            continue;
        bool needed = true;
        if (route == SF_ROUTE_PEER)
            needed = p == transfer->from || p == transfer->to;
        if (route == SF_ROUTE_CHAIN && transfer->from != place)
            needed = p == transfer->from;
        if (needed)
            return p;
    }
    return -1;
}
