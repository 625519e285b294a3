/* What pins say of axes and meshes: which names axes must have, and on which meshes the pins can hold. */
#include <string.h>

#include "plan/pin.h"
#include "search/search_run.h"

/* Names of axes */

bool search_is_named(const search *s, const char *axis)
{
    for (int n = 0; n < s->nnames; n++)
        if (strcmp(s->names[n], axis) == 0)
            return true;
    return false;
}

int search_fewest_axes(const search *s)
{
    return s->nnames > 0 ? s->nnames : 1;
}

bool search_is_same_mesh(const search *s, const sf_mesh *a, const sf_mesh *b)
{
    bool same = a->naxes == b->naxes;
    for (int i = 0; i < a->naxes && same; i++) {
        const char *x = a->axes[i].name, *y = b->axes[i].name;
        bool counts = search_is_named(s, x) || search_is_named(s, y);
        same = a->axes[i].size == b->axes[i].size && (!counts || strcmp(x, y) == 0);
    }
    return same;
}

bool search_keeps_names(const search *s, const sf_mesh *mesh, const sf_mesh *coarse, int axis)
{
    for (int a = 0; a < mesh->naxes; a++) {
        const char *name = mesh->axes[a].name;
        if (search_is_named(s, name) && strcmp(name, coarse->axes[a <= axis ? a : a - 1].name) != 0)
            return false;
    }
    return true;
}

/* Reading */

static sf_status add_name(search *s, sf_str axis, const char *pin)
{
    const char *name = sf_arena_string(&s->arena, axis.at, axis.length);
    if (search_is_named(s, name))
        return SF_OK;
    if (s->nnames == SEARCH_MOST_AXES && !s->options->mesh)
        return sf_fail(s->diag, SF_EUSAGE, SF_NOWHERE,
                       "pin \"%s\": pins name more than three axes, which only a mesh of "
                       "yours can have",
                       pin);
    s->names[s->nnames++] = name;
    return SF_OK;
}

sf_status search_check_pins(const search *s, const sf_mesh *mesh, sf_diag *diag)
{
    sf_arena arena = {0};
    sf_rules rules;
    sf_status status = sf_ground_rules(&s->ground, mesh, &arena, diag, &rules);
    sf_arena_free(&arena);
    return status;
}

/* Pins that are wrong on one rank are wrong on every mesh. */
static sf_status check_everywhere(const search *s)
{
    sf_mesh one = {.naxes = search_fewest_axes(s), .axes = {{SF_FREE_AXIS, 1}}};
    for (int a = 0; a < s->nnames; a++)
        one.axes[a] = (sf_axis){s->names[a], 1};
    return search_check_pins(s, &one, s->diag);
}

sf_status search_read_pins(search *s)
{
    for (int p = 0; p < s->ground.npins; p++) {
        sf_pin pin;
        const char *text = s->ground.pins[p];
        SF_TRY(sf_pin_parse(text, s->options->mesh, &s->arena, s->diag, &pin));
        sf_str axis = sf_pin_axis_name(text);
        if (axis.length == 0)
            s->has_wishes = true;
        else
            SF_TRY(add_name(s, axis, text));
    }
    if (s->ground.npins > 0)
        s->step_names = sf_names_of(s->ground.graph, &s->arena);
    s->ground.names = &s->step_names;
    return check_everywhere(s);
}

/* Meshes */

static sf_meshes name_meshes(search *s, int naxes, int most)
{
    sf_meshes meshes = sf_meshes_of(s->ground.cluster, s->unused, naxes, most, &s->arena);
    return sf_meshes_named(&meshes, s->nnames, s->names, &s->arena);
}

/* Whether a pin wants a split along an axis of one rank, beside which others are unused: of a mesh that the user did not ask for. */
static bool has_empty_split(const search *s, const sf_mesh *mesh)
{
    bool has = false;
    for (int p = 0; p < s->ground.npins && !s->options->mesh && sf_mesh_size(mesh) > 1; p++) {
        int axis = sf_mesh_axis(mesh, sf_pin_axis_name(s->ground.pins[p]));
        has = has || (axis >= 0 && mesh->axes[axis].size == 1 && sf_pin_splits(s->ground.pins[p]));
    }
    return has;
}

/* Leaves out those on which the pins cannot hold. */
static void drop_impossible(const search *s, sf_meshes *meshes)
{
    int kept = 0;
    for (int i = 0; i < meshes->count; i++)
        if (!has_empty_split(s, &meshes->at[i]) &&
            search_check_pins(s, &meshes->at[i], NULL) == SF_OK)
            meshes->at[kept++] = meshes->at[i];
    meshes->count = kept;
}

search_meshes search_list_meshes(search *s, int most)
{
    int most_axes = s->options->level >= 3 || s->nnames > 2 ? 3 : 2;
    size_t count = 0, capacity = 0;
    search_meshes list = {0};
    for (int naxes = 1; naxes <= most_axes; naxes++) {
        sf_meshes *meshes = &list.of[naxes];
        *meshes = name_meshes(s, naxes, naxes == 3 ? most / 2 : most);
        drop_impossible(s, meshes);
        for (int i = 0; i < meshes->count; i++)
            SF_PUSH(&s->arena, list.all.at, count, capacity, meshes->at[i]);
    }
    list.all.count = (int)count;
    return list;
}

sf_status search_fail_meshes(search *s)
{
    int devices = s->ground.cluster->ndevices;
    sf_meshes meshes = name_meshes(s, search_fewest_axes(s), 1);
    if (meshes.count == 0)
        return sf_fail(s->diag, SF_EUSAGE, SF_NOWHERE,
                       "pins name %d axes, and %d devices cannot be cut into so many", s->nnames,
                       devices);
    sf_status status = search_check_pins(s, &meshes.at[0], s->diag);
    sf_hint(s->diag, "so it is on %s, and the pins hold on no other mesh of %d devices either",
            search_mesh_text(&meshes.at[0], &s->arena), devices);
    return status;
}

const char *search_mesh_text(const sf_mesh *mesh, sf_arena *arena)
{
    sf_buf text = {0};
    sf_mesh_print(mesh, &text);
    const char *kept = sf_arena_string(arena, text.text, text.length);
    sf_buf_free(&text);
    return kept;
}
