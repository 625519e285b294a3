#include "support/passed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "run/cpu/cpu_target.h"
#include "support/plans.h"

sf_program *test_passed_lower(const test_passed *passed, int rank)
{
    sf_local *local = test_local(passed->graph, passed->plan, rank);
    sf_lower_options options = {
        .target = &sf_target_cpu, .mesh = &passed->plan->mesh, .rank = rank};
    sf_program *program = sf_lower(local->graph, &options, NULL);
    sf_local_free(local);
    return program;
}

test_passed test_passed_open(sf_graph *graph, sf_plan *plan, sf_cluster *cluster, int ranks)
{
    test_passed p = {.graph = graph, .plan = plan, .cluster = cluster, .diag = sf_diag_new()};
    p.program = test_passed_lower(&p, 0);
    assert_int_equal(sf_costs_new(cluster, 1, &ranks, 0, &p.arena, p.diag, &p.costs), SF_OK);
    return p;
}

void test_passed_close(test_passed *passed)
{
    sf_program_free(passed->program);
    sf_plan_free(passed->plan);
    sf_graph_free(passed->graph);
    sf_cluster_free(passed->cluster);
    sf_arena_free(&passed->arena);
    sf_diag_free(passed->diag);
}
