/* Words that loops are written with. */
#include <inttypes.h>
#include <string.h>

#include "run/text/loop_text.h"

int text_operand_count(const sf_loop_step *step)
{
    switch (step->kind) {
    case SF_STEP_LOAD:
    case SF_STEP_CONSTANT:
    case SF_STEP_INDEX:
        return 0;
    case SF_STEP_OP:
        return step->op >= SF_VSELECT ? 3 : step->op >= SF_VADD ? 2 : 1;
    case SF_STEP_STORE:
    case SF_STEP_ROUND:
    case SF_STEP_CONVERT:
    case SF_STEP_FOLD:
    case SF_STEP_EXPAND:
    case SF_STEP_GATHER:
        break;
    }
    return 1;
}

/* Whether the element at hand is one of the padded tensor. */
void text_inside(emitter *e, const sf_access *access)
{
    PUT("(1");
    for (int d = 0; d < e->loop->rank; d++) {
        if (!sf_access_has_window(access, d))
            continue;
        sf_window w = access->windows[d];
        int64_t last = w.low + (w.count - 1) * w.step;
        if (w.low > 0)
            PUT(" && d%d >= %" PRId64, d, w.low);
        if (last + 1 < e->loop->dims[d])
            PUT(" && d%d <= %" PRId64, d, last);
        if (w.step > 1)
            PUT(" && (d%d - (%s)%" PRId64 ") %% %" PRId64 " == 0", d, e->index, w.low, w.step);
    }
    PUT(")");
}

/* Of the element along a dimension. */
static void put_place(emitter *e, const sf_access *access, int d)
{
    if (!sf_access_has_window(access, d)) {
        PUT("d%d", d);
        return;
    }
    const sf_window *w = &access->windows[d];
    PUT(w->step > 1 ? "(d%d - (%s)%" PRId64 ") / %" PRId64 : "(d%d - (%s)%" PRId64 ")", d, e->index,
        w->low, w->step);
}

void text_offset(emitter *e, const sf_access *access)
{
    bool any = false;
    int end = access->is_row ? e->loop->split : e->loop->rank;
    for (int d = 0; d < end; d++) {
        if (access->strides[d] == 0 || e->loop->dims[d] == 1)
            continue;
        PUT(any ? " + " : "");
        put_place(e, access, d);
        if (access->strides[d] != 1)
            PUT(" * (%s)%" PRId64, e->index, access->strides[d]);
        any = true;
    }
    if (!any)
        PUT("0");
}

int text_out_param(const emitter *e, const sf_access *access)
{
    return (int)(e->inst->nin + access->view);
}

void text_constant(emitter *e, const sf_loop_step *step)
{
    float narrow = (float)step->constant.real;
    uint32_t bits32;
    uint64_t bits64;
    memcpy(&bits32, &narrow, sizeof bits32);
    memcpy(&bits64, &step->constant.real, sizeof bits64);
    if (step->class == SF_VF32)
        PUT("float32(0x%" PRIx32 "u)", bits32);
    else if (step->class == SF_VF64)
        PUT("float64(0x%" PRIx64 "ull)", bits64);
    else
        PUT("(%s)0x%" PRIx64 "ull", text_classes[step->class], (uint64_t)step->constant.integer);
}

void text_name(emitter *e, const char *name)
{
    for (; *name; name++)
        sf_buf_putc(e->out, (char)(*name >= 'A' && *name <= 'Z' ? *name + 'a' - 'A' : *name));
}

const char *text_combine_name(const sf_loop_step *step, char *text, size_t size)
{
    static const char *const names[SF_VFOLD_COUNT] = {
        [SF_VFOLD_SUM] = "add", [SF_VFOLD_PROD] = "mul",  [SF_VFOLD_MAX] = "max",
        [SF_VFOLD_MIN] = "min", [SF_VFOLD_UMAX] = "umax", [SF_VFOLD_UMIN] = "umin",
        [SF_VFOLD_AND] = "and", [SF_VFOLD_OR] = "or",     [SF_VFOLD_XOR] = "xor",
    };
    snprintf(text, size, "%s_%s", names[step->fold], text_classes[step->class]);
    return text;
}

/* The identity. For floats -0 would be, of a sum; but a sum is combined with its initial value, and
 * that is 0 or decides by itself. */
void text_identity(emitter *e, const sf_loop_step *step)
{
    bool real = step->class == SF_VF32 || step->class == SF_VF64;
    bool wide = step->class == SF_VF64 || step->class == SF_VI64;
    switch (step->fold) {
    case SF_VFOLD_PROD:
        PUT("1");
        return;
    case SF_VFOLD_MAX:
        PUT("%s", real ? (wide ? "-INF64" : "-INF32") : wide ? "(s64)SIGN64" : "(s32)SIGN32");
        return;
    case SF_VFOLD_MIN:
        PUT("%s", real ? (wide ? "INF64" : "INF32") : wide ? "(s64)~SIGN64" : "(s32)~SIGN32");
        return;
    case SF_VFOLD_AND:
    case SF_VFOLD_UMIN:
        PUT("-1");
        return;
    case SF_VFOLD_SUM:
        PUT("%s", real ? "-0.0f" : "0");
        return;
    case SF_VFOLD_OR:
    case SF_VFOLD_XOR:
    case SF_VFOLD_UMAX:
    case SF_VFOLD_COUNT:
        break;
    }
    PUT("0");
}
