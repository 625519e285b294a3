/* Uneven partitions: rows of a tensor, distributed over the ranks along an axis, each row to one of them.
 *
 * A stack of layers has a row of its dimension 0 for each layer, and in a pipeline each pipeline
 * rank has the rows of its layers: not equally many, if stages are not equally long, and not
 * contiguous, if it has several stages. A shard has its rows in the order of the whole.
 *
 *     At(0:0-3,1:4-7)           rank 0 has rows 0 to 3, rank 1 rows 4 to 7
 *     At(0:0-1+4-5,1:2-3+6)     rank 0 has rows 0, 1, 4 and 5, rank 1 rows 2, 3 and 6 */
#ifndef SF_SHARD_UNEVEN_PARTITION_H
#define SF_SHARD_UNEVEN_PARTITION_H

#include "base/arena.h"
#include "base/str.h"

typedef struct sf_row_partition {
    int64_t count;     /* of rows */
    const uint8_t *to; /* by row: the coordinate that has it, below 64 */
} sf_row_partition;

/* A partition of its own in the arena. */
const sf_row_partition *sf_row_partition_new(int64_t count, const uint8_t *to, sf_arena *arena);

/* NULL is a partition, too: none. */
bool sf_row_partition_equal(const sf_row_partition *a, const sf_row_partition *b);
uint64_t sf_row_partition_hash(const sf_row_partition *partition);

/* Those who have any row, a bit each. */
uint64_t sf_row_partition_owners(const sf_row_partition *partition);

/* How many rows a coordinate has, and the most that any has. */
int64_t sf_row_partition_rows(const sf_row_partition *partition, int coordinate);
int64_t sf_row_partition_most(const sf_row_partition *partition);

/* The first row from `row` on that the coordinate has; `count` where there is none. */
int64_t sf_row_partition_next(const sf_row_partition *partition, int coordinate, int64_t row);

/* "0:0-3,1:4-7". */
void sf_row_partition_print(const sf_row_partition *partition, sf_buf *out);

/* Takes such a text from the front of another: NULL if it does not have each of so many rows
 * once. */
const sf_row_partition *sf_row_partition_parse(sf_str *text, int64_t count, sf_arena *arena);

#endif
