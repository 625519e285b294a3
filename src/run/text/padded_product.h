/* Products of matrices whose rows are no multiples of 16 bytes, such as scores of a vocabulary of 50,257 words: a library takes three to
 * five times as long for them. Where that is more than copies take, the factors are copied to scratch memory in which they are,
 * with zeros at their ends, and the result from there. */
#ifndef SF_RUN_TEXT_PADDED_PRODUCT_H
#define SF_RUN_TEXT_PADDED_PRODUCT_H

#include "run/text/kernel_text.h"

/* A matrix in batches, by its rows as they lie in memory: of so many elements, and in scratch memory of so many. */
typedef struct sf_padded_matrix {
    bool is_copied;
    int64_t rows, columns, stride;
    int64_t padded_rows, padded_columns;
    int64_t batch[SF_MAX_RANK]; /* strides as given; 0: the same for all */
    int64_t bytes;              /* in scratch memory */
} sf_padded_matrix;

typedef struct sf_padded {
    sf_dot dot; /* of the copies */
    sf_padded_matrix matrices[3];
} sf_padded;

/* False where nothing is copied. */
bool sf_pad_product(const sf_inst *inst, sf_padded *out);

/* The arguments of the library's product, and the launches that copy. */
void sf_write_padded(sf_writer *w, const sf_padded *padded);

#endif
