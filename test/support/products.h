/* Steps that are a product and what follows it, of any size: what may run as an epilogue. */
#ifndef TEST_SUPPORT_PRODUCTS_H
#define TEST_SUPPORT_PRODUCTS_H

#include <stdbool.h>
#include <stddef.h>

/* B batches of an m x k by k x n product; or a convolution of b images of m x m places with k features
 * into n. */
typedef struct product_size {
    int b, m, n, k;
} product_size;

typedef struct product_case {
    const char *name, *text;
    bool is_fused; /* by lowering, at sizes where that pays */
    bool has_sums; /* over rows, so that results depend on the number of threads */
} product_case;

extern const product_case product_cases[];
extern const size_t product_case_count;

/* The text of a step. */
void product_text(const product_case *which, product_size size, const char *dtype, char *out,
                  size_t room);

#endif
