#include "shard/mesh.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/number.h"

static bool is_name(sf_str text)
{
    for (size_t i = 0; i < text.length; i++) {
        char c = text.at[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!letter && !(c >= '0' && c <= '9') && c != '_')
            return false;
    }
    return text.length > 0;
}

/* The text before the separator; *rest is the text after it, empty if there is none. */
static sf_str cut_at(sf_str text, char separator, sf_str *rest)
{
    const char *at = text.length ? memchr(text.at, separator, text.length) : NULL;
    size_t length = at ? (size_t)(at - text.at) : text.length;
    size_t skipped = at ? length + 1 : length;
    *rest = (sf_str){text.at + skipped, text.length - skipped};
    return (sf_str){text.at, length};
}

static sf_status add_axis(sf_str text, sf_arena *arena, sf_diag *diag, sf_mesh *mesh)
{
    sf_str digits;
    sf_str name = cut_at(text, '=', &digits);
    int64_t size, ranks;
    if (!is_name(name) || !sf_number_int(digits, &size))
        return sf_fail(diag, SF_EINPUT, SF_NOWHERE,
                       "mesh axis \"%.*s\" is not of the form NAME=SIZE", SF_STR_ARGS(text));
    if (size < 1)
        return sf_fail(diag, SF_EINPUT, SF_NOWHERE,
                       "mesh axis \"%.*s\" has size %" PRId64 ", less than 1", SF_STR_ARGS(name),
                       size);
    if (!sf_mul(sf_mesh_size(mesh), size, &ranks) || ranks > INT_MAX)
        return sf_fail(diag, SF_EINPUT, SF_NOWHERE, "the mesh has too many ranks");
    if (sf_mesh_axis(mesh, name) >= 0)
        return sf_fail(diag, SF_EINPUT, SF_NOWHERE, "the mesh has two axes \"%.*s\"",
                       SF_STR_ARGS(name));
    if (mesh->naxes == SF_MAX_AXES)
        return sf_fail(diag, SF_EINPUT, SF_NOWHERE, "a mesh has at most %d axes", SF_MAX_AXES);
    mesh->axes[mesh->naxes++] = (sf_axis){sf_arena_string(arena, name.at, name.length), (int)size};
    return SF_OK;
}

sf_status sf_mesh_parse(sf_str text, sf_arena *arena, sf_diag *diag, sf_mesh *out)
{
    sf_mesh mesh = {0};
    bool more;
    do {
        sf_str rest;
        sf_str axis = cut_at(text, ',', &rest);
        more = axis.length < text.length;
        SF_TRY(add_axis(axis, arena, diag, &mesh));
        text = rest;
    } while (more);
    *out = mesh;
    return SF_OK;
}

void sf_mesh_print(const sf_mesh *mesh, sf_buf *out)
{
    for (int a = 0; a < mesh->naxes; a++)
        sf_buf_printf(out, "%s%s=%d", a ? "," : "", mesh->axes[a].name, mesh->axes[a].size);
}

bool sf_axis_is_unused(const sf_axis *axis)
{
    return strncmp(axis->name, SF_UNUSED_AXIS, strlen(SF_UNUSED_AXIS)) == 0;
}

int sf_mesh_axis(const sf_mesh *mesh, sf_str name)
{
    for (int a = 0; a < mesh->naxes; a++)
        if (sf_str_is(name, mesh->axes[a].name))
            return a;
    return -1;
}

int sf_mesh_size(const sf_mesh *mesh)
{
    int size = 1;
    for (int a = 0; a < mesh->naxes; a++)
        size *= mesh->axes[a].size;
    return size;
}

/* How far apart two ranks are that differ by one in that coordinate. */
static int stride_of_axis(const sf_mesh *mesh, int axis)
{
    int step = 1;
    for (int a = axis + 1; a < mesh->naxes; a++)
        step *= mesh->axes[a].size;
    return step;
}

int sf_mesh_coordinate(const sf_mesh *mesh, int rank, int axis)
{
    return rank / stride_of_axis(mesh, axis) % mesh->axes[axis].size;
}

static bool has_axis(sf_axes axes, int axis)
{
    return axes >> axis & 1;
}

int sf_group_size(const sf_mesh *mesh, sf_axes axes)
{
    int size = 1;
    for (int a = 0; a < mesh->naxes; a++)
        if (has_axis(axes, a))
            size *= mesh->axes[a].size;
    return size;
}

int sf_group_place(const sf_mesh *mesh, sf_axes axes, int rank)
{
    int place = 0;
    for (int a = 0; a < mesh->naxes; a++)
        if (has_axis(axes, a))
            place = place * mesh->axes[a].size + sf_mesh_coordinate(mesh, rank, a);
    return place;
}

int sf_group_member(const sf_mesh *mesh, sf_axes axes, int rank, int place)
{
    for (int a = mesh->naxes - 1; a >= 0; a--) {
        if (!has_axis(axes, a))
            continue;
        int size = mesh->axes[a].size;
        rank += (place % size - sf_mesh_coordinate(mesh, rank, a)) * stride_of_axis(mesh, a);
        place /= size;
    }
    return rank;
}

void sf_mesh_put_json(const sf_mesh *mesh, sf_json_writer *json)
{
    sf_json_begin_object(json);
    for (int a = 0; a < mesh->naxes; a++) {
        sf_json_key(json, mesh->axes[a].name);
        sf_json_put_int(json, mesh->axes[a].size);
    }
    sf_json_end_object(json);
}

sf_status sf_mesh_get_json(const sf_json *json, sf_arena *arena, sf_diag *diag, sf_mesh *out)
{
    sf_buf text = {0};
    sf_status status = sf_json_kind_of(json) == SF_JSON_OBJECT ? SF_OK : SF_EINPUT;
    for (size_t a = 0; status == SF_OK && a < sf_json_count(json); a++) {
        int64_t size;
        if (sf_json_int(sf_json_value_at(json, a), &size))
            sf_buf_printf(&text, "%s%.*s=%" PRId64, a ? "," : "",
                          SF_STR_ARGS(sf_json_key_at(json, a)), size);
        else
            status = SF_EINPUT;
    }
    if (status == SF_OK)
        status = sf_mesh_parse(sf_str_of(text.text ? text.text : ""), arena, diag, out);
    else
        sf_fail(diag, status, SF_NOWHERE, "a mesh has a whole number for each axis");
    sf_buf_free(&text);
    return status;
}

const char *sf_axes_text(const sf_mesh *mesh, sf_axes axes, char text[SF_AXES_TEXT])
{
    size_t used = 0;
    text[0] = 0;
    for (int a = 0; a < mesh->naxes && used < 100; a++)
        if (axes >> a & 1)
            used += (size_t)snprintf(text + used, SF_AXES_TEXT - used, "%s%.24s", used ? "," : "",
                                     mesh->axes[a].name);
    return text;
}

int sf_group_swapped(const sf_mesh *mesh, sf_axes axes, int rank)
{
    int first = -1, second = -1;
    for (int a = 0; a < mesh->naxes; a++)
        if (axes >> a & 1) {
            second = first < 0 ? second : a;
            first = first < 0 ? a : first;
        }
    if (second < 0)
        return sf_group_place(mesh, axes, rank);
    return sf_mesh_coordinate(mesh, rank, second) * mesh->axes[second].size +
           sf_mesh_coordinate(mesh, rank, first);
}
