/* Products and convolutions as plain kernels: a thread has an element of the result. For products
 * that no library has, and for devices without one. */
#ifndef SF_RUN_TEXT_TEXT_PRODUCT_H
#define SF_RUN_TEXT_TEXT_PRODUCT_H

#include "run/text/scalar.h"

/* sum += p0[a] * p1[b], in words of the type of the result. */
void sf_put_product(sf_buf *out, sf_dtype a, sf_dtype b, sf_dtype to, const char *at_a,
                    const char *at_b);

void sf_write_conv(sf_writer *w, const sf_conv *conv);

#endif
