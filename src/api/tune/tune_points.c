/* All settings of a program that reads variables as it runs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/tune/tuning.h"

enum { MOST_POINTS = 20000 };

sf_status sf_tuning_apply(sf_tuning *tuning, sf_settings *settings, sf_diag *diag,
                          sf_primitives **out)
{
    SF_TRY(sf_primitives_new(tuning->graph, diag, out));
    sf_status status = tuning->apply(tuning->context, settings, *out, diag);
    if (status == SF_OK)
        return SF_OK;
    sf_primitives_free(*out);
    *out = NULL;
    return status;
}

/* The number of a variable of the space, which is new if it was not there. */
static int number_variable(sf_tuning *tuning, const char **names, const char *name)
{
    int count = tuning->report->nvariables;
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    if (count == SF_MOST_VARIABLES)
        return -1;
    names[count] = sf_arena_string(&tuning->arena, name, strlen(name));
    tuning->report->nvariables++;
    return count;
}

static bool keep_point(sf_tuning *tuning, const sf_settings *settings, const char **names,
                       size_t *capacity)
{
    sf_point point = {.nvariables = settings->nvariables};
    int64_t *chosen = SF_ARRAY(&tuning->arena, settings->nvariables + 1, int64_t);
    sf_buf text = {0};
    point.values = SF_ARRAY(&tuning->arena, SF_MOST_VARIABLES, const char *);
    for (int i = 0; i < settings->nvariables; i++) {
        const sf_variable *variable = &settings->variables[i];
        int number = number_variable(tuning, names, variable->name);
        if (number < 0)
            return false;
        chosen[i] = variable->chosen;
        point.values[number] =
            sf_arena_string(&tuning->arena, variable->value, strlen(variable->value));
        sf_buf_printf(&text, "%s%s=%s", i > 0 ? "," : "", variable->name, variable->value);
    }
    point.chosen = chosen;
    point.text = sf_arena_string(&tuning->arena, text.text ? text.text : "", text.length);
    sf_buf_free(&text);
    SF_PUSH(&tuning->arena, tuning->at, tuning->points.count, *capacity, point);
    return true;
}

/* Numbers come by size, and other values in the order in which they are met. */
static int compare_numbers(const void *a, const void *b)
{
    double left = strtod(*(const char *const *)a, NULL),
           right = strtod(*(const char *const *)b, NULL);
    return left < right ? -1 : left > right;
}

static bool is_number(const char *text)
{
    char *end;
    strtod(text, &end);
    return *text && !*end;
}

static int find_text(const char *const *texts, int count, const char *text)
{
    for (int i = 0; i < count; i++)
        if (strcmp(texts[i], text) == 0)
            return i;
    return -1;
}

/* Fills the places along one dimension. */
static void place(sf_tuning *tuning, int dim, int *places, bool *ordered, int *at)
{
    size_t count = tuning->points.count;
    int ndims = tuning->report->nvariables, found = 0;
    const char **texts = SF_ARRAY(&tuning->arena, count, const char *);
    *ordered = true;
    for (size_t p = 0; p < count; p++) {
        const char *value = tuning->at[p].values[dim];
        if (!value || find_text(texts, found, value) >= 0)
            continue;
        texts[found++] = value;
        *ordered = *ordered && is_number(value);
    }
    if (*ordered)
        qsort(texts, (size_t)found, sizeof *texts, compare_numbers);
    for (size_t p = 0; p < count; p++) {
        const char *value = tuning->at[p].values[dim];
        at[p * (size_t)ndims + (size_t)dim] = value ? find_text(texts, found, value) : -1;
    }
    *places = found;
}

static void place_all(sf_tuning *tuning)
{
    int ndims = tuning->report->nvariables;
    int *places = SF_ARRAY(&tuning->arena, ndims + 1, int);
    bool *ordered = SF_ARRAY(&tuning->arena, ndims + 1, bool);
    int *at = SF_ARRAY(&tuning->arena, tuning->points.count * (size_t)ndims + 1, int);
    for (int d = 0; d < ndims; d++)
        place(tuning, d, &places[d], &ordered[d], at);
    tuning->points.ndims = ndims;
    tuning->points.places = places;
    tuning->points.ordered = ordered;
    tuning->points.at = at;
}

/* A setting that is against a rule is one that cannot be, and stays a point: its trial says why. */
sf_status sf_tuning_find_points(sf_tuning *tuning)
{
    const char **names = SF_ARRAY(&tuning->arena, SF_MOST_VARIABLES, const char *);
    sf_settings *settings = SF_NEW(&tuning->arena, sf_settings);
    size_t capacity = 0;
    bool more = true;
    while (more) {
        sf_primitives *list;
        sf_diag own = {0};
        sf_status status = sf_tuning_apply(tuning, settings, &own, &list);
        sf_primitives_free(list);
        sf_diag_clear(&own);
        if (settings->nvariables == 0) { /* said once more, to be heard */
            if (status != SF_OK)
                SF_TRY(sf_tuning_apply(tuning, settings, tuning->diag, &list));
            return sf_fail(
                tuning->diag, SF_EUSAGE, SF_NOWHERE,
                "nothing is asked for by tune.int or tune.choice: there is nothing to tune");
        }
        if (status == SF_ENOMEM)
            return sf_fail(tuning->diag, SF_ENOMEM, SF_NOWHERE, "not enough memory");
        if (!keep_point(tuning, settings, names, &capacity))
            return sf_fail(tuning->diag, SF_EUSAGE, SF_NOWHERE, "there are more than %d variables",
                           SF_MOST_VARIABLES);
        if (tuning->points.count > MOST_POINTS)
            return sf_fail(tuning->diag, SF_EUSAGE, SF_NOWHERE,
                           "there are more than %d settings: narrow the ranges", MOST_POINTS);
        more = sf_settings_next(settings);
    }
    tuning->report->variables = names;
    tuning->report->points = (int64_t)tuning->points.count;
    place_all(tuning);
    return SF_OK;
}
