/* Gradients as bf16: rounding errors are fed back, half of the bytes are sent, and losses are not
 * touched. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "pass/pass.h"
#include "prog/check_program.h"
#include "run/cpu/cpu_target.h"
#include "sheaf/sheaf.h"
#include "support/plans.h"
#include "support/slow.h"

enum { WIDE = 2048, STEPS = 67 };

/* w grows by the operands of the two ranks. The maximum, which equals them, keeps w from being part
 * of the reduction. */
static const char adding[] =
    "func.func public @main(%w: tensor<2048xf32> {tf.aliasing_output = 0 : i32}, "
    "%x: tensor<2x2048xf32>) -> tensor<2048xf32> {\n"
    "%zero = stablehlo.constant dense<0.0> : tensor<f32>\n"
    "%g = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0] : "
    "(tensor<2x2048xf32>, tensor<f32>) -> tensor<2048xf32>\n"
    "%least = stablehlo.constant dense<-100.0> : tensor<2048xf32>\n"
    "%m = stablehlo.maximum %g, %least : tensor<2048xf32>\n"
    "%n = stablehlo.add %w, %m : tensor<2048xf32>\n"
    "return %n : tensor<2048xf32>\n}\n";

/* Both add 1 + 2^-10, which is 1 in bf16; twice that is as exact. After any number of steps w is
 * exact, but for the errors that are kept. */
static void test_feedback(void **state)
{
    (void)state;
    static const char *const pins[] = {"x=S(0)@d", NULL};
    static float w[WIDE], x[2 * WIDE];
    sf_diag *diag = sf_diag_new();
    sf_graph *graph = test_step_text(adding);
    sf_plan *plan = test_plan(graph, NULL, 0, "d=2", pins);
    sf_cluster *cluster = test_slow_links(2, 1e6);
    const float part = 1 + 0x1p-10f;
    double errors[2];
    for (int i = 0; i < 2 * WIDE; i++)
        x[i] = part;
    for (int compressed = 0; compressed < 2; compressed++) {
        sf_session_options options = {
            .size = sizeof options, .plan = plan, .threads = 1, .check = true};
        sf_session *session;
        assert_int_equal(
            sf_plan_use_passes(plan, compressed ? "compress" : "none", cluster, 0, diag), SF_OK);
        if (sf_session_open(graph, &options, diag, &session) != SF_OK)
            fail_msg("%s", sf_diag_text(diag, 0));
        memset(w, 0, sizeof w);
        assert_int_equal(sf_session_write(session, 0, w, sizeof w, diag), SF_OK);
        assert_int_equal(sf_session_write(session, 1, x, sizeof x, diag), SF_OK);
        assert_int_equal(sf_session_run(session, STEPS, diag, NULL), SF_OK);
        assert_int_equal(sf_session_read(session, 0, w, sizeof w, diag), SF_OK);
        errors[compressed] = fabs((double)w[7] - 2.0 * STEPS * (double)part);
        sf_session_close(session);
    }
    print_message("%g off, and %g compressed; %g without feedback\n", errors[0], errors[1],
                  2 * STEPS * 0x1p-10);
    assert_true(errors[0] == 0);
    assert_true(errors[1] > 0 && errors[1] <= 0x1p-7);
    sf_cluster_free(cluster);
    sf_plan_free(plan);
    sf_graph_free(graph);
    sf_diag_free(diag);
}

static int count_narrow(const sf_program *p, double *scalars)
{
    int count = 0;
    for (size_t i = 0; i < p->ninsts; i++) {
        const sf_inst *inst = &p->insts[i];
        for (uint32_t j = 0; inst->kind == SF_INST_COMM && j < inst->nout; j++) {
            count += inst->out[j].dtype == SF_BF16;
            *scalars += sf_view_count(&inst->out[j]) == 1 && inst->out[j].dtype == SF_F32;
        }
        for (uint32_t b = 0; b < sf_body_count(inst); b++)
            count += count_narrow(inst->nest->bodies[b], scalars);
    }
    return count;
}

/* All large data is half as large; a loss stays as it is. With micro-batches, gradients are reduced
 * in them. */
static void test_bytes(void **state)
{
    (void)state;
    static const char *const recipes[] = {"dp", "zero2", "zero3"};
    for (int c = 0; c < 6; c++) {
        sf_diag *diag = sf_diag_new();
        sf_arena arena = {0};
        sf_graph *graph = test_step("gpt-micro");
        sf_plan *plan = test_plan(graph, recipes[c / 2], 2, NULL, NULL);
        plan->micro_batches = 1 + c % 2;
        sf_local *local = test_local(graph, plan, 0);
        sf_lower_options options = {.target = &sf_target_cpu, .mesh = &plan->mesh};
        sf_program *p = sf_lower(local->graph, &options, NULL);
        sf_cluster *cluster = test_slow_links(2, 1e6);
        sf_costs *costs;
        int ranks = 2, count;
        sf_pass_list list;
        sf_pass_outcome out[4];
        double losses = 0;
        assert_int_equal(sf_costs_new(cluster, 1, &ranks, 0, &arena, diag, &costs), SF_OK);
        assert_int_equal(sf_pass_list_read("compress:min=1", &arena, diag, &list), SF_OK);
        sf_pass_run run = {&list, costs, INT64_MAX, &arena};
        if (sf_passes_run(p, &run, diag, out, &count) != SF_OK ||
            sf_program_check(p, diag) != SF_OK)
            fail_msg("%s: %s", recipes[c / 2], sf_diag_text(diag, 0));
        int narrow = count_narrow(p, &losses);
        print_message("%s, %d turns: %g bytes became %g, %d tensors, %s\n", recipes[c / 2],
                      plan->micro_batches, out[0].traffic, out[1].traffic, narrow, out[1].note);
        assert_true(out[1].kept && sf_pass_list_is_approximate(&list));
        assert_true(narrow >= 30 && losses >= 1);
        assert_true(out[1].traffic < (c < 2 ? 0.51 : 0.9) * out[0].traffic);
        assert_true(out[1].bytes > out[0].bytes); /* of kept errors */
        sf_cluster_free(cluster);
        sf_program_free(p);
        sf_local_free(local);
        sf_plan_free(plan);
        sf_graph_free(graph);
        sf_arena_free(&arena);
        sf_diag_free(diag);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_feedback),
        cmocka_unit_test(test_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
