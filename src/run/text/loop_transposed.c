/* Folds whose rows are contiguous in memory, and their columns are not: sums over pixels of images
 * with channels last. A block has neighbouring rows, its threads are side by side along them, and
 * several go down each. */
#include <inttypes.h>
#include <stdlib.h>

#include "run/text/loop_text.h"

enum { LEAST_HIGH = 16, FAR = 8, FEW_NEIGHBOURS = 16 };

/* Threads that go down a row: more where there are few blocks, and each has registers enough. A thread that has several
 * neighbours leaves room for more of them. */
static int high_of(const emitter *e)
{
    enum { FEW_STEPS = 24, MOST_HIGH = 64 };
    const sf_loop *loop = e->loop;
    bool few = loop->rows / WARP < MANY_BLOCKS && loop->columns >= 8 * LEAST_HIGH;
    int high = few && loop->nsteps <= FEW_STEPS ? 2 * LEAST_HIGH : LEAST_HIGH;
    while (e->vector > 1 && high < MOST_HIGH && (few || loop->columns >= 16 * high) &&
           loop->columns >= 8 * high)
        high *= 2;
    return high;
}

/* How many rows from the first of a row of the domain on are contiguous. */
static int64_t neighbours(const sf_loop *loop, const sf_access *access)
{
    int64_t count = 1;
    for (int d = loop->split; d-- > 0 && access->strides[d] == count;)
        count *= loop->dims[d];
    return count;
}

/* Whether neighbouring rows load the same element. */
static bool is_shared(const sf_loop *loop, const sf_access *access)
{
    int64_t count = 1;
    for (int d = loop->split; d-- > 0 && access->strides[d] == 0;)
        count *= loop->dims[d];
    return count >= FEW_NEIGHBOURS;
}

/* Loads and stores of elements have their neighbours along the last dimensions of rows, or loads have none. */
bool text_is_transposed(const sf_loop *loop)
{
    bool has_neighbours = false;
    if (loop->split == 0 || loop->split == loop->rank || loop->columns < 2 * LEAST_HIGH)
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
        if (access->windows)
            return false;
        int64_t along = access->strides[loop->rank - 1];
        bool has = along != 0 && neighbours(loop, access) >= FEW_NEIGHBOURS;
        bool is_far = along == 0 || llabs(along) >= FAR || is_shared(loop, access);
        if (!is_far || (step->kind == SF_STEP_STORE && !has))
            return false;
        has_neighbours = has_neighbours || has;
    }
    return has_neighbours;
}

/* All threads of a row end with the same: the partial results of those that went down it are added
 * up in pairs. */
static void put_fold_end(emitter *e, uint32_t index)
{
    const sf_loop_step *step = &e->loop->steps[index];
    const char *type = text_classes[step->class];
    char name[32];
    text_combine_name(step, name, sizeof name);
    PUT("{\n%s *sums = (%s *)room + y * %d + x;\n", type, type, WARP);
    PUT("UNROLL for (int k = 0; k < %d; k++) sums[k] = fold%u[k];\nBARRIER();\n", e->vector, index);
    PUT("for (int half = %d; half > 0; half /= 2) {\nif (y < half) { UNROLL for (int k = 0; k < "
        "%d; "
        "k++) sums[k] = %s(sums[k], sums[half * %d + k]); }\nBARRIER();\n}\n",
        high_of(e) / 2, e->vector, name, WARP);
    PUT("UNROLL for (int k = 0; k < %d; k++) fold%u[k] = ((%s *)room)[x + k];\nBARRIER();\n}\n",
        e->vector, index, type);
    if (e->vector > 1)
        PUT("%s v%u[%d]; UNROLL for (int k = 0; k < %d; k++) v%u[k] = %s(", type, index, e->vector,
            e->vector, index, name);
    else
        PUT("%s v%u = %s(", type, index, name);
    text_constant(e, step);
    PUT(", fold%u[%s]);\n", index, e->vector > 1 ? "k" : "0");
}

/* Wants the stores of elements that can be done when so many folds have been. */
static bool want_stores(emitter *e, int least, int most)
{
    bool any = false;
    for (uint32_t i = 0; i < e->loop->nsteps; i++)
        if (e->loop->steps[i].kind == SF_STEP_STORE && !text_is_row_step(e, i) &&
            e->level[i] >= least && e->level[i] <= most) {
            text_want(e, i);
            any = true;
        }
    return any;
}

/* The loop down the columns; elements are stored with the last folds, or after them if they depend
 * on these. */
static void put_pass(emitter *e, int level, int levels)
{
    const sf_loop *loop = e->loop;
    char guard[64];
    snprintf(guard, sizeof guard, "if (first + x < %" PRId64 ") ", loop->rows);
    e->guard = guard;
    text_begin_folds(e, level);
    bool stores = level + 1 == levels ? want_stores(e, 0, level)
                  : level == levels   ? want_stores(e, levels, levels)
                                      : false;
    if (level < levels || stores) {
        PUT("%s for (%s c = y; c < %" PRId64 "; c += %d) {\n",
            e->vector > 1 ? "UNROLL_TWICE" : "UNROLL_SOME", e->index, loop->columns, high_of(e));
        text_fold_column(e, level);
    }
    for (uint32_t i = 0; i < loop->nsteps; i++)
        if (loop->steps[i].kind == SF_STEP_FOLD && e->level[i] == level)
            put_fold_end(e, i);
    e->guard = NULL;
}

/* Loads the values that are the same for all columns. */
static void put_ready(emitter *e)
{
    const sf_loop *loop = e->loop;
    for (uint32_t i = 0; i < loop->nsteps; i++) {
        const sf_access *access = &loop->accesses[loop->steps[i].access];
        bool ready = loop->steps[i].kind == SF_STEP_LOAD && !access->is_row;
        for (int d = loop->split; ready && d < loop->rank; d++)
            ready = access->strides[d] == 0;
        if (ready)
            text_load(e, i);
        e->is_ready[i] = ready;
    }
}

void text_transposed(emitter *e)
{
    const sf_loop *loop = e->loop;
    int levels = 0;
    for (uint32_t i = 0; i < loop->nsteps; i++)
        if (loop->steps[i].kind == SF_STEP_FOLD && e->level[i] >= levels)
            levels = e->level[i] + 1;
    int high = high_of(e), lanes = WARP / e->vector;
    PUT("{\nSHARED f64 room[%d];\nint x = THREAD %% %d * %d, y = THREAD / %d;\n", WARP * high,
        lanes, e->vector, lanes);
    for (uint32_t i = 0; i < loop->nsteps; i++)
        if (loop->steps[i].kind == SF_STEP_CONSTANT)
            text_computation(e, i);
    PUT("for (s64 first = BLOCK * %d; first < %" PRId64 "; first += BLOCKS * %d) {\n", WARP,
        loop->rows, WARP);
    PUT("s64 row = first + x < %" PRId64 " ? first + x : %" PRId64 ";\n", loop->rows,
        loop->rows - e->vector);
    text_indices(e, "row", 0, loop->split);
    put_ready(e);
    text_row_loads(e);
    for (int level = 0; level <= levels; level++) {
        text_row_steps(e, level);
        put_pass(e, level, levels);
    }
    char condition[64];
    snprintf(condition, sizeof condition, "if (y == 0 && first + x < %" PRId64 ") ", loop->rows);
    text_row_stores(e, condition);
    PUT("}\n}\n");
    sf_write_launch(e->w, sf_blocks_for(loop->rows, WARP), lanes * high, false);
}
