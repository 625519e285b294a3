/* A loop as a function of a tile, for processors (run/cpu/compiled_loops.h): row by row, each step
 * on an element in a variable. Operands of a fold are stored in a buffer for the row, and combined
 * by the function that loops without a compiler use, so that both give the same bits; values in a
 * buffer need not be recomputed after the fold. */
#include <inttypes.h>

#include "run/text/loop_text.h"

static bool is_fold(const emitter *e, uint32_t index)
{
    return e->loop->steps[index].kind == SF_STEP_FOLD;
}

static bool has_room(const sf_loop_step *step)
{
    return step->kind == SF_STEP_FOLD || (step->kind == SF_STEP_GATHER && step->is_scalar);
}

int sf_tile_rooms(const sf_loop *loop)
{
    int count = 0;
    for (uint32_t i = 0; i < loop->nsteps; i++)
        count += has_room(&loop->steps[i]);
    return count;
}

/* Sums, rooms and functions get names: those of the steps that fill them. */
static void add_tile_params(emitter *e)
{
    int64_t rooms = 0;
    for (uint32_t i = 0; i < e->loop->nsteps; i++) {
        const sf_loop_step *step = &e->loop->steps[i];
        const char *class = text_classes[step->class];
        if (step->kind == SF_STEP_GATHER)
            PUT("%s *g%u = (%s *)p%d;\n", class, i, class,
                sf_write_param(e->w, (sf_param){.kind = SF_PARAM_SUM, .index = i}));
        if (!has_room(step))
            continue;
        sf_param room = {.kind = SF_PARAM_ROOM, .index = i, .value = rooms++};
        sf_param fold = {.kind = SF_PARAM_FOLD, .index = i};
        PUT("%s *fill%u = (%s *)p%d;\n", class, i, class, sf_write_param(e->w, room));
        PUT("fold_room *fold%u = (fold_room *)p%d;\n", i, sf_write_param(e->w, fold));
    }
    static const char *const names[] = {"first_row", "rows", "first_column", "columns"};
    for (uint32_t i = 0; i < sizeof names / sizeof *names; i++)
        PUT("const s64 %s = p%d;\n", names[i],
            sf_write_param(e->w, (sf_param){.kind = SF_PARAM_PLACE, .index = i}));
    PUT("(void)first_column, (void)columns;\n");
}

static void begin_columns(emitter *e, const char *first, const char *end)
{
    PUT("SEPARATE_STEPS\nfor (s64 c = %s; c < %s; c++) {\n", first, end);
    text_indices(e, "c", e->loop->split, e->loop->rank);
    text_wanted(e, false);
}

/* The folds that can be done after so many others. */
static void put_folds(emitter *e, int level)
{
    const sf_loop *loop = e->loop;
    char end[32];
    snprintf(end, sizeof end, "%" PRId64, loop->columns);
    text_want_nothing(e);
    for (uint32_t i = 0; i < loop->nsteps; i++)
        if (is_fold(e, i) && e->level[i] == level)
            text_want(e, e->operands[0][i]);
    begin_columns(e, "0", end);
    for (uint32_t i = 0; i < loop->nsteps; i++)
        if (is_fold(e, i) && e->level[i] == level)
            PUT("fill%u[c] = v%u;\n", i, e->operands[0][i]);
    PUT("}\n");
    for (uint32_t i = 0; i < loop->nsteps; i++) {
        if (!is_fold(e, i) || e->level[i] != level)
            continue;
        uint32_t from = e->operands[0][i];
        PUT("%s v%u = ", text_classes[loop->steps[i].class], i);
        text_constant(e, &loop->steps[i]);
        PUT(";\nfold%u(&v%u, fill%u, %s);\n", i, i, i, end);
        if (!e->in_room[from] && loop->steps[from].kind != SF_STEP_CONSTANT &&
            !text_is_row_step(e, from)) {
            PUT("const %s *room%u = fill%u;\n", text_classes[loop->steps[i].class], from, i);
            e->in_room[from] = true;
        }
    }
}

/* The stores, and gathers, of each element. */
static void put_ends(emitter *e)
{
    const sf_loop *loop = e->loop;
    char name[32];
    bool any = false;
    text_want_nothing(e);
    for (uint32_t i = 0; i < loop->nsteps; i++) {
        bool stores = loop->steps[i].kind == SF_STEP_STORE && !text_is_row_step(e, i);
        if (stores || text_is_gather(e, i)) {
            text_want(e, i);
            any = true;
        }
    }
    if (!any)
        return;
    begin_columns(e, "first_column", "first_column + columns");
    for (uint32_t i = 0; i < loop->nsteps; i++) {
        if (!text_is_gather(e, i))
            continue;
        if (loop->steps[i].is_scalar)
            PUT("fill%u[(row - first_row) * columns + c - first_column] = v%u;\n", i,
                e->operands[0][i]);
        else
            PUT("g%u[c] = %s(g%u[c], v%u);\n", i,
                text_combine_name(&loop->steps[i], name, sizeof name), i, e->operands[0][i]);
    }
    PUT("}\n");
}

static int count_levels(const emitter *e)
{
    int levels = 0;
    for (uint32_t i = 0; i < e->loop->nsteps; i++)
        if (is_fold(e, i) && e->level[i] >= levels)
            levels = e->level[i] + 1;
    return levels;
}

static void write_tile(emitter *e)
{
    const sf_loop *loop = e->loop;
    int levels = count_levels(e);
    PUT("{\n");
    add_tile_params(e);
    for (uint32_t i = 0; i < loop->nsteps; i++)
        if (loop->steps[i].kind == SF_STEP_CONSTANT)
            text_computation(e, i);
    PUT("for (s64 row = first_row; row < first_row + rows; row++) {\n");
    text_indices(e, "row", 0, loop->split);
    text_row_loads(e);
    for (int level = 0; level <= levels; level++) {
        text_row_steps(e, level);
        if (level < levels)
            put_folds(e, level);
    }
    put_ends(e);
    text_row_stores(e, "");
    PUT("}\n");
    for (uint32_t i = 0; i < loop->nsteps; i++)
        if (text_is_gather(e, i) && loop->steps[i].is_scalar)
            PUT("fold%u(g%u, fill%u, rows * columns);\n", i, i, i);
    PUT("}\n");
    sf_write_launch(e->w, 1, 1, false);
}

int sf_write_tile(sf_writer *w, const sf_inst *inst)
{
    emitter e = {
        .w = w, .inst = inst, .loop = inst->loop, .out = &w->body, .vector = 1, .index = "s64"};
    w->module->needs.vector = true;
    text_begin(&e);
    text_look(&e);
    sf_write_views(w, inst);
    write_tile(&e);
    sf_arena_free(&e.scratch);
    return sf_tile_rooms(inst->loop);
}
