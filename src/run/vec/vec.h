/* Vector kernels: the arithmetic of fused loops on short runs of elements in cache.
 *
 * A loop of a program works on registers: runs of up to a few thousand elements. A register has one
 * of four classes, whatever the type in memory: floats of up to 32 bits as float, f64 as double,
 * integers of up to 32 bits and booleans as int32_t (unsigned ones as their bits), 64-bit integers
 * as int64_t. Loads and stores convert between memory and registers; all arithmetic is done here.
 *
 * The kernels are compiled for several instruction sets, and the best that the processor has is
 * chosen once, when sf_vec_get is first called. All of them give the same bits for the same input, but
 * for the bits of a NaN. Functions of floats are within 2 ulp (of the float result) of the exact value.
 *
 * Integers narrower than 32 bits are sign- or zero-extended in a register, by their type, and an op
 * leaves them so only after `round`. SHR wants its first operand sign-extended, USHR zero-extended:
 * round to the type of the other signedness before. NEG, ABS, SIGN, SHR and POW take integers as
 * signed. */
#ifndef SF_RUN_VEC_VEC_H
#define SF_RUN_VEC_VEC_H

#include "prog/vop.h"

/* `count` elements. A register may start at any element; it may be overwritten past `count` up to the next
 * multiple of 16 elements. dst may be one of the operands if its elements have the same size, or else
 * overlap none. */
typedef void sf_vkernel(void *dst, const void *a, const void *b, const void *c, int64_t count);

/* One row: the combination of `count` elements of `a`, in a fixed order that depends on count
 * alone; returned in *dst, one element, already combined with its old value. */
typedef void sf_vreduce(void *dst, const void *a, int64_t count);

/* Memory to register: element i comes from src + i * stride elements of `dtype`; and back. Storing
 * rounds or wraps to the type. */
typedef void sf_vload(void *dst, const void *src, int64_t stride, int64_t count);
typedef void sf_vstore(void *dst, int64_t stride, const void *src, int64_t count);

/* Element i of the result is the sum over taps of a[a_at[n] + i] * b[b_at[n] + i], or with `repeat`
 * of a[a_at[n] + i] * b[b_at[n]]; added to the old value if `accumulate`. Every element is summed
 * in the order of the taps, however many are computed at a time. */
typedef struct sf_taps {
    int64_t count;
    const void *a, *b;
    const int64_t *a_at, *b_at;
    bool repeat;
} sf_taps;
typedef void sf_vtaps(void *dst, int64_t count, const sf_taps *taps, bool accumulate);

/* Several rows at once, of `count` elements, a multiple of 4: that of number r, dst_row apart, is the sum
 * over taps of a[a_at[n] + i] * b[b_at[n] + r * b_row]; in the order of the taps. */
typedef void sf_vtaprows(void *dst, int64_t dst_row, int64_t rows, int64_t count,
                         const sf_taps *taps, int64_t b_row);

/* A row of a softmax, exp(x scale - less), and of its gradient, weight (gradient - less) scale. Registers as above. */
typedef void sf_vsoften(float *dst, const float *x, float scale, float less, int64_t count);
typedef void sf_vslope(float *dst, const float *weights, const float *gradient, float scale,
                       float less, int64_t count);

typedef struct sf_vec {
    const char *name;                                   /* "avx512", "sve256", "base", ... */
    sf_vkernel *ops[SF_VOP_COUNT][SF_VCLASS_COUNT];     /* NULL: the class has no such op */
    sf_vreduce *folds[SF_VFOLD_COUNT][SF_VCLASS_COUNT]; /* along a row */
    sf_vtaps *taps[SF_VCLASS_COUNT];                    /* of floats */
    sf_vtaprows *taprows[SF_VCLASS_COUNT];
    sf_vsoften *soften; /* of floats */
    sf_vslope *slope;
    sf_vload *loads[SF_DTYPE_COUNT];
    sf_vstore *stores[SF_DTYPE_COUNT];
    sf_vkernel *round[SF_DTYPE_COUNT]; /* one operand: rounds a float register to the type, wraps an
                                          integer register; NULL where that changes nothing */
    sf_vkernel *converts[SF_VCLASS_COUNT][SF_VCLASS_COUNT];  /* [from][to], values; float to integer
                                                               truncates and saturates; NaN is 0 */
    sf_vkernel *uconverts[SF_VCLASS_COUNT][SF_VCLASS_COUNT]; /* the same, integers on either side
                                                                being unsigned */
} sf_vec;

/* The best set for this processor that SHEAF_VEC allows (run/vec/isa.h). */
const sf_vec *sf_vec_get(void);

/* Every set that this processor can run, for tests; NULL past the last. */
const sf_vec *sf_vec_nth(int index);

#endif
