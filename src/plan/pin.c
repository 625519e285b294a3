#include "plan/pin.h"

#include <ctype.h>
#include <string.h>

#include "base/hash.h"
#include "base/nearest.h"
#include "ir/name.h"
#include "ir/opdef.h"

static sf_str trim_text(sf_str text)
{
    while (text.length > 0 && text.at[0] == ' ')
        text = (sf_str){text.at + 1, text.length - 1};
    while (text.length > 0 && text.at[text.length - 1] == ' ')
        text.length--;
    return text;
}

static sf_status fail_pin(sf_diag *diag, const char *text, const char *what)
{
    sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "pin \"%s\": %s", text, what);
    return sf_hint(diag, "a pin is PATTERN=LAYOUT@AXIS, such as 'batch/*=S(0)@data'");
}

/* The parts of "PATTERN=[!]LAYOUT@AXIS". */
typedef struct pin_parts {
    sf_str pattern, share, axis;
    bool forbids;
} pin_parts;

static bool is_any(sf_str axis)
{
    return axis.length == 1 && axis.at[0] == '*';
}

static bool is_axis_name(sf_str axis)
{
    for (size_t i = 0; i < axis.length; i++)
        if (!isalnum((unsigned char)axis.at[i]) && axis.at[i] != '_')
            return false;
    return axis.length > 0;
}

static const char *cut_pin(const char *text, pin_parts *out)
{
    const char *words = strstr(text, " # ");
    const char *end = words ? words : text + strlen(text);
    const char *equals = memrchr(text, '=', (size_t)(end - text));
    const char *at = memrchr(text, '@', (size_t)(end - text));
    if (!equals || equals == text)
        return "expected '=' after a pattern";
    if (!at || at < equals)
        return "no '@AXIS' at the end";
    out->pattern = trim_text((sf_str){text, (size_t)(equals - text)});
    out->share = trim_text((sf_str){equals + 1, (size_t)(at - equals - 1)});
    out->axis = trim_text((sf_str){at + 1, (size_t)(end - at - 1)});
    out->forbids = out->share.length > 0 && out->share.at[0] == '!';
    if (out->forbids)
        out->share = trim_text((sf_str){out->share.at + 1, out->share.length - 1});
    if (out->pattern.length == 0)
        return "no pattern in front of '='";
    if (!is_any(out->axis) && !is_axis_name(out->axis))
        return "expected the name of an axis after '@', of letters, digits and _, or *";
    return out->share.length == 0 ? "no share between '=' and '@'" : NULL;
}

sf_str sf_pin_axis_name(const char *text)
{
    pin_parts parts;
    return cut_pin(text, &parts) || is_any(parts.axis) ? (sf_str){0} : parts.axis;
}

bool sf_pin_splits(const char *text)
{
    pin_parts parts;
    return !cut_pin(text, &parts) && !parts.forbids && sf_str_starts(parts.share, "S");
}

/* "S(-1)" is the last dimension. */
static bool read_share(sf_str text, sf_share *out)
{
    bool behind = sf_str_starts(text, "S(-");
    if (!behind)
        return sf_share_parse(text, NULL, out) == SF_OK;
    sf_buf rest = {0};
    sf_buf_printf(&rest, "S(%.*s", (int)text.length - 3, text.at + 3);
    bool good = sf_share_parse((sf_str){rest.text, rest.length}, NULL, out) == SF_OK &&
                out->kind == SF_SPLIT && out->dim > 0;
    out->dim = -out->dim;
    sf_buf_free(&rest);
    return good;
}

static const char *wrong_share(const sf_pin *pin)
{
    if (pin->share.kind == SF_PARTIAL)
        return "partial values come by themselves and cannot be pinned";
    if (pin->share.on != 0)
        return "the pipeline ranks of state follow from the stages and cannot be pinned";
    if (pin->forbids && pin->share.kind != SF_SPLIT)
        return "only splits can be forbidden, as in !S(0); R forbids them all";
    if (pin->forbids && pin->share.period != 0)
        return "what is forbidden is to split a dimension, with any period: leave it out";
    if (pin->share.kind == SF_SPLIT &&
        (pin->share.dim >= SF_MAX_RANK || pin->share.dim < -SF_MAX_RANK))
        return "no tensor has so many dimensions";
    return NULL;
}

static sf_status find_axis(const char *text, sf_str axis, const sf_mesh *mesh, sf_diag *diag,
                           int *out)
{
    *out = SF_ANY_AXIS;
    if (!mesh || is_any(axis))
        return SF_OK;
    *out = sf_mesh_axis(mesh, axis);
    if (*out >= 0)
        return SF_OK;
    sf_buf names = {0};
    sf_nearest nearest = {.text = axis};
    sf_mesh_print(mesh, &names);
    for (int a = 0; a < mesh->naxes; a++)
        sf_nearest_try(&nearest, mesh->axes[a].name);
    sf_status status =
        sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "pin \"%s\": the mesh %s has no axis \"%.*s\"", text,
                names.text, SF_STR_ARGS(axis));
    sf_buf_free(&names);
    return nearest.best ? sf_hint(diag, "did you mean \"%s\"?", nearest.best) : status;
}

sf_status sf_pin_parse(const char *text, const sf_mesh *mesh, sf_arena *arena, sf_diag *diag,
                       sf_pin *out)
{
    pin_parts parts;
    const char *wrong = cut_pin(text, &parts);
    if (wrong)
        return fail_pin(diag, text, wrong);
    *out = (sf_pin){.text = sf_arena_string(arena, text, strlen(text)),
                    .pattern = sf_arena_string(arena, parts.pattern.at, parts.pattern.length),
                    .forbids = parts.forbids};
    SF_TRY(find_axis(text, parts.axis, mesh, diag, &out->axis));
    if (!read_share(parts.share, &out->share))
        return fail_pin(diag, text,
                        "the layout is none of R, S(DIM) and S(DIM,PERIOD), where "
                        "dimensions count from 0, or from the end: -1 is the last");
    wrong = wrong_share(out);
    return wrong ? fail_pin(diag, text, wrong) : SF_OK;
}

sf_status sf_plan_add_pins(sf_plan *plan, int count, const char *const *texts, sf_diag *diag)
{
    sf_pin *pins = SF_ARRAY(&plan->arena, count + plan->npins, sf_pin);
    for (int i = 0; i < count; i++)
        SF_TRY(sf_pin_parse(texts[i], &plan->mesh, &plan->arena, diag, &pins[i]));
    if (plan->npins > 0)
        memcpy(pins + count, plan->pins, (size_t)plan->npins * sizeof *pins);
    plan->pins = pins;
    plan->npins += count;
    plan->nrules += count;
    return SF_OK;
}

const char *sf_gradient_name(const char *parameter, sf_arena *arena)
{
    const char *bare = strncmp(parameter, "params/", 7) == 0 ? parameter + 7 : parameter;
    size_t length = strlen(bare);
    char *name = sf_arena_alloc(arena, length + 6);
    memcpy(name, "grad/", 5);
    memcpy(name + 5, bare, length);
    return name;
}

static bool is_named(const void *item, const void *name)
{
    return strcmp(((const sf_named *)item)->name, name) == 0;
}

static uint64_t hash_of_name(const char *name)
{
    return sf_hash_bytes(0, name, strlen(name));
}

/* Goes backwards, so that lists come out in order. */
static void index_names(sf_names *names, size_t count, sf_arena *arena)
{
    names->same = SF_ARRAY(arena, count, sf_value);
    for (size_t v = count; v-- > 0;) {
        const char *name = names->values[v];
        names->same[v] = SF_NONE;
        if (!*name)
            continue;
        sf_intern_slot *slot =
            sf_intern_find(&names->index, arena, hash_of_name(name), is_named, name);
        sf_named *named = (sf_named *)slot->item;
        if (named) {
            names->same[v] = named->first;
        } else {
            named = SF_NEW(arena, sf_named);
            *named = (sf_named){.name = name, .next = names->all};
            names->all = named;
            slot->item = named;
        }
        named->first = (sf_value)v;
    }
}

sf_names sf_names_of(const sf_graph *graph, sf_arena *arena)
{
    sf_names names = {.graph = graph,
                      .values = SF_ARRAY(arena, graph->nvalues, const char *),
                      .is_scope = SF_ARRAY(arena, graph->nvalues, bool)};
    for (size_t v = 0; v < graph->nvalues; v++) {
        const sf_node *node = sf_maker(graph, (sf_value)v);
        names.is_scope[v] = node != NULL;
        names.values[v] = node && node->phase == SF_FORWARD ? node->scope->path : "";
    }
    const char **clean = sf_clean_names(graph, arena);
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        names.values[graph->top->arguments[i]] = clean[i];
        sf_value gradient = graph->arguments[i].gradient;
        if (gradient != SF_NONE) {
            names.values[gradient] = sf_gradient_name(clean[i], arena);
            names.is_scope[gradient] = false;
        }
    }
    index_names(&names, graph->nvalues, arena);
    return names;
}

/* Marks the values that nodes of the phase read, or that the step returns, outside of the scopes. By value, in the
 * arena. */
static bool *find_read_outside(const sf_graph *graph, const char *scopes, sf_phase phase,
                               sf_arena *arena)
{
    bool *outside = SF_ARRAY(arena, graph->nvalues, bool);
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        if (node->phase != phase || sf_name_is_in(scopes, node->scope->path))
            continue;
        for (uint32_t o = 0; o < node->noperands; o++)
            outside[node->operands[o]] = true;
    }
    for (uint32_t i = 0; i < graph->top->nresults; i++)
        outside[graph->top->results[i]] = true;
    return outside;
}

/* Values that leave the scopes in a phase, each by itself; gradients of parameters have names of
 * their own. */
static const sf_named **match_leaving(const sf_names *names, const char *scopes, sf_phase phase,
                                      sf_arena *arena, size_t *count)
{
    const sf_graph *graph = names->graph;
    const sf_named **found = NULL;
    size_t capacity = 0;
    bool *outside = find_read_outside(graph, scopes, phase, arena);
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        if (node->phase != phase || !sf_name_is_in(scopes, node->scope->path))
            continue;
        for (uint32_t r = 0; r < node->nresults; r++) {
            sf_value value = node->result + r;
            if (!outside[value] || (*names->values[value] && !names->is_scope[value]))
                continue;
            sf_named *named = SF_NEW(arena, sf_named);
            *named = (sf_named){.name = node->scope->path, .first = value, .alone = true};
            SF_PUSH(arena, found, *count, capacity, named);
        }
    }
    return found;
}

const sf_named **sf_names_match(const sf_names *names, const char *pattern, sf_arena *arena,
                                size_t *count)
{
    const sf_named **found = NULL;
    size_t capacity = 0;
    *count = 0;
    if (strncmp(pattern, "out:", 4) == 0)
        return match_leaving(names, pattern + 4, SF_FORWARD, arena, count);
    if (strncmp(pattern, "back:", 5) == 0)
        return match_leaving(names, pattern + 5, SF_BACKWARD, arena, count);
    if (*pattern == '/' && !strpbrk(pattern, "*?")) {
        const sf_named *named =
            sf_intern_look(&names->index, hash_of_name(pattern + 1), is_named, pattern + 1);
        if (named)
            SF_PUSH(arena, found, *count, capacity, named);
        return found;
    }
    for (const sf_named *named = names->all; named; named = named->next)
        if (sf_name_matches(pattern, named->name))
            SF_PUSH(arena, found, *count, capacity, named);
    return found;
}

static size_t count_parts(sf_str name)
{
    size_t parts = 1;
    for (size_t i = 0; i < name.length; i++)
        parts += name.at[i] == '/';
    return parts;
}

/* Tries all runs of so many parts of a name. */
static void try_runs(sf_nearest *nearest, const char *name, size_t parts, sf_arena *arena)
{
    for (const char *at = name; at; at = strchr(at, '/') ? strchr(at, '/') + 1 : NULL) {
        size_t length = strlen(at), seen = 0;
        for (size_t i = 0; at[i] && seen < parts; i++)
            if (at[i] == '/' && ++seen == parts)
                length = i;
        sf_mark mark = sf_arena_mark(arena);
        const char *before = nearest->best;
        const char *run = sf_arena_string(arena, at, length);
        sf_nearest_try(nearest, run);
        if (nearest->best == before)
            sf_arena_reset(arena, mark);
    }
}

const char *sf_names_nearest(const sf_names *names, const char *pattern, sf_arena *arena)
{
    sf_str text = sf_str_of(pattern);
    while (text.length > 0 && (text.at[0] == '/' || text.at[0] == '*'))
        text = (sf_str){text.at + 1, text.length - 1};
    while (text.length > 0 && strchr("/*", text.at[text.length - 1]))
        text.length--;
    sf_nearest nearest = {.text = text};
    for (const sf_named *named = names->all; named; named = named->next)
        try_runs(&nearest, named->name, count_parts(text), arena);
    return nearest.best;
}

void sf_plan_mark_pins(sf_plan *plan, const sf_names *names)
{
    sf_arena arena = {0};
    for (int p = 0; p < plan->npins; p++) {
        size_t count;
        sf_mark mark = sf_arena_mark(&arena);
        const sf_named **found = sf_names_match(names, plan->pins[p].pattern, &arena, &count);
        for (size_t i = 0; i < count; i++)
            for (sf_value v = found[i]->first; v != SF_NONE; v = sf_named_next(names, found[i], v))
                if (plan->pinned[v] < 0)
                    plan->pinned[v] = p;
        sf_arena_reset(&arena, mark);
    }
    sf_arena_free(&arena);
}
