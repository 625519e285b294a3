/* The arithmetic of fused loops: the operations of a loop's steps on registers.
 *
 * A loop works on registers: runs of up to a few thousand elements. A register has one of four classes,
 * whatever the type in memory: floats of up to 32 bits as float, f64 as double, integers of up to 32
 * bits and booleans as int32_t (unsigned ones as their bits), 64-bit integers as int64_t. */
#ifndef SF_PROG_VOP_H
#define SF_PROG_VOP_H

#include <stdbool.h>

#include "ir/dtype.h"

typedef enum sf_vclass { SF_VF32, SF_VF64, SF_VI32, SF_VI64, SF_VCLASS_COUNT } sf_vclass;

sf_vclass sf_vclass_of(sf_dtype dtype);

/* dst = op(a, b, c). `a`, `b`, `c` and `dst` are registers of one class, except where said otherwise.
 * Ops whose name starts with U take int32_t and int64_t as unsigned. NOT is bitwise, NOT_BOOL of 0 and 1.
 * The result of IS_FINITE and of the comparisons is int32_t, 0 or 1. SELECT is a ? b : c with a of
 * int32_t, 0 or 1. FMA is a * b + c, rounded twice, as mul and add are. */
/* clang-format off */
#define SF_VOPS(X)                                                                                 \
    X(COPY) X(NEG) X(ABS) X(SIGN) X(SQRT) X(RSQRT) X(CBRT) X(EXP) X(EXPM1) X(LOG) X(LOG1P)         \
    X(LOGISTIC) X(TANH) X(SIN) X(COS) X(TAN) X(ERF) X(FLOOR) X(CEIL) X(ROUND_AFZ) X(ROUND_EVEN)    \
    X(NOT) X(NOT_BOOL) X(IS_FINITE)                                                                \
    X(ADD) X(SUB) X(MUL) X(DIV) X(UDIV) X(REM) X(UREM) X(MAX) X(MIN) X(UMAX) X(UMIN) X(POW)        \
    X(ATAN2) X(AND) X(OR) X(XOR) X(SHL) X(SHR) X(USHR)                                             \
    X(EQ) X(NE) X(LT) X(LE) X(GT) X(GE) X(ULT) X(ULE) X(UGT) X(UGE)                                \
    X(SELECT) X(FMA)
/* clang-format on */

typedef enum sf_vop {
#define X(id) SF_V##id,
    SF_VOPS(X)
#undef X
        SF_VOP_COUNT
} sf_vop;

const char *sf_vop_name(sf_vop op);

/* A function of the mathematical library; and how many additions an op takes about as long as. */
bool sf_vop_is_function(sf_vop op);
double sf_vop_weight(sf_vop op);

/* How a row, or a column, becomes one element. */
typedef enum sf_vfold {
    SF_VFOLD_SUM,
    SF_VFOLD_PROD,
    SF_VFOLD_MAX,
    SF_VFOLD_MIN,
    SF_VFOLD_UMAX,
    SF_VFOLD_UMIN,
    SF_VFOLD_AND,
    SF_VFOLD_OR,
    SF_VFOLD_XOR,
    SF_VFOLD_COUNT
} sf_vfold;

#endif
