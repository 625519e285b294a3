#include "prog/tiling.h"

#include <limits.h>

/* All registers of a tile should stay in the second-level cache of a core. */
enum { TILE_BYTES = 192 << 10, LEAST_TILE = 256, MOST_TILE = 8192, ALIGN = 64 };

enum { WORTH_A_THREAD = 32768 }; /* elements times steps */

static int64_t align_bytes(int64_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

sf_tiling sf_loop_tile(const sf_loop *loop)
{
    int64_t width = 0;
    for (uint32_t i = 0; i < loop->nregisters; i++)
        width += loop->is_wide[i] ? 8 : 4;
    int64_t size = TILE_BYTES / (width ? width : 4);
    size = size < LEAST_TILE ? LEAST_TILE : size > MOST_TILE ? MOST_TILE : size;
    size = size / 16 * 16;
    sf_tiling t = {.columns = loop->columns, .pieces = 1};
    if (loop->columns > size && !sf_loop_wants_rows(loop)) {
        t.pieces = (loop->columns + size - 1) / size;
        t.columns = size;
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

/* Whole tiles, or less where there are fewer than threads, but never less than what is worth one. */
int64_t sf_loop_grain(const sf_loop *loop, const sf_tiling *t, int threads)
{
    int64_t each = loop->columns * loop->nsteps / t->pieces; /* work of a unit */
    int64_t tile = t->pieces > 1 ? 1 : t->rows, share = (t->units - 1) / threads + 1;
    int64_t least = (WORTH_A_THREAD - 1) / (each > 0 ? each : 1) + 1;
    int64_t grain = tile < share ? tile : share;
    grain = grain > least ? grain : least;
    return threads == 1 || t->units <= tile || t->units < 2 * grain ? t->units : grain;
}

int64_t sf_loop_shares(const sf_loop *loop)
{
    sf_tiling t = sf_loop_tile(loop);
    int64_t grain = sf_loop_grain(loop, &t, INT_MAX);
    return t.units > 0 ? (t.units - 1) / grain + 1 : 1;
}
