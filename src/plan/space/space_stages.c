/* Parts and stages. A part is the ops that the same assignments and the same orders name. Ops
 * without an assignment go with their neighbours, before orders separate them. */
#include <inttypes.h>
#include <string.h>

#include "ir/name.h"
#include "plan/op_selector.h"
#include "plan/pipeline/stage_label.h"
#include "plan/space/space_builder.h"

enum { MOST_STAGES = 1024 };

bool space_is_of(const making *m, uint32_t label, size_t said)
{
    for (uint32_t at = label + 1; at != 0; at = m->pieces[at - 1].before)
        if (m->pieces[at - 1].said == said)
            return true;
    return false;
}

/* The label of ops that have `label` and are named by `said`. */
static uint32_t refine(making *m, uint32_t label, size_t said)
{
    uint32_t before = label == SF_NONE ? 0 : label + 1;
    for (size_t i = 0; i < m->npieces; i++)
        if (m->pieces[i].before == before && m->pieces[i].said == said)
            return (uint32_t)i;
    shard it = {before, said};
    SF_PUSH(m->arena, m->pieces, m->npieces, m->piece_capacity, it);
    return (uint32_t)m->npieces - 1;
}

static sf_status refine_by(making *m, const char *patterns, size_t said, uint32_t *labels)
{
    sf_ops ops;
    SF_TRY(sf_ops_find(m->space->graph, patterns, m->arena, m->diag, &ops));
    for (size_t i = 0; i < ops.count; i++) {
        uint32_t *label = &labels[ops.at[i]->id];
        if (*label == SF_NONE || !space_is_of(m, *label, said))
            *label = refine(m, *label, said);
    }
    return SF_OK;
}

static bool says_the_same(const sf_said_assign *a, const sf_said_assign *b)
{
    return a->microbatch == b->microbatch && a->count == b->count &&
           memcmp(a->devices, b->devices, (size_t)a->count * sizeof *a->devices) == 0;
}

/* By the first assignment of each set of devices, so that ops on the same ones have the same label. */
static sf_status refine_by_assigns(making *m, uint32_t *labels)
{
    const sf_space *space = m->space;
    bool *done = SF_ARRAY(m->arena, space->nassigns + 1, bool);
    for (size_t i = 0; i < space->nassigns; i++)
        for (size_t j = i; j < space->nassigns && !done[i]; j++)
            if (says_the_same(&space->assigns[i], &space->assigns[j])) {
                SF_TRY(refine_by(m, space->assigns[j].ops, i, labels));
                done[j] = j > i;
            }
    return SF_OK;
}

static sf_labelled cut(making *m, const uint32_t *labels)
{
    sf_labelled found = sf_cut_by_labels(m->space->graph, labels, m->arena);
    m->nstages = found.count;
    m->forward = found.forward;
    m->label = found.label;
    return found;
}

/* Ops that orders speak of have the devices of the stage that they would be in without. */
static sf_status refine_by_orders(making *m, uint32_t *labels)
{
    const sf_graph *graph = m->space->graph;
    sf_labelled by_assigns = cut(m, labels);
    for (size_t i = 0; i < m->nnames; i++) {
        sf_ops ops;
        SF_TRY(sf_ops_find(graph, m->names[i], m->arena, m->diag, &ops));
        for (size_t o = 0; o < ops.count; o++) {
            uint32_t node = ops.at[o]->id, stage = by_assigns.forward[node];
            if (labels[node] == SF_NONE && stage != SF_NONE)
                labels[node] = by_assigns.label[stage];
        }
    }
    for (size_t i = 0; i < m->nnames; i++)
        SF_TRY(refine_by(m, m->names[i], m->space->nassigns + i, labels));
    if (m->nnames > 0)
        cut(m, labels);
    return SF_OK;
}

static void note_name(making *m, const char *ops)
{
    for (size_t i = 0; i < m->nnames; i++)
        if (strcmp(m->names[i], ops) == 0)
            return;
    SF_PUSH(m->arena, m->names, m->nnames, m->name_capacity, ops);
}

sf_status space_find_stages(making *m)
{
    const sf_space *space = m->space;
    uint32_t *labels = SF_ARRAY(m->arena, space->graph->nnodes, uint32_t);
    for (uint32_t n = 0; n < space->graph->nnodes; n++)
        labels[n] = SF_NONE;
    SF_TRY(refine_by_assigns(m, labels));
    for (size_t i = 0; i < space->norders; i++) {
        note_name(m, space->orders[i].before.ops);
        note_name(m, space->orders[i].after.ops);
    }
    SF_TRY(refine_by_orders(m, labels));
    if (m->nstages > MOST_STAGES)
        return sf_fail(m->diag, SF_EUSAGE, SF_NOWHERE,
                       "data goes back and forth between what is placed, or ordered, by itself: "
                       "that would be %" PRIu32 " stages, and there are at most %d",
                       m->nstages, MOST_STAGES);
    return SF_OK;
}
