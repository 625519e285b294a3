#include "op/data_movement.h"

#include <string.h>

void sf_copying_init(sf_copying *move, sf_arena *arena, int rank, const int64_t *capacity)
{
    move->rank = rank;
    for (int d = 0; d < rank; d++)
        move->lists[d] = (sf_copy_list){
            .to = SF_ARRAY(arena, capacity[d], int64_t),
            .from = SF_ARRAY(arena, capacity[d], int64_t),
        };
}

sf_tensor_side sf_tensor_side_of(const sf_tensor *tensor, int dim)
{
    sf_tensor_side side = {sf_tensor_span(tensor, dim), tensor->type->dims[dim], 1};
    for (int d = dim + 1; d < tensor->type->rank; d++)
        side.stride *= tensor->type->dims[d];
    return side;
}

int64_t sf_copying_most(int64_t to, int64_t from, sf_line line)
{
    bool is_shift = line.scale == 1 && line.divisor == 1;
    return is_shift && from < to ? from : to;
}

static void add_pair(sf_copy_list *list, int64_t to, int64_t from)
{
    list->to[list->count] = to;
    list->from[list->count++] = from;
}

void sf_copying_along(sf_copying *move, int dim, sf_tensor_side to, sf_tensor_side from,
                      sf_line line)
{
    sf_copy_list *list = &move->lists[dim];
    bool from_source = sf_copying_most(to.size, from.size, line) < to.size;
    for (int64_t i = 0; i < from.size && from_source; i++) {
        int64_t target = sf_span_global(from.span, i) - line.shift;
        int64_t local = target < 0 || target >= to.span.whole ? -1 : sf_span_local(to.span, target);
        if (local >= 0)
            add_pair(list, local * to.stride, i * from.stride);
    }
    if (from_source)
        return;
    for (int64_t i = 0; i < to.size; i++) {
        int64_t scaled = sf_span_global(to.span, i) * line.scale + line.shift;
        int64_t source = scaled / line.divisor;
        if (scaled < 0 || scaled % line.divisor != 0 || source >= from.span.whole)
            continue;
        int64_t local = sf_span_local(from.span, source);
        if (local < 0)
            continue;
        add_pair(list, i * to.stride, local * from.stride);
    }
}

static void each_row(const sf_copying *move, int dim, int64_t to, int64_t from, sf_copying_row *row,
                     void *context)
{
    const sf_copy_list *list = &move->lists[dim];
    if (dim == move->rank - 1) {
        row(context, list, to, from);
        return;
    }
    for (int64_t k = 0; k < list->count; k++)
        each_row(move, dim + 1, to + list->to[k], from + list->from[k], row, context);
}

void sf_copying_each(const sf_copying *move, sf_copying_row *row, void *context)
{
    int64_t zero = 0;
    const sf_copy_list scalar = {1, &zero, &zero};
    if (move->rank == 0)
        row(context, &scalar, 0, 0);
    else
        each_row(move, 0, 0, 0, row, context);
}

typedef struct copying {
    char *to;
    const char *from;
    size_t bytes; /* of an element */
    bool run;     /* the last list is a run of neighbours on both sides */
} copying;

static void copy_span_row(void *context, const sf_copy_list *list, int64_t to, int64_t from)
{
    const copying *copy = context;
    if (list->count == 0)
        return;
    if (copy->run) {
        memcpy(copy->to + (size_t)(to + list->to[0]) * copy->bytes,
               copy->from + (size_t)(from + list->from[0]) * copy->bytes,
               (size_t)list->count * copy->bytes);
        return;
    }
    for (int64_t k = 0; k < list->count; k++) {
        char *target = copy->to + (size_t)(to + list->to[k]) * copy->bytes;
        const char *source = copy->from + (size_t)(from + list->from[k]) * copy->bytes;
        /* A constant size lets the compiler move one word instead of calling memcpy. */
        switch (copy->bytes) {
        case 4:
            memcpy(target, source, 4);
            break;
        case 2:
            memcpy(target, source, 2);
            break;
        default:
            memcpy(target, source, copy->bytes);
            break;
        }
    }
}

static bool is_contiguous_run(const sf_copy_list *list)
{
    for (int64_t k = 1; k < list->count; k++)
        if (list->to[k] != list->to[k - 1] + 1 || list->from[k] != list->from[k - 1] + 1)
            return false;
    return true;
}

void sf_copying_copy(const sf_copying *move, const sf_tensor *from, sf_tensor *to)
{
    copying copy = {
        .to = to->data,
        .from = from->data,
        .bytes = sf_dtype_get(to->type->dtype)->bytes,
        .run = move->rank == 0 || is_contiguous_run(&move->lists[move->rank - 1]),
    };
    sf_copying_each(move, copy_span_row, &copy);
}

void sf_copying_fill(const void *from, sf_tensor *to)
{
    size_t bytes = sf_dtype_get(to->type->dtype)->bytes;
    char *at = to->data;
    for (int64_t i = 0; i < to->type->count; i++, at += bytes)
        memcpy(at, from, bytes);
}

int64_t sf_index_at(const sf_tensor *indices, int64_t flat)
{
    int64_t index = sf_get_i64(indices, flat);
    return index < 0 && sf_is_unsigned(indices->type->dtype) ? INT64_MAX : index;
}
