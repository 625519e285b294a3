#include "run/engine.h"

#include <string.h>

#include <string.h>

#include "base/mem.h"
#include "run/engine_kind.h"
#include "run/vec/isa.h"

struct sf_engine {
    const sf_engine_table *table;
    const sf_graph *graph;
    void *self;
};

/* By kind; NULL where this build has none. */
static const sf_engine_table *const tables[] = {
    [SF_ENGINE_CPU] = &sf_engine_cpu,
    [SF_ENGINE_ORACLE] = &sf_engine_oracle,
};

static const char *const kind_names[] = {[SF_ENGINE_CPU] = "cpu", [SF_ENGINE_ORACLE] = "oracle"};

sf_status sf_engine_kind_of(const char *name, sf_diag *diag, sf_engine_kind *out)
{
    *out = SF_ENGINE_CPU;
    for (size_t i = 0; name && i < sizeof kind_names / sizeof *kind_names; i++)
        if (strcmp(name, kind_names[i]) == 0) {
            *out = (sf_engine_kind)i;
            return SF_OK;
        }
    if (!name)
        return SF_OK;
    return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "an engine is cpu or oracle, not '%s'", name);
}

const char *sf_engine_kind_name(sf_engine_kind kind)
{
    return kind_names[kind];
}

sf_status sf_engine_new(const sf_graph *graph, const sf_engine_options *options, sf_diag *diag,
                        sf_engine **out)
{
    size_t kind = (size_t)options->kind;
    const sf_engine_table *table = kind < sizeof tables / sizeof *tables ? tables[kind] : NULL;
    *out = NULL;
    if (!table) {
        sf_fail(diag, SF_EUNSUPPORTED, SF_NOWHERE, "this build has no engine '%s'",
                kind < sizeof kind_names / sizeof *kind_names ? kind_names[kind] : "?");
        sf_hint(diag, "--engine oracle runs every step, slowly");
        return SF_EUNSUPPORTED;
    }
    SF_TRY(sf_isa_check(diag));
    if (options->threads < 0 || options->memory < 0)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "threads and memory are not negative");
    void *self;
    SF_TRY(table->open(graph, options, diag, &self));
    sf_engine *engine = sf_alloc(sizeof *engine);
    *engine = (sf_engine){table, graph, self};
    *out = engine;
    return SF_OK;
}

void sf_engine_free(sf_engine *engine)
{
    if (!engine)
        return;
    engine->table->close(engine->self);
    sf_free(engine);
}

sf_tensor sf_engine_argument(sf_engine *engine, uint32_t index)
{
    return engine->table->argument(engine->self, index);
}

sf_tensor sf_engine_result(sf_engine *engine, uint32_t index)
{
    return engine->table->result(engine->self, index);
}

sf_status sf_engine_step(sf_engine *engine, sf_diag *diag)
{
    return engine->table->step(engine->self, diag);
}

int64_t sf_engine_memory(const sf_engine *engine)
{
    return engine->table->memory(engine->self);
}

int sf_engine_threads(const sf_engine *engine)
{
    return engine->table->threads(engine->self);
}

void sf_engine_profile(const sf_engine *engine, sf_buf *out)
{
    if (engine->table->profile)
        engine->table->profile(engine->self, out);
}

sf_status sf_engine_evaluate(sf_engine *engine, const sf_tensor *arguments, sf_tensor *results,
                             sf_diag *diag)
{
    const sf_block *top = engine->graph->top;
    for (uint32_t i = 0; i < top->narguments; i++) {
        sf_tensor to = sf_engine_argument(engine, i);
        memcpy(to.data, arguments[i].data, (size_t)sf_type_bytes(to.type));
    }
    SF_TRY(sf_engine_step(engine, diag));
    for (uint32_t i = 0; i < top->nresults; i++) {
        sf_tensor from = sf_engine_result(engine, i);
        size_t bytes = (size_t)sf_type_bytes(from.type);
        results[i] = (sf_tensor){.type = from.type, .data = sf_alloc(bytes)};
        memcpy(results[i].data, from.data, bytes);
    }
    return SF_OK;
}
