#include "api/tune/settings.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/boundary.h"
#include "base/diag.h"
#include "base/hash.h"

static const int64_t MOST_VALUES = 1000000;

static const sf_variable *find_variable(const sf_settings *settings, const char *name)
{
    for (int i = 0; settings && i < settings->nvariables; i++)
        if (strcmp(settings->variables[i].name, name) == 0)
            return &settings->variables[i];
    return NULL;
}

static sf_status check_name(const sf_settings *settings, const char *name, sf_diag *diag)
{
    if (!name || !*name || strlen(name) >= SF_VARIABLE_TEXT || strpbrk(name, "=,"))
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE,
                       "a variable has a name of less than %d characters, without = and ,",
                       SF_VARIABLE_TEXT);
    if (settings && settings->nvariables == SF_MOST_VARIABLES)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "there are more than %d variables",
                       SF_MOST_VARIABLES);
    return SF_OK;
}

/* Which value a variable of so many has: the one that it has already, or the one that is wanted. */
static sf_status choose(sf_settings *settings, const char *name, int64_t count, int64_t domain,
                        sf_diag *diag, int64_t *chosen)
{
    const sf_variable *known = find_variable(settings, name);
    *chosen = 0;
    if (!known)
        SF_TRY(check_name(settings, name, diag));
    if (known && known->domain != domain)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE,
                       "\"%s\" was asked for before, with other values to choose from", name);
    if (known) {
        *chosen = known->chosen;
        return SF_OK;
    }
    if (!settings)
        return SF_OK;
    int at = settings->nvariables;
    int64_t wanted = at < settings->nwanted ? settings->wanted[at] : 0;
    *chosen = wanted < count ? wanted : count - 1;
    sf_variable *made = &settings->variables[settings->nvariables++];
    *made =
        (sf_variable){.domain = domain, .count = count, .chosen = *chosen, .number = (double)NAN};
    snprintf(made->name, sizeof made->name, "%s", name);
    return SF_OK;
}

/* Sets the value of the variable that was read last. */
static void keep_value(sf_settings *settings, const char *name, const char *value)
{
    sf_variable *kept = settings ? &settings->variables[settings->nvariables - 1] : NULL;
    char *end;
    if (!kept || strcmp(kept->name, name) != 0 || *kept->value)
        return;
    snprintf(kept->value, sizeof kept->value, "%s", value);
    double number = strtod(value, &end);
    kept->number = *value && !*end ? number : (double)NAN;
}

sf_status sf_settings_int(sf_settings *settings, const char *name, int64_t low, int64_t high,
                          int64_t step, sf_diag *diag, int64_t *out)
{
    SF_NEED(diag, name, out);
    char text[SF_VARIABLE_TEXT];
    int64_t parts[] = {low, high, step}, chosen;
    if (step < 1 || high < low || high > INT64_MAX / 4 || low < INT64_MIN / 4 ||
        (high - low) / step >= MOST_VALUES)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE,
                       "\"%s\" is of %" PRId64 " to %" PRId64 " in steps of %" PRId64
                       ": it needs 1 to %" PRId64 " values",
                       name ? name : "", low, high, step, MOST_VALUES);
    int64_t domain = (int64_t)sf_hash_bytes(1, parts, sizeof parts);
    SF_TRY(choose(settings, name, (high - low) / step + 1, domain, diag, &chosen));
    *out = low + chosen * step;
    snprintf(text, sizeof text, "%" PRId64, *out);
    keep_value(settings, name, text);
    return SF_OK;
}

sf_status sf_settings_choice(sf_settings *settings, const char *name, int count,
                             const char *const *values, sf_diag *diag, int *out)
{
    SF_NEED(diag, name, values, out);
    SF_TRY(sf_check_texts("values", count, values, diag));
    uint64_t domain = 2;
    int64_t chosen;
    if (count < 1)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "\"%s\" has nothing to choose from",
                       name ? name : "");
    for (int i = 0; i < count; i++) {
        domain = sf_hash_bytes(domain, values[i], strlen(values[i]));
        if (strlen(values[i]) >= SF_VARIABLE_TEXT)
            return sf_fail(diag, SF_EUSAGE, SF_NOWHERE,
                           "a value of \"%s\" has more than %d characters", name ? name : "",
                           SF_VARIABLE_TEXT - 1);
    }
    SF_TRY(choose(settings, name, count, (int64_t)domain, diag, &chosen));
    *out = (int)chosen;
    keep_value(settings, name, values[chosen]);
    return SF_OK;
}

bool sf_settings_next(sf_settings *settings)
{
    int last = settings->nvariables - 1;
    while (last >= 0 && settings->variables[last].chosen + 1 >= settings->variables[last].count)
        last--;
    if (last < 0)
        return false;
    for (int i = 0; i <= last; i++)
        settings->wanted[i] = settings->variables[i].chosen;
    settings->wanted[last]++;
    settings->nwanted = last + 1;
    settings->nvariables = 0;
    return true;
}
