
/* What kernels of single ops stand on: elements as words, 64 bits wide, as the oracle has them (op/words.h). Floats are
 * computed in double and integers modulo 2^64, and each result is rounded, or wrapped, once. An op NAME is r_NAME of
 * reals, z_NAME of complex numbers and i_NAME of integers. */

typedef struct cplx {
    f64 re, im;
} cplx;
typedef struct ALIGNED(8) raw_c64 {
    f32 re, im;
} raw_c64;
typedef struct ALIGNED(16) raw_c128 {
    f64 re, im;
} raw_c128;

DEVICE cplx cplx_of(f64 re, f64 im)
{
    cplx z;
    z.re = re;
    z.im = im;
    return z;
}

/* Elements to words and back */

#define wget_pred(x) ((s64)((x) != 0))
#define wput_pred(x) ((u8)((x) != 0))
#define wget_s2(x) ((s64)get_s2(x))
#define wput_s2(x) put_s2(x)
#define wget_s4(x) ((s64)get_s4(x))
#define wput_s4(x) put_s4(x)
#define wget_s8(x) ((s64)(x))
#define wput_s8(x) ((s8)(x))
#define wget_s16(x) ((s64)(x))
#define wput_s16(x) ((s16)(x))
#define wget_s32(x) ((s64)(x))
#define wput_s32(x) ((s32)(x))
#define wget_s64(x) (x)
#define wput_s64(x) ((s64)(x))
#define wget_u2(x) ((s64)get_u2(x))
#define wput_u2(x) put_u2(x)
#define wget_u4(x) ((s64)get_u4(x))
#define wput_u4(x) put_u4(x)
#define wget_u8(x) ((s64)(x))
#define wput_u8(x) ((u8)(x))
#define wget_u16(x) ((s64)(x))
#define wput_u16(x) ((u16)(x))
#define wget_u32(x) ((s64)(u32)(x))
#define wput_u32(x) ((s32)(x))
#define wget_u64(x) (x)
#define wput_u64(x) ((s64)(x))
#define wget_f4e2m1fn(x) wide_f4e2m1fn(x)
#define wput_f4e2m1fn(x) put_f4e2m1fn_wide(x)
#define wget_f6e2m3fn(x) wide_f6e2m3fn(x)
#define wput_f6e2m3fn(x) put_f6e2m3fn_wide(x)
#define wget_f6e3m2fn(x) wide_f6e3m2fn(x)
#define wput_f6e3m2fn(x) put_f6e3m2fn_wide(x)
#define wget_f8e3m4(x) wide_f8e3m4(x)
#define wput_f8e3m4(x) put_f8e3m4_wide(x)
#define wget_f8e4m3(x) wide_f8e4m3(x)
#define wput_f8e4m3(x) put_f8e4m3_wide(x)
#define wget_f8e4m3fn(x) wide_f8e4m3fn(x)
#define wput_f8e4m3fn(x) put_f8e4m3fn_wide(x)
#define wget_f8e4m3fnuz(x) wide_f8e4m3fnuz(x)
#define wput_f8e4m3fnuz(x) put_f8e4m3fnuz_wide(x)
#define wget_f8e4m3b11fnuz(x) wide_f8e4m3b11fnuz(x)
#define wput_f8e4m3b11fnuz(x) put_f8e4m3b11fnuz_wide(x)
#define wget_f8e5m2(x) wide_f8e5m2(x)
#define wput_f8e5m2(x) put_f8e5m2_wide(x)
#define wget_f8e5m2fnuz(x) wide_f8e5m2fnuz(x)
#define wput_f8e5m2fnuz(x) put_f8e5m2fnuz_wide(x)
#define wget_f8e8m0fnu(x) wide_f8e8m0fnu(x)
#define wput_f8e8m0fnu(x) put_f8e8m0fnu_wide(x)
#define wget_f16(x) ((f64)get_f16(x))
#define wput_f16(x) ((u16)encode_bits(x, 16, 5, 10, 15, IEEE))
#define wget_bf16(x) ((f64)get_bf16(x))
#define wput_bf16(x) put_bf16_wide(x)
#define wget_f32(x) ((f64)(x))
#define wput_f32(x) ((f32)(x))
#define wget_f64(x) (x)
#define wput_f64(x) (x)

DEVICE cplx wget_c64(raw_c64 x)
{
    return cplx_of((f64)x.re, (f64)x.im);
}

DEVICE raw_c64 wput_c64(cplx x)
{
    raw_c64 raw;
    raw.re = (f32)x.re;
    raw.im = (f32)x.im;
    return raw;
}

DEVICE cplx wget_c128(raw_c128 x)
{
    return cplx_of(x.re, x.im);
}

DEVICE raw_c128 wput_c128(cplx x)
{
    raw_c128 raw;
    raw.re = x.re;
    raw.im = x.im;
    return raw;
}

#define WLOAD(name, p, i) wget_##name(AT(const raw_##name, p, i))
#define WSTORE(name, p, i, x) (AT(raw_##name, p, i) = wput_##name(x))

#define WORD_ROUND(name, word)                                                                     \
    DEVICE word wround_##name(word x)                                                              \
    {                                                                                              \
        raw_##name raw = wput_##name(x);                                                           \
        return wget_##name(raw);                                                                   \
    }
WORD_ROUND(pred, s64)
WORD_ROUND(s2, s64)
WORD_ROUND(s4, s64)
WORD_ROUND(s8, s64)
WORD_ROUND(s16, s64)
WORD_ROUND(s32, s64)
WORD_ROUND(s64, s64)
WORD_ROUND(u2, s64)
WORD_ROUND(u4, s64)
WORD_ROUND(u8, s64)
WORD_ROUND(u16, s64)
WORD_ROUND(u32, s64)
WORD_ROUND(u64, s64)
WORD_ROUND(f4e2m1fn, f64)
WORD_ROUND(f6e2m3fn, f64)
WORD_ROUND(f6e3m2fn, f64)
WORD_ROUND(f8e3m4, f64)
WORD_ROUND(f8e4m3, f64)
WORD_ROUND(f8e4m3fn, f64)
WORD_ROUND(f8e4m3fnuz, f64)
WORD_ROUND(f8e4m3b11fnuz, f64)
WORD_ROUND(f8e5m2, f64)
WORD_ROUND(f8e5m2fnuz, f64)
WORD_ROUND(f8e8m0fnu, f64)
WORD_ROUND(f16, f64)
WORD_ROUND(bf16, f64)
WORD_ROUND(f32, f64)
WORD_ROUND(f64, f64)
WORD_ROUND(c64, cplx)
WORD_ROUND(c128, cplx)

/* Elements that are only moved. */
typedef u8 moved_1;
typedef u16 moved_2;
typedef u32 moved_4;
typedef u64 moved_8;
typedef struct ALIGNED(16) {
    u64 first, second;
} moved_16;

/* Reals */

#define r_abs(x) fabs(x)
#define r_cbrt(x) cbrt(x)
#define r_ceil(x) ceil(x)
#define r_cosine(x) cos(x)
#define r_exponential(x) exp(x)
#define r_exponential_minus_one(x) expm1(x)
#define r_floor(x) floor(x)
#define r_real(x) (x)
#define r_imag(x) 0.0
#define r_is_finite(x) ((s64)(fabs(x) < INF64))
#define r_log(x) log(x)
#define r_log_plus_one(x) log1p(x)
#define r_logistic(x) logistic_f64(x)
#define r_negate(x) (-(x))
#define r_round_nearest_afz(x) round(x)
#define r_round_nearest_even(x) rint(x)
#define r_rsqrt(x) (1 / sqrt(x))
#define r_sign(x) sign_f64(x)
#define r_sine(x) sin(x)
#define r_sqrt(x) sqrt(x)
#define r_tan(x) tan(x)
#define r_tanh(x) tanh(x)
#define r_add(x, y) ((x) + (y))
#define r_atan2(x, y) atan2(x, y)
#define r_divide(x, y) ((x) / (y))
#define r_maximum(x, y) max_f64(x, y)
#define r_minimum(x, y) min_f64(x, y)
#define r_multiply(x, y) ((x) * (y))
#define r_power(x, y) pow(x, y)
#define r_remainder(x, y) fmod(x, y)
#define r_subtract(x, y) ((x) - (y))
#define r_acos(x) acos(x)
#define r_acosh(x) acosh(x)
#define r_asin(x) asin(x)
#define r_asinh(x) asinh(x)
#define r_atan(x) atan(x)
#define r_atanh(x) atanh(x)
#define r_bessel_i1e(x) bessel_i1e(x)
#define r_cosh(x) cosh(x)
#define r_digamma(x) digamma(x)
#define r_erf(x) erf(x)
#define r_erf_inv(x) erf_inv(x)
#define r_erfc(x) erfc(x)
#define r_lgamma(x) log_gamma(x)
#define r_polygamma(x, y) polygamma(x, y)
#define r_sinh(x) sinh(x)
#define r_square(x) ((x) * (x))
#define r_zeta(x, y) zeta(x, y)

/* Integers: modulo 2^64; `width` and `is_unsigned` are those of the type. */

DEVICE u64 low_bits(s64 x, int width)
{
    return (u64)x & ~0ull >> (64 - width);
}

#define i_abs(x, width, is_unsigned) ((is_unsigned) ? (x) : abs_s64(x))
#define i_negate(x, width, is_unsigned) neg_s64(x)
#define i_not(x, width, is_unsigned) ((width) == 1 ? (s64)!(x) : ~(x))
#define i_sign(x, width, is_unsigned) ((is_unsigned) ? (s64)((x) != 0) : sign_s64(x))
#define i_popcnt(x, width, is_unsigned) ((s64)count_bits64(low_bits(x, width)))
#define i_square(x, width, is_unsigned) mul_s64(x, x)
#define i_add(x, y, width, is_unsigned) ((width) == 1 ? (x) | (y) : add_s64(x, y))
#define i_and(x, y, width, is_unsigned) ((x) & (y))
#define i_or(x, y, width, is_unsigned) ((x) | (y))
#define i_xor(x, y, width, is_unsigned) ((x) ^ (y))
#define i_multiply(x, y, width, is_unsigned) mul_s64(x, y)
#define i_subtract(x, y, width, is_unsigned) sub_s64(x, y)
#define i_divide(x, y, width, is_unsigned) ((is_unsigned) ? udiv_s64(x, y) : div_s64(x, y))
#define i_remainder(x, y, width, is_unsigned) ((is_unsigned) ? urem_s64(x, y) : rem_s64(x, y))
#define i_maximum(x, y, width, is_unsigned) ((is_unsigned) ? umax_s64(x, y) : max_s64(x, y))
#define i_minimum(x, y, width, is_unsigned) ((is_unsigned) ? umin_s64(x, y) : min_s64(x, y))

DEVICE s64 i_count_leading_zeros(s64 x, int width, int is_unsigned)
{
    u64 bits = low_bits(x, width);
    (void)is_unsigned;
    return (s64)leading_zeros64(bits) - (64 - width);
}

DEVICE s64 i_power(s64 x, s64 y, int width, int is_unsigned)
{
    if (!is_unsigned || y >= 0)
        return power_of_integer(x, y);
    s64 half = power_of_integer(x, (s64)((u64)y >> 1)); /* an exponent that would look negative */
    return mul_s64(mul_s64(half, half), y & 1 ? x : 1);
}

DEVICE s64 i_shift_left(s64 x, s64 y, int width, int is_unsigned)
{
    u64 distance = low_bits(y, width);
    return distance < (u64)width ? (s64)((u64)x << distance) : 0;
}

DEVICE s64 i_shift_right_logical(s64 x, s64 y, int width, int is_unsigned)
{
    u64 distance = low_bits(y, width);
    return distance < (u64)width ? (s64)(low_bits(x, width) >> distance) : 0;
}

DEVICE s64 i_shift_right_arithmetic(s64 x, s64 y, int width, int is_unsigned)
{
    u64 distance = low_bits(y, width);
    s64 extended = (s64)((u64)x << (64 - width)) >> (64 - width);
    return extended >> (distance < 64 ? distance : 63);
}

/* Complex numbers: branches and infinities as C has them (C11, annex G), mostly by Kahan's formulas (Branch cuts for
 * complex elementary functions, 1987) */

#define z_real(x) cplx_of((x).re, 0)
#define z_imag(x) cplx_of((x).im, 0)
#define z_negate(x) cplx_of(-(x).re, -(x).im)
#define z_abs(x) cplx_of(hypot((x).re, (x).im), 0)
#define is_infinite(x) (fabs(x) == INF64)
#define is_ordinary(x) (fabs(x) < INF64)
#define z_is_infinite(x) (is_infinite((x).re) || is_infinite((x).im))
#define z_is_ordinary(x) (is_ordinary((x).re) && is_ordinary((x).im))

/* Times the square root of minus one, and divided by it. */
#define z_transposed(x) cplx_of(-(x).im, (x).re)
#define z_transposed_back(x) cplx_of((x).im, -(x).re)

/* Sums and products; those of fft with narrow parts. */
DEVICE raw_c64 c_of(f32 re, f32 im)
{
    raw_c64 z;
    z.re = re;
    z.im = im;
    return z;
}

#define COMPLEX_ARITHMETIC(prefix, type, of)                                                       \
    DEVICE type prefix##_add(type x, type y)                                                       \
    {                                                                                              \
        return of(x.re + y.re, x.im + y.im);                                                       \
    }                                                                                              \
    DEVICE type prefix##_subtract(type x, type y)                                                  \
    {                                                                                              \
        return of(x.re - y.re, x.im - y.im);                                                       \
    }                                                                                              \
    DEVICE type prefix##_multiply(type x, type y)                                                  \
    {                                                                                              \
        return of(x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re);                           \
    }
COMPLEX_ARITHMETIC(z, cplx, cplx_of)
COMPLEX_ARITHMETIC(c, raw_c64, c_of)

#define z_square(x) z_multiply(x, x)

/* Infinite parts are one, others zero: the direction of an infinite number. */
DEVICE cplx z_direction(cplx x)
{
    return cplx_of(copysign(is_infinite(x.re) ? 1.0 : 0.0, x.re), copysign(is_infinite(x.im) ? 1.0 : 0.0, x.im));
}

/* A product in which an infinite factor makes an infinite result. */
LARGE cplx z_times(cplx x, cplx y)
{
    cplx z = z_multiply(x, y);
    if (z.re == z.re || z.im == z.im || !(z_is_infinite(x) || z_is_infinite(y)))
        return z;
    cplx a = z_is_infinite(x) ? z_direction(x) : x, b = z_is_infinite(y) ? z_direction(y) : y;
    a = cplx_of(a.re == a.re ? a.re : copysign(0.0, a.re), a.im == a.im ? a.im : copysign(0.0, a.im));
    b = cplx_of(b.re == b.re ? b.re : copysign(0.0, b.re), b.im == b.im ? b.im : copysign(0.0, b.im));
    z = z_multiply(a, b);
    return cplx_of(INF64 * z.re, INF64 * z.im);
}

LARGE cplx z_divide(cplx x, cplx y)
{
    f64 size = fmax(fabs(y.re), fabs(y.im));
    int power = size > 0 && size < INF64 ? ilogb(size) : 0;
    f64 c = ldexp(y.re, -power), d = ldexp(y.im, -power), whole = c * c + d * d;
    cplx z = cplx_of(ldexp((x.re * c + x.im * d) / whole, -power),
                     ldexp((x.im * c - x.re * d) / whole, -power));
    if (z.re == z.re || z.im == z.im)
        return z;
    if (y.re == 0 && y.im == 0 && (x.re == x.re || x.im == x.im))
        return cplx_of(copysign(INF64, y.re) * x.re, copysign(INF64, y.re) * x.im);
    if (z_is_infinite(x) && z_is_ordinary(y)) {
        cplx a = z_direction(x);
        return cplx_of(INF64 * (a.re * y.re + a.im * y.im), INF64 * (a.im * y.re - a.re * y.im));
    }
    if (z_is_infinite(y) && z_is_ordinary(x)) {
        cplx b = z_direction(y);
        return cplx_of(0.0 * (x.re * b.re + x.im * b.im), 0.0 * (x.im * b.re - x.re * b.im));
    }
    return z;
}

LARGE cplx z_exponential(cplx x)
{
    f64 size = exp(x.re);
    if (x.im == 0)
        return cplx_of(size, x.im);
    if (is_infinite(x.re) && !is_ordinary(x.im))
        return x.re > 0 ? cplx_of(INF64, NAN64) : cplx_of(0, 0);
    return cplx_of(size * cos(x.im), size * sin(x.im));
}

LARGE cplx z_log(cplx x)
{
    f64 size = hypot(x.re, x.im), large = fmax(fabs(x.re), fabs(x.im)), small = fmin(fabs(x.re), fabs(x.im));
    f64 re = size > 0.5 && size < 2 ? log1p((large - 1) * (large + 1) + small * small) / 2 : log(size);
    return cplx_of(re, atan2(x.im, x.re));
}

LARGE cplx z_sqrt(cplx x)
{
    f64 size = hypot(x.re, x.im);
    if (size == 0)
        return cplx_of(0, x.im);
    if (is_infinite(x.im))
        return cplx_of(INF64, x.im);
    if (is_infinite(x.re)) {
        f64 other = x.im == x.im ? 0.0 : NAN64;
        return x.re > 0 ? cplx_of(INF64, copysign(other, x.im)) : cplx_of(other, copysign(INF64, x.im));
    }
    f64 root = sqrt((size + fabs(x.re)) / 2), other = fabs(x.im) / (2 * root);
    return x.re >= 0 ? cplx_of(root, copysign(other, x.im)) : cplx_of(other, copysign(root, x.im));
}

LARGE cplx z_power(cplx x, cplx y)
{
    if (x.re == 0 && x.im == 0) {
        if (y.re == 0 && y.im == 0)
            return cplx_of(1, 0);
        return y.re > 0 ? cplx_of(0, 0) : cplx_of(NAN64, NAN64);
    }
    return z_exponential(z_times(y, z_log(x)));
}

#define z_cbrt(x) z_power(x, cplx_of(1.0 / 3, 0))

DEVICE cplx z_exponential_minus_one(cplx x)
{
    f64 half = sin(x.im / 2);
    return cplx_of(expm1(x.re) * cos(x.im) - 2 * half * half, exp(x.re) * sin(x.im));
}

DEVICE cplx z_log_plus_one(cplx x)
{
    if (fabs(x.re) > 0.5 || fabs(x.im) > 0.5)
        return z_log(cplx_of(1 + x.re, x.im));
    return cplx_of(log1p(x.re * (2 + x.re) + x.im * x.im) / 2, atan2(x.im, 1 + x.re));
}

DEVICE cplx z_logistic(cplx x)
{
    return z_divide(cplx_of(1, 0), z_add(cplx_of(1, 0), z_exponential(z_negate(x))));
}

DEVICE cplx z_rsqrt(cplx x)
{
    return z_divide(cplx_of(1, 0), z_sqrt(x));
}

DEVICE cplx z_sign(cplx x)
{
    f64 size = hypot(x.re, x.im);
    return size == 0 ? x : cplx_of(x.re / size, x.im / size);
}

LARGE cplx z_sinh(cplx x)
{
    if (x.im == 0)
        return cplx_of(sinh(x.re), x.im);
    if (x.re == 0)
        return cplx_of(x.re, sin(x.im));
    if (is_infinite(x.re) && !is_ordinary(x.im))
        return cplx_of(INF64, NAN64);
    return cplx_of(sinh(x.re) * cos(x.im), cosh(x.re) * sin(x.im));
}

LARGE cplx z_cosh(cplx x)
{
    if (x.im == 0 || x.re == 0)
        return cplx_of(cosh(x.re) * cos(x.im), copysign(0.0, x.re) * copysign(1.0, x.im));
    if (is_infinite(x.re) && !is_ordinary(x.im))
        return cplx_of(INF64, NAN64);
    return cplx_of(cosh(x.re) * cos(x.im), sinh(x.re) * sin(x.im));
}

LARGE cplx z_tanh(cplx x)
{
    if (is_infinite(x.re))
        return cplx_of(copysign(1.0, x.re), copysign(0.0, is_ordinary(x.im) ? sin(2 * x.im) : x.im));
    if (x.im == 0)
        return cplx_of(tanh(x.re), x.im);
    if (!is_ordinary(x.im))
        return cplx_of(x.re == 0 ? x.re : NAN64, NAN64);
    if (fabs(x.re) > 20)
        return cplx_of(copysign(1.0, x.re), 4 * sin(x.im) * cos(x.im) * exp(-2 * fabs(x.re)));
    f64 t = tan(x.im), s = sinh(x.re), beta = 1 + t * t, rho = sqrt(1 + s * s);
    f64 whole = 1 + beta * s * s;
    return cplx_of(beta * rho * s / whole, t / whole);
}

#define z_cosine(x) z_cosh(z_transposed(x))

DEVICE cplx z_sine(cplx x)
{
    if (is_infinite(x.im) && !is_ordinary(x.re))
        return cplx_of(NAN64, INF64);
    cplx y = z_sinh(z_transposed(x));
    return z_transposed_back(y);
}

DEVICE cplx z_tan(cplx x)
{
    cplx y = z_tanh(z_transposed(x));
    return z_transposed_back(y);
}

LARGE cplx z_asinh(cplx x)
{
    if (z_is_infinite(x))
        return cplx_of(copysign(INF64, x.re), atan2(x.im, fabs(x.re)));
    if (x.re != x.re && x.im == 0)
        return x;
    cplx z = z_transposed(x);
    cplx a = z_sqrt(cplx_of(1 - z.re, -z.im)), b = z_sqrt(cplx_of(1 + z.re, z.im));
    z = cplx_of(atan2(z.re, a.re * b.re - a.im * b.im), asinh(a.re * b.im - a.im * b.re));
    return z_transposed_back(z);
}

DEVICE cplx z_asin(cplx x)
{
    cplx y = z_asinh(z_transposed(x));
    return z_transposed_back(y);
}

LARGE cplx z_acos(cplx x)
{
    if (z_is_infinite(x))
        return cplx_of(fabs(atan2(x.im, x.re)), -copysign(INF64, x.im));
    if (x.re == 0 && x.im != x.im)
        return cplx_of(PI / 2, x.im);
    cplx a = z_sqrt(cplx_of(1 - x.re, -x.im)), b = z_sqrt(cplx_of(1 + x.re, x.im));
    return cplx_of(2 * atan2(a.re, b.re), asinh(b.re * a.im - b.im * a.re));
}

LARGE cplx z_acosh(cplx x)
{
    if (z_is_infinite(x))
        return cplx_of(INF64, atan2(x.im, x.re));
    if (x.re == 0 && x.im != x.im)
        return cplx_of(x.im, PI / 2);
    cplx a = z_sqrt(cplx_of(x.re - 1, x.im)), b = z_sqrt(cplx_of(x.re + 1, x.im));
    return cplx_of(asinh(a.re * b.re + a.im * b.im), 2 * atan2(a.im, b.re));
}

LARGE cplx z_atanh(cplx x)
{
    if (z_is_infinite(x))
        return cplx_of(copysign(0.0, x.re), x.im == x.im ? copysign(PI / 2, x.im) : x.im);
    if (x.re == 0 && x.im != x.im)
        return x;
    f64 far = (1 - x.re) * (1 - x.re) + x.im * x.im;
    return cplx_of(log1p(4 * x.re / far) / 4,
                   atan2(2 * x.im, (1 - x.re) * (1 + x.re) - x.im * x.im) / 2);
}

DEVICE cplx z_atan(cplx x)
{
    cplx y = z_atanh(z_transposed(x));
    return z_transposed_back(y);
}

/* Order, conversions, formats */

/* Numbers of a type in their total order, as integers. `has_sign`: sign and size. */
DEVICE s64 order_of_bits(u64 bits, int width, int has_sign, int lonely_nan)
{
    u64 sign = 1ull << (width - 1), size = bits & (sign - 1);
    if (!has_sign)
        return (s64)bits;
    if (!(bits & sign))
        return (s64)size;
    return size == 0 && lonely_nan ? (s64)~SIGN64 : -(s64)size - 1;
}

/* Truncates, saturates; NaN gives 0. */
DEVICE s64 real_to_signed(f64 x, int width)
{
    s64 most = (s64)~SIGN64 >> (64 - width);
    f64 limit = (f64)(1ull << (width - 1));
    if (x >= limit)
        return most;
    if (x <= -limit)
        return -most - 1;
    return x != x ? 0 : (s64)x;
}

DEVICE s64 real_to_unsigned(f64 x, int width)
{
    u64 most = ~0ull >> (64 - width);
    if (x >= 2 * (f64)(1ull << (width - 1)))
        return (s64)most;
    return x > 0 ? (s64)(u64)x : 0;
}

/* An integer as a double rounded to odd, so that rounding it again rounds once. */
LARGE f64 odd_real(s64 x, int is_unsigned)
{
    int negative = x < 0 && !is_unsigned;
    u64 size = negative ? 0 - (u64)x : (u64)x;
    int excess = size == 0 ? 0 : 64 - (int)leading_zeros64(size) - 53;
    if (excess > 0) {
        u64 lost = size & ((1ull << excess) - 1);
        size = (size >> excess | (lost != 0)) << excess;
    }
    return negative ? -(f64)size : (f64)size;
}

LARGE f64 round_format(f64 value, int exponent_bits, int mantissa_bits)
{
    u64 bits = bits64(value), sign = bits & SIGN64, size = bits & ~SIGN64;
    if (!(fabs(value) < INF64))
        return value;
    if (mantissa_bits < 52) {
        int drop = 52 - (mantissa_bits > 0 ? mantissa_bits : 0);
        size += (1ull << (drop - 1)) - 1 + (size >> drop & 1);
        size &= ~((1ull << drop) - 1);
    }
    if (exponent_bits < 11) {
        int bias = exponent_bits > 0 ? (1 << (exponent_bits - 1)) - 1 : 0;
        int exponent = (int)(size >> 52) - 1023;
        if (exponent > bias)
            size = 2047ull << 52;
        else if (exponent <= -bias)
            size = 0;
    }
    return float64(sign | size);
}

LARGE f64 reduce_precision(f64 value, int exponent, int mantissa, int own_exponent, int own_mantissa)
{
    if (exponent >= own_exponent && mantissa >= own_mantissa)
        return value;
    if (exponent < own_exponent)
        return round_format(value, exponent, mantissa);
    int lowest = 2 - (1 << (own_exponent - 1));
    if (own_exponent < 11 && fabs(value) < ldexp(1.0, lowest))
        return ldexp(rint(ldexp(value, mantissa - lowest)), lowest - mantissa);
    return round_format(value, 11, mantissa);
}

/* The number of a type next to x, towards y: through its bits. */
#define NEXT_AFTER(name, uint, x, y, to) /* the result in `to` */                                   \
    do {                                                                                           \
        f64 from_ = x, toward_ = y;                                                                \
        union {                                                                                    \
            raw_##name raw;                                                                        \
            uint bits;                                                                             \
        } both_;                                                                                   \
        if (from_ != from_ || toward_ != toward_) {                                                \
            to = NAN64;                                                                            \
        } else if (from_ == toward_) {                                                             \
            to = toward_;                                                                          \
        } else if (from_ == 0) {                                                                   \
            both_.bits = 1;                                                                        \
            to = copysign(wget_##name(both_.raw), toward_);                                        \
        } else {                                                                                   \
            int away_ = (toward_ > from_) == (from_ > 0);                                          \
            both_.raw = wput_##name(from_);                                                        \
            both_.bits = (uint)(away_ ? both_.bits + 1 : both_.bits - 1);                          \
            to = wget_##name(both_.raw);                                                           \
            if (!away_ && !(fabs(to) > 0))                                                         \
                to = copysign(0.0, from_);                                                         \
        }                                                                                          \
    } while (0)

/* Random bits (base/rng.h) */

LARGE void threefry_block(u32 k0, u32 k1, u64 at, u32 *out)
{
    const int by[8] = {13, 15, 26, 6, 17, 29, 16, 24};
    const u32 schedule[3] = {k0, k1, 0x1BD11BDAu ^ k0 ^ k1};
    u32 x0 = (u32)at + schedule[0], x1 = (u32)(at >> 32) + schedule[1];
    for (u32 group = 1; group <= 5; group++) {
        for (int i = 0; i < 4; i++) {
            int turn = by[(group - 1) % 2 * 4 + i];
            x0 += x1;
            x1 = (x1 << turn | x1 >> (32 - turn)) ^ x0;
        }
        x0 += schedule[group % 3];
        x1 += schedule[(group + 1) % 3] + group;
    }
    out[0] = x0;
    out[1] = x1;
}

LARGE void philox_block(u32 k0, u32 k1, u64 low, u64 high, u32 *out)
{
    u32 x0 = (u32)low, x1 = (u32)(low >> 32), x2 = (u32)high, x3 = (u32)(high >> 32);
    for (int round = 0; round < 10; round++) {
        u64 p0 = 0xD2511F53ull * x0, p1 = 0xCD9E8D57ull * x2;
        x0 = (u32)(p1 >> 32) ^ x1 ^ k0;
        x1 = (u32)p1;
        x2 = (u32)(p0 >> 32) ^ x3 ^ k1;
        x3 = (u32)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = x0;
    out[1] = x1;
    out[2] = x2;
    out[3] = x3;
}
