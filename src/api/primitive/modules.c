/* The targets of a list of primitives: the modules and parameters of the step, and their
 * settings. */
#include <string.h>

#include "api/primitive/primitives.h"
#include "base/boundary.h"
#include "base/guard.h"
#include "ir/name.h"

static bool is_listed(const sf_strings *list, const char *text)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->at[i], text) == 0)
            return true;
    return false;
}

/* A path after those that it is in. */
static void list_path(sf_strings *list, const char *path, sf_arena *arena)
{
    if (!*path || is_listed(list, path))
        return;
    const char *slash = strrchr(path, '/');
    if (slash)
        list_path(list, sf_arena_string(arena, path, (size_t)(slash - path)), arena);
    SF_PUSH(arena, list->at, list->count, list->capacity, path);
}

static void list_parameters(sf_primitives *list)
{
    const sf_graph *graph = list->graph;
    const char **names = sf_clean_names(graph, &list->arena);
    list->params = SF_ARRAY(&list->arena, graph->top->narguments, sf_parameter);
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        if (graph->arguments[i].role == SF_ROLE_PARAM) {
            const char *path = strncmp(names[i], "params/", 7) == 0 ? names[i] + 7 : names[i];
            list->params[list->nparams++] = (sf_parameter){i, names[i], path};
        }
}

/* Scopes change seldom from node to node. */
void sf_list_modules(sf_primitives *list)
{
    sf_strings modules = {0};
    const sf_scope *last = NULL;
    for (uint32_t i = 0; i < list->graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(list->graph, i);
        if (node->phase == SF_FORWARD && node->scope != last)
            list_path(&modules, node->scope->path, &list->arena);
        last = node->scope;
    }
    for (size_t p = 0; p < list->nparams; p++) {
        const char *path = list->params[p].path, *slash = strrchr(path, '/');
        if (slash)
            list_path(&modules, sf_arena_string(&list->arena, path, (size_t)(slash - path)),
                      &list->arena);
    }
    list->modules = modules.at;
    list->nmodules = modules.count;
}

struct making {
    const sf_graph *graph;
    sf_primitives *list;
};

static sf_status make_list(void *context)
{
    struct making *job = context;
    sf_arena arena = {0};
    sf_primitives *list = SF_NEW(&arena, sf_primitives);
    list->base = list->graph = job->graph;
    list->arena = arena;
    list_parameters(list);
    sf_list_modules(list);
    job->list = list;
    return SF_OK;
}

sf_status sf_primitives_new(const sf_graph *graph, sf_diag *diag, sf_primitives **out)
{
    SF_CLEAR(out);
    SF_NEED(diag, graph, out);
    struct making job = {.graph = graph};
    SF_TRY(sf_guarded(make_list, &job, diag));
    *out = job.list;
    return SF_OK;
}

void sf_primitives_free(sf_primitives *list)
{
    if (!list || list->held > 0)
        return;
    for (size_t i = 0; i < list->nentries; i++)
        sf_graph_free(list->entries[i].made);
    sf_arena arena = list->arena; /* the list is in it */
    sf_arena_free(&arena);
}

/* Finding ---------------------------------------------------------------------------------------- */

static const char **match_paths(const sf_primitives *list, const char *pattern, sf_arena *arena,
                                size_t *count)
{
    sf_strings found = {0};
    sf_buf whole = {0};
    sf_buf_printf(&whole, "/%s", *pattern == '/' ? pattern + 1 : pattern);
    for (size_t m = 0; m < list->nmodules; m++)
        if (sf_name_matches(whole.text, list->modules[m]))
            SF_PUSH(arena, found.at, found.count, found.capacity, list->modules[m]);
    sf_buf_free(&whole);
    *count = found.count;
    return found.at;
}

const char **sf_match_modules(const sf_primitives *list, const char *pattern, sf_arena *arena,
                              size_t *count)
{
    if (!pattern)
        pattern = "*";
    const char **found = match_paths(list, pattern, arena, count);
    if (*count > 0 || !strchr(pattern, '.'))
        return found;
    char *path = sf_arena_string(arena, pattern, strlen(pattern));
    for (char *c = path; *c; c++)
        *c = *c == '.' ? '/' : *c;
    return match_paths(list, path, arena, count);
}

static bool is_beneath(const char *path, const char *module)
{
    size_t length = strlen(module);
    return strncmp(path, module, length) == 0 && path[length] == '/';
}

bool sf_is_in_module(const char *scope, const char *module)
{
    return strcmp(scope, module) == 0 || is_beneath(scope, module);
}

bool sf_module_computes(const sf_primitives *list, const char *module)
{
    for (uint32_t i = 0; i < list->graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(list->graph, i);
        if (node->phase == SF_FORWARD && sf_is_in_module(node->scope->path, module))
            return true;
    }
    return false;
}

static bool has_scope(const sf_graph *graph, const sf_block *block, const char *pattern)
{
    for (uint32_t i = 0; i < block->nnodes; i++) {
        const sf_node *node = graph->nodes[block->nodes[i]];
        if (sf_name_is_in(pattern, node->scope->path))
            return true;
        for (uint32_t r = 0; r < node->nregions; r++)
            if (has_scope(graph, node->regions[r], pattern))
                return true;
    }
    return false;
}

const sf_node *sf_find_loop_around(const sf_primitives *list, const char *path)
{
    sf_buf pattern = {0};
    const sf_node *found = NULL;
    for (const char *c = path; *c; c++)
        sf_buf_putc(&pattern, *c == '.' ? '/' : *c);
    for (uint32_t i = 0; i < list->graph->top->nnodes && !found && pattern.length > 0; i++) {
        const sf_node *node = sf_top_node(list->graph, i);
        for (uint32_t r = 0; r < node->nregions && node->phase == SF_FORWARD && !found; r++)
            if (has_scope(list->graph, node->regions[r], pattern.text))
                found = node;
    }
    sf_buf_free(&pattern);
    return found;
}

/* By value of the step: a node of the module reads it in the forward pass. */
static bool *find_read_in(const sf_graph *graph, const char *module, sf_arena *arena)
{
    bool *read = SF_ARRAY(arena, graph->nvalues, bool);
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        if (node->phase != SF_FORWARD || !sf_is_in_module(node->scope->path, module))
            continue;
        for (uint32_t o = 0; o < node->noperands; o++)
            read[node->operands[o]] = true;
    }
    return read;
}

static bool param_is_meant(const sf_parameter *param, const char *pattern)
{
    return !pattern || sf_name_matches(pattern, param->path);
}

static bool is_found(const sf_parameter **found, size_t count, const sf_parameter *param)
{
    for (size_t i = 0; i < count; i++)
        if (found[i] == param)
            return true;
    return false;
}

/* Those of one module: named in it, or else read in it. One that is there already, of a module around it, is not there twice. */
static void match_params_of(const sf_primitives *list, const char *module, const char *pattern,
                            sf_arena *arena, const sf_parameter ***found, size_t *count,
                            size_t *capacity)
{
    bool named = false;
    for (size_t p = 0; p < list->nparams; p++)
        if (is_beneath(list->params[p].path, module) && param_is_meant(&list->params[p], pattern)) {
            named = true;
            if (!is_found(*found, *count, &list->params[p]))
                SF_PUSH(arena, *found, *count, *capacity, &list->params[p]);
        }
    if (named)
        return;
    sf_arena scratch = {0};
    const bool *read = find_read_in(list->graph, module, &scratch);
    for (size_t p = 0; p < list->nparams; p++)
        if (param_is_meant(&list->params[p], pattern) &&
            read[list->graph->top->arguments[list->params[p].argument]] &&
            !is_found(*found, *count, &list->params[p]))
            SF_PUSH(arena, *found, *count, *capacity, &list->params[p]);
    sf_arena_free(&scratch);
}

const sf_parameter **sf_match_params(const sf_primitives *list, size_t nmodules,
                                     const char *const *modules, const char *pattern,
                                     sf_arena *arena, size_t *count)
{
    const sf_parameter **found = NULL;
    size_t capacity = 0;
    *count = 0;
    for (size_t m = 0; m < nmodules; m++)
        match_params_of(list, modules[m], pattern, arena, &found, count, &capacity);
    return found;
}

struct listing {
    const sf_primitives *list;
    const char *modules, *param;
    bool params;
    int capacity, count;
    const char **out;
};

static sf_status list_matches(void *context)
{
    struct listing *job = context;
    sf_arena arena = {0};
    size_t count, nparams = 0;
    const char **modules = sf_match_modules(job->list, job->modules, &arena, &count);
    const sf_parameter **params = NULL;
    if (job->params)
        params = sf_match_params(job->list, count, modules, job->param, &arena, &nparams);
    job->count = (int)(job->params ? nparams : count);
    for (int i = 0; i < job->count && i < job->capacity; i++)
        job->out[i] = job->params ? params[i]->name : modules[i];
    sf_arena_free(&arena);
    return SF_OK;
}

int sf_primitives_modules(const sf_primitives *list, const char *pattern, int capacity,
                          const char **out)
{
    SF_NEED_OR(-1, list);
    if (capacity > 0)
        SF_NEED_OR(-1, out);
    struct listing job = {.list = list, .modules = pattern, .capacity = capacity, .out = out};
    return sf_guarded(list_matches, &job, NULL) == SF_OK ? job.count : -1;
}

int sf_primitives_params(const sf_primitives *list, const char *modules, const char *param,
                         int capacity, const char **out)
{
    SF_NEED_OR(-1, list);
    if (capacity > 0)
        SF_NEED_OR(-1, out);
    struct listing job = {list, modules, param, true, capacity, 0, out};
    return sf_guarded(list_matches, &job, NULL) == SF_OK ? job.count : -1;
}

sf_loc sf_said_at(const sf_primitive *said)
{
    return (sf_loc){.file = said->file, .line = (uint32_t)said->line};
}

const sf_entry *sf_find_setting(const sf_primitives *list, const char *name)
{
    for (size_t i = 0; i < list->nentries; i++)
        if (list->entries[i].said.kind == SF_PRIMITIVE_SET &&
            strcmp(list->entries[i].said.name, name) == 0)
            return &list->entries[i];
    return NULL;
}

bool sf_find_mesh_set(const sf_primitives *list, sf_arena *arena, sf_mesh *out)
{
    const sf_entry *entry = sf_find_setting(list, "mesh");
    return entry && sf_mesh_parse(sf_str_of(entry->said.value), arena, NULL, out) == SF_OK;
}
