/* Lays a mesh on a cluster: finds, for each set of axes, the different shapes that its groups have. That is
 * usually one; nodes that differ, and groups that do not divide evenly over nodes, make more. */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "cluster/group_shape.h"

/* A node as the mesh sees it. */
typedef struct node {
    int rack;
    double latency[SF_LEVELS]; /* of messages of its devices on that level */
    double own[SF_LEVELS];     /* bandwidth that is left to each */
    double peer;               /* most of own[0] that goes to one other */
} node;

typedef struct layer {
    const sf_cluster *cluster;
    sf_costs *costs;
    sf_arena *arena;
    int *node_of; /* by rank */
    node *nodes;  /* from the first node of the mesh on */
    int axis, at; /* only ranks that have this coordinate are looked at; -1: all are */
} layer;

static double share_of_link(const sf_link *link, int users)
{
    return link->lanes == 0 || link->lanes >= users
               ? link->bandwidth
               : link->bandwidth * (double)link->lanes / (double)users;
}

static void add_devices(sf_costs *costs, const sf_device_kind *kind, int count)
{
    int i = 0;
    while (i < costs->nkinds && costs->kinds[i] != kind)
        i++;
    costs->counts[i] += count;
    if (i < costs->nkinds)
        return;
    costs->kinds[costs->nkinds++] = kind;
    if (costs->memory > kind->memory - kind->reserve)
        costs->memory = kind->memory - kind->reserve;
}

/* Whether the rank, or the group of ranks along some axes that begins with it, is looked at. */
static bool is_looked_at(const layer *on, int rank)
{
    if (on->axis < 0)
        return true;
    int stride = 1;
    for (int a = on->costs->naxes - 1; a > on->axis; a--)
        stride *= on->costs->sizes[a];
    return rank / stride % on->costs->sizes[on->axis] == on->at;
}

/* Traffic that leaves a rack has passed the network of its node, so it is no faster than that. */
static void describe_nodes(layer *on, int first)
{
    const sf_cluster *cluster = on->cluster;
    int ranks = on->costs->size;
    int first_node = sf_cluster_place(cluster, first).node;
    int nnodes = sf_cluster_place(cluster, first + ranks - 1).node - first_node + 1;
    int *in_node = SF_ARRAY(on->arena, nnodes, int), *in_rack = SF_ARRAY(on->arena, nnodes, int);
    int *runs = SF_ARRAY(on->arena, nnodes, int), *seen = SF_ARRAY(on->arena, nnodes, int);
    on->nodes = SF_ARRAY(on->arena, nnodes, node);
    on->node_of = SF_ARRAY(on->arena, ranks, int);
    int first_rack = sf_cluster_place(cluster, first).rack;
    for (int rank = 0; rank < ranks; rank++) {
        sf_device_place place = sf_cluster_place(cluster, first + rank);
        int at = place.node - first_node;
        on->node_of[rank] = at;
        on->nodes[at].rack = place.rack - first_rack;
        runs[at] = place.run;
        in_node[at]++;
        seen[at] += is_looked_at(on, rank);
        in_rack[place.rack - first_rack]++;
    }
    for (int i = 0; i < nnodes; i++) {
        const sf_nodes *run = &cluster->nodes[runs[i]];
        node *n = &on->nodes[i];
        if (seen[i] > 0)
            add_devices(on->costs, &cluster->kinds[run->kind], seen[i]);
        on->costs->differs = on->costs->differs || runs[i] != runs[0];
        n->latency[0] = run->inside.latency;
        n->latency[1] = run->network.latency;
        n->latency[2] = fmax(run->network.latency, cluster->uplink.latency);
        n->own[0] = share_of_link(&run->inside, in_node[i]);
        n->peer = run->inside.peer > 0 ? run->inside.peer : n->own[0];
        n->own[1] = share_of_link(&run->network, in_node[i]);
        n->own[2] = fmin(n->own[1], share_of_link(&cluster->uplink, in_rack[n->rack]));
    }
}

/* One level of a group while its members are counted. */
typedef struct survey {
    bool spanned;
    double latency, own, together;
    int least, most; /* members below a port of the level above */
} survey;

static void see_level(survey *s, double latency, double own, int members)
{
    bool first = !s->spanned;
    s->spanned = true;
    s->latency = first ? latency : fmax(s->latency, latency);
    s->own = first ? own : fmin(s->own, own);
    s->together = first ? members * own : fmin(s->together, members * own);
}

static void count_members(survey *s, int members)
{
    s->least = s->most == 0 || members < s->least ? members : s->least;
    s->most = members > s->most ? members : s->most;
}

/* The part of a group in one rack. */
typedef struct rack {
    int members, nodes;
    double latency, own; /* on level 2 */
} rack;

static void add_node_members(const node *n, int members, bool more_nodes, survey levels[SF_LEVELS],
                             rack *in)
{
    if (members > 1)
        see_level(&levels[0], n->latency[0], fmin(n->own[0], (members - 1) * n->peer), 1);
    if (more_nodes)
        see_level(&levels[1], n->latency[1], n->own[1], members);
    count_members(&levels[0], members);
    in->own = in->nodes == 0 ? n->own[2] : fmin(in->own, n->own[2]);
    in->latency = fmax(in->latency, n->latency[2]);
    in->members += members;
    in->nodes++;
}

/* How many of the ranks from the first on are in its node, and how many in its rack. */
static int count_in_node(const layer *on, const int *ranks, int members)
{
    int here = 1;
    while (here < members && on->node_of[ranks[here]] == on->node_of[ranks[0]])
        here++;
    return here;
}

static int count_in_rack(const layer *on, const int *ranks, int members)
{
    int id = on->nodes[on->node_of[ranks[0]]].rack, here = 1;
    while (here < members && on->nodes[on->node_of[ranks[here]]].rack == id)
        here++;
    return here;
}

static rack survey_rack(const layer *on, const int *ranks, int members, survey levels[SF_LEVELS])
{
    rack in = {0};
    bool more_nodes = count_in_node(on, ranks, members) < members;
    while (in.members < members) {
        const int *rest = ranks + in.members;
        int here = count_in_node(on, rest, members - in.members);
        add_node_members(&on->nodes[on->node_of[rest[0]]], here, more_nodes, levels, &in);
    }
    return in;
}

/* `ranks` increase, so the members in a node, and the nodes in a rack, follow each other. Returns whether
 * the members divide evenly; sizes are those of levels. */
static bool survey_group(const layer *on, const int *ranks, int members, survey levels[SF_LEVELS],
                         int sizes[SF_LEVELS])
{
    int racks = 0, least_nodes = INT_MAX, most_nodes = 0;
    bool more_racks = count_in_rack(on, ranks, members) < members;
    for (int at = 0; at < members; racks++) {
        int here = count_in_rack(on, ranks + at, members - at);
        rack in = survey_rack(on, ranks + at, here, levels);
        if (more_racks)
            see_level(&levels[2], in.latency, in.own, in.members);
        count_members(&levels[1], in.members);
        least_nodes = in.nodes < least_nodes ? in.nodes : least_nodes;
        most_nodes = in.nodes > most_nodes ? in.nodes : most_nodes;
        at += here;
    }
    sizes[0] = levels[0].most;
    sizes[1] = most_nodes;
    sizes[2] = racks;
    return levels[0].least == levels[0].most && least_nodes == most_nodes;
}

/* Who has the fewest beside it has the most to reach outside. */
static void count_reached(const survey levels[SF_LEVELS], int members, int reached[SF_LEVELS])
{
    reached[0] = levels[0].most - 1;
    reached[1] = levels[1].most - levels[0].least;
    reached[2] = members - levels[1].least;
}

static sf_shape make_group_shape(const layer *on, const int *ranks, int members)
{
    survey levels[SF_LEVELS] = {0};
    sf_shape s = {.members = members};
    int reached[SF_LEVELS];
    s.even = survey_group(on, ranks, members, levels, s.sizes);
    count_reached(levels, members, reached);
    for (int l = 0; l < SF_LEVELS; l++)
        if (levels[l].spanned)
            s.levels[s.nlevels++] = (sf_level){.level = l,
                                               .size = s.sizes[l],
                                               .reached = reached[l],
                                               .latency = levels[l].latency,
                                               .own = levels[l].own,
                                               .together = levels[l].together};
    return s;
}

static void find_measured(const sf_cluster *cluster, sf_shape *s)
{
    for (int i = 0; i < cluster->nmeasured && s->even; i++) {
        const sf_measured *measured = &cluster->measured[i];
        if (memcmp(measured->shape, s->sizes, sizeof s->sizes) == 0)
            s->measured[measured->kind] = &measured->curve;
    }
}

static bool same_level(const sf_level *a, const sf_level *b)
{
    return a->level == b->level && a->size == b->size && a->reached == b->reached &&
           a->latency == b->latency && a->own == b->own && a->together == b->together;
}

static bool same_shape(const sf_shape *a, const sf_shape *b)
{
    if (a->nlevels != b->nlevels || a->even != b->even ||
        memcmp(a->sizes, b->sizes, sizeof a->sizes) != 0)
        return false;
    for (int l = 0; l < a->nlevels; l++)
        if (!same_level(&a->levels[l], &b->levels[l]))
            return false;
    return true;
}

static void add_shape(const layer *on, sf_shapes *g, sf_shape s)
{
    for (size_t i = 0; i < g->count; i++)
        if (same_shape(&g->shapes[i], &s))
            return;
    find_measured(on->cluster, &s);
    SF_PUSH(on->arena, g->shapes, g->count, g->capacity, s);
}

/* The ranks that have 0 as their coordinate on every axis out of the set, in increasing order. */
static int list_ranks(const sf_costs *costs, uint32_t axes, int *ranks)
{
    int total = 1;
    ranks[0] = 0;
    for (int a = 0, stride = costs->size; a < costs->naxes; a++) {
        stride /= costs->sizes[a];
        if (!(axes >> a & 1))
            continue;
        /* Backwards, as each rank makes way for those that come from it. */
        for (int i = total - 1; i >= 0; i--)
            for (int c = costs->sizes[a] - 1; c >= 0; c--)
                ranks[i * costs->sizes[a] + c] = ranks[i] + c * stride;
        total *= costs->sizes[a];
    }
    return total;
}

static void add_groups(const layer *on, uint32_t axes, int *offsets, int *bases, int *ranks)
{
    sf_costs *costs = on->costs;
    uint32_t all = (1U << costs->naxes) - 1;
    int members = list_ranks(costs, axes, offsets), ngroups = list_ranks(costs, all & ~axes, bases);
    bool along = on->axis >= 0 && axes >> on->axis & 1;
    for (int g = 0; g < ngroups; g++) {
        if (!along && !is_looked_at(on, bases[g]))
            continue;
        for (int i = 0; i < members; i++)
            ranks[i] = bases[g] + offsets[i];
        add_shape(on, &costs->groups[axes], make_group_shape(on, ranks, members));
    }
}

static sf_status measure_mesh(const sf_cluster *cluster, int naxes, const int *sizes, int first,
                              sf_diag *diag, int *out)
{
    int64_t size = 1, end = 0;
    for (int a = 0; a < naxes; a++)
        if (sizes[a] < 1 || !sf_mul(size, sizes[a], &size))
            return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "a mesh has no axis of size %d", sizes[a]);
    if (first < 0 || !sf_add(first, size, &end) || end > cluster->ndevices)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE,
                       "the mesh needs %lld devices from number %d on, and the cluster has %d",
                       (long long)size, first, cluster->ndevices);
    *out = (int)size;
    return SF_OK;
}

static sf_costs *lay_mesh(const sf_cluster *cluster, const sf_costs *like, int axis, int at,
                          sf_arena *arena)
{
    sf_costs *costs = SF_NEW(arena, sf_costs);
    *costs = (sf_costs){.naxes = like->naxes,
                        .size = like->size,
                        .cluster = cluster,
                        .first = like->first,
                        .memory = INT64_MAX};
    memcpy(costs->sizes, like->sizes, sizeof costs->sizes);
    costs->kinds = SF_ARRAY(arena, cluster->nkinds, const sf_device_kind *);
    costs->counts = SF_ARRAY(arena, cluster->nkinds, int);
    layer on = {.cluster = cluster, .costs = costs, .arena = arena, .axis = axis, .at = at};
    describe_nodes(&on, costs->first);
    int *offsets = SF_ARRAY(arena, costs->size, int), *bases = SF_ARRAY(arena, costs->size, int);
    int *ranks = SF_ARRAY(arena, costs->size, int);
    for (uint32_t axes = 0; axes < 1U << costs->naxes; axes++)
        add_groups(&on, axes, offsets, bases, ranks);
    return costs;
}

sf_status sf_costs_new(const sf_cluster *cluster, int naxes, const int *sizes, int first,
                       sf_arena *arena, sf_diag *diag, sf_costs **out)
{
    SF_ASSERT(naxes >= 0 && naxes <= SF_COSTS_AXES);
    sf_costs mesh = {.naxes = naxes, .first = first};
    SF_TRY(measure_mesh(cluster, naxes, sizes, first, diag, &mesh.size));
    if (naxes > 0)
        memcpy(mesh.sizes, sizes, (size_t)naxes * sizeof *sizes);
    *out = lay_mesh(cluster, &mesh, -1, 0, arena);
    return SF_OK;
}

const sf_costs *sf_costs_at(const sf_costs *costs, int axis, int at, sf_arena *arena)
{
    return costs->differs ? lay_mesh(costs->cluster, costs, axis, at, arena) : costs;
}
