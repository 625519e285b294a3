/* Subgraphs: ops of a step that are found by a sketch, or chosen one by one. */
#include <string.h>

#include "api/primitive/primitives.h"
#include "api/query.h"
#include "base/boundary.h"
#include "base/guard.h"
#include "ir/name.h"
#include "ir/uses.h"
#include "match/match.h"

enum { MOST_SUBGRAPHS = 100000 };

/* The pattern, and where to search. */
struct finding {
    sf_primitives *list;
    const char *module;
    const sf_sketch *pattern;
    sf_take_op *take;
    void *context;
    sf_diag *diag;
    sf_arena scratch;
    bool *traced; /* by node of the graph */
    size_t first;
};

/* Whether the scope is in a leaf of a module: a module below it that is not looked into. */
static bool is_in_leaf(const char *path, const char *module, const char *leaves)
{
    const char *below = path + strlen(module);
    if (!leaves || *below != '/')
        return false;
    for (const char *at = leaves; *at;) {
        char leaf[256], part[256];
        size_t length = strcspn(at, ",");
        snprintf(leaf, sizeof leaf, "/%.*s", (int)length, at);
        for (const char *c = below + 1; *c; c += strcspn(c, "/"), c += *c == '/') {
            snprintf(part, sizeof part, "%.*s", (int)strcspn(c, "/"), c);
            if (sf_name_matches(leaf, part))
                return true;
        }
        at += length + (at[length] == ',');
    }
    return false;
}

const sf_entry *sf_find_leaf_around(const sf_primitives *list, const char *module)
{
    for (size_t i = 0; i < list->nentries; i++) {
        const sf_entry *entry = &list->entries[i];
        for (size_t m = 0; entry->said.kind == SF_PRIMITIVE_TRACE && m < entry->nmodules; m++)
            if (sf_is_in_module(module, entry->modules[m]) &&
                is_in_leaf(module, entry->modules[m], entry->said.name))
                return entry;
    }
    return NULL;
}

/* Whether the scope is traced: in a module that is, and in none of its leaves. */
static bool scope_is_traced(const sf_primitives *list, const char *path)
{
    for (size_t i = 0; i < list->nentries; i++) {
        const sf_entry *entry = &list->entries[i];
        for (size_t m = 0; entry->said.kind == SF_PRIMITIVE_TRACE && m < entry->nmodules; m++)
            if (sf_is_in_module(path, entry->modules[m]) &&
                !is_in_leaf(path, entry->modules[m], entry->said.name))
                return true;
    }
    return false;
}

static bool is_traced_module(const sf_primitives *list, const char *module)
{
    for (size_t i = 0; i < list->nentries; i++) {
        const sf_entry *entry = &list->entries[i];
        for (size_t m = 0; entry->said.kind == SF_PRIMITIVE_TRACE && m < entry->nmodules; m++)
            if (sf_is_in_module(module, entry->modules[m]))
                return true;
    }
    return false;
}

static sf_status fail_module(const struct finding *job)
{
    return sf_fail(job->diag, SF_EUSAGE, SF_NOWHERE, "the step has no module \"%s\"", job->module);
}

/* Marks the ops of the forward pass that may be found. */
static sf_status mark_traced(struct finding *job)
{
    const sf_primitives *list = job->list;
    size_t count;
    const char **modules = sf_match_modules(list, job->module, &job->scratch, &count);
    job->traced = SF_ARRAY(&job->scratch, list->graph->nnodes, bool);
    if (count == 0)
        return fail_module(job);
    const sf_scope *last = NULL;
    bool traced = false;
    for (size_t m = 0; m < count; m++) {
        if (!is_traced_module(list, modules[m])) {
            sf_fail(job->diag, SF_EMISMATCH, SF_NOWHERE,
                    "%s is not traced: its ops cannot be addressed yet", modules[m]);
            return sf_hint(job->diag, "trace it first");
        }
        for (uint32_t i = 0; i < list->graph->top->nnodes; i++) {
            const sf_node *node = sf_top_node(list->graph, i);
            if (node->phase != SF_FORWARD || !sf_is_in_module(node->scope->path, modules[m]))
                continue;
            if (node->scope != last) /* which changes seldom from node to node */
                traced = scope_is_traced(list, node->scope->path);
            last = node->scope;
            job->traced[node->id] = traced;
        }
    }
    return SF_OK;
}

static sf_status keep_subgraph(struct finding *job, sf_subgraph found)
{
    sf_primitives *list = job->list;
    found.graph = list->graph;
    for (int n = 0; n < found.nnodes; n++) {
        const sf_scope *scope = list->graph->nodes[found.nodes[n]]->scope;
        found.scope = found.scope ? sf_scope_common(found.scope, scope) : scope;
    }
    if (list->nsubgraphs >= MOST_SUBGRAPHS)
        return sf_fail(job->diag, SF_EUSAGE, SF_NOWHERE, "more than %d subgraphs were found",
                       MOST_SUBGRAPHS);
    SF_PUSH(&list->arena, list->subgraphs, list->nsubgraphs, list->subgraph_capacity, found);
    return SF_OK;
}

static void sort_numbers(uint32_t *numbers, int count)
{
    for (int i = 1; i < count; i++)
        for (int k = i; k > 0 && numbers[k] < numbers[k - 1]; k--) {
            uint32_t other = numbers[k];
            numbers[k] = numbers[k - 1];
            numbers[k - 1] = other;
        }
}

static sf_status keep_match(struct finding *job, const sf_match *match)
{
    const sf_sketch *sketch = job->pattern;
    sf_arena *arena = &job->list->arena;
    uint32_t *nodes = SF_ARRAY(arena, sketch->count, uint32_t);
    sf_value *inputs = SF_ARRAY(arena, sketch->ninputs + 1, sf_value);
    sf_value *outputs = SF_ARRAY(arena, sketch->nresults, sf_value);
    sf_subgraph found = {.nodes = nodes,
                         .ninputs = sketch->ninputs,
                         .inputs = inputs,
                         .noutputs = sketch->nresults,
                         .outputs = outputs};
    for (int n = 0; n < sketch->count; n++) {
        if (sketch->nodes[n].kind == SF_SKETCH_INPUT)
            inputs[sketch->nodes[n].input] = match->values[n];
        if (sketch->nodes[n].kind == SF_SKETCH_OP)
            nodes[found.nnodes++] = job->list->graph->values[match->values[n]].node;
    }
    for (int r = 0; r < sketch->nresults; r++)
        outputs[r] = match->values[sketch->results[r]];
    sort_numbers(nodes, found.nnodes);
    return keep_subgraph(job, found);
}

static bool may_match(const void *context, const sf_node *node)
{
    return ((const struct finding *)context)->traced[node->id];
}

static sf_status find_sketch(struct finding *job)
{
    sf_matching matching = {job->list->graph, job->pattern, may_match, job};
    size_t count;
    sf_match *matches;
    for (int n = 0; n < job->pattern->count; n++)
        if (job->pattern->nodes[n].kind == SF_SKETCH_INPUT) {
            bool read = false;
            for (int k = 0; k < job->pattern->count; k++)
                for (int i = 0; i < job->pattern->nodes[k].noperands; i++)
                    read = read || job->pattern->nodes[k].operands[i] == n;
            if (!read)
                return sf_fail(job->diag, SF_EUSAGE, SF_NOWHERE,
                               "input %d of the pattern is not read: it could be anything",
                               job->pattern->nodes[n].input + 1);
        }
    SF_TRY(sf_match_all(&matching, &job->scratch, job->diag, &count, &matches));
    for (size_t m = 0; m < count; m++)
        SF_TRY(keep_match(job, &matches[m]));
    return SF_OK;
}

/* Whether the function takes an op, which has results. */
static bool takes_op(const struct finding *job, const sf_node *node)
{
    sf_tensor_type type;
    sf_op_view view = {
        .size = sizeof view, .op = node->def->name, .scope = node->scope->path, .type = &type};
    sf_view_type(sf_type_of(job->list->graph, node->result), &type);
    sf_primitives_hold(job->list);
    bool taken = job->take(job->context, &view);
    sf_primitives_release(job->list);
    return taken;
}

static uint32_t find_root(uint32_t *group, uint32_t node)
{
    for (; group[node] != node; node = group[node])
        group[node] = group[group[node]];
    return node;
}

/* Groups of chosen ops that are tied: by node, the last of its group; SF_NONE: it is not chosen. */
static uint32_t *group_chosen(struct finding *job)
{
    const sf_graph *graph = job->list->graph;
    uint32_t *group = SF_ARRAY(&job->scratch, graph->nnodes, uint32_t);
    for (uint32_t n = 0; n < graph->nnodes; n++)
        group[n] = SF_NONE;
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        if (!job->traced[node->id] || node->nresults == 0 || !takes_op(job, node))
            continue;
        group[node->id] = node->id;
        for (uint32_t o = 0; o < node->noperands; o++) {
            uint32_t maker = graph->values[node->operands[o]].node;
            if (maker != SF_NONE && group[maker] != SF_NONE)
                group[find_root(group, maker)] = node->id;
        }
    }
    for (uint32_t n = 0; n < graph->nnodes; n++)
        if (group[n] != SF_NONE)
            group[n] = find_root(group, n);
    return group;
}

static void push_value(sf_arena *arena, sf_value **list, int *count, size_t *capacity,
                       sf_value value)
{
    for (int i = 0; i < *count; i++)
        if ((*list)[i] == value)
            return;
    size_t size = (size_t)*count;
    SF_PUSH(arena, *list, size, *capacity, value);
    *count = (int)size;
}

/* Which nodes are a subgraph. */
typedef struct border {
    const bool *within;
    const bool *fixed; /* or NULL: nodes whose results are no business of others */
    bool forward;      /* readers of other passes do not count */
} border;

static bool reads_from_outside(const sf_graph *graph, const border *b, const sf_value_use *use)
{
    return use->node == SF_NONE ||
           (!b->within[use->node] && (!b->forward || graph->nodes[use->node]->phase == SF_FORWARD));
}

/* Its inputs from others, and its outputs that others read. */
static sf_subgraph subgraph_within(struct finding *job, const border *b, const sf_uses *uses)
{
    const sf_graph *graph = job->list->graph;
    sf_arena *arena = &job->list->arena;
    sf_subgraph found = {0};
    size_t room = 0, in_room = 0, out_room = 0, count = 0;
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        if (!b->within[node->id])
            continue;
        SF_PUSH(arena, found.nodes, count, room, node->id);
        for (uint32_t o = 0; o < node->noperands; o++) {
            uint32_t maker = graph->values[node->operands[o]].node;
            if (maker == SF_NONE || !(b->within[maker] || (b->fixed && b->fixed[maker])))
                push_value(arena, &found.inputs, &found.ninputs, &in_room, node->operands[o]);
        }
        if (b->fixed && b->fixed[node->id])
            continue;
        for (sf_value v = node->result; v < node->result + node->nresults; v++)
            for (uint32_t u = uses->first[v]; u < uses->first[v + 1]; u++)
                if (reads_from_outside(graph, b, &uses->at[u]))
                    push_value(arena, &found.outputs, &found.noutputs, &out_room, v);
    }
    found.nnodes = (int)count;
    return found;
}

static sf_status find_chosen(struct finding *job)
{
    const sf_graph *graph = job->list->graph;
    const uint32_t *group = group_chosen(job);
    sf_uses uses = sf_uses_of(graph, &job->scratch);
    bool *kept = SF_ARRAY(&job->scratch, graph->nnodes, bool);
    bool *within = SF_ARRAY(&job->scratch, graph->nnodes, bool);
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        uint32_t which = group[graph->top->nodes[i]];
        if (which == SF_NONE || kept[which])
            continue;
        kept[which] = true;
        for (uint32_t n = 0; n < graph->nnodes; n++)
            within[n] = group[n] == which;
        SF_TRY(keep_subgraph(job, subgraph_within(job, &(border){.within = within}, &uses)));
    }
    return SF_OK;
}

/* Whole modules ------------------------------------------------------------------------------------- */

static bool is_parameter(const sf_graph *graph, sf_value value)
{
    const sf_value_info *info = &graph->values[value];
    return info->node == SF_NONE && graph->arguments[info->index].role == SF_ROLE_PARAM;
}

/* Parameters after the other inputs, in the order of the step's arguments. */
static void put_parameters_last(const sf_graph *graph, sf_value *inputs, int count)
{
    for (int i = 1; i < count; i++)
        for (int k = i; k > 0 && is_parameter(graph, inputs[k - 1]) &&
                        (!is_parameter(graph, inputs[k]) || inputs[k] < inputs[k - 1]);
             k--) {
            sf_value other = inputs[k];
            inputs[k] = inputs[k - 1];
            inputs[k - 1] = other;
        }
}

/* The nodes of the module in the forward pass: its signature is its operands from others, constants
 * excepted, and its values that others of the forward pass read. */
static sf_status keep_module(struct finding *job, const char *module, const bool *fixed,
                             const sf_uses *uses)
{
    const sf_graph *graph = job->list->graph;
    bool *within = SF_ARRAY(&job->scratch, graph->nnodes, bool);
    for (uint32_t n = 0; n < graph->nnodes; n++)
        within[n] = graph->nodes[n]->phase == SF_FORWARD &&
                    sf_is_in_module(graph->nodes[n]->scope->path, module);
    border all = {.within = within, .fixed = fixed, .forward = true};
    sf_subgraph found = subgraph_within(job, &all, uses);
    if (found.noutputs == 0)
        return sf_fail(job->diag, SF_EMISMATCH, SF_NOWHERE,
                       "nothing that %s computes is read by other modules of the forward pass",
                       module);
    put_parameters_last(graph, found.inputs, found.ninputs);
    found.module = module;
    return keep_subgraph(job, found);
}

static sf_status find_modules(struct finding *job)
{
    const sf_graph *graph = job->list->graph;
    const bool *fixed = sf_find_fixed(graph, &job->scratch);
    sf_uses uses = sf_uses_of(graph, &job->scratch);
    size_t count;
    const char **modules = sf_match_modules(job->list, job->module, &job->scratch, &count);
    if (count == 0)
        return fail_module(job);
    for (size_t m = 0; m < count; m++)
        SF_TRY(keep_module(job, modules[m], fixed, &uses));
    return SF_OK;
}

static sf_status find(void *context)
{
    struct finding *job = context;
    job->first = job->list->nsubgraphs;
    bool whole = !job->pattern && !job->take;
    sf_status status = whole ? find_modules(job) : mark_traced(job);
    if (status == SF_OK && !whole)
        status = job->pattern ? find_sketch(job) : find_chosen(job);
    sf_arena_free(&job->scratch);
    return status;
}

/* If memory runs out, the guard has freed the arena's growth. */
static sf_status run_find(struct finding *job, int *first, int *count)
{
    SF_TRY(sf_check_held(job->list, SF_NOWHERE, job->diag));
    sf_primitives before = *job->list;
    sf_status status = sf_guarded(find, job, job->diag);
    if (status == SF_ENOMEM)
        *job->list = before;
    else if (status != SF_OK)
        job->list->nsubgraphs = before.nsubgraphs;
    *first = (int)before.nsubgraphs + 1;
    *count = (int)(job->list->nsubgraphs - before.nsubgraphs);
    return status;
}

sf_status sf_primitives_find(sf_primitives *list, const char *module, const sf_sketch *pattern,
                             sf_diag *diag, int *first, int *count)
{
    SF_NEED(diag, list, module, pattern, first, count);
    struct finding job = {.list = list, .module = module, .pattern = pattern, .diag = diag};
    *count = 0;
    if (pattern->nresults == 0 || pattern->nodes[pattern->results[0]].kind != SF_SKETCH_OP)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "a pattern makes something by an op");
    return run_find(&job, first, count);
}

sf_status sf_primitives_find_where(sf_primitives *list, const char *module, sf_take_op *take,
                                   void *context, sf_diag *diag, int *first, int *count)
{
    SF_NEED(diag, list, module, take, first, count);
    struct finding job = {
        .list = list, .module = module, .take = take, .context = context, .diag = diag};
    *count = 0;
    return run_find(&job, first, count);
}

sf_status sf_primitives_find_modules(sf_primitives *list, const char *module, sf_diag *diag,
                                     int *first, int *count)
{
    SF_NEED(diag, list, module, first, count);
    struct finding job = {.list = list, .module = module, .diag = diag};
    *count = 0;
    return run_find(&job, first, count);
}

/* Queries of found subgraphs
 * --------------------------------------------------------------------- */

static const sf_subgraph *get_subgraph(const sf_primitives *list, int number)
{
    return number >= 1 && (size_t)number <= list->nsubgraphs ? &list->subgraphs[number - 1] : NULL;
}

bool sf_primitives_subgraph(const sf_primitives *list, int number, sf_subgraph_view *out)
{
    SF_NEED_OR(false, list, out);
    const sf_subgraph *found = get_subgraph(list, number);
    sf_subgraph_view view = {.size = sizeof view};
    if (found) {
        view.ops = found->nnodes;
        view.inputs = found->ninputs;
        view.results = found->noutputs;
    }
    return SF_GIVE(sf_subgraph_view, out, &view, NULL) == SF_OK && found;
}

static bool is_current(const sf_primitives *list, const sf_subgraph *found)
{
    return found && found->graph == list->graph;
}

/* NULL where there is no such op. */
static const sf_node *get_op(const sf_primitives *list, int number, int index)
{
    const sf_subgraph *found = get_subgraph(list, number);
    if (!is_current(list, found) || index < 0 || index >= found->nnodes)
        return NULL;
    return found->graph->nodes[found->nodes[index]];
}

bool sf_primitives_subgraph_op(const sf_primitives *list, int number, int index, sf_op_view *out)
{
    SF_NEED_OR(false, list, out);
    const sf_node *node = get_op(list, number, index);
    if (!node)
        return false;
    sf_op_view view = {.size = sizeof view, .op = node->def->name, .scope = node->scope->path};
    return SF_GIVE(sf_op_view, out, &view, NULL) == SF_OK;
}

bool sf_primitives_subgraph_op_type(const sf_primitives *list, int number, int index,
                                    sf_tensor_type *out)
{
    SF_NEED_OR(false, list, out);
    const sf_node *node = get_op(list, number, index);
    return node && node->nresults > 0 && sf_give_type(sf_type_of(list->graph, node->result), out);
}

bool sf_primitives_subgraph_input(const sf_primitives *list, int number, int index,
                                  sf_tensor_type *out)
{
    SF_NEED_OR(false, list, out);
    const sf_subgraph *found = get_subgraph(list, number);
    if (!is_current(list, found) || index < 0 || index >= found->ninputs)
        return false;
    return sf_give_type(sf_type_of(found->graph, found->inputs[index]), out);
}

bool sf_primitives_subgraph_result(const sf_primitives *list, int number, int index,
                                   sf_tensor_type *out)
{
    SF_NEED_OR(false, list, out);
    const sf_subgraph *found = get_subgraph(list, number);
    if (!is_current(list, found) || index < 0 || index >= found->noutputs)
        return false;
    return sf_give_type(sf_type_of(found->graph, found->outputs[index]), out);
}

sf_status sf_check_subgraphs(const sf_primitives *list, const sf_primitive *said, sf_diag *diag)
{
    for (int i = 0; i < said->nsubgraphs; i++) {
        const sf_subgraph *found = get_subgraph(list, said->subgraphs[i]);
        if (!found)
            return sf_fail(diag, SF_EUSAGE, sf_said_at(said), "there is no subgraph %d",
                           said->subgraphs[i]);
        if (found->graph != list->graph) {
            sf_fail(diag, SF_EMISMATCH, sf_said_at(said),
                    "the subgraph was found before the step was changed");
            return sf_hint(diag, "find it again");
        }
    }
    return SF_OK;
}

const sf_graph *sf_primitives_graph(const sf_primitives *list)
{
    SF_NEED_OR(NULL, list);
    return list->graph;
}
