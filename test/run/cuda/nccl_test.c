/* Transfers by NCCL, with the library that stands in for it: as the communicator of the ranks does them. And what is declared of the real
 * one, against its header. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef SF_HAVE_NCCL_H
#include <nccl.h>
#endif

#include "run/comm/comm.h"
#include "run/cuda/cuda_device.h"
#include "run/cuda/nccl.h"
#include "support/emulate.h"

enum { MEMBERS = 3, NPARTS = 2, ROOM = 512 };
static const int64_t lengths[NPARTS] = {40, 7}; /* of a block */

/* The header */

#ifdef SF_HAVE_NCCL_H
/* The list, with the names that the header has for its types. */
#define nccl_type ncclDataType_t
#define nccl_operation ncclRedOp_t
#define nccl_result ncclResult_t
#define nccl_comm ncclComm_t
#define nccl_stream cudaStream_t
#define nccl_id ncclUniqueId
#define nccl_config ncclConfig_t
#define X(member, symbol, parameters)                                                              \
    _Static_assert(_Generic(&symbol, ncclResult_t(*) parameters : 1, default : 0), #symbol);
SF_CUDA_EXCHANGES(X)
#undef X
#undef nccl_id
#undef nccl_config
#undef nccl_comm
#undef nccl_type
#undef nccl_operation
#undef nccl_result
#undef nccl_stream

#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)
SAME(NCCL_IN_PROGRESS, ncclInProgress);
SAME(NCCL_INT8, ncclInt8);
SAME(NCCL_UINT8, ncclUint8);
SAME(NCCL_INT32, ncclInt32);
SAME(NCCL_UINT32, ncclUint32);
SAME(NCCL_INT64, ncclInt64);
SAME(NCCL_UINT64, ncclUint64);
SAME(NCCL_FLOAT16, ncclFloat16);
SAME(NCCL_FLOAT32, ncclFloat32);
SAME(NCCL_FLOAT64, ncclFloat64);
SAME(NCCL_BFLOAT16, ncclBfloat16);
SAME(NCCL_SUM, ncclSum);
SAME(NCCL_PROD, ncclProd);
SAME(NCCL_MAX, ncclMax);
SAME(NCCL_MIN, ncclMin);
SAME(sizeof(nccl_id), sizeof(ncclUniqueId));
SAME(offsetof(nccl_config, magic), offsetof(ncclConfig_t, magic));
SAME(offsetof(nccl_config, version), offsetof(ncclConfig_t, version));
SAME(offsetof(nccl_config, blocking), offsetof(ncclConfig_t, blocking));
SAME(offsetof(nccl_config, most_blocks), offsetof(ncclConfig_t, maxCTAs));
SAME(offsetof(nccl_config, net), offsetof(ncclConfig_t, netName));
SAME(offsetof(nccl_config, split_share), offsetof(ncclConfig_t, splitShare));

static void test_header(void **state)
{
    (void)state; /* it compiles */
}
#else
static void test_header(void **state)
{
    (void)state;
    print_message("nccl.h is not there: what is declared is not held against it\n");
    skip();
}
#endif

/* Ranks */

typedef struct rank {
    sf_comm *comm;
    sf_device *device;
    sf_group *all, *pair;
    sf_nccl nccl;
    sf_nccl_group groups[2];
    char byte;
    sf_diag *diag;
    pthread_t thread;
    int number;
    bool differs; /* it has another program than the others */
    sf_status status;
} rank;

static atomic_int wrong;

static void open_rank(rank *r)
{
    static const int ranks[MEMBERS] = {0, 1, 2};
    sf_comm_group(r->comm, ranks, MEMBERS, r->diag, &r->all);
    sf_device_open(r->number, r->diag, &r->device);
    r->nccl = (sf_nccl){
        .device = r->device, .comm = r->comm, .groups = r->groups, .ngroups = 1, .byte = &r->byte};
    r->groups[0] = (sf_nccl_group){.group = r->all, .signature = 7 + r->differs};
    if (r->number < 2) {
        sf_comm_pair(r->comm, 0, 1, r->diag, &r->pair);
        r->groups[r->nccl.ngroups++] = (sf_nccl_group){.group = r->pair, .is_pair = true};
    }
    r->status = sf_nccl_load(&r->nccl, r->diag);
    if (r->status == SF_OK)
        r->status = sf_nccl_join(&r->nccl, r->diag);
}

static void close_rank(rank *r)
{
    sf_nccl_close(&r->nccl);
    r->device->table->close(r->device);
    sf_comm_free(r->comm);
}

static void run_ranks(rank *ranks, void *(*body)(void *))
{
    sf_comm *comms[MEMBERS];
    sf_comm_options options = {.limit = 20};
    sf_diag *diag = sf_diag_new();
    assert_int_equal(sf_comm_threads_new(MEMBERS, &options, diag, comms), SF_OK);
    for (int i = 0; i < MEMBERS; i++) {
        ranks[i].comm = comms[i];
        ranks[i].number = i;
        ranks[i].diag = sf_diag_new();
        assert_int_equal(pthread_create(&ranks[i].thread, NULL, body, &ranks[i]), 0);
    }
    for (int i = 0; i < MEMBERS; i++)
        pthread_join(ranks[i].thread, NULL);
    sf_diag_free(diag);
}

/* Transfers */

typedef struct shape {
    sf_collective kind;
    sf_dtype dtype;
    sf_monoid monoid;
    bool strided;
} shape;

static void fill(const shape *s, int number, int part, void *data)
{
    for (int64_t i = 0; i < ROOM; i++) {
        int64_t value = (i * 7 + number * 5 + part * 3) % 9 + 1;
        if (sf_is_float(s->dtype))
            sf_store_f64(s->dtype, data, i, (double)value);
        else
            sf_store_i64(s->dtype, data, i, value);
    }
}

static void check_shape(rank *r, const shape *s, sf_group *group, sf_nccl_group *by, int to,
                        int from)
{
    static _Thread_local _Alignas(16) char in[NPARTS][ROOM * 8], out[2][NPARTS][ROOM * 8];
    memset(out, 0x5a, sizeof out);
    for (int way = 0; way < 2; way++) {
        sf_transfer_part parts[NPARTS];
        for (int p = 0; p < NPARTS; p++) {
            fill(s, r->number, p, in[p]);
            int64_t count = lengths[p] * (s->kind == SF_ALL_REDUCE && s->strided ? MEMBERS : 1);
            parts[p] = (sf_transfer_part){.in = in[p],
                                          .out = out[way][p],
                                          .count = count,
                                          .stride = s->strided ? lengths[p] + 3 : 0};
        }
        sf_transfer transfer = {.kind = s->kind,
                                .dtype = s->dtype,
                                .monoid = s->monoid,
                                .to = to,
                                .from = from,
                                .nparts = NPARTS,
                                .parts = parts,
                                .what = "numbers"};
        sf_status status = way == 0 ? sf_comm_run(group, &transfer, r->diag)
                                    : sf_nccl_put(&r->nccl, by, &transfer, r->diag);
        if (way == 1 && status == SF_OK)
            status = r->device->table->wait_on(r->device, by->lane, r->diag);
        if (status != SF_OK || (way == 1 && !sf_nccl_can(&transfer)))
            atomic_fetch_add(&wrong, 1);
    }
    if (memcmp(out[0], out[1], sizeof out[0]) != 0) {
        printf("rank %d: %s of %s%s differs\n", r->number, sf_collective_name(s->kind),
               sf_dtype_get(s->dtype)->name, s->strided ? ", in blocks" : "");
        atomic_fetch_add(&wrong, 1);
    }
}

static void *run_shapes(void *argument)
{
    static const struct {
        sf_dtype dtype;
        sf_monoid monoid;
    } sums[] = {{SF_F32, SF_MONOID_ADD},  {SF_F64, SF_MONOID_MUL}, {SF_S32, SF_MONOID_MAX},
                {SF_U8, SF_MONOID_MIN},   {SF_S64, SF_MONOID_ADD}, {SF_U32, SF_MONOID_MUL},
                {SF_BF16, SF_MONOID_ADD}, {SF_S8, SF_MONOID_MIN},  {SF_U64, SF_MONOID_MAX}};
    static const sf_dtype others[] = {SF_F32, SF_PRED, SF_F16, SF_C64};
    rank *r = argument;
    open_rank(r);
    for (int strided = 0; strided < 2 && r->status == SF_OK; strided++) {
        for (size_t i = 0; i < sizeof sums / sizeof *sums; i++)
            for (int k = 0; k < 2; k++)
                check_shape(r,
                            &(shape){k ? SF_ALL_REDUCE : SF_REDUCE_SCATTER, sums[i].dtype,
                                     sums[i].monoid, strided},
                            r->all, &r->groups[0], 0, 0);
        for (size_t i = 0; i < sizeof others / sizeof *others; i++)
            for (int k = 0; k < 2; k++)
                check_shape(
                    r, &(shape){k ? SF_ALL_GATHER : SF_ALL_TO_ALL, others[i], 0, strided && i != 3},
                    r->all, &r->groups[0], 0, 0);
    }
    if (r->status == SF_OK) {
        int next = (r->number + 1) % MEMBERS, before = (r->number + MEMBERS - 1) % MEMBERS;
        check_shape(r, &(shape){SF_PERMUTE, SF_F32, 0, false}, r->all, &r->groups[0], next, before);
        check_shape(r, &(shape){SF_BROADCAST, SF_F32, 0, false}, r->all, &r->groups[0], 0, 1);
        if (r->pair)
            check_shape(r, &(shape){SF_PERMUTE, SF_S32, 0, false}, r->pair, &r->groups[1],
                        r->number == 0 ? 1 : -1, r->number == 0 ? -1 : 0);
    }
    close_rank(r);
    return NULL;
}

static void test_transfers(void **state)
{
    (void)state;
    rank ranks[MEMBERS] = {0};
    atomic_store(&wrong, 0);
    run_ranks(ranks, run_shapes);
    for (int i = 0; i < MEMBERS; i++) {
        if (ranks[i].status != SF_OK || ranks[i].diag->count > 0)
            print_error("rank %d: %s\n", i, sf_diag_text(ranks[i].diag, 0));
        assert_int_equal(ranks[i].status, SF_OK);
        sf_diag_free(ranks[i].diag);
    }
    assert_int_equal(atomic_load(&wrong), 0);
}

static void *run_opening(void *argument)
{
    open_rank(argument);
    close_rank(argument);
    return NULL;
}

/* Members that would not exchange the same do not begin to. */
static void test_different_programs(void **state)
{
    (void)state;
    rank ranks[MEMBERS] = {[2] = {.differs = true}};
    run_ranks(ranks, run_opening);
    for (int i = 0; i < MEMBERS; i++) {
        assert_int_equal(ranks[i].status, SF_EPEER);
        assert_non_null(strstr(sf_diag_text(ranks[i].diag, 0),
                               "ranks 0 and 2, of a group of 3, have different exchanges"));
        sf_diag_free(ranks[i].diag);
    }
}

/* What the library refuses is done without it, on all ranks, and said once. */
static void test_refused(void **state)
{
    (void)state;
    rank ranks[MEMBERS] = {0};
    setenv("FAKE_NCCL_REFUSE", "1", 1);
    run_ranks(ranks, run_opening);
    unsetenv("FAKE_NCCL_REFUSE");
    for (int i = 0; i < MEMBERS; i++) {
        assert_int_equal(ranks[i].status, SF_OK);
        assert_null(ranks[i].nccl.library);
        assert_int_equal(ranks[i].diag->count, i == 0);
        sf_diag_free(ranks[i].diag);
    }
}

/* What it has no operation for, or another one. */
static void test_what_it_can(void **state)
{
    (void)state;
    static const struct {
        sf_collective kind;
        sf_dtype dtype;
        sf_monoid monoid;
        bool can;
    } cases[] = {
        {SF_ALL_REDUCE, SF_F32, SF_MONOID_ADD, true},
        {SF_ALL_REDUCE, SF_F32, SF_MONOID_MAX, false},
        {SF_ALL_REDUCE, SF_S32, SF_MONOID_MAX, true},
        {SF_ALL_REDUCE, SF_PRED, SF_MONOID_OR, false},
        {SF_ALL_REDUCE, SF_U8, SF_MONOID_XOR, false},
        {SF_REDUCE_SCATTER, SF_C64, SF_MONOID_MUL, false},
        {SF_REDUCE_SCATTER, SF_S16, SF_MONOID_ADD, false},
        {SF_ALL_GATHER, SF_PRED, 0, true},
        {SF_ALL_TO_ALL, SF_C128, 0, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sf_transfer transfer = {
            .kind = cases[i].kind, .dtype = cases[i].dtype, .monoid = cases[i].monoid};
        assert_int_equal(sf_nccl_can(&transfer), cases[i].can);
    }
}

int main(void)
{
    char setting[1024];
    snprintf(setting, sizeof setting, "%s/test/support/libfake_nccl.so", getenv("SHEAF_BUILD"));
    setenv("SHEAF_NCCL", setting, 1);
    test_emulate_gpu();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_header), cmocka_unit_test(test_what_it_can),
        cmocka_unit_test(test_transfers), cmocka_unit_test(test_different_programs),
        cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
