/* Groups: sets of devices that share none. A stage is on one of them, or on several together. */
#include <inttypes.h>
#include <string.h>

#include "ir/name.h"
#include "plan/space/space_builder.h"

static void put_devices(int count, const int *devices, sf_buf *out)
{
    enum { SHOWN = 8 };
    for (int i = 0; i < count && i < SHOWN; i++)
        sf_buf_printf(out, "%s%d", i ? ", " : "", devices[i]);
    sf_buf_puts(out, count > SHOWN ? ", ..." : "");
}

/* A node of the stage, for a message. */
static const char *name_stage(const making *m, uint32_t stage, sf_buf *out)
{
    const sf_graph *graph = m->space->graph;
    for (uint32_t n = 0; n < graph->nnodes; n++)
        if (m->forward[n] == stage)
            return sf_value_name(graph, graph->nodes[n]->result, out);
    return "";
}

/* The assignment of the stage in the micro-batch: one of the micro-batch, else one of all; SF_NONE:
 * none. */
static sf_status find_assign(const making *m, uint32_t stage, uint32_t microbatch, size_t *out)
{
    const sf_space *space = m->space;
    for (int every = 0; every < 2; every++) {
        *out = SIZE_MAX;
        for (size_t i = 0; i < space->nassigns; i++) {
            bool about = space->assigns[i].microbatch == (every ? SF_EVERY : (int)microbatch);
            if (!about || m->label[stage] == SF_NONE || !space_is_of(m, m->label[stage], i))
                continue;
            if (*out != SIZE_MAX) {
                sf_buf name = {0}, one = {0}, other = {0};
                put_devices(space->assigns[*out].count, space->assigns[*out].devices, &one);
                put_devices(space->assigns[i].count, space->assigns[i].devices, &other);
                sf_status status =
                    sf_fail(m->diag, SF_EUSAGE, SF_NOWHERE,
                            "assign: %s is placed on devices %s (by \"%s\") and on %s (by \"%s\")",
                            name_stage(m, stage, &name), one.text, space->assigns[*out].ops,
                            other.text, space->assigns[i].ops);
                sf_buf_free(&name);
                sf_buf_free(&one);
                sf_buf_free(&other);
                return status;
            }
            *out = i;
        }
        if (*out != SIZE_MAX)
            return SF_OK;
    }
    return SF_OK;
}

static uint32_t add_set(making *m, int count, const int *devices)
{
    for (size_t i = 0; i < m->nsets; i++)
        if (m->sets[i].count == count &&
            memcmp(m->sets[i].devices, devices, (size_t)count * sizeof *devices) == 0)
            return (uint32_t)i;
    device_set set = {.count = count, .devices = devices};
    SF_PUSH(m->arena, m->sets, m->nsets, m->set_capacity, set);
    return (uint32_t)m->nsets - 1;
}

static const int *all_devices(making *m)
{
    int *all = SF_ARRAY(m->arena, m->space->devices, int);
    for (int d = 0; d < m->space->devices; d++)
        all[d] = d;
    return all;
}

/* A stage without an assignment in a micro-batch is on all devices, if there is no assignment at
 * all; else it is a gap. */
static sf_status find_sets(making *m)
{
    const sf_space *space = m->space;
    m->set_of = SF_ARRAY(m->arena, (size_t)m->nstages * m->nmicrobatches, uint32_t);
    for (uint32_t s = 0; s < m->nstages; s++)
        for (uint32_t t = 0; t < m->nmicrobatches; t++) {
            size_t assign;
            SF_TRY(find_assign(m, s, t, &assign));
            uint32_t *set = &m->set_of[(size_t)s * m->nmicrobatches + t];
            if (assign != SIZE_MAX) {
                *set = add_set(m, space->assigns[assign].count, space->assigns[assign].devices);
            } else if (space->nassigns == 0) {
                *set = add_set(m, space->devices, all_devices(m));
            } else {
                sf_buf name = {0};
                sf_status status = sf_fail(m->diag, SF_EUSAGE, SF_NOWHERE,
                                           "assign: %s has no devices in micro-batch %" PRIu32,
                                           name_stage(m, s, &name), t);
                sf_buf_free(&name);
                return status;
            }
        }
    for (size_t i = 0; i < space->nassigns; i++)
        if (space->assigns[i].microbatch != SF_EVERY &&
            (uint32_t)space->assigns[i].microbatch >= m->nmicrobatches)
            return sf_fail(m->diag, SF_EUSAGE, SF_NOWHERE,
                           "assign: \"%s\" is placed in micro-batch %d, and there are %" PRIu32,
                           space->assigns[i].ops, space->assigns[i].microbatch, m->nmicrobatches);
    return SF_OK;
}

/* owner: by device, the group, counted from 1. */
static bool is_new(const device_set *set, const uint32_t *owner)
{
    for (int i = 0; i < set->count; i++)
        if (owner[set->devices[i]])
            return false;
    return true;
}

/* The groups that the set is made of; 0 where it has but a part of one. */
static uint64_t groups_of(const making *m, const device_set *set, const uint32_t *owner,
                          const int *sizes)
{
    int seen[SF_MOST_GROUPS] = {0};
    uint64_t groups = 0;
    for (int i = 0; i < set->count; i++) {
        uint32_t group = owner[set->devices[i]];
        if (group == 0)
            return 0;
        seen[group - 1]++;
        groups |= UINT64_C(1) << (group - 1);
    }
    for (uint32_t g = 0; g < m->ngroups; g++)
        if (seen[g] != 0 && seen[g] != sizes[g])
            return 0;
    return groups;
}

static sf_status fail_overlap(const making *m, const device_set *set)
{
    sf_buf one = {0}, other = {0};
    put_devices(set->count, set->devices, &one);
    for (size_t i = 0; i < m->nsets && !other.text; i++)
        for (int a = 0; a < set->count && !other.text; a++)
            for (int b = 0; b < m->sets[i].count && &m->sets[i] != set; b++)
                if (m->sets[i].devices[b] == set->devices[a]) {
                    put_devices(m->sets[i].count, m->sets[i].devices, &other);
                    break;
                }
    sf_fail(m->diag, SF_EUSAGE, SF_NOWHERE,
            "assign: devices %s and devices %s overlap, but are not the same", one.text,
            other.text ? other.text : "of other ops");
    sf_buf_free(&one);
    sf_buf_free(&other);
    return sf_hint(m->diag, "devices of two ops are the same, or all others; or one is on all of "
                            "those of several others");
}

/* Small sets first: one that shares no device with them is a pipeline rank; others are made of
 * several. They are numbered by their first devices. */
static sf_status find_atoms(making *m, uint32_t *owner, int *sizes)
{
    for (int size = 1; size <= m->space->devices; size++)
        for (size_t i = 0; i < m->nsets; i++) {
            const device_set *set = &m->sets[i];
            if (set->count != size || !is_new(set, owner))
                continue;
            if (m->ngroups == SF_MOST_GROUPS)
                return sf_fail(m->diag, SF_EUSAGE, SF_NOWHERE,
                               "assign: there are at most %d groups of devices", SF_MOST_GROUPS);
            sizes[m->ngroups++] = size;
            for (int d = 0; d < size; d++)
                owner[set->devices[d]] = m->ngroups;
        }
    uint32_t number[SF_MOST_GROUPS] = {0}, count = 0;
    int sorted[SF_MOST_GROUPS];
    for (int d = 0; d < m->space->devices; d++)
        if (owner[d] && !number[owner[d] - 1]) {
            sorted[count] = sizes[owner[d] - 1];
            number[owner[d] - 1] = ++count;
        }
    for (int d = 0; d < m->space->devices; d++)
        owner[d] = owner[d] ? number[owner[d] - 1] : 0;
    memcpy(sizes, sorted, count * sizeof *sizes);
    return SF_OK;
}

/* Ranks of a pipeline rank are contiguous, or one in each row: a mesh has no other places. */
static sf_status find_mesh_order(making *m, const uint32_t *owner)
{
    bool blocks = true, strides = true;
    for (int d = 0; d < m->space->devices; d++) {
        if (owner[d] == 0)
            return sf_fail(m->diag, SF_EUSAGE, SF_NOWHERE,
                           "assign: device %d has nothing to do: place something on it, or make "
                           "the space of fewer devices",
                           d);
        blocks = blocks && owner[d] - 1 == (uint32_t)(d / m->group_size);
        strides = strides && owner[d] - 1 == (uint32_t)d % m->ngroups;
    }
    m->strided = !blocks;
    if (blocks || strides)
        return SF_OK;
    return sf_fail(m->diag, SF_EUSAGE, SF_NOWHERE,
                   "assign: devices of a group stand side by side (0, 1 and 2, 3), or as many "
                   "apart as there are groups (0, 2 and 1, 3)");
}

sf_status space_find_groups(making *m)
{
    uint32_t *owner = SF_ARRAY(m->arena, m->space->devices, uint32_t);
    int sizes[SF_MOST_GROUPS] = {0};
    SF_TRY(find_sets(m));
    SF_TRY(find_atoms(m, owner, sizes));
    for (size_t i = 0; i < m->nsets; i++) {
        m->sets[i].groups = groups_of(m, &m->sets[i], owner, sizes);
        if (m->sets[i].groups == 0)
            return fail_overlap(m, &m->sets[i]);
    }
    m->group_size = sizes[0];
    for (uint32_t g = 1; g < m->ngroups; g++)
        if (sizes[g] != m->group_size)
            return sf_fail(m->diag, SF_EUNSUPPORTED, SF_NOWHERE,
                           "assign: groups of devices are of one size, not of %d and %d",
                           m->group_size, sizes[g]);
    return find_mesh_order(m, owner);
}
