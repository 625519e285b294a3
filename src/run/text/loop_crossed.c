/* Loops that read along another dimension than they write: transposed operands come through shared
 * memory, tile by tile, so that neighbouring threads are at neighbouring elements in both. */
#include <inttypes.h>
#include <stdlib.h>

#include "run/text/loop_text.h"

enum { TILE = 1024, MOST_WIDE = 32, LEAST = 8, FAR = 4, MOST_TILES = 4 };

/* Where an access goes from neighbour to neighbour other than along the last dimension; -1: nowhere. */
static int dim_across(const sf_loop *loop, const sf_access *access)
{
    int last = loop->rank - 1;
    if (access->is_row || llabs(access->strides[last]) < FAR)
        return -1;
    for (int d = 0; d < last; d++)
        if (access->strides[d] == 1 && loop->dims[d] >= LEAST)
            return d;
    return -1;
}

int text_crossed_dim(const sf_loop *loop)
{
    int across = -1, last = loop->rank - 1;
    if (loop->rank < 2 || loop->dims[last] < LEAST)
        return -1;
    for (uint32_t i = 0; i < loop->nsteps; i++) {
        const sf_loop_step *step = &loop->steps[i];
        const sf_access *access = &loop->accesses[step->access];
        if (step->kind == SF_STEP_LOAD && access->windows)
            return -1;
        if (step->kind == SF_STEP_STORE && !access->is_row && access->strides[last] != 1)
            return -1;
        if (step->kind == SF_STEP_LOAD && across < 0)
            across = dim_across(loop, access);
    }
    return across;
}

/* One tile: its extent along the last dimension and across. */
typedef struct tile {
    int across, last, wide, high;
    int64_t along_last, along_across, count; /* tiles, in all */
} tile;

static tile tile_of(const emitter *e)
{
    const sf_loop *loop = e->loop;
    tile t = {.across = e->across, .last = loop->rank - 1};
    t.wide = (int)text_power_above(loop->dims[t.last], MOST_WIDE);
    t.high = TILE / t.wide;
    t.along_last = (loop->dims[t.last] + t.wide - 1) / t.wide;
    t.along_across = (loop->dims[t.across] + t.high - 1) / t.high;
    t.count = t.along_last * t.along_across;
    for (int d = 0; d < t.last; d++)
        t.count *= d == t.across ? 1 : loop->dims[d];
    return t;
}

/* Where the tile at hand begins, and its place in all other dimensions. */
static void put_place(emitter *e, const tile *t)
{
    PUT("s64 rest = at;\n");
    PUT("%s first = (%s)(rest %% %" PRId64 ") * %d; rest /= %" PRId64 ";\n", e->index, e->index,
        t->along_last, t->wide, t->along_last);
    PUT("%s top = (%s)(rest %% %" PRId64 ") * %d; rest /= %" PRId64 ";\n", e->index, e->index,
        t->along_across, t->high, t->along_across);
    for (int d = t->last - 1; d >= 0; d--)
        if (d != t->across)
            PUT("%s d%d = (%s)(rest %% %" PRId64 "); rest /= %" PRId64 ";\n", e->index, d, e->index,
                e->loop->dims[d], e->loop->dims[d]);
}

/* The elements of a tile, a thread at several of them, those beside each other along dimension `along`. */
static void begin_elements(emitter *e, const tile *t, int along)
{
    int beside = along == t->last ? t->wide : t->high, down = along == t->last ? t->high : t->wide;
    PUT("{\nint x = THREAD %% %d;\nUNROLL_SOME for (int y = THREAD / %d; y < %d; y += %d) {\n",
        beside, beside, down, THREADS / beside);
    PUT("%s d%d = first + %s, d%d = top + %s;\n", e->index, t->last, along == t->last ? "x" : "y",
        t->across, along == t->last ? "y" : "x");
    PUT("if (d%d < %" PRId64 " && d%d < %" PRId64 ") {\n", t->last, e->loop->dims[t->last],
        t->across, e->loop->dims[t->across]);
}

static void find_tiles(emitter *e)
{
    int count = 0;
    for (uint32_t i = 0; i < e->loop->nsteps; i++) {
        const sf_loop_step *step = &e->loop->steps[i];
        e->in_tile[i] = step->kind == SF_STEP_LOAD && count < MOST_TILES &&
                        dim_across(e->loop, &e->loop->accesses[step->access]) == e->across;
        count += e->in_tile[i];
    }
}

static void put_tiles(emitter *e, const tile *t)
{
    begin_elements(e, t, t->across);
    for (uint32_t i = 0; i < e->loop->nsteps; i++) {
        const sf_access *access = &e->loop->accesses[e->loop->steps[i].access];
        if (!e->in_tile[i])
            continue;
        PUT("tile%u[y * %d + x] = AT(const raw_%s, p%u, ", i, t->high + 1,
            sf_type_name(access->dtype), access->view);
        text_offset(e, access);
        PUT(");\n");
    }
    PUT("}\n}\n}\nBARRIER();\n");
}

void text_crossed(emitter *e)
{
    const sf_loop *loop = e->loop;
    tile t = tile_of(e);
    e->tile_pitch = t.high + 1;
    find_tiles(e);
    PUT("{\n");
    for (uint32_t i = 0; i < loop->nsteps; i++)
        if (e->in_tile[i])
            PUT("SHARED raw_%s tile%u[%d];\n",
                sf_type_name(loop->accesses[loop->steps[i].access].dtype), i,
                t.wide * e->tile_pitch);
    PUT("for (s64 at = BLOCK; at < %" PRId64 "; at += BLOCKS) {\n", t.count);
    put_place(e, &t);
    put_tiles(e, &t);
    begin_elements(e, &t, t.last);
    text_each_element(e);
    PUT("}\n}\n}\nBARRIER();\n}\n}\n");
    sf_write_launch(e->w, sf_blocks_for(t.count, 1), THREADS, false);
}
