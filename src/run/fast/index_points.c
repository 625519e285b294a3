#include "run/fast/index_points.h"

#include "op/data_movement.h"
#include "op/indexing.h"

sf_points sf_points_of(const sf_op *op, const sf_type *operand, const sf_tensor *indices,
                       const sf_type *windowed)
{
    sf_indexing maps = sf_indexing_get(op, operand, indices->type);
    int64_t in_windowed[SF_MAX_RANK], in_indices[SF_MAX_RANK + 1], in_operand[SF_MAX_RANK];
    sf_strides(windowed->rank, windowed->dims, in_windowed);
    sf_strides(indices->type->rank, indices->type->dims, in_indices);
    sf_strides(operand->rank, operand->dims, in_operand);
    sf_points points = {.index = indices, .count = 1};
    for (int p = 0; p < windowed->rank; p++) {
        int q = maps.indices_of[p], at = points.rank;
        if (q < 0)
            continue;
        points.dims[at] = windowed->dims[p];
        points.windowed[at] = in_windowed[p];
        points.indices[at] = in_indices[q];
        points.batch[at] = -1;
        for (int d = 0; d < operand->rank; d++)
            if (maps.batch_of[d] == q) {
                points.batch[at] = d;
                points.operand[at] = in_operand[d];
            }
        points.count *= windowed->dims[p];
        points.rank++;
    }
    bool vector = maps.vector_dim < indices->type->rank;
    for (int d = 0; d < operand->rank; d++) {
        int window = maps.window_of[d];
        int64_t size = window >= 0 ? windowed->dims[window] : 1;
        if (maps.start_of[d] >= 0)
            points.components[points.ncomponents++] =
                (sf_component){.dim = d,
                               .at = vector ? maps.start_of[d] * in_indices[maps.vector_dim] : 0,
                               .stride = in_operand[d],
                               .last = operand->dims[d] - size};
    }
    return points;
}

sf_point sf_points_at(const sf_points *points, int64_t number)
{
    sf_point point = {0};
    for (int d = points->rank - 1; d >= 0; d--) {
        point.index[d] = number % points->dims[d];
        number /= points->dims[d];
        point.windowed += point.index[d] * points->windowed[d];
        point.indices += point.index[d] * points->indices[d];
        point.operand += point.index[d] * points->operand[d];
    }
    return point;
}

void sf_points_next(const sf_points *points, sf_point *point)
{
    for (int d = points->rank - 1; d >= 0; d--) {
        point->windowed += points->windowed[d];
        point->indices += points->indices[d];
        point->operand += points->operand[d];
        if (++point->index[d] < points->dims[d])
            return;
        point->windowed -= points->dims[d] * points->windowed[d];
        point->indices -= points->dims[d] * points->indices[d];
        point->operand -= points->dims[d] * points->operand[d];
        point->index[d] = 0;
    }
}

int64_t sf_points_read(const sf_points *points, const sf_point *point, int component)
{
    int64_t at = point->indices + points->components[component].at;
    const void *data = points->index->data;
    switch ((int)points->index->type->dtype) {
    case SF_S32:
        return ((const int32_t *)data)[at];
    case SF_S64:
        return ((const int64_t *)data)[at];
    case SF_U32:
        return ((const uint32_t *)data)[at];
    default:
        return sf_index_at(points->index, at);
    }
}
