/* Measured times in place of the model's. The reference is the model itself: a trace of its own
 * times changes nothing; one with a longer time changes that alone, and the decisions of passes
 * that depend on it. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "pass/pass.h"
#include "prog/edit_program.h"
#include "sheaf/sheaf.h"
#include "sim/instruction_work.h"
#include "sim/measured_times.h"
#include "sim/timeline_trace.h"
#include "support/passed.h"
#include "support/plans.h"

static test_passed open_known(void)
{
    sf_cluster *cluster;
    sf_graph *graph = test_step("gpt-micro");
    assert_int_equal(sf_cluster_open("2xH100", NULL, &cluster), SF_OK);
    return test_passed_open(graph, test_plan(graph, "zero3", 2, NULL, NULL), cluster, 2);
}

/* The times of the program, with gathers and products so many times as long. */
static void write_trace(test_passed *k, double gathers, double products, sf_buf *out)
{
    sf_simulation sim;
    sf_json_writer json = {.buf = out, .indent = true};
    sf_simulate(k->program, k->costs, &k->arena, &sim);
    for (uint32_t i = 0; i < k->program->ninsts; i++) {
        const sf_inst *inst = &k->program->insts[i];
        sf_timing *t = &sim.insts[i];
        bool is_gather = inst->kind == SF_INST_COMM && inst->exchange->kind == SF_ALL_GATHER;
        t->mean = (is_gather                   ? gathers
                   : inst->kind == SF_INST_DOT ? products
                                               : 1) *
                  (t->end - t->start);
    }
    sf_trace_begin(&json, "made up", &k->program->mesh);
    sf_trace_put(k->program, sim.insts, 0, &json);
    sf_trace_end(&json);
}

/* The costs of the cluster with that; the cluster is for sf_cluster_free. */
static sf_costs *costs_of_trace(test_passed *k, double gathers, double products, sf_cluster **out)
{
    sf_buf text = {0}, file = {0};
    sf_costs *costs;
    int sizes[] = {2};
    sf_cluster *seen;
    write_trace(k, gathers, products, &text);
    assert_int_equal(
        sf_cluster_see(k->cluster, (sf_str){text.text, text.length}, "trace", k->diag, &seen),
        SF_OK);
    sf_cluster_write(seen, &file); /* and back */
    assert_int_equal(sf_cluster_read((sf_str){file.text, file.length}, "file", k->diag, out),
                     SF_OK);
    assert_true(sf_cluster_hash(*out) == sf_cluster_hash(seen));
    assert_true(sf_cluster_hash(*out) != sf_cluster_hash(k->cluster));
    assert_int_equal(sf_costs_new(*out, 1, sizes, 0, &k->arena, k->diag, &costs), SF_OK);
    sf_cluster_free(seen);
    sf_buf_free(&text);
    sf_buf_free(&file);
    return costs;
}

static void assert_near(double a, double b, double tolerance)
{
    assert_true(fabs(a - b) <= tolerance * fabs(b));
}

static void test_same(void **state)
{
    (void)state;
    test_passed k = open_known();
    sf_cluster *seen;
    sf_simulation model, same;
    const sf_costs *costs = costs_of_trace(&k, 1, 1, &seen);
    sf_simulate(k.program, k.costs, &k.arena, &model);
    sf_simulate(k.program, costs, &k.arena, &same);
    for (uint32_t i = 0; i < k.program->ninsts; i++) /* a trace has nanoseconds */
        assert_true(fabs((same.insts[i].end - same.insts[i].start) -
                         (model.insts[i].end - model.insts[i].start)) < 1.1e-9);
    assert_near(same.seconds, model.seconds, 1e-3);
    for (double bytes = 100; bytes < 1e9; bytes *= 3) /* sizes that the trace has not */
        assert_near(sf_costs_collective(costs, SF_ALL_GATHER, 1, bytes),
                    sf_costs_collective(k.costs, SF_ALL_GATHER, 1, bytes), 0.2);
    sf_cluster_free(seen);
    test_passed_close(&k);
}

static void test_longer(void **state)
{
    (void)state;
    test_passed k = open_known();
    sf_cluster *seen;
    sf_simulation model, longer;
    const sf_costs *costs = costs_of_trace(&k, 1, 3, &seen);
    sf_simulate(k.program, k.costs, &k.arena, &model);
    sf_simulate(k.program, costs, &k.arena, &longer);
    for (uint32_t i = 0; i < k.program->ninsts; i++) {
        double times = k.program->insts[i].kind == SF_INST_DOT ? 3 : 1;
        assert_near(longer.insts[i].end - longer.insts[i].start,
                    times * (model.insts[i].end - model.insts[i].start), 1e-2);
    }
    sf_cluster_free(seen);
    costs = costs_of_trace(&k, 5, 1, &seen);
    for (double bytes = 1000; bytes < 1e8; bytes *= 3)
        assert_near(sf_costs_collective(costs, SF_ALL_GATHER, 1, bytes),
                    5 * sf_costs_collective(k.costs, SF_ALL_GATHER, 1, bytes), 0.2);
    assert_near(sf_costs_collective(costs, SF_ALL_REDUCE, 1, 1e6),
                sf_costs_collective(k.costs, SF_ALL_REDUCE, 1, 1e6), 0.2);
    sf_cluster_free(seen);
    test_passed_close(&k);
}

/* Whether unshard keeps a tensor after prefetch. */
static bool unshards(test_passed *k, const sf_costs *costs)
{
    sf_pass_list list;
    sf_pass_run run = {&list, costs, INT64_MAX, &k->arena};
    sf_pass_outcome outcomes[5];
    int count;
    sf_kept *kept = sf_program_keep(k->program, &k->arena);
    assert_int_equal(sf_pass_list_read("fsdp,prefetch,unshard", &k->arena, k->diag, &list), SF_OK);
    assert_int_equal(sf_passes_run(k->program, &run, k->diag, outcomes, &count), SF_OK);
    assert_int_equal(count, 4);
    sf_program_put_back(k->program, kept);
    sf_program_settle(k->program);
    return outcomes[3].kept;
}

/* By the model all gathers are hidden, and unshard has nothing to do; if they took much longer it
 * keeps gathered tensors. */
static void test_decision(void **state)
{
    (void)state;
    test_passed k = open_known();
    sf_cluster *same, *slow;
    const sf_costs *costs = costs_of_trace(&k, 1, 1, &same);
    const sf_costs *longer = costs_of_trace(&k, 40, 1, &slow);
    assert_false(unshards(&k, k.costs));
    assert_false(unshards(&k, costs));
    assert_true(unshards(&k, longer));
    sf_cluster_free(same);
    sf_cluster_free(slow);
    test_passed_close(&k);
}

static void test_refused(void **state)
{
    (void)state;
    static const char other_axis[] =
        "{\"otherData\": {\"mesh\": \"data=2\"}, \"traceEvents\": [{\"ph\": \"X\", \"dur\": 1, "
        "\"name\": \"all_gather\", \"args\": {\"axes\": \"model\", \"bytes\": 1}}]}";
    static const char *const bad[] = {
        "{}",
        "{\"traceEvents\": []}",
        "{\"otherData\": {\"mesh\": \"data=2\"}, \"traceEvents\": []}",
        "{\"otherData\": {\"mesh\": \"data=2\"}, \"traceEvents\": [{\"ph\": \"X\"}]}",
        "{\"otherData\": {\"mesh\": \"data=2\"}, \"traceEvents\": [{\"ph\": \"X\", \"dur\": -1}]}",
        other_axis,
    };
    test_passed k = open_known();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        sf_cluster *out;
        sf_diag *diag = sf_diag_new();
        assert_int_equal(sf_cluster_see(k.cluster, sf_str_of(bad[i]), "bad", diag, &out),
                         SF_EINPUT);
        sf_diag_free(diag);
    }
    sf_cluster *out;
    const char *large = "{\"otherData\": {\"mesh\": \"data=4\"}, \"traceEvents\": []}";
    assert_int_equal(sf_cluster_see(k.cluster, sf_str_of(large), "bad", NULL, &out), SF_EUSAGE);
    test_passed_close(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same),
        cmocka_unit_test(test_longer),
        cmocka_unit_test(test_decision),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
