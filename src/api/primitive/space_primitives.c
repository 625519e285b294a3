/* Primitives of a space (sheaf/space.h): said one by one, each checked with those before it. */
#include <stdlib.h>
#include <string.h>

#include "api/primitive/primitives.h"

bool sf_is_of_space(sf_primitive_kind kind)
{
    return kind == SF_PRIMITIVE_TRANS || kind == SF_PRIMITIVE_ASSIGN || kind == SF_PRIMITIVE_ORDER;
}

bool sf_has_space(const sf_primitives *list)
{
    for (size_t i = 0; i < list->nentries; i++)
        if (sf_is_of_space(list->entries[i].said.kind))
            return true;
    return sf_find_setting(list, "devices") != NULL;
}

static bool is_in_time(const sf_primitive *said)
{
    return said->mode && strcmp(said->mode, "time") == 0;
}

static void describe_task(const sf_task *task, sf_buf *out)
{
    static const char *const passes[] = {"forward", "backward", "weights"};
    sf_buf_printf(out, "%s of %s", passes[task->pass], task->ops ? task->ops : "all");
    if (task->microbatch != SF_EVERY)
        sf_buf_printf(out, ", micro-batch %d", task->microbatch);
    if (task->round > 0)
        sf_buf_printf(out, ", round %d", task->round);
}

void sf_describe_space(const sf_primitive *said, sf_buf *out)
{
    const char *ops = said->module ? said->module : "all";
    if (said->kind == SF_PRIMITIVE_TRANS) {
        sf_buf_printf(out, "trans %s, %s in %d parts in %s", ops, said->name, said->parts,
                      is_in_time(said) ? "time" : "space");
    } else if (said->kind == SF_PRIMITIVE_ASSIGN) {
        sf_buf_printf(out, "assign %s to", ops);
        for (int i = 0; i < said->ndevices; i++)
            sf_buf_printf(out, " %d", said->devices[i]);
        if (said->microbatch != SF_EVERY)
            sf_buf_printf(out, ", micro-batch %d", said->microbatch);
    } else {
        sf_buf_puts(out, "order ");
        describe_task(said->before, out);
        sf_buf_puts(out, " before ");
        describe_task(said->after, out);
    }
}

/* Reports a failure at the place of the primitive. */
static sf_status tell_at(const sf_primitive *said, sf_status status, sf_diag *own, sf_diag *diag)
{
    const sf_message *message = own->count > 0 ? &own->messages[0] : NULL;
    if (status != SF_OK)
        sf_fail(diag, status, sf_said_at(said), "%s",
                message && message->text ? message->text : "this cannot be");
    if (status != SF_OK && message && message->hint)
        sf_hint(diag, "%s", message->hint);
    sf_diag_clear(own);
    return status;
}

static sf_status say(sf_space *space, const sf_primitive *said, sf_diag *diag)
{
    sf_diag own = {0};
    sf_status status = SF_OK;
    if (said->kind == SF_PRIMITIVE_TRANS)
        status = sf_trans(space, said->module, said->name, said->parts,
                          is_in_time(said) ? SF_IN_TIME : SF_IN_SPACE, &own);
    if (said->kind == SF_PRIMITIVE_ASSIGN)
        status =
            sf_assign(space, said->module, said->microbatch, said->devices, said->ndevices, &own);
    if (said->kind == SF_PRIMITIVE_ORDER)
        status = sf_order(space, said->before, said->after, &own);
    return tell_at(said, status, &own, diag);
}

/* The space of all that is said, and of one more entry, or NULL. *out is for sf_space_free, also after a failure. */
static sf_status make_space(const sf_primitives *list, const sf_entry *more, sf_diag *diag,
                            sf_space **out)
{
    const sf_entry *devices = sf_find_setting(list, "devices");
    *out = NULL;
    if (!devices) {
        sf_fail(diag, SF_EMISMATCH, more ? sf_said_at(&more->said) : SF_NOWHERE,
                "a space has devices, and it is not said how many");
        return sf_hint(diag, "set them first: sheaf.space(4)");
    }
    SF_TRY(sf_space_new(list->graph, atoi(devices->said.value), diag, out));
    for (size_t i = 0; i < list->nentries; i++)
        if (sf_is_of_space(list->entries[i].said.kind))
            SF_TRY(say(*out, &list->entries[i].said, diag));
    return more ? say(*out, &more->said, diag) : SF_OK;
}

sf_status sf_check_space(const sf_primitives *list, const sf_entry *entry, sf_diag *diag)
{
    sf_space *space;
    if (entry->said.mode && !is_in_time(&entry->said) && strcmp(entry->said.mode, "space") != 0)
        return sf_fail(diag, SF_EUSAGE, sf_said_at(&entry->said),
                       "parts are in \"space\" or in \"time\", not in \"%s\"", entry->said.mode);
    sf_status status = make_space(list, entry, diag, &space);
    sf_space_free(space);
    return status;
}

/* Fields that a space's primitives set must not be set beside it. */
static sf_status check_beside(const sf_primitives *list, sf_diag *diag)
{
    static const char *const settings[] = {"micro_batches", "stages", "co_shard", "shard_state",
                                           NULL};
    for (int i = 0; settings[i]; i++) {
        const sf_entry *entry = sf_find_setting(list, settings[i]);
        if (entry)
            return sf_fail(diag, SF_EUNSUPPORTED, sf_said_at(&entry->said),
                           "beside a space %s follows from its trans and assign", settings[i]);
    }
    for (size_t i = 0; i < list->nentries; i++)
        if (list->entries[i].said.kind == SF_PRIMITIVE_PIPELINE_SPLIT)
            return sf_fail(diag, SF_EUNSUPPORTED, sf_said_at(&list->entries[i].said),
                           "beside a space stages are said by its assign");
    return SF_OK;
}

sf_status sf_pin_space(const sf_primitives *list, const sf_plan_spec *spec, sf_diag *diag,
                       sf_plan **out)
{
    sf_space *space;
    sf_status status = make_space(list, NULL, diag, &space);
    if (status == SF_OK)
        status = check_beside(list, diag);
    if (status == SF_OK)
        status = sf_space_plan(space, spec, diag, out);
    sf_space_free(space);
    return status;
}
