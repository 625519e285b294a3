#include "prog/tiling.h"

/* All registers of a tile should stay in the second-level cache of a core. */
enum { TILE_BYTES = 192 << 10, LEAST_TILE = 256, MOST_TILE = 8192, ALIGN = 64 };

enum { WORTH_A_THREAD = 32768 }; /* elements times steps */

enum { MANY_UNITS = 64 }; /* threads have about equal parts of so many */

static int64_t align_bytes(int64_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

static int64_t larger_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Columns of a part of a row: as many as the cache has room for, or fewer if there would be few
 * units, but no fewer than justify a thread. */
static int64_t piece_of_row(const sf_loop *loop, int64_t most)
{
    int64_t worth = WORTH_A_THREAD / larger_of(loop->nsteps, 1);
    int64_t piece =
        larger_of(loop->rows * loop->columns / MANY_UNITS, larger_of(worth, LEAST_TILE));
    piece = (piece + 15) / 16 * 16;
    return piece < most ? piece : most;
}

sf_tiling sf_loop_tile(const sf_loop *loop)
{
    int64_t width = 0;
    for (uint32_t i = 0; i < loop->nregisters; i++)
        width += loop->is_wide[i] ? 8 : 4;
    int64_t size = TILE_BYTES / (width ? width : 4);
    size = size < LEAST_TILE ? LEAST_TILE : size > MOST_TILE ? MOST_TILE : size;
    size = size / 16 * 16;
    int64_t piece = piece_of_row(loop, size);
    sf_tiling t = {.columns = loop->columns, .pieces = 1};
    if (loop->columns > piece && !sf_loop_wants_rows(loop)) {
        t.pieces = (loop->columns + piece - 1) / piece;
        t.columns = piece;
        t.rows = 1;
    } else {
        t.rows = size / (loop->columns ? loop->columns : 1);
        t.rows = t.rows < 1 ? 1 : t.rows > loop->rows ? loop->rows : t.rows;
    }
    t.units = loop->rows * t.pieces;
    t.register_bytes[0] = align_bytes((t.rows * t.columns + 16) * 4);
    t.register_bytes[1] = align_bytes((t.rows * t.columns + 16) * 8);
    return t;
}

/* Threads that are worth being woken. */
static int64_t shares_of(const sf_loop *loop, const sf_tiling *t)
{
    int64_t shares = t->units * (loop->columns * loop->nsteps / t->pieces) / WORTH_A_THREAD;
    return shares < 1 ? 1 : shares < t->units ? shares : t->units;
}

int64_t sf_loop_grain(const sf_loop *loop, const sf_tiling *t, int threads)
{
    int64_t shares = shares_of(loop, t), parts = shares < threads ? shares : threads;
    return t->units > 0 ? (t->units - 1) / parts + 1 : 1;
}

int64_t sf_loop_shares(const sf_loop *loop)
{
    sf_tiling t = sf_loop_tile(loop);
    return t.units > 0 ? shares_of(loop, &t) : 1;
}
