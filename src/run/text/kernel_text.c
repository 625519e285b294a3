#include "run/text/kernel_text.h"

#include "prog/fused_launch.h"

static bool reduces(const sf_exchange *exchange)
{
    return sf_collective_get(exchange->kind)->reduces && exchange->size > 1 &&
           exchange->size <= SF_MOST_FOLDED;
}

void sf_write_inst(sf_kernels *module, sf_arena *arena, const sf_inst *inst, bool library,
                   sf_code *code, const sf_inst **unknown)
{
    sf_writer w = {.module = module, .code = code, .inst = inst, .arena = arena};
    bool known = true;
    if (inst->kind == SF_INST_DOT || inst->kind == SF_INST_CONV) {
        if (library)
            sf_write_library(&w, inst);
        else
            sf_write_product(&w, inst);
    }
    if (inst->kind == SF_INST_CALL)
        known = sf_write_call(&w, inst);
    if (inst->kind == SF_INST_COMM && reduces(inst->exchange))
        sf_write_exchange(&w, inst);
    if (inst->kind != SF_INST_CALL && inst->loop)
        sf_write_loop(&w, inst);
    if (!known)
        *unknown = inst;
    sf_buf_free(&w.body);
}

/* The kernels of fused launches, too: those of the program if no two buffers share memory. */
static void write_program_launches(sf_kernels *module, const sf_program *p, sf_code **codes)
{
    const uint32_t *firsts = sf_fused_launches_of(p, NULL, &module->arena);
    for (uint32_t i = 0, end; i < p->ninsts; i = end) {
        sf_fused_launch *fused_launches;
        for (end = i + 1; end < p->ninsts && firsts[end] == i;)
            end++;
        if (end - i > 1)
            sf_write_fused_launches(module, &module->arena, codes + i, end - i, &fused_launches);
    }
}

int64_t sf_write_program(sf_kernels *module, const sf_program *p, bool library)
{
    const sf_inst *unknown = NULL;
    sf_code **codes = SF_ARRAY(&module->arena, p->ninsts, sf_code *);
    int64_t most = 0;
    for (size_t i = 0; i < p->ninsts; i++) {
        codes[i] = SF_NEW(&module->arena, sf_code);
        sf_write_inst(module, &module->arena, &p->insts[i], library, codes[i], &unknown);
        most = codes[i]->scratch > most ? codes[i]->scratch : most;
        for (uint32_t j = 0; j < sf_body_count(&p->insts[i]); j++) {
            int64_t inner = sf_write_program(module, p->insts[i].nest->bodies[j], library);
            most = inner > most ? inner : most;
        }
    }
    write_program_launches(module, p, codes);
    return most;
}

/* Loops that add up nothing over their rows have none, nor do products and collectives. */
static bool may_have_scratch(const sf_inst *inst)
{
    if (inst->kind == SF_INST_CALL)
        return true;
    for (uint32_t i = 0; inst->loop && i < inst->loop->nsteps; i++)
        if (inst->loop->steps[i].kind == SF_STEP_GATHER)
            return true;
    return false;
}

static int64_t find_scratch(sf_kernels *module, const sf_program *p)
{
    const sf_inst *unknown = NULL;
    int64_t most = 0;
    for (size_t i = 0; i < p->ninsts; i++) {
        sf_code code = {0};
        if (may_have_scratch(&p->insts[i]))
            sf_write_inst(module, &module->arena, &p->insts[i], true, &code, &unknown);
        most = code.scratch > most ? code.scratch : most;
        for (uint32_t j = 0; j < sf_body_count(&p->insts[i]); j++) {
            int64_t inner = find_scratch(module, p->insts[i].nest->bodies[j]);
            most = inner > most ? inner : most;
        }
    }
    return most;
}

int64_t sf_cuda_scratch(const sf_program *program)
{
    sf_kernels module = {0};
    int64_t most = find_scratch(&module, program);
    sf_kernels_free(&module);
    return most;
}
