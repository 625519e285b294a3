#include "run/cuda/cuda_faults.h"

#include <inttypes.h>

#include "run/text/kernel_check.h"

/* Of those that are launched as one, the one whose parameters stand there in the table. */
static uint32_t member_at(const sf_fused_launch *fused, int own)
{
    uint32_t member = 0;
    for (int at = 0; member + 1 < fused->count; member++) {
        at += (int)fused->launches[member].kernel->nparams;
        if (own < at)
            break;
    }
    return member;
}

static void put_view(sf_buf *out, const sf_view *view)
{
    sf_buf_printf(out, "%s[", sf_dtype_get(view->dtype)->hlo);
    for (int d = 0; d < view->rank; d++)
        sf_buf_printf(out, "%s%" PRId64, d ? "," : "", view->dims[d]);
    sf_buf_puts(out, "]");
}

static void put_param(sf_buf *out, const sf_inst *inst, const sf_param *param)
{
    if (param->kind == SF_PARAM_SCRATCH) {
        sf_buf_puts(out, "scratch memory");
        return;
    }
    bool is_in = param->kind == SF_PARAM_IN;
    sf_buf_printf(out, "%s %u, ", is_in ? "operand" : "result", param->index);
    put_view(out, is_in ? &inst->in[param->index] : &inst->out[param->index]);
}

sf_status sf_cuda_look_at_faults(cuda *c, const frame *f, const made *m, const sf_launch *launch,
                                 sf_diag *diag)
{
    const sf_fault *fault = (const sf_fault *)c->faults;
    sf_status status = table_of(c)->wait(c->device, diag);
    if (!fault->is_noted)
        return status;
    uint32_t index = (uint32_t)(m - f->insts);
    const sf_launch *own = launch;
    if (m->fused) {
        uint32_t member = member_at(m->fused, fault->own);
        index = m->fused->members[member];
        own = &m->fused->launches[member];
    }
    const sf_inst *inst = &f->program->insts[index];
    sf_buf what = {0};
    put_param(&what, inst, &own->params[fault->param]);
    sf_fail(diag, SF_EMISMATCH, inst->origin.loc,
            "kernel %s of instruction %u (%s) reaches for bytes %" PRId64 " to %" PRId64
            " of %s, which has bytes %" PRId64 " to %" PRId64 ", in block %" PRId64 " of %" PRId64
            ", thread %d",
            launch->kernel->name, index, inst->origin.op, fault->first, fault->first + fault->bytes,
            what.text, fault->low, fault->high, fault->block, launch->blocks, fault->thread);
    sf_buf_free(&what);
    return sf_hint(
        diag, "this is a mistake of Sheaf: please report it with the step; --engine cpu runs it");
}
