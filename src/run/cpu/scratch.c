#include "run/cpu/scratch.h"

#include "run/cpu/run_loop.h"
#include "run/cpu/run_product.h"
#include "run/fast/fast.h"

bool sf_stands_in_place(const sf_inst *inst, uint32_t operand)
{
    return operand < inst->nout && inst->in[operand].buffer == inst->out[operand].buffer;
}

static void add_reference(sf_cpu_scratch *s, const sf_inst *inst)
{
    const sf_op *op = &inst->call->op;
    sf_eval_need need = sf_eval_needs(op);
    need.scratch += (int64_t)((size_t)op->noperands * sizeof(sf_tensor)) + 64;
    for (int i = 0; i < op->noperands; i++)
        if (sf_stands_in_place(inst, (uint32_t)i))
            need.scratch += sf_type_bytes(op->in[i]) + 64;
    if (need.scratch > s->need.scratch)
        s->need.scratch = need.scratch;
    s->need.values += need.values;
}

static int64_t kernel_scratch(const sf_inst *inst, int threads)
{
    int64_t loop = inst->loop ? sf_loop_scratch(inst->loop, threads) : 0;
    if (inst->kind == SF_INST_CALL)
        return sf_fast_scratch(inst->call->kernel, &inst->call->op, inst->call->variant, threads);
    return inst->kind == SF_INST_LOOP ? loop : loop + sf_product_scratch(inst, threads);
}

static void add_program(sf_cpu_scratch *s, const sf_program *p, int threads)
{
    for (size_t i = 0; i < p->ninsts; i++) {
        const sf_inst *inst = &p->insts[i];
        for (uint32_t b = 0; b < sf_body_count(inst); b++)
            add_program(s, inst->nest->bodies[b], threads);
        if (sf_goes_beside(inst) || inst->kind == SF_INST_JOIN || sf_body_count(inst) > 0)
            continue;
        if (inst->kind == SF_INST_CALL && !inst->call->kernel) {
            add_reference(s, inst);
            continue;
        }
        int64_t bytes = kernel_scratch(inst, threads);
        s->kernels = bytes > s->kernels ? bytes : s->kernels;
    }
}

sf_cpu_scratch sf_cpu_scratch_of(const sf_program *program, int threads)
{
    sf_cpu_scratch scratch = {0};
    add_program(&scratch, program, threads);
    return scratch;
}

int64_t sf_cpu_scratch_bytes(const sf_program *program, int threads)
{
    sf_cpu_scratch scratch = sf_cpu_scratch_of(program, threads);
    return scratch.kernels + scratch.need.scratch + scratch.need.values;
}
