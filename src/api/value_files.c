#include "api/value_files.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "file/stored.h"

sf_status sf_values_take(sf_safetensors *file, const sf_tensor *tensor, const char *name,
                         const sf_type *type, const char *path, sf_diag *diag, sf_tensor *out)
{
    sf_stored stored = {.tensor = tensor, .name = name, .path = path};
    return sf_stored_view(&stored, type, &file->arena, diag, out);
}

static const sf_tensor *find_input(const sf_safetensors *file, uint32_t number)
{
    char name[SF_VALUE_NAME];
    snprintf(name, sizeof name, "in.%u", number);
    return sf_safetensors_find(file, name);
}

static bool may_be_argument(const sf_type *stored, const sf_type *type, bool converts)
{
    return sf_stored_shape_fits(stored, type) &&
           (converts ? sf_stored_is_akin(stored->dtype, type->dtype)
                     : stored->dtype == type->dtype);
}

/* Matches arguments to inputs in order, from the front or from the back, as early as types allow;
 * false when one finds none. */
static bool match_in_order(const sf_graph *graph, const sf_safetensors *file, uint32_t inputs,
                           bool converts, bool backwards, uint32_t *numbers)
{
    uint32_t arguments = graph->top->narguments, next = 0;
    for (uint32_t k = 0; k < arguments; k++) {
        uint32_t argument = backwards ? arguments - 1 - k : k;
        const sf_type *type = sf_argument_type(graph, argument);
        for (;; next++) {
            if (next == inputs)
                return false;
            numbers[argument] = backwards ? inputs - 1 - next : next;
            if (may_be_argument(find_input(file, numbers[argument])->type, type, converts))
                break;
        }
        next++;
    }
    return true;
}

/* Inputs between `first` and `last` may be each argument. If these leave a choice, a step with its
 * state in equal order in arguments and results has more information: the next value of a dropped
 * argument is still among its results. Writes the answer to `first`; false when there is none. */
static bool settle_by_results(const sf_graph *graph, const sf_safetensors *file, uint32_t *first,
                              const uint32_t *last)
{
    uint32_t arguments = graph->top->narguments;
    int64_t offset = INT64_MIN, before = -1;
    for (uint32_t i = 0; i < arguments; i++) {
        int64_t away = (int64_t)first[i] - graph->arguments[i].next;
        if (graph->arguments[i].next == SF_NONE || first[i] != last[i])
            continue;
        if (offset != INT64_MIN && offset != away)
            return false;
        offset = away;
    }
    for (uint32_t i = 0; i < arguments; before = first[i++]) {
        int64_t number = first[i];
        if (first[i] != last[i]) {
            if (graph->arguments[i].next == SF_NONE || offset == INT64_MIN)
                return false;
            number = graph->arguments[i].next + offset;
        }
        if (number <= before || number < first[i] || number > last[i])
            return false;
        first[i] = (uint32_t)number;
        if (!may_be_argument(find_input(file, first[i])->type, sf_argument_type(graph, i), true))
            return false;
    }
    return true;
}

/* Which in.I each argument is. JAX drops arguments that a step does not use from the text, but the
 * inputs were saved with all of them: then the types must leave one way to match the two, or the
 * results must decide. */
static sf_status number_inputs(const sf_graph *graph, const sf_safetensors *file, const char *path,
                               sf_diag *diag, uint32_t *numbers, sf_arena *scratch)
{
    uint32_t arguments = graph->top->narguments, inputs = 0;
    while (find_input(file, inputs))
        inputs++;
    for (uint32_t i = 0; i < arguments; i++)
        numbers[i] = i;
    if (inputs <= arguments)
        return SF_OK;
    uint32_t *other = SF_ARRAY(scratch, arguments, uint32_t);
    for (int converts = 0; converts < 2; converts++)
        if (match_in_order(graph, file, inputs, converts, false, numbers) &&
            match_in_order(graph, file, inputs, converts, true, other) &&
            settle_by_results(graph, file, numbers, other))
            return SF_OK;
    return sf_fail(
        diag, SF_EINPUT, (sf_loc){path, 0, 0},
        "there are %u inputs for the %u arguments of the step, and it is not clear which "
        "of them it does without",
        inputs, arguments);
}

static sf_status bind(const sf_graph *graph, sf_safetensors *file, const char *path, sf_diag *diag,
                      const uint32_t *numbers, sf_tensor *out)
{
    sf_status status = SF_OK;
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        const sf_tensor *found = find_input(file, numbers[i]);
        char name[SF_VALUE_NAME];
        snprintf(name, sizeof name, "in.%u", numbers[i]);
        if (!found)
            found = sf_safetensors_find(file, graph->arguments[i].name);
        if (!found)
            status = sf_fail(diag, SF_EINPUT, (sf_loc){path, 0, 0},
                             "there is neither %s nor '%s', which the step takes", name,
                             graph->arguments[i].name);
        else if (sf_values_take(file, found, name, sf_argument_type(graph, i), path, diag,
                                &out[i]) != SF_OK)
            status = SF_EINPUT;
    }
    return status;
}

sf_status sf_values_arguments(const sf_graph *graph, sf_safetensors *file, const char *path,
                              sf_diag *diag, sf_tensor *out)
{
    sf_arena scratch = {0};
    uint32_t *numbers = SF_ARRAY(&scratch, graph->top->narguments, uint32_t);
    sf_status status = number_inputs(graph, file, path, diag, numbers, &scratch);
    if (status == SF_OK)
        status = bind(graph, file, path, diag, numbers, out);
    sf_arena_free(&scratch);
    return status;
}

sf_status sf_values_results(const sf_graph *graph, sf_safetensors *file, const char *path,
                            sf_diag *diag, sf_tensor *out)
{
    sf_status status = SF_OK;
    for (uint32_t i = 0; i < graph->top->nresults; i++) {
        char name[SF_VALUE_NAME];
        snprintf(name, sizeof name, "out.%u", i);
        const sf_tensor *found = sf_safetensors_find(file, name);
        if (!found)
            status = sf_fail(diag, SF_EINPUT, (sf_loc){path, 0, 0},
                             "there is no %s to compare a result of the step with", name);
        else if (sf_values_take(file, found, name, sf_result_type(graph, i), path, diag, &out[i]) !=
                 SF_OK)
            status = SF_EINPUT;
    }
    return status;
}

void sf_values_free(uint32_t count, sf_tensor *tensors)
{
    for (uint32_t i = 0; i < count; i++) {
        sf_free(tensors[i].data);
        tensors[i].data = NULL;
    }
}
