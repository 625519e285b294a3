#include "front/state.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"

static void set_role(sf_argument *argument, sf_role role, sf_source from)
{
    argument->role = role;
    argument->role_from = from;
}

static void set_next(sf_argument *argument, uint32_t result, sf_source from)
{
    argument->next = result;
    argument->next_from = from;
}

/* The argument or result that a number or a name means; SF_NONE when there is none. */
static uint32_t find_named_argument(const sf_graph *graph, const char *text)
{
    char *end;
    unsigned long number = strtoul(text, &end, 10);
    if (*text && !*end)
        return number < graph->top->narguments ? (uint32_t)number : SF_NONE;
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        if (strcmp(graph->arguments[i].name, text) == 0)
            return i;
    return SF_NONE;
}

static uint32_t find_result(const sf_graph *graph, const char *text)
{
    char *end;
    unsigned long number = strtoul(text, &end, 10);
    if (*text && !*end)
        return number < graph->top->nresults ? (uint32_t)number : SF_NONE;
    for (uint32_t i = 0; i < graph->top->nresults; i++)
        if (strcmp(graph->results[i].name, text) == 0)
            return i;
    return SF_NONE;
}

static sf_status link_by_hand(sf_graph *graph, char *pair, sf_diag *diag)
{
    char *equals = strrchr(pair, '=');
    if (!equals)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "state \"%s\" is not ARGUMENT=RESULT", pair);
    *equals = 0;
    uint32_t argument = find_named_argument(graph, pair), result = find_result(graph, equals + 1);
    if (argument == SF_NONE)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "state: there is no argument \"%s\"", pair);
    if (result == SF_NONE)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "state: there is no result \"%s\"", equals + 1);
    if (sf_argument_type(graph, argument) != sf_result_type(graph, result))
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE,
                       "state: argument %u and result %u have different types", argument, result);
    set_next(&graph->arguments[argument], result, SF_FROM_USER);
    return SF_OK;
}

static sf_status links_by_hand(sf_graph *graph, const char *state, sf_diag *diag)
{
    if (strcmp(state, "none") == 0)
        return SF_OK;
    char *text = sf_arena_string(&graph->arena, state, strlen(state));
    while (text) {
        char *comma = strchr(text, ',');
        if (comma)
            *comma++ = 0;
        SF_TRY(link_by_hand(graph, text, diag));
        text = comma;
    }
    return SF_OK;
}

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
    const sf_json *args;
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
    if (role_of_entry(entry, &known))
        return SF_OK;
    sf_fail(sidecar->diag, SF_EINPUT, place_in_sidecar(sidecar, role ? role : entry),
            role ? "the \"role\" of entry %zu is none that is known" : "entry %zu has no \"role\"",
            number);
    return sf_hint(sidecar->diag, "a role is \"param\", \"opt_state\", \"batch\", \"key\" or "
                                  "\"other\"");
}

static sf_status check_sidecar(const struct sidecar *sidecar)
{
    sf_status status = SF_OK;
    if (!sidecar->args)
        return sf_fail(sidecar->diag, SF_EINPUT, (sf_loc){.file = sidecar->file},
                       "this is no sidecar: it is no object with \"args\"");
    if (sf_json_kind_of(sidecar->args) != SF_JSON_ARRAY)
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
                   "it may be the sidecar of another step: --sidecar names the right "
                   "one, --sidecar none does without");
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
        sf_role role = SF_ROLE_OTHER;
        role_of_entry(sf_json_item(sidecar->args, entry++), &role);
        set_role(&graph->arguments[i], role, SF_FROM_SIDECAR);
    }
    return SF_OK;
}

static sf_status read_sidecar_text(sf_graph *graph, const sf_import_options *options, sf_diag *diag)
{
    struct sidecar sidecar = {sf_str_of(options->sidecar), options->sidecar_file, NULL, diag};
    const sf_json *json;
    sf_arena arena = {0};
    sf_status status = sf_json_parse(sidecar.text, sidecar.file, &arena, &json, diag);
    if (status == SF_OK) {
        sidecar.args = sf_json_get(json, "args");
        status = check_sidecar(&sidecar);
    } else {
        sf_hint(diag, "if this is about something else, --sidecar none does without it");
    }
    if (status == SF_OK)
        status = assign_roles(&sidecar, graph);
    sf_arena_free(&arena);
    return status;
}

/* Results are parameters and optimizer state in argument order, then the loss. */
static void link_by_sidecar(sf_graph *graph)
{
    uint32_t result = 0;
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        sf_argument *argument = &graph->arguments[i];
        if (argument->role != SF_ROLE_PARAM && argument->role != SF_ROLE_STATE)
            continue;
        if (result >= graph->top->nresults ||
            sf_result_type(graph, result) != sf_argument_type(graph, i))
            return;
        set_next(argument, result++, SF_FROM_SIDECAR);
    }
}

/* The words of a name: "opt[0].mu['params']['fc1']" has opt, 0, mu, params, fc1. */
static bool next_name_part(const char **text, sf_str *word)
{
    const char *at = *text;
    while (*at && !isalnum((unsigned char)*at))
        at++;
    const char *start = at;
    while (isalnum((unsigned char)*at))
        at++;
    *word = (sf_str){start, (size_t)(at - start)};
    *text = at;
    return word->length > 0;
}

static bool is_one_of_words(sf_str word, const char *const *list)
{
    for (; *list; list++)
        if (word.length == strlen(*list) && strncasecmp(word.at, *list, word.length) == 0)
            return true;
    return false;
}

/* Optimizer words win over parameter words, because the state of a parameter bears its name. */
static bool role_by_name(const char *name, sf_role *role)
{
    static const char *const state[] = {"opt",     "optimizer", "mu",       "nu",      "momentum",
                                        "moments", "optstate",  "velocity", "adam",    "adamw",
                                        "count",   "trace",     "moment",   "optvars", NULL};
    static const char *const param[] = {"params", "param",     "weights", "weight",
                                        "kernel", "variables", "theta",   NULL};
    static const char *const batch[] = {"batch",  "inputs", "input",  "labels", "targets",
                                        "target", "ids",    "tokens", "images", "data",
                                        "x",      "y",      NULL};
    static const char *const key[] = {"key", "rng", "rngs", "seed", "prng", NULL};
    static const struct {
        sf_role role;
        const char *const *words;
    } table[] = {
        {SF_ROLE_STATE, state},
        {SF_ROLE_PARAM, param},
        {SF_ROLE_BATCH, batch},
        {SF_ROLE_KEY, key},
    };
    sf_str first, word;
    const char *at = name;
    if (!next_name_part(&at, &first))
        return false;
    /* The first word names the argument of the user's function, the others lie inside of it. */
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (is_one_of_words(first, table[i].words)) {
            *role = table[i].role;
            return true;
        }
    for (size_t i = 0; i < 2; i++)
        for (at = name; next_name_part(&at, &word);)
            if (is_one_of_words(word, table[i].words)) {
                *role = table[i].role;
                return true;
            }
    return false;
}

/* What follows the name of the user's argument, and what follows "result[0]". */
static const char *inside_argument(const char *name)
{
    return name + strcspn(name, "[.");
}

static const char *inside_result(const char *name)
{
    name += strcspn(name, "[");
    return *name ? name + strcspn(name, "]") + 1 : name;
}

struct named {
    const char *inside;
    uint32_t index;
};

static int by_inside(const void *a, const void *b)
{
    const struct named *x = a, *y = b;
    int order = strcmp(x->inside, y->inside);
    return order ? order : (x->index > y->index) - (x->index < y->index);
}

static void link_by_name(sf_graph *graph)
{
    uint32_t nresults = graph->top->nresults;
    struct named *results = sf_alloc(nresults * sizeof *results);
    uint32_t count = 0;
    for (uint32_t i = 0; i < nresults; i++) {
        const char *inside = inside_result(graph->results[i].name);
        if (*inside)
            results[count++] = (struct named){inside, i};
    }
    qsort(results, count, sizeof *results, by_inside);
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        struct named key = {inside_argument(graph->arguments[i].name), 0};
        uint32_t low = 0, high = count;
        while (low < high) {
            uint32_t middle = (low + high) / 2;
            if (by_inside(&results[middle], &key) < 0)
                low = middle + 1;
            else
                high = middle;
        }
        bool found = *key.inside && low < count && strcmp(results[low].inside, key.inside) == 0;
        bool is_unique = low + 1 >= count || strcmp(results[low + 1].inside, key.inside) != 0;
        if (found && is_unique &&
            sf_result_type(graph, results[low].index) == sf_argument_type(graph, i))
            set_next(&graph->arguments[i], results[low].index, SF_FROM_NAME);
    }
    sf_free(results);
}

static bool may_be_loss(const sf_type *type)
{
    return type->rank == 0 && sf_is_float(type->dtype);
}

/* A step gives its new state first, in the order of the arguments, and then what it reports. */
static void link_by_order(sf_graph *graph)
{
    uint32_t count = 0;
    while (count < graph->top->narguments && count < graph->top->nresults &&
           sf_argument_type(graph, count) == sf_result_type(graph, count))
        count++;
    /* A function whose every result looks like an argument is a step only if something is left to
     * feed it, and a step reports its loss: otherwise this is chance. Gradients look like that. */
    bool has_loss = false;
    for (uint32_t i = count; i < graph->top->nresults; i++)
        has_loss = has_loss || may_be_loss(sf_result_type(graph, i));
    if (count == graph->top->narguments || !has_loss)
        return;
    for (uint32_t i = 0; i < count; i++)
        set_next(&graph->arguments[i], i, SF_FROM_ORDER);
}

static bool any_link(const sf_graph *graph)
{
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        if (graph->arguments[i].next != SF_NONE)
            return true;
    return false;
}

/* The last scalar float that is nobody's state. */
static void find_loss(sf_graph *graph)
{
    bool *linked = sf_alloc(graph->top->nresults * sizeof *linked);
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        if (graph->arguments[i].next != SF_NONE)
            linked[graph->arguments[i].next] = true;
    for (uint32_t i = graph->top->nresults; i-- > 0;) {
        if (!linked[i] && may_be_loss(sf_result_type(graph, i))) {
            graph->results[i].is_loss = true;
            break;
        }
    }
    sf_free(linked);
}

/* Which arguments the loss needs: told apart parameters and optimizer state without names. */
static bool *needed_by_loss(const sf_graph *graph)
{
    bool *needed = sf_alloc(graph->nvalues * sizeof *needed);
    for (uint32_t i = 0; i < graph->top->nresults; i++)
        if (graph->results[i].is_loss)
            needed[graph->top->results[i]] = true;
    for (uint32_t i = graph->top->nnodes; i-- > 0;) {
        const sf_node *node = graph->nodes[graph->top->nodes[i]];
        bool any = false;
        for (uint32_t j = 0; j < node->nresults; j++)
            any = any || needed[node->result + j];
        for (uint32_t j = 0; any && j < node->noperands; j++)
            needed[node->operands[j]] = true;
    }
    return needed;
}

/* Two words of key for threefry, four for the generators of XLA. */
static bool may_be_key(const sf_type *type)
{
    return type->dtype == SF_U32 && type->rank == 1 && (type->dims[0] == 2 || type->dims[0] == 4);
}

/* Where nothing links results and arguments, this need not be a step, and nothing can be said. */
static void roles_from_flow(sf_graph *graph)
{
    bool *needed = needed_by_loss(graph), is_step = any_link(graph);
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        sf_argument *argument = &graph->arguments[i];
        const sf_type *type = sf_argument_type(graph, i);
        if (argument->role_from != SF_FROM_NOTHING)
            continue;
        if (may_be_key(type))
            set_role(argument, SF_ROLE_KEY, SF_FROM_FLOW);
        else if (!is_step)
            set_role(argument, SF_ROLE_OTHER, SF_FROM_NOTHING);
        else if (argument->next == SF_NONE)
            set_role(argument, SF_ROLE_BATCH, SF_FROM_ORDER);
        else if (sf_is_float(type->dtype) && needed[graph->top->arguments[i]])
            set_role(argument, SF_ROLE_PARAM, SF_FROM_FLOW);
        else
            set_role(argument, SF_ROLE_STATE, SF_FROM_FLOW);
    }
    sf_free(needed);
}

/* Aliases come from the text: they may point past the results or join different types. */
static sf_status check_state_aliases(const sf_graph *graph, sf_diag *diag)
{
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        const sf_argument *argument = &graph->arguments[i];
        if (argument->next_from != SF_FROM_ALIAS)
            continue;
        if (argument->next >= graph->top->nresults ||
            sf_argument_type(graph, i) != sf_result_type(graph, argument->next))
            return sf_fail(diag, SF_EINPUT, SF_NOWHERE,
                           "argument %u is aliased to result %u, which is not of its type", i,
                           argument->next);
    }
    return SF_OK;
}

sf_status sf_state_infer(sf_graph *graph, const sf_import_options *options, sf_diag *diag)
{
    SF_TRY(check_state_aliases(graph, diag));
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        sf_argument *argument = &graph->arguments[i];
        sf_role role;
        if (argument->next_from != SF_FROM_ALIAS || options->state)
            set_next(argument, SF_NONE, SF_FROM_NOTHING);
        if (role_by_name(argument->name, &role))
            set_role(argument, role, SF_FROM_NAME);
    }
    if (options->sidecar)
        SF_TRY(read_sidecar_text(graph, options, diag));
    if (options->state)
        SF_TRY(links_by_hand(graph, options->state, diag));
    else if (!any_link(graph) && options->sidecar)
        link_by_sidecar(graph);
    if (!any_link(graph) && !options->state)
        link_by_name(graph);
    if (!any_link(graph) && !options->state)
        link_by_order(graph);
    find_loss(graph);
    roles_from_flow(graph);
    return SF_OK;
}
