/* Running a fused loop: tile by tile, step by step, in threads. */
#ifndef SF_RUN_CPU_RUN_LOOP_H
#define SF_RUN_CPU_RUN_LOOP_H

#include "base/thread_pool.h"
#include "prog/program.h"
#include "prog/tiling.h"

struct
    sf_native; /* the code of a loop (run/cpu/compiled_loops.h); NULL: its steps are taken one by one */

/* The addresses of an instruction's views: a pointer to the first element of each. */
typedef struct sf_pointers {
    char **in, **out;
} sf_pointers;

/* Bytes of scratch that the loop needs for each thread, and for all of them together. */
int64_t sf_loop_scratch(const sf_loop *loop, int threads);

void sf_loop_run(const sf_loop *loop, const struct sf_native *native, sf_pointers pointers,
                 void *scratch, sf_threads *threads);

/* A loop that the caller runs block by block: begin, every element in one block (of whole rows, for
 * a loop that needs these), end. Blocks of one part are run one after the other, those of different
 * parts in any order or concurrently; results combined over rows depend on which part runs which
 * block. */
typedef struct sf_loop_job {
    const sf_loop *loop;
    const struct sf_native *native;
    sf_tiling t;
    sf_pointers pointers;
    char *scratch; /* sf_loop_scratch(loop, parts) bytes, 64-byte aligned */
    int64_t per_part, registers;
    int parts;
} sf_loop_job;

sf_loop_job sf_loop_begin(const sf_loop *loop, const struct sf_native *native, sf_pointers pointers,
                          void *scratch, int parts);
void sf_loop_piece(const sf_loop_job *job, int part, int64_t row, int64_t rows, int64_t column,
                   int64_t columns);
void sf_loop_end(const sf_loop_job *job);

#endif
