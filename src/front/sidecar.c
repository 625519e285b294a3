#include "front/sidecar.h"

#include <string.h>

#include "base/json.h"

static bool shape_is(const sf_json *shape, const sf_type *type)
{
    if (sf_json_count(shape) != (size_t)type->rank)
        return false;
    for (int i = 0; i < type->rank; i++) {
        int64_t size;
        if (!sf_json_int(sf_json_item(shape, (size_t)i), &size) || size != type->dims[i])
            return false;
    }
    return true;
}

/* Whether the sidecar's entry describes argument i: its shape, and its name at the end of the
 * argument's name where the text has names. */
static bool describes_argument(const sf_json *arg, const sf_graph *graph, uint32_t i)
{
    sf_str name, have = sf_str_of(graph->arguments[i].name);
    if (!shape_is(sf_json_get(arg, "shape"), sf_argument_type(graph, i)))
        return false;
    if (!strchr(have.at, '[') || !sf_json_string(sf_json_get(arg, "name"), &name))
        return true;
    return name.length <= have.length &&
           memcmp(have.at + have.length - name.length, name.at, name.length) == 0;
}

static bool role_of_entry(const sf_json *arg, sf_role *out)
{
    sf_str role;
    if (!sf_json_string(sf_json_get(arg, "role"), &role))
        return false;
    for (int r = 0; r < SF_ROLE_COUNT; r++)
        if (sf_str_is(role, sf_role_name((sf_role)r))) {
            *out = (sf_role)r;
            return true;
        }
    return false;
}

static bool is_shape(const sf_json *shape)
{
    int64_t size;
    for (size_t i = 0; i < sf_json_count(shape); i++)
        if (sf_json_kind_of(shape) != SF_JSON_ARRAY ||
            !sf_json_int(sf_json_item(shape, i), &size) || size < 0)
            return false;
    return sf_json_kind_of(shape) == SF_JSON_ARRAY;
}

/* The sidecar's list of arguments, and where messages about it point. */
struct sidecar {
    sf_str text;
    const char *file;
    const sf_json *args, *outputs, *loss, *state; /* NULL: not there */
    sf_diag *diag;
};

static sf_loc place_in_sidecar(const struct sidecar *sidecar, const sf_json *value)
{
    return sf_json_loc(value, sidecar->text, sidecar->file);
}

static sf_status check_entry(const struct sidecar *sidecar, size_t number)
{
    const sf_json *entry = sf_json_item(sidecar->args, number);
    const sf_json *role = sf_json_get(entry, "role"), *shape = sf_json_get(entry, "shape");
    sf_role known;
    if (sf_json_kind_of(entry) != SF_JSON_OBJECT)
        return sf_fail(sidecar->diag, SF_EINPUT, place_in_sidecar(sidecar, entry),
                       "entry %zu of \"args\" must be an object, not %s", number,
                       sf_json_kind_name(sf_json_kind_of(entry)));
    if (!shape)
        return sf_fail(sidecar->diag, SF_EINPUT, place_in_sidecar(sidecar, entry),
                       "entry %zu of \"args\" has no \"shape\"", number);
    if (!is_shape(shape))
        return sf_fail(sidecar->diag, SF_EINPUT, place_in_sidecar(sidecar, shape),
                       "the \"shape\" of entry %zu must be an array of sizes, such as [16, 64]",
                       number);
    if (!role || role_of_entry(entry, &known))
        return SF_OK;
    sf_fail(sidecar->diag, SF_EINPUT, place_in_sidecar(sidecar, role),
            "the \"role\" of entry %zu is none that is known", number);
    return sf_hint(sidecar->diag, "a role is \"param\", \"opt_state\", \"batch\", \"key\" or "
                                  "\"other\"");
}

static sf_status check_sidecar(const struct sidecar *sidecar)
{
    sf_status status = SF_OK;
    if (!sidecar->args && !sidecar->outputs && !sidecar->loss && !sidecar->state)
        return sf_fail(
            sidecar->diag, SF_EINPUT, (sf_loc){.file = sidecar->file},
            "this is no sidecar: it is no object with \"args\", \"outputs\", \"loss\" or "
            "\"state\"");
    if (sidecar->args && sf_json_kind_of(sidecar->args) != SF_JSON_ARRAY)
        return sf_fail(sidecar->diag, SF_EINPUT, place_in_sidecar(sidecar, sidecar->args),
                       "\"args\" must be an array, not %s",
                       sf_json_kind_name(sf_json_kind_of(sidecar->args)));
    for (size_t i = 0; i < sf_json_count(sidecar->args); i++)
        if (check_entry(sidecar, i) != SF_OK)
            status = SF_EINPUT;
    return status;
}

/* The entry that should have been argument i says why it is not. */
static sf_status fail_to_match_state(const struct sidecar *sidecar, const sf_graph *graph,
                                     uint32_t i, size_t entry)
{
    char type[SF_TYPE_TEXT];
    const char *name = graph->arguments[i].name;
    sf_type_text(sf_argument_type(graph, i), type);
    if (entry == sf_json_count(sidecar->args)) {
        sf_fail(sidecar->diag, SF_EINPUT, (sf_loc){.file = sidecar->file},
                "no entry is left for argument %u, %s, %s", i, name, type);
    } else {
        const sf_json *next = sf_json_item(sidecar->args, entry);
        bool fits = shape_is(sf_json_get(next, "shape"), sf_argument_type(graph, i));
        sf_fail(sidecar->diag, SF_EINPUT, place_in_sidecar(sidecar, next),
                "neither entry %zu nor a later one describes argument %u, %s, %s: entry %zu has "
                "another %s",
                entry, i, name, type, entry, fits ? "name" : "shape");
    }
    return sf_hint(sidecar->diag,
                   "it may be the sidecar of another step: option sidecar names the right one, "
                   "option sidecar none does without");
}

/* Roles, in order. JAX drops arguments that a step does not use, so entries may be left over; an
 * argument without its entry means that this is the sidecar of another step. */
static sf_status assign_roles(const struct sidecar *sidecar, sf_graph *graph)
{
    size_t entry = 0, count = sf_json_count(sidecar->args);
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        size_t first = entry;
        while (entry < count && !describes_argument(sf_json_item(sidecar->args, entry), graph, i))
            entry++;
        if (entry == count)
            return fail_to_match_state(sidecar, graph, i, first);
        sf_role role;
        if (!role_of_entry(sf_json_item(sidecar->args, entry++), &role))
            continue;
        graph->arguments[i].role = role;
        graph->arguments[i].role_from = SF_FROM_SIDECAR;
    }
    return SF_OK;
}

/* By number or name; SF_NONE when there is none. */
static uint32_t find_output(const sf_json *entry, const sf_graph *graph)
{
    int64_t number;
    sf_str name;
    if (sf_json_int(entry, &number))
        return number >= 0 && number < graph->top->nresults ? (uint32_t)number : SF_NONE;
    for (uint32_t i = 0; sf_json_string(entry, &name) && i < graph->top->nresults; i++)
        if (sf_str_is(name, graph->results[i].name))
            return i;
    return SF_NONE;
}

static sf_status hint_at_results(const struct sidecar *sidecar)
{
    return sf_hint(sidecar->diag, "it is the number of a result, from 0, or its name, such as "
                                  "\"result[2]['grads']['w']\"");
}

static sf_status mark_outputs(const struct sidecar *sidecar, sf_graph *graph)
{
    const sf_json *outputs = sidecar->outputs;
    if (outputs && sf_json_kind_of(outputs) != SF_JSON_ARRAY)
        return sf_fail(sidecar->diag, SF_EINPUT, place_in_sidecar(sidecar, outputs),
                       "\"outputs\" must be an array, not %s",
                       sf_json_kind_name(sf_json_kind_of(outputs)));
    for (size_t i = 0; i < sf_json_count(outputs); i++) {
        const sf_json *entry = sf_json_item(outputs, i);
        uint32_t result = find_output(entry, graph);
        if (result == SF_NONE) {
            sf_fail(sidecar->diag, SF_EINPUT, place_in_sidecar(sidecar, entry),
                    "entry %zu of \"outputs\" is no result of the step", i);
            return hint_at_results(sidecar);
        }
        graph->results[result].is_output = true;
    }
    return SF_OK;
}

static sf_status mark_loss(const struct sidecar *sidecar, sf_graph *graph)
{
    if (!sidecar->loss)
        return SF_OK;
    uint32_t result = find_output(sidecar->loss, graph);
    const sf_type *type = result == SF_NONE ? NULL : sf_result_type(graph, result);
    if (!type || type->rank > 0 || !sf_is_float(type->dtype)) {
        sf_fail(sidecar->diag, SF_EINPUT, place_in_sidecar(sidecar, sidecar->loss),
                "\"loss\" is no result of the step that is a single number in floating point");
        return hint_at_results(sidecar);
    }
    graph->results[result].is_output = graph->results[result].is_loss = true;
    graph->results[result].loss_from = SF_FROM_SIDECAR;
    return SF_OK;
}

static sf_status read_state(const struct sidecar *sidecar, sf_graph *graph, const char **out)
{
    sf_str state;
    *out = NULL;
    if (!sidecar->state)
        return SF_OK;
    if (!sf_json_string(sidecar->state, &state))
        return sf_fail(sidecar->diag, SF_EINPUT, place_in_sidecar(sidecar, sidecar->state),
                       "\"state\" must be a text such as \"0=0,1=3\", not %s",
                       sf_json_kind_name(sf_json_kind_of(sidecar->state)));
    *out = sf_arena_string(&graph->arena, state.at, state.length);
    return SF_OK;
}

sf_status sf_sidecar_read(const char *text, const char *file, sf_graph *graph, const char **state,
                          sf_diag *diag)
{
    struct sidecar sidecar = {.text = sf_str_of(text), .file = file, .diag = diag};
    const sf_json *json;
    sf_arena arena = {0};
    sf_status status = sf_json_parse(sidecar.text, sidecar.file, &arena, &json, diag);
    if (status == SF_OK) {
        sidecar.args = sf_json_get(json, "args");
        sidecar.outputs = sf_json_get(json, "outputs");
        sidecar.loss = sf_json_get(json, "loss");
        sidecar.state = sf_json_get(json, "state");
        status = check_sidecar(&sidecar);
    } else {
        sf_hint(diag, "if this is about something else, option sidecar none does without it");
    }
    if (status == SF_OK && sidecar.args)
        status = assign_roles(&sidecar, graph);
    if (status == SF_OK)
        status = mark_outputs(&sidecar, graph);
    if (status == SF_OK)
        status = mark_loss(&sidecar, graph);
    if (status == SF_OK)
        status = read_state(&sidecar, graph, state);
    sf_arena_free(&arena);
    return status;
}
