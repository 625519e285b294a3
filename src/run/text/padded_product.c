#include "run/text/padded_product.h"

#include <inttypes.h>

/* Elements of 16 bytes. */
enum { THREADS = 256, TOGETHER = 8 };

/* On an H200 a product of odd sizes does 120 to 260 TFLOP/s, and another 700 to 800; a copy is read and written at 3.5 TB/s. So copies
 * gain from so many operations for each of their bytes on. */
#define LEAST_FLOPS 240

/* The matrix of operand i, 2 being the result, with its strides. */
typedef struct sides {
    int64_t *rows, *columns, *row, *column, *batch;
} sides;

static sides sides_of(sf_dot *dot, int i)
{
    return i == 0   ? (sides){&dot->m, &dot->k, &dot->a_row, &dot->a_column, dot->a_batch}
           : i == 1 ? (sides){&dot->k, &dot->n, &dot->b_row, &dot->b_column, dot->b_batch}
                    : (sides){&dot->m, &dot->n, &dot->c_row, &dot->c_column, dot->c_batch};
}

static int64_t round_up(int64_t count)
{
    return (count + TOGETHER - 1) / TOGETHER * TOGETHER;
}

/* Whether its rows or columns lie side by side; and the dimension along which they do becomes a multiple of 16 bytes. */
static bool round_side(const sf_dot *given, int i, sf_dot *dot)
{
    sf_dot own = *given;
    sides from = sides_of(&own, i), to = sides_of(dot, i);
    if (*from.column == 1)
        *to.columns = round_up(*from.columns);
    else if (*from.row == 1)
        *to.rows = round_up(*from.rows);
    else
        return false;
    return true;
}

/* The copy, packed, where sizes have changed. */
static void copy_matrix(const sf_dot *given, int i, sf_padded *p)
{
    sf_dot own = *given;
    sides from = sides_of(&own, i), to = sides_of(&p->dot, i);
    sf_padded_matrix *m = &p->matrices[i];
    bool by_rows = *from.column == 1;
    *m = (sf_padded_matrix){.rows = by_rows ? *from.rows : *from.columns,
                            .columns = by_rows ? *from.columns : *from.rows,
                            .stride = by_rows ? *from.row : *from.column,
                            .padded_rows = by_rows ? *to.rows : *to.columns,
                            .padded_columns = round_up(by_rows ? *to.columns : *to.rows)};
    m->is_copied = *from.rows != *to.rows || *from.columns != *to.columns;
    if (!m->is_copied)
        return;
    int64_t count = m->padded_rows * m->padded_columns;
    *(by_rows ? to.row : to.column) = m->padded_columns;
    for (int d = given->nbatch - 1; d >= 0; d--) {
        m->batch[d] = from.batch[d];
        if (from.batch[d] == 0)
            continue;
        to.batch[d] = count;
        count *= given->batch[d];
    }
    m->bytes = 2 * count;
}

bool sf_pad_product(const sf_inst *inst, sf_padded *out)
{
    const sf_view *views[3] = {&inst->in[0], &inst->in[1], &inst->out[0]};
    double bytes = 0;
    *out = (sf_padded){.dot = *inst->dot};
    for (int i = 0; i < 3; i++)
        if (sf_dtype_get(views[i]->dtype)->bits != 16 || inst->dot->k == 0 ||
            sf_view_count(views[i]) == 0 || !round_side(inst->dot, i, &out->dot))
            return false;
    for (int i = 0; i < 3; i++) {
        copy_matrix(inst->dot, i, out);
        bytes += (double)out->matrices[i].bytes;
    }
    return bytes > 0 && sf_dot_flops(inst->dot) >= LEAST_FLOPS * bytes;
}

#define PUT(...) sf_buf_printf(&w->body, __VA_ARGS__)

/* Declares `given`, where row number `rest` of all batches begins in the matrix as it is given, and its numbers, `batch` and `row`. */
static void put_row(sf_writer *w, const sf_padded *p, const sf_padded_matrix *m, int64_t rows)
{
    PUT("s64 row = rest %% %" PRId64 ", given = row * (%" PRId64 "ll), batch = rest / %" PRId64
        ";\nrest = batch;\n",
        rows, m->stride, rows);
    for (int d = p->dot.nbatch - 1; d >= 0; d--)
        if (m->batch[d])
            PUT("given += rest %% %" PRId64 " * (%" PRId64 "ll); rest /= %" PRId64 ";\n",
                p->dot.batch[d], m->batch[d], p->dot.batch[d]);
}

static int64_t count_batches(const sf_padded *p, const sf_padded_matrix *m)
{
    int64_t count = 1;
    for (int d = 0; d < p->dot.nbatch; d++)
        count *= m->batch[d] ? p->dot.batch[d] : 1;
    return count;
}

/* A thread writes 16 bytes of the copy. */
static void write_copy(sf_writer *w, const sf_padded *p, const sf_padded_matrix *m, sf_param from,
                       sf_param to)
{
    int64_t parts = m->padded_columns / TOGETHER,
            count = count_batches(p, m) * m->padded_rows * parts;
    sf_write_param(w, from);
    sf_write_param(w, to);
    PUT("{\nfor (s64 at = BLOCK * THREADS + THREAD; at < %" PRId64 "; at += BLOCKS * THREADS) {\n",
        count);
    PUT("s64 rest = at, column = rest %% %" PRId64 " * %d; rest /= %" PRId64 ";\n", parts, TOGETHER,
        parts);
    put_row(w, p, m, m->padded_rows);
    PUT("ALIGNED(16) u16 some[%d];\nUNROLL for (int i = 0; i < %d; i++)\n", TOGETHER, TOGETHER);
    PUT("some[i] = row < %" PRId64 " && column + i < %" PRId64
        " ? AT(const u16, p0, given + column + i) : 0;\n",
        m->rows, m->columns);
    PUT("move_elements(SOME(u16, p1, at * %d, %d), some, 16);\n}\n}\n", TOGETHER, TOGETHER);
    sf_write_launch(w, sf_blocks_for(count, THREADS), THREADS, false);
}

/* A block writes a row of the result, from its copy. */
static void write_back(sf_writer *w, const sf_padded *p, const sf_padded_matrix *m, sf_param from,
                       sf_param to)
{
    int64_t rows = count_batches(p, m) * m->rows;
    sf_write_param(w, from);
    sf_write_param(w, to);
    PUT("{\nfor (s64 at = BLOCK; at < %" PRId64 "; at += BLOCKS) {\ns64 rest = at;\n", rows);
    put_row(w, p, m, m->rows);
    PUT("s64 copied = (batch * %" PRId64 " + row) * %" PRId64 ";\n", m->padded_rows,
        m->padded_columns);
    PUT("UNROLL_SOME for (s64 i = THREAD; i < %" PRId64 "; i += THREADS)\n", m->columns);
    PUT("AT(u16, p1, given + i) = AT(const u16, p0, copied + i);\n}\n}\n");
    sf_write_launch(w, sf_blocks_for(rows, 1), THREADS, false);
}

void sf_write_padded(sf_writer *w, const sf_padded *padded)
{
    const sf_padded_matrix *m = padded->matrices;
    sf_param result = w->code->product[2];
    for (int i = 0; i < 3; i++) {
        if (!m[i].is_copied)
            continue;
        sf_param copy = {.kind = SF_PARAM_SCRATCH, .value = sf_write_scratch(w, m[i].bytes)};
        if (i < 2)
            write_copy(w, padded, &m[i], w->code->product[i], copy);
        w->code->product[i] = copy;
    }
    w->code->before = w->code->nlaunches;
    if (m[2].is_copied)
        write_back(w, padded, &m[2], w->code->product[2], result);
}
