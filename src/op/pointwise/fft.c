/* fft: the discrete Fourier transform over the last dimensions, with the four kinds of StableHLO.
 *
 *     FFT    complex -> complex   sum over n of x[n] exp(-2 pi i k n / N)
 *     IFFT   complex -> complex   the inverse: the other sign, divided by N
 *     RFFT   real -> complex      of the last dimension without mirror images: N / 2 + 1 of N
 *     IRFFT  complex -> real      the inverse of that
 *
 * Every dimension is transformed by itself, in double. A length that is no power of two goes
 * through a convolution of one that is (Bluestein 1970). The operand of IRFFT needs no symmetry:
 * the real part of the result is taken. */
#include <math.h>

#include "op/pointwise/complex_ops.h"
#include "op/util.h"

enum { FFT_TYPE, FFT_LENGTH, NATTRS };

static const sf_attrdef fft_attrs[NATTRS] = {
    [FFT_TYPE] = {.name = "fft_type",
                  .key = "type",
                  .kind = SF_ATTR_TEXT,
                  .prefix = "#stablehlo<fft_type ",
                  .required = true},
    [FFT_LENGTH] = {.name = "fft_length", .key = "length", .kind = SF_ATTR_INTS, .required = true},
};

typedef struct kind {
    const char *name;
    bool inverse, real_in, real_out;
} kind;

static const kind kinds[] = {
    {"FFT", false, false, false},
    {"IFFT", true, false, false},
    {"RFFT", false, true, false},
    {"IRFFT", true, false, true},
};

static const kind *kind_of(const sf_op *op)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].name, sf_op_text(op, FFT_TYPE)) == 0)
            return &kinds[i];
    return NULL;
}

/* The size of transformed dimension i on a side whose numbers are complex, or real, in the end. */
static int64_t length_on_side(sf_ints length, int i, bool is_halved)
{
    return is_halved && i == length.count - 1 ? length.at[i] / 2 + 1 : length.at[i];
}

static sf_status infer_fft(const sf_op *op, const sf_type **out, sf_diag *diag)
{
    const sf_type *in = op->in[0];
    const kind *how = kind_of(op);
    sf_ints length = sf_op_ints(op, FFT_LENGTH);
    int first = in->rank - length.count;
    if (!how)
        return SF_OP_FAIL(op, diag, "the type is FFT, IFFT, RFFT or IRFFT, not '%.40s'",
                          sf_op_text(op, FFT_TYPE));
    sf_dtype dtype = in->dtype;
    bool fits = how->real_in ? sf_complex_of(in->dtype, &dtype) : sf_is_complex(in->dtype);
    if (!fits)
        return SF_OP_FAIL(op, diag, "%s is not defined on elements of type %s", how->name,
                          sf_dtype_get(in->dtype)->name);
    if (length.count < 1 || first < 0)
        return SF_OP_FAIL(op, diag, "%d dimensions of a tensor of rank %d cannot be transformed",
                          length.count, in->rank);
    int64_t dims[SF_MAX_RANK];
    memcpy(dims, in->dims, (size_t)in->rank * sizeof *dims);
    for (int i = 0; i < length.count; i++) {
        int64_t wanted = length_on_side(length, i, how->real_out);
        if (length.at[i] < 0 || (in->dims[first + i] != wanted && in->count > 0))
            return SF_OP_FAIL(op, diag,
                              "dimension %d has size %" PRId64
                              ", but a transform of length %" PRId64 " takes %" PRId64,
                              first + i, in->dims[first + i], length.at[i], wanted);
        dims[first + i] = length_on_side(length, i, how->real_in);
    }
    out[0] = sf_type_get(op->pool, how->real_out ? sf_part_of(dtype) : dtype, in->rank, dims);
    return out[0] ? SF_OK : SF_OP_FAIL(op, diag, "the result is too large");
}

static void factors_fft(const sf_op *op, sf_factoring *out)
{
    int first = op->in[0]->rank - sf_op_ints(op, FFT_LENGTH).count;
    for (int d = 0; d < op->in[0]->rank; d++) {
        if (d >= first) {
            sf_factor_whole(out, 0, d, op->in[0]->dims[d]);
            sf_factor_whole(out, 1, d, op->out[0]->dims[d]);
            continue;
        }
        int factor = sf_factor_add(out, op->in[0]->dims[d], SF_MAP, SF_MONOID_NONE);
        sf_factor_walk(out, 0, d, factor);
        sf_factor_walk(out, 1, d, factor);
    }
}

/* 5 N log2 N, as such transforms are counted; of real numbers half of that. */
static double flops_fft(const sf_op *op)
{
    const kind *how = kind_of(op);
    sf_ints length = sf_op_ints(op, FFT_LENGTH);
    double points = 1;
    for (int i = 0; i < length.count; i++)
        points *= (double)length.at[i];
    double batch = 1;
    for (int d = 0; d < op->in[0]->rank - length.count; d++)
        batch *= (double)op->in[0]->dims[d];
    double flops = points > 1 ? 5 * batch * points * log2(points) : 0;
    return how->real_in || how->real_out ? flops / 2 : flops;
}

/* exp(2 pi i turn / whole), with an angle that is reduced before it is rounded. */
static sf_complex unit_root(int64_t turn, int64_t whole)
{
    static const double two_pi = 6.28318530717958647692;
    turn %= whole;
    double angle = two_pi * ((double)turn / (double)whole);
    return sf_complex_make(cos(angle), sin(angle));
}

/* Of a length that is a power of two: reorders by reversed bits, then joins pairs of halves. */
static void transform_power(sf_complex *x, int64_t n, bool inverse)
{
    for (int64_t i = 1, j = 0; i < n; i++) {
        int64_t bit = n >> 1;
        for (; j & bit; bit >>= 1)
            j ^= bit;
        j ^= bit;
        if (i < j) {
            sf_complex swapped = x[i];
            x[i] = x[j];
            x[j] = swapped;
        }
    }
    for (int64_t size = 2; size <= n; size *= 2)
        for (int64_t k = 0; k < size / 2; k++) {
            sf_complex root = unit_root(inverse ? k : -k, size);
            for (int64_t i = k; i < n; i += size) {
                sf_complex odd = sf_complex_mul(x[i + size / 2], root);
                x[i + size / 2] = x[i] - odd;
                x[i] += odd;
            }
        }
}

static int64_t padded_length(int64_t n)
{
    int64_t padded = 1;
    while (padded < 2 * n)
        padded *= 2;
    return padded;
}

/* k n = (k^2 + n^2 - (k - n)^2) / 2, so the sum is a convolution with exp(pi i n^2 / N). `work` has room for
 * two of the padded length. */
static void transform_any(sf_complex *x, int64_t n, bool inverse, sf_complex *work)
{
    int64_t padded = padded_length(n), sign = inverse ? 1 : -1;
    sf_complex *a = work, *b = work + padded;
    for (int64_t i = 0; i < 2 * padded; i++)
        work[i] = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t square = i * i % (2 * n);
        a[i] = sf_complex_mul(x[i], unit_root(sign * square, 2 * n));
        b[i] = unit_root(-sign * square, 2 * n);
        if (i > 0)
            b[padded - i] = b[i];
    }
    transform_power(a, padded, false);
    transform_power(b, padded, false);
    for (int64_t i = 0; i < padded; i++)
        a[i] = sf_complex_mul(a[i], b[i]);
    transform_power(a, padded, true);
    for (int64_t i = 0; i < n; i++) {
        int64_t square = i * i % (2 * n);
        x[i] = sf_complex_mul(a[i], unit_root(sign * square, 2 * n)) / (double)padded;
    }
}

static void transform_line(sf_complex *line, int64_t n, bool inverse, sf_complex *work)
{
    if ((n & (n - 1)) == 0)
        transform_power(line, n, inverse);
    else
        transform_any(line, n, inverse, work);
    for (int64_t i = 0; inverse && i < n; i++)
        line[i] /= (double)n;
}

/* The transform of a box of `rank` dimensions along one of them. `line` has room for one line and the work. */
static void transform_dim(sf_complex *box, int rank, const int64_t *dims, int dim, bool inverse,
                          sf_complex *line)
{
    int64_t n = dims[dim], stride = 1, count = 1;
    for (int d = 0; d < rank; d++) {
        count *= dims[d];
        stride *= d > dim ? dims[d] : 1;
    }
    for (int64_t at = 0; at < count / n; at++) {
        sf_complex *first = box + at / stride * stride * n + at % stride;
        for (int64_t i = 0; i < n; i++)
            line[i] = first[i * stride];
        transform_line(line, n, inverse, line + n);
        for (int64_t i = 0; i < n; i++)
            first[i * stride] = line[i];
    }
}

/* The upper half of the last dimension, from the lower one: element k is the conjugate of element -k, in all
 * dimensions. */
static void mirror_box(sf_complex *box, int rank, const int64_t *dims)
{
    int64_t index[SF_MAX_RANK] = {0}, mirror[SF_MAX_RANK], at = 0;
    do {
        for (int d = 0; d < rank; d++)
            mirror[d] = index[d] == 0 ? 0 : dims[d] - index[d];
        if (index[rank - 1] > dims[rank - 1] / 2) {
            sf_complex other = box[sf_flat_index(rank, dims, mirror)];
            box[at] = sf_complex_make(sf_complex_real(other), -sf_complex_imag(other));
        }
        at++;
    } while (sf_next_index(rank, dims, index));
}

/* Copies the lines of the last dimension from a box with lines of one length to one of another. */
static void copy_lines(const sf_complex *from, int64_t from_length, sf_complex *to,
                       int64_t to_length, int64_t lines)
{
    int64_t shared = from_length < to_length ? from_length : to_length;
    for (int64_t i = 0; i < lines; i++)
        for (int64_t k = 0; k < shared; k++)
            to[i * to_length + k] = from[i * from_length + k];
}

static void transform_box(const kind *how, sf_ints length, sf_complex *box, sf_complex *line)
{
    if (how->real_out)
        mirror_box(box, length.count, length.at);
    for (int i = length.count - 1; i >= 0; i--)
        transform_dim(box, length.count, length.at, i, how->inverse, line);
}

static sf_status eval_fft(sf_eval *eval, const sf_op *op, const sf_tensor *in, sf_tensor *out)
{
    if (out->type->count == 0 || in->type->count == 0)
        return SF_OK;
    const kind *how = kind_of(op);
    sf_ints length = sf_op_ints(op, FFT_LENGTH);
    int64_t points = 1, longest = 1;
    for (int i = 0; i < length.count; i++) {
        points *= length.at[i];
        longest = length.at[i] > longest ? length.at[i] : longest;
    }
    int last = in->type->rank - 1;
    int64_t n = length.at[length.count - 1], lines = points / n;
    int64_t in_length = in->type->dims[last], out_length = out->type->dims[last];
    sf_mark mark = sf_arena_mark(&eval->scratch);
    sf_complex *box = SF_ARRAY(&eval->scratch, points, sf_complex);
    sf_complex *side = SF_ARRAY(&eval->scratch, points, sf_complex);
    sf_complex *line = SF_ARRAY(&eval->scratch, longest + 2 * padded_length(longest), sf_complex);
    for (int64_t b = 0; b < out->type->count / (lines * out_length); b++) {
        sf_complex_load(in->type->dtype, in->data, b * lines * in_length, lines * in_length, side);
        copy_lines(side, in_length, box, n, lines);
        transform_box(how, length, box, line);
        copy_lines(box, n, side, out_length, lines);
        sf_complex_store(out->type->dtype, out->data, b * lines * out_length, lines * out_length,
                         side);
    }
    sf_arena_reset(&eval->scratch, mark);
    return SF_OK;
}

/* A box twice, and a line, padded to a power of two, twice. */
static double scratch_fft(const sf_op *op)
{
    return 11 * 2 * sf_scratch_words(op);
}

const sf_opdef sf_op_fft = {
    .name = "fft",
    .dialect = "stablehlo",
    .hlo = "fft",
    .doc = "The discrete Fourier transform over the last dimensions, or its inverse.",
    .id = SF_OP_FFT,
    .form = SF_FORM_OPERANDS,
    .min_operands = 1,
    .max_operands = 1,
    .nresults = 1,
    .attrs = fft_attrs,
    .nattrs = NATTRS,
    .infer = infer_fft,
    .factors = factors_fft,
    .linear = sf_linear_first,
    .flops = flops_fft,
    .eval = eval_fft,
    .cost = SF_COST_HEAVY,
    .scratch = scratch_fft,
    .sample =
        {.arguments = "%a: tensor<3x4x8xcomplex<f32>>",
         .use = "%r = stablehlo.fft %a, type = FFT, length = [8] : (tensor<3x4x8xcomplex<f32>>) -> "
                "tensor<3x4x8xcomplex<f32>>",
         .results = "%r",
         .types = "tensor<3x4x8xcomplex<f32>>"},
};
