/* Read a problem and solve it with a little work: the answer is worth what the solver says, and no better
 * than its bound. */

#include "guarded.h"
#include "solve/solve.h"

static void read_and_solve(sf_str text, sf_arena *arena, sf_diag *diag)
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
    return fuzz_guarded(read_and_solve, data, size);
}
