/* The plan: splits in space are axes of the mesh of a pipeline rank, and factors chosen along them;
 * in time they are chunks. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "plan/co_shard.h"
#include "plan/op_selector.h"
#include "plan/pin.h"
#include "plan/propagate.h"
#include "plan/recipe/recipe.h"
#include "plan/recompute_policy.h"
#include "plan/space/space_builder.h"

static bool is_batch(const sf_said_trans *said)
{
    return strcmp(said->how, "batch") == 0;
}

static bool is_recompute(const sf_said_trans *said)
{
    return strcmp(said->how, "recompute") == 0;
}

static bool is_cut(const sf_said_trans *said, sf_where where)
{
    return !is_batch(said) && !is_recompute(said) && said->where == where && said->parts > 1;
}

/* The parts of the batch, 1: it is not cut. */
static int batch_parts(const sf_space *space, sf_where where)
{
    for (size_t i = 0; i < space->ntrans; i++)
        if (is_batch(&space->trans[i]) && space->trans[i].where == where)
            return space->trans[i].parts;
    return 1;
}

/* Meshes */

typedef struct meshing {
    making *m;
    sf_mesh mesh;       /* of a group */
    int *axis_of;       /* by transformation: along which axis of it */
    const char *recipe; /* of the batch, and the one that is wished for; NULL: none */
} meshing;

static sf_status add_axis(meshing *k, const char *name, int size, int *out)
{
    if (k->mesh.naxes + 1 >= SF_MAX_AXES)
        return sf_fail(k->m->diag, SF_EUSAGE, SF_NOWHERE,
                       "what is split makes more than %d axes of a mesh", SF_MAX_AXES);
    *out = k->mesh.naxes;
    k->mesh.axes[k->mesh.naxes++] = (sf_axis){name, size};
    return SF_OK;
}

/* The axis of so many parts that factors are split along: "model", "model2", ... */
static sf_status find_axis(meshing *k, int parts, int *out)
{
    int count = 0;
    for (int a = 0; a < k->mesh.naxes; a++) {
        bool ours = strncmp(k->mesh.axes[a].name, "model", 5) == 0;
        count += ours;
        *out = a;
        if (ours && k->mesh.axes[a].size == parts)
            return SF_OK;
    }
    char name[16] = "model";
    if (count > 0)
        snprintf(name, sizeof name, "model%d", count + 1);
    return add_axis(k, sf_arena_string(k->m->arena, name, strlen(name)), parts, out);
}

static sf_status add_axes(meshing *k)
{
    const sf_space *space = k->m->space;
    int axis, batch = batch_parts(space, SF_IN_SPACE);
    k->axis_of = SF_ARRAY(k->m->arena, space->ntrans + 1, int);
    if (k->m->spec->mesh)
        k->mesh = *k->m->spec->mesh;
    axis = sf_mesh_axis(&k->mesh, sf_str_of("data"));
    if (batch > 1 && axis >= 0 && k->mesh.axes[axis].size != batch)
        return sf_fail(k->m->diag, SF_EUSAGE, SF_NOWHERE,
                       "the batch is cut into %d parts, and axis data of the mesh has %d", batch,
                       k->mesh.axes[axis].size);
    if (batch > 1 && axis < 0)
        SF_TRY(add_axis(k, "data", batch, &axis));
    for (size_t i = 0; i < space->ntrans; i++)
        if (is_cut(&space->trans[i], SF_IN_SPACE))
            SF_TRY(find_axis(k, space->trans[i].parts, &k->axis_of[i]));
    return SF_OK;
}

/* Adds the axis of the recipe that is not there, with the devices that are left over. */
static sf_status add_recipe(meshing *k, int left)
{
    const char *const *axes = sf_recipe_axes(k->m->spec->recipe);
    const char *missing = NULL;
    int count = 0, at;
    if (!axes)
        return sf_fail(k->m->diag, SF_EUSAGE, SF_NOWHERE,
                       "\"%.100s\" is no recipe for the rest: take one by itself, such as dp",
                       k->m->spec->recipe);
    for (int a = 0; axes[a]; a++)
        if (sf_mesh_axis(&k->mesh, sf_str_of(axes[a])) < 0) {
            missing = axes[a];
            count++;
        }
    if (count > 1)
        return sf_fail(k->m->diag, SF_EUSAGE, SF_NOWHERE,
                       "recipe %s would split along %d more axes: say how, with transformations",
                       k->m->spec->recipe, count);
    return missing && left > 1 ? add_axis(k, missing, left, &at) : SF_OK;
}

static sf_status find_group_mesh(meshing *k)
{
    making *m = k->m;
    SF_TRY(add_axes(k));
    int parts = sf_mesh_size(&k->mesh), left = m->group_size / (parts > 0 ? parts : 1);
    if (k->mesh.naxes == 0)
        parts = 1, left = m->group_size;
    if (m->group_size % parts == 0 && m->spec->recipe)
        SF_TRY(add_recipe(k, left));
    parts = k->mesh.naxes ? sf_mesh_size(&k->mesh) : 1;
    if (parts == m->group_size)
        return SF_OK;
    sf_fail(m->diag, SF_EUSAGE, SF_NOWHERE,
            "%s on %d device%s, and what is split in space has %d part%s",
            m->ngroups > 1 ? "each group of ops is" : "the step is", m->group_size,
            m->group_size > 1 ? "s" : "", parts, parts > 1 ? "s" : "");
    return sf_hint(m->diag, parts < m->group_size
                                ? "split the batch or a factor over the rest, or take fewer devices"
                                : "take more devices, or cut in time");
}

/* The axis of pipeline ranks before those of one, or after them. */
static sf_mesh with_groups(const meshing *k, bool staged, int *axis)
{
    const making *m = k->m;
    sf_mesh out = {0};
    if (staged && !m->strided)
        out.axes[out.naxes++] = (sf_axis){SF_PIPE_AXIS, (int)m->ngroups};
    for (int a = 0; a < k->mesh.naxes; a++)
        out.axes[out.naxes++] = k->mesh.axes[a];
    if (staged && m->strided)
        out.axes[out.naxes++] = (sf_axis){SF_PIPE_AXIS, (int)m->ngroups};
    *axis = m->strided ? out.naxes - 1 : 0;
    if (out.naxes == 0) /* one device, nothing split */
        out.axes[out.naxes++] = (sf_axis){"data", 1};
    return out;
}

/* Plans */

static const char *join_recipes(const meshing *k)
{
    const sf_spec *spec = k->m->spec;
    bool batch = batch_parts(k->m->space, SF_IN_SPACE) > 1;
    bool rest = spec->recipe && k->mesh.naxes > 0;
    if (!batch)
        return rest ? spec->recipe : NULL;
    if (!rest || strcmp(spec->recipe, "dp") == 0)
        return "dp";
    size_t length = strlen(spec->recipe) + 4;
    char *both = sf_arena_alloc(k->m->arena, length);
    snprintf(both, length, "dp+%s", spec->recipe);
    return both;
}

static sf_status choose(const meshing *k, const sf_mesh *mesh, sf_choice_list *out)
{
    const sf_space *space = k->m->space;
    for (size_t i = 0; i < space->ntrans; i++) {
        const sf_said_trans *said = &space->trans[i];
        sf_ops ops;
        if (!is_cut(said, SF_IN_SPACE))
            continue;
        int axis = sf_mesh_axis(mesh, sf_str_of(k->mesh.axes[k->axis_of[i]].name));
        SF_TRY(sf_ops_find(space->graph, said->ops, k->m->arena, k->m->diag, &ops));
        SF_TRY(sf_choose_factor(space->graph, &ops, said->how, said->parts, axis, k->m->arena,
                                k->m->diag, out));
    }
    return SF_OK;
}

/* Factors in time: "OPS:FACTOR;OPS:FACTOR", all in as many chunks (plan/op_selector.h). */
static sf_status co_shard(const making *m, sf_plan *plan)
{
    const sf_space *space = m->space;
    sf_buf text = {0};
    int parts = 1;
    sf_status status = SF_OK;
    for (size_t i = 0; i < space->ntrans && status == SF_OK; i++) {
        const sf_said_trans *said = &space->trans[i];
        if (!is_cut(said, SF_IN_TIME))
            continue;
        if (parts > 1 && parts != said->parts)
            status = sf_fail(m->diag, SF_EUSAGE, SF_NOWHERE,
                             "what is cut in time beside the batch has as many parts everywhere, "
                             "not %d and %d",
                             parts, said->parts);
        parts = said->parts;
        sf_buf_printf(&text, "%s%s:%s", text.length ? ";" : "", *said->ops ? said->ops : "*",
                      said->how);
    }
    if (status == SF_OK && parts > 1)
        sf_plan_co_shard(plan, 1, &(sf_co_shard){text.text, "", parts});
    sf_buf_free(&text);
    return status;
}

static void add_scopes(const making *m, const sf_recompute_spec *more, sf_recompute_spec *out)
{
    sf_recompute_scope *all = SF_ARRAY(m->arena, out->nscopes + more->nscopes, sf_recompute_scope);
    for (size_t s = 0; s < out->nscopes; s++)
        all[s] = out->scopes[s];
    for (size_t s = 0; s < more->nscopes; s++)
        all[out->nscopes + s] = more->scopes[s];
    out->scopes = all;
    out->nscopes += more->nscopes;
    out->kind = SF_RECOMPUTE_SCOPES;
}

/* All scopes that are recomputed; all ops: in each layer, and cheap ones. */
static sf_status recompute(const making *m, sf_plan *plan)
{
    const sf_space *space = m->space;
    sf_recompute_spec how = m->spec->recompute, more;
    bool is_word = how.kind > SF_RECOMPUTE_NONE && how.kind < SF_RECOMPUTE_SCOPES;
    for (size_t i = 0; i < space->ntrans; i++) {
        const char *ops = space->trans[i].ops;
        if (!is_recompute(&space->trans[i]))
            continue;
        if (is_word)
            return sf_fail(m->diag, SF_EUSAGE, SF_NOWHERE,
                           "recompute is said by a transformation, and again beside it");
        if (!*ops) {
            how = (sf_recompute_spec){.kind = SF_RECOMPUTE_FULL, .layers = 1};
            break;
        }
        SF_TRY(sf_recompute_read(ops, m->arena, m->diag, &more));
        add_scopes(m, &more, &how);
    }
    return sf_plan_recompute(space->graph, plan, &how, m->diag);
}

static sf_status fill_plan(const meshing *k, bool staged, int axis, sf_plan *plan)
{
    making *m = k->m;
    const sf_graph *graph = m->space->graph;
    sf_choice_list chosen = {0};
    SF_TRY(sf_plan_add_pins(plan, m->spec->npins, m->spec->pins, m->diag));
    SF_TRY(choose(k, &plan->mesh, &chosen));
    SF_TRY(sf_plan_propagate_chosen(graph, plan, chosen.count, chosen.at, m->diag));
    plan->micro_batches = (int)m->nmicrobatches;
    SF_TRY(co_shard(m, plan));
    m->pipeline.axis = axis;
    if (staged)
        SF_TRY(sf_plan_set_pipeline(plan, graph, &m->pipeline, m->diag));
    return recompute(m, plan);
}

static sf_status make_plan(making *m, sf_plan **out)
{
    meshing k = {.m = m};
    const sf_graph *graph = m->space->graph;
    int axis;
    m->nmicrobatches = (uint32_t)batch_parts(m->space, SF_IN_TIME);
    SF_TRY(space_find_stages(m));
    SF_TRY(space_find_groups(m));
    SF_TRY(find_group_mesh(&k));
    bool staged = m->nstages > 1;
    if (staged)
        SF_TRY(space_find_order(m));
    else if (m->spec->schedule || m->spec->table)
        return sf_fail(m->diag, SF_EUSAGE, SF_NOWHERE,
                       "a schedule is of stages, and nothing was assigned to several devices");
    sf_mesh mesh = with_groups(&k, staged, &axis);
    const char *recipe = join_recipes(&k);
    if (recipe)
        SF_TRY(sf_recipe_plan(graph, recipe, sf_mesh_size(&mesh), &mesh, m->diag, out));
    else
        *out = sf_plan_new(graph, &mesh);
    sf_status status = fill_plan(&k, staged, axis, *out);
    if (status != SF_OK) {
        sf_plan_free(*out);
        *out = NULL;
    }
    return status;
}

sf_status sf_space_make(const sf_space *space, const sf_spec *spec, sf_diag *diag, sf_plan **out)
{
    sf_arena arena = {0};
    making m = {.space = space, .spec = spec, .diag = diag, .arena = &arena};
    *out = NULL;
    sf_status status = make_plan(&m, out);
    sf_arena_free(&arena);
    return status;
}
