/* From primitives to a plan: pins, and lists of scopes. */
#include <string.h>

#include "api/api_options.h"
#include "api/api_spec.h"
#include "api/primitive/primitives.h"
#include "base/guard.h"
#include "cluster/cluster.h"
#include "ir/clone.h"
#include "plan/json/applied_primitives.h"
#include "plan/pin.h"

/* The specification of a list. Lives in the arena. */
typedef struct meaning {
    const sf_primitives *list;
    sf_arena arena;
    sf_strings pins;
    sf_plan_spec spec;
} meaning;

static const char *keep_buf(meaning *m, sf_buf *buf)
{
    const char *text = sf_arena_string(&m->arena, buf->text ? buf->text : "", buf->length);
    sf_buf_free(buf);
    return text;
}

/* "PATTERN=S(1)@model # shard, s.lua:3". */
static void add_pin(meaning *m, const sf_entry *entry, const char *pattern, bool split, int dim)
{
    const sf_primitive *said = &entry->said;
    sf_buf text = {0};
    sf_buf_printf(&text, "%s=", pattern);
    if (split)
        sf_buf_printf(&text, "S(%d)", dim);
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
        int dim = sf_shard_dim(m->list, &entry->said, param);
        add_pin(m, entry, param->name, true, dim);
        if (m->list->graph->arguments[param->argument].gradient == SF_NONE ||
            param->name == param->path)
            continue;
        sf_buf_printf(&gradient, "/%s", sf_gradient_name(param->name, &m->arena));
        add_pin(m, entry, keep_buf(m, &gradient), true, dim);
    }
}

static void mean_sync(meaning *m, const sf_entry *entry)
{
    bool split = strcmp(entry->said.op, "reduce_scatter") == 0;
    const char *way = strcmp(entry->said.mode, "forward") == 0 ? "out" : "back";
    for (size_t i = 0; i < entry->nmodules; i++) {
        sf_buf pattern = {0};
        sf_buf_printf(&pattern, "%s:/%s", way, entry->modules[i]);
        add_pin(m, entry, keep_buf(m, &pattern), split, entry->said.dim);
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

static bool is_field(const char *name)
{
    for (int f = 0; sf_spec_field(f); f++)
        if (strcmp(sf_spec_field(f), name) == 0)
            return true;
    return false;
}

/* Shards come first: they are about fewer tensors. */
static sf_status find_meaning(meaning *m, sf_diag *diag)
{
    sf_plan_spec *spec = &m->spec;
    for (size_t i = 0; i < m->list->nentries; i++)
        if (m->list->entries[i].said.kind == SF_PRIMITIVE_SHARD)
            mean_shard(m, &m->list->entries[i]);
    for (size_t i = 0; i < m->list->nentries; i++)
        if (m->list->entries[i].said.kind == SF_PRIMITIVE_SYNC)
            mean_sync(m, &m->list->entries[i]);
    spec->pins = m->pins.at;
    spec->npins = (int)m->pins.count;
    spec->recompute = list_scopes(m, SF_PRIMITIVE_CHECKPOINT);
    spec->stages = list_scopes(m, SF_PRIMITIVE_PIPELINE_SPLIT);
    for (size_t i = 0; i < m->list->nentries; i++) {
        const sf_primitive *said = &m->list->entries[i].said;
        if (said->kind == SF_PRIMITIVE_SET && is_field(said->name))
            SF_TRY(sf_spec_set(spec, said->name, said->value, sf_said_at(said), diag));
    }
    return SF_OK;
}

struct planning {
    const sf_primitives *list;
    sf_diag *diag;
    sf_plan_spec spec; /* beside the list; then of both */
    sf_plan_options search;
    sf_plan *plan;
};

/* Merges the specification of the list with the caller's; both live in the arena. */
static sf_status merge(struct planning *job, meaning *m)
{
    SF_TRY(find_meaning(m, job->diag));
    const char *both = sf_spec_merge(&m->spec, &m->arena, &job->spec);
    if (!both)
        return SF_OK;
    const sf_entry *entry = sf_find_setting(job->list, both);
    return sf_fail(job->diag, SF_EUSAGE, entry ? sf_said_at(&entry->said) : SF_NOWHERE,
                   "both the schedule and the command line give %s: drop one of them", both);
}

/* Scopes that the system's compiler fuses, a line each; empty if there are none. */
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

/* The step, or one that says which compiled loops it has, for sf_graph_free. */
static const sf_graph *graph_to_plan(const struct planning *job, sf_graph **made)
{
    sf_buf compiled = {0};
    list_compiled(job->list, &compiled);
    bool says = compiled.length > 0;
    *made = says ? sf_graph_clone(job->list->graph) : NULL;
    if (says)
        (*made)->compiled = sf_pool_string((*made)->pool, sf_str_of(compiled.text));
    sf_buf_free(&compiled);
    return says ? *made : job->list->graph;
}

static sf_status pin(void *context)
{
    struct planning *job = context;
    meaning m = {.list = job->list};
    sf_graph *made = NULL;
    sf_status status = merge(job, &m);
    if (status == SF_OK && sf_has_space(job->list)) {
        status = sf_pin_space(job->list, &job->spec, job->diag, &job->plan);
    } else if (status == SF_OK) {
        const sf_graph *graph = graph_to_plan(job, &made);
        status = sf_pin_step(graph, &job->spec, job->diag, &job->plan);
    }
    sf_graph_free(made);
    sf_arena_free(&m.arena);
    SF_TRY(status);
    sf_primitives_keep(job->list, job->plan);
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

sf_status sf_primitives_pin(const sf_primitives *list, const sf_plan_spec *spec, sf_diag *diag,
                            sf_plan **out)
{
    SF_CLEAR(out);
    SF_NEED(diag, list, out);
    struct planning job = {.list = list, .diag = diag};
    SF_TRY(sf_spec_take(spec, diag, &job.spec));
    SF_TRY(sf_guarded(pin, &job, diag));
    *out = job.plan;
    return SF_OK;
}

static sf_status search(void *context)
{
    struct planning *job = context;
    meaning m = {.list = job->list};
    sf_graph *made = NULL;
    sf_status status = merge(job, &m);
    if (status == SF_OK && sf_has_space(job->list)) {
        if (job->search.cluster)
            job->spec.memory =
                sf_cluster_memory_limit(job->search.cluster, job->spec.memory, job->diag);
        status = sf_search_space(job->list, &job->spec, &job->search, job->diag, &job->plan);
    } else if (status == SF_OK) {
        const sf_graph *graph = graph_to_plan(job, &made);
        status = sf_plan_search(graph, &job->spec, &job->search, job->diag, &job->plan);
    }
    sf_graph_free(made);
    sf_arena_free(&m.arena);
    if (status == SF_OK)
        sf_primitives_keep(job->list, job->plan);
    return status;
}

sf_status sf_primitives_search(const sf_primitives *list, const sf_plan_spec *spec,
                               const sf_plan_options *options, sf_diag *diag, sf_plan **out)
{
    SF_CLEAR(out);
    SF_NEED(diag, list, out);
    struct planning job = {.list = list, .diag = diag};
    SF_TRY(sf_spec_take(spec, diag, &job.spec));
    SF_TRY(SF_TAKE(sf_plan_options, options, &job.search, diag));
    SF_TRY(sf_guarded(search, &job, diag));
    *out = job.plan;
    return SF_OK;
}
