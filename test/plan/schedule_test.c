/* Schedules: those with names take what their closed forms say, in time and in memory; text goes there and back; and any
 * change to a schedule is refused or runs to its end. */
#include "plan/schedules.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"

/* Equal stages: what the passes of one group take in one turn, and a unit of memory for each. */
typedef struct even {
    int64_t f, b, w;
} even;

static sf_schedule_kind kind_of(const char *name)
{
    sf_schedule_kind kind;
    sf_diag *diag = sf_diag_new();
    if (sf_schedule_parse(name, &kind, diag) != SF_OK)
        fail_msg("%s", sf_diag_text(diag, 0));
    sf_diag_free(diag);
    return kind;
}

static sf_pipe pipe_of(sf_schedule_kind kind, uint32_t p, uint32_t m, sf_arena *arena)
{
    uint32_t nstages = sf_schedule_stages(kind, p);
    return (sf_pipe){.nstages = nstages,
                     .nturns = m,
                     .ngroups = p,
                     .has_backward = sf_pipe_all_backward(nstages, arena),
                     .nedges = nstages - 1,
                     .edges = sf_pipe_chain(nstages, arena)};
}

static sf_schedule make(const char *name, uint32_t p, uint32_t m, sf_arena *arena)
{
    sf_schedule_kind kind = kind_of(name);
    sf_pipe pipe = pipe_of(kind, p, m, arena);
    sf_schedule schedule;
    sf_diag *diag = sf_diag_new();
    if (sf_schedule_make(kind, &pipe, NULL, arena, &schedule, diag) != SF_OK)
        fail_msg("%s on %u groups in %u turns: %s", name, p, m, sf_diag_text(diag, 0));
    sf_diag_free(diag);
    return schedule;
}

/* Stages take f and b, or where weights are apart f, b and w; divided by the chunks of a group. */
static sf_pipe_costs even_costs(const sf_pipe *pipe, even of, uint32_t chunks, sf_arena *arena)
{
    int64_t *time = SF_ARRAY(arena, pipe->nstages * SF_PASSES, int64_t);
    int64_t *held = SF_ARRAY(arena, pipe->nstages, int64_t);
    for (uint32_t s = 0; s < pipe->nstages; s++) {
        time[s * SF_PASSES + SF_PASS_FORWARD] = of.f / chunks;
        time[s * SF_PASSES + SF_PASS_BACKWARD] =
            (pipe->splits_weights ? of.b : of.b + of.w) / chunks;
        time[s * SF_PASSES + SF_PASS_WEIGHTS] = of.w / chunks;
        held[s] = 1;
    }
    return (sf_pipe_costs){.time = time, .held = held, .late = held};
}

static const uint32_t groups[] = {1, 2, 4, 8};
static const uint32_t turns[] = {1, 2, 3, 4, 5, 8, 13, 16, 32};
static const even evens[] = {{240, 240, 240}, {240, 480, 240}, {480, 240, 240}, {720, 480, 240}};
#define COUNT(array) (sizeof(array) / sizeof *(array))

static void check_bubble(const char *name, uint32_t p, uint32_t m, even of, int64_t bubble)
{
    sf_arena arena = {0};
    sf_schedule schedule = make(name, p, m, &arena);
    sf_pipe_costs costs = even_costs(&schedule.pipe, of, schedule.pipe.nstages / p, &arena);
    sf_pipe_jobs jobs;
    sf_times times;
    sf_schedule_time(&schedule, &costs, &arena, &jobs, &times);
    int64_t found = times.makespan - m * (of.f + of.b + of.w);
    if (found != bubble)
        fail_msg("%s, %u groups, %u turns, %" PRId64 " %" PRId64 " %" PRId64 ": %" PRId64
                 ", not %" PRId64,
                 name, p, m, of.f, of.b, of.w, found, bubble);
    sf_arena_free(&arena);
}

static void test_bubbles_are_those_of_the_closed_forms(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(groups); i++)
        for (size_t k = 0; k < COUNT(turns); k++)
            for (size_t e = 0; e < COUNT(evens); e++) {
                uint32_t p = groups[i], m = turns[k];
                even of = evens[e];
                int64_t bubble = (p - 1) * (of.f + of.b + of.w);
                check_bubble("gpipe", p, m, of, bubble);
                check_bubble("1f1b", p, m, of, bubble);
                if (m % p == 0) {
                    check_bubble("interleaved:2", p, m, of, bubble / 2);
                    check_bubble("interleaved:3", p, m, of, bubble / 3);
                    check_bubble("interleaved:4", p, m, of, bubble / 4);
                }
            }
}

/* What each group holds at most, in activations of one stage of a group. */
static void check_peaks(const char *name, uint32_t p, uint32_t m,
                        int64_t (*expected)(uint32_t, uint32_t, uint32_t))
{
    sf_arena arena = {0};
    sf_schedule schedule = make(name, p, m, &arena);
    sf_pipe_costs costs = even_costs(&schedule.pipe, evens[0], schedule.pipe.nstages / p, &arena);
    sf_pipe_jobs jobs;
    sf_times times;
    sf_schedule_time(&schedule, &costs, &arena, &jobs, &times);
    for (uint32_t g = 0; g < p; g++)
        assert_int_equal(times.peaks[g], expected(p, m, g));
    sf_arena_free(&arena);
}

static int64_t all_turns(uint32_t p, uint32_t m, uint32_t g)
{
    (void)p;
    (void)g;
    return m;
}

static int64_t turns_ahead(uint32_t p, uint32_t m, uint32_t g)
{
    return m < p - g ? m : p - g;
}

static int64_t chunks_ahead(uint32_t p, uint32_t m, uint32_t g)
{
    int64_t ahead = 2 * (p - 1 - g) + p + 1, all = 2 * m;
    return ahead < all ? ahead : all;
}

static void test_activations_in_flight_are_those_of_the_closed_forms(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(groups); i++)
        for (size_t k = 0; k < COUNT(turns); k++) {
            uint32_t p = groups[i], m = turns[k];
            check_peaks("gpipe", p, m, all_turns);
            check_peaks("1f1b", p, m, turns_ahead);
            if (m % p == 0)
                check_peaks("interleaved:2", p, m, chunks_ahead);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bubbles_are_those_of_the_closed_forms),
        cmocka_unit_test(test_activations_in_flight_are_those_of_the_closed_forms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
