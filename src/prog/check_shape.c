#include "prog/check_shape.h"
#include "prog/split_instruction.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

sf_status sf_inst_fail(const sf_program *program, uint32_t index, sf_diag *diag, const char *format,
                       ...)
{
    const sf_inst *inst = &program->insts[index];
    char text[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return sf_fail(diag, SF_EMISMATCH, inst->origin.loc, "program: instruction %u, %s%s%s: %s",
                   index,
                   (unsigned)inst->kind < SF_INST_KIND_COUNT ? sf_inst_kind_name(inst->kind) : "?",
                   *inst->origin.scope ? " in " : "", inst->origin.scope, text);
}

/* Extents */

/* Adds the way along one dimension to the first and last element that is reached; false when there is none, or the
 * numbers are out of all range. */
static bool extend_reach(int64_t size, int64_t stride, int64_t *first, int64_t *last)
{
    int64_t way;
    if (size < 1 || __builtin_mul_overflow(size - 1, stride, &way))
        return false;
    return !__builtin_add_overflow(*(way < 0 ? first : last), way, way < 0 ? first : last);
}

static bool is_inside_buffer(const sf_program *p, const sf_view *view, int64_t first, int64_t last)
{
    int64_t width = sf_dtype_get(view->dtype)->bytes, bytes = p->buffers[view->buffer].bytes;
    return first >= 0 && last >= first && last < INT64_MAX / width - 1 &&
           (last + 1) * width <= bytes;
}

static bool has_elements(int rank, const int64_t *dims)
{
    for (int i = 0; i < rank; i++)
        if (dims[i] == 0)
            return false;
    return true;
}

static bool view_fits(const sf_program *p, const sf_view *view)
{
    int64_t first = view->offset, last = view->offset;
    if (view->buffer >= p->nbuffers || view->rank < 0 || view->rank > SF_MAX_RANK)
        return false;
    if (!has_elements(view->rank, view->dims))
        return true;
    for (int i = 0; i < view->rank; i++)
        if (!extend_reach(view->dims[i], view->strides[i], &first, &last))
            return false;
    return is_inside_buffer(p, view, first, last);
}

/* Loops */

static bool access_fits(const sf_program *p, const sf_inst *inst, const sf_access *access,
                        bool writes)
{
    const sf_loop *loop = inst->loop;
    if (access->view >= (writes ? inst->nout : inst->nin))
        return false;
    const sf_view *view = writes ? &inst->out[access->view] : &inst->in[access->view];
    int64_t first = view->offset, last = view->offset;
    int rank = access->is_row ? loop->split : loop->rank;
    if (writes && access->windows)
        return false;
    for (int i = 0; i < rank; i++)
        if (!extend_reach(sf_access_size(loop, access, i), access->strides[i], &first, &last))
            return false;
    return access->dtype == view->dtype && is_inside_buffer(p, view, first, last);
}

/* A tensor that is combined over rows has an element for each column, or one. */
static bool gather_fits(const sf_program *p, const sf_inst *inst, const sf_loop_step *step)
{
    const sf_access *access = &inst->loop->accesses[step->access];
    if (access->view >= inst->nout)
        return false;
    const sf_view *view = &inst->out[access->view];
    int64_t count = step->is_scalar ? 1 : inst->loop->columns;
    return is_inside_buffer(p, view, view->offset, view->offset + count - 1);
}

static bool loop_has_shape(const sf_loop *loop)
{
    int64_t rows = 1, columns = 1;
    if (loop->rank < 1 || loop->rank > SF_MAX_RANK || loop->split < 0 || loop->split > loop->rank)
        return false;
    for (int i = 0; i < loop->rank; i++)
        if (loop->dims[i] < 0 ||
            __builtin_mul_overflow(i < loop->split ? rows : columns, loop->dims[i],
                                   i < loop->split ? &rows : &columns))
            return false;
    return rows == loop->rows && columns == loop->columns;
}

static sf_status check_loop(const sf_program *p, uint32_t index, sf_diag *diag)
{
    const sf_inst *inst = &p->insts[index];
    const sf_loop *loop = inst->loop;
    bool runs = has_elements(loop->rank, loop->dims);
    if (!loop_has_shape(loop))
        return sf_inst_fail(p, index, diag, "rows and columns are not those of its dimensions");
    for (uint32_t i = 0; i < loop->nsteps; i++) {
        const sf_loop_step *step = &loop->steps[i];
        bool moves = step->kind == SF_STEP_LOAD || step->kind == SF_STEP_STORE ||
                     step->kind == SF_STEP_GATHER;
        if (step->a >= loop->nregisters || step->b >= loop->nregisters ||
            step->c >= loop->nregisters || step->dst >= loop->nregisters)
            return sf_inst_fail(p, index, diag, "step %u has a register that is not there", i);
        if ((moves || step->kind == SF_STEP_INDEX) && step->access >= loop->naccesses)
            return sf_inst_fail(p, index, diag, "step %u has an access that is not there", i);
        if (moves && runs &&
            (step->kind == SF_STEP_GATHER ? !gather_fits(p, inst, step)
                                          : !access_fits(p, inst, &loop->accesses[step->access],
                                                         step->kind == SF_STEP_STORE)))
            return sf_inst_fail(p, index, diag, "step %u reaches beyond its buffer", i);
    }
    return SF_OK;
}

/* Products */

static bool matrix_fits(const sf_program *p, const sf_dot *dot, const sf_view *view, int64_t rows,
                        int64_t columns, int64_t row, int64_t column, const int64_t *batch)
{
    int64_t first = view->offset, last = view->offset;
    bool good =
        extend_reach(rows, row, &first, &last) && extend_reach(columns, column, &first, &last);
    for (int i = 0; i < dot->nbatch && good; i++)
        good = extend_reach(dot->batch[i], batch[i], &first, &last);
    return good && is_inside_buffer(p, view, first, last);
}

static sf_status check_dot(const sf_program *p, uint32_t index, sf_diag *diag)
{
    const sf_inst *inst = &p->insts[index];
    const sf_dot *d = inst->dot;
    if (d->nbatch < 0 || d->nbatch > SF_MAX_RANK || inst->nin < 2 || inst->nout < 1)
        return sf_inst_fail(p, index, diag, "is no product of two matrices");
    bool has_result = d->m > 0 && d->n > 0 && has_elements(d->nbatch, d->batch);
    if (!has_result)
        return SF_OK;
    bool reads = d->k > 0;
    if ((reads &&
         !matrix_fits(p, d, &inst->in[0], d->m, d->k, d->a_row, d->a_column, d->a_batch)) ||
        (reads &&
         !matrix_fits(p, d, &inst->in[1], d->k, d->n, d->b_row, d->b_column, d->b_batch)) ||
        !matrix_fits(p, d, &inst->out[0], d->m, d->n, d->c_row, d->c_column, d->c_batch))
        return sf_inst_fail(p, index, diag, "a matrix reaches beyond its buffer");
    return SF_OK;
}

static sf_status check_conv(const sf_program *p, uint32_t index, sf_diag *diag)
{
    const sf_inst *inst = &p->insts[index];
    const sf_conv *c = inst->conv;
    if (c->spatial < 0 || c->spatial > SF_MAX_RANK || inst->nin < 2 || inst->nout < 1 ||
        c->feature_groups < 1 || c->batch_groups < 1)
        return sf_inst_fail(p, index, diag, "is no convolution of two tensors");
    int64_t first[3], last[3];
    const sf_view *views[3] = {&inst->in[0], &inst->in[1], &inst->out[0]};
    for (int i = 0; i < 3; i++)
        first[i] = last[i] = views[i]->offset;
    bool good =
        extend_reach(c->batch * c->batch_groups, c->lhs_batch, &first[0], &last[0]) &&
        extend_reach(c->channels * c->feature_groups, c->lhs_feature, &first[0], &last[0]) &&
        extend_reach(c->channels, c->rhs_input, &first[1], &last[1]) &&
        extend_reach(c->features, c->rhs_output, &first[1], &last[1]) &&
        extend_reach(c->batch, c->out_batch, &first[2], &last[2]) &&
        extend_reach(c->features, c->out_feature, &first[2], &last[2]);
    for (int d = 0; d < c->spatial && good; d++)
        good = extend_reach(c->space[d].lhs, c->space[d].lhs_stride, &first[0], &last[0]) &&
               extend_reach(c->space[d].window, c->space[d].rhs_stride, &first[1], &last[1]) &&
               extend_reach(c->space[d].out, c->space[d].out_stride, &first[2], &last[2]);
    for (int i = 0; i < 3 && good; i++)
        good = is_inside_buffer(p, views[i], first[i], last[i]);
    bool empty = sf_view_count(views[0]) == 0 || sf_view_count(views[1]) == 0 ||
                 sf_view_count(views[2]) == 0;
    return good || empty ? SF_OK
                         : sf_inst_fail(p, index, diag, "a tensor reaches beyond its buffer");
}

/* Others */

static bool has_type(const sf_view *view, const sf_type *type)
{
    bool same = view->dtype == type->dtype && view->rank == type->rank;
    for (int i = 0; same && i < view->rank; i++)
        same = view->dims[i] == type->dims[i];
    return same && sf_view_is_contiguous(view);
}

bool sf_result_fits(const sf_program *p, uint32_t index)
{
    return view_fits(p, &p->results[index]) && has_type(&p->results[index], p->result_types[index]);
}

static sf_status check_call_inst(const sf_program *p, uint32_t index, sf_diag *diag)
{
    const sf_inst *inst = &p->insts[index];
    const sf_op *op = &inst->call->op;
    if (inst->nin != (uint32_t)op->noperands + inst->call->ncaptured ||
        inst->nout != (uint32_t)op->nresults)
        return sf_inst_fail(p, index, diag, "has other operands than %s", op->def->name);
    for (int i = 0; i < op->noperands; i++)
        if (!has_type(&inst->in[i], op->in[i]))
            return sf_inst_fail(p, index, diag, "operand %d is not what %s takes", i,
                                op->def->name);
    for (int i = 0; i < op->nresults; i++)
        if (!has_type(&inst->out[i], op->out[i]))
            return sf_inst_fail(p, index, diag, "result %d is not what %s gives", i, op->def->name);
    return SF_OK;
}

/* It lies together; or has a block for each place of the group, where blocks are combined or gathered. */
static bool lies_right(const sf_exchange *x, const sf_view *view, bool may_be_blocks)
{
    if (sf_view_is_contiguous(view))
        return true;
    return may_be_blocks && sf_view_is_blocks(view) && view->dims[0] == x->size;
}

static bool part_fits(const sf_exchange *x, const sf_view *in, const sf_view *out)
{
    int64_t before = sf_view_count(in), after = sf_view_count(out);
    const sf_collective_info *info = sf_collective_get(x->kind);
    if (in->dtype != out->dtype || !lies_right(x, in, info->reduces) ||
        !lies_right(x, out, info->gathers))
        return false;
    if (sf_collective_has_segments(x->kind) &&
        (sf_view_is_contiguous(in) != sf_view_is_contiguous(out) ||
         (!sf_view_is_contiguous(in) && in->strides[0] != out->strides[0])))
        return false;
    if (info->in_blocks && before % x->size != 0)
        return false;
    return before * (info->out_blocks ? x->size : 1) == after * (info->in_blocks ? x->size : 1);
}

/* One end of it: an operand, or a result. */
static sf_status check_message(const sf_program *p, uint32_t index, sf_diag *diag)
{
    const sf_inst *inst = &p->insts[index];
    bool sends = inst->exchange->to >= 0;
    const sf_view *part = sends ? inst->in : inst->out;
    if ((inst->exchange->to < 0) == (inst->exchange->from < 0) || inst->nin != sends ||
        inst->nout != !sends || !sf_view_is_contiguous(part))
        return sf_inst_fail(p, index, diag, "is no message of one tensor");
    return SF_OK;
}

/* Its axes are those of the mesh, and its size that of a group along them, or of a set of pipeline ranks. */
static bool is_of_mesh(const sf_program *p, const sf_exchange *x)
{
    if (p->mesh.naxes == 0 && x->size == 1) /* no mesh: a group of one, along whatever */
        return true;
    if (x->axes >> p->mesh.naxes != 0)
        return false;
    int size = sf_group_size(&p->mesh, x->axes);
    if (x->groups == 0)
        return x->size == size;
    return x->size == __builtin_popcountll(x->groups) && (size >= 64 || x->groups >> size == 0);
}

static sf_status check_exchange(const sf_program *p, uint32_t index, sf_diag *diag)
{
    const sf_inst *inst = &p->insts[index];
    const sf_exchange *x = inst->exchange;
    const sf_stream *stream = &p->streams[inst->stream];
    if ((unsigned)x->kind >= SF_COLLECTIVE_COUNT || !is_of_mesh(p, x))
        return sf_inst_fail(p, index, diag, "is along no axes of the mesh");
    if (stream->kind != SF_STREAM_COMM || stream->axes != x->axes)
        return sf_inst_fail(p, index, diag, "is on a stream of other axes");
    if (x->kind == SF_PERMUTE && (x->to >= x->size || x->from >= x->size))
        return sf_inst_fail(p, index, diag, "goes to place %d in a group of %d",
                            x->to >= 0 ? x->to : x->from, x->size);
    if (sf_is_one_way(x))
        return check_message(p, index, diag);
    if (inst->nin != inst->nout || inst->nin == 0)
        return sf_inst_fail(p, index, diag, "has %u operands and %u results", inst->nin,
                            inst->nout);
    for (uint32_t i = 0; i < inst->nin; i++)
        if (!part_fits(x, &inst->in[i], &inst->out[i]) || inst->in[i].dtype != inst->in[0].dtype)
            return sf_inst_fail(p, index, diag, "part %u is not one of %s in a group of %d", i,
                                sf_collective_name(x->kind), x->size);
    return SF_OK;
}

static sf_status check_nest(const sf_program *p, uint32_t index, sf_diag *diag)
{
    const sf_inst *inst = &p->insts[index];
    const sf_nest *nest = inst->nest;
    uint32_t more = inst->kind == SF_INST_WHILE ? 2 : 1;
    if (inst->nin != nest->noperands + nest->ncaptured || inst->nout != nest->nresults + more ||
        nest->nbodies == 0 || (inst->kind == SF_INST_WHILE && nest->nbodies != 2))
        return sf_inst_fail(p, index, diag, "has other operands than its bodies");
    for (uint32_t b = 0; b < nest->nbodies; b++) {
        const sf_program *body = nest->bodies[b];
        for (uint32_t i = 0; i < body->narguments; i++) {
            const sf_view *view = sf_body_argument(inst, i); /* whose whole buffer the body has */
            int64_t bytes = p->buffers[view->buffer].bytes;
            if (body->buffers[i].bytes > bytes)
                return sf_inst_fail(p, index, diag, "argument %u of body %u has no room", i, b);
            if (body->buffers[i].bytes < bytes && view->offset != 0)
                return sf_inst_fail(p, index, diag, "argument %u of body %u begins elsewhere", i,
                                    b);
        }
        if (body->arena_bytes[SF_SPACE_DEVICE] > p->buffers[inst->out[inst->nout - 1].buffer].bytes)
            return sf_inst_fail(p, index, diag, "body %u has no room", b);
    }
    return SF_OK;
}

/* Copies */

static bool copies_part(const sf_program *p, const sf_view *in, const sf_view *out)
{
    return in->dtype == out->dtype && sf_view_count(in) == sf_view_count(out) &&
           sf_view_is_contiguous(in) && sf_view_is_contiguous(out) &&
           p->buffers[in->buffer].space != p->buffers[out->buffer].space;
}

static sf_status check_copy(const sf_program *p, uint32_t index, sf_diag *diag)
{
    const sf_inst *inst = &p->insts[index];
    const sf_stream *stream = &p->streams[inst->stream];
    if (inst->nin != inst->nout || inst->nin == 0)
        return sf_inst_fail(p, index, diag, "has %u operands and %u results", inst->nin,
                            inst->nout);
    for (uint32_t i = 0; i < inst->nin; i++) {
        if (!copies_part(p, &inst->in[i], &inst->out[i]))
            return sf_inst_fail(p, index, diag, "part %u is no copy between two spaces", i);
        if (stream->kind != SF_STREAM_COPY || stream->to != p->buffers[inst->out[i].buffer].space)
            return sf_inst_fail(p, index, diag, "is on a stream of copies the other way");
    }
    return SF_OK;
}

/* Only copies reach the host, and joins, which touch nothing. */
static sf_status check_spaces(const sf_program *p, uint32_t index, sf_diag *diag)
{
    const sf_inst *inst = &p->insts[index];
    if (inst->kind == SF_INST_COPY || inst->kind == SF_INST_JOIN)
        return SF_OK;
    for (uint32_t i = 0; i < inst->nin + inst->nout; i++) {
        const sf_view *view = i < inst->nin ? &inst->in[i] : &inst->out[i - inst->nin];
        if (p->buffers[view->buffer].space != SF_SPACE_DEVICE)
            return sf_inst_fail(p, index, diag, "%s buffer %u, which is in memory of the host",
                                i < inst->nin ? "reads" : "writes", view->buffer);
    }
    return SF_OK;
}

static sf_status check_kind(const sf_program *p, uint32_t index, sf_diag *diag)
{
    const sf_inst *inst = &p->insts[index];
    switch (inst->kind) {
    case SF_INST_LOOP:
        return SF_OK;
    case SF_INST_DOT:
        return check_dot(p, index, diag);
    case SF_INST_CONV:
        return check_conv(p, index, diag);
    case SF_INST_CALL:
        return check_call_inst(p, index, diag);
    case SF_INST_COMM:
        return check_exchange(p, index, diag);
    case SF_INST_WHILE:
    case SF_INST_CASE:
        return check_nest(p, index, diag);
    case SF_INST_COPY:
        return check_copy(p, index, diag);
    case SF_INST_JOIN:
        return inst->nout == 0 ? SF_OK : sf_inst_fail(p, index, diag, "writes what it waits for");
    case SF_INST_KIND_COUNT:
        break;
    }
    return sf_inst_fail(p, index, diag, "is of no kind");
}

sf_status sf_check_shape(const sf_program *p, uint32_t index, sf_diag *diag)
{
    const sf_inst *inst = &p->insts[index];
    if (inst->stream >= p->nstreams)
        return sf_inst_fail(p, index, diag, "is of stream %u, and there are %zu", inst->stream,
                            p->nstreams);
    if ((inst->stream != 0) != sf_goes_beside(inst))
        return sf_inst_fail(p, index, diag, "is on a stream of another kind");
    for (uint32_t i = 0; i < inst->nin + inst->nout; i++) {
        const sf_view *view = i < inst->nin ? &inst->in[i] : &inst->out[i - inst->nin];
        bool fixed = inst->kind == SF_INST_WHILE && i >= inst->nin &&
                     i - inst->nin < inst->nest->nresults && inst->nest->is_fixed[i - inst->nin];
        if (!fixed && !view_fits(p, view))
            return sf_inst_fail(p, index, diag, "%s %u reaches beyond its buffer",
                                i < inst->nin ? "operand" : "result",
                                i < inst->nin ? i : i - inst->nin);
    }
    if (inst->piece && !sf_piece_fits(inst))
        return sf_inst_fail(p, index, diag,
                            "is not the part of a split instruction that it says it is");
    SF_TRY(check_spaces(p, index, diag));
    SF_TRY(check_kind(p, index, diag));
    return inst->loop ? check_loop(p, index, diag) : SF_OK;
}

/* Writing over operands */

static uint32_t count_reads(const sf_inst *inst, uint32_t first, uint32_t end, uint32_t buffer)
{
    uint32_t count = 0;
    for (uint32_t i = first; i < end; i++)
        count += inst->in[i].buffer == buffer;
    return count;
}

static bool walks_alike(const sf_inst *inst, const sf_access *a, const sf_access *b)
{
    if (a->is_row || b->is_row || a->windows)
        return false;
    for (int i = 0; i < inst->loop->rank; i++)
        if (inst->loop->dims[i] != 1 && a->strides[i] != b->strides[i])
            return false;
    return inst->in[a->view].offset == inst->out[b->view].offset;
}

/* The loop stores every element of the buffer where it loads it, so no tile reads an element that
 * another has written. */
static bool check_loop_step(const sf_inst *inst, uint32_t buffer)
{
    const sf_loop *loop = inst->loop;
    for (uint32_t i = 0; i < loop->nsteps; i++) {
        const sf_loop_step *store = &loop->steps[i];
        bool writes = store->kind == SF_STEP_STORE || store->kind == SF_STEP_GATHER;
        if (!writes || inst->out[loop->accesses[store->access].view].buffer != buffer)
            continue;
        for (uint32_t j = 0; j < loop->nsteps; j++) {
            const sf_loop_step *load = &loop->steps[j];
            if (load->kind == SF_STEP_LOAD &&
                inst->in[loop->accesses[load->access].view].buffer == buffer &&
                (store->kind == SF_STEP_GATHER ||
                 !walks_alike(inst, &loop->accesses[load->access], &loop->accesses[store->access])))
                return false;
        }
    }
    return true;
}

bool sf_may_write_over(const sf_inst *inst, uint32_t buffer)
{
    if (inst->kind == SF_INST_LOOP)
        return check_loop_step(inst, buffer);
    if (inst->kind == SF_INST_DOT || inst->kind == SF_INST_CONV)
        return inst->loop && count_reads(inst, 0, 2, buffer) == 0 && check_loop_step(inst, buffer);
    if (count_reads(inst, 0, inst->nin, buffer) > 1)
        return false;
    for (uint32_t i = 0; i < inst->nout; i++)
        if (inst->out[i].buffer == buffer &&
            (i >= sf_inst_changed(inst) || inst->in[i].buffer != buffer))
            return false;
    return true;
}
