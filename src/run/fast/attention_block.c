#include "run/fast/attention_block.h"

#include <string.h>

#include "op/attention.h"

static int64_t lesser_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t sf_attend_line(int64_t bytes)
{
    return (bytes + 63) & -64;
}

sf_attend sf_attend_of(const sf_op *op, int64_t rows, int64_t columns)
{
    const sf_type *q = op->in[0], *k = op->in[1];
    uint32_t bits = (uint32_t)sf_op_int(op, SF_ATTENTION_SCALE, 0);
    sf_attend a = {.vec = sf_vec_get(),
                   .pairs = q->dims[0] * q->dims[2],
                   .heads = q->dims[2],
                   .queries = q->dims[1],
                   .keys = k->dims[1],
                   .depth = q->dims[3],
                   .causal = sf_op_int(op, SF_ATTENTION_CAUSAL, 0) != 0,
                   .offset = sf_op_int(op, SF_ATTENTION_OFFSET, 0),
                   .dtype = q->dtype,
                   .width = sf_dtype_get(q->dtype)->bytes};
    memcpy(&a.scale, &bits, sizeof a.scale);
    a.rows = lesser_of(rows, (a.queries + 15) & -16);
    a.columns = lesser_of(columns, (a.keys + 15) & -16);
    return a;
}

sf_matrix sf_attend_places(const sf_attend *a, const sf_tensor *tensor, int64_t pair, int64_t first)
{
    int64_t places = tensor->type->dims[1], row = a->heads * a->depth;
    int64_t at = (pair / a->heads * places + first) * row + pair % a->heads * a->depth;
    return (sf_matrix){
        .data = (char *)tensor->data + at * a->width, .dtype = a->dtype, .row = row, .column = 1};
}

sf_matrix sf_attend_transposed(sf_matrix x)
{
    return (sf_matrix){.data = x.data, .dtype = x.dtype, .row = x.column, .column = x.row};
}

static sf_gemm gemm_of(const sf_attend_product *p)
{
    return (sf_gemm){.batches = 1,
                     .m = p->m,
                     .n = p->n,
                     .k = p->k,
                     .a = p->x,
                     .b = p->y,
                     .c = {.data = p->to, .dtype = SF_F32, .row = p->row, .column = 1},
                     .accumulate = p->adds};
}

/* Those products that there are: rows by columns, and either of them by depth. Smaller ones at the edges need no more, but
 * may be done by other kernels. */
int64_t sf_attend_room(const sf_attend *a)
{
    int64_t most = 0, place = a->heads * a->depth;
    const int64_t sizes[3][3] = {{a->rows, a->columns, a->depth},
                                 {a->rows, a->depth, a->columns},
                                 {a->columns, a->depth, a->rows}};
    for (int i = 0; i < 3; i++) {
        sf_attend_product p = {.m = sizes[i][0], .n = sizes[i][1], .k = sizes[i][2]};
        p.x = (sf_matrix){.dtype = a->dtype, .row = place, .column = 1};
        p.y = p.x;
        sf_gemm gemm = gemm_of(&p);
        int64_t bytes = sf_gemm_room(&gemm);
        most = bytes > most ? bytes : most;
    }
    return sf_attend_line(most);
}

void sf_attend_multiply(const sf_attend *a, const sf_attend_product *p, void *scratch)
{
    sf_gemm gemm = gemm_of(p);
    gemm.scratch = scratch;
    SF_ASSERT(sf_gemm_scratch(&gemm, 1) <= sf_attend_room(a));
    sf_gemm_run(&gemm, NULL);
}

sf_matrix sf_attend_narrow(const sf_attend *a, float *block, int64_t rows, int64_t columns,
                           void *narrow)
{
    sf_matrix x = {.data = block, .dtype = SF_F32, .row = a->columns, .column = 1};
    if (a->dtype == SF_F32)
        return x;
    x.data = narrow;
    x.dtype = a->dtype;
    for (int64_t r = 0; r < rows; r++)
        a->vec->stores[a->dtype]((char *)narrow + r * a->columns * a->width, 1,
                                 block + r * a->columns, columns);
    return x;
}

void sf_attend_store(const sf_attend *a, const sf_matrix *to, int64_t at, float *row, float factor)
{
    for (int64_t i = 0; factor != 1 && i < a->depth; i++)
        row[i] *= factor;
    a->vec->stores[a->dtype]((char *)to->data + at * to->row * a->width, 1, row, a->depth);
}

int64_t sf_attend_seen(const sf_attend *a, int64_t place, int64_t at, int64_t count)
{
    int64_t seen = a->causal ? lesser_of(count, place + a->offset + 1 - at) : count;
    return seen < 0 ? 0 : seen;
}
