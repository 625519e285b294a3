/* The copies that plans are priced with are those that programs make: of all that gradients need to be sent. What
 * else is moved may be copied by an op in between, or read as it lies. */
#include "search/copies.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "op/op.h"
#include "prog/program.h"
#include "support/plans.h"

/* A loop that only copies, for a collective. */
static bool is_copy_to_send(const sf_inst *inst)
{
    return inst->kind == SF_INST_LOOP && inst->loop->nsteps == 2 &&
           inst->loop->steps[0].kind == SF_STEP_LOAD && inst->node && sf_is_collective(inst->node);
}

static double bytes_that_program_copies(const sf_local *local)
{
    sf_program *program = sf_lower(local->graph);
    double sum = 0;
    for (size_t i = 0; i < program->ninsts; i++) {
        const sf_view *out = program->insts[i].out;
        if (is_copy_to_send(&program->insts[i]))
            sum += (double)(sf_view_count(out) * sf_dtype_get(out->dtype)->bytes);
    }
    sf_program_free(program);
    return sum;
}

static double bytes_that_plan_copies(const sf_graph *graph, const sf_plan *plan)
{
    sf_arena arena = {0};
    sf_diag *diag = sf_diag_new();
    const sf_efforts *efforts = sf_efforts_new(graph, &arena);
    sf_moves *moves;
    double sum = 0;
    assert_int_equal(sf_moves_of(graph, plan, &arena, diag, &moves), SF_OK);
    for (size_t i = 0; i < moves->nmoves; i++)
        sum += sf_copies_of(efforts, moves, &moves->moves[i]).before;
    sf_diag_free(diag);
    sf_arena_free(&arena);
    return sum;
}

static void test_recipes(void **state)
{
    (void)state;
    static const char *const recipes[] = {"dp", "zero1", "zero2"};
    int none = 0, some = 0;
    for (int i = 0; test_steps[i]; i++) {
        sf_graph *graph = test_step_of("micro", test_steps[i]);
        for (int k = 0; k < 3; k++) {
            test_refusal refusal;
            sf_plan *plan = test_pin(graph, recipes[k], 2, NULL, NULL, &refusal);
            if (!plan)
                continue;
            sf_local *local = test_local(graph, plan, 1);
            double real = bytes_that_program_copies(local);
            double priced = bytes_that_plan_copies(graph, plan);
            if (real != priced)
                fail_msg("%s, %s: %.0f bytes are priced, %.0f copied", test_steps[i], recipes[k],
                         priced, real);
            none += real == 0;
            some += real > 0;
            sf_local_free(local);
            sf_plan_free(plan);
        }
        sf_graph_free(graph);
    }
    assert_true(none > 5 && some > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_recipes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
