/* The conformance suite of communicators, for every kind.
 *
 *     comm_test               ranks as threads
 *     comm_test mpi CASE      as one rank of MPI: see the table in run_mpi
 *
 * Every rank can compute its expected result, to the bit (support/transfers.h). So transfers that
 * pass give the same bits on all members, and for all kinds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "run/comm/comm_backend.h"
#include "support/sanitized.h"
#include "support/transfers.h"

static atomic_int failures;

static void expect(bool good, int rank, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void expect(bool good, int rank, const char *format, ...)
{
    if (good || atomic_fetch_add(&failures, 1) > 20)
        return;
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    printf("FAILED: rank %d: %s\n", rank, text);
    fflush(stdout);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* What is transferred ------------------------------------------------------------------------ */

enum { MOST_MEMBERS = 16, MOST_PIECES = 4, GUARD = 64, SENTINEL = 0xa5 };

/* One transfer of one rank: its memory and its request. */
typedef struct job {
    test_shape shape;
    sf_group *group;
    const int *ranks;
    int members, place, rank;
    unsigned char *in[TEST_MOST_PARTS], *out[TEST_MOST_PARTS];
    sf_request *requests[MOST_PIECES];
} job;

static unsigned char *new_buffer(int64_t bytes)
{
    unsigned char *buffer = malloc((size_t)bytes + GUARD);
    if (!buffer)
        abort();
    memset(buffer, SENTINEL, (size_t)bytes + GUARD);
    return buffer;
}

/* Memory that is not the host's: at addresses at which the host has none. */
static bool is_elsewhere;
#define ELSEWHERE ((uintptr_t)1 << 56)

static void *go_elsewhere(void *p)
{
    return (void *)((uintptr_t)p + (is_elsewhere ? ELSEWHERE : 0));
}

/* The parts of one transfer of several: some of every block, or segment, wherever those are. */
static void cut_parts(const job *j, int piece, sf_transfer_part *parts)
{
    const test_shape *s = &j->shape;
    int64_t bytes = sf_dtype_get(s->dtype)->bytes;
    bool all = s->kind == SF_ALL_REDUCE;
    for (int i = 0; i < s->nparts; i++) {
        int64_t block = s->counts[i] / (all ? j->members : 1), length = block / s->pieces;
        parts[i] = (sf_transfer_part){.in = go_elsewhere(j->in[i] + piece * length * bytes),
                                      .out = go_elsewhere(j->out[i] + piece * length * bytes),
                                      .count = length * (all ? j->members : 1),
                                      .stride = block};
    }
}

static void *come_back(const void *p)
{
    return (void *)((uintptr_t)p - ELSEWHERE);
}

static bool copy_elsewhere(void *context, void *out, const void *in, int64_t bytes)
{
    (void)context;
    memcpy(come_back(out), come_back(in), (size_t)bytes);
    return true;
}

static bool fold_elsewhere(void *context, const void *const *sources, int members, int segment,
                           void *out, int64_t count)
{
    const int *what = context;
    sf_combine combine;
    const void *at[MOST_MEMBERS];
    for (int i = 0; i < members; i++)
        at[i] = come_back(sources[i]);
    bool known = sf_combine_get((sf_dtype)what[0], (sf_monoid)what[1], &combine);
    if (known)
        sf_comm_fold(&combine, at, members, segment, come_back(out), count);
    return known;
}

/* Made before ranks begin; jobs move while they are under way. */
static int elsewhere_kinds[SF_DTYPE_COUNT][SF_MONOID_COUNT][2];
static sf_transfer_memory elsewhere[SF_DTYPE_COUNT][SF_MONOID_COUNT];

static const sf_transfer_memory *memory_for(const test_shape *s)
{
    return &elsewhere[s->dtype][s->monoid];
}

static void make_elsewhere(void)
{
    for (int d = 0; d < SF_DTYPE_COUNT; d++)
        for (int m = 0; m < SF_MONOID_COUNT; m++) {
            elsewhere_kinds[d][m][0] = d;
            elsewhere_kinds[d][m][1] = m;
            elsewhere[d][m] =
                (sf_transfer_memory){elsewhere_kinds[d][m], copy_elsewhere, fold_elsewhere};
        }
}

static sf_status start_job(job *j, sf_diag *diag)
{
    const test_shape *s = &j->shape;
    int64_t bytes = sf_dtype_get(s->dtype)->bytes;
    sf_transfer_part parts[TEST_MOST_PARTS];
    for (int i = 0; i < s->nparts; i++) {
        int64_t count = test_in_count(s, i, j->members);
        j->in[i] = new_buffer(count * bytes);
        for (int64_t e = 0; e < count; e++)
            test_put_element(s, j->rank, i, e, j->in[i], e);
        j->out[i] = s->in_place ? j->in[i] : new_buffer(test_out_count(s, i, j->members) * bytes);
        parts[i] = (sf_transfer_part){
            .in = go_elsewhere(j->in[i]), .out = go_elsewhere(j->out[i]), .count = s->counts[i]};
    }
    sf_transfer transfer = {.kind = s->kind,
                            .dtype = s->dtype,
                            .monoid = s->monoid,
                            .nparts = s->nparts,
                            .parts = parts,
                            .to = test_chain_to(s, j->place, j->members),
                            .from = test_chain_from(s, j->place, j->members),
                            .what = "a test",
                            .memory = is_elsewhere ? memory_for(s) : NULL};
    if (s->pieces == 0)
        return sf_comm_start(j->group, &transfer, diag, &j->requests[0]);
    sf_status status = SF_OK;
    for (int p = 0; p < s->pieces && status == SF_OK; p++) {
        cut_parts(j, p, parts);
        status = sf_comm_start(j->group, &transfer, diag, &j->requests[p]);
    }
    return status;
}

static bool same_element(sf_dtype dtype, const void *a, int64_t at, const void *b)
{
    size_t bytes = sf_dtype_get(dtype)->bytes;
    if (memcmp((const char *)a + (size_t)at * bytes, b, bytes) == 0)
        return true;
    return sf_is_float(dtype) && isnan(sf_load_f64(dtype, a, at)) &&
           isnan(sf_load_f64(dtype, b, 0));
}

static bool check_part(const job *j, int part)
{
    const test_shape *s = &j->shape;
    int64_t bytes = sf_dtype_get(s->dtype)->bytes, count = test_out_count(s, part, j->members),
            cell[2];
    for (int64_t e = 0; e < count; e++) {
        bool comes = test_want_element(s, j->ranks, j->members, j->place, part, e, cell);
        if (!comes)
            memset(cell, SENTINEL, sizeof cell);
        if (!comes ? memcmp(j->out[part] + e * bytes, cell, (size_t)bytes) != 0
                   : !same_element(s->dtype, j->out[part], e, cell))
            return false;
    }
    for (int i = 0; i < GUARD; i++)
        if (j->out[part][count * bytes + i] != SENTINEL)
            return false;
    return true;
}

static void free_job(job *j)
{
    for (int i = 0; i < j->shape.nparts; i++) {
        free(j->in[i]);
        if (!j->shape.in_place)
            free(j->out[i]);
    }
}

static void finish_job(job *j, sf_diag *diag)
{
    const test_shape *s = &j->shape;
    sf_status status = SF_OK;
    for (int p = 0; p == 0 || p < s->pieces; p++) {
        sf_status own = sf_comm_wait(j->requests[p], diag);
        status = status == SF_OK ? own : status;
    }
    expect(status == SF_OK, j->rank, "%s", status == SF_OK ? "" : sf_diag_text(diag, 0));
    for (int i = 0; i < s->nparts && status == SF_OK; i++)
        expect(check_part(j, i), j->rank,
               "%s %s %s, part %d of %d: %" PRId64 " elements, %d members, place %d%s: wrong",
               sf_collective_name(s->kind), sf_monoid_name(s->monoid), sf_dtype_get(s->dtype)->name,
               i, s->nparts, s->counts[i], j->members, j->place, s->in_place ? ", in place" : "");
    free_job(j);
}

/* Groups ----------------------------------------------------------------------------------------- */

enum { MOST_GROUPS = 24 };

typedef struct ranks {
    int count, ranks[MOST_MEMBERS];
} ranks;

/* Those of a fixed list that a world of `size` has, and all of its ranks forwards and backwards. */
static int list_groups(int size, ranks *out)
{
    static const ranks fixed[] = {
        {1, {0}},          {2, {0, 1}},          {2, {1, 0}},          {3, {0, 1, 2}},
        {3, {4, 0, 2}},    {4, {0, 2, 4, 6}},    {4, {7, 5, 3, 1}},    {4, {0, 1, 2, 3}},
        {4, {4, 5, 6, 7}}, {5, {0, 1, 2, 3, 4}}, {5, {6, 3, 7, 1, 5}}, {1, {5}},
    };
    int count = 0;
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
        bool fits = fixed[i].count < size;
        for (int k = 0; k < fixed[i].count; k++)
            fits = fits && fixed[i].ranks[k] < size;
        if (fits)
            out[count++] = fixed[i];
    }
    ranks up = {.count = size}, down = {.count = size};
    for (int r = 0; r < size; r++) {
        up.ranks[r] = r;
        down.ranks[r] = size - 1 - r;
    }
    out[count++] = up;
    if (size > 1)
        out[count++] = down;
    return count;
}

/* False if the rank is no member. */
static bool enter(sf_comm *comm, const ranks *g, sf_diag *diag, job *out)
{
    *out = (job){.ranks = g->ranks, .members = g->count, .place = -1, .rank = sf_comm_rank(comm)};
    for (int p = 0; p < g->count; p++)
        if (g->ranks[p] == out->rank)
            out->place = p;
    if (out->place < 0)
        return false;
    sf_status status = sf_comm_group(comm, g->ranks, g->count, diag, &out->group);
    expect(status == SF_OK && sf_comm_group_place(out->group) == out->place &&
               sf_comm_group_size(out->group) == g->count,
           out->rank, "cannot have the group");
    return status == SF_OK;
}

static void run_shape(sf_comm *comm, const ranks *g, const test_shape *s, sf_diag *diag)
{
    job j;
    if (!enter(comm, g, diag, &j))
        return;
    j.shape = *s;
    sf_status status = start_job(&j, diag);
    expect(status == SF_OK, j.rank, "%s does not start: %s", sf_collective_name(s->kind),
           status == SF_OK ? "" : sf_diag_text(diag, 0));
    if (status == SF_OK)
        finish_job(&j, diag);
    else
        free_job(&j);
}

static bool reduces(sf_collective kind)
{
    return kind == SF_ALL_REDUCE || kind == SF_REDUCE_SCATTER;
}

static bool has_monoid(sf_dtype dtype, sf_monoid monoid)
{
    if (monoid == SF_MONOID_NONE || monoid == SF_MONOID_SECOND)
        return false;
    if (sf_is_complex(dtype)) /* sums are those of the parts */
        return monoid == SF_MONOID_MUL;
    return !sf_is_float(dtype) || monoid < SF_MONOID_AND;
}

/* Suites: each is called by every rank --------------------------------------------------------- */

/* Every kind, type and monoid, in groups of all sizes, few elements. */
static void suite_types(sf_comm *comm, sf_diag *diag)
{
    static const int64_t counts[] = {0, 1, 7, 1023};
    ranks groups[MOST_GROUPS];
    int ngroups = list_groups(sf_comm_size(comm), groups);
    uint64_t seed = 1;
    for (int kind = 0; kind < SF_COLLECTIVE_COUNT; kind++)
        for (int dtype = 0; dtype < SF_DTYPE_COUNT; dtype++)
            for (int monoid = 0; monoid < SF_MONOID_COUNT; monoid++) {
                bool real = reduces((sf_collective)kind);
                if (real ? !has_monoid((sf_dtype)dtype, (sf_monoid)monoid) : monoid > 0)
                    continue;
                for (int i = 0; i < 4; i++, seed++) {
                    test_shape s = {.kind = (sf_collective)kind,
                                    .dtype = (sf_dtype)dtype,
                                    .monoid = (sf_monoid)monoid,
                                    .nparts = 1,
                                    .counts = {counts[i]},
                                    .in_place = kind == SF_ALL_REDUCE && seed % 2,
                                    .microbatch = (int)(seed % 3),
                                    .seed = seed};
                    run_shape(comm, &groups[seed % (uint64_t)ngroups], &s, diag);
                }
            }
}

/* Every group and size, few types; in place and not. */
static void suite_sizes(sf_comm *comm, sf_diag *diag)
{
    static const int64_t counts[] = {0, 1, 2, 3, 5, 8, 255, 4096, 4097, 30011};
    static const sf_dtype dtypes[] = {SF_F32, SF_BF16, SF_U8, SF_F64};
    ranks groups[MOST_GROUPS];
    int ngroups = list_groups(sf_comm_size(comm), groups);
    uint64_t seed = 1000000;
    for (int kind = 0; kind < SF_COLLECTIVE_COUNT; kind++)
        for (int g = 0; g < ngroups; g++)
            for (int i = 0; i < 10; i++, seed++) {
                test_shape s = {.kind = (sf_collective)kind,
                                .dtype = dtypes[seed % 4],
                                .monoid = SF_MONOID_ADD,
                                .nparts = 1,
                                .counts = {counts[i]},
                                .microbatch = i % 4,
                                .seed = seed};
                if (!reduces(s.kind))
                    s.monoid = SF_MONOID_NONE;
                run_shape(comm, &groups[g], &s, diag);
                s.in_place = kind == SF_ALL_REDUCE || kind == SF_BROADCAST;
                if (s.in_place)
                    run_shape(comm, &groups[g], &s, diag);
            }
}

/* Whether a group is the first of its size, and not so large that checking takes too long: large
 * transfers use these. */
static bool takes_large(const ranks *groups, int g)
{
    return groups[g].count <= 5 && (g == 0 || groups[g].count != groups[g - 1].count);
}

/* Rings of several blocks of chunks, the last one not full; shares of many slices. Ranks that are threads have no rings. */
static void suite_large(sf_comm *comm, sf_diag *diag)
{
    static const int64_t counts[] = {0, 0, 1500007, 1000003, 300007, 300007};
    int64_t less = test_short() && strcmp(sf_comm_kind(comm), "threads") == 0 ? 8 : 1;
    ranks groups[MOST_GROUPS];
    int ngroups = list_groups(sf_comm_size(comm), groups);
    for (int kind = 0; kind < SF_COLLECTIVE_COUNT; kind++)
        for (int g = 0; g < ngroups; g++) {
            int members = groups[g].count;
            bool whole = kind == SF_ALL_REDUCE || kind == SF_BROADCAST || kind == SF_PERMUTE;
            if (members == 1 || !takes_large(groups, g))
                continue;
            test_shape s = {.kind = (sf_collective)kind,
                            .dtype = SF_F32,
                            .monoid = reduces((sf_collective)kind) ? SF_MONOID_ADD : SF_MONOID_NONE,
                            .nparts = 1,
                            .counts = {counts[members] / less / (whole ? 1 : members)},
                            .in_place = kind == SF_ALL_REDUCE && g % 2,
                            .microbatch = 1,
                            .seed = (uint64_t)(7000 + g)};
            run_shape(comm, &groups[g], &s, diag);
        }
}

/* A bucket: as if each part were transferred by itself. */
static void suite_buckets(sf_comm *comm, sf_diag *diag)
{
    static const int64_t counts[TEST_MOST_PARTS] = {3, 0, 1, 70001, 2, 4096, 5, 1, 1, 50000, 17, 9};
    ranks groups[MOST_GROUPS];
    int ngroups = list_groups(sf_comm_size(comm), groups);
    for (int g = 0; g < ngroups; g++)
        for (int nparts = 0; nparts <= TEST_MOST_PARTS; nparts += 3)
            for (int kind = nparts / 3 % 2; kind < SF_COLLECTIVE_COUNT; kind += 2) {
                test_shape s = {.kind = (sf_collective)kind,
                                .dtype = nparts % 2 ? SF_BF16 : SF_F32,
                                .monoid = SF_MONOID_ADD,
                                .nparts = nparts,
                                .in_place = kind == SF_ALL_REDUCE && g % 2,
                                .seed = (uint64_t)(90000 + 100 * g + 10 * nparts + kind)};
                memcpy(s.counts, counts, sizeof s.counts);
                run_shape(comm, &groups[g], &s, diag);
            }
}

/* In several transfers that are under way together: the same bits as all at once. Of more than a chunk, or of several
 * slices. */
static void suite_pieces(sf_comm *comm, sf_diag *diag)
{
    static const sf_collective kinds[] = {SF_ALL_REDUCE, SF_ALL_GATHER, SF_REDUCE_SCATTER,
                                          SF_ALL_TO_ALL};
    static const int64_t lengths[][4] = {{1, 5, 2000, 20011}, {1, 5, 2000, 70001}};
    ranks groups[MOST_GROUPS];
    int ngroups = list_groups(sf_comm_size(comm), groups);
    for (int g = 0; g < ngroups; g++)
        for (int i = 0; i < 16; i++) {
            int64_t length = lengths[takes_large(groups, g)][i / 4];
            test_shape s = {.kind = kinds[i % 4],
                            .dtype = i % 3 ? SF_F32 : SF_BF16,
                            .monoid = reduces(kinds[i % 4]) ? SF_MONOID_ADD : SF_MONOID_NONE,
                            .nparts = 1 + g % 2,
                            .in_place = i % 4 == 0 && g % 3 == 0,
                            .pieces = 2 + (g + i) % 3,
                            .seed = (uint64_t)(120000 + 100 * g + i)};
            for (int p = 0; p < s.nparts; p++)
                s.counts[p] = length * s.pieces * (i % 4 == 0 ? groups[g].count : 1);
            run_shape(comm, &groups[g], &s, diag);
        }
}

static void shuffle(job *jobs, int count, uint64_t seed)
{
    for (int i = count - 1; i > 0; i--) {
        int k = (int)(test_mix(seed + (uint64_t)i) % (uint64_t)(i + 1));
        job swap = jobs[i];
        jobs[i] = jobs[k];
        jobs[k] = swap;
    }
}

/* Many in flight: each rank takes the groups in an order of its own, and waits in another. */
static void suite_flight(sf_comm *comm, sf_diag *diag)
{
    enum { ROUNDS = 12 };
    static const int64_t counts[] = {0, 1, 100, 3000, 20000, 60001};
    ranks groups[MOST_GROUPS];
    job *jobs = calloc(ROUNDS * MOST_GROUPS, sizeof *jobs);
    int ngroups = list_groups(sf_comm_size(comm), groups), njobs = 0, rank = sf_comm_rank(comm);
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < ngroups; i++) {
            int g = (i * (rank % 2 ? 1 : ngroups - 1) + rank) % ngroups;
            job *j = &jobs[njobs];
            if (!enter(comm, &groups[g], diag, j))
                continue;
            uint64_t seed = test_mix((uint64_t)(round * MOST_GROUPS + g));
            j->shape = (test_shape){.kind = (sf_collective)(seed % SF_COLLECTIVE_COUNT),
                                    .dtype = seed >> 8 & 1 ? SF_F32 : SF_F16,
                                    .monoid = SF_MONOID_ADD,
                                    .nparts = 1,
                                    .counts = {counts[(seed >> 16) % 6]},
                                    .microbatch = (int)(seed >> 24 & 3),
                                    .seed = seed};
            sf_status status = start_job(j, diag);
            expect(status == SF_OK, rank, "one of many does not start");
            if (status == SF_OK)
                njobs++;
            else
                free_job(j);
        }
    shuffle(jobs, njobs, (uint64_t)rank);
    for (int i = 0; i < njobs; i++)
        finish_job(&jobs[i], diag);
    free(jobs);
}

/* A misuse on one rank alone is reported there, and does not affect others. */
static void suite_misuse(sf_comm *comm, sf_diag *diag)
{
    int rank = sf_comm_rank(comm), size = sf_comm_size(comm), other = (rank + 1) % size;
    const int outside[] = {rank, size}, twice[] = {rank, rank};
    sf_group *group, *second;
    expect(sf_comm_group(comm, outside, 2, diag, &group) == SF_EUSAGE, rank, "a rank too high");
    expect(sf_comm_group(comm, twice, 2, diag, &group) == SF_EUSAGE, rank, "a rank twice");
    if (size > 1)
        expect(sf_comm_group(comm, &other, 1, diag, &group) == SF_EUSAGE, rank, "no member");
    expect(sf_comm_group(comm, &rank, 1, diag, &group) == SF_OK &&
               sf_comm_group(comm, &rank, 1, diag, &second) == SF_OK && group == second,
           rank, "a group is not found again");
    char byte = 0;
    sf_transfer_part part = {.in = &byte, .out = &byte, .count = -1};
    sf_transfer bad = {.kind = SF_ALL_REDUCE, .monoid = SF_MONOID_ADD, .nparts = 1, .parts = &part};
    expect(sf_comm_run(group, &bad, diag) == SF_EUSAGE, rank, "a negative count");
    part.count = INT64_MAX / 2;
    bad.dtype = SF_F32;
    expect(sf_comm_run(group, &bad, diag) == SF_EUSAGE, rank, "a count too large");
    part.count = 1;
    bad.monoid = SF_MONOID_XOR;
    expect(sf_comm_run(group, &bad, diag) == SF_EUNSUPPORTED, rank, "xor of floats");
    bad.kind = SF_BROADCAST;
    bad.from = 1;
    expect(sf_comm_run(group, &bad, diag) == SF_EUSAGE, rank, "a broadcast from nowhere");
}

typedef void suite(sf_comm *comm, sf_diag *diag);

static void suite_all(sf_comm *comm, sf_diag *diag)
{
    static suite *const suites[] = {suite_misuse,  suite_types,  suite_sizes, suite_large,
                                    suite_buckets, suite_pieces, suite_flight};
    for (size_t i = 0; i < sizeof suites / sizeof *suites; i++)
        suites[i](comm, diag);
}

/* Failures ---------------------------------------------------------------------------------------
 *
 * Each is a part for every rank; `role` says who does what. Whoever stays prints what it was told. */

static sf_status reduce_some(sf_comm *comm, int64_t count, const char *what, sf_diag *diag)
{
    int all[MOST_MEMBERS];
    for (int r = 0; r < sf_comm_size(comm); r++)
        all[r] = r;
    sf_group *group;
    sf_status status = sf_comm_group(comm, all, sf_comm_size(comm), diag, &group);
    if (status != SF_OK)
        return status;
    float *data = calloc((size_t)count + 1, sizeof *data);
    sf_transfer_part part = {.in = data, .out = data, .count = count};
    sf_transfer transfer = {.kind = SF_ALL_REDUCE,
                            .dtype = SF_F32,
                            .monoid = SF_MONOID_ADD,
                            .nparts = 1,
                            .parts = &part,
                            .what = what};
    status = sf_comm_run(group, &transfer, diag);
    free(data); /* must be allowed, whatever happened */
    return status;
}

static bool tells(sf_diag *diag, const char *first, const char *second)
{
    const char *text = sf_diag_text(diag, 0);
    bool good = text && strstr(text, first) && strstr(text, second);
    if (!good)
        printf("got: %s\n", text ? text : "(nothing)");
    return good;
}

static void check_lost(sf_comm *comm, sf_status status, double began, sf_diag *diag,
                       const char *first, const char *second)
{
    int rank = sf_comm_rank(comm);
    expect(status == SF_EPEER, rank, "expected a lost rank, got: %s", sf_status_name(status));
    expect(tells(diag, first, second), rank, "the message lacks '%s' or '%s'", first, second);
    expect(now() - began < 10, rank, "it took %g s", now() - began);
    sf_diag_clear(diag);
    expect(reduce_some(comm, 1, "after", diag) == SF_EPEER, rank, "the world goes on");
}

static const char layer[] = "gradient of layer_0/kernel";

/* The last rank never comes. */
static void fail_timeout(sf_comm *comm, sf_diag *diag)
{
    int last = sf_comm_size(comm) - 1;
    double began = now();
    char name[32];
    snprintf(name, sizeof name, "rank %d", last);
    expect(reduce_some(comm, 10, "before", diag) == SF_OK, sf_comm_rank(comm), "it begins badly");
    if (sf_comm_rank(comm) == last)
        sleep(6);
    else
        check_lost(comm, reduce_some(comm, 100000, layer, diag), began, diag, name, layer);
}

static bool refuse_copy(void *context, void *out, const void *in, int64_t bytes)
{
    (void)context, (void)out, (void)in, (void)bytes;
    return false;
}

/* Memory of the first rank fails while it gives to all. */
static void fail_memory(sf_comm *comm, sf_diag *diag)
{
    static const sf_transfer_memory bad = {.copy = refuse_copy};
    int all[MOST_MEMBERS], rank = sf_comm_rank(comm), size = sf_comm_size(comm);
    float one[4] = {0}, every[4 * MOST_MEMBERS];
    sf_group *group;
    double began = now();
    for (int r = 0; r < size; r++)
        all[r] = r;
    expect(sf_comm_group(comm, all, size, diag, &group) == SF_OK, rank, "no group");
    sf_transfer_part part = {.in = one, .out = every, .count = 4};
    sf_transfer transfer = {.kind = SF_ALL_GATHER,
                            .dtype = SF_F32,
                            .nparts = 1,
                            .parts = &part,
                            .what = layer,
                            .memory = rank == 0 ? &bad : NULL};
    check_lost(comm, sf_comm_run(group, &transfer, diag), began, diag, "memory of a rank",
               "cannot be copied");
}

static void fail_abort(sf_comm *comm, sf_diag *diag)
{
    int last = sf_comm_size(comm) - 1;
    double began = now();
    if (sf_comm_rank(comm) == last)
        sf_comm_abort(comm, "no space left");
    else
        check_lost(comm, reduce_some(comm, 100, layer, diag), began, diag, "no space left", layer);
}

/* The last rank frees its end while the others still want something. */
static void fail_leave(sf_comm *comm, sf_diag *diag)
{
    double began = now();
    if (sf_comm_rank(comm) != sf_comm_size(comm) - 1)
        check_lost(comm, reduce_some(comm, 100000, layer, diag), began, diag, "left", layer);
}

/* The last rank starts something else; large enough for data to be under way. */
static void fail_mismatch(sf_comm *comm, sf_diag *diag)
{
    int last = sf_comm_size(comm) - 1, rank = sf_comm_rank(comm);
    double began = now();
    sf_status status = reduce_some(comm, rank == last ? 99999 : 100000, layer, diag);
    check_lost(comm, status, began, diag, "99999", "100000");
}

/* The last rank leaves a transfer in the middle, without waiting. */
static void fail_drop(sf_comm *comm, sf_diag *diag)
{
    double began = now();
    int all[MOST_MEMBERS], size = sf_comm_size(comm);
    if (sf_comm_rank(comm) != size - 1) {
        check_lost(comm, reduce_some(comm, 100000, layer, diag), began, diag, "left", layer);
        return;
    }
    for (int r = 0; r < size; r++)
        all[r] = size - 1 - r;
    static float data[100000];
    sf_group *group;
    sf_request *request;
    sf_transfer_part part = {.in = data, .out = data, .count = 100000};
    sf_transfer transfer = {.kind = SF_BROADCAST,
                            .dtype = SF_F32,
                            .from = 1,
                            .nparts = 1,
                            .parts = &part,
                            .what = layer};
    expect(sf_comm_group(comm, all, size, diag, &group) == SF_OK &&
               sf_comm_start(group, &transfer, diag, &request) == SF_OK,
           size - 1, "it does not start");
}

/* Ranks as threads ----------------------------------------------------------------------------- */

typedef struct rank_thread {
    pthread_t thread;
    sf_comm *comm;
    suite *run;
} rank_thread;

static void *run_rank(void *argument)
{
    rank_thread *r = argument;
    sf_diag *diag = sf_diag_new();
    r->run(r->comm, diag);
    sf_comm_free(r->comm);
    sf_diag_free(diag);
    return NULL;
}

static void run_threads(int size, double limit, suite *run)
{
    sf_comm *ends[MOST_MEMBERS];
    rank_thread threads[MOST_MEMBERS];
    sf_comm_options options = {.limit = limit};
    assert_int_equal(sf_comm_threads_new(size, &options, NULL, ends), SF_OK);
    for (int r = 0; r < size; r++) {
        threads[r] = (rank_thread){.comm = ends[r], .run = run};
        assert_string_equal(sf_comm_kind(ends[r]), "threads");
        assert_int_equal(pthread_create(&threads[r].thread, NULL, run_rank, &threads[r]), 0);
    }
    for (int r = 0; r < size; r++)
        pthread_join(threads[r].thread, NULL);
    assert_int_equal(failures, 0);
}

static void test_conformance(void **state)
{
    (void)state;
    static const int sizes[] = {1, 2, 3, 8};
    for (int i = 0; i < (test_short() ? 3 : 4); i++)
        run_threads(sizes[i], 0, suite_all);
}

/* All of it in memory that is not the host's. */
static void test_elsewhere(void **state)
{
    (void)state;
    make_elsewhere();
    is_elsewhere = true;
    for (int size = 1; size <= 3; size += 2)
        run_threads(size, 0, suite_all);
    is_elsewhere = false;
}

static void test_failures(void **state)
{
    (void)state;
    static suite *const cases[] = {fail_timeout,  fail_abort, fail_leave,
                                   fail_mismatch, fail_drop,  fail_memory};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int size = 2; size <= 8; size += test_short() ? 6 : 3)
            run_threads(size, 0.5, cases[i]);
}

static void test_worlds(void **state)
{
    (void)state;
    sf_comm *ends[1];
    assert_int_equal(sf_comm_threads_new(0, NULL, NULL, ends), SF_EUSAGE);
    assert_int_equal(sf_comm_threads_new(1 << 20, NULL, NULL, ends), SF_EUSAGE);
    sf_comm_free(NULL);
}

/* Ranks over MPI ------------------------------------------------------------------------------- */

static void fail_exit(sf_comm *comm, sf_diag *diag)
{
    double began = now();
    if (sf_comm_rank(comm) == sf_comm_size(comm) - 1)
        exit(3);
    check_lost(comm, reduce_some(comm, 100000, layer, diag), began, diag, "ended", layer);
}

static void fail_kill(sf_comm *comm, sf_diag *diag)
{
    int last = sf_comm_size(comm) - 1;
    char name[32];
    double began = now();
    snprintf(name, sizeof name, "rank %d", last);
    expect(reduce_some(comm, 10, "before", diag) == SF_OK, sf_comm_rank(comm), "it begins badly");
    if (sf_comm_rank(comm) == last)
        raise(SIGKILL);
    check_lost(comm, reduce_some(comm, 1000000, layer, diag), began, diag, name, layer);
}

/* The first rank has no memory for the messages of a transfer: it reports that, and the others lose
 * it. */
static void fail_own_memory(sf_comm *comm, sf_diag *diag)
{
    int rank = sf_comm_rank(comm);
    double began = now();
    expect(reduce_some(comm, 10, "before", diag) == SF_OK, rank, "it begins badly");
    if (rank != 0) {
        check_lost(comm, reduce_some(comm, 100000, layer, diag), began, diag, "rank 0 gave up",
                   "no memory");
        return;
    }
    sf_mem_fail_above(100000);
    sf_status status = reduce_some(comm, 100000, layer, diag);
    sf_mem_fail_above(0);
    expect(status == SF_ENOMEM, rank, "no memory is reported as: %s", sf_status_name(status));
    expect(tells(diag, "no memory", layer), rank, "the message lacks what there is no memory for");
    expect(reduce_some(comm, 1, "after", diag) != SF_OK, rank, "the world goes on");
}

/* Two worlds after each other in the same processes; the second leaves no resources. */
static void two_worlds(sf_comm *comm, sf_diag *diag)
{
    suite_flight(comm, diag);
    sf_comm_free(comm);
    size_t live = sf_mem_live();
    expect(sf_comm_mpi_new(NULL, diag, &comm) == SF_OK, -1, "no second world");
    suite_flight(comm, diag);
    int rank = sf_comm_rank(comm);
    sf_comm_free(comm);
    expect(sf_mem_live() <= live, rank, "a world of %zu bytes is left behind",
           sf_mem_live() - live);
}

static void linger(void)
{
    sleep(60);
}

/* One rank does not come to the end of MPI. */
static void fail_end(sf_comm *comm, sf_diag *diag)
{
    (void)diag;
    if (sf_comm_rank(comm) == sf_comm_size(comm) - 1)
        atexit(linger);
}

/* Under SHEAF_MPI_LINK=2:20000000: a sum crosses from host to host at that speed, and no faster. */
static void suite_line(sf_comm *comm, sf_diag *diag)
{
    enum { COUNT = 500000, RATE = 20000000 };
    int rank = sf_comm_rank(comm), last = sf_comm_size(comm) - 1;
    expect(sf_comm_same_host(comm, 0, 1), rank, "the first two are on two hosts");
    expect(!sf_comm_same_host(comm, 0, last), rank, "all are on one host");
    double began = sf_now();
    expect(reduce_some(comm, COUNT, "slowly", diag) == SF_OK, rank, "no sum");
    double least = COUNT * sizeof(float) / (double)RATE;
    expect(sf_now() - began > least, rank, "it took %g s, not %g", sf_now() - began, least);
}

/* The first transfer started has the link first: it arrives before any later one, of which each
 * alone would be sooner. */
static void suite_order(sf_comm *comm, sf_diag *diag)
{
    enum { REQUESTS = 5, FIRST = 2000000, OTHERS = 200000 };
    int rank = sf_comm_rank(comm), last = sf_comm_size(comm) - 1, ends[] = {0, last};
    sf_request *requests[REQUESTS];
    float *data[REQUESTS];
    double ended[REQUESTS];
    sf_group *group;
    if (rank != 0 && rank != last)
        return;
    expect(sf_comm_group(comm, ends, 2, diag, &group) == SF_OK, rank, "no group");
    for (int i = 0; i < REQUESTS; i++) {
        int64_t count = i == 0 ? FIRST : OTHERS;
        data[i] = calloc((size_t)count, sizeof *data[i]);
        sf_transfer_part part = {.in = data[i], .out = data[i], .count = count};
        sf_transfer sum = {.kind = SF_ALL_REDUCE,
                           .dtype = SF_F32,
                           .monoid = SF_MONOID_ADD,
                           .nparts = 1,
                           .parts = &part};
        expect(sf_comm_start(group, &sum, diag, &requests[i]) == SF_OK, rank, "no start");
    }
    for (int i = 0; i < REQUESTS; i++) {
        expect(sf_comm_wait_timed(requests[i], diag, &ended[i]) == SF_OK, rank, "no sum");
        expect(ended[0] <= ended[i], rank, "transfer %d is %g s before the first", i,
               ended[0] - ended[i]);
        free(data[i]);
    }
}

static void nothing(sf_comm *comm, sf_diag *diag)
{
    (void)comm, (void)diag;
}

static int run_mpi(const char *name)
{
    static const struct {
        const char *name;
        suite *run;
        double limit;
    } cases[] = {
        {"all", suite_all, 0},     {"timeout", fail_timeout, 3},   {"abort", fail_abort, 5},
        {"leave", fail_leave, 5},  {"mismatch", fail_mismatch, 5}, {"drop", fail_drop, 5},
        {"exit", fail_exit, 5},    {"kill", fail_kill, 2},         {"again", two_worlds, 0},
        {"start", nothing, 2},     {"end", fail_end, 2},           {"line", suite_line, 0},
        {"order", suite_order, 0}, {"memory", fail_own_memory, 5},
    };
    sf_diag *diag = sf_diag_new();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (strcmp(name, cases[i].name) != 0)
            continue;
        sf_comm_options options = {.limit = cases[i].limit};
        sf_comm *comm;
        sf_status status = sf_comm_mpi_new(&options, diag, &comm);
        if (status == SF_EUNSUPPORTED)
            return puts(sf_diag_text(diag, 0)), 77;
        if (status != SF_OK)
            return puts(sf_diag_text(diag, 0)), 1;
        if (sf_comm_mpi_size() != sf_comm_size(comm) || strcmp(sf_comm_kind(comm), "mpi") != 0)
            return puts("FAILED: the size is not what the environment says"), 1;
        int rank = sf_comm_rank(comm);
        cases[i].run(comm, diag);
        if (cases[i].run != two_worlds)
            sf_comm_free(comm);
        sf_diag_free(diag);
        printf("rank %d: %s: %s\n", rank, name, failures ? "FAILED" : "good");
        return failures != 0;
    }
    fprintf(stderr, "no case '%s'\n", name);
    return 2;
}

int main(void)
{
    if (test_argv[0] && strcmp(test_argv[0], "mpi") == 0)
        return run_mpi(test_argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_worlds),
        cmocka_unit_test(test_conformance),
        cmocka_unit_test(test_elsewhere),
        cmocka_unit_test(test_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
