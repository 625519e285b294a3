#include "run/comm/rank_agreement.h"

#include <string.h>

#include "base/arena.h"
#include "base/hash.h"

static bool is_alone(const sf_comm *comm)
{
    return !comm || sf_comm_size(comm) == 1;
}

/* One transfer between all ranks, in place. A rank that cannot even say that it has failed gives the world up: the
 * others must not wait for it. */
static sf_status exchange_words(sf_comm *comm, const sf_transfer *transfer, sf_diag *diag)
{
    sf_arena scratch = {0};
    int size = sf_comm_size(comm), *ranks = SF_ARRAY(&scratch, size, int);
    for (int r = 0; r < size; r++)
        ranks[r] = r;
    sf_group *world;
    sf_status status = sf_comm_group(comm, ranks, size, diag, &world);
    if (status == SF_OK)
        status = sf_comm_run(world, transfer, diag);
    if (status != SF_OK && status != SF_EPEER)
        sf_comm_abort(comm, sf_status_name(status));
    sf_arena_free(&scratch);
    return status;
}

/* The largest of all ranks, element by element. */
static sf_status reduce_words(sf_comm *comm, uint64_t *values, int64_t count, const char *what,
                              sf_diag *diag)
{
    sf_transfer_part part = {.in = values, .out = values, .count = count};
    sf_transfer transfer = {.kind = SF_ALL_REDUCE,
                            .dtype = SF_U64,
                            .monoid = SF_MONOID_MAX,
                            .nparts = 1,
                            .parts = &part,
                            .what = what};
    return exchange_words(comm, &transfer, diag);
}

/* The value of a failure is larger the earlier the rank; its status is in the last bits. */
enum { STATUSES = 64 };

sf_status sf_agree_any(sf_comm *comm, sf_status mine, const char *what, sf_diag *diag, bool *flag)
{
    if (is_alone(comm) || mine == SF_EPEER)
        return mine;
    uint64_t before = (uint64_t)(sf_comm_size(comm) - sf_comm_rank(comm));
    uint64_t own = mine != SF_OK ? before * STATUSES + (uint64_t)mine : *flag, most = own;
    sf_status status = reduce_words(comm, &most, 1, what, diag);
    if (status != SF_OK)
        return mine != SF_OK ? mine : status;
    *flag = most == 1;
    if (most < STATUSES)
        return SF_OK;
    if (most != own && diag)
        sf_diag_clear(diag);
    return (sf_status)(most % STATUSES);
}

sf_status sf_agree(sf_comm *comm, sf_status mine, const char *what, sf_diag *diag)
{
    bool flag = false;
    return sf_agree_any(comm, mine, what, diag, &flag);
}

sf_status sf_agree_all(sf_comm *comm, sf_status mine, const char *what, sf_diag *diag, bool *all)
{
    bool flag = true;
    sf_status status = sf_agree_any(comm, mine, what, diag, &flag);
    *all = is_alone(comm) || status == SF_OK || !flag;
    return status;
}

sf_status sf_agree_same(sf_comm *comm, const uint64_t *mine, int count, const char *what,
                        sf_diag *diag, int *other)
{
    *other = count;
    if (is_alone(comm))
        return SF_OK;
    sf_arena scratch = {0};
    uint64_t *ends = SF_ARRAY(&scratch, 2 * count, uint64_t);
    for (int i = 0; i < count; i++) { /* the largest, and the smallest turned round */
        ends[i] = mine[i];
        ends[count + i] = ~mine[i];
    }
    sf_status status = reduce_words(comm, ends, 2 * count, what, diag);
    for (int i = count; status == SF_OK && i-- > 0;)
        if (ends[i] != ~ends[count + i])
            *other = i;
    sf_arena_free(&scratch);
    return status;
}

sf_status sf_agree_most(sf_comm *comm, const char *what, sf_diag *diag, int64_t *value)
{
    if (is_alone(comm))
        return SF_OK;
    sf_transfer_part part = {.in = value, .out = value, .count = 1};
    sf_transfer transfer = {.kind = SF_ALL_REDUCE,
                            .dtype = SF_S64,
                            .monoid = SF_MONOID_MAX,
                            .nparts = 1,
                            .parts = &part,
                            .what = what};
    return exchange_words(comm, &transfer, diag);
}

sf_status sf_agree_first(sf_comm *comm, const char *what, sf_diag *diag, int64_t *value)
{
    if (is_alone(comm))
        return SF_OK;
    sf_transfer_part part = {.in = value, .out = value, .count = 1};
    sf_transfer transfer = {
        .kind = SF_BROADCAST, .dtype = SF_S64, .nparts = 1, .parts = &part, .what = what};
    return exchange_words(comm, &transfer, diag);
}

sf_status sf_agree_text(sf_comm *comm, int from, char *text, size_t length, const char *what,
                        sf_diag *diag)
{
    if (is_alone(comm) || length == 0)
        return SF_OK;
    sf_transfer_part part = {.in = text, .out = text, .count = (int64_t)length};
    sf_transfer transfer = {.kind = SF_BROADCAST,
                            .dtype = SF_U8,
                            .from = from,
                            .nparts = 1,
                            .parts = &part,
                            .what = what};
    return exchange_words(comm, &transfer, diag);
}

sf_status sf_agree_rows(sf_comm *comm, const void *mine, size_t bytes, const char *what,
                        sf_diag *diag, void *all)
{
    if (is_alone(comm)) {
        memcpy(all, mine, bytes);
        return SF_OK;
    }
    sf_transfer_part part = {.in = mine, .out = all, .count = (int64_t)bytes};
    sf_transfer transfer = {
        .kind = SF_ALL_GATHER, .dtype = SF_U8, .nparts = 1, .parts = &part, .what = what};
    return exchange_words(comm, &transfer, diag);
}

sf_status sf_agree_gather(sf_comm *comm, const double *mine, size_t count, const char *what,
                          sf_diag *diag, double *all)
{
    return sf_agree_rows(comm, mine, count * sizeof *mine, what, diag, all);
}

sf_status sf_agree_list(sf_comm *comm, uint64_t mine, const char *what, sf_diag *diag,
                        uint64_t *list)
{
    int size = comm ? sf_comm_size(comm) : 1;
    for (int r = 0; r < size; r++)
        list[r] = 0;
    list[comm ? sf_comm_rank(comm) : 0] = mine;
    return is_alone(comm) ? SF_OK : reduce_words(comm, list, size, what, diag);
}

/* The texts of all ranks, of SF_AGREE_TEXT bytes each, in the order of ranks. */
static sf_status exchange_texts(sf_comm *comm, const char *mine, const char *what, sf_diag *diag,
                                uint64_t *all)
{
    enum { WORDS = SF_AGREE_TEXT / 8 };
    char own[SF_AGREE_TEXT] = "";
    strncpy(own, mine ? mine : "none", sizeof own - 1);
    memcpy(all + (ptrdiff_t)sf_comm_rank(comm) * WORDS, own, sizeof own);
    return reduce_words(comm, all, (int64_t)sf_comm_size(comm) * WORDS, what, diag);
}

/* Which ranks differ in the thing, and their values. */
static sf_status tell_difference(sf_comm *comm, const sf_agree_thing *thing, uint64_t hash,
                                 sf_arena *scratch, sf_diag *diag)
{
    int size = sf_comm_size(comm), odd = 1;
    uint64_t *hashes = SF_ARRAY(scratch, size, uint64_t);
    uint64_t *texts = SF_ARRAY(scratch, size * (SF_AGREE_TEXT / 8), uint64_t);
    SF_TRY(sf_agree_list(comm, hash, thing->what, diag, hashes));
    SF_TRY(exchange_texts(comm, thing->text, thing->what, diag, texts));
    while (odd < size - 1 && hashes[odd] == hashes[0])
        odd++;
    const char *first = (const char *)texts, *other = first + (ptrdiff_t)odd * SF_AGREE_TEXT;
    sf_fail(diag, SF_EINPUT, SF_NOWHERE,
            "not all ranks have the same %s: rank 0 has %s, rank %d has %s", thing->what, first,
            odd, other);
    return sf_hint(diag, "ranks on several hosts need the same files and options");
}

sf_status sf_agree_things(sf_comm *comm, const sf_agree_thing *things, int count, sf_diag *diag)
{
    if (is_alone(comm))
        return SF_OK;
    sf_arena scratch = {0};
    uint64_t *hashes = SF_ARRAY(&scratch, count, uint64_t);
    int other;
    for (int i = 0; i < count; i++)
        hashes[i] = things[i].text ? sf_hash_bytes(1, things[i].text, strlen(things[i].text)) : 0;
    sf_status status =
        sf_agree_same(comm, hashes, count, "whether all have the same", diag, &other);
    if (status == SF_OK && other < count)
        status = tell_difference(comm, &things[other], hashes[other], &scratch, diag);
    sf_arena_free(&scratch);
    return status;
}
