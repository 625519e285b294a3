#include "prog/split_instruction.h"

/* Rows of loops */

/* Row number `row` of the loop, as indices of its first dimensions. */
static void index_of_row(const sf_loop *loop, int64_t row, int64_t *index)
{
    for (int d = loop->split; d-- > 0;) {
        index[d] = row % loop->dims[d];
        row /= loop->dims[d];
    }
}

static int64_t place_of_row(const sf_loop *loop, const sf_access *access, int64_t row)
{
    int64_t index[SF_MAX_RANK], at = 0;
    index_of_row(loop, row, index);
    for (int d = 0; d < loop->split; d++)
        at += index[d] * access->strides[d];
    return at;
}

/* Dimensions of a loop over one of so many parts of its rows; false: they do not go into them. */
static bool cut_rows(const sf_loop *loop, int64_t parts, int64_t *dims)
{
    for (int d = 0; d < loop->rank; d++) {
        dims[d] = loop->dims[d];
        if (d >= loop->split || parts == 1)
            continue;
        if (dims[d] % parts == 0) {
            dims[d] /= parts;
            parts = 1;
        } else if (parts % dims[d] == 0) {
            parts /= dims[d];
            dims[d] = 1;
        } else {
            return false;
        }
    }
    return parts == 1;
}

/* The operand or result that a step loads or stores, and whether it stores. */
static bool moves(const sf_loop_step *step)
{
    return step->kind == SF_STEP_LOAD || step->kind == SF_STEP_STORE;
}

/* All accesses of one view walk its rows alike, so that one shift of the view shifts all of
 * them. */
static bool walks_alike(const sf_loop *loop, const sf_loop_step *a, const sf_loop_step *b)
{
    const sf_access *x = &loop->accesses[a->access], *y = &loop->accesses[b->access];
    if (a->kind != b->kind || x->view != y->view)
        return true;
    for (int d = 0; d < loop->rank; d++)
        if (x->strides[d] != y->strides[d] || x->is_row != y->is_row)
            return false;
    return true;
}

/* The same in every row. */
static bool counts_columns(const sf_loop *loop, const sf_access *access)
{
    for (int d = 0; d < loop->split; d++)
        if (loop->dims[d] > 1 && access->strides[d] != 0)
            return false;
    return true;
}

/* Stores are contiguous row by row, as cells are. */
static bool stores_in_order(const sf_loop *loop, const sf_access *access)
{
    int64_t stride = access->is_row ? 1 : loop->columns;
    for (int d = loop->split; d-- > 0;) {
        if (loop->dims[d] != 1 && access->strides[d] != stride)
            return false;
        stride *= loop->dims[d];
    }
    return true;
}

static bool can_cut_loop(const sf_loop *loop, int64_t cells)
{
    int64_t dims[SF_MAX_RANK];
    if (!cut_rows(loop, cells, dims))
        return false;
    for (uint32_t i = 0; i < loop->nsteps; i++) {
        const sf_loop_step *step = &loop->steps[i];
        /* all rows become one: the parts would be added one by one */
        if (step->kind == SF_STEP_GATHER)
            return false;
        if (moves(step) && loop->accesses[step->access].windows)
            return false;
        if (step->kind == SF_STEP_INDEX && !counts_columns(loop, &loop->accesses[step->access]))
            return false;
        if (step->kind == SF_STEP_STORE && !stores_in_order(loop, &loop->accesses[step->access]))
            return false;
        for (uint32_t j = 0; j < i && moves(step); j++)
            if (moves(&loop->steps[j]) && !walks_alike(loop, step, &loop->steps[j]))
                return false;
    }
    return true;
}

/* The view, as the access walks it from a row on. */
static sf_view shifted_view(const sf_view *view, const sf_loop *whole, const sf_loop *loop,
                            const sf_access *access, int64_t row)
{
    sf_view out = {.buffer = view->buffer, .dtype = view->dtype};
    out.offset = view->offset + place_of_row(whole, access, row);
    out.rank = access->is_row ? loop->split : loop->rank;
    for (int d = 0; d < out.rank; d++) {
        out.dims[d] = loop->dims[d];
        out.strides[d] = access->strides[d];
    }
    return out;
}

static void cut_loop(sf_program *p, const sf_inst *whole, uint32_t cells, uint32_t cell,
                     sf_inst *out)
{
    sf_loop *loop = sf_arena_copy(&p->arena, whole->loop, sizeof *loop);
    cut_rows(whole->loop, cells, loop->dims);
    loop->rows /= cells;
    for (uint32_t i = 0; i < loop->nsteps; i++) {
        const sf_loop_step *step = &loop->steps[i];
        if (!moves(step))
            continue;
        const sf_access *access = &loop->accesses[step->access];
        bool writes = step->kind == SF_STEP_STORE;
        const sf_view *view = writes ? &whole->out[access->view] : &whole->in[access->view];
        *(writes ? &out->out[access->view] : &out->in[access->view]) =
            shifted_view(view, whole->loop, loop, access, cell * loop->rows);
    }
    out->loop = loop;
}

/* Products */

bool sf_dot_can_cut(const sf_inst *inst, uint32_t cells, uint32_t *cut)
{
    const sf_dot *d = inst->dot;
    if (inst->kind != SF_INST_DOT || inst->piece || sf_dot_columns(d) == 0 || d->m * d->n == 0)
        return false;
    for (int i = 0; i < d->nbatch; i++)
        if (d->batch[i] != 1)
            return false;
    bool along_m = d->c_column == 1;
    *cut = along_m ? 0 : 1;
    if ((along_m ? d->m : d->n) % cells != 0)
        return false;
    /* rows of the loop are those of the product */
    return !inst->loop ||
           (inst->loop->columns == sf_dot_columns(d) && can_cut_loop(inst->loop, cells));
}

static sf_view matrix_view(const sf_view *view, int64_t shift, int64_t rows, int64_t columns,
                           int64_t row, int64_t column)
{
    return (sf_view){.buffer = view->buffer,
                     .dtype = view->dtype,
                     .rank = 2,
                     .offset = view->offset + shift,
                     .dims = {rows, columns},
                     .strides = {row, column}};
}

sf_inst sf_dot_piece(sf_program *p, const sf_inst *whole, uint32_t cells, uint32_t cell)
{
    const sf_dot *all = whole->dot;
    sf_inst out = *whole;
    sf_dot *d = sf_arena_copy(&p->arena, all, sizeof *d);
    sf_inst_piece *piece = SF_NEW(&p->arena, sf_inst_piece);
    bool along_m = all->c_column == 1;
    *(along_m ? &d->m : &d->n) /= cells;
    int64_t m = along_m ? cell * d->m : 0, n = along_m ? 0 : cell * d->n;
    out.in = sf_arena_copy(&p->arena, whole->in, whole->nin * sizeof *whole->in);
    out.out = sf_arena_copy(&p->arena, whole->out, whole->nout * sizeof *whole->out);
    out.in[0] = matrix_view(&whole->in[0], m * d->a_row, d->m, d->k, d->a_row, d->a_column);
    out.in[1] = matrix_view(&whole->in[1], n * d->b_column, d->k, d->n, d->b_row, d->b_column);
    if (whole->loop)
        cut_loop(p, whole, cells, cell, &out);
    out.out[0] = matrix_view(&whole->out[0], m * d->c_row + n * d->c_column, d->m, d->n, d->c_row,
                             d->c_column);
    *piece = (sf_inst_piece){.whole = whole, .cut = along_m ? 0 : 1};
    piece->in = piece->out = (sf_cells){cells, cell, 1, 1};
    out.dot = d;
    out.piece = piece;
    return out;
}

/* Collectives */

/* The view of some cells, which are contiguous. */
static sf_view cells_of(const sf_view *view, sf_cells cells)
{
    if (cells.of == 0)
        return *view;
    int64_t length = sf_view_count(view) / cells.of;
    return matrix_view(view, cells.first * length, cells.count, length, cells.step * length, 1);
}

sf_inst sf_exchange_piece(sf_program *p, const sf_inst *whole, sf_cells in, sf_cells out)
{
    sf_inst inst = *whole;
    sf_inst_piece *piece = SF_NEW(&p->arena, sf_inst_piece);
    inst.in = SF_NEW(&p->arena, sf_view);
    inst.out = SF_NEW(&p->arena, sf_view);
    inst.in[0] = cells_of(&whole->in[0], in);
    inst.out[0] = cells_of(&whole->out[0], out);
    inst.exchange = sf_arena_copy(&p->arena, whole->exchange, sizeof *whole->exchange);
    *piece = (sf_inst_piece){.whole = whole, .in = in, .out = out};
    inst.piece = piece;
    return inst;
}

/* Checks: recomputes the offsets of elements */

static bool same_dot(const sf_dot *a, const sf_dot *b, bool along_m, int64_t cells)
{
    return a->k == b->k && a->m * (along_m ? cells : 1) == b->m &&
           a->n * (along_m ? 1 : cells) == b->n && a->a_row == b->a_row &&
           a->a_column == b->a_column && a->b_row == b->b_row && a->b_column == b->b_column &&
           a->c_row == b->c_row && a->c_column == b->c_column && a->exact == b->exact;
}

/* The last element of a matrix, or the first, from the beginning of its buffer. */
static int64_t corner(const sf_view *view, int64_t row, int64_t column, int64_t i, int64_t j)
{
    return view->offset + i * row + j * column;
}

static bool dot_fits(const sf_inst *inst, const sf_inst_piece *piece)
{
    const sf_dot *d = inst->dot, *all = piece->whole->dot;
    const sf_view *in = inst->in, *whole = piece->whole->in;
    bool along_m = piece->cut == 0;
    int64_t cell = piece->in.first, cells = piece->in.of;
    int64_t m = along_m ? cell * d->m : 0, n = along_m ? 0 : cell * d->n;
    if (piece->cut > 1 || !same_dot(d, all, along_m, cells) || piece->out.first != cell ||
        piece->out.of != cells || piece->in.count != 1 || piece->out.count != 1)
        return false;
    return corner(&in[0], d->a_row, d->a_column, 0, 0) ==
               corner(&whole[0], d->a_row, d->a_column, m, 0) &&
           corner(&in[1], d->b_row, d->b_column, 0, 0) ==
               corner(&whole[1], d->b_row, d->b_column, 0, n) &&
           corner(inst->out, d->c_row, d->c_column, 0, 0) ==
               corner(piece->whole->out, d->c_row, d->c_column, m, n) &&
           (along_m ? d->c_column == 1 && d->c_row == d->n : d->c_row == 1 && d->c_column == d->m);
}

/* The first, the last and a middle row of every access are those of the whole. */
static bool loop_fits(const sf_inst *inst, const sf_inst_piece *piece)
{
    const sf_inst *whole = piece->whole;
    const sf_loop *loop = inst->loop, *all = whole->loop;
    int64_t rows = loop->rows;
    if (loop->steps != all->steps || loop->accesses != all->accesses || loop->rank != all->rank ||
        loop->split != all->split || rows * piece->in.of != all->rows)
        return false;
    for (int d = loop->split; d < loop->rank; d++)
        if (loop->dims[d] != all->dims[d])
            return false;
    for (uint32_t i = 0; i < loop->nsteps; i++) {
        const sf_loop_step *step = &loop->steps[i];
        if (!moves(step))
            continue;
        const sf_access *access = &loop->accesses[step->access];
        bool writes = step->kind == SF_STEP_STORE;
        int64_t own = (writes ? inst->out : inst->in)[access->view].offset;
        int64_t from = (writes ? whole->out : whole->in)[access->view].offset;
        const int64_t tried[] = {0, rows / 2, rows - 1};
        for (int t = 0; t < 3; t++)
            if (own + place_of_row(loop, access, tried[t]) !=
                from + place_of_row(all, access, piece->in.first * rows + tried[t]))
                return false;
    }
    return true;
}

/* Cells that are there, each of the size of the others. */
static bool view_fits(const sf_view *view, const sf_view *whole, sf_cells cells)
{
    if (cells.of == 0)
        return view->offset == whole->offset && sf_view_count(view) == sf_view_count(whole);
    int64_t count = sf_view_count(whole), length = count / cells.of;
    if (!sf_view_is_contiguous(whole) || count % cells.of != 0 || cells.count == 0 ||
        cells.first + (uint64_t)cells.step * (cells.count - 1) >= cells.of)
        return false;
    return view->rank == 2 && view->dims[0] == cells.count && view->dims[1] == length &&
           view->strides[1] == 1 && view->strides[0] == cells.step * length &&
           view->offset == whole->offset + cells.first * length;
}

bool sf_piece_fits(const sf_inst *inst)
{
    const sf_inst_piece *piece = inst->piece;
    if (inst->kind != piece->whole->kind || inst->nin != piece->whole->nin ||
        inst->nout != piece->whole->nout)
        return false;
    if (inst->kind == SF_INST_DOT)
        return piece->in.of > 0 && dot_fits(inst, piece) &&
               (inst->loop ? piece->whole->loop && loop_fits(inst, piece) : !piece->whole->loop);
    return inst->kind == SF_INST_COMM && inst->nin == 1 && inst->nout == 1 &&
           view_fits(inst->in, piece->whole->in, piece->in) &&
           view_fits(inst->out, piece->whole->out, piece->out);
}

bool sf_insts_meet(const sf_inst *a, const sf_view *of_a, const sf_inst *b, const sf_view *of_b)
{
    return !a->piece || !b->piece || sf_views_meet(of_a, of_b);
}
