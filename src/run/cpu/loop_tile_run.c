#include "run/cpu/loop_tile_run.h"

#include <string.h>

enum { SHORT_RUN = 16 };

void sf_tile_fill(void *dst, sf_vclass class, const sf_loop_step *step, int64_t count)
{
    union {
        float f32;
        double f64;
        int32_t i32;
        int64_t i64;
    } one = {.i64 = step->constant.integer};
    char *to = dst;
    int64_t width = sf_class_width(class), bytes = count * width;
    if (class == SF_VF32)
        one.f32 = (float)step->constant.real;
    else if (class == SF_VF64)
        one.f64 = step->constant.real;
    else if (class == SF_VI32)
        one.i32 = (int32_t)step->constant.integer;
    if (count > 0)
        memcpy(to, &one, (size_t)width);
    for (int64_t done = width; done < bytes; done *= 2) /* doubles the filled part */
        memcpy(to + done, to, (size_t)(bytes - done < done ? bytes - done : done));
}

static void expand_rows(void *dst, const void *from, sf_vclass class, int64_t rows, int64_t columns)
{
    if (sf_class_width(class) == 4) {
        const uint32_t *a = from;
        uint32_t *to = dst;
        for (int64_t r = 0; r < rows; r++)
            for (int64_t i = 0; i < columns; i++)
                to[r * columns + i] = a[r];
    } else {
        const uint64_t *a = from;
        uint64_t *to = dst;
        for (int64_t r = 0; r < rows; r++)
            for (int64_t i = 0; i < columns; i++)
                to[r * columns + i] = a[r];
    }
}

/* A walk over rows: the offset of the row at hand, kept up without a division per row. */
typedef struct walk {
    int64_t index[SF_MAX_RANK];
    int64_t offset;
} walk;

static walk walk_from(const sf_loop *loop, const sf_access *access, int64_t row)
{
    walk w = {.offset = 0};
    for (int d = loop->split - 1; d >= 0; d--) {
        w.index[d] = row % loop->dims[d];
        w.offset += w.index[d] * access->strides[d];
        row /= loop->dims[d];
    }
    return w;
}

static void walk_on(const sf_loop *loop, const sf_access *access, walk *w)
{
    for (int d = loop->split - 1; d >= 0; d--) {
        w->offset += access->strides[d];
        if (++w->index[d] < loop->dims[d])
            return;
        w->offset -= loop->dims[d] * access->strides[d];
        w->index[d] = 0;
    }
}

/* The stride with which one walks from row to row, when one can. */
static bool row_stride(const sf_loop *loop, const sf_access *access, int64_t *stride)
{
    *stride = loop->split > 0 ? access->strides[loop->split - 1] : 0;
    return loop->split <= 1;
}

/* Calls back for every run of elements with one stride in the tile: memory offset, stride, register
 * offset, length. */
typedef void each_run(sf_tile *r, const sf_loop_step *step, int64_t offset, int64_t stride,
                      int64_t at, int64_t count);

static void rows_runs(sf_tile *r, const sf_loop_step *step, const sf_access *access, each_run *run)
{
    int64_t stride;
    if (row_stride(r->loop, access, &stride)) {
        run(r, step, r->row * stride, stride, 0, r->nrows);
        return;
    }
    walk w = walk_from(r->loop, access, r->row);
    for (int64_t i = 0; i < r->nrows; i++, walk_on(r->loop, access, &w))
        run(r, step, w.offset, 1, i, 1);
}

static void tile_runs(sf_tile *r, const sf_loop_step *step, each_run *run)
{
    const sf_loop *loop = r->loop;
    const sf_access *access = &loop->accesses[step->access];
    if (access->is_row) {
        rows_runs(r, step, access, run);
        return;
    }
    int last = loop->rank - 1;
    int64_t stride = access->strides[last], across, inner = loop->dims[last];
    if (last == loop->split) { /* columns are one dimension */
        bool even = row_stride(loop, access, &across);
        if (even && across == stride * inner && r->ncolumns == inner) {
            run(r, step, r->row * across, stride, 0, r->nrows * inner);
            return;
        }
        walk w = walk_from(loop, access, r->row);
        for (int64_t i = 0; i < r->nrows; i++, walk_on(loop, access, &w))
            run(r, step, w.offset + r->column * stride, stride, i * r->ncolumns, r->ncolumns);
        return;
    }
    walk w = walk_from(loop, access, r->row);
    for (int64_t i = 0; i < r->nrows; i++, walk_on(loop, access, &w)) {
        int64_t base = w.offset;
        int64_t index[SF_MAX_RANK] = {0};
        for (int64_t at = 0; at < r->ncolumns; at += inner) {
            int64_t offset = base;
            for (int d = loop->split; d < last; d++)
                offset += index[d] * access->strides[d];
            run(r, step, offset, stride, i * r->ncolumns + at, inner);
            for (int d = last - 1; d >= loop->split && ++index[d] == loop->dims[d]; d--)
                index[d] = 0;
        }
    }
}

static void load_run(sf_tile *r, const sf_loop_step *step, int64_t offset, int64_t stride,
                     int64_t at, int64_t count)
{
    const sf_access *access = &r->loop->accesses[step->access];
    if (count < SHORT_RUN && access->dtype == SF_F32) { /* a call would cost more than the run */
        const float *from = (const float *)(void *)r->pointers.in[access->view] + offset;
        float *to = (float *)(void *)r->registers[step->dst] + at;
        for (int64_t i = 0; i < count; i++)
            to[i] = from[i * stride];
        return;
    }
    int64_t bytes = sf_dtype_get(access->dtype)->bytes;
    r->vec->loads[access->dtype](r->registers[step->dst] + at * sf_class_width(step->class),
                                 r->pointers.in[access->view] + offset * bytes, stride, count);
}

static void store_run(sf_tile *r, const sf_loop_step *step, int64_t offset, int64_t stride,
                      int64_t at, int64_t count)
{
    const sf_access *access = &r->loop->accesses[step->access];
    if (count < SHORT_RUN && access->dtype == SF_F32) {
        float *to = (float *)(void *)r->pointers.out[access->view] + offset;
        const float *from = (const float *)(void *)r->registers[step->a] + at;
        for (int64_t i = 0; i < count; i++)
            to[i * stride] = from[i];
        return;
    }
    int64_t bytes = sf_dtype_get(access->dtype)->bytes;
    r->vec->stores[access->dtype](r->pointers.out[access->view] + offset * bytes, stride,
                                  r->registers[step->a] + at * sf_class_width(step->class), count);
}

static void index_run(sf_tile *r, const sf_loop_step *step, int64_t offset, int64_t stride,
                      int64_t at, int64_t count)
{
    char *to = r->registers[step->dst] + at * sf_class_width(step->class);
    for (int64_t i = 0; i < count; i++, offset += stride)
        switch (step->class) {
        case SF_VF32:
            ((float *)(void *)to)[i] = (float)offset;
            break;
        case SF_VF64:
            ((double *)(void *)to)[i] = (double)offset;
            break;
        case SF_VI32:
            ((int32_t *)(void *)to)[i] = (int32_t)offset;
            break;
        case SF_VI64:
            ((int64_t *)(void *)to)[i] = offset;
            break;
        case SF_VCLASS_COUNT:
            break;
        }
}

sf_vop sf_fold_op(sf_vfold fold)
{
    static const sf_vop ops[SF_VFOLD_COUNT] = {
        [SF_VFOLD_SUM] = SF_VADD, [SF_VFOLD_PROD] = SF_VMUL,  [SF_VFOLD_MAX] = SF_VMAX,
        [SF_VFOLD_MIN] = SF_VMIN, [SF_VFOLD_UMAX] = SF_VUMAX, [SF_VFOLD_UMIN] = SF_VUMIN,
        [SF_VFOLD_AND] = SF_VAND, [SF_VFOLD_OR] = SF_VOR,     [SF_VFOLD_XOR] = SF_VXOR,
    };
    return ops[fold];
}

static void fold_rows(sf_tile *r, const sf_loop_step *step)
{
    int64_t width = sf_class_width(step->class);
    char *dst = r->registers[step->dst];
    const char *a = r->registers[step->a];
    sf_tile_fill(dst, step->class, step, r->nrows);
    for (int64_t i = 0; i < r->nrows; i++)
        r->vec->folds[step->fold][step->class](dst + i * width, a + i * r->ncolumns * width,
                                               r->ncolumns);
}

static void gather_step(sf_tile *r, const sf_loop_step *step, char *into)
{
    int64_t width = sf_class_width(step->class);
    const char *a = r->registers[step->a];
    if (step->is_scalar) {
        r->vec->folds[step->fold][step->class](into, a, r->nrows * r->ncolumns);
        return;
    }
    /* A kernel may overwrite the following elements; those are sums of other columns. */
    char *to = into + r->column * width, *next = to + r->ncolumns * width, kept[16 * 8];
    memcpy(kept, next, (size_t)(16 * width));
    sf_vkernel *combine = r->vec->ops[sf_fold_op(step->fold)][step->class];
    for (int64_t i = 0; i < r->nrows; i++)
        combine(to, to, a + i * r->ncolumns * width, NULL, r->ncolumns);
    memcpy(next, kept, (size_t)(16 * width));
}

static void convert_step(sf_tile *r, const sf_loop_step *step, int64_t count)
{
    sf_vclass from = sf_vclass_of(step->dtype);
    bool is_unsigned = sf_is_unsigned(step->dtype) && sf_dtype_get(step->dtype)->bits >= 32;
    sf_vkernel *kernel =
        is_unsigned ? r->vec->uconverts[from][step->class] : r->vec->converts[from][step->class];
    if (from == step->class)
        kernel = r->vec->ops[SF_VCOPY][from];
    kernel(r->registers[step->dst], r->registers[step->a], NULL, NULL, count);
}

void sf_tile_run(sf_tile *r)
{
    char *gathered = r->gathered;
    for (uint32_t i = 0; i < r->loop->nsteps; i++) {
        const sf_loop_step *step = &r->loop->steps[i];
        int64_t count = step->is_row ? r->nrows : r->nrows * r->ncolumns;
        switch (step->kind) {
        case SF_STEP_LOAD:
            tile_runs(r, step, load_run);
            break;
        case SF_STEP_STORE:
            tile_runs(r, step, store_run);
            break;
        case SF_STEP_INDEX:
            tile_runs(r, step, index_run);
            break;
        case SF_STEP_CONSTANT:
            break; /* set before the first tile */
        case SF_STEP_OP:
            r->vec->ops[step->op][step->class](r->registers[step->dst], r->registers[step->a],
                                               r->registers[step->b], r->registers[step->c], count);
            break;
        case SF_STEP_ROUND:
            if (r->vec->round[step->dtype])
                r->vec->round[step->dtype](r->registers[step->dst], r->registers[step->a], NULL,
                                           NULL, count);
            break;
        case SF_STEP_CONVERT:
            convert_step(r, step, count);
            break;
        case SF_STEP_FOLD:
            fold_rows(r, step);
            break;
        case SF_STEP_EXPAND:
            expand_rows(r->registers[step->dst], r->registers[step->a], step->class, r->nrows,
                        r->ncolumns);
            break;
        case SF_STEP_GATHER:
            gather_step(r, step, gathered);
            gathered += sf_gathered_bytes(r->loop, step);
            break;
        }
    }
}
