/* Texts of steps that do one thing several times, each time on other tensors. */
#ifndef SF_API_PROBE_PROBE_TEXT_H
#define SF_API_PROBE_PROBE_TEXT_H

#include "base/str.h"

typedef struct sf_step_text {
    sf_buf arguments, body, results, types;
    int narguments, nresults;
} sf_step_text;

/* Another argument of the type, "4x4xf32"; its number: it is %aN. */
int sf_text_argument(sf_step_text *text, const char *type);

/* The value, "%v3", is a result of the type. */
void sf_text_result(sf_step_text *text, const char *value, const char *type);

/* The step; frees the text's state. */
sf_buf sf_text_finish(sf_step_text *text);

/* `copies` products of m x k and k x n. */
sf_buf sf_text_products(const char *type, int64_t m, int64_t n, int64_t k, int copies);

/* `copies` sums of two tensors of f32, whose lengths differ a little, so that each is a loop of its own. */
sf_buf sf_text_sums(int64_t count, int copies);

/* `copies` loops over rows of `columns`, with a number for each row and one for each column. */
sf_buf sf_text_repeats(int64_t rows, int64_t columns, int copies);

/* One loop over the elements: `times` times one op and the other, with a constant where they take two operands. */
sf_buf sf_text_chain(int64_t count, const char *one, const char *other, int times);

/* Sums, largest and least of rows, all at once. */
enum { SF_TEXT_FOLDS = 4 };
sf_buf sf_text_folds(int64_t rows, int64_t columns);

/* A square matrix, transposed; another with a border of zeros. */
sf_buf sf_text_transpose(int64_t side);
sf_buf sf_text_border(int64_t side);

/* Sums over pixels of images whose channels are last; the largest of each window of 3 x 3 in such an image. */
sf_buf sf_text_transposed(int64_t images, int64_t pixels, int64_t channels);
sf_buf sf_text_windows(int64_t images, int64_t side, int64_t channels);

/* Convolutions with a window of 3 x 3, channels last, over images as large as their results, and
 * their gradients. */
typedef enum sf_text_kind {
    SF_TEXT_FORWARD,
    SF_TEXT_SKIPPING,   /* windows move by two, so that results are half as large */
    SF_TEXT_TRANSPOSED, /* images are dilated by two, so that results are twice as large */
    SF_TEXT_GRADIENT,
    SF_TEXT_STRIDED /* the gradient, where windows move by two */
} sf_text_kind;

typedef struct sf_text_images {
    int64_t count, side, channels, features;
} sf_text_images;
sf_buf sf_text_convolutions(const char *type, const sf_text_images *images, sf_text_kind kind,
                            int copies);

#endif
