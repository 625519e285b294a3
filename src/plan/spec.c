#include "plan/spec.h"

#include <limits.h>
#include <stddef.h>
#include <string.h>

#include "base/nearest.h"
#include "base/number.h"

typedef enum kind { TEXT, COUNT, COUNT_OR_AUTO, BYTES } kind; /* "auto" is 0 */

static const struct field {
    const char *name;
    kind kind;
    size_t at;
} fields[] = {
    {"mesh", TEXT, offsetof(sf_plan_spec, mesh)},
    {"recipe", TEXT, offsetof(sf_plan_spec, recipe)},
    {"ranks", COUNT, offsetof(sf_plan_spec, ranks)},
    {"stages", TEXT, offsetof(sf_plan_spec, stages)},
    {"schedule", TEXT, offsetof(sf_plan_spec, schedule)},
    {"micro_batches", COUNT_OR_AUTO, offsetof(sf_plan_spec, micro_batches)},
    {"recompute", TEXT, offsetof(sf_plan_spec, recompute)},
    {"co_shard", TEXT, offsetof(sf_plan_spec, co_shard)},
    {"shard_state", TEXT, offsetof(sf_plan_spec, shard_state)},
    {"passes", TEXT, offsetof(sf_plan_spec, passes)},
    {"kernels", TEXT, offsetof(sf_plan_spec, kernels)},
    {"memory", BYTES, offsetof(sf_plan_spec, memory)},
};
enum { FIELDS = sizeof fields / sizeof *fields };

const char *sf_spec_field(int index)
{
    return index >= 0 && index < FIELDS ? fields[index].name : NULL;
}

static void *find_place(const sf_plan_spec *spec, const struct field *field)
{
    return (char *)spec + field->at;
}

static const char **text_at(const sf_plan_spec *spec, const struct field *field)
{
    return find_place(spec, field);
}

static bool is_said(const sf_plan_spec *spec, const struct field *field)
{
    const void *place = find_place(spec, field);
    return field->kind == TEXT    ? *(const char *const *)place != NULL
           : field->kind != BYTES ? *(const int *)place != 0
                                  : *(const int64_t *)place != 0;
}

static sf_status fail_field(const char *name, sf_loc where, sf_diag *diag)
{
    sf_nearest nearest = {.text = sf_str_of(name)};
    for (int f = 0; f < FIELDS; f++)
        sf_nearest_try(&nearest, fields[f].name);
    sf_status status =
        sf_fail(diag, SF_EUSAGE, where, "a plan specification has no field \"%.100s\"", name);
    return nearest.best ? sf_hint(diag, "did you mean \"%s\"?", nearest.best) : status;
}

static sf_status set_number(sf_plan_spec *spec, const struct field *field, const char *value,
                            sf_loc where, sf_diag *diag)
{
    bool may_be_auto = field->kind == COUNT_OR_AUTO;
    int64_t number = 0, most = field->kind == BYTES ? INT64_MAX : INT_MAX;
    if (!(may_be_auto && strcmp(value, "auto") == 0) &&
        (!sf_number_int(sf_str_of(value), &number) || number < 1 || number > most))
        return sf_fail(diag, SF_EUSAGE, where,
                       "option %s \"%.100s\": expected a number of at least 1%s", field->name,
                       value, may_be_auto ? ", or auto" : "");
    if (field->kind == BYTES)
        *(int64_t *)find_place(spec, field) = number;
    else
        *(int *)find_place(spec, field) = (int)number;
    return SF_OK;
}

/* The first message, about another place. */
static sf_status tell_at(sf_loc where, sf_status status, sf_diag *own, sf_diag *diag)
{
    const sf_message *message = own->count > 0 ? &own->messages[0] : NULL;
    sf_fail(diag, status, message && message->loc.file ? message->loc : where, "%s",
            message && message->text ? message->text : "no memory for the message");
    if (message && message->hint)
        sf_hint(diag, "%s", message->hint);
    sf_diag_clear(own);
    return status;
}

static sf_status set_text(sf_plan_spec *spec, const struct field *field, const char *value,
                          sf_loc where, sf_diag *diag)
{
    sf_arena arena = {0};
    sf_diag own = {0};
    sf_plan_spec alone = {.size = sizeof alone};
    sf_spec read;
    *text_at(&alone, field) = value;
    sf_status status = sf_spec_read(&alone, &arena, &own, &read);
    sf_arena_free(&arena);
    if (status != SF_OK)
        return tell_at(where, status, &own, diag);
    sf_diag_clear(&own);
    *text_at(spec, field) = value;
    return SF_OK;
}

sf_status sf_spec_set(sf_plan_spec *spec, const char *name, const char *value, sf_loc where,
                      sf_diag *diag)
{
    for (int f = 0; f < FIELDS; f++)
        if (strcmp(fields[f].name, name) == 0)
            return fields[f].kind == TEXT ? set_text(spec, &fields[f], value, where, diag)
                                          : set_number(spec, &fields[f], value, where, diag);
    return fail_field(name, where, diag);
}

static void merge_pins(const sf_plan_spec *more, sf_arena *arena, sf_plan_spec *into)
{
    const char **pins = SF_ARRAY(arena, more->npins + into->npins + 1, const char *);
    for (int p = 0; p < more->npins; p++)
        pins[p] = more->pins[p];
    for (int p = 0; p < into->npins; p++)
        pins[more->npins + p] = into->pins[p];
    into->pins = pins;
    into->npins += more->npins;
}

const char *sf_spec_merge(const sf_plan_spec *more, sf_arena *arena, sf_plan_spec *into)
{
    for (int f = 0; f < FIELDS; f++)
        if (is_said(more, &fields[f]) && is_said(into, &fields[f]))
            return fields[f].name;
    for (int f = 0; f < FIELDS; f++) {
        if (!is_said(more, &fields[f]))
            continue;
        if (fields[f].kind == TEXT)
            *text_at(into, &fields[f]) = *text_at(more, &fields[f]);
        else if (fields[f].kind == BYTES)
            *(int64_t *)find_place(into, &fields[f]) =
                *(const int64_t *)find_place(more, &fields[f]);
        else
            *(int *)find_place(into, &fields[f]) = *(const int *)find_place(more, &fields[f]);
    }
    merge_pins(more, arena, into);
    return NULL;
}
