#include "run/cuda/nccl_step_end.h"

#include "base/mem.h"

sf_status sf_cuda_arrive(cuda *c, sf_diag *diag)
{
    if (!c->nccl.library || c->note)
        return SF_OK;
    int size = sf_comm_size(c->nccl.comm);
    if (!c->notes) {
        c->notes = SF_ARRAY(&c->memory, size + 1, char);
        int *ranks = SF_ARRAY(&c->memory, size, int);
        for (int r = 0; r < size; r++)
            ranks[r] = r;
        SF_TRY(sf_comm_group(c->nccl.comm, ranks, size, diag, &c->world));
    }
    sf_transfer_part part = {.in = c->notes + size, .out = c->notes, .count = 1};
    sf_transfer transfer = {
        .kind = SF_ALL_GATHER, .dtype = SF_U8, .nparts = 1, .parts = &part, .what = "a step"};
    return sf_comm_start(c->world, &transfer, diag, &c->note);
}

static sf_status await_note(cuda *c, sf_diag *diag)
{
    sf_request *note = c->note;
    c->note = NULL;
    return note ? sf_comm_wait(note, diag) : SF_OK;
}

typedef struct looking {
    cuda *c;
    sf_diag *diag;
    sf_status status;
} looking;

static bool has_settled(void *context)
{
    looking *l = context;
    bool ended = false;
    l->status = table_of(l->c)->ended(l->c->device, SF_LANE_COMPUTE, l->diag, &ended);
    if (l->status == SF_OK && !ended)
        l->status = sf_nccl_check(&l->c->nccl, l->diag);
    return ended || l->status != SF_OK;
}

/* *late: the time was over, which `why` says. */
static sf_status watch_device(cuda *c, sf_diag *why, bool *late, sf_diag *diag)
{
    looking l = {.c = c, .diag = diag};
    *late = sf_comm_watch(c->nccl.comm, 2 * c->slowest, has_settled, &l,
                          "what ranks exchange by NCCL", why) != SF_OK;
    return l.status;
}

sf_status sf_cuda_settle(cuda *c, sf_diag *diag)
{
    bool late;
    if (!c->nccl.library)
        return SF_OK;
    sf_diag why = {0};
    sf_status status = watch_device(c, &why, &late, diag);
    if (status == SF_OK && late) { /* who has not come says more than that something takes long */
        status = sf_cuda_arrive(c, diag);
        status = status == SF_OK ? await_note(c, diag) : status;
        if (status == SF_OK)
            status = sf_fail(diag, SF_EPEER, SF_NOWHERE, "%s", why.messages[0].text);
    }
    sf_diag_clear(&why);
    return status;
}

static bool have_all_come(void *context)
{
    return sf_comm_done(((const cuda *)context)->note);
}

/* The GPU of this rank may have come to its end while others wait for a rank that hangs. They are waited for until they give up, too,
 * so that only the one that hangs is missed. */
static sf_status meet_at_end(cuda *c, bool late, sf_diag *diag)
{
    int size = sf_comm_size(c->nccl.comm), who = 0;
    c->notes[size] = (char)late;
    sf_status status = sf_cuda_arrive(c, diag);
    if (status == SF_OK && !late)
        sf_comm_watch(c->nccl.comm, 3 * c->slowest, have_all_come, c, "a step", NULL);
    SF_TRY(status);
    SF_TRY(await_note(c, diag));
    c->notes[size] = 0;
    while (who < size && !c->notes[who])
        who++;
    if (who == size || late)
        return SF_OK;
    return sf_fail(diag, SF_EPEER, SF_NOWHERE, "rank %d gave up what ranks exchange by NCCL", who);
}

static sf_status end_with_others(cuda *c, sf_diag *diag)
{
    bool late;
    SF_TRY(sf_cuda_arrive(c, diag));
    SF_TRY(await_note(c, diag));
    sf_diag why = {0};
    sf_status status = watch_device(c, &why, &late, diag);
    if (status == SF_OK)
        status = meet_at_end(c, late, diag);
    if (status == SF_OK && late)
        status = sf_fail(diag, SF_EPEER, SF_NOWHERE, "%s", why.messages[0].text);
    sf_diag_clear(&why);
    return status;
}

sf_status sf_cuda_end_step(cuda *c, sf_diag *diag)
{
    if (c->nccl.library)
        SF_TRY(end_with_others(c, diag));
    return table_of(c)->wait(c->device, diag);
}

void sf_cuda_leave_nccl_groups(cuda *c)
{
    await_note(c, NULL);
    if (c->nccl.library) {
        sf_nccl_abort(&c->nccl);
        for (int i = 0; i < c->nccl.ngroups; i++)
            table_of(c)->wait_on(c->device, c->nccl.groups[i].lane, NULL);
        table_of(c)->wait(c->device, NULL);
    }
}
