/* Common to the files of the vector kernels.
 *
 * kernels.h is the text of a set; vec_base.c, vec_avx2.c, vec_avx512.c, vec_sve256.c and
 * vec_sve512.c compile it, each with its own flags (see cmake/vectors.cmake). Functions that call
 * libm or the tables of ir/dtype.c for every element gain nothing from that: they are compiled
 * once, in slow.c, and every set points to them.
 *
 * No set uses fused multiply-add, not even where the processor has it, and every fold has the same
 * lanes. So all sets give the same bits. Functions that call libm are only as equal as libm is
 * between processors. */
#ifndef SF_RUN_VEC_SET_H
#define SF_RUN_VEC_SET_H

#include <string.h>

#include "run/vec/vec.h"

/* NULL when the file was compiled without the instructions. */
const sf_vec *sf_vec_set_base(void);
const sf_vec *sf_vec_set_avx2(void);
const sf_vec *sf_vec_set_avx512(void);
const sf_vec *sf_vec_set_sve256(void);
const sf_vec *sf_vec_set_sve512(void);

/* clang-format off */
/* double, by libm */
#define SF_VEC_SLOW_F64(X)                                                                         \
    X(cbrt) X(exp) X(expm1) X(log) X(log1p) X(logistic) X(tanh) X(sin) X(cos) X(tan) X(erf) X(rem) \
    X(pow) X(atan2)

/* Floats of up to 8 bits. */
#define SF_VEC_NARROW(X)                                                                           \
    X(F4E2M1FN) X(F6E2M3FN) X(F6E3M2FN) X(F8E3M4) X(F8E4M3) X(F8E4M3FN) X(F8E4M3FNUZ)              \
    X(F8E4M3B11FNUZ) X(F8E5M2) X(F8E5M2FNUZ) X(F8E8M0FNU)
/* clang-format on */

#define X(name) sf_vkernel sf_vec_f64_##name;
SF_VEC_SLOW_F64(X)
#undef X

sf_vkernel sf_vec_f32_rem, sf_vec_f32_atan2;
sf_vkernel sf_vec_i32_pow, sf_vec_i64_pow, sf_vec_i64_div, sf_vec_i64_rem;

/* The sine, cosine and tangent of one float, however far out. */
float sf_vec_far_sin(float x);
float sf_vec_far_cos(float x);
float sf_vec_far_tan(float x);

#define X(id)                                                                                      \
    sf_vload sf_vec_load_##id;                                                                     \
    sf_vstore sf_vec_store_##id;                                                                   \
    sf_vkernel sf_vec_round_##id;
SF_VEC_NARROW(X)
#undef X

#endif
