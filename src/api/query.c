/* Queries of a step. */
#include "api/query.h"

#include <string.h>

#include "base/boundary.h"
#include "base/guard.h"
#include "ir/name.h"

_Static_assert((int)SF_TENSOR_DIMS == (int)SF_MAX_RANK, "types fit their description");

static bool has_argument(const sf_graph *graph, int index)
{
    return index >= 0 && (uint32_t)index < graph->top->narguments;
}

static bool has_result(const sf_graph *graph, int index)
{
    return index >= 0 && (uint32_t)index < graph->top->nresults;
}

int sf_graph_arguments(const sf_graph *graph)
{
    SF_NEED_OR(0, graph);
    return (int)graph->top->narguments;
}

int sf_graph_results(const sf_graph *graph)
{
    SF_NEED_OR(0, graph);
    return (int)graph->top->nresults;
}

const char *sf_graph_argument_name(const sf_graph *graph, int argument)
{
    SF_NEED_OR(NULL, graph);
    return has_argument(graph, argument) ? graph->arguments[argument].name : NULL;
}

const char *sf_graph_result_name(const sf_graph *graph, int result)
{
    SF_NEED_OR(NULL, graph);
    return has_result(graph, result) ? graph->results[result].name : NULL;
}

struct finding {
    const sf_graph *graph;
    const char *name;
    int found; /* or -1 */
};

static sf_status find_clean(void *context)
{
    struct finding *job = context;
    sf_arena arena = {0};
    const char **names = sf_clean_names(job->graph, &arena);
    for (int i = 0; job->found < 0 && i < sf_graph_arguments(job->graph); i++)
        if (strcmp(names[i], job->name) == 0)
            job->found = i;
    sf_arena_free(&arena);
    return SF_OK;
}

sf_status sf_find_named_argument(const sf_graph *graph, const char *name, sf_diag *diag, int *out)
{
    struct finding job = {graph, name, -1};
    for (int i = 0; job.found < 0 && i < sf_graph_arguments(graph); i++)
        if (strcmp(graph->arguments[i].name, name) == 0)
            job.found = i;
    if (job.found < 0)
        SF_TRY(sf_guarded(find_clean, &job, diag));
    if (job.found < 0)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "the step has no argument '%s'", name);
    *out = job.found;
    return SF_OK;
}

sf_status sf_find_named_result(const sf_graph *graph, const char *name, sf_diag *diag, int *out)
{
    for (int i = 0; *name && i < sf_graph_results(graph); i++)
        if (strcmp(graph->results[i].name, name) == 0) {
            *out = i;
            return SF_OK;
        }
    return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "the step has no result '%s'", name);
}

int sf_graph_find_argument(const sf_graph *graph, const char *name)
{
    SF_NEED_OR(-1, graph, name);
    int found;
    return sf_find_named_argument(graph, name, NULL, &found) == SF_OK ? found : -1;
}

int sf_graph_find_result(const sf_graph *graph, const char *name)
{
    SF_NEED_OR(-1, graph, name);
    int found;
    return sf_find_named_result(graph, name, NULL, &found) == SF_OK ? found : -1;
}

bool sf_give_type(const sf_type *type, sf_tensor_type *out)
{
    sf_tensor_type view;
    sf_view_type(type, &view);
    return SF_GIVE(sf_tensor_type, out, &view, NULL) == SF_OK;
}

bool sf_graph_argument_type(const sf_graph *graph, int argument, sf_tensor_type *out)
{
    SF_NEED_OR(false, graph, out);
    if (!has_argument(graph, argument))
        return false;
    return sf_give_type(sf_argument_type(graph, (uint32_t)argument), out);
}

bool sf_graph_result_type(const sf_graph *graph, int result, sf_tensor_type *out)
{
    SF_NEED_OR(false, graph, out);
    if (!has_result(graph, result))
        return false;
    return sf_give_type(sf_result_type(graph, (uint32_t)result), out);
}

sf_role sf_graph_argument_role(const sf_graph *graph, int argument)
{
    SF_NEED_OR(SF_ROLE_OTHER, graph);
    return has_argument(graph, argument) ? graph->arguments[argument].role : SF_ROLE_OTHER;
}

int sf_graph_argument_next(const sf_graph *graph, int argument)
{
    SF_NEED_OR(-1, graph);
    if (!has_argument(graph, argument) || graph->arguments[argument].next == SF_NONE)
        return -1;
    return (int)graph->arguments[argument].next;
}

int sf_graph_loss(const sf_graph *graph)
{
    SF_NEED_OR(-1, graph);
    for (int i = 0; i < sf_graph_results(graph); i++)
        if (graph->results[i].is_loss)
            return i;
    return -1;
}

struct listing {
    const sf_graph *graph;
    int capacity, count;
    const char **out;
};

static void list_scope(struct listing *job, const sf_scope *scope, bool *listed)
{
    if (!scope->parent || listed[scope->id])
        return;
    list_scope(job, scope->parent, listed);
    listed[scope->id] = true;
    if (job->count < job->capacity)
        job->out[job->count] = scope->path;
    job->count++;
}

static sf_status list_scopes(void *context)
{
    struct listing *job = context;
    const sf_graph *graph = job->graph;
    sf_arena arena = {0};
    bool *listed = SF_ARRAY(&arena, sf_scope_count(graph->pool), bool);
    for (size_t i = 0; i < graph->nnodes; i++)
        list_scope(job, graph->nodes[i]->scope, listed);
    sf_arena_free(&arena);
    return SF_OK;
}

int sf_graph_scopes(const sf_graph *graph, int capacity, const char **out)
{
    SF_NEED_OR(-1, graph);
    if (capacity > 0)
        SF_NEED_OR(-1, out);
    struct listing job = {.graph = graph, .capacity = capacity, .out = out};
    return sf_guarded(list_scopes, &job, NULL) == SF_OK ? job.count : -1;
}
