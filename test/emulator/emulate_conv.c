/* Convolutions of the emulated library, by the formulas of run/cuda/convolve.h. */
#include "emulator/emulator.h"
#include "ir/dtype.h"

typedef struct place {
    int64_t x, w, y; /* of the elements that meet */
} place;

/* Where window q sees, at r, its place; false: the border. */
static bool meet(const sf_convolve *c, const int64_t *q, const int64_t *r, place *at)
{
    *at = (place){0};
    for (int d = 0; d < c->spatial; d++) {
        int64_t p = q[d] * c->stride[d] + r[d] * c->dilation[d] - c->pad[d];
        if (p < 0 || p >= c->images[SF_IMAGE_X].sizes[d])
            return false;
        at->x = at->x * c->images[SF_IMAGE_X].sizes[d] + p;
        at->w = at->w * c->images[SF_IMAGE_W].sizes[d] + r[d];
        at->y = at->y * c->images[SF_IMAGE_Y].sizes[d] + q[d];
    }
    return true;
}

static int64_t pixels(const sf_convolve *c, int image)
{
    int64_t count = 1;
    for (int d = 0; d < c->spatial; d++)
        count *= c->images[image].sizes[d];
    return count;
}

/* Adds all products of one window at one place to the result so far, in double. */
static void add_products(const sf_convolve *c, const double *const *in, double *sums,
                         const place *at)
{
    int64_t each = c->c / c->groups, features = c->k / c->groups;
    int64_t x_pixels = pixels(c, SF_IMAGE_X), y_pixels = pixels(c, SF_IMAGE_Y),
            w_pixels = pixels(c, SF_IMAGE_W);
    for (int64_t n = 0; n < c->n; n++)
        for (int64_t k = 0; k < c->k; k++)
            for (int64_t i = 0; i < each; i++) {
                int64_t x = (n * x_pixels + at->x) * c->c + k / features * each + i;
                int64_t w = (k * w_pixels + at->w) * each + i;
                int64_t y = (n * y_pixels + at->y) * c->k + k;
                if (c->kind == SF_CONVOLVE_FORWARD)
                    sums[y] += in[SF_IMAGE_X][x] * in[SF_IMAGE_W][w];
                else if (c->kind == SF_CONVOLVE_DATA)
                    sums[x] += in[SF_IMAGE_Y][y] * in[SF_IMAGE_W][w];
                else
                    sums[w] += in[SF_IMAGE_X][x] * in[SF_IMAGE_Y][y];
            }
}

void sf_host_convolve(const sf_convolve *c, char *const *images)
{
    sf_arena scratch = {0};
    int result = sf_convolve_result(c);
    int64_t counts[3], q[SF_MAX_RANK] = {0};
    double *elements[3];
    for (int i = 0; i < 3; i++) {
        counts[i] = c->images[i].bytes / sf_dtype_get(c->dtype)->bytes;
        elements[i] = SF_ARRAY(&scratch, counts[i], double);
        for (int64_t j = 0; j < counts[i]; j++)
            elements[i][j] = i == result ? 0 : sf_load_f64(c->dtype, images[i], j);
    }
    const double *const in[3] = {elements[0], elements[1], elements[2]};
    do {
        int64_t r[SF_MAX_RANK] = {0};
        place at;
        do {
            if (meet(c, q, r, &at))
                add_products(c, in, elements[result], &at);
        } while (sf_next_index(c->spatial, c->images[SF_IMAGE_W].sizes, r));
    } while (sf_next_index(c->spatial, c->images[SF_IMAGE_Y].sizes, q));
    for (int64_t j = 0; j < counts[result]; j++)
        sf_store_f64(c->dtype, images[result], j, elements[result][j]);
    sf_arena_free(&scratch);
}
