/* Numbers of bf16 in pairs: how they are loaded, rounded, added, multiplied and stored (run/text/text_loop.c). */
#include <string.h>

#include "run/text/loop_text.h"

static bool is_short_constant(const sf_loop_step *step)
{
    float narrow = (float)step->constant.real;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    return step->class == SF_VF32 && (bits & 0xffff) == 0;
}

/* Which steps make numbers of bf16: those that round to it, and those that only choose among such. */
static bool makes_bf16(const emitter *e, uint32_t index)
{
    const sf_loop_step *step = &e->loop->steps[index];
    bool all = true;
    int noperands = text_operand_count(step);
    for (int j = step->kind == SF_STEP_OP && step->op == SF_VSELECT; j < noperands; j++)
        all = all && e->is_bf16[e->operands[j][index]];
    switch (step->kind) {
    case SF_STEP_LOAD:
        return e->loop->accesses[step->access].dtype == SF_BF16 &&
               !e->loop->accesses[step->access].windows;
    case SF_STEP_ROUND:
        return step->dtype == SF_BF16;
    case SF_STEP_CONSTANT:
        return is_short_constant(step);
    case SF_STEP_OP:
        return all && step->class == SF_VF32 &&
               (step->op == SF_VCOPY || step->op == SF_VNEG || step->op == SF_VABS ||
                step->op == SF_VMAX || step->op == SF_VMIN || step->op == SF_VSELECT);
    case SF_STEP_CONVERT:
        return all && step->class == SF_VF32 && sf_vclass_of(step->dtype) == SF_VF32;
    case SF_STEP_EXPAND:
        return all;
    case SF_STEP_STORE:
    case SF_STEP_FOLD:
    case SF_STEP_GATHER:
    case SF_STEP_INDEX:
        break;
    }
    return false;
}

void text_find_pairs(emitter *e)
{
    for (uint32_t i = 0; e->vector > 1 && i < e->loop->nsteps; i++)
        e->is_bf16[i] = makes_bf16(e, i);
}

/* Floats of the pairs of a step. */
void text_halves(emitter *e, uint32_t index)
{
    PUT("f32 v%u[%d]; UNROLL for (int k = 0; k < %d; k++) v%u[k] = HALF_BF16(w%u[k / 2], k);\n",
        index, e->vector, e->vector, index, index);
}

/* A pair of a step's result, number j of its own; of one that is the same for all neighbours, twice
 * that. */
static void put_pair(emitter *e, uint32_t step)
{
    if (e->is_one[step])
        PUT("join_bf16(v%u, v%u)", step, step);
    else
        PUT("w%u[j]", step);
}

/* The pairs of a step that rounds: made of pairs if its operand is a sum or product of such. */
void text_rounded(emitter *e, uint32_t index)
{
    uint32_t from = e->operands[0][index];
    const sf_loop_step *step = &e->loop->steps[from];
    bool adds = step->kind == SF_STEP_OP && step->class == SF_VF32 &&
                (step->op == SF_VADD || step->op == SF_VSUB || step->op == SF_VMUL) &&
                e->is_bf16[e->operands[0][from]] && e->is_bf16[e->operands[1][from]];
    PUT("u32 w%u[%d]; UNROLL for (int j = 0; j < %d; j++) w%u[j] = ", index, e->vector / 2,
        e->vector / 2, index);
    if (adds) {
        text_name(e, sf_vop_name(step->op));
        PUT("_pair(");
        put_pair(e, e->operands[0][from]);
        PUT(", ");
        put_pair(e, e->operands[1][from]);
        PUT(");\n");
    } else {
        PUT("pack_bf16(v%u[2 * j], v%u[2 * j + 1]);\n", from, from);
    }
    text_halves(e, index);
}

void text_stored_pairs(emitter *e, uint32_t index)
{
    const sf_access *access = &e->loop->accesses[e->loop->steps[index].access];
    uint32_t from = e->operands[0][index];
    PUT("ALIGNED(16) u32 m%u[%d]; UNROLL for (int j = 0; j < %d; j++) m%u[j] = ", index,
        e->vector / 2, e->vector / 2, index);
    if (e->is_bf16[from])
        put_pair(e, from);
    else if (e->is_one[from])
        PUT("pack_bf16(v%u, v%u)", from, from);
    else
        PUT("pack_bf16(v%u[2 * j], v%u[2 * j + 1])", from, from);
    PUT(";\nmove_elements(SOME(raw_bf16, p%d, ", text_out_param(e, access));
    text_offset(e, access);
    PUT(", %d), m%u, %d);\n", e->vector, index, e->vector * 2);
}

void text_joined(emitter *e, uint32_t index)
{
    if (e->is_bf16[index] && !e->is_one[index])
        PUT("u32 w%u[%d]; UNROLL for (int j = 0; j < %d; j++) w%u[j] = join_bf16(v%u[2 * j], "
            "v%u[2 * j + 1]);\n",
            index, e->vector / 2, e->vector / 2, index, index, index);
}
