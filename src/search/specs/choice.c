#include "search/specs/choice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "plan/pipeline/schedules.h"
#include "shard/mesh.h"

/* By gene; state is the recipe of the data axis, and what shard_state says. */
static const char *const texts[SF_GENES][10] = {
    [SF_GENE_STATE] = {"dp", "zero1", "zero2", "zero3", "between", "full"},
    [SF_GENE_RECOMPUTE] = {"text", "none", "cheap", "layer", "full", "parts"},
    [SF_GENE_SCHEDULE] = {"1f1b", "gpipe", "interleaved:2", "interleaved:4", "zb-h1", "zb-v",
                          "dualpipe", "chimera"},
    [SF_GENE_PASSES] = {"", "overlap", "fsdp,prefetch", "fsdp,prefetch,unshard",
                        "defer-gradient-readers"},
    [SF_GENE_ORDER] = {"model inside", "data inside"},
};

enum { STATE_GATHERED = 3 }; /* from that on, in the list of state */

static const char *const role_names[SF_AXIS_ROLES] = {"unused", "pipe",   "replica", "data",
                                                      "seq",    "expert", "model"};

int sf_gene_count(sf_choice_gene gene)
{
    int count = 0;
    while (texts[gene][count])
        count++;
    return count;
}

const char *sf_gene_text(const sf_choice *choice, sf_choice_gene gene)
{
    return texts[gene][choice->genes[gene]];
}

bool sf_choice_same(const sf_choice *a, const sf_choice *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

int sf_choice_devices(const sf_choice *choice)
{
    int devices = 1;
    for (int r = 0; r < SF_AXIS_ROLES; r++)
        devices *= choice->axes[r];
    return devices;
}

/* Text ----------------------------------------------------------------------------------------------- */

static void add_axis(const sf_choice *choice, int role, size_t capacity, char *mesh)
{
    size_t used = strlen(mesh);
    if (choice->axes[role] > 1)
        snprintf(mesh + used, capacity - used, "%s%s=%d", used ? "," : "", role_names[role],
                 choice->axes[role]);
}

static void write_mesh(const sf_choice *choice, bool staged, sf_choice_text *out)
{
    bool data_inside = choice->genes[SF_GENE_ORDER] == 1;
    size_t capacity = sizeof out->mesh;
    add_axis(choice, SF_AXIS_UNUSED, capacity, out->mesh);
    if (staged)
        add_axis(choice, SF_AXIS_PIPE, capacity, out->mesh);
    add_axis(choice, SF_AXIS_REPLICA, capacity, out->mesh);
    if (!data_inside)
        add_axis(choice, SF_AXIS_DATA, capacity, out->mesh);
    for (int role = SF_AXIS_SEQ; role < SF_AXIS_ROLES; role++)
        add_axis(choice, role, capacity, out->mesh);
    if (data_inside)
        add_axis(choice, SF_AXIS_DATA, capacity, out->mesh);
    size_t used = strlen(out->mesh);
    int split = sf_choice_devices(choice) / choice->axes[SF_AXIS_UNUSED];
    if (!staged)
        split /= choice->axes[SF_AXIS_PIPE];
    if (split == 1)
        snprintf(out->mesh + used, capacity - used, "%sdata=1", used ? "," : "");
}

static void add_recipe(const char *name, size_t capacity, char *recipe)
{
    size_t used = strlen(recipe);
    snprintf(recipe + used, capacity - used, "%s%s", used ? "+" : "", name);
}

static void write_recipe(const sf_choice *choice, sf_choice_text *out)
{
    const char *state = sf_gene_text(choice, SF_GENE_STATE);
    bool has_data = choice->axes[SF_AXIS_DATA] > 1, has_model = choice->axes[SF_AXIS_MODEL] > 1;
    bool said = strcmp(state, "between") == 0 || strcmp(state, "full") == 0;
    size_t capacity = sizeof out->recipe;
    if (has_model)
        add_recipe(has_data ? "2d" : "megatron", capacity, out->recipe);
    if (choice->axes[SF_AXIS_EXPERT] > 1)
        add_recipe("expert", capacity, out->recipe);
    if (choice->axes[SF_AXIS_SEQ] > 1)
        add_recipe("sequence", capacity, out->recipe);
    if (has_data && !said && !(has_model && choice->genes[SF_GENE_STATE] == 0))
        add_recipe(state, capacity, out->recipe);
    if (choice->axes[SF_AXIS_REPLICA] > 1)
        add_recipe("replicas", capacity, out->recipe);
    if (has_data && said && !has_model)
        add_recipe("dp", capacity, out->recipe);
    out->spec.shard_state = has_data && said ? state : NULL;
    out->spec.recipe = *out->recipe                                                    ? out->recipe
                       : choice->axes[SF_AXIS_PIPE] == 1 || !strstr(out->mesh, "pipe") ? "dp"
                                                                                       : NULL;
}

/* Stages and their order are no part of what one rank of a stage does. */
static void write_said(const sf_plan_spec *said, bool staged, sf_choice_text *out)
{
    out->spec.pins = said->pins;
    out->spec.npins = said->npins;
    out->spec.kernels = said->kernels;
    out->spec.memory = said->memory;
    out->spec.recompute = said->recompute ? said->recompute : out->spec.recompute;
    out->spec.co_shard = said->co_shard ? said->co_shard : out->spec.co_shard;
    out->spec.passes = said->passes ? said->passes : out->spec.passes;
    if (said->mesh && staged)
        out->spec.mesh = said->mesh;
}

void sf_choice_write(const sf_choice *choice, const sf_choice_rules *rules, bool staged,
                     sf_choice_text *out)
{
    const char *passes = sf_gene_text(choice, SF_GENE_PASSES);
    sf_schedule_kind kind;
    staged = staged && choice->axes[SF_AXIS_PIPE] > 1;
    *out = (sf_choice_text){.spec = {.size = sizeof out->spec}};
    write_mesh(choice, staged, out);
    write_recipe(choice, out);
    out->spec.mesh = out->mesh;
    out->spec.micro_batches = choice->micro_batches;
    out->spec.recompute = sf_gene_text(choice, SF_GENE_RECOMPUTE);
    if (staged && sf_schedule_parse(sf_gene_text(choice, SF_GENE_SCHEDULE), &kind, NULL) == SF_OK) {
        snprintf(out->stages, sizeof out->stages, "%u",
                 sf_schedule_stages(kind, (uint32_t)choice->axes[SF_AXIS_PIPE]));
        out->spec.stages = out->stages;
        out->spec.schedule = sf_gene_text(choice, SF_GENE_SCHEDULE);
    }
    if (choice->chunks > 1) {
        snprintf(out->chunks, sizeof out->chunks, "%d", choice->chunks);
        out->spec.co_shard = out->chunks;
    }
    if (*passes)
        out->spec.passes = passes;
    write_said(&rules->said, staged, out);
}

/* Rules ---------------------------------------------------------------------------------------------- */

static bool is_auto(const char *text)
{
    return !text || strcmp(text, "auto") == 0;
}

/* "pipe=2,data=4": axes of roles alone, in the order of choices. */
static bool read_mesh(const char *text, sf_choice_rules *out)
{
    for (int r = 0; r < SF_AXIS_ROLES; r++)
        out->axes[r] = 1;
    for (int last = -1; *text; text += *text == ',') {
        size_t length = strcspn(text, "=");
        int role = 0;
        while (role < SF_AXIS_ROLES &&
               (strlen(role_names[role]) != length || strncmp(text, role_names[role], length) != 0))
            role++;
        if (role == SF_AXIS_ROLES || role <= last || text[length] != '=')
            return false;
        last = role;
        out->axes[role] = atoi(text + length + 1);
        text += strcspn(text, ",");
    }
    out->has_mesh = true;
    return true;
}

static bool fix_gene(sf_choice_gene gene, const char *text, sf_choice_rules *out)
{
    if (is_auto(text))
        return true;
    out->is_fixed[gene] = true;
    for (int value = 0; value < sf_gene_count(gene); value++)
        if (strcmp(texts[gene][value], text) == 0) {
            out->genes[gene] = value;
            return true;
        }
    return gene == SF_GENE_RECOMPUTE || gene == SF_GENE_PASSES; /* written as they are said */
}

bool sf_choice_rules_read(const sf_plan_spec *said, sf_choice_rules *out)
{
    *out = (sf_choice_rules){.said = *said};
    if (is_auto(said->co_shard))
        out->said.co_shard = NULL;
    if (is_auto(said->recompute))
        out->said.recompute = NULL;
    if (!is_auto(said->stages)) {
        out->stages = atoi(said->stages);
        if (out->stages < 1 || said->stages[strspn(said->stages, "0123456789")] != 0)
            return false;
    }
    if (said->mesh) {
        out->is_fixed[SF_GENE_ORDER] = true;
        if (!read_mesh(said->mesh, out))
            return false;
    }
    return !said->recipe && fix_gene(SF_GENE_STATE, said->shard_state, out) &&
           fix_gene(SF_GENE_RECOMPUTE, said->recompute, out) &&
           fix_gene(SF_GENE_SCHEDULE, said->schedule, out) &&
           fix_gene(SF_GENE_PASSES, said->passes, out);
}

bool sf_choice_obey(const sf_choice_rules *rules, sf_choice *choice)
{
    sf_schedule_kind kind;
    if (rules->has_mesh)
        memcpy(choice->axes, rules->axes, sizeof choice->axes);
    for (int g = 0; g < SF_GENES; g++)
        if (rules->is_fixed[g])
            choice->genes[g] = rules->genes[g];
    if (rules->said.micro_batches > 0)
        choice->micro_batches = rules->said.micro_batches;
    if (rules->said.co_shard)
        choice->chunks = 1;
    int pipe = choice->axes[SF_AXIS_PIPE];
    if (pipe == 1)
        return rules->stages <= 1 && !rules->said.schedule;
    if (sf_schedule_parse(sf_gene_text(choice, SF_GENE_SCHEDULE), &kind, NULL) != SF_OK)
        return false;
    return rules->stages == 0 || (int)sf_schedule_stages(kind, (uint32_t)pipe) == rules->stages;
}

/* Moves ---------------------------------------------------------------------------------------------- */

typedef struct moving {
    const sf_choice *from;
    bool passes;
    sf_see_choice *see;
    void *context;
} moving;

static bool has_passes(const sf_choice *choice)
{
    return choice->genes[SF_GENE_PASSES] > 0 || choice->genes[SF_GENE_STATE] >= SF_STATE_BY_PASSES;
}

/* A schedule goes with stages, state with data. In a pipeline parameters are gathered for every micro-batch: not considered. */
static void show(const moving *m, sf_choice to)
{
    if (to.axes[SF_AXIS_PIPE] == 1)
        to.genes[SF_GENE_SCHEDULE] = 0;
    if (to.axes[SF_AXIS_DATA] == 1 || to.genes[SF_GENE_STATE] == 0) { /* replicas are data, then */
        to.axes[SF_AXIS_DATA] *= to.axes[SF_AXIS_REPLICA];
        to.axes[SF_AXIS_REPLICA] = 1;
    }
    if (to.axes[SF_AXIS_DATA] == 1)
        to.genes[SF_GENE_STATE] = to.genes[SF_GENE_ORDER] = 0;
    if (to.axes[SF_AXIS_SEQ] * to.axes[SF_AXIS_EXPERT] * to.axes[SF_AXIS_MODEL] == 1)
        to.genes[SF_GENE_ORDER] = 0;
    bool gathers = to.genes[SF_GENE_STATE] >= STATE_GATHERED && to.axes[SF_AXIS_PIPE] > 1;
    if (!sf_choice_same(&to, m->from) && has_passes(&to) == m->passes && !gathers)
        m->see(m->context, &to);
}

static void move_factor(const moving *m, int from, int to, int factor)
{
    sf_choice c = *m->from;
    c.axes[from] /= factor;
    c.axes[to] *= factor;
    if (to == SF_AXIS_PIPE) { /* fewer ranks have the batch, and a pipeline has several turns */
        sf_choice more = c;
        more.micro_batches *= factor;
        show(m, more);
        more.micro_batches *= 2;
        show(m, more);
    }
    show(m, c);
    if (to == SF_AXIS_DATA && c.micro_batches % factor == 0) {
        c.micro_batches /= factor;
        show(m, c);
    }
}

/* Devices become unused, and used again, by way of data. */
static bool goes(int from, int to)
{
    return (from != SF_AXIS_UNUSED || to == SF_AXIS_DATA) &&
           (to != SF_AXIS_UNUSED || from == SF_AXIS_DATA);
}

static void move_factors(const moving *m)
{
    for (int from = 0; from < SF_AXIS_ROLES; from++)
        for (int factor = 2, rest = m->from->axes[from]; rest > 1; factor++) {
            if (rest % factor != 0)
                continue;
            while (rest % factor == 0)
                rest /= factor;
            for (int to = 0; to < SF_AXIS_ROLES; to++)
                if (to != from && goes(from, to))
                    move_factor(m, from, to, factor);
        }
}

static void move_count(const moving *m, size_t at)
{
    sf_choice c = *m->from;
    int *count = (int *)((char *)&c + at), was = *count;
    *count = 2 * was;
    show(m, c);
    *count = was / 2;
    if (was % 2 == 0)
        show(m, c);
}

void sf_choice_moves(const sf_choice *choice, bool passes, sf_see_choice *see, void *context)
{
    moving m = {choice, passes, see, context};
    move_factors(&m);
    for (int g = 0; g < SF_GENES; g++)
        for (int value = 0; value < sf_gene_count((sf_choice_gene)g); value++) {
            sf_choice c = *choice;
            c.genes[g] = value;
            show(&m, c);
        }
    move_count(&m, offsetof(sf_choice, micro_batches));
    move_count(&m, offsetof(sf_choice, chunks));
}
