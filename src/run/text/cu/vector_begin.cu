
/* For processors: functions of one float that compilers make vectors of, those of run/vec/math.h. It has names of its own for
 * what stands above. */
#define bits32 vec_bits32
#define float32 vec_float32
#define bits64 vec_bits64
#define float64 vec_float64
#undef SIGN32
#undef SIGN64
