/* Convolutions as a library has them: drawn at random, with dilations, borders that differ or are negative, turned windows, groups
 * and any order of dimensions, moved as the engine would move them and computed by the formulas of the three kinds, against sums
 * over all windows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/mem.h"
#include "emulator/emulator.h"
#include "support/indexing.h"

enum { CASES = 4000 };

typedef struct drawn {
    sf_conv conv;
    int64_t counts[3]; /* elements of lhs, rhs and the result */
    float *memory[3];
} drawn;

/* Strides of dimensions of these sizes, in a random order of memory, or with dimension `inner` last, and the other of the first two
 * before all; returns how many elements that is. */
static int64_t draw_strides(test_random *random, int rank, int inner, const int64_t *sizes,
                            int64_t **strides)
{
    bool placed[SF_MAX_RANK] = {false};
    int64_t stride = 1;
    for (int i = 0; i < rank; i++) {
        int usual = i == 0 ? inner : i == rank - 1 ? 1 - inner : rank - i;
        int d = inner >= 0 ? usual : (int)test_draw(random, 0, rank - 1);
        while (placed[d])
            d = (d + 1) % rank;
        placed[d] = true;
        *strides[d] = stride;
        stride *= sizes[d];
    }
    return stride;
}

/* Of the result, or less than one where the windows do not fit. */
static int64_t draw_dim(test_random *random, bool is_plain, sf_conv_dim *d)
{
    d->lhs = test_draw(random, 1, 6);
    d->window = test_draw(random, 1, test_draw(random, 0, 2) == 0 ? 6 : 3);
    d->stride = 1 + test_draw(random, 0, 2) / 2;
    d->base = 1 + test_draw(random, 0, 2) / 2;
    d->dilation = 1 + test_draw(random, 0, 2) / 2;
    d->reversed = test_draw(random, 0, 3) == 0;
    d->low = test_draw(random, -1, 3);
    int64_t high = test_draw(random, -1, 3);
    if (is_plain)
        *d = (sf_conv_dim){.lhs = d->lhs,
                           .window = test_draw(random, 0, 1) ? 1 : d->lhs,
                           .stride = 1,
                           .base = 1,
                           .dilation = 1};
    high = is_plain ? 0 : high;
    int64_t room = (d->lhs - 1) * d->base + 1 + d->low + high;
    d->out = room < (d->window - 1) * d->dilation + 1
                 ? 0
                 : (room - (d->window - 1) * d->dilation - 1) / d->stride + 1;
    return d->out;
}

static bool draw_case(test_random *random, drawn *t)
{
    sf_conv *g = &t->conv;
    *g = (sf_conv){.spatial = (int)test_draw(random, 1, 2),
                   .feature_groups = 1,
                   .batch_groups = 1,
                   .lhs_dtype = SF_F32,
                   .rhs_dtype = SF_F32,
                   .out_dtype = SF_F32};
    bool is_plain = test_draw(random, 0, 3) == 0;
    if (test_draw(random, 0, 3) == 0)
        *(test_draw(random, 0, 1) ? &g->feature_groups : &g->batch_groups) = 2;
    g->batch = test_draw(random, 1, 5);
    g->channels = test_draw(random, 1, 5);
    g->features = test_draw(random, 1, 4) * g->feature_groups * g->batch_groups;
    for (int d = 0; d < g->spatial; d++)
        if (draw_dim(random, is_plain, &g->space[d]) < 1)
            return false;
    int rank = g->spatial + 2, order = (int)test_draw(random, 0, 2);
    const int inner[3][3] = {{1, 1, 1}, {0, 0, 1}, {-1, -1, -1}};
    int64_t sizes[3][SF_MAX_RANK] = {{g->batch * g->batch_groups, g->channels * g->feature_groups},
                                     {g->features, g->channels},
                                     {g->batch, g->features}};
    int64_t *strides[3][SF_MAX_RANK] = {{&g->lhs_batch, &g->lhs_feature},
                                        {&g->rhs_output, &g->rhs_input},
                                        {&g->out_batch, &g->out_feature}};
    for (int d = 0; d < g->spatial; d++) {
        sf_conv_dim *p = &g->space[d];
        sizes[0][2 + d] = p->lhs;
        sizes[1][2 + d] = p->window;
        sizes[2][2 + d] = p->out;
        strides[0][2 + d] = &p->lhs_stride;
        strides[1][2 + d] = &p->rhs_stride;
        strides[2][2 + d] = &p->out_stride;
    }
    for (int i = 0; i < 3; i++) {
        t->counts[i] = draw_strides(random, rank, inner[order][i], sizes[i], strides[i]);
        t->memory[i] = sf_alloc((size_t)t->counts[i] * sizeof(float));
        for (int64_t j = 0; j < t->counts[i]; j++)
            t->memory[i][j] = (float)test_draw(random, -4, 4);
    }
    return true;
}

/* One element of the result, at `at`: batch, feature, space. */
static float sum_at(const drawn *t, const int64_t *at)
{
    const sf_conv *g = &t->conv;
    int64_t groups = g->feature_groups * g->batch_groups, group = at[1] / (g->features / groups);
    int64_t windows[SF_MAX_RANK] = {0}, r[SF_MAX_RANK] = {0};
    float sum = 0;
    for (int d = 0; d < g->spatial; d++)
        windows[d] = g->space[d].window;
    do {
        int64_t a = at[0] * g->lhs_batch, b = at[1] * g->rhs_output;
        bool inside = true;
        a += g->feature_groups > 1 ? group * g->channels * g->lhs_feature : 0;
        a += g->batch_groups > 1 ? group * g->batch * g->lhs_batch : 0;
        for (int d = 0; d < g->spatial; d++) {
            const sf_conv_dim *p = &g->space[d];
            int64_t x = at[2 + d] * p->stride + r[d] * p->dilation - p->low;
            inside = inside && x >= 0 && x % p->base == 0 && x / p->base < p->lhs;
            a += x / p->base * p->lhs_stride;
            b += (p->reversed ? p->window - 1 - r[d] : r[d]) * p->rhs_stride;
        }
        for (int64_t k = 0; inside && k < g->channels; k++)
            sum += t->memory[0][a + k * g->lhs_feature] * t->memory[1][b + k * g->rhs_input];
    } while (sf_next_index(g->spatial, windows, r));
    return sum;
}

static void move(const sf_move *m, const float *from, float *to)
{
    int64_t index[SF_MAX_RANK] = {0}, sizes[SF_MAX_RANK];
    for (int d = 0; d < m->rank; d++)
        sizes[d] = m->dims[d].size;
    do {
        int64_t source = 0, target = 0;
        bool inside = true;
        for (int d = 0; d < m->rank; d++) {
            const sf_move_dim *p = &m->dims[d];
            int64_t at = p->transposed ? p->first - index[d] : p->first + index[d];
            inside = inside && at >= 0 && at < p->extent;
            source += at * p->from;
            target += index[d] * p->to;
        }
        to[target] = inside ? from[source] : 0;
    } while (sf_next_index(m->rank, sizes, index));
}

static float *given(const drawn *t, const sf_image *image)
{
    return t->memory[image->given.kind == SF_PARAM_OUT ? 2 : image->given.index];
}

static void compute(const drawn *t, const sf_convolve *c)
{
    int result = sf_convolve_result(c);
    char *images[3];
    for (int i = 0; i < 3; i++) {
        const sf_image *image = &c->images[i];
        images[i] = image->is_moved ? sf_alloc((size_t)image->bytes) : (char *)given(t, image);
        if (image->is_moved && i != result)
            move(&image->move, given(t, image), (float *)images[i]);
    }
    sf_host_convolve(c, images);
    if (c->images[result].is_moved)
        move(&c->images[result].move, (const float *)images[result], given(t, &c->images[result]));
    for (int i = 0; i < 3; i++)
        if (c->images[i].is_moved)
            sf_free(images[i]);
}

static void multiply(const drawn *t, const sf_dot *dot)
{
    for (int64_t i = 0; i < dot->m; i++)
        for (int64_t j = 0; j < dot->n; j++) {
            float sum = 0;
            for (int64_t k = 0; k < dot->k; k++)
                sum += t->memory[0][i * dot->a_row + k * dot->a_column] *
                       t->memory[1][k * dot->b_row + j * dot->b_column];
            t->memory[2][i * dot->c_row + j * dot->c_column] = sum;
        }
}

static void compare(const drawn *t, uint32_t number)
{
    const sf_conv *g = &t->conv;
    int64_t sizes[SF_MAX_RANK] = {g->batch, g->features}, at[SF_MAX_RANK] = {0};
    for (int d = 0; d < g->spatial; d++)
        sizes[2 + d] = g->space[d].out;
    do {
        int64_t place = at[0] * g->out_batch + at[1] * g->out_feature;
        for (int d = 0; d < g->spatial; d++)
            place += at[2 + d] * g->space[d].out_stride;
        float expected = sum_at(t, at), ours = t->memory[2][place];
        if (expected != ours)
            fail_msg("case %u: %g instead of %g", number, (double)ours, (double)expected);
    } while (sf_next_index(g->spatial + 2, sizes, at));
}

static void kinds_are_sums_over_windows(void **state)
{
    (void)state;
    int kinds[3] = {0}, products = 0, moved = 0, plain = 0, grouped = 0, folded = 0;
    for (uint32_t i = 0; i < CASES; i++) {
        test_random random = {.key = i + 1};
        drawn t = {0};
        sf_convolve c;
        if (!draw_case(&random, &t))
            continue;
        if (sf_convolve_of(&t.conv, &c)) {
            if (c.is_product)
                multiply(&t, &c.dot);
            else
                compute(&t, &c);
            compare(&t, i);
            products += c.is_product;
            kinds[c.kind] += !c.is_product;
            folded += c.spatial > t.conv.spatial;
            grouped += !c.is_product && c.groups > 1;
            moved += !c.is_product && c.images[sf_convolve_result(&c)].is_moved;
            plain += !c.is_product && !c.images[sf_convolve_result(&c)].is_moved;
        }
        for (int k = 0; k < 3; k++)
            sf_free(t.memory[k]);
    }
    for (int i = 0; i < 3; i++)
        assert_true(kinds[i] > CASES / 40);
    assert_true(products > CASES / 200 && folded > CASES / 200);
    assert_true(moved > CASES / 40 && plain > CASES / 100 && grouped > CASES / 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(kinds_are_sums_over_windows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
