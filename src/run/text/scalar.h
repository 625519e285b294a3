/* Single elements as text: the result of an op on the words of its operands (cu/words.cu), and of a
 * region of such ops on its arguments. */
#ifndef SF_RUN_TEXT_SCALAR_H
#define SF_RUN_TEXT_SCALAR_H

#include "run/text/kernel_text.h"

/* "f64", "s64" or "cplx". */
const char *sf_word_type(sf_dtype dtype);

/* The name of the element type in the text. */
static inline const char *sf_type_name(sf_dtype dtype)
{
    return sf_dtype_get(dtype)->hlo;
}

/* Whether there is such a text: an op that computes each element from the same element of each operand. */
bool sf_scalar_has(const sf_opdef *def);

/* Declares `result`, the word that the op makes of these words, rounded to its type. */
void sf_put_scalar(sf_buf *out, const sf_op *op, const char *const *operands, const char *result);

/* Whether a region has only such ops, on scalars. */
bool sf_block_is_scalar(const sf_graph *graph, const sf_block *block);

/* Declares the values of the region, as PREFIXnumber, from words that are called so; those of its results are
 * sf_put_value'd. */
void sf_put_block(sf_buf *out, const sf_graph *graph, const sf_block *block, const char *prefix,
                  const char *const *arguments);

/* The name of a value of a region. */
typedef struct sf_value_name {
    char at[48];
} sf_value_name;
sf_value_name sf_name_value(const char *prefix, sf_value value);

/* combine(a, b) of a monoid, as an expression on words of the type, rounded to it. */
void sf_put_monoid(sf_buf *out, sf_monoid monoid, sf_dtype dtype, const char *a, const char *b);

#endif
