/* The backend of comm.h: the table of functions of a kind, and the state that all kinds share.
 *
 * comm.c checks, copies and counts transfers, finds groups and runs transfers within one rank; a
 * kind moves the data. A kind puts sf_comm first in its own struct, and sf_request first in its
 * requests.
 *
 * The order of a reduction is defined here, once, for all kinds. `count` elements over n members
 * fall into n segments, sf_comm_segment. Segment s of the result is
 *
 *     ((x[s+1] . x[s+2]) . x[s+3]) ... . x[s]        places modulo n, rounded after every step
 *
 * which is the order of a ring, and that of sf_comm_fold in one place.
 *
 * Memory is kept memory (base/mem.h): a guard of the caller must not free memory that other ranks
 * read. */
#ifndef SF_RUN_COMM_COMM_BACKEND_H
#define SF_RUN_COMM_COMM_BACKEND_H

#include "base/machine.h"
#include "run/comm/comm.h"
#include "run/comm/reduce_elements.h"

typedef struct sf_comm_backend {
    const char *name;
    bool is_one_process; /* its ranks are threads */
    size_t request_bytes;

    /* Optional: a group was made; `own` may be set. */
    sf_status (*join)(sf_group *group, sf_diag *diag);

    /* The request is checked and filled; `sequence` is its number in the group. If this fails, comm.c
     * frees the request. */
    sf_status (*start)(sf_request *request, sf_diag *diag);
    bool (*done)(const sf_request *request);

    /* Returns when nobody looks at the request or its memory any more, with success or not. */
    sf_status (*wait)(sf_request *request, sf_diag *diag);

    void (*abort)(sf_comm *comm, const char *why);

    /* Informs the others that this rank has left; frees the kind's resources, and `comm`. */
    void (*free)(sf_comm *comm);
} sf_comm_backend;

struct sf_comm {
    const sf_comm_backend *kind;
    int rank, size;
    double limit;
    sf_group *groups;      /* newest first */
    sf_request *requests;  /* started and not waited for */
    const uint64_t *hosts; /* by rank: identifies its host; NULL: there is one */
};

struct sf_group {
    sf_comm *comm;
    sf_group *next;
    int count, place;
    int *ranks;
    bool is_pair; /* for messages alone */
    bool spans_hosts;
    uint64_t key;      /* a hash of the ranks in their order, another for a pair */
    uint64_t sequence; /* of the next transfer */
    void *own;         /* the kind's */
};

struct sf_request {
    sf_group *group;
    sf_request *next, *prev;
    uint64_t sequence;
    sf_transfer transfer; /* `parts` are the request's own copy */
    sf_combine combine;   /* of reductions */
    int64_t bytes;        /* of an element */
    bool awaited;         /* it will be waited for at once */
    bool local;           /* a group of one: it was done at the start */
    _Atomic double ended; /* set by the kind before it is done: when that was, of sf_now */
};

/* Fields that must be equal on all members. No padding: compared and hashed as bytes. */
typedef struct sf_signature {
    int32_t kind, dtype, monoid, nparts, from, zero;
    int64_t count;   /* of all parts */
    uint64_t counts; /* a hash of the count of each */
} sf_signature;

sf_signature sf_comm_signature(const sf_request *request);

/* "all_reduce add of 1000 f32 (gradient of ...)". */
enum { SF_COMM_TEXT = 256 };
void sf_comm_describe(const sf_signature *signature, const char *what, char *text);
void sf_comm_describe_request(const sf_request *request, char *text);

/* The expected and the received signature, for a message. */
void sf_comm_differ(const sf_request *here, int rank, const sf_signature *there, const char *what,
                    char *text, size_t room);

/* The first element of part `index` of `count` elements in `parts` parts whose sizes differ by one at
 * most, the longer ones first; index == parts gives count. */
static inline int64_t sf_comm_segment(int64_t count, int64_t parts, int64_t index)
{
    int64_t more = count % parts;
    return count / parts * index + (index < more ? index : more);
}

/* Elements from one block of the part to the next, where it has one for each place. */
static inline int64_t sf_comm_stride(const sf_transfer_part *part)
{
    return part->stride > 0 ? part->stride : part->count;
}

/* Where segment `index` of an all_reduce among so many begins; that of their number, if segments
 * are contiguous, is its end. */
static inline int64_t sf_comm_segment_of(const sf_transfer_part *part, int members, int index)
{
    return part->stride > 0 ? part->stride * index : sf_comm_segment(part->count, members, index);
}

/* out = the fold of the `members` sources for segment `segment`; out may be any of them. */
void sf_comm_fold(const sf_combine *combine, const void *const *sources, int members, int segment,
                  void *out, int64_t count);

/* Seconds that a rank may wait for another, by default. */
#define SF_COMM_LIMIT 300.0

/* A time of sf_now, for a condition variable that goes by CLOCK_MONOTONIC. */
struct timespec sf_comm_timespec(double deadline);

/* The remaining time of a rank's wait for another. A waiting rank looks several times a second, and
 * of the time since the last look no more counts than a look can take: while this process was
 * stopped, or had no processor, it could not see the progress of others. */
typedef struct sf_patience {
    double left, looked;
} sf_patience;

sf_patience sf_patience_new(double limit); /* 0: SF_COMM_LIMIT */
bool sf_patience_ends(sf_patience *patience, double now);
struct timespec sf_patience_next(const sf_patience *patience); /* when to look next */

#endif
