#include "search/meshes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

enum { MOST_BOUNDARIES = 2, MOST_LISTED = 4096 };

typedef struct ranked_mesh {
    sf_mesh mesh;
    double distance; /* of its cuts from boundaries */
    int order;
} ranked_mesh;

typedef struct lister {
    int devices;
    int nboundaries, boundaries[MOST_BOUNDARIES]; /* devices of a node, of a rack */
    int naxes;
    sf_arena *arena;
    ranked_mesh *found;
    size_t count, capacity;
} lister;

static void add_boundary(lister *l, int64_t devices)
{
    if (devices > 1 && devices < l->devices)
        l->boundaries[l->nboundaries++] = (int)devices;
}

/* Where nodes differ in size, what divides all of them stays inside of each. */
static void find_boundaries(lister *l, const sf_cluster *cluster)
{
    int node = 0;
    bool equal = true;
    for (int i = 0; i < cluster->nruns; i++) {
        node = (int)sf_gcd(node, cluster->nodes[i].devices);
        equal = equal && cluster->nodes[i].devices == cluster->nodes[0].devices;
    }
    add_boundary(l, node);
    if (equal && cluster->rack_nodes > 1)
        add_boundary(l, (int64_t)node * cluster->rack_nodes);
}

static bool is_aligned(const lister *l, int64_t stride, int64_t size)
{
    int64_t end = stride * size;
    for (int i = 0; i < l->nboundaries; i++) {
        int b = l->boundaries[i];
        bool inside = b % end == 0, between = stride % b == 0;
        bool across = b % stride == 0 && end % b == 0;
        if (!inside && !between && !across)
            return false;
    }
    return true;
}

/* The level that the range of strides is within, or -1 when it goes beyond one. */
static int level_of(const lister *l, int64_t stride, int64_t size)
{
    int level = 0;
    for (int i = 0; i < l->nboundaries; i++) {
        if (stride >= l->boundaries[i])
            level = i + 1;
        else if (stride * size > l->boundaries[i])
            return -1;
    }
    return level;
}

/* How many doublings the cut between two axes is away from the nearest boundary. */
static double distance_of(const lister *l, int64_t cut)
{
    double least = HUGE_VAL;
    for (int i = 0; i < l->nboundaries; i++)
        least = fmin(least, fabs(log2((double)cut / l->boundaries[i])));
    return l->nboundaries ? least : log2((double)cut);
}

static void keep_mesh(lister *l, const int *sizes)
{
    ranked_mesh ranked = {.mesh.naxes = l->naxes, .order = (int)l->count};
    int64_t stride = 1;
    for (int a = l->naxes - 1; a >= 0; a--) {
        ranked.mesh.axes[a] = (sf_axis){SF_FREE_AXIS, sizes[a]};
        stride *= sizes[a];
        if (a > 0)
            ranked.distance += distance_of(l, stride);
    }
    SF_PUSH(l->arena, l->found, l->count, l->capacity, ranked);
}

/* Fills sizes[0 .. axis], the strides of the axes behind them being settled. */
static void list_from(lister *l, int axis, int64_t stride, int *sizes)
{
    int64_t left = l->devices / stride;
    if (axis < 0) {
        if (left == 1 && l->count < MOST_LISTED)
            keep_mesh(l, sizes);
        return;
    }
    for (int size = axis == 0 && left > 1 ? (int)left : 2; size <= left; size++) {
        if (left % size != 0 || !is_aligned(l, stride, size))
            continue;
        int level = level_of(l, stride, size);
        if (axis + 1 < l->naxes && level >= 0 && size < sizes[axis + 1] &&
            level == level_of(l, stride / sizes[axis + 1], sizes[axis + 1]))
            continue;
        sizes[axis] = size;
        list_from(l, axis - 1, stride * size, sizes);
    }
}

static int by_distance(const void *left, const void *right)
{
    const ranked_mesh *a = left, *b = right;
    if (a->distance != b->distance)
        return a->distance < b->distance ? -1 : 1;
    return a->order - b->order;
}

bool sf_meshes_can_idle(const sf_cluster *cluster, int unused)
{
    bool equal = true;
    for (int i = 1; i < cluster->nruns; i++)
        equal = equal && cluster->nodes[i].devices == cluster->nodes[0].devices &&
                cluster->nodes[i].kind == cluster->nodes[0].kind;
    return equal && unused >= 1 && unused <= cluster->ndevices && cluster->ndevices % unused == 0;
}

static sf_mesh with_idle(const sf_mesh *mesh, int unused)
{
    sf_mesh out = {.naxes = mesh->naxes + 1, .axes = {{SF_UNUSED_AXIS, unused}}};
    for (int a = 0; a < mesh->naxes; a++)
        out.axes[a + 1] = mesh->axes[a];
    return out;
}

sf_meshes sf_meshes_of(const sf_cluster *cluster, int unused, int naxes, int most, sf_arena *arena)
{
    lister l = {.devices = cluster->ndevices / unused, .naxes = naxes, .arena = arena};
    int sizes[3] = {1, 1, 1};
    find_boundaries(&l, cluster);
    if (l.devices == 1 && naxes == 1)
        keep_mesh(&l, sizes);
    else
        list_from(&l, naxes - 1, 1, sizes);
    if (l.count > 1)
        qsort(l.found, l.count, sizeof *l.found, by_distance);
    sf_meshes meshes = {.count = l.count < (size_t)most ? (int)l.count : most};
    meshes.at = SF_ARRAY(arena, meshes.count, sf_mesh);
    for (int i = 0; i < meshes.count; i++)
        meshes.at[i] = unused > 1 ? with_idle(&l.found[i].mesh, unused) : l.found[i].mesh;
    return meshes;
}

bool sf_axis_is_free(const sf_axis *axis)
{
    return strcmp(axis->name, SF_FREE_AXIS) == 0;
}

typedef struct namer {
    int nnames;
    const char *const *names;
    sf_arena *arena;
    sf_mesh *found;
    size_t count, capacity;
} namer;

/* Gives the names from number `at` on. */
static void give_names(namer *n, sf_mesh mesh, int at)
{
    if (at == n->nnames) {
        SF_PUSH(n->arena, n->found, n->count, n->capacity, mesh);
        return;
    }
    for (int a = 0; a < mesh.naxes; a++) {
        sf_mesh named = mesh;
        if (!sf_axis_is_free(&mesh.axes[a]))
            continue;
        named.axes[a].name = n->names[at];
        give_names(n, named, at + 1);
    }
}

sf_meshes sf_meshes_named(const sf_meshes *meshes, int nnames, const char *const *names,
                          sf_arena *arena)
{
    namer n = {.nnames = nnames, .names = names, .arena = arena};
    for (int i = 0; i < meshes->count; i++)
        give_names(&n, meshes->at[i], 0);
    return (sf_meshes){(int)n.count, n.found};
}
