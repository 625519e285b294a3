/* A graph, ready to run: lowered for an engine, which is opened on the program. The oracle takes the graph as it
 * is. */
#ifndef SF_RUN_RUNNER_H
#define SF_RUN_RUNNER_H

#include "cluster/cluster.h"
#include "run/engine/engine.h"

typedef struct sf_runner {
    sf_program *program; /* NULL: the oracle has none */
    sf_engine *engine;
    sf_graph *narrowed; /* the graph of the oracle, if products are narrow */
} sf_runner;

typedef struct sf_runner_options {
    const char *engine;  /* "cpu" or "oracle"; NULL: the fast one */
    const sf_mesh *mesh; /* of the collectives of the graph; NULL: it has none */
    int rank;
    bool check; /* the program, with prog/check_program.h */
    /* Changes the program before it is opened, or NULL; `context` is for it. */
    sf_status (*rewrite)(void *context, sf_program *program, sf_diag *diag);
    void *context;
    sf_engine_options with;
} sf_runner_options;

/* Whether there is an engine of that name; NULL is the fast one, whose name is returned. SF_EUSAGE for another. */
sf_status sf_engine_find(const char *name, sf_diag *diag, const char **out);

/* The engine to run a step on: that of the name; if it is NULL or "auto", that of SHEAF_ENGINE in
 * the environment; without it, cuda if there is a GPU, and else cpu. */
sf_status sf_engine_choose(const char *name, sf_diag *diag, const char **out);

/* The precision of that name: f32, tf32, bf16, f16 or fp8; NULL is f32. SF_EUSAGE for another. */
sf_status sf_precision_find(const char *name, sf_diag *diag, sf_precision *out);

/* The target that programs for that engine are lowered for; NULL for the oracle. */
const sf_target *sf_engine_target(const char *name);

/* The target for which programs for the devices of a cluster are lowered: their cost there is the
 * cost of that program. */
const sf_target *sf_cluster_target(const sf_cluster *cluster);

/* The arithmetic of that engine: ranks that differ in this may compute other bits from the same
 * values. "avx512, OpenBLAS 0.3.21"; `text` has room for SF_ARITHMETIC bytes. */
enum { SF_ARITHMETIC = 128 };
const char *sf_engine_arithmetic(const char *name, char *text);

/* The program of a graph. If that is a step whose text recomputes nodes (plan/recompute_policy.h),
 * so does the program; local graphs have that from their plan. */
sf_program *sf_lower_as_text(const sf_graph *graph, const sf_lower_options *options);

/* The graph and the mesh are borrowed and must outlive the runner. *out is for sf_runner_close, after a failure
 * too. */
sf_status sf_runner_open(const sf_graph *graph, const sf_runner_options *options, sf_diag *diag,
                         sf_runner *out);
void sf_runner_close(sf_runner *runner);

#endif
