/* Meshes: how ranks are named by coordinates.
 *
 * A mesh has named axes; ranks are numbered row-major, the last axis running fastest. A set of axes
 * cuts the mesh into groups: ranks that differ only in those coordinates. A group is ordered by
 * them, row-major too, so every member can compute the others.
 *
 *     data=2,model=3      rank = data * 3 + model
 *     groups of {model}   {0 1 2} {3 4 5}
 *     groups of {data}    {0 3} {1 4} {2 5} */
#ifndef SF_SHARD_MESH_H
#define SF_SHARD_MESH_H

#include "base/diag.h"
#include "base/json.h"
#include "base/str.h"

enum { SF_MAX_AXES = 4 };

/* The name of axes along which ranks compute the same on purpose: this, or this and a number. */
#define SF_UNUSED_AXIS "unused"

/* A set of axes: bit a is axis a. */
typedef uint32_t sf_axes;

typedef struct sf_axis {
    const char *name;
    int size; /* at least 1 */
} sf_axis;

typedef struct sf_mesh {
    int naxes;
    sf_axis axes[SF_MAX_AXES];
} sf_mesh;

/* Reads "data=2,model=4". Names are letters, digits and _ and all different. They live in the
 * arena. */
sf_status sf_mesh_parse(sf_str text, sf_arena *arena, sf_diag *diag, sf_mesh *out);

/* Writes the form that sf_mesh_parse reads. */
void sf_mesh_print(const sf_mesh *mesh, sf_buf *out);

/* The same as JSON, {"data": 2, "model": 4}. */
void sf_mesh_put_json(const sf_mesh *mesh, sf_json_writer *json);
sf_status sf_mesh_get_json(const sf_json *json, sf_arena *arena, sf_diag *diag, sf_mesh *out);

/* Whether it has such a name. */
bool sf_axis_is_unused(const sf_axis *axis);

/* The axis of that name, or -1. */
int sf_mesh_axis(const sf_mesh *mesh, sf_str name);

/* The names of the axes of a set, joined with commas, cut where they are too long; `text` is returned. */
enum { SF_AXES_TEXT = 128 };
const char *sf_axes_text(const sf_mesh *mesh, sf_axes axes, char text[SF_AXES_TEXT]);

/* Ranks in all. */
int sf_mesh_size(const sf_mesh *mesh);

int sf_mesh_coordinate(const sf_mesh *mesh, int rank, int axis);

/* The group of `rank` along the axes: its size, the place of the rank in it, and its members. */
int sf_group_size(const sf_mesh *mesh, sf_axes axes);
int sf_group_place(const sf_mesh *mesh, sf_axes axes, int rank);
int sf_group_member(const sf_mesh *mesh, sf_axes axes, int rank, int place);

/* Of a set of two axes of one size: the place in the group of the rank whose coordinates along them are those of
 * `rank`, exchanged. */
int sf_group_swapped(const sf_mesh *mesh, sf_axes axes, int rank);

#endif
