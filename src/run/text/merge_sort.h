/* Sorting: the order of the elements of lines, by merges. In each pass every element finds its place among the two runs
 * that become one, by itself; so nothing is shared, and equal elements stay in order. */
#ifndef SF_RUN_TEXT_MERGE_SORT_H
#define SF_RUN_TEXT_MERGE_SORT_H

#include "run/text/library_kernel.h"

/* Declares `result`: whether the element at place `a` of the operands comes before that at `b`. p0 and p1 are taken;
 * `what` is p2. */
typedef void sf_put_less(sf_calling *c, const char *a, const char *b, const char *result,
                         const void *context);

/* `lines` lines of `size` elements; those of a line are `stride` apart, as in the dimensions [..,
 * size, stride]. Returns the place, in scratch memory, of the order: for each line one after the
 * other, numbers of its elements, as s32. `what`: a parameter of the comparison; NULL: all views of
 * the instruction, from p2 on. */
int64_t sf_merge_sort(sf_calling *c, int64_t lines, int64_t size, int64_t stride,
                      const sf_param *what, sf_put_less *less, const void *context);

#endif
