/* Error rates of verification: false alarms over correct splits, and undetected mistakes, of steps
 * that are not continuous (test/data/jump, made by zoo/make) and of some that are.
 *
 * Takes a part of all of it, unless the first argument is --all; a second one is a part of the
 * names of the steps to take. Prints both rates. */
#include "sheaf/sheaf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/verify/compare.h"
#include "api/verify/verify.h"
#include "support/sanitized.h"
#include "support/spoil.h"

static bool all;
static const char *only = "";

/* A step, and its variants. */
static const struct step {
    const char *file;
    const char *
        zero; /* weights whose gradients are zero in mathematics have this in their names; or NULL */
    bool by_sign; /* an update does not depend on the size of a gradient, and no state does */
} steps[] = {
    {"jump/mixtral", "['k']['bias']", false},
    {"jump/lion", "['k']['bias']", false},
    {"jump/mixtral-lion", "['k']['bias']", false},
    {"jump/sign-sgd", "['k']['bias']", true},
    {"jump/adafactor", "['k']['bias']", false},
    {"jump/argmax", NULL, false},
    {"jump/threshold", NULL, false},
    {"jump/batch-norm", "['in']['bias']", false},
    {"jump/dropout", "['k']['bias']", false},
    {"jump/muon", "['k']['bias']", false},
    {"jump/mixtral-bf16", "['k']['bias']", false},
    {"micro/gpt-micro", "['k']['bias']", false}, /* AdamW */
    {"micro/gpt-bf16-micro", "['k']['bias']", false},
    {"micro/moe-micro", "['k']['bias']", false},
};
enum { STEPS = sizeof steps / sizeof *steps };

static const char *const recipes[] = {"dp",       "zero1",  "zero2",    "zero3",
                                      "megatron", "expert", "sequence", "2d"};
enum { RECIPES = sizeof recipes / sizeof *recipes };

static sf_graph *load(const struct step *step)
{
    char path[256];
    sf_graph *graph;
    sf_diag *diag = sf_diag_new();
    snprintf(path, sizeof path, "test/data/%s.stablehlo.mlir.xz", step->file);
    if (sf_load(path, NULL, diag, &graph) != SF_OK)
        fail_msg("%s", sf_diag_text(diag, 0));
    sf_diag_free(diag);
    return graph;
}

/* NULL where the recipe does not apply. */
static sf_plan *pin(const sf_graph *graph, const char *recipe, int ranks)
{
    sf_plan_spec options = {.size = sizeof options, .recipe = recipe, .ranks = ranks};
    sf_plan *plan = NULL;
    return sf_pin_step(graph, &options, NULL, &plan) == SF_OK ? plan : NULL;
}

/* Verifies so many steps, with a mistake or without (NULL). The report is for sf_verify_free. */
static sf_verify_report *verify(const sf_graph *graph, const sf_plan *plan, test_spoil *spoil,
                                const char *init, uint64_t seed, int count, const char *what)
{
    sf_plan_trial trial = {.reference = graph, .graph = graph, .plan = plan};
    sf_verify_options options = {
        .size = sizeof options, .steps = count, .init = init, .seed = seed, .threads = 1};
    sf_verify_report *report = NULL;
    sf_diag *diag = sf_diag_new();
    if (spoil) {
        trial.spoil = test_spoil_rank;
        trial.context = spoil;
    }
    sf_status status = sf_verify_trial(&trial, &options, diag, &report);
    if (!spoil && status != SF_OK)
        print_message("alarm: %s, seed %d: %s\n", what, (int)seed, sf_diag_text(diag, 0));
    if (!report)
        fail_msg("%s: %s", what, sf_diag_text(diag, 0));
    sf_diag_free(diag);
    return report;
}

static void test_alarms(void **state)
{
    (void)state;
    int runs = 0, alarms = 0;
    for (int i = 0; i < STEPS; i++) {
        if (!strstr(steps[i].file, only))
            continue;
        sf_graph *graph = load(&steps[i]);
        for (int k = 0; k < 2 * RECIPES; k++) {
            int ranks = 2 << k % 2;
            char what[256];
            if (!all && (k + 3 * i) % (test_short() ? 56 : 14) != 0)
                continue;
            sf_plan *plan = pin(graph, recipes[k / 2], ranks);
            snprintf(what, sizeof what, "%s by %s on %d", steps[i].file, recipes[k / 2], ranks);
            for (uint64_t seed = 0; plan && seed < (all ? 2 : 1); seed++, runs++) {
                sf_verify_report *report = verify(graph, plan, NULL, NULL, seed, all ? 3 : 2, what);
                alarms += !report->passed;
                sf_verify_free(report);
            }
            sf_plan_free(plan);
        }
        sf_graph_free(graph);
    }
    print_message("false alarms: %d of %d runs\n", alarms, runs);
    assert_true(*only || runs >= (all ? 200 : test_short() ? 1 : 8));
    assert_int_equal(alarms, 0);
}

/* Whether the mistake changes nothing that matters: a weight whose gradient is zero in mathematics has no part in the loss,
 * whatever it is; and where only the sign of a gradient matters, its size does not. */
static bool is_idle(const struct step *step, const sf_graph *graph, const test_spoil *spoil)
{
    const sf_block *top = graph->top;
    for (uint32_t i = 0; i < top->narguments && spoil->of != SF_NONE; i++) {
        const sf_argument *argument = &graph->arguments[i];
        bool own = spoil->of == top->arguments[i] ||
                   (argument->next != SF_NONE && spoil->of == top->results[argument->next]);
        bool gradient = spoil->of == argument->gradient;
        if ((own || gradient) && step->zero && strstr(argument->name, step->zero))
            return spoil->mistake != TEST_STALE;
        if (gradient && step->by_sign && spoil->mistake == TEST_TWICE)
            return true;
    }
    return false;
}

/* Whether two runs computed the same bits, as far as reports say. */
static bool same(const sf_verify_report *a, const sf_verify_report *b)
{
    for (int i = 0; i < a->nlosses; i++)
        if (a->losses[i] != b->losses[i])
            return false;
    for (int i = 0; i < a->nresults; i++)
        if (a->results[i]->error != b->results[i]->error ||
            a->results[i]->ours != b->results[i]->ours ||
            a->results[i]->excused != b->results[i]->excused)
            return false;
    return true;
}

/* Of steps, to find a mistake in. All weights are random, as to lose a bias that is zero would be no mistake, and large: with
 * small ones the scores of attention are near to each other, and in 16 bits keys in the wrong order change no digit. */
enum { COUNT = 2 };
#define INIT "*=normal:0.4"

struct rates {
    int made[TEST_MISTAKES], missed[TEST_MISTAKES], unused;
};

static void try_mistake(const struct step *step, const sf_graph *graph, const sf_plan *plan,
                        const sf_verify_report *good, test_spoil spoil, const char *what,
                        struct rates *rates)
{
    sf_verify_report *report = verify(graph, plan, &spoil, INIT, 0, COUNT, what);
    bool passed = report->passed, unused = same(report, good) || is_idle(step, graph, &spoil);
    sf_verify_free(report);
    if (!spoil.applied || (passed && unused)) {
        rates->unused++;
        return;
    }
    rates->made[spoil.mistake]++;
    rates->missed[spoil.mistake] += passed;
    if (passed)
        print_message("missed: %s: %s, place %u, value %u\n", what,
                      test_mistake_name(spoil.mistake), spoil.place, spoil.of);
}

static void try_mistakes(const struct step *step, const sf_graph *graph, const char *recipe,
                         int ranks, uint32_t most, struct rates *rates)
{
    sf_plan *plan = pin(graph, recipe, ranks);
    sf_local *local;
    char what[256];
    if (!plan)
        return;
    snprintf(what, sizeof what, "%s by %s on %d", step->file, recipe, ranks);
    sf_verify_report *good = verify(graph, plan, NULL, INIT, 0, COUNT, what);
    assert_int_equal(sf_local_new(graph, plan, 0, NULL, &local), SF_OK);
    for (int mistake = 0; mistake < TEST_MISTAKES; mistake++) {
        uint32_t places = test_spoil_places(local, (test_mistake)mistake);
        uint32_t tried = places < most ? places : most;
        for (uint32_t i = 0; i < tried; i++)
            try_mistake(step, graph, plan, good,
                        (test_spoil){(test_mistake)mistake, i * places / tried, SF_NONE, false},
                        what, rates);
    }
    sf_verify_free(good);
    sf_local_free(local);
    sf_plan_free(plan);
}

static void test_mistakes(void **state)
{
    (void)state;
    struct rates rates[2] = {0}; /* of steps in 32 bits, and in 16 */
    int made[2] = {0}, missed[2] = {0};
    for (int i = 0; i < (all ? STEPS : test_short() ? 1 : 3); i++) {
        if (!strstr(steps[i].file, only))
            continue;
        sf_graph *graph = load(&steps[i]);
        for (int k = 0; k < RECIPES; k++)
            if (all ? k % 4 == 0 || (k + i) % 2 == 0 : (k + i) % (test_short() ? 8 : 4) == 0)
                try_mistakes(&steps[i], graph, recipes[k], 2 << (i + k / 2) % 2, all ? 4 : 1,
                             &rates[sf_is_narrow(graph, SF_PRECISION_F32)]);
        sf_graph_free(graph);
    }
    for (int i = 0; i < TEST_MISTAKES; i++) {
        for (int narrow = 0; narrow < 2; narrow++) {
            const struct rates *r = &rates[narrow];
            print_message("%s, %d bits: %d missed of %d\n", test_mistake_name((test_mistake)i),
                          narrow ? 16 : 32, r->missed[i], r->made[i]);
            made[narrow] += r->made[i];
            missed[narrow] += r->missed[i];
        }
    }
    for (int narrow = 0; narrow < 2; narrow++)
        print_message("mistakes missed, %d bits: %d of %d (and %d that change nothing)\n",
                      narrow ? 16 : 32, missed[narrow], made[narrow], rates[narrow].unused);
    assert_true(*only || made[0] >= (all ? 300 : test_short() ? 5 : 15));
    assert_int_equal(missed[0], 0);
    /* In 16 bits some change a step less than rounding does: these cannot be detected. */
    assert_true(50 * missed[1] <= made[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_alarms),
                                       cmocka_unit_test(test_mistakes)};
    all = test_argv[0] && strcmp(test_argv[0], "--all") == 0;
    only = all && test_argv[1] ? test_argv[1] : "";
#if !SF_FEATURE_LZMA
    return 77;
#endif
    return cmocka_run_group_tests(tests, NULL, NULL);
}
