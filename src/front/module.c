#include "front/module.h"

#include "base/mem.h"

sf_module *sf_module_new(sf_pool *pool)
{
    sf_module *module = sf_alloc(sizeof *module);
    module->graph = sf_graph_new(pool);
    return module;
}

void sf_module_free(sf_module *module)
{
    if (!module)
        return;
    sf_graph_free(module->graph);
    sf_free(module);
}

sf_func *sf_module_add(sf_module *module, sf_str name, sf_loc loc)
{
    sf_arena *arena = &module->graph->arena;
    sf_func *func = SF_NEW(arena, sf_func);
    func->name = sf_pool_string(module->graph->pool, name);
    func->block = sf_block_new(module->graph);
    func->loc = loc;
    SF_PUSH(arena, module->funcs, module->nfuncs, module->func_capacity, func);
    return func;
}

sf_func *sf_module_find(const sf_module *module, const char *interned_name)
{
    for (size_t i = 0; i < module->nfuncs; i++)
        if (module->funcs[i]->name == interned_name)
            return module->funcs[i];
    return NULL;
}
