/* A tile of a loop: its steps, one after the other, on registers. Of run_loop.c. */
#ifndef SF_RUN_CPU_LOOP_TILE_RUN_H
#define SF_RUN_CPU_LOOP_TILE_RUN_H

#include "run/cpu/run_loop.h"
#include "run/vec/vec.h"

enum { SF_TILE_ALIGN = 64 };

static inline int64_t sf_tile_align(int64_t bytes)
{
    return (bytes + SF_TILE_ALIGN - 1) / SF_TILE_ALIGN * SF_TILE_ALIGN;
}

/* Bytes of an element of a register. */
static inline int64_t sf_class_width(sf_vclass class)
{
    return class == SF_VF64 || class == SF_VI64 ? 8 : 4;
}

/* Bytes of the accumulators of a step that gathers. */
static inline int64_t sf_gathered_bytes(const sf_loop *loop, const sf_loop_step *step)
{
    return sf_tile_align((step->is_scalar ? 16 : loop->columns + 16) * 8);
}

/* One part's view of a running loop. */
typedef struct sf_tile {
    const sf_loop *loop;
    const sf_vec *vec;
    sf_pointers pointers;
    char *registers[512];                 /* by number */
    char *gathered;                       /* accumulators of this part */
    int64_t row, nrows, column, ncolumns; /* of the tile */
} sf_tile;

/* The constant of the step, so many times. */
void sf_tile_fill(void *dst, sf_vclass class, const sf_loop_step *step, int64_t count);

/* The op that combines two registers as the fold combines elements. */
sf_vop sf_fold_op(sf_vfold fold);

void sf_tile_run(sf_tile *tile);

#endif
