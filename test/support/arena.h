/* Where the CPU engine keeps what lives between instructions. */
#ifndef TEST_SUPPORT_ARENA_H
#define TEST_SUPPORT_ARENA_H

#include "run/engine.h"

typedef struct test_arena {
    char *at;
    int64_t bytes;
} test_arena;

/* The arena of a CPU engine for the graph, found through a result that stands in it; empty when none
 * does. */
test_arena test_find_arena(const sf_graph *graph, sf_engine *engine);

#endif
