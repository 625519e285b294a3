
#undef bits32
#undef float32
#undef bits64
#undef float64
#undef SIGN32
#undef SIGN64
#define SIGN32 0x80000000u
#define SIGN64 (1ull << 63)

#undef exp_f32
#undef expm1_f32
#undef log_f32
#undef log1p_f32
#undef tanh_f32
#undef erf_f32
#undef cbrt_f32
#undef pow_f32
#undef sin_f32
#undef cos_f32
#undef tan_f32
#undef atan2_f32
#define exp_f32(x) exp32(x)
#define expm1_f32(x) expm1_32(x)
#define log_f32(x) log32(x)
#define log1p_f32(x) log1p_32(x)
#define logistic_f32(x) logistic32(x)
#define tanh_f32(x) tanh32(x)
#define erf_f32(x) erf32(x)
#define cbrt_f32(x) cbrt32(x)
#define pow_f32(x, y) pow32(x, y)
#define sin_f32(x) (magnitude(x) < FAR_ANGLE ? near_sin(x) : (f32)sin((f64)(x)))
#define cos_f32(x) (magnitude(x) < FAR_ANGLE ? near_cos(x) : (f32)cos((f64)(x)))
#define tan_f32(x) (magnitude(x) < FAR_ANGLE ? near_tan(x) : (f32)tan((f64)(x)))
#define atan2_f32(x, y) ((f32)atan2((f64)(x), (f64)(y)))

/* Before a loop whose turns do not depend on each other: what is written may be what the same turn has read. */
#if defined(__clang__)
#define SEPARATE_STEPS _Pragma("clang loop vectorize(assume_safety) interleave(enable)")
#else
#define SEPARATE_STEPS _Pragma("GCC ivdep")
#endif

/* What is in a room, combined with what is in *sum (run/vec/vec.h). */
typedef void fold_room(void *sum, const void *room, s64 count);
