/* Lists of primitives: how they grow and shrink. */
#include "api/primitive/primitives.h"

#include <string.h>

#include "api/api_options.h"
#include "base/guard.h"
#include "base/nearest.h"
#include "ir/clone.h"
#include "ir/name.h"

enum { MOST_PRIMITIVES = 20000, MOST_CHARACTERS = 4000 };

/* Adding ----------------------------------------------------------------------------------------- */

static const char *keep_text(sf_primitives *list, const char *text)
{
    return text ? sf_arena_string(&list->arena, text, strlen(text)) : NULL;
}

static const sf_task *keep_task(sf_primitives *list, const sf_task *task)
{
    if (!task)
        return NULL;
    sf_task *kept = sf_arena_copy(&list->arena, task, sizeof *task);
    kept->ops = keep_text(list, task->ops);
    return kept;
}

static sf_primitive keep_said(sf_primitives *list, const sf_primitive *said)
{
    sf_primitive kept = *said;
    kept.module = keep_text(list, said->module);
    kept.param = keep_text(list, said->param);
    kept.axis = keep_text(list, said->axis);
    kept.mode = keep_text(list, said->mode);
    kept.op = keep_text(list, said->op);
    kept.name = keep_text(list, said->name);
    kept.value = keep_text(list, said->value);
    kept.file = keep_text(list, said->file);
    kept.fragment = keep_text(list, said->fragment);
    kept.backward = keep_text(list, said->backward);
    kept.kernel = keep_text(list, said->kernel);
    if (said->nsubgraphs > 0)
        kept.subgraphs = sf_arena_copy(&list->arena, said->subgraphs,
                                       (size_t)said->nsubgraphs * sizeof *said->subgraphs);
    if (said->ndevices > 0)
        kept.devices = sf_arena_copy(&list->arena, said->devices,
                                     (size_t)said->ndevices * sizeof *said->devices);
    kept.before = keep_task(list, said->before);
    kept.after = keep_task(list, said->after);
    return kept;
}

static sf_status find_entry_modules(sf_primitives *list, sf_entry *entry, sf_diag *diag)
{
    const sf_primitive *said = &entry->said;
    if (said->kernel && !*said->module) { /* of the step */
        entry->modules = SF_ARRAY(&list->arena, 1, const char *);
        entry->modules[0] = "";
        entry->nmodules = 1;
        return SF_OK;
    }
    entry->modules = sf_match_modules(list, said->module, &list->arena, &entry->nmodules);
    if (entry->nmodules > 0)
        return SF_OK;
    const sf_node *loop = sf_find_loop_around(list, said->module);
    if (loop)
        return sf_fail_in_loop(said, said->module, loop, diag);
    sf_fail(diag, SF_EUSAGE, sf_said_at(said), "the step has no module \"%s\"", said->module);
    sf_nearest nearest = {.text = sf_str_of(said->module)};
    for (size_t m = 0; m < list->nmodules; m++)
        sf_nearest_try(&nearest, list->modules[m]);
    return nearest.best ? sf_hint(diag, "did you mean \"%s\"?", nearest.best)
                        : sf_hint(diag, "sheaf pin STEP --names lists them");
}

static sf_status find_entry_params(sf_primitives *list, sf_entry *entry, sf_diag *diag)
{
    const sf_primitive *said = &entry->said;
    entry->params = sf_match_params(list, entry->nmodules, entry->modules, said->param,
                                    &list->arena, &entry->nparams);
    if (entry->nparams > 0)
        return SF_OK;
    sf_fail(diag, SF_EUSAGE, sf_said_at(said), "%s has no parameter \"%s\"", entry->modules[0],
            said->param);
    size_t count;
    const sf_parameter **all =
        sf_match_params(list, entry->nmodules, entry->modules, NULL, &list->arena, &count);
    return count > 0 ? sf_hint(diag, "it has %s%s", all[0]->path, count > 1 ? ", and others" : "")
                     : sf_hint(diag, "it has none");
}

static void describe_subgraphs(const sf_primitive *said, sf_buf *out)
{
    if (said->nsubgraphs > 0)
        sf_buf_printf(out, " %d subgraph%s", said->nsubgraphs,
                      sf_plural((uint64_t)said->nsubgraphs));
}

static void describe(const sf_entry *entry, sf_buf *out)
{
    const sf_primitive *said = &entry->said;
    if (said->kind != SF_PRIMITIVE_SET && !sf_is_of_space(said->kind))
        sf_buf_printf(out, "%s%s", said->module, *said->module ? ": " : "");
    switch (said->kind) {
    case SF_PRIMITIVE_SET:
        sf_buf_printf(out, "%s %s", said->name, said->value);
        break;
    case SF_PRIMITIVE_SHARD:
        sf_buf_printf(out, "shard %s, dim %d over %s", said->param, said->dim, said->axis);
        break;
    case SF_PRIMITIVE_SYNC:
        sf_buf_printf(out, "sync %s, %s over %s", said->mode, said->op, said->axis);
        break;
    case SF_PRIMITIVE_CHECKPOINT:
        sf_buf_puts(out, "checkpoint");
        describe_subgraphs(said, out);
        break;
    case SF_PRIMITIVE_PIPELINE_SPLIT:
        sf_buf_puts(out, "pipeline_split");
        break;
    case SF_PRIMITIVE_DECOMPOSE:
        sf_buf_puts(out, "decompose");
        break;
    case SF_PRIMITIVE_FORK_RNG:
        sf_buf_puts(out, "fork_rng");
        break;
    case SF_PRIMITIVE_ANNOTATE:
        sf_buf_printf(out, "annotate %s = %s", said->name, said->value);
        break;
    case SF_PRIMITIVE_TRACE:
        sf_buf_printf(out, "trace%s%s", said->name ? " but " : "", said->name ? said->name : "");
        break;
    case SF_PRIMITIVE_REPLACE:
        sf_buf_puts(out, "replace");
        describe_subgraphs(said, out);
        if (said->fragment || said->kernel)
            sf_buf_printf(out, " by %s", said->fragment ? said->fragment : said->kernel);
        if (said->backwards || said->backward)
            sf_buf_puts(out, ", with gradients of their own");
        break;
    case SF_PRIMITIVE_FUSE:
        sf_buf_puts(out, "fuse");
        describe_subgraphs(said, out);
        if (said->value)
            sf_buf_printf(out, " by %s", said->value);
        break;
    case SF_PRIMITIVE_TRANS:
    case SF_PRIMITIVE_ASSIGN:
    case SF_PRIMITIVE_ORDER:
        sf_describe_space(said, out);
        break;
    }
}

/* Defaults of a shard or a sync. */
static void complete_said(const sf_primitives *list, sf_primitive *said)
{
    sf_arena arena = {0};
    sf_mesh mesh;
    if (said->kind == SF_PRIMITIVE_SYNC) {
        said->mode = said->mode ? said->mode : "forward";
        said->op = said->op ? said->op : "all_reduce";
    }
    for (size_t i = list->nentries; i-- > 0 && said->kind == SF_PRIMITIVE_SYNC && !said->axis;)
        if (list->entries[i].said.kind == SF_PRIMITIVE_SHARD)
            said->axis = list->entries[i].said.axis;
    if (!said->axis)
        said->axis = sf_find_mesh_set(list, &arena, &mesh) && mesh.naxes == 1
                         ? sf_find_setting(list, "mesh")->said.value
                         : "model";
    sf_arena_free(&arena);
}

struct adding {
    sf_primitives *list;
    sf_primitive said;
    sf_diag *diag;
};

/* The name of the axis of "model=4". */
static const char *name_of_axis(sf_primitives *list, const char *axis)
{
    return axis ? sf_arena_string(&list->arena, axis, strcspn(axis, "=")) : NULL;
}

static sf_status add(void *context)
{
    struct adding *job = context;
    sf_primitives *list = job->list;
    sf_primitive said = job->said;
    if (!said.file) {
        said.file = list->file;
        said.line = list->line;
    }
    complete_said(list, &said);
    sf_entry entry = {.number = list->made, .said = keep_said(list, &said)};
    entry.said.axis = name_of_axis(list, entry.said.axis);
    if (said.kind != SF_PRIMITIVE_SET && !sf_is_of_space(said.kind))
        SF_TRY(find_entry_modules(list, &entry, job->diag));
    if (said.kind == SF_PRIMITIVE_SHARD)
        SF_TRY(find_entry_params(list, &entry, job->diag));
    sf_buf text = {0};
    describe(&entry, &text);
    entry.text = keep_text(list, text.text);
    sf_buf_free(&text);
    SF_TRY(sf_primitive_check(list, &entry, job->diag));
    if (said.kind == SF_PRIMITIVE_REPLACE && !said.kernel) {
        SF_TRY(sf_replace(list, &entry, job->diag));
        entry.modules_before = list->modules;
        entry.nmodules_before = list->nmodules;
        list->graph = entry.made;
        sf_list_modules(list);
    }
    entry.said.sketches = entry.said.backwards = NULL; /* they were the caller's */
    SF_PUSH(&list->arena, list->entries, list->nentries, list->capacity, entry);
    list->made++;
    return SF_OK;
}

static bool is_endless(const sf_primitive *said)
{
    const char *texts[] = {said->module, said->param, said->axis,     said->mode,   said->op,
                           said->name,   said->value, said->fragment, said->kernel, said->backward};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i] && strlen(texts[i]) > MOST_CHARACTERS)
            return true;
    return false;
}

static sf_status check_said(const sf_primitives *list, const sf_primitive *said, sf_diag *diag)
{
    bool set = said->kind == SF_PRIMITIVE_SET, note = said->kind == SF_PRIMITIVE_ANNOTATE;
    if (said->kind < SF_PRIMITIVE_SET || said->kind > SF_PRIMITIVE_FORK_RNG)
        return sf_fail(diag, SF_EUSAGE, sf_said_at(said), "there is no such primitive");
    bool space = sf_is_of_space(said->kind);
    if ((!set && !space && !said->module) || (said->kind == SF_PRIMITIVE_TRANS && !said->name) ||
        (said->kind == SF_PRIMITIVE_ASSIGN && said->ndevices < 1) ||
        (said->kind == SF_PRIMITIVE_ORDER && (!said->before || !said->after)) ||
        (said->kind == SF_PRIMITIVE_SHARD && !said->param) ||
        ((set || note) && (!said->name || !said->value)))
        return sf_fail(diag, SF_EUSAGE, sf_said_at(said), "the primitive does not say of what");
    bool of_ops = said->kind == SF_PRIMITIVE_REPLACE || said->kind == SF_PRIMITIVE_FUSE ||
                  said->kind == SF_PRIMITIVE_CHECKPOINT;
    if (said->nsubgraphs < 0 || said->ndevices < 0 || (said->nsubgraphs > 0 && !of_ops))
        return sf_fail(diag, SF_EUSAGE, sf_said_at(said),
                       said->nsubgraphs > 0 ? "the primitive takes no subgraphs"
                                            : "a number of subgraphs or devices is not negative");
    if (is_endless(said))
        return sf_fail(diag, SF_EUSAGE, sf_said_at(said), "a name has more than %d characters",
                       MOST_CHARACTERS);
    if (list->nentries >= MOST_PRIMITIVES)
        return sf_fail(diag, SF_EUSAGE, sf_said_at(said), "there are more than %d primitives",
                       MOST_PRIMITIVES);
    return SF_OK;
}

/* Changes the list, or leaves it as it was. If memory runs out, the guard has freed the arena's
 * growth. */
static sf_status change(sf_status (*work)(void *), void *job, sf_primitives *list, sf_diag *diag)
{
    sf_primitives before = *list;
    sf_mark mark = sf_arena_mark(&list->arena);
    sf_status status = sf_guarded(work, job, diag);
    if (status == SF_OK)
        return SF_OK;
    if (status != SF_ENOMEM) {
        sf_arena_reset(&list->arena, mark);
        before.arena = list->arena;
    }
    *list = before;
    return status;
}

/* Arrays that are not there, and texts in them. */
static sf_status check_arrays(const sf_primitive *said, sf_diag *diag)
{
    if ((said->nsubgraphs > 0 && !said->subgraphs) || (said->ndevices > 0 && !said->devices))
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "sf_primitive: '%s' is NULL",
                       said->ndevices > 0 && !said->devices ? "devices" : "subgraphs");
    for (int i = 0; i < said->nsubgraphs; i++)
        if ((said->sketches && !said->sketches[i]) || (said->backwards && !said->backwards[i]))
            return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "sf_primitive: sketch %d is NULL", i);
    return SF_OK;
}

sf_status sf_primitives_add(sf_primitives *list, const sf_primitive *primitive, sf_diag *diag,
                            int *number)
{
    SF_NEED(diag, list, primitive);
    struct adding job = {.list = list, .diag = diag};
    SF_TRY(SF_TAKE(sf_primitive, primitive, &job.said, diag));
    SF_TRY(sf_check_held(list, sf_said_at(&job.said), diag));
    SF_TRY(check_arrays(&job.said, diag));
    SF_TRY(check_said(list, &job.said, diag));
    SF_TRY(change(add, &job, list, diag));
    if (number)
        *number = list->made - 1;
    return SF_OK;
}

struct undoing {
    sf_primitives *list;
    int first, end; /* numbers */
    sf_diag *diag;
    sf_arena scratch;
};

static bool is_undone(const struct undoing *job, const sf_entry *entry)
{
    return entry->number >= job->first && entry->number < job->end;
}

/* Each as it was when it was applied: of the step of that time. */
static sf_status check_all(const sf_primitives *list, sf_diag *diag)
{
    sf_primitives before = *list;
    before.graph = list->base;
    for (size_t i = 0; i < list->nentries; i++) {
        before.nentries = i;
        SF_TRY(sf_primitive_check(&before, &list->entries[i], diag));
        if (list->entries[i].made)
            before.graph = list->entries[i].made;
    }
    return SF_OK;
}

/* Re-applies an entry that came after a replacement that is undone: looks its names up again in the step without it. Ops that
 * were found in the replaced step do not exist there. */
static sf_status carry_over(sf_primitives *list, sf_entry *entry, sf_diag *diag)
{
    const sf_primitive *said = &entry->said;
    if (said->nsubgraphs > 0)
        return sf_fail(diag, SF_EMISMATCH, sf_said_at(said),
                       "this is about ops that were found after the replacement: undo it first");
    if (said->kind != SF_PRIMITIVE_SET && !sf_is_of_space(said->kind))
        SF_TRY(find_entry_modules(list, entry, diag));
    return said->kind == SF_PRIMITIVE_SHARD ? find_entry_params(list, entry, diag) : SF_OK;
}

/* The list without these. Its entries are of the scratch arena. */
static sf_status leave_out(struct undoing *job, sf_primitives *without)
{
    const sf_primitives *list = job->list;
    bool changed = false;
    without->entries = SF_ARRAY(&job->scratch, list->nentries + 1, sf_entry);
    without->nentries = 0;
    without->graph = list->base;
    for (size_t i = 0; i < list->nentries; i++) {
        sf_entry entry = list->entries[i];
        if (is_undone(job, &entry)) {
            if (entry.made && !changed) {
                without->modules = entry.modules_before;
                without->nmodules = entry.nmodules_before;
            }
            changed = changed || entry.made;
            continue;
        }
        if (changed)
            SF_TRY(carry_over(without, &entry, job->diag));
        if (entry.made)
            without->graph = entry.made;
        without->entries[without->nentries++] = entry;
    }
    return check_all(without, job->diag);
}

/* The steps that are made no more, and what was found in them. */
static void free_made(const struct undoing *job, sf_primitives *list)
{
    for (size_t i = 0; i < list->nentries; i++) {
        sf_graph *made = is_undone(job, &list->entries[i]) ? list->entries[i].made : NULL;
        for (size_t s = 0; made && s < list->nsubgraphs; s++)
            if (list->subgraphs[s].graph == made)
                list->subgraphs[s].graph = NULL;
        sf_graph_free(made);
    }
}

/* The last ones, which needs no memory: what is left is as it was in front of them. */
static void cut(const struct undoing *job, sf_primitives *list)
{
    free_made(job, list);
    while (list->nentries > 0 && is_undone(job, &list->entries[list->nentries - 1])) {
        const sf_entry *entry = &list->entries[--list->nentries];
        if (!entry->made)
            continue;
        list->modules = entry->modules_before;
        list->nmodules = entry->nmodules_before;
    }
    list->graph = list->base;
    for (size_t i = 0; i < list->nentries; i++)
        if (list->entries[i].made)
            list->graph = list->entries[i].made;
}

static sf_status undo(void *context)
{
    struct undoing *job = context;
    sf_primitives *list = job->list, without = *list;
    sf_status status = leave_out(job, &without);
    list->arena = without.arena;
    if (status == SF_OK) {
        sf_entry *kept = list->entries;
        free_made(job, list);
        memcpy(kept, without.entries, without.nentries * sizeof *kept);
        *list = without;
        list->entries = kept;
    }
    sf_arena_free(&job->scratch);
    return status;
}

sf_status sf_primitives_undo_between(sf_primitives *list, int first, int end, sf_diag *diag)
{
    struct undoing job = {list, first, end, diag, {0}};
    SF_TRY(sf_check_held(list, SF_NOWHERE, diag));
    if (end <= sf_primitives_last(list))
        return change(undo, &job, list, diag);
    cut(&job, list);
    return SF_OK;
}

sf_status sf_primitives_undo(sf_primitives *list, int number, sf_diag *diag)
{
    SF_NEED(diag, list);
    if (number < 0)
        number = sf_primitives_last(list);
    if (number < 0 || sf_primitives_between(list, number, number + 1) == 0)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "there is nothing to undo");
    return sf_primitives_undo_between(list, number, number + 1, diag);
}

int sf_primitives_next(const sf_primitives *list)
{
    return list->made;
}

int sf_primitives_last(const sf_primitives *list)
{
    return list->nentries > 0 ? list->entries[list->nentries - 1].number : -1;
}

int sf_primitives_between(const sf_primitives *list, int first, int end)
{
    int count = 0;
    for (size_t i = list->nentries; i-- > 0 && list->entries[i].number >= first;)
        count += list->entries[i].number < end;
    return count;
}

void sf_primitives_hold(sf_primitives *list)
{
    list->held++;
}

void sf_primitives_release(sf_primitives *list)
{
    list->held--;
}

sf_status sf_check_held(const sf_primitives *list, sf_loc loc, sf_diag *diag)
{
    if (list->held == 0)
        return SF_OK;
    return sf_fail(diag, SF_EUSAGE, loc,
                   "a function that chooses or computes ops is running: nothing is applied, undone "
                   "or found before it returns");
}

int sf_primitives_count(const sf_primitives *list)
{
    SF_NEED_OR(0, list);
    return (int)list->nentries;
}

const char *sf_primitives_text(const sf_primitives *list, int index)
{
    SF_NEED_OR(NULL, list);
    return index >= 0 && (size_t)index < list->nentries ? list->entries[index].text : NULL;
}

struct copying {
    const sf_graph *from;
    sf_graph *to;
};

static sf_status copy_graph(void *context)
{
    struct copying *job = context;
    job->to = sf_graph_clone(job->from);
    job->to->reading = job->from->reading;
    return SF_OK;
}

sf_status sf_primitives_copy_graph(const sf_primitives *list, sf_diag *diag, sf_graph **out)
{
    SF_CLEAR(out);
    SF_NEED(diag, list, out);
    struct copying job = {list->graph, NULL};
    SF_TRY(sf_guarded(copy_graph, &job, diag));
    *out = job.to;
    return SF_OK;
}
