/* Fused loops (prog/loop.h) as kernels. A register of a loop is a variable of a thread; the result
 * of a step is named by the number of the step. Five shapes:
 *
 *     each     no folds, no gathers: a thread has one element, or a few neighbours
 *     crossed  likewise, but transposed operands come in tiles
 *     rows     folds: a block has a row. Between folds all operands of the next one are loaded and
 *              recomputed, from caches, so a row may have any length. A thread has a short row by
 *              itself
 *     turned   folds over columns that are far apart, of contiguous rows: a block has several
 *     columns  gathers without folds: neighbouring threads of a block have neighbouring columns and
 *              go down the rows
 *
 * Gathered columns are summed by each block over its rows; where there are several, another kernel
 * adds up their sums. The order depends on sizes alone, so every run gives the same bits.
 *
 * Numbers of bf16 are floats as registers of a loop, v7[k] of step 7, and beside that pairs in
 * words, w7[k / 2], in which they are loaded, stored, added and multiplied. The compiler drops
 * unused ones. */
#include <inttypes.h>
#include <string.h>

#include "run/text/loop_text.h"

/* Each */

static void write_each(emitter *e)
{
    const sf_loop *loop = e->loop;
    int64_t count = loop->rows * loop->columns / e->vector;
    PUT("{\nfor (s64 at = BLOCK * THREADS + THREAD; at < %" PRId64 "; at += BLOCKS * THREADS) {\n",
        count);
    char from[64];
    snprintf(from, sizeof from, "(%s)at * %d", e->index, e->vector);
    text_indices(e, from, 0, loop->rank);
    text_each_element(e);
    PUT("}\n}\n");
    sf_write_launch(e->w, sf_blocks_for(count, THREADS), THREADS, false);
}

/* Columns */

static void put_column_gather(emitter *e, uint32_t index, int wide)
{
    char name[32], at[32], value[32];
    const sf_loop_step *step = &e->loop->steps[index];
    int high = THREADS / wide;
    text_combine_name(step, name, sizeof name);
    for (int k = 0; k < e->vector; k++) {
        PUT("((%s *)room)[THREAD] = g%u[%d];\nBARRIER();\n", text_classes[step->class], index, k);
        PUT("if (y == 0 && c < %" PRId64 ") {\n", e->loop->columns);
        PUT("for (int other = 1; other < %d; other++) g%u[%d] = %s(g%u[%d], ((%s *)room)[other * "
            "%d "
            "+ x]);\n",
            high, index, k, name, index, k, text_classes[step->class], wide);
        snprintf(at, sizeof at, "c + %d", k);
        snprintf(value, sizeof value, "g%u[%d]", index, k);
        text_gathered(e, index, at, value);
        PUT("}\nBARRIER();\n");
    }
}

/* Neighbouring threads of a block along columns: as many as leave the fewest idle at the end of a
 * row. */
static int columns_abreast(int64_t vectors)
{
    int best = (int)text_power_above(vectors, THREADS);
    for (int wide = best / 2; wide >= WARP; wide /= 2)
        if ((vectors + wide - 1) / wide * wide < (vectors + best - 1) / best * best)
            best = wide;
    return best;
}

static void write_columns(emitter *e)
{
    const sf_loop *loop = e->loop;
    int wide = columns_abreast(loop->columns / e->vector), high = THREADS / wide;
    int64_t tiles = (loop->columns + (int64_t)wide * e->vector - 1) / ((int64_t)wide * e->vector);
    e->w->together = MANY_BLOCKS / MULTIPROCESSORS;
    int64_t most = MANY_BLOCKS / tiles, able = loop->rows / (LEAST_CHUNK * (int64_t)high);
    int64_t chunks = able < most ? able : most;
    chunks = chunks < 1 ? 1 : chunks;
    int64_t rows = (loop->rows + chunks - 1) / chunks;
    chunks = rows > 0 ? (loop->rows + rows - 1) / rows : 1;
    e->groups = chunks;
    e->all_groups = chunks * tiles;
    e->held = 1;
    text_add_partials(e);
    sf_param *params = sf_arena_copy(&e->scratch, e->w->params, e->w->nparams * sizeof *params);
    PUT("{\nSHARED f64 room[%d];\nint x = THREAD %% %d, y = THREAD / %d;\n", THREADS, wide, wide);
    PUT("s64 tile = BLOCK %% %" PRId64 ", chunk = BLOCK / %" PRId64 ";\n", tiles, tiles);
    PUT("s64 group = chunk; (void)group;\n");
    PUT("%s c = (%s)((tile * %d + x) * %d);\n", e->index, e->index, wide, e->vector);
    text_declare_sums(e);
    PUT("if (c < %" PRId64 ") {\n", loop->columns);
    text_indices(e, "c", loop->split, loop->rank);
    PUT("s64 end = (chunk + 1) * %" PRId64 "; end = end < %" PRId64 " ? end : %" PRId64 ";\n", rows,
        loop->rows, loop->rows);
    PUT("for (s64 row = chunk * %" PRId64 " + y; row < end; row += %d) {\n", rows, high);
    text_indices(e, "row", 0, loop->split);
    text_want_nothing(e);
    text_want_ends(e);
    text_wanted(e, true);
    text_row_stores(e, "if (c == 0) ");
    for (uint32_t i = 0; i < loop->nsteps; i++)
        if (text_is_gather(e, i)) {
            char name[16];
            snprintf(name, sizeof name, "g%u", i);
            text_combination(e, i, name, !loop->steps[i].is_scalar);
        }
    PUT("}\n}\n");
    for (uint32_t i = 0; i < loop->nsteps; i++)
        if (text_is_gather(e, i) && !loop->steps[i].is_scalar)
            put_column_gather(e, i, wide);
    text_scalar_gathers(e);
    PUT("}\n");
    sf_write_launch(e->w, chunks * tiles, THREADS, false);
    text_finish_gathers(e, params);
}

static shape shape_of(const sf_loop *loop)
{
    bool gathers = false;
    for (uint32_t i = 0; i < loop->nsteps; i++) {
        if (loop->steps[i].kind == SF_STEP_FOLD)
            return text_is_transposed(loop) ? TURNED : ROWS;
        gathers = gathers || loop->steps[i].kind == SF_STEP_GATHER;
    }
    return gathers ? COLUMNS : text_crossed_dim(loop) >= 0 ? CROSSED : EACH;
}

void sf_write_loop(sf_writer *w, const sf_inst *inst)
{
    const sf_loop *loop = inst->loop;
    emitter e = {.w = w, .inst = inst, .loop = loop, .out = &w->body, .groups = 1, .all_groups = 1};
    text_begin(&e);
    e.shape = shape_of(loop);
    e.index = sf_index_type(text_farthest(loop));
    e.along = (e.shape == TURNED ? loop->split : loop->rank) - 1;
    e.across = e.shape == CROSSED ? text_crossed_dim(loop) : -1;
    e.vector = e.shape == CROSSED ? 1 : text_choose_vector(&e, loop->rows * loop->columns);
    text_look(&e);
    sf_write_views(w, inst);
    if (e.shape == EACH)
        write_each(&e);
    else if (e.shape == CROSSED)
        text_crossed(&e);
    else if (e.shape == TURNED)
        text_transposed(&e);
    else if (e.shape == ROWS)
        text_rows(&e);
    else
        write_columns(&e);
    sf_arena_free(&e.scratch);
}
