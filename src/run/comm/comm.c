/* Common to all kinds of communicators: checks, groups, requests, the fold, and text for
 * messages. */
#include <inttypes.h>
#include <sched.h>
#include <stdalign.h>
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "base/mem.h"
#include "run/comm/comm_backend.h"

struct timespec sf_comm_timespec(double deadline)
{
    double whole = deadline > 1e9 ? 1e9 : deadline; /* thirty years after the start */
    time_t seconds = (time_t)whole;
    long rest = (long)((whole - (double)seconds) * 1e9);
    return (struct timespec){.tv_sec = seconds, .tv_nsec = rest > 999999999 ? 999999999 : rest};
}

/* Seconds between two looks, and how much of them counts at most. */
#define LOOK 0.1
#define MOST_LOOK 0.25

sf_patience sf_patience_new(double limit)
{
    return (sf_patience){.left = limit > 0 ? limit : SF_COMM_LIMIT, .looked = sf_now()};
}

bool sf_patience_ends(sf_patience *patience, double now)
{
    double passed = now - patience->looked;
    patience->left -= passed < MOST_LOOK ? passed : MOST_LOOK;
    patience->looked = now;
    return patience->left <= 0;
}

struct timespec sf_patience_next(const sf_patience *patience)
{
    double some = patience->left < LOOK ? patience->left : LOOK;
    return sf_comm_timespec(patience->looked + (some > 0 ? some : 0));
}

bool sf_comm_leads(const sf_comm *comm)
{
    return !comm || comm->rank == 0 || !comm->kind->is_one_process;
}

bool sf_comm_is_one_process(const sf_comm *comm)
{
    return comm->kind->is_one_process;
}

int sf_comm_rank(const sf_comm *comm)
{
    return comm->rank;
}

int sf_comm_size(const sf_comm *comm)
{
    return comm->size;
}

bool sf_comm_same_host(const sf_comm *comm, int rank, int other)
{
    return !comm->hosts || comm->hosts[rank] == comm->hosts[other];
}

const char *sf_comm_kind(const sf_comm *comm)
{
    return comm->kind->name;
}

void sf_comm_abort(sf_comm *comm, const char *why)
{
    comm->kind->abort(comm, why);
}

void sf_comm_free(sf_comm *comm)
{
    if (!comm)
        return;
    /* The kind goes first: others may still look at the requests. */
    sf_request *requests = comm->requests;
    sf_group *groups = comm->groups;
    comm->kind->free(comm);
    while (requests) {
        sf_request *next = requests->next;
        sf_free(requests);
        requests = next;
    }
    while (groups) {
        sf_group *next = groups->next;
        sf_free(groups);
        groups = next;
    }
}

/* FNV-1a, then mixed, since short keys differ in few bits. */
static uint64_t hash_bytes(const void *data, size_t size)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ ((const unsigned char *)data)[i]) * UINT64_C(0x100000001b3);
    hash = (hash ^ hash >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    hash = (hash ^ hash >> 27) * UINT64_C(0x94d049bb133111eb);
    return hash ^ hash >> 31;
}

static sf_status check_ranks(const sf_comm *comm, const int *ranks, int count, sf_diag *diag,
                             int *place)
{
    *place = -1;
    for (int i = 0; i < count; i++) {
        if (ranks[i] < 0 || ranks[i] >= comm->size)
            return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "no rank %d in a world of %d", ranks[i],
                           comm->size);
        for (int j = 0; j < i; j++)
            if (ranks[i] == ranks[j])
                return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "rank %d is twice in a group",
                               ranks[i]);
        if (ranks[i] == comm->rank)
            *place = i;
    }
    if (*place < 0)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "rank %d asks for a group without itself",
                       comm->rank);
    return SF_OK;
}

static sf_status find_group(sf_comm *comm, const int *ranks, int count, bool is_pair, sf_diag *diag,
                            sf_group **out)
{
    size_t size = (size_t)(count > 0 ? count : 0) * sizeof *ranks;
    for (sf_group *group = comm->groups; group; group = group->next)
        if (group->count == count && group->is_pair == is_pair &&
            memcmp(group->ranks, ranks, size) == 0)
            return *out = group, SF_OK;
    int place;
    SF_TRY(check_ranks(comm, ranks, count, diag, &place));
    sf_group *group = sf_alloc_kept(sizeof *group + size);
    if (!group)
        return sf_fail(diag, SF_ENOMEM, SF_NOWHERE, "no memory for a group of ranks");
    *group = (sf_group){.comm = comm,
                        .count = count,
                        .place = place,
                        .ranks = (int *)(group + 1),
                        .is_pair = is_pair};
    memcpy(group->ranks, ranks, size);
    group->key = hash_bytes(ranks, size) + is_pair;
    for (int i = 1; comm->hosts && i < count; i++)
        group->spans_hosts |= comm->hosts[ranks[i]] != comm->hosts[ranks[0]];
    if (comm->kind->join) {
        sf_status status = comm->kind->join(group, diag);
        if (status != SF_OK)
            return sf_free(group), status;
    }
    group->next = comm->groups;
    comm->groups = group;
    *out = group;
    return SF_OK;
}

sf_status sf_comm_group(sf_comm *comm, const int *ranks, int count, sf_diag *diag, sf_group **out)
{
    return find_group(comm, ranks, count, false, diag, out);
}

sf_status sf_comm_pair(sf_comm *comm, int from, int to, sf_diag *diag, sf_group **out)
{
    int ranks[2] = {from, to};
    return find_group(comm, ranks, 2, true, diag, out);
}

int sf_comm_group_size(const sf_group *group)
{
    return group->count;
}

int sf_comm_group_place(const sf_group *group)
{
    return group->place;
}

const int *sf_comm_group_ranks(const sf_group *group)
{
    return group->ranks;
}

sf_signature sf_comm_signature(const sf_request *request)
{
    const sf_transfer *transfer = &request->transfer;
    const sf_collective_info *info = sf_collective_get(transfer->kind);
    sf_signature signature = {
        .kind = (int32_t)transfer->kind,
        .dtype = (int32_t)transfer->dtype,
        .monoid = info->reduces ? (int32_t)transfer->monoid : 0,
        .nparts = transfer->nparts,
        .from = info->route == SF_ROUTE_CHAIN ? transfer->from : 0,
        .counts = 1,
    };
    for (int i = 0; i < transfer->nparts; i++) {
        int64_t count = transfer->parts[i].count;
        uint64_t both[2] = {signature.counts, (uint64_t)count};
        signature.count += count;
        signature.counts = hash_bytes(both, sizeof both);
    }
    return signature;
}

void sf_comm_describe(const sf_signature *signature, const char *what, char *text)
{
    const sf_collective_info *info = sf_collective_get((sf_collective)signature->kind);
    bool named = what && *what;
    char from[32] = "", parts[32] = "";
    if (info->route == SF_ROUTE_CHAIN)
        snprintf(from, sizeof from, " from place %d", signature->from);
    if (signature->nparts != 1)
        snprintf(parts, sizeof parts, " in %d parts", signature->nparts);
    snprintf(text, SF_COMM_TEXT, "%s%s%s%s of %" PRId64 " %s%s%s%s%s", info->name,
             info->reduces ? " " : "",
             info->reduces ? sf_monoid_name((sf_monoid)signature->monoid) : "", from,
             signature->count, sf_dtype_get((sf_dtype)signature->dtype)->name, parts,
             named ? " (" : "", named ? what : "", named ? ")" : "");
}

void sf_comm_describe_request(const sf_request *request, char *text)
{
    sf_signature signature = sf_comm_signature(request);
    sf_comm_describe(&signature, request->transfer.what, text);
}

void sf_comm_differ(const sf_request *here, int rank, const sf_signature *there, const char *what,
                    char *text, size_t room)
{
    char ours[SF_COMM_TEXT], theirs[SF_COMM_TEXT];
    sf_comm_describe_request(here, ours);
    sf_comm_describe(there, what, theirs);
    const sf_group *group = here->group;
    snprintf(text, room,
             "ranks disagree on transfer %" PRIu64
             " of a group of %d: rank %d started %s, rank %d %s",
             here->sequence, group->count, group->comm->rank, ours, rank, theirs);
}

/* The elements that one member holds of a part: the larger of its two sides. */
static int64_t part_factor(sf_collective kind, int members)
{
    const sf_collective_info *info = sf_collective_get(kind);
    return info->in_blocks || info->out_blocks ? members : 1;
}

static sf_status check_parts(const sf_group *group, const sf_transfer *transfer, sf_diag *diag)
{
    int64_t bytes = sf_dtype_get(transfer->dtype)->bytes, total = 0, factor, size;
    if (transfer->nparts < 0)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "%s of %d parts",
                       sf_collective_name(transfer->kind), transfer->nparts);
    factor = part_factor(transfer->kind, group->count);
    for (int i = 0; i < transfer->nparts; i++) {
        int64_t count = transfer->parts[i].count;
        if (count < 0 || !sf_mul(count, factor, &size) || !sf_mul(size, bytes, &size) ||
            !sf_add(total, size, &total))
            return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "%s of %" PRId64 " elements",
                           sf_collective_name(transfer->kind), count);
    }
    return SF_OK;
}

static sf_status check_transfer(const sf_group *group, const sf_transfer *transfer, sf_diag *diag)
{
    int from = transfer->from, to = transfer->to, members = group->count;
    sf_route route = sf_collective_get(transfer->kind)->route;
    bool good = true;
    if (route == SF_ROUTE_CHAIN)
        good = from >= 0 && from < members;
    if (route == SF_ROUTE_PEER)
        good = from < members && to < members;
    if (!good)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "%s from place %d to %d in a group of %d",
                       sf_collective_name(transfer->kind), from, to, members);
    return check_parts(group, transfer, diag);
}

static sf_status new_request(sf_group *group, const sf_transfer *transfer, sf_diag *diag,
                             sf_request **out)
{
    size_t parts = (size_t)transfer->nparts * sizeof *transfer->parts;
    size_t front = (group->comm->kind->request_bytes + 15) / 16 * 16;
    sf_request *request = sf_alloc_kept(front + parts);
    if (!request)
        return sf_fail(diag, SF_ENOMEM, SF_NOWHERE, "no memory for a transfer");
    *request = (sf_request){.group = group, .transfer = *transfer};
    sf_transfer_part *copy = (sf_transfer_part *)(void *)((char *)request + front);
    if (parts > 0)
        memcpy(copy, transfer->parts, parts);
    request->transfer.parts = copy;
    request->bytes = sf_dtype_get(transfer->dtype)->bytes;
    *out = request;
    return SF_OK;
}

/* In a group of one every transfer is a copy; a permute may have nobody to copy from. */
static sf_status run_alone(sf_request *request, sf_diag *diag)
{
    const sf_transfer *transfer = &request->transfer;
    request->local = true;
    if (sf_collective_get(transfer->kind)->route == SF_ROUTE_PEER &&
        (transfer->from < 0 || transfer->to < 0))
        return SF_OK;
    for (int i = 0; i < transfer->nparts; i++) {
        const sf_transfer_part *part = &transfer->parts[i];
        int64_t size = part->count * request->bytes;
        if (part->in == part->out || size == 0)
            continue;
        if (!transfer->memory)
            memcpy(part->out, part->in, (size_t)size);
        else if (!transfer->memory->copy(transfer->memory->context, part->out, part->in, size))
            return sf_fail(diag, SF_EPEER, SF_NOWHERE, "memory of a rank cannot be copied");
    }
    return SF_OK;
}

static void link_request(sf_request *request)
{
    sf_comm *comm = request->group->comm;
    request->next = comm->requests;
    if (request->next)
        request->next->prev = request;
    comm->requests = request;
}

static void drop_request(sf_request *request)
{
    if (request->prev)
        request->prev->next = request->next;
    else
        request->group->comm->requests = request->next;
    if (request->next)
        request->next->prev = request->prev;
    sf_free(request);
}

static sf_status start_transfer(sf_group *group, const sf_transfer *transfer, bool awaited,
                                sf_diag *diag, sf_request **out)
{
    sf_combine combine = {0};
    SF_TRY(check_transfer(group, transfer, diag));
    if (sf_collective_get(transfer->kind)->reduces &&
        !sf_combine_get(transfer->dtype, transfer->monoid, &combine))
        return sf_fail(diag, SF_EUNSUPPORTED, SF_NOWHERE, "%s of %s by %s between ranks",
                       sf_collective_name(transfer->kind), sf_dtype_get(transfer->dtype)->name,
                       sf_monoid_name(transfer->monoid));
    sf_request *request = NULL;
    SF_TRY(new_request(group, transfer, diag, &request));
    request->combine = combine;
    request->awaited = awaited;
    request->sequence = group->sequence++;
    link_request(request);
    sf_status status =
        group->count == 1 ? run_alone(request, diag) : group->comm->kind->start(request, diag);
    if (status != SF_OK)
        return drop_request(request), status;
    *out = request;
    return SF_OK;
}

sf_status sf_comm_start(sf_group *group, const sf_transfer *transfer, sf_diag *diag,
                        sf_request **out)
{
    return start_transfer(group, transfer, false, diag, out);
}

bool sf_comm_done(const sf_request *request)
{
    return request->local || request->group->comm->kind->done(request);
}

sf_status sf_comm_wait_timed(sf_request *request, sf_diag *diag, double *ended)
{
    sf_status status = SF_OK;
    if (!request->local)
        status = request->group->comm->kind->wait(request, diag);
    *ended = request->ended;
    drop_request(request);
    return status;
}

sf_status sf_comm_wait(sf_request *request, sf_diag *diag)
{
    double ended;
    return sf_comm_wait_timed(request, diag, &ended);
}

sf_status sf_comm_run(sf_group *group, const sf_transfer *transfer, sf_diag *diag)
{
    sf_request *request = NULL;
    SF_TRY(start_transfer(group, transfer, true, diag, &request));
    return sf_comm_wait(request, diag);
}

/* Looks often at first: most that is waited for is about to be there. */
sf_status sf_comm_watch(const sf_comm *comm, double alone, bool (*ended)(void *context),
                        void *context, const char *what, sf_diag *diag)
{
    const double often = 2e-3;
    const struct timespec pause = {.tv_nsec = 50000};
    double began = sf_now(), limit = comm->limit + alone;
    sf_patience patience = sf_patience_new(limit);
    while (!ended(context)) {
        double now = sf_now();
        if (sf_patience_ends(&patience, now))
            return sf_fail(diag, SF_EPEER, SF_NOWHERE, "waited %.3g s for %s", limit, what);
        if (now - began < often)
            sched_yield();
        else
            nanosleep(&pause, NULL);
    }
    return SF_OK;
}

/* A run at a time, so that intermediate values stay in the first cache. */
enum { FOLD_BYTES = 8192 };

void sf_comm_fold(const sf_combine *combine, const void *const *sources, int members, int segment,
                  void *out, int64_t count)
{
    alignas(64) char between[FOLD_BYTES];
    int64_t run = FOLD_BYTES / combine->bytes;
    for (int64_t first = 0; first < count; first += run) {
        int64_t some = count - first < run ? count - first : run, at = first * combine->bytes;
        const char *sum = (const char *)sources[(segment + 1) % members] + at;
        for (int i = 2; i <= members; i++) {
            char *to = i == members ? (char *)out + at : between;
            sf_combine_run(combine, to, sum, (const char *)sources[(segment + i) % members] + at,
                           some);
            sum = to;
        }
    }
}
