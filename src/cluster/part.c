#include "cluster/part.h"

#include <string.h>

#include "base/number.h"

/* Joined ------------------------------------------------------------------------------------------ */

static int find_kind(const sf_cluster *cluster, const char *name)
{
    for (int i = 0; i < cluster->nkinds; i++)
        if (strcmp(cluster->kinds[i].name, name) == 0)
            return i;
    return -1;
}

static void join_nodes(sf_cluster *out, const sf_cluster *from)
{
    for (int r = 0; r < from->nruns; r++) {
        sf_nodes *run = &out->nodes[out->nruns++];
        const sf_device_kind *kind = &from->kinds[from->nodes[r].kind];
        *run = from->nodes[r];
        run->kind = find_kind(out, kind->name);
        if (run->kind >= 0)
            continue;
        run->kind = out->nkinds;
        out->kinds[out->nkinds++] = *kind;
    }
}

sf_cluster *sf_cluster_join(sf_str name, int count, sf_cluster *const *clusters)
{
    sf_cluster *out = sf_cluster_new();
    sf_buf source = {0};
    int kinds = 0, runs = 0;
    for (int i = 0; i < count; i++) {
        kinds += clusters[i]->nkinds;
        runs += clusters[i]->nruns;
        bool known = false;
        for (int j = 0; j < i; j++)
            known = known || strcmp(clusters[j]->source, clusters[i]->source) == 0;
        if (!known)
            sf_buf_printf(&source, "%s%s", i > 0 ? "; " : "", clusters[i]->source);
    }
    out->name = sf_arena_string(&out->arena, name.at, name.length);
    out->source = sf_arena_string(&out->arena, source.text, source.length);
    out->kinds = SF_ARRAY(&out->arena, kinds, sf_device_kind);
    out->nodes = SF_ARRAY(&out->arena, runs, sf_nodes);
    for (int i = 0; i < count; i++)
        join_nodes(out, clusters[i]);
    sf_buf_free(&source);
    return out;
}

/* Parts ------------------------------------------------------------------------------------------- */

static int find_run_of_node(const sf_cluster *cluster, int node)
{
    int run = 0;
    while (node >= cluster->nodes[run].first_node + cluster->nodes[run].count)
        run++;
    return run;
}

static sf_status check_ranges(const sf_cluster *cluster, size_t count, const sf_node_range *ranges,
                              sf_diag *diag)
{
    for (size_t i = 0; i < count; i++) {
        const sf_node_range *r = &ranges[i];
        if (r->first < 0 || r->last < r->first || r->last >= cluster->nnodes)
            return sf_fail(diag, SF_EINPUT, SF_NOWHERE,
                           "the cluster has no nodes %d to %d: it has %d of them", r->first,
                           r->last, cluster->nnodes);
        int rack = cluster->rack_nodes;
        bool is_cut = rack > 0 && (r->first % rack != 0 ||
                                   ((r->last + 1) % rack != 0 && r->last + 1 != cluster->nnodes));
        if (is_cut)
            return sf_fail(diag, SF_EINPUT, SF_NOWHERE,
                           "nodes %d to %d are no whole racks of %d nodes", r->first, r->last,
                           rack);
        for (size_t j = 0; j < i; j++)
            if (r->first <= ranges[j].last && ranges[j].first <= r->last)
                return sf_fail(diag, SF_EINPUT, SF_NOWHERE, "node %d is listed twice",
                               r->first > ranges[j].first ? r->first : ranges[j].first);
    }
    return count > 0 ? SF_OK
                     : sf_fail(diag, SF_EINPUT, SF_NOWHERE, "part of a cluster has no nodes");
}

static void take_range(const sf_cluster *cluster, const sf_node_range *range, sf_cluster *out)
{
    for (int node = range->first; node <= range->last;) {
        sf_nodes run = cluster->nodes[find_run_of_node(cluster, node)];
        int end = run.first_node + run.count;
        run.count = (range->last + 1 < end ? range->last + 1 : end) - node;
        out->nodes[out->nruns++] = run;
        node += run.count;
    }
}

sf_status sf_cluster_part(const sf_cluster *cluster, size_t count, const sf_node_range *ranges,
                          sf_arena *arena, sf_diag *diag, sf_cluster **out)
{
    SF_TRY(check_ranges(cluster, count, ranges, diag));
    sf_cluster *part = sf_arena_copy(arena, cluster, sizeof *cluster);
    part->arena = (sf_arena){0};
    part->whole = cluster;
    part->nruns = 0;
    part->nodes = SF_ARRAY(arena, (size_t)cluster->nruns + count, sf_nodes);
    for (size_t i = 0; i < count; i++)
        take_range(cluster, &ranges[i], part);
    *out = part;
    return sf_cluster_finish(part, SF_NOWHERE, diag);
}

/* Text -------------------------------------------------------------------------------------------- */

void sf_node_ranges_text(size_t count, const sf_node_range *ranges, sf_buf *out)
{
    for (size_t i = 0; i < count; i++) {
        sf_buf_printf(out, "%s%d", i > 0 ? "," : "", ranges[i].first);
        if (ranges[i].last > ranges[i].first)
            sf_buf_printf(out, "-%d", ranges[i].last);
    }
}

static sf_str cut_word(sf_str *text, char at)
{
    const char *found = memchr(text->at, at, text->length);
    size_t length = found ? (size_t)(found - text->at) : text->length;
    sf_str word = {text->at, length};
    size_t used = found ? length + 1 : length;
    *text = (sf_str){text->at + used, text->length - used};
    return word;
}

static bool read_range(sf_str text, sf_node_range *out)
{
    int64_t first, last;
    sf_str begin = cut_word(&text, '-');
    if (!sf_number_int(begin, &first) || !sf_number_int(text.length > 0 ? text : begin, &last))
        return false;
    if (first < 0 || last < first || last >= SF_MAX_DEVICES)
        return false;
    *out = (sf_node_range){(int)first, (int)last};
    return true;
}

sf_status sf_cluster_part_of(const sf_cluster *cluster, sf_str nodes, sf_arena *arena,
                             sf_diag *diag, sf_cluster **out)
{
    sf_node_range *ranges = NULL;
    size_t count = 0, capacity = 0;
    sf_str rest = nodes;
    while (rest.length > 0) {
        sf_node_range range;
        if (!read_range(cut_word(&rest, ','), &range) || count >= (size_t)cluster->nnodes)
            return sf_fail(diag, SF_EINPUT, SF_NOWHERE,
                           "\"%.*s\" are no nodes of a cluster, such as \"0-3,6\"",
                           SF_STR_ARGS(nodes));
        SF_PUSH(arena, ranges, count, capacity, range);
    }
    return sf_cluster_part(cluster, count, ranges, arena, diag, out);
}
