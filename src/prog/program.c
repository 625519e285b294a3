#include "prog/program.h"

#include "base/mem.h"
#include "op/op.h"

const char *sf_inst_kind_name(sf_inst_kind kind)
{
    static const char *const names[] = {"loop",  "dot",  "conv", "call", "comm",
                                        "while", "case", "copy", "join"};
    return names[kind];
}

int64_t sf_dot_columns(const sf_dot *dot)
{
    bool straight = dot->c_column == 1;
    int64_t columns = straight ? dot->n : dot->m, stride = dot->m * dot->n;
    if ((straight ? dot->c_row : dot->c_column) != columns)
        return 0;
    for (int i = dot->nbatch - 1; i >= 0; i--) {
        if (dot->batch[i] != 1 && dot->c_batch[i] != stride)
            return 0;
        stride *= dot->batch[i];
    }
    return columns;
}

double sf_dot_flops(const sf_dot *dot)
{
    double flops = 2 * (double)dot->m * (double)dot->n * (double)dot->k;
    for (int i = 0; i < dot->nbatch; i++)
        flops *= (double)dot->batch[i];
    return flops;
}

bool sf_view_fills(const sf_program *p, const sf_view *view)
{
    return view->offset == 0 && sf_view_is_contiguous(view) &&
           sf_view_size(view) == p->buffers[view->buffer].bytes;
}

double sf_inst_touched(const sf_inst *inst)
{
    double bytes = 0;
    for (uint32_t i = 0; i < inst->nin + inst->nout; i++) {
        const sf_view *view = i < inst->nin ? &inst->in[i] : &inst->out[i - inst->nin];
        double elements = 1;
        for (int d = 0; d < view->rank; d++)
            elements *= view->strides[d] == 0 ? 1 : (double)view->dims[d];
        bytes += elements * (double)sf_dtype_get(view->dtype)->bytes;
    }
    return bytes;
}

uint32_t sf_inst_changed(const sf_inst *inst)
{
    if (inst->kind == SF_INST_WHILE)
        return inst->nest->nresults;
    if (inst->kind == SF_INST_COMM)
        return sf_collective_has_segments(inst->exchange->kind) ? inst->nout : 0;
    if (inst->kind != SF_INST_CALL)
        return 0;
    return inst->call->op.def->updates ? inst->nout : 0;
}

uint32_t sf_body_count(const sf_inst *inst)
{
    bool nests = inst->kind == SF_INST_WHILE || inst->kind == SF_INST_CASE;
    return nests ? inst->nest->nbodies : 0;
}

const sf_view *sf_body_argument(const sf_inst *inst, uint32_t index)
{
    const sf_nest *nest = inst->nest;
    uint32_t taken = inst->kind == SF_INST_WHILE ? nest->noperands : 0;
    if (index < taken)
        return nest->is_fixed[index] ? &inst->in[index] : &inst->out[index];
    if (index < taken + nest->ncaptured)
        return &inst->in[nest->noperands + index - taken];
    return &inst->out[index - nest->ncaptured];
}

int64_t sf_program_bytes(const sf_program *program)
{
    return program->arena_bytes[SF_SPACE_DEVICE] + program->state_bytes + program->constant_bytes;
}

int64_t sf_program_host_bytes(const sf_program *program)
{
    return program->arena_bytes[SF_SPACE_HOST] + program->host_state_bytes;
}

void sf_program_free(sf_program *program)
{
    if (!program)
        return;
    for (size_t i = 0; i < program->ninsts; i++)
        for (uint32_t j = 0; j < sf_body_count(&program->insts[i]); j++)
            sf_program_free(program->insts[i].nest->bodies[j]);
    if (program->inner)
        sf_graph_free(program->inner);
    sf_pool_release(program->pool);
    sf_arena_free(&program->arena);
    sf_free(program);
}

int sf_dot_inner_batches(const sf_dot *dot, int64_t *count)
{
    int at = dot->nbatch;
    *count = 1;
    while (at > 0) {
        int d = at - 1;
        bool follows = at == dot->nbatch || (dot->a_batch[d] == dot->a_batch[at] * dot->batch[at] &&
                                             dot->b_batch[d] == dot->b_batch[at] * dot->batch[at] &&
                                             dot->c_batch[d] == dot->c_batch[at] * dot->batch[at]);
        if (!follows)
            break;
        *count *= dot->batch[d];
        at = d;
    }
    return at;
}
