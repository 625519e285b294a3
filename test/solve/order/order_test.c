/* Queues of jobs: what they take is what repeated relaxation says; branch and bound finds what trying everything finds; and the
 * search is near it. */
#include "solve/order/order.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "solve/order/list_schedule.h"
#include "solve/order/modulo_schedule.h"
#include "solve/order/order_exact.h"
#include "solve/order/order_search.h"
#include "solve/order/ports.h"
#include "solve/search/dice.h"

/* Problems */

typedef struct shape {
    uint32_t njobs, nmachines;
    uint32_t shared;  /* of 100 jobs, on several machines */
    uint32_t density; /* of 100 pairs, with a wait */
    bool limited;
} shape;

static int64_t draw(sf_dice *dice, int64_t low, int64_t high)
{
    return low + sf_dice_below(dice, (uint32_t)(high - low + 1));
}

/* Jobs in pairs, the first of which takes memory that the second gives back, within what one pair at a time needs or more. */
static sf_jobs draw_jobs(const shape *of, sf_dice *dice, sf_arena *arena)
{
    sf_job *jobs = SF_ARRAY(arena, of->njobs, sf_job);
    sf_wait *waits = SF_ARRAY(arena, of->njobs * of->njobs, sf_wait);
    int64_t *limits = SF_ARRAY(arena, of->nmachines, int64_t);
    uint32_t nwaits = 0;
    for (uint32_t j = 0; j < of->njobs; j++) {
        uint64_t all = (UINT64_C(1) << of->nmachines) - 1;
        uint64_t one = UINT64_C(1) << sf_dice_below(dice, of->nmachines);
        bool shared = sf_dice_below(dice, 100) < of->shared;
        jobs[j] = (sf_job){.time = draw(dice, 0, 9),
                           .microbatch = j / 2,
                           .machines = shared ? 1 + sf_dice_below(dice, (uint32_t)all) : one};
        bool closes = j % 2 == 1;
        if (closes) {
            jobs[j].machines = jobs[j - 1].machines;
            jobs[j].at_end = -jobs[j - 1].at_start;
        } else if (j + 1 < of->njobs) {
            jobs[j].at_start = draw(dice, 0, 4);
        }
        for (uint32_t before = 0; before < j; before++)
            if ((closes && before + 1 == j) || sf_dice_below(dice, 100) < of->density)
                waits[nwaits++] = (sf_wait){before, j, draw(dice, 0, 3)};
    }
    for (uint32_t m = 0; m < of->nmachines; m++)
        limits[m] = draw(dice, 3, 9);
    sf_jobs out = {of->njobs, of->nmachines, nwaits, jobs, waits, of->limited ? limits : NULL,
                   NULL,      NULL,          NULL,   NULL};
    sf_jobs_index(&out, arena);
    return out;
}

/* Judges */

/* When the last job ends, by making starts later until nothing changes; -1 where that never ends, or memory is over. */
static int64_t judge(const sf_jobs *jobs, const sf_queues *queues)
{
    int64_t start[32] = {0}, last = 0;
    uint32_t rounds = 0;
    for (bool changed = true; changed; rounds++) {
        changed = false;
        if (rounds > jobs->njobs + 1)
            return -1;
        for (uint32_t w = 0; w < jobs->nwaits; w++) {
            const sf_wait *it = &jobs->waits[w];
            int64_t from = start[it->before] + jobs->jobs[it->before].time + it->delay;
            changed |= from > start[it->after];
            start[it->after] = from > start[it->after] ? from : start[it->after];
        }
        for (uint32_t m = 0; m < jobs->nmachines; m++)
            for (uint32_t i = 1; i < queues->counts[m]; i++) {
                uint32_t a = queues->jobs[m][i - 1], b = queues->jobs[m][i];
                int64_t from = start[a] + jobs->jobs[a].time;
                changed |= from > start[b];
                start[b] = from > start[b] ? from : start[b];
            }
    }
    for (uint32_t m = 0; m < jobs->nmachines; m++) {
        int64_t used = 0;
        for (uint32_t i = 0; i < queues->counts[m]; i++) {
            const sf_job *job = &jobs->jobs[queues->jobs[m][i]];
            used += job->at_start;
            if (jobs->limits && used > jobs->limits[m])
                return -1;
            used += job->at_end;
        }
    }
    for (uint32_t j = 0; j < jobs->njobs; j++)
        last = start[j] + jobs->jobs[j].time > last ? start[j] + jobs->jobs[j].time : last;
    return last;
}

/* A circle without times is one as well, which relaxation does not see. */
static bool keeps_order(const sf_jobs *jobs, const sf_queues *queues)
{
    bool done[32] = {0};
    uint32_t heads[SF_MOST_MACHINES] = {0}, count = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t j = 0; j < jobs->njobs; j++) {
            bool can = !done[j];
            for (uint32_t w = 0; w < jobs->nwaits && can; w++)
                can = jobs->waits[w].after != j || done[jobs->waits[w].before];
            for (uint32_t m = 0; m < jobs->nmachines && can; m++)
                can = !(jobs->jobs[j].machines >> m & 1) || queues->jobs[m][heads[m]] == j;
            if (!can)
                continue;
            done[j] = moved = true;
            count++;
            for (uint32_t m = 0; m < jobs->nmachines; m++)
                heads[m] += jobs->jobs[j].machines >> m & 1;
        }
    }
    return count == jobs->njobs;
}

/* The least over all orders of all queues, from machine `m` and its place `at` on; -1: nothing fits. */
static int64_t try_all(const sf_jobs *jobs, sf_queues *queues, uint32_t m, uint32_t at)
{
    if (m == jobs->nmachines)
        return keeps_order(jobs, queues) ? judge(jobs, queues) : -1;
    if (at >= queues->counts[m])
        return try_all(jobs, queues, m + 1, 0);
    int64_t best = -1;
    uint32_t *jobs_here = queues->jobs[m];
    for (uint32_t i = at; i < queues->counts[m]; i++) {
        uint32_t kept = jobs_here[at];
        jobs_here[at] = jobs_here[i];
        jobs_here[i] = kept;
        int64_t found = try_all(jobs, queues, m, at + 1);
        best = found >= 0 && (best < 0 || found < best) ? found : best;
        jobs_here[i] = jobs_here[at];
        jobs_here[at] = kept;
    }
    return best;
}

static sf_queues any_queues(const sf_jobs *jobs, sf_dice *dice, sf_arena *arena)
{
    sf_queues queues = sf_queues_new(jobs, arena);
    for (uint32_t j = 0; j < jobs->njobs; j++)
        sf_queues_add(jobs, &queues, j);
    for (uint32_t m = 0; m < jobs->nmachines && dice; m++)
        for (uint32_t i = queues.counts[m]; i > 1; i--) {
            uint32_t other = sf_dice_below(dice, i), kept = queues.jobs[m][i - 1];
            queues.jobs[m][i - 1] = queues.jobs[m][other];
            queues.jobs[m][other] = kept;
        }
    return queues;
}

/* Tests */

static const shape shapes[] = {
    {4, 1, 0, 10, false}, {5, 2, 0, 20, false}, {6, 2, 0, 10, true},   {6, 2, 30, 20, false},
    {6, 3, 30, 10, true}, {8, 3, 0, 10, false}, {8, 3, 20, 15, true},  {7, 4, 50, 5, false},
    {8, 4, 30, 10, true}, {7, 2, 0, 0, true},   {8, 2, 100, 0, false}, {8, 2, 0, 30, true},
};
#define COUNT(array) (sizeof(array) / sizeof *(array))

static void test_times_are_those_of_relaxation(void **state)
{
    (void)state;
    sf_dice dice = {3};
    uint32_t stuck = 0, ended = 0;
    for (uint32_t i = 0; i < 4000; i++) {
        sf_arena arena = {0};
        shape of = shapes[i % COUNT(shapes)];
        of.limited = false;
        sf_jobs jobs = draw_jobs(&of, &dice, &arena);
        sf_queues queues = any_queues(&jobs, i % 3 ? &dice : NULL, &arena);
        sf_times times;
        sf_queues_time(&jobs, &queues, &arena, &times);
        assert_int_equal(times.nstuck == 0, keeps_order(&jobs, &queues));
        if (times.nstuck == 0)
            assert_int_equal(times.makespan, judge(&jobs, &queues));
        *(times.nstuck ? &stuck : &ended) += 1;
        sf_arena_free(&arena);
    }
    assert_true(stuck > 500 && ended > 500);
}

/* Each waits for the next, the last one for the first. */
/* Messages of a port one after the other never take less than all at once, and no longer than if nothing else happened
 * meanwhile; where they take no time, nothing changes. */
static void test_ports_take_longer(void **state)
{
    (void)state;
    sf_dice dice = {17};
    uint32_t longer = 0;
    for (uint32_t i = 0; i < 3000; i++) {
        sf_arena arena = {0};
        sf_times at_once;
        sf_jobs jobs = draw_jobs(&shapes[i % COUNT(shapes)], &dice, &arena);
        sf_wait *waits = SF_ARRAY(&arena, jobs.nwaits + 1, sf_wait);
        jobs.limits = NULL;
        sf_queues queues = any_queues(&jobs, NULL, &arena);
        sf_queues_time(&jobs, &queues, &arena, &at_once);
        int64_t most = 0, takes = sf_queues_time_with_ports(&jobs, &queues, &arena);
        for (uint32_t j = 0; j < jobs.njobs; j++)
            most += jobs.jobs[j].time;
        for (uint32_t w = 0; w < jobs.nwaits; w++) {
            most += jobs.waits[w].delay;
            waits[w] = (sf_wait){jobs.waits[w].before, jobs.waits[w].after, 0};
        }
        assert_true(takes >= at_once.makespan && takes <= most);
        longer += takes > at_once.makespan;
        jobs.waits = waits;
        sf_queues_time(&jobs, &queues, &arena, &at_once);
        assert_int_equal(sf_queues_time_with_ports(&jobs, &queues, &arena), at_once.makespan);
        sf_arena_free(&arena);
    }
    assert_true(longer > 300);
}

/* Four jobs of 1, each of which sends the other machine something that takes 3: it comes at 4, 7, 10 and 13. */
static void test_a_port_sends_one_thing_at_a_time(void **state)
{
    (void)state;
    enum { MESSAGES = 4 };
    sf_arena arena = {0};
    sf_job all[2 * MESSAGES];
    sf_wait waits[MESSAGES];
    for (uint32_t j = 0; j < MESSAGES; j++) {
        all[j] = (sf_job){.time = 1, .machines = 1};
        all[MESSAGES + j] = (sf_job){.time = 1, .machines = 2};
        waits[j] = (sf_wait){j, MESSAGES + j, 3};
    }
    sf_jobs jobs = {
        .njobs = 2 * MESSAGES, .nmachines = 2, .nwaits = MESSAGES, .jobs = all, .waits = waits};
    sf_jobs_index(&jobs, &arena);
    sf_queues queues = sf_queues_new(&jobs, &arena);
    for (uint32_t j = 0; j < jobs.njobs; j++)
        sf_queues_add(&jobs, &queues, j);
    sf_times at_once;
    sf_queues_time(&jobs, &queues, &arena, &at_once);
    assert_int_equal(at_once.makespan, 8);
    assert_int_equal(sf_queues_time_with_ports(&jobs, &queues, &arena), 14);
    sf_arena_free(&arena);
}

static void test_circles_are_circles(void **state)
{
    (void)state;
    sf_dice dice = {5};
    for (uint32_t i = 0; i < 2000; i++) {
        sf_arena arena = {0};
        sf_jobs jobs = draw_jobs(&shapes[i % COUNT(shapes)], &dice, &arena);
        sf_queues queues = any_queues(&jobs, &dice, &arena);
        sf_times times;
        sf_queues_time(&jobs, &queues, &arena, &times);
        for (uint32_t k = 0; k < times.nstuck; k++) {
            sf_stuck it = times.stuck[k];
            uint32_t next = times.stuck[(k + 1) % times.nstuck].job;
            bool good = false;
            for (uint32_t w = 0; w < jobs.nwaits && it.machine == SF_BY_WAIT; w++)
                good |= jobs.waits[w].after == it.job && jobs.waits[w].before == next;
            if (it.machine != SF_BY_WAIT) {
                uint32_t at = 0;
                while (queues.jobs[it.machine][at] != next)
                    at++;
                while (at < queues.counts[it.machine] && queues.jobs[it.machine][at] != it.job)
                    at++;
                good = at < queues.counts[it.machine];
            }
            assert_true(good);
        }
        sf_arena_free(&arena);
    }
}

static void test_branch_and_bound_finds_what_trying_everything_finds(void **state)
{
    (void)state;
    sf_dice dice = {7};
    uint32_t none = 0;
    for (uint32_t i = 0; i < 400; i++) {
        sf_arena arena = {0};
        sf_jobs jobs = draw_jobs(&shapes[i % COUNT(shapes)], &dice, &arena);
        sf_queues all = any_queues(&jobs, NULL, &arena);
        double ways = 1;
        for (uint32_t m = 0; m < jobs.nmachines; m++)
            for (uint32_t k = 2; k <= all.counts[m]; k++)
                ways *= k;
        if (ways < 1e5) {
            int64_t best = try_all(&jobs, &all, 0, 0);
            sf_exact exact;
            sf_exact_schedule(&jobs, INT64_MAX, 1000000, &arena, &exact);
            assert_true(exact.proven);
            assert_int_equal(exact.found, best >= 0);
            if (best >= 0) {
                assert_int_equal(exact.makespan, best);
                assert_int_equal(judge(&jobs, &exact.queues), best);
                assert_true(sf_jobs_bound(&jobs, &arena) <= best);
                sf_exact none_better;
                sf_exact_schedule(&jobs, best, 1000000, &arena, &none_better);
                assert_true(none_better.proven && !none_better.found);
            }
            none += best < 0;
        }
        sf_arena_free(&arena);
    }
    assert_true(none > 0);
}

/* Turns of the same kinds, as pipelines are: chains over the machines and back. */
typedef struct pipe {
    const char *name;
    uint32_t p, m;
    int64_t f[4], b[4];
    int64_t
        shared; /* not 0: before and behind the chain something of this length on all machines, forward and backward */
    int64_t limit; /* activations; 0: none */
} pipe;

static sf_jobs pipe_jobs(const pipe *of, uint32_t *nkinds, sf_arena *arena)
{
    uint32_t n = of->p + (of->shared ? 2 : 0), njobs = 2 * n * of->m, nwaits = 0;
    sf_job *jobs = SF_ARRAY(arena, njobs, sf_job);
    sf_wait *waits = SF_ARRAY(arena, 4 * (size_t)njobs, sf_wait);
    int64_t *limits = SF_ARRAY(arena, of->p, int64_t);
    for (uint32_t i = 0; i < of->m; i++)
        for (uint32_t k = 0; k < 2 * n; k++) {
            uint32_t stage = k < n ? k : 2 * n - 1 - k, job = i * 2 * n + k;
            bool shared = of->shared && (stage == 0 || stage == n - 1), back = k >= n;
            uint32_t machine = of->shared ? stage - 1 : stage;
            jobs[job] =
                (sf_job){.microbatch = i,
                         .time = shared ? of->shared : (back ? of->b : of->f)[machine % 4],
                         .machines = shared ? (UINT64_C(1) << of->p) - 1 : UINT64_C(1) << machine,
                         .at_start = !back && !shared,
                         .at_end = -(back && !shared)};
            if (k > 0)
                waits[nwaits++] = (sf_wait){job - 1, job, 0};
            if (i > 0)
                waits[nwaits++] = (sf_wait){job - 2 * n, job, 0};
        }
    for (uint32_t m = 0; m < of->p; m++)
        limits[m] = of->limit;
    *nkinds = 2 * n;
    sf_jobs out = {njobs, of->p, nwaits, jobs, waits, of->limit ? limits : NULL,
                   NULL,  NULL,  NULL,   NULL};
    sf_jobs_index(&out, arena);
    return out;
}

static const pipe pipes[] = {
    {"even", 2, 4, {1, 1}, {2, 2}, 0, 0},
    {"even, limited", 2, 4, {1, 1}, {2, 2}, 0, 2},
    {"even, little memory", 2, 4, {1, 1}, {2, 2}, 0, 1},
    {"heavy end", 2, 5, {1, 3}, {2, 6}, 0, 2},
    {"heavy begin", 2, 5, {3, 1}, {6, 2}, 0, 2},
    {"three", 3, 4, {1, 1, 1}, {2, 2, 2}, 0, 3},
    {"three, two in flight", 3, 4, {1, 1, 1}, {2, 2, 2}, 0, 2},
    {"three, uneven", 3, 4, {2, 3, 1}, {5, 4, 3}, 0, 3},
    {"three, uneven, two in flight", 3, 4, {2, 3, 1}, {5, 4, 3}, 0, 2},
    {"four", 4, 4, {1, 1, 1, 1}, {2, 2, 2, 2}, 0, 4},
    {"four, uneven", 4, 4, {2, 1, 1, 3}, {3, 2, 2, 5}, 0, 3},
    {"shared", 2, 3, {2, 2}, {4, 4}, 1, 0},
    {"shared, uneven", 2, 3, {2, 3}, {5, 4}, 2, 2},
};

/* On these, lists and repetition, with a few dozen nodes of branch and bound, take at most a tenth more than the best; the search
 * as it is by default finds that. */
static void test_the_search_is_near_the_best(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(pipes); i++) {
        sf_arena arena = {0};
        uint32_t nkinds;
        sf_jobs jobs = pipe_jobs(&pipes[i], &nkinds, &arena);
        sf_order_options small = {.nkinds = nkinds, .work = 4000}, usual = {.nkinds = nkinds};
        sf_order_result quick, found;
        sf_order_search(&jobs, &small, &arena, &quick);
        sf_order_search(&jobs, &usual, &arena, &found);
        sf_exact exact;
        sf_exact_schedule(&jobs, INT64_MAX, 3000000, &arena, &exact);
        print_message("  %-30s %2u jobs: best %3" PRId64 "%s, quickly %3" PRId64
                      ", search %3" PRId64 ", bound %3" PRId64 "\n",
                      pipes[i].name, jobs.njobs, exact.makespan, exact.proven ? "" : "?",
                      quick.times.makespan, found.times.makespan, found.bound);
        assert_true(exact.found && exact.proven);
        assert_true(quick.found && quick.times.fits && found.found && found.times.fits);
        assert_true(quick.times.makespan * 10 <= exact.makespan * 11);
        assert_true(found.bound <= exact.makespan);
        assert_int_equal(found.times.makespan, exact.makespan);
        sf_arena_free(&arena);
    }
}

/* No search gives what keeps to no limit or goes in circles, nor anything worse than what was known. */
static void test_the_search_keeps_its_promises(void **state)
{
    (void)state;
    sf_dice dice = {11};
    for (uint32_t i = 0; i < 600; i++) {
        sf_arena arena = {0};
        sf_jobs jobs = draw_jobs(&shapes[i % COUNT(shapes)], &dice, &arena);
        sf_exact exact;
        sf_exact_schedule(&jobs, INT64_MAX, 1000000, &arena, &exact);
        sf_order_result found;
        sf_order_options options = {.known = exact.found ? &exact.queues : NULL,
                                    .work = i % 2 ? 1 : 0};
        sf_order_search(&jobs, &options, &arena, &found);
        if (exact.found) {
            assert_true(found.found && found.times.fits);
            assert_int_equal(found.times.makespan, exact.makespan);
            assert_int_equal(judge(&jobs, &found.queues), exact.makespan);
        } else {
            assert_false(found.found && found.times.fits);
        }
        sf_arena_free(&arena);
    }
}

static void test_waits_in_a_circle_have_no_order(void **state)
{
    (void)state;
    static const sf_job two[] = {{.time = 1, .machines = 1}, {.time = 1, .machines = 2}};
    static const sf_wait waits[] = {{0, 1, 0}, {1, 0, 0}};
    sf_arena arena = {0};
    sf_jobs jobs = {.njobs = 2, .nmachines = 2, .nwaits = 2, .jobs = two, .waits = waits};
    sf_jobs_index(&jobs, &arena);
    sf_order_result found;
    sf_order_search(&jobs, &(sf_order_options){0}, &arena, &found);
    assert_false(found.found);
    sf_arena_free(&arena);
}

/* The middle that repeats is as short as the busiest machine lets it be: long pipelines take no longer than their ends. */
static void test_the_middle_has_no_gaps(void **state)
{
    (void)state;
    static const pipe longs[] = {
        {"even", 4, 64, {1, 1, 1, 1}, {2, 2, 2, 2}, 0, 4},
        {"uneven", 4, 64, {2, 1, 3, 2}, {5, 2, 6, 3}, 0, 6},
        {"shared", 4, 64, {2, 2, 2, 2}, {4, 4, 4, 4}, 1, 8},
        {"shared, two machines", 2, 64, {3, 3}, {5, 5}, 2, 6},
    };
    for (size_t i = 0; i < COUNT(longs); i++) {
        sf_arena arena = {0};
        uint32_t nkinds;
        sf_jobs jobs = pipe_jobs(&longs[i], &nkinds, &arena);
        int64_t load = 0, microbatch = 0;
        for (uint32_t m = 0; m < jobs.nmachines; m++) {
            int64_t sum = 0;
            for (uint32_t k = 0; k < nkinds; k++)
                sum += jobs.jobs[k].machines >> m & 1 ? jobs.jobs[k].time : 0;
            load = sum > load ? sum : load;
        }
        for (uint32_t k = 0; k < nkinds; k++)
            microbatch += jobs.jobs[k].time;
        sf_repeat way;
        assert_int_equal(sf_repeat_find(&jobs, nkinds, 200, 1, &arena, &way), 1);
        assert_int_equal(way.period, load);
        sf_order_result found;
        sf_order_search(&jobs, &(sf_order_options){.nkinds = nkinds}, &arena, &found);
        assert_true(found.found && found.times.fits);
        assert_true(found.times.makespan <= 63 * load + 2 * microbatch);
        sf_arena_free(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_times_are_those_of_relaxation),
        cmocka_unit_test(test_ports_take_longer),
        cmocka_unit_test(test_a_port_sends_one_thing_at_a_time),
        cmocka_unit_test(test_circles_are_circles),
        cmocka_unit_test(test_branch_and_bound_finds_what_trying_everything_finds),
        cmocka_unit_test(test_the_search_is_near_the_best),
        cmocka_unit_test(test_the_search_keeps_its_promises),
        cmocka_unit_test(test_waits_in_a_circle_have_no_order),
        cmocka_unit_test(test_the_middle_has_no_gaps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
