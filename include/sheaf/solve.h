/* Solving: one strategy per node of a graph, at the least cost, within a limit at every time.
 *
 * The cost is the sum of node costs and of edge costs. A node's strategy uses so much of something during
 * an interval of time; at every time, the uses of the nodes whose interval holds it may sum to the limit at
 * most. docs/design/solver.md describes the method.
 */
#ifndef SHEAF_SOLVE_H
#define SHEAF_SOLVE_H

#include <stddef.h>

#include "sheaf/event.h"
#include "sheaf/output.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A cost of this or more says that a strategy, or a pair of strategies, must not be taken. Over all nodes
 * and edges, the largest finite costs must sum to less than this. */
#define SF_FORBIDDEN INT64_C(1000000000000000000)

/* A problem, built node by node or read from a file. */
typedef struct sf_choices sf_choices;

SF_API sf_status sf_choices_new(sf_diag *diag, sf_choices **out);

/* Reads the JSON of the ASPLOS 2025 contest, plain, .gz or .xz; "-" is standard input. */
SF_API sf_status sf_choices_load(const char *path, sf_diag *diag, sf_choices **out);
SF_API void sf_choices_free(sf_choices *choices);

/* A node with costs[count]; nodes get the numbers 0, 1, 2, ... A call that fails adds nothing. */
SF_API sf_status sf_choices_add_node(sf_choices *choices, uint32_t count, const int64_t *costs,
                                     sf_diag *diag);

/* The use of a resource by a node in the time begin <= t < end: usages[its strategies]. Several
 * calls for a node add up. */
SF_API sf_status sf_choices_add_use(sf_choices *choices, uint32_t node, int64_t begin, int64_t end,
                                    const int64_t *usages, sf_diag *diag);

/* costs[strategies of a][strategies of b]; several edges between two nodes add up. */
SF_API sf_status sf_choices_add_edge(sf_choices *choices, uint32_t a, uint32_t b,
                                     const int64_t *costs, sf_diag *diag);

/* Without a limit, uses do not matter. */
SF_API void sf_choices_set_limit(sf_choices *choices, int64_t limit);

SF_API uint32_t sf_choices_nodes(const sf_choices *choices);

typedef enum sf_stop {
    SF_STOP_OPTIMAL = 0,    /* the bound equals the cost */
    SF_STOP_GAP = 1,        /* the requested gap is reached */
    SF_STOP_INFEASIBLE = 2, /* proven: no assignment keeps to the rules */
    SF_STOP_SECONDS = 3,    /* the time is spent */
    SF_STOP_WORK = 4,       /* the work is spent */
    SF_STOP_ASKED = 5,      /* the listener or the interrupt stopped it */
} sf_stop;

/* What a listener of the solver receives. */
typedef struct sf_solve_progress {
    size_t size; /* of this struct, as the library has it */
    double seconds;
    bool feasible; /* there is an answer, of this cost */
    int64_t cost;
    int64_t bound;
} sf_solve_progress;

/* The budget is time or work. Work counts steps of the algorithms: under a budget of work alone the answer
 * is the same on every machine and for every number of threads. */
typedef struct sf_solve_options {
    size_t size;    /* sizeof this struct, see api.h */
    double seconds; /* 0: no limit */
    int64_t work;   /* 0: no limit; without either, 60 seconds */
    int threads;    /* 0: as many as the process may use */
    uint64_t seed;
    double gap;              /* stop once (cost - bound) / cost is this or less; 0: a proof */
    sf_listener *listener;   /* called now and then; or NULL */
    void *context;           /* for the listener */
    sf_interrupt *interrupt; /* stops the call when it is raised; or NULL */
} sf_solve_options;

typedef struct sf_solution {
    size_t size; /* of this struct, as the library has it */
    sf_stop stop;
    bool feasible;          /* `choice` keeps to the rules; else it is an attempt */
    uint32_t nodes;         /* of the problem */
    const uint32_t *choice; /* [nodes]: which strategy of each, counted from 0 */
    int64_t cost;           /* of choice; SF_FORBIDDEN when it takes something forbidden */
    int64_t bound; /* nothing that keeps to the rules costs less; SF_FORBIDDEN: there is nothing */
    double gap;    /* (cost - bound) / |cost|; infinite when not feasible */
    int64_t time;  /* not feasible because of the limit: a time at which it is passed, */
    int64_t over;  /* and by how much; 0 when that is not the reason */
    int64_t work;
    double seconds;
} sf_solution;

/* Solves the problem; the caller may add to it afterwards and solve it once more. That there is
 * no solution is a result: SF_OK. *out is for sf_solution_free and does not need the problem any
 * more. */
SF_API sf_status sf_choices_solve(const sf_choices *choices, const sf_solve_options *options,
                                  sf_diag *diag, sf_solution **out);
SF_API void sf_solution_free(sf_solution *solution);

/* Writes the list of chosen indices, as JSON. */
SF_API sf_status sf_solution_save(const sf_solution *solution, const sf_output *output,
                                  sf_diag *diag);

#ifdef __cplusplus
}
#endif

#endif
