#include "support/indexing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "base/mem.h"
#include "support/pieces.h"

int64_t test_draw(test_random *random, int64_t low, int64_t high)
{
    uint32_t key[2] = {random->key, 0}, counter[2] = {random->count++, 0}, out[2];
    sf_rng_threefry(key, counter, out);
    return low + (int64_t)(out[0] % (uint64_t)(high - low + 1));
}

static void shuffle(test_random *random, int count, int64_t *values)
{
    for (int i = count - 1; i > 0; i--) {
        int64_t j = test_draw(random, 0, i), value = values[i];
        values[i] = values[j];
        values[j] = value;
    }
}

/* Gives every operand dim its kind. */
static void draw_operand(test_random *random, test_numbers *n, int rank, int64_t *dims)
{
    for (int d = 0; d < rank; d++) {
        dims[d] = test_draw(random, 1, 5);
        n->sizes[d] = 1;
        int64_t kind = test_draw(random, 0, 3);
        if (kind == 0) {
            n->operand_batching[n->nbatching++] = d;
            continue;
        }
        if (kind == 1)
            n->collapsed[n->ncollapsed++] = d;
        else
            n->sizes[d] = test_draw(random, 0, 1) ? dims[d] : test_draw(random, 0, dims[d]);
        n->noffset += kind != 1;
        if (test_draw(random, 0, 2) > 0)
            n->map[n->nmap++] = d;
    }
    shuffle(random, n->nmap, n->map);
}

/* The dims of the indices: batching and free ones in any order, the vector among them or, if it has
 * one component, perhaps implied. */
static int draw_indices(test_random *random, test_numbers *n, const int64_t *operand, int64_t *dims)
{
    int free = (int)test_draw(random, 0, 2), rank = n->nbatching + free;
    int64_t order[SF_MAX_RANK];
    bool implied = n->nmap == 1 && test_draw(random, 0, 1);
    n->vector_dim = implied ? rank : test_draw(random, 0, rank);
    for (int i = 0; i < rank; i++)
        order[i] = i < n->vector_dim ? i : i + 1;
    shuffle(random, rank, order);
    for (int i = 0; i < n->nbatching; i++) {
        n->indices_batching[i] = order[i];
        dims[order[i]] = operand[n->operand_batching[i]];
    }
    for (int i = n->nbatching; i < rank; i++)
        dims[order[i]] = test_draw(random, 1, 4);
    if (!implied)
        dims[n->vector_dim] = n->nmap;
    return rank + !implied;
}

static bool contains(int count, const int64_t *values, int64_t value)
{
    for (int i = 0; i < count; i++)
        if (values[i] == value)
            return true;
    return false;
}

test_numbers test_draw_numbers(test_random *random, sf_pool *pool, sf_dtype dtype)
{
    static const sf_dtype widths[] = {SF_S8, SF_S16, SF_S32, SF_S64, SF_U8, SF_U32, SF_U64};
    test_numbers n = {0};
    int64_t operand[SF_MAX_RANK], indices[SF_MAX_RANK], windowed[SF_MAX_RANK];
    int rank = (int)test_draw(random, 0, 4);
    draw_operand(random, &n, rank, operand);
    int indices_rank = draw_indices(random, &n, operand, indices);

    /* Window dims take random places in the windowed tensor, in ascending order. */
    int total = n.noffset + indices_rank - (n.vector_dim < indices_rank), chosen = 0;
    for (int p = 0; p < total; p++)
        if (test_draw(random, 0, total - p - 1) < n.noffset - chosen)
            n.offset[chosen++] = p;
    int window = 0, other = 0, next = 0;
    for (int p = 0; p < total; p++) {
        if (contains(n.noffset, n.offset, p)) {
            while (contains(n.ncollapsed, n.collapsed, window) ||
                   contains(n.nbatching, n.operand_batching, window))
                window++;
            windowed[p] = n.sizes[window++];
        } else {
            other = next == n.vector_dim ? next + 1 : next;
            windowed[p] = indices[other];
            next = other + 1;
        }
    }
    n.operand = sf_type_get(pool, dtype, rank, operand);
    n.indices = sf_type_get(pool, widths[test_draw(random, 0, 6)], indices_rank, indices);
    n.windowed = sf_type_get(pool, dtype, total, windowed);
    return n;
}

void test_number_attrs(const test_numbers *n, sf_pool *pool, const sf_attr **attrs)
{
    attrs[0] = sf_attr_ints(pool, n->noffset, n->offset);
    attrs[1] = sf_attr_ints(pool, n->ncollapsed, n->collapsed);
    attrs[2] = sf_attr_ints(pool, n->nbatching, n->operand_batching);
    attrs[3] = sf_attr_ints(pool, n->nbatching, n->indices_batching);
    attrs[4] = sf_attr_ints(pool, n->nmap, n->map);
    attrs[5] = n->vector_dim == 0 ? NULL : sf_attr_int(pool, n->vector_dim);
}

sf_tensor test_draw_tensor(test_random *random, sf_arena *arena, const sf_type *type, int64_t low,
                           int64_t high)
{
    sf_tensor tensor = {.type = type, .data = sf_arena_alloc(arena, (size_t)sf_type_bytes(type))};
    for (int64_t i = 0; i < type->count; i++) {
        if (sf_is_float(type->dtype))
            sf_store_f64(type->dtype, tensor.data, i, (double)test_draw(random, low, high));
        else
            sf_store_i64(type->dtype, tensor.data, i, test_draw(random, low, high));
    }
    return tensor;
}

void test_window(const test_numbers *n, const sf_tensor *indices, const int64_t *at, int64_t *start,
                 int64_t *within)
{
    int64_t batch[SF_MAX_RANK], vector[SF_MAX_RANK] = {0}, where[SF_MAX_RANK];
    int nbatch = 0, nwithin = 0;
    for (int p = 0; p < n->windowed->rank; p++)
        if (!contains(n->noffset, n->offset, p))
            batch[nbatch++] = at[p];
    for (int i = 0; i < n->nmap; i++) {
        for (int q = 0; q < n->indices->rank; q++)
            where[q] = q < n->vector_dim ? batch[q] : q == n->vector_dim ? i : batch[q - 1];
        int64_t flat = sf_flat_index(n->indices->rank, n->indices->dims, where);
        vector[i] = sf_get_i64(indices, flat);
        if (n->indices->dtype == SF_U64 && vector[i] < 0)
            vector[i] = INT64_MAX;
    }
    for (int d = 0; d < n->operand->rank; d++) {
        start[d] = within[d] = 0;
        for (int i = 0; i < n->nmap; i++)
            if (n->map[i] == d)
                start[d] = vector[i];
        bool batched = false;
        for (int i = 0; i < n->nbatching; i++)
            if (n->operand_batching[i] == d) {
                int64_t q = n->indices_batching[i];
                start[d] = batch[q - (q > n->vector_dim)];
                batched = true;
            }
        if (!batched && !contains(n->ncollapsed, n->collapsed, d))
            within[d] = at[n->offset[nwithin++]];
    }
}

/* One piece of a tensor, or room for it. */
static sf_tensor piece(const sf_op *op, const sf_factoring *factoring, int factor, int64_t first,
                       int64_t end, int tensor, sf_arena *arena)
{
    const sf_type *whole =
        tensor < op->noperands ? op->in[tensor] : op->out[tensor - op->noperands];
    sf_span *spans = SF_ARRAY(arena, SF_MAX_RANK, sf_span);
    int64_t dims[SF_MAX_RANK];
    test_op_piece(op, factoring, factor, first, end, tensor, spans);
    for (int d = 0; d < whole->rank; d++)
        dims[d] = test_span_size(spans[d]);
    return (sf_tensor){.type = sf_type_get(op->pool, whole->dtype, whole->rank, dims),
                       .spans = spans};
}

static void assert_same(const sf_tensor *a, const sf_tensor *b)
{
    for (int64_t i = 0; i < a->type->count; i++)
        assert_true(sf_get_f64(a, i) == sf_get_f64(b, i));
}

static void split_factor(test_random *random, const sf_op *op, const sf_factoring *factoring,
                         int factor, const sf_tensor *in, const sf_tensor *whole)
{
    const sf_factor *cut = &factoring->factors[factor];
    sf_arena arena = {0};
    sf_tensor *joined = SF_ARRAY(&arena, op->nresults, sf_tensor);
    sf_tensor *inputs = SF_ARRAY(&arena, op->noperands, sf_tensor);
    sf_tensor *outputs = SF_ARRAY(&arena, op->nresults, sf_tensor);
    for (int i = 0; i < op->nresults; i++) {
        joined[i].type = op->out[i];
        joined[i].data = sf_arena_alloc(&arena, (size_t)sf_type_bytes(op->out[i]));
    }
    int64_t middle = test_draw(random, 0, cut->size);
    for (int half = 0; half < 2; half++) {
        int64_t first = half == 0 ? 0 : middle, end = half == 0 ? middle : cut->size;
        for (int i = 0; i < op->noperands; i++) {
            inputs[i] = piece(op, factoring, factor, first, end, i, &arena);
            inputs[i].data = sf_arena_alloc(&arena, (size_t)sf_type_bytes(inputs[i].type));
            sf_tensor_cut(&in[i], &inputs[i]);
        }
        for (int i = 0; i < op->nresults; i++)
            outputs[i] = piece(op, factoring, factor, first, end, op->noperands + i, &arena);
        assert_int_equal(sf_eval_op(op, inputs, outputs, NULL), SF_OK);
        for (int i = 0; i < op->nresults; i++) {
            if (cut->role == SF_REDUCE && half == 1)
                sf_combine(cut->monoid, &joined[i], &outputs[i]);
            else
                test_paste(&outputs[i], &joined[i]);
            sf_free(outputs[i].data);
        }
    }
    for (int i = 0; i < op->nresults; i++)
        assert_same(&joined[i], &whole[i]);
    sf_arena_free(&arena);
}

void test_split(test_random *random, const sf_op *op, const sf_tensor *in, const sf_tensor *whole)
{
    sf_arena arena = {0};
    sf_factoring factoring;
    sf_op_factors(op, &arena, &factoring);
    for (int f = 0; f < factoring.nfactors; f++)
        if (factoring.factors[f].role != SF_WHOLE)
            split_factor(random, op, &factoring, f, in, whole);
    sf_arena_free(&arena);
}
