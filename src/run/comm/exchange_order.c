#include "run/comm/exchange_order.h"

#include <stdlib.h>

typedef struct meeting {
    uint64_t key;
    uint32_t members, arrived;
    uint64_t time;  /* when the last so far has come */
    int first_late; /* a rank that waits for it, or -1 */
} meeting;

typedef struct walker {
    size_t next;   /* coming */
    uint64_t time; /* of its current instruction, which is */
    uint32_t at;
    int next_late; /* the next of those that wait for the same */
} walker;

typedef struct walking {
    const sf_comings *ranks;
    walker *walkers;
    meeting *meetings; /* by key */
    size_t count;
    int *ready; /* ranks that may go on */
    size_t nready;
    bool is_odd; /* members have different signatures */
} walking;

static int compare_keys(const void *a, const void *b)
{
    const meeting *x = a, *y = b;
    return (x->key > y->key) - (x->key < y->key);
}

static meeting *find_meeting(const walking *w, uint64_t key)
{
    const meeting wanted = {.key = key};
    return w->count == 0
               ? NULL
               : bsearch(&wanted, w->meetings, w->count, sizeof *w->meetings, compare_keys);
}

static void list_meetings(walking *w, int nranks, sf_arena *arena)
{
    size_t all = 0, count = 0;
    for (int r = 0; r < nranks; r++)
        all += w->ranks[r].count;
    w->meetings = SF_ARRAY(arena, all + 1, meeting);
    for (int r = 0; r < nranks; r++)
        for (size_t i = 0; i < w->ranks[r].count; i++) {
            const sf_coming *c = &w->ranks[r].at[i];
            if (c->members > 0)
                w->meetings[count++] =
                    (meeting){.key = c->key, .members = c->members, .first_late = -1};
        }
    qsort(w->meetings, count, sizeof *w->meetings, compare_keys);
    for (size_t i = 0; i < count; i++)
        if (w->count == 0 || w->meetings[i].key != w->meetings[w->count - 1].key)
            w->meetings[w->count++] = w->meetings[i];
}

static bool is_complete(const meeting *m)
{
    return m->arrived == m->members;
}

/* The rank has reached the exchange that it begins. */
static void arrive(walking *w, meeting *m, const sf_coming *c, uint64_t time)
{
    w->is_odd = w->is_odd || m->members != c->members || is_complete(m);
    m->arrived++;
    m->time = time > m->time ? time : m->time;
    if (!is_complete(m))
        return;
    for (int late = m->first_late; late >= 0; late = w->walkers[late].next_late)
        w->ready[w->nready++] = late;
}

/* Until it waits for a meeting that is not complete, or its end. `times`, by coming, may be NULL. */
static void walk(walking *w, int rank, uint64_t *times)
{
    walker *k = &w->walkers[rank];
    const sf_comings *all = &w->ranks[rank];
    for (; k->next < all->count && !w->is_odd; k->next++) {
        const sf_coming *c = &all->at[k->next];
        meeting *m = find_meeting(w, c->key);
        w->is_odd = w->is_odd || !m || c->at < k->at;
        if (w->is_odd)
            return;
        k->time += c->at - k->at;
        k->at = c->at;
        if (c->members > 0) {
            arrive(w, m, c, k->time);
        } else if (!is_complete(m)) {
            k->next_late = m->first_late;
            m->first_late = rank;
            return;
        } else if (k->time <= m->time) {
            k->time = m->time + 1;
        }
        if (times)
            times[k->next] = k->time;
    }
}

/* Where a rank puts its exchanges. */
typedef struct placing {
    uint32_t begun;
    uint64_t time, key;
} placing;

static int compare_placings(const void *a, const void *b)
{
    const placing *x = a, *y = b;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return (x->key > y->key) - (x->key < y->key);
}

/* Before the first instruction of the rank whose tick is later. `next` is the first coming that is later than all put so far. */
static uint32_t place(const sf_comings *all, const uint64_t *times, uint64_t time, size_t *next)
{
    while (*next < all->count && times[*next] <= time)
        (*next)++;
    const sf_coming *last = &all->at[*next - 1];
    uint64_t before = last->at + (time - times[*next - 1]) + 1;
    return *next < all->count && all->at[*next].at < before ? all->at[*next].at : (uint32_t)before;
}

static void place_all(const walking *w, int rank, const uint64_t *times, sf_arena *arena,
                      sf_put **puts, size_t *count)
{
    const sf_comings *all = &w->ranks[rank];
    placing *placings = SF_ARRAY(arena, all->count + 1, placing);
    size_t next = 0;
    *count = 0;
    for (size_t i = 0; i < all->count; i++)
        if (all->at[i].members > 0) {
            uint64_t key = all->at[i].key;
            placings[(*count)++] = (placing){(uint32_t)i, find_meeting(w, key)->time, key};
        }
    qsort(placings, *count, sizeof *placings, compare_placings);
    *puts = SF_ARRAY(arena, *count + 1, sf_put);
    for (size_t i = 0; i < *count; i++)
        (*puts)[i] = (sf_put){placings[i].begun, place(all, times, placings[i].time, &next)};
}

bool sf_order_meetings(int nranks, const sf_comings *ranks, int rank, sf_arena *arena,
                       sf_put **puts, size_t *count)
{
    walking w = {.ranks = ranks};
    uint64_t *times = SF_ARRAY(arena, ranks[rank].count + 1, uint64_t);
    list_meetings(&w, nranks, arena);
    w.walkers = SF_ARRAY(arena, nranks, walker);
    w.ready = SF_ARRAY(arena, nranks, int);
    for (int r = nranks; r-- > 0;)
        w.ready[w.nready++] = r;
    while (w.nready > 0 && !w.is_odd) {
        int r = w.ready[--w.nready];
        walk(&w, r, r == rank ? times : NULL);
    }
    for (size_t i = 0; i < w.count && !w.is_odd; i++)
        w.is_odd = !is_complete(&w.meetings[i]);
    for (int r = 0; r < nranks && !w.is_odd; r++)
        w.is_odd = w.walkers[r].next < ranks[r].count;
    if (w.is_odd)
        return false;
    place_all(&w, rank, times, arena, puts, count);
    return true;
}
