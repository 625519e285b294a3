#include "solve/reduce/components.h"

#include <string.h>

enum { UNSEEN = UINT32_MAX };

uint32_t sf_parts_find(const sf_problem *problem, sf_arena *scratch, uint32_t *part)
{
    sf_mark mark = sf_arena_mark(scratch);
    uint32_t *stack = SF_ARRAY(scratch, problem->nnodes, uint32_t), parts = 0;
    for (uint32_t v = 0; v < problem->nnodes; v++)
        part[v] = UNSEEN;
    for (uint32_t root = 0; root < problem->nnodes; root++) {
        if (part[root] != UNSEEN)
            continue;
        uint32_t n = 0;
        part[root] = parts;
        stack[n++] = root;
        while (n > 0) {
            uint32_t v = stack[--n];
            for (uint32_t k = problem->link_first[v]; k < problem->link_first[v + 1]; k++) {
                uint32_t other = sf_edge_other(&problem->edges[problem->links[k]], v);
                if (part[other] == UNSEEN) {
                    part[other] = parts;
                    stack[n++] = other;
                }
            }
        }
        parts++;
    }
    sf_arena_reset(scratch, mark);
    return parts;
}

static void copy_nodes(const sf_problem *from, const uint32_t *nodes, sf_arena *arena,
                       sf_problem *to)
{
    uint32_t *first = SF_ARRAY(arena, to->nnodes + 1, uint32_t);
    uint32_t *use_first = SF_ARRAY(arena, to->nnodes + 1, uint32_t);
    for (uint32_t n = 0; n < to->nnodes; n++) {
        uint32_t v = nodes[n];
        first[n + 1] = first[n] + sf_problem_count(from, v);
        use_first[n + 1] = use_first[n] + from->use_first[v + 1] - from->use_first[v];
    }
    int64_t *cost = SF_ARRAY(arena, first[to->nnodes], int64_t);
    sf_use *uses = SF_ARRAY(arena, use_first[to->nnodes], sf_use);
    for (uint32_t n = 0; n < to->nnodes; n++) {
        memcpy(cost + first[n], sf_problem_cost(from, nodes[n]),
               (first[n + 1] - first[n]) * sizeof *cost);
        for (uint32_t k = 0; k < use_first[n + 1] - use_first[n]; k++) {
            sf_use *use = &uses[use_first[n] + k];
            *use = from->uses[from->use_first[nodes[n]] + k];
            use->node = n;
        }
    }
    to->first = first;
    to->cost = cost;
    to->use_first = use_first;
    to->uses = uses;
    to->nuses = use_first[to->nnodes];
}

sf_cutter sf_cutter_new(const sf_problem *problem, sf_arena *arena)
{
    return (sf_cutter){problem, SF_ARRAY(arena, problem->nnodes, uint32_t),
                       SF_ARRAY(arena, problem->nedges, uint32_t)};
}

/* Edges get their ids at the end that comes first, so the other end finds them in cutter->id. */
static void copy_edges(sf_cutter *cutter, const uint32_t *nodes, sf_arena *arena, sf_problem *to)
{
    const sf_problem *from = cutter->problem;
    size_t room = 0;
    for (uint32_t n = 0; n < to->nnodes; n++)
        room += from->link_first[nodes[n] + 1] - from->link_first[nodes[n]];
    sf_edge *edges = SF_ARRAY(arena, room, sf_edge);
    uint32_t *links = SF_ARRAY(arena, room, uint32_t);
    uint32_t *link_first = SF_ARRAY(arena, to->nnodes + 1, uint32_t), nlinks = 0;
    for (uint32_t n = 0; n < to->nnodes; n++) {
        uint32_t v = nodes[n];
        for (uint32_t k = from->link_first[v]; k < from->link_first[v + 1]; k++) {
            uint32_t e = from->links[k];
            uint32_t a = cutter->place[from->edges[e].a], b = cutter->place[from->edges[e].b];
            if (a == 0 || b == 0)
                continue;
            if ((a < b ? a : b) == n + 1) {
                cutter->id[e] = to->nedges;
                edges[to->nedges++] = (sf_edge){a - 1, b - 1, from->edges[e].cost};
            }
            links[nlinks++] = cutter->id[e];
        }
        link_first[n + 1] = nlinks;
    }
    to->edges = edges;
    to->links = links;
    to->link_first = link_first;
}

void sf_cutter_cut(sf_cutter *cutter, const uint32_t *nodes, uint32_t count, sf_arena *arena,
                   sf_problem *out)
{
    const sf_problem *from = cutter->problem;
    *out = (sf_problem){
        .nnodes = count, .ntimes = from->ntimes, .limit = from->limit, .time = from->time};
    for (uint32_t n = 0; n < count; n++)
        cutter->place[nodes[n]] = n + 1; /* 0 is not in the part */
    copy_nodes(from, nodes, arena, out);
    copy_edges(cutter, nodes, arena, out);
    for (uint32_t n = 0; n < count; n++)
        cutter->place[nodes[n]] = 0;
}
