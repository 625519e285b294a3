/* fft: dimension by dimension, and each in stages by the factors of its length (Stockham: no stage needs another order). A thread has
 * the elements of one small transform in registers; memory is read and written once a stage. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "op/op.h"
#include "op/slots.h"
#include "run/text/library_kernel.h"

enum { FFT_TYPE, FFT_LENGTH };

enum { MOST_RADIX = 16, MOST_STAGES = 64 };

#define TURN 6.28318530717958647692

typedef struct fourier {
    bool inverse, real_in, real_out;
    int rank;
    const int64_t *length;
    const char *complex; /* the type between stages */
    bool is_narrow;      /* of two f32 */
} fourier;

/* A transform of `radix` elements, at the end of which those of `done * radix` are transformed. The last dimension of real
 * numbers has fewer elements in memory, of complex ones: the others are their mirror images. */
typedef struct stage {
    int dim;
    int64_t radix, done;
    int64_t from, to; /* elements in memory of the dimension before and after it */
    bool is_last;     /* of the dimension */
} stage;

static int64_t radix_of(int64_t length)
{
    for (int64_t r = MOST_RADIX; r > 1; r /= 2)
        if (length % r == 0)
            return r;
    for (int64_t r = 3; r * r <= length; r += 2)
        if (length % r == 0)
            return r;
    return length;
}

static int add_stages(const fourier *f, const sf_op *op, int dim, stage *out)
{
    int count = 0, last = op->in[0]->rank - 1;
    int64_t n = f->length[dim], done = 1;
    do {
        int64_t radix = radix_of(n / done);
        out[count++] = (stage){.dim = dim, .radix = radix, .done = done, .from = n, .to = n};
        done *= radix;
    } while (done < n);
    out[count - 1].is_last = true;
    if (dim == f->rank - 1) {
        out[0].from = op->in[0]->dims[last];
        out[count - 1].to = op->out[0]->dims[last];
    }
    return count;
}

/* In registers ------------------------------------------------------------------------------------ */

/* The words of numbers in registers: numbers of f32 are not made wider. */
typedef struct words {
    const char *type, *of, *add, *subtract, *multiply;
} words;

static words words_of(const fourier *f)
{
    static const words wide = {"cplx", "cplx_of", "z_add", "z_subtract", "z_multiply"},
                       narrow = {"raw_c64", "c_of", "c_add", "c_subtract", "c_multiply"};
    return f->is_narrow ? narrow : wide;
}

/* x0, x1, ... of an odd number become y0, y1, ... */
static void put_direct(sf_calling *c, const words *w, int64_t radix, double sign)
{
    for (int64_t k = 0; k < radix; k++) {
        SF_PUT(c, "%s y%" PRId64 " = x0;\n", w->type, k);
        for (int64_t j = 1; j < radix; j++) {
            double angle = sign * TURN * (double)(j * k % radix) / (double)radix;
            SF_PUT(c, "y%" PRId64 " = %s(y%" PRId64 ", %s(x%" PRId64 ", %s(%.17g, %.17g)));\n", k,
                   w->add, k, w->multiply, j, w->of, cos(angle), sin(angle));
        }
    }
}

/* A rotation by a quarter is no product. */
static void put_turned(sf_calling *c, const words *w, int64_t which, int64_t k, int64_t radix,
                       double sign)
{
    double angle = sign * TURN * (double)k / (double)radix;
    if (4 * k == radix)
        SF_PUT(c, "x%" PRId64 " = %s(%sx%" PRId64 ".im, %sx%" PRId64 ".re);\n", which, w->of,
               sign > 0 ? "-" : "", which, sign > 0 ? "" : "-", which);
    else
        SF_PUT(c, "x%" PRId64 " = %s(x%" PRId64 ", %s(%.17g, %.17g));\n", which, w->multiply, which,
               w->of, cos(angle), sin(angle));
}

/* x at first, first + step, ...: of a power of two. Halves are transformed and joined; the result is where `at` says. */
static void put_halves(sf_calling *c, const words *w, int64_t radix, int64_t first, int64_t step,
                       double sign, int64_t *at)
{
    int64_t even[MOST_RADIX], odd[MOST_RADIX], half = radix / 2;
    if (radix == 1) {
        at[0] = first;
        return;
    }
    put_halves(c, w, half, first, 2 * step, sign, even);
    put_halves(c, w, half, first + step, 2 * step, sign, odd);
    for (int64_t k = 0; k < half; k++) {
        if (k > 0)
            put_turned(c, w, odd[k], k, radix, sign);
        SF_PUT(c,
               "t = x%" PRId64 "; x%" PRId64 " = %s(t, x%" PRId64 "); x%" PRId64
               " = %s(t, x%" PRId64 ");\n",
               even[k], even[k], w->add, odd[k], odd[k], w->subtract, odd[k]);
        at[k] = even[k];
        at[k + half] = odd[k];
    }
}

/* Stages ------------------------------------------------------------------------------------------ */

/* The element with that number in the dimension, from memory. */
static void put_load(sf_calling *c, const fourier *f, const stage *s, bool first, bool is_narrow,
                     const char *to, const char *number)
{
    bool is_minor = s->dim == f->rank - 1, mirrors = f->real_out && is_minor && s->done == 1;
    int64_t n = f->length[s->dim];
    const char *type = first ? sf_type_name(c->op->in[0]->dtype) : f->complex;
    SF_PUT(c, "place = %s;\n", number);
    if (mirrors)
        SF_PUT(c,
               "mirrored = place >= %" PRId64 "; place = mirrored ? %" PRId64 " - place : place;\n",
               s->from, n);
    bool real = first && f->real_in;
    SF_PUT(c, "%s = %s%s%s, p0, source + place * inner)%s;\n", to,
           !real       ? ""
           : is_narrow ? "c_of("
                       : "cplx_of(",
           is_narrow ? "AT(const raw_" : "WLOAD(", type, real ? ", 0)" : "");
    if (mirrors)
        SF_PUT(c, "if (mirrored) %s.im = -%s.im;\n", to, to);
}

static void put_store(sf_calling *c, const fourier *f, const stage *s, bool last, bool is_narrow,
                      const char *from, const char *number)
{
    int64_t n = f->length[s->dim];
    bool real = last && f->real_out;
    const char *type = last ? sf_type_name(c->op->out[0]->dtype) : f->complex;
    SF_PUT(c, "place = %s;\n", number);
    if (s->to < n)
        SF_PUT(c, "if (place < %" PRId64 ") ", s->to);
    SF_PUT(c, "{ ");
    if (f->inverse && s->is_last)
        SF_PUT(c, "%s.re *= %.17g; %s.im *= %.17g; ", from, 1 / (double)n, from, 1 / (double)n);
    if (is_narrow)
        SF_PUT(c, "AT(raw_%s, p1, result + place * inner) = %s%s; }\n", type, from,
               real ? ".re" : "");
    else
        SF_PUT(c, "WSTORE(%s, p1, result + place * inner, %s%s); }\n", type, from,
               real ? ".re" : "");
}

/* Declares `k`, the place within what is transformed, `number`, the first element of `count` in its line, and where lines begin. */
static void put_place(sf_calling *c, const stage *s, int64_t count, int64_t inner, const char *of)
{
    SF_PUT(c,
           "%s inner = %" PRId64 ", column = %s %% inner, rest = %s / inner, number = rest %% "
           "(%s)%" PRId64 ", line = rest / (%s)%" PRId64 ";\n",
           c->index, inner, of, of, c->index, count, c->index, count);
    SF_PUT(c,
           "%s k = number %% (%s)%" PRId64 ", source = line * (%s)%" PRId64
           " + column, result = line * (%s)%" PRId64 " + column, place;\nint mirrored = 0; "
           "(void)mirrored;\n",
           c->index, c->index, s->done, c->index, s->from * inner, c->index, s->to * inner);
}

/* A thread makes all elements of a transform. */
static void write_registers(sf_calling *c, const fourier *f, const stage *s, int64_t lines,
                            int64_t inner, bool first, bool last)
{
    int64_t n = f->length[s->dim], r = s->radix, at[MOST_RADIX], size = s->done * r;
    double sign = f->inverse ? 1 : -1;
    const words w = words_of(f);
    char name[32], number[96];
    sf_call_begin(c, lines * (n / r) * inner);
    put_place(c, s, n / r, inner, "at");
    for (int64_t q = 0; q < r; q++) {
        SF_PUT(c, "%s x%" PRId64 ";\n", w.type, q);
        snprintf(name, sizeof name, "x%" PRId64, q);
        snprintf(number, sizeof number, "number + (%s)%" PRId64, c->index, q * (n / r));
        put_load(c, f, s, first, f->is_narrow, name, number);
    }
    if (s->done > 1) {
        SF_PUT(c,
               "f64 angle = %.17g * (f64)k;\ncplx turn = cplx_of(cos(angle), sin(angle)), power = "
               "turn;\n",
               sign * TURN / (double)size);
        for (int64_t q = 1; q < r; q++)
            SF_PUT(c, "%sx%" PRId64 " = %s(x%" PRId64 ", %s(power));\n",
                   q > 1 ? "power = z_multiply(power, turn);\n" : "", q, w.multiply, q,
                   f->is_narrow ? "wput_c64" : "");
    }
    bool is_even = (r & (r - 1)) == 0;
    if (is_even) {
        SF_PUT(c, "%s t; (void)t;\n", w.type);
        put_halves(c, &w, r, 0, 1, sign, at);
    } else {
        put_direct(c, &w, r, sign);
    }
    for (int64_t q = 0; q < r; q++) {
        snprintf(name, sizeof name, "%s%" PRId64, is_even ? "x" : "y", is_even ? at[q] : q);
        snprintf(number, sizeof number, "(number - k) * (%s)%" PRId64 " + k + (%s)%" PRId64,
                 c->index, r, c->index, q * s->done);
        put_store(c, f, s, last, f->is_narrow, name, number);
    }
    sf_call_end(c, lines * (n / r) * inner);
}

/* A prime number that is large: a thread makes one element. */
static void write_sums(sf_calling *c, const fourier *f, const stage *s, int64_t lines,
                       int64_t inner, bool first, bool last)
{
    int64_t n = f->length[s->dim], r = s->radix, size = s->done * r;
    char number[96];
    sf_call_begin(c, lines * n * inner);
    SF_PUT(c,
           "%s element = at / %" PRId64 " %% %" PRId64 ", q = element / (%s)%" PRId64
           ", which = at / %" PRId64 " / %" PRId64 " * (%s)%" PRId64 " + element %% (%s)%" PRId64
           " * (%s)%" PRId64 " + at %% (%s)%" PRId64 ";\n",
           c->index, inner, n, c->index, n / r, inner, n, c->index, n / r * inner, c->index, n / r,
           c->index, inner, c->index, inner);
    put_place(c, s, n / r, inner, "which");
    SF_PUT(c,
           "cplx sum = cplx_of(0, 0), x;\ns64 step = k + q * %" PRId64
           ", turn = 0;\nfor (s64 j = 0; j < %" PRId64 "; j++) {\n",
           s->done, r);
    snprintf(number, sizeof number, "number + j * %" PRId64, n / r);
    put_load(c, f, s, first, false, "x", number);
    SF_PUT(c,
           "f64 angle = %.17g * ((f64)turn / %" PRId64
           ".0);\nsum = z_add(sum, z_multiply(x, cplx_of(cos(angle), sin(angle))));\nturn = (turn "
           "+ step) %% %" PRId64 ";\n}\n",
           (f->inverse ? 1 : -1) * TURN, size, size);
    snprintf(number, sizeof number, "(number - k) * %" PRId64 " + k + q * %" PRId64, r, s->done);
    put_store(c, f, s, last, false, "sum", number);
    sf_call_end(c, lines * n * inner);
}

/* Elements in memory of the dimensions after, and before, that of the stage: of the last of them as many as there are by then. */
static int64_t count_inner(const fourier *f, const sf_op *op, int dim)
{
    int64_t count = 1, shown = f->real_out ? op->in[0]->dims[op->in[0]->rank - 1]
                                           : op->out[0]->dims[op->out[0]->rank - 1];
    for (int d = dim + 1; d < f->rank; d++)
        count *= d == f->rank - 1 ? shown : f->length[d];
    return count;
}

static int64_t count_lines(const fourier *f, const sf_op *op, int dim)
{
    int64_t count = 1;
    for (int d = 0; d < op->in[0]->rank - f->rank; d++)
        count *= op->in[0]->dims[d];
    for (int d = 0; d < dim; d++)
        count *= f->length[d];
    return count;
}

/* Of no numbers. */
static void write_nothing(sf_calling *c)
{
    const sf_type *out = c->op->out[0];
    sf_write_param(c->w, (sf_param){.kind = SF_PARAM_OUT});
    sf_call_begin(c, out->count);
    SF_PUT(c, "WSTORE(%s, p0, at, %s);\n", sf_type_name(out->dtype),
           sf_is_complex(out->dtype) ? "cplx_of(0, 0)" : "0.0");
    sf_call_end(c, out->count);
}

/* Real numbers are transformed along the last dimension first, and made so along it last: half of the others has to be. */
bool sf_call_fft(sf_calling *c)
{
    const sf_op *op = c->op;
    const char *kind = sf_op_text(op, FFT_TYPE);
    sf_ints length = sf_op_ints(op, FFT_LENGTH);
    fourier f = {.inverse = strchr(kind, 'I') != NULL,
                 .real_in = strcmp(kind, "RFFT") == 0,
                 .real_out = strcmp(kind, "IRFFT") == 0,
                 .rank = length.count,
                 .length = length.at};
    stage stages[SF_MAX_RANK * MOST_STAGES];
    sf_dtype complex = f.real_in ? op->out[0]->dtype : op->in[0]->dtype;
    f.complex = sf_type_name(complex);
    f.is_narrow = complex == SF_C64;
    int count = 0;
    int64_t points = count_lines(&f, op, 0), rooms[2];
    if (op->in[0]->count == 0 && op->out[0]->count > 0)
        write_nothing(c);
    if (op->out[0]->count == 0 || op->in[0]->count == 0)
        return true;
    for (int i = 0; i < f.rank; i++) {
        count += add_stages(&f, op, f.real_out ? i : f.rank - 1 - i, &stages[count]);
        points *= f.length[i];
    }
    for (int i = 0; i < 2 && i < count - 1; i++)
        rooms[i] = sf_write_scratch(c->w, points * sf_dtype_get(complex)->bytes);
    for (int i = 0; i < count; i++) {
        const stage *s = &stages[i];
        bool first = i == 0, last = i == count - 1;
        int64_t lines = count_lines(&f, op, s->dim), inner = count_inner(&f, op, s->dim);
        sf_write_param(c->w,
                       first ? (sf_param){.kind = SF_PARAM_IN}
                             : (sf_param){.kind = SF_PARAM_SCRATCH, .value = rooms[(i - 1) % 2]});
        sf_write_param(c->w, last ? (sf_param){.kind = SF_PARAM_OUT}
                                  : (sf_param){.kind = SF_PARAM_SCRATCH, .value = rooms[i % 2]});
        (s->radix <= MOST_RADIX ? write_registers : write_sums)(c, &f, s, lines, inner, first,
                                                                last);
    }
    return true;
}
