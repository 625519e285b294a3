#include "run/cpu/loop.h"

#include <math.h>
#include <string.h>

#include "run/vec/vec.h"

/* All registers of a tile should stay in the second-level cache of a core. */
enum { TILE_BYTES = 192 << 10, LEAST_TILE = 256, MOST_TILE = 8192, ALIGN = 64, SHORT_RUN = 16 };

static int64_t align_bytes(int64_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

static sf_tiling tile_loop(const sf_loop *loop)
{
    int64_t width = 0;
    for (uint32_t i = 0; i < loop->nregisters; i++)
        width += loop->is_wide[i] ? 8 : 4;
    int64_t size = TILE_BYTES / (width ? width : 4);
    size = size < LEAST_TILE ? LEAST_TILE : size > MOST_TILE ? MOST_TILE : size;
    size = size / 16 * 16;
    sf_tiling t = {.columns = loop->columns, .pieces = 1};
    if (loop->columns > size && !sf_loop_wants_rows(loop)) {
        t.pieces = (loop->columns + size - 1) / size;
        t.columns = size;
        t.rows = 1;
    } else {
        t.rows = size / (loop->columns ? loop->columns : 1);
        t.rows = t.rows < 1 ? 1 : t.rows > loop->rows ? loop->rows : t.rows;
    }
    t.units = loop->rows * t.pieces;
    t.register_bytes[0] = align_bytes((t.rows * t.columns + 16) * 4);
    t.register_bytes[1] = align_bytes((t.rows * t.columns + 16) * 8);
    return t;
}

static int64_t registers_bytes(const sf_loop *loop, const sf_tiling *t)
{
    int64_t bytes = 0;
    for (uint32_t i = 0; i < loop->nregisters; i++)
        bytes += t->register_bytes[loop->is_wide[i]];
    return bytes;
}

static int64_t gathered_bytes(const sf_loop *loop)
{
    int64_t bytes = 0;
    for (uint32_t i = 0; i < loop->nsteps; i++)
        if (loop->steps[i].kind == SF_STEP_GATHER)
            bytes += align_bytes((loop->steps[i].is_scalar ? 16 : loop->columns + 16) * 8);
    return bytes;
}

int64_t sf_loop_scratch(const sf_loop *loop, int threads)
{
    sf_tiling t = tile_loop(loop);
    return threads * (registers_bytes(loop, &t) + gathered_bytes(loop));
}

/* One part's view of a running loop. */
typedef struct runner {
    const sf_loop *loop;
    const sf_vec *vec;
    sf_pointers pointers;
    char *registers[512];                 /* by number */
    char *gathered;                       /* accumulators of this part */
    int64_t row, nrows, column, ncolumns; /* of the tile */
} runner;

static int64_t class_width(sf_vclass class)
{
    return class == SF_VF64 || class == SF_VI64 ? 8 : 4;
}

static void fill_register(void *dst, sf_vclass class, const sf_loop_step *step, int64_t count)
{
    switch (class) {
    case SF_VF32:
        for (int64_t i = 0; i < count; i++)
            ((float *)dst)[i] = (float)step->constant.real;
        break;
    case SF_VF64:
        for (int64_t i = 0; i < count; i++)
            ((double *)dst)[i] = step->constant.real;
        break;
    case SF_VI32:
        for (int64_t i = 0; i < count; i++)
            ((int32_t *)dst)[i] = (int32_t)step->constant.integer;
        break;
    case SF_VI64:
    case SF_VCLASS_COUNT:
        for (int64_t i = 0; i < count; i++)
            ((int64_t *)dst)[i] = step->constant.integer;
        break;
    }
}

static void expand_rows(void *dst, const void *from, sf_vclass class, int64_t rows, int64_t columns)
{
    if (class_width(class) == 4) {
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
typedef void each_run(runner *r, const sf_loop_step *step, int64_t offset, int64_t stride,
                      int64_t at, int64_t count);

static void rows_runs(runner *r, const sf_loop_step *step, const sf_access *access, each_run *run)
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

static void tile_runs(runner *r, const sf_loop_step *step, each_run *run)
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

static void load_run(runner *r, const sf_loop_step *step, int64_t offset, int64_t stride,
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
    r->vec->loads[access->dtype](r->registers[step->dst] + at * class_width(step->class),
                                 r->pointers.in[access->view] + offset * bytes, stride, count);
}

static void store_run(runner *r, const sf_loop_step *step, int64_t offset, int64_t stride,
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
                                  r->registers[step->a] + at * class_width(step->class), count);
}

/* The op that combines two registers as the fold combines elements. */
static sf_vop combining_op(sf_vfold fold)
{
    static const sf_vop ops[SF_VFOLD_COUNT] = {
        [SF_VFOLD_SUM] = SF_VADD, [SF_VFOLD_PROD] = SF_VMUL,  [SF_VFOLD_MAX] = SF_VMAX,
        [SF_VFOLD_MIN] = SF_VMIN, [SF_VFOLD_UMAX] = SF_VUMAX, [SF_VFOLD_UMIN] = SF_VUMIN,
        [SF_VFOLD_AND] = SF_VAND, [SF_VFOLD_OR] = SF_VOR,     [SF_VFOLD_XOR] = SF_VXOR,
    };
    return ops[fold];
}

/* What changes nothing. */
static sf_loop_step identity_step(sf_vfold fold, sf_vclass class)
{
    bool real = class == SF_VF32 || class == SF_VF64, wide = class_width(class) == 8;
    sf_loop_step step = {.class = class};
    switch (fold) {
    case SF_VFOLD_PROD:
        if (real)
            step.constant.real = 1;
        else
            step.constant.integer = 1;
        break;
    case SF_VFOLD_MAX:
        if (real)
            step.constant.real = -HUGE_VAL;
        else
            step.constant.integer = wide ? INT64_MIN : INT32_MIN;
        break;
    case SF_VFOLD_MIN:
        if (real)
            step.constant.real = HUGE_VAL;
        else
            step.constant.integer = wide ? INT64_MAX : INT32_MAX;
        break;
    case SF_VFOLD_AND:
    case SF_VFOLD_UMIN:
        step.constant.integer = -1;
        break;
    case SF_VFOLD_SUM:
    case SF_VFOLD_OR:
    case SF_VFOLD_XOR:
    case SF_VFOLD_UMAX:
    case SF_VFOLD_COUNT:
        break;
    }
    return step;
}

static void fold_rows(runner *r, const sf_loop_step *step)
{
    int64_t width = class_width(step->class);
    char *dst = r->registers[step->dst];
    const char *a = r->registers[step->a];
    fill_register(dst, step->class, step, r->nrows);
    for (int64_t i = 0; i < r->nrows; i++)
        r->vec->folds[step->fold][step->class](dst + i * width, a + i * r->ncolumns * width,
                                               r->ncolumns);
}

static void gather_step(runner *r, const sf_loop_step *step, char *into)
{
    int64_t width = class_width(step->class);
    const char *a = r->registers[step->a];
    if (step->is_scalar) {
        r->vec->folds[step->fold][step->class](into, a, r->nrows * r->ncolumns);
        return;
    }
    /* A kernel may overwrite what follows; those are sums of other columns. */
    char *to = into + r->column * width, *next = to + r->ncolumns * width, kept[16 * 8];
    memcpy(kept, next, (size_t)(16 * width));
    sf_vkernel *combine = r->vec->ops[combining_op(step->fold)][step->class];
    for (int64_t i = 0; i < r->nrows; i++)
        combine(to, to, a + i * r->ncolumns * width, NULL, r->ncolumns);
    memcpy(next, kept, (size_t)(16 * width));
}

static void convert_step(runner *r, const sf_loop_step *step, int64_t count)
{
    sf_vclass from = sf_vclass_of(step->dtype);
    bool is_unsigned = sf_is_unsigned(step->dtype) && sf_dtype_get(step->dtype)->bits >= 32;
    sf_vkernel *kernel =
        is_unsigned ? r->vec->uconverts[from][step->class] : r->vec->converts[from][step->class];
    if (from == step->class)
        kernel = r->vec->ops[SF_VCOPY][from];
    kernel(r->registers[step->dst], r->registers[step->a], NULL, NULL, count);
}

static void run_tile(runner *r)
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
            gathered += align_bytes((step->is_scalar ? 16 : r->loop->columns + 16) * 8);
            break;
        }
    }
}

static void point_registers(runner *r, const sf_loop_job *j, int part)
{
    char *at = j->scratch + part * j->per_part;
    r->loop = j->loop;
    r->vec = sf_vec_get();
    r->pointers = j->pointers;
    r->gathered = at + j->registers;
    for (uint32_t i = 0; i < j->loop->nregisters; i++) {
        r->registers[i] = at;
        at += j->t.register_bytes[j->loop->is_wide[i]];
    }
}

/* Constants, and accumulators without anything in them. */
static void set_up_runner(const sf_loop_job *j, int part)
{
    runner r;
    point_registers(&r, j, part);
    char *at = r.gathered;
    for (uint32_t i = 0; i < j->loop->nsteps; i++) {
        const sf_loop_step *step = &j->loop->steps[i];
        if (step->kind == SF_STEP_CONSTANT)
            fill_register(r.registers[step->dst], step->class, step, j->t.rows * j->t.columns);
        if (step->kind != SF_STEP_GATHER)
            continue;
        sf_loop_step start = identity_step(step->fold, step->class);
        fill_register(at, step->class, &start, step->is_scalar ? 1 : j->loop->columns);
        at += align_bytes((step->is_scalar ? 16 : j->loop->columns + 16) * 8);
    }
}

sf_loop_job sf_loop_begin(const sf_loop *loop, sf_pointers pointers, void *scratch, int parts)
{
    sf_loop_job j = {.loop = loop,
                     .t = tile_loop(loop),
                     .pointers = pointers,
                     .scratch = scratch,
                     .parts = parts};
    j.registers = registers_bytes(loop, &j.t);
    j.per_part = j.registers + gathered_bytes(loop);
    for (int part = 0; part < parts; part++)
        set_up_runner(&j, part);
    return j;
}

void sf_loop_piece(const sf_loop_job *j, int part, int64_t row, int64_t rows, int64_t column,
                   int64_t columns)
{
    runner r;
    point_registers(&r, j, part);
    int64_t wide = columns < j->t.columns ? columns : j->t.columns;
    int64_t high = wide ? j->t.rows * j->t.columns / wide : rows;
    for (int64_t i = 0; i < rows; i += high)
        for (int64_t at = 0; at < columns; at += wide) {
            r.row = row + i;
            r.nrows = rows - i < high ? rows - i : high;
            r.column = column + at;
            r.ncolumns = columns - at < wide ? columns - at : wide;
            run_tile(&r);
        }
}

static void run_tiles(void *context, int part, int64_t first, int64_t end)
{
    const sf_loop_job *j = context;
    int64_t columns = j->loop->columns, pieces = j->t.pieces;
    if (pieces == 1) {
        sf_loop_piece(j, part, first, end - first, 0, columns);
        return;
    }
    for (int64_t unit = first; unit < end;) { /* as much of a row as is to be done */
        int64_t piece = unit % pieces, from = piece * j->t.columns;
        int64_t count = end - unit < pieces - piece ? end - unit : pieces - piece;
        int64_t to = from + count * j->t.columns < columns ? from + count * j->t.columns : columns;
        sf_loop_piece(j, part, unit / pieces, 1, from, to - from);
        unit += count;
    }
}

/* The sums of all parts, in order, and the initial value. */
void sf_loop_end(const sf_loop_job *j)
{
    const sf_vec *vec = sf_vec_get();
    int64_t offset = j->registers;
    for (uint32_t i = 0; i < j->loop->nsteps; i++) {
        const sf_loop_step *step = &j->loop->steps[i];
        if (step->kind != SF_STEP_GATHER)
            continue;
        int64_t count = step->is_scalar ? 1 : j->loop->columns;
        sf_vkernel *combine = vec->ops[combining_op(step->fold)][step->class];
        char *sum = j->scratch + offset;
        for (int p = 1; p < j->parts; p++)
            combine(sum, sum, j->scratch + p * j->per_part + offset, NULL, count);
        const sf_access *access = &j->loop->accesses[step->access];
        _Alignas(64) char start[64 * 8];
        for (int64_t at = 0; at < count; at += 64) {
            int64_t some = count - at < 64 ? count - at : 64;
            fill_register(start, step->class, step, some);
            char *part = sum + at * class_width(step->class);
            combine(part, start, part, NULL, some);
        }
        vec->stores[access->dtype](j->pointers.out[access->view], 1, sum, count);
        offset += align_bytes((step->is_scalar ? 16 : j->loop->columns + 16) * 8);
    }
}

void sf_loop_run(const sf_loop *loop, sf_pointers pointers, void *scratch, sf_threads *threads)
{
    enum { WORTH_A_THREAD = 32768 }; /* elements times steps */
    sf_tiling t = tile_loop(loop);
    int64_t work = loop->rows * loop->columns * loop->nsteps;
    int count = sf_threads_count(threads);
    int64_t grain = t.pieces > 1 ? 1 : t.rows;
    bool alone = count == 1 || work < 2 * WORTH_A_THREAD || t.units <= grain;
    sf_loop_job j = sf_loop_begin(loop, pointers, scratch, alone ? 1 : count);
    if (alone) {
        run_tiles(&j, 0, 0, t.units);
    } else {
        int64_t share = (t.units + count - 1) / count;
        sf_threads_run(threads, t.units, grain > share ? share : grain, run_tiles, &j);
    }
    sf_loop_end(&j);
}
