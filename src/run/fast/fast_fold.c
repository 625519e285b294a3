#include "run/fast/fast_fold.h"

#include <string.h>

typedef struct known {
    sf_vop op;
    sf_vfold fold;
} known;

static known known_of(sf_monoid monoid, bool is_unsigned)
{
    switch (monoid) {
    case SF_MONOID_ADD:
        return (known){SF_VADD, SF_VFOLD_SUM};
    case SF_MONOID_MUL:
        return (known){SF_VMUL, SF_VFOLD_PROD};
    case SF_MONOID_MIN:
        return is_unsigned ? (known){SF_VUMIN, SF_VFOLD_UMIN} : (known){SF_VMIN, SF_VFOLD_MIN};
    case SF_MONOID_MAX:
        return is_unsigned ? (known){SF_VUMAX, SF_VFOLD_UMAX} : (known){SF_VMAX, SF_VFOLD_MAX};
    case SF_MONOID_AND:
        return (known){SF_VAND, SF_VFOLD_AND};
    case SF_MONOID_OR:
        return (known){SF_VOR, SF_VFOLD_OR};
    case SF_MONOID_XOR:
        return (known){SF_VXOR, SF_VFOLD_XOR};
    case SF_MONOID_SECOND:
    case SF_MONOID_NONE:
    case SF_MONOID_COUNT:
        break;
    }
    SF_ASSERT(false);
    return (known){SF_VCOPY, SF_VFOLD_SUM};
}

sf_folding sf_folding_of(sf_monoid monoid, sf_dtype dtype)
{
    static const sf_dtype memory[] = {
        [SF_VF32] = SF_F32, [SF_VF64] = SF_F64, [SF_VI32] = SF_S32, [SF_VI64] = SF_S64};
    sf_vclass class = sf_vclass_of(dtype);
    known k = known_of(monoid, sf_is_unsigned(dtype));
    const sf_vec *vec = sf_vec_get();
    return (sf_folding){.vec = vec,
                        .monoid = monoid,
                        .dtype = dtype,
                        .memory = memory[class],
                        .class = class,
                        .combine = vec->ops[k.op][class],
                        .fold = vec->folds[k.fold][class]};
}

void sf_register_fill(sf_vclass class, sf_word word, int64_t count, sf_register *to)
{
    for (int64_t i = 0; i < count; i++)
        switch (class) {
        case SF_VF32:
            to->f32[i] = (float)word.real;
            break;
        case SF_VF64:
            to->f64[i] = word.real;
            break;
        case SF_VI32:
            to->i32[i] = (int32_t)word.integer;
            break;
        case SF_VI64:
        case SF_VCLASS_COUNT:
            to->i64[i] = (int64_t)word.integer;
            break;
        }
}

void sf_folding_one(const sf_folding *folding, void *to, const void *from)
{
    if (folding->monoid == SF_MONOID_ADD && folding->class == SF_VF32) {
        *(float *)to += *(const float *)from;
        return;
    }
    _Alignas(64) int64_t a[16] = {0}, b[16] = {0};
    size_t bytes = sf_dtype_get(folding->memory)->bytes;
    memcpy(a, to, bytes);
    memcpy(b, from, bytes);
    folding->combine(a, a, b, NULL, 1);
    memcpy(to, a, bytes);
}
