/* Boxes of elements that are copied between two strided places. */
#ifndef SF_RUN_FAST_BOX_H
#define SF_RUN_FAST_BOX_H

#include "base/thread_pool.h"
#include "ir/tensor.h"

/* Element (i0, i1, ...) goes from from[Σ i * from] to to[Σ i * to]; strides in elements, of any sign. */
typedef struct sf_box {
    int rank;
    int64_t dims[SF_MAX_RANK], to[SF_MAX_RANK], from[SF_MAX_RANK];
} sf_box;

/* Drops dimensions of size 1 and merges those that lie together on both sides; the order of the
 * elements stays. */
void sf_box_simplify(sf_box *box);

int64_t sf_box_count(const sf_box *box);

/* Copies elements [first, end) of the box, in row-major order; elements have `width` bytes. */
void sf_box_copy(const sf_box *box, int64_t width, char *to, const char *from, int64_t first,
                 int64_t end);

/* Copies all of them, in threads. */
void sf_box_run(sf_box box, int64_t width, char *to, const char *from, sf_threads *threads);

/* Writes the element of `width` bytes `count` times. */
void sf_fill(char *to, int64_t width, const void *element, int64_t count);
void sf_fill_run(char *to, int64_t width, const void *element, int64_t count, sf_threads *threads);

#endif
