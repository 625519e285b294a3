/* The table of one set. Included once by each file that compiles a set, with SET_NAME defined. */
#ifndef SF_RUN_VEC_KERNELS_H
#define SF_RUN_VEC_KERNELS_H

#include "run/vec/soft.h"
#include "run/vec/taps.h"
#include "run/vec/vec_memory.h"
#include "run/vec/vec_ops.h"
#include "run/vec/vec_reduce.h"

#define ROW_ALL(id) [SF_V##id] = {f32_##id, f64_##id, i32_##id, i64_##id}
#define ROW_FLOATS(id) [SF_V##id] = {f32_##id, f64_##id}
#define ROW_LIBM(id, name) [SF_V##id] = {f32_##id, sf_vec_f64_##name}
#define ROW_INTEGERS(id) [SF_V##id] = {[SF_VI32] = i32_##id, [SF_VI64] = i64_##id}
#define FOLD_ALL(id) [SF_VFOLD_##id] = {f32_fold_##id, f64_fold_##id, i32_fold_##id, i64_fold_##id}
#define FOLD_INTEGERS(id) [SF_VFOLD_##id] = {[SF_VI32] = i32_fold_##id, [SF_VI64] = i64_fold_##id}

static const sf_vec set = {
    .name = SET_NAME,
    .taps = {[SF_VF32] = f32_taps, [SF_VF64] = f64_taps},
    .taprows = {[SF_VF32] = f32_taprows, [SF_VF64] = f64_taprows},
    .soften = f32_soften,
    .slope = f32_slope,
    .ops =
        {
            ROW_ALL(COPY),
            ROW_ALL(NEG),
            ROW_ALL(ABS),
            ROW_ALL(SIGN),
            ROW_FLOATS(SQRT),
            ROW_FLOATS(RSQRT),
            ROW_LIBM(CBRT, cbrt),
            ROW_LIBM(EXP, exp),
            ROW_LIBM(EXPM1, expm1),
            ROW_LIBM(LOG, log),
            ROW_LIBM(LOG1P, log1p),
            ROW_LIBM(LOGISTIC, logistic),
            ROW_LIBM(TANH, tanh),
            ROW_LIBM(SIN, sin),
            ROW_LIBM(COS, cos),
            ROW_LIBM(TAN, tan),
            ROW_LIBM(ERF, erf),
            ROW_FLOATS(FLOOR),
            ROW_FLOATS(CEIL),
            ROW_FLOATS(ROUND_AFZ),
            ROW_FLOATS(ROUND_EVEN),
            ROW_INTEGERS(NOT),
            [SF_VNOT_BOOL] = {[SF_VI32] = i32_NOT_BOOL},
            ROW_FLOATS(IS_FINITE),
            ROW_ALL(ADD),
            ROW_ALL(SUB),
            ROW_ALL(MUL),
            [SF_VDIV] = {f32_DIV, f64_DIV, i32_DIV, sf_vec_i64_div},
            ROW_INTEGERS(UDIV),
            [SF_VREM] = {sf_vec_f32_rem, sf_vec_f64_rem, i32_REM, sf_vec_i64_rem},
            ROW_INTEGERS(UREM),
            ROW_ALL(MAX),
            ROW_ALL(MIN),
            ROW_INTEGERS(UMAX),
            ROW_INTEGERS(UMIN),
            [SF_VPOW] = {f32_POW, sf_vec_f64_pow, sf_vec_i32_pow, sf_vec_i64_pow},
            [SF_VATAN2] = {sf_vec_f32_atan2, sf_vec_f64_atan2},
            ROW_INTEGERS(AND),
            ROW_INTEGERS(OR),
            ROW_INTEGERS(XOR),
            ROW_INTEGERS(SHL),
            ROW_INTEGERS(SHR),
            ROW_INTEGERS(USHR),
            ROW_ALL(EQ),
            ROW_ALL(NE),
            ROW_ALL(LT),
            ROW_ALL(LE),
            ROW_ALL(GT),
            ROW_ALL(GE),
            ROW_INTEGERS(ULT),
            ROW_INTEGERS(ULE),
            ROW_INTEGERS(UGT),
            ROW_INTEGERS(UGE),
            ROW_ALL(SELECT),
            ROW_ALL(FMA),
        },
    .folds =
        {
            FOLD_ALL(SUM),
            FOLD_ALL(PROD),
            FOLD_ALL(MAX),
            FOLD_ALL(MIN),
            FOLD_INTEGERS(UMAX),
            FOLD_INTEGERS(UMIN),
            FOLD_INTEGERS(AND),
            FOLD_INTEGERS(OR),
            FOLD_INTEGERS(XOR),
        },
#define X(id) [SF_##id] = sf_vec_load_##id,
    .loads = {SF_VEC_NARROW(X)[SF_PRED] = load_PRED, [SF_S2] = load_S2, [SF_S4] = load_S4,
              [SF_S8] = load_S8, [SF_S16] = load_S16, [SF_S32] = load_32, [SF_S64] = load_64,
              [SF_U2] = load_U2, [SF_U4] = load_U4, [SF_U8] = load_U8, [SF_U16] = load_U16,
              [SF_U32] = load_32, [SF_U64] = load_64, [SF_F16] = load_F16, [SF_BF16] = load_BF16,
              [SF_F32] = load_F32, [SF_F64] = load_F64},
#undef X
#define X(id) [SF_##id] = sf_vec_store_##id,
    .stores = {SF_VEC_NARROW(X)[SF_PRED] = store_PRED, [SF_S2] = store_S2, [SF_S4] = store_S4,
               [SF_S8] = store_S8, [SF_S16] = store_S16, [SF_S32] = store_32, [SF_S64] = store_64,
               [SF_U2] = store_U2, [SF_U4] = store_U4, [SF_U8] = store_U8, [SF_U16] = store_U16,
               [SF_U32] = store_32, [SF_U64] = store_64, [SF_F16] = store_F16,
               [SF_BF16] = store_BF16, [SF_F32] = store_F32, [SF_F64] = store_F64},
#undef X
#define X(id) [SF_##id] = sf_vec_round_##id,
    .round = {SF_VEC_NARROW(X)[SF_S2] = round_S2, [SF_S4] = round_S4, [SF_S8] = round_S8,
              [SF_S16] = round_S16, [SF_U2] = round_U2, [SF_U4] = round_U4, [SF_U8] = round_U8,
              [SF_U16] = round_U16, [SF_F16] = round_F16, [SF_BF16] = round_BF16},
#undef X
    .converts =
        {
            [SF_VF32] = {f32_COPY, convert_f32_f64, convert_f32_i32, convert_f32_i64},
            [SF_VF64] = {convert_f64_f32, f64_COPY, convert_f64_i32, convert_f64_i64},
            [SF_VI32] = {convert_i32_f32, convert_i32_f64, i32_COPY, convert_i32_i64},
            [SF_VI64] = {convert_i64_f32, convert_i64_f64, convert_i64_i32, i64_COPY},
        },
    .uconverts =
        {
            [SF_VF32] = {f32_COPY, convert_f32_f64, convert_f32_u32, convert_f32_u64},
            [SF_VF64] = {convert_f64_f32, f64_COPY, convert_f64_u32, convert_f64_u64},
            [SF_VI32] = {convert_u32_f32, convert_u32_f64, i32_COPY, convert_u32_i64},
            [SF_VI64] = {convert_u64_f32, convert_u64_f64, convert_i64_i32, i64_COPY},
        },
};

#endif
