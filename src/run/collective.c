#include "run/collective.h"

#include <string.h>

#include "base/machine.h"
#include "op/op.h"
#include "op/slots.h"

static sf_status find_group(sf_collectives *c, sf_axes axes, sf_diag *diag, sf_group **out)
{
    sf_group **slot = &c->groups[axes];
    if (!*slot) {
        int rank = sf_comm_rank(c->comm), count = sf_group_size(c->mesh, axes);
        sf_arena scratch = {0};
        int *ranks = SF_ARRAY(&scratch, count, int);
        for (int place = 0; place < count; place++)
            ranks[place] = sf_group_member(c->mesh, axes, rank, place);
        sf_status status = sf_comm_group(c->comm, ranks, count, diag, slot);
        sf_arena_free(&scratch);
        SF_TRY(status);
    }
    *out = *slot;
    return SF_OK;
}

static sf_collective kind_of(const sf_node *node)
{
    return sf_is(node, SF_OP_ALL_REDUCE)       ? SF_ALL_REDUCE
           : sf_is(node, SF_OP_ALL_GATHER)     ? SF_ALL_GATHER
           : sf_is(node, SF_OP_REDUCE_SCATTER) ? SF_REDUCE_SCATTER
           : sf_is(node, SF_OP_ALL_TO_ALL)     ? SF_ALL_TO_ALL
                                               : SF_PERMUTE;
}

/* The place, in the group of both axes, of the rank whose coordinates along them are ours exchanged. */
static int swapped_place(const sf_mesh *mesh, sf_axes axes, int rank)
{
    int first = -1, second = -1;
    for (int a = 0; a < mesh->naxes; a++)
        if (axes >> a & 1) {
            second = first < 0 ? second : a;
            first = first < 0 ? a : first;
        }
    return sf_mesh_coordinate(mesh, rank, second) * mesh->axes[second].size +
           sf_mesh_coordinate(mesh, rank, first);
}

/* A group of one: the operands are the results. */
static void copy(const sf_graph *graph, const sf_node *node, char *const *in, char *const *out)
{
    for (uint32_t i = 0; i < node->nresults; i++)
        if (in[i] != out[i])
            memcpy(out[i], in[i], (size_t)sf_type_bytes(sf_type_of(graph, node->result + i)));
}

sf_status sf_collective_start(sf_collectives *c, const sf_graph *graph, const sf_node *node,
                              char *const *in, char *const *out, sf_diag *diag,
                              sf_request **request)
{
    sf_axes axes = (sf_axes)node->attrs[SF_COLLECTIVE_AXES]->integer;
    *request = NULL;
    if (node->attrs[SF_COLLECTIVE_SIZE]->integer == 1) {
        copy(graph, node, in, out);
        return SF_OK;
    }
    if (!c->comm || axes >> c->mesh->naxes)
        return sf_fail(diag, SF_EUSAGE, node->loc, "the %s needs the ranks of its group",
                       node->def->name);
    sf_group *group;
    SF_TRY(find_group(c, axes, diag, &group));
    sf_transfer transfer = {
        .kind = kind_of(node),
        .dtype = sf_type_of(graph, node->result)->dtype,
        .nparts = (int)node->nresults,
        .what = node->attrs[SF_COLLECTIVE_WHAT] ? node->attrs[SF_COLLECTIVE_WHAT]->text : "",
    };
    if (transfer.kind == SF_ALL_REDUCE || transfer.kind == SF_REDUCE_SCATTER)
        transfer.monoid = (sf_monoid)node->attrs[SF_COLLECTIVE_BODY]->integer;
    if (transfer.kind == SF_PERMUTE)
        transfer.to = transfer.from = swapped_place(c->mesh, axes, sf_comm_rank(c->comm));
    sf_arena scratch = {0};
    sf_transfer_part *parts = SF_ARRAY(&scratch, node->nresults, sf_transfer_part);
    for (uint32_t i = 0; i < node->nresults; i++) {
        int64_t count = sf_type_of(graph, node->result + i)->count;
        if (transfer.kind == SF_ALL_GATHER || transfer.kind == SF_ALL_TO_ALL)
            count /= sf_comm_group_size(group);
        parts[i] = (sf_transfer_part){.in = in[i], .out = out[i], .count = count};
    }
    transfer.parts = parts;
    sf_status status = sf_comm_start(group, &transfer, diag, request);
    sf_arena_free(&scratch);
    return status;
}

void sf_collectives_add(sf_collectives *c, sf_flight flight)
{
    c->flights[c->nflights++] = flight;
}

sf_status sf_collectives_wait(sf_collectives *c, uint32_t before, double *seconds, sf_diag *diag)
{
    uint32_t kept = 0;
    sf_status status = SF_OK;
    for (uint32_t i = 0; i < c->nflights; i++) {
        sf_flight flight = c->flights[i];
        if (status != SF_OK || flight.until > before) {
            c->flights[kept++] = flight;
            continue;
        }
        double start = sf_now();
        status = sf_comm_wait(flight.request, diag);
        seconds[flight.inst] += sf_now() - start;
    }
    c->nflights = kept;
    return status;
}

void sf_collectives_drop(sf_collectives *c, sf_diag *diag)
{
    if (c->nflights == 0)
        return;
    const char *why = sf_diag_text(diag, 0);
    sf_diag unheard = {0};
    sf_comm_abort(c->comm, why ? why : "it failed");
    for (uint32_t i = 0; i < c->nflights; i++)
        sf_comm_wait(c->flights[i].request, &unheard);
    sf_diag_clear(&unheard);
    c->nflights = 0;
}
