#include "run/cuda/cublaslt.h"

#include "base/hash.h"
#include "base/mem.h"
#include "run/cuda/algorithm_choice.h"

/* Numbers of the library. */
enum {
    REAL_32 = 0,
    REAL_64 = 1,
    REAL_16 = 2,
    REAL_B16 = 14,
    REAL_E4M3 = 28,
    REAL_E5M2 = 29,
    COMPUTE_32 = 68,
    COMPUTE_64 = 70,
    COMPUTE_TF32 = 77,
    TRANSPOSE_A = 3,
    TRANSPOSE_B = 4,
    EPILOGUE = 7,
    BIAS_POINTER = 8,
    EPILOGUE_BIAS = 4,
    BATCH_COUNT = 5,
    BATCH_STRIDE = 6,
    MOST_WORKSPACE = 1,
};

/* Matrices are column by column to the library. */
typedef struct matrix {
    int64_t rows, columns, leading, batch;
    int is_transposed;
    sf_dtype dtype;
} matrix;

struct sf_lt_plan {
    const sf_lt *lt;
    const sf_dot *dot;
    void *product, *layouts[3];
    sf_choice *choice;
    lt_algorithm ways[SF_MOST_WAYS];
    bool is_wide; /* sums in double */
    bool biased;
    bool is_swapped; /* C is row by row: the product is that of the transposed, B first */
    int outer;       /* batches that are walked, one call for each */
    int64_t bytes[3];
};

static int type_number(sf_dtype dtype)
{
    return dtype == SF_F64        ? REAL_64
           : dtype == SF_F16      ? REAL_16
           : dtype == SF_BF16     ? REAL_B16
           : dtype == SF_F8E4M3FN ? REAL_E4M3
           : dtype == SF_F8E5M2   ? REAL_E5M2
                                  : REAL_32;
}

/* A matrix of m rows and n columns with these strides, as the library could have it. */
static bool lay_out(int64_t m, int64_t n, int64_t row, int64_t column, matrix *out)
{
    if ((column == 1 || n == 1) &&
        (row >= n || m == 1)) { /* row by row: the transpose of the matrix in memory */
        *out = (matrix){.rows = n, .columns = m, .leading = row < n ? n : row, .is_transposed = 1};
        return true;
    }
    if ((row == 1 || m == 1) && (column >= m || n == 1)) {
        *out = (matrix){.rows = m, .columns = n, .leading = column < m ? m : column};
        return true;
    }
    return false;
}

static bool allows_tf32(const sf_lt *lt, const sf_dot *dot)
{
    return lt->tf32 && !dot->exact;
}

static int make_layout(const sf_cuda_products *l, const matrix *m, int64_t batches, void **out)
{
    int status = l->layout_create(out, type_number(m->dtype), (uint64_t)m->rows,
                                  (uint64_t)m->columns, m->leading);
    int32_t count = (int32_t)batches;
    if (status == 0 && batches > 1) {
        status = l->layout_set(*out, BATCH_COUNT, &count, sizeof count);
        if (status == 0)
            status = l->layout_set(*out, BATCH_STRIDE, &m->batch, sizeof m->batch);
    }
    return status;
}

/* Requests proposals from the library. */
static bool find_ways(sf_lt_plan *p)
{
    const sf_cuda_products *l = p->lt->library;
    void *preference = NULL;
    lt_heuristic found[SF_MOST_WAYS] = {0};
    sf_choice *choice = p->choice;
    if (l->preference_create(&preference) != 0)
        return false;
    l->preference_set(preference, MOST_WORKSPACE, &p->lt->workspace_bytes,
                      sizeof p->lt->workspace_bytes);
    int status = l->choose(p->lt->handle, p->product, p->layouts[0], p->layouts[1], p->layouts[2],
                           p->layouts[2], preference, SF_MOST_WAYS, found, &choice->count);
    l->preference_destroy(preference);
    for (int i = 0; i < choice->count; i++)
        p->ways[i] = found[i].algorithm;
    return status == 0 && choice->count > 0;
}

/* The row that is added. Its address is set once more when it is known; proposals need its
 * alignment. */
static int set_bias(const sf_lt_plan *p, const void *at)
{
    return p->lt->library->product_set(p->product, BIAS_POINTER, &at, sizeof at);
}

static bool make_epilogue(const sf_lt_plan *p)
{
    enum { SOMEWHERE = 256 };
    int32_t epilogue = EPILOGUE_BIAS;
    return !p->biased ||
           (p->lt->library->product_set(p->product, EPILOGUE, &epilogue, sizeof epilogue) == 0 &&
            set_bias(p, (const void *)(uintptr_t)SOMEWHERE) == 0);
}

static uint64_t hash_matrix(uint64_t hash, const matrix *m)
{
    const int64_t numbers[] = {m->rows,  m->columns,       m->leading,
                               m->batch, m->is_transposed, (int64_t)m->dtype};
    return sf_hash_bytes(hash, numbers, sizeof numbers);
}

/* Of two factors and the product, in the order of the library. */
static bool make_plan(sf_lt_plan *p, matrix *first, matrix *second, const matrix *result,
                      int64_t batches)
{
    const sf_cuda_products *l = p->lt->library;
    int compute = p->is_wide ? COMPUTE_64 : allows_tf32(p->lt, p->dot) ? COMPUTE_TF32 : COMPUTE_32;
    if (l->product_create(&p->product, compute, p->is_wide ? REAL_64 : REAL_32) != 0)
        return false;
    int32_t a = first->is_transposed, b = second->is_transposed;
    const int64_t numbers[] = {compute, batches, (int64_t)p->lt->workspace_bytes};
    uint64_t key = sf_hash_bytes(p->lt->machine + p->biased, numbers, sizeof numbers);
    p->choice->key = hash_matrix(hash_matrix(hash_matrix(key, first), second), result);
    return l->product_set(p->product, TRANSPOSE_A, &a, sizeof a) == 0 &&
           l->product_set(p->product, TRANSPOSE_B, &b, sizeof b) == 0 &&
           make_layout(l, first, batches, &p->layouts[0]) == 0 &&
           make_layout(l, second, batches, &p->layouts[1]) == 0 &&
           make_layout(l, result, batches, &p->layouts[2]) == 0 && make_epilogue(p) && find_ways(p);
}

sf_lt_plan *sf_lt_plan_new(const sf_lt *lt, const sf_inst *inst, bool biased)
{
    const sf_dot *dot = inst->dot;
    matrix a, b, c;
    int64_t batches, last = dot->nbatch - 1;
    if (sf_view_count(&inst->out[0]) == 0 || dot->k == 0 ||
        !lay_out(dot->m, dot->k, dot->a_row, dot->a_column, &a) ||
        !lay_out(dot->k, dot->n, dot->b_row, dot->b_column, &b) ||
        !lay_out(dot->m, dot->n, dot->c_row, dot->c_column, &c) || (biased && !c.is_transposed))
        return NULL;
    sf_lt_plan *p = sf_alloc(sizeof *p);
    *p = (sf_lt_plan){
        .lt = lt, .dot = dot, .is_wide = inst->in[0].dtype == SF_F64, .biased = biased};
    p->choice = sf_alloc(sizeof *p->choice);
    p->outer = sf_dot_inner_batches(dot, &batches);
    a.dtype = inst->in[0].dtype;
    b.dtype = inst->in[1].dtype;
    c.dtype = inst->out[0].dtype;
    a.batch = last >= 0 ? dot->a_batch[last] : 0;
    b.batch = last >= 0 ? dot->b_batch[last] : 0;
    c.batch = last >= 0 ? dot->c_batch[last] : 0;
    p->bytes[0] = sf_dtype_get(a.dtype)->bytes;
    p->bytes[1] = sf_dtype_get(b.dtype)->bytes;
    p->bytes[2] = sf_dtype_get(c.dtype)->bytes;
    p->is_swapped = c.is_transposed;
    if (p->is_swapped) { /* the matrix in memory is the transpose of C, B^T A^T */
        a.is_transposed = !a.is_transposed;
        b.is_transposed = !b.is_transposed;
        c.is_transposed = 0;
    }
    bool made =
        p->is_swapped ? make_plan(p, &b, &a, &c, batches) : make_plan(p, &a, &b, &c, batches);
    if (made)
        return p;
    sf_lt_plan_free(p);
    return NULL;
}

void sf_lt_plan_free(sf_lt_plan *p)
{
    if (!p)
        return;
    const sf_cuda_products *l = p->lt->library;
    for (int i = 0; i < 3; i++)
        if (p->layouts[i])
            l->layout_destroy(p->layouts[i]);
    if (p->product)
        l->product_destroy(p->product);
    sf_free(p->choice);
    sf_free(p);
}

/* The arguments of a product. */
typedef struct given {
    const sf_lt_plan *plan;
    const char *a, *b;
    char *c;
    cu_stream stream;
} given;

static int multiply(void *context, int way)
{
    static const float one = 1, zero = 0;
    static const double wide_one = 1, wide_zero = 0;
    const given *g = context;
    const sf_lt_plan *p = g->plan;
    const void *alpha = p->is_wide ? (const void *)&wide_one : &one;
    const void *beta = p->is_wide ? (const void *)&wide_zero : &zero;
    return p->lt->library->multiply(p->lt->handle, p->product, alpha, p->is_swapped ? g->b : g->a,
                                    p->layouts[0], p->is_swapped ? g->a : g->b, p->layouts[1], beta,
                                    g->c, p->layouts[2], g->c, p->layouts[2], &p->ways[way],
                                    p->lt->workspace, p->lt->workspace_bytes, g->stream);
}

sf_status sf_lt_run(const sf_lt_plan *p, char *const *parts, cu_stream stream, sf_diag *diag)
{
    const sf_dot *dot = p->dot;
    int64_t index[SF_MAX_RANK] = {0};
    if (p->biased && set_bias(p, parts[3]) != 0)
        return sf_fail(diag, SF_EUNSUPPORTED, SF_NOWHERE, "cuBLASLt refuses a bias");
    do {
        int64_t x = 0, y = 0, z = 0;
        for (int d = 0; d < p->outer; d++) {
            x += index[d] * dot->a_batch[d];
            y += index[d] * dot->b_batch[d];
            z += index[d] * dot->c_batch[d];
        }
        given g = {p, parts[0] + x * p->bytes[0], parts[1] + y * p->bytes[1],
                   parts[2] + z * p->bytes[2], stream};
        sf_choose(p->choice, &(sf_trial){p->lt->driver, stream, multiply, &g});
        int status = multiply(&g, p->choice->way);
        if (status != 0)
            return sf_fail(diag, SF_EUNSUPPORTED, SF_NOWHERE, "cuBLASLt refuses a product (%d)",
                           status);
    } while (sf_next_index(p->outer, dot->batch, index));
    return SF_OK;
}
