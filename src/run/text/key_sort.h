/* Sorting by keys that are small numbers, in a stable way: from the lowest digit of the key to the highest, each digit in three steps
 * (run/text/cu/key_sort.cu). A block counts the elements of a tile by their digits; the counts of tiles are added up; and the blocks
 * put the elements of their tiles where the sums say. */
#ifndef SF_RUN_TEXT_KEY_SORT_H
#define SF_RUN_TEXT_KEY_SORT_H

#include "run/text/library_kernel.h"

/* An element, a u64: its key, and in the lowest bits its number. */
enum { SF_KEY_SHIFT = 31, SF_MOST_KEY_BITS = 64 - SF_KEY_SHIFT };

/* Sorts `count` elements with keys below `keys`, which are at this place in scratch memory. Returns where they are then. */
int64_t sf_key_sort(sf_calling *c, int64_t count, int64_t keys, int64_t elements);

#endif
