#include "run/comm/reduce_elements.h"

#include <stdalign.h>
#include <string.h>

static bool pick_op(sf_dtype dtype, sf_monoid monoid, sf_vop *out)
{
    bool real = sf_is_float(dtype), natural = sf_is_unsigned(dtype), truth = dtype == SF_PRED;
    switch (monoid) {
    case SF_MONOID_ADD:
        *out = truth ? SF_VOR : SF_VADD;
        return true;
    case SF_MONOID_MUL:
        *out = truth ? SF_VAND : SF_VMUL;
        return true;
    case SF_MONOID_MIN:
        *out = truth ? SF_VAND : natural ? SF_VUMIN : SF_VMIN;
        return true;
    case SF_MONOID_MAX:
        *out = truth ? SF_VOR : natural ? SF_VUMAX : SF_VMAX;
        return true;
    case SF_MONOID_AND:
        *out = SF_VAND;
        return !real;
    case SF_MONOID_OR:
        *out = SF_VOR;
        return !real;
    case SF_MONOID_XOR:
        *out = SF_VXOR;
        return !real;
    case SF_MONOID_NONE:
    case SF_MONOID_SECOND:
    case SF_MONOID_COUNT:
        break;
    }
    return false;
}

/* Products of complex numbers are the one thing that is not done part by part. */
#define MULTIPLY_PAIRS(function, part)                                                             \
    static void function(void *dst, const void *a, const void *b, const void *c, int64_t count)    \
    {                                                                                              \
        const part *x = a, *y = b;                                                                 \
        part *out = dst;                                                                           \
        (void)c;                                                                                   \
        for (int64_t i = 0; i < 2 * count; i += 2) {                                               \
            part real = x[i] * y[i] - x[i + 1] * y[i + 1];                                         \
            part imag = x[i] * y[i + 1] + x[i + 1] * y[i];                                         \
            out[i] = real;                                                                         \
            out[i + 1] = imag;                                                                     \
        }                                                                                          \
    }
MULTIPLY_PAIRS(multiply_c64, float)
MULTIPLY_PAIRS(multiply_c128, double)

static bool get_complex(sf_dtype dtype, sf_monoid monoid, sf_combine *out)
{
    *out = (sf_combine){.dtype = dtype,
                        .kernel = dtype == SF_C64 ? multiply_c64 : multiply_c128,
                        .bytes = sf_dtype_get(dtype)->bytes};
    return monoid == SF_MONOID_MUL;
}

bool sf_combine_get(sf_dtype dtype, sf_monoid monoid, sf_combine *out)
{
    sf_vop op;
    if (sf_is_complex(dtype))
        return get_complex(dtype, monoid, out);
    if (!pick_op(dtype, monoid, &op))
        return false;
    const sf_vec *vec = sf_vec_get();
    const sf_dtype_info *info = sf_dtype_get(dtype);
    bool plain = info->bits >= 32;
    *out = (sf_combine){
        .dtype = dtype,
        .kernel = vec->ops[op][sf_vclass_of(dtype)],
        .load = plain ? NULL : vec->loads[dtype],
        .store = plain ? NULL : vec->stores[dtype],
        .bytes = info->bytes,
    };
    return out->kernel != NULL;
}

/* Kernels work on 16 elements at a time and write all of them. */
enum { LANES = 16, RUN = 1024 };

static void combine_plain(const sf_combine *combine, char *dst, const char *a, const char *b,
                          int64_t count)
{
    int64_t whole = count & -(int64_t)LANES;
    if (whole > 0)
        combine->kernel(dst, a, b, NULL, whole);
    if (whole == count)
        return;
    alignas(64) char x[LANES * SF_ELEMENT_BYTES] = {0}, y[LANES * SF_ELEMENT_BYTES] = {0};
    size_t done = (size_t)(whole * combine->bytes), rest = (size_t)(count * combine->bytes) - done;
    memcpy(x, a + done, rest);
    memcpy(y, b + done, rest);
    combine->kernel(x, x, y, NULL, count - whole);
    memcpy(dst + done, x, rest);
}

static void combine_loaded(const sf_combine *combine, char *dst, const char *a, const char *b,
                           int64_t count)
{
    alignas(64) float x[RUN + LANES], y[RUN + LANES]; /* or int32_t */
    memset(x, 0, sizeof x);
    memset(y, 0, sizeof y);
    for (int64_t first = 0; first < count; first += RUN) {
        int64_t some = count - first < RUN ? count - first : RUN, at = first * combine->bytes;
        combine->load(x, a + at, 1, some);
        combine->load(y, b + at, 1, some);
        combine->kernel(x, x, y, NULL, some);
        combine->store(dst + at, 1, x, some);
    }
}

void sf_combine_run(const sf_combine *combine, void *dst, const void *a, const void *b,
                    int64_t count)
{
    if (combine->load)
        combine_loaded(combine, dst, a, b, count);
    else
        combine_plain(combine, dst, a, b, count);
}
