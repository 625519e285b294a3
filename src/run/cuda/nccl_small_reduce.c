#include "run/cuda/nccl_small_reduce.h"

#include "base/mem.h"
#include "run/comm/comm_backend.h"

enum { MOST_BYTES = 1 << 20 };

int64_t sf_cuda_gathered_bytes(const exchange *e)
{
    const sf_transfer *t = &e->transfer;
    int64_t total = 0, members = sf_comm_group_size(e->group);
    if (!sf_collective_get(t->kind)->reduces || !e->fold)
        return 0;
    for (int i = 0; i < t->nparts; i++) {
        int64_t count = t->parts[i].count;
        if (t->parts[i].stride > 0 || count > MOST_BYTES)
            return 0;
        total += members * count * sf_dtype_get(t->dtype)->bytes;
    }
    return total <= MOST_BYTES ? total : 0;
}

void sf_cuda_fold_values(const void *const *sources, int members, int segment, void *out,
                         int64_t count, uint64_t *values, void **params)
{
    for (int i = 0; i < members; i++)
        values[i] = (uint64_t)(uintptr_t)sources[(segment + 1 + i) % members];
    values[members] = (uint64_t)(uintptr_t)out;
    values[members + 1] = (uint64_t)count;
    for (int i = 0; i < members + 2; i++)
        params[i] = &values[i];
}

/* Elements [first, first + count) of the result; those of the member at place q are at room + q *
 * step bytes. */
static void add_fold(cuda *c, exchange *e, const char *room, int64_t step, int segment, char *out,
                     int64_t count)
{
    int members = sf_comm_group_size(e->group);
    const void *sources[SF_MOST_FOLDED];
    uint64_t *values = SF_ARRAY(&c->memory, members + 2, uint64_t);
    ready r = *e->fold;
    if (count == 0)
        return;
    for (int q = 0; q < members; q++)
        sources[q] = room + q * step;
    r.params = SF_ARRAY(&c->memory, members + 2, void *);
    r.blocks = sf_blocks_for(count, r.threads);
    sf_cuda_fold_values(sources, members, segment, out, count, values, r.params);
    e->folds[e->nfolds++] = r;
}

void sf_cuda_make_gathered(cuda *c, exchange *e, char *room)
{
    sf_transfer *t = &e->transfer;
    int64_t bytes = sf_dtype_get(t->dtype)->bytes;
    int members = sf_comm_group_size(e->group), place = sf_comm_group_place(e->group);
    bool all = sf_collective_get(t->kind)->gathers;
    sf_transfer_part *parts = SF_ARRAY(&c->memory, t->nparts, sf_transfer_part);
    e->folds = SF_ARRAY(&c->memory, t->nparts * members, ready);
    for (int i = 0; i < t->nparts; i++) {
        int64_t count = t->parts[i].count, step = count * bytes;
        for (int s = 0; s < members; s++) {
            int64_t first = all ? sf_comm_segment(count, members, s) : 0;
            int64_t end = all ? sf_comm_segment(count, members, s + 1) : count;
            if (all || s == place)
                add_fold(c, e, room + first * bytes, step, s,
                         (char *)t->parts[i].out + first * bytes, end - first);
        }
        parts[i] = (sf_transfer_part){.in = t->parts[i].in, .out = room, .count = count};
        room += members * step;
    }
    t->kind = all ? SF_ALL_GATHER : SF_ALL_TO_ALL;
    t->parts = parts;
}
