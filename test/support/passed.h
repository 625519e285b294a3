/* A step, its plan, the program of a rank and what things cost: what passes are tried on. */
#ifndef TEST_SUPPORT_PASSED_H
#define TEST_SUPPORT_PASSED_H

#include "cluster/cost_model.h"
#include "prog/program.h"
#include "sheaf/sheaf.h"

typedef struct test_passed {
    sf_graph *graph;
    sf_plan *plan;
    sf_program *program; /* of the first rank */
    sf_cluster *cluster;
    sf_costs *costs;
    sf_diag *diag;
    sf_arena arena;
} test_passed;

/* Takes the graph, the plan and the cluster, which has so many ranks along one axis. */
test_passed test_passed_open(sf_graph *graph, sf_plan *plan, sf_cluster *cluster, int ranks);

void test_passed_close(test_passed *passed);

/* What a rank runs, for the engine on CPUs. */
sf_program *test_passed_lower(const test_passed *passed, int rank);

#endif
