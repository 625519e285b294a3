#include "search/price/move_cost.h"

#include <math.h>

#include "shard/reshard_items.h"

/* The larger of the pieces is `bytes`; a slice reads and writes the smaller one. */
static double seconds_alone(const sf_costs *costs, const sf_mesh *mesh, sf_reshard_kind kind,
                            sf_axes axes, double bytes)
{
    int size = sf_group_size(mesh, axes);
    if (size == 1)
        return 0;
    if (!sf_is_local_reshard(kind))
        return sf_costs_collective(costs, sf_reshard_collective(kind), axes, bytes);
    sf_effort copy = {.bytes = 2 * bytes / (kind == SF_RESHARD_SLICE ? size : 1)};
    return sf_costs_op(costs, &copy);
}

double sf_move_seconds(void *context, const sf_mesh *mesh, sf_reshard_kind kind, sf_axes axes,
                       double bytes)
{
    return seconds_alone(context, mesh, kind, axes, bytes);
}

double sf_move_seconds_together(void *context, const sf_mesh *mesh, sf_reshard_kind kind,
                                sf_axes axes, double bytes)
{
    enum { COMPANY = 16 }; /* tensors in a bucket that starts at once */
    double alone = seconds_alone(context, mesh, kind, axes, bytes);
    if (sf_is_local_reshard(kind) || bytes >= SF_BUCKET_BYTES)
        return alone;
    double full = seconds_alone(context, mesh, kind, axes, SF_BUCKET_BYTES);
    double start = seconds_alone(context, mesh, kind, axes, 0);
    return fmin(alone, start / COMPANY + full * (bytes / SF_BUCKET_BYTES));
}

int64_t sf_split_bytes(const sf_costs *costs, const sf_mesh *mesh, int axis)
{
    int64_t from = INT64_MAX;
    sf_axes after = 0;
    for (int a = axis + 1; a < mesh->naxes; a++)
        after |= mesh->axes[a].size > 1 ? (sf_axes)1 << a : 0;
    int parts = sf_group_size(mesh, after);
    for (int64_t bytes = INT64_C(1) << 40; parts > 1 && bytes >= 1024; bytes /= 2) {
        double whole = sf_costs_collective(costs, SF_PERMUTE, (sf_axes)1 << axis, (double)bytes);
        double part =
            sf_costs_collective(costs, SF_PERMUTE, (sf_axes)1 << axis, (double)bytes / parts);
        if (part + 2 * sf_costs_collective(costs, SF_ALL_GATHER, after, (double)bytes) >= whole)
            break;
        from = bytes;
    }
    return from;
}

sf_copies sf_copies_of(const sf_efforts *efforts, const sf_reshards *reshards,
                       const sf_resharding *reshard)
{
    const sf_mesh *mesh = &reshards->plan->mesh;
    const sf_value_version *from = &reshards->versions[reshards->versions[reshard->from].same];
    const sf_value_version *to = &reshards->versions[reshard->to];
    sf_copies copies = {0};
    if (sf_is_local_reshard(reshard->kind))
        return copies;
    sf_items items =
        sf_items_of(sf_type_of(efforts->graph, reshard->value), from->layout, to->layout, mesh);
    bool in_order = from->reshard != SF_NONE || efforts->in_order[reshard->value];
    if (!in_order || !sf_items_leave_in_order(&items, reshard->kind))
        copies.before = reshard->before;
    if (!sf_items_arrive_in_order(&items, reshard->kind))
        copies.after = reshard->after;
    return copies;
}

double sf_copy_seconds(const sf_costs *costs, double bytes)
{
    sf_effort copy = {.bytes = 2 * bytes};
    return bytes > 0 ? sf_costs_op(costs, &copy) : 0;
}
