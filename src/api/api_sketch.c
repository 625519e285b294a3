/* Sketches, as callers make them. */
#include "base/boundary.h"
#include "match/sketch.h"

#include "base/guard.h"

struct making {
    sf_sketch *sketch;
};

static sf_status make_sketch(void *context)
{
    struct making *job = context;
    sf_arena arena = {0};
    sf_sketch *sketch = SF_NEW(&arena, sf_sketch);
    sketch->arena = arena;
    job->sketch = sketch;
    return SF_OK;
}

sf_status sf_sketch_new(sf_diag *diag, sf_sketch **out)
{
    SF_CLEAR(out);
    SF_NEED(diag, out);
    struct making job = {0};
    SF_TRY(sf_guarded(make_sketch, &job, diag));
    *out = job.sketch;
    return SF_OK;
}

void sf_sketch_free(sf_sketch *sketch)
{
    if (!sketch)
        return;
    sf_arena arena = sketch->arena; /* the sketch is in it */
    sf_arena_free(&arena);
}

sf_status sf_sketch_input(sf_sketch *sketch, sf_diag *diag, int *out)
{
    SF_NEED(diag, sketch, out);
    sf_sketch_node node = {.kind = SF_SKETCH_INPUT, .input = sketch->ninputs, .rank = -1};
    SF_TRY(sf_sketch_add(sketch, &node, diag));
    sketch->ninputs++;
    *out = sketch->count - 1;
    return SF_OK;
}

sf_status sf_sketch_number(sf_sketch *sketch, double number, sf_diag *diag, int *out)
{
    SF_NEED(diag, sketch, out);
    sf_sketch_node node = {.kind = SF_SKETCH_NUMBER, .number = number, .rank = -1};
    SF_TRY(sf_sketch_add(sketch, &node, diag));
    *out = sketch->count - 1;
    return SF_OK;
}

struct adding {
    sf_sketch *sketch;
    const char *op, *dtype;
    int noperands, nattrs, rank;
    const int *operands;
    const sf_sketch_attr *const *attrs;
    const int64_t *dims;
    sf_diag *diag;
    int number;
};

static sf_status add_op(void *context)
{
    struct adding *job = context;
    sf_sketch_node like = {.rank = job->rank, .has_dtype = job->dtype != NULL};
    if (job->dtype && !sf_dtype_find(SF_SPELL_STABLEHLO, sf_str_of(job->dtype), &like.dtype))
        return sf_fail(job->diag, SF_EUSAGE, SF_NOWHERE, "there is no type \"%s\"", job->dtype);
    if (job->rank > SF_TENSOR_DIMS)
        return sf_fail(job->diag, SF_EUSAGE, SF_NOWHERE, "a tensor has at most %d dimensions",
                       SF_TENSOR_DIMS);
    if (job->rank >= 0)
        like.dims =
            sf_arena_copy(&job->sketch->arena, job->dims, (size_t)job->rank * sizeof *job->dims);
    return sf_sketch_add_op(job->sketch, job->op, job->noperands, job->operands, job->nattrs,
                            job->attrs, &like, job->diag, &job->number);
}

/* If memory runs out, the guard has freed the arena's growth. */
sf_status sf_sketch_op(sf_sketch *sketch, const char *op, int noperands, const int *operands,
                       int nattrs, const sf_sketch_attr *const *attrs, int rank,
                       const int64_t *dims, const char *dtype, sf_diag *diag, int *out)
{
    SF_NEED(diag, sketch, op, out);
    if (noperands > 0)
        SF_NEED(diag, operands);
    if (nattrs > 0)
        SF_NEED(diag, attrs);
    if (rank > 0)
        SF_NEED(diag, dims);
    struct adding job = {sketch,   op,    dtype, noperands, nattrs, rank,
                         operands, attrs, dims,  diag,      -1};
    sf_arena before = sketch->arena;
    int count = sketch->count;
    sf_status status = sf_guarded(add_op, &job, diag);
    if (status == SF_ENOMEM) {
        sketch->arena = before;
        sketch->count = count;
    }
    *out = status == SF_OK ? job.number : -1;
    return status;
}

sf_status sf_sketch_return(sf_sketch *sketch, int count, const int *results, sf_diag *diag)
{
    SF_NEED(diag, sketch, results);
    return sf_sketch_end(sketch, count, results, diag);
}
