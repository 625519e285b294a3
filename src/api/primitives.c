/* Lists of primitives: what they are about, and how they grow and shrink. */
#include "api/primitives.h"

#include <string.h>

#include "api/options.h"
#include "base/guard.h"
#include "base/nearest.h"
#include "ir/name.h"

enum { MOST_PRIMITIVES = 20000, MOST_CHARACTERS = 4000 };

static bool is_listed(const sf_strings *list, const char *text)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->at[i], text) == 0)
            return true;
    return false;
}

/* A path behind those that it is in. */
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
static void list_modules(sf_primitives *list)
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
    list->graph = job->graph;
    list->arena = arena;
    list_parameters(list);
    list_modules(list);
    job->list = list;
    return SF_OK;
}

sf_status sf_primitives_new(const sf_graph *graph, sf_diag *diag, sf_primitives **out)
{
    struct making job = {.graph = graph};
    *out = NULL;
    SF_TRY(sf_guarded(make_list, &job, diag));
    *out = job.list;
    return SF_OK;
}

void sf_primitives_free(sf_primitives *list)
{
    if (!list)
        return;
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

static bool is_within(const char *path, const char *module)
{
    return strcmp(path, module) == 0 || is_beneath(path, module);
}

bool sf_module_computes(const sf_primitives *list, const char *module)
{
    for (uint32_t i = 0; i < list->graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(list->graph, i);
        if (node->phase == SF_FORWARD && is_within(node->scope->path, module))
            return true;
    }
    return false;
}

static bool is_read_in(const sf_primitives *list, const sf_parameter *param, const char *module)
{
    const sf_graph *graph = list->graph;
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        if (node->phase != SF_FORWARD || !is_within(node->scope->path, module))
            continue;
        for (uint32_t o = 0; o < node->noperands; o++)
            if (node->operands[o] == graph->top->arguments[param->argument])
                return true;
    }
    return false;
}

static bool param_is_meant(const sf_parameter *param, const char *pattern)
{
    return !pattern || sf_name_matches(pattern, param->path);
}

/* Those of one module: named in it, or else read in it. */
static void match_params_of(const sf_primitives *list, const char *module, const char *pattern,
                            sf_arena *arena, const sf_parameter ***found, size_t *count,
                            size_t *capacity)
{
    size_t before = *count;
    for (size_t p = 0; p < list->nparams; p++)
        if (is_beneath(list->params[p].path, module) && param_is_meant(&list->params[p], pattern))
            SF_PUSH(arena, *found, *count, *capacity, &list->params[p]);
    for (size_t p = 0; p < list->nparams && *count == before; p++)
        if (param_is_meant(&list->params[p], pattern) && is_read_in(list, &list->params[p], module))
            SF_PUSH(arena, *found, *count, *capacity, &list->params[p]);
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
    struct listing job = {.list = list, .modules = pattern, .capacity = capacity, .out = out};
    return sf_guarded(list_matches, &job, NULL) == SF_OK ? job.count : -1;
}

int sf_primitives_params(const sf_primitives *list, const char *modules, const char *param,
                         int capacity, const char **out)
{
    struct listing job = {list, modules, param, true, capacity, 0, out};
    return sf_guarded(list_matches, &job, NULL) == SF_OK ? job.count : -1;
}

sf_loc sf_said_at(const sf_primitive *said)
{
    return (sf_loc){.file = said->file, .line = (uint32_t)said->line};
}

/* Adding ----------------------------------------------------------------------------------------- */

static const char *keep_text(sf_primitives *list, const char *text)
{
    return text ? sf_arena_string(&list->arena, text, strlen(text)) : NULL;
}

static sf_primitive keep_said(sf_primitives *list, const sf_primitive *said)
{
    sf_primitive kept = *said;
    kept.module = keep_text(list, said->module);
    kept.param = keep_text(list, said->param);
    kept.axis = keep_text(list, said->axis);
    kept.mode = keep_text(list, said->mode);
    kept.op = keep_text(list, said->op);
    kept.name = keep_text(list, said->name);
    kept.value = keep_text(list, said->value);
    kept.file = keep_text(list, said->file);
    return kept;
}

static sf_status find_entry_modules(sf_primitives *list, sf_entry *entry, sf_diag *diag)
{
    const sf_primitive *said = &entry->said;
    entry->modules = sf_match_modules(list, said->module, &list->arena, &entry->nmodules);
    if (entry->nmodules > 0)
        return SF_OK;
    sf_fail(diag, SF_EUSAGE, sf_said_at(said), "the step has no module \"%s\"", said->module);
    sf_nearest nearest = {.text = sf_str_of(said->module)};
    for (size_t m = 0; m < list->nmodules; m++)
        sf_nearest_try(&nearest, list->modules[m]);
    return nearest.best ? sf_hint(diag, "did you mean \"%s\"?", nearest.best)
                        : sf_hint(diag, "sheaf pin STEP --names lists them");
}

static sf_status find_entry_params(sf_primitives *list, sf_entry *entry, sf_diag *diag)
{
    const sf_primitive *said = &entry->said;
    entry->params = sf_match_params(list, entry->nmodules, entry->modules, said->param,
                                    &list->arena, &entry->nparams);
    if (entry->nparams > 0)
        return SF_OK;
    sf_fail(diag, SF_EUSAGE, sf_said_at(said), "%s has no parameter \"%s\"", entry->modules[0],
            said->param);
    size_t count;
    const sf_parameter **all =
        sf_match_params(list, entry->nmodules, entry->modules, NULL, &list->arena, &count);
    return count > 0 ? sf_hint(diag, "it has %s%s", all[0]->path, count > 1 ? ", and others" : "")
                     : sf_hint(diag, "it has none");
}

static void describe(const sf_entry *entry, sf_buf *out)
{
    const sf_primitive *said = &entry->said;
    if (said->kind != SF_PRIMITIVE_SET)
        sf_buf_printf(out, "%s: ", said->module);
    switch (said->kind) {
    case SF_PRIMITIVE_SET:
        sf_buf_printf(out, "%s %s", said->name, said->value);
        break;
    case SF_PRIMITIVE_SHARD:
        sf_buf_printf(out, "shard %s, dim %d over %s", said->param, said->dim, said->axis);
        break;
    case SF_PRIMITIVE_SYNC:
        sf_buf_printf(out, "sync %s, %s over %s", said->mode, said->op, said->axis);
        break;
    case SF_PRIMITIVE_CHECKPOINT:
        sf_buf_puts(out, "checkpoint");
        break;
    case SF_PRIMITIVE_PIPELINE_SPLIT:
        sf_buf_puts(out, "pipeline_split");
        break;
    case SF_PRIMITIVE_DECOMPOSE:
        sf_buf_puts(out, "decompose");
        break;
    case SF_PRIMITIVE_ANNOTATE:
        sf_buf_printf(out, "annotate %s = %s", said->name, said->value);
        break;
    }
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

/* What is not said of a shard or a sync. */
static void complete_said(const sf_primitives *list, sf_primitive *said)
{
    sf_arena arena = {0};
    sf_mesh mesh;
    if (said->kind == SF_PRIMITIVE_SYNC) {
        said->mode = said->mode ? said->mode : "forward";
        said->op = said->op ? said->op : "all_reduce";
    }
    for (size_t i = list->nentries; i-- > 0 && said->kind == SF_PRIMITIVE_SYNC && !said->axis;)
        if (list->entries[i].said.kind == SF_PRIMITIVE_SHARD)
            said->axis = list->entries[i].said.axis;
    if (!said->axis)
        said->axis = sf_find_mesh_set(list, &arena, &mesh) && mesh.naxes == 1
                         ? sf_find_setting(list, "mesh")->said.value
                         : "model";
    sf_arena_free(&arena);
}

struct adding {
    sf_primitives *list;
    sf_primitive said;
    sf_diag *diag;
};

/* The name of the axis of "model=4". */
static const char *name_of_axis(sf_primitives *list, const char *axis)
{
    return axis ? sf_arena_string(&list->arena, axis, strcspn(axis, "=")) : NULL;
}

static sf_status add(void *context)
{
    struct adding *job = context;
    sf_primitives *list = job->list;
    sf_primitive said = job->said;
    complete_said(list, &said);
    sf_entry entry = {.number = list->made, .said = keep_said(list, &said)};
    entry.said.axis = name_of_axis(list, entry.said.axis);
    if (said.kind != SF_PRIMITIVE_SET)
        SF_TRY(find_entry_modules(list, &entry, job->diag));
    if (said.kind == SF_PRIMITIVE_SHARD)
        SF_TRY(find_entry_params(list, &entry, job->diag));
    sf_buf text = {0};
    describe(&entry, &text);
    entry.text = keep_text(list, text.text);
    sf_buf_free(&text);
    SF_TRY(sf_primitive_check(list, &entry, job->diag));
    SF_PUSH(&list->arena, list->entries, list->nentries, list->capacity, entry);
    list->made++;
    return SF_OK;
}

static bool is_endless(const sf_primitive *said)
{
    const char *texts[] = {said->module, said->param, said->axis, said->mode,
                           said->op,     said->name,  said->value};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i] && strlen(texts[i]) > MOST_CHARACTERS)
            return true;
    return false;
}

static sf_status check_said(const sf_primitives *list, const sf_primitive *said, sf_diag *diag)
{
    bool set = said->kind == SF_PRIMITIVE_SET, note = said->kind == SF_PRIMITIVE_ANNOTATE;
    if (said->kind < SF_PRIMITIVE_SET || said->kind > SF_PRIMITIVE_ANNOTATE)
        return sf_fail(diag, SF_EUSAGE, sf_said_at(said), "there is no such primitive");
    if ((!set && !said->module) || (said->kind == SF_PRIMITIVE_SHARD && !said->param) ||
        ((set || note) && (!said->name || !said->value)))
        return sf_fail(diag, SF_EUSAGE, sf_said_at(said), "the primitive does not say of what");
    if (is_endless(said))
        return sf_fail(diag, SF_EUSAGE, sf_said_at(said), "a name has more than %d characters",
                       MOST_CHARACTERS);
    if (list->nentries >= MOST_PRIMITIVES)
        return sf_fail(diag, SF_EUSAGE, sf_said_at(said), "there are more than %d primitives",
                       MOST_PRIMITIVES);
    return SF_OK;
}

/* Changes the list, or leaves it as it was. Where memory runs out, the guard has freed what the arena grew by. */
static sf_status change(sf_status (*work)(void *), void *job, sf_primitives *list, sf_diag *diag)
{
    sf_primitives before = *list;
    sf_mark mark = sf_arena_mark(&list->arena);
    sf_status status = sf_guarded(work, job, diag);
    if (status == SF_OK)
        return SF_OK;
    if (status != SF_ENOMEM) {
        sf_arena_reset(&list->arena, mark);
        before.arena = list->arena;
    }
    *list = before;
    return status;
}

sf_status sf_primitives_add(sf_primitives *list, const sf_primitive *primitive, sf_diag *diag,
                            int *number)
{
    struct adding job = {.list = list, .diag = diag};
    SF_TRY(sf_options_take(primitive, &job.said, sizeof job.said, diag));
    SF_TRY(check_said(list, &job.said, diag));
    SF_TRY(change(add, &job, list, diag));
    if (number)
        *number = list->made - 1;
    return SF_OK;
}

struct undoing {
    sf_primitives *list;
    size_t index;
    sf_diag *diag;
};

static sf_status check_all(const sf_primitives *list, sf_diag *diag)
{
    for (size_t i = 0; i < list->nentries; i++) {
        sf_primitives before = *list;
        before.nentries = i;
        SF_TRY(sf_primitive_check(&before, &list->entries[i], diag));
    }
    return SF_OK;
}

static sf_status undo(void *context)
{
    struct undoing *job = context;
    sf_primitives *list = job->list;
    sf_primitives without = *list;
    without.entries = SF_ARRAY(&list->arena, list->nentries, sf_entry);
    without.capacity = list->nentries;
    without.nentries = 0;
    for (size_t i = 0; i < list->nentries; i++)
        if (i != job->index)
            without.entries[without.nentries++] = list->entries[i];
    without.arena = list->arena;
    SF_TRY(check_all(&without, job->diag));
    *list = without;
    return SF_OK;
}

sf_status sf_primitives_undo(sf_primitives *list, int number, sf_diag *diag)
{
    struct undoing job = {list, 0, diag};
    while (number >= 0 && job.index < list->nentries && list->entries[job.index].number != number)
        job.index++;
    if (number < 0)
        job.index = list->nentries - 1;
    if (list->nentries == 0 || job.index >= list->nentries)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "there is nothing to undo");
    return change(undo, &job, list, diag);
}

int sf_primitives_count(const sf_primitives *list)
{
    return (int)list->nentries;
}

const char *sf_primitives_text(const sf_primitives *list, int index)
{
    return index >= 0 && (size_t)index < list->nentries ? list->entries[index].text : NULL;
}
