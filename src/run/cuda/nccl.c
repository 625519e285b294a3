#include "run/cuda/nccl.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/machine.h"
#include "base/mem.h"
#include "base/str.h"
#include "run/comm/rank_agreement.h"

enum { MAGIC = (int)0xcafebeef, VERSION = 21800 }; /* of the configuration */

/* Settings */

typedef struct settings {
    bool off, shared;
    char path[512]; /* or empty */
} settings;

static sf_status read_settings(sf_diag *diag, settings *out)
{
    const char *at = getenv("SHEAF_NCCL");
    *out = (settings){0};
    while (at && *at) {
        size_t length = strcspn(at, ",");
        if (length == 3 && strncmp(at, "off", 3) == 0)
            out->off = true;
        else if (length == 6 && strncmp(at, "shared", 6) == 0)
            out->shared = true;
        else if (memchr(at, '/', length) && length < sizeof out->path)
            memcpy(out->path, at, length);
        else
            return sf_fail(diag, SF_EUSAGE, SF_NOWHERE,
                           "SHEAF_NCCL has off, shared or the path of a library, not '%.*s'",
                           (int)length, at);
        at += length + (at[length] == ',');
    }
    return SF_OK;
}

/* Once, since other threads read the environment: and before the first call of NCCL. */
static void prefer_same_bits(void)
{
    setenv("NCCL_NVLS_ENABLE", "0", 0);
}

sf_status sf_nccl_asked(const sf_device *device, sf_diag *diag, bool *asked, bool *shared)
{
    settings s;
    SF_TRY(read_settings(diag, &s));
    *asked = !s.off && (!device->is_host || s.path[0]);
    *shared = s.shared;
    return SF_OK;
}

sf_status sf_nccl_load(sf_nccl *nccl, sf_diag *diag)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    settings s;
    pthread_once(&once, prefer_same_bits);
    SF_TRY(read_settings(diag, &s));
    const sf_cuda_exchanges *library;
    SF_TRY(sf_cuda_load_exchanges(s.path[0] ? s.path : NULL, diag, &library));
    nccl->library = library;
    return SF_OK;
}

/* Types */

/* The NCCL type in which elements are combined, or -1. */
static int type_of(sf_dtype dtype)
{
    switch ((int)dtype) {
    case SF_S8:
        return NCCL_INT8;
    case SF_U8:
        return NCCL_UINT8;
    case SF_S32:
        return NCCL_INT32;
    case SF_U32:
        return NCCL_UINT32;
    case SF_S64:
        return NCCL_INT64;
    case SF_U64:
        return NCCL_UINT64;
    case SF_F16:
        return NCCL_FLOAT16;
    case SF_F32:
        return NCCL_FLOAT32;
    case SF_F64:
        return NCCL_FLOAT64;
    case SF_BF16:
        return NCCL_BFLOAT16;
    default:
        return -1;
    }
}

static int operation_of(sf_monoid monoid, sf_dtype dtype)
{
    bool exact = !sf_is_float(dtype);
    switch ((int)monoid) {
    case SF_MONOID_ADD:
        return NCCL_SUM;
    case SF_MONOID_MUL:
        return NCCL_PROD;
    case SF_MONOID_MAX:
        return exact ? NCCL_MAX : -1;
    case SF_MONOID_MIN:
        return exact ? NCCL_MIN : -1;
    default:
        return -1;
    }
}

bool sf_nccl_can(const sf_transfer *transfer)
{
    return !sf_collective_get(transfer->kind)->reduces ||
           (type_of(transfer->dtype) >= 0 && operation_of(transfer->monoid, transfer->dtype) >= 0);
}

/* Failing */

static const char *words_of(int result)
{
    static const char *const words[] = {"no error",
                                        "an error of CUDA",
                                        "an error of the system",
                                        "internal error",
                                        "an invalid argument",
                                        "invalid usage",
                                        "another rank or the network failed"};
    return result >= 0 && (size_t)result < sizeof words / sizeof *words ? words[result]
                                                                        : "an unknown error";
}

static sf_status fail_result(const sf_nccl_group *g, const char *doing, int result, sf_diag *diag)
{
    sf_fail(diag, SF_EPEER, SF_NOWHERE, "NCCL fails to %s with %d ranks: %s", doing,
            sf_comm_group_size(g->group), words_of(result));
    return sf_hint(diag, "NCCL_DEBUG=WARN says more, and SHEAF_NCCL=off does without it");
}

typedef struct progress {
    const sf_nccl *nccl;
    const sf_nccl_group *group;
    int result;
} progress;

static bool has_progressed(void *context)
{
    progress *p = context;
    int result = p->nccl->library->state(p->group->handle, &p->result);
    p->result = result != 0 ? result : p->result;
    return p->result != NCCL_IN_PROGRESS;
}

/* A call goes on in the background. */
static sf_status finish_call(const sf_nccl *nccl, const sf_nccl_group *g, const char *doing,
                             int result, sf_diag *diag)
{
    progress p = {nccl, g, result};
    if (result == NCCL_IN_PROGRESS)
        SF_TRY(sf_comm_watch(nccl->comm, 0, has_progressed, &p,
                             "the other ranks to connect by NCCL", diag));
    return p.result == 0 ? SF_OK : fail_result(g, doing, p.result, diag);
}

sf_status sf_nccl_check(const sf_nccl *nccl, sf_diag *diag)
{
    for (int i = 0; nccl->library && i < nccl->ngroups; i++) {
        const sf_nccl_group *g = &nccl->groups[i];
        int result = 0;
        if (!g->is_open)
            continue;
        int status = nccl->library->state(g->handle, &result);
        result = status != 0 ? status : result;
        if (result != 0 && result != NCCL_IN_PROGRESS)
            return fail_result(g, "exchange", result, diag);
    }
    return SF_OK;
}

/* Joining */

/* The data that members exchange: the first makes the id of the communicator. */
typedef struct row {
    nccl_id id;
    uint64_t signature;
    uint64_t is_ready;
} row;

static sf_status gather_rows(const sf_nccl_group *g, const row *own, row *all, sf_diag *diag)
{
    sf_transfer_part part = {.in = own, .out = all, .count = sizeof *own};
    sf_transfer transfer = {.kind = SF_ALL_GATHER,
                            .dtype = SF_U8,
                            .nparts = 1,
                            .parts = &part,
                            .what = "communicators of NCCL"};
    return sf_comm_run(g->group, &transfer, diag);
}

static sf_status take_lane(sf_nccl *nccl, sf_nccl_group *g, sf_diag *diag)
{
    const sf_device_table *table = nccl->device->table;
    if (g->is_pair)
        SF_TRY(table->add(nccl->device, diag, &g->lane));
    else if (!nccl->lane)
        SF_TRY(table->add(nccl->device, diag, &nccl->lane));
    if (!g->is_pair)
        g->lane = nccl->lane;
    return table->stream(nccl->device, g->lane, diag, &g->stream);
}

static sf_status join_group(const sf_nccl *nccl, sf_nccl_group *g, nccl_id id, sf_diag *diag)
{
    nccl_config config = {.size = sizeof config,
                          .magic = (unsigned)MAGIC,
                          .version = VERSION,
                          .blocking = 0,
                          .cluster = INT_MIN, /* as it likes */
                          .fewest_blocks = INT_MIN,
                          .most_blocks = INT_MIN,
                          .net = NULL,
                          .split_share = INT_MIN};
    int result = nccl->library->init(&g->handle, sf_comm_group_size(g->group), id,
                                     sf_comm_group_place(g->group), &config);
    if (result != 0 && result != NCCL_IN_PROGRESS)
        g->handle = NULL;
    SF_TRY(finish_call(nccl, g, "start", result, diag));
    g->is_open = true;
    return SF_OK;
}

/* The library connects two ranks in the first call of both, and blocks each until the other has
 * made its own. At their places in programs, two stages might block each other; here all ranks
 * connect in one order. */
static sf_status connect_pair(const sf_nccl *nccl, const sf_nccl_group *g, sf_diag *diag)
{
    bool sends = sf_comm_group_place(g->group) == 0;
    sf_transfer_part part = {.in = nccl->byte, .out = nccl->byte, .count = 1};
    sf_transfer transfer = {.kind = SF_PERMUTE,
                            .dtype = SF_U8,
                            .nparts = 1,
                            .parts = &part,
                            .to = sends ? 1 : -1,
                            .from = sends ? -1 : 0};
    return sf_nccl_put(nccl, g, &transfer, diag);
}

/* A failure on one member keeps all of them from using it; `good` is whether this rank has none. */
static sf_status meet_group(sf_nccl *nccl, sf_nccl_group *g, bool *good, sf_diag *why, row *rows,
                            sf_diag *diag)
{
    int members = sf_comm_group_size(g->group);
    const int *ranks = sf_comm_group_ranks(g->group);
    row own = {.signature = g->signature};
    *good = *good && take_lane(nccl, g, why) == SF_OK;
    if (*good && sf_comm_group_place(g->group) == 0) {
        int result = nccl->library->make_id(&own.id);
        *good = result == 0 || fail_result(g, "start", result, why) == SF_OK;
    }
    own.is_ready = *good;
    SF_TRY(gather_rows(g, &own, rows, diag));
    for (int i = 1; i < members; i++)
        if (rows[i].signature != rows[0].signature)
            return sf_fail(diag, SF_EPEER, SF_NOWHERE,
                           "ranks %d and %d, of a group of %d, have different exchanges in their "
                           "programs",
                           ranks[0], ranks[i], members);
    for (int i = 0; i < members; i++)
        *good = *good && rows[i].is_ready;
    *good = *good && join_group(nccl, g, rows[0].id, why) == SF_OK &&
            (!g->is_pair || connect_pair(nccl, g, why) == SF_OK);
    return SF_OK;
}

/* The first rank that something failed on says so. */
static sf_status settle_joining(sf_nccl *nccl, bool good, const sf_diag *why, uint64_t *failures,
                                sf_diag *diag)
{
    int first = 0;
    SF_TRY(sf_agree_list(nccl->comm, !good, "communicators of NCCL", diag, failures));
    while (first < sf_comm_size(nccl->comm) && !failures[first])
        first++;
    if (first == sf_comm_size(nccl->comm))
        return SF_OK;
    if (first == sf_comm_rank(nccl->comm) && why->count > 0)
        sf_warn(diag, SF_NOWHERE, "ranks exchange without NCCL: %s", why->messages[0].text);
    sf_nccl_abort(nccl);
    return SF_OK;
}

sf_status sf_nccl_join(sf_nccl *nccl, sf_diag *diag)
{
    sf_arena scratch = {0};
    sf_diag why = {0};
    int size = sf_comm_size(nccl->comm);
    row *rows = SF_ARRAY(&scratch, size, row);
    sf_status status = nccl->device->table->wait(nccl->device, diag); /* takes its context */
    bool good = true;
    for (int i = 0; i < nccl->ngroups && status == SF_OK; i++)
        status = meet_group(nccl, &nccl->groups[i], &good, &why, rows, diag);
    if (status == SF_OK)
        status = settle_joining(nccl, good, &why, SF_ARRAY(&scratch, size, uint64_t), diag);
    if (status != SF_OK)
        sf_nccl_abort(nccl);
    sf_diag_clear(&why);
    sf_arena_free(&scratch);
    return status;
}

/* Transfers */

typedef struct putting {
    const sf_cuda_exchanges *library;
    const sf_nccl_group *group;
    const sf_transfer *transfer;
    int type, operation, members;
    int64_t bytes; /* of an element */
} putting;

/* Within a group a call is not done yet, which is no failure. */
static bool goes_on(int result)
{
    return result == 0 || result == NCCL_IN_PROGRESS;
}

static int bring(const putting *p, const char *in, char *out, int64_t count, int to, int from)
{
    nccl_comm comm = p->group->handle;
    size_t bytes = (size_t)(count * p->bytes);
    int result = to < 0 ? 0 : p->library->send(in, bytes, NCCL_UINT8, to, comm, p->group->stream);
    if (goes_on(result) && from >= 0)
        result = p->library->receive(out, bytes, NCCL_UINT8, from, comm, p->group->stream);
    return result;
}

/* Blocks that are not contiguous are sent one by one. */
static int put_blocks(const putting *p, const sf_transfer_part *part)
{
    const char *in = part->in;
    char *out = part->out;
    int64_t step = (part->stride > 0 ? part->stride : part->count) * p->bytes;
    size_t count = (size_t)part->count;
    int result = 0;
    for (int i = 0; i < p->members && goes_on(result); i++) {
        int64_t at = i * step;
        if (p->transfer->kind == SF_ALL_REDUCE)
            result = p->library->all_reduce(in + at, out + at, count / (size_t)p->members, p->type,
                                            p->operation, p->group->handle, p->group->stream);
        else if (p->transfer->kind == SF_REDUCE_SCATTER)
            result = p->library->reduce(in + at, out, count, p->type, p->operation, i,
                                        p->group->handle, p->group->stream);
        else
            result = bring(p, p->transfer->kind == SF_ALL_GATHER ? in : in + at, out + at,
                           part->count, i, i);
    }
    return result;
}

static int put_part(const putting *p, const sf_transfer_part *part)
{
    const sf_cuda_exchanges *library = p->library;
    nccl_comm comm = p->group->handle;
    nccl_stream stream = p->group->stream;
    size_t count = (size_t)part->count;
    if (part->count == 0)
        return 0;
    switch (p->transfer->kind) {
    case SF_ALL_REDUCE:
        return part->stride > 0 ? put_blocks(p, part)
                                : library->all_reduce(part->in, part->out, count, p->type,
                                                      p->operation, comm, stream);
    case SF_REDUCE_SCATTER:
        return part->stride > 0 ? put_blocks(p, part)
                                : library->reduce_scatter(part->in, part->out, count, p->type,
                                                          p->operation, comm, stream);
    case SF_ALL_GATHER:
        return part->stride > 0 ? put_blocks(p, part)
                                : library->all_gather(part->in, part->out, count * (size_t)p->bytes,
                                                      NCCL_UINT8, comm, stream);
    case SF_ALL_TO_ALL:
        return put_blocks(p, part);
    case SF_BROADCAST:
        return library->broadcast(part->in, part->out, count * (size_t)p->bytes, NCCL_UINT8,
                                  p->transfer->from, comm, stream);
    case SF_PERMUTE:
        return bring(p, part->in, part->out, part->count, p->transfer->to, p->transfer->from);
    case SF_COLLECTIVE_COUNT:
        break;
    }
    return 0;
}

sf_status sf_nccl_put(const sf_nccl *nccl, const sf_nccl_group *group, const sf_transfer *transfer,
                      sf_diag *diag)
{
    putting p = {.library = nccl->library,
                 .group = group,
                 .transfer = transfer,
                 .type = type_of(transfer->dtype),
                 .operation = operation_of(transfer->monoid, transfer->dtype),
                 .members = sf_comm_group_size(group->group),
                 .bytes = sf_dtype_get(transfer->dtype)->bytes};
    int result = p.library->group_start();
    for (int i = 0; i < transfer->nparts && goes_on(result); i++)
        result = put_part(&p, &transfer->parts[i]);
    int ended = p.library->group_end();
    return finish_call(nccl, group, sf_collective_name(transfer->kind),
                       goes_on(result) ? ended : result, diag);
}

/* Closing */

static void forget(sf_nccl *nccl)
{
    for (int i = 0; i < nccl->ngroups; i++) {
        nccl->groups[i].handle = NULL;
        nccl->groups[i].is_open = false;
    }
    nccl->library = NULL;
}

/* All at once: one may wait for another on its lane, and the library waits for the work in flight
 * of each. */
void sf_nccl_abort(sf_nccl *nccl)
{
    if (!nccl->library)
        return;
    nccl->library->group_start();
    for (int i = 0; i < nccl->ngroups; i++)
        if (nccl->groups[i].handle)
            nccl->library->abort(nccl->groups[i].handle);
    nccl->library->group_end();
    forget(nccl);
}

/* Data that other ranks still expect from this one has been sent when a communicator is finalized;
 * the wait for ranks that do not answer is limited. */
void sf_nccl_close(sf_nccl *nccl)
{
    const double patience = 2;
    double began = sf_now();
    bool is_final = true;
    if (!nccl->library)
        return;
    for (int i = 0; i < nccl->ngroups && is_final; i++) {
        progress p = {nccl, &nccl->groups[i], 0};
        p.result = nccl->library->finalize(p.group->handle);
        while (p.result == NCCL_IN_PROGRESS && !has_progressed(&p) && sf_now() - began < patience)
            sched_yield();
        is_final = p.result == 0;
    }
    if (!is_final) {
        sf_nccl_abort(nccl);
        return;
    }
    nccl->library->group_start();
    for (int i = 0; i < nccl->ngroups; i++)
        nccl->library->destroy(nccl->groups[i].handle);
    nccl->library->group_end();
    forget(nccl);
}
