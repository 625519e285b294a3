/* Loops as machine code: written as text (run/text/loop_tile.c), compiled by the compiler of the system (base/compile.h) and kept
 * between runs. A tile of such a loop has the same bits as one that run/cpu/loop_tile_run.c runs step by step.
 *
 * A program says which of its loops want it (sf_loop.compiled). SHEAF_COMPILER in the environment says it of all of them: "cc", or
 * "vm", none. Where nothing can be compiled, loops run without it, and a warning says so.
 */
#ifndef SF_RUN_CPU_COMPILED_LOOPS_H
#define SF_RUN_CPU_COMPILED_LOOPS_H

#include "run/cpu/loop_tile_run.h"
#include "run/text/kernel_text.h"

/* The code of one loop. */
typedef struct sf_native sf_native;

/* That of a program, those of bodies too. A zeroed one is empty. */
typedef struct sf_natives {
    sf_arena arena;
    sf_native *loops;
    size_t count, capacity;
} sf_natives;

/* Whether the loop should be compiled, and the bytes of its scratch memory. */
bool sf_native_wanted(const sf_loop *loop);
int64_t sf_native_rooms(const sf_loop *loop, const sf_tiling *tiling);

/* Compiles these loops. SF_EUSAGE for an invalid SHEAF_COMPILER. */
sf_status sf_natives_open(sf_natives *natives, const sf_program *program, sf_diag *diag);
void sf_natives_free(sf_natives *natives);

/* The same in two steps, for several programs: a compiler takes longer to start than to compile a
 * loop. Texts of the loops to compile, without those that are loaded already. */
void sf_natives_write(sf_natives *natives, sf_kernels *module, const sf_program *program);
sf_status sf_natives_load(const sf_kernels *module, sf_diag *diag);

/* The code of the loop of an instruction, or NULL. */
const sf_native *sf_natives_find(const sf_natives *natives, const sf_inst *inst);

/* Whether two are one code. */
bool sf_native_is_same(const sf_native *a, const sf_native *b);

/* A tile. `sums`: accumulators of the part, as sf_tile has them. */
typedef struct sf_native_tile {
    const sf_native *native;
    sf_pointers pointers;
    char *rooms, *sums;
    int64_t room_bytes;
    int64_t row, rows, column, columns;
} sf_native_tile;
void sf_native_run(const sf_native_tile *tile);

#endif
