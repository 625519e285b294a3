/* Small reductions that are gathered: what is brought, and which elements each launch combines, in which order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/mem.h"
#include "run/comm/comm_backend.h"
#include "run/cuda/nccl_small_reduce.h"

enum { MEMBERS = 3, PLACE = 1, COUNT = 10 };

typedef struct world {
    sf_comm *comms[MEMBERS];
    sf_group *group;
    sf_diag *diag;
} world;

static world open_world(void)
{
    static const int ranks[MEMBERS] = {0, 1, 2};
    world w = {.diag = sf_diag_new()};
    assert_int_equal(sf_comm_threads_new(MEMBERS, NULL, w.diag, w.comms), SF_OK);
    assert_int_equal(sf_comm_group(w.comms[PLACE], ranks, MEMBERS, w.diag, &w.group), SF_OK);
    return w;
}

static void close_world(world *w)
{
    for (int i = 0; i < MEMBERS; i++)
        sf_comm_free(w->comms[i]);
    sf_diag_free(w->diag);
}

/* Does what the launches do, with a kernel that subtracts: so the order is seen in the result. */
static void run_folds(const exchange *e)
{
    for (int i = 0; i < e->nfolds; i++) {
        uint64_t *const *values = (uint64_t *const *)(void *)e->folds[i].params;
        int64_t count = (int64_t)*values[MEMBERS + 1];
        assert_int_equal(e->folds[i].blocks, sf_blocks_for(count, e->folds[i].threads));
        for (int64_t j = 0; j < count; j++) {
            float sum = ((const float *)(uintptr_t)*values[0])[j];
            for (int q = 1; q < MEMBERS; q++)
                sum -= ((const float *)(uintptr_t)*values[q])[j];
            ((float *)(uintptr_t)*values[MEMBERS])[j] = sum;
        }
    }
}

static float element(int member, int64_t index)
{
    return (float)(index * 7 + member * 100 + member * member);
}

/* In the order that kind.h promises for a segment. */
static float wanted(int segment, int64_t index)
{
    float sum = element((segment + 1) % MEMBERS, index);
    for (int i = 2; i <= MEMBERS; i++)
        sum -= element((segment + i) % MEMBERS, index);
    return sum;
}

static void check(sf_collective kind)
{
    world w = open_world();
    cuda c = {0};
    ready fold = {.threads = 32};
    float in[MEMBERS * COUNT] = {0}, out[COUNT] = {0}, room[MEMBERS * COUNT] = {0};
    sf_transfer_part part = {.in = in, .out = out, .count = COUNT};
    exchange e = {
        .group = w.group,
        .fold = &fold,
        .transfer = {
            .kind = kind, .dtype = SF_F32, .monoid = SF_MONOID_MAX, .nparts = 1, .parts = &part}};
    bool all = kind == SF_ALL_REDUCE;
    assert_int_equal(sf_cuda_gathered_bytes(&e), sizeof room);
    sf_cuda_make_gathered(&c, &e, (char *)room);
    assert_int_equal(e.transfer.kind, all ? SF_ALL_GATHER : SF_ALL_TO_ALL);
    assert_ptr_equal(e.transfer.parts[0].in, in);
    assert_ptr_equal(e.transfer.parts[0].out, room);
    assert_int_equal(e.transfer.parts[0].count, COUNT);
    for (int q = 0; q < MEMBERS; q++)
        for (int64_t i = 0; i < COUNT; i++)
            room[q * COUNT + i] = element(q, i);
    run_folds(&e);
    for (int s = 0; s < MEMBERS; s++)
        for (int64_t i = sf_comm_segment(COUNT, MEMBERS, s);
             i < sf_comm_segment(COUNT, MEMBERS, s + 1); i++)
            assert_true(out[i] == wanted(all ? s : PLACE, i));
    sf_arena_free(&c.memory);
    close_world(&w);
}

static void test_order(void **state)
{
    (void)state;
    check(SF_ALL_REDUCE);
    check(SF_REDUCE_SCATTER);
}

/* What is large, lies in blocks, or has no kernel, is none. */
static void test_others(void **state)
{
    (void)state;
    world w = open_world();
    ready fold = {.threads = 32};
    sf_transfer_part part = {.count = COUNT};
    exchange e = {
        .group = w.group,
        .transfer = {.kind = SF_ALL_REDUCE, .dtype = SF_F32, .nparts = 1, .parts = &part}};
    assert_int_equal(sf_cuda_gathered_bytes(&e), 0);
    e.fold = &fold;
    assert_true(sf_cuda_gathered_bytes(&e) > 0);
    part.stride = 2 * COUNT;
    assert_int_equal(sf_cuda_gathered_bytes(&e), 0);
    part.stride = 0;
    part.count = INT64_MAX / 2;
    assert_int_equal(sf_cuda_gathered_bytes(&e), 0);
    part.count = (1 << 20) / 4 / MEMBERS + 1;
    assert_int_equal(sf_cuda_gathered_bytes(&e), 0);
    part.count = COUNT;
    e.transfer.kind = SF_ALL_GATHER;
    assert_int_equal(sf_cuda_gathered_bytes(&e), 0);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_order), cmocka_unit_test(test_others)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
