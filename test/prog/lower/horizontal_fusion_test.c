/* Small loops next to each other, for a target that launches those as one: loops over arguments at
 * the beginning, updates at the end, the others in their order; every order computes the same, and
 * little memory is kept for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "prog/fused_launch.h"
#include "run/cpu/cpu_target.h"
#include "run/cuda/cuda_target.h"
#include "support/programs.h"
#include "support/run.h"

static sf_target small_target(int64_t bytes)
{
    sf_target target = test_few_passes();
    target.small_bytes = bytes;
    return target;
}

/* Layers with a scale, which is converted before it is used, and with an update of it after its
 * gradient. */
static void layers_text(sf_buf *out, int layers, int width)
{
    char type[32], half[32];
    snprintf(type, sizeof type, "tensor<%dxf32>", width);
    snprintf(half, sizeof half, "tensor<%dxbf16>", width);
    sf_buf_puts(out, "func.func public @main(");
    for (int i = 0; i < layers; i++)
        sf_buf_printf(out, "%%w%d: %s {tf.aliasing_output = %d : i32}, ", i, type, i);
    sf_buf_puts(out, "%x: tensor<4x4xbf16>) -> (");
    for (int i = 0; i < layers; i++)
        sf_buf_printf(out, "%s%s", i ? ", " : "", type);
    sf_buf_puts(out, ") {\n");
    for (int i = 0; i < layers; i++) {
        sf_buf_printf(out, "%%h%d = stablehlo.convert %%w%d : (%s) -> %s\n", i, i, type, half);
        sf_buf_printf(out,
                      "%%m%d = stablehlo.reshape %%h%d : (%s) -> tensor<4x%dxbf16>\n"
                      "%%d%d = stablehlo.dot_general %%x, %%m%d, contracting_dims = [1] x [0] : "
                      "(tensor<4x4xbf16>, tensor<4x%dxbf16>) -> tensor<4x%dxbf16>\n",
                      i, i, half, width / 4, i, i, width / 4, width / 4);
        sf_buf_printf(out,
                      "%%r%d = stablehlo.reshape %%d%d : (tensor<4x%dxbf16>) -> %s\n"
                      "%%g%d = stablehlo.convert %%r%d : (%s) -> %s\n"
                      "%%n%d = stablehlo.subtract %%w%d, %%g%d : %s\n",
                      i, i, width / 4, half, i, i, half, type, i, i, i, type);
    }
    sf_buf_puts(out, "return ");
    for (int i = 0; i < layers; i++)
        sf_buf_printf(out, "%s%%n%d", i ? ", " : "", i);
    sf_buf_puts(out, " : ");
    for (int i = 0; i < layers; i++)
        sf_buf_printf(out, "%s%s", i ? ", " : "", type);
    sf_buf_puts(out, "\n}\n");
}

static void kinds_of(const sf_program *p, char *out)
{
    for (size_t i = 0; i < p->ninsts; i++)
        *out++ = p->insts[i].kind == SF_INST_DOT ? 'd' : 'l';
    *out = '\0';
}

static void test_layers(void **state)
{
    (void)state;
    sf_buf text = {0};
    char kinds[64];
    layers_text(&text, 4, 64);
    static const struct {
        int64_t small;
        const char *kinds;
    } cases[] = {{0, "ldlldlldlldl"}, {1 << 10, "llllddddllll"}, {64, "ldlldlldlldl"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sf_target target = small_target(cases[i].small);
        sf_program *p = test_lower_text(text.text, &target);
        kinds_of(p, kinds);
        assert_string_equal(kinds, cases[i].kinds);
        sf_program_free(p);
    }
    sf_buf_free(&text);
}

/* Scales, made early, and gradients, whose updates wait, take at most 16 MiB of memory each. */
static void test_little_is_held(void **state)
{
    (void)state;
    enum { LAYERS = 120, WIDTH = 1 << 18, HALF = 2 * WIDTH, WHOLE = 4 * WIDTH, KEPT = 16 << 20 };
    sf_buf text = {0};
    layers_text(&text, LAYERS, WIDTH);
    sf_target target = small_target(HALF + 2 * WHOLE), plain = small_target(0);
    sf_program *p = test_lower_text(text.text, &target), *q = test_lower_text(text.text, &plain);
    assert_in_range(q->arena_bytes[SF_SPACE_DEVICE], HALF, 2 * HALF);
    assert_in_range(p->arena_bytes[SF_SPACE_DEVICE], KEPT, 2 * KEPT + 4 * HALF);
    assert_true(2 * KEPT + 4 * HALF < LAYERS * HALF);
    sf_program_free(p);
    sf_program_free(q);
    sf_buf_free(&text);
}

/* How often something is launched for loops. */
static int count_launches(const sf_program *p)
{
    sf_arena arena = {0};
    const uint32_t *firsts = sf_fused_launches_of(p, NULL, &arena);
    int count = 0;
    for (uint32_t i = 0; i < p->ninsts; i++)
        count += p->insts[i].kind == SF_INST_LOOP && firsts[i] == i;
    sf_arena_free(&arena);
    return count;
}

typedef struct found {
    int before[16], steps;
    uint64_t order[16]; /* of those that are not small, by their origin */
    bool recomputed;
    int more;
} found;

static void compare_steps(void *context, const char *what, const sf_program *p,
                          const sf_program *other)
{
    found *f = context;
    sf_program judged = *p;
    judged.target = &sf_target_cuda; /* decides which are small */
    uint64_t order = 0;
    (void)other;
    for (size_t i = 0; i < p->ninsts; i++)
        if (!sf_is_small_loop(&judged, &p->insts[i]))
            order = order * 1000003 + p->insts[i].origin.node;
    int launches = count_launches(&judged);
    if (!f->recomputed) {
        f->before[f->steps] = launches;
        f->order[f->steps++] = order;
        return;
    }
    if (order != f->order[f->steps])
        fail_msg("%s: other instructions are in another order", what);
    if (launches > f->before[f->steps])
        fail_msg("%s: %d launches were %d", what, launches, f->before[f->steps]);
    f->more += launches < f->before[f->steps];
    f->steps++;
}

/* Programs of all steps are valid, which whoever lowers them here checks, and take no more launches. */
static void test_steps(void **state)
{
    (void)state;
    found f = {0};
    sf_target plain = sf_target_cuda;
    plain.small_bytes = 0;
    int count = test_each_whole(&plain, compare_steps, &f);
    f.recomputed = true;
    f.steps = 0;
    assert_int_equal(test_each_whole(&sf_target_cuda, compare_steps, &f), count);
    assert_int_equal(f.more, count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layers),
        cmocka_unit_test(test_little_is_held),
        cmocka_unit_test(test_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
