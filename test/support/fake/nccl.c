/* A library in the place of NCCL, for kernels that the host runs: the functions that the engine calls, between processes or threads, through
 * a file that all members map. As the real one it goes on in the background, and a member that does not come is waited for until
 * the communicator is aborted. It waits for graphs that it has a part in to be forgotten before it closes. Two members connect in their first call, which is not taken before both have made one.
 *
 *     FAKE_NCCL_LOG=FILE   gets a line for each communicator when it is closed: what was asked of it
 *     FAKE_NCCL_REFUSE=1   no communicator comes about
 *     FAKE_NCCL_STALL=N    the Nth run of a group of calls of a communicator, from 1, does not end until it is aborted
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "emulator/emulate_streams.h"
#include "run/cuda/cuda_libraries.h"

enum {
    ROOM = 1 << 16, /* bytes between two members, in one direction */
    SYSTEM = 2,     /* errors */
    ARGUMENT = 4,
    USAGE = 5,
};

typedef enum kind {
    ALL_REDUCE,
    REDUCE,
    REDUCE_SCATTER,
    ALL_GATHER,
    BROADCAST,
    SEND,
    RECEIVE,
    KINDS
} kind;
static const char *const names[] = {"all_reduce", "reduce", "reduce_scatter", "all_gather",
                                    "broadcast",  "send",   "receive"};

typedef struct channel {
    atomic_ullong put, taken;
    char bytes[ROOM];
} channel;

typedef struct shared {
    atomic_int arrived,
        connected;      /* members that have joined, and those that have called something */
    channel channels[]; /* from place a to place b: a * members + b */
} shared;

struct nccl_comm_ {
    int rank, members;
    size_t size;
    shared *shared;
    char path[128];
    atomic_int error, uses; /* jobs, and the owner */
    atomic_bool aborted;
    nccl_comm next_aborted;
    bool is_refused, lingers;   /* the next question is answered: not yet */
    long counts[KINDS], groups; /* groups of calls so far */
    atomic_long runs;           /* of them, and the one that does not end: */
    long stalls;
};

/* One call. */
typedef struct call {
    struct call *next;
    kind kind;
    const char *in;
    char *out;
    size_t count;
    int type, operation, peer;
    char *room; /* for what others bring to be combined, by place, or NULL */
    nccl_comm comm;
    sf_host_stream *stream;
} call;

/* Bytes on the way to or from a member; a head before them says what they are. */
typedef struct head {
    uint64_t kind, bytes;
} head;
typedef struct parcel {
    struct parcel *next;
    int peer;
    bool comes;
    head head, heard;
    char *bytes;
    size_t done; /* with the head */
} parcel;

typedef struct job {
    nccl_comm comm;
    call *calls;
    parcel *first, **last; /* while it is done */
} job;

static const int widths[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};

static void release(nccl_comm comm)
{
    if (atomic_fetch_sub(&comm->uses, 1) > 1)
        return;
    munmap(comm->shared, comm->size);
    free(comm);
}

/* Sums */

#define COMBINE(type)                                                                              \
    for (size_t i = 0; i < count; i++) {                                                           \
        type *a = (type *)to + i;                                                                  \
        const type b = ((const type *)from)[i];                                                    \
        *a = (type)(operation == NCCL_SUM    ? *a + b                                              \
                    : operation == NCCL_PROD ? *a * b                                              \
                    : operation == NCCL_MAX  ? (*a > b ? *a : b)                                   \
                                             : (*a < b ? *a : b));                                  \
    }                                                                                              \
    break;

static float widen(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float out;
    memcpy(&out, &wide, sizeof out);
    return out;
}

static uint16_t narrow(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static void combine(int type, int operation, char *to, const char *from, size_t count)
{
    switch (type) {
    case NCCL_INT8:
        COMBINE(int8_t)
    case NCCL_UINT8:
        COMBINE(uint8_t)
    case NCCL_INT32:
        COMBINE(int32_t)
    case NCCL_UINT32:
        COMBINE(uint32_t)
    case NCCL_INT64:
        COMBINE(int64_t)
    case NCCL_UINT64:
        COMBINE(uint64_t)
    case NCCL_FLOAT32:
        COMBINE(float)
    case NCCL_FLOAT64:
        COMBINE(double)
    case NCCL_BFLOAT16:
        for (size_t i = 0; i < count; i++) {
            float a = widen(((uint16_t *)to)[i]), b = widen(((const uint16_t *)from)[i]);
            ((uint16_t *)to)[i] = narrow(operation == NCCL_PROD ? a * b : a + b);
        }
        break;
    default:
        abort(); /* refused before */
    }
}

/* Parcels */

static void add_parcel(job *j, const call *c, int peer, bool comes, const char *bytes, size_t size)
{
    parcel *p = calloc(1, sizeof *p);
    uint64_t what = c->kind == RECEIVE ? SEND : c->kind;
    *p = (parcel){.peer = peer,
                  .comes = comes,
                  .head = {what << 8 | (uint64_t)c->type, size},
                  .bytes = (char *)(uintptr_t)bytes};
    *j->last = p;
    j->last = &p->next;
}

/* Part of a parcel, as much as there is room or there are bytes for. */
static bool move_some(nccl_comm comm, parcel *p)
{
    size_t total = sizeof p->head + p->head.bytes;
    int from = p->comes ? p->peer : comm->rank, to = p->comes ? comm->rank : p->peer;
    channel *c = &comm->shared->channels[from * comm->members + to];
    bool moved = false;
    while (p->done < total) {
        uint64_t put = atomic_load(&c->put), taken = atomic_load(&c->taken);
        if (p->comes ? put == taken : put - taken == ROOM)
            return moved;
        uint64_t at = (p->comes ? taken : put) % ROOM;
        uint64_t some = p->comes ? put - taken : ROOM - (put - taken);
        bool is_head = p->done < sizeof p->head;
        char *mine = is_head ? (char *)(p->comes ? &p->heard : &p->head) + p->done
                             : p->bytes + (p->done - sizeof p->head);
        uint64_t left = is_head ? sizeof p->head - p->done : total - p->done;
        some = some < ROOM - at ? some : ROOM - at;
        some = some < left ? some : left;
        memcpy(p->comes ? mine : c->bytes + at, p->comes ? c->bytes + at : mine, some);
        atomic_fetch_add(p->comes ? &c->taken : &c->put, some);
        p->done += some;
        moved = true;
        if (p->comes && p->done == sizeof p->head &&
            memcmp(&p->head, &p->heard, sizeof p->head) != 0) {
            atomic_store(&comm->error, USAGE);
            return false;
        }
    }
    return moved;
}

/* The first of each peer and direction goes on. */
static void move_all(job *j)
{
    nccl_comm comm = j->comm;
    bool stalls = atomic_fetch_add(&comm->runs, 1) + 1 == comm->stalls;
    while (stalls && !atomic_load(&comm->aborted))
        usleep(1000);
    for (bool all = false; !all && !atomic_load(&comm->aborted);) {
        bool moved = false;
        uint64_t busy[2] = {0};
        all = true;
        for (parcel *p = j->first; p; p = p->next) {
            uint64_t bit = UINT64_C(1) << p->peer;
            if (p->done == sizeof p->head + p->head.bytes || busy[p->comes] & bit)
                continue;
            all = false;
            busy[p->comes] |= bit;
            moved |= move_some(comm, p);
        }
        if (!moved && !all)
            usleep(100);
        while (atomic_load(&comm->error) && !atomic_load(&comm->aborted))
            usleep(1000);
    }
}

/* Calls */

static size_t width_of(const call *c)
{
    return (size_t)widths[c->type];
}

static void plan_call(job *j, call *c)
{
    int own = c->comm->rank, members = c->comm->members;
    size_t size = c->count * width_of(c);
    bool gathers =
        c->kind == ALL_REDUCE || c->kind == REDUCE_SCATTER || (c->kind == REDUCE && c->peer == own);
    c->room = gathers ? malloc((size_t)members * size + 1) : NULL;
    if (c->kind == SEND)
        add_parcel(j, c, c->peer, false, c->in, size);
    if (c->kind == RECEIVE)
        add_parcel(j, c, c->peer, true, c->out, size);
    if (c->kind == SEND || c->kind == RECEIVE)
        return;
    for (int p = 0; p < members; p++) {
        const char *in = c->kind == REDUCE_SCATTER ? c->in + (size_t)p * size : c->in;
        bool sends = c->kind == REDUCE ? p == c->peer : c->kind != BROADCAST || own == c->peer;
        bool takes = gathers || c->kind == ALL_GATHER || (c->kind == BROADCAST && p == c->peer);
        char *out = gathers                 ? c->room + (size_t)p * size
                    : c->kind == ALL_GATHER ? c->out + (size_t)p * size
                                            : c->out;
        if (p == own && takes && out != in)
            memcpy(out, in, size);
        if (p != own && sends)
            add_parcel(j, c, p, false, in, size);
        if (p != own && takes)
            add_parcel(j, c, p, true, out, size);
    }
}

static void finish_call(const call *c)
{
    size_t size = c->count * width_of(c);
    if (!c->room)
        return;
    for (int p = 1; p < c->comm->members; p++)
        combine(c->type, c->operation, c->room, c->room + (size_t)p * size, c->count);
    memcpy(c->out, c->room, size);
}

/* As often as a graph has it. */
static void run_job(void *argument)
{
    job *j = argument;
    if (atomic_load(&j->comm->aborted))
        return;
    j->first = NULL;
    j->last = &j->first;
    for (call *c = j->calls; c; c = c->next)
        plan_call(j, c);
    move_all(j);
    for (call *c = j->calls; c; c = c->next) {
        if (!atomic_load(&j->comm->aborted))
            finish_call(c);
        free(c->room);
    }
    for (parcel *p = j->first, *next; p; p = next) {
        next = p->next;
        free(p);
    }
}

static void drop_job(void *argument)
{
    job *j = argument;
    for (call *c = j->calls, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    release(j->comm);
    free(j);
}

/* Groups of calls: of one communicator on one stream, as the engine makes them */

static _Thread_local int depth;
static _Thread_local call *calls, *newest;
static _Thread_local nccl_comm first_aborted;

static int put_calls(void)
{
    if (!calls)
        return 0;
    job *j = calloc(1, sizeof *j);
    *j = (job){.comm = calls->comm, .calls = calls};
    if (++j->comm->groups == 1)
        atomic_fetch_add(&j->comm->shared->connected, 1);
    for (const call *c = calls; c; c = c->next)
        if (c->comm != j->comm || c->stream != calls->stream)
            abort();
    calls = newest = NULL;
    atomic_fetch_add(&j->comm->uses, 1);
    j->comm->lingers = true;
    j->calls->stream->put(j->calls->stream, (sf_host_work){run_job, drop_job, j});
    return NCCL_IN_PROGRESS;
}

static int add_call(call what)
{
    if (what.type < 0 || what.type > NCCL_BFLOAT16 ||
        (what.kind <= REDUCE_SCATTER && what.type == NCCL_FLOAT16))
        return ARGUMENT;
    call *c = malloc(sizeof *c);
    *c = what;
    if (newest)
        newest->next = c;
    else
        calls = c;
    newest = c;
    c->comm->counts[c->kind]++;
    return depth > 0 ? 0 : put_calls();
}

#define EXPORT __attribute__((visibility("default")))

EXPORT int ncclGetVersion(int *version);
EXPORT int ncclGetUniqueId(nccl_id *id);
EXPORT int ncclCommInitRankConfig(nccl_comm *out, int members, nccl_id id, int rank,
                                  nccl_config *config);
EXPORT int ncclCommGetAsyncError(nccl_comm comm, nccl_result *out);
EXPORT int ncclCommFinalize(nccl_comm comm);
EXPORT int ncclCommDestroy(nccl_comm comm);
EXPORT int ncclCommAbort(nccl_comm comm);
EXPORT int ncclGroupStart(void);
EXPORT int ncclGroupEnd(void);
EXPORT int ncclAllReduce(const void *in, void *out, size_t count, nccl_type type,
                         nccl_operation operation, nccl_comm comm, nccl_stream stream);
EXPORT int ncclReduce(const void *in, void *out, size_t count, nccl_type type,
                      nccl_operation operation, int root, nccl_comm comm, nccl_stream stream);
EXPORT int ncclReduceScatter(const void *in, void *out, size_t count, nccl_type type,
                             nccl_operation operation, nccl_comm comm, nccl_stream stream);
EXPORT int ncclAllGather(const void *in, void *out, size_t count, nccl_type type, nccl_comm comm,
                         nccl_stream stream);
EXPORT int ncclBroadcast(const void *in, void *out, size_t count, nccl_type type, int root,
                         nccl_comm comm, nccl_stream stream);
EXPORT int ncclSend(const void *in, size_t count, nccl_type type, int peer, nccl_comm comm,
                    nccl_stream stream);
EXPORT int ncclRecv(void *out, size_t count, nccl_type type, int peer, nccl_comm comm,
                    nccl_stream stream);

int ncclGetVersion(int *version)
{
    *version = 22800;
    return 0;
}

/* The name of a file that there is none of yet. */
int ncclGetUniqueId(nccl_id *id)
{
    static atomic_int count;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(id->bytes, sizeof id->bytes, "%s/fake-nccl-%d-%d-%ld",
             getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", (int)getpid(),
             atomic_fetch_add(&count, 1), now.tv_nsec);
    return 0;
}

int ncclCommInitRankConfig(nccl_comm *out, int members, nccl_id id, int rank, nccl_config *config)
{
    nccl_comm comm = calloc(1, sizeof *comm);
    if (config->magic != 0xcafebeef || config->blocking || rank < 0 || rank >= members ||
        members > 64)
        return free(comm), ARGUMENT;
    comm->rank = rank;
    comm->members = members;
    comm->size = sizeof(shared) + (size_t)members * (size_t)members * sizeof(channel);
    comm->uses = 1;
    comm->is_refused = getenv("FAKE_NCCL_REFUSE") != NULL;
    comm->stalls = getenv("FAKE_NCCL_STALL") ? atol(getenv("FAKE_NCCL_STALL")) : 0;
    memcpy(comm->path, id.bytes, sizeof comm->path);
    int file = open(id.bytes, O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, (off_t)comm->size) != 0)
        return free(comm), SYSTEM;
    comm->shared = mmap(NULL, comm->size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (comm->shared == MAP_FAILED)
        return free(comm), SYSTEM;
    atomic_fetch_add(&comm->shared->arrived, 1);
    *out = comm;
    return NCCL_IN_PROGRESS;
}

static bool is_connected(nccl_comm comm)
{
    return comm->groups == 0 || comm->members != 2 || atomic_load(&comm->shared->connected) == 2;
}

int ncclCommGetAsyncError(nccl_comm comm, nccl_result *out)
{
    bool all = atomic_load(&comm->shared->arrived) == comm->members;
    if (all && comm->rank == 0 && comm->path[0]) {
        unlink(comm->path);
        comm->path[0] = 0;
    }
    *out = comm->is_refused && all                        ? USAGE
           : atomic_load(&comm->error)                    ? atomic_load(&comm->error)
           : !all || comm->lingers || !is_connected(comm) ? NCCL_IN_PROGRESS
                                                          : 0;
    comm->lingers = false;
    return 0;
}

/* What was asked of it. */
static void close_comm(nccl_comm comm, const char *how)
{
    const char *path = getenv("FAKE_NCCL_LOG");
    char text[256];
    int length = snprintf(text, sizeof text, "%s: rank %d of %d", how, comm->rank, comm->members);
    for (int i = 0; i < KINDS; i++)
        length += snprintf(text + length, sizeof text - (size_t)length, " %s %ld", names[i],
                           comm->counts[i]);
    int file = path ? open(path, O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;
    length += snprintf(text + length, sizeof text - (size_t)length, " groups %ld runs %ld",
                       comm->groups, atomic_load(&comm->runs));
    text[length] = '\n';
    if (file >= 0 && write(file, text, (size_t)length + 1) < 0)
        perror(path);
    if (file >= 0)
        close(file);
    if (comm->path[0])
        unlink(comm->path);
    release(comm);
}

int ncclCommFinalize(nccl_comm comm)
{
    return atomic_load(&comm->uses) > 1 ? NCCL_IN_PROGRESS : 0;
}

int ncclCommDestroy(nccl_comm comm)
{
    close_comm(comm, "destroyed");
    return 0;
}

/* In a group; graphs that it has a part in have to be forgotten, or this has no end. */
int ncclCommAbort(nccl_comm comm)
{
    atomic_store(&comm->aborted, true);
    comm->next_aborted = first_aborted;
    first_aborted = comm;
    return 0;
}

int ncclGroupStart(void)
{
    depth++;
    return 0;
}

int ncclGroupEnd(void)
{
    if (--depth > 0)
        return 0;
    while (first_aborted) {
        nccl_comm comm = first_aborted;
        first_aborted = comm->next_aborted;
        while (atomic_load(&comm->uses) > 1)
            usleep(1000);
        close_comm(comm, "aborted");
    }
    return put_calls();
}

#define CALL(...)                                                                                  \
    add_call((call){__VA_ARGS__, .comm = comm, .stream = (sf_host_stream *)(void *)stream})

int ncclAllReduce(const void *in, void *out, size_t count, nccl_type type, nccl_operation operation,
                  nccl_comm comm, nccl_stream stream)
{
    return CALL(.kind = ALL_REDUCE, .in = in, .out = out, .count = count, .type = type,
                .operation = operation);
}

int ncclReduce(const void *in, void *out, size_t count, nccl_type type, nccl_operation operation,
               int root, nccl_comm comm, nccl_stream stream)
{
    return CALL(.kind = REDUCE, .in = in, .out = out, .count = count, .type = type,
                .operation = operation, .peer = root);
}

int ncclReduceScatter(const void *in, void *out, size_t count, nccl_type type,
                      nccl_operation operation, nccl_comm comm, nccl_stream stream)
{
    return CALL(.kind = REDUCE_SCATTER, .in = in, .out = out, .count = count, .type = type,
                .operation = operation);
}

int ncclAllGather(const void *in, void *out, size_t count, nccl_type type, nccl_comm comm,
                  nccl_stream stream)
{
    return CALL(.kind = ALL_GATHER, .in = in, .out = out, .count = count, .type = type);
}

int ncclBroadcast(const void *in, void *out, size_t count, nccl_type type, int root, nccl_comm comm,
                  nccl_stream stream)
{
    return CALL(.kind = BROADCAST, .in = in, .out = out, .count = count, .type = type,
                .peer = root);
}

int ncclSend(const void *in, size_t count, nccl_type type, int peer, nccl_comm comm,
             nccl_stream stream)
{
    return CALL(.kind = SEND, .in = in, .count = count, .type = type, .peer = peer);
}

int ncclRecv(void *out, size_t count, nccl_type type, int peer, nccl_comm comm, nccl_stream stream)
{
    return CALL(.kind = RECEIVE, .out = out, .count = count, .type = type, .peer = peer);
}
