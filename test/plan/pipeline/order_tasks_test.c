/* The search for an order of a pipe: as good as the named schedules where those are good, better where stages differ. */
#include "plan/pipeline/order_tasks.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/machine.h"
#include "base/mem.h"
#include "plan/pipeline/schedules.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* A named schedule, with costs of its stages, and limits on memory as it holds itself. */
typedef struct setting {
    sf_schedule schedule;
    sf_pipe_costs costs;
    sf_times times;
} setting;

typedef struct times_of {
    int64_t f, b, w, shared; /* time of a shared stage, forward; backward twice of that */
} times_of;

static setting set(const char *name, uint32_t p, uint32_t m, times_of of, sf_arena *arena)
{
    setting it;
    sf_diag *diag = sf_diag_new();
    sf_schedule_kind kind;
    assert_int_equal(sf_schedule_parse(name, &kind, diag), SF_OK);
    uint32_t n = sf_schedule_stages(kind, p) + (kind.name == SF_SCHEDULE_INTERLACED ? 2 : 0);
    bool *has_backward = SF_ARRAY(arena, n, bool);
    for (uint32_t s = kind.name == SF_SCHEDULE_3F1B ? n - p : 0; s < n; s++)
        has_backward[s] = true;
    sf_pipe pipe = {.nstages = n,
                    .nmicrobatches = m,
                    .ngroups = p,
                    .has_backward = has_backward,
                    .nedges = n - 1,
                    .edges = sf_pipe_chain(n, arena)};
    if (sf_schedule_make(kind, &pipe, NULL, arena, &it.schedule, diag) != SF_OK)
        fail_msg("%s", sf_diag_text(diag, 0));
    sf_diag_free(diag);
    int64_t *time = SF_ARRAY(arena, n * SF_PASSES, int64_t), *held = SF_ARRAY(arena, n, int64_t);
    for (uint32_t s = 0; s < n; s++) {
        bool shared = __builtin_popcountll(sf_pipe_hosts(&it.schedule.pipe, s, 0)) > 1;
        time[s * SF_PASSES] = shared ? of.shared : of.f;
        time[s * SF_PASSES + 1] = shared                            ? 2 * of.shared
                                  : it.schedule.pipe.splits_weights ? of.b
                                                                    : of.b + of.w;
        time[s * SF_PASSES + 2] = shared ? 0 : of.w;
        held[s] = !shared;
    }
    it.costs = (sf_pipe_costs){.time = time, .held = held, .late = held};
    sf_pipe_jobs jobs;
    sf_schedule_time(&it.schedule, &it.costs, arena, &jobs, &it.times);
    it.costs.limits = it.times.peaks;
    return it;
}

/* Given only hosts, costs and the memory that the named schedule holds. */
static void test_the_search_is_as_good_as_named_schedules_on_their_own(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint32_t p, m;
        times_of of;
        int64_t more; /* than its time, in percent */
    } table[] = {
        {"gpipe", 4, 8, {1, 1, 1, 0}, 0},         {"1f1b", 2, 8, {1, 1, 1, 0}, 0},
        {"1f1b", 4, 8, {1, 1, 1, 0}, 0},          {"1f1b", 4, 16, {2, 3, 2, 0}, 0},
        {"1f1b", 8, 16, {1, 1, 1, 0}, 0},         {"1f1b", 8, 24, {1, 2, 1, 0}, 0},
        {"zb-h1", 4, 8, {1, 1, 1, 0}, 0},         {"zb-h1", 8, 16, {1, 1, 1, 0}, 0},
        {"zb-v", 2, 8, {1, 1, 1, 0}, 5},          {"zb-v", 4, 8, {1, 1, 1, 0}, 5},
        {"interleaved:2", 2, 8, {1, 1, 1, 0}, 0}, {"interleaved:2", 4, 8, {1, 1, 1, 0}, 5},
        {"3f1b", 4, 8, {1, 1, 1, 0}, 0},          {"3f1b", 4, 16, {1, 1, 1, 0}, 0},
        {"3f1b", 8, 16, {1, 1, 1, 0}, 0},         {"interlaced", 4, 8, {2, 2, 2, 1}, 0},
        {"interlaced", 4, 16, {2, 2, 2, 1}, 0},   {"interlaced", 8, 16, {2, 2, 2, 1}, 0},
        {"interlaced", 4, 16, {4, 4, 4, 3}, 0},
    };
    for (size_t i = 0; i < COUNT(table); i++) {
        sf_arena arena = {0};
        sf_diag *diag = sf_diag_new();
        setting it = set(table[i].name, table[i].p, table[i].m, table[i].of, &arena);
        sf_arranged found;
        sf_arrange_options options = {0};
        sf_status status = sf_arrange(&it.schedule.pipe, &it.costs, &options, &arena, &found, diag);
        if (status != SF_OK)
            fail_msg("%s, %u pipeline ranks, %u turns: %s", table[i].name, table[i].p, table[i].m,
                     sf_diag_text(diag, 0));
        print_message("  %-13s p %u m %2u: %4" PRId64 ", search %4" PRId64 ", bound %4" PRId64 "\n",
                      table[i].name, table[i].p, table[i].m, it.times.makespan,
                      found.times.makespan, found.bound);
        assert_true(found.times.makespan * 100 <= it.times.makespan * (100 + table[i].more));
        assert_true(found.times.fits && found.bound <= found.times.makespan);

        options.known = &it.schedule;
        options.work = 1;
        assert_int_equal(sf_arrange(&it.schedule.pipe, &it.costs, &options, &arena, &found, diag),
                         SF_OK);
        assert_true(found.times.makespan <= it.times.makespan);
        sf_diag_free(diag);
        sf_arena_free(&arena);
    }
}

/* nnScaler, section 8.1. A table of embeddings in the first and the last stage makes those slow;
 * split over all pipeline ranks it does not. Its total time is the same. */
static void test_interlaced_beats_1f1b_where_a_table_is_large(void **state)
{
    (void)state;
    for (uint32_t p = 2; p <= 8; p *= 2) {
        sf_arena arena = {0};
        setting interlaced = set("interlaced", p, 4 * p, (times_of){8, 8, 8, 4}, &arena);
        setting plain = set("1f1b", p, 4 * p, (times_of){8, 8, 8, 0}, &arena);
        int64_t *time = (int64_t *)plain.costs.time;
        for (uint32_t s = 0; s < p; s += p - 1) {
            time[s * SF_PASSES] += 4 * p;
            time[s * SF_PASSES + 1] += 8 * p;
        }
        sf_pipe_jobs jobs;
        sf_schedule_time(&plain.schedule, &plain.costs, &arena, &jobs, &plain.times);
        print_message("  p %u: 1f1b %" PRId64 ", interlaced %" PRId64 "\n", p, plain.times.makespan,
                      interlaced.times.makespan);
        assert_true(interlaced.times.makespan < plain.times.makespan);
        sf_arena_free(&arena);
    }
}

/* As above, section 4.2: three forward passes of a micro-batch, one after another, as in 1f1b when
 * they are one stage per pipeline rank. */
static void test_3f1b_beats_one_turn_after_another(void **state)
{
    (void)state;
    for (uint32_t p = 2; p <= 8; p *= 2) {
        sf_arena arena = {0};
        sf_diag *diag = sf_diag_new();
        setting it = set("3f1b", p, 4 * p, (times_of){1, 1, 1, 0}, &arena);
        sf_stage_task(*fixed)[2] = sf_arena_array(&arena, 4 * p - 1, sizeof *fixed);
        for (uint32_t i = 0; i + 1 < 4 * p;
             i++) { /* pass 1 of a micro-batch after pass 3 of the one before */
            fixed[i][0] = (sf_stage_task){2 * p, i, SF_PASS_FORWARD};
            fixed[i][1] = (sf_stage_task){0, i + 1, SF_PASS_FORWARD};
        }
        sf_arrange_options options = {.nfixed = 4 * p - 1,
                                      .fixed = (const sf_stage_task(*)[2])fixed};
        sf_arranged naive;
        it.costs.limits = NULL;
        assert_int_equal(sf_arrange(&it.schedule.pipe, &it.costs, &options, &arena, &naive, diag),
                         SF_OK);
        print_message("  p %u: one turn after another %" PRId64 ", 3f1b %" PRId64 "\n", p,
                      naive.times.makespan, it.times.makespan);
        assert_true(it.times.makespan < naive.times.makespan);
        sf_diag_free(diag);
        sf_arena_free(&arena);
    }
}

/* By times and memory of stages, without 3f1b: inputs of all passes, which the first stage of all
 * keeps until their gradient comes, cost it no time, and the stages of the last pass hold as many
 * micro-batches as there are pipeline ranks. */
static void test_an_order_of_passes_by_what_they_keep(void **state)
{
    (void)state;
    enum { LARGE = 100, PASSES = 3 };
    for (uint32_t p = 2; p <= 4; p *= 2) {
        sf_arena arena = {0};
        sf_diag *diag = sf_diag_new();
        setting it = set("3f1b", p, 4 * p, (times_of){10, 15, 15, 0}, &arena);
        uint32_t n = PASSES * p;
        bool *has_backward = sf_arena_copy(&arena, it.schedule.pipe.has_backward, n * sizeof(bool));
        int64_t *time = sf_arena_copy(&arena, it.costs.time, n * SF_PASSES * sizeof *time),
                *held = SF_ARRAY(&arena, n, int64_t);
        for (uint32_t s = n - p; s < n; s++)
            held[s] = LARGE;
        held[0] = 1;
        has_backward[0] = true;
        time[SF_PASS_BACKWARD] = 1;
        sf_pipe pipe = it.schedule.pipe;
        pipe.has_backward = has_backward;
        sf_schedule found;
        sf_pipe_costs costs = {.time = time, .held = held, .late = held};
        sf_pipe_jobs jobs;
        sf_times times;
        assert_int_equal(sf_schedule_find(&pipe, time, held, &arena, &found, diag), SF_OK);
        sf_schedule_time(&found, &costs, &arena, &jobs, &times);
        print_message("  p %u: 3f1b %" PRId64 ", found %" PRId64 "\n", p, it.times.makespan,
                      times.makespan);
        assert_true(times.makespan <= it.times.makespan + 4 * p);
        for (uint32_t g = 0; g < p; g++)
            assert_true(times.peaks[g] <= p * LARGE + n);
        sf_diag_free(diag);
        sf_arena_free(&arena);
    }
}

/* Fixed orders stay, also if that costs time; contradictions are refused. */
static void test_what_is_fixed_stays(void **state)
{
    (void)state;
    sf_arena arena = {0};
    sf_diag *diag = sf_diag_new();
    setting it = set("1f1b", 2, 3, (times_of){1, 1, 1, 0}, &arena);
    it.costs.limits = NULL;
    const sf_stage_task fixed[][2] = {{{0, 2, SF_PASS_FORWARD}, {0, 0, SF_PASS_BACKWARD}},
                                      {{1, 2, SF_PASS_FORWARD}, {1, 0, SF_PASS_BACKWARD}},
                                      {{1, 0, SF_PASS_BACKWARD}, {1, 2, SF_PASS_FORWARD}}};
    sf_arrange_options options = {.nfixed = 2, .fixed = fixed};
    sf_arranged found;
    assert_int_equal(sf_arrange(&it.schedule.pipe, &it.costs, &options, &arena, &found, diag),
                     SF_OK);
    assert_int_equal(found.times.peaks[0], 3);
    assert_int_equal(found.times.peaks[1], 3);
    options.nfixed = 3;
    assert_int_equal(sf_arrange(&it.schedule.pipe, &it.costs, &options, &arena, &found, diag),
                     SF_EINPUT);
    assert_non_null(strstr(sf_diag_text(diag, 0), "in a circle"));
    sf_diag_free(diag);
    sf_arena_free(&arena);
}

static void test_too_little_memory_is_told(void **state)
{
    (void)state;
    sf_arena arena = {0};
    sf_diag *diag = sf_diag_new();
    setting it = set("1f1b", 2, 3, (times_of){1, 1, 1, 0}, &arena);
    static const int64_t limits[] = {1, 0};
    it.costs.limits = limits;
    sf_arrange_options options = {0};
    sf_arranged found;
    assert_int_equal(sf_arrange(&it.schedule.pipe, &it.costs, &options, &arena, &found, diag),
                     SF_EMISMATCH);
    assert_non_null(strstr(sf_diag_text(diag, 0),
                           "no order was found in which pipeline rank 1 holds at most 0 "
                           "bytes of activations; the best one holds 1"));
    sf_diag_free(diag);
    sf_arena_free(&arena);
}

/* Stages that differ, on the way between groups for some time: the search is better than 1f1b, which was made for others. */
static void test_the_search_is_better_where_stages_differ(void **state)
{
    (void)state;
    sf_arena arena = {0};
    sf_diag *diag = sf_diag_new();
    setting it = set("1f1b", 4, 12, (times_of){4, 4, 4, 0}, &arena);
    int64_t *time = (int64_t *)it.costs.time;
    static const int64_t ahead[] = {3, 3, 3}, back[] = {3, 3, 3}, limits[] = {6, 6, 6, 6};
    time[0] = 2;
    time[3 * SF_PASSES] = 6;
    it.costs.ahead = ahead;
    it.costs.back = back;
    it.costs.limits = limits;
    sf_pipe_jobs jobs;
    sf_times named;
    sf_schedule_time(&it.schedule, &it.costs, &arena, &jobs, &named);
    sf_arrange_options options = {0};
    sf_arranged found;
    assert_int_equal(sf_arrange(&it.schedule.pipe, &it.costs, &options, &arena, &found, diag),
                     SF_OK);
    print_message("  1f1b %" PRId64 ", search %" PRId64 ", bound %" PRId64 "\n", named.makespan,
                  found.times.makespan, found.bound);
    assert_true(found.times.makespan < named.makespan);
    sf_diag_free(diag);
    sf_arena_free(&arena);
}

static void test_it_is_fast(void **state)
{
    (void)state;
    static const uint32_t sizes[][2] = {{16, 64}, {64, 256}};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        sf_arena arena = {0};
        sf_diag *diag = sf_diag_new();
        setting it = set("1f1b", sizes[i][0], sizes[i][1], (times_of){100, 100, 100, 0}, &arena);
        sf_pipe_jobs jobs;
        sf_times times;
        sf_arranged found;
        sf_arrange_options options = {0};
        double begin = sf_now();
        assert_int_equal(sf_schedule_check(&it.schedule, diag), SF_OK);
        double checked = sf_now();
        sf_schedule_time(&it.schedule, &it.costs, &arena, &jobs, &times);
        double timed = sf_now();
        assert_int_equal(sf_arrange(&it.schedule.pipe, &it.costs, &options, &arena, &found, diag),
                         SF_OK);
        double ended = sf_now();
        print_message(
            "  %u pipeline ranks, %u turns: check %.1f ms, time %.1f ms, search %.2f s (%" PRId64
            " of %" PRId64 ")\n",
            sizes[i][0], sizes[i][1], (checked - begin) * 1e3, (timed - checked) * 1e3,
            ended - timed, found.times.makespan, times.makespan);
        assert_true(found.times.makespan <= times.makespan);
        sf_diag_free(diag);
        sf_arena_free(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_search_is_as_good_as_named_schedules_on_their_own),
        cmocka_unit_test(test_interlaced_beats_1f1b_where_a_table_is_large),
        cmocka_unit_test(test_3f1b_beats_one_turn_after_another),
        cmocka_unit_test(test_an_order_of_passes_by_what_they_keep),
        cmocka_unit_test(test_what_is_fixed_stays),
        cmocka_unit_test(test_too_little_memory_is_told),
        cmocka_unit_test(test_the_search_is_better_where_stages_differ),
        cmocka_unit_test(test_it_is_fast),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
