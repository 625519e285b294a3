/* Gathers: what is combined over rows, of all shapes of loops. */
#include <inttypes.h>
#include <string.h>

#include "run/text/emit.h"

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
    PUT("((%s *)p%" PRId64 ")[", text_classes[step->class], e->partial[index]);
    if (step->is_scalar)
        PUT("BLOCK] = %s;\n", value);
    else
        PUT("group * (s64)%" PRId64 " + %s] = %s;\n", e->loop->columns, at, value);
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

/* Adds up, for each column, what the groups have. Threads stand along columns and along groups. */
static void finish_gather(emitter *e, uint32_t index, const sf_param *partial)
{
    const sf_loop_step *step = &e->loop->steps[index];
    const sf_access *access = &e->loop->accesses[step->access];
    const char *class = text_classes[step->class];
    int64_t columns = step->is_scalar ? 1 : e->loop->columns;
    int threads = groups_of(e, step) > THREADS ? MOST_THREADS : THREADS;
    int wide = step->is_scalar ? 1 : FINISH_COLUMNS, high = threads / wide;
    char name[32];
    text_combine_name(step, name, sizeof name);
    sf_write_param(e->w, *partial);
    sf_write_param(e->w, (sf_param){.kind = SF_PARAM_OUT, .index = access->view});
    PUT("{\nSHARED %s room[%d];\nint x = THREAD %% %d, y = THREAD / %d;\n", class, threads, wide,
        wide);
    PUT("s64 c = BLOCK * %d + x;\n%s sum = ", wide, class);
    text_identity(e, step);
    PUT(";\nif (c < %" PRId64 ") for (s64 g = y; g < %" PRId64 "; g += %d)\n", columns,
        groups_of(e, step), high);
    PUT("sum = %s(sum, ((const %s *)p0)[g * (s64)%" PRId64 " + c]);\n", name, class, columns);
    PUT("room[THREAD] = sum;\nBARRIER();\nif (y == 0 && c < %" PRId64 ") {\n", columns);
    PUT("for (int other = 1; other < %d; other++) sum = %s(sum, room[other * %d + x]);\n", high,
        name, wide);
    PUT("STORE(%s, p1, c, %s(", sf_type_name(access->dtype), name);
    text_constant(e, step);
    PUT(", sum));\n}\n}\n");
    sf_write_launch(e->w, (columns + wide - 1) / wide, threads, false);
}

void text_finish_gathers(emitter *e, const sf_param *params)
{
    for (uint32_t i = 0; i < e->loop->nsteps; i++)
        if (text_is_gather(e, i) && groups_of(e, &e->loop->steps[i]) > 1)
            finish_gather(e, i, &params[e->partial[i]]);
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
