/* Programs and engines for tests. Every program is checked before it runs. */
#ifndef TEST_SUPPORT_RUN_H
#define TEST_SUPPORT_RUN_H

#include "run/runner.h"

/* For the CPU engine. Fails the test where the program does not pass sf_program_check. */
sf_program *test_lower(const sf_graph *graph);

/* Fails the test where it cannot be opened. `pool` or else `threads`, 0: as many as there are. */
sf_runner test_open_engine(const sf_graph *graph, const char *engine, int threads,
                           sf_threads *pool);

/* In the memory of the engine, which the host can reach: the CPU's and the oracle's. */
sf_tensor test_argument(sf_engine *engine, uint32_t index);
sf_tensor test_result(sf_engine *engine, uint32_t index);

/* A target of the CPU engine that wants few passes over memory, and has no loops behind products. */
sf_target test_few_passes(void);

/* Runs a text of float arguments and results, as it is lowered for that target, on the CPU. Fails the test where a result is
 * not the oracle's; `what` is said then. */
void test_as_oracle(const char *text, const sf_target *target, const char *what);

/* Where a CPU engine keeps what lives between instructions, found through a result that stands there; empty when
 * none does. */
typedef struct test_arena {
    char *at;
    int64_t bytes;
} test_arena;
test_arena test_find_arena(const sf_runner *runner);

#endif
