#include "run/engine/engine.h"

#include <string.h>

#include "base/mem.h"
#include "base/native/disk_cache.h"
#include "run/engine/engine_backend.h"
#include "run/vec/isa.h"

/* By the name of the target. */
static const struct {
    const char *name;
    sf_engine_opener *open;
} kinds[] = {{"cpu", sf_cpu_open}, {"cuda", sf_cuda_open}};

static sf_status open_kind(const sf_program *program, const sf_engine_options *options,
                           sf_diag *diag, sf_engine *engine)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(program->target->name, kinds[i].name) == 0)
            return kinds[i].open(program, options, diag, engine);
    sf_fail(diag, SF_EUNSUPPORTED, SF_NOWHERE, "this build has no engine '%s'",
            program->target->name);
    return sf_hint(diag, "option engine oracle runs every step, slowly");
}

sf_status sf_engine_open(const sf_program *program, const sf_engine_options *options, sf_diag *diag,
                         sf_engine **out)
{
    *out = NULL;
    SF_TRY(sf_isa_check(diag));
    SF_TRY(sf_cache_check(diag));
    if (options->threads < 0 || options->memory < 0)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "threads and memory are not negative");
    sf_engine *engine = sf_alloc(sizeof *engine);
    *engine = (sf_engine){.narguments = program->narguments,
                          .nresults = program->nresults,
                          .argument_types = program->argument_types,
                          .result_types = program->result_types};
    sf_status status = open_kind(program, options, diag, engine);
    if (status == SF_OK)
        *out = engine;
    else
        sf_free(engine);
    return status;
}

void sf_engine_free(sf_engine *engine)
{
    if (!engine)
        return;
    engine->table->close(engine->self);
    sf_free(engine);
}

const sf_type *sf_engine_argument_type(const sf_engine *engine, uint32_t index)
{
    return engine->argument_types[index];
}

sf_status sf_engine_lend(sf_engine *engine, uint32_t argument, bool writes, sf_diag *diag,
                         sf_tensor *out)
{
    *out = (sf_tensor){.type = engine->argument_types[argument]};
    return engine->table->lend(engine->self, argument, writes, diag, &out->data);
}

sf_status sf_engine_give_back(sf_engine *engine, uint32_t argument, sf_diag *diag)
{
    return engine->table->give_back ? engine->table->give_back(engine->self, argument, diag)
                                    : SF_OK;
}

sf_status sf_engine_clear(sf_engine *engine, uint32_t argument, sf_diag *diag)
{
    sf_tensor to;
    if (engine->table->is_clear && engine->table->is_clear(engine->self, argument))
        return SF_OK;
    SF_TRY(sf_engine_lend(engine, argument, true, diag, &to));
    memset(to.data, 0, (size_t)sf_type_bytes(to.type));
    return sf_engine_give_back(engine, argument, diag);
}

sf_status sf_engine_see(sf_engine *engine, uint32_t result, sf_diag *diag, sf_tensor *out)
{
    *out = (sf_tensor){.type = engine->result_types[result]};
    return engine->table->see(engine->self, result, diag, &out->data);
}

static void copy_bytes(void *to, const void *from, const sf_type *type)
{
    size_t bytes = (size_t)sf_type_bytes(type);
    if (bytes > 0)
        memcpy(to, from, bytes);
}

sf_status sf_engine_write(sf_engine *engine, uint32_t argument, const void *data, sf_diag *diag)
{
    sf_tensor to;
    SF_TRY(sf_engine_lend(engine, argument, true, diag, &to));
    copy_bytes(to.data, data, to.type);
    return sf_engine_give_back(engine, argument, diag);
}

sf_status sf_engine_read(sf_engine *engine, uint32_t argument, void *data, sf_diag *diag)
{
    sf_tensor from;
    SF_TRY(sf_engine_lend(engine, argument, false, diag, &from));
    copy_bytes(data, from.data, from.type);
    return sf_engine_give_back(engine, argument, diag);
}

sf_status sf_engine_read_result(sf_engine *engine, uint32_t result, void *data, sf_diag *diag)
{
    sf_tensor from;
    SF_TRY(sf_engine_see(engine, result, diag, &from));
    copy_bytes(data, from.data, from.type);
    return SF_OK;
}

sf_status sf_engine_start(sf_engine *engine, sf_diag *diag, bool *goes_on)
{
    *goes_on = false;
    return engine->table->start ? engine->table->start(engine->self, diag, goes_on)
                                : engine->table->step(engine->self, diag);
}

sf_status sf_engine_finish(sf_engine *engine, sf_diag *diag)
{
    return engine->table->finish ? engine->table->finish(engine->self, diag) : SF_OK;
}

sf_status sf_engine_step(sf_engine *engine, sf_diag *diag)
{
    bool goes_on;
    SF_TRY(sf_engine_start(engine, diag, &goes_on));
    return sf_engine_finish(engine, diag);
}

int64_t sf_engine_memory(const sf_engine *engine)
{
    return engine->table->memory(engine->self);
}

int sf_engine_threads(const sf_engine *engine)
{
    return engine->table->threads(engine->self);
}

const sf_timing *sf_engine_timeline(const sf_engine *engine, const sf_program *program)
{
    return engine->table->timeline ? engine->table->timeline(engine->self, program) : NULL;
}

void sf_engine_profile(const sf_engine *engine, sf_buf *out)
{
    if (engine->table->profile)
        engine->table->profile(engine->self, out);
}

sf_status sf_engine_evaluate(sf_engine *engine, const sf_tensor *arguments, sf_tensor *results,
                             sf_diag *diag)
{
    for (uint32_t i = 0; i < engine->narguments; i++)
        SF_TRY(sf_engine_write(engine, i, arguments[i].data, diag));
    SF_TRY(sf_engine_step(engine, diag));
    for (uint32_t i = 0; i < engine->nresults; i++) {
        const sf_type *type = engine->result_types[i];
        results[i] = (sf_tensor){.type = type, .data = sf_alloc((size_t)sf_type_bytes(type))};
        SF_TRY(sf_engine_read_result(engine, i, results[i].data, diag));
    }
    return SF_OK;
}
