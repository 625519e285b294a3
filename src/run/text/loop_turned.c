/* Folds whose rows stand beside each other in memory, and their columns do not: sums over pixels of images with channels last. A
 * block has neighbouring rows, its threads stand side by side along them, and several go down each. */
#include <inttypes.h>
#include <stdlib.h>

#include "run/text/emit.h"

enum { LEAST_HIGH = 16, FAR = 8, FEW_NEIGHBOURS = 16 };

/* Threads that go down a row: more where there are few blocks, and each has registers enough. */
static int high_of(const sf_loop *loop)
{
    enum { FEW_STEPS = 24 };
    bool few = loop->rows / WARP < MANY_BLOCKS && loop->columns >= 8 * LEAST_HIGH;
    return few && loop->nsteps <= FEW_STEPS ? 2 * LEAST_HIGH : LEAST_HIGH;
}

/* Nothing has elements of columns at the end, and what is loaded has its neighbours along the last dimension of rows. */
bool text_is_turned(const sf_loop *loop)
{
    bool has_neighbours = false;
    if (loop->split == 0 || loop->split == loop->rank || loop->columns < 2 * LEAST_HIGH ||
        loop->dims[loop->split - 1] < FEW_NEIGHBOURS)
        return false;
    for (uint32_t i = 0; i < loop->nsteps; i++) {
        const sf_loop_step *step = &loop->steps[i];
        if (step->kind == SF_STEP_GATHER)
            return false;
        if (step->kind != SF_STEP_LOAD && step->kind != SF_STEP_STORE)
            continue;
        const sf_access *access = &loop->accesses[step->access];
        if (access->is_row)
            continue;
        int64_t along = access->strides[loop->rank - 1];
        if (step->kind == SF_STEP_STORE || (along != 0 && llabs(along) < FAR))
            return false;
        has_neighbours = has_neighbours || (along != 0 && access->strides[loop->split - 1] == 1);
    }
    return has_neighbours;
}

/* All threads of a row end with the same, which those that went down it have added up in order. */
static void put_fold_end(emitter *e, uint32_t index)
{
    const sf_loop_step *step = &e->loop->steps[index];
    const char *type = text_classes[step->class];
    char name[32];
    text_combine_name(step, name, sizeof name);
    PUT("((%s *)room)[THREAD] = fold%u;\nBARRIER();\nfold%u = ((%s *)room)[x];\n", type, index,
        index, type);
    PUT("for (int other = 1; other < %d; other++) fold%u = %s(fold%u, ((%s *)room)[other * %d + "
        "x]);\nBARRIER();\n",
        high_of(e->loop), index, name, index, type, WARP);
    PUT("%s v%u = %s(", type, index, name);
    text_constant(e, step);
    PUT(", fold%u);\n", index);
}

static void put_fold_pass(emitter *e, int level)
{
    const sf_loop *loop = e->loop;
    text_begin_folds(e, level);
    PUT("UNROLL_SOME for (%s c = y; c < %" PRId64 "; c += %d) {\n", e->index, loop->columns,
        high_of(loop));
    text_fold_column(e, level);
    for (uint32_t i = 0; i < loop->nsteps; i++)
        if (loop->steps[i].kind == SF_STEP_FOLD && e->level[i] == level)
            put_fold_end(e, i);
}

void text_turned(emitter *e)
{
    const sf_loop *loop = e->loop;
    int levels = 0;
    for (uint32_t i = 0; i < loop->nsteps; i++)
        if (loop->steps[i].kind == SF_STEP_FOLD && e->level[i] >= levels)
            levels = e->level[i] + 1;
    int high = high_of(loop);
    PUT("{\nSHARED f64 room[%d];\nint x = THREAD %% %d, y = THREAD / %d;\n", WARP * high, WARP,
        WARP);
    for (uint32_t i = 0; i < loop->nsteps; i++)
        if (loop->steps[i].kind == SF_STEP_CONSTANT)
            text_computation(e, i);
    PUT("for (s64 first = BLOCK * %d; first < %" PRId64 "; first += BLOCKS * %d) {\n", WARP,
        loop->rows, WARP);
    PUT("s64 row = first + x < %" PRId64 " ? first + x : %" PRId64 ";\n", loop->rows,
        loop->rows - 1);
    text_indices(e, "row", 0, loop->split);
    for (int level = 0; level <= levels; level++) {
        text_row_steps(e, level);
        if (level < levels)
            put_fold_pass(e, level);
    }
    char condition[64];
    snprintf(condition, sizeof condition, "if (y == 0 && first + x < %" PRId64 ") ", loop->rows);
    text_row_stores(e, condition);
    PUT("}\n}\n");
    sf_write_launch(e->w, sf_blocks_for(loop->rows, WARP), WARP * high, false);
}
