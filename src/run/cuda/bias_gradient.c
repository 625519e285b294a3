#include "run/cuda/bias_gradient.h"

#include <string.h>

#include "base/hash.h"

enum { LOOP_FIRST, BY_LIBRARY, WAYS };

/* Element behind element. */
static bool is_in_order(const sf_loop *loop, const sf_access *access)
{
    sf_view view = {.rank = loop->rank};
    memcpy(view.dims, loop->dims, sizeof view.dims);
    memcpy(view.strides, access->strides, sizeof view.strides);
    return sf_view_is_contiguous(&view);
}

/* A matrix whose rows are added up, and nothing else. */
static bool sums_rows(const sf_inst *inst)
{
    const sf_loop *loop = inst->loop;
    if (inst->kind != SF_INST_LOOP || inst->nin != 1 || inst->nout != 1 || loop->nsteps != 2)
        return false;
    const sf_loop_step *load = &loop->steps[0], *sum = &loop->steps[1];
    if (load->kind != SF_STEP_LOAD || load->is_row || sum->kind != SF_STEP_GATHER || sum->is_row ||
        sum->is_scalar || sum->fold != SF_VFOLD_SUM || sum->a != load->dst)
        return false;
    const sf_access *in = &loop->accesses[load->access], *out = &loop->accesses[sum->access];
    return in->dtype == inst->in[0].dtype && out->dtype == inst->out[0].dtype &&
           is_in_order(loop, in) && sf_view_is_contiguous(&inst->out[0]);
}

/* Whether the loop sums, of factor `factor` of the product, what the product sums over. */
static bool sums_factor(const sf_inst *inst, const sf_inst *product, int factor)
{
    const sf_dot *dot = product->dot;
    const sf_view *view = &product->in[factor];
    int64_t along = factor == 0 ? dot->a_column : dot->b_row,
            across = factor == 0 ? dot->a_row : dot->b_column,
            width = factor == 0 ? dot->m : dot->n;
    return sums_rows(inst) && inst->in[0].buffer == view->buffer &&
           inst->in[0].offset == view->offset && inst->in[0].dtype == view->dtype &&
           inst->out[0].dtype == product->out[0].dtype && inst->loop->rows == dot->k &&
           inst->loop->columns == width && along == width && across == 1;
}

static bool touches(const sf_view *views, uint32_t count, uint32_t buffer)
{
    for (uint32_t i = 0; i < count; i++)
        if (views[i].buffer == buffer)
            return true;
    return false;
}

/* Whether instruction `first` can as well be run where `second` is: what it reads is as it was, and nobody wants what it writes before;
 * both have their places until then. */
static bool can_wait(const sf_program *p, uint32_t first, uint32_t second)
{
    const sf_inst *inst = &p->insts[first];
    uint32_t to = inst->out[0].buffer;
    if (!sf_in_arena(&p->buffers[to]) || !sf_buffer_lives(p, to, second))
        return false;
    for (uint32_t n = 0; n < inst->nin; n++) {
        uint32_t from = inst->in[n].buffer;
        if (sf_in_arena(&p->buffers[from]) && !sf_buffer_lives(p, from, second))
            return false;
        for (uint32_t i = first + 1; i <= second; i++)
            if (touches(p->insts[i].out, p->insts[i].nout, from))
                return false;
    }
    for (uint32_t i = first + 1; i <= second; i++)
        if (touches(p->insts[i].in, p->insts[i].nin, to) ||
            touches(p->insts[i].out, p->insts[i].nout, to))
            return false;
    return true;
}

/* Without batches; of 16 bits, since the library may round what is wider for its units. */
static bool has_sums(const sf_inst *inst)
{
    return inst->kind == SF_INST_DOT && inst->dot->nbatch == 0 && !inst->loop &&
           (inst->in[0].dtype == SF_BF16 || inst->in[0].dtype == SF_F16);
}

/* In bodies, arguments may stand in one place. */
static bool stands_alone(const sf_program *p, const sf_inst *inst)
{
    return sf_in_arena(&p->buffers[inst->in[0].buffer]) &&
           sf_in_arena(&p->buffers[inst->out[0].buffer]);
}

uint32_t sf_cuda_sum_beside(const sf_program *p, uint32_t product, int *factor)
{
    const sf_inst *dot = &p->insts[product];
    for (uint32_t i = 0; i < p->ninsts && has_sums(dot); i++)
        for (*factor = 0; *factor < 2; ++*factor)
            if (sums_factor(&p->insts[i], dot, *factor) && stands_alone(p, &p->insts[i]) &&
                (i < product ? can_wait(p, i, product) : can_wait(p, product, i)))
                return i;
    return SF_NONE;
}

/* A loop that is launched with others stays there. */
static bool is_free(const made *loop)
{
    return loop->code.nlaunches > 0 && !loop->fused && !loop->is_left && !loop->sum;
}

static uint64_t key_of(const sf_inst *inst, int factor)
{
    const sf_dot *d = inst->dot;
    const int64_t numbers[] = {d->m,
                               d->n,
                               d->k,
                               d->a_row,
                               d->a_column,
                               d->b_row,
                               d->b_column,
                               d->c_row,
                               d->c_column,
                               d->exact,
                               factor,
                               (int64_t)inst->in[0].dtype,
                               (int64_t)inst->out[0].dtype};
    return sf_hash_bytes(sf_hash_bytes(0, "sum", 3), numbers, sizeof numbers);
}

sf_status sf_cuda_find_sums(cuda *c, frame *f, sf_diag *diag)
{
    for (uint32_t i = 0; i < f->program->ninsts && table_of(c)->plan_sum; i++) {
        made *m = &f->insts[i];
        int factor;
        uint32_t loop = sf_cuda_sum_beside(f->program, i, &factor);
        void *plan = NULL;
        if (loop == SF_NONE || !is_free(&f->insts[loop]))
            continue;
        SF_TRY(table_of(c)->plan_sum(c->device, &f->program->insts[i], factor, diag, &plan));
        if (!plan)
            continue;
        made *first = loop < i ? &f->insts[loop] : m, *second = loop < i ? m : &f->insts[loop];
        first->is_left = true;
        second->sum = SF_NEW(&c->memory, summing);
        *second->sum = (summing){.plan = plan,
                                 .parts = {m->in[0], m->in[1], m->out[0], f->insts[loop].out[0]},
                                 .loop = &f->insts[loop],
                                 .product = m,
                                 .key = key_of(&f->program->insts[i], factor)};
    }
    return SF_OK;
}

/* Running */

typedef struct trying {
    cuda *c;
    summing *sum;
    sf_run_product *alone;
    sf_diag *diag;
} trying;

static sf_status run_way(const trying *t, int way)
{
    const made *loop = t->sum->loop;
    if (way == BY_LIBRARY)
        return table_of(t->c)->multiply(t->c->device, t->sum->plan, t->sum->parts, t->diag);
    for (size_t i = 0; i < loop->code.nlaunches; i++) {
        const ready *r = &loop->launches[i];
        SF_TRY(table_of(t->c)->launch(t->c->device, r->function, r->blocks, r->threads, r->params,
                                      t->diag));
    }
    return t->alone(t->c, t->sum->product, t->diag);
}

static int try_way(void *context, int way)
{
    return run_way(context, way) == SF_OK ? 0 : 1;
}

/* Each is run before, for what the library chooses by itself. */
static void choose_way(const trying *t)
{
    summing *sum = t->sum;
    sf_diag *unheard = sf_diag_new();
    trying quietly = *t;
    quietly.diag = unheard;
    sum->is_chosen = true;
    sum->way = BY_LIBRARY;
    if (try_way(&quietly, LOOP_FIRST) != 0 || try_way(&quietly, BY_LIBRARY) != 0)
        sum->way = LOOP_FIRST;
    else if (table_of(t->c)->fastest)
        sum->way = table_of(t->c)->fastest(t->c->device, sum->key, WAYS, try_way, &quietly);
    sf_diag_free(unheard);
}

sf_status sf_cuda_run_with_sum(cuda *c, summing *sum, sf_run_product *alone, sf_diag *diag)
{
    trying t = {c, sum, alone, diag};
    if (!sum->is_chosen)
        choose_way(&t);
    return run_way(&t, sum->way);
}
