/* Steps of a loop as text: the operands and the code of each. */
#include <inttypes.h>
#include <string.h>

#include "run/text/loop_text.h"

const char *const text_classes[] = {"f32", "f64", "s32", "s64"};

static int64_t width_of(sf_dtype dtype)
{
    return sf_dtype_get(dtype)->bytes;
}

static bool is_truth(sf_vop op)
{
    return op == SF_VIS_FINITE || (op >= SF_VEQ && op <= SF_VUGE);
}

/* Of the variable that a step makes. */
static const char *variable_type(const sf_loop_step *step)
{
    bool is_s32 = step->kind == SF_STEP_OP && is_truth(step->op);
    return text_classes[is_s32 ? SF_VI32 : step->class];
}

/* The operands of each step, and when they are available. */

static void find_makers(emitter *e)
{
    const sf_loop *loop = e->loop;
    uint32_t *made = SF_ARRAY(&e->scratch, loop->nregisters, uint32_t);
    for (uint32_t i = 0; i < loop->nsteps; i++)
        if (loop->steps[i].kind == SF_STEP_CONSTANT)
            made[loop->steps[i].dst] = i;
    for (uint32_t i = 0; i < loop->nsteps; i++) {
        const sf_loop_step *step = &loop->steps[i];
        const uint16_t from[3] = {step->a, step->b, step->c};
        for (int j = 0; j < text_operand_count(step); j++)
            e->operands[j][i] = made[from[j]];
        if (step->kind != SF_STEP_STORE && step->kind != SF_STEP_GATHER)
            made[step->dst] = i;
    }
}

static void find_levels(emitter *e)
{
    for (uint32_t i = 0; i < e->loop->nsteps; i++) {
        const sf_loop_step *step = &e->loop->steps[i];
        bool one = true, transposed = e->shape == TURNED;
        for (int j = 0; j < text_operand_count(step); j++) {
            uint32_t from = e->operands[j][i];
            int after = e->level[from] + (e->loop->steps[from].kind == SF_STEP_FOLD);
            e->level[i] = after > e->level[i] ? after : e->level[i];
            one = one && e->is_one[from];
        }
        if (step->kind == SF_STEP_LOAD || step->kind == SF_STEP_INDEX)
            one = (e->loop->accesses[step->access].is_row && !transposed) ||
                  (e->loop->accesses[step->access].strides[e->along] == 0 &&
                   !sf_access_has_window(&e->loop->accesses[step->access], e->along));
        bool of_row = step->is_row || step->kind == SF_STEP_FOLD || step->kind == SF_STEP_EXPAND;
        one = one && !(transposed && step->kind == SF_STEP_FOLD);
        e->is_one[i] = e->vector == 1 || one || (of_row && !transposed);
    }
}

void text_begin(emitter *e)
{
    uint32_t nsteps = e->loop->nsteps;
    for (int j = 0; j < 3; j++)
        e->operands[j] = SF_ARRAY(&e->scratch, nsteps, uint32_t);
    e->level = SF_ARRAY(&e->scratch, nsteps, int);
    e->is_one = SF_ARRAY(&e->scratch, nsteps, bool);
    e->is_bf16 = SF_ARRAY(&e->scratch, nsteps, bool);
    e->wanted = SF_ARRAY(&e->scratch, nsteps, bool);
    e->is_ready = SF_ARRAY(&e->scratch, nsteps, bool);
    e->partial = SF_ARRAY(&e->scratch, nsteps, int64_t);
    e->in_room = SF_ARRAY(&e->scratch, nsteps, bool);
    e->in_tile = SF_ARRAY(&e->scratch, nsteps, bool);
}

void text_look(emitter *e)
{
    find_makers(e);
    find_levels(e);
    text_find_pairs(e);
}

/* How many neighbours a thread may take: they are contiguous in all operands and results, at places
 * that are a multiple of that many. Neighbours are elements of a row, or of a transposed loop,
 * which has more of them, rows. */
static bool suits_vector(const emitter *e, int vector)
{
    const sf_loop *loop = e->loop;
    bool transposed = e->shape == TURNED;
    int bytes = transposed ? 16 : 32;
    if (loop->dims[e->along] % vector != 0)
        return false;
    for (uint32_t i = 0; i < loop->nsteps; i++) {
        const sf_loop_step *step = &loop->steps[i];
        bool loads = step->kind == SF_STEP_LOAD;
        if (!loads && step->kind != SF_STEP_STORE)
            continue;
        const sf_access *access = &loop->accesses[step->access];
        const sf_view *view = loads ? &e->inst->in[access->view] : &e->inst->out[access->view];
        if (sf_access_has_window(access, e->along))
            return false;
        if ((access->is_row && !transposed) || (access->strides[e->along] == 0 && loads))
            continue;
        if (access->strides[e->along] != 1 || view->offset % vector != 0 ||
            vector * width_of(access->dtype) > bytes)
            return false;
        for (int d = 0; d < (access->is_row ? loop->split : loop->rank); d++)
            if (d != e->along && access->strides[d] % vector != 0 && loop->dims[d] > 1)
                return false;
    }
    return true;
}

int text_choose_vector(const emitter *e, int64_t threads)
{
    for (int vector = MOST_VECTOR; vector > 1; vector /= 2)
        if (threads / vector >= ENOUGH && suits_vector(e, vector))
            return vector;
    return 1;
}

/* The farthest element that anything is at. */
int64_t text_farthest(const sf_loop *loop)
{
    int64_t most = loop->rows * loop->columns;
    for (uint32_t i = 0; i < loop->naccesses; i++) {
        int64_t span = 0;
        for (int d = 0; d < loop->rank; d++) {
            int64_t stride = loop->accesses[i].strides[d];
            span += (stride < 0 ? -stride : stride) * loop->dims[d];
        }
        most = span > most ? span : most;
    }
    return most;
}

/* Steps */

static void put_operand(emitter *e, uint32_t step)
{
    PUT(e->is_one[step] ? "v%u" : "v%u[k]", step);
}

static void put_op(emitter *e, const sf_loop_step *step)
{
    bool is_plain = step->op == SF_VCOPY || step->op == SF_VSELECT ||
                    (step->op >= SF_VEQ && step->op <= SF_VGE);
    if (is_plain) {
        PUT("%s", sf_vop_name(step->op));
        return;
    }
    text_name(e, sf_vop_name(step->op));
    PUT("_%s", text_classes[step->class]);
}

static void put_conversion(emitter *e, const sf_loop_step *step)
{
    sf_vclass from = sf_vclass_of(step->dtype);
    bool is_unsigned = sf_is_unsigned(step->dtype) && sf_dtype_get(step->dtype)->bits >= 32;
    if (from == step->class)
        PUT("COPY");
    else
        PUT("%c%s_to_%s", is_unsigned ? 'u' : text_classes[from][0], text_classes[from] + 1,
            text_classes[step->class]);
}

/* The expression of a step that computes. */
static void put_value(emitter *e, uint32_t index)
{
    const sf_loop_step *step = &e->loop->steps[index];
    if (step->kind == SF_STEP_OP)
        put_op(e, step);
    else if (step->kind == SF_STEP_ROUND)
        PUT("round_%s", sf_type_name(step->dtype));
    else if (step->kind == SF_STEP_CONVERT)
        put_conversion(e, step);
    PUT("(");
    for (int j = 0; j < text_operand_count(step); j++) {
        PUT(j ? ", " : "");
        put_operand(e, e->operands[j][index]);
    }
    PUT(")");
}

static void put_tiled_load(emitter *e, uint32_t index)
{
    const sf_loop_step *step = &e->loop->steps[index];
    PUT("%s v%u = get_%s(tile%u[x * %d + y]);\n", text_classes[step->class], index,
        sf_type_name(e->loop->accesses[step->access].dtype), index, e->tile_pitch);
}

/* The constant outside of windows, which are the same for all elements of a vector. */
static void put_padded_load(emitter *e, uint32_t index)
{
    const sf_loop_step *step = &e->loop->steps[index];
    const sf_access *access = &e->loop->accesses[step->access];
    const char *type = sf_type_name(access->dtype), *class = text_classes[step->class];
    PUT("const int in%u = ", index);
    text_inside(e, access);
    if (e->is_one[index]) {
        PUT(";\n%s v%u = in%u ? LOAD(%s, p%u, ", class, index, index, type, access->view);
        text_offset(e, access);
        PUT(") : ");
    } else {
        PUT(";\nALIGNED(16) raw_%s m%u[%d]; if (in%u) { move_elements(m%u, SOME(const raw_%s, "
            "p%u, ",
            type, index, e->vector, index, index, type, access->view);
        text_offset(e, access);
        PUT(", %d), %" PRId64 "); }\n", e->vector, e->vector * width_of(access->dtype));
        PUT("%s v%u[%d]; UNROLL for (int k = 0; k < %d; k++) v%u[k] = in%u ? get_%s(m%u[k]) : ",
            class, index, e->vector, e->vector, index, index, type, index);
    }
    text_constant(e, step);
    PUT(";\n");
}

void text_load(emitter *e, uint32_t index)
{
    const sf_loop_step *step = &e->loop->steps[index];
    const sf_access *access = &e->loop->accesses[step->access];
    const char *type = sf_type_name(access->dtype);
    if (e->in_tile[index]) {
        put_tiled_load(e, index);
        return;
    }
    if (access->windows) {
        put_padded_load(e, index);
        return;
    }
    if (e->is_one[index]) {
        PUT("%s v%u = LOAD(%s, p%u, ", text_classes[step->class], index, type, access->view);
        text_offset(e, access);
        PUT(");\n");
        return;
    }
    if (e->is_bf16[index]) {
        PUT("ALIGNED(16) u32 w%u[%d]; move_elements(w%u, SOME(const raw_bf16, p%u, ", index,
            e->vector / 2, index, access->view);
        text_offset(e, access);
        PUT(", %d), %d);\n", e->vector, e->vector * 2);
        text_halves(e, index);
        return;
    }
    PUT("ALIGNED(16) raw_%s m%u[%d]; move_elements(m%u, SOME(const raw_%s, p%u, ", type, index,
        e->vector, index, type, access->view);
    text_offset(e, access);
    PUT(", %d), %" PRId64 ");\n", e->vector, e->vector * width_of(access->dtype));
    PUT("%s v%u[%d]; UNROLL for (int k = 0; k < %d; k++) v%u[k] = get_%s(m%u[k]);\n",
        text_classes[step->class], index, e->vector, e->vector, index, type, index);
}

static void put_store(emitter *e, uint32_t index)
{
    const sf_loop_step *step = &e->loop->steps[index];
    const sf_access *access = &e->loop->accesses[step->access];
    const char *type = sf_type_name(access->dtype);
    if ((access->is_row && e->shape != TURNED) || e->vector == 1) {
        PUT("STORE(%s, p%d, ", type, text_out_param(e, access));
        text_offset(e, access);
        PUT(", v%u);\n", e->operands[0][index]);
        return;
    }
    if (access->dtype == SF_BF16) {
        text_stored_pairs(e, index);
        return;
    }
    PUT("ALIGNED(16) raw_%s m%u[%d]; UNROLL for (int k = 0; k < %d; k++) m%u[k] = put_%s(", type,
        index, e->vector, e->vector, index, type);
    put_operand(e, e->operands[0][index]);
    PUT(");\nmove_elements(SOME(raw_%s, p%d, ", type, text_out_param(e, access));
    text_offset(e, access);
    PUT(", %d), m%u, %" PRId64 ");\n", e->vector, index, e->vector * width_of(access->dtype));
}

/* Where its access is. */
static void put_counter(emitter *e, uint32_t index)
{
    const sf_loop_step *step = &e->loop->steps[index];
    const sf_access *access = &e->loop->accesses[step->access];
    const char *type = text_classes[step->class];
    if (e->is_one[index]) {
        PUT("%s v%u = (%s)(", type, index, type);
        text_offset(e, access);
        PUT(");\n");
        return;
    }
    PUT("%s v%u[%d]; UNROLL for (int k = 0; k < %d; k++) v%u[k] = (%s)(", type, index, e->vector,
        e->vector, index, type);
    text_offset(e, access);
    PUT(" + k * (%s)%" PRId64 ");\n", e->index, access->strides[e->along]);
}

void text_computation(emitter *e, uint32_t index)
{
    const sf_loop_step *step = &e->loop->steps[index];
    if (step->kind == SF_STEP_INDEX) {
        put_counter(e, index);
        return;
    }
    if (e->is_one[index]) {
        PUT("%s v%u = ", variable_type(step), index);
        if (step->kind == SF_STEP_CONSTANT)
            text_constant(e, step);
        else
            put_value(e, index);
        PUT(";\n");
        return;
    }
    if (step->kind == SF_STEP_ROUND && step->dtype == SF_BF16 &&
        !e->is_one[e->operands[0][index]]) {
        text_rounded(e, index);
        return;
    }
    PUT("%s v%u[%d]; UNROLL for (int k = 0; k < %d; k++) v%u[k] = ", variable_type(step), index,
        e->vector, e->vector, index);
    put_value(e, index);
    PUT(";\n");
    text_joined(e, index);
}

bool text_is_row_step(const emitter *e, uint32_t index)
{
    const sf_loop_step *step = &e->loop->steps[index];
    if (step->kind == SF_STEP_LOAD || step->kind == SF_STEP_STORE)
        return e->loop->accesses[step->access].is_row;
    return step->is_row && step->kind != SF_STEP_FOLD;
}

/* Gathers and folds */

/* variable = combine(variable, operand), for each element of the vector. `spread`: one variable for each of them. */
void text_combination(emitter *e, uint32_t index, const char *variable, bool spread)
{
    char name[32];
    text_combine_name(&e->loop->steps[index], name, sizeof name);
    uint32_t from = e->operands[0][index];
    PUT("UNROLL for (int k = 0; k < %d; k++) %s%s = %s(%s%s, ", e->vector, variable,
        spread ? "[k]" : "", name, variable, spread ? "[k]" : "");
    put_operand(e, from);
    PUT(");\n");
}

/* Parts */

void text_want(emitter *e, uint32_t step)
{
    if (e->wanted[step])
        return;
    e->wanted[step] = true;
    if (e->loop->steps[step].kind == SF_STEP_FOLD || e->in_room[step])
        return; /* it has been done */
    for (int j = 0; j < text_operand_count(&e->loop->steps[step]); j++)
        text_want(e, e->operands[j][step]);
}

void text_want_nothing(emitter *e)
{
    memset(e->wanted, 0, e->loop->nsteps * sizeof *e->wanted);
}

static void put_guarded_store(emitter *e, uint32_t index)
{
    PUT("%s{\n", e->guard);
    put_store(e, index);
    PUT("}\n");
}

/* At divisions and other ops that branch to rare cases, and at stores, compilers move no load
 * ahead, and threads would wait for memory each time: so all is loaded first. */
void text_row_loads(emitter *e)
{
    for (uint32_t i = 0; i < e->loop->nsteps; i++)
        if (e->loop->steps[i].kind == SF_STEP_LOAD && text_is_row_step(e, i))
            text_load(e, i);
}

void text_element_loads(emitter *e)
{
    for (uint32_t i = 0; i < e->loop->nsteps; i++)
        if (e->loop->steps[i].kind == SF_STEP_LOAD && !text_is_row_step(e, i))
            text_load(e, i);
}

static bool is_wanted_now(const emitter *e, uint32_t index, bool rows_too)
{
    sf_step_kind kind = e->loop->steps[index].kind;
    return e->wanted[index] && !e->is_ready[index] && (rows_too || !text_is_row_step(e, index)) &&
           kind != SF_STEP_FOLD && kind != SF_STEP_GATHER;
}

/* Steps on elements that are wanted, stores among them. Those of rows are there before. */
void text_wanted(emitter *e, bool rows_too)
{
    const sf_loop *loop = e->loop;
    for (uint32_t i = 0; i < loop->nsteps; i++) {
        const sf_loop_step *step = &loop->steps[i];
        if (!is_wanted_now(e, i, rows_too))
            continue;
        if (e->in_room[i])
            PUT("%s v%u = room%u[c];\n", variable_type(step), i, i);
        else if (step->kind == SF_STEP_LOAD)
            text_load(e, i);
    }
    for (uint32_t i = 0; i < loop->nsteps; i++) {
        const sf_loop_step *step = &loop->steps[i];
        if (!is_wanted_now(e, i, rows_too) || e->in_room[i] || step->kind == SF_STEP_LOAD)
            continue;
        if (step->kind != SF_STEP_STORE)
            text_computation(e, i);
        else if (!loop->accesses[step->access].is_row && e->guard)
            put_guarded_store(e, i);
        else if (!loop->accesses[step->access].is_row)
            put_store(e, i);
    }
}

/* All that is computed of elements when so many folds have been done; constants are known. */
void text_elements(emitter *e, int level)
{
    for (uint32_t i = 0; i < e->loop->nsteps; i++) {
        sf_step_kind kind = e->loop->steps[i].kind;
        bool is_end = kind == SF_STEP_STORE || kind == SF_STEP_GATHER || kind == SF_STEP_FOLD ||
                      kind == SF_STEP_CONSTANT || kind == SF_STEP_LOAD;
        if (!is_end && e->level[i] == level && !text_is_row_step(e, i))
            text_computation(e, i);
    }
}

void text_stores(emitter *e)
{
    for (uint32_t i = 0; i < e->loop->nsteps; i++)
        if (e->loop->steps[i].kind == SF_STEP_STORE &&
            !e->loop->accesses[e->loop->steps[i].access].is_row)
            put_store(e, i);
}

/* `from` counts through dimensions first ... end - 1. */
void text_indices(emitter *e, const char *from, int first, int end)
{
    if (first >= end)
        return;
    PUT("%s rest_%d = %s;\n", e->index, first, from);
    for (int d = end - 1; d > first; d--)
        PUT("%s d%d = rest_%d %% (%s)%" PRId64 "; rest_%d /= (%s)%" PRId64 ";\n", e->index, d,
            first, e->index, e->loop->dims[d], first, e->index, e->loop->dims[d]);
    PUT("%s d%d = rest_%d;\n", e->index, first, first);
}

void text_want_ends(emitter *e)
{
    for (uint32_t i = 0; i < e->loop->nsteps; i++)
        if (e->loop->steps[i].kind == SF_STEP_STORE || e->loop->steps[i].kind == SF_STEP_GATHER)
            text_want(e, i);
}

/* A row that has no element of its own stores the values that are one for each of its rows. */
void text_row_stores(emitter *e, const char *condition)
{
    for (uint32_t i = 0; i < e->loop->nsteps; i++)
        if (e->loop->steps[i].kind == SF_STEP_STORE &&
            e->loop->accesses[e->loop->steps[i].access].is_row) {
            PUT("%s{\n", condition);
            put_store(e, i);
            PUT("}\n");
        }
}

void text_each_element(emitter *e)
{
    const sf_loop *loop = e->loop;
    text_want_nothing(e);
    text_want_ends(e);
    text_wanted(e, true);
    sf_buf first = {0};
    sf_buf_puts(&first, "if (1");
    for (int d = loop->split; d < loop->rank; d++)
        sf_buf_printf(&first, " && d%d == 0", d);
    sf_buf_puts(&first, ") ");
    text_row_stores(e, first.text);
    sf_buf_free(&first);
}
