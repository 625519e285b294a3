#include "plan/space/space.h"

#include <stdlib.h>
#include <string.h>

#include "plan/op_selector.h"

static const char *const transformations[] = {"batch", "recompute"};
enum { BATCH, RECOMPUTE, TRANSFORMATIONS };

const char *sf_transformation_name(int index)
{
    return index >= 0 && index < TRANSFORMATIONS ? transformations[index] : NULL;
}

static const char *keep(sf_space *space, const char *text)
{
    return sf_arena_string(&space->arena, text ? text : "", text ? strlen(text) : 0);
}

static sf_status check_ops(const sf_space *space, const char *ops, sf_arena *scratch, sf_diag *diag,
                           sf_ops *out)
{
    return sf_ops_find(space->graph, ops, scratch, diag, out);
}

/* Transformations */

static sf_status check_batch(const sf_said_trans *said, sf_diag *diag)
{
    if (said->ops && *said->ops)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE,
                       "trans: the batch runs through all ops: it cannot be split in \"%.100s\" "
                       "alone",
                       said->ops);
    return SF_OK;
}

static sf_status check_recompute(const sf_said_trans *said, sf_diag *diag)
{
    if (said->parts != 1)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE,
                       "trans: recomputed ops are not split: parts must be 1, not %d", said->parts);
    return SF_OK;
}

/* Twice the same, or the batch twice, would say two things of one. */
static sf_status check_twice(const sf_space *space, const sf_said_trans *said, sf_diag *diag)
{
    bool batch = strcmp(said->how, transformations[BATCH]) == 0;
    for (size_t i = 0; i < space->ntrans && batch; i++)
        if (strcmp(space->trans[i].how, said->how) == 0 && space->trans[i].where == said->where)
            return sf_fail(diag, SF_EUSAGE, SF_NOWHERE,
                           "trans: the batch is cut into %d parts in %s already",
                           space->trans[i].parts, said->where == SF_IN_TIME ? "time" : "space");
    return SF_OK;
}

static sf_status check_trans(const sf_space *space, const sf_said_trans *said, sf_arena *scratch,
                             sf_diag *diag)
{
    sf_ops ops;
    sf_choice_list chosen = {0};
    if (said->parts < 1 || said->parts > SF_MOST_TASKS)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "trans: there is no such thing as %d parts",
                       said->parts);
    if (said->where != SF_IN_SPACE && said->where != SF_IN_TIME)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "trans: ops are cut in space or in time");
    SF_TRY(check_twice(space, said, diag));
    if (strcmp(said->how, transformations[BATCH]) == 0)
        return check_batch(said, diag);
    SF_TRY(check_ops(space, said->ops, scratch, diag, &ops));
    if (strcmp(said->how, transformations[RECOMPUTE]) == 0)
        return check_recompute(said, diag);
    if (said->how[0] && said->how[1]) {
        sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "trans: there is no transformation \"%.100s\"",
                said->how);
        return sf_hint(diag, "there are batch, recompute, and the factors of ops: i, j, k, ...");
    }
    return sf_choose_factor(space->graph, &ops, said->how, said->parts, 0, scratch, diag, &chosen);
}

sf_status sf_space_add_trans(sf_space *space, const sf_said_trans *said, sf_diag *diag)
{
    sf_arena scratch = {0};
    sf_said_trans kept = *said;
    kept.how = said->how ? said->how : "";
    sf_status status = check_trans(space, &kept, &scratch, diag);
    sf_arena_free(&scratch);
    SF_TRY(status);
    kept.ops = keep(space, said->ops);
    kept.how = keep(space, said->how);
    SF_PUSH(&space->arena, space->trans, space->ntrans, space->trans_capacity, kept);
    return SF_OK;
}

/* Assignments */

static int by_number(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return x < y ? -1 : x > y;
}

/* In order, each once. */
static sf_status take_devices(const sf_space *space, const sf_said_assign *said, int *sorted,
                              sf_diag *diag)
{
    memcpy(sorted, said->devices, (size_t)said->count * sizeof *sorted);
    qsort(sorted, (size_t)said->count, sizeof *sorted, by_number);
    for (int i = 0; i < said->count; i++) {
        if (sorted[i] < 0 || sorted[i] >= space->devices)
            return sf_fail(diag, SF_EUSAGE, SF_NOWHERE,
                           "assign: there is no device %d: they are numbered from 0 to %d",
                           sorted[i], space->devices - 1);
        if (i > 0 && sorted[i] == sorted[i - 1])
            return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "assign: device %d is listed twice",
                           sorted[i]);
    }
    return SF_OK;
}

sf_status sf_space_add_assign(sf_space *space, const sf_said_assign *said, sf_diag *diag)
{
    sf_arena scratch = {0};
    sf_ops ops;
    if (said->count < 1 || !said->devices)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "assign: expected at least one device");
    if (said->microbatch < SF_EVERY || said->microbatch >= SF_MOST_TASKS)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "assign: there is no micro-batch %d",
                       said->microbatch);
    if (said->count > space->devices)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE,
                       "assign: of %d devices, ops cannot be placed on %d", space->devices,
                       said->count);
    int *sorted = SF_ARRAY(&space->arena, said->count, int);
    SF_TRY(take_devices(space, said, sorted, diag));
    sf_status status = check_ops(space, said->ops, &scratch, diag, &ops);
    sf_arena_free(&scratch);
    SF_TRY(status);
    sf_said_assign kept = {keep(space, said->ops), said->microbatch, said->count, sorted};
    SF_PUSH(&space->arena, space->assigns, space->nassigns, space->assign_capacity, kept);
    return SF_OK;
}

/* Orders */

static sf_status check_task(const sf_space *space, const sf_task *task, sf_diag *diag)
{
    sf_arena scratch = {0};
    sf_ops ops;
    if ((int)task->pass < SF_PASS_FORWARD || task->pass > SF_PASS_WEIGHTS)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "order: there is no pass %d", (int)task->pass);
    if (task->microbatch < SF_EVERY || task->microbatch >= SF_MOST_TASKS)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "order: there is no micro-batch %d",
                       task->microbatch);
    if (task->round < 0)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "order: there is no round %d", task->round);
    sf_status status = check_ops(space, task->ops, &scratch, diag, &ops);
    sf_arena_free(&scratch);
    return status;
}

sf_status sf_space_add_order(sf_space *space, const sf_said_order *said, sf_diag *diag)
{
    SF_TRY(check_task(space, &said->before, diag));
    SF_TRY(check_task(space, &said->after, diag));
    sf_said_order kept = *said;
    kept.before.ops = keep(space, said->before.ops);
    kept.after.ops = keep(space, said->after.ops);
    SF_PUSH(&space->arena, space->orders, space->norders, space->order_capacity, kept);
    return SF_OK;
}
