/* Matrices and random bits, in double: cholesky, triangular_solve, rng_bit_generator. */
#include <inttypes.h>
#include <string.h>

#include "base/rng.h"
#include "op/op.h"
#include "op/slots.h"
#include "run/text/library_kernel.h"

/* Matrices, in scratch memory as doubles. */

static int64_t matrices_of(const sf_type *type)
{
    int64_t count = 1;
    for (int d = 0; d < type->rank - 2; d++)
        count *= type->dims[d];
    return count;
}

enum { CHOLESKY_LOWER };

/* A thread has a matrix. */
bool sf_call_cholesky(sf_calling *c)
{
    const sf_type *type = c->op->in[0];
    int64_t n = type->rank ? type->dims[type->rank - 1] : 1, count = matrices_of(type);
    bool lower = sf_op_int(c->op, CHOLESKY_LOWER, 0) != 0;
    if (type->count == 0)
        return true;
    sf_write_views(c->w, c->inst);
    int64_t at = sf_write_scratch(c->w, type->count * 8);
    int room = sf_write_param(c->w, (sf_param){.kind = SF_PARAM_SCRATCH, .value = at});
    sf_call_begin(c, count);
    SF_PUT(c,
           "s64 n = %" PRId64
           ", row = %s, column = %s;\nf64 *a = SOME(f64, p%d, at * n * n, n * n);\n",
           n, lower ? "n" : "1", lower ? "1" : "n", room);
    SF_PUT(c, "for (s64 i = 0; i < n * n; i++) a[i] = WLOAD(%s, p0, at * n * n + i);\n",
           sf_type_name(type->dtype));
    SF_PUT(c,
           "for (s64 j = 0; j < n; j++) {\n"
           "for (s64 i = 0; i < j; i++) a[i * row + j * column] = 0;\n"
           "for (s64 i = j; i < n; i++) {\n"
           "f64 sum = a[i * row + j * column];\n"
           "for (s64 k = 0; k < j; k++) sum -= a[i * row + k * column] * a[j * row + k * column];\n"
           "f64 diagonal = a[j * row + j * column];\n"
           "a[i * row + j * column] = i == j ? sqrt(sum) : sum / diagonal;\n}\n}\n");
    SF_PUT(c, "for (s64 i = 0; i < n * n; i++) WSTORE(%s, p1, at * n * n + i, a[i]);\n",
           sf_type_name(type->dtype));
    sf_call_end(c, count);
    return true;
}

enum { LEFT_SIDE, LOWER, UNIT_DIAGONAL, TRANSPOSE_A };

/* A thread has one right-hand side. */
bool sf_call_solve(sf_calling *c)
{
    const sf_op *op = c->op;
    const sf_type *a = op->in[0], *b = op->in[1];
    bool left = sf_op_int(op, LEFT_SIDE, 0) != 0, lower = sf_op_int(op, LOWER, 0) != 0;
    bool unit = sf_op_int(op, UNIT_DIAGONAL, 0) != 0;
    bool flipped = (strcmp(sf_op_text(op, TRANSPOSE_A), "NO_TRANSPOSE") != 0) == left;
    if (b->count == 0)
        return true;
    int64_t n = a->dims[a->rank - 1], rows = b->dims[b->rank - 2], columns = b->dims[b->rank - 1];
    int64_t sides = left ? columns : rows;
    const char *type = sf_type_name(a->dtype);
    sf_write_views(c->w, c->inst);
    int64_t at = sf_write_scratch(c->w, b->count * 8);
    int room = sf_write_param(c->w, (sf_param){.kind = SF_PARAM_SCRATCH, .value = at});
    sf_call_begin(c, matrices_of(b) * sides);
    SF_PUT(c, "s64 n = %" PRId64 ", m = at / %" PRId64 ", side = at %% %" PRId64 ";\n", n, sides,
           sides);
    SF_PUT(c,
           "s64 row = %s, column = %s, step = %" PRId64 ", first = m * %" PRId64
           " + side * %" PRId64 ";\n",
           flipped ? "1" : "n", flipped ? "n" : "1", left ? columns : (int64_t)1, rows * columns,
           left ? (int64_t)1 : columns);
    SF_PUT(c, "f64 *x = SOME(f64, p%d, first, (n - 1) * step + 1);\n", room);
    SF_PUT(c, "for (s64 done = 0; done < n; done++) {\ns64 i = %s;\n",
           lower != flipped ? "done" : "n - 1 - done");
    SF_PUT(c, "f64 sum = WLOAD(%s, p1, first + i * step);\nfor (s64 k = 0; k < done; k++) {\n",
           type);
    SF_PUT(
        c,
        "s64 other = %s;\nsum -= WLOAD(%s, p0, m * n * n + i * row + other * column) * x[other * "
        "step];\n}\n",
        lower != flipped ? "k" : "n - 1 - k", type);
    SF_PUT(c, "x[i * step] = ");
    if (unit)
        SF_PUT(c, "sum;\n");
    else
        SF_PUT(c, "sum / WLOAD(%s, p0, m * n * n + i * row + i * column);\n", type);
    SF_PUT(c, "WSTORE(%s, p2, first + i * step, x[i * step]);\n}\n", type);
    sf_call_end(c, matrices_of(b) * sides);
    return true;
}

/* Random bits: element by element, each with its block. */

bool sf_call_random(sf_calling *c)
{
    static const uint64_t no_state[3];
    const sf_type *type = c->op->out[1];
    bool threefry = strcmp(sf_op_text(c->op, SF_RNG_BIT_GENERATOR_ALGORITHM), "THREE_FRY") == 0;
    int words = (int)c->op->in[0]->dims[0], width = sf_dtype_get(type->dtype)->bytes;
    sf_rng rng;
    sf_status status = sf_rng_init(&rng, threefry ? SF_RNG_THREEFRY : SF_RNG_PHILOX, no_state,
                                   words, width, type->dims, type->rank, SF_NOWHERE, NULL);
    if (status != SF_OK)
        return false;
    const char *state = "u64 key = AT(const u64, p0, 0), low = AT(const u64, p0, 1), high = ";
    sf_write_views(c->w, c->inst);
    sf_call_begin(c, type->count);
    SF_PUT(c, "%s%s;\n(void)high;\nu32 words[4];\n", state,
           words == 3 ? "AT(const u64, p0, 2)" : "key");
    if (threefry && width < 8)
        SF_PUT(c,
               "s64 inner = at %% %" PRId64 ", split = at / %" PRId64 " %% %" PRId64
               ", outer = at / %" PRId64 ";\ns64 block = (outer * %" PRId64
               " + split / 2) * %" PRId64 " + inner, word = split %% 2;\n",
               rng.inner, rng.inner, rng.split, rng.inner * rng.split, (rng.split + 1) / 2,
               rng.inner);
    else
        SF_PUT(c, "s64 block = at / %d, word = at %% %d%s;\n",
               threefry     ? 1
               : width == 8 ? 2
                            : 4,
               threefry     ? 1
               : width == 8 ? 2
                            : 4,
               width == 8 ? " * 2" : "");
    if (threefry)
        SF_PUT(c, "threefry_block((u32)key, (u32)(key >> 32), low + (u64)block, words);\n");
    else
        SF_PUT(
            c,
            "u64 here = low + (u64)block;\nphilox_block((u32)key, (u32)(key >> 32), here, high + "
            "(here < low), words);\n");
    if (width == 8)
        SF_PUT(c, "AT(u64, p2, at) = words[word] | (u64)words[word + 1] << 32;\n");
    else
        SF_PUT(c, "AT(moved_%d, p2, at) = (moved_%d)words[word];\n", width, width);
    sf_call_end(c, type->count);
    sf_write_views(c->w, c->inst);
    sf_call_begin(c, 1);
    SF_PUT(c, "%s%s;\n(void)high;\nu64 next = low + %" PRId64 "ull;\n", state,
           words == 3 ? "AT(const u64, p0, 2)" : "0", rng.blocks);
    SF_PUT(c, "AT(u64, p1, 0) = key; AT(u64, p1, 1) = next;\n");
    if (words == 3)
        SF_PUT(c, "AT(u64, p1, 2) = high + (next < low);\n");
    sf_call_end(c, 1);
    return true;
}
