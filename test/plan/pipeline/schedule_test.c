/* Schedules: those with names take what their closed forms say, in time and in memory; text goes there and back; and any
 * change to a schedule is refused or runs to its end. */
#include "plan/pipeline/schedules.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "solve/search/dice.h"

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
    uint32_t nstages = sf_schedule_stages(kind, p) + (kind.name == SF_SCHEDULE_INTERLACED ? 2 : 0);
    bool *has_backward = SF_ARRAY(arena, nstages, bool);
    for (uint32_t s = kind.name == SF_SCHEDULE_3F1B ? nstages - p : 0; s < nstages; s++)
        has_backward[s] = true;
    return (sf_pipe){.nstages = nstages,
                     .nmicrobatches = m,
                     .ngroups = p,
                     .has_backward = has_backward,
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
        fail_msg("%s on %u pipeline ranks in %u turns: %s", name, p, m, sf_diag_text(diag, 0));
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
static const uint32_t microbatches[] = {1, 2, 3, 4, 5, 8, 13, 16, 32};
static const even evens[] = {
    {240, 240, 240}, {240, 480, 240}, {480, 240, 240}, {720, 480, 240}, {240, 480, 480}};
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
        fail_msg("%s, %u pipeline ranks, %u turns, %" PRId64 " %" PRId64 " %" PRId64 ": %" PRId64
                 ", not %" PRId64,
                 name, p, m, of.f, of.b, of.w, found, bubble);
    sf_arena_free(&arena);
}

static void test_bubbles_are_those_of_the_closed_forms(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(groups); i++)
        for (size_t k = 0; k < COUNT(microbatches); k++)
            for (size_t e = 0; e < COUNT(evens); e++) {
                uint32_t p = groups[i], m = microbatches[k];
                even of = evens[e];
                int64_t bubble = (p - 1) * (of.f + of.b + of.w);
                check_bubble("gpipe", p, m, of, bubble);
                check_bubble("1f1b", p, m, of, bubble);
                if (m >= p) /* F + B - W, but nothing helps where W is longer than F */
                    check_bubble("zb-h1", p, m, of,
                                 (p - 1) * (of.w <= of.f ? of.f + of.b - of.w : of.b));
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
        for (size_t k = 0; k < COUNT(microbatches); k++) {
            uint32_t p = groups[i], m = microbatches[k];
            check_peaks("gpipe", p, m, all_turns);
            check_peaks("1f1b", p, m, turns_ahead);
            if (m % p == 0)
                check_peaks("interleaved:2", p, m, chunks_ahead);
        }
}

/* Each group from the start of its first task to the end of its last one: how long it is idle, at most. */
static int64_t most_idle(const sf_schedule *schedule, const sf_pipe_jobs *jobs,
                         const sf_times *times)
{
    int64_t most = 0;
    for (uint32_t g = 0; g < schedule->pipe.ngroups; g++) {
        int64_t unused = 0;
        for (uint32_t i = 1; i < schedule->ntasks[g]; i++)
            unused += times->start[sf_job_of(jobs, schedule->tasks[g][i])] -
                      times->end[sf_job_of(jobs, schedule->tasks[g][i - 1])];
        most = unused > most ? unused : most;
    }
    return most;
}

static void test_no_group_of_zb_v_is_idle_between_its_tasks(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(groups); i++)
        for (uint32_t m = 2 * groups[i]; m < 40; m += 7) {
            sf_arena arena = {0};
            sf_schedule schedule = make("zb-v", groups[i], m, &arena);
            sf_pipe_costs costs = even_costs(&schedule.pipe, evens[0], 2, &arena);
            sf_pipe_jobs jobs;
            sf_times times;
            sf_schedule_time(&schedule, &costs, &arena, &jobs, &times);
            assert_int_equal(most_idle(&schedule, &jobs, &times), 0);
            for (uint32_t g = 0; g < groups[i]; g++)
                assert_true(times.peaks[g] <= 2 * groups[i]);
            sf_arena_free(&arena);
        }
}

/* Schedules that are found: what they take of F = 1, B = 2 (a shared stage half of that), and hold, at most. */
typedef struct found {
    const char *name;
    uint32_t p, m;
    int64_t bubble, peak;
} found;

static void test_schedules_that_are_found_are_as_good_as_they_should_be(void **state)
{
    (void)state;
    static const found table[] = {
        {"chimera", 2, 4, 0, 2},    {"chimera", 4, 4, 4, 4},     {"chimera", 4, 8, 4, 4},
        {"chimera", 8, 8, 12, 8},   {"chimera", 8, 16, 12, 8},   {"dualpipe", 2, 4, 0, 3},
        {"dualpipe", 4, 8, 1, 5},   {"dualpipe", 8, 16, 3, 9},   {"dualpipe", 8, 20, 4, 9},
        {"3f1b", 2, 4, 3, 2},       {"3f1b", 4, 8, 9, 4},        {"3f1b", 4, 13, 9, 4},
        {"3f1b:1", 4, 8, 9, 4},     {"3f1b:2", 4, 8, 9, 4},      {"3f1b:4", 4, 8, 9, 4},
        {"3f1b:6", 3, 9, 6, 3},     {"3f1b", 8, 16, 21, 8},      {"interlaced", 2, 7, 3, 4},
        {"interlaced", 4, 8, 9, 8}, {"interlaced", 4, 16, 9, 8}, {"interlaced", 8, 16, 21, 16},
    };
    for (size_t i = 0; i < COUNT(table); i++) {
        const found *it = &table[i];
        sf_arena arena = {0};
        sf_schedule schedule = make(it->name, it->p, it->m, &arena);
        sf_pipe_costs costs = even_costs(&schedule.pipe, (even){2, 2, 2}, 1, &arena);
        int64_t load = 0, *time = (int64_t *)costs.time, *held = (int64_t *)costs.held;
        for (uint32_t s = 0; s < schedule.pipe.nstages; s++) {
            bool shared = __builtin_popcountll(sf_pipe_hosts(&schedule.pipe, s, 0)) > 1;
            held[s] = schedule.pipe.has_backward[s] && !shared;
            for (int pass = 0; pass < SF_PASSES; pass++) {
                time[s * SF_PASSES + (uint32_t)pass] /= shared ? 2 : 1;
                if (sf_pipe_has(&schedule.pipe, s, (sf_pass)pass))
                    load += time[s * SF_PASSES + (uint32_t)pass] * (shared ? it->p : 1);
            }
        }
        sf_pipe_jobs jobs;
        sf_times times;
        sf_schedule_time(&schedule, &costs, &arena, &jobs, &times);
        int64_t bubble = times.makespan - load * it->m / it->p;
        if (bubble > 2 * it->bubble)
            fail_msg("%s, %u pipeline ranks, %u turns: %" PRId64 "/2, not %" PRId64, it->name,
                     it->p, it->m, bubble, it->bubble);
        for (uint32_t g = 0; g < it->p; g++)
            if (times.peaks[g] > it->peak)
                fail_msg("%s, %u pipeline ranks, %u turns: %" PRId64 " in flight, not %" PRId64,
                         it->name, it->p, it->m, times.peaks[g], it->peak);
        sf_arena_free(&arena);
    }
}

/* Names */

static const char *const names[] = {
    "gpipe",    "1f1b", "interleaved:2", "interleaved:3", "zb-h1",    "zb-v",    "chimera",
    "dualpipe", "3f1b", "3f1b:2",        "interlaced",    "search:1", "search:2"};

static void test_names_are_read_and_written(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(names); i++) {
        sf_schedule_kind kind = kind_of(names[i]);
        const char *count = strchr(names[i], ':');
        assert_true(!count || kind.chunks == (uint32_t)atoi(count + 1));
        assert_ptr_equal(sf_schedule_find_info(names[i]), sf_schedule_get(kind_of(names[i]).name));
    }
    assert_int_equal(kind_of("interleaved").chunks, 2);
    assert_int_equal(kind_of("3f1b").chunks, 3);
    static const struct {
        const char *text, *message;
    } wrong[] = {
        {"", "there is no schedule \"\"; there are gpipe, 1f1b, interleaved[:CHUNKS], zb-h1, zb-v, "
             "chimera, dualpipe, 3f1b[:PASSES], interlaced, search[:CHUNKS]"},
        {"1f1", "did you mean 1f1b?"},
        {"GPipe", "did you mean gpipe?"},
        {"zb-h2", "did you mean zb-h1?"},
        {"1f1b:2", "the schedule 1f1b takes no number"},
        {"interleaved:", "between 2 and 1024"},
        {"interleaved:1", "between 2 and 1024"},
        {"interleaved:99999999999999999999", "between 2 and 1024"},
        {"interleaved:2x", "between 2 and 1024"},
        {"interleavedx", "there is no schedule \"interleavedx\""},
    };
    for (size_t i = 0; i < COUNT(wrong); i++) {
        sf_diag *diag = sf_diag_new();
        sf_schedule_kind kind;
        assert_int_equal(sf_schedule_parse(wrong[i].text, &kind, diag), SF_EUSAGE);
        if (!strstr(sf_diag_text(diag, 0), wrong[i].message))
            fail_msg("%s: %s", wrong[i].text, sf_diag_text(diag, 0));
        sf_diag_free(diag);
    }
}

static void test_numbers_that_do_not_suit_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint32_t p, m, more; /* stages */
        const char *message;
    } wrong[] = {
        {"interleaved:2", 4, 6, 0, "6 micro-batches are not a multiple of 4"},
        {"interleaved:2", 4, 2, 0, "take 4 micro-batches, or the schedule 1f1b"},
        {"1f1b", 4, 4, 1, "1f1b on 4 pipeline ranks has 4 stages, not 5"},
        {"1f1b", 0, 4, 1, "1 to 64 pipeline ranks"},
        {"1f1b", 65, 4, 0, "1 to 64 pipeline ranks"},
        {"1f1b", 4, 0, 0, "at least one micro-batch"},
        {"1f1b", 64, 100000, 0, "more than 1048576 tasks"},
        {"chimera", 4, 1, 0, "at least two micro-batches"},
        {"interlaced", 4, 4, 1, "has 4 stages besides those that all share, not 5"},
    };
    for (size_t i = 0; i < COUNT(wrong); i++) {
        sf_arena arena = {0};
        sf_diag *diag = sf_diag_new();
        sf_schedule_kind kind = kind_of(wrong[i].name);
        sf_pipe pipe = pipe_of(kind, wrong[i].p, wrong[i].m, &arena);
        sf_schedule schedule;
        pipe.nstages += wrong[i].more;
        assert_int_equal(sf_schedule_make(kind, &pipe, NULL, &arena, &schedule, diag), SF_EUSAGE);
        if (!strstr(sf_diag_text(diag, 0), wrong[i].message))
            fail_msg("%s", sf_diag_text(diag, 0));
        sf_diag_free(diag);
        sf_arena_free(&arena);
    }
}

/* Skips over stages, as of a U-Net; stages without a backward pass; a chain of their own beside the others. */
static void test_stages_need_be_no_chain(void **state)
{
    (void)state;
    static const sf_stage_edge edges[] = {{0, 1}, {1, 2}, {2, 3}, {0, 3}, {1, 2}, {0, 2}};
    static const bool has_backward[] = {false, true, true, true};
    static const bool shared[6] = {[2] = true, [4] = true};
    for (size_t i = 0; i < COUNT(names); i++) {
        sf_schedule_kind kind = kind_of(names[i]);
        sf_arena arena = {0};
        sf_diag *diag = sf_diag_new();
        uint32_t p = sf_schedule_stages(kind, 1) > 2 ? 1 : sf_schedule_stages(kind, 1) == 2 ? 2 : 4;
        bool interlaced = kind.name == SF_SCHEDULE_INTERLACED;
        sf_pipe pipe = {.nstages = sf_schedule_stages(kind, p) + (interlaced ? 2 : 0),
                        .nmicrobatches = 4,
                        .ngroups = p,
                        .nedges = p == 1 ? 2 : 6,
                        .edges = edges,
                        .has_backward =
                            interlaced ? sf_pipe_all_backward(6, &arena) : has_backward};
        sf_schedule schedule;
        if (sf_schedule_make(kind, &pipe, interlaced ? shared : NULL, &arena, &schedule, diag) !=
            SF_OK)
            fail_msg("%s: %s", names[i], sf_diag_text(diag, 0));
        sf_diag_free(diag);
        sf_arena_free(&arena);
    }
}

/* Text */

static bool same_schedule(const sf_schedule *a, const sf_schedule *b)
{
    bool same = a->pipe.nstages == b->pipe.nstages &&
                a->pipe.nmicrobatches == b->pipe.nmicrobatches &&
                a->pipe.ngroups == b->pipe.ngroups && a->pipe.nedges == b->pipe.nedges &&
                a->pipe.splits_weights == b->pipe.splits_weights;
    for (uint32_t e = 0; e < a->pipe.nedges && same; e++)
        same = a->pipe.edges[e].from == b->pipe.edges[e].from &&
               a->pipe.edges[e].to == b->pipe.edges[e].to;
    for (uint32_t i = 0; same && i < a->pipe.nstages * a->pipe.nmicrobatches; i++)
        same = a->pipe.hosts[i] == b->pipe.hosts[i];
    for (uint32_t g = 0; same && g < a->pipe.ngroups; g++) {
        same = a->ntasks[g] == b->ntasks[g];
        for (uint32_t i = 0; same && i < a->ntasks[g]; i++)
            same = a->tasks[g][i].stage == b->tasks[g][i].stage &&
                   a->tasks[g][i].microbatch == b->tasks[g][i].microbatch &&
                   a->tasks[g][i].pass == b->tasks[g][i].pass;
    }
    return same;
}

static void test_text_goes_there_and_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(names); i++)
        for (uint32_t p = 1; p <= 4; p++)
            for (uint32_t m = p; m <= 4 * p; m += p) {
                if (m < 2)
                    continue;
                sf_arena arena = {0};
                sf_diag *diag = sf_diag_new();
                sf_schedule schedule = make(names[i], p, m, &arena), recomputed;
                sf_buf text = {0}, text_again = {0};
                sf_schedule_write(&schedule, &text);
                sf_str view = {text.text, text.length};
                if (sf_schedule_read(view, "x.txt", &arena, &recomputed, diag) != SF_OK)
                    fail_msg("%s\n%s", text.text, sf_diag_text(diag, 0));
                assert_true(same_schedule(&schedule, &recomputed));
                sf_schedule_write(&recomputed, &text_again);
                assert_string_equal(text.text, text_again.text);
                sf_buf_free(&text);
                sf_buf_free(&text_again);
                sf_diag_free(diag);
                sf_arena_free(&arena);
            }
}

static void test_text_that_is_wrong_is_refused_where_it_is(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } wrong[] = {
        {"", "x.txt: error: there are no tasks"},
        {"# nothing\n\n0:\n", "there are no tasks"},
        {"0: F0.0 X0.1", "x.txt:1:9: error: expected a task such as F0.3"},
        {"0: F0.0\n  1: F1,0", "x.txt:2:6: error: expected a task"},
        {"0: F0.0x", "1:4: error: expected a task such as F0.3 (F, B or W, a stage and a "
                     "micro-batch), not \"F0.0x\""},
        {"0: F0.", "1:4: error: expected a task"},
        {"0: F.0", "1:4: error: expected a task"},
        {"0: F99999999999999999999.0", "1:4: error: expected a task"},
        {"0 F0.0", "1:1: error: expected a pipeline rank, \"0:\", or \"edges:\", not \"0\""},
        {"F0.0", "1:1: error: expected a pipeline rank"},
        {"64: F0.0", "1:1: error: pipeline ranks count from 0 to 63"},
        {"0: F0.0\n0: F1.0", "2:1: error: pipeline rank 0 has a list in line 1 already"},
        {"0: F0.0\n2: F1.0", "pipeline rank 1 has no tasks"},
        {"0: F0.0\n1:\n2: F1.0", "x.txt:2:1: error: pipeline rank 1 has no tasks"},
        {"0: F0.0 F1.0\nedges: 0-1", "2:8: error: expected an edge such as 0>1"},
        {"0: F0.0 F1.0\nedges: 0>1\nedges: 0>1", "3:1: error: there are edges in line 2 already"},
        {"0: F0.0 F1.0\nedges: 0>2",
         "x.txt:2:1: error: the edge 0>2 is to or from a stage without tasks"},
        {"0: F0.0 F0.1 F0.0", "1:14: error: F0.0 is at column 4 of this list already"},
        {"0: F0.500000",
         "1 stages in 500001 micro-batches have at least one task each, and there are 1"},
        {"0: F0.0 F1.1 F1.0",
         "2 stages in 2 micro-batches have at least one task each, and there are 3"},
        {"0: F0.0 B0.0 F0.1", "pipeline rank 0 does not run B0.1, which it hosts"},
        {"0: F0.0 F1.0\n1: F0.0 B0.0", "pipeline rank 0 does not run B0.0, which it hosts"},
        {"0: F1.0 F0.0", "F0.0 on pipeline rank 0 comes after F1.0 on pipeline rank 0, which waits "
                         "for F0.0 on pipeline rank 0"},
        {"0: F0.0 F1.0\nedges: 0>1 1>0", "waits for"},
        {"0: F0.0 F1.0\nedges: 0>0", "F0.0 on pipeline rank 0 waits for F0.0 on pipeline rank 0"},
    };
    for (size_t i = 0; i < COUNT(wrong); i++) {
        sf_arena arena = {0};
        sf_diag *diag = sf_diag_new();
        sf_schedule schedule;
        sf_status status =
            sf_schedule_read(sf_str_of(wrong[i].text), "x.txt", &arena, &schedule, diag);
        if (status == SF_OK || !strstr(sf_diag_text(diag, 0), wrong[i].message))
            fail_msg("\"%s\": %s", wrong[i].text,
                     status == SF_OK ? "taken" : sf_diag_text(diag, 0));
        sf_diag_free(diag);
        sf_arena_free(&arena);
    }
}

static void test_a_circle_is_told_with_its_tasks(void **state)
{
    (void)state;
    static const char text[] = "0: F0.0 B0.0 F0.1 B0.1\n1: F1.1 F1.0 B1.0 B1.1\n";
    sf_arena arena = {0};
    sf_diag *diag = sf_diag_new();
    sf_schedule schedule;
    assert_int_equal(sf_schedule_read(sf_str_of(text), "x.txt", &arena, &schedule, diag),
                     SF_EINPUT);
    assert_non_null(strstr(
        sf_diag_text(diag, 0),
        "B0.0 on pipeline rank 0 waits for B1.0 on pipeline rank 1, which comes after F1.1 on "
        "pipeline rank 1, "
        "which waits for F0.1 on pipeline rank 0, which comes after B0.0 on pipeline rank 0"));
    sf_diag_free(diag);
    sf_arena_free(&arena);
}

/* Mutants */

static bool same_task(sf_stage_task a, sf_stage_task b)
{
    return a.stage == b.stage && a.microbatch == b.microbatch && a.pass == b.pass;
}

typedef struct running {
    const sf_schedule *schedule;
    uint32_t at[SF_MOST_GROUPS]; /* how many tasks of each list are done */
} running;

static bool is_done(const running *r, sf_stage_task task)
{
    uint64_t hosts = sf_pipe_hosts(&r->schedule->pipe, task.stage, task.microbatch);
    uint32_t group = (uint32_t)__builtin_ctzll(hosts);
    for (uint32_t i = 0; i < r->at[group]; i++)
        if (same_task(r->schedule->tasks[group][i], task))
            return true;
    return !sf_pipe_has(&r->schedule->pipe, task.stage, task.pass);
}

static bool has_its_data(const running *r, sf_stage_task task)
{
    const sf_pipe *pipe = &r->schedule->pipe;
    bool good = task.pass == SF_PASS_FORWARD ||
                is_done(r, (sf_stage_task){task.stage, task.microbatch, (sf_pass)(task.pass - 1)});
    for (uint32_t e = 0; e < pipe->nedges && good; e++) {
        if (task.pass == SF_PASS_FORWARD && pipe->edges[e].to == task.stage)
            good =
                is_done(r, (sf_stage_task){pipe->edges[e].from, task.microbatch, SF_PASS_FORWARD});
        if (task.pass == SF_PASS_BACKWARD && pipe->edges[e].from == task.stage)
            good =
                is_done(r, (sf_stage_task){pipe->edges[e].to, task.microbatch, SF_PASS_BACKWARD});
    }
    return good;
}

/* Runs the lists as groups would, each its next task when all that host it are at it and its data is there. */
static bool runs_to_its_end(const sf_schedule *schedule)
{
    running r = {.schedule = schedule};
    bool moved = true, ended = true;
    while (moved) {
        moved = false;
        for (uint32_t g = 0; g < schedule->pipe.ngroups; g++) {
            if (r.at[g] == schedule->ntasks[g])
                continue;
            sf_stage_task task = schedule->tasks[g][r.at[g]];
            uint64_t hosts = sf_pipe_hosts(&schedule->pipe, task.stage, task.microbatch);
            bool all = has_its_data(&r, task);
            for (uint64_t rest = hosts; rest && all; rest &= rest - 1) {
                int h = __builtin_ctzll(rest);
                all = r.at[h] < schedule->ntasks[h] && same_task(schedule->tasks[h][r.at[h]], task);
            }
            for (uint64_t rest = hosts; rest && all; rest &= rest - 1)
                r.at[__builtin_ctzll(rest)]++;
            moved |= all;
        }
    }
    for (uint32_t g = 0; g < schedule->pipe.ngroups; g++)
        ended &= r.at[g] == schedule->ntasks[g];
    return ended;
}

/* Lists that can be changed, with room for one task more. */
static void loosen(sf_schedule *schedule, sf_arena *arena)
{
    for (uint32_t g = 0; g < schedule->pipe.ngroups; g++) {
        sf_stage_task *tasks = SF_ARRAY(arena, schedule->ntasks[g] + 1, sf_stage_task);
        memcpy(tasks, schedule->tasks[g], schedule->ntasks[g] * sizeof *tasks);
        schedule->tasks[g] = tasks;
    }
}

static void move_task(sf_stage_task *tasks, uint32_t from, uint32_t to)
{
    sf_stage_task task = tasks[from];
    for (; from < to; from++)
        tasks[from] = tasks[from + 1];
    for (; from > to; from--)
        tasks[from] = tasks[from - 1];
    tasks[to] = task;
}

/* Whether every task is still where it was, but for its place. */
static bool mutate(sf_schedule *schedule, sf_dice *dice)
{
    uint32_t g = sf_dice_below(dice, schedule->pipe.ngroups), n = schedule->ntasks[g];
    sf_stage_task *tasks = schedule->tasks[g];
    uint32_t a = sf_dice_below(dice, n), b = sf_dice_below(dice, n);
    switch (sf_dice_below(dice, 8)) {
    case 0: /* left out */
        move_task(tasks, a, n - 1);
        schedule->ntasks[g]--;
        return false;
    case 1: /* twice */
        tasks[n] = tasks[a];
        schedule->ntasks[g]++;
        return false;
    case 2: /* another in its place */
        tasks[a].stage += 1 + sf_dice_below(dice, 3);
        return false;
    case 3:
        b = a + 1 < n ? a + 1 : a;
        move_task(tasks, a, b);
        return true;
    case 4:
    case 5:
        b = a + b % 4 < n ? a + b % 4 : a;
        move_task(tasks, a, b);
        return true;
    default:
        move_task(tasks, a, b);
        return true;
    }
}

static void test_mutants_are_refused_or_run_to_their_end(void **state)
{
    (void)state;
    sf_dice dice = {17};
    uint32_t taken = 0, stuck = 0, refused = 0;
    for (uint32_t i = 0; i < 1100; i++) {
        sf_arena arena = {0};
        uint32_t p = 2 + sf_dice_below(&dice, 3), m = p * (1 + sf_dice_below(&dice, 2));
        sf_schedule schedule = make(names[i % COUNT(names)], p, m, &arena);
        loosen(&schedule, &arena);
        bool whole = mutate(&schedule, &dice);
        sf_diag *diag = sf_diag_new();
        sf_status status = sf_schedule_check(&schedule, diag);
        assert_int_equal(sf_diag_count(diag), status == SF_OK ? 0 : 1);
        if ((status == SF_OK) != (whole && runs_to_its_end(&schedule)))
            fail_msg("%s, %u pipeline ranks, %u turns: %s", names[i % COUNT(names)], p, m,
                     status == SF_OK ? "taken" : sf_diag_text(diag, 0));
        if (status == SF_OK) {
            sf_pipe_jobs jobs;
            sf_times times;
            sf_schedule_time(&schedule, NULL, &arena, &jobs, &times);
            assert_int_equal(times.nstuck, 0);
        }
        *(status == SF_OK ? &taken : whole ? &stuck : &refused) += 1;
        sf_diag_free(diag);
        sf_arena_free(&arena);
    }
    assert_true(taken > 100 && stuck > 100 && refused > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bubbles_are_those_of_the_closed_forms),
        cmocka_unit_test(test_activations_in_flight_are_those_of_the_closed_forms),
        cmocka_unit_test(test_no_group_of_zb_v_is_idle_between_its_tasks),
        cmocka_unit_test(test_schedules_that_are_found_are_as_good_as_they_should_be),
        cmocka_unit_test(test_names_are_read_and_written),
        cmocka_unit_test(test_numbers_that_do_not_suit_are_refused),
        cmocka_unit_test(test_stages_need_be_no_chain),
        cmocka_unit_test(test_text_goes_there_and_back),
        cmocka_unit_test(test_text_that_is_wrong_is_refused_where_it_is),
        cmocka_unit_test(test_a_circle_is_told_with_its_tasks),
        cmocka_unit_test(test_mutants_are_refused_or_run_to_their_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
