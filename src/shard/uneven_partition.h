/* Deals: rows of a tensor, dealt out to the ranks along an axis, each row to one of them.
 *
 * A stack of layers has a row of its dimension 0 for each layer, and in a pipeline each group has the rows of its layers:
 * not equally many, where stages are not equally long, and not in one run, where a group has several stages. A piece has
 * its rows in the order of the whole.
 *
 *     At(0:0-3,1:4-7)           rank 0 has rows 0 to 3, rank 1 rows 4 to 7
 *     At(0:0-1+4-5,1:2-3+6)     rank 0 has rows 0, 1, 4 and 5, rank 1 rows 2, 3 and 6
 */
#ifndef SF_SHARD_UNEVEN_PARTITION_H
#define SF_SHARD_UNEVEN_PARTITION_H

#include "base/arena.h"
#include "base/str.h"

typedef struct sf_deal {
    int64_t count;     /* of rows */
    const uint8_t *to; /* by row: the coordinate that has it, below 64 */
} sf_deal;

/* A deal of its own in the arena. */
const sf_deal *sf_deal_new(int64_t count, const uint8_t *to, sf_arena *arena);

/* NULL is a deal, too: there is none. */
bool sf_deal_equal(const sf_deal *a, const sf_deal *b);
uint64_t sf_deal_hash(const sf_deal *deal);

/* Those who have any row, a bit each. */
uint64_t sf_deal_hands(const sf_deal *deal);

/* How many rows a coordinate has, and the most that any has. */
int64_t sf_deal_rows(const sf_deal *deal, int coordinate);
int64_t sf_deal_most(const sf_deal *deal);

/* The first row from `row` on that the coordinate has; `count` where there is none. */
int64_t sf_deal_next(const sf_deal *deal, int coordinate, int64_t row);

/* "0:0-3,1:4-7". */
void sf_deal_print(const sf_deal *deal, sf_buf *out);

/* Takes such a text from the front of another: NULL where it does not deal out each of so many rows once. */
const sf_deal *sf_deal_take(sf_str *text, int64_t count, sf_arena *arena);

#endif
