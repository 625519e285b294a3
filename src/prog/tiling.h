/* How a loop is split into tiles, and these among threads: in one place for the engines and the
 * cost model. */
#ifndef SF_PROG_TILING_H
#define SF_PROG_TILING_H

#include "prog/loop.h"

typedef struct sf_tiling {
    int64_t rows, columns;     /* of a tile */
    int64_t units;             /* of work: rows, or parts of rows if columns are split */
    int64_t pieces;            /* a row is cut into; 1 when it is not */
    int64_t register_bytes[2]; /* narrow, wide */
} sf_tiling;

sf_tiling sf_loop_tile(const sf_loop *loop);

/* Units that one of so many threads takes at most: their parts are equal, and no thread is woken for less than is worth it.
 * All of them: no second one is woken. */
int64_t sf_loop_grain(const sf_loop *loop, const sf_tiling *tiling, int threads);

/* Threads that have a part in it, of any number of them. */
int64_t sf_loop_shares(const sf_loop *loop);

#endif
