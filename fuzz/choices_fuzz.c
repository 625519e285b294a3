/* Read a problem and solve it with a little work: the answer is worth what the solver says, and no better
 * than its bound. */
#include <setjmp.h>
#include <stdint.h>

#include "base/mem.h"
#include "solve/solve.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_and_solve(sf_str text, sf_diag *diag, sf_arena *arena)
{
    sf_problem problem;
    sf_solve_result result;
    if (sf_problem_parse(text, "fuzz", arena, &problem, diag) != SF_OK) {
        SF_ASSERT(sf_diag_count(diag) == 1);
        return;
    }
    sf_solve_options options = {.size = sizeof options, .work = 100000};
    sf_status status = sf_solve(&problem, &options, NULL, arena, &result, diag);
    SF_ASSERT(status == SF_OK);
    sf_verdict verdict = sf_problem_judge(&problem, result.choice, arena);
    SF_ASSERT(verdict.feasible == result.feasible);
    SF_ASSERT(!result.feasible || (verdict.cost == result.cost && result.bound <= result.cost));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const sf_str text = {(const char *)data, size};
    sf_diag *diag = sf_diag_new();
    sf_arena arena = {0};
    sf_guard guard;
    sf_guard_enter(&guard);
    if (setjmp(guard.target) == 0) {
        read_and_solve(text, diag, &arena);
        sf_guard_leave(&guard);
        sf_arena_free(&arena);
    }
    sf_diag_free(diag);
    return 0;
}
