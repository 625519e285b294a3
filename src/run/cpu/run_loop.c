#include "run/cpu/run_loop.h"

#include <math.h>

#include "run/cpu/compiled_loops.h"
#include "run/cpu/loop_tile_run.h"

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
            bytes += sf_gathered_bytes(loop, &loop->steps[i]);
    return bytes;
}

int64_t sf_loop_scratch(const sf_loop *loop, int threads)
{
    sf_tiling t = sf_loop_tile(loop);
    int64_t bytes = registers_bytes(loop, &t);
    int64_t rooms = sf_native_wanted(loop) ? sf_native_rooms(loop, &t) : 0;
    return threads * ((bytes > rooms ? bytes : rooms) + gathered_bytes(loop) + SF_TILE_ALIGN);
}

/* The identity of a fold. */
static sf_loop_step identity_step(sf_vfold fold, sf_vclass class)
{
    bool real = class == SF_VF32 || class == SF_VF64, wide = sf_class_width(class) == 8;
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

/* The state of a part. Each part sets it up itself when it begins: one thread that did it for
 * all would keep them waiting for longer than small loops take, and would have it in the wrong
 * cache. */
typedef struct part_state {
    int64_t elements;   /* of its constants; 0: it has no accumulators either */
    int64_t first, end; /* columns that its accumulators are of */
} part_state;

static part_state *state_of_part(const sf_loop_job *j, int part)
{
    return (part_state *)(void *)(j->scratch + (part + 1) * j->per_part - SF_TILE_ALIGN);
}

static void point_registers(sf_tile *r, const sf_loop_job *j, int part)
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

static void clear_accumulators(const sf_loop_job *j, const part_state *state, char *at)
{
    for (uint32_t i = 0; i < j->loop->nsteps; i++) {
        const sf_loop_step *step = &j->loop->steps[i];
        if (step->kind != SF_STEP_GATHER)
            continue;
        sf_loop_step start = identity_step(step->fold, step->class);
        int64_t first = step->is_scalar ? 0 : state->first;
        int64_t count = step->is_scalar ? 1 : state->end - first;
        sf_tile_fill(at + first * sf_class_width(step->class), step->class, &start, count);
        at += sf_gathered_bytes(j->loop, step);
    }
}

/* Constants, so many elements of each, and accumulators without anything in them: where they are not yet there. */
static void set_up_part(const sf_loop_job *j, int part, const sf_tile *r, int64_t elements)
{
    part_state *state = state_of_part(j, part);
    if (state->elements == 0)
        clear_accumulators(j, state, r->gathered);
    for (uint32_t i = 0; state->elements < elements && i < j->loop->nsteps; i++) {
        const sf_loop_step *step = &j->loop->steps[i];
        if (step->kind == SF_STEP_CONSTANT)
            sf_tile_fill(r->registers[step->dst], step->class, step, elements);
    }
    if (state->elements < elements)
        state->elements = elements;
}

sf_loop_job sf_loop_begin(const sf_loop *loop, const sf_native *native, sf_pointers pointers,
                          void *scratch, int parts)
{
    sf_loop_job j = {.loop = loop,
                     .native = native,
                     .t = sf_loop_tile(loop),
                     .pointers = pointers,
                     .scratch = scratch,
                     .parts = parts};
    j.registers = native ? sf_native_rooms(loop, &j.t) : registers_bytes(loop, &j.t);
    j.per_part = j.registers + gathered_bytes(loop) + SF_TILE_ALIGN;
    for (int part = 0; part < parts; part++)
        *state_of_part(&j, part) = (part_state){.end = loop->columns};
    return j;
}

/* By the code of the loop; the tile says where. */
static void run_native(const sf_loop_job *j, int part, const sf_tile *r)
{
    char *at = j->scratch + part * j->per_part;
    sf_native_run(&(sf_native_tile){.native = j->native,
                                    .pointers = j->pointers,
                                    .rooms = at,
                                    .sums = at + j->registers,
                                    .room_bytes = j->t.register_bytes[1],
                                    .row = r->row,
                                    .rows = r->nrows,
                                    .column = r->column,
                                    .columns = r->ncolumns});
}

/* Registers or rooms, accumulators and constants of a part, for tiles of so many elements. */
static void begin_part(const sf_loop_job *j, int part, sf_tile *r, int64_t elements)
{
    part_state *state = state_of_part(j, part);
    if (!j->native) {
        point_registers(r, j, part);
        set_up_part(j, part, r, elements);
    } else if (state->elements == 0) {
        clear_accumulators(j, state, j->scratch + part * j->per_part + j->registers);
        state->elements = 1;
    }
}

void sf_loop_piece(const sf_loop_job *j, int part, int64_t row, int64_t rows, int64_t column,
                   int64_t columns)
{
    sf_tile r;
    int64_t wide = columns < j->t.columns ? columns : j->t.columns;
    int64_t high = wide ? j->t.rows * j->t.columns / wide : rows;
    begin_part(j, part, &r, wide * (rows < high ? rows : high));
    for (int64_t i = 0; i < rows; i += high)
        for (int64_t at = 0; at < columns; at += wide) {
            r.row = row + i;
            r.nrows = rows - i < high ? rows - i : high;
            r.column = column + at;
            r.ncolumns = columns - at < wide ? columns - at : wide;
            if (j->native)
                run_native(j, part, &r);
            else
                sf_tile_run(&r);
        }
}

static bool gathers_columns(const sf_loop *loop)
{
    for (uint32_t i = 0; i < loop->nsteps; i++)
        if (loop->steps[i].kind == SF_STEP_GATHER && !loop->steps[i].is_scalar)
            return true;
    return false;
}

/* Units that go down one range of the columns after the other, so that parts gather different
 * columns, and little is left to combine. The first part has all of them: the others add to its
 * own. */
static void run_tiles_down(const sf_loop_job *j, int part, int64_t first, int64_t end)
{
    int64_t rows = j->loop->rows, all = j->loop->columns, wide = j->t.columns;
    part_state *state = state_of_part(j, part);
    if (part > 0) {
        int64_t last = ((end - 1) / rows + 1) * wide;
        state->first = first / rows * wide;
        state->end = last < all ? last : all;
    }
    for (int64_t unit = first; unit < end;) {
        int64_t row = unit % rows, column = unit / rows * wide;
        int64_t count = end - unit < rows - row ? end - unit : rows - row;
        sf_loop_piece(j, part, row, count, column, all - column < wide ? all - column : wide);
        unit += count;
    }
}

static void run_tiles(void *context, int part, int64_t first, int64_t end)
{
    const sf_loop_job *j = context;
    int64_t columns = j->loop->columns, pieces = j->t.pieces;
    if (pieces > 1 && end > first && gathers_columns(j->loop)) {
        run_tiles_down(j, part, first, end);
        return;
    }
    if (pieces == 1) {
        sf_loop_piece(j, part, first, end - first, 0, columns);
        return;
    }
    for (int64_t unit = first; unit < end;) { /* as much of a row as remains */
        int64_t piece = unit % pieces, from = piece * j->t.columns;
        int64_t count = end - unit < pieces - piece ? end - unit : pieces - piece;
        int64_t to = from + count * j->t.columns < columns ? from + count * j->t.columns : columns;
        sf_loop_piece(j, part, unit / pieces, 1, from, to - from);
        unit += count;
    }
}

/* To those of the first part. Columns of a part end where a tile does or with the last: a kernel overwrites nothing. */
static void add_part(const sf_loop_job *j, int part, const sf_loop_step *step, int64_t offset)
{
    const part_state *state = state_of_part(j, part);
    if (state->elements == 0)
        return;
    int64_t first = step->is_scalar ? 0 : state->first;
    int64_t count = step->is_scalar ? 1 : state->end - first;
    char *sum = j->scratch + offset + first * sf_class_width(step->class);
    sf_vec_get()->ops[sf_fold_op(step->fold)][step->class](sum, sum, sum + part * j->per_part, NULL,
                                                           count);
}

/* The sums of all parts that had something to do, in order, and the initial value. */
void sf_loop_end(const sf_loop_job *j)
{
    const sf_vec *vec = sf_vec_get();
    int64_t offset = j->registers;
    if (state_of_part(j, 0)->elements == 0)
        clear_accumulators(j, state_of_part(j, 0), j->scratch + j->registers);
    for (uint32_t i = 0; i < j->loop->nsteps; i++) {
        const sf_loop_step *step = &j->loop->steps[i];
        if (step->kind != SF_STEP_GATHER)
            continue;
        int64_t count = step->is_scalar ? 1 : j->loop->columns;
        sf_vkernel *combine = vec->ops[sf_fold_op(step->fold)][step->class];
        char *sum = j->scratch + offset;
        for (int p = 1; p < j->parts; p++)
            add_part(j, p, step, offset);
        const sf_access *access = &j->loop->accesses[step->access];
        _Alignas(64) char start[64 * 8];
        for (int64_t at = 0; at < count; at += 64) {
            int64_t some = count - at < 64 ? count - at : 64;
            sf_tile_fill(start, step->class, step, some);
            char *part = sum + at * sf_class_width(step->class);
            combine(part, start, part, NULL, some);
        }
        vec->stores[access->dtype](j->pointers.out[access->view], 1, sum, count);
        offset += sf_gathered_bytes(j->loop, step);
    }
}

void sf_loop_run(const sf_loop *loop, const sf_native *native, sf_pointers pointers, void *scratch,
                 sf_threads *threads)
{
    int count = sf_threads_count(threads);
    sf_tiling t = sf_loop_tile(loop);
    int64_t grain = sf_loop_grain(loop, &t, count);
    bool alone = t.units <= grain;
    sf_loop_job j = sf_loop_begin(loop, native, pointers, scratch, alone ? 1 : count);
    if (alone)
        run_tiles(&j, 0, 0, t.units);
    else
        sf_threads_run(threads, t.units, grain, run_tiles, &j);
    sf_loop_end(&j);
}
