#include "front/text_module.h"

#include <string.h>

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

static bool is_blank(sf_str text)
{
    for (size_t i = 0; i < text.length; i++)
        if (!strchr(" \t\r\n", text.at[i]) || !text.at[i])
            return false;
    return true;
}

/* Text has no zeros and no control characters; serialized protocol buffers and flat buffers soon have
 * several. A single one may be a slip, which a reader can point at. */
static bool is_binary(sf_str text)
{
    enum { LOOKED_AT = 64 };
    int controls = 0;
    for (size_t i = 0; i < text.length && i < LOOKED_AT; i++) {
        unsigned char c = (unsigned char)text.at[i];
        controls += c < ' ' && c != '\t' && c != '\n' && c != '\r';
        controls += c == 0;
    }
    return controls > 1;
}

sf_status sf_text_check(sf_str *text, const char *file, sf_diag *diag)
{
    static const char mark[] = "\xEF\xBB\xBF", bytecode[] = "ML\xEFR";
    static const char how[] = "jax.jit(f).lower(*args).as_text()";
    sf_loc loc = {file, 0, 0};
    if (sf_str_starts(*text, mark))
        *text = (sf_str){text->at + 3, text->length - 3};
    if (sf_str_starts(*text, bytecode)) {
        sf_fail(diag, SF_EINPUT, loc, "this is MLIR bytecode, not text");
        return sf_hint(diag, "in JAX write %s; stablehlo-opt FILE also turns bytecode into text",
                       how);
    }
    if (is_binary(*text)) {
        sf_fail(diag, SF_EINPUT, loc, "this is a binary file, not text");
        return sf_hint(diag, "in JAX write %s, or the same with as_text(dialect=\"hlo\")", how);
    }
    if (is_blank(*text)) {
        sf_fail(diag, SF_EINPUT, loc, "the file is empty");
        return sf_hint(diag, "a step is StableHLO or HLO text, what %s gives", how);
    }
    return SF_OK;
}
