#include "prog/buffer_content.h"

#include "base/hash.h"
#include "prog/split_instruction.h"

/* Salts of the hash, one per kind of content. */
enum {
    ARGUMENT = 1,
    CONSTANT,
    KEPT,
    CARRIED,
    FRESH,
    PART,
    COMPUTED,
    NESTED,
    OUTSIDE,
    CELLS,
    PRODUCT
};

/* The content of each cell of a buffer (prog/split_instruction.h). */
typedef struct cells {
    uint32_t count;
    sf_content *at;
} cells;

typedef struct following {
    const sf_program *p;
    sf_arena *arena;
    sf_content *held; /* by buffer */
    /* by buffer: set while split instructions fill it; else the buffer holds one content */
    cells *cells;
    sf_content **made; /* by instruction, or NULL: the caller does not need them */
    uint32_t depth;    /* of bodies */
} following;

static sf_content mix(sf_content a, uint64_t b)
{
    return sf_hash_mix(a, b);
}

static sf_content mix_shape(sf_content hash, const sf_view *view)
{
    hash = mix(mix(hash, (uint64_t)view->dtype), (uint64_t)view->offset);
    for (int d = 0; d < view->rank; d++)
        hash = mix(mix(hash, (uint64_t)view->dims[d]), (uint64_t)view->strides[d]);
    return mix(hash, (uint64_t)view->rank);
}

/* The content of a buffer, as far as these cells of it determine it. Cells of different contents
 * together are a content of their own. */
static sf_content held_in(const following *f, uint32_t buffer, sf_cells which)
{
    const cells *all = &f->cells[buffer];
    sf_content hash = CELLS;
    bool same = which.of == all->count;
    if (all->count == 0)
        return f->held[buffer];
    for (uint32_t i = 0; same && i < which.count; i++)
        same = all->at[which.first + i * which.step] == all->at[which.first];
    if (same)
        return all->at[which.first];
    for (uint32_t i = 0; i < all->count; i++)
        hash = mix(hash, all->at[i]);
    return hash;
}

static sf_content held_by(const following *f, uint32_t buffer)
{
    return held_in(f, buffer, (sf_cells){0});
}

/* The content read through a view. A whole tensor is its bytes, whatever the dimensions of the
 * view. */
static sf_content read_cells(const following *f, const sf_view *view, sf_cells which)
{
    sf_content held = held_in(f, view->buffer, which);
    return sf_view_fills(f->p, view) ? mix(held, (uint64_t)view->dtype) : mix_shape(held, view);
}

static sf_content read_view(const following *f, const sf_view *view)
{
    return read_cells(f, view, (sf_cells){0});
}

static void hold(following *f, uint32_t buffer, sf_content content)
{
    f->held[buffer] = content;
    f->cells[buffer] = (cells){0};
}

static void write_view(following *f, const sf_view *view, sf_content content)
{
    if (!sf_view_fills(f->p, view))
        content = mix_shape(mix(held_by(f, view->buffer), content), view);
    hold(f, view->buffer, content);
}

/* These cells now have the content; once all cells do, it is the content of the buffer. */
static void write_cells(following *f, const sf_view *view, sf_cells which, sf_content content)
{
    cells *all = &f->cells[view->buffer];
    if (which.of == 0 || !sf_view_fills(f->p, view)) {
        write_view(f, view, content);
        return;
    }
    if (all->count != which.of) {
        sf_content before = held_by(f, view->buffer);
        *all = (cells){which.of, SF_ARRAY(f->arena, which.of, sf_content)};
        for (uint32_t i = 0; i < which.of; i++)
            all->at[i] = before;
    }
    for (uint32_t i = 0; i < which.count; i++)
        all->at[which.first + i * which.step] = content;
    for (uint32_t i = 0; i < which.of; i++)
        if (all->at[i] != content)
            return;
    hold(f, view->buffer, content);
}

/* Loops */

static sf_content mix_step(sf_content hash, const sf_loop_step *s)
{
    const uint64_t all[] = {s->kind,
                            s->class,
                            s->is_row,
                            s->op,
                            s->fold,
                            s->dtype,
                            s->dst,
                            s->a,
                            s->b,
                            s->c,
                            s->access,
                            s->is_scalar,
                            (uint64_t)s->constant.integer};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        hash = mix(hash, all[i]);
    return hash;
}

static sf_content mix_loop(sf_content hash, const sf_loop *loop)
{
    hash = mix(mix(hash, (uint64_t)loop->rank), (uint64_t)loop->split);
    for (int d = 0; d < loop->rank; d++)
        hash = mix(hash, (uint64_t)loop->dims[d]);
    for (uint32_t a = 0; a < loop->naccesses; a++) {
        const sf_access *access = &loop->accesses[a];
        hash = mix(mix(mix(hash, access->view), (uint64_t)access->dtype), access->is_row);
        for (int d = 0; d < loop->rank; d++)
            hash = mix(hash, (uint64_t)access->strides[d]);
        for (int d = 0; access->windows && d < loop->rank; d++)
            hash = mix(mix(mix(hash, (uint64_t)access->windows[d].low),
                           (uint64_t)access->windows[d].count),
                       (uint64_t)access->windows[d].step);
    }
    for (uint32_t i = 0; i < loop->nsteps; i++)
        hash = mix_step(hash, &loop->steps[i]);
    return hash;
}

/* Instructions */

static sf_content what_it_does(const sf_inst *inst)
{
    sf_content hash = mix(COMPUTED, (uint64_t)inst->kind);
    if (inst->loop)
        hash = mix_loop(hash, inst->loop);
    return inst->kind == SF_INST_LOOP ? hash : mix(hash, (uint64_t)(uintptr_t)inst->dot);
}

/* The epilogue of a product reads its result, whatever the buffer held before. */
static bool reads_product(const sf_inst *inst, uint32_t operand)
{
    return inst->loop && inst->kind != SF_INST_LOOP && operand >= 2 &&
           inst->in[operand].buffer == inst->out[0].buffer;
}

/* The operand of the whole instruction of which this one is a split. */
static sf_view operand_of(const sf_inst *inst, uint32_t index)
{
    sf_view view = inst->piece ? inst->piece->whole->in[index] : inst->in[index];
    view.buffer = inst->in[index].buffer;
    return view;
}

static sf_view result_of(const sf_inst *inst, uint32_t index)
{
    sf_view view = inst->piece ? inst->piece->whole->out[index] : inst->out[index];
    view.buffer = inst->out[index].buffer;
    return view;
}

/* A split instruction makes the corresponding part of the whole instruction's result. */
static void compute(following *f, const sf_inst *inst)
{
    const sf_inst_piece *piece = inst->piece;
    const sf_inst *whole = piece ? piece->whole : inst;
    sf_content hash = what_it_does(whole);
    for (uint32_t i = 0; i < inst->nin; i++) {
        sf_cells which = piece && i == piece->cut ? piece->in : (sf_cells){0};
        sf_view view = operand_of(inst, i);
        hash = mix(hash, reads_product(inst, i) ? PRODUCT : read_cells(f, &view, which));
    }
    for (uint32_t i = 0; i < inst->nout; i++)
        hash = mix_shape(hash, &whole->out[i]);
    for (uint32_t i = 0; i < inst->nout; i++) {
        sf_view view = result_of(inst, i);
        write_cells(f, &view, piece ? piece->out : (sf_cells){0}, mix(hash, i));
    }
}

/* Parts first read, then written: some are in place. */
static void exchange_parts(following *f, const sf_inst *inst)
{
    const sf_exchange *x = inst->exchange;
    const sf_inst_piece *piece = inst->piece;
    sf_cells in = piece ? piece->in : (sf_cells){0}, out = piece ? piece->out : (sf_cells){0};
    sf_content hash = mix(mix(mix(PART, (uint64_t)x->kind), x->axes), (uint64_t)x->monoid);
    hash = mix(mix(hash, (uint64_t)x->to), (uint64_t)x->from);
    if (sf_is_one_way(x))
        hash = mix(hash, (uint64_t)x->number);
    sf_arena scratch = {0};
    sf_content *parts = SF_ARRAY(&scratch, inst->nout, sf_content);
    for (uint32_t i = 0; i < inst->nout; i++) {
        sf_view to = result_of(inst, i);
        parts[i] = mix(hash, i);
        if (i < inst->nin) {
            sf_view from = operand_of(inst, i);
            parts[i] = mix(hash, read_cells(f, &from, in));
        }
        parts[i] = mix_shape(parts[i], &to);
    }
    for (uint32_t i = 0; i < inst->nout; i++) {
        sf_view to = result_of(inst, i);
        write_cells(f, &to, out, parts[i]);
    }
    sf_arena_free(&scratch);
}

static void follow(following *f);

/* The contents of a body's arguments when it begins. */
static void enter_body(const following *f, const sf_inst *inst, const sf_program *body,
                       sf_content *out)
{
    const sf_nest *nest = inst->nest;
    uint32_t taken = inst->kind == SF_INST_WHILE ? nest->noperands : 0;
    for (uint32_t i = 0; i < body->narguments; i++) {
        bool carried = i < taken && !nest->is_fixed[i], given = i < taken + nest->ncaptured;
        out[i] = carried  ? mix(mix(CARRIED, f->depth), i)
                 : !given ? mix(FRESH, f->depth)
                          : held_by(f, sf_body_argument(inst, i)->buffer);
    }
}

static sf_content follow_body(const following *f, const sf_inst *inst, uint32_t index)
{
    const sf_program *body = inst->nest->bodies[index];
    sf_arena scratch = {0};
    following inner = {.p = body, .arena = &scratch, .depth = f->depth + 1};
    inner.held = SF_ARRAY(&scratch, body->nbuffers, sf_content);
    inner.cells = SF_ARRAY(&scratch, body->nbuffers, cells);
    enter_body(f, inst, body, inner.held);
    follow(&inner);
    sf_content hash = mix(NESTED, index);
    for (uint32_t i = 0; i < body->nresults; i++)
        hash = mix(hash, read_view(&inner, &body->results[i]));
    sf_arena_free(&scratch);
    return hash;
}

static void nest(following *f, const sf_inst *inst)
{
    sf_content hash = mix(NESTED, (uint64_t)inst->kind);
    for (uint32_t b = 0; b < inst->nest->nbodies; b++)
        hash = mix(hash, follow_body(f, inst, b));
    for (uint32_t i = 0; i < inst->nest->noperands; i++)
        hash = mix(hash, read_view(f, &inst->in[i]));
    for (uint32_t i = 0; i < inst->nout; i++)
        write_view(f, &inst->out[i], mix(hash, i));
}

/* A copy of a whole buffer keeps its content. */
static void copy_parts(following *f, const sf_inst *inst)
{
    for (uint32_t i = 0; i < inst->nout; i++) {
        const sf_view *in = &inst->in[i], *out = &inst->out[i];
        bool all = sf_view_fills(f->p, in) && sf_view_fills(f->p, out);
        if (all)
            hold(f, out->buffer, held_by(f, in->buffer));
        else
            write_view(f, out, read_view(f, in));
    }
}

static void follow_inst(following *f, uint32_t index)
{
    const sf_inst *inst = &f->p->insts[index];
    if (sf_body_count(inst) > 0)
        nest(f, inst);
    else if (inst->kind == SF_INST_COMM)
        exchange_parts(f, inst);
    else if (inst->kind == SF_INST_COPY || inst->kind == SF_INST_JOIN)
        copy_parts(f, inst);
    else
        compute(f, inst);
    if (!f->made)
        return;
    f->made[index] = SF_ARRAY(f->arena, inst->nout, sf_content);
    for (uint32_t i = 0; i < inst->nout; i++)
        f->made[index][i] = held_by(f, inst->out[i].buffer);
}

/* Contents of arguments exist from the beginning. */
static void hold_constants(following *f)
{
    for (size_t b = f->p->narguments; b < f->p->nbuffers; b++)
        if (f->p->buffers[b].home == SF_HOME_CONSTANT)
            f->held[b] = mix(CONSTANT, (uint64_t)(uintptr_t)f->p->buffers[b].constant);
        else if (f->p->buffers[b].home == SF_HOME_KEPT)
            f->held[b] = mix(KEPT, (uint64_t)f->p->buffers[b].bytes);
}

static void follow(following *f)
{
    hold_constants(f);
    for (uint32_t i = 0; i < f->p->ninsts; i++)
        follow_inst(f, i);
}

static following begin(const sf_program *p, const sf_content *arguments, sf_arena *arena)
{
    following f = {.p = p, .arena = arena, .held = SF_ARRAY(arena, p->nbuffers, sf_content)};
    f.cells = SF_ARRAY(arena, p->nbuffers, cells);
    for (uint32_t i = 0; i < p->narguments; i++)
        f.held[i] = arguments ? arguments[i] : mix(ARGUMENT, i);
    return f;
}

sf_content **sf_contents_of(const sf_program *p, const sf_content *arguments, sf_arena *arena)
{
    following f = begin(p, arguments, arena);
    f.made = SF_ARRAY(arena, p->ninsts, sf_content *);
    follow(&f);
    return f.made;
}

sf_content *sf_contents_of_body(const sf_program *p, const sf_content *arguments, uint32_t inst,
                                sf_arena *arena)
{
    following f = begin(p, arguments, arena);
    const sf_nest *nest_of = p->insts[inst].nest;
    const sf_program *body = nest_of->bodies[nest_of->nbodies - 1];
    sf_content *out = SF_ARRAY(arena, body->narguments, sf_content);
    hold_constants(&f);
    for (uint32_t i = 0; i < inst; i++)
        follow_inst(&f, i);
    enter_body(&f, &p->insts[inst], body, out);
    return out;
}

uint64_t sf_program_meaning(const sf_program *p)
{
    sf_arena scratch = {0};
    following f = begin(p, NULL, &scratch);
    follow(&f);
    uint64_t hash = OUTSIDE;
    for (uint32_t i = 0; i < p->nresults; i++)
        hash = mix(hash, read_view(&f, &p->results[i]));
    for (uint32_t i = 0; i < p->nbuffers; i++)
        if (i < p->narguments || p->buffers[i].home == SF_HOME_KEPT)
            hash = mix(hash, held_by(&f, i));
    sf_arena_free(&scratch);
    return hash;
}
