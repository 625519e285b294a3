/* Running a fused loop: tile by tile, step by step, in threads. */
#ifndef SF_RUN_LOOP_H
#define SF_RUN_LOOP_H

#include "base/threads.h"
#include "prog/program.h"

/* Where the views of an instruction stand in memory: a pointer to the first element of each. */
typedef struct sf_pointers {
    char **in, **out;
} sf_pointers;

/* Bytes of scratch that the loop needs for each thread, and for all of them together. */
int64_t sf_loop_scratch(const sf_loop *loop, int threads);

void sf_loop_run(const sf_loop *loop, sf_pointers pointers, void *scratch, sf_threads *threads);

#endif
