/* Gathers: values that are combined over rows, of all shapes of loops. */
#include <inttypes.h>
#include <string.h>

#include "run/text/loop_text.h"

/* Gathers of all shapes */

bool text_is_gather(const emitter *e, uint32_t index)
{
    return e->loop->steps[index].kind == SF_STEP_GATHER;
}

static int64_t groups_of(const emitter *e, const sf_loop_step *step)
{
    return step->is_scalar ? e->all_groups : e->groups;
}

/* Where a block leaves its sums: in the result, if it is the only one. */
void text_gathered(emitter *e, uint32_t index, const char *at, const char *value)
{
    const sf_loop_step *step = &e->loop->steps[index];
    const sf_access *access = &e->loop->accesses[step->access];
    char name[32];
    if (groups_of(e, step) == 1) {
        PUT("STORE(%s, p%d, %s, %s(", sf_type_name(access->dtype), text_out_param(e, access), at,
            text_combine_name(step, name, sizeof name));
        text_constant(e, step);
        PUT(", %s));\n", value);
        return;
    }
    PUT("AT(%s, p%" PRId64 ", ", text_classes[step->class], e->partial[index]);
    if (step->is_scalar)
        PUT("BLOCK) = %s;\n", value);
    else
        PUT("group * (s64)%" PRId64 " + %s) = %s;\n", e->loop->columns, at, value);
}

/* Scratch for the sums of all groups. */
void text_add_partials(emitter *e)
{
    for (uint32_t i = 0; i < e->loop->nsteps; i++) {
        const sf_loop_step *step = &e->loop->steps[i];
        if (!text_is_gather(e, i) || groups_of(e, step) == 1)
            continue;
        int64_t count = step->is_scalar ? 1 : e->loop->columns;
        int64_t at = sf_write_scratch(e->w, groups_of(e, step) * count * 8);
        e->partial[i] = sf_write_param(e->w, (sf_param){.kind = SF_PARAM_SCRATCH, .value = at});
    }
}

/* Columns that threads of a block are along, and blocks that all of them take. */
static int finish_wide(const sf_loop_step *step)
{
    return step->is_scalar ? 1 : FINISH_COLUMNS;
}

static int64_t finish_blocks(const emitter *e, const sf_loop_step *step)
{
    int wide = finish_wide(step);
    return ((step->is_scalar ? 1 : e->loop->columns) + wide - 1) / wide;
}

/* Adds up, for each column, the partial results of the groups, by blocks from the given one on.
 * Threads are along columns and along groups. Parameter `from` has the partial results, the next
 * one is the result. */
static void finish_gather(emitter *e, uint32_t index, int threads, int64_t first, int64_t from)
{
    const sf_loop_step *step = &e->loop->steps[index];
    const sf_access *access = &e->loop->accesses[step->access];
    const char *class = text_classes[step->class];
    int64_t columns = step->is_scalar ? 1 : e->loop->columns;
    int wide = finish_wide(step), high = threads / wide;
    char name[32];
    text_combine_name(step, name, sizeof name);
    PUT("if (BLOCK >= %" PRId64 " && BLOCK < %" PRId64 ") {\n", first,
        first + finish_blocks(e, step));
    PUT("%s *sums = (%s *)room;\nint x = THREAD %% %d, y = THREAD / %d;\n", class, class, wide,
        wide);
    PUT("s64 c = (BLOCK - %" PRId64 ") * %d + x;\n%s sum = ", first, wide, class);
    text_identity(e, step);
    PUT(";\nif (c < %" PRId64 ") for (s64 g = y; g < %" PRId64 "; g += %d)\n", columns,
        groups_of(e, step), high);
    PUT("sum = %s(sum, AT(const %s, p%" PRId64 ", g * (s64)%" PRId64 " + c));\n", name, class, from,
        columns);
    PUT("sums[THREAD] = sum;\nBARRIER();\nif (y == 0 && c < %" PRId64 ") {\n", columns);
    PUT("for (int other = 1; other < %d; other++) sum = %s(sum, sums[other * %d + x]);\n", high,
        name, wide);
    PUT("STORE(%s, p%" PRId64 ", c, %s(", sf_type_name(access->dtype), from + 1, name);
    text_constant(e, step);
    PUT(", sum));\n}\n}\n");
}

/* One launch for all of them. */
void text_finish_gathers(emitter *e, const sf_param *params)
{
    int threads = THREADS;
    int64_t blocks = 0;
    for (uint32_t i = 0; i < e->loop->nsteps; i++)
        if (text_is_gather(e, i) && groups_of(e, &e->loop->steps[i]) > THREADS)
            threads = MOST_THREADS;
    for (uint32_t i = 0; i < e->loop->nsteps; i++) {
        const sf_loop_step *step = &e->loop->steps[i];
        if (!text_is_gather(e, i) || groups_of(e, step) == 1)
            continue;
        if (blocks == 0)
            PUT("{\nSHARED f64 room[%d];\n", threads);
        int64_t from = sf_write_param(e->w, params[e->partial[i]]);
        sf_write_param(
            e->w, (sf_param){.kind = SF_PARAM_OUT, .index = e->loop->accesses[step->access].view});
        finish_gather(e, i, threads, blocks, from);
        blocks += finish_blocks(e, step);
    }
    if (blocks == 0)
        return;
    PUT("}\n");
    sf_write_launch(e->w, blocks, threads, false);
}

/* A variable for each sum that a thread has: g7, or g7[elements]. */
void text_declare_sums(emitter *e)
{
    for (uint32_t i = 0; i < e->loop->nsteps; i++) {
        const sf_loop_step *step = &e->loop->steps[i];
        if (!text_is_gather(e, i))
            continue;
        int64_t count = e->held * e->vector;
        if (step->is_scalar) {
            PUT("%s g%u = ", text_classes[step->class], i);
            text_identity(e, step);
            PUT(";\n");
            continue;
        }
        PUT("%s g%u[%" PRId64 "]; UNROLL for (int k = 0; k < %" PRId64 "; k++) g%u[k] = ",
            text_classes[step->class], i, count, count, i);
        text_identity(e, step);
        PUT(";\n");
    }
}

void text_scalar_gathers(emitter *e)
{
    char name[32];
    for (uint32_t i = 0; i < e->loop->nsteps; i++) {
        const sf_loop_step *step = &e->loop->steps[i];
        if (!text_is_gather(e, i) || !step->is_scalar)
            continue;
        char value[16];
        snprintf(value, sizeof value, "g%u", i);
        PUT("BLOCK_FOLD(%s, %s, g%u, room);\nif (THREAD == 0) ", text_classes[step->class],
            text_combine_name(step, name, sizeof name), i);
        text_gathered(e, i, "0", value);
    }
}
