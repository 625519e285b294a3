/* Places of buffers: no two that live at the same time overlap, all are at multiples of the
 * target's alignment, the peak is where the last one ends, and not far above the bytes that live at
 * a time, which no placement can beat; each is as low as earlier ones allow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/mem.h"
#include "prog/lower/lowering.h"
#include "run/cpu/cpu_target.h"
#include "sheaf/sheaf.h"
#include "support/indexing.h"
#include "support/programs.h"

/* A life of bytes, results until the end. */
static uint32_t last_of(const sf_program *p, const sf_buffer *buffer)
{
    return buffer->is_result ? (uint32_t)p->ninsts : buffer->last;
}

static bool is_placed(const sf_buffer *buffer)
{
    return buffer->home == SF_HOME_ARENA && buffer->first != SF_NONE && buffer->bytes > 0;
}

static void check_pairs(const char *what, const sf_program *p)
{
    for (size_t a = 0; a < p->nbuffers; a++)
        for (size_t b = a + 1; b < p->nbuffers; b++) {
            const sf_buffer *x = &p->buffers[a], *y = &p->buffers[b];
            if (is_placed(x) && is_placed(y) && x->first <= last_of(p, y) &&
                y->first <= last_of(p, x) && x->offset < y->offset + y->bytes &&
                y->offset < x->offset + x->bytes)
                fail_msg("%s: buffers %zu and %zu overlap", what, a, b);
        }
}

static int64_t rounded(const sf_program *p, int64_t bytes)
{
    int64_t grain = p->target->align;
    return (bytes + grain - 1) / grain * grain;
}

/* The most bytes that live at once. */
static int64_t bound_of(const sf_program *p)
{
    int64_t *change = sf_alloc((p->ninsts + 2) * sizeof *change), live = 0, most = 0;
    for (size_t i = 0; i <= p->ninsts + 1; i++)
        change[i] = 0;
    for (size_t b = 0; b < p->nbuffers; b++)
        if (is_placed(&p->buffers[b])) {
            int64_t bytes = rounded(p, p->buffers[b].bytes);
            change[p->buffers[b].first] += bytes;
            change[last_of(p, &p->buffers[b]) + 1] -= bytes;
        }
    for (size_t i = 0; i <= p->ninsts; i++) {
        live += change[i];
        most = live > most ? live : most;
    }
    sf_free(change);
    return most;
}

/* Whether the buffer is placed before the other: the largest first. */
static bool comes_before(const sf_program *p, size_t a, size_t b)
{
    const sf_buffer *x = &p->buffers[a], *y = &p->buffers[b];
    if (rounded(p, x->bytes) != rounded(p, y->bytes))
        return x->bytes > y->bytes;
    return x->first != y->first ? x->first < y->first : a < b;
}

/* Whether the bytes from an offset on are free for the buffer, beside those that are placed before it. */
static bool is_free_at(const sf_program *p, size_t at, int64_t offset)
{
    const sf_buffer *x = &p->buffers[at];
    for (size_t i = 0; i < p->nbuffers; i++) {
        const sf_buffer *y = &p->buffers[i];
        if (i != at && is_placed(y) && y->space == x->space && comes_before(p, i, at) &&
            x->first <= last_of(p, y) && y->first <= last_of(p, x) &&
            offset < y->offset + rounded(p, y->bytes) && y->offset < offset + rounded(p, x->bytes))
            return false;
    }
    return true;
}

/* Each is as low as possible: no lower end of another would do. */
static void check_lowest(const char *what, const sf_program *p, size_t at)
{
    const sf_buffer *x = &p->buffers[at];
    bool lower = x->offset > 0 && is_free_at(p, at, 0);
    for (size_t i = 0; i < p->nbuffers && !lower; i++) {
        const sf_buffer *y = &p->buffers[i];
        int64_t end = is_placed(y) ? y->offset + rounded(p, y->bytes) : 0;
        lower = is_placed(y) && y->space == x->space && comes_before(p, i, at) && end < x->offset &&
                is_free_at(p, at, end);
    }
    if (lower)
        fail_msg("%s: buffer %zu could stand lower", what, at);
}

typedef struct ratios {
    double worst, sum;
    int count;
} ratios;

static void check_places(void *context, const char *what, const sf_program *p,
                         const sf_program *other)
{
    (void)other;
    ratios *r = context;
    int64_t end = 0, bound = bound_of(p);
    check_pairs(what, p);
    for (size_t b = 0; b < p->nbuffers; b++) {
        const sf_buffer *buffer = &p->buffers[b];
        if (!is_placed(buffer))
            continue;
        assert_int_equal(buffer->offset % p->target->align, 0);
        if (buffer->offset + rounded(p, buffer->bytes) > end)
            end = buffer->offset + rounded(p, buffer->bytes);
    }
    for (size_t b = 0; b < p->nbuffers && p->nbuffers < 500; b++)
        if (is_placed(&p->buffers[b]))
            check_lowest(what, p, b);
    assert_int_equal(end, p->arena_bytes[SF_SPACE_DEVICE]);
    assert_true(end >= bound);
    double ratio = bound > 0 ? (double)end / (double)bound : 1;
    r->worst = ratio > r->worst ? ratio : r->worst;
    r->sum += ratio;
    r->count++;
}

static void test_all_steps(void **state)
{
    (void)state;
    ratios r = {0};
    test_each_program(check_places, &r);
    print_message("peak over live bytes: %.4f on average, %.4f at worst, of %d programs\n",
                  r.sum / r.count, r.worst, r.count);
    assert_true(r.worst < 1.15 && r.sum / r.count < 1.03);
}

/* Products of 4 KB each, one from the other: two live at any time. */
static void test_chain(void **state)
{
    (void)state;
    sf_program *p = test_lower_text(
        "func.func public @main(%x: tensor<32x32xf32>) -> tensor<32x32xf32> {\n"
        "%a = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] : (tensor<32x32xf32>, "
        "tensor<32x32xf32>) -> tensor<32x32xf32>\n"
        "%b = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0] : (tensor<32x32xf32>, "
        "tensor<32x32xf32>) -> tensor<32x32xf32>\n"
        "%c = stablehlo.dot_general %b, %b, contracting_dims = [1] x [0] : (tensor<32x32xf32>, "
        "tensor<32x32xf32>) -> tensor<32x32xf32>\n"
        "%d = stablehlo.dot_general %c, %c, contracting_dims = [1] x [0] : (tensor<32x32xf32>, "
        "tensor<32x32xf32>) -> tensor<32x32xf32>\n"
        "return %d : tensor<32x32xf32>\n}\n",
        NULL);
    assert_int_equal(p->ninsts, 4);
    assert_int_equal(p->arena_bytes[SF_SPACE_DEVICE], 2 * 4096);
    assert_int_equal(p->state_bytes, 4096);
    sf_program_free(p);
}

/* A small buffer takes a grain; the empty takes nothing. */
static void test_small(void **state)
{
    (void)state;
    sf_program *p = test_lower_text(
        "func.func public @main(%x: tensor<3xf32>, %e: tensor<0x3xf32>) -> (tensor<3xf32>, "
        "tensor<0x3xf32>) {\n%a = stablehlo.tanh %x : tensor<3xf32>\n"
        "%b = stablehlo.tanh %e : tensor<0x3xf32>\n"
        "return %a, %b : tensor<3xf32>, tensor<0x3xf32>\n}\n",
        NULL);
    assert_int_equal(p->arena_bytes[SF_SPACE_DEVICE], p->target->align);
    sf_program_free(p);
}

static uint32_t pick(test_random *random, uint32_t below)
{
    return (uint32_t)test_draw(random, 0, (int64_t)below - 1);
}

/* Buffers of a few sizes, as steps have them: nested in each other, as those kept for a backward
 * pass, one after the other, or at random; some are results. More than one group of them lives at a
 * time. */
static void fill_buffers(sf_program *p, test_random *random, uint32_t most)
{
    static const int64_t sizes[] = {64, 64, 4096, 4160, 100000};
    uint32_t mode = pick(random, 3), insts = (uint32_t)p->ninsts;
    for (uint32_t i = 0; i < p->nbuffers; i++) {
        uint32_t first = pick(random, insts),
                 length = pick(random, mode == 1 ? most : insts - first);
        if (mode == 0) {
            first = pick(random, insts / 2);
            length = insts - 2 * first - pick(random, 2);
        }
        uint32_t last = first + length < insts ? first + length : insts - 1;
        p->buffers[i] = (sf_buffer){.home = SF_HOME_ARENA,
                                    .bytes = sizes[pick(random, 5)],
                                    .first = first,
                                    .last = last,
                                    .is_result = pick(random, 20) == 0};
    }
}

static void test_drawn(void **state)
{
    (void)state;
    test_random random = {.key = 7};
    ratios r = {0};
    for (int round = 0; round < 12; round++) {
        sf_arena arena = {0};
        sf_program p = {.target = &sf_target_cpu, .ninsts = 40 + 400 * (size_t)(round % 3)};
        p.insts = SF_ARRAY(&arena, p.ninsts, sf_inst);
        p.nbuffers = 300;
        p.buffers = SF_ARRAY(&arena, p.nbuffers, sf_buffer);
        fill_buffers(&p, &random, 30);
        place_buffers(&p);
        check_places(&r, "random", &p, NULL);
        sf_arena_free(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_steps),
        cmocka_unit_test(test_chain),
        cmocka_unit_test(test_small),
        cmocka_unit_test(test_drawn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
