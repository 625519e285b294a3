#include "shard/contiguous_runs.h"

#include <string.h>

/* A level more; one that continues the level inside of it is one with it. */
static void add_level(sf_runs *runs, int64_t size, int64_t step)
{
    int last = runs->nlevels - 1;
    if (size == 1)
        return;
    if (last >= 0 && step == runs->step[last] * runs->size[last]) {
        runs->size[last] *= size;
        return;
    }
    runs->size[runs->nlevels] = size;
    runs->step[runs->nlevels++] = step;
}

/* The axis along which rows are distributed unevenly, or -1. */
static int find_partition(const sf_layout *layout, const sf_mesh *mesh)
{
    for (int a = 0; a < mesh->naxes; a++)
        if (layout->axes[a].partition)
            return a;
    return -1;
}

/* So far, the runs are those of row 0. */
static void partition_rows(sf_runs *runs, const sf_row_partition *partition, int coordinate,
                           int64_t row_size)
{
    runs->partition = partition;
    runs->coordinate = coordinate;
    runs->row_size = row_size;
    runs->each = runs->left;
    runs->whole = runs->count == row_size;
    runs->local = -runs->count;
    runs->left = 0;
}

sf_runs sf_runs_of(const sf_layout *layout, const sf_mesh *mesh, int rank, const sf_type *type)
{
    sf_runs runs = {.count = 1, .left = 1};
    int64_t stride = 1;
    int partitioned = find_partition(layout, mesh);
    if (!sf_layout_is_held(layout, mesh, rank))
        return (sf_runs){0};
    for (int d = type->rank - 1; d >= (partitioned < 0 ? 0 : 1); d--) {
        sf_digit digits[SF_MAX_DIGITS];
        int count = sf_layout_digits(layout, mesh, d, type->dims[d], digits);
        if (type->dims[d] == 0)
            return (sf_runs){0};
        for (int i = count - 1; i >= 0; i--) {
            int64_t step = digits[i].unit * stride;
            if (digits[i].axis < 0)
                add_level(&runs, digits[i].size, step);
            else
                runs.global += sf_layout_place(layout, mesh, rank, digits[i].axis) * step;
        }
        stride *= type->dims[d];
    }
    if (runs.nlevels > 0 && runs.step[0] == 1) {
        runs.count = runs.size[0];
        runs.nlevels--;
        memmove(runs.size, runs.size + 1, (size_t)runs.nlevels * sizeof *runs.size);
        memmove(runs.step, runs.step + 1, (size_t)runs.nlevels * sizeof *runs.step);
    }
    for (int i = 0; i < runs.nlevels; i++)
        runs.left *= runs.size[i];
    if (partitioned >= 0)
        partition_rows(&runs, layout->axes[partitioned].partition,
                       sf_mesh_coordinate(mesh, rank, partitioned), stride);
    return runs;
}

/* Goes to the first run of the next row; of rows that are one run each, all that follow each other are one. */
static bool next_row(sf_runs *runs)
{
    const sf_row_partition *partition = runs->partition;
    int64_t row = partition ? sf_row_partition_next(partition, runs->coordinate, runs->row) : 0,
            end = row + 1;
    if (!partition || row == partition->count)
        return false;
    runs->local += runs->count;
    for (int i = 0; i < runs->nlevels; i++) {
        runs->global -= runs->at[i] * runs->step[i];
        runs->at[i] = 0;
    }
    runs->global += (row - runs->at_row) * runs->row_size;
    runs->at_row = row;
    if (runs->whole) {
        while (end < partition->count && partition->to[end] == runs->coordinate)
            end++;
        runs->count = (end - row) * runs->row_size;
    }
    runs->row = end;
    runs->left = runs->each - 1;
    return true;
}

bool sf_runs_next(sf_runs *runs)
{
    if (runs->left == 0)
        return next_row(runs);
    runs->left--;
    if (!runs->begun && !runs->partition) {
        runs->begun = true;
        return true;
    }
    runs->local += runs->count;
    for (int i = 0; i < runs->nlevels; i++) {
        runs->global += runs->step[i];
        if (++runs->at[i] < runs->size[i])
            break;
        runs->at[i] = 0;
        runs->global -= runs->step[i] * runs->size[i];
    }
    return true;
}

void sf_cut_shard(sf_runs runs, int bytes, const void *whole, void *shard)
{
    while (sf_runs_next(&runs))
        memcpy((char *)shard + runs.local * bytes, (const char *)whole + runs.global * bytes,
               (size_t)(runs.count * bytes));
}

void sf_paste_shard(sf_runs runs, int bytes, const void *shard, void *whole)
{
    while (sf_runs_next(&runs))
        memcpy((char *)whole + runs.global * bytes, (const char *)shard + runs.local * bytes,
               (size_t)(runs.count * bytes));
}
