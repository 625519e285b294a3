/* The runs of a shard: elements that are contiguous both in the shard and in the whole tensor,
 * row-major.
 *
 *     sf_runs runs = sf_runs_of(&layout, &mesh, rank, type);
 *     while (sf_runs_next(&runs))
 *         copy(shard + runs.local, whole + runs.global, runs.count);
 *
 * Runs come in order, of the shard and of the whole. Tensors are cut, joined, drawn, saved and
 * loaded in shards so. */
#ifndef SF_SHARD_CONTIGUOUS_RUNS_H
#define SF_SHARD_CONTIGUOUS_RUNS_H

#include "ir/type.h"
#include "shard/layout.h"

enum { SF_MAX_LEVELS = 3 * SF_MAX_RANK };

typedef struct sf_runs {
    int64_t local, global, count; /* of the run at hand, in elements */

    /* Odometer over the digits of the shard, without those within a run. */
    int nlevels;
    int64_t size[SF_MAX_LEVELS], step[SF_MAX_LEVELS], at[SF_MAX_LEVELS];
    int64_t left; /* runs still to come, of this row, this one among them */
    bool begun;

    /* Of an uneven partition (shard/uneven_partition.h): the above is of one row, and rows come one
     * after the other. */
    const sf_row_partition *partition;
    int coordinate;
    int64_t row, at_row, row_size; /* the next, and that of the run; elements of one */
    int64_t each;                  /* runs of a row */
    bool whole;                    /* a row is one run */
} sf_runs;

/* The type is that of the whole; the layout fits it. Partial shares are as replicated ones. */
sf_runs sf_runs_of(const sf_layout *layout, const sf_mesh *mesh, int rank, const sf_type *type);
bool sf_runs_next(sf_runs *runs);

/* Copies a shard out of the whole tensor, and back into it: `bytes` an element. */
void sf_cut_shard(sf_runs runs, int bytes, const void *whole, void *shard);
void sf_paste_shard(sf_runs runs, int bytes, const void *shard, void *whole);

#endif
