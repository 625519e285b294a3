/* Ranks as threads of one process.
 *
 * Members of a group meet: each posts its request, and once the needed ones are there, the work is
 * split into shares, one per member. Share s of a reduction folds segment s of all inputs and
 * writes it to all outputs; it alone touches those elements, so shares need no barriers and may
 * work in place.
 *
 *     kind                     share p                              needs
 *     all_reduce               segment p of all, to all             all
 *     reduce_scatter           block p of all, to p                 all
 *     all_gather               the input of p, to all               all
 *     all_to_all               block p of all, to p                 all
 *     broadcast                the input of the source, to p        the source and p
 *     permute                  the input of `from` of p, to p       that and p
 *
 * A share belongs to the rank of its member: its helper thread does it, or the rank itself while it
 * waits. The last member to arrive does small shares itself. A request is done when all shares that
 * touch its memory are.
 *
 * One lock guards everything but the work on elements. When the world has failed no share is begun,
 * those in flight stop at the next slice, and a waiting rank first sees them stop: its memory is
 * then its own. */
#ifndef SF_RUN_COMM_COMM_THREADS_H
#define SF_RUN_COMM_COMM_THREADS_H

#include <pthread.h>
#include <stdatomic.h>

#include "run/comm/comm_backend.h"

enum { SF_THREADS_MOST = 1024, SF_THREADS_REASON = 1024 };

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
    char reason[SF_THREADS_REASON];
} world;

/* comm_threads_work.c. Of all of these the caller holds the lock.
 * Ends the world; the first reason stays. */
void sf_threads_fail(world *w, const char *reason);

/* Does the share; the lock is given up while elements are worked on. */
void sf_threads_work(world *w, const share *s);

/* Hands a share to its rank; and the next that a rank has to do, or NULL. */
void sf_threads_queue(world *w, share *s);
const share *sf_threads_take(end *e);

/* comm_threads_meeting.c. That of this number in the circle, NULL without memory. */
meeting *sf_meeting_find(circle *c, uint64_t sequence);
void sf_meeting_free(meeting *m);

/* The member is there, and agrees with those who came before, or the text says how not: shares that waited for it begin. */
bool sf_meeting_agrees(const request *r, char *text, size_t room);
void sf_meeting_come(world *w, request *r);

/* The member is done with it, or never will be. */
void sf_meeting_leave(request *r);

/* A place that the request waits for, and that has not come; -1: only for the work. */
int sf_meeting_misses(const request *r);

#endif
