#include <string.h>

#include "prog/lower/lowering.h"

/* Epilogues: a loop that reads a product runs after it, row block by row block, while the block is
 * in cache. This is decided last, when the order is known and state is updated in place: a product
 * moves to the first instruction that reads it, if that is a loop that walks it row by row.
 *
 *     i  dot  a b -> p                 j  dot a b -> x + loop x c -> x
 *     j  loop p c -> x
 *
 * When it pays. The product is made in the same blocks, so fusing only saves memory traffic. It
 * does if the product can be stored in the buffer of the loop's result: then one write and one read
 * of it do not leave the cache, and its buffer is gone. If it needs a buffer of its own, because
 * others read it or because the loop only updates state or makes sums, the loop evicts blocks of
 * the operands from the cache, which costs the read that is saved: measured, no gain. A block of
 * rows with few columns is smaller than a tile of a loop, which then costs more. And a loop that
 * folds rows keeps the product from being cut by columns, so there must be rows enough for the
 * threads. */
static bool epilogue_pays(const sf_target *target, const sf_inst *product, const sf_inst *inst,
                          const sf_loop *loop)
{
    if (target->follows)
        return target->follows(product, inst, loop);
    return loop->columns >= target->epilogue_columns &&
           (!sf_loop_wants_rows(loop) || loop->rows >= target->epilogue_rows);
}

typedef struct fusing {
    lowering *l;
    sf_program *p;
    int64_t *live;  /* by instruction: bytes of the arena that are in use */
    int64_t peak;   /* the most of these, which no fusion may exceed */
    uint32_t *into; /* by instruction: the one that it is part of, or SF_NONE */
} fusing;

static int64_t arena_bytes(const sf_program *p, uint32_t buffer)
{
    return p->buffers[buffer].home == SF_HOME_ARENA ? p->buffers[buffer].bytes : 0;
}

static void count_live(fusing *f)
{
    const sf_program *p = f->p;
    for (uint32_t i = 0; i < p->nbuffers; i++) {
        const sf_buffer *buffer = &p->buffers[i];
        if (buffer->home != SF_HOME_ARENA || buffer->first == SF_NONE)
            continue;
        f->live[buffer->first] += buffer->bytes;
        if (!buffer->is_result)
            f->live[buffer->last + 1] -= buffer->bytes;
    }
    for (size_t i = 0; i < p->ninsts; i++) {
        f->peak = f->live[i] > f->peak ? f->live[i] : f->peak;
        f->live[i + 1] += f->live[i];
    }
}

static bool inst_reads(const sf_inst *inst, uint32_t buffer)
{
    for (uint32_t i = 0; i < inst->nin; i++)
        if (inst->in[i].buffer == buffer)
            return true;
    return false;
}

static bool inst_writes(const sf_inst *inst, uint32_t buffer)
{
    for (uint32_t i = 0; i < inst->nout; i++)
        if (inst->out[i].buffer == buffer)
            return true;
    return false;
}

/* Columns of the matrix that the instruction makes; 0 if its rows are not contiguous. */
static int64_t columns_of(const sf_inst *inst)
{
    if (inst->kind == SF_INST_DOT)
        return sf_dot_columns(inst->dot);
    const sf_conv *conv = inst->conv;
    bool plain = conv->feature_groups == 1 && conv->batch_groups == 1 && conv->out_feature == 1;
    return plain && sf_view_is_contiguous(&inst->out[0]) ? conv->features : 0;
}

/* Some step of the loop depends on the row index. */
static bool has_rows(const sf_loop *loop)
{
    bool any = loop->whole_rows;
    for (uint32_t i = 0; i < loop->nsteps; i++)
        any = any || loop->steps[i].is_row ||
              (loop->steps[i].kind == SF_STEP_GATHER && !loop->steps[i].is_scalar);
    return any;
}

static void split_dim(sf_loop *loop, int d, int64_t inner)
{
    for (int i = loop->rank; i > d + 1; i--)
        loop->dims[i] = loop->dims[i - 1];
    loop->dims[d + 1] = inner;
    loop->dims[d] /= inner;
    for (uint32_t j = 0; j < loop->naccesses; j++) {
        int64_t *strides = loop->accesses[j].strides;
        for (int i = loop->rank; i > d; i--)
            strides[i] = strides[i - 1];
        strides[d] = strides[d + 1] * inner;
    }
    loop->rank++;
}

/* Makes the columns of the loop `columns` many, where its steps leave that open. */
static bool regroup_loop(sf_loop *loop, int64_t columns)
{
    int64_t inner = 1;
    int d = loop->rank;
    if (loop->columns == columns)
        return true;
    if (has_rows(loop))
        return false;
    while (d > 0 && inner < columns)
        inner *= loop->dims[--d];
    if (inner > columns) {
        int64_t tail = inner / loop->dims[d], part = columns / tail;
        if (columns % tail != 0 || loop->dims[d] % part != 0 || loop->rank == SF_MAX_RANK)
            return false;
        split_dim(loop, d++, part);
        inner = columns;
    }
    loop->split = d;
    loop->rows = loop->rows * loop->columns / columns;
    loop->columns = columns;
    return inner == columns;
}

/* The access walks its tensor from the first element to the last. */
static bool is_flat(const sf_loop *loop, const sf_access *access)
{
    int64_t stride = 1;
    if (access->is_row)
        return false;
    for (int i = loop->rank - 1; i >= 0; i--) {
        if (loop->dims[i] != 1 && access->strides[i] != stride)
            return false;
        stride *= loop->dims[i];
    }
    return true;
}

/* The loop, with rows as the product has them; NULL when it cannot run on some rows of the product
 * without the others, or would not pay. */
static sf_loop *loop_over(fusing *f, const sf_inst *product, const sf_inst *inst)
{
    sf_program *p = f->p;
    int64_t columns = columns_of(product);
    uint32_t buffer = product->out[0].buffer;
    if (inst->kind != SF_INST_LOOP || columns < 2 ||
        inst->loop->rows * inst->loop->columns != sf_view_count(&product->out[0]))
        return NULL;
    for (uint32_t i = 0; i < inst->loop->naccesses; i++)
        if (inst->loop->accesses[i].windows)
            return NULL;
    sf_loop *loop = sf_arena_copy(&p->arena, inst->loop, sizeof *loop);
    loop->accesses =
        sf_arena_copy(&p->arena, loop->accesses, loop->naccesses * sizeof *loop->accesses);
    if (!regroup_loop(loop, columns) || !epilogue_pays(p->target, product, inst, loop))
        return NULL;
    for (uint32_t i = 0; i < loop->nsteps; i++) {
        const sf_loop_step *step = &loop->steps[i];
        const sf_access *access = &loop->accesses[step->access];
        if (step->kind == SF_STEP_LOAD && inst->in[access->view].buffer == buffer &&
            (!is_flat(loop, access) || inst->in[access->view].offset != 0))
            return NULL;
    }
    return loop;
}

/* Bytes in use at time `at`, after i and up to j, when product i is made at j in another's place. */
static int64_t live_when_waiting(const fusing *f, uint32_t i, uint32_t at)
{
    const sf_program *p = f->p;
    const sf_inst *product = &p->insts[i];
    int64_t bytes = f->live[at] - arena_bytes(p, product->out[0].buffer);
    for (uint32_t n = 0; n < product->nin; n++) {
        const sf_buffer *buffer = &p->buffers[product->in[n].buffer];
        if (buffer->last < at && !buffer->is_result)
            bytes += arena_bytes(p, product->in[n].buffer);
    }
    return bytes;
}

/* Whether product i can wait until the loop at j: its operands are unchanged, and the arena need
 * not grow for it. */
static bool can_wait(const fusing *f, uint32_t i, uint32_t j)
{
    const sf_inst *product = &f->p->insts[i];
    for (uint32_t at = i + 1; at <= j; at++) {
        for (uint32_t n = 0; n < product->nin; n++)
            if (inst_writes(&f->p->insts[at], product->in[n].buffer))
                return false;
        if (live_when_waiting(f, i, at) > f->peak)
            return false;
    }
    return true;
}

static sf_view *join_views(sf_program *p, const sf_view *a, uint32_t na, const sf_view *b,
                           uint32_t nb)
{
    sf_view *all = SF_ARRAY(&p->arena, na + nb, sf_view);
    memcpy(all, a, na * sizeof *a);
    memcpy(all + na, b, nb * sizeof *b);
    return all;
}

/* Makes the loop at j the epilogue of product i, which is made in the given buffer. */
static void merge_into_product(fusing *f, uint32_t i, uint32_t j, sf_loop *loop, uint32_t place)
{
    sf_program *p = f->p;
    sf_inst *product = &p->insts[i], *inst = &p->insts[j], all = *product;
    uint32_t buffer = product->out[0].buffer;
    all.loop = loop;
    all.in = join_views(p, product->in, product->nin, inst->in, inst->nin);
    all.out = join_views(p, product->out, 1, inst->out, inst->nout);
    all.nin += inst->nin;
    all.nout += inst->nout;
    bool *is_written = SF_ARRAY(&f->l->scratch, loop->naccesses, bool);
    for (uint32_t n = 0; n < loop->nsteps; n++)
        if (loop->steps[n].kind == SF_STEP_STORE || loop->steps[n].kind == SF_STEP_GATHER)
            is_written[loop->steps[n].access] = true;
    for (uint32_t n = 0; n < loop->naccesses; n++)
        loop->accesses[n].view += is_written[n] ? 1 : product->nin;
    for (uint32_t n = product->nin; n < all.nin; n++)
        if (all.in[n].buffer == buffer)
            all.in[n].buffer = place;
    all.out[0].buffer = place;
    for (uint32_t at = i + 1; at <= j; at++)
        f->live[at] = live_when_waiting(f, i, at);
    for (uint32_t n = 0; n < product->nin; n++)
        if (p->buffers[product->in[n].buffer].last < j)
            p->buffers[product->in[n].buffer].last = j;
    *inst = all;
    f->into[i] = j;
}

/* The result of the loop in whose buffer the product can be made, or SF_NONE: of the same size,
 * indexed alike, and not one that replaces an operand of the instruction. */
static uint32_t place_in_insts(const sf_program *p, const sf_inst *product, const sf_inst *inst,
                               const sf_loop *loop)
{
    const sf_buffer *old = &p->buffers[product->out[0].buffer];
    for (uint32_t i = 0; i < loop->nsteps; i++) {
        const sf_access *access = &loop->accesses[loop->steps[i].access];
        if (loop->steps[i].kind != SF_STEP_STORE || !is_flat(loop, access))
            continue;
        uint32_t buffer = inst->out[access->view].buffer;
        if (p->buffers[buffer].home == SF_HOME_ARENA && p->buffers[buffer].bytes == old->bytes &&
            !inst_reads(product, buffer) && !inst_reads(inst, buffer))
            return buffer;
    }
    return SF_NONE;
}

static void fuse_product(fusing *f, uint32_t i)
{
    sf_program *p = f->p;
    const sf_inst *product = &p->insts[i];
    uint32_t buffer = product->out[0].buffer, j = i + 1;
    while (j < p->buffers[buffer].last && !inst_reads(&p->insts[j], buffer))
        j++;
    if (p->buffers[buffer].home != SF_HOME_ARENA || p->buffers[buffer].is_result ||
        p->buffers[buffer].last != j)
        return;
    sf_loop *loop = loop_over(f, product, &p->insts[j]);
    uint32_t place = loop ? place_in_insts(p, product, &p->insts[j], loop) : SF_NONE;
    if (place != SF_NONE && can_wait(f, i, j))
        merge_into_product(f, i, j, loop, place);
}

static bool is_product_inst(const sf_inst *inst)
{
    return inst->kind == SF_INST_DOT || inst->kind == SF_INST_CONV;
}

/* Closes the gaps. A loop is never split, so the records of split products stay. */
static void drop_products(const fusing *f)
{
    sf_program *p = f->p;
    size_t kept = 0;
    for (size_t i = 0; i < p->ninsts; i++)
        if (f->into[i] == SF_NONE) {
            f->l->now[i] = (uint32_t)kept;
            p->insts[kept++] = p->insts[i];
        }
    for (size_t i = 0; i < p->ninsts; i++)
        if (f->into[i] != SF_NONE)
            f->l->now[i] = f->l->now[f->into[i]];
    p->ninsts = kept;
}

void fuse_epilogues(lowering *l)
{
    sf_program *p = l->program;
    fusing f = {.l = l, .p = p};
    sync_insts(p);
    find_lives(p);
    f.live = SF_ARRAY(&l->scratch, p->ninsts + 1, int64_t);
    f.into = SF_ARRAY(&l->scratch, p->ninsts, uint32_t);
    l->now = SF_ARRAY(&l->scratch, p->ninsts, uint32_t);
    l->nnow = p->ninsts;
    for (size_t i = 0; i < p->ninsts; i++)
        f.into[i] = SF_NONE;
    count_live(&f);
    /* a loop after several products takes the last */
    for (uint32_t i = (uint32_t)p->ninsts; i-- > 0;)
        if (is_product_inst(&p->insts[i]) && !p->insts[i].loop)
            fuse_product(&f, i);
    drop_products(&f);
}
