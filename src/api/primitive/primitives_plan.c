/* From primitives to a plan: pins, and lists of scopes. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "api/api_options.h"
#include "api/primitive/primitives.h"
#include "base/guard.h"
#include "ir/clone.h"
#include "pass/pass.h"
#include "plan/json/applied_primitives.h"
#include "plan/pin.h"
#include "plan/recipe/recipe.h"
#include "sheaf/pass.h"

/* What a list comes to, in the words of sf_pin_options. Lives in the arena. */
typedef struct meaning {
    const sf_primitives *list;
    sf_arena arena;
    sf_strings pins;
    const char *recompute, *stages;
} meaning;

static const char *keep_buf(meaning *m, sf_buf *buf)
{
    const char *text = sf_arena_string(&m->arena, buf->text ? buf->text : "", buf->length);
    sf_buf_free(buf);
    return text;
}

/* "PATTERN=S(1)@model # shard, s.lua:3". */
static void add_pin(meaning *m, const sf_entry *entry, const char *pattern, bool split)
{
    const sf_primitive *said = &entry->said;
    sf_buf text = {0};
    sf_buf_printf(&text, "%s=", pattern);
    if (split)
        sf_buf_printf(&text, "S(%d)", said->dim);
    else
        sf_buf_puts(&text, "R");
    sf_buf_printf(&text, "@%s # %s", said->axis,
                  said->kind == SF_PRIMITIVE_SHARD ? "shard" : "sync");
    if (said->file)
        sf_buf_printf(&text, ", %s:%d", said->file, said->line);
    SF_PUSH(&m->arena, m->pins.at, m->pins.count, m->pins.capacity, keep_buf(m, &text));
}

/* The name of a parameter is also the end of the names of its optimizer state; its gradient goes by another. */
static void mean_shard(meaning *m, const sf_entry *entry)
{
    for (size_t p = 0; p < entry->nparams; p++) {
        const sf_parameter *param = entry->params[p];
        sf_buf gradient = {0};
        add_pin(m, entry, param->name, true);
        if (m->list->graph->arguments[param->argument].gradient == SF_NONE ||
            param->name == param->path)
            continue;
        sf_buf_printf(&gradient, "/%s", sf_gradient_name(param->name, &m->arena));
        add_pin(m, entry, keep_buf(m, &gradient), true);
    }
}

static void mean_sync(meaning *m, const sf_entry *entry)
{
    bool split = strcmp(entry->said.op, "reduce_scatter") == 0;
    const char *way = strcmp(entry->said.mode, "forward") == 0 ? "out" : "back";
    for (size_t i = 0; i < entry->nmodules; i++) {
        sf_buf pattern = {0};
        sf_buf_printf(&pattern, "%s:/%s", way, entry->modules[i]);
        add_pin(m, entry, keep_buf(m, &pattern), split);
    }
}

/* "#17+18" is two ops, by their numbers. */
static void list_nodes(const sf_primitives *list, const sf_primitive *said, sf_buf *text)
{
    for (int i = 0; i < said->nsubgraphs; i++) {
        const sf_subgraph *part = &list->subgraphs[said->subgraphs[i] - 1];
        for (int n = 0; n < part->nnodes; n++)
            sf_buf_printf(text, "%s%s%u", n == 0 && text->length > 0 ? "," : "", n == 0 ? "#" : "+",
                          part->nodes[n]);
    }
}

/* Lists have commas between scopes, and some scopes have them in their names. */
static const char *list_scopes(meaning *m, sf_primitive_kind kind)
{
    sf_buf text = {0};
    for (size_t i = 0; i < m->list->nentries; i++) {
        const sf_entry *entry = &m->list->entries[i];
        if (entry->said.kind == kind && entry->said.nsubgraphs > 0)
            list_nodes(m->list, &entry->said, &text);
        for (size_t s = 0;
             entry->said.kind == kind && entry->said.nsubgraphs == 0 && s < entry->nmodules; s++) {
            sf_buf_puts(&text, text.length > 0 ? ",/" : "/");
            for (const char *c = entry->modules[s]; *c; c++)
                sf_buf_putc(&text, *c == ',' ? '?' : *c);
        }
    }
    return text.length > 0 ? keep_buf(m, &text) : NULL;
}

static const char *setting(const meaning *m, const char *name)
{
    const sf_entry *entry = sf_find_setting(m->list, name);
    return entry ? entry->said.value : NULL;
}

/* Shards come first: they are about fewer tensors. */
static void find_meaning(meaning *m, int npins, const char *const *pins)
{
    for (size_t i = 0; i < m->list->nentries; i++)
        if (m->list->entries[i].said.kind == SF_PRIMITIVE_SHARD)
            mean_shard(m, &m->list->entries[i]);
    for (size_t i = 0; i < m->list->nentries; i++)
        if (m->list->entries[i].said.kind == SF_PRIMITIVE_SYNC)
            mean_sync(m, &m->list->entries[i]);
    for (int p = 0; p < npins; p++)
        SF_PUSH(&m->arena, m->pins.at, m->pins.count, m->pins.capacity, pins[p]);
    m->recompute = list_scopes(m, SF_PRIMITIVE_CHECKPOINT);
    if (!m->recompute)
        m->recompute = setting(m, "recompute");
    m->stages = list_scopes(m, SF_PRIMITIVE_PIPELINE_SPLIT);
    if (!m->stages)
        m->stages = setting(m, "stages");
}

/* Takes what the primitives say, unless the caller says something of it, too. */
static sf_status take_text(const meaning *m, const char *name, const char *ours, const char **into,
                           sf_diag *diag)
{
    const sf_entry *entry = sf_find_setting(m->list, name);
    if (ours && *into)
        return sf_fail(diag, SF_EUSAGE, entry ? sf_said_at(&entry->said) : SF_NOWHERE,
                       "both the schedule and the command line give %s: drop one of them", name);
    if (ours)
        *into = ours;
    return SF_OK;
}

static sf_status take_number(const meaning *m, const char *name, int unsaid, int *into,
                             sf_diag *diag)
{
    const char *ours = setting(m, name), *theirs = *into > unsaid ? "" : NULL;
    SF_TRY(take_text(m, name, ours, &theirs, diag));
    if (ours)
        *into = atoi(ours);
    return SF_OK;
}

struct planning {
    const sf_primitives *list;
    sf_diag *diag;
    sf_pin_options pin;
    sf_plan_options search;
    sf_plan *plan;
};

/* A schedule names no files that would be loaded. */
static sf_status check_passes(const struct planning *job, const char *passes)
{
    sf_arena arena = {0};
    sf_pass_list list;
    sf_status status = sf_pass_list_read(passes, &arena, job->diag, &list);
    sf_arena_free(&arena);
    return status;
}

/* Plans are priced behind them. */
static sf_status take_passes(struct planning *job, const meaning *m)
{
    const char *passes = setting(m, "passes");
    if (passes)
        SF_TRY(check_passes(job, passes));
    return take_text(m, "passes", passes, &job->search.passes, job->diag);
}

/* What a plan gets once it is there. */
static sf_status finish(struct planning *job, const sf_cluster *cluster, int64_t memory)
{
    const sf_entry *passes = sf_find_setting(job->list, "passes");
    sf_primitives_keep(job->list, job->plan);
    if (!passes || strcmp(sf_plan_passes_of(job->plan), passes->said.value) == 0)
        return SF_OK;
    sf_status status = check_passes(job, passes->said.value);
    if (status == SF_OK)
        status = sf_plan_use_passes(job->plan, passes->said.value, cluster, memory, job->diag);
    if (status != SF_OK)
        sf_plan_free(job->plan);
    return status;
}

static sf_status take_pinned(struct planning *job, const meaning *m)
{
    sf_pin_options *options = &job->pin;
    SF_TRY(take_text(m, "mesh", setting(m, "mesh"), &options->mesh, job->diag));
    SF_TRY(take_text(m, "recipe", setting(m, "recipe"), &options->recipe, job->diag));
    SF_TRY(take_text(m, "recompute", m->recompute, &options->recompute, job->diag));
    SF_TRY(take_text(m, "stages", m->stages, &options->stages, job->diag));
    SF_TRY(take_text(m, "order", setting(m, "order"), &options->schedule, job->diag));
    SF_TRY(take_number(m, "micro_batches", 1, &options->micro_batches, job->diag));
    SF_TRY(take_number(m, "co_shard", 1, &options->co_shards, job->diag));
    options->pins = m->pins.at;
    options->npins = (int)m->pins.count;
    return SF_OK;
}

/* A space, and what is said of parameters and modules beside it. */
static sf_status pin_space(struct planning *job, const meaning *m)
{
    sf_space_options beside = {
        .pins = m->pins.at, .npins = (int)m->pins.count, .recompute = m->recompute};
    return sf_pin_space(job->list, &job->pin, &beside, job->diag, &job->plan);
}

/* Scopes of what is fused by the compiler of the system, a line each; empty where nothing is. */
static void list_compiled(const sf_primitives *list, sf_buf *out)
{
    for (size_t i = 0; i < list->nentries; i++) {
        const sf_primitive *said = &list->entries[i].said;
        if (said->kind != SF_PRIMITIVE_FUSE || !said->value || strcmp(said->value, "cc") != 0)
            continue;
        for (int s = 0; s < said->nsubgraphs; s++) {
            const sf_subgraph *part = &list->subgraphs[said->subgraphs[s] - 1];
            for (int n = 0; n < part->nnodes; n++) {
                const char *path = part->graph->nodes[part->nodes[n]]->scope->path;
                if (!sf_scopes_have(out->text, path))
                    sf_buf_printf(out, "%s%s", out->length > 0 ? "\n" : "", path);
            }
        }
    }
}

/* The step, or one that says which kernels and compiled loops it has, for sf_graph_free. */
static const sf_graph *graph_to_plan(const struct planning *job, sf_graph **made)
{
    const sf_entry *kernels = sf_find_setting(job->list, "kernels");
    sf_buf compiled = {0};
    list_compiled(job->list, &compiled);
    bool says = kernels || compiled.length > 0;
    *made = says ? sf_graph_clone(job->list->graph) : NULL;
    if (kernels)
        sf_kernel_choice_read(sf_str_of(kernels->said.value), &(*made)->kernels);
    if (compiled.length > 0)
        (*made)->compiled = sf_pool_string((*made)->pool, sf_str_of(compiled.text));
    sf_buf_free(&compiled);
    return says ? *made : job->list->graph;
}

static sf_status pin(void *context)
{
    struct planning *job = context;
    meaning m = {.list = job->list};
    bool space = sf_has_space(job->list);
    sf_status status = SF_OK;
    find_meaning(&m, job->pin.npins, job->pin.pins);
    sf_graph *made;
    const sf_graph *graph = graph_to_plan(job, &made);
    if (!space)
        status = take_pinned(job, &m);
    if (status == SF_OK)
        status = space ? pin_space(job, &m) : sf_pin_step(graph, &job->pin, job->diag, &job->plan);
    sf_graph_free(made);
    if (status == SF_OK)
        status = finish(job, NULL, 0);
    sf_arena_free(&m.arena);
    SF_TRY(status);
    status = sf_check_syncs(job->list, job->plan, job->diag);
    if (status != SF_OK)
        sf_plan_free(job->plan);
    return status;
}

void sf_primitives_keep(const sf_primitives *list, sf_plan *plan)
{
    for (size_t i = 0; i < list->nentries; i++) {
        const sf_entry *entry = &list->entries[i];
        sf_buf text = {0};
        if (entry->said.file)
            sf_buf_printf(&text, "%s:%d: ", entry->said.file, entry->said.line);
        sf_buf_puts(&text, entry->text);
        sf_plan_add_said(plan, text.text);
        sf_buf_free(&text);
    }
}

sf_status sf_primitives_pin(const sf_primitives *list, const sf_pin_options *options, sf_diag *diag,
                            sf_plan **out)
{
    struct planning job = {.list = list, .diag = diag};
    *out = NULL;
    SF_TRY(sf_options_take(options, &job.pin, sizeof job.pin, diag));
    SF_CHECK_OPTIONS(diag, {"npins", job.pin.npins});
    SF_TRY(sf_guarded(pin, &job, diag));
    *out = job.plan;
    return SF_OK;
}

/* A search takes the pins of a recipe, on the mesh that is said. */
static sf_status take_recipe(struct planning *job, meaning *m, const char *mesh_text)
{
    const sf_entry *entry = sf_find_setting(job->list, "recipe");
    sf_mesh mesh;
    sf_plan *plan;
    if (!entry)
        return SF_OK;
    if (!mesh_text)
        return sf_fail(job->diag, SF_EUSAGE, sf_said_at(&entry->said),
                       "a search with the pins of a recipe needs to know its mesh: say it, too");
    SF_TRY(sf_mesh_parse(sf_str_of(mesh_text), &m->arena, job->diag, &mesh));
    SF_TRY(sf_recipe_plan(job->list->graph, entry->said.value, 0, &mesh, job->diag, &plan));
    for (int p = 0; p < plan->npins; p++)
        SF_PUSH(&m->arena, m->pins.at, m->pins.count, m->pins.capacity,
                sf_arena_string(&m->arena, plan->pins[p].text, strlen(plan->pins[p].text)));
    sf_plan_free(plan);
    return SF_OK;
}

static sf_status take_stages(struct planning *job, const meaning *m)
{
    const char *theirs = job->search.stages > 0 || job->search.stage_scopes ? "" : NULL;
    char *end;
    SF_TRY(take_text(m, "stages", m->stages, &theirs, job->diag));
    if (!m->stages)
        return SF_OK;
    long count = strtol(m->stages, &end, 10);
    if (!*end && count < 1)
        return sf_fail(job->diag, SF_EUSAGE,
                       sf_said_at(&sf_find_setting(job->list, "stages")->said),
                       "a pipeline has at least one stage");
    if (*end)
        job->search.stage_scopes = m->stages;
    else
        job->search.stages = (int)(count < INT_MAX ? count : INT_MAX);
    return SF_OK;
}

static sf_status take_searched(struct planning *job, meaning *m)
{
    sf_plan_options *options = &job->search;
    SF_TRY(take_text(m, "mesh", setting(m, "mesh"), &options->mesh, job->diag));
    SF_TRY(take_text(m, "recompute", m->recompute, &options->recompute, job->diag));
    SF_TRY(take_text(m, "order", setting(m, "order"), &options->schedule, job->diag));
    SF_TRY(take_number(m, "micro_batches", 0, &options->micro_batches, job->diag));
    SF_TRY(take_number(m, "co_shard", 0, &options->co_shards, job->diag));
    SF_TRY(take_stages(job, m));
    SF_TRY(take_passes(job, m));
    SF_TRY(take_recipe(job, m, options->mesh));
    options->pins = m->pins.at;
    options->npins = (int)m->pins.count;
    return SF_OK;
}

/* With what is said of parameters and modules beside it. */
static sf_status search_space(struct planning *job)
{
    meaning m = {.list = job->list};
    find_meaning(&m, 0, NULL);
    sf_space_options beside = {
        .pins = m.pins.at, .npins = (int)m.pins.count, .recompute = m.recompute};
    sf_status status = sf_search_space(job->list, &job->search, &beside, job->diag, &job->plan);
    sf_arena_free(&m.arena);
    SF_TRY(status);
    return finish(job, job->search.cluster, job->search.memory);
}

static sf_status search(void *context)
{
    struct planning *job = context;
    meaning m = {.list = job->list};
    if (sf_has_space(job->list))
        return search_space(job);
    find_meaning(&m, job->search.npins, job->search.pins);
    sf_graph *made;
    const sf_graph *graph = graph_to_plan(job, &made);
    sf_status status = take_searched(job, &m);
    if (status == SF_OK)
        status = sf_plan_search(graph, &job->search, job->diag, &job->plan);
    sf_graph_free(made);
    if (status == SF_OK)
        status = finish(job, job->search.cluster, job->search.memory);
    sf_arena_free(&m.arena);
    return status;
}

sf_status sf_primitives_search(const sf_primitives *list, const sf_plan_options *options,
                               sf_diag *diag, sf_plan **out)
{
    struct planning job = {.list = list, .diag = diag};
    *out = NULL;
    SF_TRY(sf_options_take(options, &job.search, sizeof job.search, diag));
    SF_CHECK_OPTIONS(diag, {"npins", job.search.npins});
    SF_TRY(sf_guarded(search, &job, diag));
    *out = job.plan;
    return SF_OK;
}
