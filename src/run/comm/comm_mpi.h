/* Ranks over MPI: the engine, and the flow of one transfer through it.
 *
 * One thread at a time calls MPI: the engine's, which sleeps when no transfer is in flight, and
 * else polls all flows, so that transfers progress while the program computes; or the rank's own
 * while it waits, if several threads can call this MPI.
 *
 * Before a rank sends anything to another in a transfer, it announces it with a header (letter):
 * the group, the number of the transfer in the group, its kind (sf_signature), and the tag of its
 * messages; small transfers have their data in the letter. All letters have one tag and keep their
 * order. A letter that comes before its transfer was started here waits in the inbox. So making a
 * group needs no communication; tags, which MPI has few of, are only the sender's and never collide
 * (unless 32,767 transfers from one rank to another are in flight); and a mismatch with the
 * transfer that was started here is found before any data moves. A 64-bit hash of its ranks
 * identifies a group.
 *
 * Flows that have something to send at the same time send it in the order in which they were
 * started, to other hosts and to ranks of this one each by itself: the first one started is needed
 * first, and flows that shared a link would all end with the last one.
 *
 * Hosts must have the same byte order and number formats. */
#ifndef SF_RUN_COMM_COMM_MPI_H
#define SF_RUN_COMM_COMM_MPI_H

#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>

#include "run/comm/message_schedule.h"

enum { SF_MPI_REASON = 1024, SF_MPI_LETTER_TAG = 0 };

typedef enum sf_letter_kind {
    SF_LETTER_ANNOUNCE,
    SF_LETTER_ABORT, /* the payload says why */
    SF_LETTER_LEAVE,
    SF_LETTER_ASK,    /* for whom do you wait in this transfer, or before you come to it? */
    SF_LETTER_ANSWER, /* `tag`: that rank; -1 for none */
} sf_letter_kind;

/* As it travels; the payload follows. */
typedef struct sf_letter_head {
    int32_t kind, tag; /* of the messages to come */
    uint32_t epoch;    /* which world of this process, counted from 1 */
    int32_t place;     /* of the sender in the group */
    uint64_t key, sequence;
    sf_signature signature;
    char what[104];
} sf_letter_head;

typedef struct sf_letter {
    struct sf_letter *next;
    MPI_Request request;
    int peer, size; /* rank; bytes of head and payload */
    _Alignas(16) sf_letter_head head;
    char payload[]; /* right after the head; a text ends with 0 */
} sf_letter;

typedef struct sf_flow {
    sf_request base;
    struct sf_flow *next;
    atomic_bool done;
    atomic_int waits_for; /* a rank */

    /* All following fields are the engine's. */
    sf_schedule schedule;
    int64_t keep, kept;      /* elements to copy for itself, and those that are copied */
    int *tags_in, *tags_out; /* per place; 0: not announced */
    sf_letter **letters;     /* per place, inlined */
    const char **payloads;   /* of the letters */
    const void **scratch;
    int64_t sent, send_done, received, receive_done; /* begun, and complete */
    double went;                                     /* when a message was last begun or complete */
    sf_hop next_send, next_receive;                  /* if there is one more */
    double ready;                                    /* when next_send had all that it needs, */
    double due; /* and when it is through a throttled link; 0: no throttle */
    MPI_Request sends[SF_RING_QUEUE], receives[SF_RING_QUEUE];
    struct sf_slots *slots;
} sf_flow;

/* Memory between rounds, kept for the next flow. */
typedef struct sf_slots {
    struct sf_slots *next;
    int64_t bytes; /* of one slot */
    char *memory;  /* SF_RING_QUEUE slots to receive into, and as many to send from */
} sf_slots;

typedef struct sf_mpi_engine {
    pthread_mutex_t lock;
    pthread_cond_t work;    /* for the engine */
    pthread_cond_t changed; /* for those who wait for it */
    pthread_t thread;
    bool sleeping;

    /* Under the lock. */
    sf_comm *comm; /* the world of today, or NULL */
    atomic_uint epoch;
    sf_flow *starts, **last_start;
    bool handed;         /* a rank that waited has left something under way to the thread */
    bool started, ready; /* the thread; MPI, or `ending` */
    bool stopped;        /* the thread is through with MPI */
    double limit;        /* seconds, of the newest world */
    bool leaving, left;  /* the world is being freed; there is none */
    bool quit;           /* the process ends */
    atomic_bool ending;  /* somebody wants the world to end: `reason` */
    bool tell;           /* the others do not know yet */
    bool heard;          /* another rank wants it, and has said why */
    sf_flow *late;       /* it ends because this one took too long */
    atomic_bool closed;  /* it has ended; MPI is not called any more */
    _Atomic(sf_flow *)
        /* the request for which the rank waits, or NULL: set under the lock, so that it is not
         * freed meanwhile */
        awaited;
    char reason[SF_MPI_REASON];
    sf_status status; /* what it means here: SF_EPEER, unless this rank itself is why */

    atomic_int drivers; /* threads that want `turn`, or have it, while they wait */
    bool shared;        /* MPI may be called by any thread */

    /* Held by the thread that calls MPI; taken before the lock. */
    pthread_mutex_t turn;
    MPI_Comm world;
    bool owns_mpi;
    bool told; /* the others, that this rank leaves */
    int rank, size, tag_limit;
    uint64_t *hosts; /* by rank */
    double line_rate,
        line_free; /* bytes a second to other hosts, 0: as they come; and when it is free (mpi_throttle.c) */
    int *next_tag;     /* per rank */
    uint32_t *gone;    /* per rank: the last epoch it has left */
    sf_flow *flows;    /* under way, in the order of their start */
    bool taken[2];     /* in this look: an earlier flow has more for this host, or for others */
    sf_letter *outbox; /* being sent */
    sf_letter *inbox, **last_in; /* came before their transfer */
    sf_letter *coming;           /* being received */
    bool asking;                 /* for an answer, which is a rank, or -1 */
    bool answered;
    int answer;
    sf_slots *slots;
} sf_mpi_engine;

/* Seconds for informing the others that the world ends. */
#define SF_MPI_TELL_LIMIT 1.0

/* mpi_header.c. Caller holds the lock. Ends the world; the first reason stays. */
void sf_engine_end(sf_mpi_engine *engine, bool tell, const char *reason);

/* Ends the world from inside the engine, for a reason that is sent to the others; with that status
 * on this rank, and with SF_EPEER on them. */
void sf_engine_fail(sf_mpi_engine *engine, sf_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* False, and the world ended, if an MPI call did not return MPI_SUCCESS. */
bool sf_engine_check(sf_mpi_engine *engine, int code, const char *doing, int peer);

/* A letter with room for `payload` bytes, NULL without memory; and one with its head filled in. Letters belong to
 * the engine. */
sf_letter *sf_engine_allocate_letter(sf_mpi_engine *engine, int64_t payload);
sf_letter *sf_engine_new_letter(sf_mpi_engine *engine, sf_letter_kind kind, int peer,
                                int64_t payload);

/* Sends it. */
void sf_engine_post(sf_mpi_engine *engine, sf_letter *letter);

/* mpi_progress.c: the thread's work, until the process ends. */
void sf_engine_serve(sf_mpi_engine *engine);

/* Does the thread's work for the caller, who waits for the flow: until it is done, nothing moves for a while, or his
 * patience ends. Saves two changes of threads. */
void sf_engine_drive(sf_mpi_engine *engine, const sf_flow *flow, sf_patience *patience);

/* Drops letters of worlds up to `epoch` that match no transfer. */
void sf_engine_drop_letters(sf_mpi_engine *engine, uint32_t epoch);

/* mpi_throttle.c: SHEAF_MPI_LINK=HOSTS:BYTES makes ranks those of so many hosts, in order, each
 * with a link of so many bytes a second: for measuring without such hosts. Returns the error in it,
 * or NULL. */
const char *sf_line_read(sf_mpi_engine *engine);

/* Whether the next message of the flow may go: the line takes as long as it would before it is there. */
bool sf_line_lets(sf_mpi_engine *engine, sf_flow *flow, int peer, int64_t bytes);

/* mpi_transfer.c: a flow's first step, all others (true if something moved), and an announcement for it. */
bool sf_flow_begin(sf_mpi_engine *engine, sf_flow *flow);
bool sf_flow_advance(sf_mpi_engine *engine, sf_flow *flow);
void sf_flow_hear(sf_mpi_engine *engine, sf_flow *flow, sf_letter *letter);
void sf_flow_end(sf_mpi_engine *engine, sf_flow *flow);
bool sf_flow_is_over(const sf_flow *flow);

#endif
