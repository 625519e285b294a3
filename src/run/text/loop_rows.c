/* Loops with folds: a block has a row, or a few short ones, a warp each. */
#include <inttypes.h>
#include <string.h>

#include "run/text/loop_text.h"

/* How the threads of blocks have rows. */
typedef struct sharing {
    bool alone; /* a thread has a row by itself */
    bool
        once; /* or a block has all of a row in its threads at a time, so each element is loaded and computed once */
    int threads;
    int64_t blocks;
    const char *lane;
    char lanes[16];
    int levels;
    int most; /* folds of a level */
    bool gathers, gathers_columns;
} sharing;

/* Rows */

static bool is_fold_of(const emitter *e, uint32_t index, int level)
{
    return e->loop->steps[index].kind == SF_STEP_FOLD && e->level[index] == level;
}

/* Whether the threads of a row are several warps, which meet in shared memory. */
static bool has_warps(const emitter *e, const sharing *s)
{
    return !s->alone && e->abreast == 0 && s->threads > WARP;
}

/* Warps store their folds of a level, and all threads combine them. There are two buffers, so
 * threads synchronise once: until a buffer is written once more, they have synchronised for the
 * other. */
static void put_meeting(emitter *e, int level, const sharing *s)
{
    int warps = s->threads / WARP, at = WARP;
    char name[32];
    PUT("{\nf64 *meeting = room + turn;\nif (THREAD %% 32 == 0) {\n");
    for (uint32_t i = 0; i < e->loop->nsteps; i++)
        if (is_fold_of(e, i, level)) {
            PUT("((%s *)(meeting + %d))[THREAD / 32] = fold%u;\n",
                text_classes[e->loop->steps[i].class], at, i);
            at += warps;
        }
    PUT("}\nBARRIER();\n");
    at = WARP;
    for (uint32_t i = 0; i < e->loop->nsteps; i++)
        if (is_fold_of(e, i, level)) {
            const sf_loop_step *step = &e->loop->steps[i];
            const char *class = text_classes[step->class];
            text_combine_name(step, name, sizeof name);
            PUT("fold%u = ((%s *)(meeting + %d))[0];\n", i, class, at);
            PUT("for (int warp = 1; warp < %d; warp++) fold%u = %s(fold%u, ((%s *)(meeting + "
                "%d))[warp]);\n",
                warps, i, name, i, class, at);
            at += warps;
        }
    PUT("turn = %d - turn;\n}\n", s->most * warps);
}

/* The folds of a level, over the threads of a row, become their values. */
static void put_folds_end(emitter *e, int level, const sharing *s)
{
    char name[32];
    int count = 0;
    for (uint32_t i = 0; i < e->loop->nsteps; i++)
        if (is_fold_of(e, i, level)) {
            count++;
            if (!s->alone)
                PUT("WARP_FOLD(%s, fold%u)\n",
                    text_combine_name(&e->loop->steps[i], name, sizeof name), i);
        }
    if (count > 0 && has_warps(e, s))
        put_meeting(e, level, s);
    for (uint32_t i = 0; i < e->loop->nsteps; i++)
        if (is_fold_of(e, i, level)) {
            const sf_loop_step *step = &e->loop->steps[i];
            PUT("%s v%u = %s(", text_classes[step->class], i,
                text_combine_name(step, name, sizeof name));
            text_constant(e, step);
            PUT(", fold%u);\n", i);
        }
}

void text_begin_folds(emitter *e, int level)
{
    const sf_loop *loop = e->loop;
    text_want_nothing(e);
    for (uint32_t i = 0; i < loop->nsteps; i++) {
        const sf_loop_step *step = &loop->steps[i];
        if (!is_fold_of(e, i, level))
            continue;
        text_want(e, e->operands[0][i]);
        if (e->shape == TURNED)
            PUT("%s fold%u[%d]; UNROLL for (int k = 0; k < %d; k++) fold%u[k] = ",
                text_classes[step->class], i, e->vector, e->vector, i);
        else
            PUT("%s fold%u = ", text_classes[step->class], i);
        text_identity(e, step);
        PUT(";\n");
    }
}

void text_fold_column(emitter *e, int level)
{
    const sf_loop *loop = e->loop;
    char name[32];
    text_indices(e, "c", loop->split, loop->rank);
    text_wanted(e, false);
    for (uint32_t i = 0; i < loop->nsteps; i++)
        if (is_fold_of(e, i, level)) {
            snprintf(name, sizeof name, "fold%u", i);
            text_combination(e, i, name, e->shape == TURNED);
        }
    PUT("}\n");
}

/* Goes over the row and leaves, in variables fN, the results of this level's folds. */
static void put_fold_pass(emitter *e, int level, const sharing *s)
{
    const sf_loop *loop = e->loop;
    text_begin_folds(e, level);
    PUT("for (%s c = %s * %d; c < %" PRId64 "; c += %s * %d) {\n", e->index, s->lane, e->vector,
        loop->columns, s->lanes, e->vector);
    text_fold_column(e, level);
    put_folds_end(e, level, s);
}

/* Values of whole rows after so many folds. Constants are known everywhere. */
void text_row_steps(emitter *e, int level)
{
    for (uint32_t i = 0; i < e->loop->nsteps; i++) {
        const sf_loop_step *step = &e->loop->steps[i];
        bool is_end = step->kind == SF_STEP_STORE || step->kind == SF_STEP_CONSTANT ||
                      step->kind == SF_STEP_LOAD;
        if (!is_end && e->level[i] == level && text_is_row_step(e, i))
            text_computation(e, i);
    }
}

static void put_last_pass(emitter *e, const char *lane, const char *lanes)
{
    const sf_loop *loop = e->loop;
    bool any = false;
    text_want_nothing(e);
    for (uint32_t i = 0; i < loop->nsteps; i++) {
        bool ends = text_is_gather(e, i) ||
                    (loop->steps[i].kind == SF_STEP_STORE && !text_is_row_step(e, i));
        any = any || ends;
        if (ends)
            text_want(e, i);
    }
    if (!any)
        return;
    if (e->held > 0)
        PUT("UNROLL for (int h = 0; h < %" PRId64
            "; h++) { %s c = (%s + h * %s) * %d; if (c >= %" PRId64 ") break;\n",
            e->held, e->index, lane, lanes, e->vector, loop->columns);
    else
        PUT("for (%s c = %s * %d; c < %" PRId64 "; c += %s * %d) {\n", e->index, lane, e->vector,
            loop->columns, lanes, e->vector);
    text_indices(e, "c", loop->split, loop->rank);
    text_wanted(e, false);
    for (uint32_t i = 0; i < loop->nsteps; i++)
        if (text_is_gather(e, i)) {
            char name[40];
            if (loop->steps[i].is_scalar)
                snprintf(name, sizeof name, "g%u", i);
            else if (e->held > 0)
                snprintf(name, sizeof name, "(g%u + h * %d)", i, e->vector);
            else
                snprintf(name, sizeof name, "(g%u + c)", i);
            text_combination(e, i, name, !loop->steps[i].is_scalar);
        }
    PUT("}\n");
}

/* Sums that a thread cannot keep are in scratch memory from the start, each column with the thread
 * that has it. */
static void declare_far_sums(emitter *e, int threads)
{
    for (uint32_t i = 0; i < e->loop->nsteps; i++) {
        const sf_loop_step *step = &e->loop->steps[i];
        if (!text_is_gather(e, i) || step->is_scalar)
            continue;
        PUT("%s *g%u = SOME(%s, p%" PRId64 ", group * (s64)%" PRId64 ", %" PRId64 ");\n",
            text_classes[step->class], i, text_classes[step->class], e->partial[i],
            e->loop->columns, e->loop->columns);
        PUT("for (s64 c = (s64)THREAD * %d; c < %" PRId64
            "; c += %d)\nfor (int k = 0; k < %d; k++) g%u[c "
            "+ k] = ",
            e->vector, e->loop->columns, threads * e->vector, e->vector, i);
        text_identity(e, step);
        PUT(";\n");
    }
}

static void put_kept_sums(emitter *e, int threads)
{
    for (uint32_t i = 0; i < e->loop->nsteps; i++) {
        if (!text_is_gather(e, i) || e->loop->steps[i].is_scalar)
            continue;
        char value[48];
        PUT("UNROLL for (int h = 0; h < %" PRId64 "; h++) UNROLL for (int k = 0; k < %d; k++) {\n",
            e->held, e->vector);
        PUT("%s c = (THREAD + h * %d) * %d + k;\nif (c < %" PRId64 ") ", e->index, threads,
            e->vector, e->loop->columns);
        snprintf(value, sizeof value, "g%u[h * %d + k]", i, e->vector);
        text_gathered(e, i, "c", value);
        PUT("}\n");
    }
}

/* Whole warps, as few as have all of the row at once, where so many are in a block; but of many short rows, of which little is
 * computed, a warp has each, which need not wait for another. */
static int threads_for_row(const sf_loop *loop, bool gathers, int64_t vectors)
{
    enum { FEW_STEPS = 24 };
    bool is_short = !gathers && vectors <= 2 * WARP && loop->nsteps <= FEW_STEPS &&
                    loop->rows >= (int64_t)MOST_ABREAST * MANY_BLOCKS;
    if (is_short)
        return WARP;
    int64_t warps = (vectors + WARP - 1) / WARP;
    return warps < 1                         ? WARP
           : warps * WARP < MOST_ROW_THREADS ? (int)warps * WARP
                                             : MOST_ROW_THREADS;
}

/* Rows that a warp has go into a block together, as many as leave no warp without one. */
static void share_block(emitter *e, sharing *s)
{
    int64_t rows = e->loop->rows;
    int abreast = MOST_ABREAST;
    while (abreast > 1 && (rows % abreast != 0 || rows / abreast < MANY_BLOCKS))
        abreast /= 2;
    if (s->alone || s->threads != WARP || abreast == 1)
        return;
    e->abreast = abreast;
    s->lane = "(THREAD % 32)";
    s->threads = WARP * abreast;
    s->blocks = sf_blocks_for(rows, abreast);
}

static void share_rows(emitter *e, sharing *s)
{
    const sf_loop *loop = e->loop;
    for (uint32_t i = 0; i < loop->nsteps; i++) {
        bool folds = loop->steps[i].kind == SF_STEP_FOLD;
        s->levels = folds && e->level[i] >= s->levels ? e->level[i] + 1 : s->levels;
        s->gathers = s->gathers || text_is_gather(e, i);
        s->gathers_columns =
            s->gathers_columns || (text_is_gather(e, i) && !loop->steps[i].is_scalar);
    }
    for (int level = 0; level < s->levels; level++) {
        int count = 0;
        for (uint32_t i = 0; i < loop->nsteps; i++)
            count += is_fold_of(e, i, level);
        s->most = count > s->most ? count : s->most;
    }
    s->alone = !s->gathers && loop->columns <= SHORT_ROW;
    s->threads = s->alone ? 128 : threads_for_row(loop, s->gathers, loop->columns / e->vector);
    s->once = !s->alone && loop->columns <= (int64_t)s->threads * e->vector;
    s->lane = s->alone ? "0" : "THREAD";
    snprintf(s->lanes, sizeof s->lanes, "%d", s->alone ? 1 : s->threads);
    s->blocks = s->alone ? sf_blocks_for(loop->rows, s->threads) : sf_blocks_for(loop->rows, 1);
    if (!s->gathers) {
        share_block(e, s);
        return;
    }
    int64_t vectors = (loop->columns / e->vector + s->threads - 1) / s->threads;
    e->w->together = (GATHERING_THREADS + s->threads / 2) / s->threads;
    int64_t most = (int64_t)MULTIPROCESSORS * e->w->together;
    e->groups = loop->rows < most ? (loop->rows ? loop->rows : 1) : most;
    e->held = vectors * e->vector <= MOST_HELD ? vectors : 0;
    if (e->held == 0 && e->groups == 1)
        e->groups =
            2; /* sums in scratch memory want somebody to finish them; a block without rows adds none */
    e->all_groups = s->blocks = e->groups;
}

/* A row of which each thread has one vector: all steps in order, level by level. Threads past its
 * end do as the first one does, and store nothing. */
static void put_row_once(emitter *e, const sharing *s)
{
    const sf_loop *loop = e->loop;
    char name[32];
    PUT("const int active = %s * %d < %" PRId64 ";\n%s c = active ? (%s)%s * %d : 0;\n", s->lane,
        e->vector, loop->columns, e->index, e->index, s->lane, e->vector);
    text_indices(e, "c", loop->split, loop->rank);
    text_row_loads(e);
    text_element_loads(e);
    for (int level = 0; level <= s->levels; level++) {
        text_row_steps(e, level);
        text_elements(e, level);
        for (uint32_t i = 0; i < loop->nsteps; i++) {
            if (!is_fold_of(e, i, level))
                continue;
            snprintf(name, sizeof name, "fold%u", i);
            PUT("%s fold%u = ", text_classes[loop->steps[i].class], i);
            text_identity(e, &loop->steps[i]);
            PUT(";\nif (active) { ");
            text_combination(e, i, name, false);
            PUT("}\n");
        }
        put_folds_end(e, level, s);
    }
    PUT("if (active) {\n");
    text_stores(e);
    for (uint32_t i = 0; i < loop->nsteps; i++)
        if (text_is_gather(e, i)) {
            snprintf(name, sizeof name, "g%u", i);
            text_combination(e, i, name, !loop->steps[i].is_scalar);
        }
    PUT("}\n");
}

static void put_row_passes(emitter *e, const sharing *s)
{
    text_row_loads(e);
    for (int level = 0; level <= s->levels; level++) {
        text_row_steps(e, level);
        if (level < s->levels)
            put_fold_pass(e, level, s);
    }
    put_last_pass(e, s->lane, s->lanes);
}

/* Sums of gathers at the start. */
static void put_sums(emitter *e, const sharing *s)
{
    PUT("s64 group = BLOCK; (void)group;\n");
    if (e->held > 0 || !s->gathers_columns) {
        text_declare_sums(e);
        return;
    }
    for (uint32_t i = 0; i < e->loop->nsteps; i++)
        if (text_is_gather(e, i) && e->loop->steps[i].is_scalar) {
            PUT("%s g%u = ", text_classes[e->loop->steps[i].class], i);
            text_identity(e, &e->loop->steps[i]);
            PUT(";\n");
        }
    declare_far_sums(e, s->threads);
}

void text_rows(emitter *e)
{
    const sf_loop *loop = e->loop;
    sharing s = {0};
    share_rows(e, &s);
    text_add_partials(e);
    sf_param *params = sf_arena_copy(&e->scratch, e->w->params, e->w->nparams * sizeof *params);
    PUT("{\nSHARED f64 room[%d];\nint turn = 0;\n(void)room, (void)turn;\n",
        WARP + (has_warps(e, &s) ? 2 * s.most * s.threads / WARP : 0));
    for (uint32_t i = 0; i < loop->nsteps; i++)
        if (loop->steps[i].kind == SF_STEP_CONSTANT)
            text_computation(e, i);
    if (s.gathers)
        put_sums(e, &s);
    if (s.alone)
        PUT("for (s64 row = BLOCK * THREADS + THREAD; row < %" PRId64
            "; row += BLOCKS * THREADS) {\n",
            loop->rows);
    else if (e->abreast > 0)
        PUT("for (s64 row = BLOCK * %d + THREAD / 32; row < %" PRId64 "; row += BLOCKS * %d) {\n",
            e->abreast, loop->rows, e->abreast);
    else
        PUT("for (s64 row = BLOCK; row < %" PRId64 "; row += BLOCKS) {\n", loop->rows);
    text_indices(e, "row", 0, loop->split);
    if (s.once)
        put_row_once(e, &s);
    else
        put_row_passes(e, &s);
    text_row_stores(e, s.alone          ? ""
                       : e->abreast > 0 ? "if (THREAD % 32 == 0) "
                                        : "if (THREAD == 0) ");
    PUT("}\n");
    if (s.gathers) {
        if (e->held > 0)
            put_kept_sums(e, s.threads);
        text_scalar_gathers(e);
    }
    PUT("}\n");
    sf_write_launch(e->w, s.blocks, s.threads, false);
    text_finish_gathers(e, params);
}
