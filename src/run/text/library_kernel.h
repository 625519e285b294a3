/* Common to the families of calls: kernels in which each thread makes elements of a result by
 * itself. */
#ifndef SF_RUN_TEXT_LIBRARY_KERNEL_H
#define SF_RUN_TEXT_LIBRARY_KERNEL_H

#include "run/text/scalar.h"

enum { SF_CALL_THREADS = 256 };

/* The call being written. */
typedef struct sf_calling {
    sf_writer *w;
    const sf_inst *inst;
    const sf_op *op;
    sf_buf *out;       /* the body of the kernel */
    const char *index; /* type of indices */
} sf_calling;

/* Bytes of an element, as words move it. */
static inline int sf_call_width(const sf_type *type)
{
    return sf_dtype_get(type->dtype)->bytes;
}

/* Adds text to the body. */
#define SF_PUT(c, ...) sf_buf_printf((c)->out, __VA_ARGS__)

/* The loop over `count` elements, `at` counting them, up to its end. */
void sf_call_begin(sf_calling *c, int64_t count);
void sf_call_end(sf_calling *c, int64_t count);

/* Declares NAME0, NAME1, ...: the index in these dimensions of element `from`. */
void sf_put_index(sf_calling *c, const char *name, const char *from, int rank, const int64_t *dims);

/* An expression: the element at NAME0, NAME1, ... */
void sf_put_flat(sf_calling *c, const char *name, int rank, const int64_t *dims);

/* Declares the words NAMEnumber of captured scalars that the regions of the call use. */
void sf_put_captured(sf_calling *c, const char *prefix);

/* Copies operand `index` to result `index`, unless they share memory. */
void sf_call_copy_first(sf_calling *c, uint32_t index);

/* How many elements a thread moves at once, in so many bytes at most, from operand `from` to the result: all that stays beside each
 * other comes in multiples of `run`. */
int sf_call_moved_together(const sf_calling *c, int from, int64_t run, int bytes);

/* The kernels of the families. */
typedef bool sf_call_write(sf_calling *c);
sf_call_write sf_call_gather, sf_call_scatter, sf_call_reduce, sf_call_window,
    sf_call_select_and_scatter, sf_call_dot, sf_call_conv, sf_call_sort, sf_call_top_k, sf_call_fft,
    sf_call_cholesky, sf_call_solve, sf_call_random, sf_call_attention, sf_call_attention_gradient;

#endif
